//! What a private copy of a server is made with, on a real one.

use super::mariadb::{Server, server};
use crate::address::{Address, ServerAddress, System, parse};
use crate::copy::mariadb::{rewrite, settings, warm};
use crate::copy::warm::Warmth;
use crate::database::Database;
use crate::facts;
use crate::kind;
use crate::mysql::facts as mysql;
use duel_model::{CopySetting, MILLISECOND_NS, SECOND_NS};
use std::path::Path;
use std::time::{Duration, Instant};

fn at(address: &str) -> ServerAddress {
    let Ok(Address::Server(address)) = parse(address) else { panic!("{address}") };
    address
}

fn database(server: &Server) -> Database {
    let (client, ..) = kind::connect(&at(&server.address("db", "")), 30 * SECOND_NS).unwrap();
    Database::Server(Box::new(client), System::Mysql)
}

#[test]
#[cfg(target_os = "linux")]
fn the_process_behind_a_socket_is_the_server_that_has_written_its_number_down() {
    let Some(server) = server() else { return };
    let rows = database(server).rows("SELECT @@pid_file, @@socket").unwrap();
    let [Some(file), Some(socket)] = rows[0].as_slice() else { panic!("{rows:?}") };
    let written = std::fs::read_to_string(file).unwrap();
    let found = crate::listener::of(&at(&format!("mysql://native:secret@/db?socket={socket}")), 30 * SECOND_NS);
    assert_eq!(found.map(|pid| pid.to_string()), Ok(written.trim().to_owned()));
}

/// MySQL has no list of them, MariaDB has, and both say of each when they are asked for it.
#[test]
fn what_a_session_has_of_its_own_is_found_out_by_asking_for_it() {
    let Some(server) = server() else { return };
    let mut database = database(server);
    let listed = facts::read(&mut database, 0).unwrap().list("sql.may_set").to_vec();
    assert_eq!(facts::mysql_may_set(&mut database), Some(listed.clone()));
    assert!(listed.len() > 5 && listed.len() < mysql::SETTINGS.len(), "{listed:?}");
}

#[test]
fn a_copy_has_its_servers_settings_and_what_it_does_not_have_is_told() {
    let Some(server) = server() else { return };
    let mut database = database(server);
    let read = |database: &mut Database, change: Option<&CopySetting>| {
        settings::read(database, Path::new("/x"), change).unwrap().map_err(|why| why.0)
    };
    let before = read(&mut database, None).unwrap();
    // What a server was told to do as it started, a copy does not do once more.
    assert_eq!(before.left_out, ["init_file", "performance_schema_instrument"]);
    let has = |line: &str| before.lines.iter().any(|has| has == line);
    assert!(
        has("transaction_isolation = \"REPEATABLE-READ\"") && has("secure_file_priv = \"/x/tmp\""),
        "{:?}",
        before.lines
    );
    assert!(
        has("loose_innodb_flush_log_at_trx_commit = \"0\"") && has("plugin_load_add = \"auth_ed25519.so\""),
        "{:?}",
        before.lines
    );
    // It has a log for replication no more than its server, and listens at its own place alone.
    assert!(
        has("skip_log_bin") && has("skip_networking") && has("datadir = \"/x/data\"") && has("socket = \"/x/socket\"")
    );
    let of_server = ["ssl_key", "port", "bind_address", "init_file"];
    assert!(before.lines.iter().all(|line| of_server.iter().all(|name| !line.contains(name))), "{:?}", before.lines);
    // The last line of a name counts.
    let (fact, name) = ("sql.flush_at_commit", "innodb_flush_log_at_trx_commit");
    let set = CopySetting { fact: fact.to_owned(), name: name.to_owned(), value: "1".to_owned() };
    let changed = read(&mut database, Some(&set)).unwrap();
    assert_eq!(changed.lines.last().unwrap(), "innodb_flush_log_at_trx_commit = \"1\"");
    // What a server is called after it was started does not change with its logs.
    let version = database.text("SELECT version()").unwrap().unwrap();
    assert!(before.lines.iter().all(|line| !line.starts_with("version")), "{:?}", before.lines);
    let set =
        CopySetting { fact: "sql.general_log".to_owned(), name: "general_log".to_owned(), value: "ON".to_owned() };
    let lines = read(&mut database, Some(&set)).unwrap().lines;
    assert!(lines.contains(&format!("version = \"{version}\"")), "{lines:?}");
    database.run("SET GLOBAL event_scheduler = ON").unwrap();
    let mut left_out = read(&mut database, None).unwrap().left_out;
    left_out.sort();
    assert_eq!(left_out, ["event_scheduler", "init_file", "performance_schema_instrument"]);
    database.run("SET GLOBAL event_scheduler = OFF").unwrap();
    // A library that is not known to do nothing by itself.
    database.run("INSTALL SONAME 'ha_blackhole'").unwrap();
    let why = read(&mut database, None).unwrap_err();
    database.run("UNINSTALL SONAME 'ha_blackhole'").unwrap();
    assert!(why.contains("its server loads ha_blackhole.so"), "{why}");
}

