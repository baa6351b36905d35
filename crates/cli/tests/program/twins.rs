//! `--may-start-twin` on a real nginx: what twins prove, what they cannot, and that nothing of them is left behind.
//!
//! They need root and namespaces; where these are not to be had, that is said, and nothing fails.

use crate::common::{Certificate, DUEL, Place, Running, Server, measuring, nginx, nginx_with, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::process::{Command, Stdio};

/// Takes AES away in both words of features; what is left makes a byte several times as dear.
const MASK: (&str, &str) = ("OPENSSL_ia32cap", "~0x200000200000000:~0x60000000000");
/// Enough for what a byte costs to show, and little enough for client and server to work by turns: of a stream of
/// megabytes a generator that is built for debugging is the bottleneck itself.
const BYTES: usize = 100_000;
const AES: &str = "tls.aes-unused";

/// A healthy nginx and a masked one, serving the same over TLS.
fn pair(place: &Place, location: &str) -> (Server, Server) {
    let certificate = Certificate::new(place, "server", "ec");
    place.file("www/f", vec![b'x'; BYTES]);
    let tls = certificate.nginx();
    let http = format!("server {{ listen 127.0.0.1:{{1}} ssl; {tls} location / {{ {location} }} }}");
    let good = nginx(place, "good", &http);
    (good, nginx_with(place, "bad", &http, &[MASK]))
}

fn files(place: &Place) -> String {
    format!("root {};", place.path("www").display())
}

fn args(good: &Server, bad: &Server, more: &[&str]) -> Vec<String> {
    let targets = [format!("good={}", good.https(1, "/f")), format!("bad={}", bad.https(1, "/f"))];
    let rest = ["-k", "-c", "1", "-t", "1", "-d", "10s", "--why", "--local", "bad", "--why-budget", "90s"];
    targets.into_iter().chain(rest.iter().chain(more).map(|&word| word.to_owned())).collect()
}

/// What duel says once it has named the cause as surely as that, with the evidence that is asked for. On a machine that is
/// busy with other things it may say less, and rightly so: then it is asked anew. To be sure of anything else is wrong at
/// once.
#[track_caller]
fn found(named: &str, surely_enough: &[&str], is_shown: impl Fn(&Value) -> bool, ask: impl Fn() -> Value) -> Value {
    const TRIES: u32 = 6;
    let mut document = Value::Null;
    for _ in 0..TRIES {
        document = ask();
        let finding = &document["findings"][0];
        let (cause, confidence) = (finding["cause"].as_str().unwrap(), finding["confidence"].as_str().unwrap());
        if cause == named && surely_enough.contains(&confidence) && is_shown(finding) {
            return document;
        }
        let is_sure = ["confirmed", "likely"].contains(&confidence);
        assert!(!is_sure || [named, "unknown"].contains(&cause), "{:#}{finding:#}", document["pairs"]);
    }
    panic!("not sure of it in any of {TRIES} tries: {:#}{:#}", document["pairs"], document["findings"])
}

/// The texts of a finding's evidence that come from probes whose ids begin so.
fn evidence<'a>(finding: &'a Value, probe: &str) -> Vec<&'a str> {
    let lines = finding["evidence"].as_array().unwrap().iter();
    lines
        .filter(|line| line["probe"].as_str().unwrap().starts_with(probe))
        .map(|line| line["text"].as_str().unwrap())
        .collect()
}

#[test]
fn a_twin_without_the_mask_proves_it() {
    if !can_have_twins() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let (good, bad) = pair(&place, &files(&place));
    let pid_file = std::fs::read_to_string(place.path("bad/pid")).unwrap();
    // The mask that the lens reads may prove it as well, where the twins' rates scatter too much.
    let by_twins = |finding: &Value| {
        let told = evidence(finding, "twin-of-1");
        ["started anew as it is", "without OPENSSL_ia32cap=~0x200000200000000"]
            .iter()
            .all(|words| told.iter().any(|text| text.contains(words)))
    };
    let document = found(AES, &["confirmed"], by_twins, || place.json(args(&good, &bad, &["--may-start-twin"])));
    assert_eq!(document["findings"][0]["target"], "bad", "{document:#}");
    // The running server is where it was, and its files as well.
    assert_eq!(std::fs::read_to_string(place.path("bad/pid")).unwrap(), pid_file);
    assert_eq!(std::fs::read_to_string(place.path("bad/error.log")).unwrap(), "");
    assert!(std::path::Path::new(&format!("/proc/{}", bad.pid())).exists());
}

