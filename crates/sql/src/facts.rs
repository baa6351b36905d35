//! What a database says of itself: version and settings, side by side with those of others.

use crate::address::System;
use crate::copy;
use crate::database::Database;
use crate::failure;
use crate::mysql::facts as mysql;
use crate::schema::{COPY_BYTES, MAY_COPY_WITH, MAY_SET, SET};
use crate::wire::SqlFailure;
use duel_model::{Facts, sanitize_line};
use std::path::Path;

/// Settings of PostgreSQL by the names of their facts.
const POSTGRES: [(&str, &str); 36] = [
    ("sql.isolation", "default_transaction_isolation"),
    ("sql.synchronous_commit", "synchronous_commit"),
    ("sql.fsync", "fsync"),
    ("sql.full_page_writes", "full_page_writes"),
    ("sql.wal_level", "wal_level"),
    ("sql.wal_sync_method", "wal_sync_method"),
    ("sql.max_wal_size", "max_wal_size"),
    ("sql.wal_buffers", "wal_buffers"),
    ("sql.commit_delay", "commit_delay"),
    ("sql.shared_buffers", "shared_buffers"),
    ("sql.work_mem", "work_mem"),
    ("sql.max_connections", "max_connections"),
    ("sql.huge_pages", "huge_pages"),
    ("sql.jit", "jit"),
    ("sql.track_io_timing", "track_io_timing"),
    ("sql.log_statement", "log_statement"),
    ("sql.log_duration", "log_min_duration_statement"),
    ("sql.checksums", "data_checksums"),
    ("sql.random_page_cost", "random_page_cost"),
    ("sql.enable_seqscan", "enable_seqscan"),
    ("sql.enable_indexscan", "enable_indexscan"),
    ("sql.enable_indexonlyscan", "enable_indexonlyscan"),
    ("sql.enable_bitmapscan", "enable_bitmapscan"),
    ("sql.enable_sort", "enable_sort"),
    ("sql.enable_hashagg", "enable_hashagg"),
    ("sql.plan_cache_mode", "plan_cache_mode"),
    ("sql.seq_page_cost", "seq_page_cost"),
    ("sql.effective_cache_size", "effective_cache_size"),
    ("sql.max_parallel_workers_per_gather", "max_parallel_workers_per_gather"),
    ("sql.wal_compression", "wal_compression"),
    ("sql.commit_siblings", "commit_siblings"),
    ("sql.checkpoint_timeout", "checkpoint_timeout"),
    ("sql.autovacuum", "autovacuum"),
    ("sql.temp_buffers", "temp_buffers"),
    ("sql.deadlock_timeout", "deadlock_timeout"),
    ("sql.log_all_durations", "log_duration"),
];

/// Whether a fact is of this setting of such a server.
pub(crate) fn is_setting(system: System, fact: &str, setting: &str) -> bool {
    match system {
        System::Postgres => POSTGRES.contains(&(fact, setting)),
        System::Mysql => mysql::SETTINGS.contains(&(fact, setting)),
        System::Sqlite => false,
    }
}

/// Settings of SQLite.
const SQLITE: [(&str, &str); 5] = [
    ("sql.journal_mode", "journal_mode"),
    ("sql.synchronous", "synchronous"),
    ("sql.page_bytes", "page_size"),
    ("sql.cache_size", "cache_size"),
    ("sql.mmap_bytes", "mmap_size"),
];

const POSTGRES_SET: &str = "SELECT name || '=' || setting FROM pg_settings \
     WHERE source NOT IN ('default', 'override', 'client', 'session') AND context <> 'internal' \
     AND name !~ '(_file|_directory|_directories|_addresses|_command|^port|^application_name|^lc_|^cluster_name|^DateStyle|TimeZone|timezone)' \
     ORDER BY 1";
const MARIADB_SET: &str = "SELECT concat(lower(variable_name), '=', coalesce(global_value, '')) FROM information_schema.system_variables \
     WHERE global_value_origin NOT IN ('COMPILE-TIME', 'AUTO') \
     AND lower(variable_name) NOT REGEXP '(_file|_dir|dir|_path|socket|port|bind_address|server_id|hostname|basedir|_error|ssl|_domain_id)' \
     ORDER BY 1";

