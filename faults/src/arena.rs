//! Twins that run, a client beside them, and other tools than duel to look at them.

use crate::case::Case;
use crate::names::Entry;
use crate::servers::{Place, Up};
use crate::twin::{Address, Twin};
use crate::world::{Folder, Launch, Namespace, Running, Stop, World};
use anyhow::Context;
use std::process::Stdio;
use std::time::Duration;

/// A healthy server, its faulty twin, and the client's namespace.
pub(crate) struct Arena {
    pub(crate) healthy: Up,
    pub(crate) faulty: Up,
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

impl Arena {
    /// Starts both. `faulty_place` tells which of the two the faulty one is; duel is not told.
    pub(crate) fn start(world: &World, case: &Case, faulty_place: Place) -> anyhow::Result<Arena> {
        let healthy_place = if faulty_place == Place::A { Place::B } else { Place::A };
        let client = Client::start(world, [(healthy_place, &case.healthy), (faulty_place, &case.faulty)])?;
        let healthy = Up::start(world, &client.namespace, healthy_place, &case.healthy)?;
        world.go_on()?;
        let faulty = Up::start(world, &client.namespace, faulty_place, &case.faulty)?;
        world.go_on()?;
        Ok(Arena { healthy, faulty, client })
    }

    /// Both, in the order in which duel is told of them.
    pub(crate) fn in_order(&self) -> [&Up; 2] {
        match self.healthy.place() {
            Place::A => [&self.healthy, &self.faulty],
            Place::B => [&self.faulty, &self.healthy],
        }
    }

    /// The same measurement of time on both, healthy first; three times by turns, and the shortest of each: what else
    /// happens on this machine only adds.
    pub(crate) fn by_turns(&self, measure: impl Fn(&Up) -> anyhow::Result<f64>) -> anyhow::Result<(f64, f64)> {
        let (mut healthy, mut faulty) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..3 {
            healthy = healthy.min(measure(&self.healthy)?);
            faulty = faulty.min(measure(&self.faulty)?);
        }
        Ok((healthy, faulty))
    }
}

impl Client {
    fn start(world: &World, twins: [(Place, &Twin); 2]) -> anyhow::Result<Client> {
        let folder = world.folder()?;
        let namespace = Namespace::new(world)?;
        let entries: Vec<Entry> = twins
            .iter()
            .filter_map(|(place, twin)| match twin.address {
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

    /// Times of requests by curl, one after the other: the median of each phase.
    pub(crate) fn curl(&self, up: &Up, requests: &Requests) -> anyhow::Result<Times> {
        const FORMAT: &str = "%{time_namelookup} %{time_connect} %{time_appconnect} %{time_total} \
                              %{size_download} %{size_header} %{num_connects}\\n";
        let url = format!("{}?n=[1-{}]", up.url(), requests.count);
        let mut args =
            vec!["-s", "-k", "--http1.1", "--no-sessionid", "--max-time", "120", "-o", "/dev/null", "-w", FORMAT];
        if requests.connect_anew {
            args.extend(["-H", "Connection: close"]);
        }
        for word in &requests.words {
            args.push(word);
        }
        args.push(&url);
        let printed = self.run("curl", &args)?;
        let rows: Vec<Vec<f64>> = printed
            .lines()
            .map(|line| line.split(' ').filter_map(|figure| figure.parse().ok()).collect())
            .filter(|row: &Vec<f64>| row.len() == 7)
            .collect();
        let column = |n: usize| median(rows.iter().map(|row| row[n]).collect());
        Ok(Times {
            lookup_s: column(0)?,
            connect_s: column(1)? - column(0)?,
            tls_s: (column(2)? - column(1)?).max(0.0),
            total_s: column(3)?,
            body_bytes: column(4)?,
            head_bytes: column(5)?,
            connects: rows.iter().map(|row| row[6]).sum(),
        })
    }

    /// Load by another generator: wrk, or ab where each connection is to make a full TLS handshake (wrk resumes).
    pub(crate) fn load(&self, up: &Up, load: &ToolLoad) -> anyhow::Result<Served> {
        let (connections, seconds, url) = (load.connections.to_string(), load.seconds.to_string(), up.url());
        let full_handshakes = load.connect_anew && up.twin().tls.is_some();
        let (program, mut args, figure) = if full_handshakes {
            ("ab", vec!["-q", "-c", &connections, "-t", &seconds, "-n", "10000000", "-s", "20"], "Requests per second:")
        } else {
            ("wrk", vec!["-t", "1", "-c", &connections, "-d", &seconds, "--timeout", "20s"], "Requests/sec:")
        };
        if load.connect_anew && !full_handshakes {
            args.extend(["-H", "Connection: close"]);
        }
        if let Some(header) = load.header {
            args.extend(["-H", header]);
        }
        args.push(&url);
        let cpu_before = up.cpu_ns()?;
        let printed = self.run(program, &args)?;
        let cpu_ns = up.cpu_ns()?.saturating_sub(cpu_before);
        let per_s: f64 = printed
            .lines()
            .find_map(|line| line.trim().strip_prefix(figure)?.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("{program} printed {printed:?}"))?;
        anyhow::ensure!(per_s > 0.0, "{program} got no answers: {printed}");
        Ok(Served { per_s, server_cpu_us: cpu_ns as f64 / 1e3 / (per_s * f64::from(load.seconds)) })
    }
}

/// Tools and duel run here, servers on CPU 0.
pub(crate) const CLIENT_CPU: &str = "1";

/// What curl is to do.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(crate) count: u32,
    pub(crate) connect_anew: bool,
    pub(crate) words: Vec<&'static str>,
}

impl Requests {
    pub(crate) fn connecting(count: u32) -> Requests {
        Requests { count, connect_anew: true, words: Vec::new() }
    }

    pub(crate) fn kept_alive(count: u32) -> Requests {
        Requests { count, connect_anew: false, words: Vec::new() }
    }
}

/// Medians over requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) lookup_s: f64,
    pub(crate) connect_s: f64,
    pub(crate) tls_s: f64,
    pub(crate) total_s: f64,
    pub(crate) body_bytes: f64,
    pub(crate) head_bytes: f64,
    /// Connections made for all requests together.
    pub(crate) connects: f64,
}

/// What a load generator is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolLoad {
    pub(crate) connections: u32,
    pub(crate) seconds: u32,
    pub(crate) connect_anew: bool,
    pub(crate) header: Option<&'static str>,
}

impl ToolLoad {
    /// Two seconds over kept connections.
    pub(crate) fn over(connections: u32) -> ToolLoad {
        ToolLoad { connections, seconds: 2, connect_anew: false, header: None }
    }

    /// Two seconds, a new connection for each request.
    pub(crate) fn connecting(connections: u32) -> ToolLoad {
        ToolLoad { connect_anew: true, ..ToolLoad::over(connections) }
    }
}

/// What a load generator saw, and what the server needed for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) per_s: f64,
    /// CPU time of all server processes per request.
    pub(crate) server_cpu_us: f64,
}

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
