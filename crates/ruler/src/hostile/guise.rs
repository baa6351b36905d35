//! As whom a liar shows itself by TLS.

use rcgen::{CertificateParams, CustomExtension, DnType, DnValue, KeyPair, SanType, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::io;
use std::sync::{Arc, OnceLock};

/// Certificates and manners of a TLS server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guise {
    /// For 127.0.0.1 and localhost, signed by itself; HTTP/1.1.
    Plain,
    /// The same for HTTP/2.
    Http2,
    /// The same, TLS 1.2 only.
    Tls12,
    /// It chooses no protocol, whatever is offered.
    NoProtocol,
    /// It wants HTTP/2 and nothing else.
    Http2Only,
    /// Its certificate has run out.
    Expired,
    /// Its certificate is not valid yet.
    NotYet,
    /// Its certificate is for another name.
    OtherName,
    /// Names in its certificate hold escape sequences of terminals.
    EscapesInNames,
    /// Its certificate is for five thousand names.
    ManyNames,
    /// Its certificate has an extension of 60 kB that nobody knows.
    HugeExtension,
    /// Its certificate has an extension that nobody knows and that must be understood.
    CriticalExtension,
    /// It shows its certificate a hundred and fifty times.
    LongChain,
    /// Behind its certificate comes one that is none.
    GarbageInChain,
    /// It wants a certificate of the client's.
    WantsCertificate,
    /// It gives two thousand session tickets.
    ManyTickets,
}

impl Guise {
    /// Made once for each guise: keys take time.
    pub(super) fn config(self) -> io::Result<Arc<ServerConfig>> {
        static MADE: [OnceLock<Arc<ServerConfig>>; 16] = [const { OnceLock::new() }; 16];
        let slot = &MADE[self as usize];
        if let Some(made) = slot.get() {
            return Ok(Arc::clone(made));
        }
        let made = self.made().map_err(io::Error::other)?;
        Ok(Arc::clone(slot.get_or_init(|| made)))
    }

    fn made(self) -> Result<Arc<ServerConfig>, Box<dyn std::error::Error + Send + Sync>> {
        let key = KeyPair::generate()?;
        let mut params = match self {
            Guise::OtherName => CertificateParams::new(["other.example".to_owned()])?,
            _ => CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?,
        };
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2099, 1, 1);
        params.distinguished_name.push(DnType::CommonName, "liar");
        // A number below those of private enterprises, which nobody has (RFC 5280, 4.2).
        const UNKNOWN: &[u64] = &[1, 3, 6, 1, 4, 1, 99_999, 1];
        match self {
            Guise::Expired => params.not_after = date_time_ymd(2021, 1, 1),
            Guise::NotYet => params.not_before = date_time_ymd(2098, 1, 1),
            Guise::EscapesInNames => {
                let name = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31mliar\r\nduel: all is well";
                params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(name.to_owned()));
                params.distinguished_name.push(DnType::OrganizationName, DnValue::Utf8String(name.to_owned()));
                params.subject_alt_names = vec![SanType::DnsName("x\u{1b}[2J\r\n.example".try_into()?)];
            }
            Guise::ManyNames => {
                for number in 0..5000 {
                    params.subject_alt_names.push(SanType::DnsName(format!("{number}.e").try_into()?));
                }
            }
            Guise::HugeExtension => {
                params.custom_extensions.push(CustomExtension::from_oid_content(UNKNOWN, vec![4; 60_000]));
            }
            Guise::CriticalExtension => {
                let mut extension = CustomExtension::from_oid_content(UNKNOWN, vec![5, 0]);
                extension.set_criticality(true);
                params.custom_extensions.push(extension);
            }
            _ => {}
        }
        let certificate = params.self_signed(&key)?.der().clone();
        let chain = match self {
            Guise::LongChain => vec![certificate; 150],
            Guise::GarbageInChain => {
                vec![certificate, CertificateDer::from(b"\x30\x84\xff\xff\xff\xffgarbage".to_vec())]
            }
            _ => vec![certificate],
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let versions: &[&rustls::SupportedProtocolVersion] = match self {
            Guise::Tls12 => &[&rustls::version::TLS12],
            _ => &[&rustls::version::TLS13, &rustls::version::TLS12],
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions)?;
        let builder = if self == Guise::WantsCertificate {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(chain[0].clone())?;
            let verifier =
                rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                    .build()?;
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        // Not `with_single_cert`: that one would refuse what clients are to refuse.
        let certified = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = match self {
            Guise::Http2 | Guise::Http2Only => vec![b"h2".to_vec()],
            Guise::NoProtocol => Vec::new(),
            _ => vec![b"http/1.1".to_vec()],
        };
        if self == Guise::ManyTickets {
            config.send_tls13_tickets = 2000;
        }
        Ok(Arc::new(config))
    }
}
