//! `net.address-family`: the server's name has an IPv6 and an IPv4 address, and the way by IPv6, which clients try first, is slower.

use super::*;
use crate::relay::LinkPlan;

pub(super) const INJECTION: Injection = Injection::new("net.address-family", verify);

pub(super) fn cases() -> Vec<Case> {
    let of = |server: Server| dual_stack(Setup::of(server));
    vec![
        INJECTION.case(&of(Server::Nginx), "ipv6-plus4ms", |twin| by_ipv6(twin, longer(4_000))),
        INJECTION.case(&of(Server::Apache).https().connecting(), "ipv6-plus15ms", |twin| by_ipv6(twin, longer(15_000))),
        INJECTION.case(&of(Server::Nginx).bytes(400_000).connections(4), "ipv6-6MBps", |twin| {
            by_ipv6(twin, LinkPlan { bytes_per_s: Some(6_000_000), ..LinkPlan::default() });
        }),
        INJECTION.case(&of(Server::HaproxyNginx).bytes(50_000), "ipv6-loses-2percent", |twin| {
            by_ipv6(twin, LinkPlan { loss_ppm: 20_000, ..LinkPlan::default() });
        }),
    ]
}

/// A set-up in which both twins' names have addresses of both families, and a path that may tell them apart.
pub(super) fn dual_stack(setup: Setup) -> Setup {
    setup.with("ipv6-first", |twin| {
        twin.address = Address::Name { delay_ms: 0, ipv6: true };
        twin.network.path = Path::round_trip_us(0);
    })
}

pub(super) fn longer(rtt_us: u64) -> LinkPlan {
    LinkPlan { delay_us: rtt_us / 2, ..LinkPlan::default() }
}

/// What the path does to packets of IPv6, each way.
pub(super) fn by_ipv6(twin: &mut Twin, link: LinkPlan) {
    let link = LinkPlan { only_ipv6: true, ..link };
    twin.network.path = Path::Relay { to_server: link, to_client: link };
}

/// By curl, which is told the family: the faulty twin takes longer by IPv6 than by IPv4, and the healthy one does not.
fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    /// Loss is seen in some requests only.
    const REQUESTS: usize = 60;
    let mean_ms = |up: &Up, family: &str| -> anyhow::Result<f64> {
        let url = up.url();
        let mut args = vec!["-s", "-k", family, "-w", "%{time_total}\n"];
        for _ in 0..REQUESTS {
            args.extend(["-o", "/dev/null", &url]);
        }
        let said = arena.client.run("curl", &args)?;
        let times: Vec<f64> = said.lines().filter_map(|line| line.trim().parse().ok()).collect();
        anyhow::ensure!(times.len() == REQUESTS, "curl made {} of {REQUESTS} requests by {family}", times.len());
        Ok(times.iter().sum::<f64>() / times.len() as f64 * 1e3)
    };
    let by = |up: &Up| Ok::<_, anyhow::Error>((mean_ms(up, "-4")?, mean_ms(up, "-6")?));
    let (faulty, healthy) = (by(&arena.faulty)?, by(&arena.healthy)?);
    const AT_LEAST: f64 = 1.3;
    let bite = Bite::ratio("ms per request by IPv6 against IPv4", faulty, AT_LEAST);
    let (of_faulty, of_healthy) = (faulty.1 / faulty.0, healthy.1 / healthy.0);
    let bites = of_faulty / of_healthy >= AT_LEAST;
    Ok(bite.and(Bite { bites, figures: format!("of the healthy twin {of_healthy:.2}x") }))
}
