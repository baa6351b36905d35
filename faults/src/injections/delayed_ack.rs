//! `net.delayed-ack`: a small second write waits for the acknowledgement of the first, which the client delays.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.delayed-ack", verify);

pub(super) fn cases() -> Vec<Case> {
    let two_writes = |bytes: u32| Setup::of(Server::Own).path(&format!("/two-writes/{bytes}"));
    let behind_nginx = Setup::of(Server::Own).path("/pause/300").with("nginx-unbuffered", |twin| twin.front = Some(Front::Nginx { keeps: false }));
    vec![
        INJECTION.case(&two_writes(200), "nagle", nagle),
        INJECTION.case(&two_writes(1200).connections(4), "nagle", nagle),
        INJECTION.case(&two_writes(500).connections(1), "nagle", nagle),
        INJECTION.case(&behind_nginx, "nagle", nagle),
    ]
}

fn nagle(twin: &mut Twin) {
    twin.http.nodelay = false;
}

/// Linux delays an acknowledgement by 40 ms. It does not on the first segments of a connection, so more are looked at.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| Ok(arena.client.curl(up, &Requests::kept_alive(60))?.total_s * 1e3);
    Ok(Bite::more("ms per request", arena.by_turns(look)?, 30.0))
}
