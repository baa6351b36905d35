//! Servers that lie below HTTP: records, handshakes, certificates, tickets, keys and ends.

use super::act::Act::{
    Close, Drip, Farewell, Fill, Flipped, Forever, HalfSecure, Hear, NewKeys, Pause, Raw, RawMade, Reset, Say, Secure,
    Torn,
};
use super::guise::Guise;
use super::{Expected, Family, Lie, Speaks};

/// An entry of this family: what it is called and does, what comes of it, its acts, and options if it needs others than
/// `-k`.
macro_rules! lie {
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?]) => {
        lie!($name, $does, $expected, [$($act),*], "-k")
    };
    ($name:literal, $does:literal, $expected:ident, [$($act:expr),* $(,)?], $($ask:literal),*) => {
        Lie {
            name: concat!("tls/", $name),
            family: Family::Tls,
            does: $does,
            speaks: Speaks::Https,
            asks: &[$($ask),*],
            acts: &[$($act),*],
            expected: Expected::$expected,
        }
    };
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// The hello of a server of TLS 1.2 with suite C02F, and what differs behind it: extensions.
macro_rules! hello {
    ($version:literal, $suite:literal, $length:literal, $hello:literal, $extensions:literal) => {
        // Record: handshake, TLS 1.2, length; message: hello, length; version, 32 bytes, no session, suite, no compression.
        concat!("\x16\x03\x03\x00", $length, "\x02\x00\x00", $hello, $version,
            "0123456789abcdef0123456789abcdef", "\x00", $suite, "\x00", $extensions)
    };
}

