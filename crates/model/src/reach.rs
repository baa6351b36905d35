//! How connections are made: from where, to which of the addresses that a name leads to, and what is said on them first.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// How connections to targets are made, the same for all of them. The default is what a plain client does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachPlan {
    /// Local addresses that connections are made from, in turn; empty: the system chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<AddressRange>,
    /// Names that are not looked up, because what they lead to was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<NameOverride>,
    /// Which of a name's addresses are connected to.
    #[serde(default, skip_serializing_if = "AddressChoice::is_default")]
    pub addresses: AddressChoice,
    /// Only addresses of this family; `None`: of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<IpFamily>,
    /// Each connection begins with a header of this version of HAProxy's PROXY protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_protocol: Option<ProxyProtocol>,
}

impl ReachPlan {
    /// Most local addresses: with 28,000 ports each they carry a hundred million connections, and all of them are tried
    /// before load begins.
    pub const MOST_SOURCES: u128 = 4096;

    /// Whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// How many local addresses there are.
    pub fn source_count(&self) -> u128 {
        self.sources.iter().fold(0, |sum, range| sum.saturating_add(range.count()))
    }

    /// What is typed for it: options, and their values.
    pub(crate) fn options(&self) -> Vec<(&'static str, Option<String>)> {
        let mut options = Vec::new();
        if !self.sources.is_empty() {
            let list: Vec<String> = self.sources.iter().map(AddressRange::to_string).collect();
            options.push(("--source", Some(list.join(","))));
        }
        options.extend(self.overrides.iter().map(|rule| ("--resolve", Some(rule.to_string()))));
        options.extend(self.family.map(|family| (family.option(), None)));
        options
    }
}

/// Which of the addresses that a name leads to are connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressChoice {
    /// The first that accepts a connection, tried in the resolver's order before load begins.
    #[default]
    Answering,
    /// The one that a client with happy eyeballs would end up with (RFC 8305), found out before load begins.
    Race,
    /// The resolver's first, whether or not it answers.
    First,
    /// All that accept a connection, in turn from connection to connection.
    All,
}

impl AddressChoice {
    /// The choice that is typed so.
    pub(crate) fn of_name(typed: &str) -> Option<Self> {
        [Self::Answering, Self::Race, Self::First, Self::All].into_iter().find(|choice| choice.name() == typed)
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answering => "answering",
            Self::Race => "race",
            Self::First => "first",
            Self::All => "all",
        }
    }

    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl IpFamily {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    fn option(self) -> &'static str {
        match self {
            Self::V4 => "--ipv4",
            Self::V6 => "--ipv6",
        }
    }
}

impl fmt::Display for IpFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// A version of the PROXY protocol (HAProxy, `doc/proxy-protocol.txt`), by which a proxy tells whom a connection is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyProtocol {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

impl ProxyProtocol {
    /// The version that is typed so.
    pub(crate) fn of_name(typed: &str) -> Option<Self> {
        [Self::V1, Self::V2].into_iter().find(|version| version.name() == typed)
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// What was typed is no such thing; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseReachError(String);

/// Addresses from one to another, both included, of one family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    last: IpAddr,
}

impl AddressRange {
    /// The family of all of them.
    pub fn family(&self) -> IpFamily {
        IpFamily::of(self.first)
    }

    /// How many there are; at least one.
    pub fn count(&self) -> u128 {
        bits(self.last).abs_diff(bits(self.first)).saturating_add(1)
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let family = self.family();
        (bits(self.first)..=bits(self.last)).map(move |bits| address(family, bits))
    }

    /// These addresses in as few ranges as hold them and nothing else, in their order: neighbours become one range.
    pub fn holding(addresses: impl IntoIterator<Item = IpAddr>) -> Vec<Self> {
        let mut ranges: Vec<Self> = Vec::new();
        for next in addresses {
            match ranges.last_mut() {
                Some(range)
                    if range.family() == IpFamily::of(next) && bits(range.last).checked_add(1) == Some(bits(next)) =>
                {
                    range.last = next;
                }
                _ => ranges.push(next.into()),
            }
        }
        ranges
    }
}

impl From<IpAddr> for AddressRange {
    fn from(only: IpAddr) -> Self {
        Self { first: only, last: only }
    }
}

impl FromStr for AddressRange {
    type Err = ParseReachError;

