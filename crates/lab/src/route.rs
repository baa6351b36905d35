//! The way to a target: probes go where the comparison went, whatever its name leads to by now.
//!
//! A name may lead to several servers in turn (round-robin DNS). Looked up anew for each probe, it would lead a probe
//! to another server than the comparison, and the difference of two servers would pass for the effect of a variation.

use crate::contact::contact;
use crate::{LabError, kinds};
use duel_load::{Contact, Network};
use duel_model::{Doubt, DoubtId, Facts, PEER, Plan, WorkloadPlan, sanitize_line};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Where the comparison reached a target.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Route {
    /// The target's address, and where it is pinned the one that load is sent to.
    pub(crate) address: String,
    /// The work as it is sent there, where that need not be what was asked for.
    sent: Option<WorkloadPlan>,
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
        let peer = peer(contact.facts.as_ref());
        let pin = peer.as_ref().and_then(|peer| peer.parse().ok());
        let (address, sent) = (contact.address.clone(), contact.sent.clone());
        Self { address, sent, pin, peer, moved_to: None, network: None }
    }

    /// The way to a target that an earlier comparison found at `before`, from what its name leads to now.
    pub(crate) fn again(plan: &Plan, address: &str, before: Option<&Facts>, stop: &Arc<AtomicBool>) -> Self {
        let unknown = Self {
            address: address.to_owned(),
            sent: None,
            pin: None,
            peer: peer(before),
            moved_to: None,
            network: None,
        };
        let Some(before) = &unknown.peer else { return unknown };
        // A target that cannot be reached is for each probe to tell.
        let Ok(found) = contact(plan, address, None, stop) else { return unknown };
        let now = peer(found.facts.as_ref());
        if now.as_ref() == Some(before) {
            return Self::of(&found);
        }
        match before.parse().ok().filter(|before| found.opens.leads_to(before)) {
            Some(before) => Self { address: found.address, sent: found.sent, pin: Some(before), ..unknown },
            None => Self { moved_to: now, ..unknown },
        }
    }

    /// The same server under another address.
    pub(crate) fn to(&self, address: &str) -> Self {
        Self { address: address.to_owned(), ..self.clone() }
    }

    /// Another address of the same server.
    pub(crate) fn by(&self, peer: SocketAddr) -> Self {
        Self { pin: Some(peer), peer: Some(peer.to_string()), ..self.clone() }
    }

    /// The same addresses in another network; `None` where it is not known which address that is.
    pub(crate) fn within(&self, network: Network) -> Option<Self> {
        self.pin.is_some().then(|| Self { network: Some(network), ..self.clone() })
    }

    /// What connections are made to, as far as that is pinned.
    pub(crate) fn pin(&self) -> Option<SocketAddr> {
        self.pin
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

/// The plan as it is sent on these ways, behind what the first contact was led over: that is what is measured, kept and shown.
pub(crate) fn settled(plan: &Plan, routes: &[Route]) -> Result<Plan, LabError> {
    let sent: Vec<Option<&WorkloadPlan>> = routes.iter().map(|route| route.sent.as_ref()).collect();
    if sent.iter().all(Option::is_none) {
        return Ok(plan.clone());
    }
    let settled = kinds::of(&plan.workload).settled(plan, &sent);
    let mut plan = Plan { workload: settled.map_err(|error| LabError::Plan(error.to_string()))?, ..plan.clone() };
    for (target, route) in plan.targets.iter_mut().zip(routes) {
        target.address.clone_from(&route.address);
    }
    Ok(plan)
}

fn peer(negotiated: Option<&Facts>) -> Option<String> {
    Some(negotiated?.text(PEER)?.to_owned())
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
        Facts::default().with(PEER, peer)
    }

    fn on(address: &str, pin: SocketAddr) -> Route {
        Route { address: address.into(), sent: None, pin: Some(pin), peer: None, moved_to: None, network: None }
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
        assert_eq!(route.check(found.facts.as_ref()), Ok(()));
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
