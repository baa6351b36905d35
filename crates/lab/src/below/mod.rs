//! Work of another kind on what lies below the targets: the files that their servers have open, read past the page cache, and the paths to
//! their machines, on which exchanges are made with another program. Slots of this work are no part of the run, whose slots are all of one
//! kind; what came of them is.

mod open;
mod path;

pub(crate) use path::ensure_net_servers;

use crate::bench::{Bench, SlotSpec};
use crate::explain::{Site, TRIAL_REPEAT, without_load};
use crate::held::Known;
use crate::servers::still_serving;
use crate::watch::{View, Watcher};
use crate::{Lab, contact};
use duel_diagnose::Case;
use duel_model::{
    Call, ComparePlan, Facts, Layer, LoadPlan, Nanos, PairVerdict, Plan, Probe, ProbeOutcome, SECOND_NS, Slot,
    SlotRole, Target, TargetObservation, Variation, Verdict, WorkloadPlan,
};
use duel_process::OpenFile;
use open::{Seen, chosen, look_while, work};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// How long each target works while is looked at what its server has open.
const LOOK_NS: Nanos = SECOND_NS;
/// A probe of the layer below has this much time at least, whatever looking took.
const LEAST_PROBE_NS: Nanos = 3 * SECOND_NS;

/// What lies below the targets, once it was measured.
#[derive(Debug)]
pub(crate) struct Below {
    layer: Layer,
    ground: Ground,
    first_contact: Vec<Option<Facts>>,
    verdict: Verdict,
    comparison: Vec<TargetObservation>,
    outcomes: Vec<ProbeOutcome>,
}

/// What work is put on.
#[derive(Debug)]
struct Ground {
    /// As it is told and repeated by hand.
    plan: Plan,
    /// The same, as it is done, where that is something else: files are read by descriptors of ours.
    held_plan: Option<Plan>,
    /// What these lead to.
    _held: Vec<Arc<OpenFile>>,
}

impl Ground {
    fn done(&self) -> &Plan {
        self.held_plan.as_ref().unwrap_or(&self.plan)
    }
}

impl Below {
    pub(crate) fn case(&self, budget_left_ns: Nanos) -> (Layer, Case<'_>) {
        let case = Case {
            sources: Err("in a layer below no other addresses are tried"),
            outcomes: &self.outcomes,
            budget_left_ns,
            ..Case::of(&self.ground.plan, &self.verdict, &self.first_contact, &self.comparison)
        };
        (self.layer, case)
    }
}

/// What came of a probe of the layer below.
pub(crate) struct Probed {
    pub(crate) outcome: ProbeOutcome,
    /// Slots of the plan's own load.
    pub(crate) slots: Vec<Slot>,
    /// Load time of all that was done.
    pub(crate) spent_ns: Nanos,
}

impl Lab {
    /// Makes a probe of a layer below; the first one of a layer finds out what that is.
    pub(crate) fn probe_below(
        &self,
        site: &Site<'_>,
        below: &mut Vec<Below>,
        layer: Layer,
        probe: Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
    ) -> Probed {
        let mut slots = Vec::new();
        let known = below.iter_mut().find(|below| below.layer == layer);
        let made = match (known, duel_diagnose::as_below(&probe)) {
            (Some(below), Some(inner)) => Ok(self.probe_again(site, below, inner, watcher)),
            (None, None) => {
                let first = self.probe_first(site, layer, &probe, next_index, watcher, &mut slots);
                first.map(|(found, outcome, spent_ns)| {
                    below.extend(found);
                    (outcome, spent_ns)
                })
            }
            _ => Err("what lies below the targets is not known".to_owned()),
        };
        let looked_ns: Nanos = slots.iter().map(|slot| slot.elapsed_ns).sum();
        let (outcome, spent_ns) = made.unwrap_or_else(|why| (without_load(probe.clone(), Err(why)), 0));
        Probed { outcome: ProbeOutcome { probe, ..outcome }, slots, spent_ns: spent_ns + looked_ns }
    }

    fn probe_again(
        &self,
        site: &Site<'_>,
        below: &mut Below,
        probe: Probe,
        watcher: &mut dyn Watcher,
    ) -> (ProbeOutcome, Nanos) {
        let Below { layer: _, ground, first_contact, verdict, comparison, outcomes } = below;
        let known = Known { verdict, comparison, outcomes };
        let mut aside = Aside { watcher, question: probe.question.clone() };
        let (outcome, slots) = self.probe(&on(ground.done(), first_contact, known, site), probe, 0, &mut aside);
        outcomes.push(outcome.clone());
        (outcome, slots.iter().map(|slot| slot.elapsed_ns).sum())
    }

