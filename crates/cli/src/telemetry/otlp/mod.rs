//! Pushing figures to an OpenTelemetry collector: OTLP over HTTP in its JSON encoding.
//!
//! Sums are cumulative, so a push that is lost leaves a hole in the course and none in the sums. JSON is one of the two
//! encodings of the specification (OTLP 1.5, "JSON Protobuf Encoding"), and needs no code made from protocol buffers.

mod document;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing;

use super::shared::{Shared, step_back};
use crate::aside;
use crate::load::targets;
use crate::outcome::Usage;
use anyhow::Context;
use duel_model::{Doubt, DoubtId, sanitize_line};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use ureq::config::Config;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, Error};

/// Time between two pushes, unless the environment says otherwise: a run lasts for some tens of seconds.
const INTERVAL: Duration = Duration::from_secs(10);
/// Time for one push. OpenTelemetry's default is 10 s; whoever waits for the end of a run waits for the last one.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the last push is tried again, where the collector only has no time for it now: it alone has the verdict, and
/// none follows that would make it good.
const PERSISTENCE: Duration = Duration::from_secs(3);
/// The first pause between two tries; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Shortest time between two pushes: more often would be felt beside the measurement, and seen by nobody.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// Longest time between two pushes: on some systems the clock reaches no further ahead than some hundred years, and whoever wants
/// the last push alone has it by a day.
const LONGEST_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// Longest answer that is read.
const LONGEST_ANSWER_BYTES: u64 = 64 << 10;
/// The path of metrics on a collector.
const PATH: &str = "/v1/metrics";

/// Where figures are sent to.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    url: String,
    /// Without a query, which may hold a secret.
    shown: String,
    headers: Vec<(String, String)>,
    interval: Duration,
}

impl Destination {
    /// What was typed for `--otlp`, with what the environment says.
    pub(super) fn of(typed: &str) -> Result<Self, Usage> {
        let shown = sanitize_line(typed.split(['?', '#']).next().unwrap_or_default());
        if let Some(public) = targets::without_password(typed) {
            return Err(Usage(format!(
                "--otlp '{}' has a user name or a password in it, which everybody on this machine could read; use \
                 OTEL_EXPORTER_OTLP_HEADERS='authorization=...'",
                sanitize_line(public.split('?').next().unwrap_or_default())
            )));
        }
        let wrong =
            || Usage(format!("--otlp takes the URL of a collector, such as http://127.0.0.1:4318; got '{shown}'"));
        let mut url = url::Url::parse(typed).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        if matches!(url.path(), "" | "/") {
            url.set_path(PATH);
        }
        let environment = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let interval = match environment("OTEL_METRIC_EXPORT_INTERVAL") {
            None => INTERVAL,
            Some(text) => {
                let ms = text.trim().parse().ok().filter(|&ms| ms > 0).ok_or_else(|| {
                    let text = sanitize_line(&text);
                    Usage(format!("OTEL_METRIC_EXPORT_INTERVAL is a number of milliseconds above 0; it is '{text}'"))
                })?;
                Duration::from_millis(ms).clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL)
            }
        };
        let headers = environment("OTEL_EXPORTER_OTLP_HEADERS").map_or(Ok(Vec::new()), |text| headers(&text))?;
        let shown = sanitize_line(url.as_str().split(['?', '#']).next().unwrap_or_default());
        Ok(Self { url: url.into(), shown, headers, interval })
    }
}

