//! Causes of file systems and devices, held against simulated disks whose truth is known.

use crate::world::{Dice, pair};
#[allow(dead_code, reason = "each test of the world uses its own part")]
use duel_diagnose::{Case, Step, as_below, next_naming};
use duel_disk::SCHEMA;
use duel_model::{
    Bound, Call, ComparePlan, Explanation, Facts, Id, KindPlan, Layer, LoadPlan, LoadShape, LoopKind, Metric, Nanos,
    PairVerdict, Plan, Probe, ProbeOutcome, SECOND_NS, Target, TargetObservation, Variation, Verdict, WorkloadPlan,
};
use std::collections::BTreeMap;

/// What a disk costs.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Of a call, and of each byte of it; calls that it has at a time.
    pub call_ns: f64,
    pub byte_ns: f64,
    pub at_a_time: f64,
    pub calls_per_s: f64,
    pub bytes_per_s: f64,
    pub flush_ns: f64,
    /// Whatever is written is flushed.
    pub is_synchronous: bool,
    /// For each byte that does not compress.
    pub content_ns: f64,
    pub unit_bytes: f64,
    /// Only what goes through the page cache is completed to a unit.
    pub completes_in_cache: bool,
    /// Reads beside each op at a random place, where the file is larger than this.
    pub misses: f64,
    pub fits_bytes: f64,
    /// A call has no more bytes than this.
    pub most_bytes: f64,
    /// Calls in flight that lie next to each other are one call to the device.
    pub merges: bool,
    /// Ops in order that the page cache makes one call of.
    pub gathers: f64,
    /// From one end to the other of all that is used.
    pub seek_ns: f64,
    pub has_mechanics: bool,
    /// What the system tells of its control groups: reads per second, bytes written per second, and bytes read per second.
    pub limits: [Option<u64>; 3],
    /// The part of the file that is holes.
    pub holes: f64,
}

pub const GOOD: Disk = Disk {
    call_ns: 80e3,
    byte_ns: 0.4,
    at_a_time: 64.0,
    calls_per_s: f64::INFINITY,
    bytes_per_s: f64::INFINITY,
    flush_ns: 200e3,
    is_synchronous: false,
    content_ns: 0.0,
    unit_bytes: 4096.0,
    completes_in_cache: false,
    misses: 0.0,
    fits_bytes: f64::INFINITY,
    most_bytes: f64::INFINITY,
    merges: false,
    gathers: 1.0,
    seek_ns: 0.0,
    has_mechanics: false,
    limits: [None; 3],
    holes: 0.0,
};

/// As many as a target did in a comparison or a probe.
const OPS: f64 = 1000.0;

#[derive(Debug, Clone)]
pub struct Disks {
    plan: Plan,
    pub disks: [Disk; 2],
    pub noise: f64,
    seed: u64,
    /// Whether the devices tell what they did.
    counts: bool,
}

struct Shown {
    rate: f64,
    reads: f64,
    writes: f64,
    read_bytes: f64,
    written_bytes: f64,
    flush_ns: f64,
}

