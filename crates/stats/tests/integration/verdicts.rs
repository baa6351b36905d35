//! What is called, what is withheld, and what is doubted.

use crate::synthetic::*;
use duel_model::web::{failure, phase};
use duel_model::{
    Arrival, Call, Distribution, Doubt, DoubtId, Facts, Interruption, LoopKind, Metric, PairVerdict, Plan, Run,
    RunStatus, SECOND_NS, Slot, SlotRole, Turn, Verdict, Versions, web,
};
use duel_stats::{Held, SlotFigure, Stop, Wanted, WholeGap, early_stop, judge, judge_probe, judge_slots, observe};

/// B takes `factor` as long as A, with about 1 % of noise.
fn duel(factor: f64) -> Vec<Slot> {
    blocks(10, 2, |block, repeat, target| ripple(block, repeat, target) * if target == 1 { factor } else { 1.0 })
}

fn ids(verdict: &Verdict) -> Vec<DoubtId> {
    // These slots have no latencies, so that the other two metrics always lack slots.
    verdict.doubts.iter().map(|doubt| doubt.id).filter(|&id| id != DoubtId::TooFewSlots).collect()
}

fn doubt(verdict: &Verdict, id: DoubtId) -> &Doubt {
    verdict.doubts.iter().find(|doubt| doubt.id == id).expect("doubted")
}

fn run(plan: Plan, slots: Vec<Slot>, status: RunStatus) -> Run {
    Run {
        id: "test".into(),
        started_unix_ms: 0,
        first_contact: vec![None; plan.targets.len()],
        plan,
        versions: Versions::default(),
        slots,
        status,
        doubts: vec![],
        hosts: Vec::new(),
        explanation: None,
        waiting: None,
    }
}

#[test]
fn a_gap_beyond_the_margin_is_called() {
    let verdict = judge_slots(&duel(1.25), &plan(2));
    let pair = &verdict.pairs[0];
    assert_eq!((pair.metric, pair.call, pair.slots), (Metric::Rate, Call::Slower, 40));
    let (ratio, low, high) = (pair.ratio.unwrap(), pair.low.unwrap(), pair.high.unwrap());
    assert!((ratio - 0.8).abs() < 0.01 && low < ratio && ratio < high, "{pair:?}");
    assert_eq!(ids(&verdict), []);
    assert_eq!(call(&judge_slots(&duel(0.8), &plan(2)), "B", Metric::Rate), Call::Faster);
    assert_eq!(call(&judge_slots(&duel(1.0), &plan(2)), "B", Metric::Rate), Call::Equivalent);
}

#[test]
fn a_difference_nobody_cares_for_is_not_called() {
    // 1.5 % with next to no noise: certain, but within the margin of 2 %.
    let slots = blocks(20, 2, |b, r, t| 1.0 + (ripple(b, r, t) - 1.0) / 100.0 + if t == 1 { 0.015 } else { 0.0 });
    assert_eq!(call(&judge_slots(&slots, &plan(2)), "B", Metric::Rate), Call::Equivalent);
    // 1.5 % with noise that leaves the interval partly beyond the margin but off zero: neither.
    let slots = blocks(20, 2, |b, r, t| ripple(b, r, t) * if t == 1 { 1.0165 } else { 1.0 });
    let verdict = judge_slots(&slots, &plan(2));
    let pair = &verdict.pairs[0];
    assert!(pair.high.unwrap() < 1.0 && pair.low.unwrap() < 1.0 / 1.02 && pair.ratio.unwrap() > 1.0 / 1.02, "{pair:?}");
    assert_eq!(pair.call, Call::Unknown);
}

#[test]
fn the_main_metric_comes_first_and_each_target_is_held_against_the_first() {
    let slots = blocks(6, 3, |b, r, t| ripple(b, r, t) * [1.0, 2.0, 1.0][t]);
    let closed = judge_slots(&slots, &plan(3));
    let order: Vec<_> = closed.pairs.iter().map(|p| (p.baseline.as_str(), p.target.as_str(), p.metric)).collect();
    use Metric::{Rate, ResponseP50, ResponseP99};
    assert_eq!(
        order,
        [
            ("A", "B", Rate),
            ("A", "B", ResponseP50),
            ("A", "B", ResponseP99),
            ("A", "C", Rate),
            ("A", "C", ResponseP50),
            ("A", "C", ResponseP99),
        ]
    );
    let open = judge_slots(&slots, &open_plan(2));
    assert_eq!(open.pairs.iter().map(|p| p.metric).collect::<Vec<_>>(), [ResponseP50, ResponseP99, Rate]);
}

#[test]
fn only_measured_slots_are_judged_and_others_on_demand() {
    let mut slots = duel(1.0);
    for (extra, factor) in [(SlotRole::Warmup, 9.0), (SlotRole::Probe("p".into()), 2.0)] {
        for mut slot in duel(factor) {
            slot.role = extra.clone();
            slots.push(slot);
        }
    }
    let run = run(plan(2), slots, RunStatus::Complete);
    assert_eq!(call(&judge(&run), "B", Metric::Rate), Call::Equivalent);
    let probe = run.slots.iter().filter(|slot| slot.role == SlotRole::Probe("p".into()));
    assert_eq!(call(&judge_slots(probe, &run.plan), "B", Metric::Rate), Call::Slower);
}

#[test]
fn failures_in_run_ups_are_told_and_held_against_no_op_of_a_slot() {
    let mut slots = blocks(3, 2, |_, _, _| 1.0);
    slots.iter_mut().filter(|slot| slot.target == 1).for_each(|slot| {
        slot.tally.failed_in_run_up.insert(failure::RESET.id(), 5);
    });
    let verdict = judge(&run(plan(2), slots, RunStatus::Complete));
    assert_eq!(
        ids(&verdict).iter().filter(|id| **id == DoubtId::Errors).count(),
        1,
        "no share of ops failed: {verdict:?}"
    );
    let text = &doubt(&verdict, DoubtId::Errors).text;
    assert!(text.starts_with("30 ops failed on B in the run-up of slots (30 reset)"), "{text}");
}

