//! What a running server has in memory, a new one has to read first.

use crate::address::ServerAddress;
use crate::database::Database;
use crate::kind;
use crate::wire::SqlFailure;
use duel_model::SECOND_NS;

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

/// Reads tables and indexes into the memory of a copy, as a superuser that calls PostgreSQL's own functions alone; whether all of them are
/// there now.
pub(crate) fn warm(server: &ServerAddress) -> bool {
    let read = || -> Result<bool, SqlFailure> {
        let (client, ..) = kind::connect(server, 30 * SECOND_NS)?;
        let mut database = Database::Server(Box::new(client), server.system);
        database.run(MAKE)?;
        let row = database.rows(ASK)?.into_iter().next().unwrap_or_default();
        Ok(row.get(1).is_some_and(|fits| fits.as_deref() == Some("1")))
    };
    read().unwrap_or(false)
}
