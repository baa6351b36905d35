//! Causes of paths, in simulated ones beside what looks like them.

use crate::disks::Ground;
use crate::world::{self, Dice};
use duel_diagnose::{Case, Step, next_naming};
use duel_model::{
    Call, ComparePlan, Confidence, Distribution, Explanation, Facts, Finding, Id, KindPlan, LoadPlan, Metric,
    PairVerdict, Param, Plan, Probe, ProbeOutcome, Profile, SECOND_NS, Schema, Sort, Streamed, Target,
    TargetObservation, Variation, Verdict, WorkloadPlan,
};

const fn param(name: &'static str, default: &'static str) -> Param {
    Param { name, value_name: "X", help: "", sort: Sort::Count { least: 0, most: u64::MAX, zero: "" }, default }
}
static PARAMS: [Param; 8] = [
    Param { sort: Sort::Choice(&["bulk", "bulk-reverse", "rr", "connect", "udp"]), ..param("op", "bulk") },
    param("block", "1"),
    Param { sort: Sort::Switch, ..param("ahead", "on") },
    param("response", "1"),
    param("mss", "0"),
    param("window", "0"),
    Param { sort: Sort::Choice(&["system", "reno", "cubic", "bbr"]), ..param("congestion", "system") },
    param("bitrate", "10"),
];
mod phase {
    duel_model::in_order! { Phase:
        CONNECT = "connect", duel_model::When::Connecting;
    }
}
static SCHEMA: Schema = Schema {
    kind: "net",
    params: &PARAMS,
    phases: phase::ALL,
    streamed: Some(Streamed {
        by: &PARAMS[0],
        values: &["bulk", "bulk-reverse", "udp"],
        unless: Some((&PARAMS[2], "off")),
        round_trip_us: "tcp.min_rtt_us",
    }),
    ..duel_model::null::SCHEMA
};

/// Bytes of a block of `bulk`, and of a datagram.
const BLOCK: f64 = 131_072.0;

/// A path with its ends.
#[derive(Debug, Clone)]
pub struct Path {
    pub trip_s: f64,
    /// What sockets let be under way, unless it is set.
    pub window: f64,
    /// Whether TCP tells that it was the window: of its own send buffer it does not.
    pub tells_window: bool,
    pub segment: f64,
    /// What a packet costs, all streams together.
    pub packet_s: f64,
    /// Bytes per second that all streams together may have, before which packets queue.
    pub cap: f64,
    /// Bytes per second that the receiving end reads at most, all streams together: then its window closes.
    pub reads: f64,
    pub lost: f64,
    /// What a sender that minds losses makes get lost besides, by starting too fast.
    pub overshoots: f64,
    /// For how long an op waits of which something gets lost, if not for a time-out.
    pub waits_s: Option<f64>,
    /// What is counted as sent again for each op, if not what gets lost.
    pub sent_again: Option<f64>,
    /// Random losses in all that comes after the comparison.
    pub lost_later: Option<f64>,
    /// What a sender that does not mind losses still carries of what there is.
    pub carries: f64,
    /// A full window that something got lost of moves on later, by up to so many round trips.
    pub waits_for_lost: f64,
    /// CPUs at its ends have other work: under load round trips take longer.
    pub has_busy_ends: bool,
    /// What is beyond the cap is dropped, and does not queue.
    pub is_policed: bool,
    /// Datagrams beyond the cap wait, and none is dropped.
    pub has_long_queue: bool,
    /// Datagrams that are on their way when slots end.
    pub cut_off: f64,
    /// What waits does so at the other end.
    pub waits_there: bool,
    pub congestion: &'static str,
    /// How much later the program at its end answers than the path makes it.
    pub late_s: f64,
    /// Where its other end is.
    pub peer: &'static str,
}

