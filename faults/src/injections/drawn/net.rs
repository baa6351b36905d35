//! Faults of paths, names and what stands on the way.

use super::*;
use crate::injections::{
    address_fallback, address_family, backlog_overflow, bad_backend, client_limit, delayed_ack, extra_hop,
    filter_chain, initcwnd, loss, path_delay, rate_cap, slow_names, small_mtu, small_window,
};
use crate::relay::LinkPlan;
use crate::twin::{Balanced, Front, LastServer, Loss, Packets, Way};

/// One that a proxy may stand before, in the server's own network, and that is none itself.
pub(super) fn is_served_behind_a_front(setup: &Setup) -> bool {
    let is_front = setup.is_on(&[Server::HaproxyNginx, Server::HaproxyRuler, Server::NginxPhp]);
    !is_front && !setup.is_http2() && setup.is_near() && setup.is_literal()
}

pub(super) const ALL: &[Drawable] = &[
    Drawable::new(path_delay::INJECTION, Setup::is_literal, |twin, _, dice| {
        let plus_us = dice.whole(1_000, 30_000);
        twin.network.path = Path::round_trip_us(round_trip_us(twin) + u64::from(plus_us));
        format!("plus{plus_us}us")
    })
    // Both through the relay, or it would differ, too.
    .after(|setup, _| match setup.twin.network.path {
        Path::Veth => setup.with("rtt0us", |twin| twin.network.path = Path::round_trip_us(0)),
        Path::Relay { .. } => setup,
    }),
    Drawable::new(
        small_window::INJECTION,
        |setup| setup.body_bytes() >= 300_000 && setup.load.connections <= 8 && setup.is_kept(),
        |twin, _, dice| {
            let kib = dice.whole(16, 192);
            twin.network.sysctls.push(("net.ipv4.tcp_wmem", format!("4096 16384 {}", kib << 10)));
            format!("wmem{kib}k")
        },
    )
    .after(|setup, dice| distant(setup, dice, (5_000, 50_000))),
    Drawable::new(
        loss::INJECTION,
        |setup| setup.is_near() && setup.is_literal(),
        |twin, _, dice| {
            let per_mille = dice.whole(5, 50);
            let (way, name) = if dice.one_in(2) { (Way::ToClient, "out") } else { (Way::ToServer, "in") };
            twin.network.losses.push(Loss { way, packets: Packets::Tcp, per_mille });
            format!("{per_mille}permille-{name}")
        },
    ),
    Drawable::new(
        rate_cap::INJECTION,
        // All requests that are under way are served within two seconds at the least rate there is.
        |setup| {
            let round = setup.body_bytes() * at_a_time(&setup.load);
            setup.body_bytes() >= 100_000 && setup.is_kept() && round <= 40_000_000
        },
        |twin, load, dice| {
            let round = (twin.path_bytes() * at_a_time(load)) as f64;
            if let Path::Relay { to_client, .. } = &mut twin.network.path {
                let rate = dice.between((round / 2.0).max(2e6), 60e6) as u64;
                *to_client = LinkPlan { bytes_per_s: Some(rate), ..*to_client };
                return format!("line-{}kBps", rate / 1000);
            }
            if twin.server == Server::Nginx && twin.path_bytes() >= 500_000 && dice.one_in(2) {
                // nginx lets the bytes of one second pass at once.
                let rate = (twin.path_bytes() as f64 * dice.between(0.4, 0.9)) as u64;
                twin.http.limit_rate = Some(rate);
                return format!("limit-rate-{}kBps", rate / 1000);
            }
            let bit_per_s = (8.0 * dice.between((round / 2.0).max(2e6), 120e6)) as u64;
            twin.network.shaper_bit_per_s = Some(bit_per_s);
            format!("tbf-{}Mbps", bit_per_s / 1_000_000)
        },
    ),
    Drawable::new(
        delayed_ack::INJECTION,
        |setup| setup.is_on(&[Server::Own]) && setup.is_kept() && setup.is_near(),
        |twin, _, _| {
            twin.http.nodelay = false;
            "nagle".to_owned()
        },
    )
    .after(|setup, dice| setup.path(&format!("/two-writes/{}", dice.whole(100, 1400)))),
    // Java's own server writes head and body by themselves, and leaves Nagle's algorithm on unless it is told otherwise.
    Drawable::new(
        delayed_ack::INJECTION,
        |setup| {
            let small = (1..=1_400).contains(&setup.body_bytes());
            setup.is_on(&[Server::Java]) && small && setup.is_kept() && setup.is_near()
        },
        |twin, _, _| {
            twin.http.nodelay = false;
            "nagle".to_owned()
        },
    ),
    Drawable::new(
        backlog_overflow::INJECTION,
        |setup| setup.load.connect_anew && setup.is_on(&PACKAGED) && setup.is_near(),
        |twin, _, dice| {
            twin.http.backlog = dice.whole(1, 4);
            format!("backlog{}", twin.http.backlog)
        },
    )
    .after(|setup, dice| setup.connections(dice.whole(32, 64)))
    // While some wait for a second and more, the others are served the sooner: the rate of all tells nothing.
    .unseen_by_load(),
    Drawable::new(
        small_mtu::INJECTION,
        |setup| setup.body_bytes() >= 100_000 && setup.is_near(),
        |twin, _, dice| {
            twin.network.no_offload = true;
            if dice.one_in(3) {
                return "no-tso".to_owned();
            }
            let mtu = dice.whole(296, 1200);
            twin.network.mtu = Some(mtu);
            format!("mtu{mtu}-no-tso")
        },
    ),
    Drawable::new(
        initcwnd::INJECTION,
        |setup| (6_000..60_000).contains(&setup.body_bytes()) && setup.load.connect_anew && setup.is_literal(),
        |twin, _, dice| {
            let segments = dice.whole(1, 4);
            twin.network.initcwnd = Some(segments);
            format!("initcwnd{segments}")
        },
    )
    .after(|setup, dice| distant(setup, dice, (5_000, 50_000))),
    Drawable::new(
        filter_chain::INJECTION,
        |setup| setup.is_near() && setup.is_literal(),
        |twin, _, dice| {
            let (rules, both) = (dice.whole(2_000, 20_000), dice.one_in(2));
            filter_chain::chain(&mut twin.network, rules, if both { &["input", "output"] } else { &["input"] });
            format!("{rules}-in{}", if both { "-out" } else { "" })
        },
    ),
    Drawable::new(
        client_limit::INJECTION,
        |setup| setup.is_on(&[Server::Nginx]) && setup.is_kept() && setup.is_near() && setup.load.connections >= 8,
        |twin, _, dice| {
            let per_s = dice.whole(50, 3_000);
            twin.http.per_address_per_s = Some(per_s);
            format!("{per_s}-per-s")
        },
    )
    .after(|setup, dice| {
        let further = dice.whole(4, 16) as u8;
        setup.with(&format!("{further}addresses"), |twin| twin.network.further_clients = further)
    }),
    Drawable::new(
        extra_hop::INJECTION,
        |setup| is_served_behind_a_front(setup) && setup.twin.front.is_none() && setup.body_bytes() > 0,
        |twin, _, dice| match dice.whole(1, 3) {
            1 => {
                twin.front = Some(Front::Haproxy { keeps: true });
                "haproxy".to_owned()
            }
            2 => {
                twin.front = Some(Front::Nginx { keeps: false });
                "nginx".to_owned()
            }
            _ => {
                let delay_us = u64::from(dice.whole(100, 3_000));
                twin.front = Some(Front::Stream { rate_per_connection: None, rate_total: None, delay_us });
                format!("stream-relay-{delay_us}us")
            }
        },
    )
    .needing(&["haproxy", "nginx"]),
    Drawable::new(
        bad_backend::INJECTION,
        |setup| {
            let is_free = match setup.twin.front {
                None => true,
                Some(Front::Balancer { last, .. }) => last == LastServer::default(),
                Some(_) => false,
            };
            is_free && is_served_behind_a_front(setup) && setup.is_kept()
        },
        |twin, _, dice| {
            let longer_us = dice.whole(5_000, 60_000);
            bad_backend::slow(twin, u64::from(longer_us));
            format!("{longer_us}us")
        },
    )
    // Each server gets as many connections.
    .after(|setup, dice| {
        let servers = dice.whole(2, 4);
        let connections = servers * dice.whole(2, 12);
        bad_backend::balanced(setup.connections(connections), Balanced::Connections, servers)
    })
    .needing(&["haproxy"]),
    Drawable::new(
        slow_names::INJECTION,
        |setup| setup.load.connect_anew,
        |twin, _, dice| {
            let delay_ms = u64::from(dice.whole(50, 800));
            twin.address = Address::Name { delay_ms, ipv6: false };
            format!("{delay_ms}ms")
        },
    )
    .after(|setup, _| setup.with("named", |twin| twin.address = Address::Name { delay_ms: 0, ipv6: false }))
    .unseen_by_load(),
    Drawable::new(
        address_fallback::INJECTION,
        |setup| setup.load.connect_anew && setup.is_on(&PACKAGED) && setup.is_near(),
        |twin, _, dice| {
            let (name, how) =
                *dice.pick(&[("silent", "drop"), ("unreachable", "reject with icmpv6 type admin-prohibited")]);
            twin.network.firewall = Some(format!(
                "table ip6 faults {{\n chain dead {{\n  type filter hook input priority 0; policy accept;\n  \
                 meta l4proto tcp iifname \"eth0\" counter {how}\n }}\n}}\n"
            ));
            name.to_owned()
        },
    )
    .after(|setup, _| setup.with("ipv6-first", |twin| twin.address = Address::Name { delay_ms: 0, ipv6: true }))
    .unseen_by_load(),
    Drawable::new(
        address_family::INJECTION,
        |setup| {
            let has_both = setup.twin.address == Address::Name { delay_ms: 0, ipv6: true }
                && setup.twin.network.path == Path::round_trip_us(0);
            setup.is_on(&PACKAGED) && (setup.is_near() && setup.is_literal() || has_both)
        },
        |twin, load, dice| {
            let round = (twin.path_bytes() * at_a_time(load)) as f64;
            let (link, name) = match dice.whole(1, 3) {
                1 => {
                    let rtt_us = dice.whole(2_000, 30_000);
                    (address_family::longer(u64::from(rtt_us)), format!("ipv6-plus{rtt_us}us"))
                }
                2 if round >= 1e5 => {
                    let rate = dice.between((round / 2.0).max(1e6), 20e6) as u64;
                    (LinkPlan { bytes_per_s: Some(rate), ..LinkPlan::default() }, format!("ipv6-{}kBps", rate / 1000))
                }
                _ => {
                    let loss_ppm = dice.whole(5_000, 50_000);
                    (LinkPlan { loss_ppm, ..LinkPlan::default() }, format!("ipv6-loses-{loss_ppm}ppm"))
                }
            };
            address_family::by_ipv6(twin, link);
            name
        },
    )
    .after(|setup, _| address_family::dual_stack(setup)),
];
