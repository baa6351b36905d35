//! Tables of InnoDB, written anew in a copy: in the order of their primary keys, without rows that were deleted and not removed.

use super::warm::quoted;
use crate::address::ServerAddress;
use crate::copy::warm::LEAST_PATIENCE_NS;
use crate::database::Database;
use crate::failure;
use crate::kind;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{MILLISECOND_NS, Nanos, SECOND_NS, sanitize_line};

/// Those of the database that load is put on.
const TABLES: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND engine = 'InnoDB' \
                      AND table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') ORDER BY 1";

/// Writes them anew. The server gives it up after this time.
pub(crate) fn rewrite(user: &ServerAddress, patience_ns: Nanos) -> Result<(), SqlFailure> {
    let deadline_ns = monotonic_ns() + patience_ns;
    let (mut client, ..) = kind::connect(user, 30 * SECOND_NS)?;
    client.be_patient(patience_ns + LEAST_PATIENCE_NS);
    let mut database = Database::Server(Box::new(client), user.system);
    for row in database.rows(TABLES)? {
        let Some(name) = row.into_iter().next().flatten() else { continue };
        let left_ns = deadline_ns.saturating_sub(monotonic_ns()).max(MILLISECOND_NS);
        database.run(&format!("SET max_statement_time = {}", left_ns as f64 / SECOND_NS as f64))?;
        // It says in rows what came of it: table, statement, kind of message, message.
        let said = database.rows(&format!("OPTIMIZE NO_WRITE_TO_BINLOG TABLE {}", quoted(&name)))?;
        let error =
            said.iter().find(|row| matches!(row.get(2), Some(Some(kind)) if kind.eq_ignore_ascii_case("error")));
        if let Some(error) = error {
            let text = error.get(3).and_then(Option::as_deref).unwrap_or("an error without a text");
            return Err(SqlFailure::new(failure::ERROR, sanitize_line(&format!("{name}: {text}"))));
        }
    }
    Ok(())
}
