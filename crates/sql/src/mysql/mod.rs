//! The protocol of MySQL and MariaDB, without sockets: bytes in, bytes out.
//!
//! It is written by hand. The crate `mysql_common` would bring some fifty others (regular expressions, UUIDs, a second base64, several
//! hashes), and reads each row into values of its own, while load only has to find where an answer ends: rows that nobody wants are passed
//! over by their lengths. Executing a prepared statement allocates nothing once its buffers have grown.
//!
//! What a server can make this side keep is bounded by [`LONGEST_ROW_BYTES`](crate::wire::LONGEST_ROW_BYTES) and
//! [`LONGEST_MESSAGE_BYTES`], beside the bytes of one [`Wire::receive`]. A server that asks for a file of this machine never
//! gets one: all that LOAD DATA LOCAL sends is rows that were made here, under a name that is no file's.

mod answers;
mod auth;
mod ed25519;
mod errors;
pub(crate) mod facts;
mod handshake;
mod login;
mod packets;
mod rows;
mod statements;
#[cfg(test)]
mod tests;

use crate::failure::LOGIN;
use crate::wire::{Cancellation, Happened, LONGEST_MESSAGE_BYTES, Login, SqlFailure, Value, Wire};
use answers::{Answer, Described};
use handshake::{Greeting, capability};
use login::{Attempt, Step};
use packets::{ERROR_MARK, Incoming, broken};
use statements::Statements;
use std::fmt;
use std::ops::Range;

const QUIT: u8 = 0x01;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const CLOSE_STATEMENT: u8 = 0x19;
/// What a bulk load calls its data, where a client of files would name one.
pub(crate) const LOADED_NAME: &str = "rows of duel";
/// Data of a bulk load in one message: less than what a message of one packet can hold, and than what servers take in one
/// (`max_allowed_packet`, of which 1 MiB was the default once).
const MOST_DATA_BYTES: usize = 1 << 19;

/// A connection to a MySQL or MariaDB server.
#[derive(Default)]
pub(crate) struct MySql {
    incoming: Incoming,
    outgoing: Vec<u8>,
    stage: Stage,
    /// Until the server has greeted us.
    login: Option<Login>,
    /// What both sides have agreed on.
    agreed: u64,
    statements: Statements,
    /// What the caller wants from the next statement on.
    wants_rows: bool,
    answer: Answer,
    /// The server's number of this connection.
    connection: Option<u32>,
    row: Vec<Option<String>>,
    /// Answers tell it, and errors do not: then it is as it was.
    is_in_transaction: bool,
    /// The statement under way sets what the login asked for: we are in when it is over.
    sets_session: bool,
}

/// Without what is sent: a password may be in it.
impl fmt::Debug for MySql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MySql").field("stage", &self.stage).finish_non_exhaustive()
    }
}

/// What is waited for.
#[derive(Debug, Default)]
enum Stage {
    /// The server's first message.
    #[default]
    Greeting,
    /// The caller's TLS.
    Tls(Greeting, Login),
    /// The server's answer to our login.
    LoggingIn(Attempt),
    /// Nothing: the next statement.
    Idle,
    /// What becomes of a statement that is to be prepared.
    Prepared(u16),
    /// Descriptions of so many columns.
    Columns(Described, u16),
    /// The first message of an answer.
    Answer,
    /// Nothing: we send the data of a bulk load.
    Data,
    /// Rows, and their end.
    Rows,
    /// Nothing any more.
    Over(SqlFailure),
}

