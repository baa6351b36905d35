//! Lanes that wait for work, spread over connections where several share one.

use crate::workload::LaneId;
use std::collections::VecDeque;

/// Who is idle. Lanes are taken from connections in turn; of a connection, and where each lane has its own, who has been
/// idle for longest comes first.
#[derive(Debug)]
pub(crate) struct Idle {
    /// Lanes of a connection.
    streams: usize,
    /// Connections with an idle lane. Where a lane has its own, these are the lanes.
    turns: VecDeque<usize>,
    /// Idle lanes by connection, where several share one.
    groups: Vec<VecDeque<LaneId>>,
}

impl Idle {
    /// All `lanes` are.
    pub(crate) fn all(lanes: usize, streams: usize) -> Self {
        let mut idle = Self { streams, turns: VecDeque::with_capacity(lanes), groups: Vec::new() };
        if streams > 1 {
            idle.groups.resize(lanes.div_ceil(streams), VecDeque::new());
        }
        (0..lanes).for_each(|lane| idle.push(lane));
        idle
    }

    /// All of them, in the order in which they are taken.
    pub(crate) fn in_turn(mut self) -> Vec<LaneId> {
        std::iter::from_fn(|| self.pop()).collect()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, lane: LaneId) {
        if self.streams == 1 {
            return self.turns.push_back(lane);
        }
        let connection = lane / self.streams;
        let group = &mut self.groups[connection];
        if group.is_empty() {
            self.turns.push_back(connection);
        }
        group.push_back(lane);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<LaneId> {
        let first = self.turns.pop_front()?;
        if self.streams == 1 {
            return Some(first);
        }
        let group = &mut self.groups[first];
        let lane = group.pop_front();
        if !group.is_empty() {
            self.turns.push_back(first);
        }
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_their_own_take_turns() {
        let mut idle = Idle::all(3, 1);
        assert_eq!(idle.pop(), Some(0));
        idle.push(0);
        assert_eq!([idle.pop(), idle.pop(), idle.pop()], [Some(1), Some(2), Some(0)]);
        assert!(idle.is_empty() && idle.pop().is_none());
    }

    #[test]
    fn connections_take_turns_whatever_ends_together() {
        let mut idle = Idle::all(6, 3);
        assert_eq!(Idle::all(6, 3).in_turn(), [0, 3, 1, 4, 2, 5]);
        while idle.pop().is_some() {}
        [2, 1, 0, 4].into_iter().for_each(|lane| idle.push(lane));
        assert_eq!(idle.in_turn(), [2, 4, 1, 0]);
    }
}
