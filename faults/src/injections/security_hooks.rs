//! `cpu.security-hooks`: each system call goes through long filters.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("cpu.security-hooks", verify);

pub(super) fn cases() -> Vec<Case> {
    let filtered = |filters| move |twin: &mut Twin| twin.process.filters = filters;
    let cases = [
        (Setup::of(Server::Nginx), 8),
        (Setup::of(Server::Nginx).https().bytes(20_000), 8),
        (Setup::of(Server::Apache), 8),
        (Setup::of(Server::HaproxyRuler).path("/size/2000"), 16),
    ];
    cases
        .into_iter()
        .map(|(setup, filters)| {
            let strength = format!("{filters}-filters");
            if crate::world::is_installed("perl") {
                INJECTION.case(&setup, &strength, filtered(filters))
            } else {
                INJECTION.unavailable(&setup, &strength, "perl is not installed")
            }
        })
        .collect()
}

/// The kernel tells how many filters a process has.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let filters = |up: &Up| -> anyhow::Result<f64> {
        let of = |pid: &u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let count = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:")?.trim().parse().ok());
            count.unwrap_or(0.0)
        };
        Ok(up.pids()?.iter().map(of).fold(f64::INFINITY, f64::min))
    };
    let bite = Bite::more("filters of each process", (filters(&arena.healthy)?, filters(&arena.faulty)?), 1.0);
    Ok(bite.and(Bite::ratio("server CPU per request, us", cpu_per_request(arena, &ToolLoad::over(8))?, 1.2)))
}