/// 2 ms, and nothing else in the way.
pub const CLEAN: Path = Path {
    trip_s: 2e-3,
    window: 3e6,
    tells_window: true,
    segment: 1448.0,
    packet_s: 1.5e-6,
    cap: 1e12,
    reads: 600e6,
    lost: 0.0,
    overshoots: 0.0,
    waits_s: None,
    sent_again: None,
    lost_later: None,
    carries: 1.0,
    waits_for_lost: 0.0,
    has_busy_ends: false,
    is_policed: false,
    has_long_queue: false,
    cut_off: 0.0,
    waits_there: false,
    congestion: "cubic",
    late_s: 0.0,
    peer: "10.0.0.1:3835",
};

impl Path {
    fn observe(&self, op: &str, streams: u32, variation: &Variation, name: &str) -> TargetObservation {
        let set = |name: &'static str| variation.settings.get(&Id::new(name)).and_then(|text| text.parse::<f64>().ok());
        let streams = f64::from(variation.connections.unwrap_or(streams));
        let mut facts = Facts::default();
        let mut times = Distribution::default();
        // A datagram that does not come is an op that failed.
        let mut failed = 0;
        let (rate, bytes, counted): (f64, f64, Vec<(&str, f64)>) = match op {
            "udp" => {
                let sent = streams * set("bitrate").unwrap_or(10.0) * 1e6 / 8.0 / 1400.0;
                let came = sent.min(self.cap / 1400.0) * (1.0 - self.lost) - self.cut_off / 3.0;
                let waits = if self.has_long_queue { (sent - self.cap / 1400.0).max(0.0) } else { 0.0 };
                let waits = waits + self.cut_off / 3.0;
                let lost = 3.0 * (sent - came - waits);
                failed = lost as u64;
                let later_us = streams * 1e6 * (1.0 / came - 1.0 / sent);
                facts.note("udp.jitter_us", Some(if self.waits_there { 5 } else { (0.8 * later_us) as u64 }));
                let counted = [("datagrams_sent", 3.0 * sent), ("datagrams_lost", lost), ("datagrams_dropped", 0.0)];
                (came, 1400.0, counted.to_vec())
            }
            "rr" | "connect" => {
                // Who waits for a packet to be sent again: the first one of a connection waits for longer.
                let again_s = self.waits_s.unwrap_or(if op == "rr" { 0.206 } else { 1.03 });
                let usual_s = self.trip_s + 10.0 * self.packet_s;
                let lost = |number: u64| number < (1000.0 * self.lost) as u64;
                let took = |number: u64| ((usual_s + if lost(number) { again_s } else { 0.0 }) * 1e9) as u64;
                times = Distribution::from_values((0..1000).map(took));
                // The typical pair of slots has a few more of those that wait than all slots have.
                let mean_s = usual_s + if self.lost > 0.0 { 1.4 * self.lost * again_s } else { 0.0 };
                let rate = streams / mean_s;
                let again = self.sent_again.unwrap_or(self.lost);
                let sent = [("segments", 3.0 * rate * (1.0 + again)), ("retransmits", 3.0 * rate * again)];
                (rate, 1.0, sent.to_vec())
            }
            _ => {
                let segment = set("mss").map_or(self.segment, |mss| (mss - 12.0).min(self.segment));
                let congestion = variation.settings.get(&Id::new("congestion")).map_or(self.congestion, |name| name);
                let window_bytes = set("window").unwrap_or(self.window);
                let trips = 1.0 + (self.lost * window_bytes / segment).min(self.waits_for_lost);
                let window = window_bytes / self.trip_s / trips;
                // What a loss leaves under way (Mathis et al. 1997); BBR does not mind.
                let left = if self.lost > 0.0 && congestion != "bbr" { 1.2 / self.lost.sqrt() } else { 1e9 };
                let left = left * segment / self.trip_s;
                let all = [self.cap, self.reads, segment / self.packet_s].into_iter().reduce(f64::min).unwrap();
                let all = if self.lost > 0.0 { self.carries * all } else { all };
                let flow = (streams * window.min(left)).min(all);
                // An exchange waits for a round trip, and then for its answer.
                let answer = set("block").filter(|_| op == "bulk-reverse");
                let flow =
                    answer.map_or(flow, |bytes| streams * bytes / (self.trip_s + self.late_s + streams * bytes / flow));
                let is_capped = self.cap <= flow;
                let waits =
                    (window * streams <= flow && self.tells_window && set("window").is_none()) || self.reads <= flow;
                let loaded_s = self.trip_s + if is_capped && !self.is_policed { 20e-3 } else { 0.0 };
                let loaded_s = loaded_s * if self.has_busy_ends { 2.1 } else { 1.0 };
                facts.note("tcp.rtt_us", Some((loaded_s * 1e6) as u64));
                facts.note("tcp.segment_bytes", Some(segment as u64));
                facts.note("tcp.congestion", Some(congestion));
                let segments = 3.0 * flow / segment;
                // Each stream of BBR sends more than its part, to see whether there is more.
                let too_much = if congestion == "bbr" { 0.05 * streams.sqrt() } else { 0.05 };
                let of_start = if congestion == "bbr" { 0.0 } else { self.overshoots };
                let again =
                    (self.lost + of_start + if is_capped && self.is_policed { too_much } else { 0.0 }) * segments;
                let held = if waits { 2.5e6 } else { 0.0 };
                // Over all streams; who waits for a program has nothing under way.
                let late_us = answer.map_or(0.0, |bytes| 3e6 * self.late_s * flow / bytes);
                let busy_us = if answer.is_some() { 3e6 * streams - late_us } else { 3e6 };
                let counted = [("busy_us", busy_us), ("window_limited_us", held), ("buffer_limited_us", 0.0)];
                let sent = [("segments", segments), ("retransmits", again)];
                let bytes = answer.unwrap_or(BLOCK);
                (flow / bytes, bytes, counted.into_iter().chain(sent).collect())
            }
        };
        facts.note("tcp.min_rtt_us", Some((self.trip_s * 1e6) as u64));
        facts.note("tcp.timestamps", Some(true));
        facts.note("net.peer", Some(self.peer));
        TargetObservation {
            name: name.to_owned(),
            ok: (3.0 * rate) as u64,
            failed,
            rate_per_s: Some(rate),
            bytes_in_per_op: Some(bytes),
            bytes_out_per_op: Some(bytes),
            service_mean_ns: times.mean_ns(),
            service_profile: Profile::of(&times),
            reused_share: Some(1.0),
            // Once for each stream, before its first op.
            phase_mean_ns: [(phase::CONNECT.id(), streams * 1e9 * self.trip_s / (3.0 * rate))].into(),
            counted_per_op: counted
                .into_iter()
                .map(|(name, count)| (Id::new(name), count / (3.0 * rate).floor()))
                .collect(),
            negotiated: Some(facts),
            ..TargetObservation::default()
        }
    }
}

