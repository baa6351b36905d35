//! What is typed means a plan, and what is told of the plan means it again: the command line of [`Plan::command`], and the
//! repeated commands of probes. [`crate::plan_file`] holds its files against the same command lines.

use crate::command_line::tests::plan_of;
use duel_model::web::settings::DECOMPRESS;
use duel_model::{Plan, TlsVersion, Variation, WorkloadPlan};
use proptest::prelude::*;

/// Command lines that use every option of a plan; their words have no spaces.
pub(crate) const COMMAND_LINES: [&str; 32] = [
    "duel http://a.example/ http://b.example/f?x=1 --seed 7",
    "duel old=https://a.example/ new=https://b.example/ -c 8 -t 2 -d 90s --seed 1 --margin 5% --slot 250ms \
     --no-early-stop --no-keepalive -k --tls 1.3 --groups x25519 --ciphers TLS_AES_128_GCM_SHA256 --resumption",
    "duel http://a.example/ http://b.example/ --rate 500.5 --arrival poisson --seed 3 -m POST --body {} \
     -H X-Id:7 -H B:#2 --encoding identity --host c.example --follow 2 --connect-to [::1]:80:127.0.0.1:8080 \
     --quick-ack --segment-bytes 536",
    "duel http://a.example/ http://b.example/ http://c.example/ --think 1.5ms --timeout 7s --seed 9",
    "duel run x=http://a.example/ -n 3000 -c 300 -t 4 --unix-socket /run/x.sock",
    "duel run null: -d 250ms -t 1 --busy-poll always",
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
    "duel run https://a.example/ --http2 -c 10 --streams 20 -d 5s",
    "duel https://a.example/ http://b.example/ --http2 --no-keepalive --seed 1",
    "duel https://a.example/ http://b.example/ --http2 --h2-window 64k,1M --streams 2 --seed 1 --vary cookies=off,on",
    "duel run http://a.example/ --find-rate p99.9<50ms,errors<0.1% -d 90s",
    "duel http://a.example/ http://b.example/ -c 8 --one-at-a-time --seed 4",
    "duel run http://a.example/ --find-rate mean<2ms,rate>99% --rate 250 --deadline 1s",
    "duel http://a.example/ http://b.example/ --rate 100 --deadline 250ms --seed 3",
    "duel run openssl: --op sha256 --block 64 -d 1s",
    "duel run aws-lc: -t 3 --op aes-128-gcm --block 1000 --chunk 100 --direction decrypt --renew key -n 5",
    "duel openssl:/a/libcrypto.so.3 old=openssl:/b/libcrypto.so --seed 1 --mask vaes,aes --op aes-256-cbc -d 20s",
    "duel openssl: aws-lc: --block 16..1k --chunk 16,32 --op sha1 --seed 2",
];

/// The plan that the words of a plan mean.
fn again(plan: &Plan) -> Plan {
    let words = plan.words().unwrap();
    plan_of(words.iter().map(String::as_str))
}

#[test]
fn what_is_typed_means_the_plan_it_came_from() {
    for typed in COMMAND_LINES {
        let plan = plan_of(typed.split_whitespace());
        assert_eq!(again(&plan), plan, "{typed}\n{}", plan.command().unwrap());
    }
}

#[test]
fn machines_and_processes_are_not_in_it() {
    let typed = "duel a=http://a/ b=http://b/ --seed 1 --local a --ssh b=me@web --pid a=12 --service b=nginx";
    let without = "duel a=http://a/ b=http://b/ --seed 1";
    assert_eq!(plan_of(typed.split(' ')).words(), plan_of(without.split(' ')).words());
}

#[test]
fn a_judgement_that_no_option_sets_has_no_command() {
    let mut plan = plan_of(["duel", "http://a/", "http://b/"]);
    plan.compare.confidence = 0.5;
    assert_eq!(plan.command(), None);
}

#[test]
fn a_plan_that_no_options_mean_has_no_command() {
    let mut plan = plan_of(["duel", "run", "http://a/"]);
    if let WorkloadPlan::Http(http) = &mut plan.workload {
        http.accepts_any_status = true;
    }
    assert_eq!(plan.command(), None);
}

#[test]
fn secrets_are_not_in_it() {
    let plan = plan_of(["duel", "http://a/", "http://b/", "--seed", "1", "-H", "Authorization: Bearer s3cr3t"]);
    let command = plan.command().unwrap();
    assert!(!command.contains("s3cr3t") && command.contains("'Authorization: [not kept]'"), "{command}");
}

