//! `cpu.slower`: all that the CPU does takes longer.
//!
//! A virtual machine cannot clock its CPU down. What comes near: a quota of 1 ms in each 2 ms, so fine that no request
//! of some length sees a stall. It *is* a quota, and who names that has found what was injected.

use super::*;
use crate::world::Quota;

pub(super) const INJECTION: Injection = Injection::new("cpu.slower", verify).or(&["cpu.quota"]);

pub(super) fn cases() -> Vec<Case> {
    let half = |twin: &mut Twin| twin.process.limits.quota = Some(Quota { quota_us: 1_000, period_us: 2_000 });
    vec![
        INJECTION.case(&Setup::of(Server::Nginx).https().bytes(500_000).connections(2), "1of2ms", half),
        INJECTION.case(
            &Setup::of(Server::Nginx).https().connecting().with("rsa4096", |twin| twin.tls_mut().key = Key::Rsa4096),
            "1of2ms",
            half,
        ),
        INJECTION.case(&Setup::of(Server::Apache).bytes(200_000), "1of2ms", half),
        INJECTION.case(&Setup::of(Server::Ruler).https().bytes(200_000), "1of2ms", half),
    ]
}

/// Periods are fifty times as short as those of `cpu.quota`, and there are as many more of them.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    quota::held_back(arena, 500.0)
}
