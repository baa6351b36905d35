//! Lists that make factors, against servers whose truth is known.

use crate::common::{Certificate, Place, Running, measuring, nginx, wait_until};
use duel_ruler::{Config, Ruler};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// A server with so many workers, each of which takes so long for a request: its rate grows with the connections until
/// every worker is busy, and stays there. It ends with the test's process.
fn workers(count: usize, each: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let free = Arc::new((Mutex::new(count), Condvar::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let free = Arc::clone(&free);
            std::thread::spawn(move || answer(stream, &free, each));
        }
    });
    address
}

fn answer(mut stream: TcpStream, free: &(Mutex<usize>, Condvar), each: Duration) {
    let mut head = [0; 4096];
    // Requests are short and never pipelined: one read brings one.
    while stream.read(&mut head).is_ok_and(|bytes| bytes > 0) {
        let mut count = free.0.lock().unwrap();
        while *count == 0 {
            count = free.1.wait(count).unwrap();
        }
        *count -= 1;
        drop(count);
        std::thread::sleep(each);
        *free.0.lock().unwrap() += 1;
        free.1.notify_one();
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

fn level<'a>(document: &'a Value, factor: usize, level: &str) -> &'a Value {
    let levels = document["experiment"]["factors"][factor]["levels"].as_array().unwrap();
    levels.iter().find(|found| found["level"] == level).unwrap()
}

fn rate(document: &Value, connections: &str, target: &str) -> f64 {
    let figures = level(document, 0, connections)["figures"].as_array().unwrap();
    let found = figures.iter().find(|figure| figure["target"] == target && figure["metric"] == "rate").unwrap();
    found["value"].as_f64().unwrap()
}

#[test]
fn connections_show_how_many_workers_there_are() {
    let _alone = measuring();
    let place = Place::new();
    // Long requests: what a busy machine adds is small beside them.
    let each = Duration::from_millis(20);
    let (two, eight) = (workers(2, each), workers(8, each));
    let (two, eight) = (format!("two=http://{two}/"), format!("eight=http://{eight}/"));
    let args = [&eight, &two, "-c", "1..8", "-t", "1", "-d", "16s", "--slot", "200ms", "--seed", "1"];
    let document = place.json(args);
    assert_eq!(document["experiment"]["factors"][0]["levels"].as_array().unwrap().len(), 4);
    // What holds however busy the machine is: workers never take less than their time.
    for (target, workers) in [("two", 2.0), ("eight", 8.0_f64)] {
        for connections in ["1", "2", "4", "8"] {
            let busy = workers.min(connections.parse().unwrap());
            let rate = rate(&document, connections, target);
            assert!(rate <= 1.01 * busy / each.as_secs_f64(), "{target} at {connections}: {rate}");
        }
    }
    let growth = |target: &str| rate(&document, "8", target) / rate(&document, "1", target);
    assert!(growth("eight") > 1.8 * growth("two"), "{} {}", growth("eight"), growth("two"));
    let ratio = level(&document, 0, "8")["pairs"][0]["ratio"].as_f64().unwrap();
    assert!(ratio < 0.6, "{ratio}");
    let dependence = &document["experiment"]["factors"][0]["dependences"][0];
    assert!(dependence["answer"] != "same" && dependence["change"]["value"].as_f64() > Some(1.5), "{dependence}");
    // How much of its workers' growth the law leaves at eight connections.
    let curves = document["experiment"]["scaling"]["curves"].as_array().unwrap();
    let efficiency = |curve: usize| {
        let lambda = curves[curve]["law"]["lambda_per_s"]["value"].as_f64().unwrap();
        curves[curve]["points"][3]["fitted_per_s"].as_f64().unwrap() / (8.0 * lambda)
    };
    assert!(efficiency(0) > 1.5 * efficiency(1), "{curves:?}");
    assert_eq!(place.json(["show", "last"]), document, "judged again from the archive");
}

