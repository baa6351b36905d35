//! The search for the highest rate that keeps a promise, on simulated queues whose truth is known.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod synthetic;

use duel_model::{
    Arrival, AttemptOutcome, Bound, Distribution, FailureKind, Interval, LoopKind, Nanos, Plan, Promise, Run,
    RunStatus, SECOND_NS, SearchEnd, SearchPlan, Series, Slot, SlotRole, Versions, WorkerAudit,
};
use duel_stats::{SearchStep, attempt_ns, judge, next_rate};

const INTERVAL_NS: Nanos = 100_000_000;

/// One server behind a queue, and what disturbs it.
struct Queue {
    /// Time that a request takes, ns.
    service_ns: f64,
    /// Its scatter: 0 for none, 1 for exponential service times.
    scatter: f64,
    /// Share of requests that fail.
    errors: f64,
    /// Attempts of these numbers meet a stall of 300 ms in their middle.
    stalled: &'static [usize],
    /// The generator has no CPU time left above this rate.
    generator_per_s: f64,
    /// It is no queue of the server's, but for one of so many connections, each of which takes as long for an op.
    connections: Option<u32>,
    dice: u64,
}

impl Queue {
    fn of(per_s: f64) -> Self {
        Self {
            service_ns: 1e9 / per_s,
            scatter: 0.0,
            errors: 0.0,
            stalled: &[],
            generator_per_s: f64::INFINITY,
            connections: None,
            dice: 42,
        }
    }

    /// Uniform in [0, 1): SplitMix64 (Steele et al. 2014).
    fn random(&mut self) -> f64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.dice;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// What an attempt at a rate sees of it: Lindley's recursion, one op after the other.
    fn slot(&mut self, plan: &Plan, rate_per_s: f64, number: usize) -> Slot {
        let length_ns = attempt_ns(plan, rate_per_s) as f64;
        let is_poisson = matches!(plan.load.kind, LoopKind::Open { arrival: Arrival::Poisson, .. });
        let grace_ns = 2.0 * SECOND_NS as f64;
        let mut slot = synthetic::slot(0, 0, 0, length_ns / 1e9);
        (slot.index, slot.role, slot.offered_per_s) = (number as u32, SlotRole::Search, Some(rate_per_s));
        slot.tally = duel_model::Tally::default();
        let (mut due_ns, mut free_ns, mut responses, mut failed) = (0.0, 0.0_f64, Vec::new(), 0);
        let mut intervals = vec![Interval::default(); (length_ns as u64 / INTERVAL_NS) as usize + 200];
        let mut stall_left_ns = if self.stalled.contains(&number) { 300e6 } else { 0.0 };
        while due_ns < length_ns {
            let service_ns = self.service_ns * (1.0 - self.scatter - self.scatter * (1.0 - self.random()).ln());
            if due_ns > length_ns / 2.0 {
                free_ns += std::mem::take(&mut stall_left_ns);
            }
            free_ns = free_ns.max(due_ns) + service_ns;
            if free_ns > length_ns + grace_ns {
                slot.tally.unstarted += 1;
                responses.push((length_ns + grace_ns - due_ns) as u64);
            } else {
                slot.tally.started += 1;
                let interval = &mut intervals[(free_ns as u64 / INTERVAL_NS) as usize];
                if self.random() < self.errors {
                    failed += 1;
                    interval.failed += 1;
                } else {
                    slot.tally.ok += 1;
                    interval.ok += 1;
                    interval.response_sum_ns += (free_ns - due_ns) as u64;
                    responses.push((free_ns - due_ns) as u64);
                }
            }
            let gap = if is_poisson { -(1.0 - self.random()).ln() } else { 1.0 };
            due_ns += gap * 1e9 / rate_per_s;
        }
        if failed > 0 {
            slot.tally.failed.insert(FailureKind::Status, failed);
        }
        slot.tally.response = Distribution::from_values(responses);
        if let Some(connections) = self.connections {
            let op_ns = (self.service_ns * f64::from(connections)) as u64;
            slot.tally.service = Distribution::from_values((0..slot.tally.ok).map(|_| op_ns));
            slot.elapsed_ns = slot.elapsed_ns.max((self.service_ns * slot.tally.ok as f64) as u64);
        }
        slot.series = Series { interval_ns: INTERVAL_NS, intervals };
        let busy = (rate_per_s / self.generator_per_s).min(1.0);
        slot.audit.workers =
            vec![WorkerAudit { cpu_ns: Some((busy * 1e9) as u64), wall_ns: SECOND_NS, ..WorkerAudit::default() }];
        slot
    }
}

