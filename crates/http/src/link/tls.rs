//! TLS as a client: configuration, handshake and records, over rustls' unbuffered interface.
//!
//! Unbuffered, because the records are then decrypted from the worker's one large read buffer and the request is
//! encrypted into a buffer that is sent as it is; the last flight of the handshake and the request leave together.

use crate::link::{certificate, trust};
use duel_load::WorkloadError;
use duel_model::web::failure;
use duel_model::web::settings::ALPN;
use duel_model::{Facts, FailureKind, HttpPlan, TlsPlan, TlsVersion, sanitize_line, web};
use rustls::client::{Resumption, Tls12Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus};
use rustls::{CertificateError, ClientConfig, HandshakeKind};
use std::path::Path;
use std::sync::Arc;

/// Name and version of what does TLS, for the record.
pub const LIBRARY: &str = "rustls 0.23 with aws-lc";
/// HTTP/2 as ALPN calls it.
pub(crate) const HTTP2: &[u8] = b"h2";
/// Received bytes of which no record could be taken: as many as there is room for.
const MOST_KEPT_BYTES: usize = crate::link::SCRATCH_BYTES;

/// Everything that connections to one target share.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

/// One connection's TLS.
pub(crate) struct TlsStream {
    connection: UnbufferedClientConnection,
    /// Received bytes of a record that is not whole yet.
    pub(crate) incoming: Vec<u8>,
    established: bool,
    closed: bool,
}

impl std::fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsStream").field("established", &self.established).finish_non_exhaustive()
    }
}

/// What the received bytes led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Driven {
    /// Bytes of the input that are done with.
    pub(crate) consumed: usize,
    /// The peer has said that it will send no more.
    pub(crate) closed: bool,
}

/// Why TLS went wrong.
#[derive(Debug)]
pub(crate) enum TlsError {
    /// The handshake or a record.
    Tls(rustls::Error),
    /// What the plain text was fed to refused it.
    Sink(crate::protocol_error::ProtocolError),
    /// Messages of TLS itself fill all the room that there is for reading. Without an error here the next read would have no
    /// room, and what it answers, 0, would pass for the connection's end.
    TooManyMessages,
}

impl TlsClient {
    /// Builds the configuration; `host` is the name to verify unless the plan has another.
    /// `only_http2`: no other protocol is offered, whatever the plan says.
    pub(crate) fn build(plan: &TlsPlan, host: &str, only_http2: bool) -> Result<Self, WorkloadError> {
        let provider = Arc::new(provider(plan)?);
        let versions: Vec<&'static rustls::SupportedProtocolVersion> =
            [(TlsVersion::V1_3, &rustls::version::TLS13), (TlsVersion::V1_2, &rustls::version::TLS12)]
                .into_iter()
                .filter(|(version, _)| plan.versions.contains(version))
                .map(|(_, version)| version)
                .collect();
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions)
            .map_err(|error| WorkloadError(format!("these TLS parameters do not fit together: {error}")))?;
        let builder = builder.dangerous().with_custom_certificate_verifier(trust::verifier(plan, &provider)?);
        let mut config = match (&plan.client_cert_file, &plan.client_key_file) {
            (Some(chain), Some(key)) => builder
                .with_client_auth_cert(trust::read_certificates(chain)?, read_key(key)?)
                .map_err(|error| WorkloadError(format!("the client certificate cannot be used: {error}")))?,
            (None, None) => builder.with_no_client_auth(),
            _ => {
                return Err(WorkloadError(
                    "a client certificate needs both its chain (--client-cert) and its key (--client-key)".into(),
                ));
            }
        };
        config.resumption = if plan.resumption {
            Resumption::in_memory_sessions(256).tls12_resumption(Tls12Resumption::SessionIdOrTickets)
        } else {
            Resumption::disabled()
        };
        config.alpn_protocols = match only_http2 {
            true => vec![HTTP2.to_vec()],
            false => plan.alpn.iter().map(|name| name.clone().into_bytes()).collect(),
        };
        let name = plan.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| WorkloadError(format!("'{}' cannot be a TLS server name", sanitize_line(name))))?;
        Ok(Self { config: Arc::new(config), name })
    }

    /// Begins a connection; the first flight is produced by the first [`TlsStream::drive`].
    pub(crate) fn connect(&self) -> Result<TlsStream, rustls::Error> {
        let connection = UnbufferedClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        Ok(TlsStream { connection, incoming: Vec::new(), established: false, closed: false })
    }
}

