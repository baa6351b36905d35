//! What redirects do to a request: methods, bodies and credentials change on the way as RFC 9110, 15.4 and the practice
//! of browsers have it. And where they lead, which is one rule for redirects that are followed before measuring and for those
//! that each request follows itself.

use crate::reach::address::Address;
use crate::reach::proxy;
use duel_load::WorkloadError;
use duel_model::{Body, HttpPlan, is_secret_name, sanitize_line};
use url::Url;

/// How the plan's request has changed on the way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Manner {
    /// It is a GET without a body by now.
    is_get: bool,
    /// Credentials are for the target only.
    without_credentials: bool,
    /// A `Host` field of the user's is for the target only.
    without_host: bool,
    /// It goes to a host of another name: what the plan says of the target's name is not for it.
    is_elsewhere: bool,
}

impl Manner {
    /// After one more redirect of a request of `plan` that began at `target`: `location` led to `url`.
    pub(crate) fn after(self, plan: &HttpPlan, target: &Url, status: u16, location: &str, url: &Url) -> Self {
        let is_form = plan.requests.form.is_some();
        let was_get = matches!(plan.method.as_str(), "GET" | "HEAD") && !is_form;
        let is_get = self.is_get || matches!(status, 301..=303) && !was_get;
        // As Go's client: what was meant for one host is for nobody else but the hosts below its name; and not for the
        // open wire.
        let in_the_open = target.scheme() == "https" && url.scheme() == "http";
        let is_absolute = location.starts_with("//") || Url::parse(location).is_ok();
        Self {
            is_get,
            without_credentials: self.without_credentials || in_the_open || !is_within(target, url),
            without_host: self.without_host || is_absolute,
            is_elsewhere: target.host_str() != url.host_str(),
        }
    }

    /// The plan as it is to be sent.
    pub(crate) fn plan(self, plan: &HttpPlan) -> HttpPlan {
        let mut plan = plan.clone();
        if self.without_credentials {
            // The same proxy is asked wherever a redirect leads.
            let is_for_proxy = |name: &str| plan.proxy.is_some() && name.eq_ignore_ascii_case(proxy::CREDENTIALS);
            plan.headers.retain(|(name, _)| !is_secret_name(name) || is_for_proxy(name));
            plan.requests.auth = None;
        }
        let mut leave_out = |names: &[&str]| {
            plan.headers.retain(|(name, _)| !names.iter().any(|left_out| name.eq_ignore_ascii_case(left_out)));
        };
        if self.without_host {
            leave_out(&["Host"]);
            plan.host = None;
        }
        if self.is_get {
            leave_out(&["Content-Length", "Content-Type"]);
            (plan.method, plan.body, plan.requests.form) = ("GET".to_owned(), Body::None, None);
        }
        if self.is_elsewhere {
            plan.tls.server_name = None;
        }
        plan
    }
}

/// Longest address of a redirect that is followed before measuring: it becomes the target's, which is kept and shown. Twice
/// what RFC 9110 (4.1) asks everybody to take, and what nginx and Apache take.
const LONGEST_ADDRESS_BYTES: usize = 16 * 1024;

/// A way over redirects, from a target's address on.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    target: Url,
    /// The last address, as it was typed where no redirect has led elsewhere.
    address: String,
    manner: Manner,
}

impl Trail {
    /// At its beginning.
    pub(crate) fn from(address: &str) -> Result<Self, WorkloadError> {
        let target = Address::parse(address)?.url;
        Ok(Self { target, address: address.to_owned(), manner: Manner::default() })
    }

