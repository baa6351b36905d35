//! What cannot work is refused in one clear sentence, with the right exit code, and never with a secret in it.
//!
//! Exit codes: 1 could not run, 2 bad usage.

use crate::common::{Certificate, Place, Ruler, Running, nginx};
use std::net::TcpListener;

const COULD_NOT_RUN: i32 = 1;
const BAD_USAGE: i32 = 2;
/// In every secret here, and never in what `duel` says.
const SECRET: &str = "s3cr3t";

/// `duel ARGS` is refused in one sentence with these words in it.
#[track_caller]
fn refused(place: &Place, args: &[&str], code: i32, words: &[&str]) {
    let sentence = place.duel(args).refused(code);
    for word in words {
        assert!(sentence.contains(word), "{args:?}: '{word}' is not in: {sentence}");
    }
    assert!(!sentence.contains(SECRET), "{args:?}: {sentence}");
}

/// `duel run URL -n 10 -q` and more.
#[track_caller]
fn run_refused(place: &Place, url: &str, more: &[&str], code: i32, words: &[&str]) {
    refused(place, &[&["run", url, "-n", "10", "-q"], more].concat(), code, words);
}

/// An address at which nobody listens: the port was free a moment ago, and is not given to connections.
fn nobody() -> String {
    format!("http://127.0.0.1:{}/", crate::common::free_port())
}

#[test]
fn targets_that_are_not_there() {
    let place = Place::new();
    run_refused(&place, "http://nosuch.invalid/", &[], COULD_NOT_RUN, &["A: no such host", "nosuch.invalid"]);
    run_refused(&place, &nobody(), &[], COULD_NOT_RUN, &["A: cannot connect", "refused", "is the server running"]);
    let missing = place.path("no.sock");
    let args = ["--unix-socket", missing.to_str().unwrap()];
    run_refused(&place, "http://x/", &args, COULD_NOT_RUN, &["Unix socket", "no.sock", "no such file"]);
    let ruler = Ruler::start(&[]);
    let (there, gone) = (format!("there={}", ruler.url("/")), format!("gone={}", nobody()));
    refused(&place, &[&there, &gone, "-d", "1s", "-q"], COULD_NOT_RUN, &["gone: cannot connect"]);
}

#[test]
fn what_is_wrong_with_every_answer_is_said_and_nothing_is_compared() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (good, bad) = (format!("good={}", ruler.url("/")), format!("bad={}", ruler.url("/status/500")));
    refused(&place, &[&good, &bad, "-d", "1s", "-q"], COULD_NOT_RUN, &["bad: all ", "requests failed", "500"]);
    for (path, words) in [
        ("/garbage", "HTTP"),
        ("/short-body", "500"),
        ("/early-close", "closed"),
        ("/reset", "reset"),
        ("/negative-length", "ength"),
        ("/two-lengths", "ength"),
        ("/bad-chunk", "chunk"),
    ] {
        run_refused(&place, &ruler.url(path), &[], COULD_NOT_RUN, &["A: the first request", words]);
    }
    run_refused(&place, &ruler.url("/never"), &["--timeout", "200ms"], COULD_NOT_RUN, &["first request", "200 ms"]);
}

#[test]
fn http_and_https_confused() {
    let place = Place::new();
    let (plain, tls) = (Ruler::start(&[]), Ruler::start(&["--tls", "p256"]));
    let certificate = Certificate::new(&place, "n", "ec");
    let server = nginx(
        &place,
        "nginx",
        &format!(
            "server {{ listen 127.0.0.1:{{1}}; }} server {{ listen 127.0.0.1:{{2}} ssl; {} }}",
            certificate.nginx()
        ),
    );
    let as_http = |url: String| url.replace("https://", "http://");
    let as_https = |url: String| url.replace("http://", "https://");
    for url in [as_https(plain.url("/")), server.https(1, "/")] {
        run_refused(&place, &url, &[], COULD_NOT_RUN, &["not TLS", "use http://"]);
    }
    run_refused(&place, &server.http(2, "/x?y"), &[], COULD_NOT_RUN, &["expects https", "use https://127.0.0.1"]);
    // The ruler drops what is not TLS without a word, which nobody can tell from a dead server.
    run_refused(&place, &as_http(tls.url("/")), &[], COULD_NOT_RUN, &["the first request to http://127.0.0.1"]);
}