/// `key=value,key=value`, as in W3C Baggage; values may be percent-encoded.
fn headers(text: &str) -> Result<Vec<(String, String)>, Usage> {
    // What is wrong with it may be a secret: it is not shown.
    let wrong = || Usage("OTEL_EXPORTER_OTLP_HEADERS has the form name=value,name=value".to_owned());
    text.split(',')
        .filter(|pair| !pair.trim().is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
            let (name, value) = (name.trim(), percent_decoded(value.trim()).ok_or_else(wrong)?);
            let is_field = ureq::http::HeaderName::from_bytes(name.as_bytes()).is_ok()
                && ureq::http::HeaderValue::from_str(&value).is_ok();
            if is_field { Ok((name.to_owned(), value)) } else { Err(wrong()) }
        })
        .collect()
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Sends figures from a thread of its own.
#[derive(Debug)]
pub(super) struct Exporter {
    /// Hung up to say that the run is over.
    goes_on: Sender<()>,
    done: Receiver<Account>,
    shown: String,
}

/// How pushes went.
#[derive(Debug, Clone, Default)]
struct Account {
    sent: u32,
    failed: u32,
    why: Option<String>,
}

impl Account {
    /// Of a thread that panicked: how many pushes there were before went with it.
    fn broken_down() -> Self {
        Self { failed: 1, why: Some("what sends them broke down; this is a bug in duel".to_owned()), sent: 0 }
    }
}

impl Exporter {
    pub(super) fn start(to: Destination, figures: Shared) -> anyhow::Result<Self> {
        let shown = to.shown.clone();
        let agent =
            config(&to).map(Agent::new_with_config).with_context(|| format!("cannot send metrics to {shown}"))?;
        let (goes_on, end) = channel();
        let (tell, done) = channel();
        let farewell = tell.clone();
        let broke_down = move || drop(farewell.send(Account::broken_down()));
        let work = move || {
            step_back();
            let _ = tell.send(export(&agent, &to, &figures, &end));
        };
        aside::spawn("otlp", broke_down, work).with_context(|| format!("cannot send metrics to {shown}"))?;
        Ok(Self { goes_on, done, shown })
    }

    /// Sends the last figures, waits for that, but not for long, and tells what went wrong.
    pub(super) fn finish(self) -> Option<Doubt> {
        drop(self.goes_on);
        // A push that is under way, and the tries of the last one.
        let text = match self.done.recv_timeout(2 * PATIENCE + PERSISTENCE + Duration::from_secs(1)) {
            Ok(Account { failed: 0, .. }) => return None,
            Ok(Account { sent, failed, why }) => {
                let why = why.unwrap_or_else(|| "unknown why".to_owned());
                format!("{failed} of {} pushes of metrics to {} failed: {why}", sent + failed, self.shown)
            }
            Err(_) => format!("the last push of metrics to {} did not end in time", self.shown),
        };
        Some(Doubt { id: DoubtId::NotRecorded, target: None, text })
    }
}

fn export(agent: &Agent, to: &Destination, figures: &Shared, end: &Receiver<()>) -> Account {
    let mut account = Account::default();
    let mut next = Instant::now() + to.interval;
    loop {
        let is_over = match end.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Err(RecvTimeoutError::Timeout) => false,
            Ok(()) | Err(RecvTimeoutError::Disconnected) => true,
        };
        next = Instant::now() + to.interval;
        let figures = figures.copied();
        // Before the run begins there is nothing to tell.
        if !figures.run.is_empty() {
            let document = document::document(&figures);
            let pushed = if is_over { push_at_last(agent, to, &document) } else { push(agent, to, &document) };
            match pushed {
                Ok(()) => account.sent += 1,
                Err(Trouble { why, .. }) => {
                    account.failed += 1;
                    account.why = Some(why);
                }
            }
        }
        if is_over {
            return account;
        }
    }
}

fn config(to: &Destination) -> anyhow::Result<Config> {
    let mut config = Agent::config_builder()
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .http_status_as_error(false)
        .user_agent(concat!("duel/", env!("CARGO_PKG_VERSION")))
        .timeout_global(Some(PATIENCE));
    if to.url.starts_with("https:") {
        let found = rustls_native_certs::load_native_certs().certs;
        anyhow::ensure!(!found.is_empty(), "this system has no certificate authorities to verify it with");
        let authorities = found.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned()).collect();
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            // The one that the load generator has: two would make rustls ask which.
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .root_certs(RootCerts::Specific(Arc::new(authorities)))
            .build();
        config = config.tls_config(tls);
    }
    Ok(config.build())
}

