//! Whom an operator says to trust, and who the operator says that we are.

use std::fmt;
use std::sync::Arc;

use bowline_transport::{Authorities, Malformed, pem};
use rustls::crypto::ring::default_provider;
use rustls::sign::CertifiedKey;

/// Certificate authorities that take the place of all others.
#[derive(Debug, Clone)]
pub struct TrustedAuthorities(pub(super) Authorities);

impl TrustedAuthorities {
    /// Reads the certificates of a file in PEM.
    ///
    /// # Errors
    ///
    /// There is none in it that can be used.
    pub fn from_pem(contents: &[u8]) -> Result<Self, Malformed> {
        let mut authorities = Authorities::default();
        authorities.add(&pem::certificates(contents)?);
        if authorities.is_empty() {
            return Err(Malformed::because(
                "no certificate in it can be used as an authority",
            ));
        }
        Ok(Self(authorities))
    }
}

/// A certificate with its key, shown to a cloud that asks for one.
#[derive(Clone)]
pub struct ClientCertificate(pub(super) Arc<CertifiedKey>);

impl ClientCertificate {
    /// Reads a chain of certificates and a key, both in PEM.
    ///
    /// # Errors
    ///
    /// One of them cannot be read, or the key is not that of the first certificate.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, Malformed> {
        let key = CertifiedKey::from_der(
            pem::certificates(chain)?,
            pem::private_key(key)?,
            &default_provider(),
        );
        key.map(|key| Self(Arc::new(key))).map_err(|_| {
            Malformed::because("the private key is not that of the certificate, or is of no known kind")
        })
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}