#[test]
fn a_single_target_has_doubts_but_no_pairs() {
    let mut slots = blocks(3, 1, |_, _, _| 1.0);
    slots[0].tally.failed.insert(failure::RESET.id(), 5);
    let verdict = judge_slots(&slots, &plan(1));
    assert_eq!(verdict.pairs, []);
    assert_eq!(ids(&verdict), [DoubtId::Errors]);
    assert!(doubt(&verdict, DoubtId::Errors).text.contains("5 of 6000000 ops failed on A"), "{verdict:?}");
}

#[test]
fn too_few_pairs_are_unknown_but_not_hidden() {
    let slots: Vec<Slot> = duel(3.0).into_iter().filter(|slot| slot.block < 2).collect();
    let verdict = judge_slots(&slots, &plan(2));
    let pair = &verdict.pairs[0];
    assert_eq!((pair.call, pair.low, pair.high, pair.slots), (Call::Unknown, None, None, 8));
    assert!((pair.ratio.unwrap() - 1.0 / 3.0).abs() < 0.01);
    let text = &doubt(&verdict, DoubtId::TooFewSlots).text;
    assert_eq!(text, "rate: 4 pairs of slots; a verdict at 95 % takes 6");
    // What -d would do is told where the time was short, from how long the blocks took.
    let mut short = plan(2);
    short.compare.max_load_ns = 9 * SECOND_NS;
    let advice = |plan: Plan, slots: &[Slot], status| {
        let text = doubt(&judge(&run(plan, slots.to_vec(), status)), DoubtId::TooFewSlots).text.clone();
        Some(text.split_once(", for which -d ")?.1.strip_suffix("s would do")?.parse::<u64>().unwrap())
    };
    let block_ns = |block| slots.iter().filter(|slot| slot.block == block).map(|slot| slot.elapsed_ns).sum::<u64>();
    let three_blocks_s = 3 * block_ns(0).max(block_ns(1)) / SECOND_NS;
    let told = advice(short.clone(), &slots, RunStatus::Complete).expect("advice");
    assert!(told > three_blocks_s, "{told} s for {three_blocks_s} s of slots");
    // With slots of a set length, blocks do not grow with the time.
    let mut set = short.clone();
    set.compare.slot_ns = Some(SECOND_NS);
    assert!(advice(set, &slots, RunStatus::Complete).expect("advice") <= told);
    let mut twice = slots.clone();
    twice.iter_mut().for_each(|slot| slot.elapsed_ns *= 8);
    assert!(advice(short.clone(), &twice, RunStatus::Complete).expect("advice") > 2 * told);
    // Of a run that was cut short the plan's time was not what was missing.
    assert_eq!(advice(short, &slots, RunStatus::Interrupted(Interruption::User)), None);
    // Enough for the interval, not for the plan.
    let mut patient = plan(2);
    patient.compare.min_pairs = 30;
    let verdict = judge_slots(&duel(3.0), &patient);
    assert_eq!(verdict.pairs[0].call, Call::Unknown);
    assert!(verdict.pairs[0].low.is_some());
}

/// Two blocks of slots in which an op takes so many times as long on B, each lane one.
fn of_long_ops(factor: f64, lanes: u64) -> Vec<Slot> {
    let mut slots: Vec<Slot> = duel(factor).into_iter().filter(|slot| slot.block < 2).collect();
    for slot in &mut slots {
        let median_ns = slot.elapsed_ns as f64 / 2.0;
        respond(slot, lanes, median_ns);
    }
    slots
}

#[test]
fn a_plain_gap_is_called_from_two_blocks_and_says_what_that_rests_on() {
    let verdict = judge_slots(&of_long_ops(30.0, 19), &plan(2));
    let pair = &verdict.pairs[0];
    assert_eq!(pair.call, Call::Slower);
    // Ops take from half of the median to one and a half times it.
    assert!(pair.low.unwrap() < 1.0 / 60.0 && pair.high.unwrap() > 1.0 / 15.0, "{pair:?}");
    let text = &doubt(&verdict, DoubtId::TooFewSlots).text;
    assert_eq!(
        text,
        "rate, response p50: 4 pairs of slots, where a verdict at 95 % takes 6; it is called all the same because nearly all requests \
         to one side took longer than nearly all to the other, and the interval holds what their times leave possible"
    );
    let call = |slots: &[Slot], plan: &Plan| judge_slots(slots, plan).pairs[0].call;
    assert_eq!(call(&of_long_ops(2.5, 19), &plan(2)), Call::Unknown, "the ops of both sides overlap");
    assert_eq!(call(&of_long_ops(30.0, 2), &plan(2)), Call::Unknown, "eight ops are too few");
    assert_eq!(
        call(&of_long_ops(30.0, 19)[..4], &plan(2)),
        Call::Unknown,
        "one block says nothing of how blocks scatter"
    );
    // A plan that asks for more pairs than an interval takes is obeyed; probes say nothing from so few.
    let mut patient = plan(2);
    patient.compare.min_pairs = 8;
    assert_eq!(call(&of_long_ops(30.0, 19), &patient), Call::Unknown);
    let probed = duel_stats::judge_probe(&of_long_ops(30.0, 19), &plan(2), &[]);
    assert_eq!((probed.pairs[0].call, probed.pairs[0].low), (Call::Unknown, None));
}

#[test]
fn no_slots_at_all_are_no_panic() {
    let verdict = judge_slots(&[], &plan(2));
    assert!(verdict.pairs.iter().all(|pair| pair.call == Call::Unknown && pair.ratio.is_none()));
    assert_eq!(judge_slots(&[], &plan(0)), Verdict::default());
    assert_eq!(stop(&[], &plan(2)), Stop::Go);
}

