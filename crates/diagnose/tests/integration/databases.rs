//! Causes of databases, in worlds whose truth is known: found where they are at work, and not where something like them is.

use crate::world::pair;
use duel_diagnose::{Case, Step, next};
use duel_model::{
    Bound, BusyPoll, Call, ComparePlan, Compared, Declaration, Explanation, Facts, Id, KindPlan, LoadPlan, LoadShape,
    LoopKind, Metric, NotMade, Noun, PairVerdict, Param, Plan, Probe, ProbeOutcome, SECOND_NS, Schema, Sort, Target,
    TargetObservation, Threads, TwinReading, Variation, Verdict, WorkloadPlan,
};
use std::collections::BTreeMap;

mod blocks;
mod copies;
mod flushes;

mod failure {
    use duel_model::Meaning;
    duel_model::in_order! { FailureKind:
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
    }
}

mod phase {
    use duel_model::When;
    duel_model::in_order! { Phase:
        LOGIN = "login", When::Connecting;
        PREPARE = "prepare", When::Connecting;
        FIRST_ROW = "first-row", When::Each;
        COMMIT = "commit", When::Each;
    }
}

const fn param(name: &'static str, sort: Sort, default: &'static str) -> Param {
    Param { name, value_name: "X", help: "", sort, default }
}

static SCHEMA: Schema = Schema {
    kind: "sql",
    targets: "Databases",
    op: Noun { one: "transaction", many: "transactions" },
    lane: Noun { one: "connection", many: "connections" },
    shared_lane: Noun { one: "connection", many: "connections" },
    phases: phase::ALL,
    failures: failure::ALL,
    bytes: "bytes",
    facts_title: "Databases",
    facts: &[
        Declaration::listed("sql.server", "server"),
        Declaration::listed("sql.synchronous_commit", "synchronous_commit"),
        Declaration::listed("sql.fsync", "fsync"),
        Declaration::listed("sql.work_mem", "work_mem"),
        Declaration::listed("sql.enable_indexscan", "enable_indexscan"),
        Declaration::listed("sql.shared_buffers", "shared_buffers"),
        Declaration::listed("sql.checkpoint_timeout", "checkpoint_timeout"),
        Declaration::listed("sql.log_statement", "log_statement"),
        Declaration::listed("sql.log_duration", "log_duration"),
        Declaration::listed("sql.max_wal_size", "max_wal_size"),
        Declaration::listed("sql.wal_level", "wal_level"),
        Declaration::listed("sql.log_files", "innodb_log_files_in_group"),
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.logs") },
        Declaration::listed("sql.log_file_bytes", "size of InnoDB's log"),
        Declaration::listed("sql.tables_bytes", "size of the tables, bytes"),
        Declaration { compared: Compared::Never, ..Declaration::listed("sql.dead_rows", "dead rows in the tables") },
        // What no server tells, and a copy may change.
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.rows_lie") },
        Declaration { compared: Compared::Never, ..Declaration::listed("sql.device", "device under the data folder") },
        Declaration { compared: Compared::Never, ..Declaration::listed("sql.statement.*", "server's time") },
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.may_set") },
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.set") },
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.may_copy_with") },
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.copy_bytes") },
        Declaration { compared: Compared::Never, ..Declaration::unlisted("sql.plans") },
    ],
    params: &[
        param("op", Sort::Choice(&["update-index", "point-select"]), "update-index"),
        param("keys", Sort::Choice(&["special", "uniform"]), "special"),
        param("tables", Sort::Count { least: 1, most: 64, zero: "" }, "1"),
        param("table-size", Sort::Count { least: 1, most: 1 << 30, zero: "" }, "10000"),
        param("reconnect", Sort::Switch, "off"),
        param("set", Sort::Assignments, ""),
        param("script", Sort::File, ""),
    ],
    threads: Threads::Connections,
    ..duel_model::null::SCHEMA
}
.sound();

