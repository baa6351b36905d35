//! The protocol as a real MariaDB speaks it.

use super::super::facts;
use super::super::handshake::capability::CACHE_METADATA;
use super::mariadb::{Client, Outcome, by, server};
use super::*;
use crate::failure::{DEADLOCK, DUPLICATE, ERROR, LOGIN, LOST, READ_ONLY, STATEMENT_TIMEOUT, TOO_MANY};
use crate::wire::Value;
use crate::{Existing, live};
use duel_model::{Facts, FailureKind};

/// The failure's kind, and that its text says this.
fn fails(outcome: Outcome, kind: FailureKind, says: &str) {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.kind, kind, "{}", failure.text);
    assert!(failure.text.contains(says), "{}", failure.text);
}

fn value(client: &mut Client, sql: &str) -> String {
    client.wire.want_rows(true);
    let (rows, ..) = client.query(sql).unwrap();
    client.wire.want_rows(false);
    rows[0][0].clone().unwrap()
}

/// How often the server has executed such statements.
fn executed(client: &mut Client, command: &str) -> u64 {
    let (rows, ..) = {
        client.wire.want_rows(true);
        let answer = client.query(&format!("SHOW GLOBAL STATUS LIKE 'Com_{command}'")).unwrap();
        client.wire.want_rows(false);
        answer
    };
    rows[0][1].as_deref().unwrap().parse().unwrap()
}

#[test]
fn tables_are_filled_by_bulk_loads_and_by_inserts_where_the_server_takes_no_data_of_clients() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.query("CREATE DATABASE bulk_loads").unwrap();
    let address = server.address("bulk_loads", "");
    let rows_of = |client: &mut Client, table: u32| {
        value(
            client,
            &format!(
                "SELECT CONCAT_WS(' ', COUNT(*), MIN(id), MAX(id), MIN(LENGTH(c)), MAX(LENGTH(c)), MIN(LENGTH(pad)), \
                 MAX(LENGTH(pad)), MIN(k) > 0, MAX(k) <= 120000) FROM bulk_loads.sbtest{table}"
            ),
        )
    };
    let whole = "120000 1 120000 119 119 59 59 1 1";
    live::bulk::a_preparation_stops_within_its_statement(&address, 1);
    client.query("DROP TABLE bulk_loads.sbtest1").unwrap();
    // Of three statements and hundreds of messages.
    let loads = executed(&mut client, "load");
    assert_eq!(live::fill(&address, 1, 120_000, Existing::default()).unwrap().rows, 120_000);
    assert_eq!(rows_of(&mut client, 1), whole);
    assert!(executed(&mut client, "load") >= loads + 3);
    client.query("SET GLOBAL local_infile = OFF").unwrap();
    let inserts = executed(&mut client, "insert");
    let filled = live::fill(&address, 2, 120_000, Existing::default());
    client.query("SET GLOBAL local_infile = ON").unwrap();
    assert_eq!(filled.unwrap().rows, 120_000);
    assert_eq!(rows_of(&mut client, 2), whole);
    assert!(executed(&mut client, "insert") >= inserts + 120);
    // Of data from a client, a server leaves out what it cannot take, and is content.
    live::fill(&address, 3, 120_000, Existing::default()).unwrap();
    client.query("DELETE FROM bulk_loads.sbtest3 WHERE id > 1").unwrap();
    client.query("ALTER TABLE bulk_loads.sbtest3 ADD UNIQUE only_once (k)").unwrap();
    let go_on = Existing { go_on: true, anew: false };
    let said = live::fill(&address, 3, 120_000, go_on).unwrap_err().to_string();
    assert!(said.contains(" of 50000 rows that were loaded into sbtest3"), "{said}");
}

/// A table of a hundred rows.
fn table(client: &mut Client, name: &str) {
    client
        .query(&format!("CREATE TABLE {name} (id INT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL) ENGINE=InnoDB"))
        .unwrap();
    let (_, rows, affected) =
        client.query(&format!("INSERT INTO {name} SELECT seq, seq, CONCAT('c', seq) FROM seq_1_to_100")).unwrap();
    assert_eq!((rows, affected), (0, 100));
}