#[test]
fn a_saturated_generator_takes_back_what_it_could_have_made() {
    let with_busy = |factor: f64, shares: [f64; 2]| {
        let mut slots = duel(factor);
        slots.iter_mut().for_each(|slot| busy(slot, shares[slot.target]));
        judge_slots(&slots, &plan(2))
    };
    let rate = |verdict: &Verdict| call(verdict, "B", Metric::Rate);
    assert_eq!(ids(&with_busy(1.3, [0.94, 0.94])), []);
    // The faster side is held back: the gap is at least as large.
    let verdict = with_busy(1.3, [0.97, 0.6]);
    assert_eq!(rate(&verdict), Call::Slower);
    let text = &doubt(&verdict, DoubtId::GeneratorSaturated).text;
    assert!(text.ends_with("A may do better than was seen, so B is slower by at least the ratio shown"), "{text}");
    let verdict = with_busy(0.7, [0.6, 0.97]);
    assert_eq!(rate(&verdict), Call::Faster);
    let text = &doubt(&verdict, DoubtId::GeneratorSaturated).text;
    assert!(text.ends_with("so A is slower by at least the ratio shown"), "{text}");
    // The slower side, or both: it may be our fault.
    assert_eq!(rate(&with_busy(1.3, [0.6, 0.97])), Call::Unknown);
    assert_eq!(rate(&with_busy(1.3, [0.97, 0.97])), Call::Unknown);
    // Two servers that are both faster than the generator always look alike.
    assert_eq!(rate(&with_busy(1.0, [0.97, 0.97])), Call::Unknown);
    assert_eq!(rate(&with_busy(1.0, [0.5, 0.97])), Call::Unknown);
}

#[test]
fn responses_are_not_quicker_because_the_generator_had_less_load_for_their_server() {
    let judged = |share: f64| {
        let mut slots = duel(1.0);
        for slot in &mut slots {
            respond(slot, 1000, 1e6 * if slot.target == 1 { 0.7 } else { 1.0 });
            // Between its ops the generator is busy with something else.
            if slot.target == 1 {
                slot.elapsed_ns *= 6;
                busy(slot, share);
            }
        }
        judge_slots(&slots, &plan(2))
    };
    assert_eq!(call(&judged(0.5), "B", Metric::ResponseP50), Call::Faster);
    let verdict = judged(0.97);
    assert_eq!(call(&verdict, "B", Metric::ResponseP50), Call::Unknown);
    let text = &doubt(&verdict, DoubtId::GeneratorSaturated).text;
    assert!(text.ends_with("B may do better than was seen"), "{text}");
}

/// A worker that polls uses all of its CPU. What counts is how much of that was work.
#[test]
fn who_stays_awake_without_work_is_not_saturated() {
    let with_polling = |polling_ns: u64| {
        let mut slots = duel(1.3);
        for slot in &mut slots {
            busy(slot, 0.99);
            slot.audit.workers[0].polling_ns = polling_ns;
        }
        ids(&judge_slots(&slots, &plan(2)))
    };
    assert_eq!(with_polling(400_000_000), []);
    assert_eq!(with_polling(20_000_000), [DoubtId::GeneratorSaturated; 2]);
}

/// Others on the generator's CPU take from both targets: no call is taken back, and the figures are doubted.
#[test]
fn a_generator_that_waits_for_a_cpu_says_so() {
    let with_waiting = |waited_ns: Option<u64>| {
        let mut slots = duel(1.3);
        for slot in &mut slots {
            busy(slot, 0.3);
            slot.audit.workers[0].waited_ns = waited_ns;
        }
        judge_slots(&slots, &plan(2))
    };
    assert_eq!(ids(&with_waiting(None)), []);
    assert_eq!(ids(&with_waiting(Some(90_000_000))), []);
    let verdict = with_waiting(Some(600_000_000));
    assert_eq!(ids(&verdict), [DoubtId::GeneratorWaited], "what is so of all targets is told once");
    let told = doubt(&verdict, DoubtId::GeneratorWaited);
    let each = "wanted for 60 % of the time while it loaded A, for 60 % of the time while it loaded B: each of them may serve more";
    assert!(told.target.is_none() && told.text.contains(each), "{}", told.text);
    assert_eq!(call(&verdict, "B", Metric::Rate), Call::Slower);

    let mut of_one = duel(1.3);
    for slot in &mut of_one {
        busy(slot, 0.3);
        slot.audit.workers[0].waited_ns = Some(if slot.target == 1 { 600_000_000 } else { 0 });
    }
    let verdict = judge_slots(&of_one, &plan(2));
    let told = doubt(&verdict, DoubtId::GeneratorWaited);
    assert_eq!((ids(&verdict).len(), told.target.as_deref()), (1, Some("B")));
    assert!(told.text.contains("while it loaded B: B may serve more than was seen, and its times"), "{}", told.text);
}

/// Where calls block or a database is embedded, the CPU time of a worker is that of the target.
#[test]
fn who_does_the_ops_itself_is_not_saturated() {
    let mut slots = duel(1.3);
    for slot in &mut slots {
        busy(slot, 1.0);
        slot.audit.workers[0].works_itself = true;
    }
    let verdict = judge_slots(&slots, &plan(2));
    assert_eq!(ids(&verdict), []);
    assert_eq!(call(&verdict, "B", Metric::Rate), Call::Slower);
}

#[test]
fn workers_that_share_too_few_cpus_are_saturated_together() {
    let mut slots = duel(1.0);
    for slot in &mut slots {
        busy(slot, 0.49);
        slot.audit.workers.push(slot.audit.workers[0].clone());
        slot.audit.cpus = Some(1);
    }
    assert_eq!(ids(&judge_slots(&slots, &plan(2))), [DoubtId::GeneratorSaturated; 2]);
}

