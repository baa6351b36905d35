//! Twins that run, a client beside them, and other tools than duel to look at them.

use crate::names::Entry;
use crate::servers::{Place, Serve, Up};
use crate::twin::{Address, Twin};
use crate::world::{Folder, Launch, Namespace, Running, Stop, World};
use anyhow::Context;
use std::process::Stdio;
use std::time::Duration;

/// A healthy server, its faulty twin, and the client's namespace.
pub(crate) struct Arena<S: Serve = Twin> {
    pub(crate) healthy: Up<S>,
    pub(crate) faulty: Up<S>,
    pub(crate) client: Client,
}

/// Where duel and all other tools run: both servers are equally far from here.
pub(crate) struct Client {
    namespace: Namespace,
    _names: Option<Running>,
    /// Holds `resolv.conf`, where names are needed.
    folder: Folder,
    resolves: bool,
    stop: Stop,
}

impl<S: Serve> Arena<S> {
    /// Starts both, the healthy one first. `faulty_place` tells which of the two the faulty one is; duel is not told.
    pub(crate) fn start(world: &World, [healthy, faulty]: [&S; 2], faulty_place: Place) -> anyhow::Result<Arena<S>> {
        let healthy_place = faulty_place.other();
        let client = Client::start(world, [(healthy_place, healthy.address()), (faulty_place, faulty.address())])?;
        let healthy = Up::start(world, &client.namespace, healthy_place, healthy)?;
        world.go_on()?;
        let faulty = Up::start(world, &client.namespace, faulty_place, faulty)?;
        world.go_on()?;
        Ok(Arena { healthy, faulty, client })
    }

    /// Both, in the order in which duel is told of them.
    pub(crate) fn in_order(&self) -> [&Up<S>; 2] {
        match self.healthy.place() {
            Place::A => [&self.healthy, &self.faulty],
            Place::B => [&self.faulty, &self.healthy],
        }
    }

    /// The same measurement of time on both, healthy first; three times by turns, and the shortest of each: what else
    /// happens on this machine only adds.
    pub(crate) fn by_turns(&self, measure: impl Fn(&Up<S>) -> anyhow::Result<f64>) -> anyhow::Result<(f64, f64)> {
        let (mut healthy, mut faulty) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            healthy = healthy.min(measure(&self.healthy)?);
            faulty = faulty.min(measure(&self.faulty)?);
        }
        Ok((healthy, faulty))
    }

    /// The words by which duel may look at the machines of both under load.
    pub(crate) fn machines(&self) -> Vec<String> {
        let mut words = Vec::new();
        for up in self.in_order() {
            let name = up.place().target_name();
            // The port is looked up in duel's own network, and each server has one of its own.
            words.extend(["--local".to_owned(), name.to_owned()]);
            words.extend(up.pid().into_iter().flat_map(|pid| ["--pid".to_owned(), format!("{name}={pid}")]));
        }
        words
    }
}

impl Client {
    fn start(world: &World, twins: [(Place, Address); 2]) -> anyhow::Result<Client> {
        let folder = world.folder()?;
        let namespace = Namespace::new(world)?;
        // A minute of new connections is more than there are ports, and looks at one draw take longer.
        namespace.sysctl("net.ipv4.tcp_tw_reuse", "1")?;
        let entries: Vec<Entry> = twins
            .into_iter()
            .filter_map(|(place, address)| match address {
                Address::Literal => None,
                Address::Name { delay_ms, ipv6 } => Some(Entry {
                    name: place.name(),
                    ipv4: place.server_address(),
                    ipv6: ipv6.then(|| place.server_address6()),
                    delay_ms,
                }),
            })
            .collect();
        let resolves = !entries.is_empty();
        let names = if resolves {
            std::fs::write(folder.path().join("resolv.conf"), "nameserver 127.0.0.1\n")?;
            let mut launch = Launch::new(std::env::current_exe()?).args(["names", "--listen", "127.0.0.1:53"]);
            for entry in &entries {
                launch = launch.args(["--name", &entry.word()]);
            }
            Some(launch.within(&namespace).start(&folder.path().join("names.log"))?)
        } else {
            None
        };
        Ok(Client { namespace, _names: names, folder, resolves, stop: world.stop() })
    }

    /// A program in the client's namespace, with its resolver. Unlike `ip netns exec` this leaves `/sys` as it is, so
    /// that duel sees the control groups of local servers.
    pub(crate) fn launch(&self, program: &str) -> Launch {
        let mut words = vec![format!("--net={}", self.namespace.path())];
        if self.resolves {
            let resolver = self.folder.path().join("resolv.conf");
            let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", resolver.display());
            words.extend(["unshare", "--mount", "--", "sh", "-c", &script, "sh"].map(str::to_owned));
        }
        words.push(program.to_owned());
        Launch::new("nsenter").args(words).on(CLIENT_CPU)
    }

    /// Runs a program to its end and returns what it printed; no further one once somebody has asked to stop.
    pub(crate) fn run(&self, program: &str, args: &[&str]) -> anyhow::Result<String> {
        self.stop.go_on()?;
        let output = self
            .launch(program)
            .args(args)
            .command()
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("could not run {program}"))?;
        anyhow::ensure!(
            output.status.success(),
            "{program} {} failed ({}): {}",
            args.join(" "),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Tools and duel run here, servers on CPU 0.
pub(crate) const CLIENT_CPU: &str = "1";

pub(crate) fn median(mut values: Vec<f64>) -> anyhow::Result<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().context("nothing was measured")
}

/// Waits for a child and looks at the stop flag meanwhile.
pub(crate) fn wait_for(world: &World, child: &mut std::process::Child) -> anyhow::Result<std::process::ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if let Err(interrupted) = world.go_on() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(interrupted);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
