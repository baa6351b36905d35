//! Requests that follow their redirects, each for itself, wherever they lead.
//!
//! An op is a trip over one or more *legs*: a leg is an origin (scheme, host and port) with a connection for each lane.
//! The target is the first leg; others are added when a redirect leads there. What changes on the way is a [`Manner`].

use super::HttpFactory;
use super::address::Address;
use super::leg::Leg;
use super::manner::Manner;
use super::request::Request;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload, WorkloadError,
    WorkloadFactory,
};
use duel_model::{AddressChoice, FailureKind, HttpPlan, Nanos, Negotiated, SECOND_NS, sanitize_line};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use url::Url;

/// Makes [`Following`] workloads for one target.
#[derive(Debug, Clone)]
pub struct FollowingFactory {
    ways: Arc<Ways>,
}

/// What all workers have in common.
#[derive(Debug)]
struct Ways {
    plan: HttpPlan,
    connect_timeout_ns: Nanos,
    target: HttpFactory,
    url: Arc<Url>,
    /// Origins that redirects have led to, looked up once for all workers; an error stands, or each op would wait for it.
    origins: Mutex<BTreeMap<String, Result<HttpFactory, WorkloadError>>>,
}

/// One worker's trips.
#[derive(Debug)]
pub struct Following {
    ways: Arc<Ways>,
    legs: Vec<Leg>,
    /// Number of the leg to each origin but the target's.
    leg_to: BTreeMap<String, usize>,
    /// Requests that redirects have led to.
    requests: BTreeMap<Stop, Arc<Request>>,
    trips: Vec<Trip>,
    /// Redirects followed, by status: an op has one status, that of its last response.
    followed: BTreeMap<u16, u64>,
}

/// Most origins beside the target's that a worker keeps connections to; each has a read buffer of its own.
const MOST_ORIGINS: usize = 16;
/// How long each of an origin's addresses, where there are several, is given to accept a connection before it is known
/// which one to use.
const LONGEST_LOOK_NS: Nanos = SECOND_NS;
/// Most requests that are kept; where each redirect leads elsewhere, they are built anew.
const MOST_REQUESTS: usize = 64;

/// The op under way on a lane.
#[derive(Debug)]
struct Trip {
    leg: usize,
    redirects: u32,
    url: Arc<Url>,
    manner: Manner,
    /// Of the legs that are over.
    phases: PhaseTimes,
    bytes_in: u64,
}

/// Where a redirect led, and as what the request goes there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stop {
    url: String,
    manner: Manner,
}

impl FollowingFactory {
    /// Load on the target that `target` was prepared for from the same plan and address.
    pub fn new(
        target: HttpFactory,
        plan: &HttpPlan,
        address: &str,
        connect_timeout_ns: Nanos,
    ) -> Result<Self, WorkloadError> {
        let url = Arc::new(Address::parse(address)?.url);
        let origins = Mutex::default();
        Ok(Self { ways: Arc::new(Ways { plan: plan.clone(), connect_timeout_ns, target, url, origins }) })
    }

    /// The target alone, without redirects.
    pub fn target(&self) -> &HttpFactory {
        &self.ways.target
    }
}

impl WorkloadFactory for FollowingFactory {
    type Workload = Following;

    fn make(&self, lanes: usize) -> Result<Following, WorkloadError> {
        self.make_for(WorkerId::ONLY, lanes)
    }

    fn make_for(&self, worker: WorkerId, lanes: usize) -> Result<Following, WorkloadError> {
        let ways = Arc::clone(&self.ways);
        Ok(Following {
            legs: vec![Leg::to(&self.ways.target, worker, lanes)?],
            leg_to: BTreeMap::new(),
            requests: BTreeMap::new(),
            followed: BTreeMap::new(),
            trips: (0..lanes).map(|_| Trip::to(Arc::clone(&ways.url))).collect(),
            ways,
        })
    }

    fn lanes_per_connection(&self) -> usize {
        self.ways.target.shared.streams()
    }

    fn address_pairs(&self) -> usize {
        self.ways.target.address_pairs()
    }
}

impl Workload for Following {
    fn start(&mut self, lane: LaneId, now_ns: Nanos, io: &Io<'_>) -> Progress {
        if self.trips[lane].redirects > 0 {
            self.trips[lane] = Trip::to(Arc::clone(&self.ways.url));
        }
        let progress = self.legs[0].start_request(lane, None, now_ns, io);
        self.settle(lane, progress, io)
    }

