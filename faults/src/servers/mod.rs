//! Servers with a private configuration in a private namespace: from a [`Twin`], or whatever else can [`Serve`], to a running
//! [`Up`].

mod apache;
mod certificates;
mod companion;
mod content;
mod haproxy;
mod network;
mod nginx;
mod node;
mod processes;

use crate::twin::{Address, Network, Process, Twin};
use crate::world::{Cgroup, Folder, Launch, Namespace, Running, Volume, World};
use anyhow::Context;
pub(crate) use network::Place;
pub(crate) use processes::BEHIND_PORT;
use std::time::{Duration, Instant};

/// A server to be, of any kind of work.
pub(crate) trait Serve: Clone {
    /// As messages call it.
    fn name(&self) -> &'static str;
    fn process(&self) -> &Process;
    fn network(&self) -> &Network;
    /// How the client finds it.
    fn address(&self) -> Address {
        Address::Literal
    }
    /// The TCP ports that are open once it is ready.
    fn ports(&self) -> Vec<u16>;
    /// Starts its processes, the one that answers the client at last, and makes what they need.
    fn start(world: &World, up: &mut Up<Self>) -> anyhow::Result<()>;
}

/// A server that runs. Everything of it goes away when this is dropped.
pub(crate) struct Up<S: Serve = Twin> {
    // Dropped in this order: processes, what they hold on to, and the folder at last.
    companion: Option<Running>,
    processes: Vec<Running>,
    _relay: Option<Running>,
    cgroup: Option<Cgroup>,
    disk: Option<Volume>,
    namespace: Namespace,
    folder: Folder,
    place: Place,
    twin: S,
}

impl<S: Serve> Up<S> {
    /// Starts it, and waits until it accepts connections.
    pub(crate) fn start(world: &World, client: &Namespace, place: Place, twin: &S) -> anyhow::Result<Up<S>> {
        let folder = world.folder()?;
        let namespace = Namespace::new(world)?;
        let relay = network::connect(client, &namespace, place, (twin.network(), twin.process().cpus), &folder)?;
        let cgroup = match &twin.process().limits {
            limits if limits.is_none() => None,
            limits => Some(Cgroup::new(world, limits)?),
        };
        let mut up = Up {
            companion: None,
            processes: Vec::new(),
            _relay: relay,
            cgroup,
            disk: None,
            namespace,
            folder,
            place,
            twin: twin.clone(),
        };
        S::start(world, &mut up)?;
        up.wait_until_ready()?;
        companion::start(&mut up)?;
        Ok(up)
    }

    /// What it was asked to be.
    pub(crate) fn twin(&self) -> &S {
        &self.twin
    }

    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    pub(crate) fn cgroup(&self) -> anyhow::Result<&Cgroup> {
        self.cgroup.as_ref().context("this server has no control group")
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    /// The process that answers the client: the foremost one.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.processes.last().map(Running::pid)
    }

    /// Its server processes: all of its namespace but the companion, children before parents or after.
    pub(crate) fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let companion = self.companion.as_ref().map(Running::pid);
        let mut pids = self.namespace.pids()?;
        pids.retain(|&pid| Some(pid) != companion && !is_child_of(pid, companion));
        Ok(pids)
    }

    /// Whether the process that answers the client has been told to stop, and not yet to go on.
    pub(crate) fn is_stopped(&self) -> anyhow::Result<bool> {
        let pid = self.pid().context("it has no process")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    }

    /// CPU time that its processes have used so far, threads that have ended included. `stat` counts ticks of 10 ms, which
    /// is fine enough for loads of seconds; `schedstat` is finer, but forgets threads when they end.
    pub(crate) fn cpu_ns(&self) -> anyhow::Result<u64> {
        const TICK_NS: u64 = 10_000_000;
        let mut sum = 0;
        for pid in self.pids()? {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // After the name in brackets the 12th and 13th fields are user and system time.
            let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
            sum +=
                rest.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>() * TICK_NS;
        }
        Ok(sum)
    }

    /// A launch as the server's: its CPUs, its group, its environment.
    fn as_server(&self, launch: Launch) -> Launch {
        let process = self.twin.process();
        launch
            .on(process.cpus)
            .env(&process.env)
            .member_of(self.cgroup.as_ref())
            .within(&self.namespace)
            .nice(process.nice)
            .filtered(process.filters)
    }

    /// Starts one of its processes.
    pub(crate) fn run(&mut self, name: &str, launch: Launch) -> anyhow::Result<()> {
        let log = self.folder.path().join(format!("{name}.log"));
        let running = self.as_server(launch).start(&log)?;
        self.processes.push(running);
        Ok(())
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        /// A server that has not opened its ports by then never will.
        const START: Duration = Duration::from_secs(20);
        let until = Instant::now() + START;
        loop {
            for process in &mut self.processes {
                process.check()?;
            }
            let listening = listening_ports(&self.namespace)?;
            if self.twin.ports().iter().all(|port| listening.contains(port)) {
                return Ok(());
            }
            anyhow::ensure!(Instant::now() < until, "{} does not open its ports", self.twin.name());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Up {
    /// The address that the client asks for.
    pub(crate) fn url(&self) -> String {
        let host = match self.twin.address {
            Address::Literal => self.place.server_address().to_string(),
            Address::Name { .. } => self.place.name(),
        };
        format!("{}://{host}{}", self.twin.scheme(), self.twin.path())
    }
}

impl<S: Serve> Drop for Up<S> {
    fn drop(&mut self) {
        // Killing a master leaves its workers, which hold log files open.
        self.namespace.end_processes();
    }
}

fn is_child_of(pid: u32, parent: Option<u32>) -> bool {
    let Some(parent) = parent else { return false };
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name in brackets: state, parent.
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok()) == Some(parent)
}

/// TCP ports on which somebody listens in the namespace, from the tables of any process in it.
fn listening_ports(namespace: &Namespace) -> anyhow::Result<Vec<u16>> {
    const LISTEN: &str = "0A";
    let Some(pid) = namespace.pids()?.into_iter().next() else { return Ok(Vec::new()) };
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut fields = line.split_whitespace().skip(1);
            let (Some(local), Some(_), Some(state)) = (fields.next(), fields.next(), fields.next()) else { continue };
            if state == LISTEN
                && let Some((_, port)) = local.rsplit_once(':')
                && let Ok(port) = u16::from_str_radix(port, 16)
            {
                ports.push(port);
            }
        }
    }
    Ok(ports)
}