#[test]
fn an_experiment_is_announced_told_drawn_and_repeated() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let (a, b) = (format!("a={}", ruler.url("/delay/1000")), format!("b={}", ruler.url("/delay/3000")));
    let args = [&a, &b, "-c", "1,2,4,8", "--keepalive", "on,off", "-d", "6s", "--slot", "40ms", "--seed", "3"];
    let done = place.duel(args).ok();
    let announced = "Experiment: 8 treatments (connections 1, 2, 4, 8; keepalive on, off) on 2 targets";
    assert!(done.stderr.starts_with(announced) && done.stderr.contains("6.00 s of load"), "{}", done.stderr);
    for part in [
        "8 treatments on 2 targets, ",
        "Over all treatments (geometric mean): ",
        "Rate by connections\n",
        "Median response time by keepalive\n",
        "Rate by treatment\n",
        "connections, keepalive ",
        "\n8, off ",
        "Settings connections varied over 1 2 4 8, keepalive varied over on off, GET",
    ] {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout);

    let names = place.duel(["report", "last", "--svg", "charts"]).ok().stdout;
    let is_drawn = |chart: &str| names.contains(&format!("charts/{chart}.svg\n"));
    for chart in ["connections", "connections-latency", "keepalive", "keepalive-latency"] {
        assert!(is_drawn(chart), "{chart}: {names}");
    }
    // On a machine that kept the generator waiting in too many blocks no ratio is known, and none is drawn.
    let document = place.json(["show", "last"]);
    let has_ratio = |level: &Value| {
        level["pairs"].as_array().unwrap().iter().any(|pair| {
            pair["metric"] == "rate" && ["ratio", "low", "high"].iter().all(|figure| pair[figure].is_number())
        })
    };
    let stood_still = || document["doubts"].to_string().contains("generator-stood-still");
    for (number, factor) in ["connections", "keepalive"].iter().enumerate() {
        let levels = document["experiment"]["factors"][number]["levels"].as_array().unwrap();
        let is_known = levels.iter().any(&has_ratio);
        assert!(is_known || stood_still(), "{document}");
        assert_eq!(is_drawn(&format!("{factor}-ratio")), is_known, "{factor}: {names}");
    }
    assert_eq!(is_drawn("verdict"), has_ratio(&document), "{names}");
    let page = place.duel(["report", "last", "-o", "-"]).ok().stdout;
    assert!(page.contains("<h2>Factors</h2>") && page.contains("id=\"chart-connections\""));
    assert!(page.contains("--vary connections=1,2,4,8 --vary keepalive=on,off"), "the command that repeats it");
    let csv = place.duel(["export", "last", "-f", "csv"]).ok().stdout;
    assert!(csv.contains(",treatment") && csv.contains("\"connections 4, keepalive on\""), "{}", &csv[..2000]);

    let first = place.json(["show", "last"]);
    place.duel(["rerun", "last", "-q"]).ok();
    let second = place.json(["show", "last"]);
    assert!(first["run"] != second["run"] && first["plan"] == second["plan"]);
    let said = place.duel(["why", "last"]).refused(2);
    assert!(said.contains("varied factors"), "{said}");
    let said = place.duel([a.as_str(), &b, "-c", "1,2", "--why"]).refused(2);
    assert!(said.contains("--why"), "{said}");
}

#[test]
fn one_target_has_a_table_and_a_law() {
    let _alone = measuring();
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let args = ["run", &ruler.url("/delay/2000"), "-c", "1..8", "-d", "8s", "--seed", "1", "-q"];
    let done = place.duel(args).ok();
    for part in
        ["4 treatments on 1 target, ", "Rate by connections\n", "Scaling law: rate = lambda N", "lambda", "peak at"]
    {
        assert!(done.stdout.contains(part), "{part}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("call"), "there is nothing to compare with: {}", done.stdout);
    let page = place.duel(["report", "last", "-o", "-"]).ok().stdout;
    assert!(page.contains("id=\"chart-scaling\""));
}

#[test]
fn generated_bodies_arrive_whole() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let args = ["run", &ruler.url("/"), "-m", "POST", "--body-size", "3k", "-n", "5", "-c", "1"];
    let document = place.json(args);
    let out = document["targets"][0]["bytes_out"].as_u64().unwrap();
    assert!((5 * 3072..5 * 4096).contains(&out), "{out}");
    assert_eq!(document["plan"]["workload"]["body"]["generated"], 3072);
}

#[test]
fn what_does_not_work_under_one_treatment_is_said_with_it() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let (a, b) = (format!("a={}", ruler.url("/")), format!("b={}", ruler.url("/")));
    let said = place.duel([&a, &b, "--vary", "path=/,/garbage", "-c", "1", "-q"]).refused(1);
    assert!(said.contains("a: at path /garbage: "), "{said}");
    let said = place.duel([&a, &b, "--vary", "path=/,/status/500", "-c", "1", "-d", "3s", "-q"]).refused(1);
    assert!(said.contains("at path /status/500: all ") && said.contains("requests failed"), "{said}");
}

