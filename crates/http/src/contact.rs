//! First contact: one request to a target before any load, so that what cannot work is said at once. Redirects that are followed
//! before measuring are followed here.

use crate::factory::HttpFactory;
use crate::kind::of;
use crate::reach::proxy;
use crate::redirects::following::FollowingFactory;
use crate::redirects::manner::{Trail, leads_elsewhere};
use duel_load::{Asked, Contact, Opens, Session, SessionError, SlotOrder, WorkloadError, WorkloadFactory};
use duel_model::web::failure;
use duel_model::{ConnectTo, Facts, HttpPlan, LoopKind, SECOND_NS, Tally, WorkloadPlan, sanitize_line, web};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server that fails some of its requests may fail the first.
const ATTEMPTS: u32 = 3;

/// Asks the target once, and follows where it leads.
pub(crate) fn first(http: &HttpPlan, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
    let http = &pinned(http, asked.address, asked.pin);
    let redirects_before = if http.follows_each { 0 } else { http.max_redirects };
    let mut trail = Trail::from(asked.address)?;
    for _ in 0..=redirects_before {
        let (sent, address) = (trail.manner().plan(http), trail.address());
        let (factory, negotiated) = request_once(&sent, address, asked)?;
        if let Some((status, location)) = negotiated.as_ref().filter(|_| redirects_before > 0).and_then(redirect) {
            trail = trail.redirected(&sent, status, location)?;
            continue;
        }
        factory.leave_contact_behind();
        let leads_on = negotiated.as_ref().and_then(redirect).is_some();
        let opens = ready(factory, &sent, address, asked)?;
        if let (Target::Following(factory), true) = (&opens, leads_on) {
            // The hosts that redirects lead to are looked up now, not under load. What comes of it is for the load to tell.
            let _ = one_op(Session::open(factory.clone(), 1, 1, Arc::clone(asked.stop)), asked);
        }
        let facts = negotiated.map(Facts::kept);
        let untreated = trail.manner().plan(of(asked.untreated)?);
        return Ok(contact(opens, address, (redirects_before > 0).then_some(untreated), facts));
    }
    let last = sanitize_line(trail.address());
    Err(WorkloadError(format!("more than {redirects_before} redirects, the last to {last}")))
}

/// The target as if it had answered.
pub(crate) fn assumed(http: &HttpPlan, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
    let factory = HttpFactory::assume(http, asked.address, asked.plan.load.connect_timeout_ns)?;
    let sent = if !http.follows_each && http.max_redirects > 0 { Some(of(asked.untreated)?.clone()) } else { None };
    Ok(contact(ready(factory, http, asked.address, asked)?, asked.address, sent, None))
}

fn contact(target: Target, address: &str, sent: Option<HttpPlan>, facts: Option<Facts>) -> Contact {
    // What was followed before any load is not followed again.
    let sent = sent.map(|sent| WorkloadPlan::Http(Box::new(HttpPlan { max_redirects: 0, ..sent })));
    Contact { opens: Arc::new(target), address: address.to_owned(), sent, facts }
}

/// The plan as it is to be sent where connections are pinned.
fn pinned(http: &HttpPlan, address: &str, pin: Option<SocketAddr>) -> HttpPlan {
    let mut http = http.clone();
    let Some(pin) = pin else { return http };
    // A link-local address is one only with its interface.
    let to_host = match pin {
        SocketAddr::V6(pin) if pin.scope_id() != 0 => format!("{}%{}", pin.ip(), pin.scope_id()),
        _ => pin.ip().to_string(),
    };
    match &mut http.proxy {
        // What was connected to is the proxy then.
        Some(proxy) => (proxy.host, proxy.port) = (to_host, pin.port()),
        // The target alone: what its redirects lead to is elsewhere.
        None => {
            let (host, port) = HttpFactory::host_and_port(address).unzip();
            let (host, to_port) = (host.unwrap_or_default(), Some(pin.port()));
            http.connect_to.insert(0, ConnectTo { host, port, to_host, to_port });
        }
    }
    if http.follows_each {
        // What a name was said to lead to holds for the hosts behind redirects, and not for the pin.
        let ip = pin.ip();
        let itself = format!("[{ip}]:{}:[{ip}]", pin.port()).parse();
        http.reach.overrides.splice(0..0, itself);
    } else {
        // What the name was said to lead to has been followed already.
        http.reach.overrides.clear();
        // The way begins behind the redirects: a further one must not lead elsewhere over the same pin.
        http.max_redirects = 0;
    }
    http
}

