//! What the machines of targets are and were doing: facts, counters and the last lines of the kernel log.
//!
//! One POSIX shell script is sent to `/bin/sh` on the host's standard input. It prints facts, and then one sample for
//! each line that it is sent, until its input ends. Here and over ssh the script is the same; only how the shell is
//! started differs ([`HostAccess`]). Nothing is installed or written on the host.
//!
//! ```no_run
//! use duel_host::{HostAccess, HostWatch, Server};
//! use duel_model::HostSpan;
//!
//! let watch = HostWatch::open(HostAccess::ssh("web1")?, Server::Port(443))?;
//! println!("{:?}", watch.facts().text("cpu.model"));
//! let from = watch.sample()?;
//! // ... load ...
//! let to = watch.sample()?;
//! println!("CPU per op: {:?} ns", HostSpan::between(&from, &to).per_op("process.cpu_ns", 1000));
//! let record = watch.finish();
//! # Ok::<(), duel_host::HostError>(())
//! ```
//!
//! What hosts say is hostile: it is bounded where it is read, parsed by functions that cannot fail, and made safe to show.

mod access;
mod error;
mod frames;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod kernel_log;
mod mask;
mod parse;
mod reader;
mod redfish;
mod samples;
mod script;
mod session;
mod watch;

pub use access::{HostAccess, Options, Server};
pub use error::HostError;
pub use parse::Serving;
pub use redfish::{Password, REDFISH_PASSWORD_VARIABLE, Redfish, RedfishTrust};
pub use watch::{HostWatch, Looking};
