//! All slots of one target taken together, and what can be wrong with them.

use crate::observe::share;
use crate::pairing::Pairs;
use duel_model::{
    Arrival, Distribution, Facts, LoadPlan, LoopKind, Metric, Nanos, Plan, Slot, SlotRole, Tally, Target, WorkerAudit,
};

/// One target's slots, merged.
#[derive(Debug, Clone)]
pub(crate) struct Side<'a> {
    /// Name of the target.
    pub name: &'a str,
    /// Everything that was counted.
    pub tally: Tally,
    /// How busy the generator was: of each slot the busier of its busiest worker and of all CPUs together, of that the
    /// median over slots. `None` where the system does not tell.
    pub utilisation: Option<f64>,
    /// For which share of the time a worker of the generator wanted a CPU and others had it: of each slot that of the worker that
    /// waited most, of that the median over slots. `None` where the system does not tell.
    pub waited: Option<f64>,
    /// How late free connections started their ops, over all workers and slots.
    pub lag: Distribution,
    /// Ops started per lane and slot, median over slots.
    pub ops_per_lane: Option<f64>,
    /// Time over which ops were served, ns, and how many slots that is made of.
    pub elapsed: (Nanos, u64),
    /// Connections (or streams) that got no answer at all, in the slot with most of them; `None` where that was not counted.
    pub silent_lanes: Option<u32>,
    /// What was negotiated in the last slot that tells.
    pub negotiated: Option<&'a Facts>,
    /// Ops that are under way at a time.
    at_a_time: f64,
    load: &'a LoadPlan,
}

/// In which direction a side's numbers can be wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bias {
    /// The target may do better than its numbers say: something of ours held it back.
    pub hampered: bool,
    /// The target may do worse than its numbers say: its worst did not enter them.
    pub flattered: bool,
}

/// Share of the slot from which on a worker counts as saturated.
///
/// A worker that is busy for a share u of the time could have driven at most 1/u of the rate, so above 0.95 less than
/// 5.3 % of what the target can do beyond the measured rate would have shown; and a single server that is 95 % busy
/// lets ops queue for 9.5 service times on average (M/D/1: u / (2 (1 - u))), on our side of the wire. CPU time is
/// counted to one or two percent only, so a threshold closer to 1 would miss workers that never slept.
pub(crate) const SATURATED: f64 = 0.95;

/// Share of the response time that our own lateness may make up. Lateness s, as a share, is added to both sides alike
/// and shrinks a gap by s / (1 + s): at a tenth, a gap shows at least 91 % of its size. It never makes a gap.
pub(crate) const LATE: f64 = 0.10;

/// Share of due ops that may go unstarted, and points by which the share of failures may exceed the other side's: as
/// many ops as the 99th percentile leaves out. These ops are missing from the latencies, and they are not the fast ones.
pub(crate) const MISSING: f64 = 0.01;

/// Share of the lanes that are busy on average where there are too few of them.
pub(crate) const ALL_BUSY: f64 = 0.9;

