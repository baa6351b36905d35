//! Columns, and the values of rows that are wanted.

use super::packets::{Fields, broken};
use crate::wire::SqlFailure;
use std::fmt::Display;

/// What tables of these servers may have.
pub(super) const MOST_COLUMNS: u64 = 4096;

const UNSIGNED: u16 = 1 << 5;
/// In place of a length, in rows of text.
const NULL: u8 = 0xFB;

/// How values of a column come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Column {
    kind: u8,
    is_unsigned: bool,
}

impl Column {
    /// Reads the message that describes it.
    #[inline]
    pub(super) fn read(message: &[u8]) -> Result<Self, SqlFailure> {
        let mut fields = Fields(message);
        // Catalogue, database, table, table of origin, name, name of origin.
        for _ in 0..6 {
            fields.text()?;
        }
        let mut fixed = Fields(fields.text()?);
        fixed.bytes(2 + 4)?; // character set, width
        let kind = fixed.byte()?;
        let is_unsigned = fixed.two()? & UNSIGNED != 0;
        Ok(Self { kind, is_unsigned })
    }
}

/// Reads a row whose values are texts.
pub(super) fn read_texts(row: &[u8], columns: usize, into: &mut Vec<Option<String>>) -> Result<(), SqlFailure> {
    into.clear();
    let mut fields = Fields(row);
    for _ in 0..columns {
        if fields.0.first() == Some(&NULL) {
            fields.byte()?;
            into.push(None);
        } else {
            into.push(Some(lossy(fields.text()?)));
        }
    }
    ends(&fields)
}

/// Reads a row of a prepared statement: a zero, a bit for each column that is NULL, and the values of the others.
pub(super) fn read_binary(row: &[u8], columns: &[Column], into: &mut Vec<Option<String>>) -> Result<(), SqlFailure> {
    into.clear();
    let mut fields = Fields(row);
    fields.byte()?;
    // The first two bits belong to no column.
    let nulls = fields.bytes((columns.len() + 2).div_ceil(8))?;
    for (number, &column) in columns.iter().enumerate() {
        let bit = number + 2;
        let is_null = nulls[bit / 8] & 1 << (bit % 8) != 0;
        into.push(if is_null { None } else { read_value(&mut fields, column)? });
    }
    ends(&fields)
}

fn ends(fields: &Fields<'_>) -> Result<(), SqlFailure> {
    match fields.0.is_empty() {
        true => Ok(()),
        false => Err(broken("a row of the server is longer than its values")),
    }
}

fn read_value(fields: &mut Fields<'_>, column: Column) -> Result<Option<String>, SqlFailure> {
    let unsigned = column.is_unsigned;
    Ok(Some(match column.kind {
        0x01 => whole(unsigned, fields.array()?, u8::from_le_bytes, i8::from_le_bytes),
        0x02 | 0x0D => whole(unsigned, fields.array()?, u16::from_le_bytes, i16::from_le_bytes),
        0x03 | 0x09 => whole(unsigned, fields.array()?, u32::from_le_bytes, i32::from_le_bytes),
        0x08 => whole(unsigned, fields.array()?, u64::from_le_bytes, i64::from_le_bytes),
        0x04 => f32::from_le_bytes(fields.array()?).to_string(),
        0x05 => f64::from_le_bytes(fields.array()?).to_string(),
        0x06 => return Ok(None),
        0x07 | 0x0A | 0x0C | 0x0E => date(fields.text()?)?,
        0x0B => time(fields.text()?)?,
        // Decimal numbers, texts, bits, enumerations, sets, JSON, vectors, geometry: behind their lengths.
        0x00 | 0x0F | 0x10 | 0xF2 | 0xF5..=0xFF => lossy(fields.text()?),
        other => return Err(broken(format!("a column of the server has the type {other:#04x}, which does not exist"))),
    }))
}

fn whole<const N: usize, U: Display, I: Display>(
    is_unsigned: bool,
    bytes: [u8; N],
    unsigned: impl Fn([u8; N]) -> U,
    signed: impl Fn([u8; N]) -> I,
) -> String {
    match is_unsigned {
        true => unsigned(bytes).to_string(),
        false => signed(bytes).to_string(),
    }
}

/// A date, with a time of the day where it is not midnight.
fn date(bytes: &[u8]) -> Result<String, SqlFailure> {
    let mut fields = Fields(bytes);
    if bytes.is_empty() {
        return Ok("0000-00-00".to_owned());
    }
    let (year, [month, day]) = (fields.two()?, fields.array()?);
    let date = format!("{year:04}-{month:02}-{day:02}");
    Ok(match fields.0.is_empty() {
        true => date,
        false => format!("{date} {}", clock(fields, 0)?),
    })
}

/// A span of time.
fn time(bytes: &[u8]) -> Result<String, SqlFailure> {
    let mut fields = Fields(bytes);
    if bytes.is_empty() {
        return Ok("00:00:00".to_owned());
    }
    let sign = if fields.byte()? == 1 { "-" } else { "" };
    let days = fields.four()?;
    Ok(format!("{sign}{}", clock(fields, u64::from(days) * 24)?))
}

fn clock(mut fields: Fields<'_>, hours: u64) -> Result<String, SqlFailure> {
    let [hour, minute, second] = fields.array()?;
    let clock = format!("{:02}:{minute:02}:{second:02}", hours + u64::from(hour));
    Ok(match fields.0.is_empty() {
        true => clock,
        false => format!("{clock}.{:06}", fields.four()?),
    })
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
