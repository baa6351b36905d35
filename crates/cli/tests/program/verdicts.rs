//! Comparisons whose outcome is known by a huge margin, and what can be done with them afterwards.
//!
//! No time is asserted, and no narrow ratio: other processes may be busy on the machine. What is slower here is slower
//! by a factor of several, and what is equal is asked for with a margin that noise does not reach.

use crate::common::{Certificate, Place, Recorder, Ruler, Running, Server, measuring, nginx};
use serde_json::Value;

const SHORT: [&str; 4] = ["-d", "4s", "-t", "1"];

/// The pair of the rate, after checking who is compared with whom.
#[track_caller]
fn rate(document: &Value) -> &Value {
    let pair = &document["pairs"][0];
    assert_eq!((&pair["metric"], &document["status"]), (&"rate".into(), &"complete".into()), "{pair}");
    pair
}

#[track_caller]
fn assert_call(document: &Value, call: &str, between: (f64, f64)) {
    let pair = rate(document);
    assert_eq!(pair["call"], call, "{pair} {}", document["doubts"]);
    let ratio = pair["ratio"].as_f64().unwrap();
    assert!(between.0 < ratio && ratio < between.1, "{ratio} is not between {between:?}");
}

fn compare(place: &Place, baseline: &str, target: &str, more: &[&str]) -> Value {
    place.json_decided([&[baseline, target], &SHORT[..], more].concat())
}

#[test]
fn ten_times_the_work_is_slower_and_the_other_way_round_faster() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let [little, much] = ["/burn/200", "/burn/2000"].map(|path| ruler.url(path));
    // 200 and 2000 us of CPU time, on top of what a request costs in any case; a busy machine stretches both.
    assert_call(&compare(&place, &little, &much, &["-c", "1"]), "slower", (0.02, 0.5));
    assert_call(&compare(&place, &much, &little, &["-c", "1"]), "faster", (2.0, 50.0));
}

#[test]
fn three_targets_are_each_compared_with_the_first() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let targets = ["/burn/1000", "/burn/100", "/burn/10000"].map(|path| ruler.url(path));
    let more = ["-c", "1", "--slot", "60ms"];
    let document = place.json_decided([&targets.each_ref().map(String::as_str)[..], &SHORT, &more].concat());
    let calls: Vec<_> = document["pairs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|pair| pair["metric"] == "rate")
        .map(|pair| {
            (pair["baseline"].as_str().unwrap(), pair["target"].as_str().unwrap(), pair["call"].as_str().unwrap())
        })
        .collect();
    assert_eq!(calls, [("A", "B", "faster"), ("A", "C", "slower")]);
}

fn two_of_nginx(place: &Place) -> Server {
    let certificate = Certificate::new(place, "large", "rsa:4096");
    place.file("www/page", vec![b'x'; 200_000]);
    let http = format!(
        "root {};\n\
         server {{ listen 127.0.0.1:{{1}}; location /slow {{ alias {0}; sendfile_max_chunk 16k; sendfile on; \
         limit_rate 4m; }} }}\n\
         server {{ listen 127.0.0.1:{{2}}; }}\n\
         server {{ listen 127.0.0.1:{{3}} ssl; {} }}",
        place.path("www").display(),
        certificate.nginx()
    );
    nginx(place, "nginx", &http)
}

#[test]
fn nginx_held_back_is_slower() {
    let _alone = measuring();
    let place = Place::new();
    let server = two_of_nginx(&place);
    // 12 chunks with 4 ms between them, against the same bytes at once.
    let held_back = compare(&place, &server.http(1, "/page"), &server.http(1, "/slow/page"), &["-c", "2"]);
    assert_call(&held_back, "slower", (0.0, 0.3));
}

#[test]
fn handshakes_are_slower_than_connections() {
    let _alone = measuring();
    let place = Place::new();
    let server = two_of_nginx(&place);
    let more = ["-c", "2", "-k", "--no-keepalive"];
    let document = compare(&place, &server.http(1, "/page"), &server.https(3, "/page"), &more);
    assert_call(&document, "slower", (0.0, 0.6));
}

#[test]
fn the_same_nginx_twice_is_neither_faster_nor_slower() {
    let _alone = measuring();
    // What is behind it takes a time that does not depend on who else wants the CPU.
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let http = format!(
        "server {{ listen 127.0.0.1:{{1}}; listen 127.0.0.1:{{2}}; location / {{ proxy_pass {}; }} }}",
        ruler.url("/delay/3000")
    );
    let server = nginx(&place, "nginx", &http);
    let more = ["-c", "2", "--margin", "30%"];
    let document = compare(&place, &server.http(1, "/"), &server.http(2, "/"), &more);
    let call = rate(&document)["call"].as_str().unwrap();
    assert!(["equivalent", "unknown"].contains(&call), "{}", document["pairs"]);
    assert_eq!(document["margin"], 0.3);
}

