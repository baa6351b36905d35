//! The first messages: what the server says of itself, and what we answer.

use super::errors;
use super::packets::{ERROR_MARK, Fields, broken};
use crate::failure::{LOGIN, TLS};
use crate::wire::{AskTls, Login, SqlFailure};
use duel_model::sanitize_line;

/// Capabilities, as both sides name theirs by bits.
pub(super) mod capability {
    /// Of a server: it is MySQL. MariaDB leaves it out, and has further bits from 32 on.
    pub(in super::super) const MYSQL: u64 = 1;
    /// An update counts the rows that it found, as in other databases, and not only those whose values became others.
    pub(in super::super) const FOUND_ROWS: u64 = 1 << 1;
    /// Four bytes of flags.
    pub(in super::super) const LONG_FLAG: u64 = 1 << 2;
    /// The answer names a database.
    pub(in super::super) const CONNECT_WITH_DB: u64 = 1 << 3;
    /// The client can be asked for the data of a bulk load.
    pub(in super::super) const LOCAL_FILES: u64 = 1 << 7;
    /// The protocol since MySQL 4.1.
    pub(in super::super) const PROTOCOL_41: u64 = 1 << 9;
    /// TLS.
    pub(in super::super) const SSL: u64 = 1 << 11;
    /// Answers tell whether a transaction is open.
    pub(in super::super) const TRANSACTIONS: u64 = 1 << 13;
    /// Passwords are answered as since MySQL 4.1.
    pub(in super::super) const SECURE_CONNECTION: u64 = 1 << 15;
    /// Ways of logging in have names.
    pub(in super::super) const PLUGIN_AUTH: u64 = 1 << 19;
    /// The answer to a challenge may be longer than 255 bytes. Ours never is, and a length below 251 looks the same without it.
    pub(in super::super) const PLUGIN_AUTH_LENENC: u64 = 1 << 21;
    /// Rows end with one packet that tells all, and columns with none.
    pub(in super::super) const DEPRECATE_EOF: u64 = 1 << 24;
    /// MariaDB: the columns of a prepared statement are told again only if they have changed. Its own clients ask for it, so sysbench
    /// has it, too.
    pub(in super::super) const CACHE_METADATA: u64 = 1 << 36;
}

use capability::*;

/// What we want where the server has it. Results behind results, statements behind statements, files of ours and compression are left
/// out: a server may then send none. Data of tables can be asked for only from a session that fills them.
const WANTED: u64 = MYSQL
    | FOUND_ROWS
    | LONG_FLAG
    | PROTOCOL_41
    | TRANSACTIONS
    | SECURE_CONNECTION
    | PLUGIN_AUTH
    | PLUGIN_AUTH_LENENC
    | DEPRECATE_EOF
    | CACHE_METADATA;

/// Of four bytes per character, so that no text is converted on its way but that of old tables.
const UTF8MB4_GENERAL_CI: u8 = 45;
/// What a greeting begins with, since MySQL 3.21.
const PROTOCOL_VERSION: u8 = 10;
/// What we say that we take in one packet: more than any server sends.
const MOST_PACKET_BYTES: u32 = 1 << 30;
/// Bytes of a challenge that count; a zero follows them.
pub(super) const NONCE_BYTES: usize = 20;

/// What a server says first.
#[derive(Debug)]
pub(super) struct Greeting {
    /// The number that it has given this connection.
    pub(super) connection: u32,
    capabilities: u64,
    /// The challenge.
    pub(super) nonce: Vec<u8>,
    /// The way of logging in that it begins with.
    pub(super) plugin: Vec<u8>,
}

