//! `cpu.quota`: the server's control group may use the CPU for a part of each period.

use super::*;
use crate::world::Quota;

pub(super) const INJECTION: Injection = Injection::new("cpu.quota", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "30of100ms", |twin| limited(twin, 30_000, 100_000)),
        INJECTION.case(&Setup::of(Server::Nginx).https().connecting(), "50of100ms", |twin| limited(twin, 50_000, 100_000)),
        INJECTION.case(&Setup::of(Server::Apache).bytes(20_000), "10of50ms", |twin| limited(twin, 10_000, 50_000)),
        INJECTION.case(&Setup::of(Server::HaproxyNginx), "40of100ms", |twin| limited(twin, 40_000, 100_000)),
        INJECTION.case(&Setup::of(Server::Ruler).https().bytes(100_000), "20of100ms", |twin| limited(twin, 20_000, 100_000)),
    ]
}

pub(super) fn limited(twin: &mut Twin, quota_us: u64, period_us: u64) {
    twin.process.limits.quota = Some(Quota { quota_us, period_us });
}

/// The kernel counts the periods in which it held the group back.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let slower = ms_per_request(arena, &ToolLoad::over(16))?;
    let throttled = arena.faulty.cgroup()?.throttled()? as f64;
    Ok(Bite::more("periods throttled", (0.0, throttled), 5.0).and(Bite::ratio("ms per request", slower, 1.2)))
}
