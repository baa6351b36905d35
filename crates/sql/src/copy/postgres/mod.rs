//! Private copies of PostgreSQL: `pg_basebackup` makes them.

pub(crate) mod settings;

use super::keeper::Making;
use super::room::Sizes;
use super::warm::{LEAST_PATIENCE_NS, Warmth};
use super::{Maker, PROCESSES_BYTES, Settings, Source, encoded, removal_of, shown};
use crate::address::{Place, ServerAddress, SslMode};
use crate::database::Database;
use crate::failure;
use crate::kind;
use crate::machine::Runs;
use crate::wire::SqlFailure;
use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{CopySetting, MILLISECOND_NS, Nanos, SECOND_NS, sanitize_line, shell_word};
use std::fs;
use std::path::{Path, PathBuf};

/// What a backup has beside the databases: some segments of the log, which are 16 MB each, and what is common to all databases.
const BESIDE_BYTES: u64 = 128 << 20;

/// Tables with rows that no backup has.
pub(crate) const UNLOGGED: &str =
    "SELECT count(*) FROM pg_class WHERE relpersistence = 'u' AND relkind IN ('r', 'm') AND pg_relation_size(oid) > 0";

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

pub(super) struct Postgres;

impl Maker for Postgres {
    fn asking(&self, server: &ServerAddress) -> ServerAddress {
        among_own_names(server.clone())
    }

    fn refuses(&self, database: &mut Database, _: &Path) -> Result<Option<String>, SqlFailure> {
        let refused = [
            ("SELECT pg_is_in_recovery()::int", "its server is a standby"),
            (
                "SELECT count(*) FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')",
                "its server has tablespaces, which lie outside of its data folder",
            ),
            (UNLOGGED, "its database has unlogged tables, whose rows no copy has"),
        ];
        for (ask, why) in refused {
            if database.number(ask)? != Some(0) {
                return Ok(Some(why.to_owned()));
            }
        }
        Ok(None)
    }

    fn program(&self, runs: &Runs) -> Result<PathBuf, String> {
        let program = runs.programs.join("pg_basebackup");
        let missing = || format!("there is no pg_basebackup in {}", shown(&runs.programs));
        program.exists().then_some(program).ok_or_else(missing)
    }

    fn bytes(&self, database: &mut Database, _: &Path) -> Result<Option<u64>, SqlFailure> {
        let of_databases = database.server_text("SELECT sum(pg_database_size(oid)) FROM pg_database")?;
        Ok(of_databases.and_then(|bytes| bytes.parse::<u64>().ok()).map(|bytes| bytes + BESIDE_BYTES))
    }

    fn sizes(&self, database: &mut Database, change: Option<&CopySetting>) -> Result<Sizes, WorkloadError> {
        let ask = "SELECT current_setting('shared_buffers'), current_setting('max_wal_size'), \
                   coalesce(current_setting('wal_keep_size', true), '0')";
        let row = database.rows(ask).map_err(|why| WorkloadError(why.text))?.into_iter().next().unwrap_or_default();
        let of = |place: usize, name: &str| {
            let changed = change.filter(|set| set.name == name).map(|set| &set.value);
            let text = changed.or(row.get(place).and_then(Option::as_ref)).map_or("", String::as_str);
            size_bytes(text).ok_or_else(|| {
                WorkloadError(format!("how much its {name} of '{}' is cannot be told", sanitize_line(text)))
            })
        };
        let (blocks, log, kept) = (of(0, "shared_buffers")?, of(1, "max_wal_size")?, of(2, "wal_keep_size")?);
        // The log grows beyond its size while a checkpoint is still under way.
        let log_bytes = log.saturating_add(log / 5).saturating_add(kept);
        Ok(Sizes { memory_bytes: blocks.saturating_add(PROCESSES_BYTES), log_bytes })
    }

    fn log_is_elsewhere(&self, _: &mut Database, data: &Path) -> Result<bool, SqlFailure> {
        Ok(!fs::symlink_metadata(data.join("pg_wal")).is_ok_and(|log| log.is_dir()))
    }

    fn removal(&self, left: &Path, runs: &Runs, as_owner: &str) -> String {
        let word = |path: PathBuf| shell_word(&shown(&path));
        // It refuses root, and whatever stands in the folder may be chosen by the owner.
        let (program, data) = (word(runs.programs.join("pg_ctl")), word(left.join("data")));
        format!("{as_owner}{program} stop -m immediate -D {data}; {}", removal_of(left, as_owner))
    }

    fn settings(
        &self,
        database: &mut Database,
        folder: &Path,
        change: Option<&CopySetting>,
    ) -> Result<Result<Settings, WorkloadError>, SqlFailure> {
        settings::read(database, folder, change)
    }

