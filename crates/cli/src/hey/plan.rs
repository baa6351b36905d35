//! What hey's flags mean: one conversion from what was typed to a plan and the form of the output, with all checks in it.

use crate::load::{meaning, targets, values};
use crate::{basic, proxy};
use duel_hey::{Flags, Output, Unusable};
use duel_model::{
    Arrival, Body, Bound, ComparePlan, Http2Plan, HttpPlan, LoadPlan, LoopKind, Nanos, Plan, ProxyPlan, SECOND_NS,
    Target, TlsPlan, WorkloadPlan, sanitize_line,
};
use std::path::Path;
use url::Url;

/// What is to be done, and how it is to be shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Task {
    pub(super) plan: Plan,
    pub(super) output: Output,
}

/// The header field that tells a server who asks.
const AUTHORIZATION: &str = "Authorization";
/// As Go's client has it.
const MOST_REDIRECTS: u32 = 10;
/// Stands for "never": a year is beyond any run.
const NEVER_NS: Nanos = 365 * 86_400 * SECOND_NS;
/// Highest rate of an open loop, as for `duel run`.
const HIGHEST_RATE_PER_S: f64 = 1e7;

impl Task {
    /// What the flags mean.
    pub(super) fn of(flags: &Flags) -> Result<Self, Unusable> {
        let output = flags.output()?;
        let (workers, bound) = amount(flags)?;
        let mut http = http(flags, workers)?;
        let connections = workers.div_ceil(http.streams());
        let (address, credentials) = address(&flags.url)?;
        let is_authorized = http.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(AUTHORIZATION));
        if let Some(credentials) = credentials.filter(|_| !is_authorized) {
            http.headers.push((AUTHORIZATION.to_owned(), credentials));
        }
        let timeout_ns = u64::try_from(flags.timeout_s)
            .ok()
            .filter(|&seconds| seconds > 0)
            .map_or(NEVER_NS, |seconds| seconds.saturating_mul(SECOND_NS).min(NEVER_NS));
        let threads = u32::try_from(flags.cpus).ok().filter(|&cpus| cpus > 0);
        let threads = threads.unwrap_or_else(meaning::default_threads).min(values::MOST_THREADS);
        let plan = Plan {
            targets: vec![Target { name: "A".to_owned(), address, host: None }],
            workload: WorkloadPlan::Http(Box::new(http)),
            load: LoadPlan {
                connections,
                threads: threads.min(connections),
                kind: pace(flags, workers)?,
                bound,
                connect_timeout_ns: timeout_ns,
                op_timeout_ns: timeout_ns,
                busy_poll: duel_model::BusyPoll::Never,
                shape: duel_model::LoadShape::default(),
            },
            compare: ComparePlan::default(),
            factors: vec![],
        };
        Ok(Self { plan, output })
    }
}

impl Task {
    /// Whether HTTP/2 was asked for.
    pub(super) fn wants_http2(&self) -> bool {
        matches!(&self.plan.workload, WorkloadPlan::Http(http) if http.http2.is_some())
    }
}

fn amount(flags: &Flags) -> Result<(u32, Bound), Unusable> {
    let connections = u32::try_from(flags.workers).ok().filter(|&workers| workers > 0);
    if flags.duration_ns > 0 {
        let connections = connections.ok_or_else(|| meaningless("-c cannot be smaller than 1"))?;
        return Ok((connections, Bound::Duration(flags.duration_ns)));
    }
    let requests = u64::try_from(flags.requests).ok().filter(|&requests| requests > 0);
    let (Some(requests), Some(connections)) = (requests, connections) else {
        return Err(meaningless("-n and -c cannot be smaller than 1"));
    };
    if requests < u64::from(connections) {
        return Err(meaningless("-n cannot be less than -c"));
    }
    Ok((connections, Bound::Ops(requests)))
}

/// A rate for each worker is an open loop of all: hey lets a worker's rate sag while the server is slow.
fn pace(flags: &Flags, connections: u32) -> Result<LoopKind, Unusable> {
    if flags.rate_per_worker <= 0.0 {
        return Ok(LoopKind::Closed { think_ns: 0 });
    }
    let rate_per_s = flags.rate_per_worker * f64::from(connections);
    if rate_per_s > HIGHEST_RATE_PER_S {
        return Err(meaningless(format!(
            "-q and -c together make {rate_per_s} requests per second; 10 million is the most"
        )));
    }
    Ok(LoopKind::Open { rate_per_s, arrival: Arrival::Constant })
}

