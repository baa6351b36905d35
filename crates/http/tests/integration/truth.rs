//! The open loop against a server that stalls, and its rates against arithmetic.

use crate::common::{self, CLOSED, PATIENCE, assert_all_ok, open_loop, order, plain};
use duel_load::{SlotRecord, monotonic_ns};
use duel_model::{Arrival, Distribution, HttpPlan, LoopKind, MILLISECOND_NS, Nanos, SECOND_NS};
use duel_ruler::{Ruler, Stalled};
use std::time::Instant;

const STALL_NS: Nanos = 1_400 * MILLISECOND_NS;
const CONNECTIONS: u32 = 8;

/// When the stall was over, on the clock of the load.
fn end_of(stall: Stalled) -> Nanos {
    // Both are the monotonic clock, read within a moment; the later reading makes the result early, never late.
    let (now, now_ns) = (Instant::now(), monotonic_ns());
    now_ns - u64::try_from(now.saturating_duration_since(stall.ended).as_nanos()).unwrap()
}

fn stalled(ruler: &Ruler) -> Stalled {
    let truth = ruler.settled(PATIENCE);
    assert_eq!(truth.stalls.len(), 1);
    assert!(truth.stalls[0].held <= u64::from(CONNECTIONS), "each connection can wait with one request only");
    truth.stalls[0]
}

fn at_least(distribution: &Distribution, ns: Nanos) -> u64 {
    distribution.buckets().iter().filter(|&&(value, _)| value >= ns).map(|&(_, count)| count).sum()
}

/// 1,000 ops are due at 200 per second, and for 1.4 s from the 400th on nobody is answered: 280 of them, 28 %, were due
/// in this time, and each waited at least until its end, whether a connection was free or not.
#[test]
fn a_stall_has_its_full_weight_in_an_open_loop() {
    const AFTER: u64 = 400;
    let ruler = plain();
    let path = format!("/stall-once/1400/{AFTER}");
    let mut session = common::open(&HttpPlan::default(), &ruler.url(&path), CONNECTIONS, 1);
    let record = common::slot(&mut session, &open_loop(200.0, 5 * SECOND_NS));
    assert_all_ok(&record, 1_000);
    assert_eq!(record.tally.unstarted, 0);
    let stall = stalled(&ruler);
    let end_ns = end_of(stall);

    // The least that each op must have taken. Ops start in order, but up to one for each connection may overtake
    // another on its way to the server, so that the first few of those due in the stall may have come before it.
    let waited = |number: u64| end_ns.saturating_sub(record.start_ns + number * 5 * MILLISECOND_NS);
    let first = AFTER - 1 + u64::from(CONNECTIONS);
    let least = Distribution::from_values((0..1_000).map(|number| if number < first { 0 } else { waited(number) }));
    let response = &record.tally.response;
    for per_mille in 1..=1_000 {
        let q = f64::from(per_mille) / 1_000.0;
        let (seen, least) = (response.quantile_ns(q).unwrap(), least.quantile_ns(q).unwrap());
        // What the server did is a lower bound, to the three digits that are kept.
        assert!(seen as f64 >= least as f64 * 0.998, "at {q}: {seen} instead of {least} at least");
    }
    assert!(response.quantile_ns(0.99).unwrap() >= 1_300 * MILLISECOND_NS, "{response:?}");
    assert!(response.quantile_ns(0.75).unwrap() >= 100 * MILLISECOND_NS, "a quarter waited so long");
    assert!(response.sum_ns >= least.sum_ns);
    // Half the ops were due before the stall or long after it; they do not show it unless this machine stood still.
    assert!(response.quantile_ns(0.5).unwrap() < STALL_NS / 2);

    // The service time forgets who had to wait for a connection: 8 of 1,000 ops saw the stall.
    let service = &record.tally.service;
    assert!(at_least(service, 1_300 * MILLISECOND_NS) <= u64::from(CONNECTIONS));
    assert!(service.max_ns().unwrap() >= STALL_NS - MILLISECOND_NS * u64::from(CONNECTIONS) * 5);
    assert!(service.quantile_ns(0.99).unwrap() < STALL_NS / 2, "{service:?}");
}

/// The contrast: a closed loop stops asking while it waits, so that the stall is a handful of ops among thousands.
#[test]
fn a_stall_hides_in_a_closed_loop() {
    let ruler = plain();
    let mut session = common::open(&HttpPlan::default(), &ruler.url("/stall-once/1400/1000"), CONNECTIONS, 1);
    let record = common::slot(&mut session, &order(CLOSED, None, Some(2_000)));
    assert_all_ok(&record, 2_000);
    stalled(&ruler);
    let response = &record.tally.response;
    assert_eq!(response, &record.tally.service, "in a closed loop without pauses an op is due when it starts");
    assert!(response.max_ns().unwrap() >= STALL_NS, "who began the stall was there all the time");
    assert!(at_least(response, STALL_NS) >= 1);
    assert!(response.quantile_ns(0.99).unwrap() < STALL_NS / 2);
}

