//! Own SQL, on every system.

use super::server::server;
use super::*;
use crate::database::Database;
use std::path::Path;

const OWN: &str = "\
-- name: move
-- set: from = {rand:1..100}
BEGIN;
UPDATE own SET balance = balance - 1 WHERE id = {from};
UPDATE own SET balance = balance + 1, note = 'from {from}' WHERE id = {rand:1..100};
COMMIT;

-- name: look
-- weight: 3
SELECT id, note FROM own WHERE id = {rand:1..100};

-- name: mark
UPDATE own SET note = 'it''s {who} {n}' WHERE id = {id}";
const VALUES: &str = "id,who\n7,a'b\n8,\\\n";

/// Fills a table, loads it with transactions of a file, and looks whether they have done what they say.
pub(crate) fn own_sql_does_what_it_says(address: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let mut database = open(address);
    database.run("CREATE TABLE own (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, note VARCHAR(40))").unwrap();
    let rows: Vec<String> = (1..=100).map(|id| format!("({id}, 50, '')")).collect();
    database.run(&format!("INSERT INTO own (id, balance, note) VALUES {}", rows.join(","))).unwrap();
    let (own, values) = (file("own.sql", OWN), file("values.csv", VALUES));
    for prepared in ["on", "off"] {
        let settings = [("script", own.as_str()), ("script-data", &values), ("prepared", prepared)];
        let target = ready(address, 3, &settings).unwrap();
        assert!(target.facts.text("sql.checked").unwrap().starts_with("nothing"));
        let record = load(&target, 3, 300);
        assert_eq!((record.tally.ok, record.tally.failed_total()), (300, 0), "{:?}", record.tally.failure_examples);
        let [moved, looked, marked] = ["move", "look", "mark"].map(|name| counted(&record, name));
        assert_eq!(moved + looked + marked, 300);
        assert!(moved > 20 && looked > 100 && marked > 20, "{moved} {looked} {marked}");
        assert!(counted(&record, "move_ns") > 0);
        assert_eq!(counted(&record, "rows"), looked);
        // What a deadlock has taken back is counted as changed, too: it was.
        assert!(counted(&record, "changed") >= 2 * moved + marked, "{:?}", record.tally.counted);
        assert_eq!(target.opens.contradiction(), Ok(None));
        assert_eq!(database.number("SELECT sum(balance) FROM own").unwrap(), Some(5_000));
        for (id, who) in [(7, "a'b"), (8, "\\")] {
            let note = database.text(&format!("SELECT note FROM own WHERE id = {id}")).unwrap().unwrap();
            assert!(note.starts_with(&format!("it's {who} ")) || note.starts_with("from "), "{note}");
        }
    }
    let spoilt = file(
        "spoilt.sql",
        "BEGIN;\nUPDATE own SET balance = 0;\nINSERT INTO own (id, balance) VALUES (1, 1);\nCOMMIT;",
    );
    let target = ready(address, 2, &[("script", &spoilt), ("retry", "off")]).unwrap();
    let record = load(&target, 2, 20);
    assert_eq!((record.tally.ok, record.tally.failed_total()), (0, 20));
    let said = &record.tally.failure_examples[0];
    assert!(said.contains("spoilt.sql, line 3: "), "{said}");
    assert_eq!(
        database.number("SELECT sum(balance) FROM own").unwrap(),
        Some(5_000),
        "taken back, and no connection lost"
    );
    let wrong = file("wrong.sql", "SELECT 1;\n\nSELECT x\nFROM nowhere_at_all WHERE id = {n};");
    let said = ready(address, 1, &[("script", &wrong)]).unwrap_err().to_string();
    assert!(said.contains("wrong.sql, line 3: ") && said.contains("nowhere_at_all"), "{said}");
    // What makes its tables itself is prepared where it stands.
    let makes = file("makes.sql", "CREATE TABLE IF NOT EXISTS made (id INTEGER);\nINSERT INTO made VALUES ({n});");
    let record = load(&ready(address, 1, &[("script", &makes)]).unwrap(), 1, 10);
    assert_eq!((record.tally.ok, counted(&record, "changed")), (10, 10), "{:?}", record.tally.failure_examples);
    for (settings, words) in [
        (&[("script", own.as_str()), ("op", "read-only")][..], "--op would, too"),
        (&[("script-data", values.as_str())], "--script-data has values for a --script"),
        (&[("script", "/nowhere/own.sql")], "cannot read /nowhere/own.sql"),
    ] {
        let said = ready(address, 1, settings).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    }
}

