//! Looks at databases by other means than duel: their own clients, with the statements of the load.

use super::server::Server;
use super::{SqlArena, System, Transactions};
use crate::arena::CLIENT_CPU;
use crate::world::Launch;
use anyhow::ensure;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

impl SqlArena {
    /// Microseconds for each statement of the load, healthy and faulty: three times by turns, and the shortest of each, since what else
    /// happens on this machine only adds.
    pub(crate) fn statement_us(&self, connections: u32) -> anyhow::Result<(f64, f64)> {
        let statements = if self.load.reconnects { 200 } else { 2_000 };
        self.statement_us_of(connections, statements)
    }

    pub(crate) fn system(&self) -> System {
        self.healthy.system()
    }

    /// How many connections duel is told to make.
    pub(crate) fn connections(&self) -> u32 {
        self.load.connections
    }

    /// The same, with so many statements over each connection.
    pub(crate) fn statement_us_of(&self, connections: u32, statements: u32) -> anyhow::Result<(f64, f64)> {
        self.by_turns(|server, turn| self.time_us(server, connections, statements, turn))
    }

    /// The shortest of three times, by turns, healthy and faulty.
    pub(super) fn by_turns(&self, time: impl Fn(&Server, u32) -> anyhow::Result<f64>) -> anyhow::Result<(f64, f64)> {
        let (mut healthy, mut faulty) = (f64::INFINITY, f64::INFINITY);
        for turn in 0..3 {
            healthy = healthy.min(time(&self.healthy, turn)?);
            faulty = faulty.min(time(&self.faulty, turn)?);
        }
        Ok((healthy, faulty))
    }

    /// Runs so many clients of a server at a time. Each executes `FILE.N`, from 1 on, and what it prints goes through `keep`, with the name of
    /// its file in `$file`. Where one fails, none is left.
    pub(super) fn run_clients(&self, server: &Server, clients: u32, file: &Path, keep: &str) -> anyhow::Result<()> {
        let script = format!(
            "set -o pipefail; for client in $(seq $1); do file=$2.$client; \"${{@:3}}\" <\"$file\" {keep} & clients=\"$clients $!\"; done; \
             for client in $clients; do wait $client || {{ kill $clients 2>/dev/null; exit 1; }}; done"
        );
        self.stop.go_on()?;
        let words = ["-c", &script, "bash", &clients.to_string()];
        let launch = Launch::new("bash").on(CLIENT_CPU).args(words).args([file]).args(server.shell());
        let output = launch.command().stdin(Stdio::null()).output()?;
        self.stop.go_on()?;
        ensure!(output.status.success(), "the client failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        Ok(())
    }

    /// How both go about a statement of the load, healthy and faulty, as they tell it themselves.
    pub(crate) fn plans(&self) -> anyhow::Result<(String, String)> {
        let plan = |server: &Server| {
            let statement = text(&self.load, 1, Draws::new(server.rows(), 0, 0));
            let (explain, shape): (_, fn(&str) -> Vec<String>) = match server.system() {
                System::Postgres => ("EXPLAIN (COSTS OFF)", scans),
                System::MariaDb => ("EXPLAIN", ways),
            };
            let told = server.ask(&format!("{explain} {statement}"))?;
            let mut nodes = shape(&told);
            // Each range has a scan of its own.
            nodes.dedup();
            ensure!(!nodes.is_empty(), "no plan in: {told}");
            anyhow::Ok(nodes.join(", "))
        };
        Ok((plan(&self.healthy)?, plan(&self.faulty)?))
    }

    fn time_us(&self, server: &Server, connections: u32, statements: u32, turn: u32) -> anyhow::Result<f64> {
        let file = server.folder().join("statements.sql");
        for client in 1..=connections {
            let draws = Draws::new(server.rows(), turn, client);
            let mut text = text(&self.load, statements, draws);
            if self.load.reconnects {
                // By the client itself: starting one takes longer than a connection does.
                let again = match server.system() {
                    System::Postgres => "\\connect",
                    System::MariaDb => "connect",
                };
                text = text.lines().map(|line| format!("{again}\n{line}\n")).collect();
            }
            std::fs::write(format!("{}.{client}", file.display()), text)?;
        }
        let began = Instant::now();
        self.run_clients(server, connections, &file, ">/dev/null")?;
        Ok(began.elapsed().as_secs_f64() * 1e6 / f64::from(statements * connections))
    }
}

/// What PostgreSQL says of how it reads tables.
fn scans(told: &str) -> Vec<String> {
    let nodes = told.lines().map(|line| line.trim().trim_start_matches("->").trim());
    nodes.filter(|node| node.contains(" Scan ")).map(str::to_owned).collect()
}

/// The same of MariaDB: the way, and the index.
fn ways(told: &str) -> Vec<String> {
    let way = |row: &str| {
        let columns: Vec<&str> = row.split('\t').collect();
        Some(format!("{} by {}", columns.get(3)?, columns.get(5)?))
    };
    told.lines().filter_map(way).collect()
}

/// Points and ranges in a statement of these ops of duel, and how far a range goes.
const RANDOM: usize = 10;
const RANDOM_RANGE: u64 = 5;

/// Rows, drawn alike for both servers and otherwise in each turn and by each client.
struct Draws {
    rows: u32,
    state: u64,
    /// What is written: nobody else has, in this turn or before. A row that has it already is not written by MariaDB, nor waited for.
    value: String,
}

impl Draws {
    fn new(rows: u32, turn: u32, client: u32) -> Draws {
        let state = u64::from(turn) << 32 | u64::from(client);
        Draws { rows, state, value: format!("{turn} {client}") }
    }