/// What a server is asked to do.
struct Asked {
    connections: f64,
    session: BTreeMap<String, String>,
    reconnects: bool,
    rows: u64,
}

/// The time of an op by phase, from what is asked and from what its settings are.
type Time = fn(&Asked, &dyn Fn(&str) -> String) -> [f64; 3];

/// A database: what its settings are, and what that makes of an op's time, by phase in ns, for a client among so many.
#[derive(Clone)]
struct Server {
    facts: Facts,
    counted: &'static [(&'static str, f64)],
    time: Time,
    /// What letting somebody in takes is done when the first statement is prepared.
    is_late: bool,
    /// What its machine shows, where it is read.
    shows: Option<flushes::Shows>,
}

/// 50 us for a statement, 300 us for a commit that waits.
fn healthy(_: &Asked, set: &dyn Fn(&str) -> String) -> [f64; 3] {
    [0.0, 50e3, if set("synchronous_commit") == "on" { 300e3 } else { 20e3 }]
}

fn server(time: Time) -> Server {
    let may = ["synchronous_commit", "work_mem", "enable_indexscan", "log_statement"];
    let may: Vec<String> = may.iter().map(|name| format!("sql.{name}={name}")).collect();
    let facts = Facts::default()
        .with("sql.server", "PostgreSQL 15")
        .with("sql.synchronous_commit", "on")
        .with("sql.fsync", "on")
        .with("sql.work_mem", "4MB")
        .with("sql.enable_indexscan", "on")
        .with("sql.shared_buffers", "128MB")
        .with("sql.log_statement", "none")
        .with("sql.set", vec!["max_connections=80".to_owned()])
        .with("sql.plans", vec!["UPDATE sbtest1: Index Scan".to_owned()])
        .with("sql.may_set", may);
    let counted = &[("server-flushes", 1.0), ("server-reads", 0.0), ("server-rows", 1.0), ("server-lock_ns", 0.0)];
    Server { facts, counted, time, is_late: false, shows: None }
}

impl Server {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.facts = self.facts.with(name, value);
        self
    }

    fn late(self) -> Self {
        Self { is_late: true, ..self }
    }

    fn counting(self, counted: &'static [(&'static str, f64)]) -> Self {
        Self { counted, ..self }
    }

    fn phases(&self, asked: &Asked) -> [f64; 3] {
        let set = |name: &str| {
            let own = || self.facts.text(&format!("sql.{name}")).unwrap_or_default().to_owned();
            asked.session.get(name).cloned().unwrap_or_else(own)
        };
        (self.time)(asked, &set)
    }
}

struct World {
    plan: Plan,
    servers: [Server; 2],
    half: f64,
    /// Load time for finding the cause.
    budget_ns: u64,
    /// Bytes that a copy may have.
    most_copied_bytes: Option<u64>,
    /// What stands in the place of the slow server, before its setting is changed; `None`: no copy can be made.
    copy: Option<(Server, TwinReading)>,
}