impl TlsStream {
    /// Handles received bytes as far as they go; plain text goes to `sink`, what is to be sent is appended to `out`.
    pub(crate) fn drive(
        &mut self,
        received: &mut [u8],
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), crate::protocol_error::ProtocolError>,
    ) -> Result<Driven, TlsError> {
        let mut consumed = 0;
        let mut closed = false;
        loop {
            let UnbufferedStatus { mut discard, state, .. } =
                self.connection.process_tls_records(&mut received[consumed..]);
            let mut more = true;
            match state.map_err(TlsError::Tls)? {
                ConnectionState::EncodeTlsData(mut data) => encode(out, |space| data.encode(space))?,
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::ReadTraffic(mut data) => {
                    while let Some(record) = data.next_record() {
                        let record = record.map_err(TlsError::Tls)?;
                        discard += record.discard;
                        sink(record.payload).map_err(TlsError::Sink)?;
                    }
                }
                ConnectionState::WriteTraffic(_) => {
                    self.established = true;
                    more = false;
                }
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    closed = true;
                    self.closed = true;
                    more = false;
                }
                // BlockedHandshake, and states that only servers or early data have.
                _ => more = false,
            }
            consumed += discard;
            if !more {
                return Ok(Driven { consumed, closed });
            }
        }
    }

    /// Handles the first `filled` bytes of `scratch` as [`TlsStream::drive`] does, and keeps what is no whole record yet. They
    /// were read behind the room for what had been kept before. Answers whether the peer will send no more.
    #[inline]
    pub(crate) fn take(
        &mut self,
        scratch: &mut [u8],
        filled: usize,
        out: &mut Vec<u8>,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), crate::protocol_error::ProtocolError>,
    ) -> Result<bool, TlsError> {
        scratch[..self.incoming.len()].copy_from_slice(&self.incoming);
        let driven = self.drive(&mut scratch[..filled], out, sink)?;
        let rest = &scratch[driven.consumed..filled];
        if rest.len() >= MOST_KEPT_BYTES {
            return Err(TlsError::TooManyMessages);
        }
        self.keep(rest);
        Ok(driven.closed)
    }

    /// Encrypts plain text, appending records to `out`. Only once the handshake is over.
    pub(crate) fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), TlsError> {
        match self.connection.process_tls_records(&mut []).state.map_err(TlsError::Tls)? {
            ConnectionState::WriteTraffic(mut traffic) => {
                encrypt(out, plain.len(), |space| traffic.encrypt(plain, space))
            }
            _ => Err(TlsError::Tls(rustls::Error::HandshakeNotComplete)),
        }
    }

    /// Whether the request may be sent.
    pub(crate) fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the peer has said that it will send no more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether the server chose HTTP/2.
    pub(crate) fn chose_http2(&self) -> bool {
        self.connection.alpn_protocol() == Some(HTTP2)
    }

    /// Keeps received bytes that are no whole record yet. What one large record needed is given back.
    #[inline]
    fn keep(&mut self, rest: &[u8]) {
        self.incoming.clear();
        if rest.is_empty() && self.incoming.capacity() > 4096 {
            self.incoming = Vec::new();
        }
        self.incoming.extend_from_slice(rest);
    }

    /// Whether the handshake resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Writes down what was agreed.
    pub(crate) fn describe(&self, facts: &mut Facts) {
        let connection = &self.connection;
        let version = connection.protocol_version().map(|version| match version {
            rustls::ProtocolVersion::TLSv1_2 => "1.2".to_owned(),
            rustls::ProtocolVersion::TLSv1_3 => "1.3".to_owned(),
            other => format!("{other:?}"),
        });
        facts.note(web::TLS_VERSION, version);
        facts.note(web::TLS_CIPHER, connection.negotiated_cipher_suite().map(|suite| cipher_name(suite.suite())));
        let group = connection.negotiated_key_exchange_group();
        facts.note(web::TLS_GROUP, group.map(|group| format!("{:?}", group.name()).to_lowercase()));
        let alpn = connection.alpn_protocol();
        facts.note(web::TLS_ALPN, alpn.map(|name| sanitize_line(&String::from_utf8_lossy(name))));
        if let Some(chain) = connection.peer_certificates() {
            facts.note(web::CHAIN_BYTES, Some(chain.iter().map(|certificate| certificate.len() as u64).sum::<u64>()));
            facts.note(web::CERTIFICATE_KEY, chain.first().and_then(|certificate| certificate::key(certificate)));
        }
    }
}