fn plan(promises: &str, arrival: Arrival) -> Plan {
    let mut plan = synthetic::plan(1);
    plan.load.kind = LoopKind::Open { rate_per_s: 0.0, arrival };
    plan.load.bound = Bound::Duration(60 * SECOND_NS);
    plan.load.shape.search =
        Some(SearchPlan { promises: Promise::parse_all(promises).unwrap(), precision: SearchPlan::PRECISION });
    plan
}

/// Searches to the end, whatever the time, and judges what was kept.
fn search(plan: &Plan, queue: &mut Queue, start_per_s: f64) -> (Run, duel_model::Verdict) {
    let mut run = Run {
        id: "r".into(),
        started_unix_ms: 0,
        plan: plan.clone(),
        versions: Versions::default(),
        slots: Vec::new(),
        first_contact: vec![None],
        hosts: Vec::new(),
        status: RunStatus::Complete,
        doubts: Vec::new(),
        explanation: None,
    };
    let mut attempts = Vec::new();
    while let SearchStep::Try(rate_per_s) = next_rate(plan, &attempts, &run.slots, start_per_s) {
        assert!(attempts.len() < 60, "it comes to an end: {attempts:?}");
        let slot = queue.slot(plan, rate_per_s, attempts.len());
        attempts.push(duel_stats::attempt(&slot, plan).unwrap());
        run.slots.push(slot);
    }
    let verdict = judge(&run);
    (run, verdict)
}

#[test]
fn a_known_capacity_is_found_within_three_percent_wherever_the_search_begins() {
    for capacity in [17.0, 200.0, 3_000.0, 60_000.0] {
        for start in [0.05, 0.5, 0.9, 1.0, 1.3, 8.0] {
            for promises in ["p99<50ms,errors<0.1%", "errors<1%", "mean<1s"] {
                // A service of 59 ms is not within 50 ms at any rate.
                if capacity < 20.0 && promises.starts_with("p99") {
                    continue;
                }
                let mut plan = plan(promises, Arrival::Constant);
                if capacity < 100.0 {
                    // A percent of growth is ten requests of a thousand, which take a minute here.
                    plan.load.bound = Bound::Duration(1_200 * SECOND_NS);
                }
                let (run, verdict) = search(&plan, &mut Queue::of(capacity), capacity * start);
                let found = verdict.search.unwrap();
                let kept = found.kept_per_s.unwrap();
                let off = kept / capacity - 1.0;
                assert!(off.abs() < 0.03, "{promises}: {kept} of {capacity} from {start} on");
                assert!(run.slots.len() <= 24, "{} attempts", run.slots.len());
                assert_eq!(found.end, SearchEnd::Found);
            }
        }
    }
}

/// With exponential service times and Poisson arrivals (M/M/1) the response time is exponential with mean 1 / (μ - λ), so
/// its 99th percentile is ln 100 / (μ - λ): 50 ms are kept up to λ = μ - 92.1 per second.
#[test]
fn a_promise_that_is_broken_below_capacity_is_found_where_theory_says() {
    let (capacity, mut answers) = (1_000.0, Vec::new());
    for dice in 1..=9 {
        let mut plan = plan("p99<50ms", Arrival::Poisson);
        plan.load.bound = Bound::Duration(240 * SECOND_NS);
        let mut queue = Queue { scatter: 1.0, dice, ..Queue::of(capacity) };
        answers.push(search(&plan, &mut queue, 700.0).1.search.unwrap().kept_per_s.unwrap());
    }
    answers.sort_by(f64::total_cmp);
    let expected = capacity - 100f64.ln() / 0.05;
    // An attempt of a few seconds near saturation is one draw of a slow process: the median of the answers is near.
    assert!((answers[4] / expected - 1.0).abs() < 0.04, "{answers:?}, expected {expected}");
    assert!(answers.iter().all(|answer| (answer / expected - 1.0).abs() < 0.08), "{answers:?}, expected {expected}");
}

