//! `http.upstream-workers`: the fronts are equal, and the pool of workers behind one of them is too small.

use super::*;
use crate::twin::Handler;

pub(super) const INJECTION: Injection = Injection::on_host("http.upstream-workers", verify);

pub(super) fn cases() -> Vec<Case> {
    let pool = |connections, us, of: u32| {
        Setup::of(Server::NginxPhp).bytes(2_000).connections(connections).with(&format!("sleeps{us}us-max{of}"), |twin| {
            twin.http.handler = Handler::Sleeps { us };
            twin.http.at_a_time = Some(of);
        })
    };
    let by_path = |setup: Setup| setup.with("by-path", |twin| twin.http.asks_by_path = true);
    vec![
        INJECTION.case(&by_path(pool(12, 5_000, 8)), "1of8", |twin| twin.http.at_a_time = Some(1)),
        INJECTION.case(&pool(12, 5_000, 32), "2of32", |twin| twin.http.at_a_time = Some(2)),
        INJECTION.case(&pool(32, 20_000, 64), "8of64", |twin| twin.http.at_a_time = Some(8)),
    ]
}

/// Many connections get less done; one does not notice.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let many = Bite::ratio("ms per request over 12 connections", ms_per_request(arena, &ToolLoad::over(12))?, 1.3);
    let (healthy, faulty) = ms_per_request(arena, &ToolLoad::over(1))?;
    let one = Bite { bites: faulty / healthy < 1.15, figures: format!("over one: {:.2}x", faulty / healthy) };
    Ok(many.and(one))
}
