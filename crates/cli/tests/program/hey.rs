//! `duel hey`: hey's command lines do what they say, and the output is hey's.

use crate::common::{Done, Place, Running, free_port, golden, wait_until};
use duel_ruler::{Config, Ruler};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

fn ruler() -> Ruler {
    Ruler::start(Config::default()).unwrap()
}

fn hey(place: &Place, args: &[&str]) -> Done {
    place.duel([&["hey"], args].concat())
}

/// With two lists of arguments, one behind the other.
fn hey_with(place: &Place, first: &[&str], then: &[&str]) -> Done {
    hey(place, &[first, then].concat())
}

/// The only line that begins like this, without its beginning.
#[track_caller]
fn line<'a>(text: &'a str, beginning: &str) -> &'a str {
    let lines: Vec<&str> = text.lines().filter_map(|line| line.trim_start().strip_prefix(beginning)).collect();
    assert_eq!(lines.len(), 1, "{beginning:?} in {text}");
    lines[0].trim_start()
}

/// A figure of the summary.
#[track_caller]
fn figure(text: &str, name: &str) -> f64 {
    line(text, name).split_whitespace().next().unwrap().parse().unwrap()
}

/// Text whose figures are `#`, and whose bars are one mark long.
fn masked(text: &str) -> String {
    let mut masked = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() || c == '.' && masked.ends_with('#') { '#' } else { c };
        if !(masked.ends_with(c) && ['#', '■', '∎'].contains(&c)) {
            masked.push(c);
        }
    }
    // Which row of the histogram has a bar is chance.
    masked.replace(['■', '∎'], "")
}

/// A server that notes what it is asked, and answers `ok`.
struct Ear {
    port: u16,
    heard: Arc<Mutex<Vec<(String, String)>>>,
    ends: Arc<AtomicBool>,
    acceptor: Option<JoinHandle<()>>,
}

