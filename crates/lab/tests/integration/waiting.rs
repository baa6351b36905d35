//! How the generator comes to wait as it does, and what of that is kept.

use crate::common::{Server, plan, run};
use duel_lab::{Lab, View, Watcher};
use duel_model::{Bound, BusyPoll, HttpPlan, LoopKind, MILLISECOND_NS, Plan, SECOND_NS, SlotRole, WhyWaiting};
use std::time::Duration;

fn plan_on(servers: &[&Server], busy_poll: BusyPoll) -> Plan {
    let mut plan = plan(servers, HttpPlan::default());
    plan.load.busy_poll = busy_poll;
    plan.load.bound = Bound::Duration(300 * MILLISECOND_NS);
    plan
}

fn server() -> Server {
    Server::that_ends("127.0.0.1", Duration::ZERO)
}

#[test]
fn what_is_asked_for_is_done_without_a_trial() {
    let server = server();
    for (busy_poll, workers) in [(BusyPoll::Never, 0), (BusyPoll::Always, 1)] {
        let run = run(&plan_on(&[&server], busy_poll)).unwrap();
        let waiting = run.waiting.unwrap();
        assert_eq!((waiting.polling_workers, waiting.why), (workers, WhyWaiting::Asked));
        assert_eq!(run.slots.len(), 1);
        assert_eq!(run.slots[0].audit.workers[0].polling_ns > 0, workers > 0);
    }
}

#[test]
fn auto_tries_both_on_every_target_before_anything_is_measured() {
    let servers = [server(), server()];
    let targets = servers.len();
    let servers: Vec<&Server> = servers.iter().collect();
    // Where others have the CPUs, a trial may see too few answers to tell anything.
    let tells = |run: &duel_model::Run| {
        let waiting = run.waiting.as_ref();
        waiting.is_some_and(|waiting| !matches!(&waiting.why, WhyWaiting::Tried(gains) if gains.contains(&None)))
    };
    let mut run = run(&plan_on(&servers, BusyPoll::Auto)).unwrap();
    for _ in 0..20 {
        if tells(&run) {
            break;
        }
        run = crate::common::run(&plan_on(&servers, BusyPoll::Auto)).unwrap();
    }
    let waiting = run.waiting.clone().unwrap();
    let WhyWaiting::Tried(gains) = &waiting.why else { panic!("{waiting:?}") };
    assert!(gains.len() == targets && gains.iter().all(|gain| gain.unwrap() > 0.0), "{gains:?}");
    // What a trial cannot tell from nothing may go either way; what is less over both may not.
    if gains.iter().map(|gain| gain.unwrap().ln()).sum::<f64>() < -0.03 {
        assert_eq!(waiting.polling_workers, 0);
    }
    let first_measured = run.slots.iter().position(|slot| slot.role == SlotRole::Measured).unwrap();
    let (before, measured) = run.slots.split_at(first_measured);
    assert!(before.iter().any(|slot| slot.audit.workers[0].polling_ns > 0), "it was tried");
    let polled = measured.iter().any(|slot| slot.audit.workers[0].polling_ns > 0);
    assert!(!polled || waiting.polling_workers > 0);
    assert!(waiting.sleep_costs_ns > 0);
}

#[test]
fn slow_servers_are_not_tried_for_long() {
    let servers = [150, 200].map(|ms| Server::that_ends("127.0.0.1", Duration::from_millis(ms)));
    let servers: Vec<&Server> = servers.iter().collect();
    let run = run(&plan_on(&servers, BusyPoll::Auto)).unwrap();
    let waiting = run.waiting.unwrap();
    assert_eq!((waiting.polling_workers, waiting.why), (0, WhyWaiting::Tried(vec![None, None])));
}

#[test]
fn a_single_target_gets_no_request_for_a_trial() {
    let server = server();
    let mut plan = plan_on(&[&server], BusyPoll::Auto);
    plan.load.bound = Bound::Ops(30);
    let run = run(&plan).unwrap();
    assert_eq!(run.waiting.unwrap().why, WhyWaiting::Untried);
    // One more is the first contact.
    assert_eq!((run.slots.len(), run.slots[0].tally.started, server.heard()), (1, 30, 31));
}

#[test]
fn where_a_schedule_sets_the_rate_nothing_is_tried() {
    let server = server();
    let mut plan = plan_on(&[&server], BusyPoll::Auto);
    for kind in [
        LoopKind::Open { rate_per_s: 100.0, arrival: duel_model::Arrival::Constant },
        LoopKind::Closed { think_ns: 5 * MILLISECOND_NS },
    ] {
        plan.load.kind = kind;
        plan.compare.max_load_ns = SECOND_NS;
        let run = run(&plan).unwrap();
        assert_eq!(run.slots.len(), 1);
        let waiting = run.waiting.unwrap();
        assert_eq!(waiting.why, WhyWaiting::Untried);
    }
}

/// Counts how often it is shown how far the run is.
#[derive(Default)]
struct Shown(u32);

impl Watcher for Shown {
    fn live(&mut self, _view: &View<'_>) {
        self.0 += 1;
    }
}

#[test]
fn progress_is_shown_where_slots_are_short_too() {
    let servers = [server(), server()];
    let mut plan = plan_on(&servers.iter().collect::<Vec<_>>(), BusyPoll::Never);
    plan.compare.slot_ns = Some(10 * MILLISECOND_NS);
    plan.compare.max_load_ns = 2 * SECOND_NS;
    plan.compare.stop_early = false;
    let mut shown = Shown::default();
    Lab::new(std::sync::Arc::default()).run(&plan, &mut shown).unwrap();
    // Every 150 ms and with the slot after that; the warm-up's looks are a few of them.
    assert!(shown.0 >= 6, "{}", shown.0);
}
