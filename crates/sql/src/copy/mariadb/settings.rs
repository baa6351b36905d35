//! The options of a private copy of a MariaDB: those of its server, without what leads out of the copy.

use crate::copy::Settings;
use crate::database::Database;
use crate::wire::SqlFailure;
use duel_load::WorkloadError;
use duel_model::{CopySetting, sanitize_line};
use std::collections::BTreeMap;
use std::path::Path;

/// Libraries that do nothing by themselves: ways to log in, compression of pages, checks of passwords, and what only tells something. Another
/// one may have jobs of its own, or lead to other servers, and a copy would do that once more.
const HARMLESS_LIBRARIES: [&str; 19] = [
    "auth_ed25519",
    "auth_parsec",
    "auth_socket",
    "auth_pam",
    "auth_pam_v1",
    "auth_gssapi",
    "provider_bzip2",
    "provider_lz4",
    "provider_lzma",
    "provider_lzo",
    "provider_snappy",
    "simple_password_check",
    "cracklib_password_check",
    "password_reuse_check",
    "metadata_lock_info",
    "query_response_time",
    "query_cache_info",
    "locales",
    "disks",
];

const LIBRARIES: &str = "SELECT DISTINCT plugin_library, plugin_type = 'ENCRYPTION' FROM information_schema.all_plugins \
                         WHERE plugin_library IS NOT NULL AND plugin_status <> 'NOT INSTALLED'";

/// Settings of the server as it was started and set up since, of those that it can be started with under the same name. What it finds out by
/// itself, a copy finds out, too.
const ASK: &str = "SELECT lower(variable_name), global_value, (global_value <=> default_value) = 0 FROM information_schema.system_variables \
                   WHERE global_value_origin NOT IN ('COMPILE-TIME', 'AUTO') AND command_line_argument IS NOT NULL";

/// Variables with the options that set them, which are called otherwise: of these `system_variables` names none.
const OTHERWISE_CALLED: [(&str, &str); 2] =
    [("tx_isolation", "transaction_isolation"), ("time_zone", "default_time_zone")];

/// A server that is started with any of these logs has a mark behind its version, and keeps it when they are switched: a copy of it is of the
/// same version.
const LOGS: &str = "SELECT version(), @@GLOBAL.log_bin, @@GLOBAL.general_log, @@GLOBAL.slow_query_log";
const LOGS_MARK: &str = "-log";

/// MariaDB reads files of options in pieces of 4,095 bytes, and takes what is beyond for a line of its own: whoever may set a long value
/// could so have a copy started with any option.
const MOST_LINE_BYTES: usize = 4_000;

/// Those of a copy in this folder. The outer `Err`: its server could not be asked; the inner one: why there can be no copy.
pub(crate) fn read(
    database: &mut Database,
    folder: &Path,
    change: Option<&CopySetting>,
) -> Result<Result<Settings, WorkloadError>, SqlFailure> {
    let mut settings = Settings { lines: vec!["[mysqld]".to_owned()], ..Settings::default() };
    for row in database.rows(LIBRARIES)? {
        let [Some(library), is_encryption] = row.as_slice() else { continue };
        let name = sanitize_line(library);
        if is_encryption.as_deref() == Some("1") {
            return Ok(Err(WorkloadError(format!(
                "its server loads {name}, which encrypts what it writes, and the keys are not duel's to take"
            ))));
        }
        if !is_harmless(library) {
            return Ok(Err(WorkloadError(format!(
                "its server loads {name}, which may have work of its own to do, and a copy would do it, too"
            ))));
        }
        settings.lines.push(line("plugin_load_add", library));
    }
    for row in database.rows(ASK)? {
        let [Some(name), Some(value), differs] = row.as_slice() else { continue };
        if is_of_place(name) {
            continue;
        }
        if leads_out(name) {
            if differs.as_deref() == Some("1") {
                settings.left_out.push(sanitize_line(name));
            }
            continue;
        }
        // Another version's name for it would be no reason not to start; what was not taken is looked for afterwards.
        settings.lines.push(line(&format!("loose_{name}"), value));
        if change.is_none_or(|set| set.name != *name) {
            settings.told.push((name.clone(), value.clone()));
        }
    }
    for (variable, option) in OTHERWISE_CALLED {
        let ask = format!("SELECT @@GLOBAL.{variable}");
        if let Some(value) = database.text(&ask)?.filter(|value| value != "SYSTEM") {
            settings.lines.push(line(option, &value));
            settings.told.push((variable.to_owned(), value));
        }
    }
    // What its sessions and statements are watched for is in no variable.
    if database.text("SELECT @@GLOBAL.performance_schema")?.as_deref() == Some("1") {
        settings.left_out.push("performance_schema_instrument".to_owned());
    }
    settings.lines.extend(own(database, folder, change)?);
    // The last line of a name counts.
    settings.lines.extend(change.map(|set| line(&set.name, &set.value)));
    if let Some(long) = settings.lines.iter().find(|line| line.len() > MOST_LINE_BYTES) {
        let name = long.split(' ').next().unwrap_or_default();
        return Ok(Err(WorkloadError(format!(
            "its setting {} is longer than a line of a file of options may be",
            sanitize_line(name.trim_start_matches("loose_"))
        ))));
    }
    Ok(Ok(settings))
}

