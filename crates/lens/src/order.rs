//! What is to be measured, and why it cannot be.

use duel_model::{LensOp, Nanos, SECOND_NS};
use duel_process::FileId;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What [`measure`](crate::measure) is told.
#[derive(Debug, Clone)]
pub struct LensOrder {
    /// The library, as it is named to people.
    pub library: PathBuf,
    /// The file itself, where it is that of a process, which may map a file whose name leads to another one since, or to
    /// another one at any moment. Each child gets it as an open descriptor (Linux).
    pub opened: Option<Arc<File>>,
    /// The running server that maps it, whose own state is read as well.
    pub server: Option<ServerProcess>,
    /// All of the child's environment: what the server's has that a libcrypto looks at.
    pub environment: BTreeMap<OsString, OsString>,
    /// Whose rights the child gets; `None` leaves it ours.
    pub run_as: Option<RunAs>,
    /// Time for all children together.
    pub budget_ns: Nanos,
    /// What is measured.
    pub ops: Vec<LensOp>,
    /// How a child is started.
    pub child: ChildCommand,
    /// Time that a child may take beyond its part of the budget, before it is killed.
    pub grace_ns: Nanos,
}

/// The command that comes to [`child::main`](crate::child::main).
#[derive(Debug, Clone)]
pub struct ChildCommand {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments.
    pub arguments: Vec<OsString>,
}

/// A process that maps the library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProcess {
    /// Its number.
    pub pid: u32,
    /// The library as the process's mappings tell it.
    pub file: FileId,
}

/// A user and a group by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAs {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl LensOrder {
    /// The default budget. Eight children of half a second each: enough for a dozen short rounds of every figure.
    pub const BUDGET_NS: Nanos = 4 * SECOND_NS;
    /// The default grace: a CPU without any assembly needs a second for the least number of rounds.
    pub const GRACE_NS: Nanos = 3 * SECOND_NS;

    /// Everything of a library, in an empty environment, with our own rights.
    pub fn new(library: impl Into<PathBuf>, child: ChildCommand) -> Self {
        Self {
            library: library.into(),
            opened: None,
            server: None,
            environment: BTreeMap::new(),
            run_as: None,
            budget_ns: Self::BUDGET_NS,
            ops: LensOp::ALL.to_vec(),
            child,
            grace_ns: Self::GRACE_NS,
        }
    }
}

/// Why there is no reading. Every text is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum LensError {
    /// The file cannot be read.
    #[error("cannot read {path}: {error}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The file is no library for this machine.
    #[error("{path} {what}")]
    NotALibrary {
        /// The file.
        path: String,
        /// What it is instead.
        what: String,
    },
    /// The process is not there, cannot be looked at, or maps no libcrypto.
    #[error("{0}")]
    Process(String),
    /// The child cannot be started.
    #[error("cannot start the child process that measures {path}: {error}")]
    NotStarted {
        /// The library.
        path: String,
        /// The system's reason.
        error: io::Error,
    },
    /// The library cannot be loaded, or has no EVP functions that work.
    #[error("{path} cannot be measured: {why}")]
    Unusable {
        /// The library.
        path: String,
        /// The loader's, the library's or our own words.
        why: String,
    },
    /// The child was killed by a signal: the library crashed it, or somebody ended it.
    #[error("the child process that loaded {path} was ended by signal {signal}{}", signal_name(*signal))]
    Crashed {
        /// The library.
        path: String,
        /// The signal.
        signal: i32,
    },
    /// The child did not end in its time.
    #[error("the child process that loaded {path} hung and was killed after {after_ms} ms")]
    Hung {
        /// The library.
        path: String,
        /// How long it was waited for.
        after_ms: u64,
    },
    /// The child said something else than it should, or too much, or too little.
    #[error("the child process that loaded {path} {what}")]
    Nonsense {
        /// The library.
        path: String,
        /// What it said.
        what: String,
    },
}

/// The signals that a broken library ends in.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (illegal instruction)",
        6 => " (abort)",
        8 => " (arithmetic error)",
        9 => " (killed)",
        11 => " (bad memory access)",
        _ => "",
    }
}
