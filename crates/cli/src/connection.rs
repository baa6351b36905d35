//! Options of how connections are made, and what they mean.

use crate::outcome::Usage;
use crate::proxy;
use clap::{Args, ValueEnum};
use duel_model::{
    AddressChoice, AddressRange, ConnectTo, Http2Plan, HttpPlan, IpFamily, NameOverride, ProxyProtocol, ReachPlan,
    sanitize_line,
};
use std::path::PathBuf;

/// How connections are made, the same for every target.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionFlags {
    /// Connect to ADDR:PORT2 for requests to HOST:PORT1; empty parts apply to all, or stay
    #[arg(long, value_name = "HOST:PORT1:ADDR:PORT2")]
    pub(crate) connect_to: Vec<String>,
    /// Connect to this Unix socket
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// Acknowledge what arrives at once, not after up to 40 ms (Linux)
    #[arg(long)]
    pub(crate) quick_ack: bool,
    /// Announce that we take TCP segments of at most this size (88 to 32767)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(88..=32767))]
    pub(crate) segment_bytes: Option<u16>,
    /// HTTP/2 and nothing else: offered alone over TLS (ALPN h2), spoken from the first byte over http:// (prior knowledge)
    #[arg(long)]
    pub(crate) http2: bool,
    /// With --http2: how many requests each connection carries at a time, 1 to 10000 [default: 1]. Of networks: the same as -c
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    pub(crate) streams: Option<String>,
    /// Send requests through this HTTP proxy, those of https by CONNECT. The password of USER is in $DUEL_PROXY_PASSWORD or
    /// in a file. Without this option there is no proxy: http_proxy, https_proxy and the like are not read
    #[arg(long, value_name = "[http://[USER@]]HOST:PORT", conflicts_with_all = ["unix_socket", "connect_to"])]
    pub(crate) proxy: Option<String>,
    /// The first line of FILE is the password for the proxy
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub(crate) proxy_password_file: Option<PathBuf>,
    /// Connect from these local addresses in turn, each of which has ports of its own: addresses, spans such as
    /// 10.0.0.2-10.0.0.9, networks such as 10.0.0.0/29
    #[arg(long, value_name = "ADDR,...", conflicts_with = "unix_socket")]
    pub(crate) source: Vec<String>,
    /// HOST:PORT is at these addresses and not looked up; * is any host. Of the target, or of the proxy if there is one
    #[arg(long, value_name = "HOST:PORT:ADDR,...", conflicts_with = "unix_socket")]
    pub(crate) resolve: Vec<String>,
    /// Which of the addresses that a name leads to
    #[arg(long, value_name = "WHICH", value_enum, default_value_t, conflicts_with = "unix_socket")]
    pub(crate) addresses: AddressesFlag,
    /// IPv4 addresses only
    #[arg(short = '4', long, conflicts_with_all = ["ipv6", "unix_socket"])]
    pub(crate) ipv4: bool,
    /// IPv6 addresses only
    #[arg(short = '6', long, conflicts_with = "unix_socket")]
    pub(crate) ipv6: bool,
    /// Begin each connection with a header of the PROXY protocol that tells its own addresses
    #[arg(long, value_name = "VERSION", value_enum, conflicts_with = "proxy")]
    pub(crate) proxy_protocol: Option<ProxyProtocolFlag>,
}

/// Which of a name's addresses are connected to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum AddressesFlag {
    /// The first that accepts a connection; tried in the resolver's order, before load begins
    #[default]
    Answering,
    /// The one that happy eyeballs end up with (RFC 8305): attempts begin 250 ms apart, the first connection wins
    Race,
    /// The resolver's first, even if it is dead: no happy eyeballs, no falling back
    First,
    /// All that accept a connection, in turn from connection to connection
    All,
}

/// Version of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProxyProtocolFlag {
    /// A line of text
    V1,
    /// Binary
    V2,
}

