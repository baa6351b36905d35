//! `net.loss` of paths: packets get lost at random, whatever they carry.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.loss", verify);
pub(super) const OF_DATAGRAMS: Injection<Net> = Injection::new("net.loss", verify_datagrams);

pub(super) fn cases() -> Vec<Case> {
    let datagrams = |mbit_per_s: u32| Setup::over(Op::Datagrams { mbit_per_s });
    vec![
        INJECTION.case(&Setup::over(Op::Exchange).streams(4), "1percent-out", |twin| {
            lose(twin, Way::ToClient, Packets::Tcp, 10);
        }),
        INJECTION.case(&Setup::over(Op::BulkReverse).distant(5), "0.5percent-on-the-way", |twin| on_the_way(twin, 5000)),
        INJECTION.case(&Setup::over(Op::Bulk).streams(2).distant(20), "1percent-on-the-way", |twin| {
            on_the_way(twin, 10_000);
        }),
        INJECTION.case(&Setup::over(Op::Bulk), "2percent-in", |twin| lose(twin, Way::ToServer, Packets::Tcp, 20)),
        OF_DATAGRAMS.case(&datagrams(20), "5percent-in", |twin| lose(twin, Way::ToServer, Packets::Udp, 50)),
        OF_DATAGRAMS.case(&datagrams(50).streams(2), "10percent-in", |twin| lose(twin, Way::ToServer, Packets::Udp, 100)),
    ]
}

pub(super) fn on_the_way(twin: &mut PathTwin, loss_ppm: u32) {
    if let Path::Relay { to_server, to_client } = &mut twin.network.path {
        to_server.loss_ppm = loss_ppm;
        to_client.loss_ppm = loss_ppm;
    }
}

pub(super) fn lose(twin: &mut PathTwin, way: Way, packets: Packets, per_mille: u32) {
    twin.network.losses.push(Loss { way, packets, per_mille });
}

/// Segments are sent again, and the op takes longer.
fn verify(arena: &Paths) -> anyhow::Result<Bite> {
    let again = (arena.sent_again(&arena.healthy)?, arena.sent_again(&arena.faulty)?);
    // 200 exchanges of two packets lose some four at one percent.
    Ok(Bite::more("segments sent again", again, 1.0).and(slower(arena, 1.2)?))
}

/// The receiver counts what comes.
fn verify_datagrams(arena: &Paths) -> anyhow::Result<Bite> {
    let lost = (arena.client.op_takes(&arena.healthy)?, arena.client.op_takes(&arena.faulty)?);
    Ok(Bite::more("datagrams lost of a thousand", lost, 25.0))
}
