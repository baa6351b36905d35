//! Why: runs the probes that diagnosis asks for, each a small comparison of all targets.

use crate::below::{Below, Probed};
use crate::bench::{Bench, SlotSpec};
use crate::blocks::{Around, BlockSchedule, Next, Unread, blocks};
use crate::held::{self, Known};
use crate::hosts::Hosts;
use crate::route::Route;
use crate::streams;
use crate::turns::{OPS_PER_TURN, OPS_PER_TURN_ALONE, slot_in_turns_ns, turns_of};
use crate::twins::{StandIn, answers_alike};
use crate::watch::{Searching, Watcher};
use crate::{Lab, LabError, contact, judge, kinds, lens, route, servers};
use duel_diagnose::{Case, Step};
use duel_host::Looking;
use duel_model::{
    Doubt, DoubtId, Explanation, Facts, HostAccess, HostDemand, HostRecord, HostSample, HostSpan, KernelLine,
    LensReading, Looks, MILLISECOND_NS, Metric, Nanos, NotMade, PEER, PairVerdict, Plan, Probe, ProbeOutcome, Run,
    SECOND_NS, Slot, SlotRole, Target, TargetObservation, Turn, Waiting, WorkerAudit, sanitize_line,
};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Shortest slot of a probe: its blocks are few, but so are the connections that are usually probed.
const SHORTEST_SLOT_NS: Nanos = 150 * MILLISECOND_NS;
/// Shortest slot around which machines are read: their clocks tell hundredths of a second, quotas have periods of a
/// tenth, and reading takes some milliseconds itself.
const SHORTEST_READ_SLOT_NS: Nanos = 400 * MILLISECOND_NS;
/// Pairs of slots that a probe's time is divided for.
const PAIRS_WANTED: u64 = 8;
/// Ops that a connection should carry in a slot of a probe.
const OPS_PER_SLOT: f64 = 4.0;

/// How the cause of a difference is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosisPlan {
    /// Most time of load, ns.
    pub budget_ns: Nanos,
    /// Whether causes are named that the fault bench has not proven yet, instead of told as suspicions.
    pub names_suspects: bool,
    /// Of which targets' servers private twins may be started, in the plan's order; empty: of none.
    pub may_start_twin: Vec<bool>,
    /// Bytes that a private copy of a database may have; `None`: none may be made.
    pub most_copied_bytes: Option<u64>,
    /// Where a `duel net serve` answers on each target's machine, in the plan's order; empty: the paths are not measured alone.
    pub net_servers: Vec<String>,
}

