//! `--why` on pairs with one strong fault each: the first finding names it, on the right side.
//!
//! Each fault makes a request a few times as dear, so that neither a busy machine nor an unoptimised build decides. Where
//! the rest of a request would be next to nothing, it is given a fixed time instead: a flip is judged against what is
//! left without the fault, and of next to nothing there is no sure share.

use crate::common::{Certificate, DUEL, Place, Ruler, apache, haproxy, measuring, nginx, nginx_with};
use serde_json::Value;
use std::process::Command;

/// The document of a comparison of `good` and `bad` that was explained. Where a machine is so busy that the comparison itself
/// stays unknown, there is nothing to explain, and it is made anew.
#[track_caller]
fn explained(place: &Place, good: &str, bad: &str, more: &[&str]) -> Value {
    let (good, bad) = (format!("good={good}"), format!("bad={bad}"));
    // As from another machine.
    let rest = ["-d", "3s", "-t", "1", "--why", "--why-budget", "24s", "--no-local"];
    let args = [&[good.as_str(), &bad][..], &rest, more].concat();
    let document = place.json_decided(&args);
    assert_eq!((&document["explained"], &document["status"]), (&true.into(), &"complete".into()));
    document
}

/// The same where something is to be found. On a machine that is busy with other things it may say less, and rightly so: then it is
/// asked anew.
#[track_caller]
fn explained_surely(place: &Place, good: &str, bad: &str, more: &[&str]) -> Value {
    let document = explained(place, good, bad, more);
    let first = &document["findings"][0];
    if first["cause"] != "unknown" && first["confidence"] != "possible" {
        return document;
    }
    eprintln!("asked anew after {}", first["summary"]);
    explained(place, good, bad, more)
}

/// What repeats a measurement is understood, given to a shell: here its plan is printed instead of carried out.
#[track_caller]
fn assert_repeatable(document: &Value) {
    let findings = document["findings"].as_array().unwrap();
    let evidence = findings.iter().flat_map(|finding| finding["evidence"].as_array().unwrap());
    let commands: Vec<&str> = evidence.filter_map(|line| line["repeat"].as_str()).collect();
    let measurements = commands.iter().filter(|command| command.contains("://"));
    assert!(measurements.clone().count() > 0, "{document:#}");
    for command in measurements {
        let script = format!("duel() {{ \"$0\" plan \"$@\"; }}; {command}");
        let done = Command::new("sh").args(["-c", &script, DUEL]).output().unwrap();
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

#[track_caller]
fn first_finding<'a>(document: &'a Value, cause: &str) -> &'a Value {
    let finding = &document["findings"][0];
    let told = || format!("{:#}\n{:#}\n{:#}", document["pairs"], document["findings"], document["probes"]);
    assert_eq!(finding["cause"], cause, "{}", told());
    assert_eq!(finding["target"], if cause == "none" { Value::Null } else { "bad".into() }, "{}", told());
    finding
}

/// A fault was found by a flip.
#[track_caller]
fn assert_found(document: &Value, cause: &str) {
    assert_eq!(document["pairs"][0]["call"], "slower", "{:#}", document["pairs"]);
    let finding = first_finding(document, cause);
    let confidence = finding["confidence"].as_str().unwrap();
    assert!(["confirmed", "likely"].contains(&confidence), "{finding:#}");
    assert!(finding["explains"].as_f64() > Some(0.5), "{finding:#}");
    assert!(!finding["remedy"].as_str().unwrap().is_empty() && finding["summary"].as_str().unwrap().contains("bad"));
    let ruled_out = document["ruled_out"].as_array().unwrap();
    assert!(!ruled_out.contains(&cause.into()), "found and ruled out");
    assert_repeatable(document);
}

/// Takes AES away in both words of features; what is left makes a byte several times as dear.
const MASK: (&str, &str) = ("OPENSSL_ia32cap", "~0x200000200000000:~0x60000000000");

#[test]
fn aes_unused() {
    if !cfg!(any(target_arch = "x86_64", target_arch = "x86")) {
        eprintln!("skipped: the mask is for x86");
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let masked = Ruler::start_with(&["--tls", "p256"], &[MASK]);
    let good = Ruler::start(&["--tls", "p256"]);
    let document = explained_surely(&place, &good.url("/file"), &masked.url("/file"), &["-c", "2", "-k"]);
    assert_found(&document, "tls.aes-unused");
    // From outside an AES that is slow for another reason looks the same.
    assert_eq!(document["findings"][0]["confidence"], "likely", "{:#}", document["findings"]);
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("tls.aes-unused on bad"), "{shown}");
}

