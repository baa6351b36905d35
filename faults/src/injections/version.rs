//! `http.version`: HTTP/2 in tiny frames, each of which takes work of its own. HTTP/1.1 has none.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.version", verify);

pub(super) fn cases() -> Vec<Case> {
    let over_http2 = |bytes, connections| {
        Setup::of(Server::Nginx).https().bytes(bytes).connections(connections).http2(1)
    };
    let framed = |twin: &mut Twin, bytes| twin.http.frame_bytes = Some(bytes);
    vec![
        INJECTION.case(&over_http2(100_000, 1), "frames16", |twin| framed(twin, 16)),
        INJECTION.case(&over_http2(100_000, 8), "frames32", |twin| framed(twin, 32)),
        INJECTION.case(&over_http2(20_000, 4), "frames8", |twin| framed(twin, 8)),
    ]
}

/// By h2load over one connection: HTTP/2 takes longer, and HTTP/1.1 does not.
pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let ms = |http1: bool| arena.by_turns(|up| Ok(1e3 / arena.client.h2load(up, &H2load { http1, ..H2load::default() })?));
    let over_http2 = Bite::ratio("ms per request over HTTP/2", ms(false)?, 1.5);
    let (healthy, faulty) = ms(true)?;
    let over_http1 =
        Bite { bites: faulty / healthy < 1.2, figures: format!("over HTTP/1.1: {:.2}x", faulty / healthy) };
    Ok(over_http2.and(over_http1))
}
