//! The figures of a run as they are while it goes on.

use duel_lab::{SlotView, Traffic, View};
use duel_model::{Distribution, Id, Nanos, PairVerdict, Run, Slot, SlotRole, Verdict};
use std::collections::BTreeMap;
use std::time::Duration;

/// Upper bounds of the histogram of response times, in ns: steps of 2 to 2.5 from 0.1 ms to 10 s, as Prometheus' default
/// buckets and two decades further down, where servers nearby answer.
pub(super) const BOUNDS_NS: [Nanos; 16] = [
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
];

/// All figures of a run so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Figures {
    pub(super) run: String,
    /// Since when counts count, since 1970.
    pub(super) since: Duration,
    pub(super) targets: Vec<TargetFigures>,
    /// Which target is under load.
    pub(super) active: Option<usize>,
    /// Share of the planned load that is done; `None` where no plan tells.
    pub(super) progress: Option<f64>,
    /// The verdict, once there is one.
    pub(super) pairs: Vec<PairVerdict>,
    /// The slot that was looked at last, until it is over.
    under_way: Option<UnderWay>,
}

/// One target's figures. Counts never fall.
#[derive(Debug, Clone, Default)]
pub(super) struct TargetFigures {
    pub(super) name: String,
    /// Of slots that are over.
    over: Counts,
    /// Slots that are over, by role.
    pub(super) slots: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Clone)]
struct UnderWay {
    target: usize,
    began_ns: Nanos,
    counts: Counts,
}

/// What is counted while a slot runs, and when it is over. What a slot counts while it runs is never more than it counts in
/// the end.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts {
    pub(super) ok: u64,
    /// Failed ops by kind.
    pub(super) failed: BTreeMap<Id, u64>,
    /// Time under load.
    pub(super) load_ns: Nanos,
    pub(super) traffic: Traffic,
    pub(super) response: Distribution,
    /// Time in which the generator itself stood still.
    pub(super) stood_still_ns: Nanos,
}

impl Figures {
    pub(super) fn begin(&mut self, run: &Run, since: Duration) {
        let named = |name: &str| TargetFigures { name: name.to_owned(), ..TargetFigures::default() };
        *self = Self {
            run: run.id.clone(),
            since,
            targets: run.plan.targets.iter().map(|target| named(&target.name)).collect(),
            ..Self::default()
        };
    }

    pub(super) fn add(&mut self, slot: &Slot) {
        // It is this one, from its beginning to its end.
        self.under_way = None;
        self.active = None;
        let Some(target) = self.targets.get_mut(slot.target) else { return };
        target.over.add(&Counts::of(slot));
        let role = match slot.role {
            SlotRole::Warmup => "warmup",
            SlotRole::Measured => "measured",
            SlotRole::Probe(_) => "probe",
            SlotRole::Search => "search",
            SlotRole::HeadToHead => "head-to-head",
        };
        *target.slots.entry(role).or_default() += 1;
    }

    pub(super) fn look(&mut self, view: &View<'_>) {
        if let Some(slot) = &view.slot {
            let now = UnderWay { target: view.active, began_ns: slot.began_ns, counts: Counts::so_far(slot) };
            // A slot that was followed by another one, and never told to be over, was cut: what it did was done nevertheless.
            if let Some(before) = self.under_way.replace(now).filter(|before| before.began_ns != slot.began_ns)
                && let Some(target) = self.targets.get_mut(before.target)
            {
                target.over.add(&before.counts);
            }
        }
        self.active = Some(view.active);
        let share = |part: u64, whole: u64| (whole > 0).then(|| (part as f64 / whole as f64).min(1.0));
        self.progress = match (view.total_ns, view.total_ops) {
            (_, Some(ops)) => share(view.targets.iter().map(|target| target.ok + target.failed).sum(), ops),
            (Some(total_ns), None) => share(view.elapsed_ns, total_ns),
            (None, None) => None,
        };
    }

    pub(super) fn conclude(&mut self, verdict: &Verdict) {
        self.active = None;
        self.pairs.clone_from(&verdict.pairs);
    }

    /// The targets with what they did so far, the slot under way included.
    pub(super) fn so_far(&self) -> Vec<(&TargetFigures, Counts)> {
        let mut so_far: Vec<_> = self.targets.iter().map(|target| (target, target.over.clone())).collect();
        if let Some(slot) = &self.under_way
            && let Some((_, counts)) = so_far.get_mut(slot.target)
        {
            counts.add(&slot.counts);
        }
        so_far
    }
}

impl Counts {
    fn of(slot: &Slot) -> Self {
        let tally = &slot.tally;
        Self {
            ok: tally.ok,
            failed: tally.failed.clone(),
            load_ns: slot.elapsed_ns,
            traffic: Traffic { bytes_in: tally.bytes_in, bytes_out: tally.bytes_out, connections: tally.connections },
            response: tally.response.clone(),
            stood_still_ns: slot.standstill().total_ns,
        }
    }

    fn so_far(slot: &SlotView<'_>) -> Self {
        Self {
            ok: slot.live.ok,
            failed: slot.live.failed.clone(),
            load_ns: slot.load_ns,
            traffic: slot.live.traffic,
            response: slot.live.response.clone(),
            stood_still_ns: slot.live.standstill.total_ns,
        }
    }