impl Wire for MySql {
    fn outgoing(&mut self) -> &mut Vec<u8> {
        &mut self.outgoing
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), SqlFailure> {
        match &self.stage {
            Stage::Over(failure) => Err(failure.clone()),
            _ => self.incoming.receive(bytes).map_err(|failure| self.over(failure)),
        }
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Happened>, SqlFailure> {
        self.advance().map_err(|failure| self.over(failure))
    }

    fn log_in(&mut self, login: &Login) -> Result<(), SqlFailure> {
        handshake::check(login)?;
        self.login = Some(login.clone());
        Ok(())
    }

    fn tls_established(&mut self) -> Result<(), SqlFailure> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Tls(..) if !self.incoming.is_empty() => {
                Err(self
                    .over(broken("bytes came in clear text after TLS was agreed on: somebody may have put them in")))
            }
            Stage::Tls(greeting, login) => self.respond(&greeting, login).map_err(|failure| self.over(failure)),
            _ => Err(self.over(broken("TLS was established, but not asked for"))),
        }
    }

    fn prepare(&mut self, number: u16, sql: &str) -> Result<(), SqlFailure> {
        self.begin(None)?;
        if let Some(former) = self.statements.take(number) {
            // It has no answer.
            self.command(CLOSE_STATEMENT, &former.id.to_le_bytes());
        }
        self.command(PREPARE, sql.as_bytes());
        self.stage = Stage::Prepared(number);
        Ok(())
    }

    #[inline]
    fn execute(&mut self, number: u16, values: &[Value]) -> Result<(), SqlFailure> {
        self.begin(Some(number))?;
        let statement = self.statements.of(number)?;
        statement.check(values)?;
        let next = packets::write(&mut self.outgoing, 0, |out| statement.write_execute(out, values));
        self.incoming.expect(next);
        self.stage = Stage::Answer;
        Ok(())
    }

    fn query(&mut self, sql: &str) -> Result<(), SqlFailure> {
        self.begin(None)?;
        self.command(QUERY, sql.as_bytes());
        self.stage = Stage::Answer;
        Ok(())
    }

    fn load(&mut self, sql: &str) -> Result<(), SqlFailure> {
        self.query(sql)?;
        self.answer.offer_data();
        Ok(())
    }

    fn data(&mut self, bytes: Option<&[u8]>) -> Result<(), SqlFailure> {
        match &self.stage {
            Stage::Data => {}
            Stage::Over(failure) => return Err(failure.clone()),
            _ => return Err(broken("data was sent that nobody waits for")),
        }
        match bytes {
            // An empty message would end the load.
            Some(bytes) => bytes.chunks(MOST_DATA_BYTES).for_each(|part| self.answer_with(|out| out.extend(part))),
            None => {
                self.answer_with(|_| {});
                self.stage = Stage::Answer;
            }
        }
        Ok(())
    }

    fn want_rows(&mut self, wanted: bool) {
        self.wants_rows = wanted;
    }

    fn row(&self) -> &[Option<String>] {
        &self.row
    }

    fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    fn cancellation(&self) -> Option<Cancellation> {
        Some(Cancellation::Session { number: self.connection?, port: None })
    }

    fn leave(&mut self) {
        if matches!(self.stage, Stage::Idle) {
            self.command(QUIT, &[]);
        }
    }
}

impl MySql {
    /// Nothing goes on from here, and the reason stays.
    #[cold]
    fn over(&mut self, failure: SqlFailure) -> SqlFailure {
        self.stage = Stage::Over(failure.clone());
        failure
    }

    fn begin(&mut self, statement: Option<u16>) -> Result<(), SqlFailure> {
        match &self.stage {
            Stage::Idle => {
                self.answer = Answer::awaited(statement, self.wants_rows);
                Ok(())
            }
            Stage::Over(failure) => Err(failure.clone()),
            _ => Err(broken("a statement was begun before the last one was over")),
        }
    }

    fn command(&mut self, command: u8, text: &[u8]) {
        let next = packets::write(&mut self.outgoing, 0, |out| {
            out.push(command);
            out.extend_from_slice(text);
        });
        self.incoming.expect(next);
    }

    /// Appends a message that answers the server's last one.
    fn answer_with(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let number = self.incoming.answer_number();
        packets::write(&mut self.outgoing, number, fill);
    }

