//! `net.initcwnd`: the server begins with fewer segments, on a distant path.

use super::*;

pub(super) const INJECTION: Injection = Injection::new("net.initcwnd", verify);

pub(super) fn cases() -> Vec<Case> {
    let distant = |server, rtt_ms: u64| {
        Setup::of(server).bytes(12_000).connecting().with(&format!("rtt{rtt_ms}ms"), |twin| {
            twin.network.path = Path::round_trip_us(rtt_ms * 1000);
        })
    };
    vec![
        INJECTION.case(&distant(Server::Nginx, 20), "initcwnd1", |twin| first_flight(twin, 1)),
        INJECTION.case(&distant(Server::Nginx, 40).https(), "initcwnd2", |twin| first_flight(twin, 2)),
        INJECTION.case(&distant(Server::Apache, 20), "initcwnd2", |twin| first_flight(twin, 2)),
        INJECTION.case(&distant(Server::HaproxyNginx, 10), "initcwnd1", |twin| first_flight(twin, 1)),
        INJECTION.case(&distant(Server::Ruler, 30), "initcwnd3", |twin| first_flight(twin, 3)),
    ]
}

fn first_flight(twin: &mut Twin, segments: u32) {
    twin.network.initcwnd = Some(segments);
}

/// On a new connection the whole takes at least a round trip more, less what a late wake-up hides; connecting tells how
/// long one is.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let look = |up: &Up| arena.client.curl(up, &Requests::connecting(10));
    let (healthy, faulty) = (look(&arena.healthy)?, look(&arena.faulty)?);
    Ok(Bite::more("whole request, ms", (healthy.total_s * 1e3, faulty.total_s * 1e3), healthy.connect_s * 1e3 * 0.6))
}
