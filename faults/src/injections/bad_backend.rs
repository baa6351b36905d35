//! `http.bad-backend`: a balancer hands connections to several servers in turn, and the last of them is slow.

use super::*;
use crate::case::NAMELESS;
use crate::twin::{Balanced, LastServer};

pub(super) const INJECTION: Injection = Injection::new("http.bad-backend", verify);

/// Requests are handed out one by one: all connections have the same share of slow ones, and none of them leads to the slow server.
const BY_REQUEST: Injection = Injection::new(NAMELESS, verify_by_request);

pub(super) fn cases() -> Vec<Case> {
    let by_connection = |server, servers| balanced(Setup::of(server), Balanced::Connections, servers);
    // Where the others keep the CPU busy that all share, a slow server takes nothing away from the rate: so few connections, or requests
    // that wait.
    vec![
        INJECTION.case(&by_connection(Server::Nginx, 2).connections(4), "5ms", |twin| slow(twin, 5_000)),
        INJECTION.case(&by_connection(Server::HaproxyRuler, 2).https().path("/delay/1000"), "10ms", |twin| {
            slow(twin, 10_000);
        }),
        INJECTION.case(&by_connection(Server::Ruler, 4).path("/delay/1000"), "50ms", |twin| slow(twin, 50_000)),
        INJECTION.case(&by_connection(Server::Own, 8).path("/sleep/1000").connections(32), "50ms", |twin| {
            slow(twin, 50_000);
        }),
        INJECTION.case(&by_connection(Server::Nginx, 2).bytes(100_000), "5MB-per-s", |twin| {
            last(twin).rate = Some(5_000_000);
        }),
        BY_REQUEST.case(&balanced(Setup::of(Server::Nginx), Balanced::Requests, 4), "5ms", |twin| slow(twin, 5_000)),
        BY_REQUEST.case(&balanced(Setup::of(Server::Apache), Balanced::Requests, 2), "5ms", |twin| slow(twin, 5_000)),
    ]
}

/// Behind a balancer whose servers are equal.
pub(super) fn balanced(setup: Setup, by: Balanced, servers: u32) -> Setup {
    let what = match by {
        Balanced::Connections => "connections",
        Balanced::Requests => "requests",
    };
    setup.with(&format!("{what}-over-{servers}"), |twin| {
        twin.front = Some(Front::Balancer { by, servers, last: LastServer::default() });
    })
}

pub(super) fn slow(twin: &mut Twin, longer_us: u64) {
    last(twin).longer_us = longer_us;
}

/// # Panics
///
/// Where there is no balancer.
#[expect(clippy::panic, reason = "a mistake in the catalogue of cases, which a test goes through")]
fn last(twin: &mut Twin) -> &mut LastServer {
    match &mut twin.front {
        Some(Front::Balancer { last, .. }) => last,
        _ => panic!("a slow server of several needs a set-up with a balancer"),
    }
}

/// Of connections that curl makes one after the other, each for some requests, as many are slow as should be, and of the healthy twin none;
/// and under load the slow ones are missed.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    const ROUNDS: u32 = 3;
    let servers = servers(arena);
    let medians = |up: &Up| -> anyhow::Result<Vec<f64>> {
        (0..ROUNDS * servers)
            .map(|_| {
                let mut times_s = arena.client.curl_totals(up, &Requests::kept_alive(6))?;
                // The first one connects.
                times_s.remove(0);
                crate::arena::median(times_s)
            })
            .collect()
    };
    let healthy = medians(&arena.healthy)?;
    let faulty = medians(&arena.faulty)?;
    // Many connections would have the others use up the CPU; each server gets as many.
    let load = ToolLoad::over(2 * servers);
    let loaded = Bite::ratio("ms per request under load", ms_per_request(arena, &load)?, 1.1);
    Ok(parts(arena, [&healthy, &faulty], ROUNDS, "connections").and(loaded))
}

/// The same of requests over one connection.
fn verify_by_request(arena: &Arena) -> anyhow::Result<Bite> {
    const ROUNDS: u32 = 10;
    let requests = Requests::kept_alive(ROUNDS * servers(arena));
    let [healthy, faulty] = [&arena.healthy, &arena.faulty].map(|up| arena.client.curl_totals(up, &requests));
    Ok(parts(arena, [&healthy?, &faulty?], ROUNDS, "requests over one connection"))
}

fn servers(arena: &Arena) -> u32 {
    match arena.faulty.twin().front {
        Some(Front::Balancer { servers, .. }) => servers,
        _ => 1,
    }
}

/// How much longer a request takes on the last server, as it was told.
fn longer_s(twin: &Twin) -> f64 {
    match &twin.front {
        Some(Front::Balancer { last, .. }) => {
            let sending_s = last.rate.map_or(0.0, |rate| twin.path_bytes() as f64 / rate as f64);
            last.longer_us as f64 / 1e6 + sending_s
        }
        _ => 0.0,
    }
}

/// Whether as many as are expected take longer than the healthy twin's typical one, by half of what was told at least; one more or less,
/// for others may have had their turn.
fn parts(arena: &Arena, [healthy_s, faulty_s]: [&[f64]; 2], expected: u32, what: &str) -> Bite {
    let typical_s = crate::arena::median(healthy_s.to_vec()).unwrap_or(f64::NAN);
    let from_s = typical_s + longer_s(arena.faulty.twin()) / 2.0;
    let slow = |times_s: &[f64]| times_s.iter().filter(|time_s| **time_s > from_s).count();
    let (of_healthy, of_faulty) = (slow(healthy_s), slow(faulty_s));
    Bite {
        bites: of_faulty.abs_diff(expected as usize) <= 1 && of_healthy <= 1,
        figures: format!("slow {what}: {of_faulty} of {}, told {expected}, against {of_healthy}", faulty_s.len()),
    }
}
