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

/// Under load the healthy one keeps more than one CPU busy, the faulty one cannot.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad::connecting(24);
    // By turns the *smallest* counts, so this is what is idle of two CPUs.
    let idle = |up: &Up| Ok(2.0 - arena.client.load(up, &load)?.server_cpus_busy);
    let (healthy, faulty) = arena.by_turns(idle)?;
    let (healthy, faulty) = (2.0 - healthy, 2.0 - faulty);
    let many = Bite::ratio("ms per request over 24 connections", ms_per_request(arena, &load)?, 1.2);
    Ok(many.and(Bite {
        bites: healthy > 1.1 && faulty < 1.05,
        figures: format!("CPUs busy: {faulty:.2} against {healthy:.2}"),
    }))
}
