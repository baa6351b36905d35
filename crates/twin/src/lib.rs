//! A private twin: a running server's program started anew beside it, with what it was started with and, where that is
//! wanted, one thing changed. So a cause that lies in how a process was started can be taken away, and the running server
//! is never touched.
//!
//! Taken over are arguments, environment, working folder, user and groups, limits, priority, the mask of file modes and the
//! CPUs that it may use. Not taken over are its control group (a twin in it would use up what the server may use), its place
//! in the scheduler's policies, and what it has become since: connections, caches, memory.
//!
//! The twin lives in namespaces of its own. Its *network* has the server's addresses and no way out, so that it binds the
//! very port it is configured for, and nobody but who enters that network can reach it. Its *files* are an overlay over
//! the machine's, whose upper half lies in memory: it reads what the server reads, and what it writes (process ids, logs,
//! caches, sockets) is seen by nobody; the root folder that it was made from is taken away. Its *processes* end with the
//! first of them, a shell whose standard input is a pipe from us: when we end, however we end, so does it, and the kernel
//! removes namespaces and mounts with their last process.
//!
//! A twin never has more rights than its server. What the server's owner has chosen is run with the owner's rights, and
//! servers that are confined to less (in a container, say) are refused, since their walls cannot be built anew from here.
//!
//! Needs Linux, root, and the programs `setsid`, `unshare`, `nsenter`, `mount`, `pivot_root`, `prlimit`, `setpriv`, `taskset`
//! (util-linux), `ip` (iproute2) and `env`. It knows nothing of what the server speaks: whether the twin answers as the
//! server does is for the caller to find out. See [`ServerProcess::read`] for what cannot have a twin.

#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod libraries;
mod limits;
mod logs;
mod mounts;
mod process;
mod running;
mod script;
mod settings;
mod title;

pub use process::{Environment, ServerProcess};
pub use running::{Twin, TwinOrder};

/// There is no twin; one sentence that says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoTwin(pub(crate) String);

impl NoTwin {
    fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}
