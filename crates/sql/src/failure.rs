//! How ops fail.

use duel_model::Meaning;

duel_model::in_order! { FailureKind:
    /// No complete answer in time.
    TIMEOUT = "timeout", Meaning::UnansweredInTime;
    /// No connection in time.
    CONNECT_TIMEOUT = "connect-timeout", Meaning::UnconnectedInTime;
    /// Nobody listens there, or the address cannot be reached.
    REFUSED = "refused", Meaning::Unconnected;
    /// The server has as many connections as it takes.
    TOO_MANY = "too-many-connections", Meaning::Unconnected;
    /// No agreement on TLS.
    TLS = "tls", Meaning::Unconnected;
    /// The server does not let this user in.
    LOGIN = "login", Meaning::Unconnected;
    /// The connection was lost, or the server ended it.
    LOST = "lost", Meaning::Lost;
    /// The server broke a deadlock by giving up this transaction, or a lock was waited for too long.
    DEADLOCK = "deadlock", Meaning::Rejected;
    /// The transaction could not be ordered among the others.
    SERIALIZATION = "serialization", Meaning::Rejected;
    /// A row with this key was there already.
    DUPLICATE = "duplicate", Meaning::Rejected;
    /// The server gave up a statement that took longer than it allows.
    STATEMENT_TIMEOUT = "statement-timeout", Meaning::Rejected;
    /// The server takes no writes: it is a standby, or was told so.
    READ_ONLY = "read-only", Meaning::Rejected;
    /// The server refused a statement for another reason.
    ERROR = "sql-error", Meaning::Rejected;
    /// What the server sent is not its protocol.
    BROKEN = "protocol", Meaning::Broken;
    /// The answer is not what these tables have to answer.
    WRONG = "wrong-answer", Meaning::Broken;
    /// This machine ran out of descriptors or local ports.
    OURS = "not-connected", Meaning::Ours;
}
