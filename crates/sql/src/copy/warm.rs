//! What a running server has in memory, a new one has to read first.

use crate::address::ServerAddress;
use crate::database::Database;
use crate::kind;
use crate::wire::SqlFailure;
use duel_model::{MILLISECOND_NS, Nanos, SECOND_NS};

/// PostgreSQL's own function, from its own library, as a function of this session alone. Its extension may stand in a schema in which
/// others may make functions of its name, and a superuser would call theirs. Some systems have the library in a package that may be missing.
const MAKE: &str = "CREATE FUNCTION pg_temp.pg_prewarm(regclass, text, text, bigint, bigint) RETURNS bigint \
                    AS '$libdir/pg_prewarm', 'pg_prewarm' LANGUAGE c";

/// What users made, the smallest first, and up to where it fits into the memory for blocks.
const ASK: &str = "WITH made AS (SELECT c.oid, sum(pg_relation_size(c.oid)) OVER (ORDER BY pg_relation_size(c.oid), c.oid) AS until \
                   FROM pg_class c WHERE relkind IN ('r', 'i', 't', 'm') AND relpersistence <> 't' AND c.oid >= 16384), \
                   fit AS (SELECT oid, until <= pg_size_bytes(current_setting('shared_buffers')) AS fits FROM made) \
                   SELECT sum(CASE WHEN fits THEN pg_temp.pg_prewarm(oid::regclass, 'buffer', 'main', NULL, NULL) END), \
                   bool_and(fits)::int FROM fit";

/// Slower than any disk for databases: a reading that takes longer than this is held up by something else.
const LEAST_BYTES_PER_S: u64 = 20 << 20;
/// For all that is beside the reading of blocks.
const LEAST_PATIENCE_NS: Nanos = 10 * SECOND_NS;
/// Beyond this nobody would wait.
const MOST_PATIENCE_NS: Nanos = 300 * SECOND_NS;

/// What a copy has in memory when load begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Warmth {
    /// All tables and indexes.
    All,
    /// Those that fit, or, without the library, none: the same in each copy with this much memory.
    Part,
    /// How much is not known: the reading was given up.
    Cut,
}

/// How long so many bytes may take.
pub(crate) fn patience_ns(bytes: u64) -> Nanos {
    let reading_ns = (bytes / LEAST_BYTES_PER_S).saturating_mul(SECOND_NS);
    reading_ns.saturating_add(LEAST_PATIENCE_NS).min(MOST_PATIENCE_NS)
}

/// Reads tables and indexes into the memory of a copy, as a superuser that calls PostgreSQL's own functions alone. The server gives it up after
/// this time, so that none of it goes on under load.
pub(crate) fn warm(server: &ServerAddress, patience_ns: Nanos) -> Warmth {
    let mut server = server.clone();
    server.session.push(("statement_timeout".to_owned(), (patience_ns / MILLISECOND_NS).max(1).to_string()));
    let read = || -> Result<Warmth, SqlFailure> {
        let (mut client, ..) = kind::connect(&server, 30 * SECOND_NS)?;
        client.be_patient(patience_ns + LEAST_PATIENCE_NS);
        let mut database = Database::Server(Box::new(client), server.system);
        if database.run(MAKE).is_err() {
            return Ok(Warmth::Part);
        }
        let row = database.rows(ASK)?.into_iter().next().unwrap_or_default();
        Ok(if row.get(1).is_some_and(|fits| fits.as_deref() == Some("1")) { Warmth::All } else { Warmth::Part })
    };
    read().unwrap_or(Warmth::Cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_may_take_longer_and_none_may_take_for_ever() {
        assert_eq!([0, 1 << 30].map(patience_ns), [10 * SECOND_NS, 61 * SECOND_NS]);
        assert_eq!(patience_ns(u64::MAX), MOST_PATIENCE_NS);
    }
}
