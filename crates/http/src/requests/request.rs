//! The request's bytes, built once and sent again and again.

use crate::reach::proxy;
use crate::requests::auth::Credentials;
use crate::requests::body::{BODY_LIMIT_BYTES, checked_length, read_body};
use crate::requests::form;
use crate::requests::sigv4::{Keys, Scope};
use duel_load::WorkloadError;
use duel_model::{Body, HttpPlan, sanitize_line};
use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use url::Url;

/// A request as it is sent, head and body in one piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) bytes: Vec<u8>,
    /// Responses have no body.
    pub(crate) is_head: bool,
    /// Sending it twice does no harm (RFC 9110, 9.2.2).
    pub(crate) is_idempotent: bool,
}

/// What goes over the wire for an op: two pieces, since a body may be shared by many requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing<'a> {
    pub(crate) head: &'a [u8],
    /// What follows the head; empty where the head's piece holds the body as well.
    pub(crate) body: &'a [u8],
    pub(crate) is_idempotent: bool,
}

impl<'a> Outgoing<'a> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// What lies in one piece of memory from this byte on; nothing at the end.
    #[inline]
    pub(crate) fn from(&self, at: usize) -> &'a [u8] {
        if at < self.head.len() { &self.head[at..] } else { &self.body[at - self.head.len()..] }
    }
}

/// `User-Agent` unless the user sets one.
pub(crate) const USER_AGENT: &str = concat!("duel/", env!("CARGO_PKG_VERSION"));

impl Request {
    /// Builds the request for an address; reads the body's file.
    pub(crate) fn build(plan: &HttpPlan, url: &Url) -> Result<Self, WorkloadError> {
        let common = Common::read(plan, url)?;
        let head = |length: usize| -> Result<Vec<u8>, WorkloadError> {
            let mut head = common.request_line(common.method, &path_and_query(url))?;
            for (name, value) in common.fields(common.method, &plan.headers, Some(length))? {
                // Writing to a Vec cannot fail.
                let _ = write!(head, "{name}: {value}\r\n");
            }
            head.extend_from_slice(b"\r\n");
            Ok(head)
        };
        // A large body is read right behind its head, so that it is in memory once.
        let expected = common.body.expected_length()?;
        let mut bytes = head(expected)?;
        let head_length = bytes.len();
        bytes = common.body.append_to(bytes)?;
        let length = bytes.len() - head_length;
        if length != expected {
            // No regular file, or it is being written to.
            bytes.splice(..head_length, head(length)?);
        }
        Ok(Self { bytes, is_head: common.method == "HEAD", is_idempotent: is_idempotent(common.method) })
    }

    /// The same with a line more at the end of its head.
    pub(crate) fn with_field(&self, line: &[u8]) -> Self {
        let mut bytes = self.bytes.clone();
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            bytes.splice(end + 2..end + 2, line.iter().copied());
        }
        Self { bytes, ..*self }
    }

    #[inline]
    pub(crate) fn outgoing(&self) -> Outgoing<'_> {
        Outgoing { head: &self.bytes, body: &[], is_idempotent: self.is_idempotent }
    }
}

/// Whether sending a request of this method twice does no harm (RFC 9110, 9.2.2).
pub(crate) fn is_idempotent(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE")
}

/// What all requests of a plan to one target have in common.
#[derive(Debug)]
pub(crate) struct Common<'a> {
    plan: &'a HttpPlan,
    url: &'a Url,
    /// The plan's method; a form is posted.
    pub(crate) method: &'a str,
    /// The plan's body.
    pub(crate) body: Payload<'a>,
    content_type: Option<String>,
    authorization: Option<String>,
    pub(crate) signer: Option<(Keys, Scope)>,
}