    /// Where a request of `plan` is sent next, after it was redirected at the last address.
    pub(crate) fn redirected(&self, plan: &HttpPlan, status: u16, location: &str) -> Result<Self, WorkloadError> {
        let url = led_to(&Address::parse(&self.address)?.url, location).map_err(WorkloadError)?;
        if url.as_str().len() > LONGEST_ADDRESS_BYTES {
            return Err(WorkloadError(format!(
                "the redirect to '{}' is not followed: its address has {} bytes, and would be kept as the target's; at most \
                 {LONGEST_ADDRESS_BYTES} are",
                sanitize_line(location),
                url.as_str().len()
            )));
        }
        let manner = self.manner.after(plan, &self.target, status, location, &url);
        Ok(Self { target: self.target.clone(), address: url.into(), manner })
    }

    /// The last address.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How requests go there.
    pub(crate) fn manner(&self) -> Manner {
        self.manner
    }
}

/// Whether a response of this status leads elsewhere, if it has a `Location`.
pub(crate) fn leads_elsewhere(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// A `Location` as text. Bytes that are no UTF-8 are taken for what they are, as browsers and curl do: part of a path or a query,
/// where they are written in percent.
pub(crate) fn location_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .iter()
            .map(|&byte| if byte.is_ascii() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
            .collect(),
    }
}

/// Where a redirect leads from `base`: an address that could be a target. An error is a sentence for the user.
pub(crate) fn led_to(base: &Url, location: &str) -> Result<Url, String> {
    let nowhere = |why: String| format!("the redirect to '{}' leads nowhere: {why}", sanitize_line(location));
    let mut url = base.join(location).map_err(|error| nowhere(error.to_string()))?;
    url.set_fragment(None);
    if !url.username().is_empty() || url.password().is_some() {
        let host = sanitize_line(url.host_str().unwrap_or_default());
        return Err(format!(
            "the redirect to {host} leads nowhere: it has a user name or a password in it, which duel does not send on"
        ));
    }
    Address::parse(url.as_str()).map(|address| address.url).map_err(|error| nowhere(error.to_string()))
}