impl Lab {
    /// Finds out why the targets of a run differ.
    ///
    /// `plan` is the run's plan with its secrets. Slots of probes and the explanation are added to the run.
    pub fn explain(
        &self,
        run: &mut Run,
        plan: &Plan,
        diagnosis: DiagnosisPlan,
        watcher: &mut dyn Watcher,
    ) -> Result<(), LabError> {
        let verdict = judge(run);
        let measured: Vec<&Slot> = run.slots.iter().filter(|slot| slot.role == SlotRole::Measured).collect();
        let comparison = duel_stats::observe(measured.iter().copied(), &plan.targets);
        let rhythm = Rhythm::of(measured.iter().map(|slot| &slot.turns[..]));
        let since_start_ns = run.slots.iter().map(Slot::end_ns).max().unwrap_or(0);
        let clock = Clock { since_start_ns, at_ns: duel_load::monotonic_ns() };
        let mut plan = servers::with_noted_processes(plan, &run.plan);
        let forgotten = servers::forget_unproven_ids(&mut plan);
        let plan = &plan;
        let peers = servers::peers(plan, |index| reached(run, &comparison, index));
        // What management controllers tell belongs to the comparison: now the machines do something else.
        let mut hosts = Hosts::watch(plan, &peers);
        forgotten.iter().for_each(|(name, why)| hosts.doubt(name, why));
        let host_facts = hosts.facts();
        for ((target, then), now) in plan.targets.iter().zip(&run.hosts).zip(&host_facts) {
            if let (Some(then), Some(now)) = (then, now)
                && let Some(why) = servers::started_anew(&then.facts, now)
            {
                hosts.doubt(&target.name, why);
            }
        }
        let round_ops = round_ops(plan);
        let sources = other_sources(run, plan, &comparison);
        let mut outcomes: Vec<ProbeOutcome> = Vec::new();
        let mut ways: Option<(Vec<Route>, Plan)> = None;
        let mut below: Vec<Below> = Vec::new();
        let mut spent_ns = 0;
        let explanation: Explanation = loop {
            let budget_left_ns = if self.is_stopped() { 0 } else { diagnosis.budget_ns.saturating_sub(spent_ns) };
            let layers: Vec<_> = below.iter().map(|below| below.case(budget_left_ns)).collect();
            let case = Case {
                plan,
                verdict: &verdict,
                first_contact: &run.first_contact,
                comparison: &comparison,
                hosts: &host_facts,
                twins: &diagnosis.may_start_twin,
                most_copied_bytes: diagnosis.most_copied_bytes,
                sources: sources.as_deref().map_err(String::as_str),
                round_ops,
                outcomes: &outcomes,
                has_net_servers: !diagnosis.net_servers.is_empty(),
                below: &layers,
                budget_left_ns,
            };
            let step = if diagnosis.names_suspects {
                duel_diagnose::next_naming(&case, |_| true)
            } else {
                duel_diagnose::next(&case)
            };
            match step {
                Step::Conclude(explanation) => break explanation,
                Step::Probe(probe) => {
                    let watcher = &mut Searching { watcher: &mut *watcher, spent_ns, budget_ns: diagnosis.budget_ns };
                    watcher.label(&probe.question);
                    let found = match ways.take() {
                        Some(found) => found,
                        None => {
                            let routes = self.ways_to(run, plan, &comparison);
                            let plan = route::settled(plan, &routes)?;
                            (routes, plan)
                        }
                    };
                    let (routes, plan) = &*ways.insert(found);
                    let first_contact = &run.first_contact;
                    let begun = &begun(&run.slots, plan.targets.len());
                    let polling_workers = run.waiting.as_ref().map_or(0, Waiting::polling_at_the_end);
                    let known = Known { verdict: &verdict, comparison: &comparison, outcomes: &outcomes };
                    let hosts = &hosts;
                    let net_servers = &diagnosis.net_servers;
                    let site = Site {
                        plan,
                        routes,
                        first_contact,
                        hosts,
                        clock,
                        polling_workers,
                        begun,
                        known,
                        rhythm,
                        net_servers,
                    };
                    let next_index = run.slots.len() as u32;
                    let (outcome, slots, load_ns) = if let Some(layer) = probe.below {
                        let Probed { outcome, slots, spent_ns } =
                            self.probe_below(&site, &mut below, layer, probe, next_index, watcher);
                        (outcome, slots, spent_ns)
                    } else {
                        let (outcome, slots) = self.probe(&site, probe, next_index, watcher);
                        let load_ns = slots.iter().map(Slot::under_load_ns).sum();
                        (outcome, slots, load_ns)
                    };
                    // Time that a probe took to fail counts too, or a dead server would be probed for ever.
                    spent_ns += load_ns.max(10 * MILLISECOND_NS);
                    run.slots.extend(slots);
                    outcomes.push(outcome);
                }
            }
        };
        run.explanation = Some(explanation);
        let (records, doubts) = hosts.finish(plan, false);
        keep_hosts(run, records);
        for doubt in doubts {
            if !run.doubts.contains(&doubt) {
                run.doubts.push(doubt);
            }
        }
        Ok(())
    }

    /// The ways on which the comparison reached its targets.
    fn ways_to(&self, run: &Run, plan: &Plan, comparison: &[TargetObservation]) -> Vec<Route> {
        if let Some(ways) = self.last_ways().as_ref().filter(|ways| ways.run_id == run.id) {
            return ways.routes.clone();
        }
        let again = |(index, target): (usize, &Target)| {
            Route::again(plan, &target.address, reached(run, comparison, index), &self.stop)
        };
        plan.targets.iter().enumerate().map(again).collect()
    }

    /// Makes one probe; what could not be made is an outcome, too.
    pub(crate) fn probe(
        &self,
        site: &Site<'_>,
        probe: Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
    ) -> (ProbeOutcome, Vec<Slot>) {
        let Site { plan, routes, .. } = *site;
        if let Some(target) = probe.lens_of {
            return (self.look_through_lens(site, target, probe), Vec::new());
        }
        let stand_in = probe.variation.twin.as_ref();
        let stand_in = match stand_in.map(|twin| self.stand_in(plan, twin, site.hosts, routes, &mut *watcher)) {
            Some(Err(why)) => return (without_load(probe, Err(why)), Vec::new()),
            Some(Ok(stand_in)) => Some(stand_in),
            None => None,
        };
        let routes = stand_in.as_ref().map_or(routes, |stand_in| &stand_in.routes[..]);
        let by_other_addresses: Vec<Route> = routes
            .iter()
            .enumerate()
            .map(|(target, route)| {
                probe.variation.peers.get(&target).map_or_else(|| route.clone(), |peer| route.by(*peer))
            })
            .collect();
        let site = &Site { routes: &by_other_addresses, ..*site };
        let varied = plan.varied(&probe.variation);
        let (mut slots, mut demands) = (Vec::new(), vec![None; plan.targets.len()]);
        let mut seen = Seen { slots: &mut slots, demands: &mut demands };
        let failed = self.run_probe(site, &varied, &probe, next_index, watcher, &mut seen).err();
        let measured = |slot: &&Slot| matches!(slot.role, SlotRole::Probe(_)) && slot.repeat < TRIAL_REPEAT;
        let verdict = duel_stats::judge_probe(slots.iter().filter(measured), &varied, &site.known.by_whole());
        let targets = duel_stats::observe(slots.iter().filter(measured), &varied.targets);
        let twin = stand_in.as_ref().map(|stand_in: &StandIn| stand_in.reading().clone());
        let unavailable = match twin.as_ref().and_then(|twin| twin.ended.clone()) {
            _ if self.is_stopped() => Some(NotMade::Interrupted),
            Some(ended) => Some(NotMade::Because(ended)),
            None => failed.map(|error| NotMade::Because(error.to_string())),
        };
        let outcome = if unavailable.is_some() {
            let moved = routes.iter().zip(&plan.targets).filter_map(|(route, target)| route.doubt(&target.name));
            ProbeOutcome { twin, doubts: moved.collect(), unavailable, ..ProbeOutcome::of(probe) }
        } else {
            let doubts = doubts_about_rates(verdict.doubts, &verdict.pairs);
            if !probe.reads_hosts {
                demands.clear();
            }
            ProbeOutcome { pairs: verdict.pairs, targets, demands, twin, doubts, ..ProbeOutcome::of(probe) }
        };
        (outcome, slots)
    }

