//! Slow flushes where no session can be told not to wait for them: what the servers' threads are seen in.

use super::{Asked, Server, World, names, server, world};
use duel_model::{Facts, HostDemand, SECOND_NS, Sleepers};
use std::collections::BTreeMap;

/// What the machine of a server shows under load, and without any a few threads that sleep until they get work.
#[derive(Debug, Clone, Copy)]
pub struct Shows {
    /// The share of looks in which a thread is in the log, from the number of connections.
    in_log: fn(f64) -> f64,
    /// Connections that sleep then until that thread wakes them.
    beside: fn(f64) -> f64,
    /// CPU time of a transaction, ns.
    cpu_ns: f64,
    /// Looks that the kernel tells of system calls in.
    looks: u32,
}

const OPS: u64 = 10_000;
const IDLE: u64 = 7;
const LOOKS: u32 = 36;

impl Shows {
    pub fn demand(&self, connections: f64) -> HostDemand {
        let looks = f64::from(self.looks);
        let in_log = (looks * (self.in_log)(connections)).round();
        let sleepers = Sleepers {
            looks: LOOKS,
            threads: BTreeMap::from([("futex_do_wait".to_owned(), 1)]),
            without_timeout: IDLE * u64::from(LOOKS),
            looks_at_calls: self.looks,
            looks_at_logs: in_log as u32,
            in_logs: in_log as u64,
            without_timeout_beside_logs: (in_log * (IDLE as f64 + (self.beside)(connections))).round() as u64,
        };
        let quiet_sleepers = Sleepers { looks: 12, without_timeout: 12 * IDLE, ..Sleepers::default() };
        let growth = [("process.cpu_ns", self.cpu_ns), ("workers.wait_ns", 0.0)];
        let growth = growth.into_iter().map(|(key, ns)| (key.to_owned(), (ns * OPS as f64) as u64));
        HostDemand {
            ops: OPS,
            elapsed_ns: 4 * SECOND_NS,
            growth: growth.collect(),
            spans: 12,
            sleepers,
            quiet_sleepers,
            ..HostDemand::default()
        }
    }
}

/// A MariaDB; a session of it cannot be told not to wait for the disk.
fn mariadb(time: super::Time, shows: Shows) -> Server {
    let facts = Facts::default()
        .with("sql.server", "MariaDB 10.11")
        .with("sql.flush_at_commit", "1")
        .with("sql.sync_binlog", "0")
        .with("sql.logs", "in the data folder")
        .with("sql.plans", vec!["UPDATE sbtest1: PRIMARY".to_owned()]);
    Server { facts, shows: Some(shows), ..server(time) }
}

/// 50 us for a statement, and 50 us for its commit.
fn quick(_: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
    [0.0, 100e3, 0.0]
}

/// The same, and a millisecond for its commit; of several one flushes for all that come meanwhile, and the next ones wait for two.
fn flushes(asked: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
    [0.0, if asked.connections > 1.0 { 2050e3 } else { 1050e3 }, 0.0]
}

const QUICK: Shows = Shows { in_log: |_| 0.4, beside: |_| 0.0, cpu_ns: 40e3, looks: LOOKS };
const FLUSHES: Shows =
    Shows { in_log: |_| 0.95, beside: |connections| 0.9 * (connections - 1.0), cpu_ns: 45e3, looks: LOOKS };

#[test]
fn a_slow_disk_under_a_log_is_found_by_the_threads_that_wait_for_it() {
    for connections in [1, 4] {
        let world = world(mariadb(quick, QUICK), mariadb(flushes, FLUSHES), connections, &[]);
        let (explanation, probes) = world.explanation();
        let finding = &explanation.findings[0];
        assert_eq!(finding.cause, "disk.slow-flush", "{connections}: {probes:?} {explanation:?}");
        assert_eq!(finding.confidence, duel_model::Confidence::Likely);
        assert!(finding.summary.contains("for writes and flushes of the log on B"), "{}", finding.summary);
    }
}

/// How `disk.slow-flush` stands: named, ruled out, or left open.
fn stands(world: &World) -> &'static str {
    let (named, ruled_out, _) = world.explain();
    match (named.contains(&"disk.slow-flush".to_owned()), ruled_out.contains(&"disk.slow-flush".to_owned())) {
        (true, _) => "named",
        (false, true) => "ruled out",
        (false, false) => "open",
    }
}

