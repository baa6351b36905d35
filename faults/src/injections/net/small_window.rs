//! `net.small-window` of paths: small socket buffers at the server's end of a distant path.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.small-window", |arena| slower(arena, 1.3));

pub(super) fn cases() -> Vec<Case> {
    vec![
        INJECTION.case(&Setup::over(Op::BulkReverse).distant(20), "wmem64k", |twin| sends(twin, 64)),
        INJECTION.case(&Setup::over(Op::BulkReverse).streams(2).distant(10), "wmem32k", |twin| sends(twin, 32)),
        INJECTION.case(&Setup::over(Op::Bulk).distant(20), "rmem64k", |twin| receives(twin, 64)),
        INJECTION.case(&Setup::over(Op::Bulk).streams(2).distant(40), "rmem128k", |twin| receives(twin, 128)),
    ]
}

pub(super) fn sends(twin: &mut PathTwin, kib: u64) {
    twin.network.sysctls.push(("net.ipv4.tcp_wmem", format!("4096 16384 {}", kib << 10)));
}

pub(super) fn receives(twin: &mut PathTwin, kib: u64) {
    twin.network.sysctls.push(("net.ipv4.tcp_rmem", format!("4096 16384 {}", kib << 10)));
}
