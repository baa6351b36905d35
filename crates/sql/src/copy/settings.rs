//! The configuration of a private copy: that of its server, without what leads out of the copy.

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
const ASK: &str = "SELECT name, reset_val FROM pg_settings WHERE context <> 'internal' AND (name = 'wal_buffers' OR \
                   source IN ('configuration file', 'command line', 'environment variable', 'global'))";

/// The lines of its configuration file. The outer `Err`: it could not be asked; the inner one: why there can be no copy.
pub(super) fn lines(
    database: &mut Database,
    folder: &Path,
    change: Option<&CopySetting>,
) -> Result<Result<Vec<String>, WorkloadError>, SqlFailure> {
    let mut lines = Vec::new();
    for row in database.rows(ASK)? {
        let [Some(name), Some(value)] = row.as_slice() else { continue };
        if name.ends_with("_preload_libraries")
            && let Some(library) = unknown_library(value)
        {
            return Ok(Err(WorkloadError(format!(
                "its server loads {}, which may have work of its own to do, and a copy would do it, too",
                sanitize_line(library)
            ))));
        }
        if stays_with_copy(name) {
            lines.push(line(name, value));
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
    Ok(Ok(lines))
}

/// Whether a setting is one of the copy, too: it says nothing about where the server is, where it writes to beside its data, and
/// with which other servers and programs it works.
fn stays_with_copy(name: &str) -> bool {
    const APART: [&str; 17] = [
        "listen_addresses",
        "port",
        "cluster_name",
        "data_directory",
        "stats_temp_directory",
        "temp_tablespaces",
        "default_tablespace",
        "synchronous_standby_names",
        "logging_collector",
        "log_destination",
        "log_directory",
        "log_filename",
        "max_logical_replication_workers",
        "event_source",
        "archive_mode",
        "archive_library",
        "restore_command",
    ];
    const BEGIN: [&str; 9] =
        ["unix_socket", "bonjour", "ssl", "krb", "primary_", "recovery_", "syslog", "archive_", "gss"];
    const END: [&str; 2] = ["_file", "_command"];
    !APART.contains(&name)
        && !BEGIN.iter().any(|begin| name.starts_with(begin))
        && !END.iter().any(|end| name.ends_with(end))
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
        for apart in [
            "archive_command",
            "archive_library",
            "archive_cleanup_command",
            "primary_conninfo",
            "primary_slot_name",
            "recovery_target_time",
            "restore_command",
            "synchronous_standby_names",
            "listen_addresses",
            "unix_socket_directories",
            "ssl_key_file",
            "external_pid_file",
            "log_directory",
            "ssl_passphrase_command",
            "hba_file",
        ] {
            assert!(!stays_with_copy(apart), "{apart}");
        }
        for kept in ["shared_buffers", "fsync", "wal_sync_method", "log_statement", "max_connections", "lc_messages"] {
            assert!(stays_with_copy(kept), "{kept}");
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
