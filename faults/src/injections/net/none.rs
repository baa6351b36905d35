//! `none`: the same path twice.

use super::*;

pub(super) fn cases() -> Vec<Case> {
    [
        Setup::over(Op::Exchange),
        Setup::over(Op::Exchange).streams(8).distant(5),
        Setup::over(Op::Bulk).streams(2).distant(10),
        Setup::over(Op::BulkReverse).streams(2),
        Setup::over(Op::Connect).streams(4),
        Setup::over(Op::Datagrams { mbit_per_s: 20 }),
    ]
    .iter()
    .map(Case::equals)
    .collect()
}
