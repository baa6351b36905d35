//! First contact: one request to each target before any load, so that what cannot work is said at once.

use crate::route::Route;
use crate::{LabError, descriptors, kinds};
use duel_load::{Opens, Session, SessionError, SlotOrder, WorkloadError, WorkloadFactory};
use duel_model::web::failure;
use duel_model::{Facts, HttpPlan, KindPlan, LoopKind, Plan, SECOND_NS, Tally, WorkloadPlan, sanitize_line, web};
use duel_work::http::{FollowingFactory, HttpFactory, Manner, Network, Trail, leads_elsewhere, unknown_to_proxy};
use duel_work::null::NullFactory;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A target that has answered, ready to be loaded.
#[derive(Debug)]
pub(crate) struct Contact {
    pub(crate) factory: Factory,
    /// Its address after redirects.
    pub(crate) address: String,
    /// How requests go there, where redirects led.
    pub(crate) manner: Manner,
    pub(crate) negotiated: Option<Facts>,
}

impl Contact {
    /// Whether this is among the addresses that the target's name led to.
    pub(crate) fn leads_to(&self, peer: &SocketAddr) -> bool {
        match &self.factory {
            Factory::Null | Factory::Kind(_) => false,
            Factory::Http(factory) => factory.leads_to(peer),
            Factory::Following(factory) => factory.target().leads_to(peer),
        }
    }
}

/// What makes a target's workload.
#[derive(Debug, Clone)]
pub(crate) enum Factory {
    Null,
    /// Of a kind that brings all that it needs.
    Kind(Arc<dyn Opens>),
    Http(HttpFactory),
    /// Each request follows its redirects itself.
    Following(FollowingFactory),
}

/// A server that fails some of its requests may fail the first.
const ATTEMPTS: u32 = 3;

/// Contacts every target of the plan in turn, on the way that is known of it already, if any.
pub(crate) fn contact_all(plan: &Plan, routes: &[Route], stop: &Arc<AtomicBool>) -> Result<Vec<Contact>, LabError> {
    descriptors::ensure(plan)?;
    plan.targets
        .iter()
        .enumerate()
        .map(|(index, target)| {
            let contact = contact(plan, &target.address, routes.get(index), stop);
            // Whether it answered is not known, whatever a request that was cut looks like.
            if stop.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            contact.map_err(|text| LabError::Target { name: sanitize_line(&target.name), text })
        })
        .collect()
}

/// Prepares every target of the plan and sends nothing: see [`crate::Lab::to_the_letter`].
pub(crate) fn assume_all(plan: &Plan) -> Result<Vec<Contact>, LabError> {
    descriptors::ensure(plan)?;
    plan.targets
        .iter()
        .map(|target| {
            let address = target.address.clone();
            let factory = match &plan.workload {
                WorkloadPlan::Plain(kind) => {
                    of_kind(plan, kind, &address, &AtomicBool::new(false)).map(|(factory, _)| factory)
                }
                WorkloadPlan::Http(http) => HttpFactory::assume(http, &address, plan.load.connect_timeout_ns)
                    .and_then(|factory| Factory::http(factory, http, &address, plan)),
            };
            match factory {
                Ok(factory) => Ok(Contact { factory, address, manner: Manner::default(), negotiated: None }),
                Err(error) => Err(LabError::Target { name: sanitize_line(&target.name), text: error.to_string() }),
            }
        })
        .collect()
}

