//! What duel makes of a PostgreSQL that works, and of one that does not.

use super::server::{ESCAPED, PASSWORD, connect, server};
use super::*;
use crate::failure;
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn every_op_is_done_and_nothing_is_lost() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    let filled = fill(&address, 2, 300, Existing::default()).unwrap();
    assert_eq!((filled.made, filled.rows), (2, 600));
    for op in crate::mix::OPS.iter().filter(|op| !matches!(**op, "insert" | "delete" | "bulk-insert")) {
        for prepared in ["on", "off"] {
            let settings =
                [("op", *op), ("tables", "2"), ("table-size", "300"), ("range-size", "20"), ("prepared", prepared)];
            let target = ready(&address, 4, &settings).unwrap();
            let record = load(&target, 4, 60);
            assert_eq!(
                (record.tally.ok, record.tally.failed_total()),
                (60, 0),
                "{op}: {:?}",
                record.tally.failure_examples
            );
            assert_eq!(target.opens.contradiction(), Ok(None), "{op}");
            let queries = crate::mix::steps(op, true).len() as u64;
            assert!(counted(&record, "queries") >= 60 * queries, "{op}");
        }
    }
    for (op, rows) in [("insert", 40), ("delete", 0)] {
        let target = ready(&address, 4, &[("op", op), ("tables", "2"), ("table-size", "300")]).unwrap();
        let record = load(&target, 4, 40);
        assert_eq!(record.tally.ok, 40, "{op}: {:?}", record.tally.failure_examples);
        assert!(counted(&record, "changed") >= rows, "{op}");
        assert_eq!(target.opens.contradiction(), Ok(None), "{op}");
    }
    assert_eq!(crate::cleanup(&address, 4), Ok(2));
}

#[test]
fn a_server_on_this_machine_tells_what_a_copy_of_it_takes() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    fill(&address, 1, 10, Existing::default()).unwrap();
    let facts = ready(&address, 1, &[("table-size", "10")]).unwrap().facts;
    let may = facts.list("sql.may_copy_with");
    assert!(may.contains(&"sql.shared_buffers=shared_buffers".to_owned()), "{may:?}");
    // Checksums are of the data, and not of how it is started.
    assert!(may.iter().all(|set| !set.starts_with("sql.checksums=")), "{may:?}");
    // A new server has 20 MB and more.
    assert!(facts.count("sql.copy_bytes") > Some(20 << 20), "{facts:?}");
}

#[test]
fn tables_are_filled_over_tls_by_chunks_that_are_larger_than_its_buffer() {
    let Some(server) = server() else { return };
    let address = server.tcp("u", &server.database(), "?sslmode=require");
    assert_eq!(fill(&address, 1, 2_000, Existing::default()).unwrap().rows, 2_000);
}

#[test]
fn a_connection_for_each_transaction_is_counted_and_a_deadlock_is_begun_again() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    fill(&address, 1, 5, Existing::default()).unwrap();
    let target = ready(&address, 2, &[("table-size", "5"), ("reconnect", "on")]).unwrap();
    let record = load(&target, 2, 10);
    assert_eq!((record.tally.ok, record.tally.connections, record.tally.reused), (10, 10, 0));
    let target = ready(&address, 8, &[("op", "write-only"), ("table-size", "5"), ("keys", "uniform")]).unwrap();
    let record = load(&target, 8, 400);
    assert_eq!((record.tally.ok, record.tally.failed_total()), (400, 0), "{:?}", record.tally.failure_examples);
    let begun_again =
        counted(&record, "deadlocks") + counted(&record, "duplicates") + counted(&record, "serializations");
    assert!(begun_again > 0 && counted(&record, "retries") == begun_again, "{:?}", record.tally.counted);
    assert_eq!(target.opens.contradiction(), Ok(None));
    let target =
        ready(&address, 8, &[("op", "write-only"), ("table-size", "5"), ("keys", "uniform"), ("retry", "off")])
            .unwrap();
    let record = load(&target, 8, 400);
    assert_eq!((record.tally.ok + record.tally.failed_total(), counted(&record, "retries")), (400, 0));
    assert!(record.tally.failed_total() > 0);
    assert_eq!(target.opens.contradiction(), Ok(None));
}

#[test]
fn statements_of_all_tables_are_prepared_before_the_first_op() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    fill(&address, 8, 20, Existing::default()).unwrap();
    let target =
        ready(&address, 2, &[("op", "point-select"), ("tables", "8"), ("table-size", "20"), ("keys", "uniform")])
            .unwrap();
    let record = load(&target, 2, 200);
    assert_eq!(record.tally.ok, 200, "{:?}", record.tally.failure_examples);
    let prepared = &record.tally.phases[&crate::schema::phase::PREPARE.id()];
    assert_eq!(prepared.count(), record.tally.connections, "only ops that connected waited for it");
}