fn http(flags: &Flags, workers: u32) -> Result<HttpPlan, Unusable> {
    let follows = !flags.disable_redirects;
    let mut headers = headers(flags)?;
    let proxy = proxy(flags, &mut headers)?;
    Ok(HttpPlan {
        method: flags.method.to_uppercase(),
        headers,
        body: body(flags)?,
        keepalive: !flags.disable_keepalive,
        accept_encoding: (!flags.disable_compression).then(|| "gzip".to_owned()),
        host: Some(flags.host.clone()).filter(|host| !host.is_empty()),
        max_redirects: if follows { MOST_REDIRECTS } else { 0 },
        follows_each: follows,
        accepts_any_status: true,
        proxy,
        // As Go's client: one connection for all that is asked of a host.
        http2: flags.http2.then_some(Http2Plan { streams: if flags.disable_keepalive { 1 } else { workers } }),
        tls: TlsPlan { verify: false, ..TlsPlan::default() },
        ..HttpPlan::default()
    })
}

/// Fields that Go's client, and so hey, makes itself whatever is given.
const NOT_SENT: [&str; 2] = ["Content-Length", "Transfer-Encoding"];

/// Header fields: each name once, the last one counts.
fn headers(flags: &Flags) -> Result<Vec<(String, String)>, Unusable> {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: &str| {
        fields.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        if !value.is_empty() {
            fields.push((name.to_owned(), value.to_owned()));
        }
    };
    set("Content-Type", &flags.content_type);
    let mut user_agent = flags.user_agent.as_str();
    for typed in &flags.headers {
        let (name, value) = header(typed)?;
        if NOT_SENT.iter().any(|left_out| name.eq_ignore_ascii_case(left_out)) {
            continue;
        }
        if !name.eq_ignore_ascii_case("User-Agent") {
            set(name, value);
        } else if flags.user_agent.is_empty() {
            user_agent = value;
        }
    }
    set("Accept", &flags.accept);
    if !user_agent.is_empty() {
        // As hey does: a server's log tells who really asked.
        set("User-Agent", &format!("{user_agent} duel/{}", env!("CARGO_PKG_VERSION")));
    }
    if !flags.authorization.is_empty() {
        if !flags.authorization.contains(':') {
            return Err(meaningless("-a takes user:password; what was given has no colon"));
        }
        set(AUTHORIZATION, &basic::credentials(&flags.authorization));
    }
    if !flags.host.is_empty() {
        set("Host", "");
    }
    Ok(fields)
}

/// `Name: value`, where neither may be empty.
fn header(typed: &str) -> Result<(&str, &str), Unusable> {
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    typed
        .split_once(':')
        .map(|(name, value)| (name, value.trim()))
        .filter(|(name, value)| is_name(name) && !value.is_empty())
        // Not the whole text: it may be a secret in the wrong place.
        .ok_or_else(|| meaningless("-H takes 'Name: value'; what was given has not that form"))
}

fn body(flags: &Flags) -> Result<Body, Unusable> {
    if flags.body_file.is_empty() {
        return Ok(if flags.body.is_empty() { Body::None } else { Body::Text(flags.body.clone()) });
    }
    let path = Path::new(&flags.body_file);
    match std::fs::metadata(path) {
        Err(error) => Err(meaningless(format!("cannot read -D {}: {error}", sanitize_line(&flags.body_file)))),
        Ok(data) if data.is_dir() => Err(meaningless(format!("-D {} is a folder", sanitize_line(&flags.body_file)))),
        Ok(data) if data.is_file() && data.len() == 0 => Ok(Body::None),
        Ok(_) => Ok(Body::File(path.to_owned())),
    }
}

/// The proxy of `-x`. A user and a password in it are a header field for the proxy alone, and are not kept.
fn proxy(flags: &Flags, headers: &mut Vec<(String, String)>) -> Result<Option<ProxyPlan>, Unusable> {
    if flags.proxy.is_empty() {
        return Ok(None);
    }
    let proxy = proxy::parse(&flags.proxy).map_err(|why| meaningless(format!("-x {why}")))?;
    if proxy.user.is_some() || proxy.password.is_some() {
        let (user, password) = (proxy.user.unwrap_or_default(), proxy.password.unwrap_or_default());
        headers.retain(|(name, _)| !name.eq_ignore_ascii_case(proxy::CREDENTIALS));
        headers.push((proxy::CREDENTIALS.to_owned(), basic::credentials(&format!("{user}:{password}"))));
    }
    Ok(Some(proxy.plan))
}

