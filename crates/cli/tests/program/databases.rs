//! Databases that fail: said plainly, counted, nothing hangs, and what was measured is there.

use crate::common::{Place, Postgres, Running, wait_until};
use crate::crashes::in_own_mount;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Whatever happens to a server: a run of a second is over by then on the busiest machine.
const NOTHING_HANGS: Duration = Duration::from_secs(60);

/// Runs statements once.
fn execute(place: &Place, address: &str, sql: &str) {
    let file = place.file("setup.sql", sql);
    place.json(["run", address, "--script", &file, "-n", "1"]);
}

fn target(document: &Value) -> &Value {
    &document["targets"][0]
}

#[test]
fn what_cannot_work_is_said_before_any_load() {
    let place = Place::new();
    let Some(server) = Postgres::start(&place) else { return };
    let address = server.address("u", "postgres");
    execute(&place, &address, "CREATE ROLE guarded LOGIN PASSWORD 'right'; CREATE TABLE t (x TEXT);");
    let refused = |args: &[&str], words: &[&str]| {
        let began = Instant::now();
        let said = place.duel(args).refused(1);
        words.iter().for_each(|word| assert!(said.contains(word), "{word}: {said}"));
        assert!(began.elapsed() < NOTHING_HANGS);
    };
    let guarded = format!("postgres://guarded:hunter2@127.0.0.1:{}/postgres", server.port);
    let done = place.duel(["run", &guarded]);
    assert!(!done.stderr.contains("hunter2") && done.stdout.is_empty(), "{}", done.stderr);
    refused(&["run", &guarded], &["password authentication failed"]);
    refused(&["run", &server.address("u", "nowhere")], &["nowhere", "does not exist"]);
    refused(&["run", &address], &["table sbtest1 of 1 is missing", "duel prepare", "--table-size 10000"]);
    place.duel(["prepare", &address, "--table-size", "200"]).ok();
    refused(&["run", &address, "--table-size", "300"], &["has 200 of 300 rows", "--go-on"]);
    let wrong = place.file("wrong.sql", "SELECT 1;\nSELECT y FROM t;");
    refused(&["run", &address, "--script", &wrong], &["wrong.sql, line 2: ", "column \"y\" does not exist"]);
    // Servers of other protocols.
    for (scheme, banner, words) in [
        ("postgres", "HTTP/1.1 400 Bad Request\r\n\r\n", "it speaks HTTP"),
        ("postgres", "SSH-2.0-OpenSSH_9\r\n", "it speaks SSH"),
        ("postgres", "\x09\0\0\0\x0a8.0.1\0", "it speaks MySQL's: use mysql://"),
        ("mysql", "HTTP/1.1 400 Bad Request\r\n\r\n", "no MySQL and no MariaDB server"),
        ("mysql", "\x7fELF\x1b[2J", "no MySQL and no MariaDB server"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = format!("{scheme}://u@127.0.0.1:{}/db", listener.local_addr().unwrap().port());
        let speaker = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(banner.as_bytes());
            let _ = stream.read(&mut [0; 1024]);
        });
        refused(&["run", &other], &[words]);
        speaker.join().unwrap();
    }
    // PostgreSQL waits for who connects to begin, and so does MySQL's client for its server.
    let other = format!("mysql://u@127.0.0.1:{}/db", server.port);
    let words = ["no login within 300 ms", "a MySQL server would speak first", "postgres://"];
    refused(&["run", &other, "--connect-timeout", "300ms"], &words);
}

#[test]
fn a_password_is_taken_from_where_it_may_stand_and_is_nowhere_to_be_seen() {
    const PASSWORD: &str = "hunter2";
    let place = Place::new();
    let Some(server) = Postgres::start(&place) else { return };
    let setup = format!("CREATE ROLE guarded LOGIN PASSWORD '{PASSWORD}';");
    let setup = place.file("setup.sql", setup);
    place.json(["run", &server.address("u", "postgres"), "--script", &setup, "-n", "1", "--no-archive"]);
    std::fs::remove_file(setup).unwrap();
    let address = format!("postgres://guarded@127.0.0.1:{}/postgres", server.port);
    let typed = address.replace("guarded@", &format!("guarded:{PASSWORD}@"));
    let one = place.file("one.sql", "SELECT 1;");
    let run = ["--script", &one, "-d", "2s"];

    let mut command = place.command();
    command.args(["run", &format!("new={typed}")]).args(run);
    let running = Running::start(command);
    let listed = || std::fs::read_to_string(format!("/proc/{}/cmdline", running.pid())).unwrap_or_default();
    wait_until("the list of processes shows the address without the password", || {
        let words = listed();
        words.contains(&format!("new={address}\0")) && words.ends_with("2s\0") && !words.contains(PASSWORD)
    });
    let done = running.end().ok();
    assert!(done.stdout.contains(&address), "{}", done.stdout);
    let page = place.path("page.html");
    place.duel(["report", "last", "-o", page.to_str().unwrap()]).ok();
    for entry in std::fs::read_dir(place.root()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let bytes = std::fs::read(entry.path()).unwrap();
        let is_there = bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
        assert!(!is_there, "{} has the password", entry.path().display());
    }
    assert!(place.archive().exists() && page.exists());
    // What is packed within the archive stands in the document as well.
    for said in [
        &done.stdout,
        &done.stderr,
        &place.duel(["show", "last"]).ok().stdout,
        &place.duel(["show", "last", "--json"]).ok().stdout,
    ] {
        assert!(!said.contains(PASSWORD), "{said}");
    }

    // Nobody typed it: by the environment, by the file, and by neither.
    let once = |environment: Option<&str>| {
        let mut command = place.command();
        command.args(["run", &address, "--script", &one, "-n", "1"]);
        command.envs(environment.map(|password| ("PGPASSWORD", password)));
        Running::start(command).end()
    };
    assert!(once(None).refused(1).contains("password"));
    once(Some(PASSWORD)).ok();
    let line = format!("127.0.0.1:{}:*:guarded:{PASSWORD}\n", server.port);
    let file = place.file(".pgpass", line);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    once(None).ok();
}

