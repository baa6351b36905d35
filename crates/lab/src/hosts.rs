//! The targets' machines, watched while they are under load.
//!
//! That a machine cannot be read never ends a run: it is said, and everything else goes on.

use crate::servers;
use duel_host::{HostAccess, HostError, HostWatch, Looking, Options, Redfish, Server, Serving};
use duel_model::{
    Doubt, DoubtId, Facts, HostAccess as AccessPlan, HostPlan, HostRecord, HostSample, Known, Plan, RedfishPlan,
    ServerPlan, WorkloadPlan, sanitize_line,
};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// The machines of a plan's targets, in the plan's order.
#[derive(Debug, Default)]
pub(crate) struct Hosts {
    machines: Vec<Machine>,
    /// Machines that could not be read.
    doubts: Vec<Doubt>,
}

/// The machine of one target.
#[derive(Debug, Default)]
struct Machine {
    watch: Option<HostWatch>,
    /// Its management controller, and what it told before the load.
    controller: Option<(Redfish, Facts)>,
}

impl Hosts {
    /// Begins to watch every machine that the plan says how to reach. `peers`: what connections to the targets are made to.
    pub(crate) fn watch(plan: &Plan, peers: &[Option<SocketAddr>]) -> Self {
        let mut hosts = Self::default();
        for (index, target) in plan.targets.iter().enumerate() {
            let peer = peers.get(index).copied().flatten();
            let watch = target.host.as_ref().and_then(|host| {
                let watched =
                    match peer.filter(|peer| servers::names_this_machine(target) && !servers::is_own(peer.ip())) {
                        None => {
                            let behind = servers::behind_socket(plan, target);
                            watch(host, &plan.workload, peer, behind).map_err(|error| error.to_string())
                        }
                        Some(peer) => Err(format!("connections to it lead to {}, which is another machine", peer.ip())),
                    };
                match watched {
                    Ok((watch, doubt)) => {
                        doubt.into_iter().for_each(|doubt| hosts.doubt(&target.name, &doubt));
                        Some(watch)
                    }
                    Err(why) => {
                        hosts.doubt(&target.name, &why);
                        None
                    }
                }
            });
            hosts.machines.push(Machine { watch, controller: None });
        }
        hosts
    }

    /// The same, and asks the management controllers, which are asked again in the end. They take seconds, and all of
    /// them are asked at once while shells are started.
    pub(crate) fn watch_and_ask(plan: &Plan, peers: &[Option<SocketAddr>]) -> Self {
        thread::scope(|scope| {
            let asked: Vec<_> = plan
                .targets
                .iter()
                .map(|target| {
                    let plan = target.host.as_ref()?.redfish.as_ref()?;
                    Some(Redfish::of_plan(plan).map(|redfish| scope.spawn(move || (redfish.read(), redfish))))
                })
                .collect();
            let mut hosts = Self::watch(plan, peers);
            for (index, (asked, target)) in asked.into_iter().zip(&plan.targets).enumerate() {
                match asked {
                    None => {}
                    Some(Err(error)) => hosts.doubt(&target.name, &error.to_string()),
                    Some(Ok(asked)) => match asked.join() {
                        Ok((before, redfish)) => {
                            if let Some(Known::Unavailable(why)) = before.0.get("redfish") {
                                hosts.doubt(&target.name, &format!("its management controller was not read: {why}"));
                            }
                            hosts.machines[index].controller = Some((redfish, before));
                        }
                        Err(_) => hosts.doubt(&target.name, "its management controller was not read"),
                    },
                }
            }
            hosts
        })
    }

    /// Whether any machine is watched.
    pub(crate) fn any(&self) -> bool {
        self.machines.iter().any(|machine| machine.watch.is_some())
    }

    /// What each machine is, where it is watched.
    pub(crate) fn facts(&self) -> Vec<Option<Facts>> {
        self.machines.iter().map(|machine| machine.watch.as_ref().map(|watch| watch.facts().clone())).collect()
    }

    /// A sample of this target's machine; `None` where it is not watched or does not answer any more.
    pub(crate) fn sample(&self, target: usize) -> Option<HostSample> {
        self.machines.get(target)?.watch.as_ref()?.sample().ok()
    }

