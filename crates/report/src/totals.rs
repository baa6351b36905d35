//! What each target did over all its measured slots: the one place where slots are summed up.

use crate::figures::{count, duration};
use crate::text::{clean, clean_whole};
use duel_model::web::settings::KEEPALIVE;
use duel_model::{
    Distribution, Doubt, Facts, Phase, Run, Schema, Slot, SlotRole, Standstill, Tally, Verdict, When, WorkloadPlan,
};

/// One target over its measured slots; warm-up and probes are left out.
#[derive(Debug)]
pub(crate) struct Totals<'a> {
    /// What the kind of work declares of itself.
    pub(crate) schema: &'static Schema,
    /// The name, safe to show.
    pub(crate) name: String,
    /// The address, safe to show.
    pub(crate) address: String,
    pub(crate) slots: Vec<&'a Slot>,
    /// Slots that are left out of all figures, because the generator stood still in them.
    pub(crate) left_out: usize,
    /// For how long it did in those that are not.
    pub(crate) standstill: Standstill,
    pub(crate) tally: Tally,
    pub(crate) elapsed_ns: u64,
    /// As last seen in a measured slot, completed by the first contact.
    pub(crate) negotiated: Option<Facts>,
    pub(crate) schedule_lag: Distribution,
    pub(crate) loop_lag: Distribution,
    /// By how much ends of ops were noticed after they had arrived; empty where the system does not tell.
    pub(crate) notice_lag: Distribution,
    /// Workers do the ops themselves: their CPU time is that of the work.
    pub(crate) works_itself: bool,
    /// Share of its CPU that each worker used for work, `None` where the system does not tell.
    pub(crate) worker_cpu: Vec<Option<f64>>,
    /// Share of the time for which the worker that waited most for a CPU did so; `None` where that is not known.
    pub(crate) most_waited: Option<f64>,
    /// Share of the time that each worker stayed awake without anything to do.
    pub(crate) worker_polling: Vec<Option<f64>>,
    /// How often workers slept because they waited; `None` where that is not known.
    pub(crate) sleeps: Option<u64>,
    /// What it costs the target's server to wake a sleeping worker, ns of its CPU time; `None` where it is on another machine, or
    /// where that is not known.
    pub(crate) waking_ns: Option<u64>,
    /// Connections that carry ops at the same time, where they are kept and all of the run has as many.
    pub(crate) held: Option<u32>,
    /// Descriptors open in the last slot, and how many may be.
    pub(crate) descriptors: (Option<u64>, Option<u64>),
}

/// The totals of all targets, in the plan's order.
pub(crate) fn totals(run: &Run) -> Vec<Totals<'_>> {
    run.plan.targets.iter().enumerate().map(|(index, _)| Totals::of(run, index)).collect()
}

