//! `--may-copy-database` on a real PostgreSQL and a real MariaDB: what private copies prove, and that nothing of them is left behind.

use crate::common::{MariaDb, Place, Postgres, Running, measuring, wait_until};
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

/// The same of MariaDB, where no session may change that at all. `guarded` has a password, and may make a backup; `loader` has none and may
/// not, so that its owner has to, who may unless he has no login.
fn mariadb_pair(place: &Place, owner_has_login: bool) -> Option<[MariaDb; 2]> {
    const SETUP: &str = "\
CREATE USER loader@localhost;
GRANT ALL ON db.* TO loader@localhost;
CREATE USER guarded@localhost IDENTIFIED BY 'hunter2';
GRANT ALL ON db.* TO guarded@localhost;
GRANT RELOAD, PROCESS, BINLOG MONITOR ON *.* TO guarded@localhost;";
    let start = |name: &str, wait: &str| {
        // What the disk takes is hidden as well as it can be.
        let disk = ["--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=32M", "--log-bin"];
        let wait = ["--binlog-commit-wait-count=2", &format!("--binlog-commit-wait-usec={wait}")];
        let settings = [disk.as_slice(), wait.as_slice()].concat();
        let setup = match owner_has_login {
            true => SETUP.to_owned(),
            false => format!("{SETUP}\nDROP USER '{}'@localhost;", MariaDb::owner()),
        };
        MariaDb::start_with(place, name, &settings, &setup)
    };
    let servers = [start("fast", "0")?, start("slow", "20000")?];
    for server in &servers {
        place.duel(["prepare", &server.address("loader"), "--table-size", "200"]).ok();
    }
    Some(servers)
}

fn args(targets: [String; 2], more: &[&str]) -> Vec<String> {
    let rest = ["--op", "update-index", "--table-size", "200", "-d", "6s", "--why"];
    targets.into_iter().chain(rest.iter().chain(more).map(|&word| word.to_owned())).collect()
}

/// What stands beside a server's data folder and was made by duel.
fn copies(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
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

/// Two copies prove which setting it is, and nothing of them is left behind. A machine that is busy with other things may hide it or leave it
/// less sure, and nothing else is the cause.
fn prove(place: &Place, targets: [String; 2], folder: &Path, changed: &str) {
    let mut document = Value::Null;
    for _ in 0..TRIES {
        document = place.json(args(targets.clone(), &["--may-copy-database", "2GB"]));
        let finding = &document["findings"][0];
        match (finding["cause"].as_str(), finding["confidence"].as_str()) {
            (Some("unknown") | None, _) | (Some("db.config"), Some("likely" | "possible")) => {}
            _ => break,
        }
    }
    let finding = &document["findings"][0];
    assert_eq!((&finding["cause"], &finding["confidence"]), (&"db.config".into(), &"confirmed".into()), "{finding:#}");
    let name = changed.split(' ').next().unwrap();
    assert!(told(&document, &format!("copy-of-1-{name}"))[0].contains(changed), "{finding:#}");
    assert_eq!(told(&document, "copy-of-1").len(), 1, "{finding:#}");
    assert!(copies(folder).is_empty() && processes_with("duel-copy-").is_empty());
}

/// Ends duel in the middle of the copying, and when a server runs on the copy: nothing of it is left, and its password is in no list of
/// processes.
fn end_duel_with_copies(place: &Place, targets: [String; 2], password: (&str, &str), folder: &Path, socket: &str) {
    let is_served = |copy: &Path| copy.join(socket).exists();
    for wants_server in [false, true] {
        // Where a busy machine hides the gap there is nothing to make a copy for, and it is tried anew.
        let mut said = String::new();
        let with_copy = (0..TRIES).find_map(|_| {
            let mut command = place.command();
            command.args(args(targets.clone(), &["--may-copy-database", "2GB"])).env(password.0, password.1);
            let mut duel = Running::start(command);
            let mut is_there = false;
            wait_until("there is a copy, or duel ends without one", || {
                is_there = copies(folder).iter().any(|copy| !wants_server || is_served(copy));
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
        assert!(!seen.is_empty() && seen.iter().all(|line| !line.contains(password.1)), "{seen:?}");
        duel.signal(if wants_server { Signal::INT } else { Signal::KILL });
        duel.end();
        wait_until("the copy is gone", || copies(folder).is_empty() && processes_with("duel-copy-").is_empty());
    }
}

#[test]
fn two_copies_prove_a_setting_that_no_session_may_change() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let targets = [0, 1].map(|index: usize| servers[index].address("guarded", "postgres"));
    let running = || std::fs::read(servers[1].folder.join("data/postmaster.pid")).unwrap();
    let before = running();
    prove(&place, targets, &servers[1].folder, "commit_delay = 0 instead of 20000");
    assert_eq!(running(), before, "the server itself was left alone");
}

#[test]
fn two_copies_prove_a_setting_of_mariadb_that_no_session_may_change() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = mariadb_pair(&place, true) else { return };
    // By its socket alone: the owner of the server makes the backup, and who loads needs no right to.
    let targets = [0, 1].map(|index: usize| servers[index].address("loader"));
    let before = servers[1].number();
    prove(&place, targets, &servers[1].folder, "binlog_commit_wait_usec = 0 instead of 20000");
    assert_eq!(servers[1].number(), before, "the server itself was left alone");
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_copy_behind_and_no_password_is_in_the_process_list() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let targets = [0, 1].map(|index: usize| format!("postgres://guarded@127.0.0.1:{}/postgres", servers[index].port));
    end_duel_with_copies(&place, targets, ("PGPASSWORD", "hunter2"), &servers[1].folder, ".s.PGSQL.5432");
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_copy_of_mariadb_behind_and_no_password_is_in_the_process_list() {
    let _alone = measuring();
    let place = Place::new();
    let Some(servers) = mariadb_pair(&place, false) else { return };
    let targets = [0, 1].map(|index: usize| format!("mysql://guarded@127.0.0.1:{}/db", servers[index].port));
    end_duel_with_copies(&place, targets, ("MYSQL_PWD", "hunter2"), &servers[1].folder, "socket");
}
