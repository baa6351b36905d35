//! What servers count of themselves, as they are asked for it and as they answer.

use crate::client::Rows;
use crate::schema::counter;
use duel_model::{Counter, Id, MILLISECOND_NS};
use std::collections::BTreeMap;

/// What PostgreSQL tells of a database and of its log, in the order of [`POSTGRES_COUNTERS`]; the second where it counts flushes
/// elsewhere (from 18 on), the third where it has no table for its log (before 14). Reads are timed where that is switched on alone.
pub(super) const POSTGRES: [&str; 3] = [
    "SELECT xact_commit, CASE WHEN current_setting('track_io_timing') = 'on' THEN (blk_read_time * 1e6)::bigint END, \
     blks_read, blks_hit, tup_returned, temp_files, (active_time * 1e6)::bigint, wal_bytes::bigint, wal_sync \
     FROM pg_stat_database, pg_stat_wal WHERE datname = current_database()",
    "SELECT xact_commit, CASE WHEN current_setting('track_io_timing') = 'on' THEN (blk_read_time * 1e6)::bigint END, \
     blks_read, blks_hit, tup_returned, temp_files, (active_time * 1e6)::bigint, wal_bytes::bigint \
     FROM pg_stat_database, pg_stat_wal WHERE datname = current_database()",
    "SELECT xact_commit, CASE WHEN current_setting('track_io_timing') = 'on' THEN (blk_read_time * 1e6)::bigint END, \
     blks_read, blks_hit, tup_returned, temp_files \
     FROM pg_stat_database WHERE datname = current_database()",
];
const POSTGRES_COUNTERS: [Counter; 8] = [
    counter::SERVER_READ_NS,
    counter::SERVER_READS,
    counter::SERVER_HITS,
    counter::SERVER_ROWS,
    counter::SERVER_TEMPORARY,
    counter::SERVER_ACTIVE_NS,
    counter::SERVER_LOG_BYTES,
    counter::SERVER_FLUSHES,
];
/// What of it is told of the whole server, and not of one database.
pub(super) const OF_ALL_DATABASES: [Counter; 2] = [counter::SERVER_LOG_BYTES, counter::SERVER_FLUSHES];

/// What MySQL and MariaDB tell of themselves; of those that stand for one counter the first that a server has.
const MYSQL: [(&str, Counter); 15] = [
    ("Innodb_buffer_pool_reads", counter::SERVER_READS),
    ("Innodb_buffer_pool_read_requests", counter::SERVER_HITS),
    ("Handler_read_first", counter::SERVER_ROWS),
    ("Handler_read_key", counter::SERVER_ROWS),
    ("Handler_read_last", counter::SERVER_ROWS),
    ("Handler_read_next", counter::SERVER_ROWS),
    ("Handler_read_prev", counter::SERVER_ROWS),
    ("Handler_read_rnd", counter::SERVER_ROWS),
    ("Handler_read_rnd_next", counter::SERVER_ROWS),
    ("Created_tmp_disk_tables", counter::SERVER_TEMPORARY),
    ("Innodb_os_log_written", counter::SERVER_LOG_BYTES),
    ("Innodb_buffer_pool_pages_flushed", counter::SERVER_WRITES),
    ("Innodb_row_lock_waits", counter::SERVER_LOCK_WAITS),
    ("Innodb_row_lock_time", counter::SERVER_LOCK_NS),
    ("Qcache_hits", counter::SERVER_CACHE_HITS),
];
/// MySQL counts the flushes of its log; MariaDB, from 10.8 on, those of all its files.
const MYSQL_FLUSHES: [&str; 2] = ["Innodb_os_log_fsyncs", "Innodb_data_fsyncs"];
/// Statements of all clients.
const QUESTIONS: &str = "Questions";

/// How long statements took and files were read, in ns, as MySQL and MariaDB time them where `performance_schema` is on. Else the tables
/// are empty, and both are NULL.
pub(super) const MYSQL_TIMES: &str = "SELECT \
     (SELECT sum(sum_timer_wait) DIV 1000 FROM performance_schema.events_statements_summary_global_by_event_name), \
     (SELECT sum(sum_timer_read) DIV 1000 FROM performance_schema.file_summary_by_event_name \
      WHERE event_name = 'wait/io/file/innodb/innodb_data_file')";
const MYSQL_TIMED: [Counter; 2] = [counter::SERVER_ACTIVE_NS, counter::SERVER_READ_NS];

/// What a server has counted until now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reading {
    /// Transactions, or statements.
    pub(super) done: u64,
    pub(super) counts: BTreeMap<Id, u64>,
}

impl Reading {
    /// How much more there is of each than before, for each of so many transactions. What was not there before is not known.
    pub(super) fn since(&self, before: &Self, done: u64) -> BTreeMap<Id, f64> {
        let grown = self.counts.iter().filter_map(|(&counter, &count)| {
            let more = count.checked_sub(*before.counts.get(&counter)?)?;
            Some((counter, more as f64 / done as f64))
        });
        grown.collect()
    }

