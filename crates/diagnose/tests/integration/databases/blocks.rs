//! Tables whose rows lie in many more blocks than they need, and logs that are full all the time: what is counted of both, and what
//! private copies show.

use super::copies::allowed;
use super::{Asked, Server, Time, World, server, world};
use duel_model::Confidence;

const SELECT: &[(&str, &str)] = &[("op", "point-select"), ("table-size", "1000")];
const FEW: &[(&str, f64)] = &[("server-hits", 4.0), ("server-reads", 0.0), ("server-rows", 1.0)];
const MANY: &[(&str, f64)] = &[("server-hits", 40.0), ("server-reads", 0.0), ("server-rows", 1.0)];

/// A statement that looks at more blocks where its rows lie among dead ones.
const SCATTERED: Time = |_, set| [0.0, if set("rows_lie") == "densely" { 50e3 } else { 150e3 }, 0.0];
/// Whatever else makes it slow.
const BUSY: Time = |_, _| [0.0, 150e3, 0.0];
const QUICK: Time = |_, _| [0.0, 50e3, 0.0];

fn holding(time: Time, bytes: u64, dead: u64, counted: &'static [(&'static str, f64)]) -> Server {
    let mut server = server(time).counting(counted);
    server.facts = server.facts.with("sql.tables_bytes", bytes).with("sql.dead_rows", dead);
    server.facts = server.facts.with("sql.copy_bytes", 150_000_000);
    server
}

fn bloated(time: Time) -> World {
    world(holding(QUICK, 1_000_000, 0, FEW), holding(time, 5_000_000, 300, MANY), 1, SELECT)
}

/// The first finding, and how firmly it stands.
fn first(world: &World) -> (String, Confidence, Option<f64>) {
    let finding = world.explanation().0.findings.remove(0);
    (finding.cause, finding.confidence, finding.explains)
}

fn told(world: &World) -> String {
    format!("{:?}", world.explanation().0)
}

#[test]
fn tables_full_of_dead_rows_are_confirmed_by_a_copy_whose_tables_were_written_anew() {
    let (explanation, probes) = allowed(bloated(SCATTERED)).explanation();
    let finding = &explanation.findings[0];
    assert_eq!((finding.cause.as_str(), finding.confidence), ("db.bloat", Confidence::Confirmed), "{finding:#?}");
    assert!(probes.contains(&"copy-rewritten-1".to_owned()) && probes.contains(&"copy-of-1".to_owned()), "{probes:?}");
    assert!(
        finding.summary.contains("B's tables take 5.00 MB, A's 1.00 MB, with 300 dead rows against 0"),
        "{finding:#?}"
    );
}

#[test]
fn without_copies_more_blocks_of_larger_tables_make_a_suspicion_and_say_what_would_show_it() {
    let world = bloated(SCATTERED);
    assert_eq!(first(&world), ("db.bloat".to_owned(), Confidence::Possible, None));
    let said = told(&world);
    assert!(said.contains("what it is worth was not; --may-copy-database 256MB lets duel try it"), "{said}");
    // It is none where the tables are as large and have no dead rows, or another plan is why.
    let as_large = super::world(holding(QUICK, 1_000_000, 0, FEW), holding(BUSY, 1_050_000, 10, MANY), 1, SELECT);
    assert_eq!(first(&as_large).0, "unknown");
    let mut planned = bloated(BUSY);
    planned.servers[1].facts =
        planned.servers[1].facts.clone().with("sql.plans", vec!["UPDATE sbtest1: Seq Scan".to_owned()]);
    const SCANS: &[(&str, f64)] = &[("server-hits", 40.0), ("server-reads", 0.0), ("server-rows", 900.0)];
    planned.servers[1].counted = SCANS;
    assert_eq!(first(&planned).0, "db.bad-plan");
    // A smaller memory reads more, and looks at no more.
    let small = holding(BUSY, 5_000_000, 0, MANY).with("sql.shared_buffers", "1MB");
    assert_eq!(first(&super::world(holding(QUICK, 1_000_000, 0, FEW), small, 1, SELECT)).0, "unknown");
}

