//! An HTTP proxy on the way to the target: what it is asked, and what its refusals mean.

use crate::reach::address::Address;
use crate::requests::request::{USER_AGENT, checked_value};
use duel_load::WorkloadError;
use duel_model::HttpPlan;

/// The header field that is for a proxy and nobody else (RFC 9110, 11.7.2).
pub(crate) const CREDENTIALS: &str = "Proxy-Authorization";

/// A tunnel that a proxy is asked for on each connection before TLS begins (RFC 9110, 9.3.6).
#[derive(Debug)]
pub(crate) struct Tunnel {
    /// What it is asked.
    pub(crate) request: Vec<u8>,
    /// The proxy, and where the tunnel is to lead, safe to show.
    proxy: String,
    target: String,
    has_credentials: bool,
}

impl Tunnel {
    /// The tunnel to an address, where the plan needs one.
    pub(crate) fn to(address: &Address, plan: &HttpPlan) -> Result<Option<Self>, WorkloadError> {
        let Some(proxy) = plan.proxy.as_ref().filter(|_| address.is_tls) else { return Ok(None) };
        let target = address.host_and_port();
        let credentials = credentials(plan);
        let field = match credentials {
            Some(value) => format!("{CREDENTIALS}: {}\r\n", checked_value(value, CREDENTIALS)?),
            None => String::new(),
        };
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nUser-Agent: {USER_AGENT}\r\n{field}\r\n")
            .into_bytes();
        Ok(Some(Self {
            request,
            proxy: duel_model::sanitize_line(&proxy.to_string()),
            target: duel_model::sanitize_line(&target),
            has_credentials: credentials.is_some(),
        }))
    }

    /// Why the proxy opens no tunnel, in words, by the status of its answer.
    pub(crate) fn refused(&self, status: u16) -> String {
        let Self { proxy, target, has_credentials, .. } = self;
        match status {
            407 => stranger(proxy, *has_credentials),
            403 | 405 => format!("the proxy {proxy} does not allow tunnels to {target} ({status})"),
            502..=504 => format!("the proxy {proxy} cannot reach {target} ({status})"),
            _ => format!("the proxy {proxy} refused a tunnel to {target} ({status})"),
        }
    }

    /// Something that the proxy did instead of answering.
    pub(crate) fn broken(&self, what: &str) -> String {
        format!("the proxy {} {what}", self.proxy)
    }
}

/// What a proxy's answer 407 means (RFC 9110, 15.5.8), in words; `None` where there is no proxy, so that it means nothing.
pub(crate) fn unknown_to_proxy(plan: &HttpPlan) -> Option<String> {
    let proxy = duel_model::sanitize_line(&plan.proxy.as_ref()?.to_string());
    Some(stranger(&proxy, credentials(plan).is_some()))
}

fn stranger(proxy: &str, has_credentials: bool) -> String {
    if has_credentials {
        format!("the proxy {proxy} does not accept this user and password (407)")
    } else {
        format!(
            "the proxy {proxy} wants a user and a password (407): --proxy http://USER@{proxy}, with the password in \
             $DUEL_PROXY_PASSWORD or in a file (--proxy-password-file)"
        )
    }
}

fn credentials(plan: &HttpPlan) -> Option<&str> {
    let field = plan.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(CREDENTIALS));
    field.map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_model::ProxyPlan;

    fn through(headers: &[(&str, &str)]) -> HttpPlan {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        HttpPlan { headers, proxy: Some(ProxyPlan { host: "::1".into(), port: 3128 }), ..HttpPlan::default() }
    }

    fn tunnel(plan: &HttpPlan, address: &str) -> Option<Tunnel> {
        Tunnel::to(&Address::parse(address).unwrap(), plan).unwrap()
    }

    #[test]
    fn tunnels_are_for_tls_only_and_carry_credentials_and_no_other_field() {
        let plan = through(&[("X-A", "b"), ("proxy-authorization", "Basic eDp5")]);
        assert!(tunnel(&plan, "http://h/").is_none() && tunnel(&HttpPlan::default(), "https://h/").is_none());
        let asked = String::from_utf8(tunnel(&plan, "https://[::2]/a").unwrap().request).unwrap();
        let expected = format!(
            "CONNECT [::2]:443 HTTP/1.1\r\nHost: [::2]:443\r\nUser-Agent: {USER_AGENT}\r\nProxy-Authorization: Basic eDp5\r\n\r\n"
        );
        assert_eq!(asked, expected);
        let evil = through(&[(CREDENTIALS, "x\r\nEvil: 1")]);
        assert!(Tunnel::to(&Address::parse("https://h/").unwrap(), &evil).is_err());
    }

    #[test]
    fn refusals_say_what_can_be_done() {
        let stranger = tunnel(&through(&[]), "https://h/").unwrap();
        assert!(stranger.refused(407).contains("--proxy http://USER@[::1]:3128"), "{}", stranger.refused(407));
        let known = tunnel(&through(&[(CREDENTIALS, "s3cr3t")]), "https://h/").unwrap();
        let said: Vec<String> = [407, 403, 502, 418].map(|status| known.refused(status)).to_vec();
        assert!(said[0].contains("does not accept") && said.iter().all(|text| !text.contains("s3cr3t")), "{said:?}");
        assert_eq!(said[1], "the proxy [::1]:3128 does not allow tunnels to h:443 (403)");
        assert_eq!(said[2], "the proxy [::1]:3128 cannot reach h:443 (502)");
        assert_eq!(said[3], "the proxy [::1]:3128 refused a tunnel to h:443 (418)");
        assert_eq!(unknown_to_proxy(&HttpPlan::default()), None);
    }
}