/// What every copy has for itself.
fn own(database: &mut Database, folder: &Path, change: Option<&CopySetting>) -> Result<Vec<String>, SqlFailure> {
    let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let is_on = |value: &str| matches!(value, "1" | "ON");
    let row = database.rows(LOGS)?.into_iter().next().unwrap_or_default();
    let of = |place: usize| row.get(place).and_then(Option::as_deref).unwrap_or_default();
    let will_be_on = |place: usize, name: &str| {
        is_on(change.filter(|set| set.name == name).map_or(of(place), |set| set.value.as_str()))
    };
    let has_log = is_on(of(1));
    let has_any_log = has_log || will_be_on(2, "general_log") || will_be_on(3, "slow_query_log");
    let pairs = [
        ("datadir", at("data")),
        ("socket", at("socket")),
        ("pid_file", at("pid")),
        ("tmpdir", at("tmp")),
        // Statements that write files write them there, or fail.
        ("secure_file_priv", at("tmp")),
        // In the data folder.
        ("general_log_file", "general.log".to_owned()),
        ("slow_query_log_file", "slow.log".to_owned()),
        ("event_scheduler", "OFF".to_owned()),
        // What its server had in memory at another time; duel reads what it needs.
        ("innodb_buffer_pool_load_at_startup", "OFF".to_owned()),
        ("innodb_buffer_pool_dump_at_shutdown", "OFF".to_owned()),
        ("loose_feedback", "OFF".to_owned()),
    ];
    let mut lines: Vec<String> = pairs.iter().map(|(name, value)| line(name, value)).collect();
    lines.extend(["skip_networking", "skip_slave_start"].map(str::to_owned));
    lines.push(if has_log { line("log_bin", "binlog") } else { "skip_log_bin".to_owned() });
    if has_any_log != of(0).ends_with(LOGS_MARK) {
        lines.push(line("version", of(0)));
    }
    Ok(lines)
}

/// Which of these settings a server has otherwise.
pub(super) fn unlike(database: &mut Database, told: &[(String, String)]) -> Result<Vec<String>, SqlFailure> {
    let rows = database.rows("SELECT lower(variable_name), global_value FROM information_schema.system_variables")?;
    let has: BTreeMap<&str, &str> = rows
        .iter()
        .filter_map(|row| match row.as_slice() {
            [Some(name), Some(value)] => Some((name.as_str(), value.as_str())),
            _ => None,
        })
        .collect();
    let unlike = told.iter().filter(|(name, value)| has.get(name.as_str()) != Some(&value.as_str()));
    Ok(unlike.map(|(name, _)| sanitize_line(name)).collect())
}