#[test]
fn what_was_found_can_be_shown_listed_compared_and_repeated() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (little, much) = (format!("little={}", ruler.url("/burn/100")), format!("much={}", ruler.url("/burn/3000")));
    let args = [&little, &much, "-d", "8s", "-c", "1", "-t", "1", "--slot", "60ms", "--seed", "4711"];
    let done = place.duel(args).ok();
    assert!(done.stdout.starts_with("much is ") && done.stdout.contains("x slower than little"), "{}", done.stdout);
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout, "byte for byte");

    let first = place.json(["show", "last"]);
    let id = first["run"].as_str().unwrap();
    for name in [id, &id[..id.len() - 1]] {
        assert_eq!(place.json(["show", name]), first, "by {name}");
    }
    let again = place.json(["rerun", id]);
    assert_eq!((&again["plan"], &again["seed"]), (&first["plan"], &4711.into()));
    assert_ne!(again["run"], first["run"]);
    assert_call(&again, "slower", (0.0, 0.5));
    assert_eq!(place.json(["show", "last~1"]), first, "the first run is as it was");

    let listed = place.duel(["list"]).ok().stdout;
    // Targets for which a line has no room have lines of their own below it.
    let lines: Vec<&str> = listed.lines().skip(1).collect();
    let runs: Vec<usize> = (0..lines.len()).filter(|&at| !lines[at].starts_with(' ')).collect();
    let [first_run, second_run] = runs[..] else { panic!("{listed}") };
    assert_eq!(first_run, 0, "{listed}");
    assert!(lines[0].starts_with(again["run"].as_str().unwrap()) && lines[second_run].starts_with(id), "{listed}");
    for run in [&lines[..second_run], &lines[second_run..]] {
        let run = run.join("\n");
        assert!(["compare", "complete", "little=", "much="].iter().all(|word| run.contains(word)), "{listed}");
    }
    let one = place.duel(["list", "-n", "1"]).ok().stdout;
    assert!(one.contains(again["run"].as_str().unwrap()) && !one.contains(id), "{one}");

    let diff = place.duel(["diff", id, "last"]).ok().stdout;
    for word in [id, again["run"].as_str().unwrap(), "little", "much"] {
        assert!(diff.contains(word), "{word} is not in {diff}");
    }
    place.duel(["run", &ruler.url("/"), "-n", "5", "-c", "1", "--no-archive"]).ok();
    assert_eq!(place.json(["list"]).as_array().unwrap().len(), 2, "what was not to be kept is not");
}

