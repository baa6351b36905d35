use super::file::{MOST_STATEMENTS, parse};
use super::*;
use duel_template::Columns;
use proptest::prelude::*;
use rand::SeedableRng;
use std::collections::BTreeMap;
use std::fmt::Write as _;

fn script(text: &str, system: System, prepares: bool) -> Result<Script, String> {
    with_rows(text, None, system, prepares)
}

fn with_rows(text: &str, rows: Option<&str>, system: System, prepares: bool) -> Result<Script, String> {
    let folder = tempfile::tempdir().unwrap();
    let (file, values) = (folder.path().join("own.sql"), folder.path().join("values.csv"));
    std::fs::write(&file, text).unwrap();
    std::fs::write(&values, rows.unwrap_or_default()).unwrap();
    let values = rows.map(|_| values.as_path());
    Script::read(&file, values, system, prepares)
        .map_err(|error| error.0.replace(&format!("{}/", folder.path().display()), ""))
}

/// What the next ops send: texts with places and values, or texts.
fn sent(script: &Script, ops: usize) -> Vec<String> {
    let (mut drawn, mut rng) = (Drawn::default(), Pcg64Mcg::seed_from_u64(1));
    let (mut all, mut values, mut text) = (Vec::new(), Vec::new(), String::new());
    for _ in 0..ops {
        script.begin(&mut drawn, &mut rng);
        for at in 0..script.steps(&drawn) {
            let step = script.step(&drawn, at);
            if step.is_prepared {
                script.values(step.number, &mut drawn, &mut rng, &mut values);
                text = script.prepared(step.number).unwrap().to_owned();
                values.iter().for_each(|value| write!(text, " <{value:?}>").unwrap());
            } else {
                script.text(step.number, &mut drawn, &mut rng, &mut text);
            }
            all.push(text.clone());
        }
    }
    all
}

#[test]
fn values_are_parameters_and_a_text_that_holds_one_is_one_parameter() {
    let text = "-- a note\nUPDATE t SET a = {rand:7..7}, b = 'it''s {n}', c = '{rand:5..5}' -- why\n  WHERE x=$$ {n} $$ AND d = {n};";
    let made = script(text, System::Postgres, true).unwrap();
    let places = "UPDATE t SET a = $1, b = $2, c = $3  \n  WHERE x=$$ {n} $$ AND d = $4";
    assert_eq!(sent(&made, 1), [format!("{places} <Int(7)> <Text(\"it's 0\")> <Text(\"5\")> <Int(0)>")]);
    let made = script(text, System::Postgres, false).unwrap();
    assert_eq!(sent(&made, 1), ["UPDATE t SET a = 7, b = 'it''s 0', c = '5'  \n  WHERE x=$$ {n} $$ AND d = 0"]);
    let made = script("select '{{\"a\":{n}}', \"{n}\", `c{n}` from t{rand:3..3};", System::Mysql, true).unwrap();
    assert_eq!(sent(&made, 1), ["select '{\\\"a\\\":0}', '0', `c0` from t3".replace("\\\"", "\"")]);
}

#[test]
fn a_value_that_is_set_stays_the_same_within_an_op_and_a_transaction_is_one_op() {
    let text =
        "-- set: id = {rand:1..1000000}\n-- set: who = user {id}\nBEGIN;\nSELECT {id};\nSELECT {id}, {who};\nCOMMIT;";
    let made = script(text, System::Sqlite, true).unwrap();
    let sent = sent(&made, 2);
    assert_eq!(sent.len(), 8);
    let id = |text: &str| text.split("<Int(").nth(1).unwrap().split(')').next().unwrap().to_owned();
    assert_eq!(id(&sent[1]), id(&sent[2]));
    assert!(sent[2].contains(&format!("<Text(\"user {}\")>", id(&sent[1]))), "{}", sent[2]);
    assert_ne!(id(&sent[1]), id(&sent[5]));
    let drawn = Drawn::default();
    assert_eq!(made.steps(&drawn), 4);
    assert_eq!(made.step(&drawn, 3).phase, phase::COMMIT);
    assert_eq!(made.transactions_each(), Some(1));
    let differ = "-- name: a\nSELECT 1;\n-- name: b\nSELECT 1; SELECT 2;";
    assert_eq!(script(differ, System::Sqlite, true).unwrap().transactions_each(), None);
}

