//! `--may-copy-database` on a real PostgreSQL and a real MariaDB: what private copies prove, and that nothing of them is left behind.

use crate::common::{MariaDb, Place, Postgres, Running, free_port, measuring, skipped, wait_until};
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
    mariadb_pair_with(place, owner_has_login, &[])
}

/// The same with more settings for the slow one.
fn mariadb_pair_with(place: &Place, owner_has_login: bool, of_slow: &[&str]) -> Option<[MariaDb; 2]> {
    const SETUP: &str = "\
CREATE USER loader@localhost;
GRANT ALL ON db.* TO loader@localhost;
CREATE USER admin@localhost;
GRANT ALL ON *.* TO admin@localhost;
CREATE USER guarded@localhost IDENTIFIED BY 'hunter2';
GRANT ALL ON db.* TO guarded@localhost;
GRANT RELOAD, PROCESS, BINLOG MONITOR ON *.* TO guarded@localhost;";
    let start = |name: &str, wait: &str, more: &[&str]| {
        // What the disk takes is hidden as well as it can be.
        let disk = ["--innodb-flush-log-at-trx-commit=2", "--innodb-log-file-size=32M", "--log-bin"];
        let wait = ["--binlog-commit-wait-count=2", &format!("--binlog-commit-wait-usec={wait}")];
        let settings = [disk.as_slice(), wait.as_slice(), more].concat();
        let setup = match owner_has_login {
            true => SETUP.to_owned(),
            false => format!("{SETUP}\nDROP USER '{}'@localhost;", MariaDb::owner()),
        };
        MariaDb::start_with(place, name, &settings, &setup)
    };
    let servers = [start("fast", "0", &[])?, start("slow", "20000", of_slow)?];
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
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let _alone = measuring();
    let targets = [0, 1].map(|index: usize| servers[index].address("guarded", "postgres"));
    let running = || std::fs::read(servers[1].folder.join("data/postmaster.pid")).unwrap();
    let before = running();
    prove(&place, targets, &servers[1].folder, "commit_delay = 0 instead of 20000");
    assert_eq!(running(), before, "the server itself was left alone");
}