/// The paths to two ends, and what is done on them.
#[derive(Debug, Clone)]
pub struct Paths {
    plan: Plan,
    paths: [Path; 2],
}

impl Paths {
    pub fn new(names: [&str; 2], paths: [Path; 2], settings: &[(&'static str, &str)], streams: u32) -> Self {
        let target = |name: &str| Target { name: name.into(), address: format!("tcp://{name}"), host: None };
        let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
        let plan = Plan {
            targets: names.map(target).into(),
            workload: WorkloadPlan::Plain(KindPlan { schema: &SCHEMA, settings }),
            load: LoadPlan { connections: streams, ..LoadPlan::default() },
            compare: ComparePlan::default(),
            factors: vec![],
        };
        Self { plan, paths }
    }

    pub fn swap(&mut self) {
        self.paths.reverse();
    }

    /// How long an op takes on either.
    pub fn op_ns(&self) -> [f64; 2] {
        let seen = self.observe(&Variation::default(), false);
        [0, 1].map(|side| f64::from(self.plan.load.connections) * 1e9 / seen[side].rate_per_s.unwrap())
    }

    fn observe(&self, variation: &Variation, is_later: bool) -> Vec<TargetObservation> {
        let WorkloadPlan::Plain(kind) = &self.plan.workload else { unreachable!() };
        let op = kind.get(SCHEMA.param("op").unwrap());
        // What a probe does not change is as in the plan.
        let settings = kind.settings.iter().chain(&variation.settings);
        let settings = settings.map(|(name, value)| (*name, value.clone())).collect();
        let variation = &Variation { settings, ..variation.clone() };
        let now = |path: &Path| match path.lost_later.filter(|_| is_later) {
            Some(lost) => Path { lost, ..path.clone() },
            None => path.clone(),
        };
        let seen = self.paths.iter().zip(&self.plan.targets);
        seen.map(|(path, end)| now(path).observe(op, self.plan.load.connections, variation, &end.name)).collect()
    }

    /// What a probe shows, where its interval reaches so many times up and down.
    fn show(&self, probe: Probe, within: f64) -> ProbeOutcome {
        let targets = self.observe(&probe.variation, true);
        ProbeOutcome { pairs: vec![pair(&targets, within)], targets, ..ProbeOutcome::of(probe) }
    }
}

impl Ground for Paths {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn answer(&self, probe: Probe, _: &mut Dice) -> ProbeOutcome {
        self.show(probe, 1.03)
    }
}

fn pair(seen: &[TargetObservation], within: f64) -> PairVerdict {
    let ratio = seen[1].rate_per_s.unwrap() / seen[0].rate_per_s.unwrap();
    let call = match ratio {
        ratio if ratio < 0.9 => Call::Slower,
        ratio if ratio > 1.1 => Call::Faster,
        _ => Call::Equivalent,
    };
    let (baseline, target) = (seen[0].name.clone(), seen[1].name.clone());
    PairVerdict { baseline, target, ..world::pair(Metric::Rate, call, [ratio, ratio / within, within * ratio]) }
}

/// What is found where these differ: ids, the first first.
fn found(op: &'static str, streams: u32, near: &Path, far: &Path) -> Vec<String> {
    found_within([1.03, 1.03], op, streams, near, far)
}

/// The same, where the comparison's interval and those of probes reach so many times up and down.
fn found_within(within: [f64; 2], op: &'static str, streams: u32, near: &Path, far: &Path) -> Vec<String> {
    findings(within, op, streams, near, far).into_iter().map(|finding| finding.cause).collect()
}

fn findings(
    [of_comparison, of_probes]: [f64; 2],
    op: &'static str,
    streams: u32,
    near: &Path,
    far: &Path,
) -> Vec<Finding> {
    let paths = Paths::new(["near", "far"], [near, far].map(Path::clone), &[("op", op)], streams);
    let plan = &paths.plan;
    let comparison = paths.observe(&Variation::default(), false);
    let verdict = Verdict { pairs: vec![pair(&comparison, of_comparison)], ..Verdict::default() };
    let first_contact: Vec<_> = comparison.iter().map(|seen| seen.negotiated.clone()).collect();
    let mut outcomes: Vec<ProbeOutcome> = Vec::new();
    let explanation: Explanation = loop {
        let case = Case {
            outcomes: &outcomes,
            budget_left_ns: 600 * SECOND_NS,
            ..Case::of(plan, &verdict, &first_contact, &comparison)
        };
        match next_naming(&case, |_| true) {
            Step::Conclude(explanation) => break explanation,
            Step::Probe(probe) => {
                assert!(outcomes.len() < 20, "no end");
                outcomes.push(paths.show(probe, of_probes));
            }
        }
    };
    for finding in &explanation.findings {
        let texts = finding.evidence.iter().map(|line| &line.text).chain([&finding.summary, &finding.remedy]);
        texts.for_each(|text| assert!(!text.contains("NaN") && !text.contains("  ") && !text.contains('{'), "{text}"));
    }
    explanation.findings
}

fn first(op: &'static str, streams: u32, near: &Path, far: &Path) -> String {
    found(op, streams, near, far).remove(0)
}

#[test]
fn each_cause_is_named_over_one_stream_and_over_several() {
    let small_mtu = Path { segment: 524.0, packet_s: 5e-6, ..CLEAN };
    let of_packets = Path { packet_s: 5e-6, ..CLEAN };
    for streams in [1, 2] {
        for (far, cause) in [
            (Path { trip_s: 40e-3, ..CLEAN }, "net.path-delay"),
            (Path { window: 65e3, ..CLEAN }, "net.small-window"),
            (Path { window: 65e3, tells_window: false, ..CLEAN }, "net.small-window"),
            (Path { cap: 20e6, ..CLEAN }, "net.rate-cap"),
            (Path { lost: 0.01, ..CLEAN }, "net.loss"),
        ] {
            assert_eq!(first("bulk", streams, &CLEAN, &far), cause, "{streams}");
        }
        assert_eq!(first("bulk", streams, &of_packets, &small_mtu), "net.small-mtu", "{streams}");
        let lossy = |congestion| Path { lost: 0.01, congestion, ..CLEAN };
        assert_eq!(first("bulk", streams, &lossy("bbr"), &lossy("cubic")), "net.congestion-control", "{streams}");
        assert_eq!(first("rr", streams, &CLEAN, &Path { trip_s: 8e-3, ..CLEAN }), "net.path-delay", "{streams}");
    }
    assert_eq!(first("udp", 2, &CLEAN, &Path { cap: 1e6, ..CLEAN }), "net.rate-cap");
    assert_eq!(first("udp", 2, &CLEAN, &Path { lost: 0.15, ..CLEAN }), "net.loss");
    for streams in [1, 2] {
        let queues = Path { cap: 1e6, has_long_queue: true, ..CLEAN };
        assert_eq!(first("udp", streams, &CLEAN, &queues), "net.rate-cap", "{streams}");
        let reads_late = Path { waits_there: true, ..queues };
        assert_eq!(found("udp", streams, &CLEAN, &reads_late), ["unknown"], "{streams}");
    }
}

/// One exchange in forty waits for a time-out and takes a thousand times as long as the others, so that the mean over all of them and the
/// typical pair of slots are two.
#[test]
fn exchanges_that_wait_for_time_outs_are_found_by_what_is_sent_again() {
    for streams in [1, 13] {
        let lossy = Path { lost: 0.025, trip_s: 4e-5, packet_s: 1e-6, ..CLEAN };
        let near = Path { lost: 0.0, ..lossy.clone() };
        let findings = findings([1.3, 1.3], "rr", streams, &near, &lossy);
        let found = &findings[0];
        assert_eq!((&*found.cause, found.confidence), ("net.loss", Confidence::Likely), "{streams}: {findings:#?}");
        assert!(found.explains.is_some_and(|share| share > 0.8), "{found:#?}");
    }
}

#[test]
fn datagrams_that_are_on_their_way_when_slots_end_are_taken_from_what_a_cap_keeps() {
    let near = Path { cut_off: 12.0, ..CLEAN };
    let capped = Path { cap: 1e6, has_long_queue: true, ..near.clone() };
    assert_eq!(first("udp", 1, &near, &capped), "net.rate-cap");
    // On its side alone more of them are late, however few are sent.
    let takes_long = Path { cut_off: 40.0, ..capped.clone() };
    assert_eq!(found("udp", 1, &near, &takes_long), ["unknown"]);
    assert_eq!(first("udp", 1, &near, &Path { lost: 0.2, ..near.clone() }), "net.loss");
}

/// BBR goes on at what there is, and one stream fills it.
const NOT_MINDING: Path = Path { congestion: "bbr", trip_s: 20e-3, window: 30e6, packet_s: 12e-6, ..CLEAN };

#[test]
fn losses_that_the_sender_does_not_mind_are_found_by_what_little_loses() {
    for streams in [1, 2] {
        let lossy = |lost, carries| Path { lost, carries, ..NOT_MINDING };
        for (lost, carries) in [(0.008, 0.75), (0.01, 0.4), (0.05, 0.2)] {
            assert_eq!(first("bulk", streams, &NOT_MINDING, &lossy(lost, carries)), "net.loss", "{streams}");
        }
        for (what, far) in [
            ("a policer", Path { cap: 40e6, is_policed: true, ..NOT_MINDING }),
            ("a policer, and losses", Path { cap: 40e6, is_policed: true, ..lossy(0.001, 1.0) }),
            ("losses on a longer way", Path { trip_s: 40e-3, ..lossy(0.01, 0.4) }),
            ("losses, and a queue", Path { cap: 20e6, ..lossy(0.01, 0.4) }),
            // Too few to tell whether they are as many.
            ("hardly any losses", lossy(0.0011, 0.4)),
        ] {
            let found = found("bulk", streams, &NOT_MINDING, &far);
            assert!(found.iter().all(|cause| cause != "net.loss"), "{what}, {streams}: {found:?}");
        }
    }
}

/// Who connects anew waits for a second where the first packet gets lost, or is dropped at a queue: that is counted, and which of both is not told.
#[test]
fn lost_connecting_is_possible() {
    for lost in [0.005, 0.04] {
        let findings = findings([1.05, 1.05], "connect", 8, &CLEAN, &Path { lost, ..CLEAN });
        assert_eq!((&*findings[0].cause, findings[0].confidence), ("net.loss", Confidence::Possible), "{findings:#?}");
    }
    // What waits as long and is not sent again; and what waits for less than a second, beside a few that are.
    let waits = Path { lost: 0.04, sent_again: Some(0.0), ..CLEAN };
    let welcomes_late = Path { lost: 0.1, waits_s: Some(0.3), sent_again: Some(0.001), ..CLEAN };
    for (what, far) in [("not sent again", waits), ("a late welcome", welcomes_late)] {
        let found = found("connect", 8, &CLEAN, &far);
        assert!(found.iter().all(|cause| cause != "net.loss"), "{what}: {found:?}");
    }
}

#[test]
fn losses_at_random_beside_busy_cpus_are_no_cap() {
    // Packets cost little, so that short ones carry as much.
    let near = Path { packet_s: 1e-6, ..NOT_MINDING };
    for streams in [1, 2] {
        let lossy = Path { lost: 0.01, carries: 0.4, has_busy_ends: true, ..near.clone() };
        assert_eq!(found("bulk", streams, &near, &lossy), ["unknown"], "{streams}");
        for is_policed in [false, true] {
            let capped = Path { cap: 20e6, is_policed, has_busy_ends: !is_policed, ..near.clone() };
            assert_eq!(first("bulk", streams, &near, &capped), "net.rate-cap", "{is_policed}, {streams}");
        }
    }
}

/// The same where windows hold it back.
const WINDOWS_FULL: Path = Path { window: 2e6, packet_s: 1.5e-6, waits_for_lost: 1.6, ..NOT_MINDING };

#[test]
fn losses_that_a_full_window_waits_for_are_told_from_a_smaller_window_and_from_a_slow_reader() {
    for streams in [1, 2] {
        for lost in [0.01, 0.03] {
            let far = Path { lost, ..WINDOWS_FULL };
            assert_eq!(first("bulk", streams, &WINDOWS_FULL, &far), "net.loss", "{lost}, {streams}");
        }
        let short = Path { trip_s: 2e-4, ..WINDOWS_FULL };
        for (what, near, far) in [
            (
                "a smaller window, and losses that cost less",
                WINDOWS_FULL,
                Path { window: 1e6, lost: 0.01, waits_for_lost: 0.3, ..WINDOWS_FULL },
            ),
            ("a reader that losses do not matter to", short.clone(), Path { reads: 250e6, lost: 0.0011, ..short }),
            ("a far slower reader", WINDOWS_FULL, Path { reads: 10e6, lost: 0.01, ..WINDOWS_FULL }),
            ("losses on a longer way", WINDOWS_FULL, Path { lost: 0.01, trip_s: 30e-3, ..WINDOWS_FULL }),
        ] {
            let found = found("bulk", streams, &near, &far);
            assert!(found.iter().all(|cause| cause != "net.loss"), "{what}, {streams}: {found:?}");
        }
    }
}

/// What losses are worth beside windows is known at most, and a slow reader may lose as much.
#[test]
fn losses_beside_full_windows_are_possible_and_no_more() {
    let near = Path { reads: 100e6, ..NOT_MINDING };
    let reader = Path { reads: 40e6, lost: 0.01, ..near.clone() };
    let waits = Path { lost: 0.01, ..WINDOWS_FULL };
    for (near, far) in [(&near, &reader), (&WINDOWS_FULL, &waits)] {
        for finding in findings([1.03, 1.03], "bulk", 1, near, far).iter().filter(|found| found.cause == "net.loss") {
            assert_eq!(finding.confidence, Confidence::Possible, "{finding:#?}");
        }
    }
}

#[test]
fn what_another_congestion_control_loses_is_no_loss_of_the_path() {
    let lossy = Path { lost: 5e-4, congestion: "bbr", trip_s: 40e-3, overshoots: 0.01, ..CLEAN };
    let reno = Path { congestion: "reno", ..lossy.clone() };
    for streams in [1, 2] {
        assert_eq!(first("bulk", streams, &lossy, &reno), "net.congestion-control", "{streams}");
        // Known so widely that the flip leaves open whether it matters.
        assert_eq!(found_within([20.0, 20.0], "bulk", streams, &lossy, &reno), ["unknown"], "{streams}");
        // Where the path loses as much whoever sends, it is that.
        let near = Path { congestion: "cubic", lost: 0.0, overshoots: 0.0, ..lossy.clone() };
        let far = Path { lost: 0.01, ..reno.clone() };
        assert_eq!(first("bulk", streams, &near, &far), "net.loss", "{streams}");
    }
}

/// What streams took to begin is a part of the time of each op, by the count, and no place where it is spent.
#[test]
fn where_a_gap_of_streams_sits_is_not_told_by_their_beginning() {
    let far = Path { trip_s: 2.2e-3, reads: 20e6, ..CLEAN };
    for (op, is_told) in [("bulk", false), ("rr", true)] {
        let far = if op == "rr" { Path { packet_s: 800e-6, ..far.clone() } } else { far.clone() };
        let unknown = findings([1.03, 1.03], op, 1, &CLEAN, &far).remove(0);
        assert_eq!(unknown.cause, "unknown", "{op}");
        let texts = unknown.evidence.iter().map(|line| &line.text).chain([&unknown.summary, &unknown.remedy]);
        assert_eq!(texts.into_iter().any(|text| text.contains("of the extra")), is_told, "{op}: {unknown:#?}");
    }
}

/// On a way so short that no buffer makes little flow, bbr may lose at random or to a cap: neither is said.
#[test]
fn what_little_loses_is_not_known_of_the_shortest_ways() {
    let near = Path { trip_s: 5e-5, packet_s: 1e-6, window: 30e6, congestion: "bbr", ..CLEAN };
    let far = Path { lost: 0.01, carries: 0.4, ..near.clone() };
    for streams in [1, 2] {
        assert_eq!(found("bulk", streams, &near, &far), ["unknown"], "{streams}");
    }
}

/// But of several streams a larger part is too much for a cap than of one, and at random it is the same.
#[test]
fn a_policer_of_the_shortest_ways_is_told_by_what_several_streams_lose() {
    let near = Path { trip_s: 5e-5, packet_s: 1e-6, window: 30e6, congestion: "bbr", ..CLEAN };
    let policed = Path { cap: 40e6, is_policed: true, ..near.clone() };
    for streams in [1, 4, 8] {
        assert_eq!(first("bulk", streams, &near, &policed), "net.rate-cap", "{streams}");
        let lossy = |lost, later| Path { lost, lost_later: Some(later), carries: 0.1, ..near.clone() };
        for (what, far) in [
            ("as many at random", lossy(0.05, 0.05)),
            // One stream and several are looked at at different times.
            ("fewer at random after the comparison", lossy(0.05, 0.02)),
            ("more at random after the comparison", lossy(0.02, 0.05)),
            // 1 MB/s: so few segments that several lose together make a part twice as large.
            ("too few to tell", Path { cap: 1e6, ..policed.clone() }),
        ] {
            assert_eq!(found("bulk", streams, &near, &far), ["unknown"], "{what}, {streams}");
        }
    }
}

#[test]
fn losses_of_a_way_that_is_too_short_for_a_sixteenth_of_the_flow_are_found() {
    // 200 microseconds: some 70 KB are under way, a sixteenth of which no buffer holds.
    let near = Path { trip_s: 2e-4, packet_s: 2e-6, ..NOT_MINDING };
    for streams in [1, 2] {
        let far = Path { lost: 0.02, carries: 0.6, ..near.clone() };
        assert_eq!(first("bulk", streams, &near, &far), "net.loss", "{streams}");
        let policed = Path { cap: 200e6, is_policed: true, ..near.clone() };
        let found = found("bulk", streams, &near, &policed);
        assert!(found.iter().all(|cause| cause != "net.loss"), "{streams}: {found:?}");
    }
}

#[test]
fn a_gap_that_is_sure_but_known_widely_is_explained_by_what_takes_it_away() {
    // As streams are that few losses slow down, each slot by other ones: 6x, and no less than 2.6x.
    let lossy = Path { lost: 2e-4, congestion: "bbr", trip_s: 2e-3, reads: 350e6, ..CLEAN };
    let reno = Path { congestion: "reno", ..lossy.clone() };
    let found = |far| findings([2.3, 1.15], "bulk", 1, &lossy, far);
    let first = &found(&reno)[0];
    // How much of it goes away is known too widely to say more.
    assert_eq!((&*first.cause, first.confidence), ("net.congestion-control", Confidence::Likely));
    // It differs as well, and what it is does not matter to who reads slowly.
    let reads_slowly = Path { reads: 55e6, ..reno };
    let causes: Vec<String> = found(&reads_slowly).into_iter().map(|finding| finding.cause).collect();
    assert_eq!(causes, ["unknown"]);
}

#[test]
fn what_looks_like_a_cause_of_paths_is_none() {
    for streams in [1, 4] {
        for (what, far) in [
            // Its window closes, as one that is too small does; nothing queues on the way, as before a cap.
            ("a receiver that reads slowly", Path { reads: 20e6, ..CLEAN }),
            // Hundreds of filter rules, or a slow CPU: bytes are not what is capped, and the way is not long.
            ("work on each packet", Path { packet_s: 60e-6, ..CLEAN }),
        ] {
            assert_eq!(found("bulk", streams, &CLEAN, &far), ["unknown"], "{what}, {streams}");
        }
        // A longer way and a cap, each worth a part: the cap holds all streams, the way does not.
        let capped = Path { trip_s: 4e-3, cap: 20e6, ..CLEAN };
        assert_ne!(first("bulk", streams, &CLEAN, &capped), "net.path-delay", "{streams}");
        assert_eq!(first("bulk", streams, &CLEAN, &CLEAN), "none");
        assert_eq!(found("rr", streams, &CLEAN, &Path { packet_s: 800e-6, ..CLEAN }), ["unknown"], "{streams}");
    }
}