    /// Measures the libcrypto of a target's server alone, on its machine.
    fn look_through_lens(&self, site: &Site<'_>, target: usize, probe: Probe) -> ProbeOutcome {
        let host = site.plan.targets.get(target).and_then(|target| target.host.as_ref());
        without_load(probe, lens::reading(site.hosts, target, host, self.lens.as_ref()))
    }

    fn run_probe(
        &self,
        site: &Site<'_>,
        plan: &Plan,
        probe: &Probe,
        next_index: u32,
        watcher: &mut dyn Watcher,
        seen: &mut Seen<'_>,
    ) -> Result<(), LabError> {
        let Site { routes, hosts, clock, .. } = *site;
        let contacts = contact::contact_all(plan, routes, &self.stop)?;
        if let Some(twin) = &probe.variation.twin {
            let of_server = site.first_contact.get(twin.of).and_then(Option::as_ref);
            let of_twin = contacts.get(twin.of).and_then(|contact| contact.facts.as_ref());
            let changed = twin.copy.as_ref().and_then(|copy| copy.set.as_ref());
            let name = plan.targets.get(twin.of).map(|target| sanitize_line(&target.name)).unwrap_or_default();
            answers_alike(of_server, of_twin, changed).map_err(|text| LabError::Target { name, text })?;
        }
        // Of the same requests on all targets.
        let few = site.begun.iter().min().map(|begun| few_of(*begun, site.plan.load.threads));
        for (contact, begun) in contacts.iter().zip(site.begun) {
            if let Some(few) = few.filter(|_| probe.variation.same_few) {
                contact.opens.go_round_in(few);
                continue;
            }
            // Those of the whole plan: a probe may have fewer than the load before it.
            contact.opens.go_on_after(*begun, site.plan.load.threads);
        }
        let mut bench = Bench::open(plan, contacts, Arc::clone(&self.stop))?;
        bench.continue_run(next_index, clock.now_ns());
        bench.wait_with(site.polling_workers.min(plan.load.threads));
        bench.expect(Some(probe.budget_ns), None);
        let role = SlotRole::Probe(probe.id.clone());
        let trip_ns =
            streams::longest_trip_ns(plan, site.known.comparison.iter().filter_map(|seen| seen.negotiated.as_ref()));
        // A few ops may take far longer than the others (a lost SYN is sent again after 1 s, 3 s, 7 s), and the whole
        // budget would go by waiting for them. Only where no op ends within its part, one is given all its time.
        let part_ns = probe.budget_ns / (TRIALS_IN_BUDGET * bench.targets() as u64);
        // Streams keep their connections, so it is only here that they come up to speed as new ones.
        let settle_ns = streams::settle_ns(trip_ns, streams::run_up_ns(trip_ns, SHORTEST_SLOT_NS));
        let trial_ns = SHORTEST_SLOT_NS.max(settle_ns.min(part_ns));
        // The first slots connect and tell how long an op takes; they are kept, and not judged.
        let mut slowest_op_ns = 0.0f64;
        for target in 0..bench.targets() {
            for grace_ns in [part_ns.max(SECOND_NS).min(bench.op_timeout_ns()), bench.op_timeout_ns()] {
                let spec = SlotSpec::timed(target, role.clone(), trial_ns, grace_ns).at(0, TRIAL_REPEAT);
                let slot = bench.slot(spec, watcher)?;
                let tells = slot.tally.ok > 0 || slot.tally.in_flight == 0 || bench.is_stopped();
                slowest_op_ns = slowest_op_ns.max(slot.tally.service.mean_ns().unwrap_or(0.0));
                seen.slots.push(slot);
                if tells {
                    break;
                }
            }
        }
        let shortest_ns = if probe.reads_hosts { SHORTEST_READ_SLOT_NS } else { SHORTEST_SLOT_NS };
        // Of one that is made once more, as much as the first time: its slots are as that had them, and there are more of them.
        let once_ns = if probe.takes_all { probe.budget_ns / duel_diagnose::LONGER } else { probe.budget_ns };
        let affordable_ns = once_ns / (PAIRS_WANTED * bench.targets() as u64);
        // Behind the trials, which are long where there are run-ups, each slot has one, and waits for its last op.
        let beside_ns = streams::beside_ns(trip_ns, slowest_op_ns as Nanos);
        let room_ns = (once_ns.saturating_sub(bench.load_ns()) / (PAIRS_WANTED * bench.targets() as u64))
            .saturating_sub(beside_ns);
        let (run_up_ns, shortest_ns, affordable_ns) = match streams::run_up_ns(trip_ns, shortest_ns) {
            0 => (0, shortest_ns, affordable_ns),
            whole_ns => {
                let (run_up_ns, least_ns) = streams::of_probe(trip_ns, whole_ns, room_ns);
                (run_up_ns, shortest_ns.max(least_ns), room_ns - run_up_ns)
            }
        };
        let by_whole = site.known.by_whole();
        let (turns, slot_ns) = match site.rhythm {
            // Pauses that go on while another target has its turn count by the length of turns.
            Some(rhythm)
                if !by_whole.is_empty()
                    && !probe.reads_hosts
                    && !probe.variation.one_at_a_time
                    && OPS_PER_SLOT * slowest_op_ns <= rhythm.turn_ns as f64 =>
            {
                (rhythm.turns, rhythm.turn_ns * Nanos::from(rhythm.turns))
            }
            _ => {
                let trials = seen.slots.iter().map(|slot| (slot.target, &slot.tally.service));
                let op_ns = slowest_op_ns as Nanos + bench.think_ns();
                let ops = site.ops_per_turn(plan, probe);
                let slot = ops.map(|ops| (ops, slot_in_turns_ns(op_ns, ops).min(affordable_ns)));
                let turns = slot.map(|(ops, slot_ns)| (turns_of(slot_ns, op_ns, ops, trials, bench.lanes()), slot_ns));
                turns.filter(|&(turns, _)| turns > 1).unwrap_or_else(|| {
                    let op_ns = slowest_op_ns as Nanos;
                    let slot_ns = if probe.variation.one_at_a_time {
                        rounds_ns(op_ns, plan.lanes(), affordable_ns, shortest_ns)
                    } else {
                        probe_slot_ns(op_ns, affordable_ns, shortest_ns)
                    };
                    (1, slot_ns)
                })
            }
        };
        let schedule = BlockSchedule {
            turns,
            role,
            slot_ns,
            run_up_ns,
            settle_ns: 0,
            // A probe makes one block at least, or nothing would be said of it.
            beside_ns: 0,
            by_whole,
            grace_ns: bench.grace_ns(slowest_op_ns as Nanos, affordable_ns),
            end_load_ns: probe.budget_ns,
            first_block: 1,
            blocks: None,
            takes_all: probe.takes_all,
            renews: slowest_op_ns <= LONGEST_OP_TO_RENEW_NS && run_up_ns == 0,
            held: held::against(site.plan, probe, site.known),
        };
        let Seen { slots, demands } = seen;
        let mut keep = |slot: Slot, _: &Bench| {
            slots.push(slot);
            Next::Look
        };
        if !probe.reads_hosts || !hosts.any() {
            return blocks(&mut bench, plan, &schedule, watcher, &mut Unread, &mut keep);
        }
        let is_local = |target: &Target| target.host.as_ref().is_some_and(|host| host.access == HostAccess::Local);
        let local = plan.targets.iter().map(is_local).collect();
        let allowed = duel_load::allowed_cpus();
        let slots = vec![0; plan.targets.len()];
        let mut readings =
            Readings { hosts, demands, local, allowed, before: None, quiet: Vec::new(), slots, looking: None };
        blocks(&mut bench, plan, &schedule, watcher, &mut readings, &mut keep)
    }
}

