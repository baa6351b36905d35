//! `duel run` against real servers: every request is counted, by us and by the server's own log; every byte is; and what
//! was negotiated is what the server was told to offer.

use crate::common::{Certificate, Place, Server, apache, haproxy, nginx};
use serde_json::{Value, json};
use std::collections::HashSet;

const REQUESTS: u64 = 500;
const CONNECTIONS: u64 = 8;
const SIZE: u64 = 10_007;

/// A page that compresses well, of exactly [`SIZE`] bytes.
fn page() -> Vec<u8> {
    b"All work and no play makes Jack a dull boy. ".iter().copied().cycle().take(SIZE as usize).collect()
}

/// Runs [`REQUESTS`] requests over [`CONNECTIONS`] connections and answers the one target's document.
#[track_caller]
fn run(place: &Place, url: &str, more: &[&str]) -> Value {
    run_ended(place, url, more, 0)
}

/// As [`run`], where `duel` has to end with this exit code.
#[track_caller]
fn run_ended(place: &Place, url: &str, more: &[&str], code: i32) -> Value {
    let (requests, connections) = (REQUESTS.to_string(), CONNECTIONS.to_string());
    let args = [&["run", url, "-n", &requests, "-c", &connections, "-t", "2", "--no-archive"], more].concat();
    let mut document = place.json_ended(args, code);
    let target = document["targets"][0].take();
    let failed: u64 = target["failed"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let number = |field: &str| target[field].as_u64().unwrap();
    assert_eq!(number("started"), REQUESTS);
    assert_eq!(number("started"), number("ops") + failed + number("in_flight"), "{target}");
    assert_eq!(number("connections") + number("reused"), REQUESTS, "{target}");
    target
}

/// All requests were answered in full, over connections that were kept.
#[track_caller]
fn assert_all_ok(target: &Value, body_bytes: u64) {
    assert_eq!(target["ops"], REQUESTS, "{target}");
    assert_eq!(target["statuses"], json!({ "200": REQUESTS }));
    assert_eq!((&target["connections"], &target["reused"]), (&CONNECTIONS.into(), &(REQUESTS - CONNECTIONS).into()));
    assert_eq!(target["body_bytes"], body_bytes * REQUESTS, "{target}");
    assert_eq!(target["negotiated"]["body_bytes"], body_bytes);
    assert!(target["bytes_in"].as_u64() > target["body_bytes"].as_u64(), "heads are bytes, too");
}

/// The server saw the requests and the one of the first contact, each as `begins` says, and the same connections.
#[track_caller]
fn assert_logged(server: &Server, begins: &str, connections: u64) {
    let log = server.access_log(REQUESTS as usize + 1);
    assert_eq!(log.len() as u64, REQUESTS + 1, "{:?}", log.last());
    assert!(log.iter().all(|line| line.starts_with(begins)), "{begins}: {:?}", log.first());
    let seen: HashSet<&str> = log.iter().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(seen.len() as u64, connections + 1, "connections that the server saw requests on");
}

fn serving(place: &Place, more: &str) -> Server {
    place.file("www/page.html", page());
    let root = place.path("www");
    let http = format!("server {{ listen 127.0.0.1:{{1}}; root {}; {more} }}", root.display());
    nginx(place, "nginx", &http)
}

#[test]
fn nginx_keeps_connections() {
    let place = Place::new();
    let server = serving(&place, "");
    let target = run(&place, &server.http(1, "/page.html"), &[]);
    assert_all_ok(&target, SIZE);
    assert_logged(&server, &format!("200 {SIZE} "), CONNECTIONS);
    let seen = &target["negotiated"];
    assert_eq!((&seen["http"], &seen["keeps_alive"], &seen["status"]), (&"HTTP/1.1".into(), &true.into(), &200.into()));
    assert!(seen["server"].as_str().unwrap().starts_with("nginx"), "{seen}");
    assert_eq!(seen["peer"], format!("127.0.0.1:{}", server.port(1)));
    for unknown in ["tls", "cipher", "group", "alpn", "certificate_key", "content_encoding", "via"] {
        assert_eq!(seen[unknown], Value::Null, "{unknown}: unknown is null");
    }
}

#[test]
fn connections_closed_by_us_and_by_nginx() {
    let place = Place::new();
    let server = serving(&place, "");
    let target = run(&place, &server.http(1, "/page.html"), &["--no-keepalive"]);
    assert_eq!((&target["ops"], &target["connections"]), (&REQUESTS.into(), &REQUESTS.into()));
    assert_logged(&server, "200 ", REQUESTS);
    assert_eq!(target["phases_ms"]["connect"]["ops"], REQUESTS);

    let place = Place::new();
    let server = serving(&place, "keepalive_timeout 0;");
    let target = run(&place, &server.http(1, "/page.html"), &[]);
    assert_eq!((&target["ops"], &target["connections"]), (&REQUESTS.into(), &REQUESTS.into()));
    assert_eq!((&target["reused"], &target["negotiated"]["keeps_alive"]), (&0.into(), &false.into()));
    assert_eq!(target["body_bytes"], SIZE * REQUESTS);
    assert_logged(&server, "200 ", REQUESTS);

    // Closed after every tenth request only.
    let place = Place::new();
    let server = serving(&place, "keepalive_requests 10;");
    let target = run(&place, &server.http(1, "/page.html"), &[]);
    assert_eq!(target["ops"], REQUESTS);
    let connections = target["connections"].as_u64().unwrap();
    assert!((REQUESTS / 10..=REQUESTS / 10 + CONNECTIONS).contains(&connections), "{connections}");
}

#[test]
fn answers_without_a_body_and_with_an_error() {
    let place = Place::new();
    let server = serving(&place, "");
    let target = run(&place, &server.http(1, "/page.html"), &["-m", "HEAD"]);
    assert_all_ok(&target, 0);
    assert_logged(&server, "200 0 ", CONNECTIONS);

    let place = Place::new();
    let server = serving(&place, "location /old { return 301 /page.html; }");
    let target = run_ended(&place, &server.http(1, "/missing"), &[], 1);
    assert_eq!((&target["ops"], &target["failed"]), (&0.into(), &json!({ "status": REQUESTS })));
    assert_eq!(target["statuses"], json!({ "404": REQUESTS }));
    assert_eq!(target["rate_per_s"], 0.0);
    assert!(target["failure_examples"][0].as_str().unwrap().contains("404"), "{target}");
    assert_eq!(target["connections"], CONNECTIONS, "an error is no reason to connect anew");
    assert_logged(&server, "404 ", CONNECTIONS);
    // A redirect is an answer, unless it is to be followed.
    let target = run(&place, &server.http(1, "/old"), &[]);
    assert_eq!((&target["ops"], &target["statuses"]), (&REQUESTS.into(), &json!({ "301": REQUESTS })));
    let target = run(&place, &server.http(1, "/old"), &["--follow", "1"]);
    assert_all_ok(&target, SIZE);
}

#[test]
fn compressed_and_not() {
    let place = Place::new();
    let server = serving(&place, "gzip on; gzip_types *; gzip_comp_level 1;");
    let target = run(&place, &server.http(1, "/page.html"), &[]);
    assert_eq!(target["negotiated"]["content_encoding"], "gzip");
    let log = server.access_log(REQUESTS as usize + 1);
    let sent: u64 = log[0].split(' ').nth(1).unwrap().parse().unwrap();
    // Chunked: the log counts the framing of the chunks too, which is no body.
    let body = target["negotiated"]["body_bytes"].as_u64().unwrap();
    assert!(body < sent && sent < body + 40 && sent < SIZE / 10, "{body} of {sent}");
    assert_all_ok(&target, body);
    assert_logged(&server, &format!("200 {sent} "), CONNECTIONS);

    let target = run(&place, &server.http(1, "/page.html"), &["--encoding", "identity"]);
    assert_eq!(target["negotiated"]["content_encoding"], Value::Null);
    assert_all_ok(&target, SIZE);
}

#[test]
fn large_bodies_and_request_bodies() {
    const LARGE: u64 = 2_860_007;
    let place = Place::new();
    place.file("www/file", vec![7; LARGE as usize]);
    let server = serving(&place, "");
    let mut document = place.json(["run", &server.http(1, "/file"), "-n", "20", "-c", "3", "--no-archive"]);
    let target = document["targets"][0].take();
    assert_eq!((&target["ops"], &target["body_bytes"]), (&20.into(), &(20 * LARGE).into()));
    let body = place.file("body", vec![b'x'; 50_000]);
    let bytes_out = |more: &[&str]| {
        let url = server.http(1, "/page.html");
        run_ended(&place, &url, more, 1)["bytes_out"].as_u64().unwrap()
    };
    // nginx answers a POST to a file with 405, having read it.
    let without = bytes_out(&["-m", "POST"]);
    let with = bytes_out(&["-m", "POST", "--body-file", &body]);
    let length_field = "Content-Length: 50000".len() as u64 - "Content-Length: 0".len() as u64;
    assert!(with - without >= REQUESTS * 50_000, "{without} and {with}");
    assert!(with - without <= REQUESTS * (50_000 + length_field + "Content-Length: 0\r\n".len() as u64));
}

#[test]
fn nginx_tls_as_configured() {
    let place = Place::new();
    place.file("www/page.html", page());
    let (ec, rsa) = (Certificate::new(&place, "ec", "ec"), Certificate::new(&place, "rsa", "rsa:2048"));
    let http = format!(
        "root {};\n\
         server {{ listen 127.0.0.1:{{1}} ssl; {} ssl_protocols TLSv1.2; ssl_ciphers ECDHE-ECDSA-AES128-GCM-SHA256; \
         ssl_ecdh_curve prime256v1; }}\n\
         server {{ listen 127.0.0.1:{{2}} ssl; {} ssl_protocols TLSv1.3; ssl_ecdh_curve secp384r1; }}\n\
         server {{ listen 127.0.0.1:{{3}} ssl http2; {} ssl_protocols TLSv1.2 TLSv1.3; }}",
        place.path("www").display(),
        ec.nginx(),
        rsa.nginx(),
        rsa.nginx(),
    );
    let server = nginx(&place, "nginx", &http);
    let target = run(&place, &server.https(1, "/page.html"), &["--ca", &ec.certificate]);
    assert_all_ok(&target, SIZE);
    assert_logged(&server, &format!("200 {SIZE} "), CONNECTIONS);
    assert_negotiated(&target, "1.2", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "secp256r1", "EC-256");
    assert_eq!(target["phases_ms"]["tls"]["ops"], CONNECTIONS);

    let target = run(&place, &server.https(2, "/page.html"), &["--ca", &rsa.certificate, "--no-keepalive"]);
    assert_eq!((&target["ops"], &target["connections"]), (&REQUESTS.into(), &REQUESTS.into()));
    assert_eq!((&target["resumed"], &target["phases_ms"]["tls"]["ops"]), (&0.into(), &REQUESTS.into()));
    assert_negotiated(&target, "1.3", "TLS_AES_256_GCM_SHA384", "secp384r1", "RSA-2048");
    let target = run(&place, &server.https(2, "/page.html"), &["-k", "--no-keepalive", "--resumption"]);
    let resumed = target["resumed"].as_u64().unwrap();
    assert!((REQUESTS / 2..REQUESTS).contains(&resumed), "{resumed} of {REQUESTS} resumed");

    // A server that would rather speak HTTP/2 is not offered it.
    let chacha = ["-k", "--tls", "1.3", "--ciphers", "TLS_CHACHA20_POLY1305_SHA256"];
    let target = run(&place, &server.https(3, "/page.html"), &chacha);
    assert_all_ok(&target, SIZE);
    assert_negotiated(&target, "1.3", "TLS_CHACHA20_POLY1305_SHA256", "x25519", "RSA-2048");
    let target = run(&place, &server.https(3, "/page.html"), &["-k", "--alpn", ""]);
    assert_eq!(target["negotiated"]["alpn"], Value::Null);
}

#[track_caller]
fn assert_negotiated(target: &Value, tls: &str, cipher: &str, group: &str, key: &str) {
    let seen = &target["negotiated"];
    let same = |field: &str, expected: &str| {
        let seen = seen[field].as_str().unwrap_or_default();
        assert!(seen.eq_ignore_ascii_case(expected), "{field}: {seen} instead of {expected}");
    };
    same("tls", tls);
    same("cipher", cipher);
    same("group", group);
    same("certificate_key", key);
    same("alpn", "http/1.1");
    assert!(seen["chain_bytes"].as_u64() > Some(300), "{seen}");
}

#[test]
fn apache_plain_and_tls() {
    let place = Place::new();
    place.file("www/page.html", page());
    let certificate = Certificate::new(&place, "a", "ec");
    let directives = format!(
        "DocumentRoot {}\nKeepAlive On\nListen 127.0.0.1:{{1}}\nListen 127.0.0.1:{{2}}\n\
         <VirtualHost 127.0.0.1:{{2}}>\nSSLEngine on\nSSLCertificateFile {}\nSSLCertificateKeyFile {}\n\
         SSLProtocol TLSv1.2\nSSLCipherSuite ECDHE-ECDSA-CHACHA20-POLY1305\n</VirtualHost>",
        place.path("www").display(),
        certificate.certificate,
        certificate.key
    );
    let server = apache(&place, "apache", &directives);
    let target = run(&place, &server.http(1, "/page.html"), &[]);
    assert_all_ok(&target, SIZE);
    assert!(target["negotiated"]["server"].as_str().unwrap().starts_with("Apache"), "{target}");
    let log = server.access_log(REQUESTS as usize + 1);
    assert_eq!(log.len() as u64, REQUESTS + 1);
    assert!(log.iter().all(|line| *line == format!("200 {SIZE} GET /page.html")), "{:?}", log.first());

    let target = run(&place, &server.https(2, "/page.html"), &["--ca", &certificate.certificate]);
    assert_all_ok(&target, SIZE);
    assert_negotiated(&target, "1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "x25519", "EC-256");
    let target = run(&place, &server.http(1, "/page.html"), &["--no-keepalive", "-m", "HEAD"]);
    assert_eq!((&target["connections"], &target["body_bytes"]), (&REQUESTS.into(), &0.into()));
}

#[test]
fn haproxy_before_nginx() {
    let place = Place::new();
    let origin = serving(&place, "");
    let proxy = haproxy(
        &place,
        "haproxy",
        &format!(
            "frontend f\n  bind 127.0.0.1:{{1}}\n  http-response set-header Via \"1.1 proxy\"\n  default_backend b\n\
             backend b\n  server s 127.0.0.1:{}\n",
            origin.port(1)
        ),
    );
    let target = run(&place, &proxy.http(1, "/page.html"), &[]);
    assert_all_ok(&target, SIZE);
    assert_eq!(target["negotiated"]["via"], "1.1 proxy");
    assert!(target["negotiated"]["server"].as_str().unwrap().starts_with("nginx"), "{target}");
    let log = origin.access_log(REQUESTS as usize + 1);
    assert_eq!(log.len() as u64, REQUESTS + 1, "each request came through once");
}

#[test]
fn nginx_on_a_unix_socket() {
    let place = Place::new();
    place.file("www/page.html", page());
    let http = format!(
        "server {{ listen unix:{{dir}}/socket; root {0}; }} server {{ listen 127.0.0.1:{{1}}; return 204; }}",
        place.path("www").display()
    );
    let server = nginx(&place, "nginx", &http);
    let socket = place.path("nginx/socket");
    let target = run(&place, "http://named.example/page.html", &["--unix-socket", socket.to_str().unwrap()]);
    assert_all_ok(&target, SIZE);
    assert_logged(&server, &format!("200 {SIZE} "), CONNECTIONS);
    assert!(target["negotiated"]["peer"].as_str().unwrap().ends_with("/socket"), "{target}");
}

#[test]
fn host_and_connect_to_choose_the_virtual_server() {
    let place = Place::new();
    let http = "server { listen 127.0.0.1:{1}; server_name one; return 200 one; }\n\
                server { listen 127.0.0.1:{1}; server_name three; return 200 three; }";
    let server = nginx(&place, "nginx", http);
    let target = run(&place, &server.http(1, "/"), &["--host", "three"]);
    assert_all_ok(&target, 5);
    let rule = format!("three:80:127.0.0.1:{}", server.port(1));
    assert_all_ok(&run(&place, "http://three/", &["--connect-to", &rule]), 5);
    assert_all_ok(&run(&place, &server.http(1, "/"), &["-H", "Host: three"]), 5);
    assert_all_ok(&run(&place, &server.http(1, "/"), &[]), 3);
}

#[test]
fn an_open_loop_sends_what_was_asked_for() {
    let place = Place::new();
    let server = serving(&place, "");
    let url = server.http(1, "/page.html");
    let args = ["run", &url, "--rate", "200", "-d", "2s", "-c", "4", "-t", "1", "--no-archive", "--json", "-q"];
    // Whichever way it ends: where others take the CPU, fewer were sent than were due, and it says so.
    let document = place.duel(args).json();
    let target = &document["targets"][0];
    let due = target["started"].as_u64().unwrap() + target["unstarted"].as_u64().unwrap();
    // A constant rate is arithmetic: 400 due times lie in 2 s, whatever the machine was doing.
    assert!((399..=401).contains(&due), "{due}");
    assert_eq!(target["failed"], json!({}));
}

#[test]
fn two_listeners_are_two_targets() {
    let _alone = crate::common::measuring();
    let place = Place::new();
    let http = "log_format port '$server_port'; access_log {dir}/access.log port;\n\
                server { listen 127.0.0.1:{1}; return 200 one; }\n\
                server { listen 127.0.0.1:{2}; return 200 three; }";
    let server = nginx(&place, "nginx", http);
    let urls = [server.http(1, "/"), server.http(2, "/")];
    let args = ["-d", "1s", "-c", "2", "-t", "1", "--slot", "50ms", "--no-early-stop", "--no-archive"];
    let document = place.json([&[urls[0].as_str(), &urls[1]], &args[..]].concat());
    let log = server.access_log(2);
    for (index, bytes) in [3, 5].into_iter().enumerate() {
        let target = &document["targets"][index];
        let ops = target["ops"].as_u64().unwrap();
        assert_eq!(target["body_bytes"], ops * bytes);
        assert_eq!(target["address"], urls[index]);
        let logged = log.iter().filter(|line| **line == server.port(index + 1).to_string()).count() as u64;
        assert!(ops > 0 && logged > ops, "warm-up and first contact are not among the {ops} of {logged}");
    }
}
