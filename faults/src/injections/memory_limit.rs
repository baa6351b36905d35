//! `mem.limit`: what is served does not fit into the memory that the server may have, and is read again and again.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("mem.limit", verify);

pub(super) fn cases() -> Vec<Case> {
    let large = |server| {
        Setup::of(server).bytes(64_000_000).connections(2).with("grouped", |twin| limit(twin, 1 << 30))
    };
    vec![
        INJECTION.case(&large(Server::Nginx), "32M", |twin| limit(twin, 32 << 20)),
        INJECTION.case(&large(Server::Nginx).bytes(100_000_000), "48M", |twin| limit(twin, 48 << 20)),
        INJECTION.case(&large(Server::Apache), "40M", |twin| limit(twin, 40 << 20)),
    ]
}

fn limit(twin: &mut Twin, bytes: u64) {
    twin.process.limits.memory_bytes = Some(bytes);
}

/// Bytes that come from the disk although the file has been read before.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let read_again = |up: &Up| -> anyhow::Result<f64> {
        arena.client.curl(up, &Requests::kept_alive(2))?;
        let before = disk_bytes(up)?;
        arena.client.curl(up, &Requests::kept_alive(3))?;
        Ok((disk_bytes(up)? - before) / 3e6)
    };
    let bite = Bite::more("MB from the disk per answer", (read_again(&arena.healthy)?, read_again(&arena.faulty)?), 10.0);
    let time = |up: &Up| Ok(arena.client.curl(up, &Requests::kept_alive(3))?.total_s * 1e3);
    Ok(bite.and(Bite::ratio("ms per answer", arena.by_turns(time)?, 1.2)))
}
