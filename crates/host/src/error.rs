//! Why a host cannot be read, each in one sentence.

use std::time::Duration;

/// Why a host cannot be read. Text from hosts is made safe to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Not a destination that ssh takes.
    #[error(
        "'{given}' is no ssh destination: {why}; give HOST, USER@HOST, a name from your ssh config, or ssh://USER@HOST:PORT"
    )]
    Destination {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not a server that could be looked for.
    #[error("'{given}' is no {what}")]
    Server {
        /// What was given.
        given: String,
        /// What it should have been.
        what: &'static str,
    },
    /// The shell could not be started.
    #[error("cannot start a shell {how}: {why}")]
    Start {
        /// Where, such as `on this machine`.
        how: String,
        /// What the system or ssh said.
        why: String,
    },
    /// The host took too long.
    #[error("the host did not answer within {} s {how}{said}", .waited.as_secs_f64())]
    Silent {
        /// Where.
        how: String,
        /// How long it was waited for.
        waited: Duration,
        /// What it said instead, with a separator before it, or nothing.
        said: String,
    },
    /// The shell ended.
    #[error("the shell {how} ended{said}")]
    Ended {
        /// Where.
        how: String,
        /// What it said, with a separator before it, or nothing.
        said: String,
    },
    /// The management controller cannot be asked.
    #[error("the management controller {address} cannot be asked: {why}")]
    Redfish {
        /// Where it is, without its user.
        address: String,
        /// What is wrong.
        why: String,
    },
}