/// The same on a real server whose host may be read: what a client infers is seen in the server itself.
#[test]
#[cfg(target_os = "linux")]
fn aes_unused_by_nginx_is_confirmed_on_its_host() {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    if !cfg!(target_arch = "x86_64") || !info.split_whitespace().any(|word| word == "aes") {
        eprintln!("skipped: it takes an x86-64 CPU with AES instructions");
        return;
    }
    let _alone = measuring();
    let place = Place::new();
    let certificate = Certificate::new(&place, "server", "ec");
    // Enough for what a byte costs to show, and little enough for a generator that is built for debugging to keep up.
    place.file("www/f", vec![b'x'; 100_000]);
    let root = place.path("www");
    let http = format!("server {{ listen 127.0.0.1:{{1}} ssl; {} root {}; }}", certificate.nginx(), root.display());
    let (good, bad) = (nginx(&place, "good", &http), nginx_with(&place, "bad", &http, &[MASK]));
    let document = confirmed(|| {
        let targets = [format!("good={}", good.https(1, "/f")), format!("bad={}", bad.https(1, "/f"))];
        let more = ["-k", "-c", "1", "-t", "1", "-d", "10s", "--why", "--why-budget", "90s", "--local", "bad"];
        place.json(targets.iter().map(String::as_str).chain(more))
    });
    assert_found(&document, "tls.aes-unused");
    let finding = &document["findings"][0];
    assert!(finding["summary"].as_str().unwrap().contains("mask"), "{finding:#}");
}

/// The document whose first finding is confirmed. On a machine that is busy with other things duel may say less, or tell of
/// those, and rightly so: then it is asked anew. To be sure of anything else is wrong at once.
#[track_caller]
fn confirmed(ask: impl Fn() -> Value) -> Value {
    const TRIES: u32 = 6;
    let mut document = Value::Null;
    for _ in 0..TRIES {
        document = ask();
        let finding = &document["findings"][0];
        match finding["confidence"].as_str() {
            Some("confirmed") => return document,
            Some("likely") => {
                let (pairs, cause) = (&document["pairs"], &finding["cause"]);
                assert!(["tls.aes-unused", "unknown"].contains(&cause.as_str().unwrap()), "{pairs:#}{finding:#}");
            }
            _ => {}
        }
    }
    panic!("not confirmed in any of {TRIES} tries: {:#}{:#}", document["pairs"], document["findings"])
}

#[test]
fn the_same_server_twice_has_no_cause() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&["--tls", "p256"]));
    // A time that does not depend on who else wants the CPU, and a margin: noise makes no gap out of nothing.
    let url = ruler.url("/delay/3000");
    let document = explained(&place, &url, &url, &["-c", "2", "-k", "--margin", "50%"]);
    first_finding(&document, "none");
    assert_eq!(document["findings"].as_array().unwrap().len(), 1, "nobody is accused");
}

#[test]
fn large_key() {
    let _alone = measuring();
    let place = Place::new();
    let [small, large] = ["rsa2048", "rsa4096"].map(|key| Ruler::start(&["--tls", key, "--sleep-us", "1000"]));
    let more = ["-c", "2", "-k", "--no-keepalive"];
    let document = explained_surely(&place, &small.url("/"), &large.url("/"), &more);
    assert_found(&document, "tls.large-key");
}

