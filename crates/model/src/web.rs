//! What the web's kind of work declares: its nouns, phases and failures; the names of the facts that it tells of a target, with
//! what is declared of them and what they were called before facts had names.

pub mod settings;

use crate::facts::{Compared, Declaration, Facts, Known, Value};
use crate::schema::{Noun, Schema};
use crate::{MILLISECOND_NS, Nanos};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// What requests declare of themselves.
pub const SCHEMA: Schema = Schema {
    kind: "http",
    targets: "Web servers",
    op: Noun { one: "request", many: "requests" },
    lane: Noun { one: "connection", many: "connections" },
    shared_lane: Noun { one: "stream", many: "streams" },
    phases: phase::ALL,
    failures: failure::ALL,
    bytes: "bytes read",
    facts_title: "Negotiated",
    facts: FACTS,
    params: settings::PARAMS,
    runs_targets: false,
    reaches: &[],
    threads: crate::Threads::OfDuel,
    depth: None,
    replaces: None,
    counters: counter::ALL,
    parts: None,
    held_back: Some(crate::HeldBack { phase: phase::RECEIVE, at_once: &settings::QUICK_ACK }),
    streamed: None,
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

/// What is counted beside requests and bytes.
pub mod counter {
    crate::in_order! { Counter:
        /// Requests that took [`SENT_AGAIN_NS`](super::SENT_AGAIN_NS) or longer because TCP at this end had to send a segment of theirs
        /// again. Missing where none took so long, and where the system does not tell.
        SENT_AGAIN = "tcp_sent_again", "late, sent again by TCP";
    }
}

/// Linux waits for at least 200 ms before it sends data again (`TCP_RTO_MIN`), other systems as long or longer; the clock behind
/// it may tick a little early.
pub const SENT_AGAIN_NS: Nanos = 190 * MILLISECOND_NS;

/// HTTP version of the response's status line, such as `HTTP/1.1`.
pub const HTTP_VERSION: &str = "http.version";
/// TLS version, such as `1.3`.
pub const TLS_VERSION: &str = "tls.version";
/// Cipher suite by IANA name.
pub const TLS_CIPHER: &str = "tls.cipher";
/// Key exchange group.
pub const TLS_GROUP: &str = "tls.group";
/// Protocol chosen by ALPN.
pub const TLS_ALPN: &str = "tls.alpn";
/// Type and size of the server certificate's key: a [`CertificateKey`] as text.
pub const CERTIFICATE_KEY: &str = "tls.certificate_key";
/// Bytes of the certificate chain as sent.
pub const CHAIN_BYTES: &str = "tls.chain_bytes";
/// The response's `Server` field.
pub const SERVER: &str = "http.server";
/// The response's `Via` field.
pub const VIA: &str = "http.via";
/// Status of the response.
pub const STATUS: &str = "http.status";
/// The response's `Content-Type`.
pub const CONTENT_TYPE: &str = "http.content_type";
/// The response's `Content-Encoding`.
pub const CONTENT_ENCODING: &str = "http.content_encoding";
/// The response's `Location`: as sent where it is to be followed, and in a run as [`Facts::kept`] leaves it.
pub const LOCATION: &str = "http.location";
/// Bytes of the response's body as transferred.
pub const BODY_BYTES: &str = "http.body_bytes";
/// HTTP/2: how many requests the server takes at a time on a connection.
pub const MAX_STREAMS: &str = "http.max_streams";
/// HTTP/2: how many bytes of a request's body the server takes ahead of its leave, on each stream.
pub const STREAM_WINDOW_BYTES: &str = "http.stream_window_bytes";
/// Whether the server left the connection open when we asked it to.
pub const KEEPS_ALIVE: &str = "http.keeps_alive";
pub use crate::facts::PEER;
/// Addresses of the target's name that did not answer before the peer did, and why.
pub const DEAD_ADDRESSES: &str = "net.dead_addresses";
/// Time that was lost on them before measuring.
pub const DEAD_ADDRESSES_NS: &str = "net.dead_addresses_ns";
/// Another address of the target's name, of the other family than the peer's and not found dead; missing where there is none, and
/// where connections go to addresses of both.
pub const OTHER_FAMILY: &str = "net.other_family";
/// The family of all addresses that looking up the target's name found, where that is one: `IPv4` or `IPv6`. Missing where the plan
/// says which addresses may be used, and where no name was looked up.
pub const ONLY_FAMILY: &str = "net.only_family";
/// Largest segment of the connection: what the peer announced, as far as the path allows it.
pub const SEGMENT_BYTES: &str = "net.segment_bytes";
/// Time that looking up the target's name took before measuring; missing where there was nothing to look up.
pub const LOOKUP_NS: &str = "net.lookup_ns";

/// All of them.
pub(crate) const FACTS: &[Declaration] = &[
    Declaration { noun: "HTTP version", is_of_twins: false, ..agreed(HTTP_VERSION, "protocol") },
    Declaration { noun: "TLS version", ..agreed(TLS_VERSION, "TLS") },
    agreed(TLS_CIPHER, "cipher"),
    agreed(TLS_GROUP, "group"),
    Declaration { is_doubted: true, ..Declaration::listed(TLS_ALPN, "ALPN") },
    Declaration { noun: "certificate key", is_of_twins: false, ..agreed(CERTIFICATE_KEY, "key") },
    Declaration { noun: "size of the certificate chain", is_doubted: false, ..agreed(CHAIN_BYTES, "chain bytes") },
    Declaration { noun: "Server field", is_of_twins: true, ..Declaration::listed(SERVER, "server") },
    Declaration::listed(VIA, "via"),
    Declaration { is_held: true, ..answered(STATUS, "status") },
    Declaration { noun: "Content-Type", ..answered(CONTENT_TYPE, "type") },
    Declaration { noun: "Content-Encoding", is_held: true, ..answered(CONTENT_ENCODING, "encoding") },
    Declaration { is_of_twins: false, is_address: true, ..answered(LOCATION, "location") },
    Declaration { noun: "size of the body", ..answered(BODY_BYTES, "body bytes") },
    Declaration { unbounded: Some((1 << 31) - 1), ..Declaration::listed(MAX_STREAMS, "streams") },
    Declaration::unlisted(STREAM_WINDOW_BYTES),
    Declaration::listed(KEEPS_ALIVE, "keeps alive"),
    Declaration { compared: Compared::WithoutPort, ..Declaration::listed(PEER, "peer") },
    Declaration::listed(DEAD_ADDRESSES, "no answer"),
    Declaration::unlisted(DEAD_ADDRESSES_NS),
    Declaration::unlisted(OTHER_FAMILY),
    Declaration::unlisted(ONLY_FAMILY),
    Declaration::unlisted(SEGMENT_BYTES),
    Declaration::unlisted(LOOKUP_NS),
];

/// What both ends agreed on.
const fn agreed(name: &'static str, label: &'static str) -> Declaration {
    Declaration { is_doubted: true, is_held: true, is_of_twins: true, ..Declaration::listed(name, label) }
}

/// What one answer told.
const fn answered(name: &'static str, label: &'static str) -> Declaration {
    Declaration { is_of_answer: true, is_of_twins: true, ..Declaration::listed(name, label) }
}

/// What facts were called in archives before schema 7, and are in documents of `duel/1` for ever, in their order. No key is
/// added: further facts stand there under their names.
pub const KEYS: [(&str, &str); 21] = [
    ("http", HTTP_VERSION),
    ("tls", TLS_VERSION),
    ("cipher", TLS_CIPHER),
    ("group", TLS_GROUP),
    ("alpn", TLS_ALPN),
    ("certificate_key", CERTIFICATE_KEY),
    ("chain_bytes", CHAIN_BYTES),
    ("server", SERVER),
    ("via", VIA),
    ("content_encoding", CONTENT_ENCODING),
    ("content_type", CONTENT_TYPE),
    ("location", LOCATION),
    ("max_streams", MAX_STREAMS),
    ("keeps_alive", KEEPS_ALIVE),
    ("status", STATUS),
    ("body_bytes", BODY_BYTES),
    ("peer", PEER),
    ("segment_bytes", SEGMENT_BYTES),
    ("dead_addresses", DEAD_ADDRESSES),
    ("dead_addresses_ns", DEAD_ADDRESSES_NS),
    ("lookup_ns", LOOKUP_NS),
];

/// What was negotiated with a target of a run, as `duel/1` has it: under [`KEYS`], and what has none under its name.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize_shown<S: Serializer>(facts: &Option<Facts>, serializer: S) -> Result<S::Ok, S::Error> {
    facts.as_ref().map(|facts| Keyed { facts, is_whole: false }).serialize(serializer)
}

