//! The reader at the other end of an sshd of a test's own.

use super::quiet;
use super::sshd::Sshd;
use duel_host::{HostAccess, HostError, HostWatch, Options, Server};
use std::time::Duration;

impl Sshd {
    pub(crate) fn options(&self) -> Options {
        Options { ssh_config: Some(self.path().join("config")), connect_timeout: Duration::from_secs(20), ..quiet() }
    }

    pub(crate) fn open(&self, server: &Server) -> Result<HostWatch, HostError> {
        HostWatch::open_with(&HostAccess::ssh("far").unwrap(), server, &self.options())
    }
}