impl Ear {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (heard, ends): (Arc<Mutex<Vec<_>>>, Arc<AtomicBool>) = Default::default();
        let (notes, over) = (Arc::clone(&heard), Arc::clone(&ends));
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (notes, stream) = (Arc::clone(&notes), stream.unwrap());
                std::thread::spawn(move || listen(stream, &notes));
            }
        });
        Self { port, heard, ends, acceptor: Some(acceptor) }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/path?query", self.port)
    }

    /// The only request, head and body.
    #[track_caller]
    fn only(&self) -> (String, String) {
        let heard = self.heard.lock().unwrap();
        assert_eq!(heard.len(), 1, "{heard:?}");
        heard[0].clone()
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

fn listen(mut stream: TcpStream, notes: &Mutex<Vec<(String, String)>>) {
    stream.set_read_timeout(Some(crate::common::PATIENCE)).unwrap();
    loop {
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") {
            if !matches!(stream.read(&mut byte), Ok(1)) {
                return;
            }
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        stream.read_exact(&mut body).unwrap();
        notes.lock().unwrap().push((head, String::from_utf8(body).unwrap()));
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn help_and_errors() {
    let place = Place::new();
    golden("hey-help.txt", &hey(&place, &["-help"]).ok().stdout);
    let wrong: &[&[&str]] = &[
        &[],
        &["-n"],
        &["-zz", "http://h/"],
        &["-n", "x", "http://h/"],
        &["-z", "10", "http://h/"],
        &["-h2=maybe", "http://h/"],
        &["---n", "http://h/"],
        &["-style", "1999", "http://h/"],
        &["-n", "0", "http://h/"],
        &["-n", "10", "-c", "20", "http://h/"],
        &["-h", "A: b", "http://h/"],
        &["-o", "xml", "http://h/"],
        &["-a", "s3cr3t", "http://h/"],
        &["-H", "s3cr3t", "http://h/"],
        &["-D", "nothing", "http://h/"],
        &["-x", "socks5://h:1", "http://h/"],
        &["-m", "G T", "http://h/"],
        &["h.example"],
        &["http://u:s3cr3t@:x/"],
        &["http://nosuch.invalid/"],
    ];
    let mut text = String::new();
    for args in wrong {
        let done = hey(&place, args);
        assert_eq!(done.stdout, "", "{args:?}");
        assert!(!done.sentence().contains("s3cr3t"));
        text += &format!("$ duel hey {}\n! {}[exit {}]\n\n", args.join(" "), done.stderr, done.code.unwrap());
    }
    golden("hey-errors.txt", &text);
    // clap would take hey's flags for its own.
    let sentence = place.duel(["-q", "hey", "http://h/"]).refused(2);
    assert!(sentence.contains("stands first"), "{sentence}");
    assert!(!place.archive().exists(), "nothing is kept unasked");
}

#[test]
fn what_is_printed() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/size/1000");
    for (name, args) in [
        ("hey-current.txt", ["-n", "60", "-c", "5", "-style", "current"].as_slice()),
        ("hey-2017.txt", ["-n", "60", "-c", "5", "--style=2017"].as_slice()),
        ("hey-csv.txt", ["-n", "60", "-c", "5", "-o", "csv"].as_slice()),
    ] {
        let done = hey_with(&place, args, &[&url]).ok();
        assert_eq!(done.stderr, "");
        let mut lines: Vec<String> = masked(&done.stdout).lines().map(str::to_owned).collect();
        lines.retain(|line| line != "# requests done.");
        // Sixty rows are one.
        lines.dedup_by(|next, line| next == line && line.contains(','));
        golden(name, &(lines.join("\n") + "\n"));
    }
}

#[test]
fn every_request_is_made_and_no_other_one() {
    let (place, ruler) = (Place::new(), ruler());
    let (mut requests, mut connections) = (0, 0);
    for (n, c, more) in [
        (7, 3, [].as_slice()),
        (200, 50, [].as_slice()),
        (1, 1, [].as_slice()),
        (101, 100, ["-disable-keepalive"].as_slice()),
        (33, 4, ["-cpus", "3"].as_slice()),
    ] {
        let (n_text, c_text) = (n.to_string(), c.to_string());
        let url = ruler.url("/size/10");
        let done = hey_with(&place, more, &["-n", &n_text, "-c", &c_text, &url]).ok();
        assert_eq!(line(&done.stdout, "[200]"), format!("{n} responses"));
        assert_eq!(line(&done.stdout, "Total data:"), format!("{} bytes", 10 * n));
        assert_eq!(line(&done.stdout, "Size/request:"), "10 bytes");
        let truth = ruler.settled(crate::common::PATIENCE);
        assert_eq!(truth.requests - requests, n, "-n {n} -c {c}");
        let expected = if more == ["-disable-keepalive"] { n } else { c };
        assert_eq!(truth.connections - connections, expected, "as many connections as workers, and none before");
        (requests, connections) = (truth.requests, truth.connections);
    }
}

/// hey keeps 500 connections at most, and makes those beyond anew for each request.
#[test]
fn as_many_connections_are_kept_as_are_asked_for() {
    let most = most_descriptors();
    if most.is_some_and(|most| most < 2_000) {
        crate::common::skipped(&format!("600 connections here and there need more descriptors than {most:?}"));
        return;
    }
    let (place, ruler) = (Place::new(), ruler());
    let done = hey(&place, &["-n", "1200", "-c", "600", &ruler.url("/size/10")]).ok();
    assert_eq!(line(&done.stdout, "[200]"), "1200 responses");
    let truth = ruler.settled(crate::common::PATIENCE);
    assert_eq!((truth.requests, truth.connections), (1_200, 600));
}

/// Lets this process, which has the server's ends of all connections, open as many descriptors as it may, and says how many.
fn most_descriptors() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum
}

#[test]
fn any_response_is_a_response() {
    let (place, ruler) = (Place::new(), ruler());
    for (path, status) in [("/status/404", 404), ("/status/503", 503), ("/status/204", 204)] {
        let done = hey(&place, &["-n", "20", "-c", "2", &ruler.url(path)]).ok();
        assert_eq!(line(&done.stdout, &format!("[{status}]")), "20 responses");
        assert!(!done.stdout.contains("Error distribution"), "{}", done.stdout);
        assert!(figure(&done.stdout, "Average:") >= 0.0);
    }
    // A body in chunks has a size.
    let done = hey(&place, &["-n", "20", "-c", "2", &ruler.url("/chunked/100000")]).ok();
    assert_eq!(line(&done.stdout, "Size/request:"), "100000 bytes");
}

#[test]
fn redirects_are_followed_unless_they_are_not_to_be() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/redirect/redirect/size/1000");
    let done = hey(&place, &["-n", "20", "-c", "4", &url]).ok();
    assert_eq!((line(&done.stdout, "[200]"), line(&done.stdout, "Total data:")), ("20 responses", "20000 bytes"));
    assert_eq!(ruler.settled(crate::common::PATIENCE).responses_by_status, BTreeMap::from([(200, 20), (302, 40)]));
    let done = hey(&place, &["-n", "20", "-c", "4", "-disable-redirects", &url]).ok();
    assert_eq!(line(&done.stdout, "[302]"), "20 responses");
    let endless = ruler.url(&format!("{}/size/1", "/redirect".repeat(11)));
    let done = hey(&place, &["-n", "4", "-c", "2", &endless]).ok();
    assert_eq!(line(&done.stdout, "[4]"), "stopped after 10 redirects");
}