/// The URL as an address, and the value of `Authorization` that a user and a password in it are, as Go's client has it:
/// an address is kept and shown, so that they do not stay there. A space in it is one, as Go reads it.
fn address(typed: &str) -> Result<(String, Option<String>), Unusable> {
    let shown = || sanitize_line(&targets::without_password(typed).unwrap_or_else(|| typed.to_owned()));
    if !typed.contains("://") {
        return Err(meaningless(format!("'{}' is no URL; it has to begin with http:// or https://", shown())));
    }
    let mut address = typed.replace(' ', "%20");
    let mut credentials = None;
    if targets::without_password(typed).is_some() {
        let unusable = || meaningless(format!("'{}' is no URL that can be used; see -a user:password", shown()));
        let mut url = Url::parse(&address).map_err(|_| unusable())?;
        let (user, password) = proxy::decoded(url.username())
            .zip(proxy::decoded(url.password().unwrap_or_default()))
            .filter(|(user, _)| !user.contains(':'))
            .ok_or_else(unusable)?;
        credentials = Some(basic::credentials(&format!("{user}:{password}")));
        url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| unusable())?;
        address = url.into();
    }
    duel_lab::check_address("the URL", &address).map_err(|error| meaningless(error.to_string()))?;
    Ok((address, credentials))
}

