//! A database to ask and to tell things, beside load: servers and SQLite alike.

use crate::address::System;
use crate::client::{Client, Rows};
use crate::failure;
use crate::wire::SqlFailure;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// One of them, open.
#[derive(Debug)]
pub(crate) enum Database {
    Server(Box<Client>, System),
    File(Connection),
}

impl Database {
    pub(crate) fn system(&self) -> System {
        match self {
            Self::Server(_, system) => *system,
            Self::File(_) => System::Sqlite,
        }
    }

    /// Executes a statement and answers its rows as texts.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Rows, SqlFailure> {
        match self {
            Self::Server(client, _) => client.rows(sql),
            Self::File(connection) => sqlite_rows(connection, sql).map_err(|error| sqlite_failure(&error)),
        }
    }

    /// Asks about the server itself, by [`Client::ask_server`], or about SQLite.
    pub(crate) fn ask_server(&mut self, sql: &str) -> Result<Rows, SqlFailure> {
        match self {
            Self::Server(client, _) => client.ask_server(sql),
            Self::File(_) => self.rows(sql),
        }
    }

    /// The first value of the first row of what is asked about the server itself, as a text.
    pub(crate) fn server_text(&mut self, sql: &str) -> Result<Option<String>, SqlFailure> {
        Ok(self.ask_server(sql)?.into_iter().next().and_then(|row| row.into_iter().next()?))
    }

    /// The first value of the first row, as a whole number.
    pub(crate) fn number(&mut self, sql: &str) -> Result<Option<i64>, SqlFailure> {
        Ok(self.rows(sql)?.first().and_then(|row| row.first()?.as_ref()?.trim().parse().ok()))
    }

    /// The first value of the first row, as a text.
    pub(crate) fn text(&mut self, sql: &str) -> Result<Option<String>, SqlFailure> {
        Ok(self.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next()?))
    }

    /// Looks whether a statement can be prepared.
    pub(crate) fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure> {
        match self {
            Self::Server(client, _) => client.prepare(number, sql),
            Self::File(connection) => connection.prepare(sql).map(|_| ()).map_err(|error| sqlite_failure(&error)),
        }
    }

    /// Executes a statement that answers nothing.
    pub(crate) fn run(&mut self, sql: &str) -> Result<(), SqlFailure> {
        match self {
            Self::Server(client, _) => client.run(sql).map(|_| ()),
            Self::File(connection) => connection.execute_batch(sql).map_err(|error| sqlite_failure(&error)),
        }
    }
}

fn sqlite_rows(connection: &Connection, sql: &str) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut all = Rows::new();
    while let Some(row) = rows.next()? {
        let text = |place: usize| {
            Ok(match row.get_ref(place)? {
                ValueRef::Null | ValueRef::Blob(_) => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(number) => Some(number.to_string()),
                ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
            })
        };
        all.push((0..columns).map(text).collect::<rusqlite::Result<_>>()?);
    }
    Ok(all)
}

/// An error of SQLite as a failure of an op.
pub(crate) fn sqlite_failure(error: &rusqlite::Error) -> SqlFailure {
    use rusqlite::ErrorCode;
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => failure::DEADLOCK,
        Some(ErrorCode::ConstraintViolation) => failure::DUPLICATE,
        Some(ErrorCode::ReadOnly) => failure::READ_ONLY,
        Some(ErrorCode::OperationInterrupted) => failure::STATEMENT_TIMEOUT,
        Some(ErrorCode::CannotOpen) => failure::REFUSED,
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => failure::BROKEN,
        Some(ErrorCode::OutOfMemory) => failure::OURS,
        _ => failure::ERROR,
    };
    SqlFailure::new(kind, format!("SQLite says: {error}"))
}
