//! What to type to mean a plan: the way back from [`crate::meaning`].

use duel_model::{
    Arrival, Body, Bound, ComparePlan, HttpPlan, LoopKind, Plan, Stage, TlsPlan, WorkloadPlan, sanitize_line,
    shell_word, typed_duration as time,
};
use std::path::Path;

/// The command line that means this plan, for a shell; on any machine, without an archive. How the machines of its targets
/// were read is left out: elsewhere "this machine" is another one, and an id another process.
///
/// Values of header fields that were not kept stand in it as [`Plan::REDACTED`]. `None` where a command could not be
/// shown whole: a word with control characters or beyond what one line holds, or a plan that no options mean.
pub(crate) fn command(plan: &Plan) -> Option<String> {
    let words = words(plan)?;
    let whole = words.iter().all(|word| sanitize_line(word) == *word);
    whole.then(|| words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" "))
}

/// The same in words, the program's name first.
fn words(plan: &Plan) -> Option<Vec<String>> {
    let mut options = Options(Vec::new());
    load(&mut options, plan);
    match &plan.workload {
        WorkloadPlan::Null => {}
        WorkloadPlan::Http(http) => request(&mut options, &plan.redacted(), http)?,
    }
    for factor in &plan.factors {
        let levels: Vec<String> = (0..factor.levels()).map(|level| factor.typed(level)).collect();
        options.value("--vary", format!("{}={}", factor.name(), levels.join(",")));
    }
    let targets: Vec<String> = plan.targets.iter().map(|t| format!("{}={}", t.name, t.address)).collect();
    let mut words = vec!["duel".to_owned()];
    match plan.targets.len() {
        0 => return None,
        1 => {
            words.push("run".to_owned());
            options.value("--seed", plan.compare.seed.to_string());
            match plan.load.bound {
                // Stages say it themselves.
                Bound::Duration(_) if !plan.load.shape.stages.is_empty() => {}
                Bound::Duration(ns) => options.value("-d", time(ns)),
                Bound::Ops(ops) => options.value("-n", ops.to_string()),
            }
        }
        _ if !is_judged_as_usual(plan) => return None,
        _ => comparison(&mut options, plan),
    }
    if targets.iter().any(|target| target.starts_with('-')) {
        words.extend(options.0);
        words.push("--".to_owned());
        words.extend(targets);
    } else {
        words.extend(targets);
        words.extend(options.0);
    }
    Some(words)
}

/// No option sets how sure intervals are and how many pairs they take; an archive of somebody else may hold others.
fn is_judged_as_usual(plan: &Plan) -> bool {
    let usual = ComparePlan::default();
    plan.compare.confidence == usual.confidence && plan.compare.min_pairs == usual.min_pairs
}

fn comparison(options: &mut Options, plan: &Plan) {
    let compare = &plan.compare;
    options.value("-d", time(compare.max_load_ns));
    options.value("--seed", compare.seed.to_string());
    options.value("--margin", compare.margin.to_string());
    if let Some(ns) = compare.slot_ns {
        options.value("--slot", time(ns));
    }
    options.flag("--no-early-stop", !compare.stop_early);
}

