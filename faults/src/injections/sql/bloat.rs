//! `db.bloat`: most rows of the table were deleted, and what is left lies scattered over the blocks that they had.

use super::*;

pub(super) const INJECTION: Injection<Sql> = Injection::new("db.bloat", slower);

pub(super) fn cases() -> Vec<Case> {
    let ranges = |op| Setup::rows(POSTGRES, 20_000, op);
    vec![
        INJECTION.case(&ranges("read-only"), "one-row-in-20", one_row_in_20),
        INJECTION.case(&ranges("read-only").sessions(4).sends(|load| load.range = 400), "one-row-in-20", one_row_in_20),
        INJECTION.case(&ranges("read-only").sends(|load| load.range = 1_000), "one-row-in-20", one_row_in_20),
    ]
}

/// Beside each row lie nineteen that were deleted, in the table and in its indexes, and were removed, too: their places stay empty. Statistics
/// are renewed, so that both have the same plans.
pub(super) fn one_row_in_20(twin: &mut SqlTwin) {
    twin.statements.extend([
        "CREATE TABLE many AS SELECT id + other * 1000000 AS id, k, c, pad FROM sbtest1, generate_series(0, 19) other ORDER BY sbtest1.id, other",
        "TRUNCATE sbtest1; INSERT INTO sbtest1 SELECT * FROM many; DROP TABLE many; DELETE FROM sbtest1 WHERE id > 1000000",
        "VACUUM ANALYZE sbtest1",
    ]);
}
