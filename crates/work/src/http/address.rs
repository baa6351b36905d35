//! Where to connect to: from the target's address to a socket address that answers.

use duel_load::{WorkloadError, monotonic_ns};
use duel_model::{HttpPlan, Nanos, sanitize_line};
use rustix::net::SocketAddrUnix;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;
use url::{Host, Url};

/// An http or https address, parsed and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) url: Url,
    pub(crate) is_tls: bool,
    /// Name or literal address, as for SNI.
    pub(crate) host: String,
    port: u16,
}

/// Whether an address has to accept a connection before load is put on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// What cannot work is said at once.
    Needed,
    /// What cannot work is seen under load. Addresses of one name are still tried in turn, or a dead one would be
    /// loaded where a client uses the next.
    Unneeded,
}

/// What connections are made to.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

/// A peer and how it was found.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) peer: Peer,
    /// In words, safe to show.
    pub(crate) shown: String,
    /// All addresses that the name led to, the peer's among them; none of a Unix socket.
    pub(crate) candidates: Vec<SocketAddr>,
    /// Time that the look-up took; `None` when there was nothing to look up.
    pub(crate) lookup_ns: Option<Nanos>,
    /// Addresses that did not answer before this one did, and why, safe to show.
    pub(crate) dead: Vec<String>,
    /// Time that was lost on them.
    pub(crate) dead_ns: Option<Nanos>,
}

impl Address {
    /// Parses an address; says what is wrong with it.
    pub(crate) fn parse(address: &str) -> Result<Self, WorkloadError> {
        let shown = sanitize_line(address);
        let error = |why: &str| WorkloadError(format!("'{shown}' is no usable address: {why}"));
        if address.chars().any(char::is_whitespace) {
            return Err(error("it contains a space; write %20 where the path has one"));
        }
        let url = Url::parse(address).map_err(|reason| error(&reason.to_string()))?;
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(error(&format!("the scheme '{}' is not http or https", sanitize_line(other)))),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(error("a password in an address would be kept and shown; use -H 'Authorization: ...'"));
        }
        let host = match url.host().ok_or_else(|| error("it has no host"))? {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        };
        let port = url.port_or_known_default().filter(|&port| port != 0).ok_or_else(|| error("its port is 0"))?;
        Ok(Self { url, is_tls, host, port })
    }

    /// Finds the first address of the target that accepts a connection.
    ///
    /// A name may have several addresses of which some are dead; what is measured is the one that an ordinary client
    /// would end up with. The answer is used for the whole session, so that all its connections go to the same place.
    pub(crate) fn resolve(
        &self,
        plan: &HttpPlan,
        connect_timeout_ns: Nanos,
        proof: Proof,
    ) -> Result<Resolved, WorkloadError> {
        if let Some(path) = &plan.unix_socket {
            let shown = sanitize_line(&path.to_string_lossy());
            let peer = SocketAddrUnix::new(path)
                .map_err(|error| WorkloadError(format!("'{shown}' cannot be a Unix socket: {error}")))?;
            std::os::unix::net::UnixStream::connect(path).map_err(|error| {
                WorkloadError(format!("cannot connect to the Unix socket {shown}: {}", plain(&error)))
            })?;
            let (candidates, dead) = (Vec::new(), Vec::new());
            return Ok(Resolved { peer: Peer::Unix(peer), shown, candidates, lookup_ns: None, dead, dead_ns: None });
        }
        let (host, port) = self.redirected(plan);
        let shown_host = sanitize_line(&host);
        let is_literal = host.parse::<std::net::IpAddr>().is_ok();
        let before = monotonic_ns();
        let addresses: Vec<SocketAddr> = (host.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| {
                WorkloadError(format!("no such host: the name '{shown_host}' cannot be looked up ({})", plain(&error)))
            })?
            .collect();
        let lookup_ns = (!is_literal).then(|| monotonic_ns() - before);
        let found = |address: SocketAddr, dead: Vec<String>, dead_ns| Resolved {
            peer: Peer::Tcp(address),
            shown: address.to_string(),
            candidates: addresses.clone(),
            lookup_ns,
            dead,
            dead_ns,
        };
        if let (Proof::Unneeded, [only]) = (proof, addresses.as_slice()) {
            return Ok(found(*only, Vec::new(), None));
        }
        let mut failures = Vec::new();
        let first_ns = monotonic_ns();
        for address in &addresses {
            let before_ns = monotonic_ns();
            match TcpStream::connect_timeout(address, Duration::from_nanos(connect_timeout_ns.max(1))) {
                Ok(_) => {
                    let dead_ns = (!failures.is_empty()).then(|| before_ns - first_ns);
                    return Ok(found(*address, failures, dead_ns));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => {
                    return Err(WorkloadError(format!(
                        "no local port is free to connect to {address} from; wait a minute for closed connections to \
                         give theirs back, or widen net.ipv4.ip_local_port_range"
                    )));
                }
                Err(error) => failures.push(format!("{address}: {}", plain(&error))),
            }
        }
        if let (Proof::Unneeded, Some(first)) = (proof, addresses.first()) {
            return Ok(found(*first, failures, None));
        }
        if failures.is_empty() {
            failures.push(format!("the name '{shown_host}' has no address"));
        }
        failures.dedup();
        Err(WorkloadError(format!(
            "cannot connect to {shown_host} port {port} ({}); is the server running, and the port right?",
            failures.join("; ")
        )))
    }

    /// Host and port as a proxy is asked for them.
    pub(crate) fn host_and_port(&self) -> String {
        format!("{}:{}", self.url.host_str().unwrap_or_default(), self.port)
    }

    /// Host and port of the proxy, or after the first `--connect-to` that applies.
    fn redirected(&self, plan: &HttpPlan) -> (String, u16) {
        if let Some(proxy) = &plan.proxy {
            return (proxy.host.clone(), proxy.port);
        }
        let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        for rule in &plan.connect_to {
            let host_applies = rule.host.is_empty() || bare(&rule.host) == bare(&self.host);
            if host_applies && rule.port.is_none_or(|port| port == self.port) {
                let host = if rule.to_host.is_empty() { self.host.clone() } else { bare(&rule.to_host) };
                return (host, rule.to_port.unwrap_or(self.port));
            }
        }
        (self.host.clone(), self.port)
    }
}

