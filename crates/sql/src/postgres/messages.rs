//! The messages of PostgreSQL's protocol, byte by byte.

use super::{broken, reader};
use crate::failure;
use crate::wire::{SqlFailure, Value};
use duel_model::FailureKind;

/// Asks whether the server does TLS.
pub(super) fn ssl_request(out: &mut Vec<u8>) {
    out.extend_from_slice(&8_i32.to_be_bytes());
    out.extend_from_slice(&80_877_103_i32.to_be_bytes());
}

/// Asks, in place of a login, to stop what another connection does.
pub(super) fn cancel_request(out: &mut Vec<u8>, key: &[u8]) {
    out.extend_from_slice(&length(8 + key.len()).to_be_bytes());
    out.extend_from_slice(&80_877_102_i32.to_be_bytes());
    out.extend_from_slice(key);
}

/// Begins a session, with settings of its own.
pub(super) fn startup(out: &mut Vec<u8>, user: &str, database: &str, session: &[(String, String)]) {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&196_608_i32.to_be_bytes());
    let pairs = [("user", user), ("database", database), ("application_name", "duel"), ("client_encoding", "UTF8")];
    let session = session.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in pairs.into_iter().filter(|(_, value)| !value.is_empty()).chain(session) {
        text(out, name);
        text(out, value);
    }
    out.push(0);
    close(out, begin);
}

/// A message of the login: a password, or a step of SCRAM.
pub(super) fn password(out: &mut Vec<u8>, bytes: &[u8]) {
    message(out, b'p', |out| out.extend_from_slice(bytes));
}

/// The first step of SCRAM.
pub(super) fn scram_first(out: &mut Vec<u8>, mechanism: &str, bytes: &[u8]) {
    message(out, b'p', |out| {
        text(out, mechanism);
        out.extend_from_slice(&length(bytes.len()).to_be_bytes());
        out.extend_from_slice(bytes);
    });
}

pub(super) fn parse(out: &mut Vec<u8>, number: u16, sql: &str) {
    message(out, b'P', |out| {
        name(out, number);
        text(out, sql);
        out.extend_from_slice(&[0; 2]);
    });
}

/// Values and results as text: a few bytes more than binary, and right whatever types the statement has.
pub(super) fn bind(out: &mut Vec<u8>, number: u16, values: &[Value]) {
    message(out, b'B', |out| {
        out.push(0);
        name(out, number);
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            let begin = out.len();
            out.extend_from_slice(&[0; 4]);
            match value {
                Value::Int(number) => decimal(out, *number),
                Value::Text(text) | Value::Decimal(text) => out.extend_from_slice(text.as_bytes()),
            }
            let bytes = length(out.len() - begin - 4);
            out[begin..begin + 4].copy_from_slice(&bytes.to_be_bytes());
        }
        out.extend_from_slice(&[0; 2]);
    });
}

/// All rows.
pub(super) fn execute(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0]);
}

pub(super) fn sync(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'S', 0, 0, 0, 4]);
}

pub(super) fn query(out: &mut Vec<u8>, sql: &str) {
    message(out, b'Q', |out| text(out, sql));
}

pub(super) fn copy_data(out: &mut Vec<u8>, bytes: &[u8]) {
    message(out, b'd', |out| out.extend_from_slice(bytes));
}

pub(super) fn copy_done(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'c', 0, 0, 0, 4]);
}

pub(super) fn terminate(out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'X', 0, 0, 0, 4]);
}

fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    close(out, begin);
}

/// Writes the length of what begins here.
fn close(out: &mut [u8], begin: usize) {
    let bytes = length(out.len() - begin);
    out[begin..begin + 4].copy_from_slice(&bytes.to_be_bytes());
}

/// What we send ourselves is short.
fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn name(out: &mut Vec<u8>, number: u16) {
    out.push(b's');
    decimal(out, i64::from(number));
    out.push(0);
}