#[test]
fn certificates_that_cannot_be_trusted() {
    let place = Place::new();
    let ca = |name: &str| place.path(name).to_str().unwrap().to_owned();
    let good = Ruler::start(&["--tls", "p256", "--ca-pem", &ca("good")]);
    let expired = Ruler::start(&["--tls", "p256", "--expired", "--ca-pem", &ca("expired")]);
    run_refused(&place, &good.url("/"), &[], COULD_NOT_RUN, &["certificate", "--ca FILE", "--insecure"]);
    place.duel(["run", &good.url("/"), "-n", "3", "-c", "1", "-q", "--ca", &ca("good")]).ok();
    place.duel(["run", &good.url("/"), "-n", "3", "-c", "1", "-q", "-k"]).ok();
    run_refused(&place, &expired.url("/"), &["--ca", &ca("expired")], COULD_NOT_RUN, &["expired"]);
    place.duel(["run", &expired.url("/"), "-n", "3", "-c", "1", "-q", "-k"]).ok();

    let other = Certificate::named(&place, "other", "ec", "DNS:other.example");
    let server = nginx(&place, "nginx", &format!("server {{ listen 127.0.0.1:{{1}} ssl; {} }}", other.nginx()));
    let trusted = ["--ca", other.certificate.as_str()];
    let words = ["another name than 127.0.0.1", "it is for other.example", "--server-name"];
    run_refused(&place, &server.https(1, "/"), &trusted, COULD_NOT_RUN, &words);
    let url = server.https(1, "/x");
    let named = [&["run", &url, "-n", "3", "-c", "1", "-q"], &trusted[..]].concat();
    let answered = place.duel([&named[..], &["--server-name", "other.example"]].concat()).ended(COULD_NOT_RUN);
    assert!(answered.sentence().contains("status 404"), "over TLS: {}", answered.stderr);

    run_refused(&place, &good.url("/"), &["--ca", "/nonexistent/ca"], COULD_NOT_RUN, &["/nonexistent/ca"]);
    let empty = place.file("empty.pem", "no certificate");
    run_refused(&place, &good.url("/"), &["--ca", &empty], COULD_NOT_RUN, &["empty.pem", "certificate"]);
}

#[test]
fn numbers_that_make_no_sense() {
    let place = Place::new();
    let url = nobody();
    for (args, words) in [
        (&["-c", "0"][..], &["-c 0"][..]),
        (&["-c", "x"], &["--connections takes a number of connections, such as 100; got 'x'"]),
        (&["-c", "-1"], &["--connections takes", "got '-1'"]),
        (&["-c", "1.5"], &["--connections takes", "got '1.5'"]),
        (&["-c", "99999999999"], &["--connections takes", "got '99999999999'"]),
        (&["-n", "many"], &["--requests takes a number of requests, such as 10000; got 'many'"]),
        (&["-n", "-1"], &["--requests takes", "got '-1'"]),
        (&["-t", "two"], &["--threads takes a number of threads, such as 2; got 'two'"]),
        (&["--follow", "x"], &["--follow takes a number of redirects, such as 5; got 'x'"]),
        (&["--seed", "x"], &["--seed takes a whole number, such as 42; got 'x'"]),
        (&["-n", "0"], &["-n 0"]),
        (&["-n", "1", "-d", "1s"], &["-n", "-d", "not both"]),
        (&["-t", "0"], &["-t 0"]),
        (&["-t", "100000"], &["-t 100000"]),
        (&["--rate", "fast"], &["--rate takes requests per second, such as 500 or 0.5; got 'fast'"]),
        (&["--rate", "0"], &["--rate takes requests per second", "above 0", "got '0'"]),
        (&["--rate", "-5"], &["--rate takes", "got '-5'"]),
        (&["--rate", "inf"], &["--rate takes", "got 'inf'"]),
        (&["--rate", "1e9"], &["--rate takes", "at most 10 million", "got '1000000000'"]),
        (&["--rate", "1", "--think", "1s"], &["--rate", "--think"]),
        (&["-d", "5y"], &["-d takes a time such as 500ms, 10s or 2m; got '5y'"]),
        (&["--think", "long"], &["--think takes a time such as", "got 'long'"]),
        (&["-d", "0s"], &["-d", "longer than 0"]),
        (&["-d", "-1s"], &["-1"]),
        (&["--timeout", "soon"], &["--timeout takes a time such as", "got 'soon'"]),
        (&["--timeout", "0s"], &["--timeout"]),
        (&["--tls", "1.1"], &["--tls", "1.1", "1.2 and 1.3"]),
        (&["--tls", ""], &["--tls"]),
        (&["--connect-to", "x"], &["--connect-to", "HOST:PORT1:ADDR:PORT2"]),
        (&["--nonsense"], &["--nonsense"]),
    ] {
        refused(&place, &[&["run", &url], args].concat(), BAD_USAGE, words);
    }
    let two = ["http://127.0.0.1:1/", "http://127.0.0.1:2/"];
    for (args, words) in [
        (&["--margin", "200%"][..], &["--margin"][..]),
        (&["--margin", "0"], &["--margin"]),
        (&["--margin", "x"], &["--margin takes a share such as 2% or 0.02; got 'x'"]),
        (&["--slot", "0s"], &["--slot"]),
        (&["--why-budget", "x"], &["--why-budget takes a time such as", "got 'x'"]),
        (&["--seed", "x"], &["--seed", "'x'"]),
    ] {
        refused(&place, &[&two, args].concat(), BAD_USAGE, words);
    }
    assert!(!place.archive().exists(), "bad usage leaves nothing behind");
}