#[test]
fn an_open_loop_that_starts_late_blames_itself() {
    let with_lag = |lag_ns: [u64; 100]| {
        let mut slots = duel(1.0);
        for slot in &mut slots {
            respond(slot, 1000, 1e6 * if slot.target == 1 { 2.0 } else { 1.0 });
            busy(slot, 0.2);
            slot.audit.workers[0].schedule_lag = Distribution::from_values(lag_ns);
        }
        judge_slots(&slots, &open_plan(2))
    };
    let mut rare = [1_000; 100];
    assert_eq!(ids(&with_lag(rare)), []);
    rare[90..].fill(150_000);
    let verdict = with_lag(rare);
    // A tenth of B's median is 200 µs.
    assert_eq!(ids(&verdict), [DoubtId::ScheduleLag]);
    assert_eq!(call(&verdict, "B", Metric::ResponseP50), Call::Slower);
    assert_eq!(call(&verdict, "B", Metric::ResponseP99), Call::Slower);
    let always = [300_000; 100];
    let verdict = with_lag(always);
    assert_eq!(ids(&verdict), [DoubtId::GeneratorSaturated; 2]);
    assert_eq!(call(&verdict, "B", Metric::ResponseP50), Call::Unknown);
    assert!(doubt(&verdict, DoubtId::GeneratorSaturated).text.contains("late"));
}

#[test]
fn unstarted_ops_flatter_latencies() {
    let mut slots = duel(1.0);
    for slot in &mut slots {
        respond(slot, 1000, 1e6);
        if slot.target == 1 {
            slot.tally.unstarted = 30;
        }
    }
    let verdict = judge_slots(&slots, &open_plan(2));
    assert_eq!(ids(&verdict), [DoubtId::RateNotReached]);
    assert!(doubt(&verdict, DoubtId::RateNotReached).text.contains("2.9 %"), "{verdict:?}");
    assert_eq!(call(&verdict, "B", Metric::ResponseP50), Call::Unknown, "equal at best");
}

/// A backlog that is worked off after the slot's time leaves nothing unstarted, and yet the rate was not reached.
#[test]
fn an_open_loop_that_caught_up_late_did_not_reach_its_rate() {
    let with = |due: u64, arrival: Arrival| {
        let mut slots = duel(1.0);
        for slot in &mut slots {
            slot.elapsed_ns = SECOND_NS;
            respond(slot, 1000, 1e6);
            (slot.tally.started, slot.tally.ok) = (if slot.target == 1 { due } else { 1000 }, 1000);
        }
        let mut plan = open_plan(2);
        plan.load.kind = LoopKind::Open { rate_per_s: 1000.0, arrival };
        let verdict = judge_slots(&slots, &plan);
        let text = verdict.doubts.iter().find(|d| d.id == DoubtId::RateNotReached).map(|d| d.text.clone());
        assert!(text.is_none() || doubt(&verdict, DoubtId::RateNotReached).target.as_deref() == Some("B"));
        text
    };
    assert_eq!(with(1000, Arrival::Constant), None);
    // The last op of a slot may be due just after its end.
    assert_eq!(with(999, Arrival::Constant), None);
    let text = with(800, Arrival::Constant).unwrap();
    assert!(text.starts_with("20 % of 1000/s were missing on B"), "{text}");
    assert!(with(990, Arrival::Constant).is_some());
    assert_eq!(with(990, Arrival::Poisson), None, "chance");
    assert!(with(800, Arrival::Poisson).is_some());
}

#[test]
fn who_fails_more_is_never_called_faster_or_equivalent() {
    let failing = |factor: f64| {
        let mut slots = duel(factor);
        for slot in slots.iter_mut().filter(|slot| slot.target == 1) {
            slot.tally.failed.insert(failure::STATUS.id(), 50_000);
            slot.tally.started += 50_000;
            slot.tally.failure_examples.push("503 Service Unavailable".into());
        }
        judge_slots(&slots, &plan(2))
    };
    assert_eq!(call(&failing(1.0), "B", Metric::Rate), Call::Unknown);
    assert_eq!(call(&failing(0.5), "B", Metric::Rate), Call::Unknown);
    let verdict = failing(2.0);
    assert_eq!(call(&verdict, "B", Metric::Rate), Call::Slower);
    assert_eq!(ids(&verdict), [DoubtId::Errors; 2]);
    let texts: Vec<&str> = verdict.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("the rate of ok ops is judged")), "{texts:?}");
    assert!(texts.iter().any(|text| text.contains("503 Service Unavailable")), "{texts:?}");
}

#[test]
fn slots_without_an_ok_op_are_counted_never_zero() {
    let mut slots = duel(0.5);
    for slot in slots.iter_mut().filter(|slot| slot.target == 1 && slot.block == 3) {
        slot.tally = duel_model::Tally { started: 4, in_flight: 4, ..Default::default() };
    }
    let verdict = judge_slots(&slots, &plan(2));
    assert_eq!(verdict.pairs[0].slots, 36);
    assert_eq!(verdict.pairs[0].call, Call::Unknown, "B was spared its worst slots");
    assert!(doubt(&verdict, DoubtId::NotRecorded).text.contains("2 for B, 0 for the baseline (18 are left)"));
}

#[test]
fn different_work_is_doubted() {
    let negotiated = |cipher: &str, key: &str| {
        Facts::default().with(web::TLS_VERSION, "1.3").with(web::TLS_CIPHER, cipher).with(web::CERTIFICATE_KEY, key)
    };
    let mut slots = duel(1.0);
    for slot in &mut slots {
        slot.tally.body_bytes = if slot.target == 1 { 102_000_000 } else { 100_000_000 };
        slot.tally.statuses.insert(if slot.target == 1 { 301 } else { 200 }, 10);
        slot.negotiated =
            Some(if slot.target == 1 { negotiated("X", "RSA-4096") } else { negotiated("Y", "RSA-2048") });
    }
    let verdict = judge_slots(&slots, &plan(2));
    assert_eq!(ids(&verdict), [DoubtId::DifferentResponses, DoubtId::DifferentNegotiation]);
    let text = &doubt(&verdict, DoubtId::DifferentNegotiation).text;
    assert_eq!(
        text,
        "B negotiated other parameters than A: cipher X instead of Y, certificate key RSA-4096 instead of RSA-2048"
    );
    let text = &doubt(&verdict, DoubtId::DifferentResponses).text;
    assert_eq!(text, "B answers with 102 B of body per op, A with 100 B; B mostly answers 301, A 200");
}

