//! Through real proxies: Apache as a forward proxy, for plain requests and for tunnels, with and without a password.

use crate::common::{Certificate, Place, Server, apache_with, free_port, nginx};
use serde_json::Value;

const COULD_NOT_RUN: i32 = 1;
const BAD_USAGE: i32 = 2;
const PASSWORD: &str = "s3cr3t word";
/// `user:` and the password in base64.
const ENCODED: &str = "dXNlcjpzM2NyM3Qgd29yZA==";
const BODY: &str = "from the origin";

/// An origin: port 1 is plain, port 2 is TLS.
fn origin(place: &Place) -> Server {
    let certificate = Certificate::new(place, "origin", "ec");
    let http = format!(
        "log_format heard '$server_port $http_proxy_authorization. $http_via';\n\
         server {{ listen 127.0.0.1:{{1}}; {log} return 200 '{BODY}'; }}\n\
         server {{ listen 127.0.0.1:{{2}} ssl; {log} {} return 200 '{BODY}'; }}",
        certificate.nginx(),
        log = "access_log {dir}/access.log heard;"
    );
    nginx(place, "origin", &http)
}

/// A forward proxy: port 1 is for everybody, port 2 for `user`, port 3 opens no tunnels to where the tests have servers.
fn forward_proxy(place: &Place) -> Server {
    let hash = std::process::Command::new("openssl").args(["passwd", "-apr1", PASSWORD]).output().unwrap();
    place.file("proxy/users", format!("user:{}", String::from_utf8(hash.stdout).unwrap()));
    let host = |number: usize, allowed: &str, who: &str| {
        format!(
            "Listen 127.0.0.1:{{{number}}}\n<VirtualHost 127.0.0.1:{{{number}}}>\nProxyRequests On\nProxyVia On\n\
             AllowCONNECT {allowed}\n<Proxy \"*\">\n{who}\n</Proxy>\n</VirtualHost>\n"
        )
    };
    let known = "AuthType Basic\nAuthName proxy\nAuthBasicProvider file\nAuthUserFile {dir}/users\nRequire valid-user";
    let directives =
        [host(1, "1-65535", "Require all granted"), host(2, "1-65535", known), host(3, "443", "Require all granted")]
            .concat();
    let modules = ["proxy", "proxy_http", "proxy_connect", "auth_basic", "authn_core", "authn_file", "authz_user"];
    apache_with(place, "proxy", &directives, &modules)
}

fn proxy_address(proxy: &Server, number: usize) -> String {
    format!("127.0.0.1:{}", proxy.port(number))
}

fn assert_answered(target: &Value, ops: u64) {
    let bytes = ops * BODY.len() as u64;
    assert_eq!((&target["ops"], &target["body_bytes"]), (&ops.into(), &bytes.into()), "{target}");
}

#[test]
fn plain_requests_are_handed_on_and_tls_goes_through_tunnels() {
    let place = Place::new();
    let (origin, proxy) = (origin(&place), forward_proxy(&place));
    let through = proxy_address(&proxy, 1);
    for (url, keepalive, via) in [
        (origin.http(1, "/"), true, "1.1 localhost"),
        (origin.http(1, "/"), false, "1.1 localhost"),
        (origin.https(2, "/"), true, "-"),
        (origin.https(2, "/"), false, "-"),
    ] {
        let before = origin.access_log(0).len();
        let more = if keepalive { "--keepalive=on" } else { "--no-keepalive" };
        let args = ["run", &url, "-n", "40", "-c", "4", "-k", "--proxy", &through, more];
        let document = place.json(args);
        let target = &document["targets"][0];
        assert_answered(target, 40);
        assert_eq!(target["connections"], if keepalive { 4 } else { 40 });
        assert_eq!(target["negotiated"]["peer"], through, "{target}");
        // One is the first contact.
        let log = origin.access_log(before + 41);
        assert_eq!(log.len(), before + 41);
        assert!(log[before..].iter().all(|line| line.contains(&format!(" -. {via}"))), "{log:?}");
    }
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains(&format!("proxy {through}")), "{shown}");
}

#[test]
fn two_targets_are_compared_through_one_proxy() {
    let _alone = crate::common::measuring();
    let place = Place::new();
    let (origin, proxy) = (origin(&place), forward_proxy(&place));
    let targets = [format!("plain={}", origin.http(1, "/")), format!("tls={}", origin.https(2, "/"))];
    let through = proxy_address(&proxy, 1);
    let args = ["-d", "1s", "-c", "2", "-k", "--slot", "50ms", "--no-early-stop", "--proxy", &through];
    let document = place.json([&[targets[0].as_str(), &targets[1]], &args[..]].concat());
    for target in document["targets"].as_array().unwrap() {
        assert!(target["ops"].as_u64().unwrap() > 0 && target["failed"] == serde_json::json!({}), "{target}");
    }
}