#[test]
fn more_connections_than_descriptors() {
    let place = Place::new();
    // Where the real limit would allow a million, they would be opened.
    let mut command = place.command_within(&["prlimit", "--nofile=4096:4096"]);
    command.args(["run", &nobody(), "-c", "1000000", "-q"]);
    let sentence = Running::start(command).end().refused(COULD_NOT_RUN);
    assert!(sentence.contains("descriptors are needed") && sentence.contains("4096"), "{sentence}");
    assert!(sentence.contains("ulimit -Hn"), "what to try: {sentence}");
}

#[test]
fn targets_that_make_no_sense() {
    let place = Place::new();
    for (args, words) in [
        (&["http://h/"][..], &["needs two targets", "duel run http://h/"][..]),
        (&["x=http://h/"], &["needs two targets", "duel run http://h/"]),
        (&["x=http://h/", "x=http://i/"], &["two targets", "'x'"]),
        (&["frobnicate"], &["'frobnicate' is neither a command nor an address", "duel --help"]),
        (&["frobnicate", "http://h/"], &["'frobnicate' is neither a command nor an address"]),
        (&["rum", "http://h/"], &["'rum' is neither a command nor an address; did you mean run?"]),
        (&["localhost:8080"], &["did you mean http://localhost:8080?"]),
        (&["run", "127.0.0.1:8080/x"], &["did you mean http://127.0.0.1:8080/x?"]),
        (&["http://h/", "b=example.org"], &["did you mean http://example.org?"]),
        (&["run"], &["[NAME=]URL"]),
        (&["run", "http://h/", "http://i/"], &["http://i/"]),
        (&["run", "http://h/a b"], &["space", "%20"]),
        (&["run", "ftp://h/"], &["ftp"]),
        (&["run", "http://"], &["host"]),
        (&["run", "http://h:99999/"], &["port"]),
        (&["run", "http://h:0/"], &["port"]),
        (&["show"], &["RUN"]),
        (&["diff", "last"], &["RUN"]),
        (&["list", "-n", "x"], &["--limit takes a number of runs, such as 20; got 'x'"]),
    ] {
        refused(&place, args, BAD_USAGE, words);
    }
    let done = place.duel([""; 0]).ended(BAD_USAGE);
    assert!(format!("{}{}", done.stdout, done.stderr).contains("Usage: duel"), "no arguments: the help");
    assert!(!place.archive().exists(), "bad usage leaves nothing behind");
}

#[test]
fn secrets_in_the_wrong_place_are_not_shown() {
    let place = Place::new();
    let url = nobody();
    refused(&place, &["run", &url, "-H", "Bearer s3cr3t"], BAD_USAGE, &["Name: value", "colon"]);
    let file = place.file("headers", "Accept: */*\nBearer s3cr3t\n");
    refused(&place, &["run", &url, "-H", &format!("@{file}")], BAD_USAGE, &["colon"]);
    for address in
        ["http://user:s3cr3t@h/", "http://s3cr3t@h/", "http://u:s3cr3t@h/a b", "u:s3cr3t@h", "x=http://u:s3cr3t@h/"]
    {
        refused(&place, &["run", address], BAD_USAGE, &["password", "Authorization"]);
        refused(&place, &[address], BAD_USAGE, &["password"]);
        refused(&place, &["http://h/", address], BAD_USAGE, &["password"]);
    }
    // ssh would be started with it.
    refused(&place, &["facts", "a=postgres://u:s3cr3t@h/db"], BAD_USAGE, &["is no machine"]);
}

