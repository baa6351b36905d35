//! PostgreSQL's protocol, version 3: what to send, and what it means what comes back.
//!
//! Messages are cut here and not by `postgres_protocol`, whose parser wants each of them whole and in shared memory of its own:
//! here rows are counted and passed over as they come, so that a row of a gigabyte costs no memory. Of that crate is what is
//! easy to get wrong: SCRAM and MD5.

mod login;
mod messages;
#[cfg(test)]
mod tests;

use crate::failure;
use crate::wire::{
    self, Cancellation, Happened, LONGEST_MESSAGE_BYTES, LONGEST_ROW_BYTES, Login, SqlFailure, Value, Wire,
};
use login::Entrance;
use messages::{Fields, Reader};

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Postgres {
    outgoing: Vec<u8>,
    incoming: Vec<u8>,
    /// What of `incoming` is done with.
    at: usize,
    /// Bytes of a row that are passed over when they come.
    skip: usize,
    state: State,
    wants_rows: bool,
    row: Vec<Option<String>>,
    /// Of the statement under way.
    rows: u64,
    affected: u64,
    told_first: bool,
    refused: Option<SqlFailure>,
    key: Option<Key>,
    is_in_transaction: bool,
}

/// What lets another connection stop what this one does: a number, and a secret.
struct Key(Vec<u8>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

/// Longest key: a number and, since version 3.2 of the protocol, a secret of up to 256 bytes.
const LONGEST_KEY_BYTES: usize = 4 + 256;

/// What is expected of the server.
#[derive(Debug, Default)]
enum State {
    /// Nothing was sent yet.
    #[default]
    New,
    /// One byte that says whether it does TLS.
    AskedTls(Box<Login>),
    /// The caller does the handshake.
    TlsAgreed(Box<Login>),
    /// It lets us in.
    Entering(Box<Entrance>),
    /// Nothing.
    Idle,
    /// A statement is being prepared.
    Preparing,
    /// A statement is being executed.
    Executing,
    /// The server waits for data of a bulk load.
    TakingData,
}

/// The shortest and the longest thing that a message says of itself.
const HEADER_BYTES: usize = 5;

impl Wire for Postgres {
    fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), SqlFailure> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        if self.at == self.incoming.len() {
            self.incoming.clear();
        } else {
            self.incoming.drain(..self.at);
        }
        self.at = 0;
        self.incoming.extend_from_slice(&bytes[skipped..]);
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Happened>, SqlFailure> {
        if matches!(self.state, State::AskedTls(_)) {
            return self.hear_of_tls();
        }
        loop {
            let Some(&[tag, a, b, c, d]) = self.incoming[self.at..].first_chunk::<HEADER_BYTES>() else {
                return Ok(None);
            };
            let body = i64::from(i32::from_be_bytes([a, b, c, d])) - 4;
            if let State::Entering(_) = self.state
                && !matches!(tag, b'R' | b'E' | b'N' | b'S' | b'K' | b'v' | b'Z')
            {
                return Err(messages::foreign(&self.incoming[self.at..]));
            }
            let Ok(body) = usize::try_from(body) else {
                return Err(broken(format!("the server sent a message of {body} bytes")));
            };
            if tag == b'D' && matches!(self.state, State::Executing) {
                if !self.told_first {
                    self.told_first = true;
                    return Ok(Some(Happened::FirstRow));
                }
                if !self.wants_rows {
                    self.rows += 1;
                    self.pass(HEADER_BYTES + body);
                    continue;
                }
                if body > LONGEST_ROW_BYTES {
                    return Err(broken(format!(
                        "the server sent a row of {body} bytes where a short one was asked for"
                    )));
                }
            } else if body > LONGEST_MESSAGE_BYTES {
                return Err(match self.state {
                    State::Entering(_) => messages::foreign(&self.incoming[self.at..]),
                    _ => broken(format!("the server sent a message of {body} bytes that is no row")),
                });
            }
            let start = self.at + HEADER_BYTES;
            if self.incoming.len() - start < body {
                return Ok(None);
            }
            self.at = start + body;
            if let Some(happened) = self.hear(tag, start, self.at)? {
                return Ok(Some(happened));
            }
        }
    }

    fn log_in(&mut self, login: &Login) -> Result<(), SqlFailure> {
        if login.tls == crate::wire::AskTls::Never {
            return self.enter(login.clone(), false);
        }
        messages::ssl_request(&mut self.outgoing);
        self.state = State::AskedTls(Box::new(login.clone()));
        Ok(())
    }

    fn tls_established(&mut self) -> Result<(), SqlFailure> {
        let State::TlsAgreed(login) = std::mem::take(&mut self.state) else {
            return Err(broken("TLS was established unasked"));
        };
        if self.at < self.incoming.len() {
            return Err(SqlFailure::new(failure::TLS, "the server sent bytes before TLS that belong behind it"));
        }
        self.enter(*login, true)
    }

    fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure> {
        messages::parse(&mut self.outgoing, number, sql);
        messages::sync(&mut self.outgoing);
        self.begin(State::Preparing);
        Ok(())
    }

    fn execute(&mut self, number: u16, values: &[Value]) -> Result<(), SqlFailure> {
        messages::bind(&mut self.outgoing, number, values);
        messages::execute(&mut self.outgoing);
        messages::sync(&mut self.outgoing);
        self.begin(State::Executing);
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<(), SqlFailure> {
        if sql.contains('\0') {
            return Err(SqlFailure::new(failure::ERROR, "a statement cannot hold a zero byte"));
        }
        messages::query(&mut self.outgoing, sql);
        self.begin(State::Executing);
        Ok(())
    }

    fn want_rows(&mut self, wanted: bool) {
        self.wants_rows = wanted;
    }

    fn row(&self) -> &[Option<String>] {
        &self.row
    }

    fn data(&mut self, bytes: Option<&[u8]>) -> Result<(), SqlFailure> {
        match bytes {
            Some(bytes) => messages::copy_data(&mut self.outgoing, bytes),
            None => {
                messages::copy_done(&mut self.outgoing);
                self.state = State::Executing;
            }
        }
        Ok(())
    }

    fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    fn cancellation(&self) -> Option<Cancellation> {
        let mut message = Vec::new();
        messages::cancel_request(&mut message, &self.key.as_ref()?.0);
        Some(Cancellation::Message(message))
    }

    fn leave(&mut self) {
        messages::terminate(&mut self.outgoing);
    }
}

impl Postgres {
    fn enter(&mut self, login: Login, is_encrypted: bool) -> Result<(), SqlFailure> {
        messages::startup(&mut self.outgoing, &login.user, &login.database, &login.session);
        self.state = State::Entering(Box::new(Entrance::new(login, is_encrypted)));
        Ok(())
    }

    fn begin(&mut self, state: State) {
        self.state = state;
        self.rows = 0;
        self.affected = 0;
        self.told_first = false;
        self.refused = None;
    }

    /// Passes over bytes, also those that have not come yet.
    fn pass(&mut self, bytes: usize) {
        let here = bytes.min(self.incoming.len() - self.at);
        self.at += here;
        self.skip = bytes - here;
    }

    fn hear_of_tls(&mut self) -> Result<Option<Happened>, SqlFailure> {
        let Some(&answer) = self.incoming.get(self.at) else { return Ok(None) };
        let State::AskedTls(login) = std::mem::take(&mut self.state) else { return Ok(None) };
        // An answer of more than one byte is none: it would be read as if it had come through TLS.
        let is_alone = self.incoming.len() - self.at == 1;
        match answer {
            b'S' | b'N' if !is_alone => Err(messages::foreign(&self.incoming[self.at..])),
            b'S' => {
                self.at += 1;
                self.state = State::TlsAgreed(login);
                Ok(Some(Happened::WantsTls))
            }
            b'N' if login.tls == crate::wire::AskTls::Required => {
                Err(SqlFailure::new(failure::TLS, "the server does no TLS; sslmode=disable and prefer do without it"))
            }
            b'N' => {
                self.at += 1;
                self.enter(*login, false)?;
                Ok(None)
            }
            _ => Err(messages::foreign(&self.incoming[self.at..])),
        }
    }

    /// Handles a whole message.
    fn hear(&mut self, tag: u8, start: usize, end: usize) -> Result<Option<Happened>, SqlFailure> {
        let body = &self.incoming[start..end];
        match tag {
            // What a server may say at any time.
            b'N' | b'S' | b'A' => return Ok(None),
            b'E' => return self.hear_error(start, end),
            _ => {}
        }
        match (&mut self.state, tag) {
            (State::Entering(entrance), b'R') => {
                entrance.hear(body, &mut self.outgoing)?;
                Ok(None)
            }
            (State::Entering(_), b'K') if body.len() <= LONGEST_KEY_BYTES => {
                self.key = Some(Key(body.to_vec()));
                Ok(None)
            }
            (State::Entering(_), b'v') => Ok(None),
            (State::Entering(entrance), b'Z') if entrance.is_in() => {
                self.state = State::Idle;
                Ok(Some(Happened::LoggedIn))
            }
            (State::Preparing, b'1') | (State::Executing, b'2' | b'T' | b'n' | b'I' | b's') => Ok(None),
            (State::Executing, b'D') => {
                self.rows += 1;
                self.row.clear();
                messages::row(body, &mut self.row)?;
                Ok(Some(Happened::Row))
            }
            (State::Executing, b'C') => {
                self.affected = wire::changed(self.affected.saturating_add(messages::affected(body)))?;
                Ok(None)
            }
            (State::Executing, b'G') => {
                self.state = State::TakingData;
                Ok(Some(Happened::WantsData))
            }
            (State::Executing, b'H') => {
                Err(SqlFailure::new(failure::ERROR, "a statement that copies data out is no statement for load"))
            }
            (State::Preparing | State::Executing, b'Z') => {
                if !matches!(body, b"I" | b"T" | b"E") {
                    return Err(broken("the server ended a statement in a state that does not exist"));
                }
                self.is_in_transaction = body != b"I";
                let was_preparing = matches!(self.state, State::Preparing);
                self.state = State::Idle;
                Ok(Some(match self.refused.take() {
                    Some(why) => Happened::Refused(why),
                    None if was_preparing => Happened::Prepared,
                    None => Happened::Done { rows: self.rows, affected: self.affected },
                }))
            }
            _ => Err(broken(format!(
                "the server sent a message of the kind '{}' that does not belong there",
                tag as char
            ))),
        }
    }

    fn hear_error(&mut self, start: usize, end: usize) -> Result<Option<Happened>, SqlFailure> {
        let fields =
            Fields::read(&self.incoming[start..end]).ok_or_else(|| broken("the server sent a broken error"))?;
        let why = fields.failure();
        let is_over = fields.is_fatal() || matches!(self.state, State::Entering(_) | State::Idle | State::New);
        if is_over {
            return Err(why);
        }
        if matches!(self.state, State::TakingData) {
            self.state = State::Executing;
        }
        self.refused.get_or_insert(why);
        Ok(None)
    }
}

/// What the server sent is not its protocol.
fn broken(text: impl AsRef<str>) -> SqlFailure {
    SqlFailure::new(failure::BROKEN, text)
}

/// Reads numbers of the wire.
fn reader(bytes: &[u8]) -> Reader<'_> {
    Reader(bytes)
}
