//! Factors: every treatment on every target, in randomised complete blocks.
//!
//! A block holds each treatment once, in random order; within a treatment the targets are run as in a comparison, once in
//! random order and once in the reverse order, so that they stay neighbours in time. What drifts from block to block goes
//! out of the differences within blocks (Fisher 1935; Montgomery 2017, chapter 4).
//!
//! Only the treatment under way has connections. Those of all treatments together would be open at the server otherwise,
//! and a server that holds 127 of them is not one that holds 1.

use crate::bench::{Bench, SlotSpec, has_ports, keeps_lanes};
use crate::compare::{Warm, slot_length_ns, warm_up, whole_periods_ns};
use crate::contact::{Factory, contact_treated};
use crate::hosts::Hosts;
use crate::ports::Ports;
use crate::pulse::Pulses;
use crate::route::Route;
use crate::turns::{Turns, mirrored};
use crate::waiting;
use crate::watch::Watcher;
use crate::{LabError, descriptors};
use duel_load::Contact;
use duel_load::monotonic_ns;
use duel_model::{Factor, Nanos, Plan, Run, SlotRole, sanitize_line};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Slots of each treatment on each target that the time is divided for, as in a comparison: six blocks of two.
const SLOTS_WANTED: u64 = 12;
/// Slots that an experiment is divided into, as long as that leaves the blocks that are wanted: beyond, they become longer
/// instead of more, since they have to fit into memory and to be judged in a few seconds.
const MOST_SLOTS: u64 = 2000;

/// One level of each factor, ready to be run.
#[derive(Debug)]
pub(crate) struct Treatment {
    /// In words, safe to show.
    name: String,
    /// Without factors; its load time is this treatment's share.
    plan: Plan,
    factories: Vec<Factory>,
    pace: Pace,
}

/// What warm-up found out about a treatment, and what follows from it.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    /// How long an op takes on the slowest target.
    op_ns: Nanos,
    /// Time that the next op of a connection waits for, beside the server.
    think_ns: Nanos,
    slot_ns: Nanos,
    grace_ns: Nanos,
}

/// Refuses a plan whose factors multiply to nothing or beyond reason.
pub(crate) fn check(plan: &Plan) -> Result<(), LabError> {
    match plan.treatments() {
        0 => Err(LabError::Plan("a factor has no levels, so there is nothing to run".to_owned())),
        count if count > Plan::MOST_TREATMENTS => Err(LabError::Plan(format!(
            "the factors make {count} treatments, and at most {} are run; give fewer levels, or vary fewer factors at a \
             time",
            Plan::MOST_TREATMENTS
        ))),
        _ => Ok(()),
    }
}