impl TlsError {
    /// The server refused the handshake because it speaks none of the protocols that were offered.
    pub(crate) fn is_no_protocol(&self) -> bool {
        matches!(self, Self::Tls(rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)))
    }

    /// The error for the user, and how it is counted.
    pub(crate) fn describe(&self) -> (FailureKind, String) {
        use rustls::Error as E;
        let error = match self {
            Self::Sink(error) => return (failure::PROTOCOL, error.to_string()),
            Self::TooManyMessages => {
                let text = format!(
                    "the server sent {} KiB of TLS messages in a row that are no data, such as session tickets",
                    MOST_KEPT_BYTES / 1024
                );
                return (failure::TLS, text);
            }
            Self::Tls(error) => error,
        };
        let text = match error {
            E::InvalidMessage(_) => {
                "the answer is not TLS; if the server speaks plain HTTP on this port, use http://".to_owned()
            }
            E::InvalidCertificate(reason) => certificate_problem(reason),
            E::AlertReceived(rustls::AlertDescription::ProtocolVersion) => {
                "the server speaks none of the TLS versions that were offered; name another one with --tls, or leave --tls out"
                    .to_owned()
            }
            E::AlertReceived(alert) => format!("the server refused the TLS handshake with the alert {alert:?}"),
            E::PeerIncompatible(reason) => {
                format!("the server supports none of the TLS parameters that were offered ({reason:?})")
            }
            other => format!("TLS failed: {}", sanitize_line(&other.to_string())),
        };
        (failure::TLS, text)
    }
}

fn certificate_problem(reason: &CertificateError) -> String {
    const HINT: &str = "use --ca FILE for a private authority, or --insecure to measure without verifying";
    match reason {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the server's certificate has expired; renew it, or {HINT}")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the server's certificate is not valid yet; check the clocks, or {HINT}")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            another_name(&format!(" than {}", short(&expected.to_str())), &format!(" ({})", names_presented(presented)))
        }
        CertificateError::NotValidForName => another_name("", ""),
        CertificateError::UnknownIssuer => {
            format!("the server's certificate was issued by an unknown authority, or by itself; {HINT}")
        }
        CertificateError::BadSignature | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            format!("the server's certificate was not signed by the trusted authority of the name it gives; {HINT}")
        }
        other => format!("the server's certificate is not valid ({}); {HINT}", sanitize_line(&other.to_string())),
    }
}

fn another_name(asked: &str, presented: &str) -> String {
    format!(
        "the server's certificate is for another name{asked}{presented}; check the address, use --server-name NAME, or \
         --insecure to measure without verifying"
    )
}

/// The first few of the names in a certificate, which may hold any number of them.
fn names_presented(presented: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = presented
        .iter()
        .take(SHOWN)
        .map(|name| {
            // webpki tells kind and name, such as `DnsName("a.example")` and `IpAddress(127.0.0.1)`.
            let bare = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
            short(bare.trim_matches('"'))
        })
        .collect();
    match (shown.len(), presented.len() - shown.len()) {
        (0, _) => "it has no subject alternative name, and a common name does not count".to_owned(),
        (_, 0) => format!("it is for {}", shown.join(", ")),
        (_, more) => format!("it is for {} and {more} more", shown.join(", ")),
    }
}

/// A name of any length, so that what is to be done about it is not cut off behind it.
fn short(name: &str) -> String {
    const LONGEST: usize = 40;
    let name = sanitize_line(name);
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &name[..end]),
        None => name,
    }
}

/// Grows `out` to what rustls asks for and appends the record it encodes.
fn encode(out: &mut Vec<u8>, mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) -> Result<(), TlsError> {
    append(out, 1024, |space| match encode(space) {
        Ok(written) => Ok(Ok(written)),
        Err(EncodeError::InsufficientSize(error)) => Ok(Err(error.required_size)),
        Err(EncodeError::AlreadyEncoded) => Err(rustls::Error::General("a record was encoded twice".into())),
    })
}