#[test]
fn tables_are_filled_over_tls_loaded_and_held_against_what_was_done() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.query("CREATE DATABASE loaded").unwrap();
    let address = server.address("loaded", "?sslmode=require");
    assert_eq!(live::fill(&address, 1, 2_000, Existing::default()).unwrap().rows, 2_000);
    for op in ["update-index", "point-select", "insert", "read-write"] {
        let target = live::ready(&address, 2, &[("op", op), ("table-size", "2000")]).unwrap();
        let record = live::load(&target, 2, 30);
        assert_eq!(record.tally.ok, 30, "{op}: {:?}", record.tally.failure_examples);
        assert_eq!(target.opens.contradiction(), Ok(None), "{op}");
    }
    let target = live::ready(&address, 2, &[("op", "update-index"), ("table-size", "2000")]).unwrap();
    target.opens.slot_begins();
    let mut record = live::load(&target, 2, 200);
    target.opens.slot_ended(&mut record.tally);
    let told = |name| record.tally.counted.get(&duel_model::Id::new(name)).copied();
    for (name, least) in [("server-rows", 200), ("server-hits", 200), ("server-log_bytes", 200 * 20)] {
        assert!(told(name).is_some_and(|count| count >= least), "{name}: {:?}", record.tally.counted);
    }
    assert!(
        told("server-lock-waits").is_some() && told("server-lock_ns").is_some() && told("server-flush_ns").is_none()
    );
    let isolation = |session: &str| {
        let settings = [("table-size", "2000"), ("set", session)];
        let target = live::ready(&address, 1, &settings).map_err(|why| why.0)?;
        assert_eq!(live::load(&target, 1, 5).tally.ok, 5);
        assert!(target.facts.list("sql.may_set").iter().any(|set| set == "sql.isolation=tx_isolation"));
        Ok::<_, String>(target.facts.text("sql.isolation").map(str::to_owned))
    };
    assert_eq!(isolation("tx_isolation=READ-COMMITTED,sort_buffer_size=65536"), Ok(Some("READ-COMMITTED".to_owned())));
    assert_eq!(isolation(""), Ok(Some("REPEATABLE-READ".to_owned())));
    let refused = isolation("no_such=1").unwrap_err();
    assert!(refused.contains("session's settings") && refused.contains("no_such"), "{refused}");
    let target = live::ready(&address, 2, &[("op", "update-index"), ("table-size", "2000")]).unwrap();
    client.query("DELETE FROM loaded.sbtest1 WHERE id = 7").unwrap();
    let said = target.opens.contradiction().unwrap().unwrap();
    assert!(said.contains("2029 rows where 2030 must be") && said.contains("somebody else"), "{said}");
}

#[test]
fn own_sql_works_on_mariadb() {
    let Some(server) = server() else { return };
    server.connect().query("CREATE DATABASE own").unwrap();
    live::script::own_sql_does_what_it_says(&server.address("own", ""));
}

#[test]
fn bulk_inserts_work_on_mariadb() {
    let Some(server) = server() else { return };
    server.connect().query("CREATE DATABASE bulk").unwrap();
    live::bulk::bulk_inserts_lose_nothing(&server.address("bulk", ""));
}

#[test]
fn mariadb_is_asked_to_stop() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.query("CREATE DATABASE endless").unwrap();
    let running = "SELECT count(*) FROM information_schema.processlist WHERE info LIKE 'SELECT SLEEP(60%'";
    let mut count = || value(&mut client, running).parse().unwrap();
    for (prepared, tls) in [("on", ""), ("off", "?sslmode=require")] {
        let address = server.address("endless", tls);
        let endless = "SELECT SLEEP(600 + {rand:0..9});";
        live::cancel::what_is_given_up_does_not_run_on(&address, endless, prepared, &mut count);
    }
}

#[test]
fn users_log_in_by_password_signature_socket_and_either() {
    let Some(server) = server() else { return };
    for user in ["native", "signed", "either"] {
        let mut client = Client::log_in(server.tcp(), &by(user)).unwrap();
        assert!(value(&mut client, "SELECT CURRENT_USER()").starts_with(user));
        assert_eq!(value(&mut client, "SELECT DATABASE()"), "db");
    }
    if rustix::process::geteuid().is_root() {
        let root = Login {
            user: "root".into(),
            password: None,
            database: String::new(),
            is_local: true,
            is_socket: true,
            ..login()
        };
        let mut client = Client::log_in(server.socket(), &root).unwrap();
        assert_eq!(value(&mut client, "SELECT CURRENT_USER()"), "root@localhost");
    }
}