/// A body before it is sent.
#[derive(Debug)]
pub(crate) enum Payload<'a> {
    Bytes(Cow<'a, [u8]>),
    File(&'a Path),
}

impl<'a> Common<'a> {
    /// Reads secrets and the files of a form.
    pub(crate) fn read(plan: &'a HttpPlan, url: &'a Url) -> Result<Self, WorkloadError> {
        let (mut authorization, mut signer) = (None, None);
        match plan.requests.auth.as_ref().map(Credentials::read).transpose()? {
            Some(Credentials::Field(value)) => authorization = Some(value),
            Some(Credentials::Signature(keys, scope)) => signer = Some((keys, scope)),
            None => {}
        }
        let method = match (&plan.requests.form, plan.method.as_str()) {
            (Some(_), "GET") => "POST",
            (_, method) => method,
        };
        let (body, content_type) = match &plan.requests.form {
            Some(form) => {
                let (body, content_type) = form::encode(form)?;
                (Payload::Bytes(body.into()), Some(content_type))
            }
            None => (Payload::of(&plan.body)?, None),
        };
        Ok(Self { plan, url, method, body, content_type, authorization, signer })
    }

    /// The request line of a path with its query, as text that was encoded already.
    pub(crate) fn request_line(&self, method: &str, target: &str) -> Result<Vec<u8>, WorkloadError> {
        Ok(format!("{} {}{target} HTTP/1.1\r\n", checked_token(method, "method")?, self.before_target()).into_bytes())
    }

    /// What stands before the path: a proxy has to be told where the request is to go (RFC 9112, 3.2.2); behind a tunnel
    /// there is none.
    pub(crate) fn before_target(&self) -> String {
        match &self.plan.proxy {
            Some(_) if self.url.scheme() == "http" => format!("http://{}", authority(self.url)),
            _ => String::new(),
        }
    }

    /// The header fields in the order in which they are sent: defaults that were not given, then those given.
    ///
    /// `length` is that of the body, `None` where it is not known yet.
    pub(crate) fn fields(
        &self,
        method: &str,
        given: &[(String, String)],
        length: Option<usize>,
    ) -> Result<Vec<(String, String)>, WorkloadError> {
        let plan = self.plan;
        let is_given = |name: &str| given.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        // Where one request ends and the next begins must not depend on which of two fields is believed.
        if let Some(name) = ["Content-Length", "Transfer-Encoding"].into_iter().find(|name| is_given(name)) {
            return Err(WorkloadError(format!("{name} follows from the body; leave it out")));
        }
        let host = plan.host.clone().unwrap_or_else(|| authority(self.url));
        let mut defaults = vec![("Host", host), ("User-Agent", USER_AGENT.to_owned()), ("Accept", "*/*".to_owned())];
        if let Some(encoding) = &plan.accept_encoding {
            defaults.push(("Accept-Encoding", encoding.clone()));
        }
        if let Some(bytes) = plan.range_bytes {
            defaults.push(("Range", format!("bytes=0-{}", bytes.saturating_sub(1))));
        }
        defaults.extend(self.content_type.clone().map(|kind| ("Content-Type", kind)));
        defaults.extend(self.authorization.clone().map(|value| ("Authorization", value)));
        if let Some(length) = length.filter(|&length| announces_length(method, length)) {
            defaults.push(("Content-Length", length.to_string()));
        }
        if !plan.keepalive {
            defaults.push(("Connection", "close".to_owned()));
        }
        let defaults = defaults.into_iter().filter(|(name, _)| !is_given(name));
        let defaults = defaults.map(|(name, value)| Ok((name.to_owned(), checked_value(&value, name)?.to_owned())));
        // What is for the proxy is not for the target at a tunnel's other end.
        let is_tunnelled = plan.proxy.is_some() && self.url.scheme() != "http";
        let given = given.iter().filter(|(name, _)| !(is_tunnelled && name.eq_ignore_ascii_case(proxy::CREDENTIALS)));
        let given = given.map(|(name, value)| {
            let name = checked_token(name, "header field name")?;
            Ok((name.to_owned(), checked_value(value, name)?.to_owned()))
        });
        defaults.chain(given).collect()
    }
}

/// Whether a body of this length is announced: also an empty one where a body is expected.
pub(crate) fn announces_length(method: &str, length: usize) -> bool {
    length > 0 || matches!(method, "POST" | "PUT" | "PATCH")
}

impl<'a> Payload<'a> {
    fn of(body: &'a Body) -> Result<Self, WorkloadError> {
        Ok(match body {
            Body::None => Self::Bytes(Cow::Borrowed(&[])),
            Body::Text(text) => Self::Bytes(Cow::Borrowed(text.as_bytes())),
            Body::Generated(bytes) if *bytes > BODY_LIMIT_BYTES => {
                return Err(WorkloadError(format!(
                    "a request body of {bytes} bytes is asked for; at most 1 GiB can be sent"
                )));
            }
            Body::Generated(bytes) => Self::Bytes(Cow::Owned(generated(*bytes))),
            Body::File(path) => Self::File(path),
        })
    }

    /// Its length, as far as that is known before it is read.
    fn expected_length(&self) -> Result<usize, WorkloadError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.len()),
            Self::File(path) => checked_length(path),
        }
    }

    pub(crate) fn append_to(&self, mut bytes: Vec<u8>) -> Result<Vec<u8>, WorkloadError> {
        match self {
            Self::Bytes(body) => {
                bytes.extend_from_slice(body);
                Ok(bytes)
            }
            Self::File(path) => read_body(path, bytes),
        }
    }
}

