//! The paths to the targets' machines: exchanges with a `duel net serve` on each of them.

use super::plan_of;
use crate::explain::Site;
use crate::{LabError, contact, kinds};
use duel_model::{LoadPlan, LoopKind, Plan, Probe, WorkloadPlan};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes are counted of all ops, and shared out over those that did not fail: of so few failures that is the same.
const LEAST_OK_PER_FAILED: u64 = 100;

/// Exchanges that bring as many bytes as the answers of the target that sends least on average, as many at a time as ops are in flight under a probe.
pub(super) fn plan(site: &Site<'_>, probe: &Probe) -> Result<Plan, String> {
    let seen = site.known.comparison;
    if seen.iter().any(|seen| seen.failed * LEAST_OK_PER_FAILED > seen.ok) {
        return Err("ops failed, and how many bytes the others brought is not known".to_owned());
    }
    let bytes = seen.iter().map(|seen| seen.bytes_in_per_op);
    // With less than what all targets answer with no path passes for slower than it is.
    let least = bytes.reduce(|least, bytes| Some(least?.min(bytes?))).flatten();
    let least =
        least.filter(|bytes| bytes.is_finite()).ok_or("how many bytes the targets' answers have is not known")?;
    Ok(exchanges(site.plan, site.net_servers, least as u64, site.plan.varied(&probe.variation).ops_at_a_time()))
}

fn exchanges(above: &Plan, net_servers: &[String], bytes: u64, at_a_time: u32) -> Plan {
    let load = LoadPlan {
        connections: at_a_time,
        threads: above.load.threads.clamp(1, at_a_time),
        kind: LoopKind::Closed { think_ns: 0 },
        connect_timeout_ns: above.load.connect_timeout_ns,
        op_timeout_ns: above.load.op_timeout_ns,
        busy_poll: above.load.busy_poll,
        ..LoadPlan::default()
    };
    plan_of(above, net_servers, WorkloadPlan::Plain(kinds::exchanges(bytes)), load)
}

/// Asks each `duel net serve` once, so that one which does not answer is known before any load.
pub(crate) fn ensure_net_servers(above: &Plan, net_servers: &[String], stop: &Arc<AtomicBool>) -> Result<(), LabError> {
    if net_servers.is_empty() {
        return Ok(());
    }
    contact::contact_all(&exchanges(above, net_servers, 1, 1), &[], stop).map(|_| ()).map_err(|error| match error {
        // It is not the target that does not answer.
        LabError::Target { name, text } => LabError::Target { name: format!("--net-server {name}"), text },
        error => error,
    })
}
