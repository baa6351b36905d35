//! What is counted by stage: an op belongs to the stage in which it was due.

use crate::recorder::Recording;
use duel_model::{Nanos, Stage, StageTally};

/// Counts and response times of each stage; nothing, and no cost but a comparison, where there are none.
#[derive(Debug, Default)]
pub(crate) struct StageRecorder {
    /// When each stage ends, rising.
    ends_ns: Vec<Nanos>,
    stages: Vec<(StageTally, Recording)>,
}

impl StageRecorder {
    pub(crate) fn reset(&mut self, slot_start_ns: Nanos, stages: &[Stage]) {
        let ends = stages.iter().scan(slot_start_ns, |end_ns, stage| {
            *end_ns += stage.duration_ns;
            Some(*end_ns)
        });
        self.ends_ns = ends.collect();
        self.stages = stages.iter().map(|_| (StageTally::default(), Recording::new())).collect();
    }

    #[inline]
    pub(crate) fn ok(&mut self, due_ns: Nanos, end_ns: Nanos) {
        if self.stages.is_empty() {
            return;
        }
        // What ends after the last stage belongs to the throughput of none.
        let ended_in = self.ends_ns.partition_point(|&stage_end_ns| stage_end_ns <= end_ns);
        if let Some((tally, _)) = self.stages.get_mut(ended_in) {
            tally.ended_ok += 1;
        }
        if let Some((tally, response)) = self.of(due_ns) {
            tally.due += 1;
            tally.ok += 1;
            response.record(end_ns.saturating_sub(due_ns));
        }
    }

    pub(crate) fn failed(&mut self, due_ns: Nanos) {
        self.count(due_ns, |tally| &mut tally.failed);
    }

    pub(crate) fn in_flight(&mut self, due_ns: Nanos) {
        self.count(due_ns, |tally| &mut tally.in_flight);
    }

    pub(crate) fn unstarted(&mut self, due_ns: Nanos) {
        self.count(due_ns, |tally| &mut tally.unstarted);
    }

    pub(crate) fn shed(&mut self, due_ns: Nanos) {
        self.count(due_ns, |tally| &mut tally.shed);
    }

    /// Time waited for an answer that did not come; the op itself is counted apart.
    pub(crate) fn waited(&mut self, due_ns: Nanos, waited_ns: Nanos) {
        if let Some((_, response)) = self.of(due_ns) {
            response.record(waited_ns);
        }
    }

    pub(crate) fn tallies(&self) -> Vec<StageTally> {
        let snapshot =
            |(tally, response): &(StageTally, Recording)| StageTally { response: response.snapshot(), ..tally.clone() };
        self.stages.iter().map(snapshot).collect()
    }

    fn count(&mut self, due_ns: Nanos, which: impl Fn(&mut StageTally) -> &mut u64) {
        if let Some((tally, _)) = self.of(due_ns) {
            tally.due += 1;
            *which(tally) += 1;
        }
    }

    /// The stage in which an op was due; the last one for what is due at its very end.
    #[inline]
    fn of(&mut self, due_ns: Nanos) -> Option<&mut (StageTally, Recording)> {
        let index = self.ends_ns.partition_point(|&stage_end_ns| stage_end_ns <= due_ns);
        let last = self.stages.len().checked_sub(1)?;
        self.stages.get_mut(index.min(last))
    }
}