#[test]
fn bodies_and_header_files_that_are_not_there() {
    let place = Place::new();
    let url = nobody();
    let empty = place.file("empty", "");
    let folder = place.root().to_str().unwrap();
    for (args, words) in [
        (&["--body-file", "/nonexistent/body"][..], &["/nonexistent/body", "No such file"][..]),
        (&["--body-file", &empty], &["empty"]),
        (&["--body-file", folder], &["folder"]),
        (&["--body-file", &empty, "--body", "x"], &["--body", "--body-file"]),
        (&["-H", "@/nonexistent/headers"], &["/nonexistent/headers"]),
        (&["-H", "@/dev/zero"], &["/dev/zero", "longer than 1 MiB"]),
    ] {
        refused(&place, &[&["run", &url], args].concat(), BAD_USAGE, words);
    }
}

/// There is a report, which tells what was answered, and no result in it.
#[test]
fn a_run_of_which_every_request_failed_is_no_success() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let done = place.duel(["run", &ruler.url("/status/500"), "-n", "10", "-c", "2", "-q"]).ended(COULD_NOT_RUN);
    let sentence = done.sentence();
    assert!(sentence.starts_with("A: none of 10 requests ended well; the first failure: "), "{sentence}");
    assert!(sentence.contains("500"), "{sentence}");
    assert!(done.stdout.contains("No request ended well"), "{}", done.stdout);
    let kept = place.duel(["show", "last"]).ok();
    assert_eq!(kept.stdout, done.stdout, "it is kept, and looking at it is a success");
    place.duel(["rerun", "last", "-q"]).ended(COULD_NOT_RUN);
    assert_eq!(place.json(["list"]).as_array().unwrap().len(), 2);
}

#[test]
fn a_run_that_is_not_kept_is_not_offered_again() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/");
    let run = ["run", &url, "-n", "3", "-c", "1", "-q"];
    let offers =
        |done: &crate::common::Done| ["duel show ", "duel rerun "].map(|command| done.stdout.contains(command));
    assert_eq!(offers(&place.duel([&run[..], &["--no-archive"]].concat()).ok()), [false, false]);
    assert!(!place.archive().exists());
    assert_eq!(offers(&place.duel(run).ok()), [true, true]);
}

/// The servers of a demonstration end with it.
#[test]
fn a_demonstration_is_not_repeated_on_servers_that_are_gone() {
    let place = Place::new();
    // Interrupted as soon as it has something to show, which is all that is looked at here.
    let mut command = place.command();
    command.args(["demo", "--seed", "7", "-q"]);
    let running = Running::start(command);
    crate::common::wait_until("a measured slot is kept", || {
        let rows = place.duel(["list", "--json"]);
        rows.code == Some(0) && rows.json()[0]["slots"].as_u64() > Some(6)
    });
    running.signal(rustix::process::Signal::INT);
    let done = running.end().ended(130);
    assert!(done.stdout.contains("duel show ") && !done.stdout.contains("duel rerun "), "{}", done.stdout);
    assert_eq!(place.duel(["show", "last"]).ok().stdout, done.stdout);
    for verb in ["rerun", "why"] {
        refused(&place, &[verb, "last"], BAD_USAGE, &["demonstration", "duel demo --seed 7"]);
    }
}