/// How long a slot of a probe is: some ops of the slowest target, where as many pairs as are wanted can be afforded so.
///
/// No op becomes due after a slot's time, but the last one is waited for, so that a slot takes up to an op longer: it leaves room for one to end.
fn probe_slot_ns(op_ns: Nanos, affordable_ns: Nanos, shortest_ns: Nanos) -> Nanos {
    let some_ops_ns = (OPS_PER_SLOT * op_ns as f64) as Nanos;
    some_ops_ns.min(affordable_ns.saturating_sub(op_ns)).max(shortest_ns)
}

/// How long a slot is in which lanes have one op at a time, in turn: some for each of them, to tell lanes apart by halves of their
/// ops; and as many as can be afforded where that is more. One op is waited for at its end, however many lanes there are.
fn rounds_ns(op_ns: Nanos, lanes: u32, affordable_ns: Nanos, shortest_ns: Nanos) -> Nanos {
    const ROUNDS: Nanos = 4;
    (ROUNDS * u64::from(lanes) * op_ns).min(affordable_ns).max(shortest_ns)
}

/// What the comparison reached when it asked for a target.
fn reached<'a>(run: &'a Run, comparison: &'a [TargetObservation], target: usize) -> Option<&'a Facts> {
    let in_slots = comparison.get(target).and_then(|seen| seen.negotiated.as_ref());
    in_slots.or_else(|| run.first_contact.get(target).and_then(Option::as_ref))
}