impl Greeting {
    /// Reads it. A server that takes nobody more says so in its place.
    pub(super) fn read(message: &[u8]) -> Result<Self, SqlFailure> {
        if message.first() == Some(&ERROR_MARK) {
            return Err(errors::read(message)?.at_login());
        }
        let mut fields = Fields(message);
        fields.byte()?;
        let name = fields.before_zero()?;
        let connection = fields.four()?;
        let mut nonce = fields.bytes(8)?.to_vec();
        fields.byte()?;
        let mut capabilities = u64::from(fields.two()?);
        if capabilities & PROTOCOL_41 == 0 || capabilities & SECURE_CONNECTION == 0 {
            let name = sanitize_line(&String::from_utf8_lossy(name));
            return Err(broken(format!("this server ({name}) speaks a protocol that is older than MySQL 4.1")));
        }
        fields.byte()?; // its character set
        fields.two()?; // the connection's state
        capabilities |= u64::from(fields.two()?) << 16;
        let nonce_bytes = usize::from(fields.byte()?);
        fields.bytes(6)?;
        let further = fields.four()?;
        if capabilities & MYSQL == 0 {
            capabilities |= u64::from(further) << 32;
        }
        nonce.extend_from_slice(fields.bytes(nonce_bytes.saturating_sub(8).max(13))?);
        nonce.truncate(NONCE_BYTES);
        // Some servers forget the zero behind the name.
        let plugin = match capabilities & PLUGIN_AUTH {
            0 => b"mysql_native_password".to_vec(),
            _ => fields.rest().split(|&byte| byte == 0).next().unwrap_or_default().to_vec(),
        };
        Ok(Self { connection, capabilities, nonce, plugin })
    }

    /// What both sides can and want.
    pub(super) fn agreed(&self, login: &Login) -> Result<u64, SqlFailure> {
        let mut agreed = self.capabilities & WANTED;
        // Without it the end of the columns looks different where they are left out.
        if agreed & DEPRECATE_EOF == 0 {
            agreed &= !CACHE_METADATA;
        }
        if !login.database.is_empty() {
            agreed |= CONNECT_WITH_DB;
        }
        if login.loads_tables {
            agreed |= self.capabilities & LOCAL_FILES;
        }
        match login.tls {
            AskTls::Never => {}
            AskTls::IfOffered | AskTls::Required if self.capabilities & SSL != 0 => agreed |= SSL,
            AskTls::IfOffered => {}
            AskTls::Required => return Err(SqlFailure::new(TLS, "the server offers no TLS")),
        }
        Ok(agreed)
    }
}

/// What is sent in clear text before TLS: capabilities alone.
pub(super) fn ask_for_tls(out: &mut Vec<u8>, agreed: u64) {
    let [a, b, c, d, e, f, g, h] = agreed.to_le_bytes();
    out.extend_from_slice(&[a, b, c, d]);
    out.extend_from_slice(&MOST_PACKET_BYTES.to_le_bytes());
    out.push(UTF8MB4_GENERAL_CI);
    out.extend_from_slice(&[0; 19]);
    // Where a MySQL server is asked, these are zero, too.
    out.extend_from_slice(&[e, f, g, h]);
}

/// Who we are, with the answer to the challenge.
pub(super) fn respond(out: &mut Vec<u8>, agreed: u64, login: &Login, answer: &[u8], plugin: &str) {
    ask_for_tls(out, agreed);
    out.extend_from_slice(login.user.as_bytes());
    out.push(0);
    // An answer of ours is shorter than 251 bytes, so that this is its length in either form.
    out.push(answer.len() as u8);
    out.extend_from_slice(answer);
    if agreed & CONNECT_WITH_DB != 0 {
        out.extend_from_slice(login.database.as_bytes());
        out.push(0);
    }
    if agreed & PLUGIN_AUTH != 0 {
        out.extend_from_slice(plugin.as_bytes());
        out.push(0);
    }
}

/// A name or a database that ends early would be somebody else's.
pub(super) fn check(login: &Login) -> Result<(), SqlFailure> {
    match login.user.contains('\0') || login.database.contains('\0') {
        true => Err(SqlFailure::new(LOGIN, "the names of user and database must not hold a zero byte")),
        false => Ok(()),
    }
}

/// Looks whether what comes first can be a greeting at all. Otherwise a banner of another protocol would be a length that lies.
pub(super) fn check_beginning(begins: &[u8]) -> Result<(), SqlFailure> {
    match begins {
        [_, _, 0, 0, PROTOCOL_VERSION | ERROR_MARK, ..] => Ok(()),
        [_, _, _, _, _, ..] => {
            let begins = String::from_utf8_lossy(&begins[..begins.len().min(40)]);
            let begins = sanitize_line(begins.trim_end());
            Err(broken(format!("what answers there is no MySQL and no MariaDB server; it begins with \"{begins}\"")))
        }
        _ => Ok(()),
    }
}