    /// Begins to look at who waits at this target's server. `None` where its machine is not watched.
    pub(crate) fn look_who_waits(&self, target: usize) -> Option<Looking> {
        self.machines.get(target)?.watch.as_ref()?.look_who_waits().ok()
    }

    /// The other targets whose machine is neither this one's nor the one that we are on: what such a machine does while this
    /// target is under load goes on without any.
    pub(crate) fn elsewhere(&self, target: usize) -> Vec<usize> {
        let ours = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let boots: Vec<_> =
            self.facts().into_iter().map(|facts| facts?.text("os.boot_id").map(str::to_owned)).collect();
        apart(&boots, target, ours.trim())
    }

    /// Who serves on this target's machine now; errors are sentences.
    pub(crate) fn server(&self, target: usize) -> Result<Serving, String> {
        let watch = self.machines.get(target).and_then(|machine| machine.watch.as_ref());
        watch.ok_or("the machine is not read")?.server().map_err(|error| error.to_string())
    }

    /// Has lines of shell run on this target's machine; errors are sentences.
    pub(crate) fn run(&self, target: usize, script: &str, timeout: Duration) -> Result<String, String> {
        let watch = self.machines.get(target).and_then(|machine| machine.watch.as_ref());
        let watch = watch.ok_or("the machine is not read")?;
        watch.run(script, timeout).map_err(|error| error.to_string())
    }

    /// A sample of every machine, for the record: something begins or ends.
    pub(crate) fn mark(&self) {
        for target in 0..self.machines.len() {
            // One that does not answer says so in its record.
            let _ = self.sample(target);
        }
    }

    /// Ends watching: what the machines were and did, and what weakens it. `asks_again`: management controllers are asked
    /// once more; whoever pressed Ctrl-C does not want to wait for them.
    pub(crate) fn finish(self, plan: &Plan, asks_again: bool) -> (Vec<Option<HostRecord>>, Vec<Doubt>) {
        let Self { machines, mut doubts } = self;
        let records: Vec<Option<HostRecord>> = thread::scope(|scope| {
            // Controllers first, as long as the machines are as hot as they were.
            let told: Vec<_> = machines
                .into_iter()
                .map(|Machine { watch, controller }| {
                    let ask = move |redfish: Redfish| asks_again.then(|| scope.spawn(move || redfish.read()));
                    (watch, controller.map(|(redfish, before)| (before, ask(redfish))))
                })
                .collect();
            let mut records = Vec::new();
            for ((watch, told), target) in told.into_iter().zip(&plan.targets) {
                let mut record = watch.map(HostWatch::finish);
                if let Some((before, after)) = told {
                    let alone = || HostRecord { how: "over Redfish alone".to_owned(), ..HostRecord::default() };
                    let after = after.and_then(|asked| asked.join().ok()).unwrap_or_default();
                    if !before.0.contains_key("redfish")
                        && let Some(Known::Unavailable(why)) = after.0.get("redfish")
                    {
                        let text = format!("its management controller was not read after the load: {why}");
                        doubts.push(doubt(&target.name, &text));
                    }
                    add(&mut record.get_or_insert_with(alone).facts, before, after);
                }
                records.push(record);
            }
            records
        });
        for (record, target) in records.iter().zip(&plan.targets) {
            doubts.extend(record.iter().flat_map(|record| &record.doubts).map(|text| doubt(&target.name, text)));
        }
        let records = if records.iter().all(Option::is_none) { Vec::new() } else { records };
        (records, doubts)
    }

    /// Notes what weakens what is read of a target's machine.
    pub(crate) fn doubt(&mut self, name: &str, text: &str) {
        self.doubts.push(doubt(name, text));
    }
}

/// Those that were started otherwise than this one and ours, by the names that kernels give a boot. Of a machine that has none
/// nobody knows.
fn apart(boots: &[Option<String>], target: usize, ours: &str) -> Vec<usize> {
    let Some(Some(loaded)) = boots.get(target) else { return Vec::new() };
    let is_apart = |boot: &Option<String>| boot.as_deref().is_some_and(|boot| boot != loaded && boot != ours);
    (0..boots.len()).filter(|&other| is_apart(&boots[other])).collect()
}