    fn probe_first(
        &self,
        site: &Site<'_>,
        layer: Layer,
        probe: &Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
        slots: &mut Vec<Slot>,
    ) -> Result<(Option<Below>, ProbeOutcome, Nanos), String> {
        let ground = match layer {
            Layer::Files => self.files_below(site, probe, next_index, watcher, slots)?,
            Layer::Path => Ground { plan: path::plan(site, probe)?, held_plan: None, _held: Vec::new() },
        };
        let contacts = contact::contact_all(ground.done(), &[], &self.stop).map_err(|error| error.to_string())?;
        let first_contact: Vec<_> = contacts.into_iter().map(|contact| contact.facts).collect();
        let looked_ns: Nanos = slots.iter().map(|slot| slot.elapsed_ns).sum();
        let budget_ns = probe.budget_ns.saturating_sub(looked_ns).max(LEAST_PROBE_NS);
        // What it varies of the targets' load is in the plan already.
        let probe = Probe { budget_ns, below: None, variation: Variation::default(), ..probe.clone() };
        let mut aside = Aside { watcher, question: probe.question.clone() };
        let verdict = Verdict::default();
        let known = Known { verdict: &verdict, comparison: &[], outcomes: &[] };
        let (outcome, done) = self.probe(&on(ground.done(), &first_contact, known, site), probe, 0, &mut aside);
        let spent_ns = done.iter().map(|slot| slot.elapsed_ns).sum();
        let below = outcome.unavailable.is_none().then(|| Below {
            layer,
            ground,
            verdict: Verdict { pairs: outcome.pairs.clone(), ..Verdict::default() },
            comparison: outcome.targets.clone(),
            first_contact,
            outcomes: Vec::new(),
        });
        Ok((below, outcome, spent_ns))
    }

    /// The files that the targets' servers have open.
    ///
    /// Which file that is, how large the pieces are in which it is read, and how many at a time, is seen while the plan's load is on the
    /// target. A file is read by a descriptor that was made then: it leads to that file, whatever its owner makes of its name meanwhile. Its
    /// content goes nowhere.
    fn files_below(
        &self,
        site: &Site<'_>,
        probe: &Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
        slots: &mut Vec<Slot>,
    ) -> Result<Ground, String> {
        let seen = self.look_below(site, probe, next_index, watcher, slots)?;
        let slow = slow_sides(site.plan, site.known.verdict);
        let held = chosen(&seen, &site.plan.targets, |target| slow.contains(&target))?;
        let work = work(&seen, &held)?;
        let plan = |address: &dyn Fn(&OpenFile) -> String| {
            let addresses = held.iter().map(|file| address(file)).collect::<Vec<_>>();
            plan_of(site.plan, &addresses, WorkloadPlan::Plain(work.clone()), LoadPlan::default())
        };
        let held_plan = plan(&|file| format!("/proc/self/fd/{}", file.held.as_raw_fd()));
        let plan = plan(&|file| file.path.to_string_lossy().into_owned());
        Ok(Ground { plan, held_plan: Some(held_plan), _held: held })
    }
}

/// Work on what has these addresses, each below one of a plan's targets and called as that.
fn plan_of(above: &Plan, addresses: &[String], workload: WorkloadPlan, load: LoadPlan) -> Plan {
    let targets = above.targets.iter().zip(addresses);
    Plan {
        targets: targets
            .map(|(target, address)| Target { name: target.name.clone(), address: address.clone(), host: None })
            .collect(),
        workload,
        load,
        compare: ComparePlan { restart: None, ..above.compare.clone() },
        factors: Vec::new(),
    }
}

/// Where probes of a layer below are made.
fn on<'a>(plan: &'a Plan, first_contact: &'a [Option<Facts>], known: Known<'a>, above: &Site<'a>) -> Site<'a> {
    Site { plan, routes: &[], first_contact, begun: &[], polling_workers: 0, known, rhythm: None, ..*above }
}

