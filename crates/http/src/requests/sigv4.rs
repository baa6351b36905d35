//! Signatures for AWS, version 4 ("Signature Version 4 signing process", AWS General Reference).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use std::collections::BTreeMap;
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
    // Values of one name are one list, in the order in which they are sent.
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &request.fields {
        let words: Vec<&str> = value.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        fields.entry(name.to_ascii_lowercase()).or_default().push(words.join(" "));
    }
    let signed = fields.keys().map(String::as_str).collect::<Vec<_>>().join(";");
    let mut text = format!("{}\n{}\n{}\n", request.method, canonical_path(path, service), canonical_query(query));
    for (name, values) in &fields {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name}:{}", values.join(","));
    }
    let _ = write!(text, "\n{signed}\n{}", request.body_hash);
    (text, signed)
}

/// Whether paths of a service are names of objects, in which nothing can be left out.
pub(crate) fn is_s3(service: &str) -> bool {
    matches!(service, "s3" | "s3express" | "s3-outposts" | "s3-object-lambda")
}

/// Of S3: encoded in the one way, however it is sent. Else: without empty and dot segments, and encoded once more than it is
/// sent.
fn canonical_path(path: &str, service: &str) -> String {
    if is_s3(service) {
        let path = path.split('/').map(encoded_again).collect::<Vec<_>>().join("/");
        return if path.is_empty() { "/".to_owned() } else { path };
    }
    let mut segments: Vec<String> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(encoded(segment)),
        }
    }
    let end = if path.ends_with('/') && !segments.is_empty() { "/" } else { "" };
    format!("/{}{end}", segments.join("/"))
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
    super::place::push_encoded(&mut out, text.as_bytes());
    String::from_utf8(out).unwrap_or_default()
}

/// A part of a path or query, from however it was encoded to the one way; here a `+` is no space.
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
    super::place::push_encoded(&mut out, &plain);
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
        signed(method, target, "service", &[])
    }

    /// A request of `aws-sig-v4-test-suite`, or one like it to another service.
    fn signed(method: &str, target: &str, service: &str, more: &[(&str, &'static str)]) -> String {
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let mut fields =
            vec![("Host".to_owned(), "example.amazonaws.com"), ("X-Amz-Date".to_owned(), "20150830T123600Z")];
        fields.extend(more.iter().map(|(name, value)| ((*name).to_owned(), *value)));
        let scope = Scope { region: "us-east-1".into(), service: service.into() };
        authorization(&Signable { method, target, fields, body_hash: EMPTY }, &keys, &scope, "20150830T123600Z")
    }

    /// `get-vanilla`, `post-vanilla`, `get-vanilla-query-order-key-case`, `get-slashes`, `get-slash-dot-slash`,
    /// `get-relative`, `get-relative-relative`, `get-slash-pointless-dot`, `get-space` and `get-unreserved` of AWS's
    /// aws-sig-v4-test-suite.
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
            ("GET", "//example//", "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84"),
            ("GET", "/./", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("GET", "/example/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("GET", "/example1/example2/../..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
            ("GET", "/./example", "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5"),
            ("GET", "/example space/", "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"),
            (
                "GET",
                "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
                "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
            ),
        ] {
            assert!(suite(method, target).ends_with(signature), "{method} {target}: {}", suite(method, target));
        }
    }

    /// `get-header-key-duplicate` and `get-header-value-trim`.
    #[test]
    fn the_vectors_of_fields() {
        let twice = [("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")];
        let spaced = [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")];
        for (fields, signature) in [
            (&twice[..], "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"),
            (&spaced, "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
        ] {
            let signed = signed("GET", "/", "service", fields);
            assert!(signed.ends_with(signature) && !signed.contains("my-header1;my-header1"), "{signed}");
        }
    }

    /// What botocore 1.44 signs for these keys of objects; an object's key may be sent in several forms.
    #[test]
    fn keys_of_objects_have_one_form() {
        for (targets, signature) in [
            (
                &["/a(1).txt", "/a%281%29.txt", "/%61%281).txt"][..],
                "167f82989923dee8800e95e2a0c886f73efcb03ef29df005cb0c2f2d4bd90d16",
            ),
            (
                &["/dt=2026-11-22/part+1", "/dt%3d2026-11-22/part%2b1"],
                "3fbe6204adbdb199c8fba1cc87cd3e06199a24c1caf67862fc6712fe7ba2df21",
            ),
            (&["/%c3%a9", "/%C3%A9"], "347790c5cf2bd11566b939ba6d658016af0ad88f5f4c58a4edba44de6bfb47ff"),
            (&["/b@c//d/./e", "/b%40c//d/./e"], "4c376c58453028c1d1218d18876e3e7abc30257430d70b71aa64e4a70e8b9676"),
        ] {
            for target in targets {
                let signed = signed("GET", target, "s3", &[("X-Amz-Content-Sha256", EMPTY)]);
                assert!(signed.ends_with(signature), "{target}: {signed}");
            }
        }
        assert_eq!(canonical_path("/a=b", "s3-outposts"), "/a%3Db");
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