#[test]
fn what_fails_under_load_is_counted_by_its_kind() {
    let place = Place::new();
    let Some(server) = Postgres::start(&place) else { return };
    let address = server.address("u", "postgres");
    place.duel(["prepare", &address, "--table-size", "200"]).ok();
    let failed = |args: &[&str]| {
        let document = place.json_ended([&["run"][..], args, &["-n", "12", "-c", "3"]].concat(), 1);
        let of = target(&document);
        assert_eq!(of["started"], 12, "{of}");
        (of["failed"].clone(), of["failure_examples"].to_string())
    };
    let sleep = place.file("sleep.sql", "SELECT pg_sleep(60);");
    let (kinds, said) = failed(&[&address, "--script", &sleep, "--set", "statement_timeout=50ms"]);
    assert_eq!(kinds, serde_json::json!({ "statement-timeout": 12 }), "{said}");
    let (kinds, said) =
        failed(&[&address, "--op", "update-index", "--table-size", "200", "--set", "default_transaction_read_only=on"]);
    assert_eq!(kinds, serde_json::json!({ "read-only": 12 }), "{said}");
    // Bytes that are no UTF-8, in rows and in errors.
    let rows =
        place.file("rows.sql", "SET client_encoding = LATIN1; SELECT chr(233) || 'x' FROM generate_series(1, 3);");
    let document = place.json(["run", &address, "--script", &rows, "-n", "4"]);
    assert_eq!(target(&document)["counters"]["rows"], 12, "{}", target(&document));
    let error =
        place.file("error.sql", "SET client_encoding = LATIN1; SELECT (chr(233) || chr(27) || '[2J')::INTEGER;");
    let (kinds, said) = failed(&[&address, "--script", &error]);
    assert_eq!(kinds, serde_json::json!({ "sql-error": 12 }), "{said}");
    assert!(said.contains("invalid input syntax for type integer") && !said.contains("\\u001b"), "{said}");
    // A user with fewer connections than are asked for: some ops have one, the others are refused.
    execute(&place, &address, "CREATE ROLE few LOGIN CONNECTION LIMIT 2; GRANT SELECT ON sbtest1 TO few;");
    let few = server.address("few", "postgres");
    let document = place.json_ended(["run", &few, "--table-size", "200", "-c", "6", "-n", "600"], 1);
    let of = target(&document);
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let (ok, too_many) = (count(&of["ops"]), count(&of["failed"]["too-many-connections"]));
    assert!(ok > 0 && too_many > 0 && ok + too_many == 600, "{of}");
}

#[test]
fn a_million_rows_take_no_memory_and_are_all_counted() {
    let place = Place::new();
    let Some(server) = Postgres::start(&place) else { return };
    let many = place.file("many.sql", "SELECT repeat('x', 300) FROM generate_series(1, 1000000);");
    // 300 MB an answer; what duel keeps of one is a part of a row.
    let mut command = place.command_within(&["prlimit", "--data=200000000"]);
    command.args(["run", &server.address("u", "postgres"), "--script", &many, "-n", "2", "--json", "-q"]);
    let document = Running::start(command).end().ok().json();
    let of = target(&document);
    assert_eq!((of["ops"].as_u64(), of["counters"]["rows"].as_u64()), (Some(2), Some(2_000_000)), "{of}");
    assert!(of["bytes_in"].as_u64() > Some(600_000_000), "{of}");
}

#[test]
fn a_server_that_is_killed_ends_the_run_with_what_was_measured() {
    let place = Place::new();
    let Some(server) = Postgres::start(&place) else { return };
    let address = server.address("u", "postgres");
    place.duel(["prepare", &address, "--table-size", "200"]).ok();
    let began = Instant::now();
    let mut command = place.command();
    command.args(["run", &address, "--table-size", "200", "-c", "4", "-d", "4s", "--json", "-q"]);
    let running = Running::start(command);
    std::thread::sleep(Duration::from_secs(2));
    server.signal(rustix::process::Signal::QUIT);
    let document = running.end().ended(1).json();
    assert!(began.elapsed() < NOTHING_HANGS);
    let of = target(&document);
    assert!(of["ops"].as_u64() > Some(0) && of["failed"]["lost"].as_u64() >= Some(1), "{of}");
    let again = place.json(["show", "last"]);
    assert_eq!(target(&again)["ops"], of["ops"], "nothing of it is lost");
}

