//! The way to a target: probes go where the comparison went, whatever its name leads to by now.
//!
//! A name may lead to several servers in turn (round-robin DNS). Looked up anew for each probe, it would lead a probe
//! to another server than the comparison, and the difference of two servers would pass for the effect of a variation.

use crate::LabError;
use crate::contact::{Contact, contact};
use duel_model::{ConnectTo, Doubt, DoubtId, Factor, Facts, HttpPlan, Plan, WorkloadPlan, sanitize_line, web};
use duel_work::http::{HttpFactory, Manner, Network};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where the comparison reached a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The target's address, after redirects where it is pinned.
    pub(crate) address: String,
    /// How requests go there, where redirects led.
    manner: Manner,
    /// What connections are to be made to instead of what the name leads to.
    pin: Option<SocketAddr>,
    /// What the comparison was connected to, in words; `None`: not known.
    peer: Option<String>,
    /// What the name leads to now, in words, if that is not where the comparison was connected to.
    moved_to: Option<String>,
    /// The network in which it is reached, where that is not our own.
    pub(crate) network: Option<Network>,
}

impl Route {
    /// The way that a contact found just now.
    pub(crate) fn of(contact: &Contact) -> Self {
        let peer = peer(contact.negotiated.as_ref());
        let pin = peer.as_ref().and_then(|peer| peer.parse().ok());
        let (address, manner) = (contact.address.clone(), contact.manner);
        Self { address, manner, pin, peer, moved_to: None, network: None }
    }

    /// The way to a target that an earlier comparison found at `before`, from what its name leads to now.
    pub(crate) fn again(plan: &Plan, address: &str, before: Option<&Facts>, stop: &Arc<AtomicBool>) -> Self {
        let unknown = Self {
            address: address.to_owned(),
            manner: Manner::default(),
            pin: None,
            peer: peer(before),
            moved_to: None,
            network: None,
        };
        let Some(before) = &unknown.peer else { return unknown };
        // A target that cannot be reached is for each probe to tell.
        let Ok(found) = contact(plan, address, None, stop) else { return unknown };
        let now = peer(found.negotiated.as_ref());
        if now.as_ref() == Some(before) {
            return Self::of(&found);
        }
        match before.parse().ok().filter(|before| found.leads_to(before)) {
            Some(before) => Self { address: found.address, manner: found.manner, pin: Some(before), ..unknown },
            None => Self { moved_to: now, ..unknown },
        }
    }

    /// The same server under another address.
    pub(crate) fn to(&self, address: &str) -> Self {
        Self { address: address.to_owned(), ..self.clone() }
    }

    /// The same addresses in another network; `None` where it is not known which address that is.
    pub(crate) fn within(&self, network: Network) -> Option<Self> {
        self.pin.is_some().then(|| Self { network: Some(network), ..self.clone() })
    }

    /// What connections are made to, as far as that is pinned.
    pub(crate) fn pin(&self) -> Option<SocketAddr> {
        self.pin
    }

    /// The plan's workload as it is to be sent on this way.
    pub(crate) fn pinned(&self, http: &HttpPlan) -> HttpPlan {
        let mut http = http.clone();
        if let Some(pin) = self.pin {
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
                    let (host, port) = HttpFactory::host_and_port(&self.address).unzip();
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
        }
        http
    }

    /// Whether a probe that reached this may be held against the comparison; if not, why.
    pub(crate) fn check(&self, reached: Option<&Facts>) -> Result<(), String> {
        match (&self.peer, peer(reached)) {
            (Some(before), Some(now)) if *before != now => Err(elsewhere(before, &now)),
            _ => Ok(()),
        }
    }

    /// What weakens every probe of a target that is not where it was.
    pub(crate) fn doubt(&self, name: &str) -> Option<Doubt> {
        let (before, now) = (self.peer.as_ref()?, self.moved_to.as_ref()?);
        let text = format!("{}: {}", sanitize_line(name), elsewhere(before, now));
        Some(Doubt { id: DoubtId::DifferentNegotiation, target: Some(name.to_owned()), text })
    }
}

/// The plan as it is sent on these ways, behind the redirects that were followed before any load: that is what is measured,
/// kept and shown. All targets have to be sent the same, or two requests would be compared.
pub(crate) fn behind_redirects(plan: &Plan, routes: &[Route]) -> Result<Plan, LabError> {
    let WorkloadPlan::Http(http) = &plan.workload else { return Ok(plan.clone()) };
    if http.follows_each || http.max_redirects == 0 {
        return Ok(plan.clone());
    }
    let sent = |route: &Route| HttpPlan { max_redirects: 0, ..route.manner.plan(http) };
    let Some(first) = routes.first().map(sent) else { return Ok(plan.clone()) };
    if let Some((_, target)) = routes.iter().zip(&plan.targets).find(|(route, _)| sent(route) != first) {
        return Err(LabError::Plan(format!(
            "redirects leave other requests for {} than for {} (credentials stay with their host, and a POST may become a \
             GET), so they cannot be compared; give the addresses that the redirects lead to, and no --follow",
            sanitize_line(&target.name),
            sanitize_line(&plan.targets[0].name)
        )));
    }
    let varies_request = |factor: &Factor| matches!(factor, Factor::Method(_) | Factor::BodySize(_));
    if routes.iter().any(|route| route.manner.changes_method()) && plan.factors.iter().any(varies_request) {
        return Err(LabError::Plan(
            "a redirect makes a GET of the request, so methods and bodies cannot be varied; give the address that it leads \
             to, and no --follow"
                .into(),
        ));
    }
    let mut plan = plan.clone();
    plan.workload = WorkloadPlan::Http(Box::new(first));
    for (target, route) in plan.targets.iter_mut().zip(routes) {
        target.address.clone_from(&route.address);
    }
    Ok(plan)
}