/// The same with a target of a probe. What a probe found is kept in the form in which it is shown.
///
/// # Errors
///
/// Those of the serializer.
pub(crate) fn serialize_whole<S: Serializer>(facts: &Option<Facts>, serializer: S) -> Result<S::Ok, S::Error> {
    facts.as_ref().map(|facts| Keyed { facts, is_whole: true }).serialize(serializer)
}

struct Keyed<'a> {
    facts: &'a Facts,
    /// Whether what tables leave out is told, too, and a key by its parts.
    is_whole: bool,
}

impl Serialize for Keyed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { facts, is_whole } = *self;
        let is_told = |name: &str| is_whole || Declaration::of(name).is_none_or(|declared| declared.label.is_some());
        // Later than the others: what is not known is absent, not `null`.
        let late = [MAX_STREAMS, if is_whole { LOCATION } else { DEAD_ADDRESSES }];
        // Facts of another kind of work have none of these.
        let is_web = facts.0.is_empty() || KEYS.iter().any(|(_, name)| facts.0.contains_key(*name));
        let mut map = serializer.serialize_map(None)?;
        for (key, name) in KEYS.into_iter().filter(|(_, name)| is_web && is_told(name)) {
            match facts.value(name) {
                None if late.contains(&name) => {}
                None if name == DEAD_ADDRESSES => map.serialize_entry(key, facts.list(name))?,
                _ if is_whole && name == CERTIFICATE_KEY => map.serialize_entry(key, &CertificateKey::of(facts))?,
                value => map.serialize_entry(key, &value)?,
            }
        }
        for (name, known) in &facts.0 {
            if is_told(name) && KEYS.iter().all(|(_, keyed)| keyed != name) {
                map.serialize_entry(name, &known.value())?;
            }
        }
        map.end()
    }
}

