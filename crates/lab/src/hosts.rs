//! The targets' machines, watched while they are under load.
//!
//! That a machine cannot be read never ends a run: it is said, and everything else goes on.

use duel_host::{HostAccess, HostError, HostWatch, Server};
use duel_model::{
    Doubt, DoubtId, HostAccess as AccessPlan, HostFacts, HostPlan, HostRecord, HostSample, Plan, ServerPlan,
    sanitize_line,
};
use std::time::Duration;

/// The machines of a plan's targets, in the plan's order.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    watches: Vec<Option<HostWatch>>,
    /// Machines that could not be read.
    doubts: Vec<Doubt>,
}

impl Hosts {
    /// Begins to watch every machine that the plan says how to reach.
    pub(crate) fn open(plan: &Plan) -> Self {
        let mut hosts = Self::default();
        for target in &plan.targets {
            let watch = target.host.as_ref().and_then(|host| match watch(host) {
                Ok(watch) => Some(watch),
                Err(error) => {
                    hosts.doubt(&target.name, &error.to_string());
                    None
                }
            });
            hosts.watches.push(watch);
        }
        hosts
    }

    /// Whether any machine is watched.
    pub(crate) fn any(&self) -> bool {
        self.watches.iter().any(Option::is_some)
    }

    /// What each machine is, where it is watched.
    pub(crate) fn facts(&self) -> Vec<Option<HostFacts>> {
        self.watches.iter().map(|watch| watch.as_ref().map(|watch| watch.facts().clone())).collect()
    }

    /// A sample of this target's machine; `None` where it is not watched or does not answer any more.
    pub(crate) fn sample(&self, target: usize) -> Option<HostSample> {
        self.watches.get(target)?.as_ref()?.sample().ok()
    }

    /// Has lines of shell run on this target's machine; errors are sentences.
    pub(crate) fn run(&self, target: usize, script: &str, timeout: Duration) -> Result<String, String> {
        let watch = self.watches.get(target).and_then(Option::as_ref).ok_or("the machine is not read")?;
        watch.run(script, timeout).map_err(|error| error.to_string())
    }

    /// Ends watching: what the machines were and did, and what weakens it.
    pub(crate) fn finish(self, plan: &Plan) -> (Vec<Option<HostRecord>>, Vec<Doubt>) {
        let Self { watches, mut doubts } = self;
        let mut records = Vec::new();
        for (watch, target) in watches.into_iter().zip(&plan.targets) {
            let record = watch.map(HostWatch::finish);
            for text in record.iter().flat_map(|record| &record.doubts) {
                doubts.push(doubt(&target.name, text));
            }
            records.push(record);
        }
        if records.iter().all(Option::is_none) {
            records.clear();
        }
        (records, doubts)
    }

    fn doubt(&mut self, name: &str, text: &str) {
        self.doubts.push(doubt(name, text));
    }
}

fn doubt(name: &str, text: &str) -> Doubt {
    let text = format!("the host of {}: {}", sanitize_line(name), sanitize_line(text));
    Doubt { id: DoubtId::HostNotRead, target: Some(name.to_owned()), text }
}

fn watch(host: &HostPlan) -> Result<HostWatch, HostError> {
    let access = match &host.access {
        AccessPlan::Local => HostAccess::Local,
        AccessPlan::Ssh(destination) => HostAccess::ssh(destination)?,
    };
    let server = match &host.server {
        ServerPlan::Unknown => Server::Unknown,
        ServerPlan::Port(port) => Server::Port(*port),
        ServerPlan::Pid(pid) => Server::Pid(*pid),
        ServerPlan::Service(name) => Server::service(name)?,
    };
    HostWatch::open(access, server)
}

/// What a machine is, without any load. Errors are sentences for the user.
pub fn host_facts(host: &HostPlan) -> Result<HostRecord, String> {
    let watch = watch(host).map_err(|error| error.to_string())?;
    // Some figures exist only as the difference of two samples; one is enough to show that they can be read.
    let _ = watch.sample();
    Ok(watch.finish())
}
