//! Responses that others have collected: what curl and llhttp make of them, and what we do.
//!
//! The collections are not ours, and not kept here. With copies of them:
//!
//! ```text
//! git clone --depth 1 https://github.com/curl/curl; git clone --depth 1 https://github.com/nodejs/llhttp
//! DUEL_CURL_TESTS=curl/tests/data DUEL_LLHTTP=llhttp/test/response \
//!     cargo test -p duel-http --test integration foreign_corpus -- --ignored --nocapture
//! ```
//!
//! Each response is sent over a socket to an op of ours, byte for byte. Outcome (ok or failed), status and body bytes have
//! to be those that the other side expects. Where they differ, `EXPLAINED` says why we are right; anything else fails the
//! test. What cannot be compared is counted with its reason.

mod curl;
mod llhttp;

use crate::common::{PATIENCE_NS, Tiny, end_in_order, ops, read_head, sentence};
use duel_http::HttpFactory;
use duel_load::SlotOrder;
use duel_model::{HttpPlan, SECOND_NS};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A response, how it is sent, and what its collectors expect.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    bytes: Vec<u8>,
    /// The connection ends behind it.
    closes: bool,
    to_head_request: bool,
    /// Bodies are decompressed, and their size after that is compared.
    decompress: bool,
    expected: Expected,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// `None`: not told.
    Ok {
        status: Option<u16>,
        body_bytes: Option<u64>,
    },
    Failed,
}

/// What an op of ours made of it.
#[derive(Debug)]
struct Outcome {
    is_ok: bool,
    status: Option<u16>,
    body_bytes: u64,
    sentence: String,
}

/// A case, or why it cannot be compared.
type Read1 = Result<Case, &'static str>;

/// Where we make something else of a response, and why.
const EXPLAINED: &[(&str, &str)] = &[
    // curl is stricter.
    ("test129", "another minor version is processed as ours (RFC 9110, 2.5)"),
    ("test262", "NUL in a field stands for a space (RFC 9110, 5.5)"),
    ("test2105", "CR in a field stands for a space (RFC 9112, 2.2)"),
    ("test2106", "trailers are read over (RFC 9112, 7.1.2)"),
    ("test2119", "with another coding than chunked the connection ends the body (RFC 9112, 6.3)"),
    ("test772", "curl refuses two different Locations; they do not matter where the response ends (RFC 9110, 10.2.2)"),
    // curl is more lenient.
    ("test395", "what is announced has not come: the response is not whole (RFC 9112, 8)"),
    ("test230", "two codings of one body: --decompress takes one off, and says so; we ask for no more (RFC 9110, 8.4)"),
    // llhttp is stricter.
    ("invalid: Bare CR after response line", "CR stands for a space (RFC 9112, 2.2)"),
    ("invalid: Bare CR followed by CR after response line", "CR stands for a space (RFC 9112, 2.2)"),
    ("invalid: Headers separated by CR", "CR stands for a space (RFC 9112, 2.2)"),
    ("invalid: Extra space between HTTP version and status code", "words may be kept apart so (RFC 9112, 4)"),
    ("invalid: Tab after HTTP version", "words may be kept apart so (RFC 9112, 4)"),
    ("invalid: Only LFs present", "LF alone may end a line (RFC 9112, 2.2)"),
    ("invalid: Only LFs present and no body", "LF alone may end a line (RFC 9112, 2.2)"),
    ("sample: No carriage ret", "LF alone may end a line (RFC 9112, 2.2)"),
    ("sample: Spaces in header name", "only fields that matter have to have a name that is one; curl reads it as well"),
    (
        "transfer-encoding: No extension after semicolon",
        "an extension is read over, whatever it is; curl does so as well",
    ),
    ("transfer-encoding: Trailing space on chunked body", "blanks behind a size are read over; curl does so as well"),
    // llhttp is more lenient.
    (
        "connection: HTTP 100 first, then 400",
        "empty lines may stand before requests alone (RFC 9112, 2.2); curl refuses it",
    ),
    (
        "sample: Response starting with CRLF",
        "empty lines may stand before requests alone (RFC 9112, 2.2); curl refuses it",
    ),
    (
        "connection: HTTP 101 response with Upgrade and Content-Length header",
        "nobody has asked for another protocol (RFC 9110, 7.8)",
    ),
    (
        "connection: HTTP 101 response with Upgrade and Transfer-Encoding header",
        "nobody has asked for another protocol (RFC 9110, 7.8)",
    ),
    ("sample: HTTP version 0.9", "not HTTP/1.x"),
    ("sample: ICE response", "not HTTP/1.x"),
    ("sample: RTSP response", "not HTTP/1.x"),
];

