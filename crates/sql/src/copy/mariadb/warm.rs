//! Tables and indexes of InnoDB, read into the memory of a copy.

use crate::address::ServerAddress;
use crate::copy::warm::{LEAST_PATIENCE_NS, Warmth};
use crate::database::Database;
use crate::kind;
use crate::wire::SqlFailure;
use duel_load::monotonic_ns;
use duel_model::{MILLISECOND_NS, Nanos, SECOND_NS};

/// What users made and this one sees, the smallest first.
const TABLES: &str = "SELECT table_schema, table_name, coalesce(data_length, 0) + coalesce(index_length, 0) FROM information_schema.tables \
                      WHERE table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') AND engine = 'InnoDB' \
                      AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 3, 1, 2";
/// Tables that are not read: of other engines.
const OTHERS: &str = "SELECT count(*) FROM information_schema.tables WHERE table_type NOT IN ('VIEW', 'SYSTEM VIEW', 'SEQUENCE') \
                      AND engine <> 'InnoDB' AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";
/// Their indexes beside the one that has the rows.
const INDEXES: &str = "SELECT DISTINCT table_schema, table_name, index_name, index_type = 'BTREE' FROM information_schema.statistics \
                       WHERE index_name <> 'PRIMARY' \
                       AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";
/// Values that may lie beside their rows, where nobody comes by who counts these.
const LARGE: &str = "SELECT count(*) FROM information_schema.columns WHERE data_type IN \
                     ('blob', 'mediumblob', 'longblob', 'text', 'mediumtext', 'longtext') \
                     AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')";

/// A tenth of the memory is for other things than what tables have.
const FOR_TABLES: f64 = 0.9;

/// Reads what fits, as a user who sees what he may load. The server gives each reading up when the time is over, so that none of it goes on
/// under load.
pub(crate) fn warm(server: &ServerAddress, patience_ns: Nanos) -> Warmth {
    let deadline_ns = monotonic_ns() + patience_ns;
    let read = || -> Result<Warmth, SqlFailure> {
        let (mut client, ..) = kind::connect(server, 30 * SECOND_NS)?;
        client.be_patient(patience_ns + LEAST_PATIENCE_NS);
        let mut database = Database::Server(Box::new(client), server.system);
        let room = database.number("SELECT @@innodb_buffer_pool_size")?.unwrap_or(0) as f64 * FOR_TABLES;
        // Tables by the thousand are more than anybody would read one by one.
        let (Ok(tables), Ok(indexes)) = (database.rows(TABLES), database.rows(INDEXES)) else {
            return Ok(Warmth::Part);
        };
        let mut is_all = database.number(LARGE)? == Some(0) && database.number(OTHERS)? == Some(0);
        let mut bytes = 0.0;
        for table in &tables {
            let [Some(schema), Some(name), Some(size)] = table.as_slice() else { continue };
            bytes += size.parse().unwrap_or(f64::INFINITY);
            if bytes > room {
                is_all = false;
                break;
            }
            let of_table = indexes.iter().filter(|index| index[..2] == table[..2]);
            let mut ways = vec!["USE INDEX ()".to_owned()];
            for index in of_table {
                match index.as_slice() {
                    [_, _, Some(index), Some(is_tree)] if is_tree == "1" => {
                        ways.push(format!("FORCE INDEX ({})", quoted(index)));
                    }
                    _ => is_all = false,
                }
            }
            for way in ways {
                let left_ns = deadline_ns.saturating_sub(monotonic_ns());
                if left_ns < MILLISECOND_NS {
                    return Ok(Warmth::Cut);
                }
                database.run(&format!("SET max_statement_time = {}", left_ns as f64 / SECOND_NS as f64))?;
                let (schema, name) = (quoted(schema), quoted(name));
                let read = database.rows(&format!("SELECT SQL_NO_CACHE count(*) FROM {schema}.{name} {way}"));
                if read.is_err() && monotonic_ns() >= deadline_ns {
                    return Ok(Warmth::Cut);
                }
                // One that may not be read by this user, say.
                is_all &= read.is_ok();
            }
        }
        Ok(if is_all { Warmth::All } else { Warmth::Part })
    };
    read().unwrap_or(Warmth::Cut)
}

/// A name between the marks that make it one, whatever is in it.
pub(super) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
