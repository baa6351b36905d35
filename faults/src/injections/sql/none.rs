//! `none`: the same database twice.

use super::*;

pub(super) fn cases() -> Vec<Case> {
    [
        Setup::rows(POSTGRES, 20_000, "point-select").sessions(4),
        Setup::rows(POSTGRES, 20_000, "update-index").sessions(8),
        Setup::rows(MARIADB, 20_000, "point-select").sessions(4),
        Setup::rows(MARIADB, 20_000, "read-only").sessions(2),
        Setup::rows(MARIADB, 20_000, "point-select").sends(|load| load.reconnects = true),
    ]
    .iter()
    .map(Case::equals)
    .collect()
}