    fn value_of(&self, setting: &str) -> String {
        format!("SHOW {setting}")
    }

    fn making(&self, _: &mut Database, server: &ServerAddress, source: &Source) -> Result<Making, SqlFailure> {
        let (host, port) = reached_at(server);
        let words = [source.runs.programs.clone().into(), host.into(), port.to_string().into(), (&server.user).into()];
        let functions = include_str!("keeper.sh");
        Ok(Making { functions, words: words.to_vec(), variables: variables(server) })
    }

    fn socket(&self, folder: &Path) -> PathBuf {
        folder.join(format!(".s.PGSQL.{}", settings::PORT))
    }

    fn address(&self, user: &str, database: &str, folder: &Path) -> String {
        let [user, database, folder] = [user, database, &folder.to_string_lossy()].map(encoded);
        format!("postgres://{user}@/{database}?host={folder}&port={}", settings::PORT)
    }

    /// A superuser, whom the copy trusts: it has no passwords.
    fn reader(&self, database: &mut Database, copied: ServerAddress) -> Result<ServerAddress, SqlFailure> {
        let superuser = database.text("SELECT rolname FROM pg_roles WHERE oid = 10")?;
        Ok(among_own_names(ServerAddress { user: superuser.unwrap_or_else(|| copied.user.clone()), ..copied }))
    }

    fn warm(&self, reader: &ServerAddress, patience_ns: Nanos) -> Warmth {
        warm(reader, patience_ns)
    }

    fn rewrite(&self, user: &ServerAddress, reader: &ServerAddress, patience_ns: Nanos) -> Result<(), SqlFailure> {
        rewrite(user, patience_ns)?;
        // What was written is brought to the disk before load, and not under it.
        let (mut client, ..) = kind::connect(reader, 30 * SECOND_NS)?;
        client.be_patient(patience_ns);
        client.run("CHECKPOINT").map(|_| ())
    }
}

/// One of the tables that somebody else made. Those of extensions are none of load.
const OF_OTHERS: &str = "SELECT c.oid::regclass FROM pg_class c WHERE relkind IN ('r', 'm') AND relpersistence <> 't' \
                         AND c.oid >= 16384 AND pg_get_userbyid(relowner) <> current_user \
                         AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'e') LIMIT 1";
/// A sort takes so much memory, of which its server may allow gigabytes, and has no helpers (before 11 there were none).
const SORTS: &str = "SELECT set_config(name, CASE name WHEN 'maintenance_work_mem' THEN '64MB' ELSE '0' END, false) FROM pg_settings \
                     WHERE name IN ('maintenance_work_mem', 'max_parallel_maintenance_workers')";
/// What writes each of them anew, as PostgreSQL itself quotes it. Without a primary key there is no order.
const REWRITES: &str = "SELECT CASE WHEN i.oid IS NULL THEN format('VACUUM FULL %s', c.oid::regclass) \
                        ELSE format('CLUSTER %s USING %I', c.oid::regclass, i.relname) END, format('VACUUM %s', c.oid::regclass) \
                        FROM pg_class c LEFT JOIN pg_index x ON x.indrelid = c.oid AND x.indisprimary \
                        LEFT JOIN pg_class i ON i.oid = x.indexrelid \
                        WHERE c.relkind IN ('r', 'm') AND c.relpersistence <> 't' AND c.oid >= 16384 \
                        AND pg_get_userbyid(c.relowner) = current_user";

/// What an old transaction may still want to see cannot be removed, and those that were prepared are in the copy, too.
const ROLLS_BACK: &str =
    "SELECT format('ROLLBACK PREPARED %L', gid) FROM pg_prepared_xacts WHERE database = current_database()";