impl Case {
    fn ask(&self) -> Outcome {
        let (bytes, closes) = (self.bytes.clone(), self.closes);
        let server = Tiny::start(move |_, mut stream| {
            if read_head(&mut stream).is_none() || stream.write_all(&bytes).is_err() {
                return;
            }
            if closes {
                end_in_order(&mut stream);
            } else {
                while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
            }
        });
        let method = if self.to_head_request { "HEAD" } else { "GET" };
        let mut plan = HttpPlan { method: method.into(), accepts_any_status: true, ..HttpPlan::default() };
        if self.decompress {
            plan.requests.decompress = true;
            plan.accept_encoding = Some("br, deflate, gzip, x-gzip, zstd".into());
        }
        let factory = HttpFactory::prepare(&plan, &server.url("/"), PATIENCE_NS).unwrap();
        let mut session = factory.session(1, 1, Arc::default()).unwrap();
        // Who waits for more than comes, waits in vain.
        let record = slot_of_any_status(&mut session, &SlotOrder { op_timeout_ns: 2 * SECOND_NS, ..ops(1) });
        let tally = &record.tally;
        Outcome {
            is_ok: tally.ok == 1,
            status: tally.statuses.keys().next().copied(),
            body_bytes: if self.decompress { tally.inflated_bytes.unwrap_or(0) } else { tally.body_bytes },
            sentence: sentence(&record).to_owned(),
        }
    }

    /// What differs, in words.
    fn difference(&self) -> Option<String> {
        let outcome = self.ask();
        let seen = || format!("status {:?}, {} body bytes {}", outcome.status, outcome.body_bytes, outcome.sentence);
        match (self.expected, outcome.is_ok) {
            (Expected::Failed, false) => None,
            (Expected::Failed, true) => Some(format!("ok where it is refused: {}", seen())),
            (Expected::Ok { .. }, false) => Some(format!("refused where it is ok: {}", seen())),
            (Expected::Ok { status, body_bytes }, true) => {
                let differs = status.is_some_and(|status| Some(status) != outcome.status)
                    || body_bytes.is_some_and(|bytes| bytes != outcome.body_bytes);
                differs.then(|| format!("{:?} expected, seen {}", self.expected, seen()))
            }
        }
    }
}

/// As `common::slot`, whose accounts say that statuses from 400 on fail.
fn slot_of_any_status(session: &mut duel_load::Session, order: &SlotOrder) -> duel_load::SlotRecord {
    session.run_slot(order, &mut |_| std::ops::ControlFlow::Continue(())).unwrap()
}

/// What became of a collection.
#[derive(Debug, Default)]
struct Report {
    agreed: usize,
    /// Those of them that were told to have a body of so many bytes.
    agreed_on_bodies: usize,
    differences: Vec<(String, String)>,
    skipped: BTreeMap<&'static str, usize>,
}

/// Asks for all cases; a few at a time, since some wait.
fn compare(cases: Vec<Read1>) -> Report {
    let report = Mutex::new(Report::default());
    let cases = Mutex::new(cases.into_iter());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let Some(case) = cases.lock().unwrap().next() else { return };
                    match case {
                        Err(reason) => *report.lock().unwrap().skipped.entry(reason).or_default() += 1,
                        Ok(case) => match case.difference() {
                            None => {
                                let has_body = matches!(case.expected, Expected::Ok { body_bytes: Some(1..), .. });
                                let mut report = report.lock().unwrap();
                                report.agreed += 1;
                                report.agreed_on_bodies += usize::from(has_body);
                            }
                            Some(what) => report.lock().unwrap().differences.push((case.name, what)),
                        },
                    }
                }
            });
        }
    });
    report.into_inner().unwrap()
}