/// The same of MySQL, whose table tells how each was set last, in whatever session.
const MYSQL_SET: &str = "SELECT concat(lower(variable_name), '=', coalesce(variable_value, '')) FROM performance_schema.variables_info \
     JOIN performance_schema.global_variables USING (variable_name) WHERE variable_source <> 'COMPILED' \
     AND lower(variable_name) NOT REGEXP '(_file|_dir|dir|_path|socket|port|bind_address|server_id|hostname|basedir|_error|ssl|_domain_id)' \
     ORDER BY 1";

/// Settings in which it is not as it was built; `None` where it does not tell.
fn set(database: &mut Database, ask: &str) -> Option<Vec<String>> {
    let rows = database.ask_server(ask).ok()?;
    let set: Vec<String> =
        rows.into_iter().filter_map(|row| row.into_iter().next()?).map(|text| sanitize_line(&text)).collect();
    // Never none: that it has no such settings is known, too.
    Some(if set.is_empty() { vec!["none".to_owned()] } else { set })
}

/// What asks for their names. A superuser of PostgreSQL may set more.
const POSTGRES_MAY_SET: &str = "SELECT name FROM pg_settings WHERE context = 'user' OR \
                                (context = 'superuser' AND current_setting('is_superuser') = 'on')";
/// Of those that a server takes when it is started.
const POSTGRES_MAY_START_WITH: &str = "SELECT name FROM pg_settings WHERE context <> 'internal'";
/// The same of MariaDB, of those that it is started with under the same name. The size of its pages is one of the data. MySQL does not tell.
const MARIADB_MAY_START_WITH: &str = "SELECT lower(variable_name) FROM information_schema.system_variables \
                                      WHERE command_line_argument IS NOT NULL AND variable_name <> 'innodb_page_size'";
/// MariaDB tells which of its variables a session has of its own.
const MARIADB_MAY_SET: &str = "SELECT lower(variable_name) FROM information_schema.system_variables \
                               WHERE variable_scope = 'SESSION' AND read_only = 'NO'";

/// Of these settings those that a session may change; `None` where the server does not tell.
fn may_set(database: &mut Database, ask: &str, settings: &[(&str, &str)]) -> Option<Vec<String>> {
    let rows = database.ask_server(ask).ok()?;
    let may: Vec<&str> = rows.iter().filter_map(|row| row.first()?.as_deref()).collect();
    let held = settings.iter().filter(|(_, setting)| may.contains(setting));
    Some(held.map(|(fact, setting)| format!("{fact}={setting}")).collect())
}

/// The same of MySQL, which has no list of them before 9: of others it says that a session has none of its own.
pub(crate) fn mysql_may_set(database: &mut Database) -> Option<Vec<String>> {
    let mut may = Vec::new();
    for (fact, setting) in mysql::SETTINGS {
        match database.rows(&format!("SELECT @@SESSION.{setting}")) {
            Ok(_) => may.push(format!("{fact}={setting}")),
            Err(why) if why.kind == failure::ERROR => {}
            Err(_) => return None,
        }
    }
    Some(may)
}

/// Says which settings a private copy of the server may be started with, and how large one is: of PostgreSQL and MariaDB on this machine.
pub(crate) fn note_copy(database: &mut Database, facts: &mut Facts) {
    let (folder, ask, settings): (_, _, &[(&str, &str)]) = match database.system() {
        System::Postgres => ("SHOW data_directory", POSTGRES_MAY_START_WITH, &POSTGRES),
        System::Mysql => ("SELECT @@datadir", MARIADB_MAY_START_WITH, &mysql::SETTINGS),
        System::Sqlite => return,
    };
    let may = may_set(database, ask, settings);
    let folder = database.server_text(folder).ok().flatten();
    let bytes = folder.and_then(|folder| copy::bytes(database, Path::new(&folder)).ok().flatten());
    // MariaDB's data folder tells it, to root and the server's own user: nobody else can copy it either.
    let may = may.filter(|_| bytes.is_some() || database.system() == System::Postgres);
    facts.note(MAY_COPY_WITH, may);
    facts.note(COPY_BYTES, bytes);
}

