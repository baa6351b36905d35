//! The figures of a run as they are while it goes on.

use duel_lab::View;
use duel_model::{Distribution, Nanos, PairVerdict, Run, Slot, SlotRole, Verdict};
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
    /// Load time of the bench when it was last looked at.
    elapsed_ns: Nanos,
}

/// One target's figures. Counts never fall.
#[derive(Debug, Clone, Default)]
pub(super) struct TargetFigures {
    pub(super) name: String,
    /// Of slots that are over.
    over: Counts,
    /// The same, since the bench that is looked at was opened: what its views hold beside the slot under way.
    in_view: Counts,
    /// The most that was ever told, the slot under way included.
    told: Counts,
    pub(super) p99_ns: Option<Nanos>,
    /// Failed ops by kind, of slots that are over.
    pub(super) failures: BTreeMap<&'static str, u64>,
    /// Slots that are over, by role.
    pub(super) slots: BTreeMap<&'static str, u64>,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) connections: u64,
    /// Response times of slots that are over.
    pub(super) response: Distribution,
}

/// What is counted while a slot runs.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    ok: u64,
    failed: u64,
    load_ns: Nanos,
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
        let Some(target) = self.targets.get_mut(slot.target) else { return };
        let counts = Counts { ok: slot.tally.ok, failed: slot.tally.failed_total(), load_ns: slot.elapsed_ns };
        target.over = target.over.plus(counts);
        target.in_view = target.in_view.plus(counts);
        target.told = target.told.at_least(target.over);
        for (kind, count) in &slot.tally.failed {
            *target.failures.entry(kind.name()).or_default() += count;
        }
        let role = match slot.role {
            SlotRole::Warmup => "warmup",
            SlotRole::Measured => "measured",
            SlotRole::Probe(_) => "probe",
            SlotRole::Search => "search",
        };
        *target.slots.entry(role).or_default() += 1;
        target.received_bytes += slot.tally.bytes_in;
        target.sent_bytes += slot.tally.bytes_out;
        target.connections += slot.tally.connections;
        target.response.merge(&slot.tally.response);
        self.active = None;
    }

    pub(super) fn look(&mut self, view: &View<'_>) {
        // A probe has a bench of its own, whose views begin anew.
        if view.elapsed_ns < self.elapsed_ns {
            self.targets.iter_mut().for_each(|target| target.in_view = Counts::default());
        }
        self.elapsed_ns = view.elapsed_ns;
        for (target, seen) in self.targets.iter_mut().zip(view.targets) {
            let under_way = Counts { ok: seen.ok, failed: seen.failed, load_ns: seen.load_ns }.beyond(target.in_view);
            target.told = target.told.at_least(target.over.plus(under_way));
            target.p99_ns = seen.p99_ns;
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
}

impl TargetFigures {
    /// Ok ops, those of the slot under way included.
    pub(super) fn ok(&self) -> u64 {
        self.told.ok
    }

    /// Failed ops, likewise.
    pub(super) fn failed(&self) -> u64 {
        self.told.failed
    }

    /// Time under load, likewise.
    pub(super) fn load_s(&self) -> f64 {
        self.told.load_ns as f64 / 1e9
    }

    /// Response times counted by [`BOUNDS_NS`], one more at the end for what is above; not cumulated.
    pub(super) fn counts_by_bound(&self) -> [u64; BOUNDS_NS.len() + 1] {
        let mut counts = [0; BOUNDS_NS.len() + 1];
        for &(value_ns, count) in self.response.buckets() {
            counts[BOUNDS_NS.partition_point(|&bound| bound < value_ns)] += count;
        }
        counts
    }
}

impl Counts {
    fn plus(self, other: Self) -> Self {
        Self { ok: self.ok + other.ok, failed: self.failed + other.failed, load_ns: self.load_ns + other.load_ns }
    }

    fn beyond(self, other: Self) -> Self {
        Self {
            ok: self.ok.saturating_sub(other.ok),
            failed: self.failed.saturating_sub(other.failed),
            load_ns: self.load_ns.saturating_sub(other.load_ns),
        }
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            ok: self.ok.max(other.ok),
            failed: self.failed.max(other.failed),
            load_ns: self.load_ns.max(other.load_ns),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use duel_lab::TargetView;
    use duel_model::{FailureKind, GeneratorAudit, Series, Tally};

    pub(in crate::telemetry) fn slot(target: usize, ok: u64, failed: u64, ms: u64) -> Slot {
        let tally = Tally {
            started: ok + failed,
            ok,
            failed: [(FailureKind::Refused, failed)].into_iter().filter(|(_, n)| *n > 0).collect(),
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

    fn view(figures: &mut Figures, elapsed_ms: u64, ok: [u64; 2], active: usize) {
        let target = |ok| {
            let mut target = TargetView::default();
            (target.ok, target.load_ns) = (ok, 1);
            target
        };
        let targets = ok.map(target);
        figures.look(&View {
            elapsed_ns: elapsed_ms * 1_000_000,
            total_ns: Some(10_000_000_000),
            total_ops: None,
            targets: &targets,
            active,
        });
    }

    #[test]
    fn counts_hold_the_slot_under_way_and_never_fall() {
        let mut figures = of(&["A", "B"]);
        view(&mut figures, 500, [40, 0], 0);
        assert_eq!((figures.targets[0].ok(), figures.progress), (40, Some(0.05)));
        figures.add(&slot(0, 100, 3, 5));
        assert_eq!((figures.targets[0].ok(), figures.targets[0].failed()), (100, 3));
        view(&mut figures, 1200, [100, 7], 1);
        assert_eq!(figures.targets.iter().map(TargetFigures::ok).collect::<Vec<_>>(), [100, 7]);
        // The slot of B was cut: it is not told of again, but the count stays.
        view(&mut figures, 1300, [100, 2], 1);
        assert_eq!(figures.targets[1].ok(), 7);
        // A probe's bench counts from zero.
        view(&mut figures, 10, [5, 0], 0);
        assert_eq!(figures.targets[0].ok(), 105);
        figures.add(&slot(0, 9, 0, 5));
        view(&mut figures, 1100, [11, 0], 0);
        assert_eq!(figures.targets[0].ok(), 111);
    }

    #[test]
    fn response_times_are_counted_once() {
        let mut figures = of(&["A"]);
        for (ok, ms) in [(3, 1), (4, 2), (5, 30_000)] {
            figures.add(&slot(0, ok, 0, ms));
        }
        let counts = figures.targets[0].counts_by_bound();
        assert_eq!((counts[3], counts[4], counts[16], counts.iter().sum::<u64>()), (3, 4, 5, 12));
    }
}
