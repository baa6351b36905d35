//! `net.small-window`: small socket buffers on a distant path.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.small-window", verify);

pub(super) fn cases() -> Vec<Case> {
    let distant = |server, rtt_ms: u64| {
        Setup::of(server).bytes(1_000_000).connections(2).with(&format!("rtt{rtt_ms}ms"), |twin| {
            twin.network.path = Path::round_trip_us(rtt_ms * 1000);
        })
    };
    vec![
        INJECTION.case(&distant(Server::Nginx, 20), "wmem64k", |twin| buffers(twin, 64 << 10)),
        INJECTION.case(&distant(Server::Nginx, 10).https(), "wmem32k", |twin| buffers(twin, 32 << 10)),
        INJECTION.case(&distant(Server::Apache, 40), "wmem128k", |twin| buffers(twin, 128 << 10)),
        INJECTION.case(&distant(Server::HaproxyNginx, 20), "wmem64k", |twin| buffers(twin, 64 << 10)),
        INJECTION.case(&distant(Server::Ruler, 30), "wmem64k", |twin| buffers(twin, 64 << 10)),
    ]
}

/// The largest send buffer, which is kernel memory: what fits of data is about half of it.
fn buffers(twin: &mut Twin, bytes: u32) {
    twin.network.sysctls.push(("net.ipv4.tcp_wmem", format!("4096 16384 {bytes}")));
}

/// One stream takes longer, in round trips.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    // The first transfers on a connection are slow start on both.
    let look = |up: &Up| Ok(arena.client.curl(up, &Requests::kept_alive(6))?.total_s * 1e3);
    Ok(Bite::ratio("ms per transfer over one connection", arena.by_turns(look)?, 1.3))
}