/// Other addresses of this machine that the targets can be reached from, where the comparison reached them; else why there
/// is none.
fn other_sources(run: &Run, plan: &Plan, comparison: &[TargetObservation]) -> Result<Vec<IpAddr>, String> {
    let peer = |(index, target): (usize, &Target)| {
        let peer = reached(run, comparison, index).and_then(|negotiated| negotiated.text(PEER)?.parse().ok());
        peer.ok_or_else(|| format!("which address {} is reached at is not known", sanitize_line(&target.name)))
    };
    let peers: Vec<SocketAddr> = plan.targets.iter().enumerate().map(peer).collect::<Result<_, _>>()?;
    kinds::of(&plan.workload).other_sources(&peers)
}

/// What all probes of a diagnosis share.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The run's plan with its secrets.
    pub(crate) plan: &'a Plan,
    pub(crate) routes: &'a [Route],
    /// What each server's first answer told.
    pub(crate) first_contact: &'a [Option<Facts>],
    pub(crate) hosts: &'a Hosts,
    pub(crate) clock: Clock,
    /// Workers of each target that poll while they wait, as they did to the run's end.
    pub(crate) polling_workers: u32,
    /// Ops that were begun on each target so far.
    pub(crate) begun: &'a [u64],
    pub(crate) known: Known<'a>,
    /// The turns that the comparison was run in.
    pub(crate) rhythm: Option<Rhythm>,
    /// Where a `duel net serve` answers on each target's machine; empty: nowhere.
    pub(crate) net_servers: &'a [String],
}

impl Site<'_> {
    /// Ops of a turn, where the slots of a probe may be run in turns; `None`: in one go.
    ///
    /// The rate of a slot in turns is what its turns typically had, that of a slot in one go is what all of it had. These differ where a server
    /// pauses now and then. So a probe is measured as what it is held against: with the plan's connections, as the comparison was. Over one
    /// connection all probes have turns, unless a server stands still: pauses count more often in short turns, and `app.pauses` goes by how
    /// long they are.
    fn ops_per_turn(&self, varied: &Plan, probe: &Probe) -> Option<u64> {
        let work = kinds::of(&varied.workload);
        let stands_still =
            |seen: &TargetObservation| seen.stalls.is_some_and(|stalls| stalls.share > self.plan.compare.margin);
        if probe.reads_hosts
            || probe.variation.one_at_a_time
            || !work.takes_turns()
            || !self.known.by_whole().is_empty()
            || self.known.comparison.iter().any(stands_still)
        {
            return None;
        }
        match varied.lanes() {
            lanes if lanes == self.plan.lanes() => self.rhythm.map(|_| OPS_PER_TURN),
            // Of requests that differ, a turn should hold some of each.
            1 => Some(if work.ops_differ(&varied.workload) { OPS_PER_TURN } else { OPS_PER_TURN_ALONE }),
            _ => self.rhythm.map(|_| OPS_PER_TURN),
        }
    }
}

/// Turns that slots were run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rhythm {
    /// In how many each slot was run.
    turns: u32,
    /// How long one typically was.
    turn_ns: Nanos,
}

impl Rhythm {
    /// That of slots with these turns; `None` where they were run in one go.
    fn of<'a>(slots: impl IntoIterator<Item = &'a [Turn]>) -> Option<Self> {
        let (mut most, mut lengths_ns) = (0, Vec::new());
        for turns in slots {
            most = most.max(turns.len());
            lengths_ns.extend(turns.iter().map(|turn| turn.elapsed_ns));
        }
        if most < 2 {
            return None;
        }
        let middle = lengths_ns.len() / 2;
        let turn_ns = *lengths_ns.select_nth_unstable(middle).1;
        Some(Self { turns: u32::try_from(most).ok()?, turn_ns })
    }
}

/// How many of its first requests each worker sends again and again, where each of so many workers began its part of so many: what was
/// asked for in half a second of half a minute, so that all of them are asked for several times in a probe, whichever they are.
fn few_of(begun: u64, workers: u32) -> u64 {
    const PARTS: u64 = 64;
    (begun / u64::from(workers.max(1)) / PARTS).max(1)
}

/// Ops that these slots began on each target. How many each worker began is not kept: it is no more than all.
fn begun(slots: &[Slot], targets: usize) -> Vec<u64> {
    let mut begun = vec![0; targets];
    for slot in slots {
        if let Some(begun) = begun.get_mut(slot.target) {
            *begun += slot.tally.started;
        }
    }
    begun
}

