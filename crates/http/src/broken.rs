//! Why an op cannot go on, in words and as what it is counted.

use super::protocol_error::ProtocolError;
use crate::http1::response::Truncated;
use crate::link::tls::TlsError;
use duel_load::Failure;
use duel_model::FailureKind;
use duel_model::web::failure;
use rustix::io::Errno;

/// What fails where a local address that was asked for cannot be used.
pub(super) const CONNECT_FROM_SOURCE: &str = "connect from a local address that --source gives";

/// Why an op cannot go on.
#[derive(Debug)]
pub(super) enum Broken {
    System(&'static str, Errno),
    Tls(TlsError),
    Protocol(ProtocolError),
    /// The connection ended.
    Cut(Option<Truncated>),
    CutInHandshake,
    /// The connection ended after so many bytes of a body.
    EndedUnannounced(u64),
    /// Bytes of an earlier response came where an answer was to come, and the request may not be sent twice.
    MetSurplus,
    /// The kernel cannot queue another connection to this Unix socket.
    UnixQueueFull,
    /// A proxy does not lead to the target.
    NoTunnel(String),
    /// The server did not choose the protocol that was offered.
    NotHttp2,
}

impl Broken {
    /// The connection is gone, which on a kept one may only mean that it was idle for too long.
    pub(super) fn is_lost_connection(&self) -> bool {
        matches!(
            self,
            Self::System("send" | "receive", Errno::CONNRESET | Errno::PIPE) | Self::Cut(Some(Truncated::Nothing))
        )
    }

    pub(super) fn is_lost_while_sending(&self) -> bool {
        matches!(self, Self::System("send", Errno::CONNRESET | Errno::PIPE))
    }

    pub(super) fn into_failure(self) -> Failure {
        let (kind, text) = match self {
            Self::System(what, errno) => (kind_of(what, errno), system_problem(what, errno)),
            Self::Tls(error) => error.describe(),
            Self::Protocol(error) => (failure::PROTOCOL, error.0),
            Self::CutInHandshake => {
                (failure::TLS, "the server closed the connection during the TLS handshake".to_owned())
            }
            Self::Cut(Some(Truncated::Head)) => {
                (failure::SHORT_BODY, "the server closed the connection within the response's head".to_owned())
            }
            Self::Cut(Some(Truncated::Body { got, announced })) => {
                let of = announced.map_or_else(|| "without its last chunk".to_owned(), |all| format!("of {all}"));
                (failure::SHORT_BODY, format!("the response's body ended after {got} bytes {of}"))
            }
            Self::Cut(Some(Truncated::Nothing) | None) => {
                (failure::CLOSED, "the server closed the connection without an answer".to_owned())
            }
            Self::EndedUnannounced(got) => (
                failure::SHORT_BODY,
                format!("the connection ended after {got} body bytes without a TLS closure alert"),
            ),
            Self::MetSurplus => (
                failure::PROTOCOL,
                "the server sent more bytes than the response before has, and this request may not be sent twice; compare \
                 Content-Length with the body that is sent"
                    .to_owned(),
            ),
            Self::NotHttp2 => (
                failure::TLS,
                "the server does not choose HTTP/2 when it is offered (ALPN h2); switch it on there, or leave --http2 \
                 out to measure HTTP/1.1"
                    .to_owned(),
            ),
            Self::NoTunnel(why) => (failure::UNREACHABLE, why),
            Self::UnixQueueFull => (failure::REFUSED, "the Unix socket's listen queue is full".to_owned()),
        };
        Failure { kind, text }
    }
}

#[cold]
pub(super) fn status_failure(status: u16) -> Box<Failure> {
    Box::new(Failure { kind: failure::STATUS, text: format!("the server answered with status {status}") })
}

pub(super) fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

fn kind_of(what: &str, errno: Errno) -> FailureKind {
    match errno {
        Errno::CONNREFUSED | Errno::NOENT => failure::REFUSED,
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::NETDOWN => failure::UNREACHABLE,
        Errno::CONNRESET | Errno::PIPE | Errno::CONNABORTED => failure::RESET,
        // The kernel gave up: on an established connection because nothing was acknowledged any more.
        Errno::TIMEDOUT if what == "connect" => failure::CONNECT_TIMEOUT,
        Errno::TIMEDOUT => failure::TIMEOUT,
        // A local address that was there when load began.
        Errno::ADDRNOTAVAIL if what == CONNECT_FROM_SOURCE => failure::IO,
        // Where a port is taken by binding, that is what finds none.
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => failure::PORTS_EXHAUSTED,
        Errno::MFILE | Errno::NFILE => failure::DESCRIPTORS_EXHAUSTED,
        _ => failure::IO,
    }
}

fn system_problem(what: &str, errno: Errno) -> String {
    match kind_of(what, errno) {
        failure::REFUSED => "connection refused".to_owned(),
        failure::RESET => "the server reset the connection".to_owned(),
        failure::PORTS_EXHAUSTED => "no local port is free to connect from; keep connections alive, use fewer \
             requests, let this machine use ports of closed ones again at once (net.ipv4.tcp_tw_reuse=1), give more local addresses \
             (--source), or widen net.ipv4.ip_local_port_range"
            .to_owned(),
        failure::DESCRIPTORS_EXHAUSTED => {
            "no descriptor is free to connect with; raise the limit (ulimit -n) or use fewer connections".to_owned()
        }
        _ => {
            let error = std::io::Error::from(errno).to_string();
            format!("cannot {what}: {}", error.split(" (os error").next().unwrap_or_default().to_lowercase())
        }
    }
}