#[test]
fn a_stall_in_one_attempt_does_not_move_the_answer() {
    const EACH: [&[usize]; 12] = [&[0], &[1], &[2], &[3], &[4], &[5], &[6], &[7], &[8], &[9], &[10], &[11]];
    for stalled in EACH {
        let plan = plan("p99<50ms", Arrival::Constant);
        let mut queue = Queue { stalled, ..Queue::of(500.0) };
        let kept = search(&plan, &mut queue, 450.0).1.search.unwrap().kept_per_s.unwrap();
        assert!((kept / 500.0 - 1.0).abs() < 0.03, "stall in attempt {stalled:?}: {kept}");
    }
}

#[test]
fn what_the_generator_breaks_is_not_blamed_on_the_target() {
    let plan = plan("p99<50ms", Arrival::Constant);
    // At 1,900 per second the generator is 95 % busy, and the target does no more than 1,950.
    let mut queue = Queue { generator_per_s: 2_000.0, ..Queue::of(1_950.0) };
    let (_, verdict) = search(&plan, &mut queue, 1_000.0);
    let found = verdict.search.unwrap();
    assert_eq!(found.end, SearchEnd::Generator);
    assert!(found.attempts.iter().any(|attempt| attempt.outcome == AttemptOutcome::Generator));
    assert!(verdict.doubts.iter().any(|doubt| doubt.id == duel_model::DoubtId::GeneratorSaturated));
}

#[test]
fn too_few_connections_are_not_blamed_on_the_target_alone() {
    let mut plan = plan("p99<50ms", Arrival::Constant);
    plan.load.connections = 8;
    let says_so = |queue: &mut Queue| {
        let (_, verdict) = search(&plan, queue, 450.0);
        verdict.doubts.iter().any(|doubt| doubt.text.contains("all 8 connections were busy"))
    };
    assert!(says_so(&mut Queue { connections: Some(8), ..Queue::of(500.0) }));
    assert!(!says_so(&mut Queue { connections: Some(1), ..Queue::of(500.0) }), "one of eight is busy");
}

#[test]
fn a_promise_that_nothing_keeps_ends_the_search() {
    let plan = plan("errors<1%", Arrival::Constant);
    let found = search(&plan, &mut Queue { errors: 0.05, ..Queue::of(500.0) }, 450.0).1.search.unwrap();
    assert_eq!((found.end, found.kept_per_s), (SearchEnd::NothingKept, None));
    assert!(found.broken_per_s.is_some());
}

#[test]
fn errors_within_the_promise_do_not_matter() {
    let plan = plan("errors<8%,p99<50ms", Arrival::Constant);
    let found = search(&plan, &mut Queue { errors: 0.05, ..Queue::of(500.0) }, 450.0).1.search.unwrap();
    assert!((found.kept_per_s.unwrap() / 500.0 - 1.0).abs() < 0.03, "{:?}", found.kept_per_s);
}

#[test]
fn a_search_that_was_cut_short_says_so() {
    let plan = plan("p99<50ms", Arrival::Constant);
    let (mut run, _) = search(&plan, &mut Queue::of(500.0), 100.0);
    run.slots.truncate(2);
    let found = judge(&run).search.unwrap();
    assert_eq!(found.end, SearchEnd::OutOfTime);
    assert!(found.kept_per_s.is_some() && found.broken_per_s.is_none());
    run.slots.clear();
    assert_eq!(judge(&run).search.unwrap().kept_per_s, None);
}
