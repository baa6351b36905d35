//! Bulk inserts, on every system.

use super::server::server;
use super::*;

/// A bulk load of tens of thousands of rows ends soon when that is asked for, and what it has sent is there.
pub(crate) fn a_preparation_stops_within_its_statement(address: &str, table: u32) {
    let asked = Progress { stop: true.into(), ..Progress::default() };
    let said = crate::prepare(address, table, 120_000, Existing::default(), &asked).unwrap_err().to_string();
    assert!(said.contains(&format!("stopped; table sbtest{table} has 500 of 120000 rows")), "{said}");
    let go_on = Existing { go_on: true, anew: false };
    assert_eq!(fill(address, table, 120_000, go_on).unwrap().rows, 119_500);
}

/// Fills tables in bulk, twice and from two targets, and looks whether all that was said to be written is there.
pub(crate) fn bulk_inserts_lose_nothing(address: &str) {
    let settings = [("op", "bulk-insert"), ("tables", "2")];
    if address != "sqlite::memory:" {
        let said = ready(address, 2, &settings).unwrap_err().to_string();
        assert!(said.contains("duel prepare") && said.contains(" --tables 2 --bulk"), "{said}");
        assert_eq!(crate::prepare_bulk(address, 2, false).unwrap().made, 2);
        assert_eq!(crate::prepare_bulk(address, 2, false).unwrap().found, 2);
        let said = ready(address, 2, &[("tables", "2")]).unwrap_err().to_string();
        assert!(said.contains("one of --op bulk-insert"), "{said}");
        assert!(fill(address, 1, 10, Existing::default()).unwrap_err().to_string().contains("one of --op bulk-insert"));
    }
    let mut written = 0;
    for _ in 0..2 {
        // As A and B on one database: neither writes a row that the other one has written.
        let targets = [ready(address, 3, &settings).unwrap(), ready(address, 3, &settings).unwrap()];
        for target in &targets {
            let record = load(target, 3, 4);
            assert_eq!((record.tally.ok, record.tally.failed_total()), (4, 0), "{:?}", record.tally.failure_examples);
            assert_eq!(counted(&record, "duplicates"), 0);
            let rows = counted(&record, "changed");
            // 512 KiB: rows of up to six digits twice, with brackets and commas.
            assert!((4 * 32_000..4 * 55_000).contains(&rows), "{rows}");
            written += rows;
            assert_eq!(target.opens.contradiction(), Ok(None));
        }
    }
    if address != "sqlite::memory:" {
        assert_eq!(crate::prepare_bulk(address, 2, true).unwrap().made, 2);
        assert_eq!(crate::cleanup(address, 2), Ok(2));
    }
    assert!(written > 0);
}

#[test]
fn copying_into_postgresql_stops_soon() {
    let Some(server) = server() else { return };
    a_preparation_stops_within_its_statement(&server.address("u", &server.database()), 1);
}

#[test]
fn bulk_inserts_work_on_postgresql() {
    let Some(server) = server() else { return };
    let address = server.address("u", &server.database());
    bulk_inserts_lose_nothing(&address);
    fill(&address, 1, 10, Existing::default()).unwrap();
    let said = ready(&address, 1, &[("op", "bulk-insert")]).unwrap_err().to_string();
    assert!(said.contains("one of the other ops"), "{said}");
}

#[test]
fn bulk_inserts_work_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bulk.db");
    std::fs::write(&file, "").unwrap();
    bulk_inserts_lose_nothing(&format!("sqlite:{}", file.display()));
    bulk_inserts_lose_nothing("sqlite::memory:");
}