fn encrypt(
    out: &mut Vec<u8>,
    plain_bytes: usize,
    mut encrypt: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), TlsError> {
    // A record adds at most 5 bytes of header, 8 of nonce, 1 of type and 16 of tag to 16 KiB.
    let room = plain_bytes + (plain_bytes / 16_384 + 1) * 32;
    append(out, room, |space| match encrypt(space) {
        Ok(written) => Ok(Ok(written)),
        Err(EncryptError::InsufficientSize(error)) => Ok(Err(error.required_size)),
        Err(EncryptError::EncryptExhausted) => Err(rustls::Error::EncryptError),
    })
}

/// `write` answers how much it wrote, or how much room it needs.
fn append(
    out: &mut Vec<u8>,
    mut room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<Result<usize, usize>, rustls::Error>,
) -> Result<(), TlsError> {
    let start = out.len();
    loop {
        out.resize(start + room, 0);
        match write(&mut out[start..]).map_err(TlsError::Tls)? {
            Ok(written) => {
                out.truncate(start + written);
                return Ok(());
            }
            Err(required) => room = required.max(room * 2),
        }
    }
}

/// Checks that what a plan offers can be offered, and that its cipher suites and groups exist; the error lists those that do.
pub fn check(plan: &HttpPlan) -> Result<(), WorkloadError> {
    if plan.http2.is_some() && plan.setting(&ALPN) != ALPN.default {
        return Err(WorkloadError("--http2 offers h2 and nothing else; leave --alpn out".into()));
    }
    provider(&plan.tls).map(|_| ())
}

/// Cipher suites and groups as planned, in the order given.
fn provider(plan: &TlsPlan) -> Result<CryptoProvider, WorkloadError> {
    let mut provider = aws_lc_rs::default_provider();
    if !plan.ciphers.is_empty() {
        let known = aws_lc_rs::ALL_CIPHER_SUITES;
        let wanted: Vec<_> = plan.ciphers.iter().map(|name| iana(name)).collect();
        provider.cipher_suites = pick("cipher suite", &wanted, known, |suite| cipher_name(suite.suite()))?;
    }
    if !plan.groups.is_empty() {
        let known = aws_lc_rs::ALL_KX_GROUPS;
        provider.kx_groups = pick("key exchange group", &plan.groups, known, |group| format!("{:?}", group.name()))?;
    }
    Ok(provider)
}

/// The suite's IANA name.
fn cipher_name(suite: rustls::CipherSuite) -> String {
    iana(&format!("{suite:?}"))
}

/// rustls names the suites of TLS 1.3 by another prefix than everybody else; both are understood.
fn iana(name: &str) -> String {
    name.get(..6)
        .filter(|start| start.eq_ignore_ascii_case("TLS13_"))
        .map_or_else(|| name.to_owned(), |_| format!("TLS_{}", &name[6..]))
}

fn pick<T: Copy>(
    what: &str,
    wanted: &[String],
    known: &[T],
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>, WorkloadError> {
    wanted
        .iter()
        .map(|wanted| {
            known.iter().copied().find(|item| name(item).eq_ignore_ascii_case(wanted)).ok_or_else(|| {
                let names: Vec<_> = known.iter().map(&name).collect();
                WorkloadError(format!("'{}' is no known {what}; known are {}", sanitize_line(wanted), names.join(", ")))
            })
        })
        .collect()
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, WorkloadError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        WorkloadError(format!("cannot read a private key from {}: {error}", sanitize_line(&path.to_string_lossy())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_certificate_are_few_short_and_safe() {
        let presented =
            |names: &[&str]| names_presented(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert!(presented(&[]).contains("no subject alternative name"));
        assert_eq!(presented(&["DnsName(\"a.example\")", "IpAddress(127.0.0.1)"]), "it is for a.example, 127.0.0.1");
        let many = vec!["DnsName(\"x\")"; 1000];
        assert_eq!(presented(&many), "it is for x, x, x and 997 more");
        let long = presented(&[&format!("DnsName(\"{}\x1b[2J\")", "é".repeat(10_000))]);
        assert!(long.chars().count() < 100 && !long.contains('\x1b'), "{long}");
        assert!(!presented(&["DnsName(\"\x1b[2J\")"]).contains('\x1b'));
    }
}