#[test]
fn what_was_committed_is_not_repeated() {
    let undone = |text: &str| {
        let made = script(text, System::Mysql, true).unwrap();
        let drawn = Drawn::default();
        (0..made.steps(&drawn)).map(|at| made.is_undone(&drawn, at)).collect::<Vec<_>>()
    };
    assert_eq!(undone("BEGIN; UPDATE t SET a = 1; SELECT 1; COMMIT;"), [true; 4]);
    assert_eq!(undone("UPDATE t SET a = 1; UPDATE t SET a = 2;"), [true, false]);
    assert_eq!(undone("BEGIN; DELETE FROM t; COMMIT; DELETE FROM u;"), [true, true, true, false]);
    assert_eq!(undone("BEGIN; ALTER TABLE t ADD b INT; DELETE FROM t; COMMIT;"), [true, true, false, false]);
}

#[test]
fn transactions_are_chosen_by_their_weights() {
    let made = script("-- name: a\n-- weight: 3\nSELECT 1;\n-- name: b\nSELECT 2", System::Postgres, true).unwrap();
    let mut counts = BTreeMap::new();
    sent(&made, 4_000).into_iter().for_each(|text| *counts.entry(text).or_insert(0) += 1);
    // Four standard deviations of a binomial distribution.
    assert!((2_890..3_110).contains(&counts["SELECT 1"]), "{counts:?}");
    assert_eq!((made.names(0).unwrap().1.name(), made.transactions()), ("a_ns", 2));
}

#[test]
fn rows_of_a_file_are_gone_through_and_columns_of_whole_numbers_are_numbers() {
    let made = with_rows("SELECT {id}, {name}, '{id}'", Some("id,name\n1,a\n-2,0x\n"), System::Postgres, true).unwrap();
    let each = |id: i64, name: &str| format!("SELECT $1, $2, $3 <Int({id})> <Text(\"{name}\")> <Text(\"{id}\")>");
    assert_eq!(sent(&made, 3), [each(1, "a"), each(-2, "0x"), each(1, "a")]);
    let made = with_rows("SELECT {zip} FROM t{zip}", Some("zip\n01\n"), System::Postgres, false).unwrap();
    assert_eq!(sent(&made, 1), ["SELECT '01' FROM t01"]);
    let said = with_rows("SELECT 1 FROM t{zip}", Some("zip\na;b\n"), System::Postgres, false).unwrap_err();
    assert!(said.contains("line 1: a variable within a name"), "{said}");
}