    /// With what MySQL tells of times; not at all where it tells none.
    pub(super) fn with_times(mut self, rows: &Rows) -> (Self, bool) {
        let times =
            MYSQL_TIMED.iter().enumerate().filter_map(|(place, timed)| Some((timed.id(), number(rows, place)?)));
        let before = self.counts.len();
        self.counts.extend(times);
        let tells = self.counts.len() > before;
        (self, tells)
    }
}

pub(super) fn number(rows: &Rows, place: usize) -> Option<u64> {
    rows.first()?.get(place)?.as_ref()?.trim().parse().ok()
}

pub(super) fn postgres_reading(rows: &Rows) -> Option<Reading> {
    let counts = POSTGRES_COUNTERS.iter().enumerate();
    let counts = counts.filter_map(|(place, counter)| Some((counter.id(), number(rows, place + 1)?)));
    Some(Reading { done: number(rows, 0)?, counts: counts.collect() })
}

pub(super) fn mysql_question() -> String {
    let names = MYSQL.iter().map(|(name, _)| *name).chain(MYSQL_FLUSHES).chain([QUESTIONS]);
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    format!("SHOW GLOBAL STATUS WHERE Variable_name IN ({})", names.join(", "))
}

pub(super) fn mysql_reading(rows: &Rows) -> Option<Reading> {
    // Not at all, or not to be read.
    let value = |wanted: &str| -> Option<Option<u64>> {
        let row = rows.iter().find(|row| row.first().is_some_and(|name| name.as_deref() == Some(wanted)))?;
        Some(row.get(1).and_then(|value| value.as_ref()?.trim().parse().ok()))
    };
    let (mut counts, mut unread) = (BTreeMap::<Id, u64>::new(), Vec::new());
    for (name, counter) in MYSQL {
        match value(name) {
            Some(Some(count)) => {
                let unit = if counter.is_time() { MILLISECOND_NS } else { 1 };
                let sum = counts.entry(counter.id()).or_default();
                *sum = sum.saturating_add(count.saturating_mul(unit));
            }
            Some(None) => unread.push(counter.id()),
            None => {}
        }
    }
    counts.retain(|counter, _| !unread.contains(counter));
    if let Some(flushes) = MYSQL_FLUSHES.into_iter().find_map(value).flatten() {
        counts.insert(counter::SERVER_FLUSHES.id(), flushes);
    }
    // A request that is read is one of all requests.
    if let Some(requests) = counts.remove(&counter::SERVER_HITS.id())
        && let Some(reads) = counts.get(&counter::SERVER_READS.id())
    {
        counts.insert(counter::SERVER_HITS.id(), requests.saturating_sub(*reads));
    }
    Some(Reading { done: value(QUESTIONS).flatten()?, counts })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::views) fn rows(pairs: &[(&str, &str)]) -> Rows {
        pairs.iter().map(|(name, value)| vec![Some((*name).to_owned()), Some((*value).to_owned())]).collect()
    }

    #[test]
    fn what_a_server_does_not_count_is_not_zero() {
        let reading = mysql_reading(&rows(&[
            ("Questions", "100"),
            ("Handler_read_next", "5"),
            ("Handler_read_rnd_next", "7"),
            ("Innodb_row_lock_time", "3"),
            ("Innodb_buffer_pool_reads", "4"),
            ("Innodb_buffer_pool_read_requests", "10"),
        ]))
        .unwrap();
        let count = |counter: Counter| reading.counts.get(&counter.id()).copied();
        assert_eq!((reading.done, count(counter::SERVER_ROWS)), (100, Some(12)));
        assert_eq!((count(counter::SERVER_READS), count(counter::SERVER_HITS)), (Some(4), Some(6)));
        assert_eq!(count(counter::SERVER_LOCK_NS), Some(3_000_000));
        assert_eq!((count(counter::SERVER_FLUSHES), count(counter::SERVER_CACHE_HITS)), (None, None));
        assert_eq!(mysql_reading(&rows(&[("Handler_read_next", "5")])), None, "without a count of statements");
        let before = vec![vec![Some("10".to_owned()), Some("1".to_owned()), None]];
        let before = postgres_reading(&before).unwrap();
        assert_eq!((before.done, before.counts.len()), (10, 1));
    }

    #[test]
    fn counters_that_fell_are_not_known() {
        let reading = |done, count| Reading { done, counts: [(counter::SERVER_READS.id(), count)].into() };
        assert_eq!(reading(20, 9).since(&reading(10, 4), 10).get(&counter::SERVER_READS.id()), Some(&0.5));
        assert!(reading(20, 3).since(&reading(10, 4), 10).is_empty());
        assert!(reading(20, 3).since(&Reading::default(), 10).is_empty(), "nothing was known before");
    }
}