fn world(fast: Server, slow: Server, connections: u32, settings: &[(&'static str, &str)]) -> World {
    let target = |name: &str| Target { name: name.into(), address: format!("postgres://{name}/d"), host: None };
    let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
    let plan = Plan {
        targets: vec![target("A"), target("B")],
        workload: WorkloadPlan::Plain(KindPlan { settings, ..KindPlan::of(&SCHEMA) }),
        load: LoadPlan {
            connections,
            threads: 1,
            kind: LoopKind::Closed { think_ns: 0 },
            bound: Bound::Duration(10 * SECOND_NS),
            connect_timeout_ns: SECOND_NS,
            op_timeout_ns: SECOND_NS,
            busy_poll: BusyPoll::Never,
            shape: LoadShape::default(),
        },
        compare: ComparePlan::default(),
        factors: Vec::new(),
    };
    World { plan, servers: [fast, slow], half: 0.03, budget_ns: 120 * SECOND_NS, most_copied_bytes: None, copy: None }
}

impl World {
    fn asked(&self, variation: &Variation) -> Asked {
        let plan = self.plan.varied(variation);
        let WorkloadPlan::Plain(kind) = &plan.workload else { panic!() };
        let value = |name: &str| kind.get(SCHEMA.param(name).unwrap()).to_owned();
        let session = value("set");
        let session = duel_model::assignments(&session).map(|(name, value)| (name.to_owned(), value.to_owned()));
        Asked {
            connections: f64::from(plan.load.connections),
            session: session.collect(),
            reconnects: value("reconnect") == "on",
            rows: value("table-size").parse().unwrap(),
        }
    }

    fn observe(&self, variation: &Variation) -> Vec<TargetObservation> {
        let asked = self.asked(variation);
        let names = self.plan.targets.iter().zip(&self.servers);
        let seen = names.map(|(target, server)| {
            let [entering, first_row, commit] = server.phases(&asked);
            let [login, prepare] = if server.is_late { [0.0, entering] } else { [entering, 0.0] };
            let phases = [login, prepare, first_row, commit];
            let ns: f64 = phases.iter().sum();
            TargetObservation {
                name: target.name.clone(),
                ok: 10_000,
                rate_per_s: Some(asked.connections * 1e9 / ns),
                service_mean_ns: Some(ns),
                phase_mean_ns: phase::ALL.iter().map(|phase| phase.id()).zip(phases).collect(),
                counted_per_op: server.counted.iter().map(|(name, count)| (Id::new(name), *count)).collect(),
                ..TargetObservation::default()
            }
        });
        seen.collect()
    }

    fn pairs(&self, seen: &[TargetObservation]) -> Vec<PairVerdict> {
        let ratio = seen[1].rate_per_s.unwrap() / seen[0].rate_per_s.unwrap();
        let (low, high) = (ratio * (-self.half).exp(), ratio * self.half.exp());
        let call = if high < 0.98 {
            Call::Slower
        } else if low > 1.02 {
            Call::Faster
        } else {
            Call::Unknown
        };
        vec![pair(Metric::Rate, call, [ratio, low, high])]
    }

    /// The causes that are named, those that are ruled out, and the probes.
    fn explain(&self) -> (Vec<String>, Vec<String>, Vec<String>) {
        let (explanation, probes) = self.explanation();
        (explanation.findings.into_iter().map(|finding| finding.cause).collect(), explanation.ruled_out, probes)
    }

    /// The explanation, and the probes.
    fn explanation(&self) -> (Explanation, Vec<String>) {
        let comparison = self.observe(&Variation::default());
        let verdict = Verdict { pairs: self.pairs(&comparison), ..Verdict::default() };
        let first_contact: Vec<_> = self.servers.iter().map(|server| Some(server.facts.clone())).collect();
        let hosts: Vec<_> = self.servers.iter().map(|server| server.shows.map(|_| Facts::default())).collect();
        let mut outcomes: Vec<ProbeOutcome> = Vec::new();
        loop {
            let case = Case {
                most_copied_bytes: self.most_copied_bytes,
                outcomes: &outcomes,
                hosts: &hosts,
                budget_left_ns: self.budget_ns.saturating_sub(outcomes.len() as u64 * 6 * SECOND_NS),
                ..Case::of(&self.plan, &verdict, &first_contact, &comparison)
            };
            match next(&case) {
                Step::Probe(probe) => outcomes.push(self.answer(probe)),
                Step::Conclude(explanation) => {
                    return (explanation, outcomes.into_iter().map(|of| of.probe.id).collect());
                }
            }
        }
    }

    fn answer(&self, probe: Probe) -> ProbeOutcome {
        let mut servers = self.servers.clone();
        let (mut twin, mut unavailable) = (None, None);
        if let Some(order) = &probe.variation.twin {
            let copied = order.copy.as_ref().unwrap();
            match &self.copy {
                Some((copy, reading)) => {
                    let mut copy = copy.clone();
                    if let Some(set) = &copied.set {
                        copy = copy.with(&set.fact, &set.value);
                    }
                    if copied.rewrites_tables {
                        copy = copy.with("sql.rows_lie", "densely");
                    }
                    servers[order.of] = copy;
                    twin = Some(reading.clone());
                }
                None => unavailable = Some(NotMade::Because("not available here".to_owned())),
            }
        }
        let connections = self.asked(&probe.variation).connections;
        let demand = |server: &Server| server.shows.map(|shows| shows.demand(connections));
        let demands = if probe.reads_hosts { servers.iter().map(demand).collect() } else { Vec::new() };
        let targets = World { plan: self.plan.clone(), servers, copy: None, ..*self }.observe(&probe.variation);
        let pairs = self.pairs(&targets);
        ProbeOutcome { pairs, targets, twin, unavailable, demands, ..ProbeOutcome::of(probe) }
    }
}

fn names(world: &World) -> Vec<String> {
    world.explain().0
}

#[test]
fn a_setting_is_found_among_others_that_differ_and_change_nothing() {
    let fast = server(healthy).with("sql.synchronous_commit", "off").with("sql.work_mem", "64MB");
    let (named, _, probes) = world(fast, server(healthy), 1, &[]).explain();
    assert_eq!(named, ["db.config"], "{probes:?}");
    assert!(probes.contains(&"settings-of-0-synchronous_commit".to_owned()), "{probes:?}");
}

#[test]
fn many_settings_that_differ_have_a_line_each_and_a_sentence_names_a_few() {
    let slow = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 500e3, 0.0];
    let mut slow = server(slow).with("sql.fsync", "off");
    let set: Vec<String> = (10..45).map(|n| format!("setting_{n}={n}")).collect();
    slow.facts = slow.facts.with("sql.set", set);
    let (explanation, _) = world(server(healthy), slow, 1, &[]).explanation();
    let [finding] = explanation.findings.as_slice() else { panic!("{explanation:?}") };
    assert_eq!(finding.cause, "unknown");
    let told = finding.evidence.iter().find(|of| of.text.contains("no session may change these")).unwrap();
    assert!(told.text.contains("these: sql.fsync is off on B and on on A; "), "{}", told.text);
    assert!(told.text.contains("setting_10 is 10 on B and as built on A; "), "{}", told.text);
    assert!(told.text.contains("; and 31 more that differ (--json)"), "{}", told.text);
    assert!(!told.text.contains("setting_20"), "{}", told.text);
    for n in 10..45 {
        let line = format!("setting_{n}: {n} on B, as built on A");
        assert!(finding.leads.differences.iter().any(|of| of.text == line), "{line}: {:?}", finding.leads);
    }
}

/// A server tells `none` where nothing is set. That is no want of an answer: it differs from all that another one has set.
#[test]
fn settings_beside_a_server_that_has_none_set_are_not_the_same_on_both() {
    let time = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 500e3, 0.0];
    let having = |mut server: Server, set: Vec<String>| {
        server.facts = server.facts.with("sql.set", set);
        server
    };
    let none = || vec!["none".to_owned()];
    let set: Vec<String> = (10..45).map(|n| format!("setting_{n}={n}")).collect();
    for (of_fast, of_slow, line) in [
        (none(), set.clone(), "setting_20: 20 on B, as built on A"),
        (set, none(), "setting_20: as built on B, 20 on A"),
    ] {
        let world = world(having(server(healthy), of_fast), having(server(time), of_slow), 1, &[]);
        let (explanation, _) = world.explanation();
        assert!(!explanation.ruled_out.contains(&"db.config".to_owned()), "{explanation:?}");
        let [finding] = explanation.findings.as_slice() else { panic!("{explanation:?}") };
        let of_settings = || finding.leads.differences.iter().filter(|of| of.text.starts_with("setting_"));
        assert_eq!(of_settings().count(), 35, "{:?}", finding.leads);
        assert!(of_settings().any(|of| of.text == line), "{line}: {:?}", finding.leads);
    }
    let (_, ruled_out, _) = world(having(server(healthy), none()), having(server(time), none()), 1, &[]).explain();
    assert!(ruled_out.contains(&"db.config".to_owned()), "{ruled_out:?}");
}

