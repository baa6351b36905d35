//! `http.slow-upstream`: the fronts are equal, and the server behind one of them takes longer to answer.

use super::*;
use crate::servers::BEHIND_PORT;
use crate::twin::Handler;

pub(super) const INJECTION: Injection = Injection::on_host("http.slow-upstream", verify);

pub(super) fn cases() -> Vec<Case> {
    let behind_nginx = upstream_no_keepalive::behind_nginx;
    let behind_haproxy = upstream_no_keepalive::behind_haproxy;
    vec![
        INJECTION.case(&behind_nginx(Setup::of(Server::Own)), "sleeps-3ms", |twin| sleeping(twin, 3_000)),
        INJECTION.case(&behind_nginx(Setup::of(Server::Node).bytes(20_000).connections(4)), "sleeps-10ms", |twin| {
            sleeping(twin, 10_000);
        }),
        INJECTION.case(&behind_haproxy(Setup::of(Server::Own).bytes(5_000)), "sleeps-1ms", |twin| sleeping(twin, 1_000)),
        INJECTION.case(&behind_haproxy(Setup::of(Server::Own).connections(1)), "sleeps-500us", |twin| sleeping(twin, 500)),
    ]
}

fn sleeping(twin: &mut Twin, us: u64) {
    twin.http.handler = Handler::Sleeps { us };
}

/// What curl waits for the server behind the front, which it asks in the server's namespace, past the front.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let behind_ms = |up: &Up| -> anyhow::Result<f64> {
        let url = format!("http://127.0.0.1:{BEHIND_PORT}{}?n=[1-30]", up.twin().path());
        let words = ["-s", "--http1.1", "--max-time", "20", "-o", "/dev/null", "-w", "%{time_total}\n", &url];
        let printed = up.namespace().run("curl", &words)?;
        let times = printed.lines().filter_map(|line| line.parse::<f64>().ok());
        Ok(1e3 * crate::arena::median(times.collect())?)
    };
    Ok(Bite::ratio("the server behind answers in, ms", arena.by_turns(behind_ms)?, 1.3))
}