impl Disks {
    pub fn new(disks: [Disk; 2], settings: &[(&'static str, &str)], seed: u64) -> Self {
        let settings = settings.iter().map(|(name, value)| (Id::new(name), (*value).to_owned())).collect();
        let target = |name: &str| Target { name: name.into(), address: format!("/mnt/{name}"), host: None };
        let plan = Plan {
            targets: vec![target("A"), target("B")],
            workload: WorkloadPlan::Plain(KindPlan { settings, ..KindPlan::of(&SCHEMA) }),
            load: LoadPlan {
                connections: 1,
                threads: 1,
                kind: LoopKind::Closed { think_ns: 0 },
                bound: Bound::Duration(30 * SECOND_NS),
                connect_timeout_ns: SECOND_NS,
                op_timeout_ns: 30 * SECOND_NS,
                busy_poll: duel_model::BusyPoll::Never,
                shape: LoadShape::default(),
            },
            compare: ComparePlan::default(),
            factors: Vec::new(),
        };
        Self { plan, disks, noise: 0.01, seed, counts: true }
    }

    /// As many ops per second as a side's disk does under the plan.
    pub fn rate(&self, side: usize) -> f64 {
        self.show(&self.disks[side], &Variation::default()).rate
    }

    pub fn swap(&mut self) {
        self.disks.reverse();
    }

    fn show(&self, disk: &Disk, variation: &Variation) -> Shown {
        let plan = self.plan.varied(variation);
        let WorkloadPlan::Plain(kind) = &plan.workload else { unreachable!() };
        let text = |name: &str| kind.get(SCHEMA.param(name).unwrap());
        let number = |name: &str| text(name).parse::<f64>().unwrap();
        let (op, block) = (text("op"), number("block"));
        let size = if number("size") > 0.0 { number("size") } else { 256e6 };
        let (is_random, writes) = (op.starts_with("rand"), op.contains("write") || op.ends_with("sync"));
        // What is flushed and written past the page cache is not completed to a unit.
        let completes = !(disk.completes_in_cache && text("direct") == "on");
        let whole = if completes { block.max(disk.unit_bytes) } else { block };
        let is_part = completes && block < disk.unit_bytes;
        let misses = if is_random && size > disk.fits_bytes { disk.misses } else { 0.0 };
        let pieces = (whole / disk.most_bytes).ceil().max(1.0);
        let of_device = if !writes || is_part { 1.0 - disk.holes } else { 0.0 };
        let (reads, read_bytes) = (misses + pieces * of_device, 4096.0 * misses + whole * of_device);
        let gathered = if is_random || text("direct") == "on" { 1.0 } else { disk.gathers };
        // Of what is gathered for longer than a slot nothing reaches the device.
        let is_reached = writes && pieces / gathered >= 1.0 / OPS;
        let (written, written_bytes) = if is_reached { (pieces / gathered, whole) } else { (0.0, 0.0) };
        let (calls, bytes) = (reads + written, read_bytes + written_bytes);
        let flush_ns = if op.ends_with("sync") || (writes && disk.is_synchronous) { disk.flush_ns } else { 0.0 };
        let seek_ns = if is_random { disk.seek_ns * (size / 256e6).min(1.0).sqrt() } else { 0.0 };
        let content_ns = disk.content_ns * block * (1.0 - number("compressibility"));
        let op_ns = calls * disk.call_ns + bytes * disk.byte_ns + flush_ns + seek_ns + content_ns;
        let in_flight = number("depth").min(if seek_ns > 0.0 { disk.at_a_time.min(4.0) } else { disk.at_a_time });
        let rate = (in_flight * 1e9 / op_ns).min(disk.calls_per_s / calls).min(disk.bytes_per_s / bytes);
        let merged = if disk.merges && !is_random { number("depth") } else { 1.0 };
        Shown { rate, reads: reads / merged, writes: written / merged, read_bytes, written_bytes, flush_ns }
    }

    fn observe(&self, index: usize, variation: &Variation, dice: &mut Dice) -> TargetObservation {
        let disk = &self.disks[index];
        let shown = self.show(disk, variation);
        let counted = [
            ("device-reads", shown.reads),
            ("device-read-bytes", shown.read_bytes),
            ("device-writes", shown.writes),
            ("device-written-bytes", shown.written_bytes),
        ];
        let options = match disk {
            Disk { is_synchronous: true, .. } => "rw,sync,relatime",
            Disk { content_ns, .. } if *content_ns > 0.0 => "rw,compress-force=zstd:15",
            _ => "rw",
        };
        let limits = ["disk.limit_reads_per_s", "disk.limit_written_bytes_per_s", "disk.limit_read_bytes_per_s"]
            .into_iter()
            .zip(disk.limits);
        let facts = limits.fold(Facts::default(), |facts, (name, limit)| match limit {
            Some(limit) => facts.with(name, limit),
            None => facts,
        });
        let facts = facts
            .with("disk.target", "a work file in a folder")
            .with("disk.allocation_bytes", disk.unit_bytes as u64)
            .with("disk.is_rotational", disk.has_mechanics)
            .with("disk.read_ahead_kib", 128_u64)
            .with("disk.mount_options", options);
        let rate = shown.rate * (self.noise * dice.normal()).exp();
        TargetObservation {
            name: self.plan.targets[index].name.clone(),
            ok: OPS as u64,
            failed: 0,
            rate_per_s: Some(rate),
            service_mean_ns: Some(1e9 / rate),
            phase_mean_ns: BTreeMap::from([(Id::new("flush"), shown.flush_ns)]),
            phase_profile: BTreeMap::default(),
            service_profile: duel_model::Profile::default(),
            body_bytes_per_op: Some(0.0),
            bytes_in_per_op: None,
            bytes_out_per_op: None,
            counted_per_op: counted
                .into_iter()
                .filter(|_| self.counts)
                .map(|(name, count)| (Id::new(name), count))
                .collect(),
            reused_share: None,
            resumed_share: None,
            negotiated: Some(facts),
            ..TargetObservation::default()
        }
    }

    fn pairs(&self, variation: &Variation, dice: &mut Dice) -> Vec<PairVerdict> {
        let [a, b] = self.disks.each_ref().map(|disk| self.show(disk, variation).rate);
        let ratio = b / a * (self.noise * dice.normal()).exp();
        let half = 1.96 * self.noise * dice.between(0.8, 1.3);
        let (low, high) = (ratio * (-half).exp(), ratio * half.exp());
        let margin = 1.0 + self.plan.compare.margin;
        let call = match () {
            () if low > margin => Call::Faster,
            () if high < 1.0 / margin => Call::Slower,
            () if low > 1.0 / margin && high < margin => Call::Equivalent,
            () => Call::Unknown,
        };
        vec![pair(Metric::Rate, call, [ratio, low, high])]
    }

    fn answer(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        let targets = (0..2).map(|index| self.observe(index, &probe.variation, dice)).collect();
        let pairs = self.pairs(&probe.variation, dice);
        ProbeOutcome { targets, pairs, ..ProbeOutcome::of(probe) }
    }

    fn explain(&self) -> Explanation {
        let mut dice = Dice(self.seed);
        let verdict = Verdict { pairs: self.pairs(&Variation::default(), &mut dice), ..Verdict::default() };
        let comparison: Vec<_> = (0..2).map(|index| self.observe(index, &Variation::default(), &mut dice)).collect();
        let first_contact: Vec<_> = comparison.iter().map(|seen| seen.negotiated.clone()).collect();
        let mut outcomes: Vec<ProbeOutcome> = Vec::new();
        let mut budget_left_ns = 600 * SECOND_NS;
        loop {
            let case = Case {
                outcomes: &outcomes,
                budget_left_ns,
                ..Case::of(&self.plan, &verdict, &first_contact, &comparison)
            };
            match next_naming(&case, |_| true) {
                Step::Conclude(explanation) => return explanation,
                Step::Probe(probe) => {
                    assert!(outcomes.len() < 20, "no end");
                    budget_left_ns -= probe.budget_ns;
                    outcomes.push(self.answer(probe, &mut dice));
                }
            }
        }
    }

    /// What is named, with its target.
    fn named(&self) -> Vec<(String, Option<String>)> {
        self.explain().findings.into_iter().map(|found| (found.cause, found.target)).collect()
    }
}

/// What lies below simulated servers.
pub trait Ground {
    fn plan(&self) -> &Plan;
    fn answer(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome;
}

impl Ground for Disks {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn answer(&self, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        Disks::answer(self, probe, dice)
    }
}

/// A layer below servers, once it was looked at.
pub struct Below<'a> {
    layer: Layer,
    ground: &'a dyn Ground,
    verdict: Verdict,
    comparison: Vec<TargetObservation>,
    first_contact: Vec<Option<Facts>>,
    outcomes: Vec<ProbeOutcome>,
}

impl<'a> Below<'a> {
    pub fn case(&self, budget_left_ns: Nanos) -> (Layer, Case<'_>) {
        let case = Case {
            outcomes: &self.outcomes,
            budget_left_ns,
            ..Case::of(self.ground.plan(), &self.verdict, &self.first_contact, &self.comparison)
        };
        (self.layer, case)
    }

    /// Makes a probe of a layer below, as the laboratory does.
    pub fn answer(below: &mut Vec<Self>, ground: &'a dyn Ground, probe: Probe, dice: &mut Dice) -> ProbeOutcome {
        let layer = probe.below.unwrap();
        if let Some(below) = below.iter_mut().find(|below| below.layer == layer) {
            let outcome = below.ground.answer(as_below(&probe).unwrap(), dice);
            below.outcomes.push(outcome.clone());
            return ProbeOutcome { probe, ..outcome };
        }
        let outcome = ground.answer(probe, dice);
        let comparison = outcome.targets.clone();
        below.push(Self {
            layer,
            ground,
            verdict: Verdict { pairs: outcome.pairs.clone(), ..Verdict::default() },
            first_contact: comparison.iter().map(|seen| seen.negotiated.clone()).collect(),
            comparison,
            outcomes: Vec::new(),
        });
        outcome
    }
}

/// What a cause makes of a good disk, and the plan under which that shows.
type Fault = (&'static str, fn(f64) -> Disk, &'static [(&'static str, &'static str)]);

/// Strengths run from 2 to 8.
const FAULTS: &[Fault] = &[
    (
        "disk.iops-cap",
        |strength| Disk { calls_per_s: 8000.0 / strength, ..GOOD },
        &[("op", "randread"), ("direct", "on"), ("depth", "4")],
    ),
    (
        "disk.bandwidth-cap",
        |strength| Disk { bytes_per_s: 40e6 / strength, ..GOOD },
        &[("op", "randwrite"), ("direct", "on"), ("depth", "4")],
    ),
    ("disk.slow-flush", |strength| Disk { flush_ns: 200e3 * 2.0 * strength, ..GOOD }, &[("op", "fsync")]),
    ("disk.compression", |strength| Disk { content_ns: 15.0 * strength, ..GOOD }, &[("op", "write")]),
    (
        "disk.block-size",
        |strength| Disk { unit_bytes: 65_536.0, byte_ns: 0.2 * strength, ..GOOD },
        &[("op", "randwrite"), ("direct", "on")],
    ),
    (
        "disk.metadata-misses",
        |strength| Disk { misses: strength / 2.0, fits_bytes: 100e6, ..GOOD },
        &[("op", "randread"), ("direct", "on")],
    ),
    (
        "disk.slow-spindle",
        |strength| Disk { seek_ns: 100e3 * strength, has_mechanics: true, ..GOOD },
        &[("op", "randread"), ("direct", "on")],
    ),
];

fn world(fault: &Fault, strength: f64, is_baseline: bool, seed: u64) -> Disks {
    let slow = (fault.1)(strength);
    // A unit makes a difference by what it moves: the other side moves a byte as fast.
    let good = Disk { byte_ns: slow.byte_ns, ..GOOD };
    Disks::new(if is_baseline { [slow, good] } else { [good, slow] }, fault.2, seed)
}

#[test]
fn each_cause_is_found_on_either_side() {
    for fault in FAULTS {
        for (is_baseline, name) in [(true, "A"), (false, "B")] {
            let world = world(fault, 5.0, is_baseline, 7);
            let named = world.named();
            assert_eq!(named[0], (fault.0.to_owned(), Some(name.to_owned())), "{:#?}", world.explain());
        }
    }
}

#[test]
fn in_random_worlds_causes_are_found_and_nobody_is_accused_of_another() {
    let mut dice = Dice(20_261_125);
    let (mut right, mut all) = (0, 0);
    for number in 0..700 {
        let fault = &FAULTS[number % FAULTS.len()];
        let is_baseline = dice.chance(0.5);
        let mut world = world(fault, dice.between(2.0, 8.0), is_baseline, dice.bits());
        world.noise = dice.between(0.003, 0.03);
        let slow = if is_baseline { "A" } else { "B" };
        for (cause, target) in world.named() {
            let is_right = cause == fault.0 && target.as_deref() == Some(slow);
            assert!(
                is_right || ["unknown", "none"].contains(&&*cause),
                "{cause} instead of {}: {:#?}",
                fault.0,
                world.explain()
            );
            right += usize::from(is_right);
        }
        all += 1;
    }
    println!("{right} of {all} were named");
    assert!(right * 10 >= all * 9, "{right} of {all}");
}

#[test]
fn what_only_looks_like_a_cause_is_not_named() {
    let longer = Disk { call_ns: 400e3, ..GOOD };
    let slower_bytes = Disk { call_ns: 200e3, byte_ns: 40.0, ..GOOD };
    let in_pieces = Disk { misses: 1.0, fits_bytes: 0.0, ..GOOD };
    let both = |name: &'static str| ("op", name);
    for (disk, settings) in [
        (&longer, vec![both("randread"), ("direct", "on"), ("depth", "4")]),
        (&longer, vec![both("fsync")]),
        (&slower_bytes, vec![both("randwrite"), ("direct", "on")]),
        (&slower_bytes, vec![both("write")]),
        (&in_pieces, vec![both("randread"), ("direct", "on")]),
        // A disk with mechanics that is slow for another reason.
        (&Disk { has_mechanics: true, ..longer.clone() }, vec![both("randread"), ("direct", "on")]),
    ] {
        for seed in 0..10 {
            let world = Disks::new([GOOD, disk.clone()], &settings, seed);
            let named = world.named();
            assert!(named.iter().all(|(cause, _)| cause == "unknown"), "{named:?} of {disk:?} under {settings:?}");
        }
    }
}

#[test]
fn a_cap_on_both_is_not_what_makes_one_of_them_slow() {
    // Both are capped; one moves more for each op.
    let capped = Disk { calls_per_s: 400.0, ..GOOD };
    let misses = Disk { misses: 2.0, fits_bytes: 100e6, ..capped.clone() };
    for seed in 0..10 {
        let named = Disks::new([capped.clone(), misses.clone()], &[("op", "randread"), ("direct", "on")], seed).named();
        assert_eq!(named[0].0, "disk.metadata-misses", "{named:?}");
        assert!(named.iter().all(|(cause, _)| !cause.ends_with("-cap")), "{named:?}");
    }
}

#[test]
fn a_limit_that_is_known_confirms_a_cap_only_where_the_device_keeps_to_it() {
    use duel_model::Confidence::{Confirmed, Likely};
    let told = |fault: &Fault, limits: [Option<u64>; 3]| {
        let mut world = world(fault, 5.0, false, 11);
        world.disks[1].limits = limits;
        let finding = world.explain().findings.swap_remove(0);
        (finding.cause, finding.confidence)
    };
    // The caps are 1,600 reads, and 8 MB written, per second.
    for (fault, limits) in [(&FAULTS[0], [Some(1600), None, None]), (&FAULTS[1], [None, Some(8_000_000), None])] {
        assert_eq!(told(fault, limits), (fault.0.to_owned(), Confirmed));
        assert_eq!(told(fault, [None; 3]), (fault.0.to_owned(), Likely), "nothing is known of a limit");
        let far_above = limits.map(|limit| limit.map(|limit| 5 * limit));
        assert_eq!(told(fault, far_above), (fault.0.to_owned(), Likely), "another cap comes first");
    }
    // A limit of writes does not hold back who reads.
    assert_eq!(told(&FAULTS[0], [None, Some(1600 * 4096), None]).1, Likely);
}

#[test]
fn a_cap_of_calls_is_found_where_those_in_flight_are_merged() {
    for op in ["read", "write"] {
        let disk = Disk { calls_per_s: 900.0, merges: true, ..GOOD };
        for seed in 0..10 {
            let named = Disks::new([GOOD, disk.clone()], &[("op", op), ("direct", "on")], seed).named();
            assert_eq!(named, [("disk.iops-cap".to_owned(), Some("B".to_owned()))], "{op}");
        }
    }
}

#[test]
fn caps_are_told_apart_where_large_blocks_are_cut() {
    let settings = [("op", "read"), ("direct", "on"), ("block", "131072")];
    let cut = Disk { most_bytes: 524_288.0, ..GOOD };
    for (cause, disk) in [
        ("disk.iops-cap", Disk { calls_per_s: 300.0, ..cut.clone() }),
        ("disk.bandwidth-cap", Disk { bytes_per_s: 100e6, ..cut.clone() }),
    ] {
        for seed in 0..10 {
            let named = Disks::new([cut.clone(), disk.clone()], &settings, seed).named();
            assert_eq!(named, [(cause.to_owned(), Some("B".to_owned()))]);
        }
    }
}

#[test]
fn what_the_page_cache_gathers_acquits_no_cap() {
    let gathers = Disk { gathers: 8.0, ..GOOD };
    for (cause, disk) in [
        ("disk.iops-cap", Disk { calls_per_s: 300.0, ..gathers.clone() }),
        ("disk.bandwidth-cap", Disk { bytes_per_s: 4e6, ..gathers.clone() }),
        // A call or two, of megabytes.
        ("disk.bandwidth-cap", Disk { bytes_per_s: 4e6, gathers: 600.0, ..GOOD }),
    ] {
        let explanation = Disks::new([gathers.clone(), disk], &[("op", "write")], 3).explain();
        assert!(explanation.findings.iter().all(|found| found.cause == "unknown"), "{explanation:#?}");
        assert!(!explanation.ruled_out.iter().any(|id| id == cause), "{cause}: {explanation:#?}");
    }
    // Where nothing reaches the device, it holds nothing back.
    let in_memory = Disk { gathers: 1e9, content_ns: 1.0, ..GOOD };
    let slow = Disk { content_ns: 5.0, ..in_memory.clone() };
    let explanation = Disks::new([in_memory, slow], &[("op", "write")], 3).explain();
    for cause in ["disk.iops-cap", "disk.bandwidth-cap"] {
        assert!(explanation.ruled_out.iter().any(|id| id == cause), "{cause}: {explanation:#?}");
    }
}

#[test]
fn data_that_compresses_in_part_leaves_a_file_system_that_compresses_to_be_found() {
    let settings = [("op", "write"), ("compressibility", "0.5")];
    for seed in 0..10 {
        let compresses = Disk { content_ns: 75.0, ..GOOD };
        let named = Disks::new([GOOD, compresses], &settings, seed).named();
        assert_eq!(named, [("disk.compression".to_owned(), Some("B".to_owned()))]);
        let slow = Disk { byte_ns: 40.0, ..GOOD };
        let named = Disks::new([GOOD, slow], &settings, seed).named();
        assert!(named.iter().all(|(cause, _)| cause == "unknown"), "{named:?}");
    }
}

#[test]
fn one_processor_that_compresses_is_not_a_device_that_is_capped() {
    // So many bytes per second, in however large blocks and however many at a time.
    let disk = Disk { content_ns: 75.0, at_a_time: 1.0, ..GOOD };
    for block in ["4096", "65536"] {
        for seed in 0..10 {
            let named = Disks::new([GOOD, disk.clone()], &[("op", "write"), ("block", block)], seed).named();
            assert!(named.iter().all(|(cause, _)| cause == "disk.compression"), "{named:?}");
        }
    }
}

#[test]
fn what_the_page_cache_completes_is_no_slow_flush() {
    let disk = Disk { unit_bytes: 65_536.0, completes_in_cache: true, byte_ns: 4.0, ..GOOD };
    for seed in 0..10 {
        let good = Disk { byte_ns: 4.0, ..GOOD };
        let named = Disks::new([good, disk.clone()], &[("op", "fsync")], seed).named();
        assert_eq!(named, [("disk.block-size".to_owned(), Some("B".to_owned()))]);
    }
}

#[test]
fn a_disk_that_is_mounted_sync_is_neither_accused_nor_acquitted_of_slow_flushes() {
    for op in ["write", "fsync"] {
        let disk = Disk { flush_ns: 4e6, is_synchronous: true, ..GOOD };
        let explanation = Disks::new([GOOD, disk], &[("op", op)], 3).explain();
        assert!(explanation.findings.iter().all(|found| found.cause == "unknown"), "{op}: {explanation:#?}");
        assert!(!explanation.ruled_out.iter().any(|id| id == "disk.slow-flush"), "{op}");
    }
}

#[test]
fn a_disk_whose_head_has_to_move_is_not_said_to_be_capped() {
    let settings = [("op", "randread"), ("direct", "on")];
    for at_a_time in [1.0, 4.0] {
        let disk = Disk { seek_ns: 2e6, has_mechanics: true, at_a_time, ..GOOD };
        for seed in 0..10 {
            let named = Disks::new([GOOD, disk.clone()], &settings, seed).named();
            assert_eq!(named[0].0, "disk.slow-spindle", "{named:?}");
            assert!(named.iter().all(|(cause, _)| !cause.ends_with("-cap")), "{named:?}");
        }
        // Of virtual disks systems say so, too, where nothing moves.
        let capped = Disk { seek_ns: 0.0, calls_per_s: 900.0, ..disk };
        for seed in 0..10 {
            let named = Disks::new([GOOD, capped.clone()], &settings, seed).named();
            assert_eq!(named[0].0, "disk.iops-cap", "{named:?}");
        }
    }
}

#[test]
fn equals_are_equal() {
    for fault in FAULTS {
        for seed in 0..20 {
            let disk = (fault.1)(5.0);
            let named = Disks::new([disk.clone(), disk], fault.2, seed).named();
            assert!(named.iter().all(|(cause, _)| ["none", "unknown"].contains(&&**cause)), "{}: {named:?}", fault.0);
        }
    }
}

#[test]
fn without_the_devices_counters_nothing_is_known_of_caps() {
    for fault in &FAULTS[..2] {
        let world = Disks { counts: false, ..world(fault, 5.0, false, 3) };
        let explanation = world.explain();
        assert!(explanation.findings.iter().all(|found| found.cause == "unknown"), "{explanation:#?}");
        assert!(!explanation.ruled_out.iter().any(|id| id == fault.0), "what was not counted acquits nobody");
    }
}