/// All of it. What a server does not know or does not tell is not there.
pub(crate) fn read(database: &mut Database, tables: u32) -> Result<Facts, SqlFailure> {
    let mut facts = Facts::default();
    let mut note = |name: &str, text: Option<String>| {
        let text = text.map(|text| sanitize_line(&text)).filter(|text| !text.is_empty());
        match text.as_ref().filter(|_| name.ends_with("_bytes")).and_then(|text| text.parse::<u64>().ok()) {
            Some(bytes) => facts.note(name, Some(bytes)),
            None => facts.note(name, text),
        }
    };
    match database.system() {
        System::Postgres => {
            let version = database.server_text("SHOW server_version")?;
            note("sql.server", version.map(|version| format!("PostgreSQL {version}")));
            let names: Vec<String> =
                POSTGRES.iter().map(|(_, setting)| format!("current_setting('{setting}', true)")).collect();
            let values = database.ask_server(&format!("SELECT {}", names.join(", ")))?;
            let values = values.into_iter().next().unwrap_or_default();
            for ((name, _), value) in POSTGRES.iter().zip(values) {
                note(name, value);
            }
            if tables > 0 {
                // Which tables these are, the session's own path says.
                let sum = |of: &str| {
                    let each =
                        |table: u32| format!("pg_catalog.{of}('{}'::pg_catalog.regclass)", crate::tables::name(table));
                    (0..tables).map(each).collect::<Vec<_>>().join(" OPERATOR(pg_catalog.+) ")
                };
                note("sql.tables_bytes", database.text(&format!("SELECT {}", sum("pg_total_relation_size")))?);
                // Others that speak its protocol may not count them.
                let dead = database.number(&format!("SELECT {}", sum("pg_stat_get_dead_tuples"))).ok().flatten();
                facts.note("sql.dead_rows", dead.and_then(|dead| u64::try_from(dead).ok()));
            }
            facts.note(MAY_SET, may_set(database, POSTGRES_MAY_SET, &POSTGRES));
            facts.note(SET, set(database, POSTGRES_SET));
        }
        System::Mysql => {
            let version = database.text("SELECT version()")?;
            let is_maria = version.as_ref().is_some_and(|version| version.to_lowercase().contains("mariadb"));
            note("sql.server", version.map(|version| if is_maria { version } else { format!("MySQL {version}") }));
            mysql::note_settings(&database.rows(&mysql::ask_settings())?, &mut facts);
            mysql::note_counted(&database.rows(&mysql::ask_counted())?, &mut facts);
            mysql::note_logs(&database.rows(mysql::LOGS)?, &mut facts);
            if tables > 0 {
                let names: Vec<String> = (0..tables).map(|table| format!("'{}'", crate::tables::name(table))).collect();
                let ask = format!(
                    "SELECT sum(data_length), sum(data_length + index_length) FROM information_schema.tables \
                     WHERE table_schema = database() AND table_name IN ({})",
                    names.join(", ")
                );
                // Some do not tell, which is no reason not to work on them.
                let row = database.rows(&ask).ok().and_then(|rows| rows.into_iter().next()).unwrap_or_default();
                let bytes = |place: usize| row.get(place)?.as_ref()?.parse::<u64>().ok().filter(|&bytes| bytes > 0);
                facts.note("sql.rows_bytes", bytes(0));
                facts.note("sql.tables_bytes", bytes(1));
            }
            let may = match is_maria {
                true => may_set(database, MARIADB_MAY_SET, &mysql::SETTINGS),
                false => mysql_may_set(database),
            };
            facts.note(MAY_SET, may);
            facts.note(SET, set(database, if is_maria { MARIADB_SET } else { MYSQL_SET }));
        }
        System::Sqlite => {
            note("sql.server", database.text("SELECT sqlite_version()")?.map(|version| format!("SQLite {version}")));
            for (name, pragma) in SQLITE {
                note(name, database.text(&format!("PRAGMA {pragma}"))?);
            }
            let pages = database.number("PRAGMA page_count")?.zip(database.number("PRAGMA page_size")?);
            note("sql.tables_bytes", pages.map(|(pages, bytes)| (pages * bytes).to_string()));
        }
    }
    Ok(facts)
}