#[test]
fn who_asks_is_told_to_the_proxy_alone_and_kept_nowhere() {
    let place = Place::new();
    let (origin, proxy) = (origin(&place), forward_proxy(&place));
    let file = place.file("password", format!("{PASSWORD}\n"));
    let as_user = format!("http://user@{}", proxy_address(&proxy, 2));
    let options = ["-n", "10", "-c", "2", "-k", "--proxy", &as_user];
    for url in [origin.http(1, "/"), origin.https(2, "/")] {
        let by_file = [&["run", &url], &options[..], &["--proxy-password-file", &file]].concat();
        assert_answered(&place.json(by_file)["targets"][0], 10);
        let mut command = place.command();
        command.env("DUEL_PROXY_PASSWORD", PASSWORD).args(["run", &url]).args(options).args(["--json", "-q"]);
        assert_answered(&crate::common::Running::start(command).end().ok().json()["targets"][0], 10);
    }
    let log = origin.access_log(44);
    assert!(log.len() == 44 && log.iter().all(|line| line.contains(" -. ")), "the origin heard it: {log:?}");
    for file in ["runs.sqlite", "runs.sqlite-wal"] {
        let bytes = std::fs::read(place.path(file)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains(PASSWORD) && !text.contains(ENCODED), "{file} has the password");
    }
    let shown = place.duel(["show", "last"]).ok().stdout;
    assert!(shown.contains("Proxy-Authorization") && !shown.contains(ENCODED), "{shown}");
    let asked = place.duel(["rerun", "last", "-q"]).refused(BAD_USAGE);
    assert!(asked.contains("Proxy-Authorization"), "{asked}");
    let again = format!("Proxy-Authorization: Basic {ENCODED}");
    assert_answered(&place.json(["rerun", "last", "-H", &again])["targets"][0], 10);
}

#[test]
fn what_a_proxy_refuses_is_said_before_any_load() {
    let place = Place::new();
    let (origin, proxy) = (origin(&place), forward_proxy(&place));
    let refused = |url: &str, proxy: &str, more: &[&str], code: i32| {
        let said = place.duel([&["run", url, "-n", "4", "-q", "-k", "--proxy", proxy], more].concat()).refused(code);
        assert!(!said.contains("s3cr3t") && !said.contains(ENCODED), "{said}");
        said
    };
    let wrong = place.file("wrong", "wrong\n");
    for url in [origin.http(1, "/"), origin.https(2, "/")] {
        let said = refused(&url, &proxy_address(&proxy, 2), &[], COULD_NOT_RUN);
        assert!(said.contains("wants a user and a password (407)"), "{said}");
        let as_user = format!("http://user@{}", proxy_address(&proxy, 2));
        let said = refused(&url, &as_user, &["--proxy-password-file", &wrong], COULD_NOT_RUN);
        assert!(said.contains("does not accept this user and password (407)"), "{said}");
        let said = refused(&url, &as_user, &[], BAD_USAGE);
        assert!(said.contains("DUEL_PROXY_PASSWORD"), "{said}");
        let said = refused(&url, "http://user:s3cr3t@h:1", &[], BAD_USAGE);
        assert!(said.contains("everybody on this machine"), "{said}");
        let nobody = format!("127.0.0.1:{}", free_port());
        let said = refused(&url, &nobody, &[], COULD_NOT_RUN);
        assert!(said.contains("cannot connect to the proxy 127.0.0.1"), "{said}");
    }
    let tunnel = origin.https(2, "/");
    let said = refused(&tunnel, &proxy_address(&proxy, 3), &[], COULD_NOT_RUN);
    assert!(said.contains(&format!("does not allow tunnels to 127.0.0.1:{} (403)", origin.port(2))), "{said}");
    let nobody = format!("https://127.0.0.1:{}/", free_port());
    let said = refused(&nobody, &proxy_address(&proxy, 1), &[], COULD_NOT_RUN);
    assert!(said.contains("cannot reach 127.0.0.1:") && said.contains("(503)"), "{said}");
    // What is no proxy.
    let said = refused(&tunnel, &format!("127.0.0.1:{}", origin.port(1)), &[], COULD_NOT_RUN);
    assert!(said.contains("tunnel") && said.contains("(40"), "{said}");
    let said = refused(&tunnel, &format!("127.0.0.1:{}", origin.port(2)), &[], COULD_NOT_RUN);
    assert!(said.contains("the proxy 127.0.0.1:"), "{said}");
    for (more, word) in [
        (&["--unix-socket", "/x"][..], "--unix-socket"),
        (&["--connect-to", "::h:1"], "--connect-to"),
        (&["--proxy-protocol", "v1"], "--proxy-protocol"),
    ] {
        let said = refused(&tunnel, "h:1", more, BAD_USAGE);
        assert!(said.contains("--proxy") && said.contains(word), "{said}");
    }
}

#[test]
fn the_environments_proxies_are_not_read() {
    let place = Place::new();
    let origin = origin(&place);
    let mut command = place.command();
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"] {
        command.env(name, format!("http://127.0.0.1:{}", free_port()));
    }
    command.args(["run", &origin.http(1, "/"), "-n", "4", "--json", "-q"]);
    assert_answered(&crate::common::Running::start(command).end().ok().json()["targets"][0], 4);
}

#[test]
fn hey_takes_a_proxy_with_user_and_password() {
    let place = Place::new();
    let (origin, proxy) = (origin(&place), forward_proxy(&place));
    let archive = place.archive();
    for url in [origin.http(1, "/"), origin.https(2, "/")] {
        let through = format!("http://user:s3cr3t%20word@{}", proxy_address(&proxy, 2));
        let args = ["hey", "-n", "20", "-c", "2", "-x", &through, "-archive", archive.to_str().unwrap(), &url];
        let done = place.duel(args).ok();
        assert!(done.stdout.contains("[200]\t20 responses"), "{}", done.stdout);
        let stranger = place.duel(["hey", "-n", "4", "-c", "2", "-x", &proxy_address(&proxy, 2), &url]).ok();
        assert!(stranger.stdout.contains("407"), "{}", stranger.stdout);
    }
    let text = String::from_utf8_lossy(&std::fs::read(&archive).unwrap()).into_owned();
    assert!(!text.contains(ENCODED) && !text.contains("s3cr3t"));
}
