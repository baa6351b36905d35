//! `http.sync-logging`: each request waits until its line is on the disk.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.sync-logging", verify);

pub(super) fn cases() -> Vec<Case> {
    let logged = |server| {
        Setup::of(server).with("logged", |twin| twin.http.log = Log::OnDisk { synchronous: false })
    };
    let synchronous = |twin: &mut Twin| twin.http.log = Log::OnDisk { synchronous: true };
    vec![
        INJECTION.case(&logged(Server::Nginx), "sync-mount", synchronous),
        INJECTION.case(&logged(Server::Nginx).https().bytes(50_000), "sync-mount", synchronous),
        INJECTION.case(&logged(Server::Apache).connections(8), "sync-mount", synchronous),
    ]
}

fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(8))?, 1.5))
}
