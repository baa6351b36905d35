//! `http.h2-streams`: few requests are taken at a time on a connection of HTTP/2, on a path that makes each of them wait.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.h2-streams", verify);

pub(super) fn cases() -> Vec<Case> {
    let distant = |setup: Setup, rtt_ms: u64| {
        setup.with(&format!("rtt{rtt_ms}ms"), |twin| twin.network.path = Path::round_trip_us(rtt_ms * 1000))
    };
    let nginx = |connections, streams| Setup::of(Server::Nginx).https().connections(connections).http2(streams);
    let haproxy = |connections, streams| Setup::of(Server::HaproxyNginx).https().connections(connections).http2(streams);
    let taking = |twin: &mut Twin, streams| twin.http.most_streams = Some(streams);
    let waiting = Setup::of(Server::HaproxyRuler).https().path("/delay/20000").connections(2).http2(12);
    vec![
        INJECTION.case(&distant(nginx(2, 16), 10), "takes4", |twin| taking(twin, 4)),
        INJECTION.case(&distant(nginx(1, 50), 40).bytes(20_000), "takes8", |twin| taking(twin, 8)),
        INJECTION.case(&distant(haproxy(4, 10), 20), "takes3", |twin| taking(twin, 3)),
        INJECTION.case(&waiting, "takes1", |twin| taking(twin, 1)),
    ]
}

/// By h2load: with three times the requests on each connection that the faulty server takes fewer are done, and with one on each as
/// many.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let ms = |streams| {
        let load = H2load { connections: 2, streams, ..H2load::default() };
        arena.by_turns(|up| Ok(1e3 / arena.client.h2load(up, &load)?))
    };
    let beyond = 3 * arena.faulty.twin().http.most_streams.unwrap_or(1);
    let many = Bite::ratio(&format!("ms per request, {beyond} at a time on each of 2 connections"), ms(beyond)?, 1.5);
    let (healthy, faulty) = ms(1)?;
    let one = Bite { bites: faulty / healthy < 1.2, figures: format!("one at a time: {:.2}x", faulty / healthy) };
    Ok(many.and(one))
}