/// A setting of the server's configuration is its cause, and taken away from a twin without a change to any file.
#[test]
fn a_twin_that_is_set_up_otherwise_proves_a_setting() {
    if !can_have_twins() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    place.file("www/f", vec![b'x'; 5 * BYTES]);
    let server = |more: &str| format!("server {{ listen 127.0.0.1:{{1}}; {more} {} }}", files(&place));
    let good = nginx(&place, "good", &format!("sendfile on; {}", server("")));
    let bad = nginx(&place, "bad", &server("sendfile off; output_buffers 1 512;"));
    let config = std::fs::read(place.path("bad/config")).unwrap();
    let targets = [format!("good={}", good.http(1, "/f")), format!("bad={}", bad.http(1, "/f"))];
    let rest = ["-c", "1", "-t", "1", "-d", "10s", "--why", "--local", "good", "--local", "bad", "--why-budget", "90s"];
    let args = || targets.iter().map(String::as_str).chain(rest).chain(["--may-start-twin=bad"]);
    let by_twins = |finding: &Value| {
        let told = evidence(finding, "twin-of-1-large-pieces");
        told.iter().any(|text| {
            text.contains(
                "with output_buffers 2 32k instead of output_buffers 1 512, with sendfile on instead of sendfile off",
            )
        })
    };
    let document = found("http.no-sendfile", &["confirmed"], by_twins, || place.json(args()));
    assert_eq!(document["findings"][0]["target"], "bad", "{document:#}");
    assert_eq!(std::fs::read(place.path("bad/config")).unwrap(), config);
}

#[test]
fn without_the_flag_no_twin_is_started() {
    if !can_have_twins() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let (good, bad) = pair(&place, &files(&place));
    // The first probes are enough.
    let mut args = args(&good, &bad, &[]);
    let budget = args.iter_mut().find(|word| *word == "90s").unwrap();
    *budget = "20s".to_owned();
    let document = place.json(args);
    let probes: Vec<&str> =
        document["probes"].as_array().unwrap().iter().map(|probe| probe["id"].as_str().unwrap()).collect();
    assert!(!probes.is_empty() && probes.iter().all(|id| !id.starts_with("twin")), "{probes:?}");
}

#[test]
fn what_answers_otherwise_in_its_own_network_is_no_twin() {
    if !can_have_twins() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    place.file("www/f", vec![b'x'; BYTES]);
    let behind = nginx(&place, "behind", &format!("server {{ listen 127.0.0.1:{{1}}; {} }}", files(&place)));
    let (good, bad) = pair(&place, &format!("proxy_pass {};", behind.http(1, "")));
    let by_its_answer = |finding: &Value| {
        evidence(finding, "twin-of-1").iter().any(|text| text.contains("status is 502 where the server's is 200"))
    };
    found(AES, &["confirmed", "likely"], by_its_answer, || place.json(args(&good, &bad, &["--may-start-twin=bad"])));
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_twin_behind() {
    if !can_have_twins() {
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let (good, bad) = pair(&place, &files(&place));
    let (links, mounts) = (links(), mounts(&place));
    // Where a busy machine hides the gap there is nothing to start a twin for, and it is tried anew.
    const TRIES: u32 = 6;
    let with_twin = (0..TRIES).find_map(|_| {
        let mut command = place.command();
        command.args(args(&good, &bad, &["--may-start-twin", "-q"]));
        let mut duel = Running::start(command);
        let (mut twin, mut serves) = (Vec::new(), false);
        wait_until("a twin serves, or duel ends without one", || {
            twin = all_below(duel.pid()).into_iter().filter(|&pid| name(pid) != "duel").collect();
            serves = twin.iter().any(|&pid| name(pid) == "nginx");
            serves || duel.is_over()
        });
        serves.then_some((duel, twin))
    });
    let (duel, twin) = with_twin.expect("duel ends without a twin each time");
    duel.signal(Signal::KILL);
    duel.end();
    wait_until("the twin's processes are gone", || twin.iter().all(|&pid| !is_alive(pid)));
    assert_eq!((links, mounts), (self::links(), self::mounts(&place)));
    assert!(is_alive(bad.pid()));
}

#[test]
fn who_may_have_a_twin_is_said_clearly() {
    let place = Place::new();
    let of = |more: &[&str]| {
        let words = ["A=http://127.0.0.1:1/", "B=http://127.0.0.1:2/", "--no-local"];
        place.duel(words.iter().chain(more)).refused(2)
    };
    assert!(of(&["--may-start-twin", "--local", "B"]).contains("--why"));
    assert!(of(&["--why", "--may-start-twin"]).contains("--local NAME"));
    assert!(of(&["--why", "--local", "A", "--may-start-twin=B"]).contains("--local B"));
    assert!(of(&["--why", "--local", "A", "--may-start-twin=C"]).contains("there is A, B"));
}

fn can_have_twins() -> bool {
    let may = cfg!(target_arch = "x86_64")
        && Command::new("unshare")
            .args(["--net", "--mount", "--pid", "--fork", "true"])
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
    if !may {
        eprintln!("skipped: no namespaces can be made here, or the mask is for another CPU ({DUEL})");
    }
    may
}

fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim_end().to_owned()
}

fn is_alive(pid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Children may belong to any thread.
fn all_below(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in text.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()) {
            found.push(child);
            found.extend(all_below(child));
        }
    }
    found
}

fn links() -> String {
    let output = Command::new("ip").args(["-o", "link"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Mounts, without those that other tests make meanwhile: disks in folders of their own, and networks with names.
fn mounts(place: &Place) -> Vec<String> {
    let of_others = |point: &str| {
        let point = std::path::Path::new(point);
        point.starts_with("/run/netns") || point.starts_with(std::env::temp_dir()) && !point.starts_with(place.root())
    };
    let text = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let is_told = |line: &&str| !line.split(' ').nth(4).is_some_and(of_others);
    text.lines().filter(is_told).map(str::to_owned).collect()
}
