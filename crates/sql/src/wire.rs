//! What all database protocols look like from the event loop: bytes in, bytes out, and what happened.

use crate::failure;
use duel_model::{FailureKind, sanitize_line};
use std::fmt;

/// One connection's protocol, without sockets: bytes in, bytes out.
///
/// One statement is under way at a time, as in sysbench: after [`prepare`], [`execute`] or [`query`] the caller hands over
/// what it receives and asks for what happened, until that is [`Happened::Prepared`], [`Happened::Done`] or
/// [`Happened::Refused`]. An `Err` says that this connection is of no further use: the caller closes it.
///
/// [`prepare`]: Wire::prepare
/// [`execute`]: Wire::execute
/// [`query`]: Wire::query
pub(crate) trait Wire {
    /// Bytes to be sent, in order; the caller removes what it has sent.
    fn outgoing(&mut self) -> &mut Vec<u8>;

    /// Takes received bytes. The caller asks [`next`] until it answers `None` before it hands over more, so that what is kept
    /// is at most these bytes and one unfinished message, which is bounded; rows that nobody reads are passed over as they come.
    ///
    /// [`next`]: Wire::next
    fn receive(&mut self, bytes: &[u8]) -> Result<(), SqlFailure>;

    /// The next thing that happened; `None`: more bytes are needed.
    fn next(&mut self) -> Result<Option<Happened>, SqlFailure>;

    /// Begins to log in (the first bytes may have to come from the server).
    fn log_in(&mut self, login: &Login) -> Result<(), SqlFailure>;

    /// The caller has done the TLS handshake that [`Happened::WantsTls`] asked for: what follows goes through it. Bytes that came
    /// before it in clear text are an error (they could have been put in by somebody in between).
    fn tls_established(&mut self) -> Result<(), SqlFailure>;

    /// Prepares a statement under a small number.
    fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure>;

    /// Executes a prepared statement.
    fn execute(&mut self, number: u16, values: &[Value]) -> Result<(), SqlFailure>;

    /// Executes a text without parameters (BEGIN, COMMIT, SET, DDL, literals).
    fn query(&mut self, sql: &str) -> Result<(), SqlFailure>;

    /// Executes a text that begins a bulk load. Where [`Login::loads_tables`] was not said, and for any other text, a server that
    /// asks for data breaks the protocol.
    fn load(&mut self, sql: &str) -> Result<(), SqlFailure> {
        self.query(sql)
    }

    /// From the next statement on, rows are told one by one ([`Happened::Row`]), or only counted, which is what load does.
    fn want_rows(&mut self, wanted: bool);

    /// The values of the row that [`Happened::Row`] told of, as text, however they came; NULL is `None`. What is no UTF-8 is
    /// replaced. A row of more than [`LONGEST_ROW_BYTES`] that is wanted is an error.
    fn row(&self) -> &[Option<String>];

    /// Goes on with the data of a bulk load that [`Happened::WantsData`] asked for; `None` ends it, and [`Happened::Done`] or
    /// [`Happened::Refused`] follows.
    fn data(&mut self, bytes: Option<&[u8]>) -> Result<(), SqlFailure>;

    /// Whether a transaction is open, as the server has said last.
    fn is_in_transaction(&self) -> bool;

    /// What asks the server, over another connection, to stop what this one does; `None`: it has not told how.
    fn cancellation(&self) -> Option<Cancellation>;

    /// Says good-bye: the bytes that a polite client sends before it closes.
    fn leave(&mut self);
}

/// Longest row that is taken whole where rows are wanted: a fact or a count is some bytes.
pub(crate) const LONGEST_ROW_BYTES: usize = 1 << 20;
/// Longest message that is no row: errors, notices and handshakes are some hundred bytes, and a length that lies is found by it.
pub(crate) const LONGEST_MESSAGE_BYTES: usize = 1 << 16;

/// Rows that a statement changes, at most: a table of PostgreSQL has 32 TiB, and a row at least 28 bytes there.
const MOST_CHANGED: u64 = 1 << 40;

/// How many rows the server says that a statement has changed, where that can be.
pub(crate) fn changed(affected: u64) -> Result<u64, SqlFailure> {
    match affected <= MOST_CHANGED {
        true => Ok(affected),
        false => {
            Err(SqlFailure::new(failure::BROKEN, format!("the server says that a statement changed {affected} rows")))
        }
    }
}

/// What happened on a connection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happened {
    /// The server agrees to TLS: the caller does the handshake now, and then says so.
    WantsTls,
    /// The connection can be used.
    LoggedIn,
    /// The statement is prepared.
    Prepared,
    /// The first row of the statement's answer begins to arrive. Told once for each statement that has rows.
    FirstRow,
    /// A row, where rows are wanted: see [`Wire::row`].
    Row,
    /// The server waits for the data of a bulk load.
    WantsData,
    /// The statement is over.
    Done {
        /// Rows that it answered.
        rows: u64,
        /// Rows that it changed.
        affected: u64,
    },
    /// The server refused the statement. The connection is still good; a transaction, if one is open, has to be rolled back.
    Refused(SqlFailure),
}

/// A value for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// A number with a point, as it was written.
    Decimal(String),
}

/// Whom to be, and how.
#[derive(Clone, PartialEq)]
pub(crate) struct Login {
    /// The user.
    pub(crate) user: String,
    /// The password, where one is known.
    pub(crate) password: Option<String>,
    /// Settings of the session, by their names.
    pub(crate) session: Vec<(String, String)>,
    /// The database; empty: the server's default for the user.
    pub(crate) database: String,
    /// Whether TLS is asked for.
    pub(crate) tls: AskTls,
    /// Whether bulk loads may follow. MySQL's servers hear of it, since data of a client's machine is something to be asked for.
    pub(crate) loads_tables: bool,
    /// Whether bytes go through a Unix socket, or through TLS later, where a password in clear text is nobody else's to read.
    pub(crate) is_local: bool,
    /// Whether the server sees a Unix socket. MySQL takes a password in clear text there, and not by TCP to its own machine.
    pub(crate) is_socket: bool,
}

/// Without the password, whoever prints it.
impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.user, self.database)
    }
}

/// Whether TLS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskTls {
    /// It is not.
    Never,
    /// Where the server has it.
    IfOffered,
    /// Without it there is no connection.
    Required,
}

/// Why a statement or a connection failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SqlFailure {
    /// The kind that it is counted under: one of [`crate::failure`].
    pub(crate) kind: FailureKind,
    /// One sentence for the user, safe to show.
    pub(crate) text: String,
}

impl SqlFailure {
    /// One with a text that may hold what the server said.
    pub(crate) fn new(kind: FailureKind, text: impl AsRef<str>) -> Self {
        Self { kind, text: sanitize_line(text.as_ref()) }
    }
}

/// How a server is told to stop what a connection does.
pub(crate) enum Cancellation {
    /// What is sent in place of a login: PostgreSQL.
    Message(Vec<u8>),
    /// A session's number at the server, and the port of ours that it comes from, where it has one: MySQL.
    Session { number: u32, port: Option<u16> },
}

/// Without the key that the server has given the connection.
impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cancellation")
    }
}
