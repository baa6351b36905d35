//! Options of how connections are made, and what they mean.

use crate::outcome::Usage;
use crate::proxy;
use clap::Args;
use duel_model::{AddressRange, ConnectTo, HttpPlan, IpFamily, NameOverride, ReachPlan, sanitize_line};
use std::path::PathBuf;

/// How connections are made, the same for every target.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectionFlags {
    /// Connect to ADDR:PORT2 for requests to HOST:PORT1; empty parts apply to all, or stay
    #[arg(long, value_name = "HOST:PORT1:ADDR:PORT2")]
    pub(crate) connect_to: Vec<String>,
    /// Send requests through this HTTP proxy, those of https by CONNECT. The password of USER is in $DUEL_PROXY_PASSWORD or
    /// in a file. Without this option there is no proxy: http_proxy, https_proxy and the like are not read
    #[arg(long, value_name = "[http://[USER@]]HOST:PORT", conflicts_with_all = ["unix-socket", "connect_to", "proxy-protocol"])]
    pub(crate) proxy: Option<String>,
    /// The first line of FILE is the password for the proxy
    #[arg(long, value_name = "FILE", requires = "proxy")]
    pub(crate) proxy_password_file: Option<PathBuf>,
    /// Connect from these local addresses in turn, each of which has ports of its own: addresses, spans such as
    /// 10.0.0.2-10.0.0.9, networks such as 10.0.0.0/29
    #[arg(long, value_name = "ADDR,...", conflicts_with = "unix-socket")]
    pub(crate) source: Vec<String>,
    /// HOST:PORT is at these addresses and not looked up; * is any host. Of the target, or of the proxy if there is one
    #[arg(long, value_name = "HOST:PORT:ADDR,...", conflicts_with = "unix-socket")]
    pub(crate) resolve: Vec<String>,
    /// IPv4 addresses only
    #[arg(short = '4', long, conflicts_with_all = ["ipv6", "unix-socket"])]
    pub(crate) ipv4: bool,
    /// IPv6 addresses only
    #[arg(short = '6', long, conflicts_with = "unix-socket")]
    pub(crate) ipv6: bool,
}

impl ConnectionFlags {
    /// Puts what was asked for into the plan.
    pub(crate) fn put_into(&self, plan: &mut HttpPlan) -> Result<(), Usage> {
        plan.connect_to = self.connect_to.iter().map(|rule| connect_to(rule)).collect::<Result<_, _>>()?;
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
        Ok(())
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
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Some(IpFamily::V4),
                (_, true) => Some(IpFamily::V6),
                _ => None,
            },
            ..ReachPlan::default()
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
