//! `net.path-delay`: packets take longer.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.path-delay", verify);

pub(super) fn cases() -> Vec<Case> {
    let relayed = |server, rtt_us: u64| {
        Setup::of(server).with(&format!("rtt{}ms", rtt_us as f64 / 1e3), |twin| {
            twin.network.path = Path::round_trip_us(rtt_us);
        })
    };
    vec![
        INJECTION.case(&relayed(Server::Nginx, 0), "plus5ms", |twin| longer(twin, 5_000)),
        INJECTION.case(&relayed(Server::Nginx, 10_000).https().bytes(50_000), "plus20ms", |twin| longer(twin, 30_000)),
        INJECTION.case(&relayed(Server::Apache, 0).https().connecting(), "plus2ms", |twin| longer(twin, 2_000)),
        INJECTION.case(&relayed(Server::HaproxyNginx, 1_000).connecting(), "plus10ms-jitter3ms", |twin| {
            longer(twin, 10_000);
            if let Path::Relay { to_server, to_client } = &mut twin.network.path {
                to_server.jitter_us = 3_000;
                to_client.jitter_us = 3_000;
            }
        }),
        INJECTION.case(&relayed(Server::Ruler, 0).connections(1), "plus1ms", |twin| longer(twin, 1_000)),
    ]
}

/// A round trip of so long.
pub(super) fn longer(twin: &mut Twin, rtt_us: u64) {
    twin.network.path = Path::round_trip_us(rtt_us);
}

/// Connecting takes one round trip. The smallest strength is 1 ms.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| Ok(arena.client.curl(up, &Requests::connecting(10))?.connect_s * 1e3);
    Ok(Bite::more("connect, ms", arena.by_turns(look)?, 0.8))
}
