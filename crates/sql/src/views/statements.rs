//! What a server tells of duel's own statements, and of what sessions wait for, over all load on a target.
//!
//! Only statements that duel itself sends are told of, by the texts that it knows them by: those of others may hold what nobody else is
//! to see. Servers keep them in a spelling of their own, so that texts are held against each other without what they differ in.

use super::counted::number;
use crate::address::System;
use crate::client::{Client, Rows};
use crate::failure;
use crate::wire::SqlFailure;
use duel_model::{Facts, Known, format_duration_ns, sanitize_line};
use std::collections::BTreeMap;

/// A statement of each beginning, and what of it is told.
const STATEMENT: &str = "sql.statement.";
const WAIT: &str = "sql.wait.";
const IO: &str = "sql.io.";
/// Views that would tell more.
const NOT_TOLD: &str = "sql.not_told";

/// Statements and waits that are told of, at most: those that took longest. More than these nobody reads.
const MOST_TOLD: usize = 10;
/// Statements that are asked for, at most, those with the most calls first.
const MOST_ASKED: usize = 2000;

/// Where PostgreSQL keeps its view of statements: the schema is chosen by whoever made the extension.
const POSTGRES_PLACE: &str = "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace \
     WHERE extname = 'pg_stat_statements'";
/// The name of its times: from 13 on, and before.
const POSTGRES_TIMES: [&str; 2] = ["total_exec_time", "total_time"];
const POSTGRES_IO: &str = "SELECT object || ', ' || context, sum(reads), coalesce(sum(writes), 0) + coalesce(sum(extends), 0), \
     sum(evictions), sum(fsyncs) FROM pg_stat_io WHERE backend_type = 'client backend' GROUP BY 1";

const MYSQL_STATEMENTS: &str = "SELECT digest_text, sum(count_star), sum(sum_timer_wait) DIV 1000, sum(sum_rows_examined) \
     FROM performance_schema.events_statements_summary_by_digest WHERE schema_name = database() GROUP BY 1 ORDER BY 2 DESC LIMIT";
const MYSQL_WAITS: &str = "SELECT event_name, count_star, sum_timer_wait DIV 1000 \
     FROM performance_schema.events_waits_summary_global_by_event_name WHERE count_star > 0 \
     AND (event_name LIKE 'wait/io/file/%' OR event_name LIKE 'wait/lock/%' OR event_name LIKE 'wait/synch/%') ORDER BY 3 DESC LIMIT";

/// Duel's own statements: how each is called in tables, by its text without what servers change in it.
#[derive(Debug, Default)]
pub(crate) struct Own(BTreeMap<String, String>);

impl Own {
    /// Of pairs of a name and a text. Of several with one text the first has its name.
    pub(crate) fn of(statements: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut own = BTreeMap::new();
        for (name, text) in statements {
            own.entry(alike(&text)).or_insert_with(|| sanitize_line(&name));
        }
        Self(own)
    }
}

/// All that a server has told of them until now.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Standing {
    /// By the statement's name.
    statements: BTreeMap<String, Sums>,
    /// By the name of what is waited for.
    waits: BTreeMap<String, Sums>,
    /// Of sessions, by what they worked on: reads, blocks written, evictions, flushes.
    io: BTreeMap<String, [u64; 4]>,
    /// The server has told of all statements, and of all waits: one that is missing had not occurred.
    has_all: [bool; 2],
    /// What the server does not tell, and how it would.
    not_told: Vec<String>,
    /// MariaDB, and MySQL before 9, sum up prepared statements under no text.
    may_know_texts_alone: bool,
}

/// What is summed of a statement or of a wait. What a server does not tell is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Sums {
    calls: u64,
    time_ns: u64,
    rows: Option<u64>,
    found: Option<u64>,
    read: Option<u64>,
}

impl Standing {
    /// Asks a server. What it does not tell is left out, and how it would is noted.
    pub(super) fn read(client: &mut Client, system: System, own: &Own) -> Self {
        let mut standing = Self::default();
        match system {
            System::Postgres => standing.ask_postgres(client, own),
            System::Mysql => standing.ask_mysql(client, own),
            System::Sqlite => {}
        }
        standing
    }

    fn ask_postgres(&mut self, client: &mut Client, own: &Own) {
        match postgres_statements(client) {
            Ok(rows) => {
                self.has_all[0] = rows.len() < MOST_ASKED;
                self.statements = sums(&rows, |text| own.0.get(&alike(text)).cloned());
            }
            Err(why) => self.not_told.push(format!("pg_stat_statements, the times of each statement ({why})")),
        }
        match client.ask_server(POSTGRES_IO) {
            Ok(rows) => self.io = io(&rows),
            Err(_) => self.not_told.push("pg_stat_io, reads and writes by purpose (from PostgreSQL 16 on)".to_owned()),
        }
        if client.ask_server("SHOW track_io_timing").ok().is_some_and(|rows| first(&rows) == Some("off")) {
            self.not_told.push("how long reads take (track_io_timing = on)".to_owned());
        }
    }

