//! A bench: all targets of a plan connected, slots run on them one at a time.

use crate::contact::Factory;
use crate::ports::Ports;
use crate::pulse::{Answer, Patience, Pulse, ask_again};
use crate::watch::{SlotView, TargetView, View, Watcher};
use crate::{LabError, descriptors, kinds};
use duel_load::{Contact, Live, Session, SessionError, SlotOrder, SlotRecord, is_in_the_way, monotonic_ns};
use duel_model::{
    Arrival, BusyPoll, Distribution, Facts, LoadPlan, LoopKind, MILLISECOND_NS, Meaning, Nanos, Plan, SECOND_NS,
    Schema, Slot, SlotRole,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

/// The watcher is shown how far it is this often, or somewhat less often: more often than looks at a slot under way come.
const LOOK_EVERY_NS: Nanos = 150 * MILLISECOND_NS;

/// Sessions of all targets, and the clock of the run.
#[derive(Debug)]
pub(crate) struct Bench {
    schema: &'static Schema,
    sessions: Vec<Session>,
    factories: Vec<Factory>,
    /// Those of each treatment that was taken up, the last first.
    taken_up: Vec<(u32, Vec<Factory>)>,
    /// What carries ops outlives them, so that something may cling to it.
    keeps_lanes: bool,
    ops_differ: bool,
    /// Which treatment is under way, in a run with factors.
    treatment: Option<u32>,
    /// Which start of the targets is under way, where any is started anew.
    start: Option<u32>,
    /// Local ports for connections to each target.
    ports: Vec<Ports>,
    /// Connections were kept that were to be made anew, for want of ports.
    wants_ports: bool,
    load: LoadPlan,
    /// Workers of each target that poll while they wait.
    polling_workers: u32,
    /// For how long others had the CPUs of workers that polled, and how long their slots were.
    taken: (Nanos, Nanos),
    /// Others wanted the CPU while workers polled.
    has_given_way: bool,
    lanes: u32,
    seed: u64,
    views: Vec<TargetView>,
    total_ns: Option<Nanos>,
    total_ops: Option<u64>,
    run_start_ns: Nanos,
    next_index: u32,
    load_ns: Nanos,
    /// When the watcher was last shown how far it is.
    looked_ns: Nanos,
    /// Whether a target that stops answering is noticed in its slot.
    notices_death: bool,
    /// Ops are parts of streams, and have no response times.
    is_streamed: bool,
    /// The longest answer of each target.
    longest_ns: Vec<Option<Nanos>>,
    stop: Arc<AtomicBool>,
}

/// One slot to be run.
#[derive(Debug, Clone)]
pub(crate) struct SlotSpec {
    pub(crate) target: usize,
    pub(crate) role: SlotRole,
    pub(crate) block: u32,
    pub(crate) repeat: u32,
    /// Which of its slot's turns it is, counted from 0, and how many there are.
    pub(crate) turn: (u32, u32),
    pub(crate) duration_ns: Option<Nanos>,
    /// For how long there is load before its time begins.
    pub(crate) run_up_ns: Nanos,
    pub(crate) ops: Option<u64>,
    /// After its time, how long the slot waits for what is in flight.
    pub(crate) grace_ns: Nanos,
    /// Offer ops in a closed loop without pauses, whatever the plan says: for what is not measured.
    pub(crate) back_to_back: bool,
}

impl SlotSpec {
    /// A slot of a set time, with ops as the plan offers them.
    pub(crate) fn timed(target: usize, role: SlotRole, duration_ns: Nanos, grace_ns: Nanos) -> Self {
        let duration_ns = Some(duration_ns);
        Self {
            target,
            role,
            block: 0,
            repeat: 0,
            turn: (0, 1),
            duration_ns,
            run_up_ns: 0,
            ops: None,
            grace_ns,
            back_to_back: false,
        }
    }

    /// One op on each lane: new connections carry a request before anything is measured. The number of ops ends it; the time does
    /// if the server has begun to hang.
    pub(crate) fn settling(target: usize, lanes: u32, patience_ns: Nanos) -> Self {
        let ops = Some(u64::from(lanes));
        Self { ops, back_to_back: true, ..Self::timed(target, SlotRole::Warmup, patience_ns, 0) }
    }

    /// The same in this place of a block.
    pub(crate) fn at(self, block: u32, repeat: u32) -> Self {
        Self { block, repeat, ..self }
    }

    /// The same behind so much load that is not measured.
    pub(crate) fn behind(self, run_up_ns: Nanos) -> Self {
        Self { run_up_ns, ..self }
    }

    /// One of its slot's turns: which, counted from 0, of how many.
    pub(crate) fn turn(self, turn: u32, of: u32) -> Self {
        Self { turn: (turn, of), ..self }
    }
}

impl Bench {
    /// Opens a session on each target that was contacted.
    pub(crate) fn open(plan: &Plan, contacts: Vec<Contact>, stop: Arc<AtomicBool>) -> Result<Self, LabError> {
        let factories: Vec<Factory> = contacts.into_iter().map(|contact| contact.opens).collect();
        let sessions = open_all(&factories, plan, &stop)?;
        Ok(Self {
            sessions,
            ports: factories
                .iter()
                .map(|factory| duel_load::local_ports_of(factory.address_pairs()).filter(|_| has_ports(plan)))
                .map(Ports::new)
                .collect(),
            wants_ports: false,
            factories,
            taken_up: Vec::new(),
            schema: plan.schema(),
            keeps_lanes: keeps_lanes(plan),
            ops_differ: ops_differ(plan),
            is_streamed: plan.is_streamed(),
            treatment: None,
            start: None,
            load: plan.load.clone(),
            polling_workers: 0,
            taken: (0, 0),
            has_given_way: false,
            lanes: plan.lanes(),
            seed: plan.compare.seed,
            views: plan.targets.iter().map(|target| TargetView::new(&target.name)).collect(),
            total_ns: None,
            total_ops: None,
            run_start_ns: monotonic_ns(),
            next_index: 0,
            load_ns: 0,
            looked_ns: 0,
            notices_death: false,
            longest_ns: vec![None; plan.targets.len()],
            stop,
        })
    }

    /// What each target tells of load when all of it is over. Of several treatments nobody could tell whose it is, and who has stopped
    /// the run does not wait for it.
    pub(crate) fn told_after(&self) -> Vec<Facts> {
        if self.is_stopped() || !self.taken_up.is_empty() {
            return Vec::new();
        }
        self.factories.iter().map(|factory| factory.told_after()).collect()
    }

    /// Closes the sessions on all targets, and tells of each what does not agree with what was done to it under any treatment. Who
    /// has stopped the run does not wait for that.
    pub(crate) fn close(&mut self) -> Vec<Result<Option<String>, String>> {
        self.sessions.clear();
        if self.is_stopped() {
            return Vec::new();
        }
        let of_target = |target: usize| {
            let treated = self.taken_up.iter().filter_map(|(_, factories)| factories.get(target));
            let mut found = Ok(None);
            for factory in treated.chain(self.factories.get(target).filter(|_| self.taken_up.is_empty())) {
                match factory.contradiction() {
                    Ok(Some(what)) => return Ok(Some(what)),
                    Ok(None) => {}
                    Err(why) => found = Err(why),
                }
            }
            found
        };
        (0..self.factories.len()).map(of_target).collect()
    }

    /// Closes the sessions on all targets and opens those of a treatment, whose plan and factories these are.
    pub(crate) fn take_up(&mut self, treatment: u32, plan: &Plan, factories: &[Factory]) -> Result<(), LabError> {
        // First closed, then opened: the server is never to hold the connections of two treatments.
        self.sessions.clear();
        self.sessions = open_all(factories, plan, &self.stop)?;
        self.factories = factories.to_vec();
        if self.taken_up.iter().all(|(known, _)| *known != treatment) {
            self.taken_up.insert(0, (treatment, self.factories.clone()));
        }
        self.load = plan.load.clone();
        self.lanes = plan.lanes();
        self.keeps_lanes = keeps_lanes(plan);
        self.ops_differ = ops_differ(plan);
        self.is_streamed = plan.is_streamed();
        self.treatment = Some(treatment);
        Ok(())
    }

    /// Closes the connections to all targets, some of which are about to be started anew.
    pub(crate) fn hang_up(&mut self) {
        self.sessions.clear();
    }

    /// Opens those sessions again.
    pub(crate) fn dial_anew(&mut self) -> Result<(), LabError> {
        let now_ns = monotonic_ns();
        self.ports.iter_mut().for_each(|ports| ports.take(u64::from(self.load.connections), now_ns));
        let open =
            |factory: &Factory| factory.session(self.load.connections, self.load.threads, Arc::clone(&self.stop));
        self.sessions = self.factories.iter().map(open).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Slots from now on belong to this start.
    pub(crate) fn begin_start(&mut self, start: u32) {
        self.start = Some(start);
    }

    /// Slots are numbered on from here, and placed on the clock of a run that began so long ago.
    pub(crate) fn continue_run(&mut self, next_index: u32, since_start_ns: Nanos) {
        self.next_index = next_index;
        self.run_start_ns = monotonic_ns().saturating_sub(since_start_ns);
    }

    /// What the whole is expected to take, for who watches.
    pub(crate) fn expect(&mut self, total_ns: Option<Nanos>, total_ops: Option<u64>) {
        (self.total_ns, self.total_ops) = (total_ns, total_ops);
    }

    /// From now on a target that stops answering is noticed in its slot: the slot ends once the target was silent for long
    /// enough, and where it ends in silence the target is asked once more (see [`Slot::died_ns`]).
    pub(crate) fn notice_death(&mut self) {
        self.notices_death = true;
    }

    /// Load time of all slots so far.
    pub(crate) fn load_ns(&self) -> Nanos {
        self.load_ns
    }

    /// Number of targets.
    pub(crate) fn targets(&self) -> usize {
        self.factories.len()
    }

    /// Whether the user wants it to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Time since the start of the run.
    pub(crate) fn since_start_ns(&self) -> Nanos {
        monotonic_ns().saturating_sub(self.run_start_ns)
    }

    /// Closes the session on a target and opens another one, if its connections or processes are kept.
    ///
    /// What clings to a connection for its life, such as where the kernels and the server have put its memory, is worth
    /// some percent: with the same connections for a whole run, the same server given twice was called slower or faster
    /// in half of the runs. With new ones for each block it differs from block to block, and becomes part of the noise
    /// that the interval is made from (compare Mytkowicz et al. 2009, "Producing wrong data without doing anything
    /// obviously wrong"). The same goes for a process that works: where its code and its memory have come to lie.
    pub(crate) fn renew(&mut self, target: usize) -> Result<bool, LabError> {
        let affordable = self.renewals_of(target) > 0;
        if self.keeps_lanes && affordable {
            self.ports[target].take(u64::from(self.load.connections), monotonic_ns());
            let session =
                self.factories[target].session(self.load.connections, self.load.threads, Arc::clone(&self.stop))?;
            self.sessions[target] = session;
        }
        Ok(self.keeps_lanes && affordable)
    }

    /// Whether there are ports for new connections of all targets. That there were not is remembered.
    pub(crate) fn has_ports_to_renew(&mut self) -> bool {
        let has_ports = self.renewals_left() > 0;
        self.wants_ports |= !has_ports;
        has_ports
    }

    /// Whether connections were kept that were to be made anew, for want of ports.
    pub(crate) fn wanted_ports(&self) -> bool {
        self.wants_ports
    }

    /// How often all targets can be given new connections now.
    pub(crate) fn renewals_left(&self) -> u64 {
        (0..self.targets()).map(|target| self.renewals_of(target)).min().unwrap_or(0)
    }

    fn renewals_of(&self, target: usize) -> u64 {
        self.ports[target].left(monotonic_ns()) / u64::from(self.load.connections.max(1))
    }

    /// Whether what carries ops outlives them.
    pub(crate) fn keeps_lanes(&self) -> bool {
        self.keeps_lanes
    }

    /// Ops that can be under way on each target at a time.
    pub(crate) fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Slots from now on offer ops at this rate, spaced as the plan says.
    pub(crate) fn offer(&mut self, rate_per_s: f64, arrival: Arrival) {
        self.load.kind = LoopKind::Open { rate_per_s, arrival };
    }

    /// So many workers of each target poll while they wait, from the next slot on; the others sleep.
    pub(crate) fn wait_with(&mut self, polling_workers: u32) {
        self.polling_workers = polling_workers;
        self.taken = (0, 0);
        self.has_given_way = false;
    }

    /// Has all workers sleep while they wait, if others wanted the CPU while they polled. Asked between blocks: within one,
    /// all targets are to be loaded in the same way.
    pub(crate) fn give_way(&mut self) {
        let (taken_ns, wall_ns) = self.taken;
        let was_in_the_way = self.has_given_way || is_in_the_way(taken_ns, wall_ns);
        if was_in_the_way && self.polling_workers > 0 && self.load.busy_poll == BusyPoll::Auto {
            self.wait_with(0);
            self.has_given_way = true;
        }
    }

    /// Whether it has.
    pub(crate) fn has_given_way(&self) -> bool {
        self.has_given_way
    }

    /// Runs one slot and shows it to the watcher.
    pub(crate) fn slot(&mut self, spec: SlotSpec, watcher: &mut dyn Watcher) -> Result<Slot, LabError> {
        let (mut slot, is_cut) = self.turn(spec, watcher)?;
        self.show(&mut slot, is_cut, watcher);
        Ok(slot)
    }

    /// Runs a slot, or one of its turns; and whether it was cut at an arbitrary moment.
    pub(crate) fn turn(&mut self, spec: SlotSpec, watcher: &mut dyn Watcher) -> Result<(Slot, bool), LabError> {
        let patience = self.patience_with(spec.target);
        let (mut pulse, notices_death) = (Pulse::new(patience), self.notices_death);
        let order = SlotOrder {
            kind: if spec.back_to_back { LoopKind::Closed { think_ns: 0 } } else { self.load.kind },
            duration_ns: spec.duration_ns,
            run_up_ns: spec.run_up_ns,
            ops: spec.ops,
            connect_timeout_ns: self.load.connect_timeout_ns,
            op_timeout_ns: self.load.op_timeout_ns,
            grace_ns: spec.grace_ns,
            // Each turn has arrivals of its own, but those of one block's targets are the same for all.
            seed: self.seed ^ (u64::from(spec.turn.0) << 40) ^ (u64::from(spec.block) << 8) ^ u64::from(spec.repeat),
            stages: if spec.back_to_back { Vec::new() } else { self.load.shape.stages.clone() },
            deadline_ns: self.load.shape.deadline_ns,
            one_at_a_time: self.load.shape.one_at_a_time,
            polling_workers: self.polling_workers,
            polling_gives_way: self.load.busy_poll == BusyPoll::Auto,
        };
        let began_ns = monotonic_ns();
        let (views, load_ns, looked_ns) = (&self.views, self.load_ns, &mut self.looked_ns);
        let records = watcher.wants_ops().then(|| self.sessions[spec.target].log_ops());
        let planned_ns = order.planned_ns();
        let is_streamed = self.is_streamed;
        let mut tick = |live: &Live| {
            // What has no response times tells none, neither now nor when the slot is over.
            let streamed = is_streamed.then(|| Live { response: Distribution::default(), ..live.clone() });
            let live = streamed.as_ref().unwrap_or(live);
            records.iter().flat_map(Receiver::try_iter).for_each(|ops| watcher.ops(&ops));
            let now_ns = monotonic_ns();
            let since_ns = now_ns.saturating_sub(began_ns);
            let measured_ns = since_ns.saturating_sub(spec.run_up_ns);
            *looked_ns = now_ns;
            let slot = SlotView {
                began_ns,
                load_ns: planned_ns.map_or(measured_ns, |planned_ns| planned_ns.min(measured_ns)),
                live,
            };
            let mut targets: Vec<TargetView> = views.iter().map(TargetView::shown).collect();
            targets[spec.target] = views[spec.target].with(&slot);
            watcher.live(&View {
                elapsed_ns: load_ns + since_ns,
                total_ns: self.total_ns,
                total_ops: self.total_ops,
                targets: &targets,
                active: spec.target,
                // A slot is told of until it is over; one of several turns is none.
                slot: (spec.turn.1 == 1).then_some(slot),
                search: None,
            });
            if notices_death { pulse.feel(live, since_ns) } else { ControlFlow::Continue(()) }
        };
        self.factories[spec.target].slot_begins();
        let mut record = self.sessions[spec.target].run_slot(&order, &mut tick)?;
        self.factories[spec.target].slot_ended(&mut record.tally);
        records.iter().flat_map(Receiver::try_iter).for_each(|ops| watcher.ops(&ops));
        let longest_ns = record.series.intervals.iter().map(|interval| interval.response_max_ns).max();
        self.longest_ns[spec.target] = self.longest_ns[spec.target].max(longest_ns.filter(|&ns| ns > 0));
        let is_gone = notices_death
            && !self.is_stopped()
            && (pulse.is_gone || (record.ends_in_silence && self.stays_silent(spec.target, &order, &record)?));
        let died_ns = is_gone.then(|| record.answered_ns.map_or(0, |at_ns| at_ns.saturating_sub(record.start_ns)));
        let mut slot = Slot {
            // Given when it is shown: slots that take turns begin before others are over.
            index: 0,
            target: spec.target,
            role: spec.role,
            block: spec.block,
            repeat: spec.repeat,
            turns: Vec::new(),
            treatment: self.treatment,
            start: self.start,
            started_unix_ms: record.started_unix_ms,
            offset_ns: record.start_ns.saturating_sub(self.run_start_ns),
            // Of a target that died: the time that it lived.
            elapsed_ns: died_ns.filter(|&died_ns| died_ns > 0).unwrap_or(record.elapsed_ns),
            offered_per_s: match order.kind {
                LoopKind::Open { rate_per_s, .. } if order.stages.is_empty() => Some(rate_per_s),
                _ => None,
            },
            tally: record.tally,
            series: record.series,
            audit: record.audit,
            negotiated: record.negotiated.map(Facts::kept),
            died_ns,
        };
        if is_streamed {
            slot.forget_response_times();
        }
        for worker in slot.audit.workers.iter().take(self.polling_workers as usize) {
            self.has_given_way |= worker.gave_way;
            self.taken.0 += worker.taken_ns;
            self.taken.1 += worker.wall_ns;
        }
        self.load_ns += slot.under_load_ns();
        self.views[slot.target].add(&slot);
        self.look(slot.target, watcher);
        Ok((slot, record.interrupted))
    }

    /// Shows a slot that is over to the watcher.
    pub(crate) fn show(&mut self, slot: &mut Slot, is_cut: bool, watcher: &mut dyn Watcher) {
        slot.index = self.next_index;
        self.next_index += 1;
        // A slot of a comparison that was cut at an arbitrary moment is no slot; what a single target did until the
        // user stopped it is what the user wants to see.
        let is_whole_run = self.sessions.len() == 1 && self.treatment.is_none() && slot.role == SlotRole::Measured;
        if !is_cut || is_whole_run || slot.died_ns.is_some() {
            watcher.slot(slot);
        }
    }

    /// Shows the watcher how far it is, where the last look was long ago: a short slot ends before the first one.
    fn look(&mut self, active: usize, watcher: &mut dyn Watcher) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.looked_ns) < LOOK_EVERY_NS {
            return;
        }
        self.looked_ns = now_ns;
        let targets: Vec<TargetView> = self.views.iter().map(TargetView::shown).collect();
        watcher.live(&View {
            elapsed_ns: self.load_ns,
            total_ns: self.total_ns,
            total_ops: self.total_ops,
            targets: &targets,
            active,
            slot: None,
            search: None,
        });
    }

    /// What tells silence of a target from slowness. Where ops differ in what they ask for, the answers so far tell nothing of
    /// the one that is waited for: a list may hold a request that takes a thousand times as long as the others.
    fn patience_with(&self, target: usize) -> Patience {
        let longest_ns = self.longest_ns[target].filter(|_| !self.ops_differ);
        Patience { op_timeout_ns: self.load.op_timeout_ns, longest_ns }
    }

    /// Whether a target whose slot ended in silence does not answer when it is asked again either. What it is asked is in no
    /// figure.
    fn stays_silent(&mut self, target: usize, order: &SlotOrder, record: &SlotRecord) -> Result<bool, LabError> {
        let patience = self.patience_with(target);
        let since_ns = record.answered_ns.unwrap_or(record.start_ns).saturating_add(stood_still_ns(record));
        let silent_ns = monotonic_ns().saturating_sub(since_ns);
        let (schema, session) = (self.schema, &mut self.sessions[target]);
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        let mut ask = |left_ns: Nanos| {
            let order = SlotOrder {
                kind: LoopKind::Closed { think_ns: 0 },
                duration_ns: Some(left_ns),
                run_up_ns: 0,
                ops: Some(1),
                grace_ns: 0,
                stages: Vec::new(),
                deadline_ns: None,
                ..order.clone()
            };
            let record = session.run_slot(&order, &mut |_| ControlFlow::Continue(()))?;
            let answer = match record.answered_ns {
                Some(_) => Answer::Given,
                None if schema.failed(&record.tally.failed, Meaning::is_waiting) == record.tally.failed_total() => {
                    Answer::None
                }
                None => Answer::Refused,
            };
            let asked_ns = monotonic_ns().saturating_sub(record.start_ns);
            Ok::<_, SessionError>((answer, asked_ns.saturating_sub(stood_still_ns(&record))))
        };
        Ok(ask_again(patience, silent_ns, &is_stopped, &mut ask)?)
    }

    /// How long a slot that is one of many waits for what is in flight: a few times what an op takes, so that slots
    /// end with their ops, and no longer than an op may take.
    ///
    /// Where a few ops take far longer than the others (a lost SYN is sent again after 1 s, 3 s, 7 s), waiting for them
    /// in every slot would leave time for no more than a pair of slots: then `affordable_ns`, what there is for a slot,
    /// is the bound, but for twice the time of a typical op. What is given up is counted as in flight.
    pub(crate) fn grace_ns(&self, typical_op_ns: Nanos, affordable_ns: Nanos) -> Nanos {
        let patient_ns = (8 * typical_op_ns).max(2 * SECOND_NS);
        patient_ns.min(affordable_ns.max(2 * typical_op_ns).max(SECOND_NS)).min(self.load.op_timeout_ns)
    }

    /// Longest time that an op may take.
    pub(crate) fn op_timeout_ns(&self) -> Nanos {
        self.load.op_timeout_ns
    }

    /// Time that the next op of a connection waits for, beside the server.
    pub(crate) fn think_ns(&self) -> Nanos {
        match self.load.kind {
            LoopKind::Closed { think_ns } => think_ns,
            LoopKind::Open { .. } => 0,
        }
    }
}

fn open_all(factories: &[Factory], plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Vec<Session>, LabError> {
    descriptors::ensure_for(plan, factories)?;
    let session = |factory: &Factory| factory.session(plan.load.connections, plan.load.threads, Arc::clone(stop));
    Ok(factories.iter().map(session).collect::<Result<_, _>>()?)
}

/// For how long the generator itself stood still.
fn stood_still_ns(record: &SlotRecord) -> Nanos {
    record.audit.workers.iter().map(|worker| worker.standstill.total_ns).max().unwrap_or(0)
}

/// Whether ops differ in what they ask for under this plan.
fn ops_differ(plan: &Plan) -> bool {
    kinds::of(&plan.workload).ops_differ(&plan.workload)
}

/// Whether what carries ops outlives them under this plan: connections, or processes that work.
pub(crate) fn keeps_lanes(plan: &Plan) -> bool {
    kinds::of(&plan.workload).keeps_lanes(&plan.workload)
}

/// Whether what carries ops under this plan has local ports.
pub(crate) fn has_ports(plan: &Plan) -> bool {
    !plan.schema().lanes_are_threads()
}
