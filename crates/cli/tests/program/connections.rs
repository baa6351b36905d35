//! Local addresses, addresses of names and the PROXY protocol, as real servers see them.

use crate::common::{Certificate, DUEL, Place, Running, haproxy, nginx};
use std::collections::BTreeMap;

const COULD_NOT_RUN: i32 = 1;
const BAD_USAGE: i32 = 2;

/// nginx at every address of this machine, port 1 plain; who connected is in its log.
fn listening(place: &Place) -> crate::common::Server {
    nginx(
        place,
        "nginx",
        "log_format ends '$remote_addr $server_addr';\n\
         server { listen {1}; access_log {dir}/access.log ends; return 200 hello; }",
    )
}

/// How often each line stands there.
fn counted(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    lines.iter().for_each(|line| *counts.entry(line.as_str()).or_default() += 1);
    counts
}

#[test]
fn a_server_sees_all_local_addresses_in_equal_shares() {
    let place = Place::new();
    let server = listening(&place);
    let args = ["--source", "127.0.0.2-127.0.0.4,127.0.1.8/30", "--no-keepalive", "-n", "50", "-c", "5", "-t", "1"];
    place.duel([&["run", &server.http(1, "/"), "-q"], &args[..]].concat()).ok();
    let log = server.access_log(51);
    let counts = counted(&log);
    let sources = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.1.9", "127.0.1.10"];
    assert_eq!(counts.len(), sources.len(), "{counts:?}");
    // 50 requests, and the first contact.
    for (place_in_turn, source) in sources.iter().enumerate() {
        let expected = 10 + usize::from(place_in_turn == 0);
        assert_eq!(counts[format!("{source} 127.0.0.1").as_str()], expected, "{counts:?}");
    }
    let shown = place.duel(["show", "last"]).ok().stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("from 5 local addresses in turn (127.0.0.2-127.0.0.4 127.0.1.9-127.0.1.10)"), "{shown}");
}

#[test]
fn a_name_can_be_told_and_all_its_addresses_used() {
    let place = Place::new();
    let server = listening(&place);
    let port = server.port(1);
    let url = format!("http://no-such-name.invalid:{port}/");
    let rule = format!("no-such-name.invalid:{port}:127.0.0.9,127.0.0.1,127.0.0.5");
    let log_from = |before: usize, more: &[&str]| {
        let args = ["run", &url, "--no-keepalive", "-n", "30", "-c", "3", "-t", "1", "--resolve", &rule];
        let document = place.json([&args[..], more].concat());
        let log = server.access_log(before + 31);
        assert_eq!(log.len(), before + 31);
        (document["targets"][0]["negotiated"]["peer"].as_str().unwrap().to_owned(), log[before..].to_vec())
    };
    let (peer, log) = log_from(0, &[]);
    assert_eq!((peer, counted(&log)["127.0.0.1 127.0.0.9"]), (format!("127.0.0.9:{port}"), 31));
    let (peer, log) = log_from(31, &["--addresses", "all", "-4"]);
    assert_eq!(peer, format!("127.0.0.1:{port}, 127.0.0.5:{port}, 127.0.0.9:{port}"));
    let shares: Vec<usize> = counted(&log).into_values().collect();
    assert_eq!((shares.iter().sum::<usize>(), shares.iter().filter(|&&share| share >= 10).count()), (31, 3), "{log:?}");
}

#[test]
fn probes_and_repetitions_go_where_the_run_went() {
    let place = Place::new();
    let server = listening(&place);
    let url = format!("http://no-such-name.invalid:{}/", server.port(1));
    let rule = format!("no-such-name.invalid:{}:127.0.0.9", server.port(1));
    place.duel(["run", &url, "-q", "-n", "5", "-c", "1", "--resolve", &rule, "--source", "127.0.0.3"]).ok();
    place.duel(["rerun", "last", "-q"]).ok();
    let log = server.access_log(12);
    assert_eq!(counted(&log), BTreeMap::from([("127.0.0.3 127.0.0.9", 12)]));
    let _alone = crate::common::measuring();
    let urls = [format!("a={url}"), format!("b={url}")];
    let args = ["-d", "1s", "-c", "1", "-t", "1", "--why", "--why-budget", "1s", "--resolve", &rule];
    let document = place.json([&[urls[0].as_str(), &urls[1]], &args[..], &["--addresses", "all"]].concat());
    assert_eq!(document["targets"][1]["failed"], serde_json::json!({}), "{document}");
}

