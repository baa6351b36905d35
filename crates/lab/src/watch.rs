//! What somebody who watches an experiment is told.

use duel_load::{Live, OpRecord};
use duel_model::{Distribution, Nanos, Run, Slot};

/// Somebody who watches: the terminal, and the archive that keeps each slot as soon as it is there.
pub trait Watcher {
    /// A run begins; its plan and first contact are known.
    fn begun(&mut self, run: &Run) {
        let _ = run;
    }

    /// What is being done now.
    fn label(&mut self, label: &str) {
        let _ = label;
    }

    /// What is done meanwhile without any load, and how far it is; told some times per second, where it takes long.
    fn meanwhile(&mut self, what: &str) {
        let _ = what;
    }

    /// A slot is over.
    fn slot(&mut self, slot: &Slot) {
        let _ = slot;
    }

    /// Whether [`Watcher::ops`] is to be called. It costs time and memory for each op.
    fn wants_ops(&self) -> bool {
        false
    }

    /// Ops of the slot under way that have ended since the last call, all before [`Watcher::slot`]. Each worker's come in the
    /// order of their ends.
    fn ops(&mut self, ops: &[OpRecord]) {
        let _ = ops;
    }

    /// Figures while slots run, some times per second.
    fn live(&mut self, view: &View<'_>) {
        let _ = view;
    }
}

/// How far an experiment has come.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Load time so far, ns.
    pub elapsed_ns: Nanos,
    /// Load time planned, `None` when a number of ops bounds it.
    pub total_ns: Option<Nanos>,
    /// Ops planned, `None` when time bounds it.
    pub total_ops: Option<u64>,
    /// The targets in the plan's order.
    pub targets: &'a [TargetView],
    /// Which target is under load.
    pub active: usize,
    /// The slot under way alone. [`Watcher::slot`] is told the same slot when it is over, unless it was cut short. `None`
    /// between slots.
    pub slot: Option<SlotView<'a>>,
    /// How far the search for a cause has come that this is a probe of.
    pub search: Option<SearchView>,
}

/// How far a search for a cause has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchView {
    /// Load time of all probes so far, ns.
    pub spent_ns: Nanos,
    /// Load time that they may take at most.
    pub budget_ns: Nanos,
}

/// Tells somebody who watches probes how far the search has come, too.
pub(crate) struct Searching<'a> {
    pub(crate) watcher: &'a mut dyn Watcher,
    /// Before this probe.
    pub(crate) spent_ns: Nanos,
    pub(crate) budget_ns: Nanos,
}

impl Watcher for Searching<'_> {
    fn begun(&mut self, run: &Run) {
        self.watcher.begun(run);
    }

    fn label(&mut self, label: &str) {
        self.watcher.label(label);
    }

    fn meanwhile(&mut self, what: &str) {
        self.watcher.meanwhile(what);
    }

    fn slot(&mut self, slot: &Slot) {
        self.watcher.slot(slot);
    }

    fn wants_ops(&self) -> bool {
        self.watcher.wants_ops()
    }

    fn ops(&mut self, ops: &[OpRecord]) {
        self.watcher.ops(ops);
    }

    fn live(&mut self, view: &View<'_>) {
        // A last slot may end a little after its time.
        let spent_ns = (self.spent_ns + view.elapsed_ns).min(self.budget_ns);
        self.watcher.live(&View { search: Some(SearchView { spent_ns, budget_ns: self.budget_ns }), ..*view });
    }
}

/// How far a slot has come.
#[derive(Debug, Clone, Copy)]
pub struct SlotView<'a> {
    /// When it began, by a clock on which no two slots began at the same time.
    pub began_ns: Nanos,
    /// Time under load so far: the wait for answers after its planned end is none.
    pub load_ns: Nanos,
    /// What has ended in it.
    pub live: &'a Live,
}

/// One target's figures so far, those of the slot under way included.
#[derive(Debug, Clone, Default)]
pub struct TargetView {
    /// Name of the target.
    pub name: String,
    /// Ok ops.
    pub ok: u64,
    /// Failed ops.
    pub failed: u64,
    /// Time under load.
    pub load_ns: Nanos,
    /// 99th percentile of the response time.
    pub p99_ns: Option<Nanos>,
    response: Distribution,
}

impl TargetView {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    pub(crate) fn add(&mut self, slot: &Slot) {
        self.ok += slot.tally.ok;
        self.failed += slot.tally.failed_total();
        self.load_ns += slot.elapsed_ns;
        self.response.merge(&slot.tally.response);
        self.p99_ns = self.response.quantile_ns(0.99);
    }

    /// As it is shown where no slot is under way.
    pub(crate) fn shown(&self) -> Self {
        Self { name: self.name.clone(), response: Distribution::default(), ..*self }
    }

    /// The same, with a slot that is under way.
    pub(crate) fn with(&self, slot: &SlotView<'_>) -> Self {
        let mut response = self.response.clone();
        response.merge(&slot.live.response);
        Self {
            ok: self.ok + slot.live.ok,
            failed: self.failed + slot.live.failed_total(),
            load_ns: self.load_ns + slot.load_ns,
            p99_ns: response.quantile_ns(0.99),
            ..self.shown()
        }
    }

    /// Ok ops per second so far.
    pub fn rate_per_s(&self) -> Option<f64> {
        (self.load_ns > 0 && self.ok > 0).then(|| self.ok as f64 * 1e9 / self.load_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_is_told_with_the_time_of_those_before_it_and_of_all() {
        #[derive(Default)]
        struct Seen(Vec<Option<SearchView>>);
        impl Watcher for Seen {
            fn live(&mut self, view: &View<'_>) {
                self.0.push(view.search);
            }
        }
        let mut seen = Seen::default();
        let mut searching = Searching { watcher: &mut seen, spent_ns: 50, budget_ns: 60 };
        for elapsed_ns in [3, 12] {
            let view = View {
                elapsed_ns,
                total_ns: Some(6),
                total_ops: None,
                targets: &[],
                active: 0,
                slot: None,
                search: None,
            };
            searching.live(&view);
        }
        let told = |spent_ns| Some(SearchView { spent_ns, budget_ns: 60 });
        assert_eq!(seen.0, [told(53), told(60)]);
    }
}
