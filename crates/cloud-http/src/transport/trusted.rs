//! Trust in known authorities, and in servers whose own certificate is one of them.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Checks certificates as the TLS library does, with one thing more that Go's library takes, too: a server may show a
/// certificate that is trusted itself, also if it says that it is an authority. Self-signed ones of `openssl req -x509`
/// say so unless they are told not to.
#[derive(Debug)]
pub(super) struct Trusted {
    chains: Arc<WebPkiServerVerifier>,
    roots: Arc<RootCertStore>,
}

impl Trusted {
    pub(super) fn new(
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let roots = Arc::new(roots);
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider).build()?;
        Ok(Self { chains, roots })
    }

    /// Whether this very certificate is one of those that are trusted.
    fn is_root(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut alone = RootCertStore::empty();
        alone.add(certificate.clone().into_owned()).is_ok()
            && alone.roots.iter().all(|root| self.roots.roots.contains(root))
    }
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refusal = match self.chains.verify_server_cert(shown, chain, name, ocsp, now) {
            Ok(verified) => return Ok(verified),
            Err(refusal) => refusal,
        };
        if !self.is_root(shown) {
            return Err(refusal);
        }
        check_time(shown, now)?;
        verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// Whether it is valid now. Times of authorities do not count in a chain; those of a server do.
fn check_time(shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (_, certificate) = X509Certificate::from_der(shown).map_err(|_| CertificateError::BadEncoding)?;
    let (valid, now) = (
        certificate.validity(),
        i64::try_from(now.as_secs()).unwrap_or(i64::MAX),
    );
    if now < valid.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > valid.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}
