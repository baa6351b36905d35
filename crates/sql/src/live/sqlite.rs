//! SQLite needs nothing.

use super::*;

#[test]
fn a_database_in_memory_is_made_and_shared_by_all_threads() {
    let prepared = ready("sqlite::memory:", 2, &[("op", "point-select"), ("table-size", "500")]).unwrap();
    let record = load(&prepared, 2, 2_000);
    assert_eq!((record.tally.ok, record.tally.failed_total()), (2_000, 0), "{:?}", record.tally.failure_examples);
    assert_eq!((counted(&record, "queries"), counted(&record, "rows")), (2_000, 2_000));
    assert!(prepared.facts.text("sql.server").unwrap().starts_with("SQLite 3."));
}

#[test]
fn writers_of_a_database_in_memory_lose_nothing() {
    let prepared =
        ready("sqlite::memory:", 3, &[("op", "read-write"), ("table-size", "501"), ("range-size", "10")]).unwrap();
    let record = load(&prepared, 3, 300);
    assert_eq!((record.tally.ok, record.tally.failed_total()), (300, 0), "{:?}", record.tally.failure_examples);
    assert_eq!(prepared.opens.contradiction(), Ok(None));
}

#[test]
fn databases_in_memory_of_two_sizes_have_ledgers_of_their_own() {
    for size in ["301", "302"] {
        let prepared = ready("sqlite::memory:", 1, &[("op", "update-index"), ("table-size", size)]).unwrap();
        assert_eq!(load(&prepared, 1, 20).tally.ok, 20);
        assert_eq!(prepared.opens.contradiction(), Ok(None));
    }
}

#[test]
fn what_is_too_much_is_refused_and_a_request_to_stop_is_heard() {
    let said = ready("sqlite::memory:", 1025, &[("table-size", "100")]).unwrap_err().to_string();
    assert!(said.contains("at most 1024"), "{said}");
    let said = ready("sqlite::memory:", 1, &[("tables", "4"), ("table-size", "1000001")]).unwrap_err().to_string();
    assert!(said.contains("4000004 rows in memory are too many"), "{said}");
    let settings = kind(&[("tables", "2"), ("table-size", "30001")]);
    let plan = plan("sqlite::memory:", 1, &settings);
    let stop = std::sync::atomic::AtomicBool::new(true);
    let said = Sql.prepare_unless(&plan, &settings, "sqlite::memory:", &stop).unwrap_err().to_string();
    assert!(said.contains("stopped"), "{said}");
    assert!(Sql.prepare(&plan, &settings, "sqlite::memory:").is_ok(), "nothing half is left");
}

#[test]
fn a_lock_that_stays_is_waited_for_a_bounded_number_of_times() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    let address = format!("sqlite:{}", file.display());
    fill(&address, 1, 100, Existing::default()).unwrap();
    let prepared = ready(&address, 1, &[("op", "write-only"), ("table-size", "100")]).unwrap();
    let other = rusqlite::Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let record = load(&prepared, 1, 1);
    assert_eq!((record.tally.failed_total(), counted(&record, "retries")), (1, 100));
}

#[test]
fn rows_are_filled_with_a_k_of_sysbenchs_default() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    fill(&format!("sqlite:{}", file.display()), 1, 2_000, Existing::default()).unwrap();
    let middle = "SELECT count(*) FROM sbtest1 WHERE k BETWEEN 985 AND 1015";
    let near: i64 = rusqlite::Connection::open(&file).unwrap().query_row(middle, [], |row| row.get(0)).unwrap();
    assert!((1_400..1_800).contains(&near), "{near}");
}

#[test]
fn a_file_is_prepared_when_that_is_asked_for_and_only_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.db");
    let address = format!("sqlite:{}", file.display());
    let settings = [("op", "update-index"), ("tables", "2"), ("table-size", "100")];
    let said = ready(&address, 2, &settings).unwrap_err().to_string();
    assert!(said.contains("there is no file") && !file.exists(), "{said}");
    assert_eq!(fill(&address, 2, 100, Existing::default()).unwrap().rows, 200);
    assert_eq!(fill(&address, 2, 100, Existing::default()).unwrap().found, 2);
    let prepared = ready(&address, 2, &settings).unwrap();
    let record = load(&prepared, 2, 50);
    assert_eq!((record.tally.ok, counted(&record, "changed")), (50, 50), "{:?}", record.tally.failure_examples);
    assert_eq!(prepared.opens.contradiction(), Ok(None));
    rusqlite::Connection::open(&file).unwrap().execute_batch("UPDATE sbtest1 SET k = k + 1 WHERE id = 7").unwrap();
    let said = prepared.opens.contradiction().unwrap().unwrap();
    assert!(said.contains("the sum of all k is"), "{said}");
    // What still runs has a second to come to its end.
    let late = std::thread::spawn({
        let file = file.clone();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(300));
            rusqlite::Connection::open(&file)
                .unwrap()
                .execute_batch("UPDATE sbtest1 SET k = k - 1 WHERE id = 7")
                .unwrap();
        }
    });
    assert_eq!(prepared.opens.contradiction(), Ok(None));
    late.join().unwrap();
    assert_eq!(crate::cleanup(&address, 3), Ok(2));
    std::fs::write(
        folder.path().join("no.db"),
        "this is no database, and longer than its header of a hundred bytes is, as it has to be to be looked at",
    )
    .unwrap();
    let said = ready(&format!("sqlite:{}/no.db", folder.path().display()), 1, &settings).unwrap_err().to_string();
    assert!(said.contains("not a database"), "{said}");
}
