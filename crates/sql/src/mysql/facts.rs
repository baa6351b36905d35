//! What a MySQL or MariaDB server says of itself: its settings, and what it has counted since it was started.
//!
//! Both come as rows of a name and a value. A server that does not know a name leaves its row out: then nothing is known, not zero.

use duel_model::{Facts, sanitize_line};
use std::path::Path;

/// Settings that cost or save time, by the names of their facts. Where two have one name, a server has the one or the other.
pub(crate) const SETTINGS: [(&str, &str); 35] = [
    ("sql.isolation", "tx_isolation"),
    ("sql.isolation", "transaction_isolation"),
    ("sql.flush_at_commit", "innodb_flush_log_at_trx_commit"),
    ("sql.sync_binlog", "sync_binlog"),
    ("sql.log_bin", "log_bin"),
    ("sql.binlog_commit_wait_usec", "binlog_commit_wait_usec"),
    ("sql.binlog_commit_wait_count", "binlog_commit_wait_count"),
    ("sql.buffer_pool_bytes", "innodb_buffer_pool_size"),
    ("sql.flush_method", "innodb_flush_method"),
    ("sql.doublewrite", "innodb_doublewrite"),
    ("sql.log_file_bytes", "innodb_log_file_size"),
    ("sql.log_file_bytes", "innodb_redo_log_capacity"),
    ("sql.log_files", "innodb_log_files_in_group"),
    ("sql.page_bytes", "innodb_page_size"),
    ("sql.io_capacity", "innodb_io_capacity"),
    ("sql.adaptive_hash", "innodb_adaptive_hash_index"),
    ("sql.thread_concurrency", "innodb_thread_concurrency"),
    ("sql.lock_timeout_s", "innodb_lock_wait_timeout"),
    ("sql.query_cache", "query_cache_type"),
    ("sql.query_cache_bytes", "query_cache_size"),
    ("sql.thread_handling", "thread_handling"),
    ("sql.skip_name_resolve", "skip_name_resolve"),
    ("sql.general_log", "general_log"),
    ("sql.slow_query_log", "slow_query_log"),
    ("sql.performance_schema", "performance_schema"),
    ("sql.max_connections", "max_connections"),
    ("sql.read_only", "read_only"),
    ("sql.engine", "default_storage_engine"),
    ("sql.optimizer_switch", "optimizer_switch"),
    ("sql.sort_buffer_bytes", "sort_buffer_size"),
    ("sql.join_buffer_bytes", "join_buffer_size"),
    ("sql.tmp_table_bytes", "tmp_table_size"),
    ("sql.log_output", "log_output"),
    ("sql.long_query_s", "long_query_time"),
    ("sql.deadlock_detect", "innodb_deadlock_detect"),
];

/// What is counted, by the names of its facts. All grow, but for the threads and the length of the history (transactions whose old rows
/// are not purged yet), which are as they are at the moment.
pub(crate) const COUNTED: [(&str, &str); 25] = [
    ("mysql.uptime_s", "Uptime"),
    ("mysql.threads_running", "Threads_running"),
    ("mysql.threads_connected", "Threads_connected"),
    ("mysql.questions", "Questions"),
    ("mysql.pool_read_requests", "Innodb_buffer_pool_read_requests"),
    ("mysql.pool_reads", "Innodb_buffer_pool_reads"),
    ("mysql.pool_wait_free", "Innodb_buffer_pool_wait_free"),
    ("mysql.data_reads", "Innodb_data_reads"),
    ("mysql.data_read_bytes", "Innodb_data_read"),
    ("mysql.data_writes", "Innodb_data_writes"),
    ("mysql.data_written_bytes", "Innodb_data_written"),
    ("mysql.data_fsyncs", "Innodb_data_fsyncs"),
    ("mysql.log_fsyncs", "Innodb_os_log_fsyncs"),
    ("mysql.log_written_bytes", "Innodb_os_log_written"),
    ("mysql.log_waits", "Innodb_log_waits"),
    ("mysql.row_lock_waits", "Innodb_row_lock_waits"),
    ("mysql.row_lock_ms", "Innodb_row_lock_time"),
    ("mysql.deadlocks", "Innodb_deadlocks"),
    ("mysql.query_cache_hits", "Qcache_hits"),
    ("mysql.query_cache_inserts", "Qcache_inserts"),
    ("mysql.query_cache_prunes", "Qcache_lowmem_prunes"),
    ("mysql.threads_created", "Threads_created"),
    ("mysql.disk_tables_created", "Created_tmp_disk_tables"),
    ("mysql.slow_queries", "Slow_queries"),
    ("mysql.history_length", "Innodb_history_list_length"),
];

/// What asks for the settings: of duel's own session, for that is what load goes through.
pub(crate) fn ask_settings() -> String {
    asked("SESSION VARIABLES", &SETTINGS)
}

/// What asks for what is counted: of the whole server.
pub(crate) fn ask_counted() -> String {
    asked("GLOBAL STATUS", &COUNTED)
}

/// What asks where its logs are, and its data.
pub(crate) const LOGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('datadir', 'innodb_log_group_home_dir', 'log_bin', 'log_bin_basename')";

