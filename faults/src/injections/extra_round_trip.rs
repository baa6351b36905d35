//! `tls.extra-round-trip`: the handshake takes one flight more, on a path where that is noticed.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("tls.extra-round-trip", verify);

pub(super) fn cases() -> Vec<Case> {
    let distant = |server, rtt_ms: u64| {
        Setup::of(server).https().connecting().with(&format!("rtt{rtt_ms}ms"), |twin| {
            twin.network.path = Path::round_trip_us(rtt_ms * 1000);
        })
    };
    let version_12 = |twin: &mut Twin| twin.tls_mut().versions = Versions::Tls12;
    // More than the ten segments of a first flight: the rest has to wait for the client's acknowledgement.
    let long_chain = |twin: &mut Twin| twin.tls_mut().chain_bytes = 20_000;
    vec![
        INJECTION.case(&distant(Server::Nginx, 20), "tls12", version_12),
        INJECTION.case(&distant(Server::Apache, 40), "tls12", version_12),
        INJECTION.case(&distant(Server::HaproxyNginx, 10), "tls12", version_12),
        INJECTION.case(&distant(Server::Ruler, 20), "tls12", version_12),
        INJECTION.case(&distant(Server::Nginx, 30), "chain20k", long_chain),
    ]
}

/// The handshake takes longer by most of a round trip, which the connect phase of the healthy twin tells.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| arena.client.curl(up, &Requests::connecting(10));
    let (healthy, faulty) = (look(&arena.healthy)?, look(&arena.faulty)?);
    Ok(Bite::more("handshake, ms", (healthy.tls_s * 1e3, faulty.tls_s * 1e3), healthy.connect_s * 1e3 * 0.8))
}