/// Status and location of a response that leads elsewhere.
fn redirect(negotiated: &Facts) -> Option<(u16, &str)> {
    let status = negotiated.count(web::STATUS).and_then(|status| status.try_into().ok());
    let location = negotiated.text(web::LOCATION).filter(|location| !location.is_empty());
    status.filter(|&status| leads_elsewhere(status)).zip(location)
}

fn request_once(
    http: &HttpPlan,
    address: &str,
    asked: &Asked<'_>,
) -> Result<(HttpFactory, Option<Facts>), WorkloadError> {
    let factory = HttpFactory::prepare_in(http, address, asked.plan.load.connect_timeout_ns, asked.network)?;
    let mut last = Tally::default();
    for _ in 0..ATTEMPTS {
        let (tally, negotiated) = one_op(factory.session(1, 1, Arc::clone(asked.stop)), asked)?;
        // Only a proxy answers so, and it will do so each time.
        if negotiated.as_ref().is_some_and(|negotiated| negotiated.count(web::STATUS) == Some(407))
            && let Some(text) = proxy::unknown_to_proxy(http)
        {
            return Err(WorkloadError(text));
        }
        if let Some(hint) = negotiated.as_ref().and_then(|negotiated| expects_tls(http, address, negotiated, asked)) {
            return Err(WorkloadError(hint));
        }
        // An answer with an error status is an answer: what it means is seen under load.
        if negotiated.is_some() || asked.stop.load(Ordering::Relaxed) {
            return Ok((factory, negotiated));
        }
        last = tally;
    }
    let what = last.failure_examples.first().cloned().unwrap_or_else(|| "no answer".to_owned());
    let through = http.proxy.as_ref().map(|proxy| format!(" through the proxy {}", sanitize_line(&proxy.to_string())));
    let slow = last.failed.contains_key(&failure::TIMEOUT.id());
    let hint = if slow { "; a longer --timeout waits for a server that is slow" } else { "" };
    let (address, through) = (sanitize_line(address), through.unwrap_or_default());
    Err(WorkloadError(format!("the first request to {address}{through} failed: {what}{hint}")))
}

fn one_op(session: Result<Session, SessionError>, asked: &Asked<'_>) -> Result<(Tally, Option<Facts>), WorkloadError> {
    let order = SlotOrder {
        ops: Some(1),
        connect_timeout_ns: asked.plan.load.connect_timeout_ns,
        grace_ns: SECOND_NS,
        ..SlotOrder::of(LoopKind::Closed { think_ns: 0 }, asked.plan.load.op_timeout_ns)
    };
    let record = session
        .and_then(|mut session| session.run_slot(&order, &mut |_| ControlFlow::Continue(())))
        .map_err(|error| WorkloadError(error.to_string()))?;
    Ok((record.tally, record.negotiated))
}

/// Some servers answer plain HTTP on their TLS port with status 400: whether this is such a port, in words.
fn expects_tls(http: &HttpPlan, address: &str, negotiated: &Facts, asked: &Asked<'_>) -> Option<String> {
    if negotiated.count(web::STATUS) != Some(400) {
        return None;
    }
    let rest = address.strip_prefix("http://")?;
    let mut over_tls = http.clone();
    over_tls.tls.verify = false;
    let connect_timeout_ns = asked.plan.load.connect_timeout_ns;
    let factory = HttpFactory::prepare(&over_tls, &format!("https://{rest}"), connect_timeout_ns).ok()?;
    let (_, negotiated) = one_op(factory.session(1, 1, Arc::clone(asked.stop)), asked).ok()?;
    negotiated?.value(web::TLS_VERSION).map(|_| {
        format!(
            "the server expects https on this port and refuses plain http (400); use https://{}",
            sanitize_line(rest)
        )
    })
}

