//! `net.loss`: packets get lost at random.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.loss", verify);

pub(super) fn cases() -> Vec<Case> {
    let set_up = |server| Setup::of(server).bytes(20_000);
    vec![
        INJECTION.case(&set_up(Server::Nginx), "1percent-out", |twin| lose(twin, 10, "output")),
        INJECTION.case(&set_up(Server::Nginx).https().bytes(100_000), "3percent-out", |twin| lose(twin, 30, "output")),
        INJECTION.case(&set_up(Server::Apache).connecting(), "2percent-in", |twin| lose(twin, 20, "input")),
        INJECTION.case(&set_up(Server::HaproxyNginx).bytes(612), "2percent-out", |twin| lose(twin, 20, "output")),
        INJECTION.case(&set_up(Server::Ruler).https().connecting(), "1percent-in", |twin| lose(twin, 10, "input")),
    ]
}

/// Rules that drop so many packets in a thousand. The loopback interface is spared: behind a proxy nothing gets lost.
pub(super) fn lose(twin: &mut Twin, per_mille: u32, hook: &str) {
    let interface = if hook == "output" { "oifname" } else { "iifname" };
    twin.network.firewall = Some(format!(
        "table inet faults {{\n chain lossy {{\n  type filter hook {hook} priority 0; policy accept;\n  \
         {interface} \"eth0\" meta l4proto tcp numgen random mod 1000 < {per_mille} counter drop\n }}\n}}\n"
    ));
}

/// Somebody sends segments again: the server what it lost, and the client what the server did not get.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { seconds: 3, ..ToolLoad::connecting(16) };
    let dropped = |up: &Up| -> anyhow::Result<f64> {
        arena.client.load(up, &load)?;
        let rules = up.namespace().run("nft", &["list", "ruleset"])?;
        let counted = rules.lines().find_map(|line| line.split_once("counter packets ")?.1.split(' ').next()?.parse().ok());
        Ok(counted.unwrap_or(0.0))
    };
    let bite = Bite::more("packets dropped", (dropped(&arena.healthy)?, dropped(&arena.faulty)?), 10.0);
    let slower = ms_per_request(arena, &load)?;
    Ok(bite.and(Bite::ratio("ms per new connection", slower, 1.1)))
}