    fn ask_mysql(&mut self, client: &mut Client, own: &Own) {
        let is_on = client.rows("SELECT @@performance_schema").ok();
        if is_on.as_ref().and_then(|rows| number(rows, 0)) != Some(1) {
            let how =
                "performance_schema, the times of each statement and wait (performance_schema = ON, and a restart)";
            self.not_told.push(how.to_owned());
            return;
        }
        let Ok(rows) = client.rows(&format!("{MYSQL_STATEMENTS} {MOST_ASKED}")) else {
            self.not_told.push("performance_schema (GRANT SELECT ON performance_schema.* TO this user)".to_owned());
            return;
        };
        self.has_all[0] = rows.len() < MOST_ASKED;
        self.statements = sums(&rows, |text| own.0.get(&alike(executed(text))).cloned());
        self.may_know_texts_alone = true;
        if let Ok(rows) = client.rows(&format!("{MYSQL_WAITS} {MOST_ASKED}")) {
            self.has_all[1] = rows.len() < MOST_ASKED;
            self.waits = sums(&rows, |event| Some(sanitize_line(event.strip_prefix("wait/").unwrap_or(event))));
        }
    }

    /// Without what is of all databases of the server.
    pub(super) fn of_database(self) -> Self {
        Self { io: BTreeMap::new(), waits: BTreeMap::new(), ..self }
    }

    /// What of it came since another standing, as facts of the target. `looked` is how often sessions at work were seen waiting, by what
    /// for; `None`: they were not looked at.
    pub(super) fn since(&self, before: &Self, looked: Option<&BTreeMap<String, u64>>) -> Facts {
        let mut facts = Facts::default();
        for (name, more) in longest(&self.statements, &before.statements, before.has_all[0]) {
            let mut told = vec![each(&more)];
            let of = [(more.rows, "rows"), (more.found, "blocks found"), (more.read, "blocks read")];
            let per_call = of
                .into_iter()
                .filter_map(|(count, what)| Some(format!("{} {what}", short(count? as f64 / more.calls as f64))));
            told.extend(per_call);
            note(&mut facts, STATEMENT, name, told.join(", "));
        }
        for (name, more) in longest(&self.waits, &before.waits, before.has_all[1]) {
            note(&mut facts, WAIT, name, each(&more));
        }
        let seen: u64 = looked.into_iter().flatten().map(|(_, &count)| count).fold(0, u64::saturating_add);
        let mut looked: Vec<_> = looked.into_iter().flatten().filter(|(_, count)| **count > 0).collect();
        looked.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (name, &count) in looked.into_iter().take(MOST_TOLD) {
            let share = 100.0 * count as f64 / seen as f64;
            note(&mut facts, WAIT, name, format!("{} % of the time of sessions at work", short(share)));
        }
        for (name, counts) in &self.io {
            let Some(old) = before.io.get(name) else { continue };
            let more = |place: usize| counts[place].saturating_sub(old[place]);
            if (0..counts.len()).any(|place| more(place) > 0) {
                let what = ["reads", "blocks written", "evictions", "flushes"];
                let told: Vec<String> =
                    what.iter().enumerate().map(|(place, what)| format!("{} {what}", more(place))).collect();
                note(&mut facts, IO, name, told.join(", "));
            }
        }
        let mut not_told = self.not_told.clone();
        let is_told = |name: &String| name.starts_with(STATEMENT) && !name.ends_with(".COMMIT");
        if self.may_know_texts_alone && !facts.0.keys().any(is_told) {
            not_told.push(
                "the times of prepared statements, which this server sums up under no text (--prepared=off)".to_owned(),
            );
        }
        facts.note(NOT_TOLD, Some(not_told));
        facts
    }
}

/// Those that took longest since another reading, with what came since. A count that fell is not known; nor is what came since of
/// one that was not told of before, unless all were told of: `had_all`.
fn longest<'a>(
    now: &'a BTreeMap<String, Sums>,
    before: &BTreeMap<String, Sums>,
    had_all: bool,
) -> Vec<(&'a str, Sums)> {
    let none = Sums::default();
    let more = now.iter().filter_map(|(name, now)| {
        let before = before.get(name).or_else(|| had_all.then_some(&none))?;
        let less = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before.unwrap_or(0));
        let more = Sums {
            calls: now.calls.checked_sub(before.calls).filter(|&calls| calls > 0)?,
            time_ns: now.time_ns.checked_sub(before.time_ns)?,
            rows: less(now.rows, before.rows),
            found: less(now.found, before.found),
            read: less(now.read, before.read),
        };
        Some((name.as_str(), more))
    });
    let mut more: Vec<_> = more.collect();
    more.sort_by_key(|(_, sums)| std::cmp::Reverse(sums.time_ns));
    more.truncate(MOST_TOLD);
    more
}

