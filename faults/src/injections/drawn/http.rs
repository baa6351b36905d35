//! Faults of what servers are told.

use super::*;
use crate::injections::{
    compression, few_workers, larger_response, lock_contention, no_keepalive, no_sendfile, sync_logging,
};
use crate::twin::{Handler, Log};

pub(super) const ALL: &[Drawable] = &[
    Drawable::new(
        no_keepalive::INJECTION,
        |setup| setup.is_kept() && !setup.is_on(&[Server::Own]),
        |twin, _, _| {
            twin.http.keepalive = false;
            "closes".to_owned()
        },
    ),
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
    Drawable::new(
        compression::INJECTION,
        |setup| {
            let serves = setup.is_on(&PACKAGED) || setup.is_on(&[Server::Node]);
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
        |setup| setup.is_on(&[Server::Nginx, Server::Apache]) && setup.is_near() && setup.twin.http.log == Log::Off,
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
            let told_fields = matches!(twin.server, Server::Nginx | Server::Apache);
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
        |setup| setup.is_on(&[Server::Own]) && setup.is_kept() && setup.is_near() && setup.load.connections >= 4,
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
];