#[test]
fn larger_tables_that_cost_nothing_are_acquitted() {
    // As many blocks for each transaction: whatever lies in the others.
    let of = |dead| world(holding(QUICK, 1_000_000, 0, FEW), holding(BUSY, 5_000_000, dead, FEW), 1, SELECT);
    let (_, ruled_out, _) = of(0).explain();
    assert!(ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
    // Dead ones may lie in the same blocks: a MariaDB with an old transaction was 1.6 times as slow with 5 % more of them.
    let (named, ruled_out, _) = of(300).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
    let evidence = of(300).explanation().0.findings.remove(0).evidence;
    let about: Vec<String> = evidence.iter().map(|line| format!("{:?}", line.about)).collect();
    let is_suspected = |about: &String| about.contains("db.bloat") && about.contains("Suspected");
    assert!(about.iter().any(is_suspected), "{about:?}");
    // More of them, and a copy without the dead rows is as slow.
    let (named, ruled_out, _) = allowed(bloated(BUSY)).explain();
    assert_eq!(named, ["unknown"]);
    assert!(ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
    // A copy that has not the gap says nothing of what lies in the tables, where its server holds old rows for an open transaction.
    let mut world = allowed(bloated(SCATTERED));
    world.copy.as_mut().unwrap().0 = holding(QUICK, 5_000_000, 300, MANY);
    assert_eq!(first(&world), ("db.bloat".to_owned(), Confidence::Possible, None));
    // Without dead rows there is nothing that it holds.
    let whole = |bytes| holding(QUICK, bytes, 0, MANY);
    world.servers[1] = holding(SCATTERED, 5_000_000, 0, MANY);
    world.copy.as_mut().unwrap().0 = whole(5_000_000);
    let (named, ruled_out, _) = world.explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
}

#[test]
fn a_server_that_does_not_tell_how_large_its_tables_are_is_not_acquitted() {
    let silent = server(BUSY).counting(MANY);
    let (_, ruled_out, _) = world(holding(QUICK, 1_000_000, 0, FEW), silent, 1, SELECT).explain();
    assert!(!ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
    // Few looks at blocks may be worth little, if a transaction takes long.
    const SOME: &[(&str, f64)] = &[("server-hits", 5.0), ("server-reads", 0.0), ("server-rows", 1.0)];
    let slow: Time = |_, _| [0.0, 50e6, 0.0];
    let (_, ruled_out, _) = world(holding(QUICK, 1_000_000, 0, FEW), server(slow).counting(SOME), 1, SELECT).explain();
    assert!(ruled_out.contains(&"db.bloat".to_owned()), "{ruled_out:?}");
}

const LITTLE: &[(&str, f64)] = &[("server-log_bytes", 300.0), ("server-flushes", 1.0)];
const MUCH: &[(&str, f64)] = &[("server-log_bytes", 4_000.0), ("server-flushes", 1.0)];

/// An update that waits for checkpoints unless there is room in the log.
const CHECKPOINTS: Time = |_: &Asked, set| [0.0, if set("max_wal_size") == "32MB" { 150e3 } else { 50e3 }, 20e3];

fn logging(time: Time, size: &str, counted: &'static [(&'static str, f64)]) -> Server {
    let mut server = server(time).with("sql.max_wal_size", size).counting(counted);
    let may = vec!["sql.max_wal_size=max_wal_size".to_owned()];
    server.facts = server.facts.with("sql.may_copy_with", may).with("sql.copy_bytes", 150_000_000);
    server
}

fn small_log(time: Time, counted: &'static [(&'static str, f64)]) -> World {
    world(logging(CHECKPOINTS, "1GB", LITTLE), logging(time, "32MB", counted), 1, &[])
}

#[test]
fn a_log_that_is_full_all_the_time_is_confirmed_by_a_copy_with_a_larger_one() {
    let (explanation, probes) = allowed(small_log(CHECKPOINTS, MUCH)).explanation();
    let finding = &explanation.findings[0];
    assert_eq!((finding.cause.as_str(), finding.confidence), ("db.small-log", Confidence::Confirmed), "{finding:#?}");
    assert_eq!(explanation.findings.len(), 1, "the same setting is no other cause as well: {explanation:#?}");
    assert!(probes.contains(&"copy-of-1-max_wal_size".to_owned()), "{probes:?}");
    assert!(finding.remedy.contains("`max_wal_size = 1GB` on B"), "{}", finding.remedy);
}

