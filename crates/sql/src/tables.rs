//! The tables that load is put on: whether they are there, whole, and laid out as sysbench lays them out.

use crate::address::System;
use crate::client::Rows;
use crate::database::Database;
use crate::failure;
use crate::ledger::Content;
use crate::wire::SqlFailure;
use duel_model::sanitize_line;

/// How a table stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    Missing,
    /// It is there, and something else.
    Other(String),
    /// Its first rows are there, and no more; it may be finished.
    Half {
        rows: i64,
    },
    /// Rows between others are missing: it cannot be finished.
    Holed {
        rows: i64,
    },
    /// A table of `bulk-insert`: `id` and `k` alone, and any number of rows.
    Bulk,
    /// All rows are there, and no index on `k`.
    Unindexed,
    /// All rows are there, and no index on `id`: it was taken away, and nothing that finishes a table makes it.
    Keyless,
    /// As it has to be.
    Whole,
}

/// Rows over all tables that are counted one by one. More are only looked at by their ends: a count reads all of them.
const MOST_COUNTED: u64 = 20_000_000;

/// Whether tables of this size are counted.
pub(crate) fn is_counted(tables: u32, size: u64) -> bool {
    u64::from(tables).saturating_mul(size) <= MOST_COUNTED
}

/// What a table is called, counted from 0.
pub(crate) fn name(table: u32) -> String {
    format!("sbtest{}", table + 1)
}

/// How a table stands that is to have so many rows.
pub(crate) fn standing(database: &mut Database, table: u32, size: u64, counts: bool) -> Result<Standing, SqlFailure> {
    let columns = columns(database, table)?;
    if columns.is_empty() {
        return Ok(Standing::Missing);
    }
    if is_bulk(database.system(), &columns) {
        return Ok(Standing::Bulk);
    }
    if !fits(database.system(), &columns) {
        let columns: Vec<String> = columns.iter().map(|(name, sort)| format!("{name} {sort}")).collect();
        return Ok(Standing::Other(columns.join(", ")));
    }
    let t = name(table);
    let of_ends = format!("SELECT min(id), max(id) FROM {t}");
    let ends = database.rows(&of_ends)?;
    let end = |place: usize| ends.first().and_then(|row| row.get(place)?.as_ref()?.parse::<i64>().ok());
    let (least, most) = (end(0).unwrap_or(0), end(1).unwrap_or(0));
    let size = size as i64;
    if counts {
        let rows = database.number(&format!("SELECT count(*) FROM {t} WHERE id BETWEEN 1 AND {size}"))?.unwrap_or(0);
        if rows < size {
            let is_begun = rows == 0 || (least == 1 && most == rows);
            return Ok(if is_begun { Standing::Half { rows } } else { Standing::Holed { rows } });
        }
    } else if most < size || least > 1 {
        return Ok(if least == 1 || most == 0 {
            Standing::Half { rows: most }
        } else {
            Standing::Holed { rows: most }
        });
    }
    Ok(match () {
        () if !is_indexed(database, table, "id")? => Standing::Keyless,
        () if !is_indexed(database, table, "k")? => Standing::Unindexed,
        () => Standing::Whole,
    })
}

/// What PostgreSQL's catalog has about a table; none: there is no such table. Which one it is, the session's own path says, and nothing
/// else is asked by that.
fn of_catalog(database: &mut Database, table: u32, ask: impl FnOnce(i64) -> String) -> Result<Rows, SqlFailure> {
    let which = format!("SELECT pg_catalog.to_regclass('{}')::pg_catalog.oid", name(table));
    let number = database.number(&which)?;
    number.map_or_else(|| Ok(Rows::new()), |number| database.ask_server(&ask(number)))
}

