//! `net.rate-cap`: so many bytes per second and no more, by different means.

use super::*;
use crate::relay::LinkPlan;

pub(super) const INJECTION: Injection = Injection::new("net.rate-cap", verify);

pub(super) fn cases() -> Vec<Case> {
    let bulk = |server| Setup::of(server).bytes(500_000).connections(4);
    let relayed = |server| bulk(server).with("rtt2ms", |twin| twin.network.path = Path::round_trip_us(2_000));
    let proxied = |server| {
        bulk(server).with("stream-relay", |twin| {
            twin.front = Some(Front::Stream { rate_per_connection: None, rate_total: None, delay_us: 0 });
        })
    };
    vec![
        // nginx lets the bytes of one second pass at once, so only what is longer than that is held back.
        INJECTION.case(&bulk(Server::Nginx).bytes(1_000_000), "limit-rate-800kBps", |twin| {
            twin.http.limit_rate = Some(800_000);
        }),
        INJECTION.case(&bulk(Server::Nginx).https(), "tbf-200Mbps", |twin| {
            twin.network.shaper_bit_per_s = Some(200_000_000);
        }),
        INJECTION.case(&relayed(Server::Apache), "line-10MBps", |twin| line(twin, 10_000_000)),
        INJECTION.case(&relayed(Server::Ruler).https(), "line-20MBps", |twin| line(twin, 20_000_000)),
        INJECTION.case(&bulk(Server::HaproxyNginx), "policed-20MBps", |twin| {
            twin.network.firewall = Some(
                "table inet faults {\n chain policed {\n  type filter hook output priority 0; policy accept;\n  \
                 oifname \"eth0\" limit rate over 20 mbytes/second burst 500 kbytes counter drop\n }\n}\n"
                    .to_owned(),
            );
        }),
        INJECTION.case(&proxied(Server::Nginx), "each-8MBps", |twin| {
            twin.front = Some(Front::Stream { rate_per_connection: Some(8_000_000), rate_total: None, delay_us: 0 });
        }),
        INJECTION.case(&proxied(Server::Apache), "total-30MBps", |twin| {
            twin.front = Some(Front::Stream { rate_per_connection: None, rate_total: Some(30_000_000), delay_us: 0 });
        }),
    ]
}

/// A line of this rate towards the client; its delay stays.
pub(super) fn line(twin: &mut Twin, bytes_per_s: u64) {
    if let Path::Relay { to_client, .. } = &mut twin.network.path {
        *to_client = LinkPlan { bytes_per_s: Some(bytes_per_s), ..*to_client };
    }
}

pub(super) fn verify(arena: &Arena) -> anyhow::Result<Bite> {
    let load = ToolLoad { seconds: 3, ..ToolLoad::over(4) };
    Ok(Bite::ratio("ms per request over 4 connections", ms_per_request(arena, &load)?, 1.3))
}
