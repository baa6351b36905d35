//! `--http2` against real servers: every request is counted, by us and by the server's own log, however many streams share
//! a connection, and whatever ends it.

use crate::common::{Certificate, Place, Server, apache_with, haproxy, nginx};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

const REQUESTS: u64 = 500;
const SIZE: u64 = 10_007;
/// Beyond any initial window, and no multiple of a frame.
const LARGE: u64 = 2_860_007;

fn page(bytes: u64) -> Vec<u8> {
    b"All work and no play makes Jack a dull boy. ".iter().copied().cycle().take(bytes as usize).collect()
}

/// Runs so many requests and answers the one target's document.
#[track_caller]
fn run(place: &Place, url: &str, requests: u64, more: &[&str]) -> Value {
    let requests_text = requests.to_string();
    let args = [&["run", url, "-k", "--http2", "-n", &requests_text, "-t", "2", "--no-archive"], more].concat();
    let mut document = place.json(args);
    let target = document["targets"][0].take();
    let failed: u64 = target["failed"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let number = |field: &str| target[field].as_u64().unwrap();
    assert_eq!(number("started"), requests);
    assert_eq!(number("started"), number("ops") + failed + number("in_flight"), "{target}");
    assert_eq!(number("connections") + number("reused"), requests, "{target}");
    assert_eq!(target["negotiated"]["http"], "HTTP/2");
    target
}

#[track_caller]
fn assert_all_ok(target: &Value, requests: u64, connections: u64, body_bytes: u64) {
    assert_eq!(target["ops"], requests, "{target}");
    assert_eq!(target["statuses"], json!({ "200": requests }));
    assert_eq!(target["connections"], connections, "{target}");
    assert_eq!(target["body_bytes"], body_bytes * requests, "{target}");
    assert!(target["bytes_in"].as_u64() > target["body_bytes"].as_u64(), "heads are bytes, too");
}

/// The server saw the requests and the one of the first contact, each as `begins` says, on so many connections.
#[track_caller]
fn assert_logged(server: &Server, begins: &str, requests: u64, connections: u64) {
    let log = server.access_log(requests as usize + 1);
    assert_eq!(log.len() as u64, requests + 1, "{:?}", log.last());
    assert!(log.iter().all(|line| line.starts_with(begins)), "{begins}: {:?}", log.first());
    let seen: HashSet<&str> = log.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(seen.len() as u64, connections + 1, "connections that the server saw requests on");
}

/// nginx with TLS on its first port, and without on its second.
fn serving(place: &Place, more: &str) -> Server {
    place.file("www/page.html", page(SIZE));
    place.file("www/large.bin", page(LARGE));
    let certificate = Certificate::new(place, "server", "ec");
    let root = place.path("www");
    let http = format!(
        "server {{ listen 127.0.0.1:{{1}} ssl http2; listen 127.0.0.1:{{2}} http2; root {}; {} {more} }}\n\
         server {{ listen 127.0.0.1:{{3}}; client_max_body_size 4m; access_log off; return 200 ok; }}",
        root.display(),
        certificate.nginx()
    );
    nginx(place, "nginx", &http)
}

#[test]
fn one_request_at_a_time_over_tls_and_in_the_open() {
    for number in [1, 2] {
        let place = Place::new();
        let server = serving(&place, "");
        let url = if number == 1 { server.https(1, "/page.html") } else { server.http(2, "/page.html") };
        let target = run(&place, &url, REQUESTS, &["-c", "8"]);
        assert_all_ok(&target, REQUESTS, 8, SIZE);
        assert_logged(&server, &format!("200 {SIZE} "), REQUESTS, 8);
        let seen = &target["negotiated"];
        assert_eq!((&seen["keeps_alive"], &seen["max_streams"]), (&true.into(), &128.into()));
        assert!(seen["server"].as_str().unwrap().starts_with("nginx"), "{seen}");
        let alpn = if number == 1 { "h2".into() } else { Value::Null };
        assert_eq!(seen["alpn"], alpn);
    }
}

#[test]
fn streams_share_connections() {
    let place = Place::new();
    let server = serving(&place, "");
    let target = run(&place, &server.https(1, "/page.html"), REQUESTS, &["-c", "4", "--streams", "10"]);
    assert_all_ok(&target, REQUESTS, 4, SIZE);
    assert_logged(&server, &format!("200 {SIZE} "), REQUESTS, 4);
    let phases = &target["phases_ms"];
    assert_eq!((&phases["connect"]["ops"], &phases["tls"]["ops"]), (&4.into(), &4.into()), "who opened them");
    assert_eq!((&phases["wait"]["ops"], &phases["receive"]["ops"]), (&REQUESTS.into(), &REQUESTS.into()));
}

#[test]
fn measured_slots_of_a_comparison_open_no_connections() {
    let place = Place::new();
    let server = serving(&place, "");
    let (a, b) = (server.https(1, "/page.html"), server.http(2, "/page.html"));
    let args = [&a, &b, "-k", "--http2", "-c", "4", "--streams", "10", "-t", "1", "-d", "1s", "--slot", "50ms"];
    let document = place.json([&args[..], &["--no-archive"]].concat());
    for target in document["targets"].as_array().unwrap() {
        assert!(target["ops"].as_u64() > Some(0), "{target}");
        assert_eq!((&target["connections"], &target["reused"]), (&0.into(), &target["started"]), "{target}");
    }
}

#[test]
fn a_server_that_takes_one_stream_at_a_time_gets_one_at_a_time() {
    let place = Place::new();
    let server = serving(&place, "http2_max_concurrent_streams 1;");
    let target = run(&place, &server.https(1, "/page.html"), REQUESTS, &["-c", "2", "--streams", "10"]);
    assert_all_ok(&target, REQUESTS, 2, SIZE);
    assert_eq!(target["negotiated"]["max_streams"], 1);
    assert_logged(&server, &format!("200 {SIZE} "), REQUESTS, 2);
}

#[test]
fn a_server_that_sends_connections_away_answers_all_requests_once() {
    for (streams, requests_of_each) in [("1", 5), ("10", 5), ("10", 1)] {
        let place = Place::new();
        let server = serving(&place, &format!("keepalive_requests {requests_of_each};"));
        let target = run(&place, &server.https(1, "/page.html"), REQUESTS, &["-c", "2", "--streams", streams]);
        assert_eq!((&target["ops"], &target["statuses"]), (&REQUESTS.into(), &json!({ "200": REQUESTS })), "{target}");
        assert_eq!(target["body_bytes"], SIZE * REQUESTS);
        let log = server.access_log(REQUESTS as usize + 1);
        assert_eq!(log.len() as u64, REQUESTS + 1, "each was answered once");
        let connections = target["connections"].as_u64().unwrap();
        assert!(connections >= REQUESTS / requests_of_each, "{connections} connections");
    }
}

#[test]
fn a_new_connection_for_each_request() {
    let place = Place::new();
    let server = serving(&place, "");
    let target = run(&place, &server.https(1, "/page.html"), 100, &["-c", "4", "--no-keepalive"]);
    assert_all_ok(&target, 100, 100, SIZE);
    assert_logged(&server, &format!("200 {SIZE} "), 100, 100);
    let done = place.duel(["run", &server.https(1, "/"), "--http2", "--streams", "2", "--no-keepalive"]);
    assert!(done.ended(2).stderr.contains("carries one at a time"));
}

#[test]
fn large_bodies_both_ways() {
    let place = Place::new();
    let server = serving(&place, "client_max_body_size 4m; location /up { proxy_pass http://127.0.0.1:{3}; }");
    let target = run(&place, &server.https(1, "/large.bin"), 40, &["-c", "2", "--streams", "5"]);
    assert_all_ok(&target, 40, 2, LARGE);
    let body = place.file("body.bin", page(1_000_003));
    for number in [1, 2] {
        let url = if number == 1 { server.https(1, "/up") } else { server.http(2, "/up") };
        let target = run(&place, &url, 40, &["-c", "2", "--streams", "5", "-m", "POST", "--body-file", &body]);
        assert_all_ok(&target, 40, 2, 2);
        assert!(target["bytes_out"].as_u64().unwrap() > 40 * 1_000_003, "{target}");
    }
    let log = server.access_log(40 + 2 * 40 + 3);
    let posted = log.iter().filter(|line| line.ends_with("POST /up") && line.starts_with("200 2 ")).count();
    assert_eq!(posted, 2 * 41);
}

#[test]
fn heads_errors_and_bodies_without_a_length() {
    let place = Place::new();
    let server =
        serving(&place, "gzip on; gzip_types text/html application/octet-stream; location /no { return 404; }");
    let target = run(&place, &server.https(1, "/page.html"), 60, &["-c", "2", "--streams", "3", "-m", "HEAD"]);
    assert_all_ok(&target, 60, 2, 0);
    let target = run(&place, &server.https(1, "/page.html"), 60, &["-c", "2", "--streams", "3", "--decompress"]);
    assert_eq!((&target["ops"], &target["inflated_bytes"]), (&60.into(), &(60 * SIZE).into()), "{target}");
    assert!(target["body_bytes"].as_u64().unwrap() < 60 * SIZE / 4);
    let args = ["run", &server.https(1, "/no"), "-k", "--http2", "-n", "20", "--no-archive"];
    let document = place.json_ended(args, 1);
    assert_eq!(document["targets"][0]["statuses"], json!({ "404": 20 }));
}

#[test]
fn lists_variables_and_redirects() {
    let place = Place::new();
    let server = serving(&place, "location /old { return 302 /page.html; } location /n { return 200 x; }");
    let old = server.https(1, "/old");
    let args = ["run", &old, "-k", "--http2", "-n", "60", "-c", "2", "--streams", "5", "--follow-each", "3"];
    let target = place.json([&args[..], &["--no-archive"]].concat())["targets"][0].take();
    assert_eq!((&target["ops"], &target["statuses"]), (&60.into(), &json!({ "200": 60 })));
    assert_eq!(
        (&target["connections"], &target["reused"]),
        (&2.into(), &58.into()),
        "once for each op that did not begin with a new connection: both legs go to one origin"
    );
    // The first contact asks once for itself, and once to see where it leads.
    assert_eq!(server.access_log(2 * 60 + 3).len(), 2 * 60 + 3);

    let list: String = (0..50).map(|number| format!("/n/{number}\n")).collect();
    let list = place.file("list", list);
    let target = run(&place, &server.https(1, "/"), 50, &["-c", "2", "--streams", "5", "--urls", &list]);
    assert_eq!(target["ops"], 50);
    let paths: HashSet<String> = server
        .access_log(2 * 60 + 1 + 51)
        .iter()
        .filter_map(|line| line.split(' ').nth(5))
        .map(str::to_owned)
        .collect();
    assert!((0..50).all(|number| paths.contains(&format!("/n/{number}"))), "each was sent");
}

#[test]
fn apache_and_haproxy() {
    let place = Place::new();
    let certificate = Certificate::new(&place, "server", "ec");
    place.file("www/page.html", page(SIZE));
    let directives = format!(
        "Listen 127.0.0.1:{{1}}\nDocumentRoot {}\nProtocols h2\n<VirtualHost *:*>\nSSLEngine on\n\
         SSLCertificateFile {}\nSSLCertificateKeyFile {}\n</VirtualHost>",
        place.path("www").display(),
        certificate.certificate,
        certificate.key
    );
    let server = apache_with(&place, "apache", &directives, &["http2"]);
    let target = run(&place, &server.https(1, "/page.html"), REQUESTS, &["-c", "4", "--streams", "10"]);
    assert_eq!((&target["ops"], &target["body_bytes"]), (&REQUESTS.into(), &(SIZE * REQUESTS).into()), "{target}");
    assert_eq!(server.access_log(REQUESTS as usize + 1).len() as u64, REQUESTS + 1);

    let place = Place::new();
    let certificate = Certificate::new(&place, "server", "ec");
    let both = [&certificate.certificate, &certificate.key].map(|file| std::fs::read_to_string(file).unwrap()).concat();
    let pem = place.file("both.pem", both);
    let server = haproxy(
        &place,
        "haproxy",
        &format!(
            "frontend f\n  bind 127.0.0.1:{{1}} ssl crt {pem} alpn h2\n  \
             http-request return status 200 content-type text/plain string hello\n"
        ),
    );
    let target = run(&place, &server.https(1, "/"), REQUESTS, &["-c", "4", "--streams", "10"]);
    assert_all_ok(&target, REQUESTS, 4, 5);
}

#[test]
fn a_server_without_http2_is_told_in_one_sentence_before_any_load() {
    let place = Place::new();
    let certificate = Certificate::new(&place, "server", "ec");
    let http = format!(
        "server {{ listen 127.0.0.1:{{1}} ssl; {} return 200 x; }} server {{ listen 127.0.0.1:{{2}}; return 200 x; }}",
        certificate.nginx()
    );
    let server = nginx(&place, "nginx", &http);
    let said = |url: &str| place.duel(["run", url, "-k", "--http2", "-n", "10", "--no-archive"]).ended(1).stderr;
    let over_tls = said(&server.https(1, "/"));
    assert!(over_tls.contains("does not choose HTTP/2 when it is offered"), "{over_tls}");
    let open = said(&server.http(2, "/"));
    assert!(open.contains("the server answers in HTTP/1.x"), "{open}");
    let log = server.access_log(1);
    assert!(log.iter().all(|line| !line.contains("GET")), "{log:?}");
}

#[test]
fn hey_says_which_version_of_http_it_is() {
    let place = Place::new();
    let server = serving(&place, "");
    let hey = |url: &str| place.duel(["hey", "-h2", "-n", "200", "-c", "20", url]).ended(0);
    let done = hey(&server.https(1, "/page.html"));
    assert!(done.stdout.contains("[200]\t200 responses"), "{}", done.stdout);
    assert_eq!(done.stderr, "");
    let log = server.access_log(200);
    assert_eq!(log.len(), 200, "no request besides");
    let connections: HashSet<&str> = log.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(connections.len(), 1, "as hey: all on one connection");
    let done = hey(&server.http(3, "/"));
    assert!(done.stdout.contains("[200]\t200 responses"), "{}", done.stdout);
    assert!(done.stderr.contains("over HTTP/1.1"), "{}", done.stderr);
}

/// What a client sent over one connection.
type Sent = Arc<Mutex<Vec<u8>>>;

/// Stands between a client and the server on this port, and keeps what the client sends; answers its own port.
fn listening_in(server: u16) -> (u16, Arc<Mutex<Vec<Sent>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let all: Arc<Mutex<Vec<Sent>>> = Arc::default();
    let connections = Arc::clone(&all);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", server)).unwrap();
            let sent = Sent::default();
            connections.lock().unwrap().push(Arc::clone(&sent));
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let mut octets = [0; 65_536];
                while let Ok(count @ 1..) = from.read(&mut octets) {
                    sent.lock().unwrap().extend_from_slice(&octets[..count]);
                    if to.write_all(&octets[..count]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
            let (mut from, mut to) = (server, client);
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    (port, all)
}

/// The window for streams that a client announced, how many requests it sent, and how often it opened a stream's window again;
/// `None` where it only looked whether somebody listens.
fn window_of(sent: &Sent) -> Option<(u32, u64, u64)> {
    const PREFACE_BYTES: usize = 24;
    let sent = sent.lock().unwrap();
    let (mut rest, mut seen) = (sent.get(PREFACE_BYTES..)?, (0, 0, 0));
    while let Some((header, behind)) = rest.split_first_chunk::<9>() {
        let (length, stream) = (u32::from_be_bytes([0, header[0], header[1], header[2]]), &header[5..]);
        let Some((payload, behind)) = behind.split_at_checked(length as usize) else { break };
        match header[3] {
            1 => seen.1 += 1,
            4 => {
                let window = payload.chunks(6).find(|setting| setting[..2] == [0, 4]);
                seen.0 = window.map_or(seen.0, |setting| u32::from_be_bytes(setting[2..].try_into().unwrap()));
            }
            8 => seen.2 += u64::from(stream != [0; 4]),
            _ => {}
        }
        rest = behind;
    }
    Some(seen)
}

#[test]
fn a_server_has_the_window_that_was_asked_for_and_a_small_one_has_to_be_opened_often() {
    let place = Place::new();
    let server = serving(&place, "");
    let (port, heard) = listening_in(server.port(2));
    let url = format!("http://127.0.0.1:{port}/large.bin");
    let windows = |more: &[&str]| {
        heard.lock().unwrap().clear();
        assert_all_ok(&run(&place, &url, 10, &[&["-c", "2"], more].concat()), 10, 2, LARGE);
        heard.lock().unwrap().iter().filter_map(window_of).collect::<Vec<_>>()
    };
    let seen = windows(&[]);
    assert!(seen.iter().all(|(window, _, opened)| (*window, *opened) == (1 << 30, 0)), "{seen:?}");
    let seen = windows(&["--h2-window", "64k"]);
    assert_eq!(seen.iter().map(|(_, requests, _)| requests).sum::<u64>(), 11, "with that of the first contact");
    for (window, requests, opened) in seen {
        // Of each body all but the last window needs leave, which is given for more than half a window at a time.
        let (least, most) = ((LARGE - 1) / 65_536, LARGE / 32_768);
        assert_eq!(window, 65_536);
        assert!((least * requests..=most * requests).contains(&opened), "{opened} for {requests} requests");
    }

    heard.lock().unwrap().clear();
    let args = ["run", &url, "-k", "--http2", "-c", "2", "--h2-window", "64k,1M", "-d", "1s", "--seed", "1"];
    let done = place.duel(args).ok();
    for told in ["h2-window varied over 64 KiB 1 MiB", "http2 on"] {
        assert!(done.stdout.split_whitespace().collect::<Vec<_>>().join(" ").contains(told), "{}", done.stdout);
    }
    let announced: BTreeSet<u32> = heard.lock().unwrap().iter().filter_map(window_of).map(|seen| seen.0).collect();
    assert_eq!(announced, [1 << 16, 1 << 20].into());
    let page = place.duel(["report", "last", "-o", "-"]).ok().stdout;
    assert!(page.contains("--http2 -k --vary h2-window=65536,1048576"), "the command that repeats it");

    let refused = place.duel(["run", &url, "--h2-window", "64k"]).ended(2).stderr;
    assert!(refused.contains("--h2-window has a meaning with --http2 only"), "{refused}");
}