#[test]
fn no_value_breaks_out_of_its_quotes() {
    let hostile = "x\n\"' OR 1=1; DROP TABLE t; --\"\n\"\\' OR 1=1 --\"\n";
    for (system, first, second) in [
        (System::Postgres, "SELECT ''' OR 1=1; DROP TABLE t; --'", "SELECT E'\\\\'' OR 1=1 --'"),
        (System::Mysql, "SELECT ''' OR 1=1; DROP TABLE t; --'", "SELECT '\\\\'' OR 1=1 --'"),
        (System::Sqlite, "SELECT ''' OR 1=1; DROP TABLE t; --'", "SELECT '\\'' OR 1=1 --'"),
    ] {
        let made = with_rows("SELECT {x}", Some(hostile), system, false).unwrap();
        assert_eq!(sent(&made, 2), [first, second]);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    for (text, line, words) in [
        ("", 1, "no statement in the file"),
        ("\n\nSELECT {x}", 3, "{x} is no variable"),
        ("SELECT 1,\n  2, {x}", 2, "{x} is no variable"),
        ("SELECT 1;\n;", 2, "no statement before this ';'"),
        ("SELECT 'a\n", 1, "a text that begins here does not end"),
        ("SELECT 1; /* a", 1, "a comment that begins here does not end"),
        ("SELECT 1;\nSELECT $$ a", 2, "a text that begins here does not end"),
        ("\nBEGIN;\nSELECT 1;", 2, "not ended by COMMIT"),
        ("-- name: a\n-- name: b\nSELECT 1", 1, "no statement behind this head"),
        ("SELECT 1;\n-- name: b\nSELECT 1", 2, "has no name"),
        ("-- name: a\nSELECT 1;\n-- name: a\nSELECT 1", 3, "of line 1, too"),
        ("-- name: A b\nSELECT 1", 1, "lower-case letters"),
        ("-- name: queries\nSELECT 1", 1, "a counter of duel's own"),
        ("-- name: a\n-- weight: 0\nSELECT 1", 2, "never"),
        ("-- name: a\n-- weight: 1000001\nSELECT 1", 2, "1000000"),
        ("-- weight 3\nSELECT 1", 1, "'-- weight: ...'"),
        ("SELECT 1;\n-- weight: 3", 2, "before the statements"),
        ("-- set: n = 3\nSELECT 1", 1, "no name for a value"),
        ("-- set: id 3\nSELECT 1", 1, "NAME = VALUE"),
        ("-- set: a = 1\n-- set: a = 2\nSELECT 1", 2, "already"),
        ("SELECT E'{n}'", 1, "letters before its quote"),
        ("SELECT 1 FROM t{uuid}", 1, "within a name"),
    ] {
        let said = script(text, System::Postgres, true).unwrap_err();
        assert!(said.starts_with(&format!("own.sql, line {line}: ")) && said.contains(words), "{text:?}: {said}");
    }
    // What only looks like a head, and quotes and comments with all that ends a statement in them.
    let text =
        "-- name the rows that follow\nSELECT ';', E'\\';', \"a;\" /* ; /* */ ; */ FROM t;\nSELECT $a$ ; $b$ $a$";
    assert_eq!(script(text, System::Postgres, true).unwrap().statements(), 2);
    assert_eq!(
        script("SELECT '\\'; {n}', `;`; # x;\nSELECT 1", System::Mysql, true).unwrap_err().matches("backslash").count(),
        1
    );
}

#[test]
fn a_file_of_hostile_content_is_bounded() {
    let most = |text: String| script(&text, System::Postgres, true).unwrap_err();
    assert!(most("SELECT 1;".repeat(MOST_STATEMENTS + 1)).contains("more than 4096 statements"));
    assert!(
        most((0..101).map(|n| format!("-- name: t{n}\nSELECT 1;\n")).collect()).contains("more than 100 transactions")
    );
    assert!(most(format!("SELECT {}1", "{n},".repeat(32_767))).contains("more than 32766 values"));
    let mut grows = "-- set: a0 = 0123456789\n".to_owned();
    (1..30).for_each(|n| writeln!(grows, "-- set: a{n} = {{a{0}}}{{a{0}}}", n - 1).unwrap());
    assert!(most(grows + "SELECT {a29}").contains("can be longer than 16 MiB"));
    for what in ["E''", "$a", "$a$", "/*", "{n}", "'{n}'", "\"", "--", "-- set: a\n", "\\", "'';", "a."] {
        duel_corpus::growth::is_linear(|bytes| {
            let text = what.repeat(bytes / what.len());
            move || {
                let _ = parse(&text, System::Postgres, &Columns::default());
            }
        });
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_with_a_line_of_it(
        text in "[-'\"`$;/*#\\\\{}n:=a-c1 \n\u{e9}E]{0,60}",
        system in prop_oneof![Just(System::Postgres), Just(System::Mysql), Just(System::Sqlite)],
    ) {
        match parse(&text, system, &Columns::default()) {
            Ok(read) => prop_assert!(read.iter().all(|one| !one.statements.is_empty())),
            Err(flaw) => prop_assert!(flaw.line >= 1 && flaw.line <= text.lines().count().max(1) + 1, "{flaw:?}"),
        }
    }
}

/// Other systems have statements that we do not know of, so the server says whether it does; but before there is load.
#[test]
fn a_word_that_begins_no_known_statement_is_shown_to_the_server_first() {
    let ahead = |text| script(text, System::Postgres, true).unwrap().prepared_ahead();
    assert_eq!(ahead("SELECT 1; SELEC 2"), [0, 1]);
    assert_eq!(ahead("CREATE TABLE t (a int); SELEC 2; SELECT a FROM t"), [1]);
    assert_eq!(ahead("SET x = 1; SELECT 1"), [0u16; 0]);
    assert_eq!(ahead("vacuum t; /* c */ Show all"), [0u16; 0]);
    assert!(script("UPSERT INTO t VALUES (1)", System::Postgres, true).unwrap().writes());
}