#[test]
fn a_slow_disk_is_found_by_commits_that_do_not_wait_for_it() {
    let slow = |_: &Asked, set: &dyn Fn(&str) -> String| {
        [0.0, 50e3, if set("synchronous_commit") == "on" { 3e6 } else { 20e3 }]
    };
    let slow = server(slow).with("sql.work_mem", "1MB");
    assert_eq!(names(&world(server(healthy), slow, 1, &[])), ["disk.slow-flush"]);
}

#[test]
fn a_server_that_does_not_flush_at_all_makes_no_disk_slow() {
    let never = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 50e3, 20e3];
    let named = names(&world(server(never).with("sql.fsync", "off"), server(healthy), 1, &[]));
    assert_eq!(named, ["unknown"], "only a setting of the whole server would tell");
}

#[test]
fn whatever_else_makes_a_statement_slow_is_none_of_these() {
    let busy = |_: &Asked, set: &dyn Fn(&str) -> String| {
        [0.0, 500e3, if set("synchronous_commit") == "on" { 300e3 } else { 20e3 }]
    };
    for settings in [&[][..], &[("op", "point-select")]] {
        let (named, ..) = world(server(healthy), server(busy), 1, settings).explain();
        assert_eq!(named, ["unknown"]);
        // Settings differ, and none of them matters.
        let slow =
            server(busy).with("sql.log_statement", "all").with("sql.work_mem", "1MB").with("sql.shared_buffers", "1MB");
        let (named, ruled_out, _) = world(server(healthy), slow, 1, settings).explain();
        assert_eq!(named, ["unknown"]);
        assert!(ruled_out.contains(&"db.statement-logging".to_owned()), "{ruled_out:?}");
    }
}