/// What stands in the request line: never empty.
pub(crate) fn path_and_query(url: &Url) -> String {
    let path = if url.path().is_empty() { "/" } else { url.path() };
    match url.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// Host and port as in a `Host` field; the default port of the scheme is left out.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// Text without meaning: each byte is one of 64 characters, drawn evenly, so that it carries 6 bits and no compression
/// leaves less than three quarters. Bytes of any value would carry 8, but servers that log bodies or hold them for text
/// would do other work on them. The same for each size, so that all targets get the same body, in each repetition.
fn generated(bytes: u64) -> Vec<u8> {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = 0u64;
    // Sixes of bits from SplitMix64 (Steele, Lea and Flood 2014), ten of each number.
    let numbers = std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    let characters =
        numbers.flat_map(|number| (0..10).map(move |place| CHARACTERS[(number >> (6 * place)) as usize & 63]));
    characters.take(bytes as usize).collect()
}

/// A token of RFC 9110, 5.6.2.
pub(crate) fn checked_token<'a>(text: &'a str, what: &str) -> Result<&'a str, WorkloadError> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !text.is_empty() && text.bytes().all(is_token) {
        Ok(text)
    } else {
        Err(WorkloadError(format!("'{}' is no valid {what}", sanitize_line(text))))
    }
}