    /// Goes on until something has happened, or more bytes are needed.
    #[inline]
    fn advance(&mut self) -> Result<Option<Happened>, SqlFailure> {
        loop {
            match &self.stage {
                Stage::Rows => return self.rows(),
                Stage::Over(failure) => return Err(failure.clone()),
                Stage::Tls(..) => return Ok(None),
                Stage::Greeting if self.login.is_none() => return Ok(None),
                Stage::Greeting => handshake::check_beginning(self.incoming.unread())?,
                Stage::Idle => self.incoming.check_unasked()?,
                _ => {}
            }
            let Some(head) = self.incoming.head()? else { return Ok(None) };
            let Some(place) = self.incoming.whole(head, LONGEST_MESSAGE_BYTES)? else { return Ok(None) };
            let happened = match self.stage {
                Stage::Greeting => self.greeted(place)?,
                Stage::LoggingIn(_) => self.logging_in(place)?,
                Stage::Idle => return Err(errors::read(self.incoming.payload(place))?.at_statement()),
                _ if head.first == ERROR_MARK => self.refused(place)?,
                Stage::Prepared(number) => self.prepared(number, head, place)?,
                Stage::Columns(of, left) => self.described(of, left, head, place)?,
                Stage::Answer => self.answered(head, place)?,
                Stage::Data => return Err(broken("the server speaks before the data has come to its end")),
                Stage::Rows | Stage::Tls(..) | Stage::Over(_) => None,
            };
            match happened {
                None => {}
                Some(happened) if self.sets_session => return self.session_set(happened).map(Some),
                happened => return Ok(happened),
            }
        }
    }

    /// The server has greeted us: we ask for TLS, or say who we are.
    fn greeted(&mut self, place: Range<usize>) -> Result<Option<Happened>, SqlFailure> {
        let greeting = Greeting::read(self.incoming.payload(place))?;
        let Some(login) = self.login.take() else { return Ok(None) };
        self.connection = Some(greeting.connection);
        self.agreed = greeting.agreed(&login)?;
        if self.agreed & capability::SSL == 0 {
            return self.respond(&greeting, login).map(|()| None);
        }
        let agreed = self.agreed;
        self.answer_with(|out| handshake::ask_for_tls(out, agreed));
        self.stage = Stage::Tls(greeting, login);
        Ok(Some(Happened::WantsTls))
    }

    /// Says who we are.
    fn respond(&mut self, greeting: &Greeting, login: Login) -> Result<(), SqlFailure> {
        let agreed = self.agreed;
        let is_encrypted = agreed & capability::SSL != 0;
        let (attempt, answer) = Attempt::begin(greeting, login, is_encrypted)?;
        self.answer_with(|out| handshake::respond(out, agreed, attempt.login(), &answer, attempt.plugin()));
        self.stage = Stage::LoggingIn(attempt);
        Ok(())
    }

    /// The statement that sets what the login asked for is over.
    #[cold]
    fn session_set(&mut self, happened: Happened) -> Result<Happened, SqlFailure> {
        self.sets_session = false;
        match happened {
            Happened::Done { .. } => Ok(Happened::LoggedIn),
            Happened::Refused(why) => Err(SqlFailure::new(LOGIN, format!("the session's settings: {}", why.text))),
            other => Err(broken(format!("{other:?} instead of an answer to SET"))),
        }
    }

    fn logging_in(&mut self, place: Range<usize>) -> Result<Option<Happened>, SqlFailure> {
        let Stage::LoggingIn(attempt) = &mut self.stage else { return Ok(None) };
        match attempt.take(self.incoming.payload(place))? {
            Step::Accepted => {
                let set = statements::set_session(&attempt.login().session);
                self.stage = Stage::Idle;
                let Some(set) = set else { return Ok(Some(Happened::LoggedIn)) };
                self.query(&set)?;
                self.sets_session = true;
            }
            Step::Answer(answer) => self.answer_with(|out| out.extend_from_slice(&answer)),
            Step::Wait => {}
        }
        Ok(None)
    }
}