#[test]
fn what_takes_longer_elsewhere_is_no_slow_flush() {
    /// A millisecond for something else than the commit.
    fn slow(_: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
        [0.0, 1100e3, 0.0]
    }
    let stands_with =
        |shows: Shows, connections: u32| stands(&world(mariadb(quick, QUICK), mariadb(slow, shows), connections, &[]));
    let seldom = Shows { in_log: |_| 0.03, ..QUICK };
    // Reads of a slow disk, or a timer: nobody is in the log, nor on a CPU.
    assert_eq!(stands_with(seldom, 1), "ruled out");
    // A busy CPU may as well look all the time whether the disk is done.
    assert_eq!(stands_with(Shows { cpu_ns: 1040e3, ..seldom }, 1), "open");
    // A lock that is held over a slow statement.
    assert_eq!(stands_with(Shows { beside: |connections| connections - 1.0, ..seldom }, 4), "ruled out");
    // The log lies where nobody looks.
    assert_eq!(stands_with(Shows { in_log: |_| 0.0, ..QUICK }, 1), "open");
    // The kernel does not tell of system calls.
    assert_eq!(stands_with(Shows { looks: 0, ..FLUSHES }, 1), "open");
    // Too few looks to tell.
    assert_eq!(stands_with(Shows { looks: 8, ..FLUSHES }, 1), "open");
}

#[test]
fn more_flushes_for_a_transaction_are_no_slow_ones() {
    // Each of them takes as long as on the fast side, where one fills 0.9 of the time of a transaction.
    fn twice(_: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
        [0.0, 190e3, 0.0]
    }
    const ONE: Shows = Shows { in_log: |_| 0.9, ..QUICK };
    const TWO: Shows = Shows { in_log: |_| 0.95, ..QUICK };
    let often = |per_op: &'static [(&'static str, f64)]| {
        stands(&world(mariadb(quick, ONE), mariadb(twice, TWO).counting(per_op), 1, &[]))
    };
    assert_eq!(often(&[("server-flushes", 1.95)]), "open");
    assert_eq!(often(&[("server-flushes", 3.0)]), "open");
    // A binary log that is flushed on one side alone is a setting.
    let fast = mariadb(quick, QUICK);
    let slow = mariadb(flushes, FLUSHES).with("sql.sync_binlog", "1");
    assert!(!names(&world(fast, slow, 1, &[])).contains(&"disk.slow-flush".to_owned()));
}

#[test]
fn where_a_machine_is_not_read_it_is_left_open_with_what_to_try() {
    for unread in [0, 1] {
        let mut world = world(mariadb(quick, QUICK), mariadb(flushes, FLUSHES), 1, &[]);
        world.servers[unread].shows = None;
        assert_eq!(stands(&world), "open");
        let (explanation, _) = world.explanation();
        let told = format!("{explanation:?}");
        assert!(told.contains("SET GLOBAL innodb_flush_log_at_trx_commit = 2"), "{told}");
    }
}

#[test]
fn who_waits_for_a_lock_that_is_held_over_a_commit_waits_for_no_slow_disk() {
    /// All others wait for whoever works, who flushes for half of the time.
    fn in_turn(_: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
        [0.0, 1000e3, 0.0]
    }
    /// Somebody flushes all the time, and hardly anybody waits for that.
    fn together(_: &Asked, _: &dyn Fn(&str) -> String) -> [f64; 3] {
        [0.0, 500e3, 0.0]
    }
    const IN_TURN: Shows =
        Shows { in_log: |_| 0.5, beside: |connections| connections - 1.0, cpu_ns: 45e3, looks: LOOKS };
    const TOGETHER: Shows = Shows { in_log: |_| 1.0, beside: |_| 0.0, cpu_ns: 45e3, looks: LOOKS };
    // At twice the rate of transactions a flush for every other of them lasts as long on both: 125 us.
    let often = &[("server-flushes", 0.5)];
    let fast = mariadb(together, TOGETHER).counting(often);
    let slow = mariadb(in_turn, IN_TURN).counting(often);
    assert_eq!(stands(&world(fast, slow, 8, &[])), "open");
}

#[test]
fn where_nobody_tells_how_often_is_flushed_nothing_follows() {
    let world = world(mariadb(quick, QUICK), mariadb(flushes, FLUSHES).counting(&[]), 1, &[]);
    assert_eq!(stands(&world), "open");
}
