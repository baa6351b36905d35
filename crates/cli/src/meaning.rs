//! What the flags mean: one conversion from what was typed to a plan, with all checks in it.

use crate::flags::{ALPN, DiagnosisFlags, JudgingFlags, LoadFlags, TLS_VERSIONS};
use crate::outcome::Usage;
use crate::{factors, requests, shape, usage};
use duel_lab::DiagnosisPlan;
use duel_model::{
    Body, Bound, ComparePlan, ConnectTo, HttpPlan, LoadPlan, LoadShape, LoopKind, Nanos, Plan, Target, TlsPlan,
    TlsVersion, WorkloadPlan, parse_duration_ns, parse_ratio, sanitize_line,
};
use std::path::Path;

/// Address of a run that measures the generator itself.
const NULL: &str = "null:";
/// Connections that are not given.
const CONNECTIONS: &str = "50";
/// More of them only get in each other's way.
pub(crate) const MOST_THREADS: u32 = 1024;

/// The plan of a run on one target.
pub(crate) fn single(typed: &str, requests: Option<u64>, seed: u64, load: &LoadFlags) -> Result<Plan, Usage> {
    let target = targets(&[typed.to_owned()])?.remove(0);
    let bound = match (requests, &load.duration) {
        (Some(_), Some(_)) => return Err(Usage("give a number of requests (-n) or a duration (-d), not both".into())),
        (Some(0), None) => return Err(Usage("-n 0: there is nothing to do without requests".into())),
        (Some(requests), None) => Bound::Ops(requests),
        (None, duration) => Bound::Duration(positive("-d", duration.as_deref().unwrap_or("10s"))?),
    };
    let workload =
        if target.address == NULL { WorkloadPlan::Null } else { WorkloadPlan::Http(Box::new(http(load, seed)?)) };
    tls_is_spoken(std::slice::from_ref(&target), load)?;
    let compare = ComparePlan { seed, ..ComparePlan::default() };
    let mut plan =
        Plan { targets: vec![target], workload, load: load_plan(load, bound)?, compare, factors: Vec::new() };
    shape::single(&mut plan, load)?;
    factors::vary(plan, load, requests.is_some())
}

/// The plan of a comparison.
pub(crate) fn comparison(typed: &[String], judging: &JudgingFlags, load: &LoadFlags) -> Result<Plan, Usage> {
    let targets = targets(typed)?;
    if let [only] = targets.as_slice() {
        return Err(Usage(format!(
            "a comparison needs two targets; to load '{0}' alone: duel run {0}",
            sanitize_line(&only.address)
        )));
    }
    let seed = judging.seed.unwrap_or_else(seed_from_clock);
    let workload = WorkloadPlan::Http(Box::new(http(load, seed)?));
    tls_is_spoken(&targets, load)?;
    let max_load_ns = positive("-d", load.duration.as_deref().unwrap_or("30s"))?;
    let margin = parse_ratio(&judging.margin).map_err(|_| wants("--margin", usage::SHARE, &judging.margin))?;
    if !(margin > 0.0 && margin < 1.0) {
        return Err(Usage("--margin has to lie between 0 and 100 %".into()));
    }
    let compare = ComparePlan {
        seed,
        margin,
        max_load_ns,
        slot_ns: judging.slot.as_deref().map(|slot| positive("--slot", slot)).transpose()?,
        stop_early: !judging.no_early_stop,
        ..ComparePlan::default()
    };
    let load_plan = load_plan(load, Bound::Duration(max_load_ns))?;
    let mut plan = Plan { targets, workload, load: load_plan, compare, factors: Vec::new() };
    shape::comparison(&mut plan, load)?;
    factors::vary(plan, load, false)
}

/// Half of the CPUs: the other half may be the server's, and is the kernel's in any case.
pub(crate) fn default_threads() -> u32 {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cpus / 2).clamp(1, 64) as u32
}

/// A duration that has to be above zero.
pub(crate) fn positive(flag: &str, typed: &str) -> Result<Nanos, Usage> {
    match time(flag, typed)? {
        0 => Err(Usage(format!("{flag} has to be longer than 0"))),
        nanos => Ok(nanos),
    }
}

/// How a cause is looked for.
pub(crate) fn diagnosis(flags: &DiagnosisFlags, targets: &[Target]) -> Result<DiagnosisPlan, Usage> {
    let budget_ns = positive("--why-budget", &flags.why_budget)?;
    let may_start_twin = may_start_twin(&flags.may_start_twin, targets)?;
    Ok(DiagnosisPlan { budget_ns, names_suspects: flags.name_suspects, may_start_twin })
}

