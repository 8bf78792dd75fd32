//! Which TLS is spoken: what the operator named, as far as the TLS library has it.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme, SupportedCipherSuite,
    SupportedProtocolVersion,
};

use super::certificate::Certificates;
use crate::config::tls::{group, listed};
use crate::config::{ServingConfig, TlsConfig};

impl TlsConfig {
    /// The cryptography that this choice leaves.
    fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        if let Some(suites) = &self.cipher_suites {
            let is_tls13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
            provider
                .cipher_suites
                .retain(|suite| is_tls13(suite) || suites.served.contains(&suite.suite()));
        }
        if let Some(groups) = &self.groups {
            provider.kx_groups = groups.served.iter().filter_map(|number| group(*number)).collect();
        }
        provider
    }

    /// Says in one line what was asked for and is not served.
    fn explain_dropped(&self) {
        let suites = self
            .cipher_suites
            .as_ref()
            .map(|suites| suites.dropped.join(", "));
        let groups = self.groups.as_ref().map(|groups| listed(&groups.dropped));
        let (suites, groups) = (suites.unwrap_or_default(), groups.unwrap_or_default());
        if !(suites.is_empty() && groups.is_empty()) {
            tracing::warn!(
                cipher_suites = suites,
                groups,
                "Not served, the TLS library does not have it"
            );
        }
    }
}

/// Puts TLS together. A client certificate is asked for and need not be shown.
pub(super) fn server(
    config: &ServingConfig,
    certificates: Arc<Certificates>,
) -> Result<ServerConfig, rustls::Error> {
    const ONLY_13: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];
    let versions = if config.tls.requires_tls13 {
        ONLY_13
    } else {
        rustls::ALL_VERSIONS
    };
    config.tls.explain_dropped();
    let provider = Arc::new(config.tls.provider());
    let mut tls = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(Arc::new(AnyCertificate(provider)))
        .with_cert_resolver(certificates);
    if config.http2 {
        tls.alpn_protocols.push(b"h2".to_vec());
    }
    tls.alpn_protocols.push(b"http/1.1".to_vec());
    // Sessions are kept with the certificates that the client showed, and Kubernetes' clients do not resume them.
    tls.session_storage = Arc::new(NoServerSessionStorage {});
    tls.send_tls13_tickets = 0;
    Ok(tls)
}

/// Certificates that a client may show besides its own. What it takes to find a way through them to an authority grows with
/// their factorial.
const MAX_INTERMEDIATES: usize = 4;

/// Takes any client certificate whose key the client has: who it belongs to is asked with each request, because a
/// certificate that nobody here signed is answered with 401 and not with a broken connection.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ClientCertVerifier for AnyCertificate {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    /// No names: the authorities may change while a client is connected, and a client that sees none shows what it has.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        if chain.len() > MAX_INTERMEDIATES {
            return Err(rustls::Error::General("too many certificates".to_owned()));
        }
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CipherSuites, Groups};

    #[test]
    fn suites_that_cannot_be_served_are_dropped_and_tls_1_3_stays() {
        let list = [
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_RSA_WITH_AES_128_CBC_SHA",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        ]
        .map(str::to_owned);
        let suites = CipherSuites::parse(&list).unwrap();
        assert_eq!(suites.dropped, ["TLS_RSA_WITH_AES_128_CBC_SHA"]);
        let config = TlsConfig {
            cipher_suites: Some(suites),
            ..TlsConfig::default()
        };
        let served = config.provider().cipher_suites;
        let new = served.iter().filter(|suite| suite.tls13().is_some()).count();
        assert_eq!((new, served.len() - new), (3, 2));
    }

    #[test]
    fn groups_keep_their_order() {
        let groups = Groups::parse(&[24, 25, 29]).unwrap();
        assert_eq!(groups.dropped, [25]);
        let config = TlsConfig {
            groups: Some(groups),
            ..TlsConfig::default()
        };
        let names: Vec<_> = config.provider().kx_groups.iter().map(|it| it.name()).collect();
        assert_eq!(names, [rustls::NamedGroup::secp384r1, rustls::NamedGroup::X25519]);
    }
}
