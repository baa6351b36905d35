//! `net.extra-hop`: something stands between client and server, and does nothing else.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.extra-hop", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "haproxy", |twin| twin.front = Some(Front::Haproxy { keeps: true })),
        INJECTION.case(&Setup::of(Server::Nginx).https().bytes(20_000), "haproxy", |twin| {
            twin.front = Some(Front::Haproxy { keeps: true });
        }),
        INJECTION.case(&Setup::of(Server::Apache), "nginx", |twin| twin.front = Some(Front::Nginx { keeps: false })),
        INJECTION.case(&Setup::of(Server::Ruler), "haproxy", |twin| twin.front = Some(Front::Haproxy { keeps: true })),
        // A balancer that knows no HTTP and is not in the same rack: connecting to it is quick, what is behind it is not.
        INJECTION.case(&Setup::of(Server::Nginx).bytes(5000), "stream-relay-300us", |twin| {
            twin.front = Some(Front::Stream { rate_per_connection: None, rate_total: None, delay_us: 300 });
        }),
    ]
}

pub(super) fn haproxy(twin: &mut Twin) {
    twin.front = Some(Front::Haproxy { keeps: true });
}

/// Two processes work for each request. Their CPU time tells it also on a machine that is busy with other things.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(8))?, 1.3))
}
