//! What the ops of each connection take, as one worker sees it. Whether some connections take longer than others is asked of these
//! figures; a distribution over all of them cannot tell it.

use crate::workload::{LaneId, OpEnd};
use duel_model::{ConnectionTimes, Nanos, Phase, Schema, When};

/// Connections of a worker that are told apart: as many as are asked one after the other in a slot of a fraction of a second. More
/// would say little more, and are kept with every slot.
const MOST: usize = 16;

/// The connections of a slot.
#[derive(Debug)]
pub(crate) struct Connections {
    lanes: Vec<ConnectionTimes>,
    /// The phases that an op goes through whose connection is made for it, that of connecting first.
    connecting: Vec<Phase>,
}

impl Connections {
    /// `streams` lanes share a connection: where these are several, none is told apart, as is none where nothing is connected to.
    pub(crate) fn new(schema: &Schema, lanes: usize, streams: usize) -> Self {
        let is_connecting = |phase: &&Phase| phase.when == When::Connecting;
        let connecting: Vec<Phase> = schema.phases.iter().filter(is_connecting).copied().collect();
        let told_apart = if streams == 1 && !connecting.is_empty() { lanes.min(MOST) } else { 0 };
        Self { lanes: vec![ConnectionTimes::default(); told_apart], connecting }
    }

    /// A slot begins.
    pub(crate) fn begin(&mut self) {
        self.lanes.iter_mut().for_each(|connection| *connection = connection.kept());
    }

    /// An op that was started then has ended on this lane.
    #[inline]
    pub(crate) fn op_ended(&mut self, lane: LaneId, start_ns: Nanos, op: &OpEnd) {
        let Some(connection) = self.lanes.get_mut(lane) else { return };
        if self.connecting.iter().any(|&phase| op.phases.get(phase).is_some()) {
            let connect_ns = self.connecting.first().and_then(|&phase| op.phases.get(phase));
            connection.connected(connect_ns.unwrap_or(0));
        } else if op.outcome.is_ok() {
            connection.took(op.over_ns().saturating_sub(start_ns));
        }
    }

    /// What was seen of each.
    pub(crate) fn times(&self) -> Vec<ConnectionTimes> {
        self.lanes.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::PhaseTimes;
    use duel_model::web::{self, phase};

    fn op(end_ns: Nanos, connect_ns: Option<Nanos>) -> OpEnd {
        let mut phases = PhaseTimes::NONE;
        if let Some(ns) = connect_ns {
            phases.set(phase::CONNECT, ns);
        }
        OpEnd { phases, ..OpEnd::noticed(end_ns, Ok(())) }
    }

    #[test]
    fn ops_count_on_their_connection_in_two_halves_and_those_that_made_it_do_not() {
        let mut connections = Connections::new(&web::SCHEMA, 20, 1);
        connections.op_ended(1, 0, &op(900, Some(70)));
        for took_ns in [10, 30, 11, 31, 12] {
            connections.op_ended(1, 1_000, &op(1_000 + took_ns, None));
        }
        // Of the twentieth nothing is kept.
        connections.op_ended(19, 0, &op(5, None));
        let times = connections.times();
        assert_eq!(times.len(), MOST);
        let told =
            ConnectionTimes { ops: [3, 2], sum_ns: [33, 61], connect_ns: Some(70), is_new: true, is_several: false };
        assert_eq!((times[0], times[1]), (ConnectionTimes::default(), told));
        connections.op_ended(1, 0, &op(900, Some(80)));
        assert!(connections.times()[1].is_several, "another connection has taken its place");
        connections.begin();
        let kept = ConnectionTimes { connect_ns: Some(80), ..ConnectionTimes::default() };
        assert_eq!(connections.times()[1], kept, "how long it took to make it holds for as long as it is there");
    }

    #[test]
    fn lanes_that_share_a_connection_or_have_none_are_not_told_apart() {
        assert!(Connections::new(&web::SCHEMA, 8, 4).times().is_empty());
        assert!(Connections::new(&duel_model::null::SCHEMA, 8, 1).times().is_empty());
    }
}
