//! An origin's connections, whichever version of HTTP they speak.

use crate::HttpFactory;
use crate::http1::lane::Http;
use crate::requests::request::Request;
use crate::streams::Http2;
use duel_load::{Counters, Event, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload, WorkloadError};
use duel_model::Nanos;
use std::sync::Arc;

/// One worker's connections to an origin.
#[derive(Debug)]
pub(crate) enum Leg {
    Http1(Box<Http>),
    Http2(Box<Http2>),
}

impl Leg {
    pub(crate) fn to(factory: &HttpFactory, worker: WorkerId, lanes: usize) -> Result<Self, WorkloadError> {
        factory.shared.enter_network()?;
        let shared = Arc::clone(&factory.shared);
        Ok(match shared.http2 {
            None => Self::Http1(Box::new(Http::new(shared, worker, lanes))),
            Some(_) => Self::Http2(Box::new(Http2::new(shared, worker, lanes))),
        })
    }

    pub(crate) fn start_request(
        &mut self,
        lane: LaneId,
        detour: Option<Arc<Request>>,
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Progress {
        match self {
            Self::Http1(leg) => leg.start_request(lane, detour, now_ns, io),
            Self::Http2(leg) => leg.start_request(lane, detour, now_ns, io),
        }
    }

    pub(crate) fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        match self {
            Self::Http1(leg) => leg.ready(lane, event, io),
            Self::Http2(leg) => leg.ready(lane, event, io),
        }
    }

    pub(crate) fn further(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        match self {
            Self::Http1(leg) => leg.further(io),
            Self::Http2(leg) => leg.further(io),
        }
    }

    pub(crate) fn turn_begins(&mut self) {
        match self {
            Self::Http1(leg) => leg.turn_begins(),
            Self::Http2(leg) => leg.turn_begins(),
        }
    }

    pub(crate) fn wakes_at(&self) -> Option<Nanos> {
        match self {
            Self::Http1(leg) => leg.wakes_at(),
            Self::Http2(leg) => leg.wakes_at(),
        }
    }

    pub(crate) fn cancel(&mut self, lane: LaneId) {
        match self {
            Self::Http1(leg) => leg.cancel(lane),
            Self::Http2(leg) => leg.cancel(lane),
        }
    }

    pub(crate) fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        match self {
            Self::Http1(leg) => leg.phases_so_far(lane, now_ns),
            Self::Http2(leg) => leg.phases_so_far(lane, now_ns),
        }
    }

    pub(crate) fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        match self {
            Self::Http1(leg) => leg.connecting_since(lane),
            Self::Http2(leg) => leg.connecting_since(lane),
        }
    }

    pub(crate) fn slot_ended(&mut self) {
        match self {
            Self::Http1(leg) => leg.slot_ended(),
            Self::Http2(leg) => leg.slot_ended(),
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        match self {
            Self::Http1(leg) => leg.traffic(),
            Self::Http2(leg) => leg.traffic(),
        }
    }

    pub(crate) fn take_counters(&mut self) -> Counters {
        match self {
            Self::Http1(leg) => leg.take_counters(),
            Self::Http2(leg) => leg.take_counters(),
        }
    }

    /// Where the response that has just ended on `lane` leads.
    pub(crate) fn location(&self, lane: LaneId) -> Option<&[u8]> {
        match self {
            Self::Http1(leg) => leg.location(lane),
            Self::Http2(leg) => leg.location(lane),
        }
    }

    /// Status of the response that has just ended on `lane`; 0 where there is none.
    pub(crate) fn status(&self, lane: LaneId) -> u16 {
        match self {
            Self::Http1(leg) => leg.status(lane),
            Self::Http2(leg) => leg.status(lane),
        }
    }
}
