//! Private copies of databases: what they prove, what they do not, and that nobody asks for them unasked.

use super::{Asked, Server, Time, World, server, world};
use duel_model::{Confidence, SECOND_NS, TwinReading};

const READS: &[(&str, f64)] = &[("server-reads", 2.0), ("server-rows", 1.0)];

/// A server that waits for its disk unless `fsync` is off.
const FLUSHES: Time = |_, set| [0.0, 50e3, if set("fsync") == "on" { 300e3 } else { 20e3 }];

/// A server of which copies can be made.
fn copied(time: Time) -> Server {
    let mut server = server(time);
    let may = ["fsync", "shared_buffers", "log_statement", "checkpoint_timeout"]
        .map(|name| format!("sql.{name}={name}"))
        .to_vec();
    server.facts = server.facts.with("sql.may_copy_with", may).with("sql.copy_bytes", 150_000_000);
    server
}

/// The world in which copies may be made, and are like the slow server.
pub(super) fn allowed(world: World) -> World {
    let copy = Some((world.servers[1].clone(), TwinReading::default()));
    World { most_copied_bytes: Some(1 << 30), copy, ..world }
}

fn flushing() -> World {
    world(server(FLUSHES).with("sql.fsync", "off"), copied(FLUSHES), 1, &[])
}

fn told(world: &World) -> String {
    format!("{:?}", world.explanation().0)
}

#[test]
fn a_setting_of_the_whole_server_is_confirmed_by_two_copies() {
    let (explanation, probes) = allowed(flushing()).explanation();
    let finding = &explanation.findings[0];
    assert_eq!((finding.cause.as_str(), finding.confidence), ("db.config", Confidence::Confirmed), "{finding:#?}");
    assert!(probes.contains(&"copy-of-1-fsync".to_owned()) && probes.contains(&"copy-of-1".to_owned()), "{probes:?}");
    let repeat = finding.evidence.iter().find(|line| line.probe == "copy-of-1").unwrap().repeat.as_deref();
    assert!(repeat.unwrap().ends_with(" --why --may-copy-database 1073741824"), "{repeat:?}");
}

#[test]
fn nobody_asks_for_a_copy_that_is_not_allowed_and_the_option_is_told() {
    let world = flushing();
    let (explanation, probes) = world.explanation();
    assert!(probes.iter().all(|id| !id.starts_with("copy")), "{probes:?}");
    assert_eq!(explanation.findings[0].cause, "unknown");
    let said = told(&world);
    assert!(said.contains("--may-copy-database 256MB lets duel try it"), "{said}");
    assert!(said.contains("which makes a checkpoint at once for each"), "{said}");
    let [fast, slow] = [server(FLUSHES).with("sql.fsync", "off"), copied(FLUSHES)];
    let maria =
        super::world(fast.with("sql.server", "10.11-MariaDB"), slow.with("sql.server", "10.11-MariaDB"), 1, &[]);
    assert!(told(&maria).contains("which lets commits wait for a moment for each"), "{}", told(&maria));
    // Of a server elsewhere there can be none.
    let elsewhere = super::world(server(FLUSHES).with("sql.fsync", "off"), server(FLUSHES), 1, &[]);
    assert!(!told(&elsewhere).contains("--may-copy-database"));
    let allowed = allowed(elsewhere);
    assert!(allowed.explanation().1.iter().all(|id| !id.starts_with("copy")));
    assert!(told(&allowed).contains("of PostgreSQL and MariaDB servers on this machine only"));
}