/// A target that is ready for load.
#[derive(Debug)]
enum Target {
    Plain(HttpFactory),
    /// Each request follows its redirects itself.
    Following(FollowingFactory),
}

/// Requests as the plan wants their redirects to be followed.
fn ready(factory: HttpFactory, http: &HttpPlan, address: &str, asked: &Asked<'_>) -> Result<Target, WorkloadError> {
    if !http.follows_each || http.max_redirects == 0 {
        return Ok(Target::Plain(factory));
    }
    FollowingFactory::new(factory, http, address, asked.plan.load.connect_timeout_ns).map(Target::Following)
}

impl Target {
    fn first(&self) -> &HttpFactory {
        match self {
            Self::Plain(factory) => factory,
            Self::Following(factory) => factory.target(),
        }
    }
}

impl Opens for Target {
    fn session(&self, lanes: u32, threads: u32, stop: Arc<AtomicBool>) -> Result<Session, SessionError> {
        // The first contact has told of the look-up already; the load is to tell of it, too.
        self.first().report_lookup();
        match self {
            Self::Plain(factory) => factory.session(lanes, threads, stop),
            Self::Following(factory) => Session::open(factory.clone(), lanes, threads, stop),
        }
    }

    fn leads_to(&self, peer: &SocketAddr) -> bool {
        self.first().leads_to(peer)
    }

    fn go_on_after(&self, begun: u64, workers: u32) {
        self.first().go_on_after(begun, workers);
    }

    fn go_round_in(&self, ops: u64) {
        self.first().go_round_in(ops);
    }

    fn places(&self) -> u64 {
        match self {
            Self::Plain(_) => 1,
            Self::Following(factory) => 1 + factory.origins_elsewhere() as u64,
        }
    }

    fn address_pairs(&self) -> usize {
        match self {
            Self::Plain(factory) => WorkloadFactory::address_pairs(factory),
            Self::Following(factory) => WorkloadFactory::address_pairs(factory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plan as it is sent to `address` where it is pinned to another one.
    fn sent(http: &HttpPlan, address: &str, pin: [u8; 4], port: u16) -> HttpPlan {
        pinned(http, address, Some(SocketAddr::from((pin, port))))
    }

    #[test]
    fn what_follows_redirects_itself_still_does_on_a_pinned_way() {
        let http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
        let pinned = sent(&http, "http://h.example:81/", [127, 0, 0, 9], 8080);
        assert!(pinned.follows_each && pinned.max_redirects == 5);
        let rules: Vec<String> = pinned.connect_to.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["h.example:81:127.0.0.9:8080"], "other hosts are where their names say");
        let before = HttpPlan { follows_each: false, ..http };
        assert_eq!(sent(&before, "http://h.example:81/", [127, 0, 0, 9], 8080).max_redirects, 0);
    }

    #[test]
    fn what_names_were_said_to_lead_to_holds_behind_redirects_too() {
        let mut http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
        http.reach.overrides = vec!["*:443:127.0.0.5".parse().unwrap()];
        let overrides = sent(&http, "https://h/", [127, 0, 0, 9], 443).reach.overrides;
        let leads_to = |host| overrides.iter().find_map(|rule| rule.addresses_of(host, 443)).unwrap()[0].to_string();
        assert_eq!((leads_to("127.0.0.9"), leads_to("other")), ("127.0.0.9".into(), "127.0.0.5".into()));
    }

    #[test]
    fn through_a_proxy_it_is_the_proxy_that_is_pinned() {
        let proxy = Some(duel_model::ProxyPlan { host: "proxy.example".into(), port: 8080 });
        let pinned = sent(&HttpPlan { proxy, ..HttpPlan::default() }, "https://h/", [127, 0, 0, 9], 3128);
        assert_eq!(pinned.proxy.unwrap().to_string(), "127.0.0.9:3128");
        assert!(pinned.connect_to.is_empty());
    }
}