/// What is too long for a line of a file of options would be read as further lines.
#[test]
fn a_setting_that_is_too_long_makes_no_copy() {
    let Some(server) = server() else { return };
    let mut database = database(server);
    let change = CopySetting {
        fact: "sql.x".to_owned(),
        name: "init_connect".to_owned(),
        value: format!("{}plugin_dir=/tmp", "x".repeat(5_000)),
    };
    let why = settings::read(&mut database, Path::new("/x"), Some(&change)).unwrap().map(drop).unwrap_err().0;
    assert_eq!(why, "its setting init_connect is longer than a line of a file of options may be");
}

#[test]
fn a_copy_is_as_warm_as_its_memory_and_time_allow_and_a_reading_that_is_given_up_does_not_go_on() {
    let Some(server) = server() else { return };
    let mut database = database(server);
    for set in
        ["CREATE DATABASE warm", "CREATE TABLE warm.`a``b` (id INT PRIMARY KEY, k INT, KEY `k``k` (k)) ENGINE=InnoDB"]
    {
        database.run(set).unwrap();
    }
    let reader = at(&server.address("warm", "").replace("native:", "warmer:"));
    assert_eq!(warm::warm(&reader, 60 * SECOND_NS), Warmth::All);
    // Held by another session, a table cannot be read.
    database.run("LOCK TABLES warm.`a``b` WRITE").unwrap();
    assert_eq!(warm::warm(&reader, 200 * MILLISECOND_NS), Warmth::Cut);
    database.run("UNLOCK TABLES").unwrap();
    let at_work = "SELECT count(*) FROM information_schema.processlist WHERE user = 'warmer' AND command = 'Query'";
    // The server notices a moment later.
    let deadline = Instant::now() + Duration::from_secs(20);
    while database.number(at_work).unwrap() != Some(0) {
        assert!(Instant::now() < deadline, "the reading goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    // What lies beside the rows is read by nobody who counts them.
    database.run("CREATE TABLE warm.large (id INT PRIMARY KEY, t LONGTEXT) ENGINE=InnoDB").unwrap();
    assert_eq!(warm::warm(&reader, 60 * SECOND_NS), Warmth::Part);
}

#[test]
fn tables_are_written_anew_and_what_prevents_that_is_told() {
    let Some(server) = server() else { return };
    let mut database = database(server);
    for set in [
        "CREATE DATABASE anew",
        "CREATE TABLE anew.`a``b` (id INT PRIMARY KEY, t CHAR(200)) ENGINE=InnoDB",
        "INSERT INTO anew.`a``b` SELECT seq, repeat('x', 200) FROM test_sequence",
        "DELETE FROM anew.`a``b` WHERE id > 2000",
    ] {
        let rows = "(SELECT a.n + 100 * b.n AS seq FROM (SELECT row_number() OVER () - 1 AS n FROM information_schema.columns LIMIT 100) a, \
                    (SELECT row_number() OVER () - 1 AS n FROM information_schema.columns LIMIT 200) b) AS rows_of_it";
        database.run(&set.replace("test_sequence", rows)).unwrap();
    }
    let size = |database: &mut Database| {
        database.run("FLUSH TABLES").unwrap();
        let ask = "SELECT file_size FROM information_schema.innodb_sys_tablespaces WHERE name LIKE 'anew/%'";
        database.number(ask).unwrap().unwrap()
    };
    let before = size(&mut database);
    let user = at(&server.address("anew", "").replace("native:", "warmer:"));
    rewrite::rewrite(&user, 60 * SECOND_NS).unwrap();
    let after = size(&mut database);
    assert!(after * 2 < before, "{before} {after}");
    assert_eq!(database.number("SELECT count(*) FROM anew.`a``b`").unwrap(), Some(2_001));
    // Held by another session, a table cannot be written.
    database.run("LOCK TABLES anew.`a``b` READ").unwrap();
    let why = rewrite::rewrite(&user, 300 * MILLISECOND_NS).unwrap_err().text;
    database.run("UNLOCK TABLES").unwrap();
    assert!(why.contains("max_statement_time") || why.contains("interrupted"), "{why}");
}