/// A field value of RFC 9110, 5.5: no control characters, above all no line ends.
pub(crate) fn checked_value<'a>(text: &'a str, name: &str) -> Result<&'a str, WorkloadError> {
    if text.bytes().all(|b| b == b'\t' || (b >= 32 && b != 127)) {
        Ok(text.trim())
    } else {
        Err(WorkloadError(format!("the value of {} contains a control character", sanitize_line(name))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(plan: &HttpPlan, url: &str) -> String {
        String::from_utf8(Request::build(plan, &url.parse().unwrap()).unwrap().bytes).unwrap()
    }

    #[test]
    fn defaults_are_those_of_an_ordinary_client() {
        let text = text(&HttpPlan::default(), "http://example.org/a%20b?c=d");
        let expected = format!(
            "GET /a%20b?c=d HTTP/1.1\r\nHost: example.org\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn fields_given_replace_defaults_of_the_same_name() {
        let plan = HttpPlan {
            method: "POST".into(),
            headers: vec![("host".into(), "other".into()), ("X-A".into(), "1".into())],
            body: Body::Text("hi".into()),
            keepalive: false,
            accept_encoding: None,
            range_bytes: Some(10),
            ..HttpPlan::default()
        };
        let text = text(&plan, "http://[::1]:8080");
        assert!(text.starts_with("POST / HTTP/1.1\r\nUser-Agent"), "{text}");
        assert!(text.contains("Content-Length: 2\r\nConnection: close\r\nhost: other\r\nX-A: 1\r\n\r\nhi"), "{text}");
        assert!(text.contains("Range: bytes=0-9\r\n") && !text.contains("Accept-Encoding"), "{text}");
        let plan = HttpPlan { method: "GET".into(), ..HttpPlan::default() };
        assert!(super::tests::text(&plan, "http://[::1]:8080").contains("Host: [::1]:8080\r\n"));
    }

    #[test]
    fn a_proxy_is_told_the_whole_address_of_plain_requests_only() {
        let proxy = Some(duel_model::ProxyPlan { host: "proxy".into(), port: 3128 });
        let headers = vec![("proxy-authorization".to_owned(), "Basic eDp5".to_owned())];
        let plan = HttpPlan { proxy, headers, ..HttpPlan::default() };
        let plain = text(&plan, "http://h:81/a?b#c");
        assert!(plain.starts_with("GET http://h:81/a?b HTTP/1.1\r\nHost: h:81\r\n"), "{plain}");
        assert!(plain.contains("\r\nproxy-authorization: Basic eDp5\r\n"), "{plain}");
        let tunnelled = text(&plan, "https://h/a");
        assert!(tunnelled.starts_with("GET /a HTTP/1.1\r\nHost: h\r\n") && !tunnelled.contains("Basic"), "{tunnelled}");
    }

    #[test]
    fn a_generated_body_has_its_length_and_is_hardly_compressible() {
        let plan = HttpPlan { method: "POST".into(), body: Body::Generated(10_007), ..HttpPlan::default() };
        let text = text(&plan, "http://h/");
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 10007") && body.len() == 10_007, "{head}");
        assert!(generated(10_008).starts_with(body.as_bytes()));
        let mut counts = std::collections::BTreeMap::<u8, f64>::new();
        body.bytes().for_each(|byte| *counts.entry(byte).or_default() += 1.0);
        let bits: f64 = counts.values().map(|n| n / 10_007.0 * (10_007.0 / n).log2()).sum();
        assert!(counts.len() == 64 && bits > 5.98, "{bits} bits in each character");
        let plan = HttpPlan { body: Body::Generated(u64::MAX), ..HttpPlan::default() };
        assert!(Request::build(&plan, &"http://h/".parse().unwrap()).is_err());
    }

    #[test]
    fn where_a_body_ends_is_not_for_the_user_to_say() {
        for name in ["Content-Length", "content-length", "Transfer-Encoding"] {
            let plan = HttpPlan {
                headers: vec![(name.into(), "3".into())],
                body: Body::Text("hi".into()),
                ..HttpPlan::default()
            };
            let told = Request::build(&plan, &"http://h/".parse().unwrap()).unwrap_err().0;
            assert!(told.contains("follows from the body"), "{told}");
        }
    }

    #[test]
    fn what_would_break_out_of_a_field_is_refused() {
        for (name, value) in [("X", "a\r\nEvil: 1"), ("X Y", "a"), ("", "a"), ("X:", "a"), ("X", "a\0")] {
            let plan = HttpPlan { headers: vec![(name.into(), value.into())], ..HttpPlan::default() };
            assert!(Request::build(&plan, &"http://h/".parse().unwrap()).is_err(), "{name:?} {value:?}");
        }
        let plan = HttpPlan { method: "GET /x".into(), ..HttpPlan::default() };
        assert!(Request::build(&plan, &"http://h/".parse().unwrap()).is_err());
    }
}