/// Of which targets' servers twins may be started. A target behind ssh may be named: that there is no twin yet is then told
/// with the findings.
fn may_start_twin(names: &[String], targets: &[Target]) -> Result<Vec<bool>, Usage> {
    for name in names.iter().filter(|name| !name.is_empty()) {
        match targets.iter().find(|target| target.name == *name) {
            Some(target) if target.host.is_some() => {}
            Some(_) => {
                return Err(Usage(format!("--may-start-twin={0} needs --local {0} as well", sanitize_line(name))));
            }
            None => {
                let known: Vec<_> = targets.iter().map(|target| sanitize_line(&target.name)).collect();
                let name = sanitize_line(name);
                return Err(Usage(format!(
                    "--may-start-twin={name}: no target is called so; there is {}",
                    known.join(", ")
                )));
            }
        }
    }
    let all = names.iter().any(String::is_empty);
    if all && targets.iter().all(|target| target.host.is_none()) {
        return Err(Usage("--may-start-twin needs to know which servers run on this machine: --local NAME".into()));
    }
    let may = |target: &Target| target.host.is_some() && (all || names.contains(&target.name));
    Ok(if names.is_empty() { Vec::new() } else { targets.iter().map(may).collect() })
}

/// The header fields given, those of files included.
pub(crate) fn headers(typed: &[String]) -> Result<Vec<(String, String)>, Usage> {
    let mut headers = Vec::new();
    for typed in typed {
        if let Some(path) = typed.strip_prefix('@') {
            let text = std::fs::read_to_string(path)
                .map_err(|error| Usage(format!("cannot read header fields from {}: {error}", sanitize_line(path))))?;
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                headers.push(header(line)?);
            }
        } else {
            headers.push(header(typed)?);
        }
    }
    Ok(headers)
}

/// A seed that differs from run to run and is easy to type again.
pub(crate) fn seed_from_clock() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(1, |since| since.as_millis() as u64 % 1_000_000)
}

fn time(flag: &str, typed: &str) -> Result<Nanos, Usage> {
    parse_duration_ns(typed).map_err(|_| wants(flag, usage::TIME, typed))
}

fn wants(flag: &str, wanted: &str, typed: &str) -> Usage {
    Usage(usage::takes(flag, wanted, typed))
}

/// Names and addresses; targets without a name are called A, B, C and so on.
fn targets(typed: &[String]) -> Result<Vec<Target>, Usage> {
    let mut targets: Vec<Target> = Vec::new();
    for (index, typed) in typed.iter().enumerate() {
        let (name, address) = split_name(typed);
        let name = name.map_or_else(|| default_name(index), str::to_owned);
        if name.chars().count() > 40 || name.chars().any(char::is_control) {
            return Err(Usage(format!("'{}' is no usable name of a target", sanitize_line(&name))));
        }
        if targets.iter().any(|target| target.name == name) {
            return Err(Usage(format!("two targets are called '{}'", sanitize_line(&name))));
        }
        let address = if address == "null" { NULL } else { address };
        if address != NULL {
            if let Some(shown) = without_password(address) {
                return Err(Usage(format!(
                    "'{}' has a user name or a password in it, which would be kept and shown; use -H 'Authorization: \
                     ...' or, to keep it out of the process list, -H @FILE",
                    sanitize_line(&shown)
                )));
            }
            if !address.contains("://") {
                return Err(Usage(format!(
                    "'{}' is neither a command nor an address; addresses begin with http:// or https:// \
                     (see duel --help)",
                    sanitize_line(address)
                )));
            }
            duel_lab::check_address(&name, address).map_err(|error| Usage(error.to_string()))?;
        }
        targets.push(Target { name, address: address.to_owned(), host: None });
    }
    Ok(targets)
}

/// `NAME=URL`: what stands before an `=` that comes before any character of a URL's beginning.
fn split_name(typed: &str) -> (Option<&str>, &str) {
    match typed.split_once('=') {
        Some((name, address)) if !name.is_empty() && !name.contains([':', '/', '?']) => (Some(name), address),
        _ => (None, typed),
    }
}

/// The address with dots instead of a user name and password; `None` if it has none.
pub(crate) fn without_password(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://").map_or(("", address), |(scheme, rest)| (scheme, rest));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let (_, host) = authority.rsplit_once('@')?;
    let separator = if scheme.is_empty() { "" } else { "://" };
    Some(format!("{scheme}{separator}...@{host}{}", &rest[authority.len()..]))
}

