//! The interface that a connection leaves this machine by, and what is known of it.

use duel_model::sanitize_line;
use std::net::IpAddr;
use std::path::Path;

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    /// Its name, safe to show.
    pub name: String,
    /// Its rate in Mbit/s, where the system knows it.
    pub mbps: Option<f64>,
    /// Tags that its frames carry.
    pub tags: u32,
    /// It is this machine's loopback, which has no wire.
    pub is_loopback: bool,
}

impl Link {
    /// The interface that has this address. `is_here`: what `/sys` tells is of the network that the socket is in, which it is not
    /// in another namespace.
    pub(crate) fn of(local: IpAddr, is_here: bool) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let found = nix::ifaddrs::getifaddrs().ok()?.find(|interface| {
                interface.address.as_ref().is_some_and(|address| {
                    let v4 = address.as_sockaddr_in().map(|at| IpAddr::from(at.ip()));
                    let v6 = || address.as_sockaddr_in6().map(|at| IpAddr::from(at.ip()));
                    v4.or_else(v6) == Some(local)
                })
            })?;
            let is_loopback = found.flags.contains(nix::net::if_::InterfaceFlags::IFF_LOOPBACK);
            Some(Self::read(Path::new("/sys/class/net"), &found.interface_name, is_loopback, is_here))
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = (local, is_here, Path::new("/"));
            None
        }
    }

    fn read(folder: &Path, name: &str, is_loopback: bool, is_here: bool) -> Self {
        let read = |file: &str| std::fs::read_to_string(folder.join(name).join(file)).ok().filter(|_| is_here);
        // A link that is down, and one without a rate, say -1, or nothing.
        let mbps = read("speed").and_then(|text| text.trim().parse().ok()).filter(|&mbps| mbps > 0.0);
        let is_vlan = read("uevent").is_some_and(|text| text.lines().any(|line| line == "DEVTYPE=vlan"));
        Self { name: sanitize_line(name), mbps: mbps.filter(|_| !is_loopback), tags: u32::from(is_vlan), is_loopback }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_of_an_address_is_found() {
        let Some(link) = Link::of([127, 0, 0, 1].into(), true) else { return };
        assert!(link.is_loopback && link.mbps.is_none() && link.tags == 0, "{link:?}");
        assert_eq!(Link::of([192, 0, 2, 1].into(), true), None, "an address that no machine has");
    }
}
