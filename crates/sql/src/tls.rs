//! TLS for database connections: which servers are trusted, in libpq's sense of `sslmode`.

use crate::address::{Place, ServerAddress, SslMode};
use duel_load::WorkloadError;
use duel_model::sanitize_line;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// What all TLS connections to a server share.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// The configuration for a server; `None` where TLS is not asked for.
    pub(crate) fn build(server: &ServerAddress) -> Result<Option<Self>, WorkloadError> {
        let Place::Tcp { host, .. } = &server.place else { return Ok(None) };
        if server.tls == SslMode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match server.tls {
            SslMode::VerifyFull => verifier(&provider, server.ca.as_deref())?,
            _ => Arc::new(Encrypting(Arc::clone(&provider))),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| WorkloadError(format!("TLS cannot be set up: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        let name = ServerName::try_from(host.clone())
            .map_err(|_| WorkloadError(format!("'{}' cannot be a TLS server name", sanitize_line(host))))?;
        Ok(Some(Self { config: Arc::new(config), name }))
    }

    /// Begins a connection.
    pub(crate) fn connect(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        // What is written is encrypted at once and kept by the link; rustls' own bound of 64 KiB would refuse a bulk load.
        connection.set_buffer_limit(None);
        Ok(connection)
    }
}

fn verifier(provider: &Arc<CryptoProvider>, ca: Option<&Path>) -> Result<Arc<dyn ServerCertVerifier>, WorkloadError> {
    let mut roots = RootCertStore::empty();
    match ca {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            let shown = sanitize_line(&file.to_string_lossy());
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let read =
                read.map_err(|error| WorkloadError(format!("cannot read certificates from {shown}: {error}")))?;
            roots.add_parsable_certificates(read);
        }
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build();
    verifier.map(|verifier| verifier as Arc<dyn ServerCertVerifier>).map_err(|_| {
        WorkloadError(
            "there are no certificate authorities to verify the server with; sslrootcert=FILE names some".into(),
        )
    })
}

/// `sslmode=prefer` and `require`: encrypted, and nothing about the server's identity is checked, as libpq does it.
#[derive(Debug)]
struct Encrypting(Arc<CryptoProvider>);

impl ServerCertVerifier for Encrypting {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
