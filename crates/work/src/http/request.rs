//! The request's bytes, built once and sent again and again.

use duel_load::WorkloadError;
use duel_model::{Body, HttpPlan, sanitize_line};
use std::fmt::Write;
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

/// What asks a proxy for a tunnel to the host of an address (RFC 9110, 9.3.6).
pub(crate) fn connect_request(host_and_port: &str) -> Vec<u8> {
    format!("CONNECT {host_and_port} HTTP/1.1\r\nHost: {host_and_port}\r\nUser-Agent: {USER_AGENT}\r\n\r\n")
        .into_bytes()
}

/// `User-Agent` unless the user sets one.
const USER_AGENT: &str = concat!("duel/", env!("CARGO_PKG_VERSION"));
/// Largest request body, all of which is kept in memory.
const BODY_LIMIT_BYTES: u64 = 1 << 30;

impl Request {
    /// Builds the request for an address; reads the body's file.
    pub(crate) fn build(plan: &HttpPlan, url: &Url) -> Result<Self, WorkloadError> {
        let method = checked_token(&plan.method, "method")?;
        let mut head = String::new();
        // Writing to a String cannot fail.
        let _ = match &plan.proxy {
            // A proxy has to be told where the request is to go (RFC 9112, 3.2.2); behind a tunnel there is none.
            Some(_) if url.scheme() == "http" => {
                write!(head, "{method} http://{}{} HTTP/1.1\r\n", authority(url), path_and_query(url))
            }
            _ => write!(head, "{method} {} HTTP/1.1\r\n", path_and_query(url)),
        };
        let host = match &plan.host {
            Some(host) => checked_value(host, "Host")?.to_owned(),
            None => authority(url),
        };
        let body = load_body(&plan.body)?;
        let mut defaults: Vec<(&str, String)> =
            vec![("Host", host), ("User-Agent", USER_AGENT.to_owned()), ("Accept", "*/*".to_owned())];
        if let Some(encoding) = &plan.accept_encoding {
            defaults.push(("Accept-Encoding", checked_value(encoding, "Accept-Encoding")?.to_owned()));
        }
        if let Some(bytes) = plan.range_bytes {
            defaults.push(("Range", format!("bytes=0-{}", bytes.saturating_sub(1))));
        }
        if !body.is_empty() || matches!(plan.method.as_str(), "POST" | "PUT" | "PATCH") {
            defaults.push(("Content-Length", body.len().to_string()));
        }
        if !plan.keepalive {
            defaults.push(("Connection", "close".to_owned()));
        }
        for (name, value) in &defaults {
            if !plan.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
        for (name, value) in &plan.headers {
            let name = checked_token(name, "header field name")?;
            let _ = write!(head, "{name}: {}\r\n", checked_value(value, name)?);
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&body);
        Ok(Self {
            bytes,
            is_head: plan.method == "HEAD",
            is_idempotent: matches!(plan.method.as_str(), "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        })
    }
}

/// What stands in the request line: never empty.
fn path_and_query(url: &Url) -> String {
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

fn load_body(body: &Body) -> Result<Vec<u8>, WorkloadError> {
    let path = match body {
        Body::None => return Ok(Vec::new()),
        Body::Text(text) => return Ok(text.clone().into_bytes()),
        Body::Generated(bytes) if *bytes > BODY_LIMIT_BYTES => {
            return Err(WorkloadError(format!(
                "a request body of {bytes} bytes is asked for; at most 1 GiB can be sent"
            )));
        }
        Body::Generated(bytes) => return Ok(generated(*bytes)),
        Body::File(path) => path,
    };
    let shown = sanitize_line(&path.to_string_lossy());
    let error = |error: std::io::Error| WorkloadError(format!("cannot read the request body from {shown}: {error}"));
    let size = std::fs::metadata(path).map_err(error)?.len();
    if size > BODY_LIMIT_BYTES {
        return Err(WorkloadError(format!("the request body in {shown} has {size} bytes; at most 1 GiB can be sent")));
    }
    let bytes = std::fs::read(path).map_err(error)?;
    if bytes.is_empty() {
        return Err(WorkloadError(format!(
            "the request body file {shown} is empty; leave out --body-file to send no body"
        )));
    }
    Ok(bytes)
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
fn checked_token<'a>(text: &'a str, what: &str) -> Result<&'a str, WorkloadError> {
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if !text.is_empty() && text.bytes().all(is_token) {
        Ok(text)
    } else {
        Err(WorkloadError(format!("'{}' is no valid {what}", sanitize_line(text))))
    }
}

/// A field value of RFC 9110, 5.5: no control characters, above all no line ends.
fn checked_value<'a>(text: &'a str, name: &str) -> Result<&'a str, WorkloadError> {
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
        let plan = HttpPlan { proxy, ..HttpPlan::default() };
        let plain = text(&plan, "http://h:81/a?b#c");
        assert!(plain.starts_with("GET http://h:81/a?b HTTP/1.1\r\nHost: h:81\r\n"), "{plain}");
        assert!(text(&plan, "https://h/a").starts_with("GET /a HTTP/1.1\r\nHost: h\r\n"));
        let ask = String::from_utf8(connect_request("[::1]:443")).unwrap();
        assert!(ask.starts_with("CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n") && ask.ends_with("\r\n\r\n"));
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
    fn what_would_break_out_of_a_field_is_refused() {
        for (name, value) in [("X", "a\r\nEvil: 1"), ("X Y", "a"), ("", "a"), ("X:", "a"), ("X", "a\0")] {
            let plan = HttpPlan { headers: vec![(name.into(), value.into())], ..HttpPlan::default() };
            assert!(Request::build(&plan, &"http://h/".parse().unwrap()).is_err(), "{name:?} {value:?}");
        }
        let plan = HttpPlan { method: "GET /x".into(), ..HttpPlan::default() };
        assert!(Request::build(&plan, &"http://h/".parse().unwrap()).is_err());
    }
}
