//! Asleep or polling: the same ops, told from each other by the audit alone; and an end that was noticed late.

use crate::common::{self, order};
use duel_load::{
    Counters, Event, Interest, Io, LaneId, OpEnd, Progress, Session, SlotOrder, SlotRecord, Traffic, WorkerId,
    Workload, WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::{LoopKind, MICROSECOND_NS, MILLISECOND_NS, Nanos, Schema};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const CLOSED: LoopKind = LoopKind::Closed { think_ns: 0 };

/// One lane whose op is a byte that a thread sends back after a while; every end is said to have been noticed late.
#[derive(Clone, Copy)]
struct Echo {
    takes_ns: Nanos,
    noticed_late_ns: Option<Nanos>,
}

struct Lane {
    end: UnixStream,
    is_watched: bool,
    noticed_late_ns: Option<Nanos>,
}

impl WorkloadFactory for Echo {
    type Workload = Lane;
    fn schema(&self) -> &'static Schema {
        &common::TRIED
    }
    fn make(&self, _worker: WorkerId, lanes: usize) -> Result<Lane, WorkloadError> {
        assert_eq!(lanes, 1);
        let (end, mut theirs) = UnixStream::pair().unwrap();
        end.set_nonblocking(true).unwrap();
        let takes_ns = self.takes_ns;
        std::thread::spawn(move || {
            let mut byte = [0];
            while theirs.read_exact(&mut byte).is_ok() {
                let until_ns = monotonic_ns() + takes_ns;
                // Asleep: on a machine of one CPU the worker has to get it.
                while monotonic_ns() < until_ns {
                    std::thread::sleep(std::time::Duration::from_nanos(takes_ns / 4));
                }
                if theirs.write_all(&byte).is_err() {
                    return;
                }
            }
        });
        Ok(Lane { end, is_watched: false, noticed_late_ns: self.noticed_late_ns })
    }
}

impl Workload for Lane {
    fn start(&mut self, lane: LaneId, _now_ns: Nanos, io: &Io<'_>) -> Progress {
        if !self.is_watched {
            io.watch(&self.end, lane, Interest::Read).unwrap();
            self.is_watched = true;
        }
        self.end.write_all(b"x").unwrap();
        Progress::Pending
    }
    fn ready(&mut self, _lane: LaneId, _event: Event, _io: &Io<'_>) -> Progress {
        if self.end.read(&mut [0; 8]).is_err() {
            return Progress::Pending;
        }
        let end_ns = monotonic_ns();
        let arrived_ns = self.noticed_late_ns.map(|late_ns| end_ns - late_ns);
        Progress::Done(OpEnd { arrived_ns, bytes_in: 1, ..OpEnd::noticed(end_ns, Ok(())) })
    }
    fn cancel(&mut self, _lane: LaneId) {}
    fn traffic(&self) -> Traffic {
        Traffic::default()
    }
    fn take_counters(&mut self) -> Counters {
        Counters::default()
    }
}

fn slot(echo: Echo, polling_workers: u32) -> SlotRecord {
    let mut session = Session::open(echo, 1, 1, Arc::new(AtomicBool::new(false))).unwrap();
    let order = SlotOrder { polling_workers, ..order(CLOSED, Some(200 * MILLISECOND_NS), None) };
    session.run_slot(&order, &mut |_| ControlFlow::Continue(())).unwrap()
}

#[test]
fn a_worker_polls_only_where_it_may_and_says_for_how_long() {
    let echo = Echo { takes_ns: MILLISECOND_NS, noticed_late_ns: None };
    let (asleep, polling) = (slot(echo, 0), slot(echo, 1));
    for record in [&asleep, &polling] {
        assert!(record.tally.ok > 10, "{}", record.tally.ok);
        assert_eq!(record.tally.started, record.tally.ok);
        let worker = &record.audit.workers[0];
        assert!(worker.notice_lag.is_empty(), "what is not known is not 0");
        assert!(worker.work_ns().unwrap() <= worker.cpu_ns.unwrap());
        if let Some(sleeps) = worker.sleeps {
            assert!(sleeps > 0, "an op takes longer than anybody stays awake");
        }
    }
    assert_eq!(asleep.audit.workers[0].polling_ns, 0);
    assert!(polling.audit.workers[0].polling_ns > 0);
}

/// However late an end is noticed, the op took as long as until its last byte arrived; the next one begins when it could.
#[test]
fn an_op_ends_when_its_last_byte_arrives() {
    const LATE_NS: Nanos = 700 * MICROSECOND_NS;
    let echo = Echo { takes_ns: 2 * MILLISECOND_NS, noticed_late_ns: None };
    let late = Echo { noticed_late_ns: Some(LATE_NS), ..echo };
    let record = slot(late, 0);
    let lag = &record.audit.workers[0].notice_lag;
    assert_eq!(lag.count(), record.tally.ok);
    assert!(lag.quantile_ns(0.5).unwrap().abs_diff(LATE_NS) < LATE_NS / 50, "{lag:?}");
    // A lane that is never idle: its ops and what lies between them fill the slot.
    let took_ns = record.tally.service.mean_ns().unwrap() * record.tally.ok as f64;
    let between_ns = LATE_NS as f64 * record.tally.ok as f64;
    let slot_ns = record.elapsed_ns as f64;
    assert!((0.5..=1.001).contains(&((took_ns + between_ns) / slot_ns)), "{took_ns} {between_ns} {slot_ns}");
}