/// What is typed where nothing is left to chance: one of each list, whose words have no spaces.
const CHOICES: [&[&str]; 24] = [
    &["", "-c 1", "-c 64 -t 3"],
    &["", "--think 1.5ms", "--rate 500.5", "--rate 0.1 --arrival poisson", "--rate 7 --deadline 250ms"],
    &["", "--timeout 7s", "--timeout 30000001us"],
    &["", "--connect-timeout 1500us"],
    &["", "--busy-poll never", "--busy-poll always"],
    &["", "-d 2m"],
    &["", "--margin 5%", "--margin 0.0001"],
    &["", "--slot 250ms"],
    &["", "--no-early-stop"],
    &["", "-m HEAD", "--method=-X"],
    &[
        "",
        "--follow 3",
        "--body {} --follow-each 2",
        "--body=-x",
        "--body-file Cargo.toml",
        "--body-size 64k",
        "--form a=1 --form=-f=@up",
        "--field a=1 --field=-b=<in",
        "--urls list --order random",
        "--urls=-list --data d.csv",
        "--template --body {n}",
    ],
    &["", "--cookies", "--user me", "--user=-me --password-file=-secret", "--bearer-file token"],
    &["", "--decompress"],
    &["", "--host c.example", "--host=-c"],
    &["", "--encoding identity", "--encoding gzip,br", "--encoding=-"],
    &[
        "",
        "--no-keepalive",
        "--keepalive on --alpn=",
        "--alpn h2,http/1.1",
        "--http2 --no-keepalive",
        "--http2 --streams 1",
        "--http2 --streams 20 --h2-window 1",
    ],
    &[
        "",
        "--unix-socket /run/x.sock",
        "--connect-to [::1]:80:127.0.0.1:8080 --connect-to ::other:",
        "--proxy [::1]:3128",
        "--proxy proxy:3128 --source 10.0.0.0/29",
        "--source 127.0.0.2-127.0.0.9,::1 --resolve [::1]:3128:127.0.0.1,[::2] --addresses all",
        "--addresses first -6 --proxy-protocol v2",
        "-4 --resolve *:80:::1 --addresses race --proxy-protocol v1",
    ],
    &["", "--quick-ack"],
    &["", "--segment-bytes 536"],
    &["", "-k", "--ca=-ca.pem"],
    &["", "--tls 1.3", "--tls 1.3+1.2"],
    &["", "--ciphers TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"],
    &["", "--groups secp384r1,x25519 --resumption"],
    &["", "--server-name=-sni --client-cert c.pem --client-key k.pem"],
];

/// Plans of comparisons: choices, with names, header fields and texts that a shell or an option parser may stumble over.
fn plans() -> impl Strategy<Value = Plan> {
    let text = "[-a-z '\"$\\\\!é]{0,6}";
    let choices: Vec<_> = CHOICES.into_iter().map(proptest::sample::select).collect();
    (choices, "[-a-z '$]{1,6}", text, text, any::<u64>()).prop_map(|(choices, name, field, token, seed)| {
        let mut words = vec!["duel".to_owned(), format!("--seed={seed}")];
        words.extend(choices.iter().flat_map(|choice| choice.split_whitespace()).map(str::to_owned));
        words.extend([format!("--header=-X:{field}"), format!("--header=X-Token:{token}"), "--".to_owned()]);
        words.extend([format!("{name}=https://a.example/f?x=1&y='2'"), "http://[::1]:81/%20#'".to_owned()]);
        plan_of(words.iter().map(String::as_str))
    })
}

/// What probes change.
fn variations() -> impl Strategy<Value = Variation> {
    use proptest::option::of;
    let names = |names: &[&str]| of(Just(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()));
    let coding = of(prop_oneof![Just(None), Just(Some("br".to_owned()))]);
    let ciphers = ["TLS_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"];
    let tls = (names(&ciphers), names(&["secp256r1"]), of(any::<bool>()), of(Just(vec![TlsVersion::V1_2])));
    let request = (of(any::<bool>()), coding, of(1..u64::MAX), of(Just("HEAD".to_owned())));
    // Of both families, for a plan may want one.
    let sources = of(prop_oneof![Just("127.0.0.2-127.0.0.9,::1"), Just("::1,10.0.0.7")]);
    let settings = (of(Just("on")), any::<bool>());
    let peers = of(prop_oneof![Just("192.0.2.7:80"), Just("[2001:db8::7]:8443")]);
    let network = (of(1..200_u32), of(any::<bool>()), of(88..32_768_u16), sources, peers);
    (tls, request, network, settings).prop_map(|(tls, request, network, settings)| {
        let (ciphers, groups, resumption, versions) = tls;
        let (keepalive, accept_encoding, range_bytes, method) = request;
        let (connections, quick_ack, segment_bytes, sources, peers) = network;
        Variation {
            connections,
            keepalive,
            ciphers,
            groups,
            resumption,
            accept_encoding,
            range_bytes,
            method,
            versions,
            quick_ack,
            segment_bytes,
            sources: sources.map(|list: &str| list.split(',').map(|range| range.parse().unwrap()).collect()),
            peers: peers.into_iter().map(|peer: &str| (0, peer.parse().unwrap())).collect(),
            one_at_a_time: settings.1,
            settings: settings.0.into_iter().map(|value| (DECOMPRESS.id(), value.to_owned())).collect(),
            same_few: false,
            twin: None,
        }
    })
}

/// The plan as far as it can be typed: a range is a header field like another one, and secrets are left out.
fn typeable(plan: &Plan) -> Plan {
    let mut plan = plan.redacted();
    if let WorkloadPlan::Http(http) = &mut plan.workload
        && let Some(bytes) = http.range_bytes.take()
    {
        http.headers.push(("Range".to_owned(), format!("bytes=0-{}", bytes - 1)));
    }
    plan
}

proptest! {
    #[test]
    fn any_plan_is_told_in_words_that_mean_it(plan in plans()) {
        prop_assert_eq!(again(&plan), typeable(&plan), "{:?}", plan.words());
    }

    #[test]
    fn what_repeats_a_probe_means_the_plan_that_the_probe_was_made_with(plan in plans(), mut variation in variations()) {
        // A Unix socket knows no addresses, and no probe asks for them there.
        if matches!(&plan.workload, WorkloadPlan::Http(http) if http.unix_socket.is_some()) {
            variation.sources = None;
            variation.peers.clear();
        }
        let varied = plan.varied(&variation);
        prop_assert_eq!(again(&varied), typeable(&varied), "{:?}", varied.words());
    }
}
