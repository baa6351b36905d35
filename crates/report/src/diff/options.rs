//! What a field of a plan is called where it is typed.

use super::Named;
use duel_model::{Plan, Threads, WorkloadPlan, typed_duration};

/// Fields of all kinds of work and of the web, by their path, with the option that sets them. A setting that a kind of work declares
/// has an option of its own name.
const OPTIONS: [(&str, &str); 19] = [
    ("load.threads", "-t"),
    ("load.kind.think_ns", "--think"),
    ("load.kind.rate_per_s", "--rate"),
    ("load.kind.arrival", "--arrival"),
    ("load.connect_timeout_ns", "--connect-timeout"),
    ("load.op_timeout_ns", "--timeout"),
    ("load.busy_poll", "--busy-poll"),
    ("load.shape.stages", "--stages"),
    ("load.shape.deadline_ns", "--deadline"),
    ("load.shape.search.promises", "--find-rate"),
    ("compare.seed", "--seed"),
    ("compare.margin", "--margin"),
    ("compare.slot_ns", "--slot"),
    ("compare.restart.timeout_ns", "--restart-timeout"),
    ("workload.body.text", "--body"),
    ("workload.body.file", "--body-file"),
    ("workload.max_redirects", "--follow"),
    ("workload.follows_each", "--follow-each"),
    ("workload.connect_to", "--connect-to"),
];

/// The field that says the opposite of its option.
const OPPOSITE: (&str, &str) = ("compare.stop_early", "--no-early-stop");

/// Makes one field of what one option sets, where the plan keeps it in several: a rule of where to connect in four, and of which option
/// a number of redirects is in another field than the number. A setting is called as it is declared, wherever the plan keeps it, and
/// is told also where it is as by default.
pub(super) fn join(plan: &Plan, facts: &mut Named) {
    for param in plan.schema().params {
        let kept_at = format!("workload.{}", plan.schema().kept_at(param));
        let is_of_it =
            |path: &str| path.strip_prefix(&kept_at).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        facts.retain(|path, _| !is_of_it(path));
        let value = param.typed(&plan.workload.setting(param));
        facts.insert(
            format!("workload.settings.{}", param.name),
            if value.is_empty() { "none".to_owned() } else { value },
        );
    }
    let WorkloadPlan::Http(http) = &plan.workload else { return };
    if !http.connect_to.is_empty() {
        facts.retain(|path, _| !path.starts_with("workload.connect_to."));
        let rules: Vec<String> = http.connect_to.iter().map(ToString::to_string).collect();
        facts.insert("workload.connect_to".to_owned(), rules.join(" "));
    }
    for (path, is_asked) in
        [("workload.max_redirects", !http.follows_each), ("workload.follows_each", http.follows_each)]
    {
        let most = Some(http.max_redirects).filter(|&most| is_asked && most > 0);
        facts.insert(path.to_owned(), most.map_or_else(|| "none".to_owned(), |most| most.to_string()));
    }
}

/// A field of a plan as it is typed: the option and its value. One that no option sets keeps its path, so that none is forgotten.
pub(super) fn as_typed(plan: &Plan, path: &str, value: &str) -> (String, String) {
    if path == OPPOSITE.0 {
        return (OPPOSITE.1.to_owned(), if value == "true" { "off" } else { "on" }.to_owned());
    }
    let option = match path {
        // Of those who do the work themselves `-t` says how many they are.
        "load.connections" if plan.schema().threads != Threads::OfDuel => Some("-t".to_owned()),
        "load.connections" => Some("-c".to_owned()),
        // A run has one bound, a comparison another.
        "load.bound.duration" if plan.targets.len() < 2 => Some("-d".to_owned()),
        "load.bound.ops" if plan.targets.len() < 2 => Some("-n".to_owned()),
        "compare.max_load_ns" if plan.targets.len() > 1 => Some("-d".to_owned()),
        "load.threads" if plan.schema().threads != Threads::OfDuel => None,
        _ => OPTIONS.iter().find(|(of, _)| *of == path).map(|(_, option)| (*option).to_owned()),
    };
    let setting = || Some(plan.schema().option(plan.schema().param(path.strip_prefix("workload.settings.")?)?));
    let of_target = || {
        let (number, field) = path.strip_prefix("targets.")?.split_once('.')?;
        Some(format!("target {number}: {}", field.replace('.', " ")))
    };
    let header = || path.strip_prefix("workload.headers.").map(|number| format!("-H ({number})"));
    let label = option.or_else(setting).or_else(of_target).or_else(header).unwrap_or_else(|| path.to_owned());
    (label, typed(path, value))
}

