//! `net.small-mtu`: many small packets, by a small MTU or because nothing puts them together.
//!
//! A small MTU alone does not bite here: the kernel hands over the segments of many packets in one piece, as network cards
//! let it, and a veth pair never takes them apart.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.small-mtu", verify);

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).bytes(500_000).connections(4);
    vec![
        INJECTION.case(&bulk(Server::Nginx), "mtu576-no-tso", |twin| {
            small(twin, 576);
            twin.network.no_offload = true;
        }),
        INJECTION.case(&bulk(Server::Nginx).https(), "mtu296-no-tso", |twin| {
            small(twin, 296);
            twin.network.no_offload = true;
        }),
        INJECTION.case(&bulk(Server::Apache), "no-tso", |twin| twin.network.no_offload = true),
        INJECTION.case(&bulk(Server::HaproxyNginx), "mtu576-no-tso", |twin| {
            small(twin, 576);
            twin.network.no_offload = true;
        }),
        INJECTION.case(&bulk(Server::Ruler).https(), "mtu1000-no-tso", |twin| {
            small(twin, 1000);
            twin.network.no_offload = true;
        }),
    ]
}

fn small(twin: &mut Twin, mtu: u32) {
    twin.network.mtu = Some(mtu);
}

/// Packets that the server's interface sends for each megabyte, and what they cost.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let packets = |up: &Up| -> anyhow::Result<f64> {
        let (bytes_before, packets_before) = sent(up)?;
        arena.client.load(up, &ToolLoad::over(4))?;
        let (bytes, packets) = sent(up)?;
        Ok((packets - packets_before) / (bytes - bytes_before) * 1e6)
    };
    let bite = Bite::ratio("packets per MB", (packets(&arena.healthy)?, packets(&arena.faulty)?), 2.0);
    Ok(bite.and(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(4))?, 1.1)))
}

/// Bytes and packets sent so far by the server's interface.
fn sent(up: &Up) -> anyhow::Result<(f64, f64)> {
    let read = |counter: &str| -> anyhow::Result<f64> {
        let path = format!("/sys/class/net/eth0/statistics/{counter}");
        Ok(up.namespace().run("cat", &[&path])?.trim().parse()?)
    };
    Ok((read("tx_bytes")?, read("tx_packets")?))
}
