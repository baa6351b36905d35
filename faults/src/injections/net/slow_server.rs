//! `nameless`: the server at the other end is slow, by what is no cause of a path. Whatever duel says of the path is wrong.

use super::*;
use crate::case::NAMELESS;
use crate::servers::Up;
use crate::world::Quota;

pub(super) const INJECTION: Injection<Net> = Injection::new(NAMELESS, |arena| slower(arena, 1.2));
/// A few exchanges at a time never use a quota up: the kernel tells whether it holds a server back under load.
pub(super) const OF_QUOTAS: Injection<Net> = Injection::new(NAMELESS, |arena: &Paths| {
    let held_back = |up: &Up<PathTwin>| -> anyhow::Result<f64> {
        let flow = if up.twin().op == Op::Bulk { Op::Bulk } else { Op::BulkReverse };
        for _ in 0..3 {
            arena.client.bytes_per_s(up, flow, up.twin().streams)?;
        }
        // Who has no group, or one without a limit, cannot be held back by it.
        let limited = up.twin().process.limits.quota.is_some();
        Ok(if limited { up.cgroup()?.throttled()? as f64 } else { 0.0 })
    };
    Ok(Bite::more("periods throttled", (held_back(&arena.healthy)?, held_back(&arena.faulty)?), 10.0))
});

pub(super) fn cases() -> Vec<Case> {
    vec![
        OF_QUOTAS.case(&Setup::over(Op::Exchange).streams(8), "quota-5of50ms", |twin| quota(twin, 5_000, 50_000)),
        OF_QUOTAS.case(&Setup::over(Op::BulkReverse).streams(2), "quota-20of100ms", |twin| quota(twin, 20_000, 100_000)),
        OF_QUOTAS.case(&Setup::over(Op::Bulk).streams(2), "quota-4of20ms", |twin| quota(twin, 4_000, 20_000)),
        INJECTION.case(&hosts(Setup::over(Op::Bulk).streams(2)), "2-spinners", |twin| neighbours(twin, 2)),
        INJECTION.case(&Setup::over(Op::Connect).streams(4), "filter-chain-20000", |twin| {
            filter_chain::chain(&mut twin.network, 20_000, &["input"]);
        }),
    ]
}

pub(super) fn quota(twin: &mut PathTwin, quota_us: u64, period_us: u64) {
    twin.process.limits.quota = Some(Quota { quota_us, period_us });
}

/// Two groups play two hosts.
pub(super) fn hosts(setup: Setup<Net>) -> Setup<Net> {
    setup.with("groups", |twin| twin.process.limits.shares = Some(262_144))
}

pub(super) fn neighbours(twin: &mut PathTwin, spinners: u32) {
    twin.process.limits.shares = Some(1024);
    twin.process.companion = Some(Companion::Spinners(spinners));
}
