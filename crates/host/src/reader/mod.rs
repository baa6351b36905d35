//! Starting the shell that reads a host. All that differs between here and elsewhere is in this folder.

#[cfg(feature = "ssh")]
mod control;
mod local;
#[cfg(feature = "ssh")]
mod ssh;

use crate::access::{HostAccess, Options};
use crate::error::HostError;
use std::fs::File;

/// Starts a shell that reads its script from standard input. There are two: on this machine and over ssh.
pub(crate) trait Reader {
    /// Starts it.
    fn start(&self) -> Result<Shell, HostError>;
}

/// A running shell. Blocking descriptors, whatever is behind them.
pub(crate) struct Shell {
    pub(crate) stdin: File,
    pub(crate) stdout: File,
    pub(crate) stderr: File,
    /// Ends the shell when dropped, if it has not ended by itself.
    pub(crate) keeper: Box<dyn Send>,
}

/// The reader for this way of reaching a host.
pub(crate) fn reader(access: &HostAccess, options: &Options) -> Result<Box<dyn Reader>, HostError> {
    match access {
        HostAccess::Local => Ok(Box::new(local::Local { command: options.shell.clone() })),
        #[cfg(feature = "ssh")]
        HostAccess::Ssh(destination) => Ok(Box::new(ssh::Ssh {
            destination: destination.clone(),
            config: options.ssh_config.clone(),
            timeout: options.connect_timeout,
            command: options.remote_command()?,
        })),
        #[cfg(not(feature = "ssh"))]
        HostAccess::Ssh(_) => Err(HostError::WithoutSsh),
    }
}
