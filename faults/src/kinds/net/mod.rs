//! Network paths: duel's own server in the namespace at the other end, and the same ops over both paths.

pub(crate) mod flow;
mod tools;

use super::{Kind, Pair};
use crate::arena::Arena;
use crate::case::Setup;
use crate::servers::{Place, Serve, Up};
use crate::twin::{Network, Process};
use crate::world::{Launch, World};
use anyhow::ensure;
use std::path::{Path, PathBuf};

/// The kind.
#[derive(Clone, Copy)]
pub(crate) struct Net;

/// A path to be, with the server at its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PathTwin {
    /// What goes over it: verifications send the same by other means.
    pub(crate) op: Op,
    /// Over how many streams; known when it is started, from the load.
    pub(crate) streams: u32,
    pub(crate) process: Process,
    pub(crate) network: Network,
    /// duel, whose server it is; known when it is started.
    program: PathBuf,
}

/// What goes over a path, in duel's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Blocks to the server.
    Bulk,
    /// Blocks from the server.
    BulkReverse,
    /// One byte there and one back.
    Exchange,
    Connect,
    /// Datagrams to the server, so many Mbit/s for each stream.
    Datagrams {
        mbit_per_s: u32,
    },
}

impl Op {
    fn name(self) -> &'static str {
        match self {
            Op::Bulk => "bulk",
            Op::BulkReverse => "bulk-reverse",
            Op::Exchange => "rr",
            Op::Connect => "connect",
            Op::Datagrams { .. } => "udp",
        }
    }
}

/// The load that duel is told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams(pub(crate) u32);

/// Where duel's server listens.
const PORT: u16 = 3835;
/// Where the bench's own listens, for verifications.
const FLOW_PORT: u16 = 3836;

impl Kind for Net {
    const NAME: &'static str = "net";
    type Twin = PathTwin;
    type Load = Streams;
    type Arena = Arena<PathTwin>;

    fn words_of_setup(twin: &PathTwin, load: &Streams) -> Vec<String> {
        let rate = match twin.op {
            Op::Datagrams { mbit_per_s } => Some(format!("{mbit_per_s}mbps")),
            _ => None,
        };
        let words = ["net", twin.op.name()].map(str::to_owned).into_iter();
        words.chain(rate).chain([format!("c{}", load.0)]).collect()
    }

    fn start(world: &World, pair: &Pair<Net>, faulty: Place, duel: &Path) -> anyhow::Result<Arena<PathTwin>> {
        ensure!(duel.is_file(), "duel, whose server is at the other end, is not at {}: build it", duel.display());
        let [healthy, faulty_twin] = [&pair.healthy, &pair.faulty].map(|twin| PathTwin {
            program: duel.to_owned(),
            streams: pair.load.0,
            ..twin.clone()
        });
        Arena::start(world, [&healthy, &faulty_twin], faulty)
    }

    fn ensure_both_work(arena: &Arena<PathTwin>) -> anyhow::Result<()> {
        for up in [&arena.healthy, &arena.faulty] {
            arena.client.exchange_us(up, 1)?;
        }
        Ok(())
    }

    fn duel(arena: &Arena<PathTwin>, load: &Streams, duel: &Path, local: bool) -> Launch {
        let address = |up: &&Up<PathTwin>| format!("{}={}", up.place().target_name(), up.address());
        let mut words: Vec<String> = arena.in_order().iter().map(address).collect();
        let op = arena.healthy.twin().op;
        words.extend(["--op", op.name(), "-c", &load.0.to_string()].map(str::to_owned));
        if let Op::Datagrams { mbit_per_s } = op {
            words.extend(["--bitrate".to_owned(), mbit_per_s.to_string()]);
        }
        if local {
            words.extend(arena.machines());
        }
        arena.client.launch(&duel.to_string_lossy()).args(words)
    }
}

impl Setup<Net> {
    /// One stream over a veth pair.
    pub(crate) fn over(op: Op) -> Setup<Net> {
        let (process, network) = (Process::default(), Network::default());
        Setup::new(PathTwin { op, streams: 1, process, network, program: PathBuf::new() }, Streams(1))
    }

    pub(crate) fn streams(mut self, streams: u32) -> Setup<Net> {
        self.load = Streams(streams);
        self
    }

    /// A relay that makes round trips so long.
    pub(crate) fn distant(self, rtt_ms: u64) -> Setup<Net> {
        self.with(&format!("rtt{rtt_ms}ms"), |twin| {
            twin.network.path = crate::twin::Path::round_trip_us(rtt_ms * 1000);
        })
    }
}

impl Serve for PathTwin {
    fn name(&self) -> &'static str {
        "duel net serve"
    }

    fn process(&self) -> &Process {
        &self.process
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn ports(&self) -> Vec<u16> {
        vec![PORT, FLOW_PORT]
    }

    fn start(_world: &World, up: &mut Up<PathTwin>) -> anyhow::Result<()> {
        let listen = |port: u16| format!("0.0.0.0:{port}");
        up.run("flow", Launch::new(std::env::current_exe()?).args(["flow-serve", "--listen", &listen(FLOW_PORT)]))?;
        let serve = Launch::new(&up.twin().program).args(["net", "serve", "--listen", &listen(PORT)]);
        up.run("server", serve)
    }
}

impl Up<PathTwin> {
    /// The address that duel is told.
    fn address(&self) -> String {
        format!("tcp://{}:{PORT}", self.place().server_address())
    }

    /// The address of the bench's own server there.
    fn flow_address(&self) -> String {
        format!("{}:{FLOW_PORT}", self.place().server_address())
    }
}