/// Why a push failed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trouble {
    why: String,
    /// It may be tried again after this long at least; `None`: it would fail again.
    again_after: Option<Duration>,
}

impl Trouble {
    fn lasting(why: impl Into<String>) -> Self {
        Self { why: why.into(), again_after: None }
    }

    fn passing(why: impl Into<String>, again_after: Duration) -> Self {
        Self { why: why.into(), again_after: Some(again_after) }
    }
}

/// Tries until it is taken, or refused, or time is up.
fn push_at_last(agent: &Agent, to: &Destination, document: &serde_json::Value) -> Result<(), Trouble> {
    let until = Instant::now() + PERSISTENCE;
    let left = || until.saturating_duration_since(Instant::now());
    persist(|| push(agent, to, document), left, std::thread::sleep)
}

/// The same on any clock, which says how much time is left.
fn persist(
    mut push: impl FnMut() -> Result<(), Trouble>,
    left: impl Fn() -> Duration,
    sleep: impl Fn(Duration),
) -> Result<(), Trouble> {
    let mut pause = FIRST_PAUSE;
    loop {
        let trouble = match push() {
            Ok(()) => return Ok(()),
            Err(trouble) => trouble,
        };
        let Some(wait) = trouble.again_after.map(|asked| asked.max(pause)) else { return Err(trouble) };
        // A collector may ask for any number of seconds: it is compared with what is left, and added to nothing.
        if wait > left() {
            return Err(trouble);
        }
        sleep(wait);
        pause *= 2;
    }
}

fn push(agent: &Agent, to: &Destination, document: &serde_json::Value) -> Result<(), Trouble> {
    let mut request = agent.post(&to.url).header("Content-Type", "application/json");
    for (name, value) in &to.headers {
        request = request.header(name, value);
    }
    let mut answer = request.send(document.to_string().as_bytes()).map_err(|error| told(&error))?;
    let status = answer.status().as_u16();
    match status {
        200..300 => {}
        300..400 => {
            let why = format!("it answers {status} and leads elsewhere: give the URL that it leads to");
            return Err(Trouble::lasting(why));
        }
        // The specification's list of what is tried again (OTLP 1.5, "OTLP/HTTP Response").
        429 | 502 | 503 | 504 => {
            let after = answer.headers().get("Retry-After").and_then(|value| asked_for(value.to_str().ok()?));
            return Err(Trouble::passing(format!("it answers {status}"), after.unwrap_or_default()));
        }
        _ => return Err(Trouble::lasting(format!("it answers {status}"))),
    }
    let body =
        answer.body_mut().with_config().limit(LONGEST_ANSWER_BYTES).read_to_vec().map_err(|error| told(&error))?;
    accepted(&body).map_err(Trouble::lasting)
}

/// The pause that a `Retry-After` asks for; `None` where it is no number of seconds (it may be a date).
fn asked_for(value: &str) -> Option<Duration> {
    let digits = value.trim();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    // More seconds than the type holds are many seconds, and not none.
    is_number.then(|| Duration::from_secs(digits.parse().unwrap_or(u64::MAX)))
}

/// What a collector says of a push: an empty message, or how much of it was refused.
fn accepted(body: &[u8]) -> Result<(), String> {
    if body.is_empty() {
        return Ok(());
    }
    let answer: serde_json::Value =
        serde_json::from_slice(body).map_err(|_| "what it answers is not OTLP".to_owned())?;
    let refused = &answer["partialSuccess"]["rejectedDataPoints"];
    // 64-bit numbers are texts in this encoding, and some send numbers. What is neither is not known to be none.
    let count = match refused {
        serde_json::Value::Null => Some(0),
        _ => refused.as_u64().or_else(|| refused.as_str()?.parse().ok()),
    };
    let Some(refused) = count.filter(|_| answer.is_object()) else {
        return Err("what it answers is not OTLP".to_owned());
    };
    if refused == 0 {
        return Ok(());
    }
    let why = answer["partialSuccess"]["errorMessage"].as_str().unwrap_or("no reason given");
    Err(format!("it refused {refused} figures: {}", sanitize_line(why)))
}