#[test]
fn who_may_not_enter_is_told_why() {
    let Some(server) = server() else { return };
    let wrong = |login: Login| Client::log_in(server.tcp(), &login).map(|_| (Vec::new(), 0, 0));
    for user in ["native", "signed", "either"] {
        fails(wrong(Login { password: Some("wrong".into()), ..by(user) }), LOGIN, "error 1045 (28000): Access denied");
        fails(wrong(Login { password: None, ..by(user) }), LOGIN, "Access denied");
    }
    fails(wrong(by("nobody")), LOGIN, "Access denied");
    fails(wrong(by("encrypted")), LOGIN, "Access denied");
    fails(wrong(Login { database: "nowhere".into(), ..by("native") }), LOGIN, "Unknown database");
    fails(wrong(Login { password: None, ..by("root") }), LOGIN, "Access denied");
}

#[test]
fn tls_is_used_where_it_is_asked_for() {
    let Some(server) = server() else { return };
    for user in ["encrypted", "signed"] {
        for tls in [AskTls::Required, AskTls::IfOffered] {
            let mut client = Client::log_in(server.with_tls(), &Login { tls, ..by(user) }).unwrap();
            client.wire.want_rows(true);
            let (rows, ..) = client.query("SHOW SESSION STATUS LIKE 'Ssl_version'").unwrap();
            assert!(rows[0][1].as_ref().unwrap().starts_with("TLSv1."));
            client.wire.want_rows(false);
            assert_eq!(client.query("SELECT * FROM seq_1_to_100000").unwrap().1, 100_000);
        }
    }
}

#[test]
fn a_user_with_too_many_connections_is_told_so() {
    let Some(server) = server() else { return };
    let _first = Client::log_in(server.tcp(), &by("alone")).unwrap();
    let second = Client::log_in(server.tcp(), &by("alone"));
    fails(second.map(|_| (Vec::new(), 0, 0)), TOO_MANY, "error 1226");
}

#[test]
fn prepared_statements_select_and_change_rows() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    assert_ne!(client.wire.agreed & CACHE_METADATA, 0, "columns are told once");
    table(&mut client, "prepared");
    client.prepare(0, "SELECT c FROM prepared WHERE id=?").unwrap();
    client.prepare(1, "SELECT * FROM prepared WHERE id BETWEEN ? AND ? ORDER BY c").unwrap();
    client.prepare(2, "UPDATE prepared SET k=k+1 WHERE id=?").unwrap();
    client.prepare(3, "INSERT INTO prepared VALUES (?,?,?)").unwrap();
    client.prepare(4, "UPDATE prepared SET k=5 WHERE id=?").unwrap();
    let int = Value::Int;
    for id in 1..=100 {
        assert_eq!(client.execute(0, &[int(id)]), Ok((vec![], 1, 0)));
    }
    assert_eq!(client.execute(0, &[int(1000)]), Ok((vec![], 0, 0)));
    assert_eq!(client.execute(1, &[int(11), int(20)]), Ok((vec![], 10, 0)));
    assert_eq!(client.execute(2, &[int(7)]), Ok((vec![], 0, 1)));
    // Rows that were found count, also where nothing changed: as in other databases.
    assert_eq!(client.execute(4, &[int(5)]), Ok((vec![], 0, 1)));
    assert_eq!(client.execute(3, &[int(101), int(-1), Value::Text("x".repeat(100))]), Ok((vec![], 0, 1)));
    fails(client.execute(3, &[int(101), int(-1), Value::Text("x".into())]), DUPLICATE, "error 1062");
    client.wire.want_rows(true);
    let (rows, ..) = client.execute(1, &[int(7), int(7)]).unwrap();
    assert_eq!(rows, [[Some("7".to_owned()), Some("8".to_owned()), Some("c7".to_owned())]]);
    // What is told only once is kept up with: the statement's columns change.
    client.query("ALTER TABLE prepared ADD COLUMN d DATETIME(3) DEFAULT '2026-01-02 03:04:05.678', ADD COLUMN n BIGINT UNSIGNED").unwrap();
    let (rows, ..) = client.execute(1, &[int(7), int(7)]).unwrap();
    assert_eq!(rows[0][3..], [Some("2026-01-02 03:04:05.678000".to_owned()), None]);
    // Numbers become texts, and texts numbers.
    assert_eq!(client.execute(0, &[Value::Text("9".into())]).unwrap().0, [[Some("c9".to_owned())]]);
    assert_eq!(client.execute(0, &[int(9)]).unwrap().0, [[Some("c9".to_owned())]]);
    fails(client.prepare(0, "SELECT nothing FROM prepared").map(|()| (vec![], 0, 0)), ERROR, "error 1054");
    fails(
        client.prepare(0, "SELECT 1 FROM missing").map(|()| (vec![], 0, 0)),
        ERROR,
        "error 1146 (42S02): Table 'db.missing' doesn't exist",
    );
    assert_eq!(value(&mut client, "SELECT COUNT(*) FROM prepared"), "101");
    client.wire.leave();
    assert_eq!(*client.wire.outgoing(), [1, 0, 0, 0, 1]);
}