    /// Reads `ADDRESS`, `FIRST-LAST` or `NETWORK/BITS`.
    ///
    /// Of an IPv4 network the first and the last address are left out where they are the network's own and its broadcast
    /// address (RFC 950, 2.1; not so from /31 on, RFC 3021): no machine has them.
    fn from_str(typed: &str) -> Result<Self, ParseReachError> {
        let wrong = |why: String| Err(ParseReachError(why));
        if let Some((network, length)) = typed.split_once('/') {
            let network = literal(network)?;
            let family = IpFamily::of(network);
            let whole = if family == IpFamily::V4 { 32 } else { 128 };
            let Some(length) = length.parse::<u32>().ok().filter(|&length| length <= whole) else {
                return wrong(format!("'{}' is no length of an {family} network", crate::sanitize_line(length)));
            };
            let hosts = u128::MAX.checked_shr(128 - (whole - length)).unwrap_or(0);
            let first = bits(network);
            if first & hosts != 0 {
                let base = address(family, first & !hosts);
                return wrong(format!("{network} is not where a network begins; that is {base}/{length}"));
            }
            let own = u128::from(family == IpFamily::V4 && length < 31);
            return Ok(Self { first: address(family, first + own), last: address(family, (first | hosts) - own) });
        }
        let (first, last) = typed.split_once('-').unwrap_or((typed, typed));
        let (first, last) = (literal(first)?, literal(last)?);
        if IpFamily::of(first) != IpFamily::of(last) {
            return wrong(format!("{first} and {last} are of different families"));
        }
        if bits(first) > bits(last) {
            return wrong(format!("{last} comes before {first}"));
        }
        Ok(Self { first, last })
    }
}

impl fmt::Display for AddressRange {
    /// As it is typed: `ADDRESS` or `FIRST-LAST`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last { self.first.fmt(f) } else { write!(f, "{}-{}", self.first, self.last) }
    }
}

/// `HOST:PORT:ADDR[,ADDR...]`: what a name leads to, instead of what looking it up would say (as curl's `--resolve`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameOverride {
    /// The name in lower case, IPv6 addresses without brackets; `*`: any.
    host: String,
    port: u16,
    addresses: Vec<IpAddr>,
}

impl NameOverride {
    /// That a name leads to this address, where its port is asked for.
    pub(crate) fn new(host: &str, to: SocketAddr) -> Self {
        Self { host: host.to_ascii_lowercase(), port: to.port(), addresses: vec![to.ip()] }
    }

    /// The addresses, where this is told about `host` and `port`.
    pub fn addresses_of(&self, host: &str, port: u16) -> Option<&[IpAddr]> {
        let applies = port == self.port && (self.host == "*" || self.host.eq_ignore_ascii_case(host));
        applies.then_some(&self.addresses)
    }
}

impl FromStr for NameOverride {
    type Err = ParseReachError;

    fn from_str(typed: &str) -> Result<Self, ParseReachError> {
        let form =
            || ParseReachError(format!("'{}' has not the form HOST:PORT:ADDR[,ADDR...]", crate::sanitize_line(typed)));
        let (host, rest) = match typed.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").ok_or_else(form)?,
            None => typed.split_once(':').ok_or_else(form)?,
        };
        let (port, addresses) = rest.split_once(':').ok_or_else(form)?;
        let port = port.parse::<u16>().ok().filter(|&port| port > 0).ok_or_else(form)?;
        if host.is_empty() || host.chars().any(|c| c.is_whitespace() || c.is_control() || c == '[' || c == ']') {
            return Err(form());
        }
        let bare = |text: &str| text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).map(str::to_owned);
        let addresses = addresses
            .split(',')
            .map(|text| literal(&bare(text).unwrap_or_else(|| text.to_owned())))
            .collect::<Result<_, _>>()?;
        Ok(Self { host: host.to_ascii_lowercase(), port, addresses })
    }
}

impl fmt::Display for NameOverride {
    /// As it is typed, IPv6 addresses in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bracketed = |text: String| if text.contains(':') { format!("[{text}]") } else { text };
        let addresses: Vec<String> = self.addresses.iter().map(|address| bracketed(address.to_string())).collect();
        write!(f, "{}:{}:{}", bracketed(self.host.clone()), self.port, addresses.join(","))
    }
}

kept_as_typed!(AddressRange, NameOverride);

