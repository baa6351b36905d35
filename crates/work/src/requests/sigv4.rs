//! Signatures for AWS, version 4 ("Signature Version 4 signing process", AWS General Reference).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use std::fmt::Write;

/// Who signs.
#[derive(Clone)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: String,
    /// Of temporary credentials; sent with the request.
    pub(crate) session_token: Option<String>,
}

impl std::fmt::Debug for Keys {
    /// Without the secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a signature is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) region: String,
    pub(crate) service: String,
}

/// A request as it is signed.
#[derive(Debug, Clone)]
pub(crate) struct Signable<'a> {
    pub(crate) method: &'a str,
    /// Path and query as they stand in the request line.
    pub(crate) target: &'a str,
    /// Fields that are signed.
    pub(crate) fields: Vec<(String, &'a str)>,
    /// SHA-256 of the body, in hexadecimal digits.
    pub(crate) body_hash: &'a str,
}

/// A moment as AWS writes it: `20150830T123600Z`.
pub(crate) fn timestamp(unix_s: u64) -> String {
    let (year, month, day) = civil(unix_s / 86_400);
    let of_day = unix_s % 86_400;
    format!("{year:04}{month:02}{day:02}T{:02}{:02}{:02}Z", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// SHA-256 of some bytes in hexadecimal digits.
pub(crate) fn hash(bytes: &[u8]) -> String {
    hex(digest(&SHA256, bytes).as_ref())
}

/// The value of `Authorization`. The fields have to hold the host and the time.
pub(crate) fn authorization(request: &Signable<'_>, keys: &Keys, scope: &Scope, timestamp: &str) -> String {
    let date = &timestamp[..8];
    let Scope { region, service } = scope;
    let credential = format!("{date}/{region}/{service}/aws4_request");
    let (canonical, signed) = canonical(request, service);
    let to_sign = format!("AWS4-HMAC-SHA256\n{timestamp}\n{credential}\n{}", hash(canonical.as_bytes()));
    let signature = hex(&mac(&signing_key(&keys.secret, date, scope), &to_sign));
    format!("AWS4-HMAC-SHA256 Credential={}/{credential}, SignedHeaders={signed}, Signature={signature}", keys.id)
}

fn signing_key(secret: &str, date: &str, scope: &Scope) -> Vec<u8> {
    [date, &scope.region, &scope.service, "aws4_request"]
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| mac(&key, part))
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    sign(&Key::new(HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

/// The request in the one form that both sides compute, and the names of the signed fields.
fn canonical(request: &Signable<'_>, service: &str) -> (String, String) {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    let mut fields: Vec<(String, String)> = request
        .fields
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.split_whitespace().collect::<Vec<_>>().join(" ")))
        .collect();
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    let signed = fields.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(";");
    let mut text = format!("{}\n{}\n{}\n", request.method, canonical_path(path, service), canonical_query(query));
    for (name, value) in &fields {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}:{value}");
    }
    let _ = write!(text, "\n{signed}\n{}", request.body_hash);
    (text, signed)
}

/// Encoded once more than it is sent, but for S3, where paths are names of objects.
fn canonical_path(path: &str, service: &str) -> String {
    match path {
        "" => "/".to_owned(),
        path if service == "s3" => path.to_owned(),
        path => path.split('/').map(encoded).collect::<Vec<_>>().join("/"),
    }
}

/// Parameters sorted by name and value, each encoded in the one way.
fn canonical_query(query: &str) -> String {
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (encoded_again(name), encoded_again(value)))
        .collect();
    pairs.sort();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

fn encoded(text: &str) -> String {
    let mut out = Vec::new();
    super::template::push_encoded(&mut out, text.as_bytes());
    String::from_utf8(out).unwrap_or_default()
}

/// A part of a query, from however it was encoded to the one way; here a `+` is no space.
fn encoded_again(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let digit = |at: usize| rest.get(at).and_then(|&b| (b as char).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                bytes = &rest[2..];
            }
            _ => {
                plain.push(*first);
                bytes = rest;
            }
        }
    }
    let mut out = Vec::new();
    super::template::push_encoded(&mut out, &plain);
    String::from_utf8(out).unwrap_or_default()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The date of a day since 1970 (Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn suite(method: &str, target: &str) -> String {
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let fields = vec![("Host".to_owned(), "example.amazonaws.com"), ("X-Amz-Date".to_owned(), "20150830T123600Z")];
        let scope = Scope { region: "us-east-1".into(), service: "service".into() };
        authorization(&Signable { method, target, fields, body_hash: EMPTY }, &keys, &scope, "20150830T123600Z")
    }

    /// `get-vanilla`, `post-vanilla` and `get-vanilla-query-order-key-case` of AWS's aws-sig-v4-test-suite.
    #[test]
    fn the_vectors_of_the_test_suite() {
        assert_eq!(
            suite("GET", "/"),
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
             SignedHeaders=host;x-amz-date, \
             Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        );
        for (method, target, signature) in [
            ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
            (
                "GET",
                "/?Param2=value2&Param1=value1",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
        ] {
            assert!(suite(method, target).ends_with(signature), "{method} {target}: {}", suite(method, target));
        }
    }

    /// "Example: GET Object" of "Authenticating Requests (AWS Signature Version 4)", Amazon S3 API Reference.
    #[test]
    fn the_example_of_s3() {
        let keys = Keys {
            id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let scope = Scope { region: "us-east-1".into(), service: "s3".into() };
        let fields = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let request = Signable { method: "GET", target: "/test.txt", fields, body_hash: EMPTY };
        let signed = authorization(&request, &keys, &scope, "20130524T000000Z");
        assert!(signed.ends_with("f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"), "{signed}");
        assert_eq!(hash(b""), EMPTY);
    }

    #[test]
    fn moments_as_aws_writes_them() {
        assert_eq!(timestamp(1_440_938_160), "20150830T123600Z");
        assert_eq!(timestamp(0), "19700101T000000Z");
        assert_eq!(timestamp(951_782_400), "20000229T000000Z");
    }

    #[test]
    fn paths_and_queries_have_one_form() {
        assert_eq!(canonical_path("/a%20b/c", "service"), "/a%2520b/c");
        assert_eq!(canonical_path("/a%20b/c", "s3"), "/a%20b/c");
        assert_eq!(canonical_query("b=%7e+&a&a=%C3%a9&%zz=1"), "%25zz=1&a=&a=%C3%A9&b=~%2B");
    }

    #[test]
    fn secrets_are_not_shown() {
        let keys = Keys { id: "a".into(), secret: "s3cr3t".into(), session_token: Some("s3cr3t".into()) };
        assert!(!format!("{keys:?}").contains("s3cr3t"));
    }
}