/// The bytes of all files of the archive.
fn archive_bytes(place: &Place) -> Vec<u8> {
    let files = std::fs::read_dir(place.root()).unwrap().map(|entry| entry.unwrap().path());
    let of_archive = |path: &std::path::PathBuf| path.to_string_lossy().contains("runs.sqlite");
    files.filter(of_archive).flat_map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn secrets_are_sent_and_otherwise_nowhere() {
    const SECRET: &str = "s3cr3t";
    let place = Place::new();
    let http = "log_format secret '$http_authorization $http_x_api_key $http_cookie $http_x_plain';\n\
                server { listen 127.0.0.1:{1}; access_log {dir}/access.log secret; return 200 hello; }";
    let server = nginx(&place, "nginx", http);
    let fields = place.file("headers", "X-Api-Key: s3cr3t\nCookie: a=s3cr3t\n");
    let fields = format!("@{fields}");
    let url = server.http(1, "/");
    let headers = ["-H", "Authorization: Bearer s3cr3t", "-H", &fields, "-H", "X-Plain: seen"];
    let start = |args: &[&str]| {
        let mut command = place.command();
        command.args(args);
        Running::start(command).end()
    };
    let run = [&["run", &url, "-n", "50", "-c", "2"], &headers[..]].concat();
    let compare =
        [&[url.as_str(), &url, "-d", "1s", "-c", "1", "--slot", "30ms", "--why", "--why-budget", "2s"], &headers[..]];
    let mut said = String::new();
    for args in [run.clone(), [&run[..], &["--json"]].concat(), compare.concat()] {
        let done = start(&args).ok();
        said += &(done.stdout + &done.stderr);
    }
    for args in [&["show", "last"][..], &["show", "last", "--json"], &["list", "--json"], &["diff", "last~1", "last"]] {
        let done = start(args).ok();
        said += &(done.stdout + &done.stderr);
    }
    let log = server.access_log(51);
    assert_eq!(log[0], "Bearer s3cr3t s3cr3t a=s3cr3t seen", "the server did get them");
    assert!(!said.contains(SECRET), "{said}");
    assert!(said.contains("seen"), "what is no secret is kept");
    let bytes = archive_bytes(&place);
    assert!(bytes.len() > 1000 && !bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));

    // A repetition asks for them, by name, and takes them.
    let sentence = start(&["rerun", "last", "-q"]).refused(2);
    for name in ["Authorization", "X-Api-Key", "Cookie", "-H"] {
        assert!(sentence.contains(name), "{name}: {sentence}");
    }
    let done = start(&[&["rerun", "last~1", "-q"], &headers[..4]].concat()).ok();
    assert!(!(done.stdout + &done.stderr).contains(SECRET));
    assert!(!archive_bytes(&place).windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    let log = server.access_log(usize::MAX);
    assert_eq!(log.last().unwrap(), "Bearer s3cr3t s3cr3t a=s3cr3t seen", "sent once more");
}

/// 50,000 per second are answered to a thousandth, as the server counts them, or the report says that they were not.
/// Which of both happens depends on the machine; neither a rate that is wrong nor a doubt that is missing passes.
#[test]
fn a_rate_is_reached_or_it_is_said_that_it_was_not() {
    const RATE: f64 = 50_000.0;
    let _alone = measuring();
    let ruler = duel_ruler::Ruler::start(duel_ruler::Config::default()).unwrap();
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", &ruler.url("/"), "--rate", "50000", "-d", "2s", "-c", "64", "-t", "1"]);
    command.args(["--json", "-q", "--no-archive"]);
    let done = Running::start(command).end();
    let document = done.json();
    // A rate that is missed by more than 1 % is the headline, and the exit code says so.
    assert_eq!(done.code, Some(i32::from(document["headlines"] != serde_json::json!([]))), "{}", document["headlines"]);
    let target = &document["targets"][0];
    let number = |field: &str| target[field].as_u64().unwrap();
    assert_eq!(number("started") + number("unstarted"), 100_000, "no op is lost from the schedule, and none invented");
    assert_eq!((&target["failed"], number("in_flight")), (&serde_json::json!({}), 0), "{target}");
    // The first contact is a request, too.
    assert_eq!(ruler.settled(crate::common::PATIENCE).requests, number("ops") + 1);
    let off = 1.0 - target["rate_per_s"].as_f64().unwrap() / RATE;
    let said = document["doubts"].as_array().unwrap().iter().any(|doubt| doubt["id"] == "rate-not-reached");
    eprintln!("{:.2} % below the rate, {}", 100.0 * off, if said { "and said so" } else { "kept up" });
    // The rate is told in six digits.
    if said {
        assert!(off > 0.0009, "{off}: {}", document["doubts"]);
    } else {
        assert!(off.abs() <= 0.0011, "{off}: {}", document["doubts"]);
    }
}

/// Of a server that takes 20 ms for a request, two connections get 100 per second.
#[test]
fn a_backlog_that_was_worked_off_too_late_is_a_rate_not_reached() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    // 30 ops are due in a tenth of a second and take three; the run waits for up to five seconds.
    let args = ["run", &ruler.url("/delay/20000"), "--rate", "300", "-d", "100ms", "-c", "2", "-t", "1"];
    let document = place.json_ended(args, 1);
    let target = &document["targets"][0];
    assert_eq!((&target["ops"], &target["unstarted"]), (&30.into(), &0.into()), "all are worked off in the end");
    let doubts = document["doubts"].as_array().unwrap();
    assert!(doubts.iter().any(|doubt| doubt["id"] == "rate-not-reached"), "{doubts:?}");
}

/// Equal servers that both wait for our acknowledgements look slow, and alike.
#[test]
#[cfg(target_os = "linux")]
fn waits_for_delayed_acknowledgements_are_told_of_equal_targets_and_of_single_ones() {
    let _alone = measuring();
    let place = Place::new();
    let servers = [(); 2].map(|()| {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n".to_vec();
        Recorder::in_writes(vec![head, vec![b'x'; 300]])
    });
    let urls = [servers[0].url("/"), servers[1].url("/")];
    let told = |words: &[&str]| -> Vec<String> {
        let run = place.json([words, &["-c", "4", "--no-archive"]].concat());
        let doubts = run["doubts"].as_array().unwrap();
        let told = doubts.iter().filter(|doubt| doubt["id"] == "delayed-acks");
        told.map(|doubt| doubt["text"].as_str().unwrap().to_owned()).collect()
    };
    // A busy machine makes waits longer, and then nothing is said.
    let again = |words: &[&str], wanted: usize| (0..5).map(|_| told(words)).find(|told| told.len() == wanted);
    let of_one = again(&["run", &urls[0], "-d", "2s"], 1).expect("it is told in one of five runs");
    assert!(
        of_one[0].contains("wait 35 to 60 ms in \"receive\"") && of_one[0].contains("--quick-ack shows"),
        "{of_one:?}"
    );
    assert!(again(&[&urls[0], &urls[1], "-d", "4s"], 2).is_some());
    assert_eq!(told(&["run", &urls[0], "-d", "1s", "--quick-ack"]), [""; 0]);
}
