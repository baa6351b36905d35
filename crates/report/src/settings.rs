//! Under which settings a run was made, defaults included, and how to repeat it.

use crate::figures::{duration, exact_percent, rate, set_duration};
use crate::style::Style;
use crate::text::{clean, clean_whole, plural, wrap};
use crate::{search, stages};
use duel_model::web::settings::{BODY_SIZE, ENCODING, METHOD};
use duel_model::{
    Arrival, AuthPlan, Body, Bound, Factor, HttpPlan, Interruption, LoopKind, Param, Plan, ReachPlan, RequestFormat,
    RequestsPlan, Run, RunStatus, Waiting, WhyWaiting, WorkloadPlan,
};

/// Which commands lead back to a run; a report offers no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It is not kept: none.
    Not,
    /// It is kept, but its targets ended with it: it can be shown.
    Shown,
    /// It is kept: it can be shown and repeated.
    ShownAndRepeated,
}

/// The settings, the run's identity and the commands that show and repeat it.
pub(crate) fn footer(run: &Run, again: Again, style: Style) -> Vec<String> {
    let width = style.columns();
    let id = clean_whole(&run.id);
    let mut lines = wrap(&settings(run), width, "Settings ", "         ");
    let missing = run.plan.missing_secrets();
    if !missing.is_empty() {
        let names = missing.iter().map(|name| clean(name)).collect::<Vec<_>>().join(", ");
        let text = format!("values of these header fields were not kept, a repetition asks for them: {names}");
        lines.extend(wrap(&text, width, "         ", "         "));
    }
    let version = if run.versions.duel.is_empty() { String::new() } else { format!(", duel {}", run.versions.duel) };
    let status = status_word(&run.status);
    let seed = run.plan.compare.seed;
    let when = crate::utc(run.started_unix_ms);
    let text = format!("{id}, {when} UTC, {status}, seed {seed}{}", clean(&version));
    lines.extend(wrap(&text, width, "Run      ", "         "));
    let commands: &[&str] = match again {
        Again::Not => &[],
        Again::Shown => &["show"],
        Again::ShownAndRepeated => &["show", "rerun"],
    };
    for (command, label) in commands.iter().zip(["Again    ", "         "]) {
        lines.push(format!("{label}duel {command} {id}"));
    }
    lines
}

/// How a run ended, in the word that lists and reports use for it.
pub(crate) fn status_word(status: &RunStatus) -> &'static str {
    match status {
        RunStatus::Complete => "complete",
        RunStatus::Interrupted(Interruption::User) => "interrupted",
        RunStatus::Interrupted(Interruption::Unfinished) => "unfinished",
        RunStatus::Interrupted(Interruption::TargetDied { .. }) => "target died",
    }
}

/// Why a run ended early, in one sentence that begins with its [`status_word`]; `None` when it is complete, and where a target
/// died, which is the verdict's first headline.
pub(crate) fn ended_early(status: &RunStatus) -> Option<String> {
    match status {
        RunStatus::Complete => None,
        RunStatus::Interrupted(Interruption::User) => {
            Some("Interrupted by the user: the figures are those until then".to_owned())
        }
        RunStatus::Interrupted(Interruption::Unfinished) => {
            Some("Unfinished, or still going on: the figures are those until then".to_owned())
        }
        RunStatus::Interrupted(Interruption::TargetDied { .. }) => None,
    }
}

/// How the generator waited for answers, and why.
fn waiting(waiting: &Waiting, run: &Run) -> String {
    if waiting.gave_way {
        return "polled while it waited, until others wanted its CPU, then slept".to_owned();
    }
    let does = if waiting.polling_workers > 0 { "polls while it waits" } else { "sleeps while it waits" };
    let why = match &waiting.why {
        WhyWaiting::Asked => return does.to_owned(),
        WhyWaiting::Tried(gains) if gains.iter().all(Option::is_none) => {
            "requests take too long for a wake-up to matter".to_owned()
        }
        WhyWaiting::Tried(gains) => {
            let name = |index: usize| run.plan.targets.get(index).map(|target| clean(&target.name)).unwrap_or_default();
            let each: Vec<String> = gains
                .iter()
                .enumerate()
                .filter_map(|(index, gain)| Some((index, (*gain)?)))
                .map(|(index, gain)| match gains.len() {
                    1 => format!("{gain:.2}"),
                    _ => format!("{gain:.2} on {}", name(index)),
                })
                .collect();
            format!("tried: polling gave {} times the rate", each.join(", "))
        }
        WhyWaiting::Untried if waiting.polling_workers == 0 => "no CPU is free for polling".to_owned(),
        WhyWaiting::Untried => "for a short while, unless others want its CPU".to_owned(),
    };
    format!("{does} ({why})")
}

