//! `http.larger-response`: more bytes than the twin sends, in the head or in the body.

use super::*;
use crate::twin::Content;

pub(super) const INJECTION: Injection = Injection::new("http.larger-response", verify);

/// Beside a capped rate there are too few requests to see their CPU time.
pub(super) const BESIDE_A_CAP: Injection = Injection { verify: more_bytes, ..INJECTION };

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "head-plus-20k", |twin| twin.http.padding_bytes = 20_000),
        INJECTION.case(&Setup::of(Server::Apache).https(), "head-plus-15k", |twin| twin.http.padding_bytes = 15_000),
        INJECTION.case(&Setup::of(Server::Nginx).https().bytes(100_000), "body-2x", larger),
        INJECTION.case(&Setup::of(Server::HaproxyNginx).bytes(100_000), "body-2x", larger),
        INJECTION.case(&Setup::of(Server::Ruler).bytes(300_000), "body-2x", larger),
    ]
}

/// Twice the body.
pub(super) fn larger(twin: &mut Twin) {
    if let Content::Text { bytes } = &mut twin.content {
        *bytes *= 2;
    }
}

/// More bytes, and more CPU time for them: copying, encrypting and checking. A little suffices, well above duel's margin
/// of 2 %.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let cpu = cpu_per_request(arena, &ToolLoad::over(8))?;
    Ok(more_bytes(arena)?.and(Bite::ratio("server CPU per request, us", cpu, 1.05)))
}

fn more_bytes(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| -> anyhow::Result<f64> {
        let times = arena.client.curl(up, &Requests::kept_alive(3))?;
        Ok(times.body_bytes + times.head_bytes)
    };
    Ok(Bite::ratio("bytes per answer", (look(&arena.healthy)?, look(&arena.faulty)?), 1.5))
}