/// Writes the tables of a copy anew, each in the order of its primary key. The server gives it up after this time.
pub(crate) fn rewrite(user: &ServerAddress, patience_ns: Nanos) -> Result<(), SqlFailure> {
    let deadline_ns = monotonic_ns() + patience_ns;
    let (mut client, ..) = kind::connect(&among_own_names(user.clone()), 30 * SECOND_NS)?;
    client.be_patient(patience_ns + LEAST_PATIENCE_NS);
    let mut database = Database::Server(Box::new(client), user.system);
    if let Some(table) = database.text(OF_OTHERS)? {
        let text = format!("{} is not a table of the address's user", sanitize_line(&table));
        return Err(SqlFailure::new(failure::ERROR, text));
    }
    for row in database.rows(ROLLS_BACK)? {
        if let Some(rolls_back) = row.into_iter().next().flatten() {
            database.run(&rolls_back)?;
        }
    }
    database.rows(SORTS)?;
    for row in database.rows(REWRITES)? {
        // A table that was just written anew has no map of blocks whose rows all may see: scans of an index alone go by it.
        for statement in row.into_iter().flatten() {
            let left_ms = deadline_ns.saturating_sub(monotonic_ns()) / MILLISECOND_NS;
            database.run(&format!("SET statement_timeout = {}", left_ms.max(1)))?;
            database.run(&statement)?;
        }
    }
    Ok(())
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

/// The same server for sessions that ask and do something for duel itself: names mean PostgreSQL's own functions and operators, whatever
/// else the database's owner has called so, who would have it run with the rights of the session's user. Sessions have that from
/// their beginning, and it is stronger than what is set for the database and its users.
pub(crate) fn among_own_names(server: ServerAddress) -> ServerAddress {
    let path = ("search_path".to_owned(), "pg_catalog, pg_temp".to_owned());
    ServerAddress { session: vec![path], ..server }
}

/// A size as PostgreSQL writes it, such as `128MB`: a kB of 1024 bytes. Without a unit nobody knows of what.
fn size_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match text.get(digits.len()..)? {
        "" if digits == "0" => 1,
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(scale)
}

/// Where its own clients would be told to connect to.
fn reached_at(server: &ServerAddress) -> (String, u16) {
    match &server.place {
        Place::Tcp { host, port } => (host.clone(), *port),
        Place::Unix(path) => {
            let folder = path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
            let port = path.extension().and_then(|port| port.to_string_lossy().parse().ok());
            (folder, port.unwrap_or(settings::PORT))
        }
    }
}

/// What libpq is told beside that.
fn variables(server: &ServerAddress) -> Vec<(&'static str, String)> {
    let mode = match server.tls {
        SslMode::Disable => "disable",
        SslMode::Prefer => "prefer",
        SslMode::Require => "require",
        SslMode::VerifyFull => "verify-full",
    };
    let ca = server.ca.as_ref().map(|ca| ("PGSSLROOTCERT", ca.to_string_lossy().into_owned()));
    [("PGSSLMODE", mode.to_owned()), ("PGCONNECT_TIMEOUT", "30".to_owned())].into_iter().chain(ca).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Address, parse};

    #[test]
    fn sizes_are_read_as_postgresql_writes_them() {
        let read = ["0", "8kB", "128MB", "1GB", "2TB", "1B"].map(size_bytes);
        assert_eq!(read, [0, 8 << 10, 128 << 20, 1 << 30, 2 << 40, 1].map(Some));
        for unknown in ["", "16384", "-1", "1 GB", "1gb", "99999999999TB", "1GB; x", "GB"] {
            assert_eq!(size_bytes(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn the_address_of_a_copy_is_read_as_it_is_meant() {
        let folder = Path::new("/var/lib/p&g/duel-copy-1-0");
        let Ok(Address::Server(server)) = parse(&Postgres.address("u@x", "d b?", folder)) else { panic!() };
        assert_eq!((server.user.as_str(), server.database.as_str()), ("u@x", "d b?"));
        assert_eq!(server.place, Place::Unix(Postgres.socket(folder)));
        assert_eq!(Postgres.socket(folder), Path::new("/var/lib/p&g/duel-copy-1-0/.s.PGSQL.5432"));
    }

    #[test]
    fn what_removes_a_copy_is_done_by_a_shell_as_it_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let around = folder.path().join("a b;$(touch x)'`");
        let (left, programs) = (around.join("duel-copy-4194305-3"), around.join("bin"));
        fs::create_dir_all(left.join("data")).unwrap();
        fs::create_dir(&programs).unwrap();
        fs::write(programs.join("pg_ctl"), "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.said\"\n").unwrap();
        fs::set_permissions(programs.join("pg_ctl"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let runs = Runs { program: programs.join("postgres"), programs: programs.clone(), owner: (7, 7), cpus: None };
        let line = Postgres.removal(&left, &runs, "");
        assert!(std::process::Command::new("sh").args(["-c", &line]).status().unwrap().success(), "{line}");
        let said = fs::read_to_string(programs.join("pg_ctl.said")).unwrap();
        assert_eq!(said, format!("stop\n-m\nimmediate\n-D\n{}\n", left.join("data").display()));
        assert!(!left.exists() && around.exists());
        let as_owner = Postgres.removal(&left, &runs, "setpriv --reuid=7 -- ");
        assert_eq!(as_owner.matches("setpriv --reuid=7 -- ").count(), 2, "{as_owner}");
    }
}