#[test]
fn the_proxy_protocol_is_understood_by_nginx_and_haproxy() {
    let place = Place::new();
    let certificate = Certificate::new(&place, "n", "ec");
    let http = format!(
        "log_format told '$proxy_protocol_addr $proxy_protocol_port $remote_addr $remote_port $proxy_protocol_server_port \
         $server_port';\n\
         server {{ listen 127.0.0.1:{{1}} proxy_protocol; {log} return 200 '$proxy_protocol_addr'; }}\n\
         server {{ listen 127.0.0.1:{{2}} ssl proxy_protocol; {log} {} return 200 '$proxy_protocol_addr'; }}",
        certificate.nginx(),
        log = "access_log {dir}/access.log told;"
    );
    let nginx = nginx(&place, "nginx", &http);
    let pem = place.file(
        "both.pem",
        [&certificate.certificate, &certificate.key].map(|path| std::fs::read_to_string(path).unwrap()).concat(),
    );
    let answer = "http-request return status 200 content-type text/plain lf-string \"%[src]\"";
    let sections = format!(
        "frontend plain\n  bind 127.0.0.1:{{1}} accept-proxy\n  {answer}\n\
         frontend tls\n  bind 127.0.0.1:{{2}} accept-proxy ssl crt {pem}\n  {answer}"
    );
    let haproxy = haproxy(&place, "haproxy", &sections);
    let mut logged = 0;
    for version in ["v1", "v2"] {
        for server in [&nginx, &haproxy] {
            for url in [server.http(1, "/"), server.https(2, "/")] {
                let args = ["-n", "20", "-c", "4", "-k", "--proxy-protocol", version, "--source", "127.0.0.44"];
                let document = place.json([&["run", &url], &args[..]].concat());
                let target = &document["targets"][0];
                assert_eq!(target["ops"], 20, "{version} {url}: {target}");
                assert_eq!(target["body_bytes"], 20 * "127.0.0.44".len() as u64, "{version} {url}: {target}");
            }
        }
        let log = nginx.access_log(logged + 42);
        assert_eq!(log.len(), logged + 42, "{version}");
        for line in &log[logged..] {
            let words: Vec<&str> = line.split(' ').collect();
            let [told, told_port, real, real_port, told_server, real_server] = words[..] else { panic!("{line}") };
            assert_eq!((told, told_port, told_server), (real, real_port, real_server), "{line}");
        }
        logged += 42;
    }
}

#[test]
fn what_cannot_be_reached_that_way_is_said() {
    let place = Place::new();
    let server = listening(&place);
    let url = server.http(1, "/");
    for (args, code, words) in [
        (&["--source", "192.0.2.9"][..], COULD_NOT_RUN, &["192.0.2.9 is not on this machine"][..]),
        (&["--source", "::1"], COULD_NOT_RUN, &["IPv4 addresses only", "--source gives IPv6"]),
        (&["-6"], COULD_NOT_RUN, &["'127.0.0.1' has no IPv6 address"]),
        (&["--source", "127.0.0.9-127.0.0.2"], BAD_USAGE, &["--source: 127.0.0.2 comes before"]),
        (&["--source", "127.0.0.1/8"], BAD_USAGE, &["--source", "that is 127.0.0.0/8"]),
        (&["--source", "127.0.0.0/8"], BAD_USAGE, &["16777214", "4096 can"]),
        (&["--source", "lo"], BAD_USAGE, &["--source: 'lo' is no IP address"]),
        (&["--source", "127.0.0.1", "-6"], BAD_USAGE, &["--source: there is no IPv6 address among them"]),
        (&["--resolve", "h:80"], BAD_USAGE, &["--resolve", "HOST:PORT:ADDR"]),
        (&["--resolve", "h:80:name"], BAD_USAGE, &["--resolve: 'name' is no IP address"]),
        (&["-4", "-6"], BAD_USAGE, &["--ipv4", "--ipv6"]),
        (&["--addresses", "some"], BAD_USAGE, &["--addresses", "some"]),
        (&["--proxy-protocol", "v3"], BAD_USAGE, &["--proxy-protocol", "v3"]),
        (&["--unix-socket", "/x", "--source", "127.0.0.1"], BAD_USAGE, &["--unix-socket", "--source"]),
    ] {
        let said = place.duel([&["run", &url, "-n", "1", "-q"], args].concat()).refused(code);
        assert!(words.iter().all(|word| said.contains(word)), "{args:?}: {said}");
    }
}

/// A network of its own, in which connections can have ten ports.
#[test]
fn local_addresses_multiply_the_ports() {
    let may = std::process::Command::new("unshare").args(["-n", "true"]).status().is_ok_and(|status| status.success());
    if !may {
        println!("skipped: this user may not make a network namespace");
        return;
    }
    let place = Place::new();
    let script = place.file(
        "script",
        "ip link set lo up || exit 99\n\
         echo 40000 40009 >/proc/sys/net/ipv4/ip_local_port_range || exit 99\n\
         mkfifo hold; exec 9<>hold\n\
         \"$1\" ruler --listen 127.0.0.1:8080 <hold >/dev/null & ruler=$!\n\
         trap 'kill $ruler' EXIT\n\
         for i in 1 2 3 4 5 6 7 8 9 10; do (: >/dev/tcp/127.0.0.1/8080) 2>/dev/null && break; sleep 0.2; done\n\
         shift\n\
         \"$DUEL\" run http://127.0.0.1:8080/size/5 -n 200 -t 1 --json -q \"$@\"\n",
    );
    let with = |args: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-n", "bash", &script, DUEL]).args(args).env("DUEL", DUEL).env("HOME", place.root());
        command.env("DUEL_ARCHIVE", place.archive()).current_dir(place.root());
        let done = Running::start(command).end();
        let _ = std::fs::remove_file(place.path("hold"));
        done.ok().json()
    };
    let few = with(&["-c", "30"]);
    let exhausted = &few["targets"][0]["failed"]["ports-exhausted"];
    assert!(exhausted.as_u64().is_some_and(|failed| failed > 0), "{few}");
    // Seven times ten ports are enough for thirty connections, and for as many that are closed lately.
    let many = with(&["-c", "30", "--source", "127.0.0.2-127.0.0.8"]);
    let target = &many["targets"][0];
    assert_eq!(
        (&target["ops"], &target["connections"], &target["failed"]),
        (&200.into(), &30.into(), &serde_json::json!({})),
        "{many}"
    );
}
