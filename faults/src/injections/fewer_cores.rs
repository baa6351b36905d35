//! `cpu.fewer-cores`: as many workers, on fewer CPUs.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("cpu.fewer-cores", verify);

pub(super) fn cases() -> Vec<Case> {
    // Both CPUs for the healthy one, and work that is dear for the servers and cheap for the client.
    let both_cpus = |server, key: Key| {
        Setup::of(server).https().connecting().connections(24).with(&format!("{key:?}-2cpus").to_lowercase(), |twin| {
            twin.process.cpus = "0-1";
            twin.process.limits.cpus = Some("0-1".to_owned());
            twin.http.workers = 2;
            twin.tls_mut().key = key;
        })
    };
    let one = |twin: &mut Twin| {
        twin.process.cpus = "0";
        twin.process.limits.cpus = Some("0".to_owned());
    };
    vec![
        INJECTION.case(&both_cpus(Server::Nginx, Key::Rsa4096), "1of2", one),
        INJECTION.case(&both_cpus(Server::Apache, Key::Rsa3072), "1of2", one),
        INJECTION.case(&both_cpus(Server::Ruler, Key::Rsa4096), "1of2", one),
    ]
}

/// The kernel tells on how many CPUs the workers may run.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let most = |up: &Up| -> anyhow::Result<f64> {
        let allowed = |pid: &u32| -> Option<u32> {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?.trim().replace(',', "");
            u128::from_str_radix(&mask, 16).ok().map(u128::count_ones)
        };
        let counts: Vec<u32> = up.pids()?.iter().filter_map(allowed).collect();
        counts.iter().max().copied().map(f64::from).ok_or_else(|| anyhow::anyhow!("no process tells its CPUs"))
    };
    let (healthy, faulty) = (most(&arena.healthy)?, most(&arena.faulty)?);
    let cpus = Bite { bites: healthy == 2.0 && faulty == 1.0, figures: format!("CPUs: {faulty} against {healthy}") };
    Ok(cpus.and(Bite::ratio("ms per new connection, 24 at a time", ms_per_request(arena, &ToolLoad::connecting(24))?, 1.2)))
}
