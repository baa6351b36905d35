//! Local addresses that connections are made from.

use super::resolve::plain;
use duel_load::WorkloadError;
use duel_model::ReachPlan;
use rustix::fd::AsFd;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The local addresses of a plan, by family. Without any the system chooses.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sources {
    v4: Vec<IpAddr>,
    v6: Vec<IpAddr>,
}

impl Sources {
    /// Those of the plan, each once; an error says which of them this machine does not have.
    pub(crate) fn checked(plan: &ReachPlan) -> Result<Self, WorkloadError> {
        let count = plan.source_count();
        if count > ReachPlan::MOST_SOURCES {
            return Err(WorkloadError(format!(
                "--source: {count} local addresses are more than can be used; {} can",
                ReachPlan::MOST_SOURCES
            )));
        }
        let mut seen = BTreeSet::new();
        let mut sources = Self::default();
        for source in plan.sources.iter().flat_map(duel_model::AddressRange::iter) {
            if seen.insert(source) {
                try_out(source)?;
                if source.is_ipv4() { &mut sources.v4 } else { &mut sources.v6 }.push(source);
            }
        }
        Ok(sources)
    }

    /// Those from which `peer` can be reached; of none the system chooses.
    pub(crate) fn of(&self, peer: &SocketAddr) -> &[IpAddr] {
        if peer.is_ipv4() { &self.v4 } else { &self.v6 }
    }

    /// Whether there is a way from here to `peer`.
    pub(crate) fn reach(&self, peer: &SocketAddr) -> bool {
        self.is_empty() || !self.of(peer).is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty()
    }
}

/// Makes a socket connect from `source`, from a port that the system chooses when it connects.
///
/// On Linux the port is not taken before that (`IP_BIND_ADDRESS_NO_PORT`): a port that is taken by binding is taken for
/// all peers, so that connections to several of them would share one range; when connecting, it need only be free for the
/// pair of addresses. A kernel that cannot (before 4.2) takes it at once, and ports run out earlier.
pub(crate) fn bind(socket: &impl AsFd, source: IpAddr) -> Result<(), Errno> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = nix::sys::socket::setsockopt(socket, nix::sys::socket::sockopt::IpBindAddressNoPort, &true);
    rustix::net::bind(socket, &SocketAddr::new(source, 0))
}

fn try_out(source: IpAddr) -> Result<(), WorkloadError> {
    let bound = Socket::new(Domain::for_address(SocketAddr::new(source, 0)), Type::STREAM, None)
        .and_then(|socket| bind(&socket, source).map_err(std::io::Error::from));
    bound.map_err(|error| {
        WorkloadError(if error.kind() == std::io::ErrorKind::AddrNotAvailable {
            format!("--source: the address {source} is not on this machine; `ip address` lists those that are")
        } else {
            format!("--source: connections cannot be made from {source}: {}", plain(&error))
        })
    })
}