/// Says whether its logs lie in its data folder; nothing where it does not tell.
pub(crate) fn note_logs(rows: &[Vec<Option<String>>], facts: &mut Facts) {
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.first().is_some_and(|of| of.as_deref() == Some(name)))?;
        row.get(1)?.as_deref()
    };
    let Some((data, redo)) = of("datadir").map(Path::new).zip(of("innodb_log_group_home_dir")) else { return };
    let binary =
        of("log_bin_basename").filter(|_| of("log_bin") != Some("OFF")).and_then(|path| Path::new(path).parent());
    // Relative ones are within it, as `./` is.
    let is_here = |folder: &Path| data.join(folder).components().eq(data.components());
    let all_are = is_here(Path::new(redo)) && binary.is_none_or(is_here);
    facts.note("sql.logs", Some(if all_are { "in the data folder" } else { "elsewhere" }.to_owned()));
}

/// Notes settings as they are written.
pub(crate) fn note_settings(rows: &[Vec<Option<String>>], facts: &mut Facts) {
    for (name, value) in named(rows, &SETTINGS) {
        facts.note(name, Some(sanitize_line(value)).filter(|value| !value.is_empty()));
    }
}

/// Notes what is counted. What is no number is not known.
pub(crate) fn note_counted(rows: &[Vec<Option<String>>], facts: &mut Facts) {
    for (name, value) in named(rows, &COUNTED) {
        facts.note(name, value.trim().parse::<u64>().ok());
    }
}

fn asked(what: &str, names: &[(&str, &str)]) -> String {
    let names: Vec<String> = names.iter().map(|(_, name)| format!("'{name}'")).collect();
    format!("SHOW {what} WHERE Variable_name IN ({})", names.join(", "))
}

/// Values by the names of their facts. Servers differ in the case of names.
fn named<'a>(
    rows: &'a [Vec<Option<String>>],
    names: &'static [(&'static str, &'static str)],
) -> impl Iterator<Item = (&'static str, &'a str)> {
    rows.iter().filter_map(|row| match row.as_slice() {
        [Some(variable), Some(value)] => {
            let (name, _) = names.iter().find(|(_, known)| known.eq_ignore_ascii_case(variable))?;
            Some((*name, value.as_str()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Value;

    fn rows(pairs: &[(&str, &str)]) -> Vec<Vec<Option<String>>> {
        pairs.iter().map(|(name, value)| vec![Some((*name).to_owned()), Some((*value).to_owned())]).collect()
    }

    #[test]
    fn what_a_server_does_not_tell_is_not_known() {
        let mut facts = Facts::default();
        note_settings(
            &rows(&[("innodb_flush_log_at_trx_commit", "1"), ("tx_isolation", "\x1b[2J"), ("other", "x")]),
            &mut facts,
        );
        assert_eq!(facts.value("sql.flush_at_commit").map(ToString::to_string).as_deref(), Some("1"));
        assert_eq!(facts.value("sql.isolation").map(ToString::to_string).as_deref(), Some("\u{fffd}[2J"));
        assert_eq!(facts.value("sql.sync_binlog"), None);
        note_settings(&[vec![Some("sync_binlog".into()), None], vec![], vec![None, None]], &mut facts);
        assert_eq!(facts.value("sql.sync_binlog"), None);
    }

    #[test]
    fn logs_outside_of_the_data_folder_are_told() {
        let told = |pairs: &[(&str, &str)]| {
            let mut facts = Facts::default();
            note_logs(&rows(pairs), &mut facts);
            facts.text("sql.logs").map(str::to_owned)
        };
        let (data, redo) = (("datadir", "/var/lib/mysql/"), "innodb_log_group_home_dir");
        assert_eq!(told(&[data, (redo, "./")]).as_deref(), Some("in the data folder"));
        assert_eq!(told(&[data, (redo, "")]).as_deref(), Some("in the data folder"));
        assert_eq!(told(&[data, (redo, "/var/lib/mysql")]).as_deref(), Some("in the data folder"));
        assert_eq!(told(&[data, (redo, "/logs")]).as_deref(), Some("elsewhere"));
        let binary = |path, is_on| told(&[data, (redo, "./"), ("log_bin", is_on), ("log_bin_basename", path)]);
        assert_eq!(binary("/var/lib/mysql/binlog", "ON").as_deref(), Some("in the data folder"));
        assert_eq!(binary("/logs/binlog", "ON").as_deref(), Some("elsewhere"));
        assert_eq!(binary("/logs/binlog", "OFF").as_deref(), Some("in the data folder"));
        assert_eq!(told(&[data]), None);
    }

    #[test]
    fn what_is_no_number_is_not_counted() {
        let mut facts = Facts::default();
        note_counted(&rows(&[("UPTIME", "10"), ("Qcache_hits", "-1"), ("Questions", "")]), &mut facts);
        assert_eq!(facts.value("mysql.uptime_s"), Some(&Value::Number(10)));
        assert_eq!((facts.value("mysql.query_cache_hits"), facts.value("mysql.questions")), (None, None));
    }

    #[test]
    fn all_are_declared() {
        for (name, _) in SETTINGS.into_iter().chain(COUNTED) {
            assert!(crate::SCHEMA.facts.iter().any(|fact| fact.name == name), "{name}");
        }
    }
}