#[test]
fn values_come_alike_as_text_and_in_binary() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.wire.want_rows(true);
    let sql = "SELECT -1, 18446744073709551615, CAST(1.50 AS DECIMAL(5,2)), 1.5e0, NULL, '', 'grün', DATE'2026-01-02', \
               TIMESTAMP'2026-01-02 03:04:05', TIMESTAMP'2026-01-02 00:00:00', TIME'-30:00:01.5', X'FF41', BIT_COUNT(7), REPEAT('x', 300)";
    let (text, ..) = client.query(sql).unwrap();
    client.prepare(0, sql).unwrap();
    let (mut binary, ..) = client.execute(0, &[]).unwrap();
    assert_eq!(text[0][4], None);
    assert_eq!(text[0][6].as_deref(), Some("grün"));
    assert_eq!(text[0][11].as_deref(), Some("\u{fffd}A"));
    // Midnight is left out, and a fraction has all its places: what is binary does not tell how it is shown.
    assert_eq!(binary[0][9].as_deref(), Some("2026-01-02"));
    assert_eq!(binary[0][10].as_deref(), Some("-30:00:01.500000"));
    for place in [9, 10] {
        binary[0][place].clone_from(&text[0][place]);
    }
    assert_eq!(text, binary);
}

#[test]
fn a_million_rows_are_counted() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    assert_eq!(client.query("SELECT seq, 'text' FROM seq_1_to_1000000"), Ok((vec![], 1_000_000, 0)));
    client.prepare(0, "SELECT seq, 'text' FROM seq_1_to_1000000 WHERE seq > ?").unwrap();
    assert_eq!(client.execute(0, &[Value::Int(10)]), Ok((vec![], 999_990, 0)));
    assert!(client.wire.incoming.is_empty());
}

#[test]
fn statements_and_rows_may_be_longer_than_a_packet() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.query("CREATE TABLE long_texts (id INT PRIMARY KEY, c LONGTEXT)").unwrap();
    for (id, length) in [(1, 0xFF_FFFF - 40), (2, 0xFF_FFFF), (3, 20 << 20)] {
        let (_, _, affected) =
            client.query(&format!("INSERT INTO long_texts VALUES ({id}, '{}')", "x".repeat(length))).unwrap();
        assert_eq!(affected, 1);
    }
    assert_eq!(client.query("SELECT c FROM long_texts"), Ok((vec![], 3, 0)));
    assert_eq!(
        value(&mut client, "SELECT SUM(LENGTH(c)) FROM long_texts"),
        (2 * 0xFF_FFFF - 40 + (20 << 20)).to_string()
    );
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    client.query("CREATE TABLE bytes (id INT PRIMARY KEY, c VARCHAR(20) CHARACTER SET latin1, b BLOB)").unwrap();
    client.query("INSERT INTO bytes VALUES (1, 'grün', X'00FFFE80C328')").unwrap();
    client.prepare(0, "SELECT c, b FROM bytes WHERE id=?").unwrap();
    assert_eq!(client.execute(0, &[Value::Int(1)]), Ok((vec![], 1, 0)));
    client.wire.want_rows(true);
    let (rows, ..) = client.execute(0, &[Value::Int(1)]).unwrap();
    assert_eq!(rows[0][0].as_deref(), Some("grün"));
    assert!(rows[0][1].as_ref().unwrap().contains('\u{fffd}'));
    let failure = client.query("SELECT * FROM `\u{1b}[2J`").unwrap_err();
    assert!(!failure.text.contains('\u{1b}'), "{}", failure.text);
}

