//! Starting the shell that reads a host. All that differs between here and elsewhere is in this folder.

mod child;
mod ssh;

use crate::access::{HostAccess, Options};
use crate::error::HostError;
use std::ffi::OsString;
use std::fs::File;
use std::time::Duration;

/// A running shell. Blocking descriptors, whatever is behind them.
pub(crate) struct Shell {
    pub(crate) stdin: File,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
    /// Ends the shell when dropped, if it has not ended by itself.
    pub(crate) keeper: Box<dyn Send>,
}

/// Starts a shell that reads its script from standard input. There are two: on this machine and over ssh.
///
/// # Errors
///
/// When the program cannot be started. Whether ssh gets through shows later, by the script's first answer.
pub(crate) fn start(access: &HostAccess, options: &Options) -> Result<Shell, HostError> {
    let (program, call) = match access {
        HostAccess::Local => {
            let Some((program, arguments)) = options.shell.split_first() else {
                return Err(HostError::Start { how: access.how(), why: "none is named".to_owned() });
            };
            (program.as_str(), ssh::Call { arguments: arguments.iter().map(OsString::from).collect(), settings: None })
        }
        HostAccess::Ssh(destination) => ("ssh", ssh::call(destination, options)?),
    };
    let started = child::start(program, &call.arguments);
    let shell = started.map_err(|error| HostError::Start { how: access.how(), why: format!("{program}: {error}") })?;
    Ok(Shell { keeper: Box::new((shell.keeper, call.settings)), ..shell })
}

/// How long the shell may take until it gives its first answer.
pub(crate) fn patience(access: &HostAccess, options: &Options) -> Duration {
    match access {
        HostAccess::Local => options.facts_timeout,
        // ssh's own timeout covers connecting and exchanging keys; this covers proving who we are, and the login shell.
        HostAccess::Ssh(_) => options.connect_timeout + Duration::from_secs(5),
    }
}

/// What a shell that never answered said, as the reason why there is none.
pub(crate) fn reason(access: &HostAccess, said: &[String]) -> String {
    match access {
        HostAccess::Local => said.join("; "),
        HostAccess::Ssh(_) => ssh::reason(said),
    }
}
