//! The configuration of a private copy of a PostgreSQL: that of its server, without what leads out of the copy.

use crate::copy::Settings;
use crate::database::Database;
use crate::wire::SqlFailure;
use duel_load::WorkloadError;
use duel_model::{CopySetting, sanitize_line};
use std::path::Path;

/// The port by which its socket is called; it listens on no network.
pub(super) const PORT: u16 = 5432;

/// Libraries that do nothing by themselves. Another one may have jobs of its own, which a copy would do once more.
const HARMLESS_LIBRARIES: [&str; 8] = [
    "pg_stat_statements",
    "auto_explain",
    "pg_prewarm",
    "passwordcheck",
    "auth_delay",
    "pg_stat_kcache",
    "pg_qualstats",
    "pg_wait_sampling",
];

/// Settings of the server as it was started and set up. Those of databases and users are copied with them; `wal_buffers` follows another
/// one where nobody sets it, and only one setting is to change.
const ASK: &str = "SELECT name, reset_val, (reset_val IS DISTINCT FROM boot_val)::int FROM pg_settings WHERE context <> 'internal' AND (name = 'wal_buffers' OR \
                   source IN ('configuration file', 'command line', 'environment variable', 'global'))";

/// Those of a copy in this folder. The outer `Err`: its server could not be asked; the inner one: why there can be no copy.
pub(crate) fn read(
    database: &mut Database,
    folder: &Path,
    change: Option<&CopySetting>,
) -> Result<Result<Settings, WorkloadError>, SqlFailure> {
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    for row in database.rows(ASK)? {
        let [Some(name), Some(value), is_set] = row.as_slice() else { continue };
        if name.ends_with("_preload_libraries")
            && let Some(library) = unknown_library(value)
        {
            return Ok(Err(WorkloadError(format!(
                "its server loads {}, which may have work of its own to do, and a copy would do it, too",
                sanitize_line(library)
            ))));
        }
        if !leads_out(name) && !is_of_place(name) {
            lines.push(line(name, value));
        } else if !is_of_place(name) && is_set.as_deref() == Some("1") {
            left_out.push(sanitize_line(name));
        }
    }
    let own = [
        ("listen_addresses", String::new()),
        ("port", PORT.to_string()),
        ("unix_socket_directories", folder.to_string_lossy().into_owned()),
        // Subscriptions would take changes from other servers.
        ("max_logical_replication_workers", "0".to_owned()),
    ];
    lines.extend(own.iter().map(|(name, value)| line(name, value)));
    // The last line of a name counts.
    lines.extend(change.map(|set| line(&set.name, &set.value)));
    Ok(Ok(Settings { lines, left_out, told: Vec::new() }))
}

/// Whether a setting says where a server is, how it is reached and what it is called there: a copy has its own, and whoever is
/// connected notices nothing of that, or is told that the copy is reached otherwise.
fn is_of_place(name: &str) -> bool {
    const ARE: [&str; 8] = [
        "listen_addresses",
        "port",
        "cluster_name",
        "data_directory",
        "stats_temp_directory",
        "log_directory",
        "log_filename",
        "event_source",
    ];
    const BEGIN: [&str; 5] = ["unix_socket", "bonjour", "ssl", "krb", "gss"];
    ARE.contains(&name) || BEGIN.iter().any(|begin| name.starts_with(begin)) || name.ends_with("_file")
}

/// Whether a setting leads a server out of its data, to other servers, programs and logs. A copy is without it, and may be the
/// faster for that.
fn leads_out(name: &str) -> bool {
    const ARE: [&str; 6] = [
        "temp_tablespaces",
        "default_tablespace",
        "synchronous_standby_names",
        "logging_collector",
        "log_destination",
        "max_logical_replication_workers",
    ];
    const BEGIN: [&str; 4] = ["primary_", "recovery_", "syslog", "archive_"];
    ARE.contains(&name) || BEGIN.iter().any(|begin| name.starts_with(begin)) || name.ends_with("_command")
}

/// The first library of a list that is not known to be harmless.
fn unknown_library(list: &str) -> Option<&str> {
    let names = list.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty());
    names.map(|name| name.strip_prefix("$libdir/").unwrap_or(name)).find(|name| !HARMLESS_LIBRARIES.contains(name))
}

/// A line of PostgreSQL's configuration file.
fn line(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('\'', "''").replace('\n', "\\n").replace('\r', "\\r");
    format!("{name} = '{value}'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_a_copy_is_not_set_in_it() {
        let out = [
            "archive_command",
            "archive_library",
            "archive_mode",
            "archive_cleanup_command",
            "primary_conninfo",
            "primary_slot_name",
            "recovery_target_time",
            "restore_command",
            "synchronous_standby_names",
            "log_destination",
            "ssl_passphrase_command",
        ];
        let of_place = [
            "listen_addresses",
            "unix_socket_directories",
            "ssl_key_file",
            "external_pid_file",
            "log_directory",
            "hba_file",
            "ssl",
        ];
        assert!(out.iter().all(|name| leads_out(name)) && of_place.iter().all(|name| is_of_place(name)));
        for kept in ["shared_buffers", "fsync", "wal_sync_method", "log_statement", "max_connections", "lc_messages"] {
            assert!(!leads_out(kept) && !is_of_place(kept), "{kept}");
        }
    }

    #[test]
    fn no_value_ends_its_line_or_its_quotes() {
        assert_eq!(line("a", "it's \\ \n x"), r"a = 'it''s \\ \n x'");
    }

    #[test]
    fn a_library_with_jobs_of_its_own_is_not_started_once_more() {
        assert_eq!(unknown_library("pg_stat_statements, \"auto_explain\""), None);
        assert_eq!(unknown_library("pg_stat_statements,$libdir/pg_cron"), Some("pg_cron"));
        assert_eq!(unknown_library(""), None);
    }
}