impl<'a> Totals<'a> {
    fn of(run: &'a Run, index: usize) -> Self {
        let target = &run.plan.targets[index];
        let slots: Vec<&Slot> =
            run.slots.iter().filter(|s| s.target == index && s.role == SlotRole::Measured).collect();
        let measured = slots.len();
        let slots = shown(slots);
        let mut tally = Tally::default();
        let (mut schedule_lag, mut loop_lag) = (Distribution::default(), Distribution::default());
        let mut notice_lag = Distribution::default();
        // Of each worker: its work, its polling and the time over which they were counted.
        let mut workers: Vec<(Option<u64>, u64, u64)> = Vec::new();
        let mut sleeps = Some(0);
        // By worker: the time that it waited for a CPU, where all of its slots tell.
        let mut waited: Vec<Option<u64>> = Vec::new();
        let mut standstill = Standstill::default();
        let mut works_itself = true;
        for slot in &slots {
            standstill.merge(&slot.standstill());
            tally.merge(&slot.tally);
            for (i, worker) in slot.audit.workers.iter().enumerate() {
                works_itself &= worker.works_itself;
                schedule_lag.merge(&worker.schedule_lag);
                loop_lag.merge(&worker.loop_lag);
                notice_lag.merge(&worker.notice_lag);
                sleeps = sleeps.zip(worker.sleeps).map(|(a, b): (u64, u64)| a.saturating_add(b));
                if workers.len() <= i {
                    workers.push((Some(0), 0, 0));
                    waited.push(Some(0));
                }
                waited[i] = waited[i].zip(worker.waited_ns).map(|(a, b)| a.saturating_add(b));
                let (work_ns, polling_ns, wall_ns) = &mut workers[i];
                *work_ns = work_ns.zip(worker.work_ns()).map(|(a, b)| a.saturating_add(b));
                *polling_ns = polling_ns.saturating_add(worker.polling_ns);
                *wall_ns = wall_ns.saturating_add(worker.wall_ns);
            }
        }
        let shares = workers.iter().zip(&waited).filter(|((_, _, wall_ns), _)| *wall_ns > 0);
        let most_waited =
            shares.filter_map(|((_, _, wall_ns), waited)| Some((*waited)? as f64 / *wall_ns as f64)).reduce(f64::max);
        let last = slots.iter().rev().find_map(|s| s.negotiated.clone());
        let first = run.first_contact.get(index).cloned().flatten();
        Self {
            schema: run.plan.schema(),
            name: clean(&target.name),
            address: clean_whole(&target.address),
            held: held(run),
            elapsed_ns: slots.iter().map(|s| s.elapsed_ns).fold(0, u64::saturating_add),
            negotiated: match (last, first) {
                (Some(last), Some(first)) => Some(last.or(first)),
                (last, first) => last.or(first),
            },
            descriptors: slots
                .last()
                .map_or((None, None), |slot| (slot.audit.descriptors_open, slot.audit.descriptor_limit)),
            left_out: measured - slots.len(),
            standstill,
            slots,
            tally,
            works_itself: works_itself && !workers.is_empty(),
            schedule_lag,
            loop_lag,
            notice_lag,
            worker_cpu: workers
                .iter()
                .map(|&(work_ns, _, wall_ns)| (wall_ns > 0).then_some(work_ns? as f64 / wall_ns as f64))
                .collect(),
            most_waited,
            worker_polling: workers
                .iter()
                .map(|&(_, polling_ns, wall_ns)| (wall_ns > 0).then_some(polling_ns as f64 / wall_ns as f64))
                .collect(),
            sleeps: sleeps.filter(|_| !workers.is_empty()),
            waking_ns: run.waiting.as_ref().and_then(|waiting| waiting.waking_ns(index)),
        }
    }

    /// Ok ops per second, `None` when no time was measured.
    pub(crate) fn rate_per_s(&self) -> Option<f64> {
        self.per_second(self.tally.ok)
    }

    /// Bytes per second: those that came over connections; of threads that work, those that they worked on, either way.
    pub(crate) fn bytes_per_s(&self) -> Option<f64> {
        let is_by_threads = self.schema.lanes_are_threads();
        let bytes = self.tally.bytes_in + if is_by_threads { self.tally.bytes_out } else { 0 };
        // Some ops of a thread work on no bytes; and where ops end well without a byte, nobody counts them.
        self.per_second(bytes).filter(|_| bytes > 0 || (!is_by_threads && self.tally.ok == 0))
    }

    /// Whether bytes are counted: a rate of them may be told, or could be if there was time.
    pub(crate) fn counts_bytes(&self) -> bool {
        self.bytes_per_s().is_some() || self.tally.ok == 0 || self.elapsed_ns == 0
    }

