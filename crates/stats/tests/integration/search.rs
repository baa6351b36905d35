//! The search for the highest rate that keeps a promise, on simulated queues whose truth is known.

use crate::queue::{Queue, empty_run, plan};
use duel_model::{Arrival, AttemptOutcome, Bound, Plan, Run, SECOND_NS, SearchEnd};
use duel_stats::{SearchStep, judge, next_rate};

/// Searches to the end, whatever the time, and judges what was kept.
fn search(plan: &Plan, queue: &mut Queue, start_per_s: f64) -> (Run, duel_model::Verdict) {
    let mut run = empty_run(plan);
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
                let (run, mut verdict) = search(&plan, &mut Queue::of(capacity), capacity * start);
                let found = verdict.searches.remove(0);
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
        answers.push(search(&plan, &mut queue, 700.0).1.searches.remove(0).kept_per_s.unwrap());
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
        let kept = search(&plan, &mut queue, 450.0).1.searches.remove(0).kept_per_s.unwrap();
        assert!((kept / 500.0 - 1.0).abs() < 0.03, "stall in attempt {stalled:?}: {kept}");
    }
}

#[test]
fn what_the_generator_breaks_is_not_blamed_on_the_target() {
    let plan = plan("p99<50ms", Arrival::Constant);
    // At 1,900 per second the generator is 95 % busy, and the target does no more than 1,950.
    let mut queue = Queue { generator_per_s: 2_000.0, ..Queue::of(1_950.0) };
    let (_, mut verdict) = search(&plan, &mut queue, 1_000.0);
    let found = verdict.searches.remove(0);
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
    let found = search(&plan, &mut Queue { errors: 0.05, ..Queue::of(500.0) }, 450.0).1.searches.remove(0);
    assert_eq!((found.end, found.kept_per_s), (SearchEnd::NothingKept, None));
    assert!(found.broken_per_s.is_some());
}

#[test]
fn errors_within_the_promise_do_not_matter() {
    let plan = plan("errors<8%,p99<50ms", Arrival::Constant);
    let found = search(&plan, &mut Queue { errors: 0.05, ..Queue::of(500.0) }, 450.0).1.searches.remove(0);
    assert!((found.kept_per_s.unwrap() / 500.0 - 1.0).abs() < 0.03, "{:?}", found.kept_per_s);
}

#[test]
fn a_search_that_was_cut_short_says_so() {
    let plan = plan("p99<50ms", Arrival::Constant);
    let (mut run, _) = search(&plan, &mut Queue::of(500.0), 100.0);
    run.slots.truncate(2);
    let found = judge(&run).searches.remove(0);
    assert_eq!(found.end, SearchEnd::OutOfTime);
    assert!(found.kept_per_s.is_some() && found.broken_per_s.is_none());
    run.slots.clear();
    assert_eq!(judge(&run).searches.remove(0).kept_per_s, None);
}