/// Contacts every target under every treatment, those of `contacts` being the first treatment's. Nothing in a plan
/// without factors.
///
/// Names are not looked up again: a name that leads to several servers in turn would pass the difference of two servers
/// for the effect of a factor.
pub(crate) fn prepare(
    plan: &Plan,
    contacts: &[Contact],
    routes: &[Route],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Treatment>, LabError> {
    if plan.factors.is_empty() {
        return Ok(Vec::new());
    }
    let varies_path = plan.factors.iter().any(|factor| matches!(factor, Factor::Path(_)));
    let mut treatments: Vec<Treatment> = Vec::new();
    for number in 0..plan.treatments() {
        let mut treated = plan.treated(number);
        treated.compare.max_load_ns /= plan.treatments() as u64;
        let name = sanitize_line(&plan.treatment_name(number));
        // Treatments that send the same to the same places need no contact of their own.
        let alike =
            |known: &&Treatment| known.plan.workload == treated.workload && known.plan.targets == treated.targets;
        let factories = if number == 0 {
            contacts.iter().map(|contact| Arc::clone(&contact.opens)).collect()
        } else if let Some(known) = treatments.iter().find(alike) {
            descriptors::ensure(&treated)?;
            known.factories.clone()
        } else {
            let routes: Vec<Route> = routes
                .iter()
                .zip(&treated.targets)
                .map(|(route, target)| if varies_path { route.to(&target.address) } else { route.clone() })
                .collect();
            let contacts =
                contact_treated(&treated, &plan.workload, &routes, stop).map_err(|error| at(&name, error))?;
            contacts.into_iter().map(|contact| contact.opens).collect()
        };
        treatments.push(Treatment { name, plan: treated, factories, pace: Pace::default() });
    }
    Ok(treatments)
}

/// Runs the whole experiment.
pub(crate) fn run(
    bench: &mut Bench,
    plan: &Plan,
    treatments: &mut [Treatment],
    hosts: &Hosts,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    bench.expect(Some(plan.compare.max_load_ns), None);
    // Of the target that has fewest.
    let pairs =
        treatments.iter().flat_map(|treatment| &treatment.factories).map(|factory| factory.address_pairs()).min();
    let mut ports = Ports::new(duel_load::local_ports_of(pairs.unwrap_or(1)));
    warm_up_all(bench, treatments, &mut ports, run, watcher)?;
    if bench.is_stopped() {
        return Ok(());
    }
    // One way for all treatments: another one would be one more factor.
    waiting::choose(bench, plan, run, watcher)?;
    let left_ns = plan.compare.max_load_ns.saturating_sub(bench.load_ns());
    // New connections for each block, and waiting for what is in flight, take a part of the time: with a seventh for them
    // the last wanted block still fits.
    let (share_ns, targets) = (left_ns / treatments.len().max(1) as u64 / 7 * 6, plan.targets.len());
    let affordable_ns = share_ns / (SLOTS_WANTED * targets as u64);
    for Treatment { pace, plan: treated, .. } in treatments.iter_mut() {
        let longer_ns = (left_ns / MOST_SLOTS).min(affordable_ns);
        let chosen_ns = slot_length_ns(pace.op_ns + pace.think_ns, share_ns, targets).max(longer_ns);
        pace.slot_ns = plan.compare.slot_ns.unwrap_or_else(|| whole_periods_ns(chosen_ns, treated.load.kind));
        pace.grace_ns = bench.grace_ns(pace.op_ns, affordable_ns);
    }
    hosts.mark();
    let result = blocks(bench, plan, treatments, &mut ports, run, watcher);
    hosts.mark();
    result
}

/// Loads each target under each treatment until its rate is steady.
fn warm_up_all(
    bench: &mut Bench,
    treatments: &mut [Treatment],
    ports: &mut Ports,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    let count = treatments.len();
    for (number, treatment) in treatments.iter_mut().enumerate() {
        watcher.label(&format!("warming up {} of {count}: {}", number + 1, treatment.name));
        wait_for_ports(ports, treatment, bench);
        bench.take_up(number as u32, &treatment.plan, &treatment.factories)?;
        let doubts = run.doubts.len();
        let Warm { op_ns: typical, .. } =
            warm_up(bench, &treatment.plan, run, watcher).map_err(|error| at(&treatment.name, error))?;
        treatment.pace = Pace { op_ns: typical, think_ns: bench.think_ns(), ..Pace::default() };
        for doubt in &mut run.doubts[doubts..] {
            doubt.text = format!("at {}: {}", treatment.name, doubt.text);
        }
        if bench.is_stopped() {
            return Ok(());
        }
    }
    Ok(())
}

/// Runs blocks until the load time is over. There is no look in between: what is asked for is a table and a curve, and a
/// rule that stops for one of their lines would favour it.
fn blocks(
    bench: &mut Bench,
    plan: &Plan,
    treatments: &[Treatment],
    ports: &mut Ports,
    run: &mut Run,
    watcher: &mut dyn Watcher,
) -> Result<(), LabError> {
    let mut turns = Turns::new(plan.compare.seed, plan.compare.max_load_ns);
    let mut pulses = Pulses::of(plan);
    bench.notice_death();
    for block in 0.. {
        if !turns.begins(bench) {
            return Ok(());
        }
        for number in shuffled(treatments.len(), &mut turns) {
            let treatment = &treatments[number];
            watcher.label(&format!("block {}: {}", block + 1, treatment.name));
            wait_for_ports(ports, treatment, bench);
            bench.take_up(number as u32, &treatment.plan, &treatment.factories)?;
            let order = shuffled(plan.targets.len(), &mut turns);
            for spec in treatment.slots(block, &order, bench) {
                let slot = bench.slot(spec, watcher)?;
                if bench.is_stopped() {
                    // Cut at an arbitrary moment: not judged, and not kept.
                    return Ok(());
                }
                if pulses.ends(run, slot, plan, bench.since_start_ns()) {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

impl Treatment {
    /// The slots of this treatment in a block, its targets in this order: new connections carry a request each, where
    /// connections are kept, and are then parked; then the targets in turn, and once more in the reverse order. A single
    /// target has one slot, since nothing is held against it within the treatment, and more blocks tell more.
    fn slots(&self, block: u32, order: &[usize], bench: &Bench) -> Vec<SlotSpec> {
        let Pace { slot_ns, grace_ns, .. } = self.pace;
        let settling = |&target: &usize| SlotSpec::settling(target, bench.lanes(), grace_ns).at(block, 0);
        let measured =
            |(repeat, target)| SlotSpec::timed(target, SlotRole::Measured, slot_ns, grace_ns).at(block, repeat);
        let turns = if order.len() == 1 { 1 } else { 2 * order.len() };
        let settling = order.iter().filter(|_| bench.keeps_lanes()).map(settling);
        settling.chain(mirrored(order).take(turns).map(measured)).collect()
    }

    /// Whether its connections outlive their requests: those of others come and go with them, and are not ours to count.
    fn kept_connections(&self) -> u64 {
        if has_ports(&self.plan) && keeps_lanes(&self.plan) { u64::from(self.plan.load.connections) } else { 0 }
    }
}

/// Waits until there are ports for a treatment's connections, and counts them: each treatment of each block opens new ones.
fn wait_for_ports(ports: &mut Ports, treatment: &Treatment, bench: &Bench) {
    let wanted = treatment.kept_connections();
    while !ports.has_room(wanted, monotonic_ns()) && !bench.is_stopped() {
        std::thread::sleep(Duration::from_millis(50));
    }
    ports.take(wanted, monotonic_ns());
}

fn shuffled(count: usize, turns: &mut Turns) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    turns.shuffle(&mut order);
    order
}

/// An error with the treatment under which it came up.
fn at(name: &str, error: LabError) -> LabError {
    match error {
        LabError::Target { name: target, text } => {
            LabError::Target { name: target, text: format!("at {name}: {text}") }
        }
        LabError::Plan(text) => LabError::Plan(format!("at {name}: {text}")),
        other => other,
    }
}
