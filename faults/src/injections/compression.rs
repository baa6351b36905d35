//! `http.compression`: each response is compressed while the client waits.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.compression", verify);

pub(super) fn cases() -> Vec<Case> {
    let text = |server| Setup::of(server).bytes(60_000).connections(8);
    vec![
        INJECTION.case(&text(Server::Nginx), "level9", |twin| compressing(twin, 9)),
        INJECTION.case(&text(Server::Nginx).https().bytes(10_000), "level1", |twin| compressing(twin, 1)),
        INJECTION.case(&text(Server::Apache), "level6", |twin| compressing(twin, 6)),
        INJECTION.case(&text(Server::HaproxyNginx).https(), "default", |twin| compressing(twin, 1)),
    ]
}

pub(super) fn compressing(twin: &mut Twin, level: u8) {
    twin.http.gzip_level = Some(level);
}

pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { headers: &["Accept-Encoding: gzip"], ..ToolLoad::over(8) };
    Ok(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &load)?, 1.5))
}