fn peer(negotiated: Option<&Facts>) -> Option<String> {
    Some(negotiated?.text(web::PEER)?.to_owned())
}

fn elsewhere(before: &str, now: &str) -> String {
    format!(
        "its address leads to {} now, the comparison was made with {}; what is probed would be another server",
        sanitize_line(now),
        sanitize_line(before)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::{Bound, ComparePlan, LoadPlan, SECOND_NS, Target};
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers each connection's first request until the test's process ends.
    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut head = [0; 4096];
                // Looking whether it listens sends nothing.
                if stream.read(&mut head).is_ok_and(|bytes| bytes > 0) {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            }
        });
        address
    }

    fn plan(address: String) -> Plan {
        Plan {
            targets: vec![Target { name: "A".to_owned(), address, host: None }],
            workload: WorkloadPlan::Http(Box::default()),
            load: LoadPlan {
                bound: Bound::Ops(1),
                op_timeout_ns: 10 * SECOND_NS,
                busy_poll: duel_model::BusyPoll::Never,
                ..LoadPlan::default()
            },
            compare: ComparePlan::default(),
            factors: vec![],
        }
    }

    fn at(peer: &str) -> Facts {
        Facts::default().with(web::PEER, peer)
    }

    fn on(address: &str, pin: SocketAddr) -> Route {
        let (manner, network) = (Manner::default(), None);
        Route { address: address.into(), manner, pin: Some(pin), peer: None, moved_to: None, network }
    }

    #[test]
    fn what_follows_redirects_itself_still_does_on_a_pinned_way() {
        let pin = SocketAddr::from(([127, 0, 0, 9], 8080));
        let http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
        let pinned = on("http://h.example:81/", pin).pinned(&http);
        assert!(pinned.follows_each && pinned.max_redirects == 5);
        let rules: Vec<String> = pinned.connect_to.iter().map(ToString::to_string).collect();
        assert_eq!(rules, ["h.example:81:127.0.0.9:8080"], "other hosts are where their names say");
        let before = HttpPlan { follows_each: false, ..http };
        assert_eq!(on("http://h.example:81/", pin).pinned(&before).max_redirects, 0);
    }

    #[test]
    fn what_names_were_said_to_lead_to_holds_behind_redirects_too() {
        let pin = SocketAddr::from(([127, 0, 0, 9], 443));
        let mut http = HttpPlan { max_redirects: 5, follows_each: true, ..HttpPlan::default() };
        http.reach.overrides = vec!["*:443:127.0.0.5".parse().unwrap()];
        let overrides = on("https://h/", pin).pinned(&http).reach.overrides;
        let leads_to = |host| overrides.iter().find_map(|rule| rule.addresses_of(host, 443)).unwrap()[0].to_string();
        assert_eq!((leads_to("127.0.0.9"), leads_to("other")), ("127.0.0.9".into(), "127.0.0.5".into()));
    }

    #[test]
    fn through_a_proxy_it_is_the_proxy_that_is_pinned() {
        let pin = SocketAddr::from(([127, 0, 0, 9], 3128));
        let route = on("https://h/", pin);
        let proxy = Some(duel_model::ProxyPlan { host: "proxy.example".into(), port: 8080 });
        let pinned = route.pinned(&HttpPlan { proxy, ..HttpPlan::default() });
        assert_eq!(pinned.proxy.unwrap().to_string(), "127.0.0.9:3128");
        assert!(pinned.connect_to.is_empty());
    }

    #[test]
    fn a_pinned_target_is_reached_without_its_name() {
        let stop = Arc::default();
        let peer = server();
        let address = format!("http://no-such-host.invalid:{}/", peer.port());
        let route = Route { peer: Some(peer.to_string()), ..on(&address, peer) };
        let plan = plan(route.address.clone());
        assert!(contact(&plan, &route.address, None, &stop).is_err());
        let found = contact(&plan, &route.address, Some(&route), &stop).unwrap();
        assert_eq!(Route::of(&found), route);
        assert_eq!(route.check(found.negotiated.as_ref()), Ok(()));
    }

    #[test]
    fn the_recorded_address_is_taken_again_if_the_name_still_leads_there() {
        let (stop, peer) = (Arc::default(), server());
        let address = format!("http://{peer}/");
        let route = Route::again(&plan(address.clone()), &address, Some(&at(&peer.to_string())), &stop);
        assert_eq!((route.pin, route.doubt("A")), (Some(peer), None));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_a_doubt_and_no_probe_counts() {
        let (stop, peer) = (Arc::default(), server());
        let address = format!("http://{peer}/");
        let route = Route::again(&plan(address.clone()), &address, Some(&at("192.0.2.1:80")), &stop);
        assert_eq!(route.pin, None);
        let doubt = route.doubt("A").unwrap();
        assert!(
            doubt.text.contains(&format!("leads to {peer} now")) && doubt.text.contains("192.0.2.1:80"),
            "{doubt:?}"
        );
        assert!(route.check(Some(&at(&peer.to_string()))).is_err());
        assert_eq!(route.check(Some(&at("192.0.2.1:80"))), Ok(()));
    }

    #[test]
    fn what_was_not_recorded_pins_nothing() {
        let (stop, peer) = (Arc::default(), server());
        let address = format!("http://{peer}/");
        let route = Route::again(&plan(address.clone()), &address, None, &stop);
        assert_eq!((route.pin, route.doubt("A"), route.check(Some(&at("192.0.2.1:80")))), (None, None, Ok(())));
    }
}