#[test]
fn logging_is_found_beside_other_settings() {
    let logs =
        |_: &Asked, set: &dyn Fn(&str) -> String| [0.0, if set("log_statement") == "all" { 120e3 } else { 50e3 }, 0.0];
    let slow = server(logs).with("sql.log_statement", "all").with("sql.work_mem", "1MB");
    assert_eq!(names(&world(server(logs), slow, 1, &[("op", "point-select")])), ["db.statement-logging"]);
    // Either of two has statements logged: neither alone takes the gap away.
    let either = |_: &Asked, set: &dyn Fn(&str) -> String| {
        [0.0, if set("log_statement") == "all" || set("log_duration") == "on" { 120e3 } else { 50e3 }, 0.0]
    };
    let with = |server: Server, value: &str| {
        let may = ["log_statement", "log_duration"].map(|name| format!("sql.{name}={name}")).to_vec();
        let mut server = server.with("sql.log_duration", value);
        server.facts = server.facts.with("sql.may_set", may);
        server
    };
    let slow = with(server(either).with("sql.log_statement", "all"), "on");
    assert_eq!(
        names(&world(with(server(either), "off"), slow, 1, &[("op", "point-select")])),
        ["db.statement-logging"]
    );
}

#[test]
fn another_plan_is_a_cause_where_it_looks_at_more_rows_and_no_setting_is_why() {
    const MANY: &[(&str, f64)] = &[("server-rows", 10_000.0), ("server-reads", 0.0)];
    const AS_MANY: &[(&str, f64)] = &[("server-rows", 1.0), ("server-reads", 0.0)];
    let scans = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 900e3, 0.0];
    let planned = |_: &Asked, set: &dyn Fn(&str) -> String| {
        [0.0, if set("enable_indexscan") == "on" { 50e3 } else { 900e3 }, 0.0]
    };
    let settings = [("op", "point-select")];
    let another = |time, counted| {
        let mut server = server(time).counting(counted);
        server.facts = server.facts.with("sql.plans", vec!["UPDATE sbtest1: Seq Scan".to_owned()]);
        server
    };
    assert_eq!(names(&world(server(planned), another(scans, MANY), 1, &settings)), ["db.bad-plan"]);
    let by_setting = another(planned, MANY).with("sql.enable_indexscan", "off");
    assert_eq!(names(&world(server(planned), by_setting, 1, &settings)), ["db.config"]);
    assert_eq!(
        names(&world(server(planned), another(scans, AS_MANY), 1, &settings)),
        ["unknown"],
        "it is not the plan"
    );
}

