//! What a field of a plan is called where it is typed.

use duel_model::{Plan, Threads, typed_duration};

/// Fields of all kinds of work and of the web, by their path, with the option that sets them. A setting that a kind of work declares
/// has an option of its own name.
const OPTIONS: [(&str, &str); 35] = [
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
    ("workload.method", "-m"),
    ("workload.body.text", "--body"),
    ("workload.body.file", "--body-file"),
    ("workload.body.generated", "--body-size"),
    ("workload.keepalive", "--keepalive"),
    ("workload.host", "--host"),
    ("workload.accept_encoding", "--encoding"),
    ("workload.max_redirects", "--follow"),
    ("workload.connect_to", "--connect-to"),
    ("workload.unix_socket", "--unix-socket"),
    ("workload.quick_ack", "--quick-ack"),
    ("workload.segment_bytes", "--segment-bytes"),
    ("workload.tls.ca_file", "--ca"),
    ("workload.tls.client_cert_file", "--client-cert"),
    ("workload.tls.client_key_file", "--client-key"),
    ("workload.tls.versions", "--tls"),
    ("workload.tls.ciphers", "--ciphers"),
    ("workload.tls.groups", "--groups"),
    ("workload.tls.resumption", "--resumption"),
    ("workload.tls.alpn", "--alpn"),
    ("workload.tls.server_name", "--server-name"),
];

/// Fields that say the opposite of the option.
const OPPOSITES: [(&str, &str); 2] = [("compare.stop_early", "--no-early-stop"), ("workload.tls.verify", "-k")];

/// A field of a plan as it is typed: the option and its value. One that no option sets keeps its path, so that none is forgotten.
pub(super) fn as_typed(plan: &Plan, path: &str, value: &str) -> (String, String) {
    if let Some((_, option)) = OPPOSITES.iter().find(|(of, _)| *of == path) {
        return ((*option).to_owned(), if value == "true" { "off" } else { "on" }.to_owned());
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
    let setting = || path.strip_prefix("workload.settings.").map(|name| format!("--{name}"));
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
        _ => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::plan_facts;
    use duel_model::{Body, Bound, HttpPlan, LoopKind, SECOND_NS, Target, WorkloadPlan};

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

    #[test]
    fn what_no_option_sets_keeps_its_path() {
        let told = |path: &str, value: &str| as_typed(&plan(2), path, value);
        assert_eq!(told("workload.settings.table-size", "1000"), ("--table-size".into(), "1000".into()));
        assert_eq!(told("targets.2.host.access", "local"), ("target 2: host access".into(), "local".into()));
        assert_eq!(told("compare.min_pairs", "6"), ("compare.min_pairs".into(), "6".into()));
        assert_eq!(told("compare.max_load_ns", "none"), ("-d".into(), "none".into()));
    }
}