#[test]
fn short_slots_are_doubted_in_a_closed_loop() {
    let mut slots = duel(1.0);
    for slot in &mut slots {
        slot.tally.started = 10;
        slot.tally.ok = 10;
    }
    assert_eq!(ids(&judge_slots(&slots, &plan(2))), [DoubtId::ShortSlots; 2]);
    let mut open = open_plan(2);
    // As many are offered as there are.
    open.load.kind = LoopKind::Open { rate_per_s: 10.0, arrival: Arrival::Poisson };
    assert_eq!(ids(&judge_slots(&slots, &open)), []);
}

#[test]
fn requests_that_were_sent_again_are_doubted_from_one_in_a_thousand_on() {
    let with = |resent: u64| {
        let mut slots = duel(1.0);
        let started: u64 = slots.iter().filter(|slot| slot.target == 1).map(|slot| slot.tally.started).sum();
        slots.iter_mut().find(|slot| slot.target == 1).unwrap().tally.resent = resent * started / 1000;
        judge_slots(&slots, &plan(2))
    };
    assert_eq!(ids(&with(1)), []);
    let verdict = with(2);
    assert_eq!(ids(&verdict), [DoubtId::Resent]);
    let text = &doubt(&verdict, DoubtId::Resent).text;
    assert!(text.contains("refused them unread") && text.contains("B was asked for more"), "{text}");
    assert_eq!(verdict.pairs[0].call, Call::Equivalent, "it is told, and changes no call");
}

#[test]
fn bytes_that_no_response_has_are_doubted_from_the_first_time_on() {
    let mut slots = duel(1.0);
    assert_eq!(ids(&judge_slots(&slots, &plan(2))), []);
    let slot = slots.iter_mut().find(|slot| slot.target == 1).unwrap();
    slot.tally.surplus = 3;
    let verdict = judge_slots(&slots, &plan(2));
    assert_eq!(ids(&verdict), [DoubtId::Surplus]);
    let text = &doubt(&verdict, DoubtId::Surplus).text;
    assert!(text.starts_with("B sent more bytes than its responses have, 3 times in "), "{text}");
    assert_eq!(verdict.pairs[0].call, Call::Equivalent, "it is told, and changes no call");
}

/// A request that was given up would have taken longer, nobody knows how much.
#[test]
fn what_was_given_up_bars_calls_that_it_could_turn() {
    let with = |times: f64, given_up_on: usize, requests: u64| {
        let mut slots = duel(times);
        for slot in slots.iter_mut().filter(|slot| slot.target == given_up_on).take(requests as usize) {
            slot.tally.started += 1;
            slot.tally.in_flight += 1;
        }
        let mut plan = plan(2);
        plan.load.op_timeout_ns = 30 * SECOND_NS;
        judge_slots(&slots, &plan)
    };
    let plain = judge_slots(&duel(1.0), &plan(2));
    assert_eq!(plain.pairs[0].call, Call::Equivalent);
    let verdict = with(1.0, 1, 6);
    assert_eq!(verdict.pairs[0].call, Call::Unknown, "{verdict:?}");
    let text = &doubt(&verdict, DoubtId::Unfinished).text;
    assert!(text.starts_with("6 requests were given up on B because they were not answered"), "{text}");
    // Slower it is in any case, and who is compared with it may be slower than it as well.
    assert_eq!(with(1.5, 1, 6).pairs[0].call, Call::Slower);
    assert_eq!(with(1.5, 0, 6).pairs[0].call, Call::Unknown);
    assert_eq!(with(0.7, 0, 6).pairs[0].call, Call::Faster);
    assert_eq!(with(0.7, 1, 6).pairs[0].call, Call::Unknown);
}

/// A server that serves one connection at a time is fast to it, and the others starve.
#[test]
fn connections_without_any_answer_are_told() {
    let told = |silent: Option<u32>, requests: u64| {
        let mut slots = duel(1.0);
        for slot in slots.iter_mut().filter(|slot| slot.target == 1) {
            slot.tally.started += requests;
            slot.tally.in_flight += requests;
            let worker = |silent_lanes| duel_model::WorkerAudit { silent_lanes, ..duel_model::WorkerAudit::default() };
            slot.audit.workers = vec![worker(Some(0)), worker(silent)];
        }
        let verdict = judge_slots(&slots, &plan(2));
        doubt(&verdict, DoubtId::Unfinished).text.clone()
    };
    let connections = plan(2).load.connections;
    let words = format!("7 of {connections} connections got no answer at all");
    assert!(told(Some(7), 7).contains(&words), "{}", told(Some(7), 7));
    for silent in [Some(0), None] {
        assert!(!told(silent, 7).contains("no answer at all"), "{silent:?}");
    }
}

#[test]
fn a_moving_ratio_is_doubted() {
    let slots = blocks(15, 2, |b, r, t| ripple(b, r, t) * if t == 1 { 1.0 + 0.01 * f64::from(b) } else { 1.0 });
    let verdict = judge_slots(&slots, &plan(2));
    assert_eq!(ids(&verdict), [DoubtId::Drift]);
    assert!(doubt(&verdict, DoubtId::Drift).text.contains("factor of 0.8"), "{verdict:?}");
}

/// One slot of B in ten takes so many times as long as the others.
fn pausing(times: f64) -> Vec<Slot> {
    blocks(40, 2, |block, repeat, target| {
        let pauses = target == 1 && block % 5 == 2 && repeat == 1;
        ripple(block, repeat, target) * if pauses { times } else { 1.0 }
    })
}