#[test]
fn a_plan_is_acquitted_where_all_tables_have_the_same() {
    let slow = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 900e3, 0.0];
    let plan = |table: u32, way: &str| format!("SELECT c FROM sbtest{table} WHERE id=?: {way}");
    let of = |time: Time, plans: Vec<String>, counted| {
        let mut server = server(time).counting(counted);
        server.facts = server.facts.with("sql.plans", plans);
        server
    };
    const FEW: &[(&str, f64)] = &[("server-rows", 1.0), ("server-reads", 0.0)];
    const MANY: &[(&str, f64)] = &[("server-rows", 10_000.0), ("server-reads", 0.0)];
    let both = vec![plan(1, "Index Scan"), plan(2, "Index Scan")];
    let settings = |tables| [("op", "point-select"), ("tables", tables)];
    for (tables, acquitted) in [("2", true), ("3", false)] {
        let world = world(of(healthy, both.clone(), FEW), of(slow, both.clone(), FEW), 1, &settings(tables));
        let (named, ruled_out, _) = world.explain();
        assert_eq!(named, ["unknown"]);
        assert_eq!(ruled_out.contains(&"db.bad-plan".to_owned()), acquitted, "{tables}: {ruled_out:?}");
    }
    // The second table lacks its index, and the first does not.
    let one = vec![plan(1, "Index Scan"), plan(2, "Seq Scan")];
    let world = world(of(healthy, both, FEW), of(slow, one, MANY), 1, &settings("2"));
    assert_eq!(names(&world), ["db.bad-plan"]);
}

#[test]
fn a_small_memory_is_found_by_rows_that_any_memory_holds() {
    const READS: &[(&str, f64)] = &[("server-reads", 2.0), ("server-rows", 1.0)];
    let small = |asked: &Asked, _: &dyn Fn(&str) -> String| [0.0, if asked.rows > 1000 { 250e3 } else { 45e3 }, 0.0];
    let large = |asked: &Asked, _: &dyn Fn(&str) -> String| [0.0, if asked.rows > 1000 { 50e3 } else { 45e3 }, 0.0];
    let settings = [("op", "point-select")];
    let slow = server(small).counting(READS).with("sql.shared_buffers", "1MB");
    assert_eq!(names(&world(server(large), slow, 1, &settings)), ["db.small-buffer-pool"]);
    // The same memory: a slow disk, or a table that was left behind.
    assert_eq!(names(&world(server(large), server(small).counting(READS), 1, &settings)), ["unknown"]);
    // A smaller memory that holds all of it.
    let other = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 250e3, 0.0];
    let (named, ruled_out, _) =
        world(server(large), server(other).with("sql.shared_buffers", "1MB"), 1, &settings).explain();
    assert_eq!(named, ["unknown"]);
    assert!(ruled_out.contains(&"db.small-buffer-pool".to_owned()), "{ruled_out:?}");
    // Twice as many blocks may be all of it, if they come from a disk that turns.
    const TWICE: &[(&str, f64)] = &[("server-reads", 0.02), ("server-rows", 1.0)];
    const ONCE: &[(&str, f64)] = &[("server-reads", 0.01), ("server-rows", 1.0)];
    let slow = server(small).counting(TWICE).with("sql.shared_buffers", "1MB");
    let (named, ruled_out, _) = world(server(large).counting(ONCE), slow, 1, &settings).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.small-buffer-pool".to_owned()), "{ruled_out:?}");
    // Which rows own SQL asks for is not known: fewer of them cannot be asked for, and nothing follows.
    let own = [("op", "point-select"), ("script", "own.sql")];
    let slow = server(small).counting(READS).with("sql.shared_buffers", "1MB");
    let (named, ruled_out, _) = world(server(large), slow, 1, &own).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.small-buffer-pool".to_owned()), "{ruled_out:?}");
}