/// Without the formatting machinery: this is done for each value of each statement.
fn decimal(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    let (mut digits, mut at, mut rest) = ([0; 20], 20, number.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Reads numbers and texts of the wire; `None` where they end too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    pub(super) fn int(&mut self) -> Option<i32> {
        self.bytes(4)?.try_into().ok().map(i32::from_be_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.bytes(2)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// Up to a zero byte.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|&byte| byte == 0)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Some(text)
    }
}

/// The values of a row.
pub(super) fn row(body: &[u8], row: &mut Vec<Option<String>>) -> Result<(), SqlFailure> {
    let mut reader = reader(body);
    let mut read = || {
        for _ in 0..reader.short()? {
            let value = match reader.int()? {
                -1 => None,
                bytes => Some(String::from_utf8_lossy(reader.bytes(usize::try_from(bytes).ok()?)?).into_owned()),
            };
            row.push(value);
        }
        reader.0.is_empty().then_some(())
    };
    read().ok_or_else(|| broken("the server sent a row whose lengths do not fit"))
}

/// Rows that a statement changed, from what the server says of it: `UPDATE 1`, `INSERT 0 1`. `SELECT 1` changes none.
pub(super) fn affected(body: &[u8]) -> u64 {
    let tag = body.split(|&byte| byte == 0).next().unwrap_or_default();
    let Ok(tag) = str::from_utf8(tag) else { return 0 };
    let changes = ["INSERT", "UPDATE", "DELETE", "COPY", "MERGE"].iter().any(|verb| tag.starts_with(verb));
    let count = tag.rsplit(' ').next().and_then(|count| count.parse().ok());
    if changes { count.unwrap_or(0) } else { 0 }
}

/// An error as the server tells it.
#[derive(Debug, Default)]
pub(super) struct Fields {
    severity: String,
    code: String,
    message: String,
}

impl Fields {
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        let (mut fields, mut reader) = (Self::default(), reader(body));
        loop {
            let sort = reader.bytes(1)?[0];
            if sort == 0 {
                return reader.0.is_empty().then_some(fields);
            }
            let text = String::from_utf8_lossy(reader.text()?).into_owned();
            match sort {
                // `S` may be in the server's language; `V`, which comes after it, is not.
                b'S' | b'V' => fields.severity = text,
                b'C' => fields.code = text,
                b'M' => fields.message = text,
                _ => {}
            }
        }
    }

    pub(super) fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    pub(super) fn failure(&self) -> SqlFailure {
        let Self { code, message, .. } = self;
        let kind = self.kind();
        if kind == failure::TOO_MANY {
            return SqlFailure::new(kind, format!("the server takes no more connections (max_connections): {message}"));
        }
        SqlFailure::new(kind, format!("the server says: {message} ({code})"))
    }

    fn kind(&self) -> FailureKind {
        match self.code.as_str() {
            "40P01" | "55P03" => failure::DEADLOCK,
            "40001" => failure::SERIALIZATION,
            "23505" => failure::DUPLICATE,
            "25006" => failure::READ_ONLY,
            // The server's own end comes with this code, too, and as an error that is fatal.
            "57014" if !self.is_fatal() => failure::STATEMENT_TIMEOUT,
            "53300" => failure::TOO_MANY,
            code if code.starts_with("28") || code.starts_with("3D") => failure::LOGIN,
            code if code.starts_with("08P") => failure::BROKEN,
            _ if self.is_fatal() => failure::LOST,
            _ => failure::ERROR,
        }
    }
}

/// What to say of bytes that are not PostgreSQL's.
pub(super) fn foreign(bytes: &[u8]) -> SqlFailure {
    let what = match bytes {
        [b'H', b'T', b'T', b'P', ..] => "it speaks HTTP",
        [b'S', b'S', b'H', b'-', ..] => "it speaks SSH",
        [_, _, 0, 0, 10 | 255, ..] => "it speaks MySQL's: use mysql://",
        [0x15, 3, _, ..] => "it speaks TLS from the first byte on",
        _ => "what it sent is something else",
    };
    broken(format!("the server does not speak PostgreSQL's protocol; {what}"))
}
