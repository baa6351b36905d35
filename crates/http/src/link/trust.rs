//! Which servers are trusted.

use crate::link::certificate::{self, Dates};
use duel_load::WorkloadError;
use duel_model::{TlsPlan, sanitize_line};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// What verifies the servers' certificates under a plan.
pub(crate) fn verifier(
    plan: &TlsPlan,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, WorkloadError> {
    if !plan.verify {
        return Ok(Arc::new(NoVerification(Arc::clone(provider))));
    }
    let given = plan.ca_file.as_deref().map(read_certificates).transpose()?;
    let roots = match (&given, &plan.ca_file) {
        (Some(given), Some(path)) => given_roots(given, path)?,
        _ => system_roots()?,
    };
    let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| WorkloadError(format!("these certificate authorities cannot be used: {error}")))?;
    Ok(Arc::new(Trust { chains, given: given.unwrap_or_default() }))
}

/// All certificates of a PEM file.
pub(crate) fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, WorkloadError> {
    let shown = sanitize_line(&path.to_string_lossy());
    let certificates: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect)
        .map_err(|error| WorkloadError(format!("cannot read certificates from {shown}: {error}")))?;
    if certificates.is_empty() {
        return Err(WorkloadError(format!("{shown} holds no PEM certificate")));
    }
    Ok(certificates)
}

fn given_roots(given: &[CertificateDer<'static>], path: &Path) -> Result<RootCertStore, WorkloadError> {
    let mut roots = RootCertStore::empty();
    for certificate in given {
        roots.add(certificate.clone()).map_err(|error| {
            let shown = sanitize_line(&path.to_string_lossy());
            WorkloadError(format!("{shown} holds a certificate that cannot be used: {error}"))
        })?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, WorkloadError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(WorkloadError(
            "this system has no certificate authorities to verify servers with; install ca-certificates, \
             or use --ca FILE, or --insecure to measure without verifying"
                .into(),
        ));
    }
    Ok(roots)
}

/// Chains to an authority, and servers whose very certificate was given.
///
/// `openssl req -x509` marks its self-signed certificates as authorities, and webpki refuses an authority as a server's
/// own certificate. Private servers are full of them, and a user who gives that certificate with `--ca` has said that
/// it is the one to trust; its name and its time are verified all the same.
#[derive(Debug)]
struct Trust {
    chains: Arc<WebPkiServerVerifier>,
    given: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if !matches!(verified, Err(Error::InvalidCertificate(CertificateError::Other(_)))) {
            return verified;
        }
        if !self.given.iter().any(|given| given.as_ref() == end_entity.as_ref()) {
            return if certificate::is_self_signed(end_entity) {
                Err(CertificateError::UnknownIssuer.into())
            } else {
                verified
            };
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        verify_time(end_entity, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

fn verify_time(certificate: &[u8], now: UnixTime) -> Result<(), CertificateError> {
    match certificate::dates(certificate, now.as_secs()) {
        None => Err(CertificateError::BadEncoding),
        Some(Dates::Early) => Err(CertificateError::NotValidYet),
        Some(Dates::Late) => Err(CertificateError::Expired),
        Some(Dates::Valid) => Ok(()),
    }
}

/// `--insecure`: nothing about the server's identity is checked, neither chain nor name nor signature.
#[derive(Debug)]
struct NoVerification(Arc<CryptoProvider>);

impl ServerCertVerifier for NoVerification {
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