#[test]
fn reads_of_the_device_are_a_cause_where_a_block_takes_several_and_the_devices_do_as_many() {
    const ONE: &[(&str, f64)] = &[("server-reads", 1.0), ("server-device-reads", 1.0), ("server-rows", 1.0)];
    const FOUR: &[(&str, f64)] = &[("server-reads", 1.0), ("server-device-reads", 4.0), ("server-rows", 1.0)];
    // 500 us for each read of the device, at a cap.
    let one = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 500e3, 0.0];
    let four = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 2_000e3, 0.0];
    let settings = [("op", "point-select")];
    let fast = || server(one).counting(ONE);
    assert_eq!(names(&world(fast(), server(four).counting(FOUR), 8, &settings)), ["disk.split-reads"]);
    // As many reads of a slower device.
    let (named, ruled_out, _) = world(fast(), server(four).counting(ONE), 8, &settings).explain();
    assert_eq!(named, ["unknown"]);
    assert!(ruled_out.contains(&"disk.split-reads".to_owned()), "{ruled_out:?}");
    // The server itself reads more blocks, one at a time: its memory is smaller, or its plan worse.
    const BLOCKS: &[(&str, f64)] = &[("server-reads", 4.0), ("server-device-reads", 4.0), ("server-rows", 1.0)];
    // More reads, and something else that takes so long that the device has little to do.
    let busy = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 20_000e3, 0.0];
    // Too few blocks for anything to follow from them.
    const RARE: &[(&str, f64)] = &[("server-reads", 0.01), ("server-device-reads", 4.0), ("server-rows", 1.0)];
    for slow in [server(four).counting(BLOCKS), server(busy).counting(FOUR), server(four).counting(RARE)] {
        let (named, ruled_out, _) = world(fast(), slow, 8, &settings).explain();
        assert_eq!(named, ["unknown"]);
        assert!(!ruled_out.contains(&"disk.split-reads".to_owned()), "{ruled_out:?}");
    }
    // Who does not tell of the device is neither accused nor acquitted.
    let (named, ruled_out, _) = world(server(one), server(four), 8, &settings).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"disk.split-reads".to_owned()), "{ruled_out:?}");
}

