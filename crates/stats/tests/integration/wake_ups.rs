//! What is doubted where a generator sleeps beside a server that has to wake it.

use crate::synthetic::*;
use duel_model::{
    BusyPoll, DoubtId, HostRecord, HostSample, Run, RunStatus, SECOND_NS, Versions, Waiting, Waking, WhyWaiting,
};
use duel_stats::judge;

/// Two targets on a machine of two CPUs, at `sleeps` in each slot, each of which costs 10 µs; the server of B was read if that says
/// what it took.
fn run(sleeps: Option<u64>, is_here: [bool; 2], cpu_of_b_ns: Option<u64>) -> Run {
    let mut plan = plan(2);
    plan.load.busy_poll = BusyPoll::Never;
    let mut slots = blocks(10, 2, ripple);
    for (index, slot) in (0..).zip(&mut slots) {
        slot.started_unix_ms = 1_000_000 + 1_000 * index;
        slot.elapsed_ns = SECOND_NS;
        slot.audit.workers = vec![duel_model::WorkerAudit { sleeps, ..Default::default() }];
    }
    let end_unix_ms = slots.last().map_or(0, |slot| slot.started_unix_ms) + 1_000;
    let sample = |unix_ms: i64, cpu_ns: u64| HostSample {
        unix_ms,
        counters: [("process.cpu_ns".to_owned(), cpu_ns)].into(),
        ..HostSample::default()
    };
    let record = cpu_of_b_ns.map(|cpu_ns| HostRecord {
        // The first and the last one hold what is no load of these slots.
        samples: vec![
            sample(0, 0),
            sample(999_999, 70 * SECOND_NS),
            sample(end_unix_ms, 70 * SECOND_NS + cpu_ns),
            sample(end_unix_ms + 9_000, 900 * SECOND_NS),
        ],
        ..HostRecord::default()
    });
    Run {
        id: "test".into(),
        started_unix_ms: 0,
        first_contact: vec![None; 2],
        plan,
        versions: Versions::default(),
        slots,
        status: RunStatus::Complete,
        doubts: vec![],
        hosts: vec![None, record],
        explanation: None,
        waiting: Some(Waiting {
            polling_workers: 0,
            why: WhyWaiting::Asked,
            gave_way: false,
            sleep_costs_ns: 30_000,
            waking: Some(Waking { cost_ns: 10_000, cpus: 2, is_here: is_here.to_vec() }),
        }),
    }
}

/// The target that is doubted for it, where that is one alone, and what is said.
fn told(run: &Run) -> Vec<(Option<String>, String)> {
    let doubts = judge(run).doubts.into_iter().filter(|doubt| doubt.id == DoubtId::WakeUps);
    doubts.map(|doubt| (doubt.target, doubt.text)).collect()
}

#[test]
fn wake_ups_are_held_against_the_cpu_time_that_the_server_took() {
    // Twenty slots of 500 sleeps of 10 µs: 0.1 s.
    let doubted = told(&run(Some(500), [true, true], Some(2 * SECOND_NS)));
    let [(name, text)] = &doubted[..] else { panic!("{doubted:?}") };
    assert_eq!(name.as_deref(), Some("B"));
    assert!(text.contains("at 10.0 µs each") && text.contains("that is 5.0 % of B's CPU time"), "{text}");
    assert_eq!(told(&run(Some(500), [true, true], Some(11 * SECOND_NS))), [], "0.9 %");
}

#[test]
fn where_the_server_was_not_read_only_what_is_beyond_doubt_is_told() {
    // Of a second on two CPUs 1 % is 20 ms: 2,000 sleeps.
    assert_eq!(told(&run(Some(1_900), [true, true], None)), []);
    let doubted = told(&run(Some(4_000), [true, true], None));
    let [(None, text)] = &doubted[..] else { panic!("{doubted:?}") };
    for part in ["loaded A and B", "that is at least 2.0 % of A's CPU time", "that is at least 2.0 % of B's CPU time"] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    assert_eq!(text.matches("--busy-poll").count(), 1, "what is the same is told once: {text}");
}

#[test]
fn servers_elsewhere_and_sleeps_that_nobody_counted_are_not_told() {
    assert_eq!(told(&run(Some(9_000), [false, false], None)), []);
    assert_eq!(told(&run(Some(9_000), [true, false], None)).len(), 1);
    assert_eq!(told(&run(None, [true, true], Some(SECOND_NS))), []);
}

#[test]
fn who_shares_its_cpu_is_not_said_to_cost_what_another_cpu_does() {
    let mut shared = run(Some(9_000), [true, true], Some(SECOND_NS));
    assert_eq!(told(&shared).len(), 1);
    for slot in &mut shared.slots {
        slot.audit.workers[0].wall_ns = SECOND_NS;
        slot.audit.workers[0].waited_ns = Some(SECOND_NS / 5);
    }
    assert_eq!(told(&shared), []);
}

#[test]
fn sleeps_that_timers_and_the_own_work_end_are_no_server_s() {
    let mut timed = run(Some(9_000), [true, true], Some(SECOND_NS));
    timed.plan.load.kind = duel_model::LoopKind::Closed { think_ns: 1 };
    assert_eq!(told(&timed), []);
    let mut working = run(Some(9_000), [true, true], Some(SECOND_NS));
    assert_eq!(told(&working).len(), 1);
    for slot in &mut working.slots {
        slot.audit.workers[0].works_itself = true;
    }
    assert_eq!(told(&working), []);
}

/// The server's CPU time was read before the first slot and after the last one, so it holds run-ups; sleeps are those of slots alone.
#[test]
fn what_a_server_does_in_run_ups_is_not_held_against_the_sleeps_of_slots() {
    let plain = run(Some(3_000), [true; 2], Some(20 * SECOND_NS));
    let mut with_run_ups = run(Some(3_000), [true; 2], Some(60 * SECOND_NS));
    for slot in &mut with_run_ups.slots {
        slot.audit.workers[0].wall_ns = SECOND_NS;
        slot.audit.workers[0].run_up_ns = 2 * SECOND_NS;
    }
    let of_b = |run: &Run| told(run).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert!(!of_b(&plain).is_empty());
    assert_eq!(of_b(&with_run_ups), of_b(&plain));
}