    fn add(&mut self, other: &Self) {
        self.ok += other.ok;
        for (&kind, count) in &other.failed {
            *self.failed.entry(kind).or_default() += count;
        }
        self.load_ns += other.load_ns;
        self.traffic += other.traffic;
        self.response.merge(&other.response);
        self.stood_still_ns += other.stood_still_ns;
    }

    /// Failed ops of all kinds.
    pub(super) fn failed_total(&self) -> u64 {
        self.failed.values().sum()
    }

    /// Time under load.
    pub(super) fn load_s(&self) -> f64 {
        self.load_ns as f64 / 1e9
    }

    /// Time in which the generator itself stood still.
    pub(super) fn stood_still_s(&self) -> f64 {
        self.stood_still_ns as f64 / 1e9
    }

    /// Response times counted by [`BOUNDS_NS`], one more at the end for what is above; not cumulated.
    pub(super) fn by_bound(&self) -> [u64; BOUNDS_NS.len() + 1] {
        let mut counts = [0; BOUNDS_NS.len() + 1];
        for &(value_ns, count) in self.response.buckets() {
            counts[BOUNDS_NS.partition_point(|&bound| bound < value_ns)] += count;
        }
        counts
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use duel_lab::Live;
    use duel_model::web::failure;
    use duel_model::{GeneratorAudit, Series, Tally};

    pub(in crate::telemetry) fn slot(target: usize, ok: u64, failed: u64, ms: u64) -> Slot {
        let tally = Tally {
            started: ok + failed,
            ok,
            failed: [(failure::REFUSED.id(), failed)].into_iter().filter(|(_, n)| *n > 0).collect(),
            bytes_in: 10 * ok,
            response: Distribution::from_values(std::iter::repeat_n(ms * 1_000_000, ok as usize)),
            ..Tally::default()
        };
        // As an archive has it, so that a slot may get further fields.
        let slot = serde_json::json!({
            "index": 0, "target": target, "role": "measured", "block": 0, "repeat": 0, "started_unix_ms": 0,
            "offset_ns": 0, "elapsed_ns": 1_000_000_000, "tally": tally, "series": Series::default(),
            "audit": GeneratorAudit::default(), "negotiated": null,
        });
        serde_json::from_value(slot).unwrap()
    }

    pub(in crate::telemetry) fn of(names: &[&str]) -> Figures {
        let named = |name: &&str| TargetFigures { name: (*name).to_owned(), ..TargetFigures::default() };
        Figures { run: "R".into(), targets: names.iter().map(named).collect(), ..Figures::default() }
    }

    /// The slot that began at `began_ms` is looked at.
    fn look(figures: &mut Figures, active: usize, began_ms: u64, load_ms: u64, ok: u64) {
        let live = Live {
            ok,
            failed: [(failure::RESET.id(), 1)].into(),
            traffic: Traffic { bytes_in: 10 * ok, ..Traffic::default() },
            response: Distribution::from_values(std::iter::repeat_n(1_000_000, ok as usize)),
            ..Live::default()
        };
        let slot = SlotView { began_ns: began_ms * 1_000_000, load_ns: load_ms * 1_000_000, live: &live };
        figures.look(&View {
            elapsed_ns: (began_ms + load_ms) * 1_000_000,
            total_ns: Some(10_000_000_000),
            total_ops: None,
            targets: &[],
            active,
            slot: Some(slot),
            search: None,
        });
    }

    fn ok(figures: &Figures) -> Vec<u64> {
        figures.so_far().iter().map(|(_, counts)| counts.ok).collect()
    }

    #[test]
    fn counts_hold_the_slot_under_way_and_never_fall() {
        let mut figures = of(&["A", "B"]);
        look(&mut figures, 0, 0, 500, 40);
        assert_eq!((ok(&figures), figures.progress), (vec![40, 0], Some(0.05)));
        let (_, counts) = &figures.so_far()[0];
        assert_eq!((counts.traffic.bytes_in, counts.response.count(), counts.failed_total()), (400, 40, 1));
        assert_eq!(counts.load_s(), 0.5);
        figures.add(&slot(0, 100, 3, 5));
        assert_eq!((ok(&figures), figures.so_far()[0].1.failed_total()), (vec![100, 0], 3));
        look(&mut figures, 1, 1000, 100, 7);
        assert_eq!(ok(&figures), [100, 7]);
        // The slot of B was cut: nobody is told that it is over, but its requests have ended.
        look(&mut figures, 0, 1300, 10, 5);
        assert_eq!(ok(&figures), [105, 7]);
        figures.add(&slot(0, 9, 0, 5));
        assert_eq!(ok(&figures), [109, 7]);
    }

    #[test]
    fn a_slot_that_waited_for_answers_beyond_its_time_is_counted_once() {
        // Its last look came 200 ms after its time was over, that of the next one comes earlier on the load's clock.
        let mut figures = of(&["A", "B"]);
        look(&mut figures, 0, 0, 1000, 90);
        figures.add(&slot(0, 100, 0, 150));
        look(&mut figures, 0, 1200, 100, 10);
        assert_eq!((ok(&figures), figures.so_far()[0].1.load_s()), (vec![110, 0], 1.1));
    }

    #[test]
    fn response_times_are_counted_once() {
        let mut figures = of(&["A"]);
        for (ok, ms) in [(3, 1), (4, 2), (5, 30_000)] {
            figures.add(&slot(0, ok, 0, ms));
        }
        let counts = figures.so_far()[0].1.by_bound();
        assert_eq!((counts[3], counts[4], counts[16], counts.iter().sum::<u64>()), (3, 4, 5, 12));
    }
}