/// Ops after which the plan's requests are gone through. Where they cannot be read any more no probe can be made either.
fn round_ops(plan: &Plan) -> Option<u64> {
    kinds::of(&plan.workload).round_ops(&plan.workload, &plan.targets.first()?.address)
}

/// The outcome of a probe that put no load on anything.
pub(crate) fn without_load(probe: Probe, reading: Result<LensReading, String>) -> ProbeOutcome {
    let unavailable = reading.as_ref().err().map(|why| NotMade::from(sanitize_line(why)));
    ProbeOutcome { lens: reading.ok(), unavailable, ..ProbeOutcome::of(probe) }
}

/// What a probe has brought so far.
struct Seen<'a> {
    slots: &'a mut Vec<Slot>,
    demands: &'a mut Vec<Option<HostDemand>>,
}

/// Reads the machine of a target before and after each of its slots, and machines elsewhere meanwhile: what they do then they
/// do without load.
struct Readings<'a> {
    hosts: &'a Hosts,
    demands: &'a mut Vec<Option<HostDemand>>,
    /// Targets whose machine is this one.
    local: Vec<bool>,
    /// The CPUs that we may run on.
    allowed: Vec<u32>,
    before: Option<HostSample>,
    quiet: Vec<(usize, HostSample)>,
    /// Slots that each target has had.
    slots: Vec<u32>,
    /// Who waits at the server under load: looks that are under way.
    looking: Option<Looking>,
}

impl Around for Readings<'_> {
    fn before(&mut self, target: usize) {
        self.read_before(target);
        self.looking = self.hosts.look_who_waits(target);
    }

    fn after(&mut self, slot: &Slot) {
        // One that is under way may see what goes on after the load.
        let seen = self.looking.take().map(Looking::so_far);
        self.add_load(slot);
        if let Some(seen) = seen.filter(sees_anybody) {
            let demand = self.demands[slot.target].get_or_insert_default();
            demand.sleepers.add(&seen.sleepers);
            demand.queues.add(&seen.queues);
        }
        for (other, before) in std::mem::take(&mut self.quiet) {
            let Some(after) = self.hosts.sample(other) else { continue };
            self.demands[other].get_or_insert_default().add_quiet(&HostSpan::between(&before, &after), |_| true);
        }
    }
}

/// For how long a slot is waited after, until what it leaves behind is over (Linux delays acknowledgements by 40 ms).
const LEFT_BEHIND: Duration = Duration::from_millis(60);
/// How long this machine is watched without load then: a quarter of the shortest slot. Other machines are read over the network, by
/// packets of their own, and are seen without load while another target has its slot.
const QUIET: Duration = Duration::from_millis(100);
/// Before every so many slots of a target it is looked at who waits at its server without load: who waits for work then does so
/// all the time, and a server may have more threads later than it begins with.
const QUIET_EVERY: u32 = 3;

/// Whether a counter of the whole machine counts what goes over its networks. Only these are cleared of what went on before a slot:
/// what a server does for an op ends with its answer there, while its CPU and its disk may go on working for it.
fn counts_packets(key: &str) -> bool {
    ["tcp.", "ip.", "link."].iter().any(|part| key.starts_with(part))
}

/// Whether the kernel told of anything.
fn sees_anybody(seen: &Looks) -> bool {
    seen.sleepers.looks > 0 || seen.queues.looks > 0
}

impl Readings<'_> {
    fn read_before(&mut self, target: usize) {
        let elsewhere = self.hosts.elsewhere(target).into_iter();
        self.quiet = elsewhere.filter_map(|other| Some((other, self.hosts.sample(other)?))).collect();
        if self.local[target] {
            // What the slot before leaves behind is load: last answers are acknowledged after up to 40 ms, and connections closed.
            std::thread::sleep(LEFT_BEHIND);
            self.look_without_load(target);
            let quiet = self.hosts.sample(target);
            std::thread::sleep(QUIET);
            self.before = self.hosts.sample(target);
            if let (Some(quiet), Some(before)) = (quiet, &self.before) {
                // All targets here share the machine, and what others do on it.
                for (demand, _) in self.demands.iter_mut().zip(&self.local).filter(|(_, is_local)| **is_local) {
                    demand.get_or_insert_default().add_quiet(&HostSpan::between(&quiet, before), counts_packets);
                }
            }
            return;
        }
        self.look_without_load(target);
        self.before = self.hosts.sample(target);
    }

    /// Who waits at a target's server when there is nothing to do.
    fn look_without_load(&mut self, target: usize) {
        let slot = self.slots[target];
        self.slots[target] += 1;
        if !slot.is_multiple_of(QUIET_EVERY) {
            return;
        }
        if let Some(seen) = self.hosts.look_who_waits(target).map(Looking::few)
            && sees_anybody(&seen)
        {
            let demand = self.demands[target].get_or_insert_default();
            demand.quiet_sleepers.add(&seen.sleepers);
            demand.quiet_queues.add(&seen.queues);
        }
    }

    fn add_load(&mut self, slot: &Slot) {
        let Some((before, after)) = self.before.take().zip(self.hosts.sample(slot.target)) else { return };
        let demand = self.demands[slot.target].get_or_insert_default();
        let (ops, ours_ns) = read_around(slot);
        demand.add(&HostSpan::between(&before, &after), ops);
        if self.local[slot.target]
            && let Some(ours_ns) = ours_ns
        {
            demand.generator_cpu_ns += ours_ns;
            demand.generator_allowed.clone_from(&self.allowed);
        }
        forget_our_own(demand, slot.target, &self.local);
    }
}