pub(super) const LIES: &[Lie] = &[
    lie!(
        "in-order",
        "a server as it ought to be, so that the others fail for what is wrong with them",
        Ok,
        [Secure(Guise::Plain), Forever(&[Hear, Say(OK)])]
    ),
    // In place of the handshake.
    lie!("silent", "no answer to the client's hello", Failed, []),
    lie!("closes-at-once", "the end before the handshake", Failed, [Close]),
    lie!("resets-at-once", "a reset before the handshake", Failed, [Reset]),
    lie!(
        "is-http",
        "HTTP in place of TLS",
        Failed,
        [Pause(20), Raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), Close]
    ),
    lie!("is-garbage", "escape sequences in place of TLS", Failed, [Raw(b"\x1b[2J\x1b]0;owned\x07 no TLS here\r\n")]),
    lie!("is-zeros", "zeros without end", Failed, [Forever(&[Fill(0, 65_536)])]),
    lie!("is-tls-1-0-records", "records of TLS 0.9", Failed, [Raw(b"\x16\x02\x09\x00\x01\x00")]),
    lie!("alert-fatal", "a fatal alert in place of the hello", Failed, [Raw(b"\x15\x03\x03\x00\x02\x02\x28")]),
    lie!("alert-unknown", "an alert that nobody knows", Failed, [Raw(b"\x15\x03\x03\x00\x02\x02\xfe")]),
    lie!("alert-of-level-9", "an alert of a level that does not exist", Failed, [Raw(b"\x15\x03\x03\x00\x02\x09\x28")]),
    lie!("alerts-without-end", "warnings without end", Failed, [Forever(&[Raw(b"\x15\x03\x03\x00\x02\x01\x5a")])]),
    lie!("alert-of-a-farewell", "a farewell in place of the hello", Failed, [Raw(b"\x15\x03\x03\x00\x02\x01\x00")]),
    lie!(
        "alert-for-another-name",
        "an alert that the name is not known",
        Failed,
        [Raw(b"\x15\x03\x03\x00\x02\x02\x70")]
    ),
    lie!("record-of-unknown-kind", "a record of a kind that does not exist", Failed, [Raw(b"\x63\x03\x03\x00\x02hi")]),
    lie!(
        "record-too-long",
        "a record of 65,535 bytes",
        Failed,
        [Raw(b"\x16\x03\x03\xff\xff"), Forever(&[Fill(0, 65_536)])]
    ),
    lie!(
        "record-empty",
        "empty records of the handshake without end",
        Failed,
        [Forever(&[Raw(b"\x16\x03\x03\x00\x00")])]
    ),
    lie!("record-cut", "half of a record, and silence", Failed, [Raw(b"\x16\x03\x03\x01\x00\x02\x00")]),
    lie!(
        "record-dripped",
        "a byte of a record each 40 ms",
        Failed,
        [Drip(b"\x16\x03\x03\x00\xff\x02\x00\x00\xfb\x03\x030123456789abcdef0123456789abcdef0123456789", 40)]
    ),
    lie!("record-of-data-first", "data before the handshake", Failed, [Raw(b"\x17\x03\x03\x00\x05hello")]),
    lie!(
        "record-of-keys-first",
        "a change of keys before the handshake",
        Failed,
        [Forever(&[Raw(b"\x14\x03\x03\x00\x01\x01")])]
    ),
    // Messages of the handshake.
    lie!(
        "message-of-16-megabytes",
        "a message of the handshake that is said to have 16 MB, in records without end",
        Failed,
        [Raw(b"\x16\x03\x03\x00\x04\x0b\xff\xff\xff"), Forever(&[RawMade(record_of_handshake)])]
    ),
    lie!(
        "message-in-crumbs",
        "a message of the handshake in records of one byte",
        Failed,
        [Raw(b"\x16\x03\x03\x00\x01\x02"), Forever(&[Raw(b"\x16\x03\x03\x00\x01\x00")])]
    ),
    lie!(
        "message-out-of-turn",
        "the end of the handshake at its beginning",
        Failed,
        [Raw(b"\x16\x03\x03\x00\x10\x14\x00\x00\x0c0123456789ab")]
    ),
    lie!(
        "message-of-renegotiation",
        "it asks for the hello that it just got, without end",
        Failed,
        [Forever(&[Raw(b"\x16\x03\x03\x00\x04\x00\x00\x00\x00")])]
    ),
    lie!(
        "hello-of-the-client",
        "a client's hello in place of a server's",
        Failed,
        [Raw(b"\x16\x03\x03\x00\x04\x01\x00\x00\x00")]
    ),
    lie!(
        "hello-cut",
        "a hello that is shorter than it has to be",
        Failed,
        [Raw(b"\x16\x03\x03\x00\x06\x02\x00\x00\x02\x03\x03")]
    ),
    lie!(
        "hello-of-ssl-3",
        "a hello of SSL 3.0",
        Failed,
        [Raw(hello!("\x03\x00", "\x00\x2f", "\x2a", "\x26", "").as_bytes())]
    ),
    lie!(
        "hello-with-a-suite-nobody-offered",
        "a suite without encryption, which was not offered",
        Failed,
        [Raw(hello!("\x03\x03", "\x00\x00", "\x2a", "\x26", "").as_bytes())]
    ),
    lie!("hello-with-a-protocol-nobody-offered", "a protocol that was not offered", Failed, [RawMade(hello_with_h9)]),
    lie!(
        "retry-of-another-session",
        "it wants another hello, for a session that the client did not name",
        Failed,
        [RawMade(retry_request)]
    ),
    lie!(
        "half-a-flight",
        "half of what it has to say in the handshake, and silence",
        Failed,
        [HalfSecure(Guise::Plain)]
    ),
    lie!(
        "half-a-flight-and-the-end",
        "half of what it has to say in the handshake, and the end",
        Failed,
        [HalfSecure(Guise::Tls12), Close]
    ),
    lie!("wants-http2-only", "it accepts no protocol that is offered", Failed, [Secure(Guise::Http2Only)]),
    lie!(
        "chooses-no-protocol",
        "it chooses no protocol, where HTTP/2 has to be chosen",
        Failed,
        [Secure(Guise::NoProtocol), Forever(&[Hear, Say(OK)])],
        "-k",
        "--http2"
    ),
    lie!(
        "wants-a-certificate",
        "it wants a certificate of the client's, which has none",
        Failed,
        [Secure(Guise::WantsCertificate), Hear, Say(OK)]
    ),
    // Certificates.
    lie!(
        "certificate-unknown",
        "a certificate that nobody vouches for",
        Refused,
        [Secure(Guise::Plain), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-expired",
        "a certificate that has run out",
        Refused,
        [Secure(Guise::Expired), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-not-yet",
        "a certificate that is not valid yet",
        Refused,
        [Secure(Guise::NotYet), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-of-another",
        "a certificate of another name",
        Refused,
        [Secure(Guise::OtherName), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-with-escapes",
        "escape sequences in the names of a certificate",
        Refused,
        [Secure(Guise::EscapesInNames), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-with-escapes-unverified",
        "the same, where certificates are not verified",
        Either,
        [Secure(Guise::EscapesInNames), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        "certificate-of-many-names",
        "a certificate of 5,000 names",
        Either,
        [Secure(Guise::ManyNames), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        "certificate-of-many-names-verified",
        "the same, where certificates are verified",
        Refused,
        [Secure(Guise::ManyNames), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "certificate-of-60-kilobytes",
        "a certificate with a huge extension",
        Either,
        [Secure(Guise::HugeExtension), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        "certificate-that-must-be-understood",
        "a certificate with an extension that nobody understands",
        Refused,
        [Secure(Guise::CriticalExtension), Hear, Say(OK)],
        "--tls",
        "1.3"
    ),
    lie!(
        "chain-of-a-hundred",
        "its certificate 150 times",
        Either,
        [Secure(Guise::LongChain), Forever(&[Hear, Say(OK)])]
    ),
    lie!(
        "chain-with-garbage",
        "garbage behind its certificate",
        Either,
        [Secure(Guise::GarbageInChain), Forever(&[Hear, Say(OK)])]
    ),
    // After the handshake.
    lie!("silent-after-the-handshake", "a handshake, and silence", Failed, [Secure(Guise::Plain)]),
    lie!("closes-after-the-handshake", "a handshake, and the end", Failed, [Secure(Guise::Plain), Close]),
    lie!(
        "says-farewell-after-the-handshake",
        "a handshake, and a farewell by TLS, while the connection stays",
        Failed,
        [Secure(Guise::Plain), Hear, Farewell]
    ),
    lie!(
        "ends-without-a-farewell",
        "a body without a length, cut without a farewell by TLS",
        Failed,
        [Secure(Guise::Plain), Hear, Say(b"HTTP/1.1 200 OK\r\n\r\nall of it?"), Close]
    ),
    lie!(
        "ends-with-a-farewell",
        "the same with a farewell, which is in order",
        Either,
        [Secure(Guise::Plain), Hear, Say(b"HTTP/1.1 200 OK\r\n\r\nall of it"), Farewell, Close]
    ),
    lie!(
        "says-more-after-the-farewell",
        "more bytes behind the farewell by TLS",
        Either,
        [Secure(Guise::Plain), Hear, Say(OK), Farewell, Raw(b"\x17\x03\x03\x00\x05hello")]
    ),
    lie!(
        "alert-in-the-body",
        "a fatal alert within a body, which is not encrypted",
        Failed,
        [
            Secure(Guise::Plain),
            Hear,
            Say(b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nok"),
            Pause(5),
            Raw(b"\x15\x03\x03\x00\x02\x02\x28")
        ]
    ),
    lie!("record-torn", "half of a record, and the end", Failed, [Secure(Guise::Plain), Hear, Torn(OK), Close]),
    lie!("record-stalled", "half of a record, and silence", Failed, [Secure(Guise::Plain), Hear, Torn(OK)]),
    lie!("record-flipped", "a record in which one bit is wrong", Failed, [Secure(Guise::Plain), Hear, Flipped(OK)]),
    lie!("record-flipped-in-tls-1-2", "the same in TLS 1.2", Failed, [Secure(Guise::Tls12), Hear, Flipped(OK)]),
    lie!("record-in-the-clear", "an answer that is not encrypted", Failed, [Secure(Guise::Plain), Hear, Raw(OK)]),
    lie!(
        "renegotiates",
        "it wants a new handshake in TLS 1.2, without encrypting that",
        Failed,
        [Secure(Guise::Tls12), Hear, Raw(b"\x16\x03\x03\x00\x04\x00\x00\x00\x00")]
    ),
    lie!(
        "many-tickets",
        "two thousand session tickets",
        Either,
        [Secure(Guise::ManyTickets), Forever(&[Hear, Say(OK)])],
        "-k",
        "--resumption"
    ),
    lie!("new-keys-for-ever", "its keys change without end", Failed, [Secure(Guise::Plain), Hear, Forever(&[NewKeys])]),
    lie!(
        "new-keys-with-each-byte",
        "its keys change with each byte of a body",
        Failed,
        [Secure(Guise::Plain), Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Say(b"x"), NewKeys])]
    ),
    lie!(
        "body-endless",
        "a body without end, encrypted",
        Failed,
        [Secure(Guise::Plain), Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Fill(b'x', 65_536)])]
    ),
    lie!(
        "drips-records",
        "a record of one byte each 30 ms, without end",
        Failed,
        [Secure(Guise::Plain), Hear, Say(b"HTTP/1.1 200 OK\r\n\r\n"), Forever(&[Drip(b"x", 30)])]
    ),
];

/// A record of the handshake with 16 KiB of nothing.
fn record_of_handshake() -> Vec<u8> {
    [&b"\x16\x03\x03\x40\x00"[..], &[0; 16 << 10]].concat()
}

/// A server's hello of TLS 1.2 that chooses the protocol `h9`: record, message, version, 32 bytes, no session, suite
/// C02F, no compression, extensions; ALPN is extension 16 (RFC 7301, 3.1).
fn hello_with_h9() -> Vec<u8> {
    let extensions = b"\x00\x10\x00\x05\x00\x03\x02h9\xff\x01\x00\x01\x00";
    let body = [&b"\x03\x03"[..], &[7; 32], b"\x00\xc0\x2f\x00", &(extensions.len() as u16).to_be_bytes(), extensions]
        .concat();
    handshake(2, &body)
}

/// A hello that asks for another one with a share of group 24, secp384r1 (RFC 8446, 4.1.4): its 32 bytes are the digest of
/// "HelloRetryRequest".
fn retry_request() -> Vec<u8> {
    const RETRY: [u8; 32] = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2,
        0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];
    let extensions = b"\x00\x2b\x00\x02\x03\x04\x00\x33\x00\x02\x00\x18";
    let body =
        [&b"\x03\x03"[..], &RETRY, b"\x00\x13\x01\x00", &(extensions.len() as u16).to_be_bytes(), extensions].concat();
    handshake(2, &body)
}

/// A message of the handshake in a record.
fn handshake(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = body.len() as u32;
    let message = [&[kind][..], &length.to_be_bytes()[1..], body].concat();
    [&b"\x16\x03\x03"[..], &(message.len() as u16).to_be_bytes(), &message].concat()
}
