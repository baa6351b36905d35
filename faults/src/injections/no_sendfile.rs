//! `http.no-sendfile`: files are copied through tiny buffers, or leave in tiny TLS records.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.no-sendfile", verify);

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).bytes(500_000).connections(4);
    vec![
        INJECTION.case(&bulk(Server::Nginx), "buffers-1k", |twin| copy(twin, 1024)),
        INJECTION.case(&bulk(Server::Nginx).bytes(2_000_000), "buffers-4k", |twin| copy(twin, 4096)),
        INJECTION.case(&bulk(Server::Nginx).https(), "records-1k", |twin| records(twin, 1024)),
        INJECTION.case(&bulk(Server::Apache), "buffers-1k", |twin| copy(twin, 1024)),
        INJECTION.case(&bulk(Server::HaproxyNginx).https(), "records-1k", |twin| records(twin, 1024)),
    ]
}

fn copy(twin: &mut Twin, bytes: u32) {
    twin.http.sendfile = false;
    twin.http.copy_bytes = Some(bytes);
}

fn records(twin: &mut Twin, bytes: u32) {
    twin.tls_mut().record_bytes = Some(bytes);
}

fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(4))?, 1.2))
}
