//! Another network than our own to connect in: a network namespace (Linux), of a process or with a name.

use crate::workload::WorkloadError;
use duel_model::sanitize_line;
use rustix::fd::OwnedFd;
use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;

/// Where `ip netns add` puts names.
const FOLDER: &str = "/run/netns";

/// A network namespace. It lives as long as a process is in it, or this is held.
#[derive(Debug, Clone)]
pub struct Network {
    namespace: Arc<OwnedFd>,
    /// In words.
    what: Arc<str>,
    /// What helps whoever may not enter it.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nobody enters one there"))]
    way_in: Arc<str>,
}

/// The same where it is the same one that was opened.
impl PartialEq for Network {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.namespace, &other.namespace)
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
        let what = format!("the network of process {pid}");
        let file = File::open(format!("/proc/{pid}/ns/net"))
            .map_err(|error| WorkloadError(format!("cannot open {what}: {error}")))?;
        Ok(Self { namespace: Arc::new(file.into()), what: what.into(), way_in: "run duel as root".into() })
    }

    /// The one that `ip netns` knows by this name, which is one of a file in its folder: no slash, and not `..`.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn named(name: &str) -> Result<Self, WorkloadError> {
        let shown = sanitize_line(name);
        let what = format!("the network namespace '{shown}'");
        let file = File::open(format!("{FOLDER}/{name}")).map_err(|error| match error.kind() {
            ErrorKind::NotFound => WorkloadError(format!(
                "there is no network namespace '{shown}' on this machine; `ip netns list` shows those that there are"
            )),
            _ => WorkloadError(format!("cannot open {what}: {error}")),
        })?;
        let way_in = format!("run duel as root, or inside of it: ip netns exec {shown} duel ...").into();
        Ok(Self { namespace: Arc::new(file.into()), what: what.into(), way_in })
    }

    /// Does something in a network, on a thread of its own that ends with it: the caller's thread stays where it is. `None`: in
    /// our own.
    ///
    /// # Errors
    ///
    /// As [`Network::enter`], and those of what is done.
    pub fn within<T: Send>(
        network: Option<&Self>,
        act: impl FnOnce() -> Result<T, WorkloadError> + Send,
    ) -> Result<T, WorkloadError> {
        let Some(network) = network else { return act() };
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| network.enter().and_then(|()| act()));
            inside
                .join()
                .unwrap_or_else(|_| Err(WorkloadError("a thread in another network ended unexpectedly".into())))
        })
    }

    /// Moves the calling thread into this network, for good. Sockets belong to the network that their thread was in when
    /// it made them.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    #[cfg(target_os = "linux")]
    pub fn enter(&self) -> Result<(), WorkloadError> {
        use rustix::fd::AsFd;
        use rustix::io::Errno;
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
            let what = &self.what;
            WorkloadError(match error {
                Errno::PERM => format!("entering {what} needs root (CAP_SYS_ADMIN); {}", self.way_in),
                Errno::INVAL => format!("{what} is none"),
                other => format!("cannot enter {what}: {other}"),
            })
        })
    }

    /// Only Linux has them.
    #[cfg(not(target_os = "linux"))]
    pub fn enter(&self) -> Result<(), WorkloadError> {
        let Self { what, .. } = self;
        Err(WorkloadError(format!("cannot enter {what}: only Linux has network namespaces")))
    }
}