#[test]
fn an_interruption_keeps_complete_blocks() {
    let (place, ruler) = (Place::new(), Ruler::start(Config::default()).unwrap());
    let (a, b) = (format!("a={}", ruler.url("/delay/500")), format!("b={}", ruler.url("/delay/500")));
    let mut command = place.command();
    // An eighth of the time would be warm-up.
    command.args([&a, &b, "-c", "1,2", "-d", "20s", "--slot", "30ms", "--json", "-q"]);
    let running = Running::start(command);
    wait_until("two blocks in the archive", || {
        let done = place.duel(["show", "last", "--json"]);
        done.code == Some(0) && done.json()["experiment"]["blocks"].as_u64() >= Some(2)
    });
    running.signal(rustix::process::Signal::INT);
    let document = running.end().ended(130).json();
    assert_eq!(document["status"], "interrupted");
    assert!(document["experiment"]["blocks"].as_u64() >= Some(2));
    assert_eq!(place.json(["show", "last"]), document);
}

/// nginx over TLS that logs these of its variables for each request.
fn logging(place: &Place, variables: &str) -> crate::common::Server {
    let certificate = Certificate::new(place, "own", "ec");
    let http = format!(
        "log_format factors '{variables}'; access_log {{dir}}/factors.log factors; ssl_session_cache shared:s:1m; ssl_protocols TLSv1.2 TLSv1.3;\n\
         server {{ listen 127.0.0.1:{{1}} ssl; {} location / {{ return 200 ok; }} }}",
        certificate.nginx()
    );
    nginx(place, "nginx", &http)
}

/// How often each line stands in the log of [`logging`]; nginx writes it as each request ends.
fn logged(place: &Place) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(place.path("nginx/factors.log")).unwrap();
    text.lines().fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line.to_owned()).or_default() += 1;
        counts
    })
}

/// Variables of nginx's, the options under which they vary, and the values that each of them takes.
type Seen<'a> = (&'a str, &'a [&'a str], &'a [&'a [&'a str]]);

#[test]
fn what_is_varied_is_what_the_server_sees() {
    let _alone = measuring();
    let [aes, chacha] = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"];
    let ciphers = format!("{aes},{chacha}");
    let cases: [Seen<'_>; 3] = [
        (
            "$request_method $content_length $http_accept_encoding",
            &["-m", "POST,PUT", "--body-size", "100,1k", "--encoding", "identity,gzip"],
            &[&["POST", "PUT"], &["100", "1024"], &["-", "gzip"]],
        ),
        ("$ssl_protocol", &["--tls", "1.2,1.3", "--no-keepalive"], &[&["TLSv1.2", "TLSv1.3"]]),
        (
            "$ssl_cipher $ssl_curve $ssl_session_reused",
            &[
                "--cipher",
                &ciphers,
                "--vary",
                "group=x25519,secp384r1",
                "--vary",
                "resumption=on,off",
                "--no-keepalive",
            ],
            &[&[aes, chacha], &["X25519", "secp384r1"], &[".", "r"]],
        ),
    ];
    for (variables, options, levels) in cases {
        let place = Place::new();
        let server = logging(&place, variables);
        let url = server.https(1, "/");
        place.json([&["run", &url, "-k", "-c", "1", "-d", "5s"], options].concat());
        let treatments = levels.iter().map(|levels| levels.len()).product::<usize>();
        let counts = logged(&place);
        assert_eq!(counts.len(), treatments, "{counts:?}");
        for place in 0..treatments {
            let mut rest = place;
            let level = |levels: &&[&str]| {
                let level = levels[rest % levels.len()].to_owned();
                rest /= levels.len();
                level
            };
            let line: Vec<String> = levels.iter().map(level).collect();
            // Six slots of each; none of them is for nothing.
            assert!(counts.get(&line.join(" ")).is_some_and(|&count| count >= 6), "{line:?}: {counts:?}");
        }
    }
}