#[test]
fn a_failover_to_a_standby_is_told_and_what_was_committed_is_there() {
    let place = Place::new();
    let Some(primary) = Postgres::start(&place) else { return };
    let prepared = primary.address("u", "postgres");
    place.duel(["prepare", &prepared, "--table-size", "200"]).ok();
    let standby = primary.standby(&place, "standby");
    // From here on a commit is one on both.
    execute(&place, &prepared, "ALTER SYSTEM SET synchronous_standby_names = '*'; SELECT pg_reload_conf();");
    // One address, which leads to one server and then to the other.
    let leads_to = Arc::new(AtomicU16::new(primary.port));
    let address = format!("postgres://u@127.0.0.1:{}/postgres", relay(Arc::clone(&leads_to)));
    let began = Instant::now();
    let mut command = place.command();
    command.args([
        "run",
        &address,
        "--op",
        "update-index",
        "--table-size",
        "200",
        "-c",
        "4",
        "-d",
        "6s",
        "--json",
        "-q",
    ]);
    let running = Running::start(command);
    std::thread::sleep(Duration::from_secs(2));
    leads_to.store(standby.port, Ordering::SeqCst);
    primary.signal(rustix::process::Signal::QUIT);
    std::thread::sleep(Duration::from_secs(1));
    standby.promote();
    let document = running.end().ended(1).json();
    assert!(began.elapsed() < NOTHING_HANGS);
    let of = target(&document);
    let failed = |kind: &str| of["failed"][kind].as_u64().unwrap_or(0);
    assert!(of["ops"].as_u64() > Some(0) && failed("lost") >= 1 && failed("read-only") >= 1, "{of}");
    assert!(of["failure_examples"].to_string().contains("cannot execute UPDATE in a read-only transaction"), "{of}");
    assert!(!document["doubts"].to_string().contains("content-wrong"), "{}", document["doubts"]);
    // It is a primary now.
    place.json(["run", &address, "--op", "update-index", "--table-size", "200", "-n", "8"]);
}

/// Connections that are led on to the port of this machine that is set when they are made.
fn relay(leads_to: Arc<AtomicU16>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(("127.0.0.1", leads_to.load(Ordering::SeqCst))) else { continue };
            for (mut from, mut to) in [(&client, &server), (&server, &client)].map(|(from, to)| {
                let _ = from.set_nodelay(true);
                (from.try_clone().unwrap(), to.try_clone().unwrap())
            }) {
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    port
}

#[test]
fn a_full_disk_under_a_server_is_told_and_nothing_is_said_to_be_written_that_is_not() {
    let place = Place::new();
    let Some(server) = Postgres::start_on_small_disk(&place, 64) else { return };
    let address = server.address("u", "postgres");
    place.duel(["prepare", &address, "--table-size", "200"]).ok();
    server.fill_disk(256 << 10);
    let began = Instant::now();
    let mut command = place.command();
    command.args(["run", &address, "--op", "insert", "--table-size", "200", "-c", "4", "-n", "20000", "--json", "-q"]);
    let running = Running::start(command);
    server.free_disk_when_it_is_full();
    // How many fail until there is room again is a matter of time, and so is what it ends with.
    let document = running.end().json();
    assert!(began.elapsed() < NOTHING_HANGS);
    let of = target(&document);
    assert!(of["ops"].as_u64() > Some(0), "{of}");
    assert!(of["failure_examples"].to_string().contains("No space left on device"), "{of}");
    let doubts = document["doubts"].to_string();
    assert!(!doubts.contains("content-wrong") && !doubts.contains("could not be found out"), "{doubts}");
}

#[test]
fn a_full_disk_is_told_and_nothing_is_said_to_be_written_that_is_not() {
    let place = Place::new();
    let script = "mkdir $F/disk && mount -t tmpfs -o size=2m tmpfs $F/disk || exit 77
        $D prepare sqlite:$F/disk/x.db --table-size 2000 || exit 1
        $D run sqlite:$F/disk/x.db --table-size 2000 --op insert -n 20000 --json -q >$F/run; echo run ended $?";
    let Some((said, errors)) = in_own_mount(&place, "unused", script) else { return };
    assert!(said.contains("run ended 1\n"), "{said}{errors}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(place.path("run")).unwrap()).unwrap();
    let of = target(&document);
    assert!(of["ops"].as_u64() > Some(0) && of["failed"]["sql-error"].as_u64() > Some(0), "{of}");
    assert!(of["failure_examples"].to_string().contains("disk is full"), "{of}");
    assert!(!document["doubts"].to_string().contains("content-wrong"), "{}", document["doubts"]);
}