/// Names and types of a table's columns; none: there is no such table.
fn columns(database: &mut Database, table: u32) -> Result<Vec<(String, String)>, SqlFailure> {
    let t = name(table);
    let rows = match database.system() {
        System::Postgres => of_catalog(database, table, |number| {
            format!(
                "SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a \
                 WHERE a.attrelid = {number} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
            )
        })?,
        System::Mysql => database.rows(&format!(
            "SELECT column_name, column_type FROM information_schema.columns \
             WHERE table_schema = database() AND table_name = '{t}' ORDER BY ordinal_position"
        ))?,
        System::Sqlite => database.rows(&format!("SELECT name, type FROM pragma_table_info('{t}') ORDER BY cid"))?,
    };
    let text = |value: Option<String>| value.unwrap_or_default().to_lowercase();
    let mut found = Vec::new();
    for row in rows {
        let mut values = row.into_iter();
        found.push((text(values.next().flatten()), text(values.next().flatten())));
    }
    Ok(found)
}

/// How a system calls the types that a number of a row may have.
fn integers(system: System) -> &'static [&'static str] {
    match system {
        System::Postgres => &["integer", "bigint"],
        System::Mysql => &["int(11)", "int", "bigint(20)", "bigint", "int(10) unsigned"],
        System::Sqlite => &["integer"],
    }
}

fn is_bulk(system: System, columns: &[(String, String)]) -> bool {
    let integer = integers(system);
    let [id, k] = columns else { return false };
    [id.0.as_str(), &k.0] == ["id", "k"] && integer.contains(&id.1.as_str()) && integer.contains(&k.1.as_str())
}

/// The last row of a table, or 0.
pub(crate) fn last_row(database: &mut Database, table: u32) -> Result<i64, SqlFailure> {
    let found = database.rows(&format!("SELECT COALESCE(max(id), 0) FROM {}", name(table)))?;
    whole_number(&found, 0)
}

fn fits(system: System, columns: &[(String, String)]) -> bool {
    let integer = integers(system);
    let text = |bytes: u32| match system {
        System::Postgres => format!("character({bytes})"),
        System::Mysql | System::Sqlite => format!("char({bytes})"),
    };
    let [id, k, c, pad] = columns else { return false };
    [id, k, c, pad].iter().map(|column| column.0.as_str()).eq(["id", "k", "c", "pad"])
        && integer.contains(&id.1.as_str())
        && integer.contains(&k.1.as_str())
        && c.1 == text(120)
        && pad.1 == text(60)
}

/// Whether a column begins an index.
fn is_indexed(database: &mut Database, table: u32, column: &str) -> Result<bool, SqlFailure> {
    let t = name(table);
    let rows = match database.system() {
        System::Postgres => of_catalog(database, table, |number| {
            format!(
                "SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] \
                 WHERE i.indrelid = {number} AND i.indisvalid AND i.indpred IS NULL AND a.attname = '{column}'"
            )
        })?,
        System::Mysql => database.rows(&format!(
            "SELECT 1 FROM information_schema.statistics WHERE table_schema = database() AND table_name = '{t}' \
             AND seq_in_index = 1 AND column_name = '{column}'"
        ))?,
        // Its primary key is the table itself.
        System::Sqlite => database.rows(&format!(
            "SELECT 1 FROM pragma_table_info('{t}') WHERE name = '{column}' AND pk = 1 UNION SELECT 1 \
             FROM pragma_index_list('{t}') l JOIN pragma_index_info(l.name) i WHERE i.seqno = 0 AND i.name = '{column}'"
        ))?,
    };
    Ok(!rows.is_empty())
}

/// What the tables hold, over all of them.
pub(crate) fn content(database: &mut Database, tables: u32) -> Result<Content, SqlFailure> {
    let mut content = Content { rows: 0, sum_of_k: 0 };
    for table in 0..tables {
        let found = database.rows(&format!("SELECT count(*), COALESCE(sum(k), 0) FROM {}", name(table)))?;
        content.rows = content.rows.saturating_add(whole_number(&found, 0)?);
        content.sum_of_k = content.sum_of_k.saturating_add(whole_number(&found, 1)?);
    }
    Ok(content)
}

/// A number of the first row. One that cannot be read is none: as 0 it would accuse the database.
fn whole_number(rows: &Rows, place: usize) -> Result<i64, SqlFailure> {
    let value = rows.first().and_then(|row| row.get(place)?.as_ref());
    value.and_then(|value| value.trim().parse().ok()).ok_or_else(|| {
        let shown = value.map_or_else(|| "nothing".to_owned(), |value| format!("'{}'", sanitize_line(value)));
        SqlFailure::new(failure::WRONG, format!("the database answers {shown} where a whole number must be"))
    })
}