#[test]
fn a_server_that_pauses_now_and_then_is_not_equivalent() {
    let verdict = judge_slots(&pausing(3.0), &plan(2));
    let rate = &verdict.pairs[0];
    // Most pairs show nothing of it.
    assert!(rate.low.unwrap() > 0.98 && rate.high.unwrap() < 1.02, "{rate:?}");
    assert_eq!(rate.call, Call::Unknown);
    let text = &doubt(&verdict, DoubtId::Uneven).text;
    assert!(text.contains("0.83"), "{text}");
    // With A and B exchanged as well.
    let mut swapped = pausing(3.0);
    swapped.iter_mut().for_each(|slot| slot.target = 1 - slot.target);
    let verdict = judge_slots(&swapped, &plan(2));
    assert_eq!((verdict.pairs[0].call, ids(&verdict)), (Call::Unknown, vec![DoubtId::Uneven]));
    // A pause that costs less than the margin over the whole makes no difference that counts.
    let verdict = judge_slots(&pausing(1.05), &plan(2));
    assert_eq!((verdict.pairs[0].call, ids(&verdict)), (Call::Equivalent, vec![]));
}

/// Blocks whose slots were run in 15 turns; `times(block, repeat, target, turn)` is how many times as long as the others one took.
fn in_turns(count: u32, times: impl Fn(u32, u32, usize, u32) -> f64) -> Vec<Slot> {
    const TURNS: u32 = 15;
    let mut slots = blocks(count, 2, ripple);
    for slot in &mut slots {
        let turn_ns = slot.elapsed_ns as f64 / f64::from(TURNS);
        let of = |turn| (turn_ns * times(slot.block, slot.repeat, slot.target, turn)) as u64;
        let turns =
            (0..TURNS).map(|turn| Turn { offset_ns: 0, ok: slot.tally.ok / u64::from(TURNS), elapsed_ns: of(turn) });
        slot.turns = turns.collect();
        slot.elapsed_ns = slot.turns.iter().map(|turn| turn.elapsed_ns).sum();
    }
    slots
}

#[test]
fn what_disturbs_single_turns_does_not_hide_that_two_servers_are_equal() {
    // Somebody takes the machine in a turn of a slot, for longer or shorter, of each target as often.
    let disturbed = |block: u32, repeat: u32, target: usize, turn: u32| {
        let half = block / 2;
        let chance = (half * 37 + repeat * 53 + half * half * 5) % 101;
        let is_his = (chance + block) % 2 == target as u32 && turn == block % 15;
        if is_his { 1.0 + f64::from(chance) / 100.0 } else { 1.0 }
    };
    let half_width = |slots: &[Slot]| {
        let rate = judge_slots(slots, &plan(2)).pairs[0].clone();
        (rate.call, rate.high.unwrap() / rate.low.unwrap() - 1.0)
    };
    let mut slots = in_turns(26, disturbed);
    let (call, width) = half_width(&slots);
    slots.iter_mut().for_each(|slot| slot.turns.clear());
    let (_, wider) = half_width(&slots);
    assert_eq!(call, Call::Equivalent);
    assert!(width < wider / 2.0, "{width} against {wider}");
}

#[test]
fn pauses_of_a_server_count_although_its_turns_leave_them_out() {
    // B stands still for as long as three turns take, in one turn of each slot: a sixth of its time.
    let slots = in_turns(26, |block, _, target, turn| if target == 1 && turn == block % 15 { 4.0 } else { 1.0 });
    let verdict = judge_slots(&slots, &plan(2));
    let rate = &verdict.pairs[0];
    assert_eq!(rate.call, Call::Slower);
    assert!((rate.ratio.unwrap() - 15.0 / 18.0).abs() < 0.01, "{rate:?}");
}

#[test]
fn a_probe_tells_a_gap_by_pauses_as_its_comparison_does() {
    let pausing = |block: u32, _, target, turn| if target == 1 && turn == block % 15 { 4.0 } else { 1.0 };
    let slots = in_turns(26, pausing);
    let (verdict, seen) = (judge_slots(&slots, &plan(2)), observe(&slots, &plan(2).targets));
    assert!(verdict.pairs[0].by_whole && verdict.pairs[1..].iter().all(|pair| !pair.by_whole));
    let by_whole = WholeGap::of(&verdict, &seen);
    let gone_on = |blocks: u32| in_turns(blocks, pausing);
    let rate = |slots: &[Slot], gaps: &[WholeGap]| judge_probe(slots, &plan(2), gaps).pairs[0].clone();
    // In turns, and in one go.
    let mut in_one_go = gone_on(26);
    in_one_go.iter_mut().for_each(|slot| slot.turns.clear());
    for slots in [gone_on(26), in_one_go] {
        let told = rate(&slots, &by_whole);
        assert!((told.ratio.unwrap() - 15.0 / 18.0).abs() < 0.01 && told.by_whole, "{told:?}");
    }
    // A gap that was called by turns is told by turns, whatever pauses are in the probe.
    assert!(!rate(&gone_on(26), &[]).by_whole && rate(&gone_on(26), &[]).ratio.unwrap() > 0.95);
    // Of a probe that has a quarter of the time, and by chance met no pause, the interval is more than twice as wide as the
    // comparison's, however much alike its slots are.
    let (none, gap) = (rate(&in_turns(6, |_, _, _, _| 1.0), &by_whole), &verdict.pairs[0]);
    let width = |pair: &PairVerdict| (pair.high.unwrap() / pair.low.unwrap()).ln();
    let wider = width(&none) / width(gap);
    assert!(wider > 2.0, "{wider}");
}

