//! Addresses of targets: `tcp://HOST:PORT`, with `?netns=NAME` where connections are made from another network namespace.

use duel_load::WorkloadError;
use duel_model::{sanitize_line, without_secrets};
use std::net::{SocketAddr, ToSocketAddrs};

/// The port that `duel net serve` listens on unless it is told another: D, U, E, L on a telephone's keys.
pub const PORT: u16 = 3835;
/// What addresses of this kind begin with.
pub(crate) const SCHEME: &str = "tcp://";
const NETNS: &str = "netns=";

/// An address, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Name or address of the machine, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Name of the network namespace that connections are made from.
    pub netns: Option<String>,
}

impl Address {
    /// Takes an address apart.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn parse(typed: &str) -> Result<Self, WorkloadError> {
        let wrong = |why: &str| {
            WorkloadError(format!(
                "'{}' {why}; an address is tcp://HOST or tcp://HOST:PORT",
                sanitize_line(&without_secrets(typed))
            ))
        };
        let rest = typed.strip_prefix(SCHEME).ok_or_else(|| wrong("does not begin with tcp://"))?;
        let (authority, query) =
            rest.split_once('?').map_or((rest, None), |(authority, query)| (authority, Some(query)));
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        if authority.contains('/') {
            return Err(wrong("has a path, which means nothing to a network"));
        }
        if authority.contains('@') {
            return Err(wrong("has a user, which means nothing to a network"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']').ok_or_else(|| wrong("has a bracket that is not closed"))?;
                if host.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(wrong("has no IPv6 address in its brackets"));
                }
                match behind {
                    "" => (host, None),
                    behind => {
                        (host, Some(behind.strip_prefix(':').ok_or_else(|| wrong("has something behind its bracket"))?))
                    }
                }
            }
            None if authority.matches(':').count() > 1 => return Err(wrong("needs brackets around its IPv6 address")),
            None => authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(wrong("names no machine"));
        }
        let port = match port {
            None => PORT,
            Some(port) => {
                port.parse().ok().filter(|&port| port > 0).ok_or_else(|| wrong("has no port from 1 to 65535"))?
            }
        };
        let netns = match query {
            None => None,
            Some(query) => {
                let name = query
                    .strip_prefix(NETNS)
                    .ok_or_else(|| wrong("has something behind its '?' that is not netns=NAME"))?;
                check_netns(name)?;
                Some(name.to_owned())
            }
        };
        Ok(Self { host: host.to_owned(), port, netns })
    }

    /// The same, with connections made from another namespace.
    #[must_use]
    pub fn within(mut self, netns: &str) -> Self {
        self.netns = Some(netns.to_owned());
        self
    }

    /// The sockets' addresses that the name leads to, in the system's order.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, WorkloadError> {
        let host = sanitize_line(&self.host);
        let found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|error| WorkloadError(format!("{host} cannot be looked up: {error}")))?;
        Ok(found.collect())
    }

    /// Tries each address that the name leads to until one can be connected to, and what that came to. If there is none, why not
    /// the first.
    ///
    /// # Errors
    ///
    /// A sentence for the user.
    pub(crate) fn connect<T>(
        &self,
        mut connect: impl FnMut(SocketAddr) -> Result<T, WorkloadError>,
    ) -> Result<(SocketAddr, T), WorkloadError> {
        first_of(&self.resolve()?, &mut connect)
            .unwrap_or_else(|| Err(WorkloadError(format!("{} leads to no address", sanitize_line(&self.host)))))
    }
}

/// A name such as localhost leads to addresses of both families, of which one alone may be listened at.
fn first_of<T>(
    addresses: &[SocketAddr],
    connect: &mut impl FnMut(SocketAddr) -> Result<T, WorkloadError>,
) -> Option<Result<(SocketAddr, T), WorkloadError>> {
    let mut first_error = None;
    for address in addresses {
        match connect(*address) {
            Ok(connected) => return Some(Ok((*address, connected))),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    first_error.map(Err)
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "{SCHEME}[{}]:{}", self.host, self.port)?,
            false => write!(f, "{SCHEME}{}:{}", self.host, self.port)?,
        }
        self.netns.as_ref().map_or(Ok(()), |netns| write!(f, "?{NETNS}{netns}"))
    }
}

/// Whether a text can be the name of a network namespace: that of a file, and nothing that leads elsewhere.
///
/// # Errors
///
/// A sentence for the user.
pub fn check_netns(name: &str) -> Result<(), WorkloadError> {
    let is_name = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && !name.starts_with('.');
    if is_name {
        Ok(())
    } else {
        Err(WorkloadError(format!(
            "'{}' is no name of a network namespace; `ip netns list` shows those that there are",
            sanitize_line(name)
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_and_put_together() {
        for (typed, host, port, netns, shown) in [
            ("tcp://a.example", "a.example", 3835, None, "tcp://a.example:3835"),
            ("tcp://10.0.0.1:5201/", "10.0.0.1", 5201, None, "tcp://10.0.0.1:5201"),
            ("tcp://[::1]:9", "::1", 9, None, "tcp://[::1]:9"),
            ("tcp://[::1]", "::1", 3835, None, "tcp://[::1]:3835"),
            ("tcp://h:1?netns=ns-1", "h", 1, Some("ns-1"), "tcp://h:1?netns=ns-1"),
        ] {
            let address = Address::parse(typed).unwrap();
            assert_eq!((address.host.as_str(), address.port, address.netns.as_deref()), (host, port, netns), "{typed}");
            assert_eq!(address.to_string(), shown);
            assert_eq!(Address::parse(shown), Ok(address));
        }
    }

    #[test]
    fn each_address_of_a_name_is_tried_until_one_can_be_connected_to() {
        let [v6, v4] = ["[::1]:9", "127.0.0.1:9"].map(|text| text.parse::<SocketAddr>().unwrap());
        let refused = |at: SocketAddr| WorkloadError(format!("nobody listens at {at}"));
        let only = |open: Option<SocketAddr>| {
            let mut connect = |at: SocketAddr| if open == Some(at) { Ok(at.port()) } else { Err(refused(at)) };
            first_of(&[v6, v4], &mut connect)
        };
        assert_eq!(only(Some(v4)), Some(Ok((v4, 9))));
        assert_eq!(only(Some(v6)), Some(Ok((v6, 9))));
        assert_eq!(only(None), Some(Err(refused(v6))));
        assert_eq!(first_of(&[], &mut |_| Ok(())), None);
    }

    #[test]
    fn what_is_no_address_is_refused_in_one_line() {
        for (typed, why) in [
            ("tcp://", "names no machine"),
            ("tcp://h:0", "no port"),
            ("tcp://h:99999", "no port"),
            ("tcp://::1", "needs brackets"),
            ("tcp://[::1", "not closed"),
            ("tcp://[h]:1", "no IPv6 address"),
            ("tcp://h/x", "has a path"),
            ("tcp://u@h", "has a user, which"),
            ("tcp://u:secret@h", "'tcp://[left out]@h' has a user, which"),
            ("tcp://h?x=1", "netns=NAME"),
            ("tcp://h?netns=../x", "no name of a network namespace"),
            ("tcp://h?netns=.x", "no name of a network namespace"),
            ("http://h", "does not begin with"),
            ("tcp://h\u{1b}[2J", "names no machine"),
        ] {
            let said = Address::parse(typed).unwrap_err().0;
            assert!(said.contains(why) && !said.chars().any(char::is_control), "{typed}: {said}");
        }
    }
}
