//! Requests that follow their redirects, each for itself, wherever they lead.
//!
//! An op is a trip over one or more *legs*: a leg is an origin (scheme, host and port) with a connection for each lane.
//! The target is the first leg; others are added when a redirect leads there. What changes on the way is a [`Manner`].

use crate::HttpFactory;
use crate::reach::address::Address;
use crate::reach::origins::{Bell, Ear, Origins};
use crate::redirects::leg::Leg;
use crate::redirects::manner::{Manner, leads_elsewhere, led_to, location_text};
use crate::requests::request::Request;
use duel_load::{
    Counters, Event, Failure, Interest, Io, LaneId, OpEnd, PhaseTimes, Progress, Traffic, WorkerId, Workload,
    WorkloadError, WorkloadFactory, monotonic_ns,
};
use duel_model::web::{failure, phase};
use duel_model::{AddressChoice, Declaration, Facts, HttpPlan, Nanos, SECOND_NS, Schema, sanitize_line};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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
    /// Origins that redirects have led to.
    origins: Arc<Origins>,
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
    /// Where it hears that an origin was looked up; made when the first one has to be.
    hearing: Option<(Bell, Ear)>,
    /// It was heard: the lane that is looked at next, to see whether its op can go on.
    heard: Option<LaneId>,
    /// Redirects followed, by status: an op has one status, that of its last response.
    followed: BTreeMap<u16, u64>,
}

/// Most origins beside the target's that a worker keeps connections to; each has a read buffer of its own.
const MOST_ORIGINS: usize = 16;
/// How long each of an origin's addresses, where there are several, is given to accept a connection before it is known
/// which one to use.
const LONGEST_LOOK_NS: Nanos = SECOND_NS;
/// Behind the tokens of all legs: that of the bell.
const BELLS_LEG: usize = MOST_ORIGINS + 1;
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
    /// Where it is going, while that is being looked up.
    way: Option<Box<Way>>,
}

/// Where a redirect leads.
#[derive(Debug)]
struct Way {
    url: Arc<Url>,
    manner: Manner,
    /// As the server wrote it, safe to show.
    location: String,
    /// Status of the redirect, and when it was there.
    status: u16,
    since_ns: Nanos,
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
        let origins = Arc::default();
        Ok(Self { ways: Arc::new(Ways { plan: plan.clone(), connect_timeout_ns, target, url, origins }) })
    }

    /// Origins beside the target's that redirects have led to so far, and that can be connected to.
    pub fn origins_elsewhere(&self) -> usize {
        self.ways.origins.reachable()
    }

    /// The target alone, without redirects.
    pub fn target(&self) -> &HttpFactory {
        &self.ways.target
    }
}

impl WorkloadFactory for FollowingFactory {
    type Workload = Following;