#[test]
fn a_table_that_is_longer_than_asked_for_keeps_its_sequence() {
    let Some(server) = server() else { return };
    let database = server.database();
    let address = server.address("u", &database);
    fill(&address, 1, 200, Existing::default()).unwrap();
    let mut client = server.client(&database);
    client.run("DROP INDEX k_1").unwrap();
    fill(&address, 1, 100, Existing { go_on: true, anew: false }).unwrap();
    client.run("INSERT INTO sbtest1 (k, c, pad) VALUES (1, 'c', 'pad')").unwrap();
    assert_eq!(client.rows("SELECT max(id) FROM sbtest1").unwrap(), [[Some("201".to_owned())]]);
    let why = client.rows("SELECT repeat('x', 1000) FROM generate_series(1, 9999)").unwrap_err();
    assert!(why.kind == failure::WRONG && why.text.contains("more bytes"), "{}", why.text);
}

#[test]
fn tables_under_two_numbers_are_not_accused() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    fill(&address, 2, 100, Existing::default()).unwrap();
    let [one, two] = ["1", "2"].map(|tables| {
        ready(&address, 1, &[("op", "update-index"), ("tables", tables), ("table-size", "100")]).unwrap()
    });
    for target in [&one, &two] {
        assert_eq!(load(target, 1, 20).tally.ok, 20);
    }
    assert_eq!((one.opens.contradiction(), two.opens.contradiction()), (Ok(None), Ok(None)));
}

#[test]
fn a_database_that_lost_a_row_is_told() {
    let Some(server) = server() else { return };
    let database = server.database();
    let address = server.address("u", &database);
    fill(&address, 1, 100, Existing::default()).unwrap();
    let target = ready(&address, 2, &[("op", "update-non-index"), ("table-size", "100")]).unwrap();
    assert_eq!(load(&target, 2, 20).tally.ok, 20);
    server.client(&database).run("DELETE FROM sbtest1 WHERE id = 50").unwrap();
    let said = target.opens.contradiction().unwrap().unwrap();
    assert!(said.contains("99 rows where 100 must be"), "{said}");
}

#[test]
fn all_logins_work_and_a_wrong_password_is_told_without_it() {
    let Some(server) = server() else { return };
    let said = connect(&server.tcp("scram", "postgres", "")).unwrap_err();
    assert!(said.contains("PGPASSWORD") && !said.contains(PASSWORD), "{said}");
    for user in ["scram", "md5", "clear"] {
        for mode in ["disable", "prefer", "require"] {
            let address = server.tcp(&format!("{user}:{ESCAPED}"), "postgres", &format!("?sslmode={mode}"));
            let client = connect(&address).unwrap();
            assert_eq!(client.tls_facts().is_some(), mode != "disable");
        }
        let wrong = server.tcp(&format!("{user}:not-{ESCAPED}"), "postgres", "");
        let said = connect(&wrong).unwrap_err();
        assert!(said.contains("password authentication failed") && !said.contains("hunter2"), "{said}");
        let said = ready(&wrong, 1, &[]).unwrap_err().to_string();
        assert!(said.contains("password authentication failed") && !said.contains("hunter2"), "{said}");
    }
    let root = format!("?sslmode=verify-full&sslrootcert={}/cert.pem", server.folder.display());
    assert!(connect(&server.tcp("u", "postgres", &root)).is_ok());
    let said = connect(&server.tcp("u", "postgres", "?sslmode=verify-full")).unwrap_err();
    assert!(said.contains("TLS") || said.contains("certificate"), "{said}");
    let said = connect(&server.address("u", "no-such")).unwrap_err();
    assert!(said.contains("does not exist"), "{said}");
}