fn open(address: &str) -> Database {
    let at = crate::address::parse(address).unwrap();
    if let crate::address::Address::File(path) = &at {
        return Database::File(rusqlite::Connection::open(path as &Path).unwrap());
    }
    crate::kind::open(&at, 30 * SECOND_NS, (0, 0), &AtomicBool::new(false)).unwrap().0
}

#[test]
fn own_sql_works_on_postgresql() {
    let Some(server) = server() else { return };
    own_sql_does_what_it_says(&server.address("u", &server.database()));
}

#[test]
fn own_sql_works_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    own_sql_does_what_it_says(&format!("sqlite:{}", folder.path().join("own.db").display()));
}

#[test]
fn another_file_than_the_one_that_was_meant_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (own, values) = (folder.path().join("own.sql"), folder.path().join("values.csv"));
    std::fs::write(&own, "SELECT {id}").unwrap();
    std::fs::write(&values, "id\n1\n").unwrap();
    let [own_path, values_path] = [&own, &values].map(|path| path.display().to_string());
    let settings = [("script", own_path.as_str()), ("script-data", &values_path)];
    let facts = ready("sqlite::memory:", 1, &settings).unwrap().facts;
    let mut held = kind(&settings);
    Sql.hold(&mut held, &facts);
    let again = |held: &KindPlan| Sql.prepare(&plan("sqlite::memory:", 1, held), held, "sqlite::memory:");
    assert!(again(&held).is_ok());
    // Of another run, which read another file, nothing is held.
    let mut other = kind(&[]);
    Sql.hold(&mut other, &facts);
    assert_eq!(other, kind(&[]));
    for (path, text, back) in [(&own, "SELECT {id} + 1", "SELECT {id}"), (&values, "id\n2\n", "id\n1\n")] {
        std::fs::write(path, text).unwrap();
        let said = again(&held).unwrap_err().to_string();
        assert!(said.contains("another file") && said.contains("--script-sha256"), "{said}");
        std::fs::write(path, back).unwrap();
    }
    assert!(again(&held).is_ok());
}

#[test]
fn a_statement_that_makes_something_lets_no_slip_of_the_pen_pass() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("own.sql");
    let said = |text: &str| {
        std::fs::write(&own, text).unwrap();
        ready("sqlite::memory:", 1, &[("script", &own.display().to_string())]).map(|_| ()).map_err(|why| why.0)
    };
    let makes = "CREATE TABLE IF NOT EXISTS made (id INTEGER);\n";
    assert_eq!(said(&format!("{makes}SELECT id FROM made;")), Ok(()), "what is made is not there yet");
    let slip = said(&format!("{makes}SELECT id FORM made;")).unwrap_err();
    assert!(slip.contains("line 2") && slip.contains("syntax error"), "{slip}");
    let slip = said("ANALYZE;\nSELECT id FROM nowhere;").unwrap_err();
    assert!(slip.contains("line 2") && slip.contains("nowhere"), "what tidies up makes no table: {slip}");
}

#[test]
fn a_number_with_a_point_is_a_number_to_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let [own, values, database] = ["own.sql", "values.csv", "x.db"].map(|name| folder.path().join(name));
    std::fs::write(&own, "UPDATE found SET n = n + 1 WHERE {price} < 2").unwrap();
    std::fs::write(&values, "price\n1.5\n").unwrap();
    let connection = rusqlite::Connection::open(&database).unwrap();
    connection.execute_batch("CREATE TABLE found (n INTEGER); INSERT INTO found VALUES (0)").unwrap();
    for (prepared, found) in [("on", 20), ("off", 40)] {
        let settings = [
            ("script", own.display().to_string()),
            ("script-data", values.display().to_string()),
            ("prepared", prepared.to_owned()),
        ];
        let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
        let target = ready(&format!("sqlite:{}", database.display()), 1, &settings).unwrap();
        assert_eq!(load(&target, 1, 20).tally.ok, 20);
        let n: i64 = connection.query_row("SELECT n FROM found", [], |row| row.get(0)).unwrap();
        assert_eq!(n, found, "{prepared}: to SQLite a text is greater than all numbers");
    }
}
