//! `net.path-delay` of paths: packets take longer.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.path-delay", |arena| slower(arena, 1.3));

pub(super) fn cases() -> Vec<Case> {
    let longer = |twin: &mut PathTwin, rtt_ms: u64| twin.network.path = Path::round_trip_us(rtt_ms * 1000);
    // A flow that waits for acknowledgements, on the near path as well.
    let windowed = Setup::over(Op::BulkReverse).distant(5).with("wmem256k", |twin| {
        twin.network.sysctls.push(("net.ipv4.tcp_wmem", "4096 16384 262144".to_owned()));
    });
    vec![
        INJECTION.case(&Setup::over(Op::Exchange).distant(0), "plus3ms", |twin| longer(twin, 3)),
        INJECTION.case(&Setup::over(Op::Exchange).streams(8).distant(10), "plus20ms", |twin| longer(twin, 30)),
        INJECTION.case(&Setup::over(Op::Connect).streams(2).distant(2), "plus10ms", |twin| longer(twin, 12)),
        INJECTION.case(&windowed, "plus20ms", |twin| longer(twin, 25)),
    ]
}
