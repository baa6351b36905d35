//! Local addresses that connections are made from.

use crate::reach::resolve::plain;
use duel_load::WorkloadError;
use duel_model::ReachPlan;
use rustix::fd::AsFd;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

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

/// Other addresses of this machine from which connections to all of `peers` can be made, 64 at most: a limit that a server
/// sets for one client's address does not hold for them all together. Why there is none, otherwise. Nothing is sent.
///
/// On the loopback interface Linux lets any address of 127.0.0.0/8 be used. Elsewhere it is those that the interface has by
/// which connections leave anyhow: answers to addresses of another interface may find no way back to it.
pub(crate) fn other_sources(peers: &[SocketAddr]) -> Result<Vec<IpAddr>, String> {
    const MOST: usize = 64;
    let Some(first) = peers.first() else { return Err("where the targets are is not known".to_owned()) };
    if peers.iter().any(|peer| peer.is_ipv4() != first.is_ipv4()) {
        return Err("the targets have addresses of both families".to_owned());
    }
    if peers.iter().any(|peer| peer.ip().is_loopback() != first.ip().is_loopback()) {
        return Err("some targets are reached over the loopback interface and others are not".to_owned());
    }
    let used: BTreeSet<IpAddr> = peers.iter().filter_map(usual_source).collect();
    let candidates: Vec<IpAddr> = match first.ip() {
        IpAddr::V4(ip) if ip.is_loopback() => {
            (2..=u8::MAX - 1).map(|host| Ipv4Addr::new(127, 0, 0, host).into()).collect()
        }
        IpAddr::V6(ip) if ip.is_loopback() => Vec::new(),
        _ => addresses_beside(&used)?,
    };
    let is_other = |source: &IpAddr| !used.contains(source) && peers.iter().all(|peer| peer.ip() != *source);
    let reaches_all = |source: &IpAddr| peers.iter().all(|peer| can_reach(*source, *peer));
    let others: Vec<IpAddr> = candidates.into_iter().filter(is_other).filter(reaches_all).take(MOST).collect();
    if others.is_empty() {
        let kind = if first.ip().is_loopback() { "loopback address" } else { "address" };
        return Err(format!("not available here: this machine has no other {kind} to reach the targets from"));
    }
    Ok(others)
}

/// The address that the system lets connections to `peer` come from.
fn usual_source(peer: &SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    // Connecting a UDP socket looks up a route, and sends nothing.
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn can_reach(source: IpAddr, peer: SocketAddr) -> bool {
    UdpSocket::bind((source, 0)).is_ok_and(|socket| socket.connect(peer).is_ok())
}

/// The addresses of global scope, of the interfaces that have one of `used`.
fn addresses_beside(used: &BTreeSet<IpAddr>) -> Result<Vec<IpAddr>, String> {
    let all = nix::ifaddrs::getifaddrs().map_err(|error| {
        format!("this machine's addresses cannot be listed: {}", plain(&std::io::Error::from(error)))
    })?;
    let all: Vec<(String, IpAddr)> = all
        .filter_map(|entry| {
            let address = entry.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            let ip = v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))?;
            Some((entry.interface_name, ip))
        })
        .collect();
    let interfaces: BTreeSet<&String> = all.iter().filter(|(_, ip)| used.contains(ip)).map(|(name, _)| name).collect();
    let beside = all.iter().filter(|(name, ip)| interfaces.contains(name) && has_global_scope(*ip));
    let beside: BTreeSet<IpAddr> = beside.map(|(_, ip)| *ip).collect();
    Ok(beside.into_iter().collect())
}

fn has_global_scope(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified() && !ip.is_multicast(),
        IpAddr::V6(ip) => {
            !ip.is_loopback() && !ip.is_unicast_link_local() && !ip.is_unspecified() && !ip.is_multicast()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(peers: &[&str]) -> Result<Vec<IpAddr>, String> {
        let peers: Vec<SocketAddr> = peers.iter().map(|peer| peer.parse().unwrap()).collect();
        other_sources(&peers)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn on_the_loopback_interface_of_linux_there_are_many_and_the_one_in_use_is_none_of_them() {
        let found = others(&["127.0.0.1:80", "127.0.0.5:81"]).unwrap();
        assert_eq!(found.len(), 64);
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 64);
        for taken in ["127.0.0.1", "127.0.0.5"] {
            assert!(!found.contains(&taken.parse().unwrap()), "{taken} is in use: {found:?}");
        }
        for ip in found {
            assert_eq!(try_out(ip).map_err(|error| error.to_string()), Ok(()), "{ip}");
        }
    }

    #[test]
    fn where_there_is_none_the_reason_is_told() {
        for (peers, why) in [
            (&[][..], "not known"),
            (&["[::1]:80"], "no other loopback address"),
            (&["127.0.0.1:80", "[::1]:80"], "both families"),
            (&["127.0.0.1:80", "192.0.2.1:80"], "loopback interface and others are not"),
        ] {
            let told = others(peers).unwrap_err();
            assert!(told.contains(why), "{peers:?}: {told}");
        }
    }

    /// Whatever this machine has: no link-local address, no loopback address, and not the one that is used anyhow.
    #[test]
    fn elsewhere_they_are_other_addresses_of_the_interface() {
        let peer: SocketAddr = "192.0.2.1:80".parse().unwrap();
        for other in other_sources(&[peer]).unwrap_or_default() {
            assert!(has_global_scope(other) && Some(other) != usual_source(&peer), "{other}");
        }
        for (ip, global) in [
            ("10.0.0.1", true),
            ("169.254.1.1", false),
            ("127.0.0.2", false),
            ("fe80::1", false),
            ("fd00::1", true),
            ("2001:db8::1", true),
            ("::1", false),
        ] {
            assert_eq!(has_global_scope(ip.parse().unwrap()), global, "{ip}");
        }
    }
}