    fn row(&mut self) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        1 + (self.state >> 33) % u64::from(self.rows)
    }
}

/// So many statements of the load.
fn text(load: &Transactions, statements: u32, mut draws: Draws) -> String {
    let mut text = String::new();
    let value = draws.value.clone();
    let mut draw = || draws.row();
    for number in 0..statements {
        let row = draw();
        let last = row + u64::from(load.range) - 1;
        let mut several = |one: fn(u64) -> String, between: &str| {
            let all: Vec<String> = (0..RANDOM).map(|_| one(draw())).collect();
            all.join(between)
        };
        let _ = match load.op {
            "select-random-points" => {
                let points = several(|k| k.to_string(), ", ");
                writeln!(text, "SELECT id, k, c, pad FROM sbtest1 WHERE k IN ({points});")
            }
            "select-random-ranges" => {
                let ranges = several(|k| format!("k BETWEEN {k} AND {}", k + RANDOM_RANGE), " OR ");
                writeln!(text, "SELECT count(k) FROM sbtest1 WHERE {ranges};")
            }
            "update-index" => writeln!(text, "UPDATE sbtest1 SET k=k+1 WHERE id={row};"),
            "update-non-index" => writeln!(text, "UPDATE sbtest1 SET c='{value} {number}' WHERE id={row};"),
            "read-only" => {
                writeln!(text, "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN {row} AND {last} ORDER BY c;")
            }
            _ => writeln!(text, "SELECT c FROM sbtest1 WHERE id={row};"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_the_load_on_rows_that_exist() {
        let load = Transactions { op: "update-index", connections: 1, range: 100, reconnects: false, keys: "uniform" };
        let text = text(&load, 500, Draws::new(10, 0, 0));
        assert_eq!(text.lines().count(), 500);
        let rows = text.lines().map(|line| line.rsplit_once("id=").unwrap().1.trim_end_matches(';'));
        let rows: Vec<u32> = rows.map(|row| row.parse().unwrap()).collect();
        assert!((1..=10).all(|row| rows.contains(&row)) && rows.iter().all(|row| *row <= 10), "{rows:?}");
    }

    #[test]
    fn each_update_writes_what_no_client_has_written_before() {
        let op = "update-non-index";
        let load = Transactions { op, connections: 2, range: 100, reconnects: false, keys: "uniform" };
        let all: Vec<String> = [(0, 1), (0, 2), (1, 1), (1, 2)]
            .into_iter()
            .flat_map(|(turn, client)| {
                let text = text(&load, 50, Draws::new(10, turn, client));
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let values: std::collections::BTreeSet<&str> =
            all.iter().map(|line| line.split_once(" WHERE ").unwrap().0).collect();
        assert_eq!((all.len(), values.len()), (200, 200), "{all:?}");
        // Nor do they come by the same rows in the same order.
        let rows = |from: usize| all[from..from + 50].iter().map(|line| line.rsplit_once("id=").unwrap().1);
        assert!(!rows(0).eq(rows(50)) && !rows(0).eq(rows(100)));
    }

    #[test]
    fn points_and_ranges_are_as_many_as_those_of_duel() {
        let of = |op| {
            let load = Transactions { op, connections: 1, range: 100, reconnects: false, keys: "uniform" };
            text(&load, 1, Draws::new(1000, 0, 0))
        };
        assert_eq!(of("select-random-points").matches(", ").count(), 3 + 9);
        let ranges = of("select-random-ranges");
        assert_eq!((ranges.matches(" BETWEEN ").count(), ranges.matches(" OR ").count()), (10, 9), "{ranges}");
    }

    #[test]
    fn plans_are_read_as_servers_tell_them() {
        let told = "Aggregate\n  ->  Bitmap Heap Scan on sbtest1\n        Recheck Cond: (k = 5)\n        ->  BitmapOr\n              \
                    ->  Bitmap Index Scan on k_1\n                    Index Cond: (k = 5)\n";
        assert_eq!(scans(told), ["Bitmap Heap Scan on sbtest1", "Bitmap Index Scan on k_1"]);
        assert_eq!(scans("Seq Scan on sbtest1\n  Filter: (id = 7)\n"), ["Seq Scan on sbtest1"]);
        assert_eq!(ways("1\tSIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tNULL\t19800\tUsing where\n"), ["ALL by NULL"]);
        assert_eq!(ways("ERROR\n"), [""; 0]);
    }
}
