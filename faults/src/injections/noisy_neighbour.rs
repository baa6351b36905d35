//! `cpu.noisy-neighbour`: somebody else's work on the server's CPU.
//!
//! Both servers sit on one CPU, so the neighbour would disturb the healthy one as well. Two groups play two hosts: the
//! healthy server's has so many shares that the neighbour hardly gets to run beside it, while within the faulty server's
//! group neighbour and server have equal rights.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("cpu.noisy-neighbour", verify);

pub(super) fn cases() -> Vec<Case> {
    let hosts = |server| in_groups(Setup::of(server));
    vec![
        INJECTION.case(&hosts(Server::Nginx).bytes(20_000), "1-spinner", |twin| neighbours(twin, 1)),
        INJECTION.case(&hosts(Server::Nginx).https().connecting(), "2-spinners", |twin| neighbours(twin, 2)),
        INJECTION.case(&hosts(Server::Apache), "1-spinner", |twin| neighbours(twin, 1)),
        // A thread for each of its connections, and each is worth as much as a spinner.
        INJECTION.case(&hosts(Server::Ruler).https().bytes(100_000), "16-spinners", |twin| neighbours(twin, 16)),
    ]
}

/// With groups that play hosts.
pub(super) fn in_groups(setup: Setup) -> Setup {
    setup.with("groups", |twin| twin.process.limits.shares = Some(MANY_SHARES))
}

/// The most that the kernel allows: 256 times the usual.
const MANY_SHARES: u64 = 262_144;
const USUAL_SHARES: u64 = 1024;

pub(super) fn neighbours(twin: &mut Twin, count: u32) {
    twin.process.companion = Some(Companion::Spinners(count));
    twin.process.limits.shares = Some(USUAL_SHARES);
}

fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(8))?, 1.3))
}
