//! The only composer: [`Lab::run`] turns a plan into a run, [`judge`] a run into a verdict, [`Lab::explain`] a run
//! into findings.
//!
//! The way of the data: for each block and each target in seeded order, `load` drives `work`; the slots make the
//! [`Run`]; `stats` judges it; `diagnose` asks for probes, which are run by the same benches and judged the same way.

mod below;
mod bench;
mod blocks;
mod cache;
mod clocks;
mod compare;
mod contact;
mod courses;
mod descriptors;
mod explain;
mod factorial;
mod held;
mod hosts;
mod identity;
pub mod kinds;
mod lens;
mod ports;
mod pulse;
mod restart;
mod rounds;
mod route;
mod search;
mod servers;
mod single;
mod streams;
mod turns;
mod twins;
mod waiting;
mod watch;

pub use duel_lens::ChildCommand;
pub use duel_load::{Failure, Live, OpRecord, PhaseTimes, Traffic};
pub use duel_stats::{CheckStanding, CheckSubject, Checked, TargetFigures, check};
pub use explain::DiagnosisPlan;
pub use hosts::{check_redfish, host_facts};
pub use identity::new_run_id;
pub use servers::{forget_unproven_ids, is_behind_socket, port_on_this_machine, server_port};
pub use watch::{SearchView, SlotView, TargetView, View, Watcher};

use bench::Bench;
use duel_load::{LimitError, SessionError};
use duel_model::{Interruption, Plan, Run, RunStatus, SlotRole, Verdict, sanitize_line};
use hosts::Hosts;
use restart::Restarts;
use route::Route;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the targets of a run were reached, so that its probes need not look names up again.
#[derive(Debug)]
struct Ways {
    run_id: String,
    routes: Vec<Route>,
}

/// Where experiments are made.
#[derive(Debug, Clone)]
pub struct Lab {
    stop: Arc<AtomicBool>,
    last_ways: Arc<Mutex<Option<Ways>>>,
    lens: Option<ChildCommand>,
    is_to_the_letter: bool,
}

/// A run could not be made; every text is a sentence for the user.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A target cannot be measured.
    #[error("{name}: {text}")]
    Target {
        /// Name of the target.
        name: String,
        /// What is wrong with it and what to try.
        text: String,
    },
    /// The plan asks for something that does not exist.
    #[error("{0}")]
    Plan(String),
    /// The load generator failed.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Too few descriptors.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The user stopped it before anything was measured.
    #[error("interrupted before anything was measured")]
    Interrupted,
}

impl Lab {
    /// A lab whose experiments end early, keeping what they have, once `stop` is set.
    pub fn new(stop: Arc<AtomicBool>) -> Self {
        Self { stop, last_ways: Arc::default(), lens: None, is_to_the_letter: false }
    }

    /// The same, able to measure the libcrypto of a server on this machine in a process that `child` starts. On other
    /// machines it is measured with what is there.
    pub fn with_lens(self, child: ChildCommand) -> Self {
        Self { lens: Some(child), ..self }
    }

    /// The same, that sends what the plan says, no request more and none less: there is no first contact, and a target that
    /// does not answer is loaded until the plan's end.
    pub fn to_the_letter(self) -> Self {
        Self { is_to_the_letter: true, ..self }
    }

    /// Asks each `duel net serve` once that a diagnosis would ask, so that one which does not answer is known before any load.
    ///
    /// # Errors
    ///
    /// A sentence about the first one that does not answer as one.
    pub fn ensure_net_servers(&self, plan: &Plan, diagnosis: &DiagnosisPlan) -> Result<(), LabError> {
        below::ensure_net_servers(plan, &diagnosis.net_servers, &self.stop)
    }

