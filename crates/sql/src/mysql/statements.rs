//! Prepared statements: what the server has told of them, and how they are executed.

use super::packets::{Fields, broken, write_text};
use super::rows::{Column, MOST_COLUMNS};
use crate::failure::ERROR;
use crate::wire::{SqlFailure, Value};

/// The command that executes one.
const EXECUTE: u8 = 0x17;
/// Types of values, and a second byte: 0, for they are signed.
const LONGLONG: [u8; 2] = [0x08, 0];
const VAR_STRING: [u8; 2] = [0xFD, 0];
/// No cursor: all rows come at once.
const NO_CURSOR: u8 = 0;

/// All that are prepared on a connection, by the numbers that our side gives them.
#[derive(Debug, Default)]
pub(super) struct Statements(Vec<Option<Statement>>);

/// One of them.
#[derive(Debug)]
pub(super) struct Statement {
    /// The server's number.
    pub(super) id: u32,
    /// How many values it takes.
    pub(super) parameters: u16,
    /// Its answer's columns, as they were told last.
    pub(super) columns: Vec<Column>,
    /// The types of values that the server was told last. It remembers them, so they are sent only when they change.
    told_types: Vec<u8>,
}

impl Statements {
    /// The one of this number.
    #[inline]
    pub(super) fn of(&mut self, number: u16) -> Result<&mut Statement, SqlFailure> {
        let found = self.0.get_mut(usize::from(number)).and_then(Option::as_mut);
        found.ok_or_else(|| SqlFailure::new(ERROR, format!("the statement {number} is not prepared")))
    }

    /// Keeps one.
    pub(super) fn put(&mut self, number: u16, statement: Statement) {
        let place = usize::from(number);
        if self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place] = Some(statement);
    }

    /// Forgets one.
    pub(super) fn take(&mut self, number: u16) -> Option<Statement> {
        self.0.get_mut(usize::from(number)).and_then(Option::take)
    }
}

/// What the server says when it has prepared a statement, but for its columns; and how many columns follow.
pub(super) fn read_prepared(message: &[u8]) -> Result<(Statement, u16), SqlFailure> {
    let mut fields = Fields(message);
    fields.byte()?;
    let id = fields.four()?;
    let columns = fields.two()?;
    let parameters = fields.two()?;
    if u64::from(columns) > MOST_COLUMNS {
        return Err(broken(format!("the server says that a statement has {columns} columns")));
    }
    Ok((Statement { id, parameters, columns: Vec::new(), told_types: Vec::new() }, columns))
}

impl Statement {
    /// Whether it takes so many values.
    #[inline]
    pub(super) fn check(&self, values: &[Value]) -> Result<(), SqlFailure> {
        if values.len() == usize::from(self.parameters) {
            return Ok(());
        }
        Err(SqlFailure::new(ERROR, format!("the statement takes {} values, not {}", self.parameters, values.len())))
    }

    /// Appends the command that executes it.
    #[inline]
    pub(super) fn write_execute(&mut self, out: &mut Vec<u8>, values: &[Value]) {
        out.push(EXECUTE);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.push(NO_CURSOR);
        out.extend_from_slice(&1_u32.to_le_bytes()); // once
        if values.is_empty() {
            return;
        }
        // None of ours is NULL.
        out.resize(out.len() + values.len().div_ceil(8), 0);
        let types = values.iter().flat_map(kind);
        if types.clone().eq(self.told_types.iter().copied()) {
            out.push(0);
        } else {
            self.told_types.clear();
            self.told_types.extend(types);
            out.push(1);
            out.extend_from_slice(&self.told_types);
        }
        for value in values {
            match value {
                Value::Int(number) => out.extend_from_slice(&number.to_le_bytes()),
                Value::Text(text) | Value::Decimal(text) => write_text(out, text.as_bytes()),
            }
        }
    }
}

#[inline]
fn kind(value: &Value) -> [u8; 2] {
    match value {
        Value::Int(_) => LONGLONG,
        Value::Text(_) | Value::Decimal(_) => VAR_STRING,
    }
}
/// The statement that sets a session's settings, if there are any. Their names and values hold no quotes; a number in quotes
/// would be one of the wrong type.
pub(super) fn set_session(session: &[(String, String)]) -> Option<String> {
    let set = session.iter().map(|(name, value)| {
        match value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')) {
            true => format!("SESSION {name} = {value}"),
            false => format!("SESSION {name} = '{value}'"),
        }
    });
    (!session.is_empty()).then(|| format!("SET {}", set.collect::<Vec<_>>().join(", ")))
}
