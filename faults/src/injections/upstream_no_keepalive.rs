//! `http.upstream-no-keepalive`: a front makes a connection to the server behind it for each request.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("http.upstream-no-keepalive", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&behind_nginx(Setup::of(Server::Nginx)), "connects", |twin| twin.front = Some(Front::Nginx { keeps: false })),
        INJECTION.case(&behind_nginx(Setup::of(Server::Apache).bytes(20_000)), "connects", |twin| {
            twin.front = Some(Front::Nginx { keeps: false });
        }),
        INJECTION.case(&behind_nginx(Setup::of(Server::Nginx).https()), "connects", |twin| {
            twin.front = Some(Front::Nginx { keeps: false });
        }),
        INJECTION.case(&behind_haproxy(Setup::of(Server::Ruler).connections(1)), "connects", |twin| {
            twin.front = Some(Front::Haproxy { keeps: false });
        }),
    ]
}

pub(super) fn behind_nginx(setup: Setup) -> Setup {
    setup.with("behind-nginx", |twin| twin.front = Some(Front::Nginx { keeps: true }))
}

pub(super) fn behind_haproxy(setup: Setup) -> Setup {
    setup.with("behind-haproxy", |twin| twin.front = Some(Front::Haproxy { keeps: true }))
}

/// Connections that are opened in the server's namespace while curl sends ten requests over one.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let opened = |up: &Up| {
        growth(up, "TcpActiveOpens", || arena.client.curl(up, &Requests::kept_alive(10)).map(drop))
    };
    Ok(Bite::more("connections opened for 10 requests", (opened(&arena.healthy)?, opened(&arena.faulty)?), 9.0))
}