fn at_rate(rate_per_s: f64, arrival: Arrival, duration_ns: Nanos) -> (SlotRecord, u64) {
    let ruler = plain();
    let kind = LoopKind::Open { rate_per_s, arrival };
    let order = duel_load::SlotOrder { grace_ns: 3 * SECOND_NS, ..order(kind, Some(duration_ns), None) };
    let mut session = common::open(&HttpPlan::default(), &ruler.url("/"), 64, 2);
    let record = common::slot(&mut session, &order);
    drop(session);
    (record, ruler.settled(PATIENCE).requests)
}

#[test]
fn rates_are_exact() {
    for (rate, duration_ns) in
        [(10u32, 2 * SECOND_NS), (1_000, 2 * SECOND_NS), (10_000, SECOND_NS), (50_000, SECOND_NS), (3, SECOND_NS)]
    {
        let (record, requests) = at_rate(f64::from(rate), Arrival::Constant, duration_ns);
        let tally = &record.tally;
        let scheduled = u64::from(rate) * duration_ns / SECOND_NS;
        // Whatever this machine can do, no op is lost from the schedule and none is invented.
        assert_eq!(tally.started + tally.unstarted, scheduled, "at {rate}");
        assert_eq!(tally.failed_total(), 0, "{tally:?}");
        assert_eq!(tally.ok + tally.in_flight, tally.started);
        if tally.in_flight == 0 {
            assert_eq!(requests, tally.started);
        }
        if tally.unstarted == 0 && tally.in_flight == 0 && record.elapsed_ns == duration_ns {
            let achieved = tally.ok as f64 * 1e9 / record.elapsed_ns as f64;
            assert!((achieved / f64::from(rate) - 1.0).abs() <= 0.001, "{achieved} instead of {rate}");
        } else {
            // It fell behind, and says so: the time counts in which it worked off what was due.
            eprintln!("{rate}/s was too much here: {} unstarted, {} ns", tally.unstarted, record.elapsed_ns);
            assert!(record.elapsed_ns > duration_ns);
            assert!(tally.response.max_ns().unwrap() > tally.service.min_ns().unwrap());
        }
    }
}

#[test]
fn ops_start_when_they_are_due_and_not_in_a_crowd() {
    // 20 ops at 10 per second: in each tenth of a second, by which the series counts, one ends.
    let (record, _) = at_rate(10.0, Arrival::Constant, 2 * SECOND_NS);
    assert_eq!((record.tally.ok, record.series.interval_ns), (20, 100 * MILLISECOND_NS));
    // None is early; the machine may make some late.
    let mut ended = 0;
    for (number, interval) in (1..).zip(&record.series.intervals) {
        ended += interval.ok;
        assert!(ended <= number, "{ended} ops ended in the first {number} tenths of a second");
    }
}

#[test]
fn poisson_arrivals_have_their_rate_and_repeat_with_their_seed() {
    let (record, _) = at_rate(1_000.0, Arrival::Poisson, 2 * SECOND_NS);
    let scheduled = record.tally.started + record.tally.unstarted;
    // Five standard deviations, and the seed is fixed.
    assert!((2_000u64).abs_diff(scheduled) < 5 * 45, "{scheduled}");
    let (again, _) = at_rate(1_000.0, Arrival::Poisson, 2 * SECOND_NS);
    assert_eq!(again.tally.started + again.tally.unstarted, scheduled);
}

#[test]
fn a_server_that_cannot_keep_up_leaves_a_backlog_that_is_told() {
    // 2 connections and 20 ms per request make 100 per second at most; 1,000 are offered, and nobody waits for the rest.
    let ruler = plain();
    let kind = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
    let order = duel_load::SlotOrder { grace_ns: 100 * MILLISECOND_NS, ..order(kind, Some(SECOND_NS / 2), None) };
    let record = common::run_order(&HttpPlan::default(), &ruler.url("/delay/20000"), 2, &order);
    let tally = &record.tally;
    assert_eq!(tally.started + tally.unstarted, 500);
    assert!(tally.started <= 2 * 31 && tally.unstarted >= 438, "{tally:?}");
    assert_eq!(tally.response.count(), 500, "who never got a connection waited, too");
    // The median op was due in the middle of the half second and still waited at the end of the grace.
    assert!(tally.response.quantile_ns(0.5).unwrap() >= 300 * MILLISECOND_NS);
    assert!(record.elapsed_ns > SECOND_NS / 2);
}

#[test]
fn a_number_of_ops_at_a_rate() {
    let ruler = plain();
    let kind = LoopKind::Open { rate_per_s: 1_000.0, arrival: Arrival::Constant };
    let mut session = common::open(&HttpPlan::default(), &ruler.url("/"), 7, 3);
    let record = common::slot(&mut session, &order(kind, None, Some(301)));
    assert_all_ok(&record, 301);
    assert_eq!(ruler.settled(PATIENCE).requests, 301);
    assert!(record.elapsed_ns >= 300 * MILLISECOND_NS, "{}", record.elapsed_ns);
}
