//! Whole ops of the load by the servers' own clients: transactions where the op has several statements, over as many connections as
//! duel's.

use super::server::Server;
use super::{SqlArena, System, Transactions};
use anyhow::{bail, ensure};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::fmt::Write as _;

/// Point selects of a transaction, as duel's.
const POINT_SELECTS: u32 = 10;
const RANDOM: u32 = 10;
const RANDOM_RANGE: u32 = 5;
/// Of a pilot, for each client.
const FEW: u32 = 20;

impl SqlArena {
    /// Microseconds between ops under the load, healthy and faulty: three times by turns, and the shortest of each. As many ops on
    /// both, which take a second or so on the slower one.
    pub(crate) fn op_us(&self) -> anyhow::Result<(f64, f64)> {
        let servers = [&self.healthy, &self.faulty];
        let mut slower_us = 0.0_f64;
        for server in servers {
            slower_us = slower_us.max(self.run_us(server, FEW, 0)?);
        }
        let by_each = 1.2e6 / (slower_us * f64::from(self.load.connections));
        let ops = by_each.clamp(f64::from(FEW), 20_000.0) as u32;
        self.by_turns(|server, turn| self.run_us(server, ops, turn + 1))
    }

    /// Microseconds between ops, where all clients do so many each, on rows that are theirs alone and the same on both servers.
    fn run_us(&self, server: &Server, ops: u32, turn: u32) -> anyhow::Result<f64> {
        let clients = self.load.connections;
        let file = server.folder().join("ops.sql");
        for client in 0..clients {
            let rows = Rows { of: server.rows(), client, clients, chance: Pcg64Mcg::seed_from_u64(turn.into()) };
            // The server's clock: how long clients take to start is none of an op's.
            let clock = match server.system() {
                System::Postgres => "SELECT 'at', extract(epoch FROM clock_timestamp())",
                System::MariaDb => "SELECT 'at', UNIX_TIMESTAMP(SYSDATE(6))",
            };
            let text = text(&self.load, server.system(), rows, ops);
            std::fs::write(format!("{}.{}", file.display(), client + 1), format!("{clock};\n{text}{clock};\n"))?;
        }
        self.run_clients(server, clients, &file, "| grep ^at >\"$file.at\"")?;
        let mut per_us = 0.0;
        for client in 1..=clients {
            let told = std::fs::read_to_string(format!("{}.{client}.at", file.display()))?;
            per_us += f64::from(ops) / seconds_between(&told)? / 1e6;
        }
        Ok(1.0 / per_us)
    }
}

/// What a client was told by the server's clock, first and last.
fn seconds_between(told: &str) -> anyhow::Result<f64> {
    let times: Vec<f64> = told.lines().filter_map(|line| line.get(3..)?.trim().parse().ok()).collect();
    let [first, last] = times[..] else { bail!("the server's clock is not told twice: {told:?}") };
    ensure!(last > first, "the server's clock stands still: {told:?}");
    Ok(last - first)
}

/// Rows by chance, of which each client has its own: who deletes one and writes it again must not meet another.
struct Rows {
    of: u32,
    client: u32,
    clients: u32,
    chance: Pcg64Mcg,
}

impl Rows {
    fn draw(&mut self) -> u32 {
        let own = self.of / self.clients;
        1 + self.client + self.clients * self.chance.random_range(0..own)
    }

    fn several(&mut self, one: impl Fn(u32) -> String, between: &str) -> String {
        let all: Vec<String> = (0..RANDOM).map(|_| one(self.draw())).collect();
        all.join(between)
    }
}

/// So many ops, each a line.
fn text(load: &Transactions, system: System, mut rows: Rows, ops: u32) -> String {
    let mut text = String::new();
    for number in 0..ops {
        if load.reconnects {
            // By the client itself: starting one takes longer than a connection does.
            text += match system {
                System::Postgres => "\\connect\n",
                System::MariaDb => "connect\n",
            };
        }
        let statements = match load.op {
            "read-only" => in_transaction([reads(load, &mut rows)]),
            "read-write" => in_transaction([reads(load, &mut rows), writes(&mut rows, number)]),
            "write-only" => in_transaction([writes(&mut rows, number)]),
            "select-random-points" => {
                let points = rows.several(|k| k.to_string(), ", ");
                vec![format!("SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points})")]
            }
            "select-random-ranges" => {
                let ranges = rows.several(|k| format!("k BETWEEN {k} AND {}", k + RANDOM_RANGE), " OR ");
                vec![format!("SELECT count(k) FROM sbtest1 WHERE {ranges}")]
            }
            "update-index" => vec![update_index(&mut rows)],
            "update-non-index" => vec![update_non_index(&mut rows, number)],
            "insert" => vec![format!("INSERT INTO sbtest1 (k, c, pad) VALUES ({}, 'c{number}', 'pad')", rows.draw())],
            _ => vec![point_select(&mut rows)],
        };
        let _ = writeln!(text, "{};", statements.join("; "));
    }
    text
}