#[test]
fn a_probe_of_a_gap_by_pauses_goes_on_for_as_long_as_none_may_have_come_by_chance() {
    let slots = in_turns(26, |block, _, target, turn| if target == 1 && turn == block % 15 { 4.0 } else { 1.0 });
    let (verdict, seen) = (judge_slots(&slots, &plan(2)), observe(&slots, &plan(2).targets));
    let by_whole = WholeGap::of(&verdict, &seen);
    let plan = plan(2);
    // Sharp enough for any gap, in 120 turns of each.
    let fast_per_s = seen[0].rate_per_s.unwrap();
    let held = [Held { target: 1, log: 2.0, share: 0.05, fast: 0, fast_per_s }];
    let quiet = in_turns(4, |_, _, _, _| 1.0);
    let probed = |by_whole: &[WholeGap]| {
        let figures = quiet.iter().map(|slot| SlotFigure::of(slot, &plan));
        early_stop(figures, &plan, Wanted::Probe { held: &held, by_whole })
    };
    assert!(matches!(probed(&[]), Stop::Enough { .. }));
    assert_eq!(probed(&by_whole), Stop::Go);
}

#[test]
fn a_call_does_not_stand_against_the_whole() {
    // B is a twentieth faster in most slots, and stands still for long in some.
    let mut slots = pausing(3.0);
    slots.iter_mut().filter(|slot| slot.target == 1).for_each(|slot| slot.elapsed_ns = slot.elapsed_ns / 21 * 20);
    let verdict = judge_slots(&slots, &plan(2));
    assert!(verdict.pairs[0].ratio.unwrap() > 1.03, "{verdict:?}");
    assert_eq!(verdict.pairs[0].call, Call::Unknown);
}

#[test]
fn who_seems_equal_and_serves_less_over_the_whole_is_looked_at_for_longer() {
    let plan = plan(2);
    // After 64 pairs it is looked at.
    let of = |times: f64| pausing(times).into_iter().filter(|slot| slot.block < 32).collect::<Vec<Slot>>();
    assert!(matches!(stop(&of(1.0), &plan), Stop::Enough { .. }));
    assert_eq!(stop(&of(3.0), &plan), Stop::Go);
}

#[test]
fn how_a_run_ended_is_told() {
    for (how, told) in [
        (Interruption::User, "the run was interrupted; what was measured until then is judged"),
        (Interruption::Unfinished, "the run was never finished; what was kept of it is judged"),
    ] {
        let verdict = judge(&run(plan(2), duel(1.0), RunStatus::Interrupted(how)));
        assert_eq!(ids(&verdict), [DoubtId::Interrupted]);
        assert_eq!(doubt(&verdict, DoubtId::Interrupted).text, told);
        assert_eq!(call(&verdict, "B", Metric::Rate), Call::Equivalent);
    }

    let died = |factor: f64, target: &str| {
        let how = Interruption::TargetDied { target: target.into(), at_ns: 4_200_000_000, how: "refused".into() };
        judge(&run(plan(2), duel(factor), RunStatus::Interrupted(how)))
    };
    let verdict = died(0.5, "B");
    assert_eq!(ids(&verdict), [DoubtId::TargetDied]);
    assert_eq!(doubt(&verdict, DoubtId::TargetDied).text, "B stopped answering 4.2 s into the run: refused");
    assert_eq!(call(&verdict, "B", Metric::Rate), Call::Unknown, "the dead are not faster");
    assert_eq!(call(&died(2.0, "B"), "B", Metric::Rate), Call::Slower);
    assert_eq!(call(&died(2.0, "A"), "B", Metric::Rate), Call::Unknown);
}

#[test]
fn the_tail_is_judged_by_slots_of_100_ops_or_groups_of_them() {
    let judged = |count: u32, ops: u64| {
        let mut slots = blocks(count, 2, |_, _, _| 1.0);
        for slot in &mut slots {
            let noise = ripple(slot.block, slot.repeat, slot.target);
            respond(slot, ops, 1e6 * noise * if slot.target == 1 { 1.5 } else { 1.0 });
        }
        let verdict = judge_slots(&slots, &plan(2));
        let pair = verdict.pairs.iter().find(|pair| pair.metric == Metric::ResponseP99).unwrap().clone();
        (pair, verdict)
    };
    for (count, ops) in [(6, 2000), (10, 150), (30, 40), (30, 400)] {
        let (pair, _) = judged(count, ops);
        assert_eq!((pair.call, pair.slots), (Call::Slower, 4 * count), "{count} blocks of {ops} ops");
        assert!((pair.ratio.unwrap() - 1.5).abs() < 0.03, "{pair:?}");
    }
    // 10 blocks of 2 * 20 ops make 3 groups of 100.
    let (pair, verdict) = judged(10, 20);
    assert_eq!((pair.call, pair.ratio, pair.slots), (Call::Unknown, None, 0));
    let text = &doubt(&verdict, DoubtId::TooFewSlots).text;
    assert!(text.starts_with("response p99: too few requests for 6 groups"), "{text}");
}

#[test]
fn slots_that_depend_on_each_other_widen_the_interval_and_are_doubted() {
    // B takes up to 1.4 times as long: as long in all four pairs of a block, or as it comes.
    let slots = |spread_over_pairs: bool| {
        let mut slots = Vec::new();
        for block in 0..9u32 {
            for repeat in 0..4 {
                let drawn = if spread_over_pairs { block * 4 + repeat } else { block } * 4 % 9;
                slots.push(slot(block, repeat, 0, ripple(block, repeat, 0)));
                slots.push(slot(block, repeat, 1, ripple(block, repeat, 1) + f64::from(drawn) / 20.0));
            }
        }
        slots
    };
    let together = judge_slots(&slots(false), &plan(2));
    assert_eq!(ids(&together), [DoubtId::IntervalsDisagree]);
    let apart = judge_slots(&slots(true), &plan(2));
    assert_eq!(ids(&apart), []);
    let width = |verdict: &Verdict| verdict.pairs[0].high.unwrap() / verdict.pairs[0].low.unwrap();
    assert!(width(&together).ln() > 1.5 * width(&apart).ln(), "{} {}", width(&together), width(&apart));
}

