//! `net.idle-restart`: the server's connections begin anew after a pause, on a distant path, and those of its twin go on as they were.

use super::*;

pub(super) const INJECTION: Injection = Injection::on_host("net.idle-restart", verify);

pub(super) fn cases() -> Vec<Case> {
    let resting = |server, bytes, rtt_ms: u64, connections, per_s| {
        let setup = Setup::of(server).bytes(bytes).connections(connections).per_second(per_s);
        setup.with(&format!("rtt{rtt_ms}ms-reno-goes-on"), |twin| {
            twin.network.path = Path::round_trip_us(rtt_ms * 1000);
            // Which algorithm a namespace begins with is the machine's choice, and not all of them begin anew.
            twin.network.sysctls.push(("net.ipv4.tcp_congestion_control", "reno".to_owned()));
            after_idle(twin, "0");
        })
    };
    let begins_anew = |twin: &mut Twin| after_idle(twin, "1");
    vec![
        INJECTION.case(&resting(Server::Nginx, 100_000, 40, 64, 100), "begins-anew", begins_anew),
        INJECTION.case(&resting(Server::Nginx, 300_000, 20, 32, 50).https(), "begins-anew", begins_anew),
        INJECTION.case(&resting(Server::Apache, 60_000, 60, 32, 50), "begins-anew", begins_anew),
        INJECTION.case(&resting(Server::HaproxyNginx, 200_000, 30, 16, 25), "begins-anew", begins_anew),
    ]
}

fn after_idle(twin: &mut Twin, value: &str) {
    const SETTING: &str = "net.ipv4.tcp_slow_start_after_idle";
    twin.network.sysctls.retain(|(setting, _)| *setting != SETTING);
    twin.network.sysctls.push((SETTING, value.to_owned()));
}

/// By curl over one connection: transfers take longer with a second between them than without, by a round trip at least.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| -> anyhow::Result<f64> {
        // The first ones are slow start on both.
        let ms = |words: &[&'static str]| -> anyhow::Result<f64> {
            let requests = Requests { words: words.to_vec(), ..Requests::kept_alive(6) };
            Ok(1e3 * arena.client.curl(up, &requests)?.total_s)
        };
        Ok(ms(&["--rate", "60/m"])? - ms(&[])?)
    };
    let trip_ms = 1e3 * arena.client.curl(&arena.healthy, &Requests::connecting(3))?.connect_s;
    let longer = (look(&arena.healthy)?, look(&arena.faulty)?);
    Ok(Bite::more("ms longer with a second between transfers", longer, 0.6 * trip_ms))
}