impl<'a> Side<'a> {
    /// Merges the slots of the target at `place`; `slots` in the order in which they ran.
    pub(crate) fn new(slots: &[&'a Slot], place: usize, target: &'a Target, plan: &'a Plan) -> Self {
        let own: Vec<&'a Slot> = slots.iter().copied().filter(|slot| slot.target == place).collect();
        let mut tally = Tally::default();
        let mut lag = Distribution::default();
        for slot in &own {
            tally.merge(&slot.tally);
            slot.audit.workers.iter().for_each(|worker| lag.merge(&worker.schedule_lag));
        }
        let lanes = f64::from(plan.lanes());
        let waited = waited(&own);
        Self {
            name: &target.name,
            tally,
            waited,
            utilisation: median(own.iter().filter_map(|slot| utilisation(slot)).collect()),
            lag,
            ops_per_lane: median(own.iter().map(|slot| slot.tally.started as f64 / lanes).collect()),
            elapsed: (own.iter().map(|slot| slot.elapsed_ns).fold(0, u64::saturating_add), own.len() as u64),
            silent_lanes: own.iter().filter_map(|slot| silent_lanes(slot)).max(),
            negotiated: own.iter().rev().find_map(|slot| slot.negotiated.as_ref()),
            at_a_time: f64::from(plan.ops_at_a_time()),
            load: &plan.load,
        }
    }

    /// By how much, in log, a closed loop's rate may be lower than it shows: had the ops that were given up at the end of
    /// their slots gone on until their timeout, their lanes would have been busy for so much longer. 0 where none was
    /// given up.
    pub(crate) fn unfinished_log(&self) -> f64 {
        let (elapsed_ns, _) = self.elapsed;
        if self.tally.in_flight == 0 || !matches!(self.load.kind, LoopKind::Closed { .. }) || elapsed_ns == 0 {
            return 0.0;
        }
        let further_ns = self.tally.in_flight as f64 * self.load.op_timeout_ns as f64;
        (further_ns / self.at_a_time / elapsed_ns as f64).ln_1p()
    }

    /// Ops that were given up at the end of their slots as a share of those started.
    pub(crate) fn unfinished_share(&self) -> Option<f64> {
        share(self.tally.in_flight, self.tally.started)
    }

    /// Failed ops as a share of those started.
    pub(crate) fn failed_share(&self) -> Option<f64> {
        share(self.tally.failed_total(), self.tally.started)
    }

    /// Ops never started, those that were shed included, as a share of those due.
    pub(crate) fn unstarted_share(&self) -> Option<f64> {
        share(self.tally.unstarted + self.tally.shed, self.tally.due())
    }

    /// By which share an open loop stayed below its rate: ops that were never started, and ops that were started so late
    /// that they took longer than they were due in. `None` in a closed loop, and where the schedule's own scatter would
    /// explain it.
    pub(crate) fn rate_missed(&self) -> Option<f64> {
        let LoopKind::Open { rate_per_s, arrival } = self.load.kind else {
            return None;
        };
        let (elapsed_ns, slots) = self.elapsed;
        let wanted = elapsed_ns as f64 / 1e9 * rate_per_s;
        let missed = wanted - self.tally.started as f64 - scatter(arrival, wanted, slots);
        (missed > 0.0).then(|| missed / wanted)
    }

    /// Whether the generator was the bottleneck: busy without pause, or, in an open loop, late with the median op by a
    /// tenth of the median response. (A closed loop waits for answers; when it is late it is busy.)
    pub(crate) fn saturated(&self) -> bool {
        let busy = self.utilisation.is_some_and(|u| u >= SATURATED);
        let behind = matches!(self.load.kind, LoopKind::Open { .. }) && self.late(0.5, 0.5);
        busy || behind
    }

    /// Whether the `q` quantile of our own lateness exceeds a tenth of the `of` quantile of the response time.
    pub(crate) fn late(&self, q: f64, of: f64) -> bool {
        match (self.lag.quantile_ns(q), self.tally.response.quantile_ns(of)) {
            (Some(lag), Some(response)) => lag as f64 > LATE * response as f64,
            _ => false,
        }
    }

    /// Ops per second of its slots, finished or failed.
    fn rate_per_s(&self) -> f64 {
        let (elapsed_ns, _) = self.elapsed;
        let failed: u64 = self.tally.failed.values().sum();
        (self.tally.ok + failed) as f64 * 1e9 / (elapsed_ns.max(1)) as f64
    }

    /// In which direction this side's number in a metric can be wrong, held against the `other` side.
    pub(crate) fn bias(&self, other: &Self, metric: Metric) -> Bias {
        let latency = metric != Metric::Rate;
        let fails_more = self.failed_share().unwrap_or(0.0) > other.failed_share().unwrap_or(0.0) + MISSING;
        let unstarted = latency && self.unstarted_share().is_some_and(|share| share > MISSING);
        // Under less load, since the generator had no more for it, ops wait for each other less than they do on the other side.
        let spared = latency && self.saturated() && self.rate_per_s() < other.rate_per_s();
        Bias {
            hampered: self.saturated() || (metric == Metric::ResponseP99 && self.late(0.99, 0.99)),
            // What was given up counts with the time waited, which is less than it would have taken.
            flattered: fails_more
                || unstarted
                || spared
                || (metric == Metric::ResponseP99 && self.unfinished_share().is_some_and(|share| share > MISSING)),
        }
    }
}

/// By how many ops a schedule may fall short of its rate by itself, in so many slots that want so many ops: at constant gaps
/// a slot has at most one op less than its rate times its length; Poisson arrivals have a standard deviation of the root of
/// their number, of which five are not chance (6e-7).
pub(crate) fn scatter(arrival: Arrival, wanted: f64, slots: u64) -> f64 {
    match arrival {
        Arrival::Constant => slots as f64,
        Arrival::Poisson => 5.0 * wanted.sqrt(),
    }
}

impl Bias {
    /// Adds that pairs were left out because this side had no value in them: its worst slots.
    pub(crate) fn spared(mut self, pairs_without: u32) -> Self {
        self.flattered |= pairs_without > 0;
        self
    }
}

/// Biases of target and baseline in a metric, given the pairs that are judged.
pub(crate) fn biases(target: &Side<'_>, baseline: &Side<'_>, metric: Metric, pairs: &Pairs) -> (Bias, Bias) {
    (
        target.bias(baseline, metric).spared(pairs.target_without),
        baseline.bias(target, metric).spared(pairs.baseline_without),
    )
}

/// How busy the generator was; `None` where that is not known, as of workers that do the ops themselves. Of others it is the
/// slot's busiest worker; or, where workers outnumber CPUs and hold each other up, all of them on all CPUs.
fn utilisation(slot: &Slot) -> Option<f64> {
    let shares: Vec<f64> =
        slot.audit.workers.iter().filter(|worker| !worker.works_itself).filter_map(WorkerAudit::utilisation).collect();
    let busiest = shares.iter().copied().reduce(f64::max)?;
    let together = slot.audit.cpus.filter(|&cpus| cpus > 0).map_or(0.0, |cpus| {
        let cpus = f64::from(cpus).min(shares.len() as f64);
        shares.iter().sum::<f64>() / cpus
    });
    Some(busiest.max(together))
}

/// For which share of the time others had the CPU that a worker wanted, the median over these slots.
///
/// Workers that do the ops themselves wait as the target's own work would.
pub(crate) fn waited(slots: &[&Slot]) -> Option<f64> {
    let of_slot = |slot: &&Slot| {
        let ours = slot.audit.workers.iter().filter(|worker| !worker.works_itself);
        ours.filter_map(WorkerAudit::waited).reduce(f64::max)
    };
    median(slots.iter().filter_map(of_slot).collect())
}

fn silent_lanes(slot: &Slot) -> Option<u32> {
    slot.audit.workers.iter().map(|worker| worker.silent_lanes).sum()
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[values.len() / 2 - 1] + upper) / 2.0 })
}

/// Whether a slot was measured to be judged.
pub(crate) fn is_measured(slot: &Slot) -> bool {
    slot.role == SlotRole::Measured
}

/// A share as a percentage that keeps two digits of small shares and does not round 99.96 % up to 100 %.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        p if (99.5..100.0).contains(&p) => format!("{percent:.2} %"),
        p if p >= 10.0 => format!("{percent:.0} %"),
        p if p >= 1.0 => format!("{percent:.1} %"),
        p if p >= 0.01 => format!("{percent:.2} %"),
        _ => format!("{percent:.1e} %"),
    }
}
