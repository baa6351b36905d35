//! First contact with all targets of a plan, before any load, so that what cannot work is said at once.

use crate::route::Route;
use crate::{LabError, descriptors, kinds};
use duel_load::{Asked, Contact, Opens};
use duel_model::{Plan, WorkloadPlan, sanitize_line};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What makes a target's load.
pub(crate) type Factory = Arc<dyn Opens>;

/// Contacts every target of the plan in turn, on the way that is known of it already, if any.
pub(crate) fn contact_all(plan: &Plan, routes: &[Route], stop: &Arc<AtomicBool>) -> Result<Vec<Contact>, LabError> {
    contact_treated(plan, &plan.workload, routes, stop)
}

/// The same where the plan is a treatment of work that is this without any.
pub(crate) fn contact_treated(
    plan: &Plan,
    untreated: &WorkloadPlan,
    routes: &[Route],
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Contact>, LabError> {
    of_all(plan, |index, address| {
        let contact = ask(&Asked { untreated, ..asked(plan, address, routes.get(index), stop) }, routes.get(index));
        // Whether it answered is not known, whatever a request that was cut looks like.
        if stop.load(Ordering::Relaxed) { Err(LabError::Interrupted) } else { Ok(contact) }
    })
}

/// Prepares every target of the plan and sends nothing: see [`crate::Lab::to_the_letter`].
pub(crate) fn assume_all(plan: &Plan, untreated: &WorkloadPlan) -> Result<Vec<Contact>, LabError> {
    let (kind, stop) = (kinds::of(&plan.workload), Arc::default());
    of_all(plan, |_, address| {
        let assumed = kind.assume(&Asked { untreated, ..asked(plan, address, None, &stop) });
        Ok(assumed.map_err(|error| error.to_string()))
    })
}

fn of_all(
    plan: &Plan,
    mut of: impl FnMut(usize, &str) -> Result<Result<Contact, String>, LabError>,
) -> Result<Vec<Contact>, LabError> {
    descriptors::ensure(plan)?;
    let targets = plan.targets.iter().enumerate();
    targets
        .map(|(index, target)| {
            of(index, &target.address)?.map_err(|text| LabError::Target { name: sanitize_line(&target.name), text })
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
    ask(&asked(plan, address, route, stop), route)
}

fn ask(asked: &Asked<'_>, route: Option<&Route>) -> Result<Contact, String> {
    let contact = kinds::of(&asked.plan.workload).contact(asked).map_err(|error| error.to_string())?;
    match route {
        Some(route) => route.check(contact.facts.as_ref()).map(|()| contact),
        None => Ok(contact),
    }
}

fn asked<'a>(plan: &'a Plan, address: &'a str, route: Option<&'a Route>, stop: &'a Arc<AtomicBool>) -> Asked<'a> {
    Asked {
        plan,
        untreated: &plan.workload,
        address: route.map_or(address, |route| &route.address),
        pin: route.and_then(Route::pin),
        network: route.and_then(|route| route.network.as_ref()),
        stop,
    }
}
