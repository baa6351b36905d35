//! The server's own view, and settings of our own sessions.

use super::server::{Server, programs, server, tells_of_statements};
use super::*;
use crate::address::{Address, parse};
use crate::kind::connect as open;

/// A slot of so many ops, as a comparison has it.
fn slot(prepared: &Prepared, ops: u64) -> SlotRecord {
    prepared.opens.slot_begins();
    let mut record = load(prepared, 2, ops);
    prepared.opens.slot_ended(&mut record.tally);
    record
}

fn told(record: &SlotRecord, name: &'static str) -> Option<u64> {
    record.tally.counted.get(&Id::new(name)).copied()
}

fn filled(server: &Server) -> String {
    let address = server.address("u", &server.database());
    fill(&address, 1, 300, Existing::default()).unwrap();
    address
}

#[test]
fn a_server_tells_what_it_did_for_each_transaction_and_of_others() {
    let Some(server) = server() else { return };
    let address = filled(server);
    let settings = [("op", "update-index"), ("table-size", "300")];
    let prepared = ready(&address, 2, &settings).unwrap();
    // Each session that ends tells what it did; that of the first slot is told in the second at the latest.
    let records = [slot(&prepared, 400), slot(&prepared, 400)];
    let last = &records[1];
    for (name, least) in [("server-rows", 400), ("server-hits", 400)] {
        assert!(told(last, name).is_some_and(|count| count >= least), "{name}: {:?}", last.tally.counted);
    }
    assert_eq!(told(last, "server-others"), Some(0));
    assert!(told(last, "server-lock_ns").is_some());
    assert_eq!(told(last, "server-query-cache-hits"), None, "PostgreSQL has none");

    let Ok(Address::Server(at)) = parse(&address) else { panic!() };
    let (mut other, ..) = open(&at, 30 * SECOND_NS).unwrap();
    for _ in 0..300 {
        other.run("SELECT 1").unwrap();
    }
    drop(other);
    // Its session tells what it did when it has ended, which is soon; of a slow one a part may come before.
    let mut others = 0;
    for _ in 0..50 {
        others += told(&slot(&prepared, 100), "server-others").unwrap_or(0);
        if others >= 200 {
            break;
        }
    }
    assert!((200..=320).contains(&others), "{others}");
}

/// Loads a target in two slots over so many sessions, and answers what its server tells of it afterwards.
pub(crate) fn told_after(address: &str, prepared: &str, sessions: u32) -> duel_model::Facts {
    fill(address, 2, 300, Existing::default()).unwrap();
    let settings = [("op", "read-only"), ("tables", "2"), ("table-size", "300"), ("prepared", prepared)];
    let target = ready(address, 2, &settings).unwrap();
    // Sessions stay open until the server was asked, as in a comparison.
    let mut session = target.opens.session(sessions, sessions, Arc::default()).unwrap();
    for _ in 0..2 {
        target.opens.slot_begins();
        let mut record = session.run_slot(&order(Some(50), None), &mut |_| ControlFlow::Continue(())).unwrap();
        target.opens.slot_ended(&mut record.tally);
        assert_eq!(record.tally.ok, 50, "{:?}", record.tally.failure_examples);
    }
    target.opens.told_after()
}

/// Of the ten point selects of each of 100 transactions the server tells, under one name for both tables.
pub(crate) fn tells_of_point_selects(facts: &duel_model::Facts) {
    let told = facts.text("sql.statement.SELECT c FROM sbtestN WHERE id=?").unwrap_or_else(|| panic!("{facts:?}"));
    assert!(told.contains(" each of 1000"), "{told}");
    assert!(facts.0.keys().filter(|name| name.starts_with("sql.statement.SELECT")).count() == 5, "{facts:?}");
}

#[test]
fn a_server_tells_of_each_statement_of_ours_and_how_it_would() {
    let Some(server) = server() else { return };
    for (prepared, is_made) in [("on", true), ("off", true), ("on", false)] {
        let name = server.database();
        if is_made && tells_of_statements(&programs().unwrap()) {
            server
                .client(&name)
                .run("CREATE SCHEMA \"my views\"; CREATE EXTENSION pg_stat_statements SCHEMA \"my views\"")
                .unwrap();
            tells_of_point_selects(&told_after(&server.address("u", &name), prepared, 2));
            continue;
        }
        let facts = told_after(&server.address("u", &name), prepared, 2);
        assert!(facts.0.keys().all(|name| !name.starts_with("sql.statement.")), "{facts:?}");
        let would = facts.list("sql.not_told");
        assert!(would.iter().any(|told| told.contains("CREATE EXTENSION pg_stat_statements")), "{would:?}");
    }
}

#[test]
fn new_sessions_are_no_transactions_of_load() {
    let Some(server) = server() else { return };
    let address = filled(server);
    let each = |reconnect: &str| {
        let target = ready(&address, 2, &[("table-size", "300"), ("reconnect", reconnect)]).unwrap();
        slot(&target, 300);
        let rows = told(&slot(&target, 300), "server-rows").unwrap();
        rows as f64 / 300.0
    };
    // A point select looks at one row and one entry; a login looks some up, too, but is no transaction of load.
    let (kept, new) = (each("off"), each("on"));
    assert!(new >= 0.99 * kept, "{kept} with kept sessions, {new} with new ones");
}

#[test]
fn what_two_targets_in_one_database_have_done_is_told_of_neither() {
    let Some(server) = server() else { return };
    let address = filled(server);
    let other = address.replace("u@", "scram@");
    let first = ready(&address, 2, &[("table-size", "300")]).unwrap();
    server
        .client(address.split(['/', '?']).nth(3).unwrap())
        .run("GRANT ALL ON ALL TABLES IN SCHEMA public TO scram")
        .unwrap();
    let second = ready(&other, 2, &[("table-size", "300")]).unwrap();
    for prepared in [&first, &second, &first, &second] {
        let record = slot(prepared, 200);
        assert_eq!(told(&record, "server-hits"), None, "{:?}", record.tally.counted);
    }
}

#[test]
fn sessions_have_the_settings_that_were_asked_for_and_others_do_not() {
    let Some(server) = server() else { return };
    let address = filled(server);
    let fact = |session: &str| {
        let prepared = ready(&address, 1, &[("table-size", "300"), ("set", session)]).unwrap();
        assert_eq!(load(&prepared, 1, 5).tally.ok, 5);
        prepared.facts.text("sql.synchronous_commit").map(str::to_owned)
    };
    assert_eq!(fact("synchronous_commit=off,enable_seqscan=off").as_deref(), Some("off"));
    assert_eq!(fact("").as_deref(), Some("on"));
    let prepared = ready(&address, 1, &[("table-size", "300")]).unwrap();
    let may = prepared.facts.list("sql.may_set");
    assert!(may.iter().any(|set| set == "sql.synchronous_commit=synchronous_commit"), "{may:?}");
    assert!(!may.iter().any(|set| set.ends_with("=shared_buffers")), "{may:?}");
    let refused = ready(&address, 1, &[("table-size", "300"), ("set", "no_such_setting=1")]).unwrap_err();
    assert!(refused.0.contains("no_such_setting"), "{refused:?}");
    let refused = ready("sqlite::memory:", 1, &[("set", "synchronous=off")]).unwrap_err();
    assert!(refused.0.contains("SQLite has none"), "{refused:?}");
}
