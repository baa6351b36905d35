//! `dns.slow`: the name server takes its time for one of the names.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("dns.slow", verify);

pub(super) fn cases() -> Vec<Case> {
    let named = |server| {
        Setup::of(server).connecting().with("named", |twin| twin.address = Address::Name { delay_ms: 0, ipv6: false })
    };
    vec![
        INJECTION.case(&named(Server::Nginx), "50ms", |twin| slow(twin, 50)),
        INJECTION.case(&named(Server::Apache).https(), "300ms", |twin| slow(twin, 300)),
        INJECTION.case(&named(Server::Ruler).connections(2), "1000ms", |twin| slow(twin, 1000)),
    ]
}

fn slow(twin: &mut Twin, delay_ms: u64) {
    twin.address = Address::Name { delay_ms, ipv6: false };
}

/// The shortest delay is 50 ms.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    // curl keeps names for a run, so each run looks up once.
    let look = |up: &Up| Ok(arena.client.curl(up, &Requests::connecting(1))?.lookup_s * 1e3);
    Ok(Bite::more("lookup, ms", arena.by_turns(look)?, 40.0))
}
