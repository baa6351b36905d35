//! How many descriptors a plan opens at a time, told before any load: a run that meets the limit half-way measures the limit.
//!
//! Every term is something that is opened; `crates/cli/tests/program/descriptors.rs` holds the sum against what real runs have open.

use crate::contact::Factory;
use crate::{LabError, kinds};
use duel_load::{LimitError, ensure_descriptors};
use duel_model::{HostAccess, HostPlan, Plan};

/// Standard input, output and error.
const STREAMS: u64 = 3;
/// The archive's file, its write-ahead log and the index of that, and for a moment its folder.
const ARCHIVE: u64 = 4;
/// `--metrics`: one that listens, eight that answer and one that wakes it up in the end. `--otlp`: a connection.
const TELEMETRY: u64 = 11;
/// For a moment each: lists in `/proc` or `/dev`, certificates, a body or a list from a file, the resolver's file and its sockets
/// for both families, a connection that the first contact makes.
const FOR_A_MOMENT: u64 = 8;
/// A shell on this machine: what it is told, what it answers, what it complains about.
const LOCAL_HOST: u64 = 3;
/// One over ssh, a child like the shell: the same, and the settings that it reads.
const SSH_HOST: u64 = LOCAL_HOST + 1;
/// A management controller: a connection.
const CONTROLLER: u64 = 1;

/// Most requests under way at a time, on all connections to a target together: as many as Linux lets a process open files of
/// (`fs.nr_open`). Each takes some memory before the first is sent, and whoever asks for more has mistyped.
const MOST_LANES: u64 = 1 << 20;

/// Raises the limit to what the plan opens, as far as that is known before its targets were contacted.
pub(crate) fn ensure(plan: &Plan) -> Result<(), LabError> {
    let lanes = u64::from(plan.lanes());
    if lanes > MOST_LANES {
        return Err(LabError::Plan(format!(
            "{lanes} requests at a time are more than can be kept apart; use at most {MOST_LANES} connections, or streams of \
             them all together"
        )));
    }
    ensure_descriptors(needed(plan, plan.targets.iter().map(|_| 1)))?;
    Ok(())
}

/// The same, where the first contact has shown to how many places lanes are connected.
pub(crate) fn ensure_for(plan: &Plan, factories: &[Factory]) -> Result<(), LimitError> {
    ensure_descriptors(needed(plan, factories.iter().map(|factory| factory.places()))).map(drop)
}

/// What lanes have open at each place that they are connected to, and everything else, which is counted above.
fn needed(plan: &Plan, places: impl Iterator<Item = u64>) -> u64 {
    let targets = plan.targets.len() as u64;
    let kind = kinds::of(&plan.workload);
    // What is kept stays open while other targets have their turn, as threads do.
    let keeps = kind.keeps_lanes(&plan.workload) || plan.schema().lanes_are_threads();
    let places: u64 = if keeps { places.sum() } else { places.max().unwrap_or(0) };
    let connections = u64::from(plan.load.connections).saturating_mul(places * kind.descriptors_per_lane());
    // Each worker has an event loop. While a target gets new connections the workers that will make them are there, and those
    // that they take the place of; a connection is made with the first request on it, when the old ones are closed.
    let workers = u64::from(plan.load.threads.min(plan.load.connections));
    let loops = (targets + 1) * workers * (1 + kind.descriptors_per_worker(&plan.workload));
    let hosts: u64 = plan.targets.iter().filter_map(|target| target.host.as_ref()).map(of_host).sum();
    connections.saturating_add(loops + hosts + STREAMS + ARCHIVE + TELEMETRY + FOR_A_MOMENT)
}

fn of_host(host: &HostPlan) -> u64 {
    let shell = match host.access {
        HostAccess::Local => LOCAL_HOST,
        HostAccess::Ssh(_) => SSH_HOST,
    };
    shell + if host.redfish.is_some() { CONTROLLER } else { 0 }
}
