//! `http.h2-window`: windows of HTTP/2 that are small for their path: the client's, for responses; the server's, for what is sent to it.

use super::*;

const INJECTION: Injection = Injection::new("http.h2-window", verify_requests);
/// The window is that of the client, and the same for both: it is the farther one that it makes slow. Either name is right.
const OF_CLIENT: Injection = Injection::new("http.h2-window", verify_responses).or(&["net.path-delay"]);

pub(super) fn cases() -> Vec<Case> {
    let path = |rtt_ms: u64| Path::round_trip_us(rtt_ms * 1000);
    let sending = |bytes, rtt_ms| {
        let setup = Setup::of(Server::HaproxyRuler).https().bytes(100).connections(2).http2(1).sending(bytes);
        setup.with(&format!("rtt{rtt_ms}ms"), |twin| twin.network.path = path(rtt_ms))
    };
    let takes = |twin: &mut Twin, bytes| twin.http.stream_window_bytes = Some(bytes);
    let through = |server, bytes, window_bytes| {
        let mut setup = Setup::of(server).https().bytes(bytes).connections(2).http2(1);
        setup.load.h2_window_bytes = Some(window_bytes);
        setup
    };
    vec![
        INJECTION.case(&sending(1_000_000, 20), "takes8k", |twin| takes(twin, 8 << 10)),
        INJECTION.case(&sending(300_000, 40), "takes16k", |twin| takes(twin, 16 << 10)),
        OF_CLIENT.case(&through(Server::Nginx, 1_000_000, 65_535), "rtt20ms", |twin| twin.network.path = path(20)),
        OF_CLIENT.case(&through(Server::HaproxyNginx, 500_000, 131_071), "rtt40ms", |twin| twin.network.path = path(40)),
    ]
}

/// By h2load: what is sent takes longer over HTTP/2, and not over HTTP/1.1.
fn verify_requests(arena: &Arena) -> anyhow::Result<Bite> {
    let ms = |http1| {
        let load = H2load { http1, requests: Some(6), body_bytes: Some(300_000), ..H2load::default() };
        arena.by_turns(|up| Ok(1e3 / arena.client.h2load(up, &load)?))
    };
    let over_http2 = Bite::ratio("ms per 300 kB sent over HTTP/2", ms(false)?, 1.3);
    let (healthy, faulty) = ms(true)?;
    let over_http1 =
        Bite { bites: faulty / healthy < 1.2, figures: format!("over HTTP/1.1: {:.2}x", faulty / healthy) };
    Ok(over_http2.and(over_http1))
}

/// By h2load: from the farther server a response takes longer through a window of 64 KiB than through one of 1 GiB.
fn verify_responses(arena: &Arena) -> anyhow::Result<Bite> {
    let ms = |bits| {
        let load = H2load { window_bits: Some(bits), requests: Some(6), ..H2load::default() };
        Ok::<f64, anyhow::Error>(1e3 / arena.client.h2load(&arena.faulty, &load)?)
    };
    Ok(Bite::ratio("ms per response through 64 KiB against 1 GiB", (ms(30)?, ms(16)?), 1.3))
}
