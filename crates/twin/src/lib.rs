//! A private twin: a running server's program started anew beside it, with everything it was started with and, where that
//! is wanted, one thing changed. So a cause that lies in how a process was started can be taken away, and the running
//! server is never touched.
//!
//! The twin lives in namespaces of its own. Its *network* has the server's addresses and no way out, so that it binds the
//! very port it is configured for, and nobody but who enters that network can reach it. Its *files* are an overlay over
//! the machine's, whose upper half lies in memory: it reads what the server reads, and what it writes (process ids, logs,
//! caches, sockets) is seen by nobody. Its *processes* end with the first of them, a shell whose standard input is a pipe
//! from us: when we end, however we end, so does it, and the kernel removes namespaces and mounts with their last process.
//!
//! Needs Linux, root, and the programs `unshare`, `nsenter`, `mount`, `taskset` (util-linux), `ip` (iproute2) and
//! `chroot`. It knows nothing of what the server speaks: whether the twin answers as the server does is for the caller to
//! find out. See [`ServerProcess::read`] for what cannot have a twin.

mod libraries;
mod process;
mod running;
mod script;
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
