//! Which TLS is spoken: what the operator named, as far as the TLS library has it.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, SupportedKxGroup, ring};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CipherSuite, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme,
    SupportedCipherSuite, SupportedProtocolVersion,
};

use super::certificate::Certificates;
use crate::config::{ServingConfig, TlsConfig};

/// Why a choice of cipher suites or groups cannot be served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnservableError {
    /// There is no such thing.
    #[error("{0} is not known")]
    Unknown(String),
    /// Each one is known, but the TLS library has none of them.
    #[error("none of {0} can be served")]
    Nothing(String),
}

/// Cipher suites that were asked for by name.
///
/// Only TLS 1.2 has a choice: the suites of TLS 1.3 are always offered, as by the Go managers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CipherSuites {
    served: Vec<CipherSuite>,
    dropped: Vec<String>,
}

/// Names that Kubernetes' flags accept and that this TLS library does not have: CBC, RC4 and 3DES, and key exchanges
/// without forward secrecy.
const UNSERVED_SUITES: &[&str] = &[
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

impl CipherSuites {
    /// Reads a list of names as Kubernetes' flags have them.
    ///
    /// # Errors
    ///
    /// A name that is none, or no suite that can be served.
    pub fn parse(names: &[String]) -> Result<Self, UnservableError> {
        let mut suites = Self {
            served: Vec::new(),
            dropped: Vec::new(),
        };
        for name in names {
            match suite(name) {
                Some(suite) => suites.served.push(suite.suite()),
                None if UNSERVED_SUITES.contains(&name.as_str()) => suites.dropped.push(name.clone()),
                None => return Err(UnservableError::Unknown(name.clone())),
            }
        }
        if suites.served.is_empty() {
            return Err(UnservableError::Nothing(suites.dropped.join(", ")));
        }
        Ok(suites)
    }
}

/// The suite of this name, also under the two older names without the hash.
fn suite(name: &str) -> Option<SupportedCipherSuite> {
    use ring::cipher_suite as suites;
    Some(match name {
        "TLS_AES_128_GCM_SHA256" => suites::TLS13_AES_128_GCM_SHA256,
        "TLS_AES_256_GCM_SHA384" => suites::TLS13_AES_256_GCM_SHA384,
        "TLS_CHACHA20_POLY1305_SHA256" => suites::TLS13_CHACHA20_POLY1305_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256" => suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384" => suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" | "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256" => {
            suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        }
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256" => suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384" => suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" | "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256" => {
            suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        }
        _ => return None,
    })
}

/// Key exchange groups that were asked for by their number in IANA's registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    served: Vec<i64>,
    dropped: Vec<i64>,
}

/// secp521r1 and the hybrids with ML-KEM: Go's library has them, this one does not.
const UNSERVED_GROUPS: &[i64] = &[25, 4587, 4588, 4589];

impl Groups {
    /// Reads a list of numbers.
    ///
    /// # Errors
    ///
    /// A number that is none, or no group that can be served.
    pub fn parse(numbers: &[i64]) -> Result<Self, UnservableError> {
        let mut groups = Self {
            served: Vec::new(),
            dropped: Vec::new(),
        };
        for &number in numbers {
            if group(number).is_some() {
                groups.served.push(number);
            } else if UNSERVED_GROUPS.contains(&number) {
                groups.dropped.push(number);
            } else {
                return Err(UnservableError::Unknown(number.to_string()));
            }
        }
        if groups.served.is_empty() {
            return Err(UnservableError::Nothing(listed(&groups.dropped)));
        }
        Ok(groups)
    }
}

fn group(number: i64) -> Option<&'static dyn SupportedKxGroup> {
    Some(match number {
        23 => ring::kx_group::SECP256R1,
        24 => ring::kx_group::SECP384R1,
        29 => ring::kx_group::X25519,
        _ => return None,
    })
}

fn listed(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

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

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn suites_that_cannot_be_served_are_dropped_and_tls_1_3_stays() {
        let list = names(&[
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "TLS_RSA_WITH_AES_128_CBC_SHA",
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305",
        ]);
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
    fn nothing_left_and_unknown_names_are_refused() {
        assert_eq!(
            CipherSuites::parse(&names(&["TLS_RSA_WITH_RC4_128_SHA"]))
                .unwrap_err()
                .to_string(),
            "none of TLS_RSA_WITH_RC4_128_SHA can be served"
        );
        assert_eq!(
            CipherSuites::parse(&names(&["TLS_AES_128_GCM_SHA256", "TLS_FAST"])).unwrap_err(),
            UnservableError::Unknown("TLS_FAST".to_owned())
        );
        assert_eq!(
            Groups::parse(&[25, 4588]).unwrap_err(),
            UnservableError::Nothing("25, 4588".to_owned())
        );
        assert_eq!(
            Groups::parse(&[29, 7]).unwrap_err(),
            UnservableError::Unknown("7".to_owned())
        );
    }

    #[test]
    fn every_name_of_kubernetes_flags_is_known() {
        let ecdhe = ["ECDSA", "RSA"].into_iter().flat_map(|kind| {
            [
                "AES_128_CBC_SHA",
                "AES_128_GCM_SHA256",
                "AES_256_CBC_SHA",
                "AES_256_GCM_SHA384",
                "CHACHA20_POLY1305",
                "CHACHA20_POLY1305_SHA256",
                "AES_128_CBC_SHA256",
                "RC4_128_SHA",
            ]
            .map(|suite| format!("TLS_ECDHE_{kind}_WITH_{suite}"))
        });
        for name in ecdhe {
            assert!(
                suite(&name).is_some() || UNSERVED_SUITES.contains(&name.as_str()),
                "{name}"
            );
        }
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