    #[inline]
    fn lane_of(&self, token: usize) -> LaneId {
        // The first leg's are most, and a division is dear.
        if token < self.trips.len() { token } else { token % self.trips.len() }
    }

    fn ready(&mut self, lane: LaneId, event: Event, io: &Io<'_>) -> Progress {
        let leg = if event.token == lane { 0 } else { event.token / self.trips.len() };
        let progress = self.legs[leg].ready(lane, event, &io.beyond(leg * self.trips.len()));
        self.settle(lane, progress, io)
    }

    fn further(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        let mut leg = 0;
        while leg < self.legs.len() {
            match self.legs[leg].further(&io.beyond(leg * self.trips.len())) {
                None => leg += 1,
                Some((lane, op)) => {
                    if let Progress::Done(op) = self.settle(lane, Progress::Done(op), io) {
                        return Some((lane, op));
                    }
                    // It goes on at any leg, which then has something to send.
                    leg = 0;
                }
            }
        }
        None
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.legs.iter().filter_map(Leg::wakes_at).min()
    }

    fn cancel(&mut self, lane: LaneId) {
        self.legs[self.trips[lane].leg].cancel(lane);
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let trip = &self.trips[lane];
        let mut phases = self.legs[trip.leg].phases_so_far(lane, now_ns);
        if trip.redirects > 0 {
            phases.add(&trip.phases);
        }
        phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        self.legs[self.trips[lane].leg].connecting_since(lane)
    }

    fn slot_ended(&mut self) {
        self.legs.iter_mut().for_each(Leg::slot_ended);
    }

    fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        self.legs.iter().for_each(|leg| all += leg.traffic());
        all
    }

    fn take_counters(&mut self) -> Counters {
        let mut all = Counters::default();
        for leg in &mut self.legs {
            let Counters {
                bytes_in,
                bytes_out,
                body_bytes,
                inflated_bytes,
                connections,
                resumed,
                reused,
                resent,
                surplus,
                statuses,
                negotiated,
            } = leg.take_counters();
            if let Some(bytes) = inflated_bytes {
                *all.inflated_bytes.get_or_insert(0) += bytes;
            }
            all.bytes_in += bytes_in;
            all.bytes_out += bytes_out;
            all.body_bytes += body_bytes;
            all.connections += connections;
            all.resumed += resumed;
            all.reused += reused;
            all.resent += resent;
            all.surplus += surplus;
            for (status, count) in statuses {
                *all.statuses.entry(status).or_default() += count;
            }
            all.negotiated = match (all.negotiated, negotiated) {
                (Some(target), Some(last)) => Some(answered_elsewhere(target, last)),
                (target, last) => target.or(last),
            };
        }
        for (status, followed) in std::mem::take(&mut self.followed) {
            let left = all.statuses.get(&status).copied().unwrap_or(0).saturating_sub(followed);
            if left > 0 {
                all.statuses.insert(status, left)
            } else {
                all.statuses.remove(&status)
            };
        }
        all
    }
}

impl Following {
    /// Goes on where a redirect leads, until there is something to wait for, or the end.
    fn settle(&mut self, lane: LaneId, mut progress: Progress, io: &Io<'_>) -> Progress {
        loop {
            let op = match progress {
                Progress::Pending => return Progress::Pending,
                Progress::Done(op) => op,
            };
            let next = if is_redirect(&op) { self.next(lane) } else { Ok(None) };
            let trip = &mut self.trips[lane];
            match next {
                Ok(None) => return Progress::Done(trip.ended(op)),
                Err(text) => {
                    let outcome = Err(Box::new(Failure { kind: FailureKind::Protocol, text }));
                    return Progress::Done(trip.ended(OpEnd { outcome, status: None, body_bytes: 0, ..op }));
                }
                Ok(Some(request)) => {
                    trip.add(&op);
                    *self.followed.entry(op.status.unwrap_or(0)).or_default() += 1;
                    let (leg, first_token) = (trip.leg, trip.leg * self.trips.len());
                    let io = io.beyond(first_token);
                    progress = self.legs[leg].start_request(lane, Some(request), op.end_ns, &io);
                }
            }
        }
    }

