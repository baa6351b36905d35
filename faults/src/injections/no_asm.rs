//! `tls.no-asm`: the server maps a libcrypto that was built without assembly.

use super::*;
use crate::openssl;

pub(super) const INJECTION: Injection = Injection::new("tls.no-asm", verify);

pub(super) fn cases() -> Vec<Case> {
    let set_ups = [
        Setup::of(Server::Nginx).https().connecting(),
        Setup::of(Server::Nginx).https().bytes(100_000).connections(4),
        Setup::of(Server::Apache).https().bytes(20_000).connecting(),
        Setup::of(Server::HaproxyNginx).https().bytes(100_000).connections(4),
    ];
    set_ups
        .iter()
        .map(|setup| {
            // Both twins use a library of our own making, from the same sources; only the switch differs.
            let (with, without) = match openssl::builds() {
                Ok(builds) => builds,
                Err(why) => return INJECTION.unavailable(setup, "no-asm", &why),
            };
            let library = |twin: &mut Twin, folder: &std::path::Path| {
                twin.process.env = vec![("LD_LIBRARY_PATH".to_owned(), folder.display().to_string())];
            };
            let setup = setup.clone().with("own-openssl", |twin| library(twin, &with));
            INJECTION.case(&setup, "no-asm", |twin| library(twin, &without))
        })
        .collect()
}

/// The process maps the library that it was given, and needs more CPU time.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = if arena.healthy.twin().path_bytes() > 50_000 { ToolLoad::over(4) } else { ToolLoad::connecting(8) };
    let bite = Bite::ratio("server CPU per request, us", cpu_per_request(arena, &load)?, 1.5);
    let mapped = |up: &Up| -> anyhow::Result<f64> {
        let maps = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Ok(up.pids()?.iter().filter(|pid| maps(pid).contains(openssl::WITHOUT_ASSEMBLY)).count() as f64)
    };
    Ok(bite.and(Bite::more("processes that map it", (mapped(&arena.healthy)?, mapped(&arena.faulty)?), 1.0)))
}
