//! Servers with a private configuration in a private namespace: from a [`Twin`], or whatever else can [`Serve`], to a running
//! [`Up`].

mod apache;
mod certificates;
mod companion;
mod content;
mod haproxy;
mod java;
mod lighttpd;
mod network;
mod nginx;
mod node;
mod php;
mod processes;

use crate::twin::{Address, Network, Process, Twin};
use crate::world::{Cgroup, Folder, Launch, Namespace, Running, Volume, World};
use anyhow::Context;
pub(crate) use content::{PATHS, forget_files};
pub(crate) use lighttpd::is_installed as lighttpd_is_installed;
pub(crate) use network::Place;
pub(crate) use php::program as php_fpm;
pub(crate) use processes::BEHIND_PORT;
use std::path::Path;
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

/// Where `duel net serve` listens beside a server.
const NET_PORT: u16 = 3835;

/// A server that runs. Everything of it goes away when this is dropped.
pub(crate) struct Up<S: Serve = Twin> {
    // Dropped in this order: processes, what they hold on to, and the folder at last.
    companion: Option<Running>,
    net_server: Option<Running>,
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
            net_server: None,
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

    /// Its server processes: all of its namespace but those beside it, children before parents or after.
    pub(crate) fn pids(&self) -> anyhow::Result<Vec<u32>> {
        let beside = [&self.companion, &self.net_server].map(|running| running.as_ref().map(Running::pid));
        let mut pids = self.namespace.pids()?;
        pids.retain(|&pid| beside.iter().all(|other| Some(pid) != *other && !is_child_of(pid, *other)));
        Ok(pids)
    }

    /// Starts a `duel net serve` beside it, on the CPUs and in the network that it has.
    pub(crate) fn serve_net(&mut self, duel: &Path) -> anyhow::Result<()> {
        let launch = Launch::new(duel).args(["net", "serve", "--listen", &format!("0.0.0.0:{NET_PORT}")]);
        let launch = launch.on(self.twin.process().cpus).within(&self.namespace);
        self.net_server = Some(launch.start(&self.folder.path().join("net-serve.log"))?);
        self.wait_for(&[NET_PORT])
    }

    /// Where that answers.
    pub(crate) fn net_server_address(&self) -> String {
        format!("tcp://{}:{NET_PORT}", self.place().server_address())
    }

    /// Whether the process that answers the client has been told to stop, and not yet to go on.
    pub(crate) fn is_stopped(&self) -> anyhow::Result<bool> {
        let pid = self.pid().context("it has no process")?;
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T')))
    }

    /// CPU time that its processes have used so far, threads that have ended included.
    pub(crate) fn cpu_ns(&self) -> anyhow::Result<u64> {
        let read = |pid, name| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        Ok(self.pids()?.into_iter().map(|pid| cpu_ns(&read(pid, "stat"), &read(pid, "schedstat"))).sum())
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
        self.wait_for(&self.twin.ports())
    }

    fn wait_for(&mut self, ports: &[u16]) -> anyhow::Result<()> {
        /// A server that has not opened its ports by then never will. Java needs most of a second of CPU time for it, of which
        /// a quota may leave it a twentieth.
        const START: Duration = Duration::from_secs(60);
        let until = Instant::now() + START;
        loop {
            for process in self.processes.iter_mut().chain(&mut self.net_server) {
                process.check()?;
            }
            let listening = listening_ports(&self.namespace)?;
            if ports.iter().all(|port| listening.contains(port)) {
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
        self.url_of(&self.twin.path())
    }

    /// The address of another path.
    pub(crate) fn url_of(&self, path: &str) -> String {
        let host = match self.twin.address {
            Address::Literal => self.place.server_address().to_string(),
            Address::Name { .. } => self.place.name(),
        };
        format!("{}://{host}{path}", self.twin.scheme())
    }
}

impl<S: Serve> Drop for Up<S> {
    fn drop(&mut self) {
        // Killing a master leaves its workers, which hold log files open.
        self.namespace.end_processes();
    }
}

/// CPU time of a process, by its files of these names in `/proc`. `stat` has all threads, those that have ended included, in whole
/// ticks of 10 ms: of many processes that share the work each may be short of one. `schedstat` is exact, and has the first thread.
fn cpu_ns(stat: &str, schedstat: &str) -> u64 {
    const TICK_NS: u64 = 10_000_000;
    let number = |word: &str| word.parse::<u64>().ok();
    // After the name in brackets the 12th and 13th fields are user and system time.
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks: u64 = after_name.split(' ').skip(11).take(2).filter_map(number).sum();
    let first_thread = schedstat.split_whitespace().next().and_then(number).unwrap_or(0);
    first_thread.max(ticks * TICK_NS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_that_of_all_threads_and_of_less_than_a_tick() {
        let stat = |user: u64, system: u64| {
            format!("7 (a (b) c) S 1 7 7 0 -1 4194304 90 0 0 0 {user} {system} 0 0 20 0 1 0 5")
        };
        assert_eq!(cpu_ns(&stat(0, 0), "4200000 11 5\n"), 4_200_000, "a process that has not had a tick");
        assert_eq!(cpu_ns(&stat(3, 2), "4200000 11 5\n"), 50_000_000, "other threads have worked");
        assert_eq!(cpu_ns(&stat(3, 2), ""), 50_000_000);
        assert_eq!(cpu_ns("", ""), 0, "it has ended meanwhile");
    }
}
