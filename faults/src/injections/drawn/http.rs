//! Faults of what servers are told.

use super::*;
use crate::injections::{
    compression, few_workers, h2_streams, larger_response, lock_contention, no_keepalive, no_sendfile, slow_reads,
    sync_logging, upstream_no_keepalive, upstream_workers, version,
};
use crate::twin::{Front, Handler, Log};

pub(super) const ALL: &[Drawable] = &[
    Drawable::new(
        no_keepalive::INJECTION,
        // Over HTTP/2 servers take leave in ways of their own.
        |setup| setup.is_kept() && !setup.is_http2() && !setup.is_on(&[Server::Own]),
        |twin, _, _| {
            twin.http.keepalive = false;
            "closes".to_owned()
        },
    )
    // The setting of HAProxy closes those to the server behind it as well.
    .called(|setup| if setup.is_on(&[Server::HaproxyNginx]) { &["http.upstream-no-keepalive"] } else { &[] }),
    Drawable::new(
        few_workers::INJECTION,
        |setup| setup.is_on(&[Server::Own]) && setup.is_kept() && setup.is_near() && setup.load.connections >= 8,
        |twin, load, dice| {
            // At most two thirds of the connections, so that others wait.
            let at_a_time = dice.whole(1, (load.connections * 2 / 3).min(24));
            twin.http.at_a_time = Some(at_a_time);
            format!("{at_a_time}of64")
        },
    )
    .after(|setup, dice| {
        let us = dice.whole(3_000, 30_000);
        setup.path(&format!("/sleep/{us}")).with("max64", |twin| twin.http.at_a_time = Some(64))
    }),
    // Processes of PHP, and threads of Java: of a script that waits for something there are as many at a time. Those of PHP stand behind a
    // front, which has the better name; they are drawn with those of Java since there was no such name.
    Drawable::new(
        Injection { alternates: &[upstream_workers::INJECTION.cause], ..few_workers::INJECTION },
        |setup| {
            let served = setup.is_on(&[Server::NginxPhp, Server::Java]) && !setup.is_https();
            let quick = (1..100_000).contains(&setup.body_bytes());
            served && quick && setup.is_kept() && setup.is_near() && setup.load.connections >= 8
        },
        |twin, load, dice| {
            let at_a_time = dice.whole(1, (load.connections * 2 / 3).min(24));
            twin.http.at_a_time = Some(at_a_time);
            format!("{at_a_time}of64")
        },
    )
    .after(|setup, dice| {
        let us = u64::from(dice.whole(3_000, 30_000));
        setup.with(&format!("sleeps{us}us-max64"), |twin| {
            twin.http.handler = Handler::Sleeps { us };
            twin.http.at_a_time = Some(64);
        })
    }),
    Drawable::new(
        compression::INJECTION,
        |setup| {
            let serves = setup.is_on(&PACKAGED) || setup.is_on(&[Server::Node, Server::Java]);
            serves && setup.is_near() && (1_000..300_000).contains(&setup.body_bytes())
        },
        |twin, _, dice| {
            let level = dice.whole(1, 9) as u8;
            twin.http.gzip_level = Some(level);
            format!("level{level}")
        },
    ),
    Drawable::new(
        no_sendfile::INJECTION,
        |setup| {
            let copies = !setup.is_https() && setup.is_on(&[Server::Nginx, Server::Apache]);
            let cuts = setup.is_https() && setup.is_on(&[Server::Nginx, Server::HaproxyNginx]);
            (copies || cuts) && setup.is_near() && setup.body_bytes() >= 100_000
        },
        |twin, _, dice| {
            let bytes = dice.whole(512, 4_096);
            if twin.tls.is_some() {
                twin.tls_mut().record_bytes = Some(bytes);
                return format!("records-{bytes}");
            }
            twin.http.sendfile = false;
            twin.http.copy_bytes = Some(bytes);
            format!("buffers-{bytes}")
        },
    ),
    Drawable::new(
        sync_logging::INJECTION,
        |setup| {
            let logs = setup.is_on(&[Server::Nginx, Server::Apache, Server::NginxPhp]);
            logs && setup.is_near() && setup.twin.http.log == Log::Off && setup.twin.http.disk.is_none()
        },
        |twin, _, _| {
            twin.http.log = Log::OnDisk { synchronous: true };
            "sync-mount".to_owned()
        },
    )
    .after(|setup, _| setup.with("logged", |twin| twin.http.log = Log::OnDisk { synchronous: false })),
    Drawable::new(
        larger_response::INJECTION,
        |setup| (200..200_000).contains(&setup.body_bytes()) && setup.is_near(),
        |twin, _, dice| {
            let small = twin.path_bytes() < 4_000;
            // HTTP/2 packs fields, and what they come to is not known.
            let told_fields = !twin.http.http2
                && matches!(
                    twin.server,
                    Server::Nginx | Server::Apache | Server::Lighttpd | Server::NginxPhp | Server::Java
                );
            if small && told_fields && dice.one_in(2) {
                // More than the rest of the response, and no more than servers and clients take.
                twin.http.padding_bytes += dice.whole(5_000, 20_000);
                return format!("head-plus-{}", twin.http.padding_bytes);
            }
            let factor = dice.between(1.7, 20.0);
            if let Content::Text { bytes } = &mut twin.content {
                *bytes = (*bytes as f64 * factor) as u64;
            }
            format!("body-{factor:.1}x")
        },
    ),
    Drawable::new(
        lock_contention::INJECTION,
        |setup| setup.is_on(&[Server::Own]) && setup.is_kept() && setup.is_near() && setup.load.connections >= 8,
        |twin, _, _| {
            twin.http.shared_lock = true;
            "ticket-lock".to_owned()
        },
    )
    .after(|setup, dice| setup.path(&format!("/critical/{}", dice.whole(30, 300)))),
    // A fair lock that sleepers wait for: more connections get as much done as one does.
    Drawable::new(
        Injection::new("lock.contention", outside::answers),
        |setup| {
            let locks = setup.is_on(&[Server::Own, Server::Java]);
            locks && setup.is_kept() && setup.is_near() && setup.load.connections >= 4
        },
        |twin, _, _| {
            if let Handler::Locks { shared, .. } = &mut twin.http.handler {
                *shared = true;
            }
            "one-lock".to_owned()
        },
    )
    .after(|setup, dice| {
        let us = u64::from(dice.whole(200, 5_000));
        setup.with(&format!("locks{us}us"), |twin| twin.http.handler = Handler::Locks { us, shared: false })
    }),
    Drawable::new(
        slow_reads::INJECTION,
        |setup| {
            let large = (300_000..10_000_000).contains(&setup.body_bytes());
            let few = setup.load.connections <= 8 && setup.is_kept();
            setup.is_on(&[Server::Nginx]) && large && few && setup.is_near() && setup.twin.http.log == Log::Off
        },
        |twin, _, _| {
            slow_reads::slower(twin);
            "user-space".to_owned()
        },
    )
    .needing(&["bindfs"])
    // So large that reading takes more than starting whatever reads.
    .after(|setup, dice| {
        let bytes = u64::from(dice.whole(2_000, 8_000)) * 1_000;
        slow_reads::on_a_disk(setup.bytes(bytes))
    }),
    Drawable::new(
        version::INJECTION,
        |setup| {
            let large = (20_000..500_000).contains(&setup.body_bytes());
            // With several requests on a connection nginx stands still at times among such frames, which is another fault.
            let one_by_one = setup.is_http2() && setup.load.streams == 1;
            setup.is_on(&[Server::Nginx]) && one_by_one && large && setup.is_near()
        },
        |twin, _, dice| {
            let bytes = dice.whole(8, 40);
            twin.http.frame_bytes = Some(bytes);
            format!("frames{bytes}")
        },
    ),
    Drawable::new(
        h2_streams::INJECTION,
        |setup| {
            let told = setup.is_on(&[Server::Nginx, Server::NginxPhp, Server::Apache, Server::HaproxyNginx]);
            // So small that the path makes requests wait, and not their bytes.
            let small = (1..50_000).contains(&setup.body_bytes());
            told && setup.is_http2() && small && setup.load.streams >= 4 && setup.is_literal()
        },
        |twin, load, dice| {
            let streams = dice.whole(1, load.streams / 3);
            twin.http.most_streams = Some(streams);
            format!("takes{streams}of{}", load.streams)
        },
    )
    .after(|setup, dice| distant(setup, dice, (5_000, 40_000))),
    Drawable::new(
        upstream_no_keepalive::INJECTION,
        |setup| net::is_served_behind_a_front(setup) && setup.is_kept(),
        |twin, _, _| {
            if let Some(Front::Nginx { keeps } | Front::Haproxy { keeps }) = &mut twin.front {
                *keeps = false;
            }
            "connects".to_owned()
        },
    )
    .needing(&["haproxy", "nginx"])
    .after(|setup, dice| match dice.one_in(2) {
        true => upstream_no_keepalive::behind_nginx(setup),
        false => upstream_no_keepalive::behind_haproxy(setup),
    }),
];
