//! `net.loss`: packets get lost at random.

use super::*;
use crate::twin::{Loss, Packets, Way};

pub(super) const INJECTION: Injection = Injection::new("net.loss", verify);

pub(super) fn cases() -> Vec<Case> {
    let set_up = |server| Setup::of(server).bytes(20_000);
    vec![
        INJECTION.case(&set_up(Server::Nginx), "1percent-out", |twin| lose_to_client(twin, 10)),
        INJECTION.case(&set_up(Server::Nginx).https().bytes(100_000), "3percent-out", |twin| lose_to_client(twin, 30)),
        INJECTION.case(&set_up(Server::Apache).connecting(), "2percent-in", |twin| lose_to_server(twin, 20)),
        INJECTION.case(&set_up(Server::HaproxyNginx).bytes(612), "2percent-out", |twin| lose_to_client(twin, 20)),
        INJECTION.case(&set_up(Server::Ruler).https().connecting(), "1percent-in", |twin| lose_to_server(twin, 10)),
        INJECTION.case(
            &set_up(Server::Nginx).bytes(100_000).with("rtt10ms", |twin| twin.network.path = Path::round_trip_us(10_000)),
            "1percent-on-the-way",
            |twin| {
                if let Path::Relay { to_server, to_client } = &mut twin.network.path {
                    to_server.loss_ppm = 10_000;
                    to_client.loss_ppm = 10_000;
                }
            },
        ),
    ]
}

fn lose_to_client(twin: &mut Twin, per_mille: u32) {
    twin.network.losses.push(Loss { way: Way::ToClient, packets: Packets::Tcp, per_mille });
}

fn lose_to_server(twin: &mut Twin, per_mille: u32) {
    twin.network.losses.push(Loss { way: Way::ToServer, packets: Packets::Tcp, per_mille });
}

/// The server has to send segments again, or the client its first ones, which then takes a second.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { seconds: 3, ..ToolLoad::connecting(16) };
    let again = |up: &Up| -> anyhow::Result<f64> {
        // SYN-ACKs that nobody confirms are the server's trace of a client that did not get them, or was not heard.
        let work = || arena.client.load(up, &load).map(drop);
        let segments = growth(up, "TcpRetransSegs", work)?;
        Ok(segments + dropped(up)?)
    };
    let bite = Bite::more("segments sent again or dropped", (again(&arena.healthy)?, again(&arena.faulty)?), 10.0);
    let slower = ms_per_request(arena, &load)?;
    Ok(bite.and(Bite::ratio("ms per new connection", slower, 1.1)))
}

/// Packets that the rules have dropped.
fn dropped(up: &Up) -> anyhow::Result<f64> {
    let rules = up.namespace().run("nft", &["list", "ruleset"])?;
    let counted = rules.lines().find_map(|line| line.split_once("counter packets ")?.1.split(' ').next()?.parse().ok());
    Ok(counted.unwrap_or(0.0))
}
