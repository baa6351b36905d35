//! `http.few-workers`: fewer requests are served at a time than the machine could.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("http.few-workers", verify);

pub(super) fn cases() -> Vec<Case> {
    // Both CPUs for the servers, and work that is dear for them and cheap for the client.
    let both_cpus = |server, key: Key| {
        Setup::of(server).https().connecting().connections(24).with(&format!("{key:?}-2cpus").to_lowercase(), |twin| {
            twin.process.cpus = "0-1";
            twin.http.workers = 2;
            twin.tls_mut().key = key;
        })
    };
    let waiting = |server: Server, path: &str, at_a_time| {
        Setup::of(server).path(path).connections(32).with(&format!("max{at_a_time}"), |twin| {
            twin.http.at_a_time = Some(at_a_time);
        })
    };
    vec![
        INJECTION.case(&both_cpus(Server::Nginx, Key::Rsa4096), "1of2", |twin| twin.http.workers = 1),
        INJECTION.case(&both_cpus(Server::Nginx, Key::Rsa3072), "1of2", |twin| twin.http.workers = 1),
        INJECTION.case(&waiting(Server::Own, "/sleep/5000", 64), "4of64", |twin| twin.http.at_a_time = Some(4)),
        INJECTION.case(&waiting(Server::Own, "/sleep/20000", 32), "8of32", |twin| twin.http.at_a_time = Some(8)),
        INJECTION.case(&waiting(Server::HaproxyRuler, "/delay/5000", 64), "4of64", |twin| {
            twin.http.at_a_time = Some(4);
        }),
    ]
}

/// Many connections get less done; one does not notice.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let connecting = arena.healthy.twin().tls.is_some();
    let load = |connections| ToolLoad { connect_anew: connecting, ..ToolLoad::over(connections) };
    let many = Bite::ratio("ms per request over 32 connections", ms_per_request(arena, &load(32))?, 1.2);
    let (healthy, faulty) = ms_per_request(arena, &load(1))?;
    let one = Bite {
        bites: faulty / healthy < 1.15,
        figures: format!("over one: {:.2}x", faulty / healthy),
    };
    Ok(many.and(one))
}