fn default_name(index: usize) -> String {
    let letter = char::from(b'A' + (index % 26) as u8);
    if index < 26 { letter.to_string() } else { format!("{letter}{}", index / 26) }
}

fn load_plan(load: &LoadFlags, bound: Bound) -> Result<LoadPlan, Usage> {
    // Of lists the first level: `factors` makes the others.
    let levels = factors::connections(load.connections.as_deref().unwrap_or(CONNECTIONS))?;
    let rates = load.rate.as_deref().map(factors::rates).transpose()?.unwrap_or_default();
    let kind = match rates.first() {
        None => LoopKind::Closed { think_ns: load.think.as_deref().map_or(Ok(0), |think| time("--think", think))? },
        Some(&rate_per_s) => LoopKind::Open { rate_per_s, arrival: load.arrival.into() },
    };
    let threads = load.threads.unwrap_or_else(default_threads);
    if threads == 0 {
        return Err(Usage("-t 0: without threads nothing can be sent; use at least 1".into()));
    }
    if threads > MOST_THREADS {
        return Err(Usage(format!("-t {threads}: more than {MOST_THREADS} threads only get in each other's way")));
    }
    Ok(LoadPlan {
        connections: levels[0],
        threads,
        kind,
        bound,
        connect_timeout_ns: positive("--connect-timeout", &load.connect_timeout)?,
        op_timeout_ns: positive("--timeout", &load.timeout)?,
        shape: LoadShape::default(),
    })
}

fn http(load: &LoadFlags, seed: u64) -> Result<HttpPlan, Usage> {
    let body = match (&load.body, &load.body_file, &load.body_size) {
        (Some(text), ..) => Body::Text(text.clone()),
        (None, Some(path), _) => Body::File(checked_body_file(path)?.to_path_buf()),
        (None, None, Some(size)) => match factors::body_sizes(size)?[0] {
            0 => Body::None,
            bytes => Body::Generated(bytes),
        },
        (None, None, None) => Body::None,
    };
    let keepalive = load.keepalive.as_deref().map(|typed| factors::switches("--keepalive", typed)).transpose()?;
    let mut plan = HttpPlan {
        method: load.method.clone(),
        headers: headers(&load.headers)?,
        body,
        keepalive: keepalive.map_or(!load.no_keepalive, |levels| levels[0]),
        accept_encoding: Some(load.encoding.trim().to_owned()).filter(|list| !matches!(list.as_str(), "" | "identity")),
        host: load.host.clone(),
        range_bytes: None,
        max_redirects: load.requests.follow_each.unwrap_or(load.follow),
        follows_each: load.requests.follow_each.is_some(),
        requests: requests::plan(load, seed)?,
        connect_to: load.connect_to.iter().map(|rule| connect_to(rule)).collect::<Result<_, _>>()?,
        unix_socket: load.unix_socket.clone(),
        tls: tls(load)?,
        quick_ack: load.quick_ack,
        segment_bytes: load.segment_bytes,
        ..HttpPlan::default()
    };
    load.connection.put_into(&mut plan)?;
    if plan.http2.is_some() && load.alpn != ALPN {
        return Err(Usage("--http2 offers h2 and nothing else; leave --alpn out".into()));
    }
    Ok(plan)
}

fn tls(load: &LoadFlags) -> Result<TlsPlan, Usage> {
    let versions = list(&load.tls)
        .into_iter()
        .map(|version| match version.as_str() {
            "1.2" => Ok(TlsVersion::V1_2),
            "1.3" => Ok(TlsVersion::V1_3),
            other => {
                Err(Usage(format!("--tls: '{}' is no version that can be used; 1.2 and 1.3 can", sanitize_line(other))))
            }
        })
        .collect::<Result<Vec<_>, _>>()?;
    if versions.is_empty() {
        return Err(Usage("--tls: at least one version is needed, 1.2 or 1.3".into()));
    }
    let defaults = TlsPlan::default();
    let plan = TlsPlan {
        verify: !load.insecure,
        ca_file: load.ca.clone(),
        client_cert_file: load.client_cert.clone(),
        client_key_file: load.client_key.clone(),
        versions,
        ciphers: load.ciphers.as_deref().map(list).unwrap_or_default(),
        groups: load.groups.as_deref().map_or(defaults.groups, list),
        resumption: load.resumption,
        alpn: list(&load.alpn),
        server_name: load.server_name.clone(),
    };
    duel_lab::check_tls_names(&plan).map_err(|error| Usage(error.to_string()))?;
    Ok(plan)
}