/// What a machine does around a slot it does for so many ops that end well, with so much CPU time of the generator: those of the run-up are
/// among them. CPU time is counted in the slot, and was used at the same pace before.
fn read_around(slot: &Slot) -> (u64, Option<Nanos>) {
    let of_worker = |worker: &WorkerAudit| {
        let whole_ns = u128::from(worker.wall_ns) + u128::from(worker.run_up_ns);
        let scaled_ns = u128::from(worker.cpu_ns?) * whole_ns / u128::from(worker.wall_ns.max(1));
        Some(if worker.run_up_ns == 0 { worker.cpu_ns? } else { Nanos::try_from(scaled_ns).unwrap_or(Nanos::MAX) })
    };
    (slot.tally.ok + slot.tally.ok_in_run_up, slot.audit.workers.iter().map(of_worker).sum())
}

/// Takes out counters that hold what the generator itself sends, receives and is woken for, where it runs on this target's
/// machine and not on those of all others: held against theirs they would tell of the generator.
fn forget_our_own(demand: &mut HostDemand, target: usize, local: &[bool]) {
    const COUNTERS: [&str; 6] = [
        "tcp.sent_segments",
        "tcp.received_segments",
        "tcp.retransmitted_segments",
        "cpu.switches",
        "cpu.softirq_ns",
        "cpu.irq_ns",
    ];
    if local[target] && local.contains(&false) {
        let is_ours = |key: &str| COUNTERS.contains(&key) || ["ip.", "link."].iter().any(|part| key.starts_with(part));
        demand.growth.retain(|key, _| !is_ours(key));
    }
}

/// Adds what was read of the machines during diagnosis to what was read before.
fn keep_hosts(run: &mut Run, records: Vec<Option<HostRecord>>) {
    run.hosts.resize(records.len().max(run.hosts.len()), None);
    for (kept, record) in run.hosts.iter_mut().zip(records) {
        match (kept, record) {
            (Some(kept), Some(record)) => {
                add_last_words(kept, &record);
                kept.samples.extend(record.samples);
                kept.lost = kept.lost.take().or(record.lost);
            }
            (kept @ None, Some(record)) => *kept = Some(record),
            (_, None) => {}
        }
    }
}

/// What the kernel's log says now, behind what it said of the comparison: by now the log may be unreadable, have forgotten
/// its older lines, or be that of a later boot, whose times would be read as times of the comparison.
fn add_last_words(kept: &mut HostRecord, later: &HostRecord) {
    if kept.facts.text("os.boot_id") != later.facts.text("os.boot_id") {
        return;
    }
    let new: Vec<KernelLine> =
        later.last_words.iter().filter(|line| !kept.last_words.contains(line)).cloned().collect();
    kept.last_words.extend(new);
}

/// A probe rests on its rates. That its slots are too few for the tails of its response times weakens nothing.
fn doubts_about_rates(doubts: Vec<Doubt>, pairs: &[PairVerdict]) -> Vec<Doubt> {
    let rates_known = pairs.iter().filter(|pair| pair.metric == Metric::Rate).all(|pair| pair.low.is_some());
    doubts.into_iter().filter(|doubt| !(rates_known && doubt.id == DoubtId::TooFewSlots)).collect()
}

/// New connections for each block cost a request on each of them. Where requests are slow that would take the time of a
/// probe's few blocks.
const LONGEST_OP_TO_RENEW_NS: f64 = 50e6;

/// The trial slots of all targets together wait for their ops for this part of a probe's budget.
const TRIALS_IN_BUDGET: u64 = 4;

/// `repeat` of a probe's trial slots; slots of a block have 0 and 1.
pub(crate) const TRIAL_REPEAT: u32 = 2;

/// Places probes on the clock of the run they belong to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    since_start_ns: Nanos,
    at_ns: Nanos,
}