/// A fact as it may be kept: the last three as before schema 7, and by probes, under one of [`KEYS`].
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Kept {
    Known(Known),
    Value(Value),
    Key(CertificateKey),
    Nothing(()),
}

impl From<BTreeMap<String, Kept>> for Facts {
    fn from(kept: BTreeMap<String, Kept>) -> Self {
        let mut facts = Self::default();
        for (name, kept) in kept {
            let before = || KEYS.iter().find(|(key, _)| *key == name).map_or(&*name, |(_, name)| *name);
            match kept {
                Kept::Known(known) => drop(facts.0.insert(name, known)),
                Kept::Value(value) => facts.note(before(), Some(value)),
                Kept::Key(key) => facts.note(before(), Some(key)),
                Kept::Nothing(()) => {}
            }
        }
        facts
    }
}

/// Type and size of a certificate's public key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateKey {
    /// `RSA`, `EC`, `Ed25519`, or an object identifier.
    pub algorithm: String,
    /// Size in bits, where it is known.
    pub bits: Option<u32>,
}

impl CertificateKey {
    /// The key that facts tell of.
    pub fn of(facts: &Facts) -> Option<Self> {
        let text = facts.text(CERTIFICATE_KEY)?;
        let sized = text.rsplit_once('-').and_then(|(algorithm, bits)| Some((algorithm, bits.parse().ok()?)));
        let (algorithm, bits) = sized.map_or((text, None), |(algorithm, bits)| (algorithm, Some(bits)));
        Some(Self { algorithm: algorithm.to_owned(), bits })
    }
}

impl fmt::Display for CertificateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits {
            Some(bits) => write!(f, "{}-{bits}", self.algorithm),
            None => f.write_str(&self.algorithm),
        }
    }
}

impl From<CertificateKey> for Value {
    fn from(key: CertificateKey) -> Self {
        Self::Text(key.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_before_facts_had_names_is_read() {
        let kept = r#"{"http":"HTTP/1.1","tls":null,"certificate_key":{"algorithm":"EC","bits":256},"status":302,
            "keeps_alive":true,"dead_addresses":[],"lookup_ns":18446744073709551615,"later":"1"}"#;
        let facts: Facts = serde_json::from_str(kept).unwrap();
        let expected = Facts::default()
            .with(HTTP_VERSION, "HTTP/1.1")
            .with(CERTIFICATE_KEY, "EC-256")
            .with(STATUS, 302)
            .with(KEEPS_ALIVE, true)
            .with(LOOKUP_NS, u64::MAX)
            .with("later", "1");
        assert_eq!(facts, expected);
        let again: Facts = serde_json::from_str(&serde_json::to_string(&facts).unwrap()).unwrap();
        assert_eq!(again, facts);
    }

    #[test]
    fn each_key_is_of_a_declared_fact() {
        for (key, name) in KEYS {
            assert!(FACTS.iter().any(|declared| declared.name == name), "{key}: {name}");
        }
    }

    #[test]
    fn a_certificate_key_is_read_from_its_text() {
        for (algorithm, bits) in [("RSA", Some(2048)), ("Ed25519", None), ("1.2.840.10045.2.1", None)] {
            let key = CertificateKey { algorithm: algorithm.to_owned(), bits };
            assert_eq!(CertificateKey::of(&Facts::default().with(CERTIFICATE_KEY, key.clone())), Some(key));
        }
    }
}
