//! Who the server is (key and certificate) and how it speaks TLS.

use std::io;
use std::sync::Arc;

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, RsaKeySize, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ServerConfig, SupportedProtocolVersion};

/// The kind of the server's private key: what a full handshake's signature costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA on P-256: some 20 µs a signature.
    P256,
    /// RSA of 2048 bits: some 500 µs a signature.
    Rsa2048,
    /// RSA of 4096 bits: some 4 ms a signature; making the key takes a second or so.
    Rsa4096,
}

/// A private key and its self-signed certificate.
#[derive(Clone)]
pub struct TlsIdentity {
    kind: KeyKind,
    certificate: CertificateDer<'static>,
    key: Arc<PrivatePkcs8KeyDer<'static>>,
    pem: String,
}

impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsIdentity").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl TlsIdentity {
    /// A valid certificate for `localhost`, `127.0.0.1` and `::1`.
    pub fn self_signed(kind: KeyKind) -> io::Result<TlsIdentity> {
        TlsIdentity::made(kind, &["localhost", "127.0.0.1", "::1"], false)
    }

    /// As [`TlsIdentity::self_signed`], but its validity ended on 2021-01-01.
    pub fn expired(kind: KeyKind) -> io::Result<TlsIdentity> {
        TlsIdentity::made(kind, &["localhost", "127.0.0.1", "::1"], true)
    }

    /// A valid certificate for the given host names and addresses.
    pub fn named(kind: KeyKind, names: &[&str]) -> io::Result<TlsIdentity> {
        TlsIdentity::made(kind, names, false)
    }

    /// What a client must trust to accept this server: its own certificate, in PEM.
    pub fn ca_pem(&self) -> &str {
        &self.pem
    }

    /// As [`TlsIdentity::ca_pem`], in DER.
    pub fn ca_der(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// The kind of the private key.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    fn made(kind: KeyKind, names: &[&str], expired: bool) -> io::Result<TlsIdentity> {
        let key = match kind {
            KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyKind::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
        }
        .map_err(|error| failed("generate a private key", error))?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(|error| failed("name the certificate", error))?;
        params.distinguished_name.push(DnType::CommonName, "duel ruler");
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = if expired { date_time_ymd(2021, 1, 1) } else { date_time_ymd(2099, 1, 1) };
        let certificate = params.self_signed(&key).map_err(|error| failed("sign the certificate", error))?;
        Ok(TlsIdentity {
            kind,
            pem: certificate.pem(),
            certificate: certificate.der().clone(),
            key: Arc::new(PrivatePkcs8KeyDer::from(key.serialize_der())),
        })
    }
}

/// The TLS versions that the server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// TLS 1.2 and 1.3.
    #[default]
    Both,
    /// TLS 1.2 only.
    Tls12,
    /// TLS 1.3 only.
    Tls13,
}

/// The ciphers that the server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ciphers {
    /// All that the library has.
    #[default]
    All,
    /// AES-128-GCM only.
    Aes128Gcm,
    /// AES-256-GCM only.
    Aes256Gcm,
    /// ChaCha20-Poly1305 only: what a server does whose AES instructions go unused.
    ChaCha20,
}

impl Ciphers {
    fn part_of_name(self) -> &'static str {
        match self {
            Ciphers::All => "",
            Ciphers::Aes128Gcm => "AES_128_GCM",
            Ciphers::Aes256Gcm => "AES_256_GCM",
            Ciphers::ChaCha20 => "CHACHA20",
        }
    }
}

/// How the server speaks TLS. ALPN always offers `http/1.1`.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The key and certificate.
    pub identity: TlsIdentity,
    /// Whether a client may resume a session; without, every handshake is a full one.
    pub resumption: bool,
    /// The versions accepted.
    pub versions: Versions,
    /// The ciphers accepted.
    pub ciphers: Ciphers,
}

impl Tls {
    /// With resumption, both versions and all ciphers.
    pub fn new(identity: TlsIdentity) -> Tls {
        Tls { identity, resumption: true, versions: Versions::Both, ciphers: Ciphers::All }
    }

    pub(crate) fn server_config(&self) -> io::Result<Arc<ServerConfig>> {
        let mut provider = rustls::crypto::aws_lc_rs::default_provider();
        let wanted = self.ciphers.part_of_name();
        provider.cipher_suites.retain(|suite| suite.suite().as_str().is_some_and(|name| name.contains(wanted)));
        let versions: &[&'static SupportedProtocolVersion] = match self.versions {
            Versions::Both => &[&rustls::version::TLS13, &rustls::version::TLS12],
            Versions::Tls12 => &[&rustls::version::TLS12],
            Versions::Tls13 => &[&rustls::version::TLS13],
        };
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(versions)
            .map_err(|error| failed("choose TLS versions", error))?
            .with_no_client_auth()
            .with_single_cert(
                vec![self.identity.certificate.clone()],
                PrivateKeyDer::Pkcs8(self.identity.key.clone_key()),
            )
            .map_err(|error| failed("use the certificate", error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if self.resumption {
            // Tickets that the client keeps: no number of connections can push a session out of a cache.
            config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new()
                .map_err(|error| failed("make a key for session tickets", error))?;
            config.session_storage = ServerSessionMemoryCache::new(4096);
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

fn failed(doing: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("could not {doing}: {error}"))
}