/// Whether the second address is on the first one's host, or below its domain.
fn is_within(target: &Url, url: &Url) -> bool {
    let (Some(target), Some(host)) = (target.host_str(), url.host_str()) else { return false };
    let is_name = target.parse::<std::net::IpAddr>().is_err();
    host == target || (is_name && host.strip_suffix(target).is_some_and(|front| front.ends_with('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(method: &str) -> HttpPlan {
        HttpPlan {
            method: method.into(),
            body: Body::Text("body".into()),
            host: Some("host.given".into()),
            headers: ["Authorization", "Cookie", "X-Api-Key", "Content-Type", "X-Other"]
                .map(|name| (name.into(), "x".into()))
                .into(),
            ..HttpPlan::default()
        }
    }

    /// The plan after redirects that were answered with these statuses and locations.
    fn led(plan: &HttpPlan, target: &str, redirects: &[(u16, &str)]) -> HttpPlan {
        let follow =
            |trail: Trail, (status, location): &(u16, &str)| trail.redirected(plan, *status, location).unwrap();
        redirects.iter().fold(Trail::from(target).unwrap(), follow).manner().plan(plan)
    }

    fn has(plan: &HttpPlan, name: &str) -> bool {
        plan.headers.iter().any(|(given, _)| given == name)
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        for (method, status, expected, has_body) in [
            ("POST", 301, "GET", false),
            ("POST", 303, "GET", false),
            ("PUT", 302, "GET", false),
            ("POST", 307, "POST", true),
            ("POST", 308, "POST", true),
            ("HEAD", 303, "HEAD", true),
            ("GET", 302, "GET", true),
        ] {
            let sent = led(&plan(method), "http://a.example/", &[(status, "/b")]);
            assert_eq!((sent.method.as_str(), sent.body != Body::None), (expected, has_body), "{method} {status}");
            assert_eq!(has(&sent, "Content-Type"), has_body);
        }
        // Once a GET, it stays one.
        assert_eq!(led(&plan("POST"), "http://a.example/", &[(302, "/b"), (307, "/c")]).method, "GET");
    }

    #[test]
    fn credentials_stay_with_the_host_that_they_were_given_for() {
        let without = |target: &str, location: &str| {
            let sent = led(&plan("GET"), target, &[(302, location)]);
            assert!(has(&sent, "X-Other"));
            let secrets = ["Authorization", "Cookie", "X-Api-Key"].map(|name| has(&sent, name));
            assert!(secrets == [true; 3] || secrets == [false; 3], "{secrets:?}");
            (!secrets[0], sent.host.is_none())
        };
        assert_eq!(without("http://a.example/", "/b"), (false, false));
        assert_eq!(without("http://a.example/", "https://a.example/b"), (false, true));
        assert_eq!(without("http://a.example/", "//sub.a.example:81/b"), (false, true));
        assert_eq!(without("http://a.example/", "http://nota.example/b"), (true, true));
        assert_eq!(without("https://a.example/", "http://a.example/b"), (true, true));
        assert_eq!(without("http://0.0.0.1/", "http://1.0.0.0.1.example/"), (true, true));
    }

    #[test]
    fn what_was_left_behind_does_not_come_back() {
        let there_and_back = [(302, "http://b.example/"), (302, "http://a.example/")];
        let sent = led(&plan("GET"), "http://a.example/", &there_and_back);
        assert!(!has(&sent, "Authorization") && sent.host.is_none());
    }

    #[test]
    fn a_proxy_keeps_its_credentials_and_nobody_else_gets_them() {
        let headers = vec![(proxy::CREDENTIALS.to_owned(), "x".to_owned())];
        let direct = HttpPlan { headers, ..HttpPlan::default() };
        let proxied = HttpPlan {
            proxy: Some(duel_model::ProxyPlan { host: "proxy.example".into(), port: 3128 }),
            ..direct.clone()
        };
        let elsewhere = [(302, "http://b.example/")];
        assert!(!has(&led(&direct, "http://a.example/", &elsewhere), proxy::CREDENTIALS));
        assert!(has(&led(&proxied, "http://a.example/", &elsewhere), proxy::CREDENTIALS));
    }

    #[test]
    fn another_host_is_verified_by_its_own_name() {
        let mut plan = plan("GET");
        plan.tls.server_name = Some("name.given".into());
        let name = |location| led(&plan, "https://a.example/", &[(302, location)]).tls.server_name;
        assert_eq!(name("https://a.example:444/"), Some("name.given".into()));
        assert_eq!(name("https://sub.a.example/"), None);
    }

    #[test]
    fn an_address_that_is_too_long_to_keep_is_not_followed_and_no_password_is_told() {
        let trail = Trail::from("https://a.example/").unwrap();
        let refused = |location: &str| trail.redirected(&plan("GET"), 302, location).unwrap_err().to_string();
        let long = format!("/x?token=s3cr3t&y={}", "y".repeat(LONGEST_ADDRESS_BYTES));
        let told = refused(&long);
        assert!(told.contains("is not followed") && !told.contains("s3cr3t") && told.len() < 1000, "{told}");
        let fitting = format!("/{}", "y".repeat(LONGEST_ADDRESS_BYTES - 100));
        assert!(trail.redirected(&plan("GET"), 302, &fitting).is_ok());
        for location in ["https://u:s3cr3t@b.example/", "https://u:s3cr3t@b.example:x/", "//u:s3cr3t@/"] {
            assert!(!refused(location).contains("s3cr3t"), "{}", refused(location));
        }
    }

    #[test]
    fn an_address_without_redirects_stays_as_it_was_typed() {
        let typed = Trail::from("http://A.example").unwrap();
        assert_eq!(typed.address(), "http://A.example");
        let led = typed.redirected(&plan("GET"), 302, "b#part").unwrap();
        assert_eq!(led.address(), "http://a.example/b");
        for nowhere in ["http://", "ftp://a.example/", "http://u:p@a.example/"] {
            assert!(typed.redirected(&plan("GET"), 302, nowhere).is_err(), "{nowhere}");
        }
    }
}
