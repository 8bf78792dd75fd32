//! Trust in known authorities, and in servers whose own certificate is one of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WantsClientCert, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::any_certificate::AnyCertificate;

/// Certificates that are trusted.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
    /// The sums of the certificates as they are: an anchor keeps only a part of its own.
    sums: BTreeSet<[u8; 32]>,
}

impl Authorities {
    /// Trusts these, too. One that cannot be read is passed over, as Go does, and one that is there already is kept once:
    /// a system's directory repeats its file.
    pub fn add(&mut self, certificates: &[CertificateDer<'static>]) {
        let mut store = RootCertStore::empty();
        for certificate in certificates {
            let sum = sum(certificate);
            let is_known = sum.is_some_and(|sum| self.sums.contains(&sum));
            if !is_known && store.add(certificate.clone()).is_ok() {
                self.sums.extend(sum);
            }
        }
        self.add_anchors(&store.roots);
    }

    /// Trusts what these have signed, too.
    pub fn add_anchors(&mut self, anchors: &[TrustAnchor<'static>]) {
        self.anchors.extend_from_slice(anchors);
    }

    /// Trusts those, too.
    pub fn extend(&mut self, others: &Self) {
        self.anchors.extend_from_slice(&others.anchors);
        self.sums.extend(&others.sums);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.anchors.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }
}

fn sum(certificate: &CertificateDer<'_>) -> Option<[u8; 32]> {
    digest(&SHA256, certificate).as_ref().try_into().ok()
}

/// How TLS is spoken by a client that trusts these authorities; `None`: whoever answers is believed.
///
/// # Errors
///
/// There is no authority among them.
pub fn client_tls(
    authorities: Option<Authorities>,
) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match authorities {
        Some(authorities) => Arc::new(Trusted::new(authorities, Arc::clone(&provider))?),
        None => Arc::new(AnyCertificate(Arc::clone(&provider))),
    };
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier))
}

/// Checks certificates as the TLS library does, with one thing more that Go's library takes, too: a server may show a
/// certificate that is trusted itself, whether it says that it is an authority or not, and whoever signed it. Self-signed
/// ones of `openssl req -x509` say so unless they are told not to.
///
/// That very certificate, byte by byte: one with the same name and key is not meant. Its names, its time and what it may be
/// used for are checked, and that the server has its key.
#[derive(Debug)]
struct Trusted {
    chains: Arc<WebPkiServerVerifier>,
    sums: BTreeSet<[u8; 32]>,
}

impl Trusted {
    fn new(authorities: Authorities, provider: Arc<CryptoProvider>) -> Result<Self, Error> {
        let roots = Arc::new(RootCertStore {
            roots: authorities.anchors,
        });
        let chains = WebPkiServerVerifier::builder_with_provider(roots, provider)
            .build()
            .map_err(|_| Error::General("there is no certificate authority to trust".to_owned()))?;
        Ok(Self {
            chains,
            sums: authorities.sums,
        })
    }

    /// Whether this very certificate is one of those that are trusted.
    fn is_trusted_itself(&self, certificate: &CertificateDer<'_>) -> bool {
        sum(certificate).is_some_and(|sum| self.sums.contains(&sum))
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
        if !self.is_trusted_itself(shown) {
            return Err(without_issuer(shown, refusal));
        }
        check_time_and_use(shown, now)?;
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

/// Of a certificate that signed itself and says that it is an authority, the library tells only that it is none of a server. What is
/// amiss is that nobody here trusts it.
fn without_issuer(shown: &CertificateDer<'_>, refusal: Error) -> Error {
    let signed_itself = || X509Certificate::from_der(shown).is_ok_and(|(_, it)| it.issuer() == it.subject());
    match refusal {
        Error::InvalidCertificate(CertificateError::Other(_)) if signed_itself() => {
            CertificateError::UnknownIssuer.into()
        }
        refusal => refusal,
    }
}

/// Whether it is valid now, and for a server. Times of authorities do not count in a chain; those of a server do.
fn check_time_and_use(shown: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
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
    let uses = certificate
        .extended_key_usage()
        .map_err(|_| CertificateError::BadEncoding)?;
    if uses.is_some_and(|uses| !uses.value.server_auth && !uses.value.any) {
        return Err(CertificateError::InvalidPurpose.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