#[test]
fn a_copy_as_it_is_without_the_gap_accuses_and_acquits_nobody() {
    let mut world = allowed(flushing());
    world.copy = Some((server(FLUSHES).with("sql.fsync", "off"), TwinReading::default()));
    let (explanation, _) = world.explanation();
    assert_eq!(explanation.findings[0].cause, "unknown");
    assert!(!explanation.ruled_out.contains(&"db.config".to_owned()), "{:?}", explanation.ruled_out);
    assert!(told(&world).contains("in what has become of the running server"));
    // Half of it is not the gap.
    let half: Time = |_, set| [0.0, 50e3, if set("fsync") == "on" { 80e3 } else { 20e3 }];
    world.copy = Some((copied(half), TwinReading::default()));
    assert_eq!(world.explanation().0.findings[0].cause, "unknown");
    world.copy = None;
    let (explanation, _) = world.explanation();
    assert_eq!(explanation.findings[0].cause, "unknown");
    assert!(!explanation.ruled_out.contains(&"db.config".to_owned()), "{:?}", explanation.ruled_out);
}

#[test]
fn a_copy_with_another_gap_than_its_server_explains_no_more_than_that() {
    let mut world = allowed(flushing());
    // Ten times the time: whatever that is, it is not the gap.
    let far_slower: Time = |_, set| [0.0, 50e3, if set("fsync") == "on" { 3500e3 } else { 20e3 }];
    world.copy = Some((copied(far_slower), TwinReading::default()));
    assert_eq!(world.explanation().0.findings[0].cause, "unknown");
    assert!(told(&world).contains("that is not the gap itself"));
    // 4.2 times on the copy, all of which goes away, of 5 times on the server.
    let faster: Time = |_, set| [0.0, 50e3, if set("fsync") == "on" { 244e3 } else { 20e3 }];
    world.copy = Some((copied(faster), TwinReading::default()));
    let finding = &world.explanation().0.findings[0];
    assert_eq!((finding.cause.as_str(), finding.confidence), ("db.config", Confidence::Confirmed), "{finding:#?}");
    assert!((finding.explains.unwrap() - (294.0f64 / 70.0).ln() / 5f64.ln()).abs() < 1e-6, "{finding:#?}");
    assert!(finding.summary.contains("89 % of the gap is gone"), "{}", finding.summary);
}

#[test]
fn where_there_is_no_time_for_copies_a_longer_one_is_asked_for() {
    let world = World { budget_ns: 10 * SECOND_NS, ..allowed(flushing()) };
    let (explanation, probes) = world.explanation();
    assert!(probes.iter().all(|id| !id.starts_with("copy")), "one tells nothing without the other: {probes:?}");
    assert_eq!(explanation.findings[0].cause, "unknown");
    let said = told(&world);
    assert!(said.contains("no time left for private copies") && said.contains("a longer --why-budget"), "{said}");
}

#[test]
fn a_copy_whose_gap_may_be_that_of_its_server_is_not_said_to_have_another_one() {
    let world = World { half: 0.9, ..allowed(flushing()) };
    assert_eq!(world.explanation().0.findings[0].cause, "unknown");
    let said = told(&world);
    assert!(said.contains("too little is known of how large that gap is, so nothing follows"), "{said}");
    assert!(!said.contains("not the gap itself"), "{said}");
}

#[test]
fn from_a_copy_without_some_of_its_servers_settings_and_without_the_gap_nothing_follows() {
    let mut world = allowed(flushing());
    let left_out = vec!["synchronous_standby_names".to_owned(), "logging_collector".to_owned()];
    let reading = TwinReading { left_out, ..TwinReading::default() };
    world.copy = Some((server(FLUSHES).with("sql.fsync", "off"), reading.clone()));
    let said = told(&world);
    assert!(
        said.contains("without the server's synchronous_standby_names, logging_collector, so nothing follows"),
        "{said}"
    );
    assert!(!said.contains("in what has become of the running server"), "{said}");
    // A copy that shows the gap shows that it is none of these.
    world.copy = Some((world.servers[1].clone(), reading));
    assert_eq!(world.explanation().0.findings[0].cause, "db.config");
}