/// Reads as of one moment, whoever writes meanwhile. After a failure the connection is of no more use.
pub(crate) fn in_snapshot<T>(
    database: &mut Database,
    read: impl FnOnce(&mut Database) -> Result<T, SqlFailure>,
) -> Result<T, SqlFailure> {
    match database.system() {
        System::Postgres => database.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?,
        System::Mysql => {
            database.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
            database.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        }
        System::Sqlite => database.run("BEGIN")?,
    }
    let read = read(database)?;
    database.run("COMMIT")?;
    Ok(read)
}

/// Rows and sum of `k` by the index alone, and by the table alone: `None` where they agree.
pub(crate) fn index_disagreement(database: &mut Database, tables: u32) -> Result<Option<String>, SqlFailure> {
    for table in 0..tables {
        let t = name(table);
        let ask = |database: &mut Database, from: &str, before: &str| {
            database.run(before)?;
            let found = database.rows(&format!("SELECT count(*), COALESCE(sum(k), 0) FROM {from}"))?;
            Ok::<_, SqlFailure>(found.into_iter().next().unwrap_or_default())
        };
        let (by_index, by_table) = match database.system() {
            System::Postgres => {
                let index = "SET enable_seqscan = off; SET enable_indexscan = on; SET enable_bitmapscan = on";
                let by_index = ask(database, &format!("{t} WHERE k > -2147483648"), index)?;
                let seq = "SET enable_seqscan = on; SET enable_indexscan = off; SET enable_bitmapscan = off; \
                           SET enable_indexonlyscan = off";
                let by_table = ask(database, &t, seq)?;
                database.run(
                    "RESET enable_seqscan; RESET enable_indexscan; RESET enable_bitmapscan; RESET enable_indexonlyscan",
                )?;
                (by_index, by_table)
            }
            System::Mysql => {
                let index = format!("{t} FORCE INDEX (k_{}) WHERE k > -2147483648", table + 1);
                (ask(database, &index, "DO 0")?, ask(database, &format!("{t} FORCE INDEX (PRIMARY)"), "DO 0")?)
            }
            System::Sqlite => {
                let index = format!("{t} INDEXED BY k_{} WHERE k > -2147483648", table + 1);
                (ask(database, &index, "SELECT 1")?, ask(database, &format!("{t} NOT INDEXED"), "SELECT 1")?)
            }
        };
        if by_index != by_table {
            let told = |row: &[Option<String>]| {
                let texts: Vec<_> =
                    row.iter().map(|value| value.clone().unwrap_or_else(|| "nothing".to_owned())).collect();
                texts.join(" rows with a sum of ")
            };
            return Ok(Some(format!(
                "the index of {t} does not agree with the table: it has {}, the table {}",
                told(&by_index),
                told(&by_table)
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_no_zero() {
        let rows = vec![vec![Some("7".to_owned()), Some("1e9".to_owned()), None]];
        assert_eq!(whole_number(&rows, 0), Ok(7));
        assert!(whole_number(&rows, 1).unwrap_err().text.contains("'1e9' where a whole number must be"));
        assert!(whole_number(&rows, 2).is_err() && whole_number(&rows, 3).is_err());
    }

    #[test]
    fn a_snapshot_does_not_see_what_others_write_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db");
        let other = rusqlite::Connection::open(&file).unwrap();
        other
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE sbtest1(id, k); INSERT INTO sbtest1 VALUES (1, 5)")
            .unwrap();
        let mut database = Database::File(rusqlite::Connection::open(&file).unwrap());
        let (first, second) = in_snapshot(&mut database, |database| {
            let first = content(database, 1)?;
            other.execute_batch("INSERT INTO sbtest1 VALUES (2, 6)").unwrap();
            Ok((first, content(database, 1)?))
        })
        .unwrap();
        assert_eq!((first, second), (Content { rows: 1, sum_of_k: 5 }, Content { rows: 1, sum_of_k: 5 }));
        assert_eq!(in_snapshot(&mut database, |database| content(database, 1)).unwrap().rows, 2);
    }
}
