//! `--may-copy-database` on a real PostgreSQL: what private copies prove, and that nothing of them is left behind.

use crate::common::{Place, Postgres, Running, measuring, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// So often is asked what a busy machine may hide.
const TRIES: u32 = 8;

/// A fast server and one whose commits wait for others that never come, which only a superuser may change for a session: 20 ms are far
/// more than a disk takes, and far less than a test has.
fn pair(place: &Place) -> Option<[Postgres; 2]> {
    let slow = Postgres::start_with(place, "slow", &["-ccommit_siblings=0", "-ccommit_delay=20000"])?;
    let servers = [Postgres::start_with(place, "fast", &["-ccommit_siblings=0"])?, slow];
    for server in &servers {
        let setup = place.file(
            "setup.sql",
            "CREATE ROLE guarded LOGIN REPLICATION PASSWORD 'hunter2' IN ROLE pg_monitor; GRANT CREATE ON SCHEMA public TO guarded;",
        );
        place.json(["run", &server.address("u", "postgres"), "--script", &setup, "-n", "1"]);
        place.duel(["prepare", &server.address("guarded", "postgres"), "--table-size", "200"]).ok();
    }
    Some(servers)
}

fn args(targets: [String; 2], more: &[&str]) -> Vec<String> {
    let rest = ["--op", "update-index", "--table-size", "200", "-d", "4s", "--why"];
    targets.into_iter().chain(rest.iter().chain(more).map(|&word| word.to_owned())).collect()
}

/// What stands beside a server's data folder and was made by duel.
fn copies(server: &Postgres) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(&server.folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("duel-copy-")).collect()
}

/// The command lines of all processes that have this text in them.
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " ")).filter(|line| line.contains(text)).collect()
}

fn told<'a>(document: &'a Value, probe: &str) -> Vec<&'a str> {
    let lines = document["findings"][0]["evidence"].as_array().unwrap().iter();
    lines.filter(|line| line["probe"] == probe).map(|line| line["text"].as_str().unwrap()).collect()
}

#[test]
fn two_copies_prove_a_setting_that_no_session_may_change() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let targets = [0, 1].map(|index: usize| servers[index].address("guarded", "postgres"));
    let running = || std::fs::read(servers[1].folder.join("data/postmaster.pid")).unwrap();
    let before = running();
    // A machine that is busy with other things may hide it or leave it less sure, and nothing else is the cause.
    let mut document = Value::Null;
    for _ in 0..TRIES {
        document = place.json(args(targets.clone(), &["--may-copy-database", "256MB"]));
        let finding = &document["findings"][0];
        match (finding["cause"].as_str(), finding["confidence"].as_str()) {
            (Some("unknown") | None, _) | (Some("db.config"), Some("likely" | "possible")) => {}
            _ => break,
        }
    }
    let finding = &document["findings"][0];
    assert_eq!((&finding["cause"], &finding["confidence"]), (&"db.config".into(), &"confirmed".into()), "{finding:#}");
    assert!(told(&document, "copy-of-1-commit_delay")[0].contains("commit_delay = 0 instead of 20000"), "{finding:#}");
    assert_eq!(told(&document, "copy-of-1").len(), 1, "{finding:#}");
    assert!(copies(&servers[1]).is_empty() && processes_with("duel-copy-").is_empty());
    assert_eq!(running(), before, "the server itself was left alone");
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_copy_behind_and_no_password_is_in_the_process_list() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let targets = [0, 1].map(|index: usize| format!("postgres://guarded@127.0.0.1:{}/postgres", servers[index].port));
    // In the middle of the copying, and when a server runs on the copy.
    let is_served = |copy: &Path| copy.join(".s.PGSQL.5432").exists();
    for wants_server in [false, true] {
        // Where a busy machine hides the gap there is nothing to make a copy for, and it is tried anew.
        let mut said = String::new();
        let with_copy = (0..TRIES).find_map(|_| {
            let mut command = place.command();
            command.args(args(targets.clone(), &["--may-copy-database", "256MB"])).env("PGPASSWORD", "hunter2");
            let mut duel = Running::start(command);
            let mut is_there = false;
            wait_until("there is a copy, or duel ends without one", || {
                is_there = copies(&servers[1]).iter().any(|copy| !wants_server || is_served(copy));
                is_there || duel.is_over()
            });
            if is_there {
                return Some(duel);
            }
            said = duel.end().stdout;
            None
        });
        let duel = with_copy.unwrap_or_else(|| panic!("it ended without a copy each time: {said}"));
        let seen = processes_with("duel-copy-");
        assert!(!seen.is_empty() && seen.iter().all(|line| !line.contains("hunter2")), "{seen:?}");
        duel.signal(if wants_server { Signal::INT } else { Signal::KILL });
        duel.end();
        wait_until("the copy is gone", || copies(&servers[1]).is_empty() && processes_with("duel-copy-").is_empty());
    }
}