#[test]
fn letting_somebody_in_is_told_from_a_server_that_is_slow_afterwards() {
    let costly = |asked: &Asked, _: &dyn Fn(&str) -> String| [if asked.reconnects { 9e6 } else { 0.0 }, 50e3, 0.0];
    let cheap = |asked: &Asked, _: &dyn Fn(&str) -> String| [if asked.reconnects { 1e6 } else { 0.0 }, 50e3, 0.0];
    let busy = |asked: &Asked, _: &dyn Fn(&str) -> String| [if asked.reconnects { 1e6 } else { 0.0 }, 8e6, 0.0];
    let settings = [("op", "point-select"), ("reconnect", "on")];
    assert_eq!(names(&world(server(cheap), server(costly), 1, &settings)), ["db.costly-connect"]);
    assert_eq!(names(&world(server(cheap), server(busy), 1, &settings)), ["unknown"]);
    // MariaDB executes its init_connect behind the word that somebody is in.
    assert_eq!(names(&world(server(cheap), server(costly).late(), 1, &settings)), ["db.costly-connect"]);
    // Without a prepared statement that is in the statement itself. Nobody is acquitted of it then.
    let unprepared = |asked: &Asked, _: &dyn Fn(&str) -> String| {
        if asked.reconnects { [1e6, 8e6, 0.0] } else { [0.0, 50e3, 0.0] }
    };
    let (named, ruled_out, _) = world(server(cheap), server(unprepared), 1, &settings).explain();
    assert!(named == ["unknown"] && !ruled_out.contains(&"db.costly-connect".to_owned()), "{named:?} {ruled_out:?}");
    // A third of the gap is worth a name, and a tenth is not: nobody is acquitted of the first.
    let [a_third, a_tenth]: [Time; 2] = [|_, _| [4e6, 6e6, 0.0], |_, _| [1.9e6, 8e6, 0.0]];
    let acquitted = |slow| {
        let (named, ruled_out, _) = world(server(cheap), server(slow), 1, &settings).explain();
        assert_eq!(named, ["unknown"]);
        ruled_out.contains(&"db.costly-connect".to_owned())
    };
    assert!(!acquitted(a_third));
    assert!(acquitted(a_tenth));
}

#[test]
fn a_hot_row_is_found_by_what_is_waited_for_and_a_slow_commit_under_it_is_not_taken_for_it() {
    const WAITS: &[(&str, f64)] = &[("server-lock_ns", 3_100_000.0), ("server-flushes", 1.0)];
    // One at a time.
    let hot = |asked: &Asked, _: &dyn Fn(&str) -> String| [0.0, 350e3 * asked.connections, 0.0];
    let cool = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 350e3, 0.0];
    assert_eq!(names(&world(server(cool), server(hot).counting(WAITS), 10, &[])), ["lock.contention"]);
    // As long alone: locks are held for as long as its disk takes.
    let slow = |asked: &Asked, set: &dyn Fn(&str) -> String| {
        [0.0, 50e3 * asked.connections, if set("synchronous_commit") == "on" { 3e6 } else { 20e3 }]
    };
    assert_eq!(names(&world(server(healthy), server(slow).counting(WAITS), 10, &[])), ["disk.slow-flush"]);
    // Few connections get as little done for another reason, and nobody waits for a lock.
    assert_eq!(names(&world(server(cool), server(hot), 10, &[])), ["unknown"]);
}

#[test]
fn equal_servers_are_accused_of_nothing_whatever_their_settings() {
    for slow in [server(healthy), server(healthy).with("sql.work_mem", "1MB").with("sql.log_statement", "all")] {
        let (named, _, probes) = world(server(healthy), slow, 4, &[]).explain();
        assert_eq!((named.as_slice(), probes.len()), (&["none".to_owned()][..], 0));
    }
}

#[test]
fn what_is_another_thing_on_each_server_by_its_nature_is_no_setting() {
    let slow = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 500e3, 0.0];
    let on = |server: Server, device: &str| {
        server.with("sql.device", device).with("sql.statement.UPDATE sbtest1", &format!("1 us each of {device}"))
    };
    let world = world(on(server(healthy), "/dev/a"), on(server(slow), "/dev/b"), 1, &[]);
    let (named, ruled_out, _) = world.explain();
    assert_eq!(named, ["unknown"]);
    assert!(ruled_out.contains(&"db.config".to_owned()), "{ruled_out:?}");
}

#[test]
fn servers_of_two_makes_are_not_held_against_each_other_by_what_they_tell() {
    let slow = |_: &Asked, _: &dyn Fn(&str) -> String| [0.0, 500e3, 0.0];
    let maria = server(slow).with("sql.server", "10.11-MariaDB").with("sql.synchronous_commit", "off");
    let (named, ruled_out, _) = world(server(healthy), maria, 1, &[("op", "point-select")]).explain();
    assert_eq!(named, ["unknown"]);
    assert!(!ruled_out.contains(&"db.config".to_owned()), "{ruled_out:?}");
}