fn in_transaction<const N: usize>(parts: [Vec<String>; N]) -> Vec<String> {
    let ends = |word: &str| vec![word.to_owned()];
    [ends("BEGIN"), parts.concat(), ends("COMMIT")].concat()
}

fn point_select(rows: &mut Rows) -> String {
    format!("SELECT c FROM sbtest1 WHERE id={}", rows.draw())
}

fn update_index(rows: &mut Rows) -> String {
    format!("UPDATE sbtest1 SET k=k+1 WHERE id={}", rows.draw())
}

/// What nobody has written there before: MariaDB writes nothing where nothing changes.
fn update_non_index(rows: &mut Rows, number: u32) -> String {
    let other: u32 = rows.chance.random();
    format!("UPDATE sbtest1 SET c='{number} {other}' WHERE id={}", rows.draw())
}

fn reads(load: &Transactions, rows: &mut Rows) -> Vec<String> {
    let mut all: Vec<String> = (0..POINT_SELECTS).map(|_| point_select(rows)).collect();
    for (what, order) in [("c", ""), ("SUM(k)", ""), ("c", " ORDER BY c"), ("DISTINCT c", " ORDER BY c")] {
        let first = rows.draw();
        let last = first + load.range - 1;
        all.push(format!("SELECT {what} FROM sbtest1 WHERE id BETWEEN {first} AND {last}{order}"));
    }
    all
}

fn writes(rows: &mut Rows, number: u32) -> Vec<String> {
    let row = rows.draw();
    vec![
        update_index(rows),
        update_non_index(rows, number),
        format!("DELETE FROM sbtest1 WHERE id={row}"),
        format!("INSERT INTO sbtest1 (id, k, c, pad) VALUES ({row}, {row}, '{number}', 'pad')"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(op: &'static str, client: u32, ops: u32) -> String {
        let load = Transactions { op, connections: 4, range: 20, reconnects: false, keys: "uniform" };
        let rows = Rows { of: 1000, client, clients: 4, chance: Pcg64Mcg::seed_from_u64(1) };
        text(&load, System::Postgres, rows, ops)
    }

    #[test]
    fn ops_have_the_statements_of_duels() {
        let statements = |op| of(op, 0, 1).matches(';').count();
        assert_eq!((statements("read-only"), statements("write-only"), statements("read-write")), (16, 6, 20));
        for op in ["point-select", "update-index", "update-non-index", "insert", "select-random-points"] {
            assert_eq!(statements(op), 1, "{op}");
        }
        assert_eq!(of("select-random-points", 0, 1).matches(", ").count(), 3 + 9);
        assert_eq!(of("select-random-ranges", 0, 1).matches(" BETWEEN ").count(), 10);
    }

    #[test]
    fn clocks_are_read_as_servers_tell_them() {
        assert!((seconds_between("at|1700000000.250000\nat|1700000001.750000\n").unwrap() - 1.5).abs() < 1e-6);
        assert!((seconds_between("at\t1700000000.250000\nat\t1700000001.750000\n").unwrap() - 1.5).abs() < 1e-6);
        for broken in ["", "at|1.0\n", "at|2.0\nat|1.0\n", "at|\nat|2\n"] {
            assert!(seconds_between(broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn clients_have_rows_of_their_own_and_none_that_is_not_there() {
        let rows = |client| -> BTreeSet<u32> {
            let text = of("update-index", client, 400);
            text.lines().map(|line| line.rsplit_once("id=").unwrap().1.trim_end_matches(';').parse().unwrap()).collect()
        };
        let all = [rows(0), rows(1), rows(2), rows(3)];
        assert!(all.iter().flatten().all(|row| (1..=1000).contains(row)));
        let distinct: BTreeSet<u32> = all.iter().flatten().copied().collect();
        assert_eq!(distinct.len(), all.iter().map(BTreeSet::len).sum::<usize>());
        assert!(rows(3).len() > 100);
    }

    #[test]
    fn each_op_has_a_connection_of_its_own_where_it_is_to_have_one() {
        let load = Transactions { op: "point-select", connections: 1, range: 20, reconnects: true, keys: "uniform" };
        let rows = Rows { of: 1000, client: 0, clients: 1, chance: Pcg64Mcg::seed_from_u64(1) };
        assert_eq!(text(&load, System::MariaDb, rows, 5).matches("connect\nSELECT").count(), 5);
    }
}
