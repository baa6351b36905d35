//! `cpu.quota`: the server's control group may use the CPU for a part of each period.

use super::*;
use crate::world::Quota;

pub(super) const INJECTION: Injection = Injection::new("cpu.quota", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "30of100ms", |twin| limited(twin, 30_000, 100_000)),
        // With this key the server works harder than any client.
        INJECTION.case(
            &Setup::of(Server::Nginx).https().connecting().with("rsa2048", |twin| twin.tls_mut().key = Key::Rsa2048),
            "30of100ms",
            |twin| limited(twin, 30_000, 100_000),
        ),
        INJECTION.case(&Setup::of(Server::Apache).bytes(20_000), "10of50ms", |twin| limited(twin, 10_000, 50_000)),
        INJECTION.case(&Setup::of(Server::HaproxyNginx), "40of100ms", |twin| limited(twin, 40_000, 100_000)),
        INJECTION.case(&Setup::of(Server::Ruler).https().bytes(100_000), "20of100ms", |twin| limited(twin, 20_000, 100_000)),
    ]
}

pub(super) fn limited(twin: &mut Twin, quota_us: u64, period_us: u64) {
    twin.process.limits.quota = Some(Quota { quota_us, period_us });
}

/// The kernel counts the periods in which it held the group back: of some sixty under load, ten are enough to be sure. The
/// time per request is told beside it; on a machine that is busy with other things it says little.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    held_back(arena, 10.0)
}

/// Bites if the faulty group was held back in so many periods.
pub(super) fn held_back(arena: &Arena, periods: f64) -> anyhow::Result<Bite> {
    let connect_anew = arena.healthy.twin().tls.is_some() && arena.healthy.twin().path_bytes() < 10_000;
    let load = ToolLoad { connect_anew, ..ToolLoad::over(16) };
    let (healthy, faulty) = ms_per_request(arena, &load)?;
    let throttled = |up: &Up| -> anyhow::Result<f64> {
        // Who has no quota cannot be held back by one.
        let limited = up.twin().process.limits.quota.is_some();
        Ok(if limited { up.cgroup()?.throttled()? as f64 } else { 0.0 })
    };
    let both = (throttled(&arena.healthy)?, throttled(&arena.faulty)?);
    let mut bite = Bite::more("periods throttled", both, periods);
    bite.figures += &format!("; {:.2}x the time per request", faulty / healthy);
    Ok(bite)
}
