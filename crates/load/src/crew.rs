//! Of a closed loop whose connections change by stages: which lanes carry ops.

use crate::course::LaneCourse;
use crate::workload::LaneId;
use duel_model::Nanos;

/// The lanes of one worker, at work and resting.
pub(crate) struct Crew {
    pub(crate) course: LaneCourse,
    /// Lanes that carry ops, or wait for their next one.
    pub(crate) active: usize,
    /// How many of them there may be.
    allowed: usize,
    resting: Vec<LaneId>,
}

impl Crew {
    /// None of these lanes carries ops yet.
    pub(crate) fn resting(course: LaneCourse, lanes: Vec<LaneId>) -> Self {
        // Taken from the end.
        Self { course, active: 0, allowed: 0, resting: lanes.into_iter().rev().collect() }
    }

    /// A resting lane that is to carry ops from `now` on; and as many as then may is what [`Crew::is_too_many`] goes by.
    pub(crate) fn called(&mut self, now: Nanos) -> Option<LaneId> {
        self.allowed = self.course.allowed(now);
        if self.active >= self.allowed {
            return None;
        }
        let lane = self.resting.pop()?;
        self.active += 1;
        Some(lane)
    }

    /// Whether one of the lanes at work has to rest.
    #[inline]
    pub(crate) fn is_too_many(&self) -> bool {
        self.active > self.allowed
    }

    pub(crate) fn rest(&mut self, lane: LaneId) {
        self.active -= 1;
        self.resting.push(lane);
    }
}