impl ConnectionFlags {
    /// Puts what was asked for into the plan.
    pub(crate) fn put_into(&self, plan: &mut HttpPlan) -> Result<(), Usage> {
        plan.connect_to = self.connect_to.iter().map(|rule| connect_to(rule)).collect::<Result<_, _>>()?;
        plan.unix_socket.clone_from(&self.unix_socket);
        plan.quick_ack = self.quick_ack;
        plan.segment_bytes = self.segment_bytes;
        if let Some(typed) = &self.proxy {
            let proxy = proxy::parse(typed).map_err(|why| Usage(format!("--proxy {why}")))?;
            if let Some(value) = proxy::credentials(&proxy, self.proxy_password_file.as_deref())? {
                if plan.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(proxy::CREDENTIALS)) {
                    return Err(Usage(format!("--proxy names a user, and -H gives {} as well", proxy::CREDENTIALS)));
                }
                plan.headers.push((proxy::CREDENTIALS.to_owned(), value));
            }
            plan.proxy = Some(proxy.plan);
        }
        plan.reach = self.reach()?;
        let streams = self.streams_of_http2()?;
        if streams > 1 && !plan.keepalive {
            return Err(Usage(
                "--streams: a connection that is closed after its first request carries one at a time; leave --streams \
                 or --no-keepalive out"
                    .into(),
            ));
        }
        plan.http2 = self.http2.then_some(Http2Plan { streams });
        Ok(())
    }

    /// How many requests a connection carries at a time.
    fn streams_of_http2(&self) -> Result<u32, Usage> {
        let Some(typed) = &self.streams else { return Ok(1) };
        if !self.http2 {
            return Err(Usage("--streams: only HTTP/2 has streams; add --http2".into()));
        }
        typed.trim().parse().ok().filter(|streams| (1..=10_000).contains(streams)).ok_or_else(|| {
            Usage(format!("--streams takes a whole number from 1 to 10000; got '{}'", sanitize_line(typed)))
        })
    }

    fn reach(&self) -> Result<ReachPlan, Usage> {
        let ranges =
            self.source.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|range| !range.is_empty());
        let sources = ranges
            .map(str::parse)
            .collect::<Result<Vec<AddressRange>, _>>()
            .map_err(|why| Usage(format!("--source: {why}")))?;
        let overrides = self
            .resolve
            .iter()
            .map(|rule| rule.parse())
            .collect::<Result<Vec<NameOverride>, _>>()
            .map_err(|why| Usage(format!("--resolve: {why}")))?;
        let plan = ReachPlan {
            sources,
            overrides,
            addresses: match self.addresses {
                AddressesFlag::Answering => AddressChoice::Answering,
                AddressesFlag::Race => AddressChoice::Race,
                AddressesFlag::First => AddressChoice::First,
                AddressesFlag::All => AddressChoice::All,
            },
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Some(IpFamily::V4),
                (_, true) => Some(IpFamily::V6),
                _ => None,
            },
            proxy_protocol: self.proxy_protocol.map(|version| match version {
                ProxyProtocolFlag::V1 => ProxyProtocol::V1,
                ProxyProtocolFlag::V2 => ProxyProtocol::V2,
            }),
        };
        if plan.source_count() > ReachPlan::MOST_SOURCES {
            return Err(Usage(format!(
                "--source: {} local addresses are more than can be used; {} can",
                plan.source_count(),
                ReachPlan::MOST_SOURCES
            )));
        }
        if let Some(family) = plan.family
            && !plan.sources.is_empty()
            && plan.sources.iter().all(|range| range.family() != family)
        {
            return Err(Usage(format!("--source: there is no {family} address among them, and no other may be used")));
        }
        Ok(plan)
    }
}

/// `HOST:PORT1:ADDR:PORT2`, IPv6 addresses in brackets.
fn connect_to(typed: &str) -> Result<ConnectTo, Usage> {
    let error = || Usage(format!("--connect-to '{}' has not the form HOST:PORT1:ADDR:PORT2", sanitize_line(typed)));
    let mut parts = Vec::new();
    let (mut part, mut in_brackets) = (String::new(), false);
    for c in typed.chars() {
        match c {
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            ':' if !in_brackets => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    let [host, port, to_host, to_port] = <[String; 4]>::try_from(parts).map_err(|_| error())?;
    let number = |text: &str| -> Result<Option<u16>, Usage> {
        if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| error()) }
    };
    Ok(ConnectTo { port: number(&port)?, to_port: number(&to_port)?, host, to_host })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_to_reads_brackets_and_empty_parts() {
        let rule = connect_to("h:80:[::1]:81").unwrap();
        assert_eq!(
            (rule.host.as_str(), rule.port, rule.to_host.as_str(), rule.to_port),
            ("h", Some(80), "::1", Some(81))
        );
        let rule = connect_to("::other:").unwrap();
        assert_eq!((rule.host.as_str(), rule.port, rule.to_host.as_str(), rule.to_port), ("", None, "other", None));
        for wrong in ["h", "h:80:x", "h:eighty:x:81", "h:80:x:81:82"] {
            assert!(connect_to(wrong).is_err(), "{wrong}");
        }
    }
}