#[test]
fn a_smaller_log_is_suspected_by_what_is_written_and_never_acquitted_by_seconds() {
    assert_eq!(first(&small_log(CHECKPOINTS, MUCH)), ("db.small-log".to_owned(), Confidence::Possible, None));
    // Nothing more is written: it is not full, as far as is seen.
    let (named, ruled_out, _) = small_log(BUSY, LITTLE).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.small-log".to_owned()), "{ruled_out:?}");
    // With as large a log the copy is as slow, for some seconds.
    let busy: Time = |_, _| [0.0, 150e3, 20e3];
    let (named, ruled_out, _) = allowed(small_log(busy, MUCH)).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.small-log".to_owned()), "{ruled_out:?}");
}

#[test]
fn a_log_that_is_no_smaller_or_that_nobody_fills_is_acquitted() {
    let busy: Time = |_, _| [0.0, 150e3, 20e3];
    for (of_fast, of_slow) in [("1GB", "1GB"), ("1000MB", "1GB"), ("32MB", "1GB")] {
        let slow: Time = |_, _| [0.0, 450e3, 20e3];
        let (_, ruled_out, _) = world(logging(busy, of_fast, LITTLE), logging(slow, of_slow, MUCH), 1, &[]).explain();
        assert!(ruled_out.contains(&"db.small-log".to_owned()), "{of_fast}, {of_slow}: {ruled_out:?}");
    }
    let reads = world(logging(QUICK, "1GB", LITTLE), logging(BUSY, "32MB", MUCH), 1, SELECT);
    assert!(reads.explain().1.contains(&"db.small-log".to_owned()));
    // One that is larger, and slower for that, is another setting.
    let larger: Time = |_, set| [0.0, if set("max_wal_size") == "1GB" { 150e3 } else { 50e3 }, 20e3];
    let world = allowed(world(logging(larger, "32MB", LITTLE), logging(larger, "1GB", LITTLE), 1, &[]));
    assert_eq!(first(&world).0, "db.config");
}

#[test]
fn blocks_that_mysql_writes_back_tell_more_than_its_log() {
    const BACK: &[(&str, f64)] = &[("server-log_bytes", 300.0), ("server-writes", 1.5)];
    const SELDOM: &[(&str, f64)] = &[("server-log_bytes", 300.0), ("server-writes", 0.1)];
    let of = |time, bytes: u64, counted| {
        let mut server = server(time).with("sql.server", "10.11-MariaDB").counting(counted);
        server.facts = server.facts.with("sql.log_file_bytes", bytes);
        server
    };
    let busy: Time = |_, _| [0.0, 150e3, 20e3];
    let world = world(of(QUICK, 96 << 20, SELDOM), of(busy, 4 << 20, BACK), 1, &[]);
    assert_eq!(first(&world), ("db.small-log".to_owned(), Confidence::Possible, None));
    assert!(told(&world).contains("B writes 1.50 blocks back to its tables, A 0.10"), "{}", told(&world));
    let remedy = world.explanation().0.findings.remove(0).remedy;
    assert!(remedy.contains("`innodb_log_file_size = 100663296` on B as on A"), "{remedy}");
    let mysql = |server: Server| server.with("sql.server", "MySQL 8.4.8");
    let of_mysql = super::world(mysql(of(QUICK, 96 << 20, SELDOM)), mysql(of(busy, 4 << 20, BACK)), 1, &[]);
    let remedy = of_mysql.explanation().0.findings.remove(0).remedy;
    assert!(remedy.contains("`innodb_redo_log_capacity = 100663296` (before 8.0.30"), "{remedy}");
    // Hardly anything is written back: the log is not full.
    const NOTHING: &[(&str, f64)] = &[("server-log_bytes", 300.0), ("server-writes", 0.0)];
    const HARDLY: &[(&str, f64)] = &[("server-log_bytes", 300.0), ("server-writes", 0.001)];
    for counted in [NOTHING, HARDLY] {
        let world = super::world(of(QUICK, 96 << 20, NOTHING), of(busy, 4 << 20, counted), 1, &[]);
        assert_eq!(first(&world).0, "unknown");
    }
    // Of several files the size of one says nothing.
    let files = |server: Server, count: &str| server.with("sql.log_files", count);
    let several = super::world(files(of(QUICK, 48 << 20, SELDOM), "16"), files(of(busy, 48 << 20, BACK), "2"), 1, &[]);
    let (named, ruled_out, _) = several.explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.small-log".to_owned()), "{ruled_out:?}");
}