#[test]
fn a_deadlock_is_told_to_one_side_and_the_other_goes_on() {
    let Some(server) = server() else { return };
    let (mut a, mut b) = (server.connect(), server.connect());
    table(&mut a, "deadlock");
    for (client, id) in [(&mut a, 1), (&mut b, 2)] {
        client.query("BEGIN").unwrap();
        client.query(&format!("UPDATE deadlock SET k=k+1 WHERE id={id}")).unwrap();
    }
    a.send("UPDATE deadlock SET k=k+1 WHERE id=2");
    b.send("UPDATE deadlock SET k=k+1 WHERE id=1");
    // Which of them waited first, and who is given up, is the server's to decide.
    let (of_a, of_b) = std::thread::scope(|scope| {
        let b = &mut b;
        let b = scope.spawn(move || b.outcome());
        (a.outcome(), b.join().unwrap())
    });
    let (lost, won) = if of_a.is_err() { (of_a, of_b) } else { (of_b, of_a) };
    fails(lost, DEADLOCK, "error 1213 (40001)");
    assert_eq!(won, Ok((vec![], 0, 1)));
    for client in [&mut a, &mut b] {
        client.query("COMMIT").unwrap();
    }
    assert_eq!(value(&mut a, "SELECT SUM(k) FROM deadlock"), "5052");
}

#[test]
fn locks_that_are_not_waited_for_statements_that_take_too_long_and_writes_that_are_forbidden_are_refused() {
    let Some(server) = server() else { return };
    let (mut a, mut b) = (server.connect(), server.connect());
    table(&mut a, "refused");
    a.query("BEGIN").unwrap();
    a.query("UPDATE refused SET k=0 WHERE id=1").unwrap();
    b.query("SET innodb_lock_wait_timeout=0").unwrap();
    fails(b.query("UPDATE refused SET k=0 WHERE id=1"), DEADLOCK, "error 1205 (HY000): Lock wait timeout");
    a.query("ROLLBACK").unwrap();
    b.query("SET max_statement_time=0.01").unwrap();
    fails(b.query("SELECT SLEEP(50)"), STATEMENT_TIMEOUT, "error 1969");
    b.query("START TRANSACTION READ ONLY").unwrap();
    fails(b.query("UPDATE refused SET k=0 WHERE id=1"), READ_ONLY, "error 1792");
    fails(b.query("LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE refused"), ERROR, "error");
    fails(b.query("SELECT * FROM"), ERROR, "error 1064");
    b.query("ROLLBACK").unwrap();
    b.query("DO 1").unwrap();
}

#[test]
fn a_connection_that_is_killed_is_lost_idle_or_not() {
    let Some(server) = server() else { return };
    let mut killer = server.connect();
    let (mut idle, mut busy) = (server.connect(), server.connect());
    for client in [&mut idle, &mut busy] {
        let number = value(client, "SELECT CONNECTION_ID()");
        killer.query(&format!("KILL {number}")).unwrap();
    }
    fails(idle.outcome(), LOST, "");
    fails(busy.query("SELECT 1"), LOST, "");
    let mut sleeping = server.connect();
    let number = value(&mut sleeping, "SELECT CONNECTION_ID()");
    sleeping.send("SELECT SLEEP(50)");
    killer.query(&format!("KILL {number}")).unwrap();
    fails(sleeping.outcome(), LOST, "");
}

#[test]
fn settings_and_counters_are_those_that_the_server_has() {
    let Some(server) = server() else { return };
    let mut client = server.connect();
    let mut facts = Facts::default();
    client.wire.want_rows(true);
    let (rows, ..) = client.query(&facts::ask_settings()).unwrap();
    facts::note_settings(&rows, &mut facts);
    let (rows, ..) = client.query(&facts::ask_counted()).unwrap();
    facts::note_counted(&rows, &mut facts);
    // Where a name has two variables, MariaDB has one of them. These it has no longer, and MySQL still has them.
    let gone = ["innodb_thread_concurrency", "Innodb_os_log_fsyncs", "innodb_log_files_in_group"];
    for (name, variable) in facts::SETTINGS.into_iter().chain(facts::COUNTED) {
        assert!(facts.value(name).is_some() || gone.contains(&variable), "{variable}");
    }
    assert_eq!(facts.value("sql.buffer_pool_bytes").unwrap().to_string(), (16 << 20).to_string());
}

#[test]
fn mariadb_tells_of_each_statement_of_ours_that_is_a_text_and_that_it_does_not_of_others() {
    let Some(server) = server() else { return };
    for (database, prepared) in [("told_texts", "off"), ("told_prepared", "on")] {
        server.connect().query(&format!("CREATE DATABASE {database}")).unwrap();
        // One session: performance_schema adds up without a lock, and of two that end a statement at once one may be lost.
        let facts = live::views::told_after(&server.address(database, ""), prepared, 1);
        let would = facts.list("sql.not_told");
        assert_eq!(would.iter().any(|told| told.contains("--prepared=off")), prepared == "on", "{would:?}");
        if prepared == "off" {
            live::views::tells_of_point_selects(&facts);
        }
    }
}