/// What its sleeping costs servers beside it.
fn waking(waiting: &Waiting) -> Option<String> {
    let cost_ns = waiting.waking.as_ref().filter(|_| waiting.polling_at_the_end() == 0)?.cost_ns;
    Some(format!("each wake-up takes {} of a server's CPU", duration(cost_ns as f64)))
}

/// The plan in one line, every default made explicit.
pub(crate) fn settings(run: &Run) -> String {
    let plan = &run.plan;
    let mut parts = varied(plan);
    let varies = |name: &str| plan.factors.iter().any(|factor| factor.name() == name);
    let https = plan.targets.iter().any(|t| t.address.starts_with("https:"));
    match &plan.workload {
        WorkloadPlan::Plain(kind) => {
            parts.push(format!("{} workload", kind.schema.kind));
            // What has no value says nothing.
            let says = |param: &Param| !kind.get(param).is_empty() && !kind.is_replaced(param);
            let fixed = kind.schema.params.iter().filter(|param| !varies(param.name) && says(param));
            parts.extend(fixed.map(|param| format!("{} {}", param.name, param.label(kind.get(param)))));
        }
        WorkloadPlan::Http(http) => {
            parts.extend(request(http, &varies));
            // Most of them mean nothing to most requests.
            let is_of_request = |param: &Param| [&METHOD, &BODY_SIZE, &ENCODING].contains(&param);
            let is_told = |param: &Param, value: &str| {
                varies(param.name) || is_of_request(param) || plan.schema().told(param, value).is_some()
            };
            let set = plan.workload.changed().filter(|(param, value)| !is_told(param, value));
            parts.extend(set.map(|(param, value)| format!("{} {}", param.name, param.label(&value))));
        }
    }
    let noun = plan.schema().op.one;
    let load = &plan.load;
    if !varies("connections") {
        parts.push(plural(u64::from(load.connections), plan.schema().lane.one));
    }
    if !plan.schema().lanes_are_threads() {
        parts.push(plural(u64::from(load.threads), "thread"));
    }
    parts.push(match load.kind {
        LoopKind::Open { .. } if varies("rate") => "open loop".to_owned(),
        LoopKind::Closed { think_ns: 0 } => "closed loop".to_owned(),
        LoopKind::Closed { think_ns } => format!("closed loop with {} think time", set_duration(think_ns)),
        LoopKind::Open { rate_per_s, arrival } => {
            let arrival = match arrival {
                Arrival::Constant => "constant",
                Arrival::Poisson => "Poisson",
            };
            match &load.shape.search {
                Some(wanted) => format!("open loop ({arrival}), {}", search::set(wanted, rate_per_s)),
                None if load.shape.stages.is_empty() => format!("open loop at {} ({arrival})", rate(rate_per_s)),
                None => format!("open loop ({arrival})"),
            }
        }
    });
    if !load.shape.stages.is_empty() {
        let stages: Vec<String> = load.shape.stages.iter().map(stages::label).collect();
        parts.push(format!("stages of {}", stages.join(" then ")));
    }
    parts.extend(load.shape.deadline_ns.map(|ns| format!("deadline {}", set_duration(ns))));
    if let WorkloadPlan::Http(_) = &plan.workload {
        let schema = plan.schema();
        let is_heard = |param: &&Param| !varies(param.name) && (https || schema.heading(param) != "TLS");
        let told = |param| schema.told(param, &plan.workload.setting(param));
        parts.extend(schema.params.iter().filter(is_heard).filter_map(told).map(|text| clean(&text)));
    }
    if plan.schema().lanes_are_threads() {
        parts.push(format!("timeout {} per {noun}", set_duration(load.op_timeout_ns)));
    } else {
        parts.extend(run.waiting.as_ref().map(|seen| waiting(seen, run)));
        parts.extend(run.waiting.as_ref().and_then(waking));
        parts.push(format!(
            "timeouts {} to connect and {} per {noun}",
            set_duration(load.connect_timeout_ns),
            set_duration(load.op_timeout_ns)
        ));
    }
    if plan.targets.len() > 1 {
        let (compare, is_plain) = (&plan.compare, load.shape.search.is_none() && load.shape.stages.is_empty());
        parts.extend(match compare.slot_ns {
            Some(ns) => Some(format!("slots of {}", set_duration(ns))),
            None if is_plain => Some("slot length from warm-up".to_owned()),
            None => None,
        });
        parts.push(format!("margin {}", exact_percent(compare.margin)));
        parts.extend(compare.restart.as_ref().map(|restart| {
            let names: Vec<String> = restart.commands.iter().map(|command| clean(&command.target)).collect();
            format!(
                "{} started anew before each round, within {}",
                names.join(" and "),
                set_duration(restart.timeout_ns)
            )
        }));
        let stop = if compare.stop_early || !plan.factors.is_empty() || !is_plain { "" } else { ", no early stop" };
        let bound = if plan.factors.is_empty() { "at most " } else { "" };
        parts.push(format!("{bound}{} of load{stop}", set_duration(compare.max_load_ns)));
    } else {
        parts.push(match load.bound {
            Bound::Duration(ns) if load.shape.search.is_some() => format!("for at most {}", set_duration(ns)),
            Bound::Duration(ns) => format!("for {}", set_duration(ns)),
            Bound::Ops(ops) => plural(ops, noun),
        });
    }
    parts.join(", ")
}