impl Lab {
    /// Has each target work for a moment, and looks at what its server has open meanwhile.
    fn look_below(
        &self,
        site: &Site<'_>,
        probe: &Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
        slots: &mut Vec<Slot>,
    ) -> Result<Vec<Seen>, String> {
        let Site { plan, routes, hosts, clock, .. } = *site;
        let told = |error: crate::LabError| error.to_string();
        let contacts = contact::contact_all(plan, routes, &self.stop).map_err(told)?;
        for (contact, begun) in contacts.iter().zip(site.begun) {
            contact.opens.go_on_after(*begun, plan.load.threads);
        }
        let mut bench = Bench::open(plan, contacts, Arc::clone(&self.stop)).map_err(told)?;
        bench.continue_run(next_index, clock.now_ns());
        bench.wait_with(site.polling_workers.min(plan.load.threads));
        let mut seen = Vec::new();
        for target in 0..bench.targets() {
            let pid = still_serving(hosts, target)?;
            let role = SlotRole::Probe(probe.id.clone());
            let spec = SlotSpec::timed(target, role, LOOK_NS, LOOK_NS).at(0, TRIAL_REPEAT);
            let (slot, found) = look_while(pid, || bench.slot(spec, watcher));
            slots.push(slot.map_err(told)?);
            // What was seen is that process's only if it is still there.
            still_serving(hosts, target)?;
            seen.push(found?);
        }
        Ok(seen)
    }
}

/// The targets whose slowness is to be explained: of each pair the slower one.
fn slow_sides(plan: &Plan, verdict: &Verdict) -> BTreeSet<usize> {
    let slower = |(index, pair): (usize, &PairVerdict)| match pair.call {
        Call::Slower => Some(index),
        Call::Faster => Some(0),
        Call::Equivalent | Call::Unknown => None,
    };
    Case::of(plan, verdict, &[], &[]).main_pairs().filter_map(slower).collect()
}

/// Tells what is being done and for how long, and keeps slots and figures to itself: they are of another kind of work than those of the run,
/// which archive and telemetry hold.
struct Aside<'a> {
    watcher: &'a mut dyn Watcher,
    question: String,
}

impl Watcher for Aside<'_> {
    fn label(&mut self, label: &str) {
        self.watcher.label(label);
    }

    fn live(&mut self, view: &View<'_>) {
        self.watcher.meanwhile(&format!("{} ({} s)", self.question, view.elapsed_ns / SECOND_NS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Metric;

    #[test]
    fn what_is_done_aside_is_told_and_its_figures_are_not() {
        #[derive(Default)]
        struct Told(Vec<String>);
        impl Watcher for Told {
            fn meanwhile(&mut self, what: &str) {
                self.0.push(what.to_owned());
            }
            fn live(&mut self, _: &View<'_>) {
                self.0.push("figures".to_owned());
            }
        }
        let mut told = Told::default();
        let view = View {
            elapsed_ns: 3 * SECOND_NS,
            total_ns: None,
            total_ops: None,
            targets: &[],
            active: 0,
            slot: None,
            search: None,
        };
        Aside { watcher: &mut told, question: "Is it slower?".to_owned() }.live(&view);
        assert_eq!(told.0, ["Is it slower? (3 s)"]);
    }

    #[test]
    fn the_slow_sides_are_those_of_the_main_metric() {
        let targets: Vec<Target> =
            ["A", "B", "C"].map(|name| Target { name: name.into(), address: "http://x/".into(), host: None }).into();
        let plan = Plan {
            targets,
            workload: WorkloadPlan::Http(Box::default()),
            load: LoadPlan::default(),
            compare: ComparePlan::default(),
            factors: vec![],
        };
        let pair = |target: &str, metric, call| PairVerdict {
            baseline: "A".into(),
            target: target.into(),
            metric,
            call,
            ratio: None,
            low: None,
            high: None,
            confidence: 0.95,
            slots: 0,
            by_whole: false,
        };
        let slow = |b, c| {
            let of = |target, call| [pair(target, Metric::Rate, call), pair(target, Metric::ResponseP99, Call::Faster)];
            let verdict = Verdict { pairs: [of("B", b), of("C", c)].concat(), ..Verdict::default() };
            slow_sides(&plan, &verdict).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(slow(Call::Slower, Call::Equivalent), [1]);
        assert_eq!(slow(Call::Faster, Call::Slower), [0, 2]);
        assert!(slow(Call::Unknown, Call::Equivalent).is_empty());
    }
}
