//! `net.congestion-control`: the server sends by another algorithm than its twin, over a path that loses a little.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("net.congestion-control", verify);

const HEALTHY: &str = "bbr";
const FAULTY: &str = "reno";

pub(super) fn cases() -> Vec<Case> {
    let lossy = |server, bytes, connections, rtt_ms: u64, loss_ppm: u32| {
        let setup = Setup::of(server).bytes(bytes).connections(connections);
        setup.with(&format!("rtt{rtt_ms}ms-loss{loss_ppm}ppm-{HEALTHY}"), |twin| {
            twin.network.path = Path::round_trip_us(rtt_ms * 1000);
            if let Path::Relay { to_client, .. } = &mut twin.network.path {
                to_client.loss_ppm = loss_ppm;
            }
            algorithm(twin, HEALTHY);
        })
    };
    let setups = [
        lossy(Server::Nginx, 1_000_000, 2, 20, 3000),
        lossy(Server::Nginx, 500_000, 4, 10, 5000).https(),
        lossy(Server::Apache, 1_000_000, 2, 40, 2000),
        lossy(Server::HaproxyNginx, 1_000_000, 1, 20, 5000),
    ];
    let there = net::allowed();
    let missing = [HEALTHY, FAULTY].into_iter().find(|name| !there.iter().any(|one| one == name));
    let case = |setup: &Setup| match missing {
        None => INJECTION.case(setup, FAULTY, |twin| algorithm(twin, FAULTY)),
        Some(missing) => {
            INJECTION.unavailable(setup, FAULTY, &format!("the kernel does not let namespaces have {missing}"))
        }
    };
    setups.iter().map(case).collect()
}

fn algorithm(twin: &mut Twin, name: &str) {
    const SETTING: &str = "net.ipv4.tcp_congestion_control";
    twin.network.sysctls.retain(|(setting, _)| *setting != SETTING);
    twin.network.sysctls.push((SETTING, name.to_owned()));
}

/// One stream takes longer.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| Ok(arena.client.curl(up, &Requests::kept_alive(8))?.total_s * 1e3);
    Ok(Bite::ratio("ms per transfer over one connection", arena.by_turns(look)?, 1.3))
}
