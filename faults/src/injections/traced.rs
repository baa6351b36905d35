//! `cpu.traced`: a tracer stops the server at each system call.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("cpu.traced", verify);

pub(super) fn cases() -> Vec<Case> {
    let set_ups = [
        Setup::of(Server::Nginx),
        Setup::of(Server::Nginx).https().connecting(),
        Setup::of(Server::Apache).bytes(20_000),
        Setup::of(Server::Ruler).https().bytes(100_000),
    ];
    set_ups
        .iter()
        .map(|setup| {
            if crate::world::is_installed("strace") {
                INJECTION.case(setup, "strace", |twin| twin.process.companion = Some(Companion::Tracer))
            } else {
                INJECTION.unavailable(setup, "strace", "strace is not installed")
            }
        })
        .collect()
}

/// The kernel tells who traces whom.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let traced = |up: &Up| -> anyhow::Result<f64> {
        let is_traced = |pid: &&u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            status.lines().any(|line| line.strip_prefix("TracerPid:").is_some_and(|pid| pid.trim() != "0"))
        };
        Ok(up.pids()?.iter().filter(is_traced).count() as f64)
    };
    let bite = Bite::more("processes traced", (traced(&arena.healthy)?, traced(&arena.faulty)?), 1.0);
    // Over kept connections, where system calls are most of the work.
    Ok(bite.and(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(8))?, 1.2)))
}