/// Whether a setting says where a server is, how it is reached and what it is called there: a copy has its own, and whoever is
/// connected notices nothing of that, or is told that the copy is reached otherwise.
fn is_of_place(name: &str) -> bool {
    const ARE: [&str; 21] = [
        "bind_address",
        "secure_file_priv",
        "port",
        "extra_port",
        "socket",
        "datadir",
        "tmpdir",
        "innodb_tmpdir",
        "innodb_data_home_dir",
        "innodb_log_group_home_dir",
        "innodb_undo_directory",
        "innodb_temp_data_file_path",
        "innodb_buffer_pool_filename",
        "innodb_buffer_pool_load_at_startup",
        "innodb_buffer_pool_dump_at_shutdown",
        "aria_log_dir_path",
        "log_error",
        "server_id",
        "skip_networking",
        "require_secure_transport",
        "core_file",
    ];
    const BEGIN: [&str; 3] = ["ssl_", "tls_", "report_"];
    // That of words to leave out of a full text is read only.
    let is_file = name.ends_with("_file") && name != "ft_stopword_file" && name != "init_file";
    ARE.contains(&name) || BEGIN.iter().any(|begin| name.starts_with(begin)) || is_file
}

/// Whether a setting leads a server out of its data, to other servers and commands. A copy is without it, and may be the faster for that.
fn leads_out(name: &str) -> bool {
    const ARE: [&str; 6] =
        ["event_scheduler", "init_file", "init_slave", "log_slave_updates", "sync_master_info", "max_relay_log_size"];
    const BEGIN: [&str; 9] =
        ["slave_", "replicate_", "relay_", "sync_relay_", "rpl_", "master_", "wsrep_", "feedback_", "gtid_"];
    // Folders and addresses that a later version may know, and nobody has looked at.
    const PLACES: [&str; 4] = ["_dir", "_directory", "_path", "_url"];
    const LOOKED_AT: [&str; 3] = ["plugin_dir", "character_sets_dir", "lc_messages_dir"];
    let is_unknown_place = PLACES.iter().any(|end| name.ends_with(end)) && !LOOKED_AT.contains(&name);
    ARE.contains(&name) || BEGIN.iter().any(|begin| name.starts_with(begin)) || is_unknown_place
}

fn is_harmless(library: &str) -> bool {
    HARMLESS_LIBRARIES.contains(&library.strip_suffix(".so").unwrap_or(library))
}

/// A line of a file of options.
fn line(name: &str, value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            _ => escaped.push(c),
        }
    }
    format!("{name} = \"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_a_copy_is_not_set_in_it() {
        let out = [
            "event_scheduler",
            "init_file",
            "rpl_semi_sync_master_enabled",
            "slave_parallel_threads",
            "relay_log",
            "wsrep_cluster_address",
            "replicate_do_db",
            "gtid_strict_mode",
            "binlog_directory",
            "redirect_url",
        ];
        let of_place = [
            "bind_address",
            "socket",
            "pid_file",
            "general_log_file",
            "slow_query_log_file",
            "ssl_key",
            "innodb_log_group_home_dir",
            "tmpdir",
            "log_error",
            "secure_file_priv",
        ];
        assert!(out.iter().all(|name| leads_out(name)) && of_place.iter().all(|name| is_of_place(name)));
        for kept in [
            "innodb_flush_log_at_trx_commit",
            "sync_binlog",
            "innodb_file_per_table",
            "innodb_log_file_size",
            "plugin_dir",
            "init_connect",
            "general_log",
        ] {
            assert!(!leads_out(kept) && !is_of_place(kept), "{kept}");
        }
    }

    #[test]
    fn no_value_ends_its_line_or_its_quotes() {
        assert_eq!(line("a", "it\"s \\ \n # x"), r#"a = "it\"s \\ \n # x""#);
    }

    #[test]
    fn a_library_with_jobs_of_its_own_is_not_started_once_more() {
        assert!(is_harmless("auth_ed25519.so") && is_harmless("provider_lz4.so"));
        assert!(
            ["server_audit.so", "ha_spider.so", "ha_federatedx.so", "handlersocket.so"]
                .iter()
                .all(|of| !is_harmless(of))
        );
    }
}