impl Clock {
    pub(crate) fn now_ns(self) -> Nanos {
        self.since_start_ns + duel_load::monotonic_ns().saturating_sub(self.at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::Known;

    #[test]
    fn what_a_machine_did_in_a_run_up_is_held_against_its_ops() {
        let mut slot = Slot::empty(0, SlotRole::Warmup);
        slot.tally.ok = 100;
        let worker = WorkerAudit { cpu_ns: Some(30), wall_ns: 100, ..WorkerAudit::default() };
        slot.audit.workers = vec![worker.clone(), worker];
        assert_eq!(read_around(&slot), (100, Some(60)));
        slot.tally.ok_in_run_up = 210;
        slot.audit.workers[0].run_up_ns = 200;
        assert_eq!(read_around(&slot), (310, Some(120)));
        slot.audit.workers[1].cpu_ns = None;
        assert_eq!(read_around(&slot), (310, None));
    }

    #[test]
    fn the_same_few_requests_are_a_small_part_of_what_each_worker_has_begun() {
        assert_eq!([few_of(64_000, 1), few_of(64_000, 2), few_of(63, 1), few_of(0, 0)], [1_000, 500, 1, 1]);
    }

    #[test]
    fn slots_in_which_lanes_take_turns_hold_several_rounds_as_long_as_that_can_be_afforded() {
        let [affordable_ns, shortest_ns] = [750, 60].map(|ms| ms * MILLISECOND_NS);
        let slot_ms = |op_ms: Nanos| rounds_ns(op_ms * MILLISECOND_NS, 8, affordable_ns, shortest_ns) / MILLISECOND_NS;
        assert_eq!([1, 10, 48, 500].map(slot_ms), [60, 320, 750, 750]);
    }

    /// Of two targets, one hundred times as fast as the other: six pairs are the fewest that give an interval.
    #[test]
    fn as_many_pairs_as_an_interval_takes_fit_into_a_probe_however_long_an_op_takes() {
        let targets = 2;
        // How long it takes over one connection is estimated from the load before, at times too short.
        for (op_ms, too_short) in (1..=3_000).flat_map(|op_ms| [(op_ms, 1.0), (op_ms, 1.5)]) {
            let op_ns = op_ms * MILLISECOND_NS;
            let expected_ns = (op_ns as f64 / too_short) as Nanos;
            // What `diagnose` grants: nine slots of four ops for each target, but 12 s at most.
            let slot_ns = (4 * expected_ns).min((12 * SECOND_NS / 18).max(12 * expected_ns / 10));
            let budget_ns = (6 * SECOND_NS).max(18 * slot_ns);
            let slot_ns = probe_slot_ns(op_ns, budget_ns / (PAIRS_WANTED * targets), SHORTEST_SLOT_NS);
            let whole_ops_ns = |ns: Nanos| ns.div_ceil(op_ns) * op_ns;
            let trials_ns = whole_ops_ns(SHORTEST_SLOT_NS) + SHORTEST_SLOT_NS;
            let pair_ns = whole_ops_ns(slot_ns) + slot_ns + op_ns / 100;
            let pairs = (budget_ns - trials_ns) / pair_ns;
            assert!(pairs >= 6, "{pairs} pairs, where an op takes {op_ms} ms");
        }
    }

    #[test]
    fn probes_of_a_gap_by_pauses_have_turns_as_long_as_the_comparison_had() {
        let turn = |elapsed_ns: Nanos| Turn { offset_ns: 0, ok: 1, elapsed_ns };
        let slots = [[25, 26, 90].map(turn), [24, 26, 27].map(turn)];
        let rhythm = Rhythm::of(slots.iter().map(|turns| &turns[..]));
        assert_eq!(rhythm, Some(Rhythm { turns: 3, turn_ns: 26 }));
        assert_eq!((Rhythm::of([&[][..]]), Rhythm::of([])), (None, None));
    }

    #[test]
    fn what_the_generator_does_on_one_of_two_machines_is_not_held_against_the_other() {
        let left = |local: &[bool]| {
            let keys =
                ["tcp.received_segments", "tcp.listen_overflows", "ip.received_bytes", "cpu.switches", "cpu.busy_ns"];
            let mut demand = HostDemand { growth: keys.map(|key| (key.to_owned(), 7)).into(), ..HostDemand::default() };
            forget_our_own(&mut demand, 0, local);
            demand.growth.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(left(&[true, false]), ["cpu.busy_ns", "tcp.listen_overflows"]);
        for all_alike in [[true, true], [false, true], [false, false]] {
            assert_eq!(left(&all_alike).len(), 5, "{all_alike:?}");
        }
    }

    #[test]
    fn what_the_log_said_of_the_comparison_stays() {
        let record = |boot: &str, words: &[&str]| HostRecord {
            facts: Facts([("os.boot_id".to_owned(), Known::from(boot.to_owned()))].into()),
            last_words: words
                .iter()
                .map(|text| KernelLine { uptime_ns: None, level: None, text: (*text).to_owned() })
                .collect(),
            ..HostRecord::default()
        };
        let mut kept = record("one", &["Out of memory: Killed process 7 (nginx)"]);
        let mut words_with = |later: HostRecord| {
            add_last_words(&mut kept, &later);
            kept.last_words.iter().map(|line| line.text[..3].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words_with(record("one", &[])), ["Out"], "silence takes nothing back");
        let again = record("one", &["Out of memory: Killed process 7 (nginx)", "new"]);
        assert_eq!(words_with(again), ["Out", "new"]);
        assert_eq!(words_with(record("two", &["later boot"])), ["Out", "new"]);
    }
}