    fn per_second(&self, n: u64) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| n as f64 * 1e9 / self.elapsed_ns as f64)
    }

    /// What response times hold beside those of answers, in words; `None` where that is nothing.
    ///
    /// Nothing is left out of them that somebody waited for: it counts with the time waited, which is less than it would
    /// have taken.
    pub(crate) fn unanswered(&self, noun: &str) -> Option<String> {
        let all = self.tally.response.count();
        let without = all.checked_sub(self.tally.ok).filter(|&without| without > 0)?;
        let shed = self.tally.shed.min(without);
        let waited = without - shed;
        let mut parts = Vec::new();
        if waited > 0 {
            parts.push(format!("{} without an answer (time waited)", count(waited)));
        }
        if shed > 0 {
            parts.push(format!("{} never sent (their deadline)", count(shed)));
        }
        Some(format!(
            "Response times hold all {} {noun}s that were waited for, {} too, each with the least that it would have taken.",
            count(all),
            parts.join(" and ")
        ))
    }

    /// How much of the response times may be the generator's own, in words; `None` where that is nothing worth a word.
    pub(crate) fn stood_still(&self) -> Option<String> {
        let (still, max_ns) = (self.standstill, self.tally.response.max_ns()?);
        // As the doubt of this has it: what is short against the longest shows in no figure.
        (still.longest_ns > 0 && 10 * still.longest_ns >= max_ns).then(|| {
            format!(
                "The generator itself stood still for up to {} ({}): the longest times may be its own.",
                duration(still.longest_ns as f64),
                if still.count == 1 { "once".to_owned() } else { format!("{} times", count(still.count)) }
            )
        })
    }

    /// Mean time in a phase per op in ns, of the ops that have a service time: those that ended well, and those that were given up.
    /// Ops that skipped the phase spent none in it. `None` when no op went through it.
    pub(crate) fn phase_per_op_ns(&self, phase: Phase) -> Option<f64> {
        let distribution = self.tally.phases.get(&phase.id()).filter(|d| !d.is_empty())?;
        let ops = self.tally.told_service().count();
        (ops > 0).then(|| distribution.sum_ns as f64 / ops as f64)
    }

    /// Mean time that ops waited for a free connection; `None` where they did not, as in every closed loop, or where it is not
    /// worth a row: less than a hundredth of the response time.
    pub(crate) fn queue_ns(&self) -> Option<f64> {
        let mean_ns = self.tally.queue.mean_ns()?;
        (mean_ns > 0.01 * self.tally.response.mean_ns()?).then_some(mean_ns)
    }

    /// Mean time per op outside all phases in ns.
    pub(crate) fn outside_phases_ns(&self) -> Option<f64> {
        let within = self.schema.phases.iter().filter(|phase| phase.when != When::Beforehand);
        let phases: f64 = within.filter_map(|&phase| self.phase_per_op_ns(phase)).sum();
        Some(self.tally.told_service().mean_ns()? - phases)
    }

    /// The busiest worker's share of its CPU; `None` as soon as one worker's is not known.
    pub(crate) fn busiest_worker(&self) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.worker_cpu.iter().copied().collect();
        shares?.into_iter().reduce(f64::max)
    }

    /// Share of the time that the worker which polled most did; `None` where none polled.
    pub(crate) fn most_polling(&self) -> Option<f64> {
        self.worker_polling.iter().copied().flatten().reduce(f64::max).filter(|&share| share > 0.0)
    }

    /// How often a worker slept, for each op that was started.
    pub(crate) fn sleeps_per_op(&self) -> Option<f64> {
        (self.tally.started > 0).then_some(self.sleeps? as f64 / self.tally.started as f64)
    }
}

/// The slots whose figures are shown: those that are judged. Where the generator stood still in all of them, it is all that
/// there is.
fn shown(slots: Vec<&Slot>) -> Vec<&Slot> {
    let judged: Vec<&Slot> = slots.iter().copied().filter(|slot| !slot.is_spoilt()).collect();
    if judged.is_empty() { slots } else { judged }
}

/// The plan's connections, where one number tells how many are held.
fn held(run: &Run) -> Option<u32> {
    let varies = run.plan.factors.iter().any(|factor| ["connections", KEEPALIVE.name].contains(&factor.name()))
        || run.plan.load.shape.stages.iter().any(|stage| !stage.is_of_rate());
    let kept = matches!(&run.plan.workload, WorkloadPlan::Http(http) if http.keepalive);
    (kept && !varies).then_some(run.plan.load.connections)
}

/// The doubts of the verdict and those of the run, each once.
pub(crate) fn all_doubts<'a>(run: &'a Run, verdict: &'a Verdict) -> Vec<&'a Doubt> {
    let mut doubts: Vec<&Doubt> = Vec::new();
    for doubt in verdict.doubts.iter().chain(&run.doubts) {
        if !doubts.contains(&doubt) {
            doubts.push(doubt);
        }
    }
    doubts
}

/// What one op is called for this workload.
pub(crate) fn op_noun(run: &Run) -> &'static str {
    run.plan.schema().op.one
}
