//! Network namespaces of this machine, by the names that `ip netns` gives them.

use duel_load::WorkloadError;
use duel_model::sanitize_line;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::Arc;

/// Where `ip netns add` puts names.
const FOLDER: &str = "/run/netns";

/// A network namespace that is held open.
#[derive(Debug, Clone)]
pub(crate) struct Netns(Arc<OwnedFd>, Arc<str>);

impl Netns {
    /// The one of this name, which [`check_netns`](crate::check_netns) has let pass.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub(crate) fn open(name: &str) -> Result<Self, WorkloadError> {
        let shown = sanitize_line(name);
        let file = std::fs::File::open(format!("{FOLDER}/{name}")).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => WorkloadError(format!(
                "there is no network namespace '{shown}' on this machine; `ip netns list` shows those that there are"
            )),
            _ => WorkloadError(format!("cannot open the network namespace '{shown}': {error}")),
        })?;
        Ok(Self(Arc::new(file.into()), name.into()))
    }

    /// Moves the calling thread into it, for good: sockets belong to the network that their thread was in when it made them.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub(crate) fn enter(&self) -> Result<(), WorkloadError> {
        use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
            let name = sanitize_line(&self.1);
            WorkloadError(match error {
                Errno::PERM => format!(
                    "entering the network namespace '{name}' needs root (CAP_SYS_ADMIN); run duel as root, or inside of it: \
                     ip netns exec {name} duel ..."
                ),
                Errno::INVAL => format!("'{name}' is no network namespace"),
                other => format!("cannot enter the network namespace '{name}': {other}"),
            })
        })
    }
}

/// Does something in a namespace, on a thread of its own that ends with it: the caller's thread stays where it is.
///
/// # Errors
///
/// As [`Netns::enter`], and those of what is done.
pub(crate) fn within<T: Send>(
    netns: Option<&Netns>,
    act: impl FnOnce() -> Result<T, WorkloadError> + Send,
) -> Result<T, WorkloadError> {
    let Some(netns) = netns else { return act() };
    std::thread::scope(|scope| {
        let inside = scope.spawn(|| netns.enter().and_then(|()| act()));
        inside.join().unwrap_or_else(|_| Err(WorkloadError("a thread in another network ended unexpectedly".into())))
    })
}
