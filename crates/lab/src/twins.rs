//! Private twins in the place of targets' servers.

use crate::Lab;
use crate::hosts::Hosts;
use crate::kinds;
use crate::route::Route;
use crate::servers::still_serving;
use crate::watch::Watcher;
use duel_load::{Copying, LeadsTo, Network, PrivateCopy};
use duel_model::{
    CopyPlan, CopySetting, Declaration, Facts, Plan, TwinPlan, TwinReading, Value, format_bytes, sanitize_line,
};
use duel_twin::{ServerProcess, Twin, TwinOrder};
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A twin in the place of a target's server, until it is dropped.
#[derive(Debug)]
pub(crate) struct StandIn {
    twin: Stand,
    /// The ways to all targets, one of which leads to the twin.
    pub(crate) routes: Vec<Route>,
}

/// What stands there.
#[derive(Debug)]
enum Stand {
    Process(Twin),
    Copy(Box<dyn PrivateCopy>),
}

impl StandIn {
    /// What the twin was started as.
    pub(crate) fn reading(&self) -> &TwinReading {
        match &self.twin {
            Stand::Process(twin) => twin.reading(),
            Stand::Copy(copy) => copy.reading(),
        }
    }
}

impl Lab {
    /// Starts a twin of a target's server. Errors are sentences for the user.
    pub(crate) fn stand_in(
        &self,
        plan: &Plan,
        twin: &TwinPlan,
        hosts: &Hosts,
        routes: &[Route],
        watcher: &mut dyn Watcher,
    ) -> Result<StandIn, String> {
        if let Some(copy) = &twin.copy {
            return self.copy_stands_in(plan, twin.of, copy, routes, watcher);
        }
        match kinds::of(&plan.workload).leads_to(&plan.workload) {
            LeadsTo::UnixSocket => return Err("a server that is reached by a Unix socket has no twin".to_owned()),
            LeadsTo::Proxy => return Err("a server that is reached by a proxy has no twin".to_owned()),
            LeadsTo::Server | LeadsTo::Unknown => {}
        }
        let route = routes.get(twin.of).ok_or("there is no such target")?;
        let address = route.pin().ok_or("where the comparison was connected to is not known")?;
        let server = ServerProcess::read(still_serving(hosts, twin.of)?).map_err(|error| error.to_string())?;
        // What was read is of that process only if it is still there.
        still_serving(hosts, twin.of)?;
        let order = TwinOrder { server: &server, change: twin.change, mask: twin.mask.as_deref(), address };
        let twin_of = twin.of;
        let twin = Twin::start(&order, &self.stop).map_err(|error| error.to_string())?;
        let network = Network::of_process(twin.network_pid()).map_err(|error| error.to_string())?;
        let mut routes = routes.to_vec();
        routes[twin_of] =
            routes[twin_of].within(network).ok_or("where the comparison was connected to is not known")?;
        Ok(StandIn { twin: Stand::Process(twin), routes })
    }

    /// The same with a private copy of what the target holds.
    fn copy_stands_in(
        &self,
        plan: &Plan,
        of: usize,
        order: &CopyPlan,
        routes: &[Route],
        watcher: &mut dyn Watcher,
    ) -> Result<StandIn, String> {
        let kind = kinds::of(&plan.workload);
        let mut routes = routes.to_vec();
        let route = routes.get_mut(of).ok_or("there is no such target")?;
        let (watcher, began) = (RefCell::new(watcher), Instant::now());
        let name = sanitize_line(&plan.targets[of].name);
        let tells = |copying| watcher.borrow_mut().meanwhile(&told(&name, copying, began.elapsed()));
        let copy = kind.copy(plan, &route.address, order, &self.stop, &tells).map_err(|error| error.to_string())?;
        *route = route.to(copy.address());
        Ok(StandIn { twin: Stand::Copy(copy), routes })
    }
}

/// How far a private copy of this target is.
fn told(name: &str, Copying { step, bytes }: Copying, since: Duration) -> String {
    let bytes = bytes
        .map(|(bytes, whole)| format!(" ({} of about {})", format_bytes(bytes as f64), format_bytes(whole as f64)));
    format!("a private copy of {name} is made: {step}{}, {} s", bytes.unwrap_or_default(), since.as_secs())
}

/// Whether a twin answers as its server does; if not, in what it differs. One that lacks something that the server can
/// reach (an upstream, a name service, another machine) answers, too, but something else. A setting that was changed has to be as it
/// was ordered.
pub(crate) fn answers_alike(
    server: Option<&Facts>,
    twin: Option<&Facts>,
    changed: Option<&CopySetting>,
) -> Result<(), String> {
    let (Some(server), Some(twin)) = (server, twin) else {
        return Err("the twin's first answer cannot be held against the server's: one of them is not known".to_owned());
    };
    let shown =
        |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), |value| sanitize_line(&value.to_string()));
    for declared in Declaration::all().filter(|declared| declared.is_of_twins) {
        let (of_server, of_twin) = (server.value(declared.name), twin.value(declared.name));
        if let Some(changed) = changed.filter(|changed| changed.fact == declared.name) {
            if of_twin.map(ToString::to_string).as_ref() != Some(&changed.value) {
                return Err(format!(
                    "the change was not taken: {} is {} where {} was ordered",
                    sanitize_line(&changed.name),
                    shown(of_twin),
                    sanitize_line(&changed.value)
                ));
            }
        } else if of_server != of_twin {
            return Err(format!(
                "what was started is no twin: the {} is {} where the server's is {}; something that the server \
                 reaches may be missing in the twin's network",
                declared.noun,
                shown(of_twin),
                shown(of_server)
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::web;

    #[test]
    fn how_far_a_copy_is_can_be_told() {
        let copied = Copying { step: "its data is copied", bytes: Some((45_100_000, 100_000_000)) };
        assert_eq!(
            told("B", copied, Duration::from_millis(12_900)),
            "a private copy of B is made: its data is copied (45.1 MB of about 100 MB), 12 s"
        );
        let starts = Copying { step: "its server starts", bytes: None };
        assert_eq!(told("B", starts, Duration::ZERO), "a private copy of B is made: its server starts, 0 s");
    }

    #[test]
    fn what_answers_otherwise_is_no_twin() {
        let server = Facts::default().with(web::STATUS, 200).with(web::BODY_BYTES, 9);
        assert_eq!(answers_alike(Some(&server), Some(&server), None), Ok(()));
        // Each connection has a time of its own.
        let later = server.clone().with(web::LOOKUP_NS, 7);
        assert_eq!(answers_alike(Some(&server), Some(&later), None), Ok(()));
        let bad_gateway = server.clone().with(web::STATUS, 502);
        let why = answers_alike(Some(&server), Some(&bad_gateway), None).unwrap_err();
        assert!(why.contains("status is 502 where the server's is 200"), "{why}");
        assert!(answers_alike(Some(&server), None, None).is_err());
    }
}
