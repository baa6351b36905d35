//! The target's address, and whom connections for it are made to.

use crate::reach::resolve::Place;
use duel_load::WorkloadError;
use duel_model::{HttpPlan, sanitize_line};
use url::{Host, Url};

/// An http or https address, parsed and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) url: Url,
    pub(crate) is_tls: bool,
    /// Name or literal address, as for SNI.
    pub(crate) host: String,
    pub(crate) port: u16,
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

    /// Host and port as a proxy is asked for them.
    pub(crate) fn host_and_port(&self) -> String {
        format!("{}:{}", self.url.host_str().unwrap_or_default(), self.port)
    }

    /// The proxy, or what the first `--connect-to` that applies says.
    pub(crate) fn place(&self, plan: &HttpPlan) -> Place {
        if let Some(proxy) = &plan.proxy {
            return Place { host: proxy.host.clone(), port: proxy.port, is_proxy: true };
        }
        let place = |host: String, port: u16| Place { host, port, is_proxy: false };
        let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        for rule in &plan.connect_to {
            let host_applies = rule.host.is_empty() || bare(&rule.host) == bare(&self.host);
            if host_applies && rule.port.is_none_or(|port| port == self.port) {
                let host = if rule.to_host.is_empty() { self.host.clone() } else { bare(&rule.to_host) };
                return place(host, rule.to_port.unwrap_or(self.port));
            }
        }
        place(self.host.clone(), self.port)
    }
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
        let place = |address: &str, plan: &HttpPlan| {
            let Place { host, port, is_proxy } = Address::parse(address).unwrap().place(plan);
            (host, port, is_proxy)
        };
        assert_eq!(place("http://h/", &plan), ("::1".into(), 81, false));
        assert_eq!(place("http://h:90/", &plan), ("y".into(), 90, false));
        let proxy = duel_model::ProxyPlan { host: "p".into(), port: 3128 };
        assert_eq!(place("http://h/", &HttpPlan { proxy: Some(proxy), ..plan }), ("p".into(), 3128, true));
    }
}