#[test]
fn where_all_fail_it_ran_all_the_same() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}/", free_port());
    let done = hey(&place, &["-n", "20", "-c", "4", &url]).ok();
    assert_eq!((done.stderr.as_str(), line(&done.stdout, "Average:")), ("", "- secs"));
    assert_eq!(line(&done.stdout, "[20]"), "connection refused");
    assert!(figure(&done.stdout, "Requests/sec:") > 0.0 && !done.stdout.contains("NaN"));
    let done = hey(&place, &["-n", "20", "-c", "4", "-style", "2017", &url]).ok();
    assert!(
        done.stdout.ends_with("All requests done.\n\nError distribution:\n  [20]\tconnection refused\n"),
        "{}",
        done.stdout
    );
    let done = hey(&place, &["-n", "20", "-c", "4", "-o", "csv", &url]).ok();
    assert_eq!(done.stdout.lines().count(), 1, "only the header");
    assert!(done.stderr.starts_with("duel: 20 requests failed and have no row\n  [20]\t"), "{}", done.stderr);
}

#[test]
fn a_request_that_takes_too_long_is_given_up() {
    let (place, ruler) = (Place::new(), ruler());
    let done = hey(&place, &["-n", "4", "-c", "4", "-t", "1", &ruler.url("/never")]).ok();
    assert_eq!(line(&done.stdout, "[4]"), "no complete answer within 1.00 s");
    assert!(figure(&done.stdout, "Total:") >= 1.0);
    // 0 is no limit.
    let done = hey(&place, &["-n", "4", "-c", "4", "-t", "0", &ruler.url("/delay/50000")]).ok();
    assert_eq!(line(&done.stdout, "[200]"), "4 responses");
}

#[test]
fn rows_say_what_happened_to_each_request() {
    let (place, ruler) = (Place::new(), ruler());
    let done =
        hey(&place, &["-n", "30", "-c", "3", "-o", "csv", "-disable-keepalive", &ruler.url("/delay/20000")]).ok();
    let mut lines = done.stdout.lines();
    let header = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset";
    assert_eq!(lines.next(), Some(header));
    let mut last_offset = 0.0_f64;
    let mut rows = 0;
    for row in lines {
        let cells: Vec<f64> = row.split(',').map(|cell| cell.parse().unwrap()).collect();
        let [response, dialup, dns, write, delay, read, status, offset] = cells[..] else { panic!("{row}") };
        assert_eq!(status, 200.0);
        assert!(response >= 0.02 && delay >= 0.0199, "{row}");
        assert!(dns == 0.0 && (dialup + write + delay + read - response).abs() < 0.0004, "parts make the whole: {row}");
        last_offset = last_offset.max(offset);
        rows += 1;
    }
    assert_eq!(rows, 30);
    // Ten after each other on each of three connections.
    assert!(last_offset >= 0.18, "{last_offset}");
}

#[test]
fn a_rate_is_kept_also_where_the_server_is_slow() {
    let (place, ruler) = (Place::new(), ruler());
    // One connection can make 5 of these a second, not 10: what is due waits, and is made.
    let done = hey(&place, &["-n", "10", "-c", "1", "-q", "10", &ruler.url("/delay/200000")]).ok();
    assert_eq!(line(&done.stdout, "[200]"), "10 responses");
    assert!(figure(&done.stdout, "Total:") >= 1.99 && figure(&done.stdout, "Slowest:") >= 1.0, "{}", done.stdout);
    // 20 a second on two connections: the last is due after 0.95 s.
    let done = hey(&place, &["-n", "20", "-c", "2", "-q", "10", &ruler.url("/")]).ok();
    assert!(figure(&done.stdout, "Total:") >= 0.95, "{}", done.stdout);
}

#[test]
fn a_duration_ends_it_whatever_n_says() {
    let (place, ruler) = (Place::new(), ruler());
    let done = hey(&place, &["-z", "700ms", "-n", "1", "-c", "2", &ruler.url("/delay/1000")]).ok();
    assert!(figure(&done.stdout, "Total:") >= 0.7, "{}", done.stdout);
    let responses: u64 = line(&done.stdout, "[200]").strip_suffix(" responses").unwrap().parse().unwrap();
    assert_eq!(ruler.settled(crate::common::PATIENCE).requests, responses, "those under way at the end are waited for");
}

