//! `cpu.priority`: the same neighbour beside both servers, and one of them is put behind it.
//!
//! Each server has a spinner in its own control group, and all of them are on one CPU.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("cpu.priority", verify);

pub(super) fn cases() -> Vec<Case> {
    let beside_somebody = |server| {
        Setup::of(server).with("beside", |twin| {
            twin.process.companion = Some(Companion::Spinners(1));
            twin.process.limits.shares = Some(USUAL_SHARES);
        })
    };
    let nice = |nice| move |twin: &mut Twin| twin.process.nice = nice;
    // The group is put behind the other twin's spinner, with its own one.
    let weight = |twin: &mut Twin| twin.process.limits.shares = Some(USUAL_SHARES / 10);
    vec![
        INJECTION.case(&beside_somebody(Server::Nginx).bytes(20_000), "nice-19", nice(19)),
        // Each of its threads is worth as much as a process.
        INJECTION.case(&beside_somebody(Server::Apache), "nice-19", nice(19)),
        INJECTION.case(&beside_somebody(Server::Nginx).https().connecting(), "nice-10", nice(10)),
        INJECTION.case(&beside_somebody(Server::Ruler).https().bytes(100_000), "weight-102", weight),
    ]
}

const USUAL_SHARES: u64 = 1024;

fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    Ok(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(8))?, 1.3))
}