fn each(sums: &Sums) -> String {
    format!("{} each of {}", format_duration_ns(sums.time_ns as f64 / sums.calls as f64), sums.calls)
}

fn short(value: f64) -> String {
    let digits = if value >= 100.0 { 0 } else { 2 };
    let text = format!("{value:.digits$}");
    text.strip_suffix(".00").map_or(text.clone(), str::to_owned)
}

fn note(facts: &mut Facts, about: &str, name: &str, told: String) {
    facts.0.insert(format!("{about}{name}"), Known::from(told));
}

/// The statements of this session's user in this database; or why they are not told, and how they would.
fn postgres_statements(client: &mut Client) -> Result<Rows, &'static str> {
    const HOW: &str =
        "shared_preload_libraries = 'pg_stat_statements', a restart, and CREATE EXTENSION pg_stat_statements";
    let place = client.ask_server(POSTGRES_PLACE).map_err(|_| HOW)?;
    let place = first(&place).ok_or(HOW)?;
    for time in POSTGRES_TIMES {
        let ask = format!(
            "SELECT query, calls, ({time} * 1e6)::bigint, rows, shared_blks_hit, shared_blks_read FROM {place}.pg_stat_statements \
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND userid = (SELECT oid FROM pg_roles WHERE rolname = current_user) \
             ORDER BY calls DESC LIMIT {MOST_ASKED}"
        );
        match client.ask_server(&ask) {
            Ok(rows) => return Ok(rows),
            // Another version's column, or the library is not loaded.
            Err(SqlFailure { kind, .. }) if kind == failure::ERROR => {}
            Err(_) => return Err("the server did not answer"),
        }
    }
    Err(HOW)
}

fn first(rows: &Rows) -> Option<&str> {
    rows.first()?.first()?.as_deref()
}

/// Sums by what the first column of each row is called; rows that are called nothing are left out.
fn sums(rows: &Rows, named: impl Fn(&str) -> Option<String>) -> BTreeMap<String, Sums> {
    let mut all = BTreeMap::<String, Sums>::new();
    for row in rows {
        let at = |place: usize| row.get(place)?.as_ref()?.trim().parse::<u64>().ok();
        let Some(name) = row.first().and_then(|text| named(text.as_deref()?)) else { continue };
        let (Some(calls), Some(time_ns)) = (at(1), at(2)) else { continue };
        let none = Sums { rows: Some(0), found: Some(0), read: Some(0), ..Sums::default() };
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        let sum = all.entry(name).or_insert(none);
        *sum = Sums {
            calls: sum.calls.saturating_add(calls),
            time_ns: sum.time_ns.saturating_add(time_ns),
            rows: add(sum.rows, at(3)),
            found: add(sum.found, at(4)),
            read: add(sum.read, at(5)),
        };
    }
    all
}

fn io(rows: &Rows) -> BTreeMap<String, [u64; 4]> {
    let of_row = |row: &Vec<Option<String>>| {
        // What cannot be on such an object is NULL: it is none.
        let at = |place: usize| match row.get(place)? {
            None => Some(0),
            Some(text) => text.trim().parse::<u64>().ok(),
        };
        Some((sanitize_line(row.first()?.as_deref()?), [at(1)?, at(2)?, at(3)?, at(4)?]))
    };
    rows.iter().filter_map(of_row).collect()
}

/// What was prepared, of a digest's text: MySQL puts a word in front of it from 9 on.
fn executed(text: &str) -> &str {
    text.strip_prefix("EXECUTE ").unwrap_or(text)
}

