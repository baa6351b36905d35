//! The server's own view, and settings of our own sessions.

use super::server::{Server, server};
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
