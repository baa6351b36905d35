//! Databases: two servers with the tables of sysbench, and duel over their Unix sockets.

mod ops;
mod server;
mod tools;

use super::{Kind, Pair};
use crate::arena::CLIENT_CPU;
use crate::case::Setup;
use crate::servers::Place;
use crate::world::{Launch, Stop, VolumePlan, World};
use anyhow::ensure;
use server::Server;
pub(crate) use server::is_missing;
use std::path::Path;

/// The kind.
#[derive(Clone, Copy)]
pub(crate) struct Sql;

/// Which program it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    Postgres,
    MariaDb,
}

impl System {
    pub(crate) fn name(self) -> &'static str {
        match self {
            System::Postgres => "postgres",
            System::MariaDb => "mariadb",
        }
    }
}

/// A database to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SqlTwin {
    pub(crate) system: System,
    pub(crate) rows: u32,
    /// Settings of the server, by the names that it has for them.
    pub(crate) settings: Vec<(&'static str, &'static str)>,
    /// Statements that are executed once its table is there.
    pub(crate) statements: Vec<&'static str>,
    /// A file system of its own for its data.
    pub(crate) volume: Option<VolumePlan>,
    /// Who stands before its socket.
    pub(crate) relay: Option<Relay>,
}

/// A relay that makes some messages of clients wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relay {
    /// Of the messages on a connection; 0: none.
    pub(crate) every: u32,
    pub(crate) us: u32,
}

/// The load that duel is told to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transactions {
    pub(crate) op: &'static str,
    pub(crate) connections: u32,
    /// Rows of a range.
    pub(crate) range: u32,
    /// Whether each transaction has a connection of its own.
    pub(crate) reconnects: bool,
    /// How rows are drawn.
    pub(crate) keys: &'static str,
}

/// Both, running.
pub(crate) struct SqlArena {
    healthy: Server,
    faulty: Server,
    faulty_place: Place,
    load: Transactions,
    stop: Stop,
}

impl Kind for Sql {
    const NAME: &'static str = "sql";
    type Twin = SqlTwin;
    type Load = Transactions;
    type Arena = SqlArena;

    fn words_of_setup(twin: &SqlTwin, load: &Transactions) -> Vec<String> {
        let rows = format!("{}k", twin.rows / 1000);
        let mut words = ["sql", twin.system.name(), load.op, &rows].map(str::to_owned).to_vec();
        words.push(format!("c{}", load.connections));
        words.extend((load.range != DEFAULT_RANGE).then(|| format!("range{}", load.range)));
        words.extend(load.reconnects.then(|| "anew".to_owned()));
        words.extend((load.keys != DEFAULT_KEYS).then(|| load.keys.to_owned()));
        words
    }

    fn start(world: &World, pair: &Pair<Sql>, faulty_place: Place, duel: &Path) -> anyhow::Result<SqlArena> {
        ensure!(duel.is_file(), "duel, which fills the tables, is not at {}: build it", duel.display());
        // Both are copies of one: their tables lie in the same blocks.
        let data = server::filled(world, &pair.healthy, duel)?;
        let healthy = Server::start(world, &pair.healthy, data.path())?;
        let faulty = Server::start(world, &pair.faulty, data.path())?;
        Ok(SqlArena { healthy, faulty, faulty_place, load: pair.load, stop: world.stop() })
    }

    fn ensure_both_work(arena: &SqlArena) -> anyhow::Result<()> {
        for server in [&arena.healthy, &arena.faulty] {
            ensure!(server.ask("SELECT count(*) FROM sbtest1")?.trim() != "0", "there are no rows");
        }
        Ok(())
    }

    fn duel(arena: &SqlArena, load: &Transactions, duel: &Path, _local: bool) -> Launch {
        let mut places = [(arena.faulty_place, &arena.faulty), (arena.faulty_place.other(), &arena.healthy)];
        places.sort_by_key(|(place, _)| place.target_name());
        let mut words: Vec<String> =
            places.map(|(place, server)| format!("{}={}", place.target_name(), server.address())).to_vec();
        let rows = arena.healthy.rows().to_string();
        let (connections, range) = (load.connections.to_string(), load.range.to_string());
        words.extend(
            ["--op", load.op, "--table-size", &rows, "-c", &connections, "--range-size", &range, "--keys", load.keys]
                .map(str::to_owned),
        );
        words.extend(load.reconnects.then(|| "--reconnect".to_owned()));
        Launch::new(duel).on(CLIENT_CPU).args(words)
    }
}

const DEFAULT_RANGE: u32 = 100;
const DEFAULT_KEYS: &str = "uniform";

impl Setup<Sql> {
    /// A table of so many rows, and an op over one connection.
    pub(crate) fn rows(system: System, rows: u32, op: &'static str) -> Setup<Sql> {
        let twin = SqlTwin { system, rows, settings: Vec::new(), statements: Vec::new(), volume: None, relay: None };
        let load = Transactions { op, connections: 1, range: DEFAULT_RANGE, reconnects: false, keys: DEFAULT_KEYS };
        Setup::new(twin, load)
    }

    pub(crate) fn sessions(mut self, connections: u32) -> Setup<Sql> {
        self.load.connections = connections;
        self
    }

    pub(crate) fn sends(mut self, change: impl FnOnce(&mut Transactions)) -> Setup<Sql> {
        change(&mut self.load);
        self
    }
}