#[test]
fn other_settings_by_which_more_is_written_may_be_why() {
    let busy: Time = |_, _| [0.0, 150e3, 20e3];
    for (name, of_fast, of_slow) in [
        ("sql.checkpoint_timeout", "5min", "30s"),
        ("sql.shared_buffers", "1GB", "8MB"),
        ("sql.wal_level", "minimal", "logical"),
    ] {
        let fast = logging(busy, "1GB", LITTLE).with(name, of_fast);
        let slow: Time = |_, _| [0.0, 450e3, 20e3];
        let world = world(fast, logging(slow, "32MB", MUCH).with(name, of_slow), 1, &[]);
        assert_eq!(first(&world).0, "unknown", "{name}");
        // Copies differ in the size of the log alone.
        let slow: Time = |_, set| [0.0, if set("max_wal_size") == "32MB" { 450e3 } else { 150e3 }, 20e3];
        let fast = logging(busy, "1GB", LITTLE).with(name, of_fast);
        let world = super::world(fast, logging(slow, "32MB", MUCH).with(name, of_slow), 1, &[]);
        assert_eq!(first(&allowed(world)).0, "db.small-log", "{name}");
    }
}

#[test]
fn tables_whose_new_statistics_heal_a_plan_are_not_bloated() {
    // The rewritten copy has another plan as well.
    const SCANS: &[(&str, f64)] = &[("server-hits", 40.0), ("server-reads", 0.0), ("server-rows", 900.0)];
    let mut world = allowed(bloated(SCATTERED));
    let planned = |server: &mut Server| {
        server.facts = server.facts.clone().with("sql.plans", vec!["UPDATE sbtest1: Seq Scan".to_owned()]);
        server.counted = SCANS;
    };
    planned(&mut world.servers[1]);
    planned(&mut world.copy.as_mut().unwrap().0);
    assert_eq!(first(&world).0, "db.bad-plan");
    assert!(!world.explain().0.contains(&"db.bloat".to_owned()));
}

#[test]
fn what_the_systems_memory_answers_on_one_side_acquits_no_larger_tables() {
    // As many blocks read, by chance a little fewer.
    const FROM_MEMORY: &[(&str, f64)] = &[("server-hits", 2.0), ("server-reads", 2.001), ("server-rows", 1.0)];
    const FROM_DISK: &[(&str, f64)] = &[("server-hits", 2.0), ("server-reads", 2.0), ("server-rows", 1.0)];
    let of = |bytes| {
        let fast = holding(QUICK, 1_000_000, 0, FROM_MEMORY);
        world(fast, holding(BUSY, bytes, 0, FROM_DISK), 1, SELECT).explain().1
    };
    assert!(!of(5_000_000).contains(&"db.bloat".to_owned()));
    assert!(of(1_000_000).contains(&"db.bloat".to_owned()), "as large, and no more is read");
}

#[test]
fn where_copies_tell_nothing_what_was_counted_stands() {
    for (world, cause) in [(small_log(CHECKPOINTS, MUCH), "db.small-log"), (bloated(SCATTERED), "db.bloat")] {
        // None can be made, or too little is known of the gap of one.
        let none = World { copy: None, most_copied_bytes: Some(1 << 30), ..world };
        assert_eq!(first(&none), (cause.to_owned(), Confidence::Possible, None));
    }
    let unclear = World { half: 0.6, ..allowed(small_log(CHECKPOINTS, MUCH)) };
    let found = first(&unclear);
    assert_eq!((found.0.as_str(), found.1), ("db.small-log", Confidence::Possible), "{}", told(&unclear));
}
