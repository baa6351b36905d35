//! The schema of requests over HTTP.

use crate::schema::{Noun, Schema};

/// What requests declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "http",
    op: Noun { one: "request", many: "requests" },
    lane: Noun { one: "connection", many: "connections" },
    shared_lane: Noun { one: "stream", many: "streams" },
    phases: phase::ALL,
    failures: failure::ALL,
}
.sound();

/// The parts of a request, in the order in which it goes through them.
pub mod phase {
    use crate::When;

    crate::in_order! { Phase:
        /// Looking up the name.
        DNS = "dns", When::Beforehand;
        /// TCP (or Unix socket) connection: until it is established.
        CONNECT = "connect", When::Connecting;
        /// TLS handshake: until the request may be sent.
        TLS = "tls", When::Connecting;
        /// Handing the request to the kernel.
        SEND = "send", When::Each;
        /// From the request's last byte sent to the first byte of the response.
        WAIT = "wait", When::Each;
        /// From the first byte of the response to its last.
        RECEIVE = "receive", When::Each;
    }
}

/// How requests fail.
pub mod failure {
    use crate::Meaning;

    crate::in_order! { FailureKind:
        /// Nobody listens: connection refused.
        REFUSED = "refused", Meaning::Unconnected;
        /// No route, host or network unreachable.
        UNREACHABLE = "unreachable", Meaning::Unconnected;
        /// The peer reset the connection.
        RESET = "reset", Meaning::Lost;
        /// The peer closed the connection before the first byte of a response.
        CLOSED = "closed", Meaning::Lost;
        /// Connecting took longer than allowed.
        CONNECT_TIMEOUT = "connect-timeout", Meaning::UnconnectedInTime;
        /// The request took longer than allowed.
        TIMEOUT = "timeout", Meaning::UnansweredInTime;
        /// The TLS handshake or a TLS record failed.
        TLS = "tls", Meaning::Unconnected;
        /// The response broke the rules of its protocol.
        PROTOCOL = "protocol", Meaning::Broken;
        /// The response's status is an error (400 and above).
        STATUS = "status", Meaning::Rejected;
        /// The response ended before the length that it announced.
        SHORT_BODY = "short-body", Meaning::Broken;
        /// No local port was free to connect from.
        PORTS_EXHAUSTED = "ports-exhausted", Meaning::Ours;
        /// No descriptor was free to connect with.
        DESCRIPTORS_EXHAUSTED = "descriptors-exhausted", Meaning::Ours;
        /// Another error of the operating system.
        IO = "io", Meaning::Lost;
    }
}