    /// Executes a plan: one target is loaded as the plan's bound says, several are compared. With factors every treatment
    /// is run on every target, be it one or several.
    ///
    /// The run holds the plan without its secrets. It is returned also when it ended early; an error means that there
    /// is nothing to keep.
    pub fn run(&self, plan: &Plan, watcher: &mut dyn Watcher) -> Result<Run, LabError> {
        factorial::check(plan)?;
        let mut run = identity::new_run(plan);
        // Without factors this is the plan itself.
        let first = &plan.treated(0);
        let clock = clocks::Clocks::read();
        watcher.label("connecting");
        let contacts = if self.is_to_the_letter {
            contact::assume_all(first, &plan.workload)?
        } else {
            contact::contact_treated(first, &plan.workload, &[], &self.stop)?
        };
        run.first_contact = contacts.iter().map(|contact| contact.facts.clone()).collect();
        let routes: Vec<Route> = contacts.iter().map(Route::of).collect();
        // From here on, what is sent behind what the first contact was led over is the plan.
        let plan = &route::settled(plan, &routes)?;
        let first = &plan.treated(0);
        run.plan = plan.redacted();
        let mut treatments = factorial::prepare(plan, &contacts, &routes, &self.stop)?;
        let restarts = Restarts::of(plan, &routes, &run.first_contact, &self.stop);
        *self.last_ways() = Some(Ways { run_id: run.id.clone(), routes });
        if plan.targets.iter().any(|target| target.host.is_some()) {
            watcher.label("reading the hosts");
        }
        let peers = servers::peers(plan, |index| run.first_contact[index].as_ref());
        let hosts = Hosts::watch_and_ask(plan, &peers);
        servers::note_processes(&mut run.plan, &hosts);
        let mut bench = Bench::open(first, contacts, Arc::clone(&self.stop))?;
        watcher.begun(&run);
        let result = if !treatments.is_empty() {
            factorial::run(&mut bench, plan, &mut treatments, &hosts, &mut run, watcher)
        } else if plan.load.shape.search.is_some() {
            search::run(&mut bench, plan, &hosts, &mut run, watcher)
        } else if plan.targets.len() == 1 {
            single::run(&mut bench, plan, &hosts, &mut run, watcher, self.is_to_the_letter)
        } else if !plan.load.shape.stages.is_empty() {
            courses::run(&mut bench, plan, &hosts, &mut run, watcher)
        } else {
            compare::run(&mut bench, plan, restarts, &hosts, &mut run, watcher)
        };
        match result {
            Ok(()) => {}
            // What was measured before stays; warm-up alone says nothing.
            Err(error) if !run.slots.iter().any(|slot| matches!(slot.role, SlotRole::Measured | SlotRole::Search)) => {
                return Err(error);
            }
            Err(error) => {
                run.status = RunStatus::Interrupted(Interruption::Unfinished);
                run.doubts.push(duel_model::Doubt {
                    id: duel_model::DoubtId::NotRecorded,
                    target: None,
                    text: format!("the run broke off: {error}"),
                });
            }
        }
        if let Some(waiting) = &mut run.waiting {
            waiting.gave_way = bench.has_given_way();
        }
        for (seen, told) in run.first_contact.iter_mut().zip(bench.told_after()) {
            if let Some(seen) = seen {
                seen.0.extend(told.0);
            }
        }
        run.doubts.extend(contradictions(plan, bench.close()));
        let (records, doubts) = hosts.finish(plan, !self.is_stopped());
        run.hosts = records;
        run.doubts.extend(doubts);
        run.doubts.extend(clock.doubt());
        if self.is_stopped() && run.status == RunStatus::Complete {
            run.status = RunStatus::Interrupted(Interruption::User);
        }
        Ok(run)
    }

    fn last_ways(&self) -> MutexGuard<'_, Option<Ways>> {
        self.last_ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the user has stopped it.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What targets hold against what was done to them, as doubts.
fn contradictions(plan: &Plan, found: Vec<Result<Option<String>, String>>) -> Vec<duel_model::Doubt> {
    let doubt = |(target, found): (&duel_model::Target, Result<Option<String>, String>)| {
        let name = sanitize_line(&target.name);
        let (id, text) = match found {
            Ok(None) => return None,
            Ok(Some(what)) => (duel_model::DoubtId::ContentWrong, format!("{name}: {what}")),
            Err(why) => {
                let text = format!("whether {name} holds what was written could not be found out: {why}");
                (duel_model::DoubtId::NotRecorded, text)
            }
        };
        Some(duel_model::Doubt { id, target: Some(target.name.clone()), text })
    };
    plan.targets.iter().zip(found).filter_map(doubt).collect()
}

/// What a run's slots say. Pure: judging again gives the same verdict.
pub fn judge(run: &Run) -> Verdict {
    Verdict { caches: cache::models(run), ..duel_stats::judge(run) }
}

/// Checks a target's address without touching the network.
pub fn check_address(name: &str, address: &str) -> Result<(), LabError> {
    kinds::claiming(address)
        .check_address(address)
        .map_err(|error| LabError::Target { name: sanitize_line(name), text: error.to_string() })
}

/// Most lanes where each of them is a thread or a process of its own: a hundred thousand of them stop the machine.
const MOST_LANES_WITH_THREADS: u32 = 1024;

/// Checks what a plan says of its work on each of its targets, without doing anything.
pub fn check_settings(plan: &Plan) -> Result<(), LabError> {
    let schema = plan.schema();
    if schema.lanes_are_threads() && plan.load.connections > MOST_LANES_WITH_THREADS {
        return Err(LabError::Plan(format!(
            "{} threads of {}: more than {MOST_LANES_WITH_THREADS} only get in each other's way",
            plan.load.connections, schema.kind
        )));
    }
    plan.targets.iter().try_for_each(|target| {
        kinds::of(&plan.workload)
            .check(&plan.workload, &target.address)
            .map_err(|error| LabError::Target { name: sanitize_line(&target.name), text: error.to_string() })
    })
}