#[test]
fn two_copies_prove_a_setting_of_mariadb_that_no_session_may_change() {
    let place = Place::new();
    let Some(servers) = mariadb_pair(&place, true) else { return };
    let _alone = measuring();
    // By its socket alone: the owner of the server makes the backup, and who loads needs no right to.
    let targets = [0, 1].map(|index: usize| servers[index].address("loader"));
    let before = servers[1].number();
    prove(&place, targets, &servers[1].folder, "binlog_commit_wait_usec = 0 instead of 20000");
    assert_eq!(servers[1].number(), before, "the server itself was left alone");
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_copy_behind_and_no_password_is_in_the_process_list() {
    let place = Place::new();
    let Some(servers) = pair(&place) else { return };
    let _alone = measuring();
    let targets = [0, 1].map(|index: usize| format!("postgres://guarded@127.0.0.1:{}/postgres", servers[index].port));
    end_duel_with_copies(&place, targets, ("PGPASSWORD", "hunter2"), &servers[1].folder, ".s.PGSQL.5432");
}

#[test]
fn a_killed_duel_leaves_nothing_of_a_copy_of_mariadb_behind_and_no_password_is_in_the_process_list() {
    let place = Place::new();
    let Some(servers) = mariadb_pair(&place, false) else { return };
    let _alone = measuring();
    let targets = [0, 1].map(|index: usize| format!("mysql://guarded@127.0.0.1:{}/db", servers[index].port));
    end_duel_with_copies(&place, targets, ("MYSQL_PWD", "hunter2"), &servers[1].folder, "socket");
}

/// Copies of a server that follows another one would not be what it is: none is made, and why is told. Where a busy machine hides the gap
/// there is nothing to make a copy for.
fn refuse(place: &Place, args: &[String], folder: &Path, why: &str) {
    let is_told = (0..TRIES).any(|_| {
        let document = place.json(args);
        let probes = document["probes"].as_array().unwrap().iter();
        let copies: Vec<_> = probes.filter(|probe| probe["id"].as_str().unwrap().starts_with("copy-of-")).collect();
        for probe in &copies {
            let told = probe["unavailable"].as_str().unwrap_or_else(|| panic!("a copy was made: {probe:#}"));
            assert!(told.contains(why), "{told}");
        }
        !copies.is_empty()
    });
    assert!(is_told, "no copy was asked for");
    assert!(copies(folder).is_empty() && processes_with("duel-copy-").is_empty());
}

#[test]
fn no_copy_is_made_of_a_standby_and_what_writes_to_it_is_told_why_not() {
    let place = Place::new();
    let Some(primary) = Postgres::start(&place) else { return };
    let setup = place.file(
        "setup.sql",
        "CREATE ROLE guarded LOGIN REPLICATION IN ROLE pg_monitor; ALTER SYSTEM SET commit_delay = 20000;",
    );
    let of_primary = primary.address("u", "postgres");
    place.json(["run", &of_primary, "--script", &setup, "-n", "1", "--prepared=off"]);
    place.duel(["prepare", &of_primary, "--table-size", "200"]).ok();
    // It begins with what its primary has not read anew.
    let standby = primary.standby(&place, "standby");
    let of_standby = standby.address("u", "postgres");
    wait_until("the standby is up", || {
        place.duel(["run", &of_standby, "--table-size", "200", "-n", "1"]).code == Some(0)
    });
    let _alone = measuring();
    // A setting that no session of his may change, and that standbys have, too.
    let delay = place.file("delay.sql", "SELECT pg_sleep(current_setting('commit_delay')::float8 / 1000000);");
    let targets = [&primary, &standby].map(|server| server.address("guarded", "postgres"));
    let more = ["--script", &delay, "-d", "6s", "--why", "--may-copy-database", "2GB"].map(str::to_owned);
    refuse(&place, &[targets.as_slice(), &more].concat(), &standby.folder, "its server is a standby");
    let document = place.json_ended(["run", &of_standby, "--op", "update-index", "--table-size", "200", "-n", "8"], 1);
    let of = &document["targets"][0];
    assert_eq!(of["failed"], serde_json::json!({ "read-only": 8 }), "{of}");
    assert!(of["failure_examples"].to_string().contains("cannot execute UPDATE in a read-only transaction"), "{of}");
    let said = place.duel(["prepare", &of_standby, "--table-size", "300", "--go-on"]).refused(1);
    assert!(said.contains("cannot execute COPY during recovery"), "{said}");
}

#[test]
fn no_copy_is_made_of_a_mariadb_that_follows_another_one() {
    let place = Place::new();
    let Some(servers) = mariadb_pair(&place, true) else { return };
    let _alone = measuring();
    // What it was set up with is not for who follows it.
    const FOLLOWER: &str = "\
CREATE USER follower IDENTIFIED BY 'hunter2';
GRANT REPLICATION SLAVE ON *.* TO follower;
RESET MASTER;";
    let source = MariaDb::start_with(&place, "source", &["--log-bin", "--server-id=7"], FOLLOWER).unwrap();
    let follow = place.file(
        "follow.sql",
        format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {}, MASTER_USER = 'follower', MASTER_PASSWORD = 'hunter2', \
             MASTER_USE_GTID = no;\nSTART SLAVE;",
            source.port
        ),
    );
    let admin = servers[1].address("admin");
    place.json(["run", &admin, "--script", &follow, "-n", "1", "--prepared=off"]);
    let targets = [0, 1].map(|index: usize| servers[index].address("loader"));
    refuse(
        &place,
        &args(targets, &["--may-copy-database", "2GB"]),
        &servers[1].folder,
        "its server follows another one",
    );
    // As those that follow mostly are.
    let read_only = place.file("read_only.sql", "SET GLOBAL read_only = ON;");
    place.json(["run", &admin, "--script", &read_only, "-n", "1"]);
    let loader = servers[1].address("loader");
    let document = place.json_ended(["run", &loader, "--op", "update-index", "--table-size", "200", "-n", "8"], 1);
    let of = &document["targets"][0];
    assert_eq!(of["failed"], serde_json::json!({ "read-only": 8 }), "{of}");
    assert!(of["failure_examples"].to_string().contains("--read-only"), "{of}");
}

/// A cluster of one, as Galera makes them, which listens for others on this machine only.
#[test]
fn no_copy_is_made_of_a_mariadb_in_a_cluster() {
    // Of a package that Debian's MariaDB depends on.
    const LIBRARY: &str = "/usr/lib/galera/libgalera_smm.so";
    if !Path::new(LIBRARY).exists() {
        return skipped("Galera is not installed");
    }
    let place = Place::new();
    let cluster = [
        "--wsrep-on=ON",
        "--wsrep-cluster-address=gcomm://",
        "--wsrep-node-address=127.0.0.1",
        "--binlog-format=ROW",
        &format!("--wsrep-provider={LIBRARY}"),
        &format!("--wsrep-provider-options=gmcast.listen_addr=tcp://127.0.0.1:{}", free_port()),
    ];
    let Some(servers) = mariadb_pair_with(&place, true, &cluster) else { return };
    // It keeps what it changes to itself now, and is a member all the same: connected to its cluster, as any is.
    let alone = place.file("alone.sql", "SET GLOBAL wsrep_on = OFF;");
    place.json(["run", &servers[1].address("admin"), "--script", &alone, "-n", "1", "--prepared=off"]);
    let _alone = measuring();
    let targets = [0, 1].map(|index: usize| servers[index].address("loader"));
    let args = args(targets, &["--may-copy-database", "2GB"]);
    refuse(&place, &args, &servers[1].folder, "its server is a member of a Galera cluster");
}