    fn schema(&self) -> &'static Schema {
        &duel_model::web::SCHEMA
    }

    fn make(&self, worker: WorkerId, lanes: usize) -> Result<Following, WorkloadError> {
        let ways = Arc::clone(&self.ways);
        Ok(Following {
            legs: vec![Leg::to(&self.ways.target, worker, lanes)?],
            leg_to: BTreeMap::new(),
            hearing: None,
            heard: None,
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
        if leg == BELLS_LEG {
            if let Some((_, ear)) = &mut self.hearing {
                ear.hear();
            }
            self.heard = Some(0);
            return Progress::Pending;
        }
        let progress = self.legs[leg].ready(lane, event, &io.beyond(leg * self.trips.len()));
        self.settle(lane, progress, io)
    }

    fn further(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        if self.heard.is_some()
            && let Some(end) = self.next_on_its_way(io)
        {
            return Some(end);
        }
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

    fn turn_begins(&mut self) {
        // That of the worker, whichever of its legs is asked.
        self.legs[0].turn_begins();
    }

    fn wakes_at(&self) -> Option<Nanos> {
        self.legs.iter().filter_map(Leg::wakes_at).min()
    }

    fn cancel(&mut self, lane: LaneId) {
        // While it is being looked up where it goes, it is nowhere.
        if self.trips[lane].way.take().is_some() {
            return;
        }
        self.legs[self.trips[lane].leg].cancel(lane);
    }

    fn phases_so_far(&self, lane: LaneId, now_ns: Nanos) -> PhaseTimes {
        let trip = &self.trips[lane];
        if let Some(way) = &trip.way {
            return way.looked_up(&trip.phases, now_ns);
        }
        let mut phases = self.legs[trip.leg].phases_so_far(lane, now_ns);
        if trip.redirects > 0 {
            phases.add(&trip.phases);
        }
        phases
    }

    fn connecting_since(&self, lane: LaneId) -> Option<Nanos> {
        // The look-up is a part of connecting, and of its time.
        if let Some(way) = &self.trips[lane].way {
            return Some(way.since_ns);
        }
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
                counted,
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
            for (counter, count) in counted {
                *all.counted.entry(counter).or_default() += count;
            }
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
            let way = if is_redirect(&op) { self.way(lane, op.end_ns) } else { Ok(None) };
            let way = match way {
                Ok(None) => return Progress::Done(self.trips[lane].ended(op)),
                Ok(Some(way)) => way,
                Err(text) => return Progress::Done(self.trips[lane].failed(op, text)),
            };
            match self.next(&way, io) {
                Ok(Some(next)) => {
                    self.trips[lane].add(&op);
                    progress = self.depart(lane, way, next, op.end_ns, io);
                }
                Ok(None) => {
                    let trip = &mut self.trips[lane];
                    trip.add(&op);
                    trip.redirects += 1;
                    trip.way = Some(Box::new(way));
                    return Progress::Pending;
                }
                Err(why) => {
                    let text = way.leads_nowhere(&why);
                    return Progress::Done(self.trips[lane].failed(op, text));
                }
            }
        }
    }

    /// Where the response that has just ended leads; `None`: nowhere. An error is for the user.
    #[cold]
    fn way(&self, lane: LaneId, since_ns: Nanos) -> Result<Option<Way>, String> {
        let trip = &self.trips[lane];
        let Some(location) = self.legs[trip.leg].location(lane).filter(|location| !location.is_empty()) else {
            return Ok(None);
        };
        let most = self.ways.plan.max_redirects;
        if trip.redirects >= most {
            return Err(format!("stopped after {most} redirects"));
        }
        let status = self.legs[trip.leg].status(lane);
        let location = location_text(location);
        let url = led_to(&trip.url, &location)?;
        let manner = trip.manner.after(&self.ways.plan, &self.ways.url, status, &location, &url);
        Ok(Some(Way { url: Arc::new(url), manner, location: sanitize_line(&location), status, since_ns }))
    }

    /// The leg and the request that a way leads to; `None`: that is being looked up.
    #[cold]
    fn next(&mut self, way: &Way, io: &Io<'_>) -> Result<Option<(usize, Arc<Request>)>, String> {
        let Some(leg) = self.leg_to(&way.url, way.manner, io)? else { return Ok(None) };
        let request = self.request(&way.url, way.manner)?;
        Ok(Some((leg, request)))
    }

    /// Sends the request at the leg that the way leads to.
    fn depart(
        &mut self,
        lane: LaneId,
        way: Way,
        (leg, request): (usize, Arc<Request>),
        now_ns: Nanos,
        io: &Io<'_>,
    ) -> Progress {
        let trip = &mut self.trips[lane];
        (trip.leg, trip.url, trip.manner) = (leg, way.url, way.manner);
        trip.redirects += 1;
        *self.followed.entry(way.status).or_default() += 1;
        let io = io.beyond(leg * self.trips.len());
        self.legs[leg].start_request(lane, Some(request), now_ns, &io)
    }

    /// The next op that has ended among those whose way has been looked up; the others go on.
    #[cold]
    fn next_on_its_way(&mut self, io: &Io<'_>) -> Option<(LaneId, OpEnd)> {
        while let Some(lane) = self.heard.filter(|&lane| lane < self.trips.len()) {
            self.heard = Some(lane + 1);
            let Some(way) = self.trips[lane].way.take() else { continue };
            let progress = match self.next(&way, io) {
                Ok(None) => {
                    self.trips[lane].way = Some(way);
                    continue;
                }
                Ok(Some(next)) => {
                    let now_ns = monotonic_ns();
                    let trip = &mut self.trips[lane];
                    trip.phases = way.looked_up(&trip.phases, now_ns);
                    // It was counted when the look-up began.
                    trip.redirects -= 1;
                    let progress = self.depart(lane, *way, next, now_ns, io);
                    self.settle(lane, progress, io)
                }
                Err(why) => {
                    let end_ns = monotonic_ns();
                    let trip = &mut self.trips[lane];
                    let text = way.leads_nowhere(&why);
                    Progress::Done(OpEnd {
                        phases: way.looked_up(&trip.phases, end_ns),
                        bytes_in: trip.bytes_in,
                        ..OpEnd::noticed(end_ns, Err(Box::new(Failure { kind: failure::PROTOCOL, text })))
                    })
                }
            };
            if let Progress::Done(op) = progress {
                return Some((lane, op));
            }
        }
        self.heard = None;
        None
    }

    /// Number of the leg to the origin of an address; `None`: it is being looked up.
    fn leg_to(&mut self, url: &Url, manner: Manner, io: &Io<'_>) -> Result<Option<usize>, String> {
        if url.origin() == self.ways.url.origin() {
            return Ok(Some(0));
        }
        let origin = url.origin().ascii_serialization();
        if let Some(&leg) = self.leg_to.get(&origin) {
            return Ok(Some(leg));
        }
        if self.leg_to.len() >= MOST_ORIGINS {
            return Err(format!("redirects have led to {MOST_ORIGINS} other hosts already"));
        }
        let bell = self.bell(io)?;
        let Some(factory) = self.ways.factory(&origin, url, manner, &bell).map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let leg = Leg::to(&factory, WorkerId::ONLY, self.trips.len()).map_err(|error| error.to_string())?;
        self.legs.push(leg);
        self.leg_to.insert(origin, self.legs.len() - 1);
        Ok(Some(self.legs.len() - 1))
    }

    /// What this worker hears of look-ups by.
    fn bell(&mut self, io: &Io<'_>) -> Result<Bell, String> {
        if let Some((bell, _)) = &self.hearing {
            return Ok(bell.clone());
        }
        let new = || {
            let (bell, ear) = Bell::new()?;
            io.beyond(BELLS_LEG * self.trips.len()).watch(&ear, 0, Interest::Read)?;
            Ok((bell, ear))
        };
        let (bell, ear) = new().map_err(|error: std::io::Error| format!("it cannot be looked up: {error}"))?;
        self.hearing = Some((bell.clone(), ear));
        Ok(bell)
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
    /// What makes connections to an origin; `None`: it is being looked up, and the bell rings when that is done. At first
    /// contact that is done before there is load, where there are redirects.
    fn factory(
        &self,
        origin: &str,
        url: &Url,
        manner: Manner,
        bell: &Bell,
    ) -> Result<Option<HttpFactory>, WorkloadError> {
        let mut plan = manner.plan(&self.plan);
        if plan.reach.addresses == AddressChoice::Answering {
            // One after another, each address that is silent would take its time.
            plan.reach.addresses = AddressChoice::Race;
        }
        let (address, connect_timeout_ns) = (url.to_string(), self.connect_timeout_ns.min(LONGEST_LOOK_NS));
        self.origins.find(origin, bell, move || {
            let factory = HttpFactory::assume(&plan, &address, connect_timeout_ns)?;
            // Ops that have waited for it tell so themselves.
            factory.shared.unreported_lookup_ns.store(0, Ordering::Relaxed);
            Ok(factory)
        })
    }
}

impl Way {
    fn leads_nowhere(&self, why: &str) -> String {
        format!("the redirect to '{}' leads nowhere: {why}", self.location)
    }

    /// The phases of a trip that has waited for its look-up until now.
    fn looked_up(&self, so_far: &PhaseTimes, now_ns: Nanos) -> PhaseTimes {
        let (mut phases, mut look_up) = (*so_far, PhaseTimes::NONE);
        look_up.set(phase::DNS, now_ns.saturating_sub(self.since_ns));
        phases.add(&look_up);
        phases
    }
}

impl Trip {
    fn to(url: Arc<Url>) -> Self {
        Self { leg: 0, redirects: 0, url, manner: Manner::default(), phases: PhaseTimes::NONE, bytes_in: 0, way: None }
    }

    /// A leg is over, and another one follows.
    fn add(&mut self, op: &OpEnd) {
        self.phases.add(&op.phases);
        self.bytes_in += op.bytes_in;
    }

    /// The last leg is over, and where its response leads nobody gets.
    fn failed(&mut self, op: OpEnd, text: String) -> OpEnd {
        let outcome = Err(Box::new(Failure { kind: failure::PROTOCOL, text }));
        self.ended(OpEnd { outcome, status: None, body_bytes: 0, ..op })
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
fn answered_elsewhere(mut target: Facts, last: Facts) -> Facts {
    let is_of_answer = |name: &str| Declaration::of(name).is_some_and(|declared| declared.is_of_answer);
    target.0.retain(|name, _| !is_of_answer(name));
    target.0.extend(last.0.into_iter().filter(|(name, _)| is_of_answer(name)));
    target
}

fn is_redirect(op: &OpEnd) -> bool {
    op.outcome.is_ok() && op.status.is_some_and(leads_elsewhere)
}