#[test]
fn tables_are_checked_and_never_mended_unasked() {
    let Some(server) = server() else { return };
    let database = server.database();
    let address = server.address("u", &database);
    let settings = [("tables", "2"), ("table-size", "200")];
    let said = |settings: &[(&str, &str)]| ready(&address, 1, settings).unwrap_err().to_string();
    let missing = said(&settings);
    assert!(missing.contains("table sbtest1 of 2 is missing") && missing.contains("duel prepare '"), "{missing}");
    assert!(missing.contains("--tables 2 --table-size 200"), "{missing}");
    fill(&address, 2, 200, Existing::default()).unwrap();
    let mut client = server.client(&database);
    client.run("DELETE FROM sbtest2 WHERE id > 120; DROP INDEX k_2").unwrap();
    assert!(
        said(&settings).contains("sbtest2 has 120 of 200 rows: it was made with fewer, or its preparation did not end"),
        "{}",
        said(&settings)
    );
    let refused = fill(&address, 2, 200, Existing::default()).unwrap_err().to_string();
    assert!(refused.contains("--go-on"), "{refused}");
    let go_on = Existing { go_on: true, anew: false };
    assert_eq!(fill(&address, 2, 200, go_on).unwrap(), crate::Filled { found: 1, made: 1, rows: 80 });
    assert!(ready(&address, 1, &settings).is_ok());
    client.run("DROP INDEX k_1").unwrap();
    assert!(said(&settings).contains("sbtest1 has no index on k"), "{}", said(&settings));
    fill(&address, 2, 200, go_on).unwrap();
    client.run("ALTER TABLE sbtest1 DROP CONSTRAINT sbtest1_pkey").unwrap();
    assert!(said(&settings).contains("sbtest1 has no primary key"), "{}", said(&settings));
    assert!(fill(&address, 2, 200, go_on).unwrap_err().to_string().contains("--anew"));
    client.run("ALTER TABLE sbtest1 ADD PRIMARY KEY (id)").unwrap();
    client.run("DELETE FROM sbtest1 WHERE id = 7").unwrap();
    assert!(said(&settings).contains("--anew"), "{}", said(&settings));
    assert!(fill(&address, 2, 200, go_on).is_err());
    fill(&address, 2, 200, Existing { go_on: false, anew: true }).unwrap();
    assert!(ready(&address, 1, &settings).is_ok());
    client.run("DROP TABLE sbtest1; CREATE TABLE sbtest1 (name text)").unwrap();
    assert!(said(&settings).contains("not laid out as sysbench"), "{}", said(&settings));
    assert!(crate::cleanup(&address, 2).unwrap_err().to_string().contains("left alone"));
}

#[test]
fn too_many_connections_and_a_lost_one_are_counted_and_the_others_go_on() {
    let Some(server) = server() else { return };
    let database = server.database();
    let address = server.address("u", &database);
    fill(&address, 1, 50, Existing::default()).unwrap();
    let mut client = server.client(&database);
    client.run("GRANT ALL ON ALL TABLES IN SCHEMA public TO few").unwrap();
    let target = ready(&server.address("few", &database), 6, &[("table-size", "50")]).unwrap();
    let record = load_for(&target, 6, 300);
    assert!(record.tally.ok > 0 && record.tally.failed[&failure::TOO_MANY.id()] > 0, "{:?}", record.tally);

    let target = ready(&address, 2, &[("table-size", "50")]).unwrap();
    let mut session = target.opens.session(2, 1, Arc::default()).unwrap();
    let mut kills = 0;
    let record = session
        .run_slot(&order(None, Some(700 * MILLISECOND_NS)), &mut |_| {
            let ours = format!(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{database}' \
                 AND pid <> pg_backend_pid()"
            );
            if kills == 0 {
                client.rows(&ours).unwrap();
            }
            kills += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(record.tally.ok > 0 && record.tally.connections > 2, "{:?}", record.tally);
    assert_eq!(record.tally.started, record.tally.ok + record.tally.failed_total() + record.tally.in_flight);
}

#[test]
fn statement_timeouts_endless_answers_and_foreign_bytes_are_met() {
    let Some(server) = server() else { return };
    let mut client = server.client("postgres");
    client.run("SET statement_timeout = 50").unwrap();
    assert_eq!(client.run("SELECT pg_sleep(20)").unwrap_err().kind, failure::STATEMENT_TIMEOUT);
    client.run("SET statement_timeout = 0").unwrap();
    assert_eq!(client.run("SELECT generate_series(1, 1000000)").unwrap(), 0);
    assert_eq!(client.rows("SELECT generate_series(1, 1000000)").unwrap_err().kind, failure::WRONG);
    // The rest of that answer is not taken for the next one.
    assert!(client.is_broken() && client.rows("SELECT 7").is_err());
    let raw = server.database_with("ENCODING SQL_ASCII TEMPLATE template0");
    let mut client = server.client(&raw);
    let why = client.rows("SELECT E'a\\377b'").unwrap_err();
    assert!(why.kind == failure::ERROR && why.text.contains("invalid byte sequence"), "{}", why.text);
    client.run("SET client_encoding = SQL_ASCII").unwrap();
    assert_eq!(client.rows("SELECT E'a\\377b'").unwrap(), [[Some("a\u{fffd}b".to_owned())]]);
}

#[test]
fn a_server_of_another_protocol_is_told_in_one_sentence() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let said = connect(&format!("postgres://u@127.0.0.1:{port}/db")).unwrap_err();
    assert_eq!(said, "the server does not speak PostgreSQL's protocol; it speaks HTTP");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let said = connect(&format!("postgres://u@127.0.0.1:{nobody}/db")).unwrap_err();
    assert_eq!(said, "cannot connect: nobody listens there");
}