/// Adds what a management controller told before the load (`redfish.`) and after it (`redfish.after.`).
fn add(facts: &mut Facts, before: Facts, after: Facts) {
    let later = |key: String| format!("redfish.after{}", key.strip_prefix("redfish").unwrap_or(&key));
    facts.0.extend(before.0);
    facts.0.extend(after.0.into_iter().map(|(key, known)| (later(key), known)));
}

fn doubt(name: &str, text: &str) -> Doubt {
    let text = format!("the host of {}: {}", sanitize_line(name), sanitize_line(text));
    Doubt { id: DoubtId::HostNotRead, target: Some(name.to_owned()), text }
}

/// Begins to watch a machine, and what is doubtful about who its server is. Where that is not the process that the plan meant,
/// the machine is watched without it. `behind_socket`: who was found to serve there, where it was looked for.
fn watch(
    host: &HostPlan,
    workload: &WorkloadPlan,
    peer: Option<SocketAddr>,
    behind_socket: Option<Result<u32, String>>,
) -> Result<(HostWatch, Option<String>), HostError> {
    let access = match &host.access {
        AccessPlan::Local => HostAccess::Local,
        AccessPlan::Ssh(destination) => HostAccess::ssh(destination)?,
    };
    let (server, unseen) = match behind_socket {
        None => (servers::server(host, workload)?, None),
        Some(Ok(pid)) => (Server::Pid(pid), None),
        Some(Err(why)) => (Server::Unknown, Some(why)),
    };
    let options = Options { address: peer, ..Options::default() };
    let watch = HostWatch::open_with(&access, &server, &options)?;
    if let Some(why) = servers::not_meant(host, watch.facts()).or_else(|| servers::hands_on(host, watch.facts())) {
        return Ok((HostWatch::open_with(&access, &Server::Unknown, &options)?, Some(why)));
    }
    let is_by_path = server == Server::Unknown && matches!(host.server, ServerPlan::Port(_));
    let doubt =
        is_by_path.then(|| "a server that is reached by a Unix socket has to be named: --pid or --service".to_owned());
    Ok((watch, doubt.or(unseen)))
}

/// Whether a management controller could be asked: its address, and that its password is where it should be.
pub fn check_redfish(plan: &RedfishPlan) -> Result<(), String> {
    Redfish::of_plan(plan).map(drop).map_err(|error| error.to_string())
}

/// What a machine is, without any load. Errors are sentences for the user.
pub fn host_facts(host: &HostPlan) -> Result<HostRecord, String> {
    let redfish = host.redfish.as_ref().map(Redfish::of_plan).transpose().map_err(|error| error.to_string())?;
    let (watch, _) = watch(host, &WorkloadPlan::NULL, None, None).map_err(|error| error.to_string())?;
    // Some figures exist only as the difference of two samples; one is enough to show that they can be read.
    let _ = watch.sample();
    let mut record = watch.finish();
    if let Some(redfish) = redfish {
        record.facts.0.extend(redfish.read().0);
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_machines_that_carry_none_of_the_load_are_elsewhere() {
        let boots = ["one", "two", "one", "ours"].map(|boot| Some(boot.to_owned()));
        let boots = [&boots[..], &[None]].concat();
        assert_eq!(apart(&boots, 0, "ours"), [1], "not the same machine again, not ours, and none that is not known");
        assert_eq!(apart(&boots, 1, "ours"), [0, 2]);
        assert_eq!(apart(&boots, 4, "ours"), Vec::<usize>::new());
        assert_eq!(apart(&boots, 9, "ours"), Vec::<usize>::new());
    }

    #[test]
    fn what_a_controller_tells_later_is_told_beside_what_it_told_before() {
        let told = |c: &str| {
            Facts(
                [("redfish.temperature.CPU1.c".to_owned(), Known::from(c.to_owned()))]
                    .into_iter()
                    .chain([("redfish".to_owned(), Known::Unavailable("it answers 404".to_owned()))])
                    .collect(),
            )
        };
        let mut facts = Facts::default();
        add(&mut facts, told("40"), told("62"));
        assert_eq!(facts.number("redfish.temperature.CPU1.c"), Some(40.0));
        assert_eq!(facts.number("redfish.after.temperature.CPU1.c"), Some(62.0));
        assert!(facts.0.contains_key("redfish.after") && facts.0.len() == 4, "{facts:?}");
    }
}