fn meaningless(text: impl Into<String>) -> Unusable {
    Unusable::Meaning(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use duel_hey::Style;
    use std::ffi::OsString;

    fn task(typed: &[&str]) -> Result<Task, Unusable> {
        let typed: Vec<OsString> = typed.iter().chain(&["http://h.example/"]).map(OsString::from).collect();
        Flags::parse(&typed).and_then(|flags| Task::of(&flags))
    }

    fn plan(typed: &[&str]) -> (LoadPlan, HttpPlan) {
        let Plan { workload, load, .. } = task(typed).unwrap().plan;
        let WorkloadPlan::Http(http) = workload else { panic!("{workload:?}") };
        (load, *http)
    }

    #[track_caller]
    fn refused(typed: &[&str]) -> String {
        match task(typed) {
            Err(Unusable::Meaning(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    fn field<'a>(http: &'a HttpPlan, name: &str) -> Option<&'a str> {
        http.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn the_defaults_are_heys() {
        let (load, http) = plan(&[]);
        assert_eq!((load.connections, load.bound), (50, Bound::Ops(200)));
        assert_eq!((load.op_timeout_ns, load.kind), (20 * SECOND_NS, LoopKind::Closed { think_ns: 0 }));
        assert_eq!(http.headers, [("Content-Type".to_owned(), "text/html".to_owned())]);
        assert_eq!((http.keepalive, http.max_redirects, http.follows_each), (true, 10, true));
        assert!(!http.tls.verify && http.accepts_any_status && http.body == Body::None);
        assert_eq!(task(&[]).unwrap().output, Output::Summary(Style::Current));
    }

    #[test]
    fn amounts_are_checked_as_hey_checks_them() {
        for typed in [["-n", "0"], ["-c", "0"], ["-n", "-1"]] {
            assert_eq!(refused(&typed), "-n and -c cannot be smaller than 1");
        }
        assert_eq!(refused(&["-n", "10", "-c", "11"]), "-n cannot be less than -c");
        assert_eq!(refused(&["-z", "5s", "-c", "0"]), "-c cannot be smaller than 1");
        // With a duration -n is ignored.
        let (load, _) = plan(&["-z", "5s", "-n", "1", "-c", "70"]);
        assert_eq!((load.bound, load.connections), (Bound::Duration(5 * SECOND_NS), 70));
        assert_eq!(plan(&["-n", "7", "-c", "3"]).0.bound, Bound::Ops(7), "not 6");
    }

    #[test]
    fn urls_may_have_spaces_and_credentials() {
        let of = |typed: &str| address(typed).unwrap();
        assert_eq!(of("http://h/a b?c d"), ("http://h/a%20b?c%20d".to_owned(), None));
        let (plain, credentials) = of("http://Aladdin:open%20sesame@h.example:81/a?b");
        assert_eq!(plain, "http://h.example:81/a?b");
        assert_eq!(credentials.as_deref(), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert_eq!(of("http://u@h/").1.as_deref(), Some("Basic dTo="));
        for wrong in ["http://u:s3cr3t@:x/", "http://u:s3cr3t@/", "ftp://u:s3cr3t@h/", "u:s3cr3t@h", "http://h h/"] {
            let Err(Unusable::Meaning(said)) = address(wrong) else { panic!("{wrong}") };
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn a_rate_for_each_worker_is_one_for_all() {
        let open = |rate_per_s| LoopKind::Open { rate_per_s, arrival: Arrival::Constant };
        assert_eq!(plan(&["-q", "2.5", "-c", "4"]).0.kind, open(10.0));
        assert_eq!(plan(&["-q", "-1"]).0.kind, LoopKind::Closed { think_ns: 0 });
        assert!(refused(&["-q", "1e7"]).contains("10 million"));
    }

    #[test]
    fn a_timeout_of_0_is_none() {
        for never in ["0", "-5"] {
            assert_eq!(plan(&["-t", never]).0.op_timeout_ns, NEVER_NS);
        }
        assert_eq!(plan(&["-t", "3"]).0.connect_timeout_ns, 3 * SECOND_NS);
    }

    #[test]
    fn header_fields_replace_each_other() {
        let (_, http) = plan(&["-H", "X-A: 1", "-H", "x-a:2", "-H", "Accept: a", "-A", "b", "-T", "", "-H", "B:c: d"]);
        let expected = [("x-a", "2"), ("B", "c: d"), ("Accept", "b")];
        assert_eq!(http.headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(refused(&["-H", "s3cr3t"]).contains("Name: value") && !refused(&["-H", "s3cr3t"]).contains("s3cr3t"));
        refused(&["-H", "Empty:"]);
        // Go's client makes these itself.
        let (_, http) = plan(&["-H", "Content-Length: 3", "-H", "transfer-encoding: chunked", "-d", "body"]);
        assert!(http.headers.iter().all(|(name, _)| name == "Content-Type"), "{:?}", http.headers);
    }

    #[test]
    fn the_user_agent_tells_who_it_is_besides() {
        let own = format!("duel/{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(field(&plan(&[]).1, "User-Agent"), None, "the engine's own");
        assert_eq!(field(&plan(&["-U", "x"]).1, "User-Agent"), Some(format!("x {own}").as_str()));
        assert_eq!(field(&plan(&["-H", "user-agent: y"]).1, "User-Agent"), Some(format!("y {own}").as_str()));
        assert_eq!(
            field(&plan(&["-H", "User-Agent: y", "-U", "x"]).1, "User-Agent"),
            Some(format!("x {own}").as_str())
        );
    }

    #[test]
    fn authentication_is_not_lost() {
        // RFC 7617, 2.
        let (_, http) = plan(&["-a", "Aladdin:open sesame", "-H", "Authorization: other"]);
        assert_eq!(field(&http, "Authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
        assert!(!refused(&["-a", "s3cr3t"]).contains("s3cr3t"));
    }

    #[test]
    fn proxies_are_host_and_port_or_an_address() {
        let of = |typed: &str| plan(&["-x", typed]).1.proxy.map(|proxy| proxy.to_string());
        assert_eq!(of("proxy:3128").as_deref(), Some("proxy:3128"));
        assert_eq!(of("http://proxy:3128/").as_deref(), Some("proxy:3128"));
        assert!(refused(&["-x", "socks5://proxy:1080"]).contains("socks5"));
        assert!(!refused(&["-x", "http://u:s3cr3t@proxy:x"]).contains("s3cr3t"));
        let (_, http) = plan(&["-x", "http://Aladdin:open%20sesame@proxy:1", "-H", "Proxy-Authorization: other"]);
        assert_eq!(http.proxy.as_ref().map(ToString::to_string).as_deref(), Some("proxy:1"));
        assert_eq!(field(&http, "Proxy-Authorization"), Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="));
    }

    #[test]
    fn http2_has_all_workers_on_one_connection() {
        let (load, http) = plan(&["-h2", "-c", "70", "-q", "2"]);
        assert_eq!((load.connections, load.threads, http.streams()), (1, 1, 70));
        assert_eq!(load.kind, LoopKind::Open { rate_per_s: 140.0, arrival: Arrival::Constant });
        let (load, http) = plan(&["-h2", "-c", "7", "-disable-keepalive"]);
        assert_eq!((load.connections, http.streams(), http.keepalive), (7, 1, false));
        assert_eq!(plan(&["-h2=false"]).1.http2, None);
    }

    #[test]
    fn bodies_of_files_win() {
        let (_, http) = plan(&["-d", "text", "-D", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "-m", "post"]);
        assert!(matches!(http.body, Body::File(_)) && http.method == "POST");
        assert_eq!(plan(&["-d", "text"]).1.body, Body::Text("text".into()));
        assert!(refused(&["-D", "/no/such/file"]).contains("/no/such/file"));
        assert!(refused(&["-D", "/"]).contains("folder"));
    }

    #[test]
    fn what_there_is_not_is_said() {
        assert!(refused(&["-o", "xml"]).contains("csv"));
        assert!(matches!(task(&["-style", "1999"]), Err(Unusable::Flags(_))));
        assert_eq!(
            task(&["-style", "2017", "-more"]).unwrap().output,
            Output::Summary(Style::Historic { details: true })
        );
        assert_eq!(task(&["-o", "csv"]).unwrap().output, Output::Csv);
        let no_url = Flags::parse(&["h.example".into()]).unwrap();
        assert!(matches!(Task::of(&no_url), Err(Unusable::Meaning(text)) if text.contains("http://")));
    }
}