#[test]
fn output_options_may_stand_before_a_command_and_others_may_not() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/");
    let archive = place.path("elsewhere");
    let archive = archive.to_str().unwrap();
    let before = place.duel(["-q", "--json", "--archive", archive, "run", &url, "-n", "3", "-c", "1"]).ok();
    assert_eq!((&before.json()["targets"][0]["ops"], before.stderr.as_str()), (&3.into(), ""));
    assert!(std::path::Path::new(archive).exists() && !place.archive().exists());
    assert_eq!(place.duel(["--archive", archive, "list", "--json"]).ok().json().as_array().unwrap().len(), 1);
    for (args, words) in [
        (&["-c", "5", "run", &url][..], &["--connections", "'run'", "behind"][..]),
        (&["--why", "list"], &["--why", "'list'"]),
        (&[&url, "-q", "list"], &["'list' is a command", "before"]),
        (&[&url, "list"], &["'list' is a command", "before"]),
        (&["--archive", archive, "run", &url, "--no-archive"], &["--archive", "--no-archive"]),
        (&["--no-archive", "run", &url, "--archive", archive], &["--archive", "--no-archive"]),
    ] {
        refused(&place, args, BAD_USAGE, words);
    }
    // A name is no command.
    let (one, other) = (format!("run={url}"), format!("list={url}"));
    let found = place.json([&one, &other, "-d", "600ms", "-c", "1", "--slot", "50ms"]);
    assert_eq!((&found["targets"][0]["name"], &found["targets"][1]["name"]), (&"run".into(), &"list".into()));
    // A path is a target, of another kind.
    refused(&place, &["./run", &url], BAD_USAGE, &["'A' is a target for disk, and 'B' one for http"]);
    refused(&place, &["run/", &url], BAD_USAGE, &["'run/' is neither a command nor an address"]);
}

#[test]
fn tls_names_that_do_not_exist() {
    let (place, ruler) = (Place::new(), Ruler::start(&["--tls", "p256"]));
    for url in [ruler.url("/"), ruler.url("/").replace("https:", "HTTPS:")] {
        run_refused(&place, &url, &["-k", "--ciphers", "FOO"], BAD_USAGE, &["'FOO'", "known are TLS_"]);
        run_refused(&place, &url, &["-k", "--groups", "FOO"], BAD_USAGE, &["'FOO'", "known are", "secp256r1"]);
    }
    assert!(!place.archive().exists(), "bad usage leaves nothing behind");
    let tls12 = Ruler::start(&["--tls", "p256", "--tls12"]);
    run_refused(
        &place,
        &tls12.url("/"),
        &["-k", "--tls", "1.3"],
        COULD_NOT_RUN,
        &["speaks none of the TLS versions that were offered", "ersion"],
    );
}

#[test]
fn tls_parameters_without_tls() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let (url, two) = (ruler.url("/"), [ruler.url("/"), ruler.url("/x")]);
    for args in [
        &["--ciphers", "TLS_AES_128_GCM_SHA256"][..],
        &["--groups", "x25519"],
        &["--tls", "1.3"],
        &["--alpn", ""],
        &["--resumption"],
        &["--server-name", "x"],
    ] {
        run_refused(&place, &url, args, BAD_USAGE, &[args[0], "https://"]);
        refused(&place, &[&[two[0].as_str(), &two[1]], args].concat(), BAD_USAGE, &[args[0], "https://"]);
        run_refused(&place, "null:", args, BAD_USAGE, &[args[0], "https://"]);
    }
    run_refused(&place, &url, &["--ciphers", "FOO"], BAD_USAGE, &["'FOO'"]);
    // Whom to trust is no parameter of the measurement; and a redirect may lead to https.
    for args in [&["-k"][..], &["--follow", "1", "--tls", "1.3"]] {
        place.duel([&["run", &url, "-n", "3", "-c", "1", "-q"], args].concat()).ok();
    }
}

#[test]
fn ipv6_literals_work() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no ::1");
        return;
    }
    let listen = duel_ruler::Listen::Tcp("[::1]:0".parse().unwrap());
    let ruler = duel_ruler::Ruler::start(duel_ruler::Config { listen, ..Default::default() }).unwrap();
    let url = ruler.url("/size/100");
    assert!(url.contains("[::1]"), "{url}");
    let document = Place::new().json(["run", &url, "-n", "20", "-c", "2"]);
    assert_eq!(document["targets"][0]["ops"], 20);
    assert_eq!(document["targets"][0]["body_bytes"], 2000);
}

