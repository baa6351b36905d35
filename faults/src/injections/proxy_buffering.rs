//! `http.proxy-buffering`: a front takes each answer into a file first.
//!
//! By a cache under keys that never come again: each answer goes through a file, however fast its client is. Tiny `proxy_buffers` do that
//! only where the client is slower than the server behind, and there it is the client that both twins wait for.

use super::upstream_no_keepalive::behind_nginx;
use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("http.proxy-buffering", verify);

pub(super) fn cases() -> Vec<Case> {
    let caches = |twin: &mut Twin| twin.http.caches_in_vain = true;
    vec![
        INJECTION.case(&behind_nginx(Setup::of(Server::Nginx).bytes(20_000).connections(4)), "caches-in-vain", caches),
        INJECTION.case(&behind_nginx(Setup::of(Server::Apache).bytes(64_000).connections(1)), "caches-in-vain", caches),
        INJECTION.case(&behind_nginx(Setup::of(Server::Nginx).https().bytes(200_000).connections(8)), "caches-in-vain", caches),
    ]
}

/// What is to be written to disks while curl asks, and how long a request takes.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    const REQUESTS: u32 = 50;
    let written = |up: &Up| -> anyhow::Result<f64> {
        let before = to_be_written(up)?;
        arena.client.curl(up, &Requests::kept_alive(REQUESTS))?;
        Ok((to_be_written(up)? - before) / f64::from(REQUESTS) / up.twin().path_bytes() as f64)
    };
    let bite = Bite::more("bytes to disks for a byte of the answer", (written(&arena.healthy)?, written(&arena.faulty)?), 0.9);
    Ok(bite.and(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(4))?, 1.3)))
}

fn to_be_written(up: &Up) -> anyhow::Result<f64> {
    let mut sum = 0.0;
    for pid in up.pids()? {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
        let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        sum += line.and_then(|bytes| bytes.parse::<f64>().ok()).unwrap_or(0.0);
    }
    Ok(sum)
}
