//! `net.filter-chain`: every packet passes thousands of rules that do not concern it.

use super::*;
use crate::twin::Network;
use std::fmt::Write;

pub(super) const INJECTION: Injection = Injection::new("net.filter-chain", verify);

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::of(Server::Nginx), "10000-in", |twin| chain(&mut twin.network, 10_000, &["input"])),
        INJECTION.case(&Setup::of(Server::Nginx).https().connecting(), "10000-in-out", |twin| {
            chain(&mut twin.network, 10_000, &["input", "output"]);
        }),
        INJECTION.case(&Setup::of(Server::Apache).bytes(20_000), "5000-in-out", |twin| {
            chain(&mut twin.network, 5_000, &["input", "output"]);
        }),
        INJECTION.case(&Setup::of(Server::Ruler).connecting(), "20000-in", |twin| chain(&mut twin.network, 20_000, &["input"])),
    ]
}

pub(crate) fn chain(network: &mut Network, rules: u32, hooks: &[&str]) {
    let mut text = "table inet faults {\n".to_owned();
    for hook in hooks {
        let _ = writeln!(text, " chain {hook} {{\n  type filter hook {hook} priority 0; policy accept;");
        for n in 0..rules {
            // Documentation addresses: nobody here has one.
            let _ = writeln!(text, "  ip saddr 198.18.{}.{} tcp dport {} drop", n / 256 % 256, n % 256, 1 + n % 60_000);
        }
        text += " }\n";
    }
    network.firewall = Some(text + "}\n");
}

/// Connecting is slow already, and all else as well.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let connect = |up: &Up| Ok(arena.client.curl(up, &Requests::connecting(20))?.connect_s * 1e6);
    let bite = Bite::ratio("connect, us", arena.by_turns(connect)?, 1.2);
    Ok(bite.and(Bite::ratio("ms per request", ms_per_request(arena, &ToolLoad::over(8))?, 1.2)))
}
