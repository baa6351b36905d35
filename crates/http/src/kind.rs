//! The web as a kind of work.

use crate::contact;
use crate::factory::HttpFactory;
use crate::link::tls;
use crate::reach::source;
use crate::requests::authority_and_target;
use duel_load::{Asked, Contact, Kind, LeadsTo, WorkloadError};
use duel_model::web::settings::{BODY_SIZE, METHOD};
use duel_model::{Factor, Facts, HttpPlan, Plan, Schema, WorkloadPlan, sanitize_line, web};
use std::net::{IpAddr, SocketAddr};

/// The kind. Addresses that no kind claims are checked by its rules, too, so that what is no address is told of them.
#[derive(Debug, Clone, Copy)]
pub struct Web;

/// The bell by which a worker that follows redirects hears that a name was looked up, and where it is heard.
const BELL: u64 = 2;

impl Kind for Web {
    fn schema(&self) -> &'static Schema {
        &web::SCHEMA
    }

    fn claims(&self, address: &str) -> bool {
        authority_and_target(address).is_some()
    }

    fn check_address(&self, address: &str) -> Result<(), WorkloadError> {
        HttpFactory::check_address(address)
    }

    fn check(&self, workload: &WorkloadPlan, address: &str) -> Result<(), WorkloadError> {
        HttpFactory::check_address(address)?;
        tls::check(of(workload)?)
    }

    fn contact(&self, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
        contact::first(of(&asked.plan.workload)?, asked)
    }

    fn assume(&self, asked: &Asked<'_>) -> Result<Contact, WorkloadError> {
        contact::assumed(of(&asked.plan.workload)?, asked)
    }

    fn settled(&self, plan: &Plan, sent: &[Option<&WorkloadPlan>]) -> Result<WorkloadPlan, WorkloadError> {
        let found = sent.iter().zip(&plan.targets).filter_map(|(sent, target)| Some(((*sent)?, target)));
        let Some((first, of_first)) = found.clone().next() else { return Ok(plan.workload.clone()) };
        if let Some((_, target)) = found.clone().find(|(sent, _)| *sent != first) {
            return Err(WorkloadError(format!(
                "redirects leave other requests for {} than for {} (credentials stay with their host, and a POST may become a \
                 GET), so they cannot be compared; give the addresses that the redirects lead to, and no --follow",
                sanitize_line(&target.name),
                sanitize_line(&of_first.name)
            )));
        }
        let varies_request = |factor: &Factor| [METHOD.name, BODY_SIZE.name].contains(&factor.name());
        let request = |http: &HttpPlan| (http.method.clone(), http.body.clone(), http.requests.form.clone());
        if request(of(first)?) != request(of(&plan.workload)?) && plan.factors.iter().any(varies_request) {
            return Err(WorkloadError(
                "a redirect makes a GET of the request, so methods and bodies cannot be varied; give the address that it leads \
                 to, and no --follow"
                    .into(),
            ));
        }
        Ok(first.clone())
    }

    /// The status tells.
    fn has_returned(&self, before: Option<&Facts>, now: Option<&Facts>) -> Result<(), String> {
        let status = |facts: Option<&Facts>| facts.and_then(|facts| facts.count(web::STATUS));
        match (status(before), status(now)) {
            (before, now) if before == now => Ok(()),
            (Some(before), Some(now)) => Err(format!("it answers with status {now} instead of {before}")),
            _ => Err("it gives no answer".to_owned()),
        }
    }

    fn leads_to(&self, workload: &WorkloadPlan) -> LeadsTo {
        match of(workload) {
            Ok(http) if http.unix_socket.is_some() => LeadsTo::UnixSocket,
            Ok(http) if http.proxy.is_some() => LeadsTo::Proxy,
            Ok(_) => LeadsTo::Server,
            Err(_) => LeadsTo::Unknown,
        }
    }

    fn server_port(&self, address: &str) -> Option<u16> {
        url::Url::parse(address).ok()?.port_or_known_default()
    }

    fn other_sources(&self, peers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
        source::other_sources(peers)
    }

    fn keeps_lanes(&self, workload: &WorkloadPlan) -> bool {
        of(workload).is_ok_and(|http| http.keepalive)
    }

    fn takes_turns(&self) -> bool {
        true
    }

    fn ops_differ(&self, workload: &WorkloadPlan) -> bool {
        of(workload).is_ok_and(|http| http.requests.differ())
    }

    /// Where the requests cannot be read any more nothing can be sent either.
    fn round_ops(&self, workload: &WorkloadPlan, address: &str) -> Option<u64> {
        crate::factory::round_ops(of(workload).ok()?, address).ok().flatten()
    }

    /// A connection.
    fn descriptors_per_lane(&self) -> u64 {
        1
    }

    fn descriptors_per_worker(&self, workload: &WorkloadPlan) -> u64 {
        if of(workload).is_ok_and(|http| http.follows_each) { BELL } else { 0 }
    }
}

pub(crate) fn of(workload: &WorkloadPlan) -> Result<&HttpPlan, WorkloadError> {
    match workload {
        WorkloadPlan::Http(http) => Ok(http),
        WorkloadPlan::Plain(_) => Err(WorkloadError("these settings are of another kind of work".to_owned())),
    }
}