/// Contacts one target.
pub(crate) fn contact(
    plan: &Plan,
    address: &str,
    route: Option<&Route>,
    stop: &Arc<AtomicBool>,
) -> Result<Contact, String> {
    let address = route.map_or(address, |route| &route.address);
    let http = match &plan.workload {
        WorkloadPlan::Http(http) => http,
        WorkloadPlan::Plain(kind) => {
            let (factory, negotiated) = of_kind(plan, kind, address, stop).map_err(|error| error.to_string())?;
            return Ok(Contact { factory, address: address.to_owned(), manner: Manner::default(), negotiated });
        }
    };
    let http = &route.map_or_else(|| (**http).clone(), |route| route.pinned(http));
    let network = route.and_then(|route| route.network.as_ref());
    let redirects_before = if http.follows_each { 0 } else { http.max_redirects };
    let mut trail = Trail::from(address).map_err(|error| error.to_string())?;
    for _ in 0..=redirects_before {
        let (http, address) = (&trail.manner().plan(http), trail.address());
        let (factory, negotiated) = request_once(plan, http, address, network, stop)?;
        if let Some((status, location)) = negotiated.as_ref().filter(|_| redirects_before > 0).and_then(redirect) {
            trail = trail.redirected(http, status, location).map_err(|error| error.to_string())?;
            continue;
        }
        if let Some(route) = route {
            route.check(negotiated.as_ref())?;
        }
        factory.leave_contact_behind();
        let factory = Factory::http(factory, http, address, plan).map_err(|error| error.to_string())?;
        if let (Factory::Following(factory), Some(_)) = (&factory, negotiated.as_ref().and_then(redirect)) {
            // The hosts that redirects lead to are looked up now, not under load. What comes of it is for the load to tell.
            let _ = one_op(Session::open(factory.clone(), 1, 1, Arc::clone(stop)), plan);
        }
        let negotiated = negotiated.map(Facts::kept);
        return Ok(Contact { factory, address: address.to_owned(), manner: trail.manner(), negotiated });
    }
    Err(format!("more than {redirects_before} redirects, the last to {}", sanitize_line(trail.address())))
}

/// What makes the workload of a kind that brings all that it needs, and what was found out about the target.
fn of_kind(
    plan: &Plan,
    kind: &KindPlan,
    address: &str,
    stop: &AtomicBool,
) -> Result<(Factory, Option<Facts>), WorkloadError> {
    match kinds::of_schema(kind.schema) {
        None => Ok((Factory::Null, None)),
        Some(known) => {
            known.prepare_unless(plan, kind, address, stop).map(|made| (Factory::Kind(made.opens), Some(made.facts)))
        }
    }
}

/// Status and location of a response that leads elsewhere.
fn redirect(negotiated: &Facts) -> Option<(u16, &str)> {
    let status = negotiated.count(web::STATUS).and_then(|status| status.try_into().ok());
    let location = negotiated.text(web::LOCATION).filter(|location| !location.is_empty());
    status.filter(|&status| leads_elsewhere(status)).zip(location)
}

fn request_once(
    plan: &Plan,
    http: &HttpPlan,
    address: &str,
    network: Option<&Network>,
    stop: &Arc<AtomicBool>,
) -> Result<(HttpFactory, Option<Facts>), String> {
    let factory = HttpFactory::prepare_in(http, address, plan.load.connect_timeout_ns, network)
        .map_err(|error| error.to_string())?;
    let mut last = Tally::default();
    for _ in 0..ATTEMPTS {
        let (tally, negotiated) = one_op(factory.session(1, 1, Arc::clone(stop)), plan)?;
        // Only a proxy answers so, and it will do so each time.
        if negotiated.as_ref().is_some_and(|negotiated| negotiated.count(web::STATUS) == Some(407))
            && let Some(text) = unknown_to_proxy(http)
        {
            return Err(text);
        }
        if let Some(hint) =
            negotiated.as_ref().and_then(|negotiated| expects_tls(http, address, negotiated, plan, stop))
        {
            return Err(hint);
        }
        // An answer with an error status is an answer: what it means is seen under load.
        if negotiated.is_some() || stop.load(Ordering::Relaxed) {
            return Ok((factory, negotiated));
        }
        last = tally;
    }
    let what = last.failure_examples.first().cloned().unwrap_or_else(|| "no answer".to_owned());
    let through = http.proxy.as_ref().map(|proxy| format!(" through the proxy {}", sanitize_line(&proxy.to_string())));
    let slow = last.failed.contains_key(&failure::TIMEOUT.id());
    let hint = if slow { "; a longer --timeout waits for a server that is slow" } else { "" };
    Err(format!("the first request to {}{} failed: {what}{hint}", sanitize_line(address), through.unwrap_or_default()))
}

fn one_op(session: Result<Session, SessionError>, plan: &Plan) -> Result<(Tally, Option<Facts>), String> {
    let order = SlotOrder {
        kind: LoopKind::Closed { think_ns: 0 },
        duration_ns: None,
        ops: Some(1),
        connect_timeout_ns: plan.load.connect_timeout_ns,
        op_timeout_ns: plan.load.op_timeout_ns,
        grace_ns: SECOND_NS,
        seed: 0,
        stages: Vec::new(),
        deadline_ns: None,
        polling_workers: 0,
        polling_gives_way: true,
    };
    let record = session
        .and_then(|mut session| session.run_slot(&order, &mut |_| ControlFlow::Continue(())))
        .map_err(|error| error.to_string())?;
    Ok((record.tally, record.negotiated))
}

