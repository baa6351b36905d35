//! `net.slow-path`: a path of which the servers' own connections tell too little, since nobody reads their machines.

use super::*;
use crate::twin::{Loss, Packets, Way};

/// What makes the path slow may be told by the servers' own connections, which is as right.
const LOSSES: Injection = Injection::new("net.slow-path", verify).or(&["net.loss"]);
const CAP: Injection = Injection::new("net.slow-path", verify).or(&["net.rate-cap"]);

pub(super) fn cases() -> Vec<Case> {
    let remote = |server, bytes| Setup::of(server).bytes(bytes).connections(8).remote();
    vec![
        LOSSES.case(&remote(Server::Nginx, 20_000), "loses-3percent-out", |twin| lose_to_client(twin, 30)),
        LOSSES.case(&remote(Server::Lighttpd, 60_000), "loses-2percent-out", |twin| lose_to_client(twin, 20)),
        LOSSES.case(&remote(Server::Java, 100_000), "loses-4percent-out", |twin| lose_to_client(twin, 40)),
        LOSSES.case(&remote(Server::Apache, 50_000).https(), "loses-3percent-out", |twin| lose_to_client(twin, 30)),
        LOSSES.case(
            &remote(Server::Node, 40_000).with("rtt3ms", |twin| twin.network.path = Path::round_trip_us(3_000)),
            "loses-2percent-on-the-way",
            |twin| lose_on_the_way(twin, 20_000),
        ),
        CAP.case(&remote(Server::Nginx, 300_000).https(), "tbf-150Mbps", |twin| {
            twin.network.shaper_bit_per_s = Some(150_000_000);
        }),
        LOSSES.case(&remote(Server::HaproxyNginx, 30_000).connections(4), "loses-5percent-out", |twin| {
            lose_to_client(twin, 50);
        }),
        LOSSES.case(&remote(Server::Nginx, 8_000).https(), "loses-3percent-out", |twin| lose_to_client(twin, 30)),
        LOSSES.case(&remote(Server::Node, 3_000).connections(16), "loses-2percent-out", |twin| lose_to_client(twin, 20)),
        LOSSES.case(
            &remote(Server::Apache, 200_000)
                .connections(4)
                .with("rtt5ms", |twin| twin.network.path = Path::round_trip_us(5_000)),
            "loses-1percent-on-the-way",
            |twin| lose_on_the_way(twin, 10_000),
        ),
        CAP.case(&remote(Server::Java, 500_000).connections(4), "tbf-80Mbps", |twin| {
            twin.network.shaper_bit_per_s = Some(80_000_000);
        }),
        CAP.case(&remote(Server::Lighttpd, 150_000), "tbf-60Mbps", |twin| {
            twin.network.shaper_bit_per_s = Some(60_000_000);
        }),
        // What is none of the path.
        compression::INJECTION.case(&remote(Server::Nginx, 100_000), "level6", |twin| compression::compressing(twin, 6)),
        pauses::INJECTION.case(&remote(Server::Nginx, 30_000), "pauses-210ms-each-700ms", |twin| {
            pauses::pausing(twin, 210, 490);
        }),
        // `duel net serve` is in the server's group: neither of the two has time.
        quota::INJECTION
            .case(&remote(Server::Nginx, 60_000), "30of100ms", |twin| quota::limited(twin, 30_000, 100_000)),
        quota::INJECTION
            .case(&remote(Server::Node, 20_000), "10of40ms", |twin| quota::limited(twin, 10_000, 40_000)),
        noisy_neighbour::INJECTION.case(&noisy_neighbour::in_groups(remote(Server::Nginx, 40_000)), "3-spinners", |twin| {
            noisy_neighbour::neighbours(twin, 3);
        }),
        noisy_neighbour::INJECTION.case(
            &noisy_neighbour::in_groups(remote(Server::Lighttpd, 100_000).connections(1)),
            "1-spinner",
            |twin| noisy_neighbour::neighbours(twin, 1),
        ),
    ]
}

fn lose_to_client(twin: &mut Twin, per_mille: u32) {
    twin.network.losses.push(Loss { way: Way::ToClient, packets: Packets::Tcp, per_mille });
}

fn lose_on_the_way(twin: &mut Twin, loss_ppm: u32) {
    if let Path::Relay { to_client, .. } = &mut twin.network.path {
        to_client.loss_ppm = loss_ppm;
    }
}

/// Requests take longer.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { seconds: 3, ..ToolLoad::over(8) };
    Ok(Bite::ratio("ms per request over 8 connections", ms_per_request(arena, &load)?, 1.2))
}
