//! `net.client-limit`: one client address may do only so much, or the client's usual one is treated worse.

use super::*;
use std::process::Stdio;

pub(super) const INJECTION: Injection = Injection::new("net.client-limit", verify);

pub(super) fn cases() -> Vec<Case> {
    // Without other addresses of its own the client could not tell.
    let with_addresses = |server, further| {
        Setup::of(server).with(&format!("{further}addresses"), |twin| twin.network.further_clients = further)
    };
    let limited = |twin: &mut Twin, per_s| twin.http.per_address_per_s = Some(per_s);
    vec![
        INJECTION.case(&with_addresses(Server::Nginx, 8), "100-per-s", |twin| limited(twin, 100)),
        INJECTION.case(&with_addresses(Server::Nginx, 16).https(), "2000-per-s", |twin| limited(twin, 2_000)),
        INJECTION.case(&with_addresses(Server::HaproxyRuler, 4).path("/delay/5000"), "usual-one-2-at-a-time", |twin| {
            twin.http.usual_client_at_a_time = Some(2);
        }),
    ]
}

/// The client gets less done; and while it does, a request from its usual address waits for far longer than one from another.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad::over(16);
    let loaded = Bite::ratio("ms per request over 16 connections", ms_per_request(arena, &load)?, 1.3);
    let one_ms = |words: Vec<&'static str>| {
        let requests = Requests { words, ..Requests::kept_alive(20) };
        Ok::<_, anyhow::Error>(arena.client.curl(&arena.faulty, &requests)?.total_s * 1e3)
    };
    let words = ["-t", "1", "-c", "16", "-d", "8", "--timeout", "20s", &arena.faulty.url()];
    let mut usual = arena.client.launch("wrk").args(words).command();
    let mut usual = usual.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
    std::thread::sleep(std::time::Duration::from_secs(1));
    let both = one_ms(vec!["--interface", "10.77.9.1"]).and_then(|other| Ok((other, one_ms(Vec::new())?)));
    usual.kill()?;
    usual.wait()?;
    Ok(loaded.and(Bite::ratio("ms for one beside them, from its address", both?, 2.0)))
}
