//! Logging in: the exchange between the first answer and the server's yes or no.

use super::auth::{self, Plugin};
use super::errors;
use super::handshake::Greeting;
use super::packets::{ERROR_MARK, Fields, broken};
use crate::failure::LOGIN;
use crate::wire::{Login, SqlFailure};

/// Messages of the server until it has decided. A user of MariaDB may have several ways to log in, each of which is tried; more than some
/// is a server that never decides.
const MOST_MESSAGES: u8 = 16;

/// What the server sends.
const ACCEPTED: u8 = 0x00;
const MORE: u8 = 0x01;
const SWITCH: u8 = 0xFE;
/// What it says about a password that goes by `caching_sha2_password`.
const KNOWN_PASSWORD: &[u8] = &[3];
const NEEDS_PASSWORD: &[u8] = &[4];
/// What asks for the key that the password is encrypted with.
const ASK_KEY: u8 = 2;

/// An attempt to log in.
#[derive(Debug)]
pub(super) struct Attempt {
    login: Login,
    /// Whether what is sent goes through TLS.
    is_encrypted: bool,
    /// The server was asked for its key.
    awaits_key: bool,
    plugin: Plugin,
    /// The challenge that the password answers.
    nonce: Vec<u8>,
    messages: u8,
}

/// What follows from a message of the server.
pub(super) enum Step {
    /// We are in.
    Accepted,
    /// This has to be answered.
    Answer(Vec<u8>),
    /// The server goes on.
    Wait,
}

impl Attempt {
    /// Begins with what the server proposes, and where that is unknown, with what all servers know: the server then names the way that
    /// this user has. Answers with what is sent first.
    pub(super) fn begin(greeting: &Greeting, login: Login, is_encrypted: bool) -> Result<(Self, Vec<u8>), SqlFailure> {
        let plugin = match Plugin::named(&greeting.plugin) {
            Some(plugin @ (Plugin::Native | Plugin::CachingSha2)) => plugin,
            _ => Plugin::Native,
        };
        let attempt =
            Self { login, is_encrypted, awaits_key: false, plugin, nonce: greeting.nonce.clone(), messages: 0 };
        let answer = plugin.answer(attempt.password(), &attempt.nonce)?;
        Ok((attempt, answer))
    }

    /// Whom to be.
    pub(super) fn login(&self) -> &Login {
        &self.login
    }

    /// The name of the way that is tried.
    pub(super) fn plugin(&self) -> &'static str {
        self.plugin.name()
    }

    /// Takes a message of the server.
    pub(super) fn take(&mut self, message: &[u8]) -> Result<Step, SqlFailure> {
        self.messages += 1;
        if self.messages > MOST_MESSAGES {
            return Err(broken("the server does not come to an end with logging in"));
        }
        let mut fields = Fields(message);
        match fields.byte()? {
            ACCEPTED => Ok(Step::Accepted),
            ERROR_MARK => Err(errors::read(message)?.at_login()),
            SWITCH => self.switch(fields).map(Step::Answer),
            MORE if self.plugin == Plugin::CachingSha2 => self.go_on(fields.rest()),
            other => Err(broken(format!("the server answers a login with {other:#04x}"))),
        }
    }

    fn switch(&mut self, mut fields: Fields<'_>) -> Result<Vec<u8>, SqlFailure> {
        // Without a name it is the way of MySQL before 4.1, whose answers tell the password.
        if fields.0.is_empty() {
            return Err(auth::unknown(b"mysql_old_password"));
        }
        let name = fields.before_zero()?;
        self.plugin = Plugin::named(name).ok_or_else(|| auth::unknown(name))?;
        self.nonce = fields.rest().to_vec();
        self.awaits_key = false;
        self.plugin.answer(self.password(), &self.nonce)
    }

    fn go_on(&mut self, said: &[u8]) -> Result<Step, SqlFailure> {
        match said {
            key if std::mem::take(&mut self.awaits_key) => {
                auth::encrypted(self.password(), &self.nonce, key).map(Step::Answer)
            }
            KNOWN_PASSWORD => Ok(Step::Wait),
            NEEDS_PASSWORD if self.is_encrypted || self.login.is_socket => {
                Ok(Step::Answer(auth::clear(self.password())))
            }
            // By TCP the server takes it encrypted alone. Nobody is in between on this machine who would send a key of his own.
            NEEDS_PASSWORD if self.login.is_local => {
                self.awaits_key = true;
                Ok(Step::Answer(vec![ASK_KEY]))
            }
            // Other clients do the same on the way to another machine, and encrypt the password to whatever key comes: whoever sits
            // in between sends his own.
            NEEDS_PASSWORD => Err(SqlFailure::new(
                LOGIN,
                "the server has to have the password itself, and duel does not send it over a connection without TLS; \
                 sslmode=require encrypts it",
            )),
            _ => Err(broken("the server goes on with logging in by words that are not known")),
        }
    }

    fn password(&self) -> &str {
        self.login.password.as_deref().unwrap_or_default()
    }
}