#[test]
fn a_setting_that_changes_nothing_on_a_copy_is_acquitted_where_the_copy_was_as_warm() {
    let busy: Time = |_, _| [0.0, 500e3, 300e3];
    for (may_not_hold, acquitted) in [(false, true), (true, false)] {
        let world = world(server(FLUSHES).with("sql.fsync", "off"), copied(busy), 1, &[]);
        let mut world = allowed(world);
        world.copy.as_mut().unwrap().1.may_not_hold = may_not_hold;
        let (named, ruled_out, _) = world.explain();
        assert_eq!(named, ["unknown"]);
        assert_eq!(ruled_out.contains(&"db.config".to_owned()), acquitted, "{ruled_out:?}");
    }
}

#[test]
fn copies_that_began_with_unknown_parts_of_their_tables_in_memory_confirm_and_acquit_nothing() {
    let unlike = TwinReading { warming_was_cut: true, ..TwinReading::default() };
    let mut likely = allowed(flushing());
    likely.copy.as_mut().unwrap().1 = unlike.clone();
    let finding = &likely.explanation().0.findings[0];
    assert_eq!((finding.cause.as_str(), finding.confidence), ("db.config", Confidence::Likely), "{finding:#?}");
    assert!(told(&likely).contains("could not read its tables into memory in time"));
    let busy: Time = |_, _| [0.0, 500e3, 300e3];
    let mut open = allowed(world(server(FLUSHES).with("sql.fsync", "off"), copied(busy), 1, &[]));
    open.copy.as_mut().unwrap().1 = unlike;
    assert!(!open.explain().1.contains(&"db.config".to_owned()));
}

#[test]
fn a_setting_that_acts_over_minutes_is_not_acquitted_by_a_copy_of_some_seconds() {
    let busy: Time = |_, _| [0.0, 500e3, 300e3];
    let fast = server(FLUSHES).with("sql.fsync", "off").with("sql.checkpoint_timeout", "1h");
    let slow = copied(busy).with("sql.fsync", "off").with("sql.checkpoint_timeout", "30s");
    let world = allowed(world(fast, slow, 1, &[]));
    let (named, ruled_out, _) = world.explain();
    assert_eq!((named, ruled_out.contains(&"db.config".to_owned())), (vec!["unknown".to_owned()], false));
    assert!(
        told(&world).contains("Of checkpoint_timeout they show little: that acts over minutes"),
        "{}",
        told(&world)
    );
}

#[test]
fn logging_that_this_user_may_not_set_is_found_on_copies() {
    let logs: Time = |_, set| [0.0, if set("log_statement") == "all" { 120e3 } else { 50e3 }, 0.0];
    let may_not = |mut server: Server| {
        server.facts = server.facts.with("sql.may_set", vec!["sql.work_mem=work_mem".to_owned()]);
        server
    };
    let slow = may_not(copied(logs)).with("sql.log_statement", "all");
    let world = world(may_not(server(logs)), slow, 1, &[("op", "point-select")]);
    assert_eq!(world.explain().0, ["unknown"]);
    assert_eq!(allowed(world).explain().0, ["db.statement-logging"]);
}

#[test]
fn a_small_memory_is_found_under_writes_and_is_one_cause() {
    let small: Time = |_, set| [0.0, if set("shared_buffers") == "1MB" { 250e3 } else { 50e3 }, 20e3];
    let slow = copied(small).counting(READS).with("sql.shared_buffers", "1MB");
    let world = world(server(small), slow, 1, &[]);
    assert_eq!(world.explain().0, ["unknown"]);
    assert_eq!(allowed(world).explain().0, ["db.small-buffer-pool"]);
    // A memory of another size that is not too small is a setting like others.
    let other = copied(small).with("sql.shared_buffers", "1MB");
    assert_eq!(allowed(super::world(server(small), other, 1, &[])).explain().0, ["db.config"]);
    // Slow for another reason, with a small memory: the copy with more of it is as slow.
    let busy: Time = |_: &Asked, _| [0.0, 250e3, 20e3];
    let slow = copied(busy).counting(READS).with("sql.shared_buffers", "1MB");
    assert_eq!(allowed(super::world(server(small), slow, 1, &[])).explain().0, ["unknown"]);
}