#[test]
fn connections_closed_by_nginx() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let certificate = Certificate::new(&place, "c", "rsa:4096");
    let http = format!(
        "{}\nupstream ruler {{ server 127.0.0.1:{}; keepalive 8; }}\n\
         proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
         server {{ listen 127.0.0.1:{{1}} ssl; location / {{ proxy_pass http://ruler/delay/6000; }} }}\n\
         server {{ listen 127.0.0.1:{{2}} ssl; keepalive_timeout 0; location / {{ proxy_pass http://ruler/delay/6000; }} }}",
        certificate.nginx(),
        ruler.port()
    );
    let server = nginx(&place, "nginx", &http);
    let document = explained_surely(&place, &server.https(1, "/"), &server.https(2, "/"), &["-c", "2", "-k"]);
    assert_found(&document, "http.no-keepalive");
    // `why` asks again, with probes that are made now, and keeps them.
    let again = place.json(["why", "last", "--why-budget", "24s"]);
    assert_eq!((&again["run"], &again["pairs"]), (&document["run"], &document["pairs"]));
    assert_found(&again, "http.no-keepalive");
    assert_eq!(place.json(["show", "last"]), again);
}

#[test]
fn connections_closed_by_haproxy() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let certificate = Certificate::new(&place, "c", "rsa:4096");
    let both = std::fs::read_to_string(&certificate.certificate).unwrap()
        + &std::fs::read_to_string(&certificate.key).unwrap();
    let pem = place.file("both.pem", both);
    let sections = format!(
        "frontend keeps\n  bind 127.0.0.1:{{1}} ssl crt {pem}\n  default_backend ruler\n\
         frontend closes\n  bind 127.0.0.1:{{2}} ssl crt {pem}\n  option httpclose\n  default_backend ruler\n\
         backend ruler\n  server r 127.0.0.1:{}\n",
        ruler.port()
    );
    let server = haproxy(&place, "haproxy", &sections);
    let path = "/delay/6000";
    let document = explained_surely(&place, &server.https(1, path), &server.https(2, path), &["-c", "2", "-k"]);
    assert_found(&document, "http.no-keepalive");
}

#[test]
fn compression_by_apache() {
    let _alone = measuring();
    let place = Place::new();
    // Text that takes the compressor some work: words in an order without repetition.
    let mut state = 1u32;
    let words = ["lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit", "sed", "do", "eiusmod"];
    let mut text = String::new();
    while text.len() < 100_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        text += words[(state >> 24) as usize % words.len()];
        text.push(' ');
    }
    place.file("www/page.html", text);
    let directives = format!(
        "DocumentRoot {}\nKeepAlive On\nListen 127.0.0.1:{{1}}\nListen 127.0.0.1:{{2}}\n\
         <VirtualHost 127.0.0.1:{{2}}>\nSetOutputFilter DEFLATE\nDeflateCompressionLevel 9\n</VirtualHost>",
        place.path("www").display()
    );
    let server = apache(&place, "apache", &directives);
    let document = explained_surely(&place, &server.http(1, "/page.html"), &server.http(2, "/page.html"), &["-c", "2"]);
    assert_found(&document, "http.compression");
}

#[test]
fn a_rate_limit_is_unknown_and_per_byte() {
    let _alone = measuring();
    let place = Place::new();
    place.file("www/page", vec![b'x'; 200_000]);
    let http = format!(
        "root {}; sendfile on; sendfile_max_chunk 16k;\n\
         server {{ listen 127.0.0.1:{{1}}; }}\n\
         server {{ listen 127.0.0.1:{{2}}; limit_rate 4m; }}",
        place.path("www").display()
    );
    let server = nginx(&place, "nginx", &http);
    let document = explained(&place, &server.http(1, "/page"), &server.http(2, "/page"), &["-c", "2"]);
    let finding = first_finding(&document, "unknown");
    let summary = finding["summary"].as_str().unwrap();
    assert!(summary.contains("receive") || summary.contains("per byte"), "where it sits: {summary}");
    let ruled_out = document["ruled_out"].as_array().unwrap();
    for cause in ["tls.aes-unused", "tls.large-key", "http.no-keepalive", "http.compression"] {
        assert!(ruled_out.contains(&cause.into()), "{cause} is not among {ruled_out:?}");
    }
    // Their machine is this one, which is read unasked and tells more: that nothing there holds the bytes up but a limit.
    let targets = [format!("good={}", server.http(1, "/page")), format!("bad={}", server.http(2, "/page"))];
    let words = targets.iter().map(String::as_str).chain(["-c", "2", "-t", "1", "-d", "3s", "--why"]);
    let document = place.json_decided(&words.collect::<Vec<_>>());
    let hosts = document["hosts"].as_array().unwrap();
    assert!(
        hosts.len() == 2 && hosts.iter().all(|host| host["facts"]["process.pid"]["value"].is_string()),
        "{hosts:#?}"
    );
    let cause = document["findings"][0]["cause"].as_str().unwrap();
    assert!(["net.rate-cap", "unknown"].contains(&cause), "{document:#}");
}

/// One address gets 100 requests per second, and what is beyond waits; the other server lets all clients together do 1000.
/// No machine is so slow that it could not do that, so that neither scatters with what else it does.
#[test]
#[cfg(target_os = "linux")]
fn a_limit_for_each_client_address() {
    let _alone = measuring();
    let place = Place::new();
    place.file("www/f", "x");
    let root = place.path("www");
    let site = |more: &str| {
        let root = root.display();
        format!(
            "limit_req_zone $binary_remote_addr zone=clients:1m rate=100r/s;
             limit_req_zone $server_name zone=all:1m rate=1000r/s;
             server {{ listen 127.0.0.1:{{1}}; server_name site; root {root}; {more} }}"
        )
    };
    let good = nginx(&place, "good", &site("limit_req zone=all burst=1000;"));
    let bad = nginx(&place, "bad", &site("limit_req zone=clients burst=1000;"));
    let [good_url, bad_url] = [format!("good={}", good.http(1, "/f")), format!("bad={}", bad.http(1, "/f"))];
    // On a machine that is busy with other things it may say that it does not know, and rightly so: then it is asked anew.
    let ask = || place.json_decided([&good_url, &bad_url, "-d", "3s", "-t", "1", "-c", "8", "--why"]);
    let is_open = |document: &Value| {
        let finding = &document["findings"][0];
        finding["cause"] == "unknown" || finding["confidence"] == "possible"
    };
    let document = (0..6).fold(ask(), |document, _| if is_open(&document) { ask() } else { document });
    assert_eq!(document["pairs"][0]["call"], "slower", "{:#}", document["pairs"]);
    let finding = first_finding(&document, "net.client-limit");
    // Eight connections have eight addresses: whether these close the gap is for the machine to say.
    assert!(["confirmed", "likely"].contains(&finding["confidence"].as_str().unwrap()), "{finding:#}");
    let summary = finding["summary"].as_str().unwrap();
    assert!(summary.contains("lets one client address do only so much"), "{summary}");
    assert_eq!(document["findings"].as_array().unwrap().len(), 1, "{:#}", document["findings"]);
    assert_repeatable(&document);
}