fn literal(typed: &str) -> Result<IpAddr, ParseReachError> {
    typed.parse().map_err(|_| ParseReachError(format!("'{}' is no IP address", crate::sanitize_line(typed))))
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The address with these bits, of which IPv4 has the lowest 32.
fn address(family: IpFamily, bits: u128) -> IpAddr {
    match family {
        IpFamily::V4 => Ipv4Addr::from_bits(bits as u32).into(),
        IpFamily::V6 => Ipv6Addr::from_bits(bits).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(typed: &str) -> Result<AddressRange, String> {
        typed.parse().map_err(|error: ParseReachError| error.to_string())
    }

    #[test]
    fn ranges_are_single_addresses_spans_and_networks() {
        for (typed, shown, count) in [
            ("127.0.0.2", "127.0.0.2", 1),
            ("127.0.0.2-127.0.0.9", "127.0.0.2-127.0.0.9", 8),
            ("10.0.0.254-10.0.1.1", "10.0.0.254-10.0.1.1", 4),
            ("10.0.0.8/29", "10.0.0.9-10.0.0.14", 6),
            ("10.0.0.8/31", "10.0.0.8-10.0.0.9", 2),
            ("10.0.0.8/32", "10.0.0.8", 1),
            ("0.0.0.0/0", "0.0.0.1-255.255.255.254", (1 << 32) - 2),
            ("2001:db8::/126", "2001:db8::-2001:db8::3", 4),
            ("2001:db8::1/128", "2001:db8::1", 1),
            ("::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", u128::MAX),
        ] {
            let range = range(typed).unwrap();
            assert_eq!((range.to_string().as_str(), range.count()), (shown, count), "{typed}");
            assert_eq!(shown.parse(), Ok(range));
            if count < 10 {
                assert_eq!(range.iter().count() as u128, count);
            }
        }
        let addresses: Vec<String> = range("10.0.0.254-10.0.1.1").unwrap().iter().map(|ip| ip.to_string()).collect();
        assert_eq!(addresses, ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]);
    }

    #[test]
    fn neighbours_become_one_range_and_nothing_else_does() {
        for (addresses, ranges) in [
            ("", ""),
            ("10.0.0.7", "10.0.0.7"),
            ("127.0.0.2,127.0.0.3,127.0.0.4", "127.0.0.2-127.0.0.4"),
            ("10.0.0.2,10.0.0.4,10.0.0.5,10.0.0.3", "10.0.0.2,10.0.0.4-10.0.0.5,10.0.0.3"),
            ("255.255.255.255,::1:0:0,::1:0:1", "255.255.255.255,::1:0:0-::1:0:1"),
        ] {
            let listed = addresses.split(',').filter(|text| !text.is_empty()).map(|text| text.parse().unwrap());
            let ranges_of: Vec<String> = AddressRange::holding(listed).iter().map(ToString::to_string).collect();
            assert_eq!(ranges_of.join(","), ranges);
        }
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (typed, part) in [
            ("", "no IP address"),
            ("localhost", "no IP address"),
            ("10.0.0.9-10.0.0.2", "comes before"),
            ("10.0.0.9-::1", "different families"),
            ("10.0.0.5/24", "that is 10.0.0.0/24"),
            ("10.0.0.0/33", "no length of an IPv4 network"),
            ("::/129", "no length of an IPv6 network"),
            ("10.0.0.0/", "no length"),
            ("10.0.0.1-", "no IP address"),
            ("1.2.3.4\x1b[2J", "\u{fffd}"),
        ] {
            let error = range(typed).unwrap_err();
            assert!(error.contains(part) && !error.contains('\x1b'), "{typed}: {error}");
        }
    }

    #[test]
    fn overrides_are_read_as_curls() {
        for (typed, host, port, addresses) in [
            ("h.example:443:127.0.0.1", "h.example", 443, &["127.0.0.1"][..]),
            ("H.Example:80:127.0.0.1,[::1],::2", "h.example", 80, &["127.0.0.1", "::1", "::2"]),
            ("[::1]:80:127.0.0.2", "::1", 80, &["127.0.0.2"]),
            ("*:80:::1", "any.example", 80, &["::1"]),
        ] {
            let rule: NameOverride = typed.parse().unwrap();
            let expected: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            assert_eq!(rule.addresses_of(host, port), Some(&expected[..]), "{typed}");
            assert_eq!(rule.to_string().parse(), Ok(rule.clone()));
            assert_eq!((rule.addresses_of("x", 1), rule.addresses_of(host, port + 1)), (None, None));
        }
        for wrong in
            ["", "h", "h:80", "h:80:", "h:0:1.1.1.1", "h:x:1.1.1.1", ":80:1.1.1.1", "h:80:name", "[::1:80:1.1.1.1"]
        {
            assert!(wrong.parse::<NameOverride>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_is_kept_as_it_is_typed_and_not_at_all_where_nothing_was_asked_for() {
        assert_eq!(serde_json::to_string(&ReachPlan::default()).unwrap(), "{}");
        let plan = ReachPlan {
            sources: vec![range("127.0.0.2-127.0.0.9").unwrap(), range("::1").unwrap()],
            overrides: vec!["h:80:127.0.0.1".parse().unwrap()],
            addresses: AddressChoice::All,
            family: Some(IpFamily::V4),
            proxy_protocol: Some(ProxyProtocol::V2),
        };
        let kept = serde_json::to_string(&plan).unwrap();
        assert!(kept.contains("\"127.0.0.2-127.0.0.9\""), "{kept}");
        assert_eq!(serde_json::from_str::<ReachPlan>(&kept).unwrap(), plan);
        assert!(serde_json::from_str::<ReachPlan>(r#"{"sources":["9-2"]}"#).is_err());
        let typed: Vec<String> = plan
            .options()
            .into_iter()
            .flat_map(|(name, value)| [Some(name.to_owned()), value].into_iter().flatten())
            .collect();
        assert_eq!(typed.join(" "), "--source 127.0.0.2-127.0.0.9,::1 --resolve h:80:127.0.0.1 --ipv4");
        assert_eq!(plan.source_count(), 9);
    }
}