#[test]
fn what_is_sent() {
    let place = Place::new();
    let sent = |args: &[&str]| {
        let ear = Ear::open();
        hey_with(&place, args, &["-n", "1", "-c", "1", &ear.url()]).ok();
        ear.only()
    };
    let own = format!("duel/{}", env!("CARGO_PKG_VERSION"));
    let (head, body) = sent(&[]);
    assert!(head.starts_with("GET /path?query HTTP/1.1\r\nHost: 127.0.0.1:"), "{head}");
    for field in ["Content-Type: text/html", "Accept-Encoding: gzip", &format!("User-Agent: {own}")] {
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{field}: {head}");
    }
    assert!(!head.contains("Connection:") && !head.contains("Content-Length") && body.is_empty(), "{head}");

    let file = place.file("body", "of a file");
    let (head, body) = sent(&[
        "-m",
        "post",
        "-H",
        "X-A: 1",
        "-H",
        "x-a: 2",
        "-A",
        "text/plain",
        "-T",
        "a/b",
        "-U",
        "me",
        "-a",
        "user:pass word",
        "-host",
        "other.example",
        "-d",
        "text",
        "-D",
        &file,
        "-disable-compression",
        "-disable-keepalive",
    ]);
    assert!(head.starts_with("POST /path?query HTTP/1.1\r\nHost: other.example\r\n"), "{head}");
    for field in [
        "x-a: 2",
        "Accept: text/plain",
        "Content-Type: a/b",
        &format!("User-Agent: me {own}"),
        "Authorization: Basic dXNlcjpwYXNzIHdvcmQ=",
        "Content-Length: 9",
        "Connection: close",
    ] {
        assert!(head.contains(&format!("\r\n{field}\r\n")), "{field}: {head}");
    }
    assert!(!head.contains("Accept-Encoding") && !head.contains("X-A: 1"), "{head}");
    assert_eq!(body, "of a file");
    // What stands in the URL itself.
    let ear = Ear::open();
    let url = ear.url().replace("http://", "http://user:pass%20word@").replace("/path", "/a path");
    hey(&place, &["-n", "1", "-c", "1", &url]).ok();
    let head = ear.only().0;
    assert!(head.starts_with("GET /a%20path?query HTTP/1.1\r\nHost: 127.0.0.1:"), "{head}");
    assert!(head.contains("\r\nAuthorization: Basic dXNlcjpwYXNzIHdvcmQ=\r\n"), "{head}");
    let (head, body) = sent(&["-m=PUT", "--d=text", "-H", "Host: h.example"]);
    assert!(head.starts_with("PUT ") && head.contains("\r\nHost: h.example\r\n") && body == "text", "{head}");
}

#[test]
fn a_proxy_is_asked_instead_of_the_target() {
    let place = Place::new();
    for scheme in ["", "http://"] {
        let ear = Ear::open();
        let proxy = format!("{scheme}127.0.0.1:{}", ear.port);
        let done = hey(&place, &["-n", "1", "-c", "1", "-x", &proxy, "http://nosuch.invalid/a"]).ok();
        assert_eq!(line(&done.stdout, "[200]"), "1 responses");
        assert!(ear.only().0.starts_with("GET http://nosuch.invalid/a HTTP/1.1\r\nHost: nosuch.invalid\r\n"));
    }
}

#[test]
fn old_flags_are_accepted_and_late_ones_warned_of() {
    let (place, ruler) = (Place::new(), ruler());
    let url = ruler.url("/");
    let done = hey(&place, &["-more", "-readall", "-allow-insecure", "-n", "4", "-c", "2", &url, "-n", "9"]).ok();
    assert_eq!(line(&done.stdout, "[200]"), "4 responses");
    assert_eq!(done.sentence(), "'-n' stands behind the URL and is ignored, as by hey");
    let done = hey(&place, &["-more", "-style", "2017", "-n", "4", "-c", "2", &url]).ok();
    assert!(done.stdout.contains("\nDetails (average, fastest, slowest):\n"));
}

#[test]
fn certificates_are_not_verified() {
    let place = Place::new();
    let ruler = crate::common::Ruler::start(&["--tls", "p256"]);
    let done = hey(&place, &["-n", "6", "-c", "2", &ruler.url("/size/5")]).ok();
    assert_eq!(line(&done.stdout, "[200]"), "6 responses");
}