#[test]
fn early_stop_waits_for_whole_blocks_and_enough_pairs() {
    let slots = duel(1.5);
    let quiet: Vec<Slot> =
        blocks(10, 2, |b, r, t| (1.0 + (ripple(b, r, t) - 1.0) / 10.0) * if t == 1 { 1.5 } else { 1.0 });
    let until = |slots: &[Slot], block: u32| -> Vec<Slot> {
        slots.iter().filter(|slot| slot.block <= block).cloned().collect()
    };
    assert_eq!(stop(&until(&quiet, 1), &plan(2)), Stop::Go);
    let Stop::Enough { pairs, reason } = stop(&until(&quiet, 2), &plan(2)) else { panic!("sharp for its size") };
    assert_eq!(pairs, 6);
    assert!(
        reason.starts_with("rate of B known to ±0.") && reason.ends_with("(sharp for its size) after 6 pairs"),
        "{reason}"
    );
    // The third block unfinished: as if it were not there.
    let mut unfinished = until(&quiet, 2);
    unfinished.pop();
    assert_eq!(stop(&unfinished, &plan(2)), Stop::Go);
    // Ten pairs are no look.
    assert_eq!(stop(&until(&quiet, 4), &plan(2)), Stop::Go);
    let mut patient = plan(2);
    patient.compare.min_pairs = 10;
    assert_eq!(stop(&until(&quiet, 2), &patient), Stop::Go);
    assert!(matches!(stop(&until(&quiet, 5), &patient), Stop::Enough { pairs: 12, .. }));
    let mut never = plan(2);
    never.compare.stop_early = false;
    assert_eq!(stop(&until(&quiet, 2), &never), Stop::Go);
    // Where there is no gap, a verdict waits until noise would be seen that lasts longer than a block; a probe does not.
    let equal: Vec<Slot> = blocks(10, 2, |b, r, t| 1.0 + (ripple(b, r, t) - 1.0) / 10.0);
    assert_eq!(stop(&until(&equal, 5), &plan(2)), Stop::Go);
    assert!(matches!(stop(&until(&equal, 7), &plan(2)), Stop::Enough { pairs: 16, .. }));
    let few = until(&equal, 2);
    let probed = |slots: &[Slot], gaps: &[Held]| {
        early_stop(
            slots.iter().map(|slot| SlotFigure::of(slot, &plan(2))),
            &plan(2),
            Wanted::Probe { held: gaps, by_whole: &[] },
        )
    };
    let of_probe = probed(&few, &[]);
    assert!(matches!(of_probe, Stop::Enough { pairs: 6, .. }), "{of_probe:?}");
    // Ten times as much noise: of a large gap that is enough, if the probe makes nothing much dearer; of a small one it is not.
    let loud: Vec<Slot> = blocks(10, 2, |b, r, t| 1.0 + 10.0 * (ripple(b, r, t) - 1.0) / 4.0);
    let loud = until(&loud, 2);
    assert_eq!(probed(&loud, &[]), Stop::Go);
    let per_s = loud[0].tally.ok as f64;
    let held = |log: f64, dearer: f64| Held { target: 1, log, share: 0.05, fast: 0, fast_per_s: dearer * per_s };
    assert!(matches!(probed(&loud, &[held(2.0, 1.0)]), Stop::Enough { pairs: 6, .. }));
    assert!(matches!(probed(&loud, &[held(2.0, 0.1)]), Stop::Enough { .. }), "cheaper is no sharper");
    assert_eq!(probed(&loud, &[held(2.0, 10.0)]), Stop::Go);
    assert_eq!(probed(&loud, &[held(0.2, 1.0)]), Stop::Go);
    assert_eq!(probed(&loud, &[Held { target: 2, ..held(2.0, 1.0) }]), Stop::Go, "it is another target's");
    // A third target that is not yet known keeps it going.
    let noisy: Vec<Slot> = blocks(3, 3, |b, r, t| if t == 2 { 1.0 + f64::from((b + r) % 3) } else { 1.0 });
    assert_eq!(stop(&noisy, &plan(3)), Stop::Go);
    // 1 % of noise: clear at 12 pairs, before it is sharp.
    let at_twelve = stop(&until(&slots, 5), &plan(2));
    assert!(matches!(at_twelve, Stop::Enough { pairs: 12, .. }), "{at_twelve:?}");
}

#[test]
fn observations_are_sums_over_sums_per_op() {
    let mut slots = blocks(2, 2, |_, _, target| [1.0, 3.0][target]);
    for slot in &mut slots {
        slot.tally.started = 10;
        slot.tally.ok = 8;
        slot.tally.failed.insert(failure::TIMEOUT.id(), 2);
        slot.tally.body_bytes = 80;
        slot.tally.bytes_in = 160;
        slot.tally.connections = 4;
        slot.tally.resumed = 1;
        slot.tally.reused = 5;
        slot.tally.service = Distribution::from_values([100, 200, 300]);
        slot.tally.phases.insert(phase::CONNECT.id(), Distribution::from_values([400, 400]));
        slot.negotiated = Some(Facts::default().with(web::TLS_VERSION, slot.index.to_string()));
    }
    slots[0].tally.ok = 16;
    slots.reverse();
    let seen = observe(&slots, &plan(3).targets);
    assert_eq!(seen.len(), 3);
    let a = &seen[0];
    assert_eq!((a.name.as_str(), a.ok, a.failed, a.rate_per_s), ("A", 40, 8, Some(10.0)));
    assert_eq!(a.service_mean_ns, Some(200.0));
    // By the ops that have a service time: phases have to add up to it.
    assert_eq!(a.phase_mean_ns[&phase::CONNECT.id()], 3200.0 / 12.0);
    assert_eq!((a.body_bytes_per_op, a.bytes_in_per_op), (Some(8.0), Some(16.0)));
    assert_eq!((a.reused_share, a.resumed_share), (Some(0.5), Some(0.25)));
    assert_eq!(a.negotiated.as_ref().unwrap().text(web::TLS_VERSION), Some("110"));
    let c = &seen[2];
    assert_eq!((c.rate_per_s, c.service_mean_ns, c.body_bytes_per_op, c.reused_share), (None, None, None, None));
}
