//! How a session of PostgreSQL is let in: trust, password, MD5, SCRAM-SHA-256.

use super::{broken, messages, reader};
use crate::failure;
use crate::wire::{Login, SqlFailure};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

/// Rounds of SCRAM that a server may ask for. PostgreSQL asks for 4,096; each round is work of ours, and one that asks for four
/// billion wants us to hang.
const MOST_ROUNDS: u32 = 1_000_000;

/// A session on its way in.
pub(super) struct Entrance {
    login: Login,
    is_encrypted: bool,
    scram: Option<ScramSha256>,
    step: Step,
}

impl std::fmt::Debug for Entrance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entrance").field("step", &self.step).finish_non_exhaustive()
    }
}

/// What was said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing.
    Begun,
    /// A password, or its digest.
    Password,
    /// The first message of SCRAM.
    First,
    /// The proof of SCRAM.
    Proof,
    /// The server has proved that it knows the password, too.
    Proved,
    /// Let in.
    In,
}

impl Entrance {
    pub(super) fn new(login: Login, is_encrypted: bool) -> Self {
        Self { login, is_encrypted, scram: None, step: Step::Begun }
    }

    pub(super) fn is_in(&self) -> bool {
        self.step == Step::In
    }

    /// Handles a request of the server to say who we are.
    pub(super) fn hear(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), SqlFailure> {
        let mut reader = reader(body);
        let sort = reader.int().ok_or_else(|| broken("the server sent a broken request to log in"))?;
        self.step = match (sort, self.step) {
            // Who did not answer the proof of SCRAM with its own proof may be anybody.
            (0, Step::Begun | Step::Password | Step::Proved) => Step::In,
            (3, Step::Begun) => {
                if !self.is_encrypted && !self.login.is_local {
                    return Err(SqlFailure::new(
                        failure::LOGIN,
                        "the server asks for the password in clear text over a connection without TLS; duel does not send it \
                         (sslmode=require encrypts the connection)",
                    ));
                }
                let password = [self.password()?.as_bytes(), b"\0"].concat();
                messages::password(out, &password);
                Step::Password
            }
            (5, Step::Begun) => {
                let salt = reader.bytes(4).and_then(|salt| salt.try_into().ok());
                let salt = salt.ok_or_else(|| broken("the server sent a broken request to log in"))?;
                let digest = md5_hash(self.login.user.as_bytes(), self.password()?.as_bytes(), salt);
                messages::password(out, &[digest.as_bytes(), b"\0"].concat());
                Step::Password
            }
            (10, Step::Begun) => {
                let offers = reader.0.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes());
                if !offers {
                    return Err(SqlFailure::new(
                        failure::LOGIN,
                        "the server asks for a kind of SASL other than SCRAM-SHA-256",
                    ));
                }
                let scram = ScramSha256::new(self.password()?.as_bytes(), ChannelBinding::unsupported());
                messages::scram_first(out, SCRAM_SHA_256, scram.message());
                self.scram = Some(scram);
                Step::First
            }
            (11, Step::First) => {
                if rounds(reader.0).is_none_or(|rounds| rounds > MOST_ROUNDS) {
                    return Err(broken("the server asks for more rounds of SCRAM than any server does"));
                }
                let scram = self.scram.as_mut().ok_or_else(|| broken("SCRAM out of order"))?;
                scram.update(reader.0).map_err(|error| broken(format!("SCRAM went wrong: {error}")))?;
                messages::password(out, scram.message());
                Step::Proof
            }
            (12, Step::Proof) => {
                let scram = self.scram.as_mut().ok_or_else(|| broken("SCRAM out of order"))?;
                scram.finish(reader.0).map_err(|_| {
                    SqlFailure::new(failure::LOGIN, "the server could not prove that it knows the password")
                })?;
                Step::Proved
            }
            (2 | 6..=9, _) => {
                let text = "the server asks for a login of a kind that duel does not have (Kerberos, GSSAPI or SSPI)";
                return Err(SqlFailure::new(failure::LOGIN, text));
            }
            _ => return Err(broken("the server's messages of the login are out of order")),
        };
        Ok(())
    }

    fn password(&self) -> Result<&str, SqlFailure> {
        self.login.password.as_deref().ok_or_else(|| {
            SqlFailure::new(
                failure::LOGIN,
                format!(
                    "the server asks for a password of '{}'; give it in PGPASSWORD or in ~/.pgpass",
                    self.login.user
                ),
            )
        })
    }
}

/// The rounds that a server's first message of SCRAM asks for.
fn rounds(message: &[u8]) -> Option<u32> {
    let text = str::from_utf8(message).ok()?;
    text.split(',').find_map(|part| part.strip_prefix("i="))?.parse().ok()
}