fn load(options: &mut Options, plan: &Plan) {
    let load = &plan.load;
    let (stages, search) = (&load.shape.stages, &load.shape.search);
    if stages.is_empty() || stages.iter().all(Stage::is_of_rate) {
        options.value("-c", load.connections.to_string());
    }
    // Their default depends on the machine.
    options.value("-t", load.threads.to_string());
    match load.kind {
        LoopKind::Closed { think_ns: 0 } => {}
        LoopKind::Closed { think_ns } => options.value("--think", time(think_ns)),
        LoopKind::Open { rate_per_s, arrival } => {
            // Stages have rates of their own, and a search may find out where to begin.
            if stages.is_empty() && rate_per_s > 0.0 {
                options.value("--rate", rate_per_s.to_string());
            }
            if arrival == Arrival::Poisson {
                options.value("--arrival", "poisson");
            }
        }
    }
    if !stages.is_empty() {
        options.value("--stages", stages.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    if let Some(search) = search {
        let promises: Vec<String> = search.promises.iter().map(ToString::to_string).collect();
        options.value("--find-rate", promises.join(","));
    }
    if let Some(ns) = load.shape.deadline_ns {
        options.value("--deadline", time(ns));
    }
    options.value("--timeout", time(load.op_timeout_ns));
    options.value("--connect-timeout", time(load.connect_timeout_ns));
}

fn request(options: &mut Options, redacted: &Plan, http: &HttpPlan) -> Option<()> {
    let default = HttpPlan::default();
    // Only `duel hey` makes such plans.
    if http.accepts_any_status {
        return None;
    }
    if http.method != default.method {
        options.value("-m", http.method.clone());
    }
    if let WorkloadPlan::Http(redacted) = &redacted.workload {
        redacted.headers.iter().for_each(|(name, value)| options.value("-H", format!("{name}: {value}")));
    }
    match &http.body {
        Body::None => {}
        Body::Text(text) => options.value("--body", text.clone()),
        Body::File(path) => options.path("--body-file", path)?,
        Body::Generated(bytes) => options.value("--body-size", bytes.to_string()),
    }
    if let Some(host) = &http.host {
        options.value("--host", host.clone());
    }
    if http.accept_encoding != default.accept_encoding {
        options.value("--encoding", http.accept_encoding.clone().unwrap_or_else(|| "identity".to_owned()));
    }
    options.flag("--no-keepalive", !http.keepalive);
    if let Some(bytes) = http.range_bytes {
        options.value("-H", format!("Range: bytes=0-{}", bytes.saturating_sub(1)));
    }
    if http.max_redirects > 0 {
        let option = if http.follows_each { "--follow-each" } else { "--follow" };
        options.value(option, http.max_redirects.to_string());
    }
    for (name, value) in http.requests.options()? {
        match value {
            Some(value) => options.value(name, value),
            None => options.flag(name, true),
        }
    }
    http.connect_to.iter().for_each(|rule| options.value("--connect-to", rule.to_string()));
    if let Some(path) = &http.unix_socket {
        options.path("--unix-socket", path)?;
    }
    options.flag("--http2", http.http2.is_some());
    if http.streams() > 1 {
        options.value("--streams", http.streams().to_string());
    }
    options.flag("--quick-ack", http.quick_ack);
    if let Some(bytes) = http.segment_bytes {
        options.value("--segment-bytes", bytes.to_string());
    }
    // Who asks the proxy stands in a header field.
    http.proxy.iter().for_each(|proxy| options.value("--proxy", proxy.to_string()));
    for (name, value) in http.reach.options() {
        match value {
            Some(value) => options.value(name, value),
            None => options.flag(name, true),
        }
    }
    tls(options, &http.tls)
}

fn tls(options: &mut Options, tls: &TlsPlan) -> Option<()> {
    let default = TlsPlan::default();
    options.flag("-k", !tls.verify);
    let files =
        [("--ca", &tls.ca_file), ("--client-cert", &tls.client_cert_file), ("--client-key", &tls.client_key_file)];
    for (name, path) in files {
        if let Some(path) = path {
            options.path(name, path)?;
        }
    }
    if tls.versions != default.versions {
        let versions: Vec<&str> = tls.versions.iter().map(|version| version.name()).collect();
        options.value("--tls", versions.join(","));
    }
    if !tls.ciphers.is_empty() {
        options.value("--ciphers", tls.ciphers.join(","));
    }
    if !tls.groups.is_empty() && tls.groups != default.groups {
        options.value("--groups", tls.groups.join(","));
    }
    options.flag("--resumption", tls.resumption);
    if tls.alpn != default.alpn {
        options.value("--alpn", tls.alpn.join(","));
    }
    if let Some(name) = &tls.server_name {
        options.value("--server-name", name.clone());
    }
    Some(())
}

/// Options and their values in the order in which they are typed.
struct Options(Vec<String>);

impl Options {
    fn flag(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| name.to_owned()));
    }

    /// A value that begins like an option is bound to its name, which a single letter cannot be.
    fn value(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if name.starts_with("--") && value.starts_with('-') {
            self.0.push(format!("{name}={value}"));
        } else {
            self.0.extend([name.to_owned(), value]);
        }
    }

    /// A path, unless it is no text.
    fn path(&mut self, name: &str, path: &Path) -> Option<()> {
        self.value(name, path.to_str()?);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::tests::plan_of;

    /// What is typed for a plan means that plan.
    #[test]
    fn what_is_typed_means_the_plan_it_came_from() {
        for typed in [
            "duel http://a.example/ http://b.example/f?x=1 --seed 7",
            "duel old=https://a.example/ new=https://b.example/ -c 8 -t 2 -d 90s --seed 1 --margin 5% --slot 250ms \
             --no-early-stop --no-keepalive -k --tls 1.3 --groups x25519 --ciphers TLS_AES_128_GCM_SHA256 --resumption",
            "duel http://a.example/ http://b.example/ --rate 500.5 --arrival poisson --seed 3 -m POST --body {} \
             -H X-Id:7 --encoding identity --host c.example --follow 2 --connect-to [::1]:80:127.0.0.1:8080 \
             --quick-ack --segment-bytes 536",
            "duel http://a.example/ http://b.example/ http://c.example/ --think 1.5ms --timeout 7s --seed 9",
            "duel run x=http://a.example/ -n 3000 -c 300 --unix-socket /run/x.sock",
            "duel run null: -d 250ms -t 1",
            "duel http://a.example/ http://b.example/ --seed 4 --urls list --order random --data d.csv --cookies --user me",
            "duel run http://a.example/ --request-file r.json --bearer-file token --decompress",
            "duel run http://a.example/ --request-file r --request-format http --template --seed 3 --aws-sigv4 r:s3",
            "duel run http://a.example/ --har x.har --user me --password-file secret",
            "duel run http://a.example/ --form a=1 --form f=@up --form g=<in --follow-each 3",
            "duel run http://a.example/ --field a=1 --field b=<in -m PUT",
            "duel http://a.example/ https://b.example/ --seed 1 --proxy [::1]:3128 --source 127.0.0.2-127.0.0.9,10.0.0.0/29 \
             --resolve [::1]:3128:127.0.0.1,[::2] --resolve *:80:::1 --addresses all -4",
            "duel run http://a.example/ -d 1s --addresses first --ipv6 --proxy-protocol v2",
            "duel https://a.example/ https://b.example/ -c 1,2,8..64 -t 4 --keepalive off,on -m GET,HEAD --seed 5 -d 2m",
            "duel https://a.example/x https://b.example/ --seed 1 --vary tls=1.2,1.2+1.3 --vary encoding=identity,gzip+br",
            "duel http://a.example/ http://b.example/ --seed 1 --rate 10..40 --body-size 0,64k --vary path=/a,/b?c=d",
            "duel https://a.example/ https://b.example/ --seed 1 --vary group=x25519,secp256r1 --vary resumption=off,on",
            "duel run http://a.example/ -c 1..4 --keepalive off",
            "duel run http://a.example/ --stages 10s@100,30s@100..5000,10s@0 --arrival poisson --deadline 50ms -c 7",
            "duel run http://a.example/ --stages 1s@1c,1500ms@1c..9c --think 1ms",
            "duel run https://a.example/ --http2 -c 10 --streams 20",
            "duel https://a.example/ http://b.example/ --http2 --no-keepalive --seed 1",
            "duel run http://a.example/ --find-rate p99.9<50ms,errors<0.1% -d 90s",
            "duel run http://a.example/ --find-rate mean<2ms,rate>99% --rate 250 --deadline 1s",
            "duel http://a.example/ http://b.example/ --rate 100 --deadline 250ms --seed 3",
        ] {
            let plan = plan_of(typed.split_whitespace());
            let words = words(&plan).unwrap();
            assert_eq!(plan_of(words.iter().map(String::as_str)), plan, "{typed}\n{}", words.join(" "));
        }
    }

    #[test]
    fn machines_and_processes_are_not_in_it() {
        let typed = "duel a=http://a/ b=http://b/ --seed 1 --local a --ssh b=me@web --pid a=12 --service b=nginx";
        let without = "duel a=http://a/ b=http://b/ --seed 1";
        assert_eq!(words(&plan_of(typed.split(' '))), words(&plan_of(without.split(' '))));
    }

    #[test]
    fn a_judgement_that_no_option_sets_has_no_command() {
        let mut plan = plan_of(["duel", "http://a/", "http://b/"]);
        plan.compare.confidence = 0.5;
        assert_eq!(command(&plan), None);
    }

    #[test]
    fn secrets_are_not_in_it() {
        let plan = plan_of(["duel", "http://a/", "http://b/", "--seed", "1", "-H", "Authorization: Bearer s3cr3t"]);
        let command = command(&plan).unwrap();
        assert!(!command.contains("s3cr3t") && command.contains("'Authorization: [not kept]'"), "{command}");
    }

    #[test]
    fn a_plan_that_no_options_mean_has_no_command() {
        let mut plan = plan_of(["duel", "run", "http://a/"]);
        if let WorkloadPlan::Http(http) = &mut plan.workload {
            http.accepts_any_status = true;
        }
        assert_eq!(command(&plan), None);
    }
}
