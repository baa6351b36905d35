//! A handshake and nothing else: which protocol a server chooses is known before any request.

use crate::HttpFactory;
use crate::broken::Broken;
use crate::link::tls::HTTP2;
use crate::link::{Link, SCRATCH_BYTES, Traveller};
use crate::op::Op;
use crate::protocol_error::ProtocolError;
use crate::shared::Shared;
use duel_load::{
    Counters, Event, Io, LaneId, OpEnd, Progress, Session, SlotOrder, Traffic, WorkerId, Workload, WorkloadError,
    WorkloadFactory, monotonic_ns,
};
use duel_model::{Facts, HttpPlan, LoopKind, Nanos, Schema, web};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Whether a server chooses HTTP/2 when it is offered beside HTTP/1.1. It costs one connection and no request. An error is
/// for the user: there was no handshake.
pub fn chooses_http2(
    plan: &HttpPlan,
    address: &str,
    timeout_ns: Nanos,
    stop: &Arc<AtomicBool>,
) -> Result<bool, WorkloadError> {
    let mut plan = HttpPlan { http2: None, ..plan.clone() };
    plan.tls.alpn = ["h2", "http/1.1"].map(str::to_owned).to_vec();
    let factory = HttpFactory::assume(&plan, address, timeout_ns)?;
    let closed = LoopKind::Closed { think_ns: 0 };
    let order = SlotOrder { ops: Some(1), grace_ns: 0, ..SlotOrder::of(closed, timeout_ns) };
    let record = Session::open(HandshakeFactory { shared: factory.shared }, 1, 1, Arc::clone(stop))
        .and_then(|mut session| session.run_slot(&order, &mut |_| ControlFlow::Continue(())))
        .map_err(|error| WorkloadError(error.to_string()))?;
    match record.negotiated {
        Some(seen) => Ok(seen.text(web::TLS_ALPN).is_some_and(|alpn| alpn.as_bytes() == HTTP2)),
        None => {
            let why = record.tally.failure_examples.first().cloned();
            Err(WorkloadError(why.unwrap_or_else(|| "interrupted".to_owned())))
        }
    }
}

/// Makes [`Handshake`] workloads.
#[derive(Debug)]
struct HandshakeFactory {
    shared: Arc<Shared>,
}

/// One connection that is closed as soon as its handshake is over.
#[derive(Debug)]
struct Handshake {
    shared: Arc<Shared>,
    link: Link,
    op: Op,
    counters: Counters,
    scratch: Vec<u8>,
}

impl WorkloadFactory for HandshakeFactory {
    type Workload = Handshake;

    fn schema(&self) -> &'static Schema {
        &duel_model::web::SCHEMA
    }

    fn make(&self, _worker: WorkerId, _lanes: usize) -> Result<Handshake, WorkloadError> {
        let (link, counters) = (Link::default(), Counters::default());
        Ok(Handshake {
            shared: Arc::clone(&self.shared),
            link,
            op: Op::NONE,
            counters,
            scratch: vec![0; SCRATCH_BYTES],
        })
    }
}

impl Handshake {
    fn settle(&mut self, result: Result<bool, Broken>) -> Progress {
        let outcome = match result {
            Ok(false) => return Progress::Pending,
            Ok(true) => {
                let mut seen = Facts::default();
                if let Some(tls) = &self.link.tls {
                    tls.describe(&mut seen);
                }
                self.counters.negotiated = Some(seen);
                Ok(())
            }
            Err(broken) => Err(Box::new(broken.into_failure())),
        };
        self.link.close();
        let (phases, bytes_in) = (self.op.phases, self.op.bytes_in);
        Progress::Done(OpEnd { phases, bytes_in, ..OpEnd::noticed(monotonic_ns(), outcome) })
    }
}

impl Workload for Handshake {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        let Self { shared, link, op, counters, .. } = self;
        *op = Op::begin(now_ns);
        let result = link.connect(0, lane, &mut Traveller { shared, op, counters }, io);
        self.settle(result)
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        let Self { shared, link, op, counters, scratch } = self;
        if link.socket.is_none() {
            return Progress::Pending;
        }
        // What a server says of itself is of no interest here.
        let ignore = &mut |_: &[u8]| Ok::<(), ProtocolError>(());
        let result = link.approach(lane, event, &mut Traveller { shared, op, counters }, scratch, ignore, io);
        self.settle(result)
    }

    fn cancel(&mut self, _lane: LaneId) {
        self.link.close();
    }

    fn connecting_since(&self, _lane: LaneId) -> Option<Nanos> {
        Some(self.op.connecting_since_ns)
    }

    fn traffic(&self) -> Traffic {
        self.counters.traffic()
    }

    fn take_counters(&mut self) -> Counters {
        std::mem::take(&mut self.counters)
    }
}
