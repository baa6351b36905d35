//! `http.no-keepalive`: the server closes each connection after one answer.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.no-keepalive", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "closes", closing),
        INJECTION.case(&Setup::of(Server::Nginx).https().bytes(10_000), "closes", closing),
        INJECTION.case(&Setup::of(Server::Apache).https(), "closes", closing),
        INJECTION.or(&["http.upstream-no-keepalive"]).case(
            &Setup::of(Server::HaproxyNginx).connections(4),
            "closes",
            closing,
        ),
        INJECTION.case(&Setup::of(Server::Ruler).bytes(50_000), "closes", closing),
    ]
}

pub(super) fn closing(twin: &mut Twin) {
    twin.http.keepalive = false;
}

/// How many connections curl needs for ten requests that ask for no close.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let connects = |up: &Up| arena.client.curl(up, &Requests::kept_alive(10)).map(|times| times.connects);
    Ok(Bite::more("connections for 10 requests", (connects(&arena.healthy)?, connects(&arena.faulty)?), 9.0))
}