    /// Moves the trip on to where the response that has just ended leads, and answers what is to be sent there; `None`:
    /// it leads nowhere. An error is for the user.
    #[cold]
    fn next(&mut self, lane: LaneId) -> Result<Option<Arc<Request>>, String> {
        let trip = &self.trips[lane];
        let Some(location) = self.legs[trip.leg].location(lane).filter(|location| !location.is_empty()) else {
            return Ok(None);
        };
        let most = self.ways.plan.max_redirects;
        if trip.redirects >= most {
            return Err(format!("stopped after {most} redirects"));
        }
        let status = self.legs[trip.leg].status(lane);
        let location =
            std::str::from_utf8(location).map_err(|_| "a redirect's Location is no text".to_owned())?.to_owned();
        let nowhere = |why: String| format!("the redirect to '{}' leads nowhere: {why}", sanitize_line(&location));
        let mut url = trip.url.join(&location).map_err(|error| nowhere(error.to_string()))?;
        url.set_fragment(None);
        let manner = trip.manner.after(&self.ways.plan, &self.ways.url, status, &location, &url);
        let leg = self.leg_to(&url, manner).map_err(nowhere)?;
        let request = self.request(&url, manner)?;
        let trip = &mut self.trips[lane];
        (trip.leg, trip.url, trip.manner) = (leg, Arc::new(url), manner);
        trip.redirects += 1;
        Ok(Some(request))
    }

    /// Number of the leg to the origin of an address.
    fn leg_to(&mut self, url: &Url, manner: Manner) -> Result<usize, String> {
        if url.origin() == self.ways.url.origin() {
            return Ok(0);
        }
        let origin = url.origin().ascii_serialization();
        if let Some(&leg) = self.leg_to.get(&origin) {
            return Ok(leg);
        }
        if self.leg_to.len() >= MOST_ORIGINS {
            return Err(format!("redirects have led to {MOST_ORIGINS} other hosts already"));
        }
        let factory = self.ways.factory(&origin, url, manner).map_err(|error| error.to_string())?;
        let leg = Leg::to(&factory, WorkerId::ONLY, self.trips.len()).map_err(|error| error.to_string())?;
        self.legs.push(leg);
        self.leg_to.insert(origin, self.legs.len() - 1);
        Ok(self.legs.len() - 1)
    }

    fn request(&mut self, url: &Url, manner: Manner) -> Result<Arc<Request>, String> {
        let stop = Stop { url: url.to_string(), manner };
        if let Some(request) = self.requests.get(&stop) {
            return Ok(Arc::clone(request));
        }
        let request = Request::build(&manner.plan(&self.ways.plan), url).map_err(|error| error.to_string())?;
        let request = Arc::new(request);
        if self.requests.len() < MOST_REQUESTS {
            self.requests.insert(stop, Arc::clone(&request));
        }
        Ok(request)
    }
}

impl Ways {
    /// What makes connections to an origin. Looking it up holds up the worker that meets the origin first, and those that
    /// meet it meanwhile, with all their ops: that is done at first contact where there is one, and is short elsewhere.
    fn factory(&self, origin: &str, url: &Url, manner: Manner) -> Result<HttpFactory, WorkloadError> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = origins.get(origin) {
            return known.clone();
        }
        let mut plan = manner.plan(&self.plan);
        if plan.reach.addresses == AddressChoice::Answering {
            // One after another, each address that is silent would take its time.
            plan.reach.addresses = AddressChoice::Race;
        }
        let made = HttpFactory::assume(&plan, url.as_str(), self.connect_timeout_ns.min(LONGEST_LOOK_NS));
        origins.insert(origin.to_owned(), made.clone());
        made
    }
}

impl Trip {
    fn to(url: Arc<Url>) -> Self {
        Self { leg: 0, redirects: 0, url, manner: Manner::default(), phases: PhaseTimes::NONE, bytes_in: 0 }
    }

    /// A leg is over, and another one follows.
    fn add(&mut self, op: &OpEnd) {
        self.phases.add(&op.phases);
        self.bytes_in += op.bytes_in;
    }

    /// The last leg is over.
    fn ended(&mut self, op: OpEnd) -> OpEnd {
        if self.redirects == 0 {
            return op;
        }
        self.add(&op);
        OpEnd { phases: self.phases, bytes_in: self.bytes_in, ..op }
    }
}

/// What the connection to the target showed, with the answer that came from where its redirects led.
fn answered_elsewhere(target: Negotiated, last: Negotiated) -> Negotiated {
    let Negotiated { status, location, content_type, content_encoding, body_bytes, .. } = last;
    Negotiated { status, location, content_type, content_encoding, body_bytes, ..target }
}

fn is_redirect(op: &OpEnd) -> bool {
    op.outcome.is_ok() && matches!(op.status, Some(301 | 302 | 303 | 307 | 308))
}