#[test]
fn ctrl_c_prints_what_there_is() {
    let (place, ruler) = (Place::new(), ruler());
    for (style, total) in [("current", "Total:"), ("2017", "Total:")] {
        let before = ruler.truth().requests;
        let mut command = place.command();
        command.args(["hey", "-n", "1000000000", "-c", "4", "-style", style, &ruler.url("/delay/1000")]);
        let running = Running::start(command);
        wait_until("requests", || ruler.truth().requests > before + 200);
        running.signal(Signal::INT);
        let done = running.end().ok();
        assert!(figure(&done.stdout, total) > 0.0);
        let responses: u64 = line(&done.stdout, "[200]").strip_suffix(" responses").unwrap().parse().unwrap();
        assert!(responses >= 190 && !done.stdout.contains("Error"), "what was cut did not fail: {}", done.stdout);
        assert!(!done.stdout.contains("All requests done."), "{}", done.stdout);
    }
}

#[test]
fn the_historic_style_tells_twice_a_second() {
    let (place, ruler) = (Place::new(), ruler());
    let done = hey(&place, &["-style", "2017", "-n", "60", "-c", "1", &ruler.url("/delay/20000")]).ok();
    let before: Vec<&str> = done.stdout.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(before.last(), Some(&"All requests done."));
    let counts: Vec<u64> = before[..before.len() - 1]
        .iter()
        .map(|line| line.strip_suffix(" requests done.").unwrap().parse().unwrap())
        .collect();
    // It takes 1.2 s at least.
    assert!(counts.len() >= 2 && counts.is_sorted() && counts.iter().all(|&count| count <= 60), "{counts:?}");
}

#[test]
fn a_link_named_hey_is_hey() {
    let (place, ruler) = (Place::new(), ruler());
    let link = place.path("hey");
    std::os::unix::fs::symlink(crate::common::DUEL, &link).unwrap();
    let output = std::process::Command::new(link).args(["-n", "4", "-c", "2", &ruler.url("/")]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(line(&String::from_utf8(output.stdout).unwrap(), "[200]"), "4 responses");
}

#[test]
fn a_run_is_kept_where_that_is_asked_for() {
    let (place, ruler) = (Place::new(), ruler());
    let archive = place.archive().to_str().unwrap().to_owned();
    hey(&place, &["-n", "12", "-c", "3", "-archive", &archive, &ruler.url("/redirect/size/5")]).ok();
    let run = place.json(["show", "last"]);
    assert_eq!((&run["targets"][0]["ops"], &run["targets"][0]["statuses"]["200"]), (&12.into(), &12.into()), "{run}");
    let shown: Vec<String> = place.duel(["show", "last"]).ok().stdout.split_whitespace().map(str::to_owned).collect();
    assert!(shown.join(" ").contains("at most 10 redirects of each request"), "{shown:?}");
}

#[test]
fn who_reads_no_further_wants_no_more() {
    let (place, ruler) = (Place::new(), ruler());
    let mut command = place.command();
    command.args(["hey", "-n", "300", "-c", "3", "-o", "csv", &ruler.url("/delay/1000")]);
    command.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn failures_that_nobody_wants_to_hear_of_do_not_end_it() {
    let (place, ruler) = (Place::new(), ruler());
    let mut command = place.command();
    command.args(["hey", "-n", "40", "-c", "2", "-o", "csv", "-t", "1", &ruler.url("/reset")]);
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_log_of_progress_is_of_one_load() {
    let place = Place::new();
    for many in [&["-c", "1,2"][..], &["--find-rate", "p99<50ms"]] {
        let args = [&["run", "http://a.example/", "--progress-log"], many].concat();
        let sentence = place.duel(args).refused(2);
        assert!(sentence.starts_with("--progress-log tells the progress of one load"), "{sentence}");
    }
}

#[test]
fn a_log_of_progress_is_for_programs() {
    let (place, ruler) = (Place::new(), ruler());
    let done = place.duel(["run", &ruler.url("/delay/20000"), "-n", "60", "-c", "1", "--progress-log"]).ok();
    let lines: Vec<(f64, &str)> = done
        .stderr
        .lines()
        .map(|line| line.split_once(' ').map(|(seconds, rest)| (seconds.parse().unwrap(), rest)).unwrap())
        .collect();
    let (last, others) = lines.split_last().unwrap();
    assert!(last.0 >= 1.2 && last.1 == "All requests done.", "{lines:?}");
    assert!(others.len() >= 2 && others.iter().all(|(_, rest)| rest.ends_with(" requests done.")), "{lines:?}");
    assert!(others[0].0 >= 0.5 && others[1].0 >= 1.0, "{lines:?}");
    assert!(done.stdout.contains("requests ok"), "the report stands on standard output as ever: {}", done.stdout);
}