fn told(error: &Error) -> Trouble {
    let now = Duration::ZERO;
    match error {
        // Its time is over, and so is ours.
        Error::Timeout(_) => Trouble::lasting(format!("it did not answer within {} s", PATIENCE.as_secs())),
        Error::HostNotFound => Trouble::lasting("there is no host of this name"),
        Error::BodyExceedsLimit(_) => Trouble::lasting("its answer is too long"),
        Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Trouble::passing("connection refused", now)
        }
        // The number of a system's error says nothing to whom it is told.
        Error::Io(error) => {
            let text = error.to_string();
            Trouble::passing(sanitize_line(text.split(" (os error").next().unwrap_or_default()), now)
        }
        Error::ConnectionFailed => Trouble::passing(sanitize_line(&error.to_string()), now),
        Error::Protocol(_) | Error::LargeResponseHeader(..) => {
            Trouble::lasting("what it answers is not HTTP as it ought to be")
        }
        error => Trouble::lasting(sanitize_line(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations() {
        let to = Destination::of("http://127.0.0.1:4318").unwrap();
        assert_eq!((to.url.as_str(), to.interval), ("http://127.0.0.1:4318/v1/metrics", INTERVAL));
        let to = Destination::of("https://c.example/otlp/v1/metrics?token=s3cr3t").unwrap();
        assert_eq!(to.shown, "https://c.example/otlp/v1/metrics");
        for typed in ["", "c.example:4318", "grpc://c:4317", "http://", "http://u:s3cr3t@c/", "x://?s3cr3t"] {
            let Usage(said) = Destination::of(typed).unwrap_err();
            assert!(said.starts_with("--otlp ") && !said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn header_fields_of_the_environment() {
        let pairs = headers("api-key=abc%20d, x = 1,").unwrap();
        assert_eq!(pairs, [("api-key".to_owned(), "abc d".to_owned()), ("x".to_owned(), "1".to_owned())]);
        for wrong in ["s3cr3t", "a=%zz", "a=%0a", "a b=c", "a=%f"] {
            let Usage(said) = headers(wrong).unwrap_err();
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn a_collector_may_ask_for_any_pause() {
        for (value, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999999999", Some(u64::MAX)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("Fri, 31 Dec 1999 23:59:59 GMT", None),
        ] {
            assert_eq!(asked_for(value), seconds.map(Duration::from_secs), "{value}");
        }
    }

    #[test]
    fn a_count_of_refused_figures_that_is_no_count_is_not_taken_for_none() {
        for count in ["3.0", "1e2", "-3", "\"-3\"", "\"many\"", "true", "[3]", "{}", "99999999999999999999999"] {
            let answer = format!("{{\"partialSuccess\":{{\"rejectedDataPoints\":{count}}}}}");
            assert!(accepted(answer.as_bytes()).is_err_and(|why| why.contains("not OTLP")), "{answer}");
        }
    }

    #[test]
    fn answers_of_collectors() {
        for well in
            [&b""[..], b"{}", b"{\"partialSuccess\":{}}", b"{\"partialSuccess\":{\"rejectedDataPoints\":\"0\"}}"]
        {
            assert_eq!(accepted(well), Ok(()));
        }
        let partly = b"{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too\\u001b old\"}}";
        assert_eq!(accepted(partly).unwrap_err(), "it refused 3 figures: too\u{fffd} old");
        for garbage in [&b"<html>"[..], b"[]", b"\x00\x01", b"7"] {
            assert!(accepted(garbage).unwrap_err().contains("not OTLP"));
        }
    }
}