/// An error of the operating system without its number.
fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    sanitize_line(text.strip_prefix("failed to lookup address information: ").unwrap_or(text)).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::ConnectTo;

    #[test]
    fn addresses_that_cannot_be_used_say_why() {
        for (address, part) in [
            ("http://h/a b", "space"),
            ("ftp://h/", "not http"),
            ("http://", "empty host"),
            ("http://h:99999/", "port"),
            ("http://h:0/", "port is 0"),
            ("https://user:secret@h/", "password"),
            ("example.org", "relative"),
        ] {
            let error = Address::parse(address).unwrap_err().to_string();
            assert!(error.contains(part), "{address}: {error}");
        }
        let error = Address::parse("https://user:secret@h/").unwrap_err().to_string();
        assert!(error.contains("password"));
    }

    #[test]
    fn ipv6_literals_lose_their_brackets_for_connecting_only() {
        let address = Address::parse("https://[2001:db8::1]:8443/x").unwrap();
        assert_eq!((address.host.as_str(), address.port, address.is_tls), ("2001:db8::1", 8443, true));
        assert_eq!(address.url.host_str(), Some("[2001:db8::1]"));
    }

    #[test]
    fn the_first_rule_that_applies_redirects() {
        let rule = |host: &str, port, to_host: &str, to_port| ConnectTo {
            host: host.into(),
            port,
            to_host: to_host.into(),
            to_port,
        };
        let plan = HttpPlan {
            connect_to: vec![
                rule("other", None, "x", None),
                rule("H", Some(80), "[::1]", Some(81)),
                rule("", None, "y", None),
            ],
            ..HttpPlan::default()
        };
        assert_eq!(Address::parse("http://h/").unwrap().redirected(&plan), ("::1".into(), 81));
        assert_eq!(Address::parse("http://h:90/").unwrap().redirected(&plan), ("y".into(), 90));
    }
}