/// Refuses parameters of TLS where no target can speak it: what was asked for would not be measured. Whom to trust (`-k`,
/// `--ca`) is no parameter of the measurement, and a redirect may lead to https.
fn tls_is_spoken(targets: &[Target], load: &LoadFlags) -> Result<(), Usage> {
    let is_https =
        |target: &Target| target.address.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"));
    if load.follow > 0 || load.requests.follow_each.is_some() || targets.iter().any(is_https) {
        return Ok(());
    }
    let given = [
        ("--ciphers", load.ciphers.is_some()),
        ("--groups", load.groups.is_some()),
        ("--tls", load.tls != TLS_VERSIONS),
        ("--alpn", load.alpn != ALPN),
        ("--resumption", load.resumption),
        ("--server-name", load.server_name.is_some()),
        ("--client-cert", load.client_cert.is_some()),
        ("--client-key", load.client_key.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((option, _)) => {
            Err(Usage(format!("{option} has no meaning here: no target's address begins with https://")))
        }
    }
}

fn list(typed: &str) -> Vec<String> {
    typed.split([',', ':']).map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}

fn header(typed: &str) -> Result<(String, String), Usage> {
    let (name, value) = typed.split_once(':').ok_or_else(|| {
        // Not the whole text: it may be a secret in the wrong place.
        Usage("a header field has the form 'Name: value'; one that was given has no colon".into())
    })?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn checked_body_file(path: &Path) -> Result<&Path, Usage> {
    let shown = sanitize_line(&path.to_string_lossy());
    match std::fs::metadata(path) {
        Err(error) => Err(Usage(format!("cannot read --body-file {shown}: {error}"))),
        Ok(data) if data.is_dir() => Err(Usage(format!("--body-file {shown} is a folder"))),
        Ok(data) if data.is_file() && data.len() == 0 => {
            Err(Usage(format!("--body-file {shown} is empty; leave the option out to send no body")))
        }
        Ok(_) => Ok(path),
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
    fn names_are_told_from_queries() {
        assert_eq!(split_name("new=https://h/?a=b"), (Some("new"), "https://h/?a=b"));
        assert_eq!(split_name("https://h/?a=b"), (None, "https://h/?a=b"));
        assert_eq!(split_name("=https://h/"), (None, "=https://h/"));
    }

    #[test]
    fn passwords_in_addresses_are_not_shown() {
        assert_eq!(without_password("http://u:s3cr3t@h:1/a@b").as_deref(), Some("http://...@h:1/a@b"));
        assert_eq!(without_password("u:s3c@r3t@h").as_deref(), Some("...@h"));
        assert_eq!(without_password("http://h/a@b"), None);
    }

    #[test]
    fn targets_without_a_name_get_letters() {
        let typed: Vec<String> = (0..28).map(|n| format!("http://h{n}/")).collect();
        let targets = targets(&typed).unwrap();
        assert_eq!((targets[0].name.as_str(), targets[27].name.as_str()), ("A", "B1"));
    }

    #[test]
    fn twins_are_started_of_named_servers_or_of_all_that_are_read() {
        let mut targets = targets(&["A=http://a/", "B=http://b/"].map(str::to_owned)).unwrap();
        let of = |names: &[&str], targets: &[Target]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            may_start_twin(&names, targets).map_err(|Usage(said)| said)
        };
        assert_eq!(of(&[], &targets), Ok(vec![]));
        assert!(of(&[""], &targets).unwrap_err().contains("--local NAME"));
        assert!(of(&["B"], &targets).unwrap_err().contains("--local B"));
        assert!(of(&["X"], &targets).unwrap_err().contains("there is A, B"));
        targets[1].host = Some(duel_model::HostPlan {
            access: duel_model::HostAccess::Local,
            server: duel_model::ServerPlan::Unknown,
            process: None,
            redfish: None,
        });
        assert_eq!(of(&[""], &targets), Ok(vec![false, true]));
        assert_eq!(of(&["B"], &targets), Ok(vec![false, true]));
    }

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

    #[test]
    fn a_header_without_a_colon_is_refused_without_being_shown() {
        let error = headers(&["Bearer s3cr3t".into()]).unwrap_err();
        assert!(!error.0.contains("s3cr3t"));
        assert_eq!(headers(&["A: b: c".into()]).unwrap(), [("A".to_owned(), "b: c".to_owned())]);
    }
}