#[test]
fn archives_that_cannot_be_used() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let url = ruler.url("/");
    let text = place.file("notes.txt", "These are my notes, and long enough to be taken for a database. ".repeat(20));
    let below = format!("{text}/runs.sqlite");
    let foreign = place.path("foreign.sqlite");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection.execute_batch("create table songs (name text); insert into songs values ('x')").unwrap();
    drop(connection);
    let foreign = foreign.to_str().unwrap();
    let before = [&text, foreign].map(|path| std::fs::read(path).unwrap());
    for (archive, words) in [
        (below.as_str(), &["notes.txt", "Not a directory", "--archive FILE"][..]),
        (&text, &["notes.txt", "no SQLite database"]),
        (foreign, &["foreign.sqlite", "another program"]),
        (place.root().to_str().unwrap(), &["folder", "--archive FILE"]),
    ] {
        run_refused(&place, &url, &["--archive", archive], COULD_NOT_RUN, words);
        refused(&place, &["list", "--archive", archive], COULD_NOT_RUN, &words[..1]);
    }
    assert_eq!([&text, foreign].map(|path| std::fs::read(path).unwrap()), before, "both are left alone");
    run_refused(&place, &url, &["--archive", ""], BAD_USAGE, &["--archive"]);
    for args in [&["list"][..], &["show", "last"], &["rerun", "last"], &["why", "last"]] {
        refused(&place, args, COULD_NOT_RUN, &["there is no archive", "first run"]);
    }
    assert!(!place.archive().exists(), "looking for a run makes no archive");
    // The first run makes the archive, also where it fails.
    run_refused(&place, "http://nosuch.invalid/", &[], COULD_NOT_RUN, &["no such host"]);
    for args in [&["show", "last"][..], &["diff", "a", "last"], &["rerun", "last~1"], &["why", "x"]] {
        refused(&place, args, COULD_NOT_RUN, &["no run is archived in ", "runs.sqlite yet", "duel run URL"]);
    }
    place.duel(["run", &url, "-n", "3", "-c", "1", "-q"]).ok();
    for args in [&["show", "nosuch"][..], &["show", "last~1"], &["diff", "last", "nosuch"], &["rerun", "nosuch"]] {
        refused(&place, args, COULD_NOT_RUN, &["no run", "duel list"]);
    }
    refused(&place, &["why", "last"], BAD_USAGE, &["single target"]);
}

/// Results are worth more than their copy: they are printed, and the sentence says what happened to the copy.
#[test]
fn a_full_disk_does_not_cost_the_results() {
    const CANNOT: i32 = 77;
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    let folder = place.path("full");
    std::fs::create_dir(&folder).unwrap();
    let script = format!("mount -t tmpfs -o size=100k tmpfs \"$1\" || exit {CANNOT}; shift; exec \"$@\"");
    let mut command = place.command_within(&["unshare", "-rm", "sh", "-c", &script, "sh", folder.to_str().unwrap()]);
    let archive = folder.join("runs.sqlite");
    command.args(["run", &ruler.url("/size/300"), "-d", "2s", "-c", "20", "-q"]).arg("--archive").arg(archive);
    let done = Running::start(command).end();
    if done.code == Some(CANNOT) || done.stderr.starts_with("unshare:") {
        eprintln!("skipped, no file system can be mounted here: {}", done.stderr);
        return;
    }
    let done = done.ended(COULD_NOT_RUN);
    // Before it, that slots cannot be kept for now.
    let sentence = done.stderr.lines().last().unwrap_or_default();
    assert!(sentence.contains("the disk is full"), "{sentence}");
    assert!(sentence.contains("runs.sqlite") && sentence.contains("--archive FILE"), "{sentence}");
    assert!(done.stdout.contains("requests ok"), "the results: {}", done.stdout);
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    let (place, ruler) = (Place::new(), Ruler::start(&[]));
    // The shell's $0 is the program under test.
    let script = format!("\"$0\" run {} -n 10 -q | head -1", ruler.url("/"));
    let done = Running::start(place.command_within(&["sh", "-c", &script])).end().ok();
    assert_eq!((done.stdout.lines().count(), done.stderr.as_str()), (1, ""));
    // A full standard output is one.
    let script = format!("\"$0\" run {} -n 10 -q >/dev/full", ruler.url("/"));
    let sentence = Running::start(place.command_within(&["sh", "-c", &script])).end().ended(COULD_NOT_RUN).sentence();
    assert!(sentence.contains("standard output"), "{sentence}");
}

#[test]
fn a_folder_without_a_slash_is_asked_for_with_one() {
    let place = Place::new();
    // As in a shell: the program runs where the folder is.
    std::fs::create_dir(place.path("f1")).unwrap();
    let sentence = place.duel(["run", "f1"]).refused(BAD_USAGE);
    assert!(sentence.contains("did you mean ./f1?"), "{sentence}");
    refused(&place, &["run", "f2"], BAD_USAGE, &["a target is a URL", "a path with a slash"]);
}
