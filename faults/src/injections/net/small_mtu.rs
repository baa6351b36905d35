//! `net.small-mtu` of paths: a small MTU where nothing puts packets together.

use super::*;

pub(super) const INJECTION: Injection<Net> = Injection::new("net.small-mtu", |arena| slower(arena, 1.2));

pub(super) fn cases() -> Vec<Case> {
    let bare = |op: Op| bare(Setup::over(op));
    let small = |twin: &mut PathTwin, mtu: u32| twin.network.mtu = Some(mtu);
    vec![
        INJECTION.case(&bare(Op::BulkReverse), "mtu576", |twin| small(twin, 576)),
        INJECTION.case(&bare(Op::BulkReverse).streams(4), "mtu296", |twin| small(twin, 296)),
        INJECTION.case(&bare(Op::Bulk).streams(2), "mtu576", |twin| small(twin, 576)),
        INJECTION.case(&bare(Op::Bulk), "mtu900", |twin| small(twin, 900)),
    ]
}

/// No offload on either side: the faulty path has as many packets as its MTU makes, and in nothing else it differs.
pub(super) fn bare(setup: Setup<Net>) -> Setup<Net> {
    setup.with("no-tso", |twin| twin.network.no_offload = true)
}
