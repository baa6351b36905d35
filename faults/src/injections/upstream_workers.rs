//! `http.upstream-workers`: the fronts are equal, and the pool of workers behind one of them is too small.

use super::*;
use crate::servers::php_fpm;
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
    let few = |setup: &Setup, strength: &str, workers: u32| match php_fpm() {
        Some(_) => INJECTION.case(setup, strength, |twin| twin.http.at_a_time = Some(workers)),
        None => INJECTION.unavailable(setup, strength, "PHP-FPM is not installed"),
    };
    vec![
        few(&by_path(pool(12, 5_000, 8)), "1of8", 1),
        few(&pool(12, 5_000, 32), "2of32", 2),
        few(&pool(32, 20_000, 64), "8of64", 8),
    ]
}

/// Many connections get less done; one does not notice.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let many = Bite::ratio("ms per request over 32 connections", ms_per_request(arena, &ToolLoad::over(32))?, 1.3);
    let (healthy, faulty) = ms_per_request(arena, &ToolLoad::over(1))?;
    let one = Bite { bites: faulty / healthy < 1.15, figures: format!("over one: {:.2}x", faulty / healthy) };
    Ok(many.and(one))
}
