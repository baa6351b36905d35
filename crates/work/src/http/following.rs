//! Requests that follow their redirects, each for itself, wherever they lead.
//!
//! An op is a trip over one or more *legs*: a leg is an origin (scheme, host and port) with a connection for each lane.
//! The target is the first leg; others are added when a redirect leads there. Methods, bodies and credentials change on
//! the way as RFC 9110, 15.4 and the practice of browsers have it.

use super::HttpFactory;
use super::address::Address;
use super::leg::Leg;
use super::proxy;
use super::request::Request;
use duel_load::{
    Counters, Event, Failure, Io, LaneId, OpEnd, PhaseTimes, Progress, WorkerId, Workload, WorkloadError,
    WorkloadFactory,
};
use duel_model::{Body, FailureKind, HttpPlan, Nanos, sanitize_line};
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

/// How the plan's request has changed on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Manner {
    /// It is a GET without a body by now.
    is_get: bool,
    /// Credentials are for the target only.
    without_credentials: bool,
    /// A `Host` field of the user's is for the target only.
    without_host: bool,
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

    fn connecting(&self, lane: LaneId) -> bool {
        self.legs[self.trips[lane].leg].connecting(lane)
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
            for (status, count) in statuses {
                *all.statuses.entry(status).or_default() += count;
            }
            all.negotiated = negotiated.or(all.negotiated);
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
        let manner = trip.manner.after(&self.ways, status, &location, &url);
        let leg = self.leg_to(&url).map_err(nowhere)?;
        let request = self.request(&url, manner)?;
        let trip = &mut self.trips[lane];
        (trip.leg, trip.url, trip.manner) = (leg, Arc::new(url), manner);
        trip.redirects += 1;
        Ok(Some(request))
    }

    /// Number of the leg to the origin of an address.
    fn leg_to(&mut self, url: &Url) -> Result<usize, String> {
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
        let factory = self.ways.factory(&origin, url).map_err(|error| error.to_string())?;
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
    /// What makes connections to an origin. The look-up holds up the worker that meets the origin first, and those that
    /// meet it meanwhile.
    fn factory(&self, origin: &str, url: &Url) -> Result<HttpFactory, WorkloadError> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = origins.get(origin) {
            return known.clone();
        }
        let made = HttpFactory::assume(&self.plan, url.as_str(), self.connect_timeout_ns);
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

impl Manner {
    /// After one more redirect.
    fn after(self, ways: &Ways, status: u16, location: &str, url: &Url) -> Self {
        let is_form = ways.plan.requests.form.is_some();
        let was_get = matches!(ways.plan.method.as_str(), "GET" | "HEAD") && !is_form;
        let is_get = self.is_get || matches!(status, 301..=303) && !was_get;
        // As Go's and curl's clients: what was meant for one host is for nobody else, and not for the open wire.
        let in_the_open = ways.url.scheme() == "https" && url.scheme() == "http";
        let is_absolute = location.starts_with("//") || Url::parse(location).is_ok();
        Self {
            is_get,
            without_credentials: self.without_credentials || in_the_open || !is_within(&ways.url, url),
            without_host: self.without_host || is_absolute,
        }
    }

    /// The plan as it is to be sent.
    fn plan(self, plan: &HttpPlan) -> HttpPlan {
        let mut plan = plan.clone();
        let mut leave_out = |names: &[&str]| {
            plan.headers.retain(|(name, _)| !names.iter().any(|left_out| name.eq_ignore_ascii_case(left_out)));
        };
        if self.is_get {
            leave_out(&["Content-Length", "Content-Type"]);
        }
        if self.without_credentials {
            leave_out(&["Authorization", "Cookie"]);
            plan.requests.auth = None;
            // The same proxy is asked wherever a redirect leads.
            if plan.proxy.is_none() {
                leave_out(&[proxy::CREDENTIALS]);
            }
        }
        if self.without_host {
            leave_out(&["Host"]);
            plan.host = None;
        }
        if self.is_get {
            (plan.method, plan.body, plan.requests.form) = ("GET".to_owned(), Body::None, None);
        }
        plan
    }
}

/// Whether the second address is on the first one's host, or below its domain.
fn is_within(target: &Url, url: &Url) -> bool {
    let (Some(target), Some(host)) = (target.host_str(), url.host_str()) else { return false };
    let is_name = target.parse::<std::net::IpAddr>().is_err();
    host == target || (is_name && host.strip_suffix(target).is_some_and(|front| front.ends_with('.')))
}

fn is_redirect(op: &OpEnd) -> bool {
    op.outcome.is_ok() && matches!(op.status, Some(301 | 302 | 303 | 307 | 308))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ways(method: &str, address: &str) -> Ways {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let somewhere = format!("http://{}/", listener.local_addr().unwrap());
        let plan = HttpPlan {
            method: method.into(),
            body: Body::Text("body".into()),
            host: Some("host.given".into()),
            headers: ["Authorization", "Cookie", "Content-Type", "X-Other"]
                .map(|name| (name.into(), "x".into()))
                .into(),
            ..HttpPlan::default()
        };
        let target = HttpFactory::assume(&plan, &somewhere, 1).unwrap();
        let url = Arc::new(address.parse().unwrap());
        Ways { plan, connect_timeout_ns: 1, target, url, origins: Mutex::default() }
    }

    fn names(plan: &HttpPlan) -> Vec<&str> {
        plan.headers.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        for (method, status, expected, has_body) in [
            ("POST", 301, "GET", false),
            ("POST", 303, "GET", false),
            ("PUT", 302, "GET", false),
            ("POST", 307, "POST", true),
            ("POST", 308, "POST", true),
            ("HEAD", 303, "HEAD", true),
            ("GET", 302, "GET", true),
        ] {
            let ways = ways(method, "http://a.example/");
            let manner = Manner::default().after(&ways, status, "/b", &"http://a.example/b".parse().unwrap());
            let plan = manner.plan(&ways.plan);
            assert_eq!((plan.method.as_str(), plan.body != Body::None), (expected, has_body), "{method} {status}");
            assert_eq!(names(&plan).contains(&"Content-Type"), has_body);
        }
        // Once a GET, it stays one.
        let ways = ways("POST", "http://a.example/");
        let there = "http://a.example/c".parse().unwrap();
        assert!(Manner { is_get: true, ..Manner::default() }.after(&ways, 307, "/c", &there).is_get);
    }

    #[test]
    fn credentials_stay_with_the_host_that_they_were_given_for() {
        let without = |target: &str, location: &str| {
            let ways = ways("GET", target);
            let url = ways.url.join(location).unwrap();
            let plan = Manner::default().after(&ways, 302, location, &url).plan(&ways.plan);
            assert!(names(&plan).contains(&"X-Other"));
            assert_eq!(names(&plan).contains(&"Authorization"), names(&plan).contains(&"Cookie"));
            (!names(&plan).contains(&"Authorization"), plan.host.is_none())
        };
        assert_eq!(without("http://a.example/", "/b"), (false, false));
        assert_eq!(without("http://a.example/", "https://a.example/b"), (false, true));
        assert_eq!(without("http://a.example/", "//sub.a.example:81/b"), (false, true));
        assert_eq!(without("http://a.example/", "http://nota.example/b"), (true, true));
        assert_eq!(without("https://a.example/", "http://a.example/b"), (true, true));
        assert_eq!(without("http://0.0.0.1/", "http://1.0.0.0.1.example/"), (true, true));
    }
}
