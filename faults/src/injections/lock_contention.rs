//! `lock.contention`: more connections, less work.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("lock.contention", verify);

pub(super) fn cases() -> Vec<Case> {
    let critical = |us: u32, connections| {
        Setup::of(Server::Own).path(&format!("/critical/{us}")).connections(connections)
    };
    let shared = |twin: &mut Twin| twin.http.shared_lock = true;
    vec![
        INJECTION.case(&critical(50, 24), "ticket-lock", shared),
        INJECTION.case(&critical(200, 16), "ticket-lock", shared),
        INJECTION.case(&critical(100, 48), "ticket-lock", shared),
    ]
}

/// Over one connection there is nobody to wait for; over many, less gets done than over a few.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let rate = |up: &Up, connections| Ok::<f64, anyhow::Error>(arena.client.load(up, &ToolLoad::over(connections))?.per_s);
    let (healthy, faulty) = (&arena.healthy, &arena.faulty);
    let alone = rate(faulty, 1)? / rate(healthy, 1)?;
    let (few, many, healthy_many) = (rate(faulty, 2)?, rate(faulty, 32)?, rate(healthy, 32)?);
    Ok(Bite {
        bites: alone > 0.85 && many < 0.9 * few && many < 0.7 * healthy_many,
        figures: format!(
            "per second: {many:.0} over 32 connections and {few:.0} over 2, against {healthy_many:.0}; over one {alone:.2}x"
        ),
    })
}