/// Prints what became of a collection, and fails where a difference is not explained.
fn judge(name: &str, mut report: Report) {
    report.differences.sort();
    let skipped: usize = report.skipped.values().sum();
    println!(
        "{name}: {} agree ({} with a body of known size), {} differ, {skipped} cannot be compared",
        report.agreed,
        report.agreed_on_bodies,
        report.differences.len()
    );
    for (reason, count) in &report.skipped {
        println!("  not compared: {count} {reason}");
    }
    let mut unexplained = 0;
    for (case, what) in &report.differences {
        let why = EXPLAINED.iter().find(|(name, _)| name == case).map(|(_, why)| *why);
        unexplained += u32::from(why.is_none());
        println!("  {case}: {what}\n    {}", why.unwrap_or("NOT EXPLAINED"));
    }
    assert!(report.agreed > 0, "nothing was compared");
    assert_eq!(unexplained, 0, "differences that nobody has explained");
}

/// The folder that a variable of the environment names; relative to where the workspace is.
fn folder(variable: &str) -> PathBuf {
    let value =
        std::env::var_os(variable).unwrap_or_else(|| panic!("{variable} names no folder; see this file's head"));
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(value)
}

#[test]
#[ignore = "takes a copy of curl's tests: DUEL_CURL_TESTS=curl/tests/data"]
fn what_curl_makes_of_its_own_tests() {
    judge("curl", compare(curl::cases(&folder("DUEL_CURL_TESTS"))));
}

#[test]
#[ignore = "takes a copy of llhttp's tests: DUEL_LLHTTP=llhttp/test/response"]
fn what_llhttp_makes_of_its_own_tests() {
    judge("llhttp", compare(llhttp::cases(&folder("DUEL_LLHTTP"))));
}

fn folder_here() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

/// Both forms, made up here, are read as they are meant; a wrong expectation is seen.
#[test]
fn what_is_expected_is_compared_with_what_is_seen() {
    let text = "<testcase>\n<reply>\n<data crlf=\"headers\">\nHTTP/1.1 200 OK\nContent-Length: 6\n\n-foo-\n</data>\n<datacheck>\n\
                HTTP/1.1 200 OK\n\n%hex[%61%62]hex%WHAT\n</datacheck>\n</reply>\n<client>\n<server>\nhttp\n</server>\n\
                <command>\nhttp://%HOSTIP/%TESTNUMBER\n</command>\n</client>\n<verify>\n<errorcode>\nCODE\n</errorcode>\n\
                </verify>\n</testcase>\n";
    for (what, code, differs) in [("cde", "0", false), ("cd", "0", true), ("cde", "8", true), ("cde", "0\n</x>", false)]
    {
        let text = text.replace("WHAT", what).replace("CODE", code);
        let case = curl::read("made up", 1, text.as_bytes(), &folder_here()).unwrap();
        assert_eq!(case.bytes, b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n-foo-\n");
        assert_eq!(case.difference().is_some(), differs, "{what} {code}: {:?}", case.difference());
    }
    let text = "## one\n\n<!-- meta={\"type\": \"response\"} -->\n```http\nHTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n\
                2\nab\n0\n\n\n```\n\n```log\noff=1 headers complete status=200 v=1/1 flags=208 content_length=0\n\
                off=2 len=2 span[body]=\"ab\"\nEND\n```\n";
    for (end, differs) in [
        ("off=9 message complete", false),
        ("off=9 error code=12 reason=\"Invalid\"", true),
        ("off=9 len=1 span[body]=\"c\"\noff=10 message complete", true),
        ("off=9", true),
    ] {
        let case = llhttp::read("made up", &text.replace("END", end)).pop().unwrap().unwrap();
        assert_eq!(case.difference().is_some(), differs, "{end}: {:?}", case.difference());
    }
}