/// Some servers answer plain HTTP on their TLS port with status 400: whether this is such a port, in words.
fn expects_tls(
    http: &HttpPlan,
    address: &str,
    negotiated: &Facts,
    plan: &Plan,
    stop: &Arc<AtomicBool>,
) -> Option<String> {
    if negotiated.count(web::STATUS) != Some(400) {
        return None;
    }
    let rest = address.strip_prefix("http://")?;
    let mut over_tls = http.clone();
    over_tls.tls.verify = false;
    let factory = HttpFactory::prepare(&over_tls, &format!("https://{rest}"), plan.load.connect_timeout_ns).ok()?;
    let (_, negotiated) = one_op(factory.session(1, 1, Arc::clone(stop)), plan).ok()?;
    negotiated?.value(web::TLS_VERSION).map(|_| {
        format!(
            "the server expects https on this port and refuses plain http (400); use https://{}",
            sanitize_line(rest)
        )
    })
}

impl Factory {
    /// Requests as the plan wants their redirects to be followed.
    fn http(factory: HttpFactory, http: &HttpPlan, address: &str, plan: &Plan) -> Result<Self, WorkloadError> {
        if !http.follows_each || http.max_redirects == 0 {
            return Ok(Self::Http(factory));
        }
        FollowingFactory::new(factory, http, address, plan.load.connect_timeout_ns).map(Self::Following)
    }

    /// Requests that differ go on behind those of earlier load, of which each worker began so many at most.
    pub(crate) fn go_on_after(&self, begun: u64, workers: u32) {
        match self {
            Self::Null | Self::Kind(_) => {}
            Self::Http(factory) => factory.go_on_after(begun, workers),
            Self::Following(factory) => factory.target().go_on_after(begun, workers),
        }
    }

    /// How many origins each connection of the plan becomes one to, as far as redirects are known.
    pub(crate) fn origins(&self) -> u64 {
        match self {
            Self::Null | Self::Kind(_) | Self::Http(_) => 1,
            Self::Following(factory) => 1 + factory.origins_elsewhere() as u64,
        }
    }

    /// What of the target does not agree with what load has done to it: see [`Opens::contradiction`].
    pub(crate) fn contradiction(&self) -> Result<Option<String>, String> {
        match self {
            Self::Kind(opens) => opens.contradiction(),
            Self::Null | Self::Http(_) | Self::Following(_) => Ok(None),
        }
    }

    /// What the target tells of load when all of it is over: see [`Opens::told_after`].
    pub(crate) fn told_after(&self) -> Facts {
        match self {
            Self::Kind(opens) => opens.told_after(),
            Self::Null | Self::Http(_) | Self::Following(_) => Facts::default(),
        }
    }

    /// A slot is about to begin: see [`Opens::slot_begins`].
    pub(crate) fn slot_begins(&self) {
        if let Self::Kind(opens) = self {
            opens.slot_begins();
        }
    }

    /// A slot is over: see [`Opens::slot_ended`].
    pub(crate) fn slot_ended(&self, tally: &mut Tally) {
        if let Self::Kind(opens) = self {
            opens.slot_ended(tally);
        }
    }

    /// Pairs of a local and a remote address that connections are spread over.
    pub(crate) fn address_pairs(&self) -> usize {
        match self {
            Self::Null | Self::Kind(_) => NullFactory.address_pairs(),
            Self::Http(factory) => factory.address_pairs(),
            Self::Following(factory) => factory.address_pairs(),
        }
    }

    /// Opens a session of load on the target.
    pub(crate) fn session(
        &self,
        connections: u32,
        threads: u32,
        stop: Arc<AtomicBool>,
    ) -> Result<Session, SessionError> {
        match self {
            Self::Null => Session::open(NullFactory, connections, threads, stop),
            Self::Kind(opens) => opens.session(connections, threads, stop),
            Self::Http(factory) => {
                // The first contact has told of the look-up already; the load is to tell of it, too.
                factory.report_lookup();
                factory.session(connections, threads, stop)
            }
            Self::Following(factory) => {
                factory.target().report_lookup();
                Session::open(factory.clone(), connections, threads, stop)
            }
        }
    }
}
