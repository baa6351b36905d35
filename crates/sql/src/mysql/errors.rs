//! What errors of the server mean.

use super::packets::{Fields, broken};
use crate::failure::{
    BROKEN, DEADLOCK, DUPLICATE, ERROR, LOGIN, LOST, READ_ONLY, SERIALIZATION, STATEMENT_TIMEOUT, TOO_MANY,
};
use crate::wire::SqlFailure;
use duel_model::FailureKind;

/// An error that the server has sent.
#[derive(Debug)]
pub(super) struct ServerError {
    code: u16,
    text: String,
}

/// Reads it. Before the two sides have agreed on a protocol it may have no SQLSTATE.
pub(super) fn read(message: &[u8]) -> Result<ServerError, SqlFailure> {
    let mut fields = Fields(message);
    fields.byte()?;
    let code = fields.two()?;
    // Reports of progress come under this number, from MariaDB, to whoever has asked for them.
    if code == u16::MAX {
        return Err(broken("the server reports progress, which it was not asked for"));
    }
    let (state, said) = match fields.0.split_first_chunk::<6>() {
        Some((b"#\0\0\0\0\0", said)) => (None, said),
        Some(([b'#', state @ ..], said)) => (Some(String::from_utf8_lossy(state)), said),
        _ => (None, fields.0),
    };
    let said = String::from_utf8_lossy(said);
    let text = match state {
        Some(state) => format!("error {code} ({state}): {said}"),
        None => format!("error {code}: {said}"),
    };
    Ok(ServerError { code, text })
}

impl ServerError {
    /// Before a connection can be used: whatever it is, there is no connection.
    pub(super) fn at_login(self) -> SqlFailure {
        let kind = match kind(self.code) {
            kind @ (TOO_MANY | LOST | BROKEN) => kind,
            _ => LOGIN,
        };
        SqlFailure::new(kind, self.text)
    }

    /// In answer to a statement.
    pub(super) fn at_statement(self) -> SqlFailure {
        SqlFailure::new(kind(self.code), self.text)
    }

    /// Whether the server ends the connection with it.
    pub(super) fn ends_connection(&self) -> bool {
        matches!(kind(self.code), LOST | BROKEN)
    }
}

/// What it is counted under.
fn kind(code: u16) -> FailureKind {
    match code {
        // Deadlock; a lock was waited for too long, or would have had to be waited for; a group has voted the transaction down.
        1213 | 1205 | 3572 | 1614 | 3101 => DEADLOCK,
        // With `innodb_snapshot_isolation`: a row has changed since the snapshot.
        1020 => SERIALIZATION,
        1062 | 1586 => DUPLICATE,
        // `max_connections`, `max_user_connections`, a user's limits, no thread for it.
        1040 | 1203 | 1226 | 1135 => TOO_MANY,
        // `max_statement_time` of MariaDB, `max_execution_time` of MySQL.
        1969 | 3024 => STATEMENT_TIMEOUT,
        // `--read-only` and other options that forbid the statement; a transaction that only reads; a server that only reads.
        1290 | 1792 | 1836 | 4047 => READ_ONLY,
        // Shutting down, killed, idle for too long, and errors of the network as the server saw them; 1153 is a packet that is too
        // large, after which the server closes.
        1053 | 1077..=1080 | 1152 | 1153 | 1158..=1161 | 1184 | 1927 | 2006 | 2013 | 4031 => LOST,
        // The server takes what we sent for no protocol: a bad handshake, out of order, malformed. An unknown command (1047) is what
        // nodes of a Galera cluster say until they are ready.
        1043 | 1156 | 1157 | 1835 => BROKEN,
        1044 | 1045 | 1049 | 1129 | 1130 | 1251 | 1275 | 1698 | 1820 | 1862 | 3118 | 3159 | 4151 => LOGIN,
        _ => ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_read_with_and_without_a_state() {
        let with = read(b"\xff\xbd\x04#40001Deadlock found").unwrap();
        assert_eq!((with.code, with.text.as_str()), (1213, "error 1213 (40001): Deadlock found"));
        assert_eq!(with.at_statement().kind, DEADLOCK);
        let without = read(b"\xff\x10\x04Too many connections").unwrap();
        assert_eq!((without.code, without.text.as_str()), (1040, "error 1040: Too many connections"));
        assert_eq!(without.at_login().kind, TOO_MANY);
        assert_eq!(read(b"\xff\x10").unwrap_err().kind, BROKEN);
    }

    #[test]
    fn what_a_server_says_is_made_safe_to_show() {
        let failure = read(b"\xff\x28\x04#42000\x1b[2J\xfe\xff line\nline").unwrap().at_statement();
        assert!(!failure.text.contains('\x1b') && !failure.text.contains('\n'), "{}", failure.text);
    }
}
