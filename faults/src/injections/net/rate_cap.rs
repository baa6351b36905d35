//! `net.rate-cap` of paths: so many bytes per second and no more, over however many streams.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.rate-cap", |arena| slower(arena, 1.3));
pub(super) const OF_DATAGRAMS: Injection<Net> = Injection::new("net.rate-cap", |arena: &Paths| {
    let lost = (arena.client.op_takes(&arena.healthy)?, arena.client.op_takes(&arena.faulty)?);
    Ok(Bite::more("datagrams lost of a thousand", lost, 100.0))
});

pub(super) fn cases() -> Vec<Case> {
    let datagrams = |mbit_per_s: u32| Setup::over(Op::Datagrams { mbit_per_s });
    vec![
        INJECTION.case(&Setup::over(Op::BulkReverse).streams(2), "tbf-200Mbps", |twin| {
            twin.network.shaper_bit_per_s = Some(200_000_000);
        }),
        INJECTION.case(&Setup::over(Op::Bulk).streams(4).distant(2), "line-10MBps", |twin| line(twin, 10_000_000)),
        INJECTION.case(&Setup::over(Op::BulkReverse).distant(2), "line-20MBps", |twin| line(twin, 20_000_000)),
        INJECTION.case(&Setup::over(Op::BulkReverse).streams(4), "policed-20MBps", |twin| policed(twin, 20)),
        OF_DATAGRAMS.case(&datagrams(20).distant(2), "line-1MBps", |twin| line(twin, 1_000_000)),
    ]
}

/// Either way.
pub(super) fn line(twin: &mut PathTwin, bytes_per_s: u64) {
    if let Path::Relay { to_server, to_client } = &mut twin.network.path {
        to_server.bytes_per_s = Some(bytes_per_s);
        to_client.bytes_per_s = Some(bytes_per_s);
    }
}

/// What goes to the client, and is too much, is dropped.
pub(super) fn policed(twin: &mut PathTwin, megabytes_per_s: u32) {
    twin.network.firewall = Some(format!(
        "table inet faults {{\n chain policed {{\n  type filter hook output priority 0; policy accept;\n  \
         oifname \"eth0\" limit rate over {megabytes_per_s} mbytes/second burst 500 kbytes counter drop\n }}\n}}\n"
    ));
}
