//! Another network than our own to connect in: that of a process in a network namespace (Linux).

use duel_load::WorkloadError;
use rustix::fd::OwnedFd;
use std::sync::Arc;

/// A network namespace. It lives as long as a process is in it, or this is held.
#[derive(Debug, Clone)]
pub struct Network(Arc<OwnedFd>);

/// The same where it is the same one that was opened.
impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Network {}

impl Network {
    /// The network that a process is in.
    ///
    /// # Errors
    ///
    /// A sentence for the user, where there is no such process, or its network may not be looked at.
    pub fn of_process(pid: u32) -> Result<Self, WorkloadError> {
        let file = std::fs::File::open(format!("/proc/{pid}/ns/net"))
            .map_err(|error| WorkloadError(format!("cannot open the network of process {pid}: {error}")))?;
        Ok(Self(Arc::new(file.into())))
    }

    /// Does something in this network, on a thread of its own: the caller's thread stays where it is.
    pub(super) fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> Result<T, WorkloadError> {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter().map(|()| act()));
            inside
                .join()
                .unwrap_or_else(|_| Err(WorkloadError("a thread in another network ended unexpectedly".into())))
        })
    }

    /// Moves the calling thread into this network, for good. Sockets belong to the network that their thread was in when
    /// it made them.
    #[cfg(target_os = "linux")]
    pub(super) fn enter(&self) -> Result<(), WorkloadError> {
        use rustix::fd::AsFd;
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| WorkloadError(format!("cannot enter the network of another process: {error}")))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn enter(&self) -> Result<(), WorkloadError> {
        let _ = &self.0;
        Err(WorkloadError("only Linux has networks of processes".into()))
    }
}
