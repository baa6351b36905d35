//! Two faults at once: either may be named first, both among three.

use super::*;
use super::{
    aes_unused, compression, extra_hop, large_key, larger_response, no_keepalive, path_delay, quota, rate_cap,
};

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).https().bytes(200_000).connections(4);
    let relayed = |setup: Setup| setup.with("rtt1ms", |twin| twin.network.path = Path::round_trip_us(1_000));
    vec![
        aes_unused::INJECTION.case(&relayed(bulk(Server::Nginx)), "no-aes", aes_unused::without_aes).and(
            &path_delay::INJECTION,
            "plus5ms",
            |twin| path_delay::longer(twin, 6_000),
        ),
        no_keepalive::INJECTION
            .case(&Setup::of(Server::Nginx).bytes(60_000).connections(8), "closes", no_keepalive::closing)
            .and(&compression::INJECTION, "level9", |twin| compression::compressing(twin, 9)),
        no_keepalive::INJECTION.case(&Setup::of(Server::Apache).https(), "closes", no_keepalive::closing).and(
            &large_key::INJECTION,
            "rsa4096",
            |twin| twin.tls_mut().key = Key::Rsa4096,
        ),
        quota::INJECTION
            .case(&Setup::of(Server::Nginx).bytes(20_000), "40of100ms", |twin| quota::limited(twin, 40_000, 100_000))
            .and(&extra_hop::INJECTION, "haproxy", extra_hop::haproxy),
        larger_response::BESIDE_A_CAP
            .case(&relayed(Setup::of(Server::Nginx).bytes(300_000)).connections(4), "body-2x", larger_response::larger)
            .and(&rate_cap::INJECTION, "line-20MBps", |twin| rate_cap::line(twin, 20_000_000)),
    ]
}
