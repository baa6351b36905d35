//! Servers with a private configuration in a private namespace: from a [`Twin`] to a running [`Up`].

mod apache;
mod certificates;
mod content;
mod haproxy;
mod network;
mod nginx;
mod processes;

use crate::twin::{Address, Twin};
use crate::world::{Cgroup, Folder, Namespace, Running, SyncDisk, World};
use anyhow::Context;
pub(crate) use network::Place;
use std::time::{Duration, Instant};

/// A server that runs. Everything of it goes away when this is dropped.
pub(crate) struct Up {
    // Dropped in this order: processes, what they hold on to, and the folder at last.
    companion: Option<Running>,
    processes: Vec<Running>,
    _relay: Option<Running>,
    cgroup: Option<Cgroup>,
    disk: Option<SyncDisk>,
    namespace: Namespace,
    folder: Folder,
    place: Place,
    twin: Twin,
}

impl Up {
    /// Starts it, and waits until it accepts connections.
    pub(crate) fn start(world: &World, client: &Namespace, place: Place, twin: &Twin) -> anyhow::Result<Up> {
        let folder = world.folder()?;
        content::place(&folder, twin)?;
        let namespace = Namespace::new(world)?;
        let relay = network::connect(client, &namespace, place, twin, &folder)?;
        let cgroup = match &twin.process.limits {
            limits if limits.is_none() => None,
            limits => Some(Cgroup::new(world, limits)?),
        };
        let disk = match twin.http.log {
            crate::twin::Log::Off => None,
            crate::twin::Log::OnDisk { synchronous } => Some(SyncDisk::new(world, synchronous)?),
        };
        let mut up = Up {
            companion: None,
            processes: Vec::new(),
            _relay: relay,
            cgroup,
            disk,
            namespace,
            folder,
            place,
            twin: twin.clone(),
        };
        processes::start(&mut up)?;
        up.wait_until_ready()?;
        processes::start_companion(&mut up)?;
        Ok(up)
    }

    /// What it was asked to be.
    pub(crate) fn twin(&self) -> &Twin {
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

    /// The address that the client asks for.
    pub(crate) fn url(&self) -> String {
        let host = match self.twin.address {
            Address::Literal => self.place.server_address().to_string(),
            Address::Name { .. } => self.place.name(),
        };
        format!("{}://{host}{}", self.twin.scheme(), self.twin.path())
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

    /// The port that the client connects to.
    fn port(&self) -> u16 {
        if self.twin.tls.is_some() { 443 } else { 80 }
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
            if processes::ports(&self.twin, self.port()).iter().all(|port| listening.contains(port)) {
                return Ok(());
            }
            anyhow::ensure!(Instant::now() < until, "{} does not open its ports", self.twin.server.name());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Up {
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