/// What is varied, with all levels.
fn varied(plan: &Plan) -> Vec<String> {
    let factor = |factor: &Factor| {
        let levels: Vec<String> = (0..factor.levels()).map(|level| clean(&factor.label(level))).collect();
        format!("{} varied over {}", factor.name(), levels.join(" "))
    };
    plan.factors.iter().map(factor).collect()
}

fn request(http: &HttpPlan, varies: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut parts = requests(http, varies);
    match &http.body {
        _ if varies(BODY_SIZE.name) => {}
        Body::None => {}
        Body::Text(text) => parts.push(format!("body of {}", plural(text.len() as u64, "byte"))),
        Body::File(path) => parts.push(format!("body from {}", clean(&path.display().to_string()))),
        Body::Generated(bytes) => parts.push(format!("generated body of {}", plural(*bytes, "byte"))),
    }
    if !varies(ENCODING.name) {
        parts.push(match &http.accept_encoding {
            Some(encoding) => format!("Accept-Encoding: {}", clean(encoding)),
            None => "no Accept-Encoding".to_owned(),
        });
    }
    if !http.headers.is_empty() {
        let names = http.headers.iter().map(|(name, _)| clean(name)).collect::<Vec<_>>().join(" ");
        parts.push(format!("header fields {names}"));
    }
    if let Some(bytes) = http.range_bytes {
        parts.push(format!("only the first {}", plural(bytes, "byte")));
    }
    if http.max_redirects > 0 {
        let each = if http.follows_each { " of each request" } else { "" };
        parts.push(format!("at most {}{each}", plural(u64::from(http.max_redirects), "redirect")));
    }
    if let Some(proxy) = &http.proxy {
        parts.push(format!("proxy {}", clean(&proxy.to_string())));
    }
    parts.extend(reach(&http.reach));
    if http.accepts_any_status {
        parts.push("any status accepted".to_owned());
    }
    for to in &http.connect_to {
        let port = |port: Option<u16>| port.map(|p| p.to_string()).unwrap_or_default();
        let (from, to) = (format!("{}:{}", to.host, port(to.port)), format!("{}:{}", to.to_host, port(to.to_port)));
        parts.push(format!("connecting to {} for {}", clean(&to), clean(&from)));
    }
    parts
}

/// What is asked for, and by whom.
fn requests(http: &HttpPlan, varies: &dyn Fn(&str) -> bool) -> Vec<String> {
    let RequestsPlan { source, data_file, is_template, auth, form, .. } = &http.requests;
    let shown = |path: &std::path::Path| clean(&path.display().to_string());
    // Other files say the method of each request.
    let has_methods = source.as_ref().is_some_and(|source| source.format != RequestFormat::Urls);
    let mut parts = if has_methods || varies(METHOD.name) { Vec::new() } else { vec![clean(&http.method)] };
    if form.is_some() && http.method == "GET" {
        parts = vec!["POST".to_owned()];
    }
    if let Some(source) = source {
        let format = source.format.name();
        // `h.har (har)` would say it twice.
        let is_named = source.file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(format));
        let format = if is_named { String::new() } else { format!(" ({format})") };
        parts.push(format!("requests of {}{format}", shown(&source.file)));
    }
    match data_file {
        Some(file) => parts.push(format!("variables, rows of {}", shown(file))),
        None if *is_template => parts.push("variables".to_owned()),
        None => {}
    }
    match auth {
        Some(AuthPlan::Basic { user, .. }) => parts.push(format!("as user {}", clean(user))),
        Some(AuthPlan::Bearer { .. }) => parts.push("with a bearer token".to_owned()),
        Some(AuthPlan::AwsSigV4 { region, service }) => {
            parts.push(format!("signed for AWS {} in {}", clean(service), clean(region)));
        }
        None => {}
    }
    if let Some(form) = form {
        let kind = if form.is_multipart { "multipart form" } else { "form" };
        parts.push(format!("{kind} of {}", plural(form.fields.len() as u64, "field")));
    }
    parts
}

fn reach(reach: &ReachPlan) -> Vec<String> {
    let mut parts = Vec::new();
    if !reach.sources.is_empty() {
        let ranges = reach.sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let count = reach.source_count();
        parts.push(if count == 1 {
            format!("from {ranges}")
        } else {
            format!("from {count} local addresses in turn ({})", clean(&ranges))
        });
    }
    parts.extend(reach.overrides.iter().map(|rule| format!("instead of looking up {}", clean(&rule.to_string()))));
    parts.extend(reach.family.map(|family| format!("{family} only")));
    parts
}