fn typed(path: &str, value: &str) -> String {
    let is_time = path.ends_with("_ns") || path == "load.bound.duration";
    match (value, value.parse()) {
        (_, Ok(ns)) if is_time => typed_duration(ns),
        ("true", _) => "on".to_owned(),
        ("false", _) => "off".to_owned(),
        _ if path.ends_with("_per_s") => value.strip_suffix(".0").unwrap_or(value).to_owned(),
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{fields, plan_facts};
    use duel_model::{
        Arrival, Body, Bound, BusyPoll, ConnectTo, HttpPlan, LoopKind, RestartCommand, RestartPlan, SECOND_NS,
        SearchPlan, Stage, Target, web,
    };

    fn plan(targets: usize) -> Plan {
        let target = |name: &str| Target { name: name.into(), address: "http://h/".into(), host: None };
        Plan {
            targets: ["A", "B"].into_iter().take(targets).map(target).collect(),
            workload: WorkloadPlan::Http(Box::default()),
            load: duel_model::LoadPlan::default(),
            compare: duel_model::ComparePlan::default(),
            factors: Vec::new(),
        }
    }

    fn http(plan: &mut Plan) -> &mut HttpPlan {
        match &mut plan.workload {
            WorkloadPlan::Http(http) => http,
            WorkloadPlan::Plain(_) => panic!("a plan of the web"),
        }
    }

    /// What is called an option is one: words that mean the plan hold it.
    #[test]
    fn fields_are_called_as_the_words_that_set_them() {
        type Change = fn(&mut Plan);
        let changes: [(usize, Change); 16] = [
            (2, |plan| plan.load.connections = 7),
            (2, |plan| plan.load.threads = 3),
            (1, |plan| plan.load.bound = Bound::Duration(SECOND_NS)),
            (1, |plan| plan.load.bound = Bound::Ops(9)),
            (2, |plan| plan.load.kind = LoopKind::Closed { think_ns: SECOND_NS }),
            (2, |plan| plan.load.op_timeout_ns = SECOND_NS),
            (2, |plan| plan.load.connect_timeout_ns = SECOND_NS),
            (2, |plan| plan.compare.seed += 1),
            (2, |plan| plan.compare.max_load_ns = 7 * SECOND_NS),
            (2, |plan| plan.compare.slot_ns = Some(SECOND_NS)),
            (2, |plan| plan.compare.stop_early = false),
            (2, |plan| http(plan).method = "POST".into()),
            (2, |plan| http(plan).body = Body::Generated(9)),
            (2, |plan| http(plan).host = Some("other".into())),
            (2, |plan| http(plan).tls.verify = false),
            (2, |plan| http(plan).tls.ciphers = vec!["X".into()]),
        ];
        for (number, (targets, change)) in changes.into_iter().enumerate() {
            let (before, mut after) = (plan(targets), plan(targets));
            change(&mut after);
            let (facts, words) = (plan_facts(&before), after.words().unwrap());
            let changed: Vec<_> =
                plan_facts(&after).into_iter().filter(|(name, told)| facts.get(name) != Some(told)).collect();
            assert!(!changed.is_empty(), "{number}");
            for (label, value) in changed {
                // A switch has no value, and a number of requests takes the place of a time.
                let is_typed = words.contains(&label) && (value == "on" || words.contains(&value));
                assert!(is_typed || value == "none", "{number}: {label} {value} in {words:?}");
            }
        }
    }

    fn connect_to(typed: [&str; 2]) -> ConnectTo {
        let [host, to_host] = typed.map(str::to_owned);
        ConnectTo { host, port: Some(80), to_host, to_port: None }
    }

    /// Plans of which each row of the tables is in one, with a value that has to be typed.
    fn plans_that_set_everything() -> [Plan; 4] {
        let (mut all, mut open, mut stages, mut search) = (plan(2), plan(1), plan(1), plan(1));
        all.load.threads = 3;
        all.load.kind = LoopKind::Closed { think_ns: SECOND_NS };
        (all.load.connect_timeout_ns, all.load.op_timeout_ns) = (2 * SECOND_NS, 3 * SECOND_NS);
        all.load.busy_poll = BusyPoll::Never;
        (all.compare.seed, all.compare.margin, all.compare.slot_ns) = (77, 0.05, Some(SECOND_NS));
        all.compare.stop_early = false;
        let commands = vec![RestartCommand { target: "A".into(), command: "true".into() }];
        all.compare.restart = Some(RestartPlan { commands, timeout_ns: 5 * SECOND_NS });
        let web = http(&mut all);
        web.body = Body::Text("x".into());
        web.max_redirects = 4;
        web.connect_to = vec![connect_to(["h", "k"])];
        open.load.kind = LoopKind::Open { rate_per_s: 500.0, arrival: Arrival::Poisson };
        open.load.shape.deadline_ns = Some(SECOND_NS);
        http(&mut open).body = Body::File("/body".into());
        (http(&mut open).max_redirects, http(&mut open).follows_each) = (6, true);
        stages.load.shape.stages = Stage::parse_all("10s@100").unwrap();
        let promises = vec!["p99<10ms".parse().unwrap()];
        search.load.shape.search = Some(SearchPlan { promises, precision: SearchPlan::PRECISION });
        [all, open, stages, search]
    }

    #[test]
    fn each_row_is_a_field_that_is_typed_with_this_option() {
        let plans = plans_that_set_everything();
        for (path, option) in OPTIONS.iter().chain([&OPPOSITE]) {
            let is_typed = |plan: &Plan| {
                let Some(value) = fields(plan).remove(*path) else { return false };
                let words = plan.shown().words().unwrap();
                let (label, value) = as_typed(plan, path, &value);
                assert_eq!(label, *option, "{path}");
                let is_switched = value == "on" && words.contains(&label);
                is_switched
                    || words.contains(&format!("{label}={value}"))
                    || words.windows(2).any(|pair| *pair == [label.clone(), value.clone()])
            };
            assert!(plans.iter().any(is_typed), "{path}: {option}");
        }
    }

    #[test]
    fn an_option_that_sets_several_fields_is_shown_once() {
        let (mut before, mut after) = (plan(2), plan(2));
        http(&mut before).max_redirects = 5;
        (http(&mut after).max_redirects, http(&mut after).follows_each) = (3, true);
        http(&mut after).connect_to = vec![connect_to(["h", "k"]), connect_to(["", "::1"])];
        let facts = plan_facts(&before);
        let mut changed = plan_facts(&after);
        changed.retain(|label, value| facts.get(label) != Some(value));
        let told = |label: &str| Some([facts.get(label)?.as_str(), changed.get(label)?.as_str()]);
        assert_eq!(told("--follow"), Some(["5", "none"]));
        assert_eq!(told("--follow-each"), Some(["none", "3"]));
        assert_eq!(told("--connect-to"), Some(["none", "h:80:k: :80:[::1]:"]));
        assert_eq!(changed.len(), 3, "{changed:?}");
    }

    #[test]
    fn a_setting_is_called_as_it_is_declared_wherever_it_is_kept() {
        for param in web::SCHEMA.params {
            let mut before = plan(2);
            web::SCHEMA.needs(param).inspect(|switch| before.workload.set(switch, "on"));
            let others = ["on", "off", "1.3", "POST", "536", "first", "v1", "random"];
            let is_kept = |value: &str| param.read(value).as_deref() == Ok(value);
            let other = others.into_iter().find(|value| *value != param.default && is_kept(value)).unwrap();
            let mut after = before.clone();
            after.workload.set(param, other);
            let (mut changed, facts) = (plan_facts(&after), plan_facts(&before));
            // What is kept beside it may be kept because of it.
            changed.retain(|label, value| label.starts_with('-') && facts.get(label) != Some(value));
            assert_eq!(changed.into_iter().collect::<Vec<_>>(), [(web::SCHEMA.option(param), other.to_owned())]);
            let usual = if param.default.is_empty() { "none".to_owned() } else { param.typed(param.default) };
            assert_eq!(facts[&web::SCHEMA.option(param)], usual);
        }
    }

    #[test]
    fn what_no_option_sets_keeps_its_path() {
        let told = |path: &str, value: &str| as_typed(&plan(2), path, value);
        assert_eq!(told("workload.settings.group", "x25519"), ("--groups".into(), "x25519".into()));
        assert_eq!(told("targets.2.host.access", "local"), ("target 2: host access".into(), "local".into()));
        assert_eq!(told("compare.min_pairs", "6"), ("compare.min_pairs".into(), "6".into()));
        assert_eq!(told("compare.max_load_ns", "none"), ("-d".into(), "none".into()));
    }
}