/// A statement's text without what servers change in it: spaces, capitals, quotes of names, values and their numbers, and how many
/// values a list has.
fn alike(text: &str) -> String {
    let (mut out, mut before) = (String::with_capacity(text.len()), ' ');
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_within_a_word = before.is_alphanumeric() || before == '_';
        match c {
            c if c.is_whitespace() || matches!(c, '`' | ';') => {}
            '\'' => {
                // A doubled quote is one that does not end the text: then two texts stand side by side, which are one value.
                while rest.next().is_some_and(|c| c != '\'') {}
                if !out.ends_with('?') {
                    out.push('?');
                }
            }
            '$' | '0'..='9' if !is_within_a_word => {
                while rest.next_if(|c| c.is_ascii_digit() || *c == '.').is_some() {}
                out.push('?');
            }
            c => out.extend(c.to_lowercase()),
        }
        before = c;
    }
    // A word with a synonym, which digests take.
    let mut out = out.replace("/*,...*/", "").replace("(...)", "(?)").replace("distinctrow", "distinct");
    while out.contains("?,?") {
        out = out.replace("?,?", "?");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_known_in_the_spellings_of_all_servers() {
        for (ours, theirs) in [
            ("SELECT c FROM sbtest1 WHERE id=$1", "SELECT c FROM sbtest1 WHERE id=$1"),
            ("SELECT c FROM sbtest1 WHERE id=?", "SELECT `c` FROM `sbtest1` WHERE `id` = ? "),
            ("UPDATE sbtest1 SET k=k+1 WHERE id=$1", "UPDATE sbtest1 SET k=k+$2 WHERE id=$1"),
            (
                "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)",
                "INSERT INTO `sbtest1` ( `id` , `k` , `c` , `pad` ) VALUES (...) /* , ... */ ",
            ),
            ("SELECT DISTINCT c FROM t ORDER BY c", "SELECT DISTINCTROW `c` FROM `t` ORDER BY `c` "),
            ("SELECT id FROM t WHERE k IN (?, ?, ?)", "SELECT `id` FROM `t` WHERE `k` IN (...) "),
            ("SELECT 'it''s', 1.5 FROM t2 LIMIT 10;", "SELECT $1, $2 FROM t2 LIMIT $3"),
            // Prepared, by MySQL 9.7.
            (
                "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c",
                "EXECUTE SELECT DISTINCTROW `c` FROM `sbtest1` WHERE `id` BETWEEN ? AND ? ORDER BY `c`",
            ),
        ] {
            assert_eq!(alike(ours), alike(executed(theirs)), "{ours}");
        }
        assert_ne!(alike("SELECT c FROM sbtest1 WHERE id=?"), alike("SELECT c FROM sbtest2 WHERE id=?"));
        assert_ne!(alike("SELECT a FROM t"), alike("SELECT b FROM t"));
        for odd in ["'", "$", "(?,?", "?,?,", "''", "9", "é'"] {
            alike(odd);
        }
    }

    fn rows(rows: &[&[&str]]) -> Rows {
        rows.iter().map(|row| row.iter().map(|cell| (*cell != "-").then(|| (*cell).to_owned())).collect()).collect()
    }

    #[test]
    fn only_statements_of_our_own_are_told_and_only_what_came_since() {
        let own = Own::of([("point".to_owned(), "SELECT c FROM t WHERE id=$1".to_owned())]);
        let told = |calls: &str, time: &str| {
            let rows = rows(&[
                &["SELECT c FROM t WHERE id=$1", calls, time, "9", "-", "x"],
                &["SELECT secret FROM others", "7", "7", "7", "7", "7"],
                &["SELECT c FROM t WHERE id=$1", "-", "1", "1", "1", "1"],
            ]);
            Standing { statements: sums(&rows, |text| own.0.get(&alike(text)).cloned()), ..Standing::default() }
        };
        let facts = told("30", "50000").since(&told("10", "10000"), None);
        assert_eq!(facts.text("sql.statement.point"), Some("2.00 µs each of 20, 0 rows"));
        assert_eq!(facts.0.len(), 1, "{facts:?}");
        assert!(told("5", "50000").since(&told("10", "10000"), None).0.is_empty(), "a count that fell is not known");
        // One that had not occurred before is all of this load's, and one that was not asked for may be of any time.
        assert!(told("30", "50000").since(&Standing::default(), None).0.is_empty());
        let had_none = Standing { has_all: [true; 2], ..Standing::default() };
        assert_eq!(told("30", "60000").since(&had_none, None).0.len(), 1);
    }

    #[test]
    fn waits_are_shares_of_what_was_seen() {
        let looked = BTreeMap::from([("CPU".to_owned(), 30), ("Lock:tuple".to_owned(), 10), ("x".to_owned(), 0)]);
        let facts = Standing::default().since(&Standing::default(), Some(&looked));
        assert_eq!(facts.text("sql.wait.Lock:tuple"), Some("25 % of the time of sessions at work"));
        assert_eq!(facts.0.len(), 2, "{facts:?}");
    }

    #[test]
    fn reads_by_purpose_are_those_that_came_since() {
        let standing = |reads: &str| Standing {
            io: io(&rows(&[&["relation, normal", reads, "0", "2", "-"], &["wal, normal", "x", "0", "0", "0"]])),
            ..Standing::default()
        };
        let facts = standing("12").since(&standing("2"), None);
        assert_eq!(facts.text("sql.io.relation, normal"), Some("10 reads, 0 blocks written, 0 evictions, 0 flushes"));
        assert_eq!(facts.0.len(), 1);
    }
}
