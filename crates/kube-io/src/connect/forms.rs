//! The forms in which tokens, certificates and keys come.

use std::sync::Arc;

use bowline_transport::{Malformed, pem};
use http::HeaderValue;
use rustls::crypto::CryptoProvider;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys};

/// The header with a token, without the line break at its end, with which there is no header.
pub(super) fn bearer(contents: &[u8]) -> Result<HeaderValue, Malformed> {
    let text = std::str::from_utf8(contents)
        .map_err(|_| Malformed::because("it is not a text"))?
        .trim();
    if text.is_empty() {
        return Err(Malformed::because("it is empty"));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {text}"))
        .map_err(|_| Malformed::because("it holds characters that no token has"))?;
    header.set_sensitive(true);
    Ok(header)
}

/// Reads a certificate and its key. What is wrong is with the first of the two or with the second.
pub(super) fn pair(certificate: &[u8], key: &[u8]) -> Result<CertifiedKey, (usize, Malformed)> {
    let chain = pem::certificates(certificate).map_err(|reason| (0, reason))?;
    let key = pem::private_key(key).map_err(|reason| (1, reason))?;
    let of_key = |reason| (1, Malformed::because(reason));
    let key = provider()
        .key_provider
        .load_private_key(key)
        .map_err(|_| of_key("the key is of a kind that is not supported"))?;
    let pair = CertifiedKey::new(chain, key);
    match pair.keys_match() {
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => Err(of_key(
            "the key is not that of the certificate; one of the two may not have been replaced yet",
        )),
        Err(Error::InvalidCertificate(CertificateError::BadEncoding)) => {
            Err((0, Malformed::because("the certificate cannot be read")))
        }
        // What cannot be compared, such as a certificate of X.509 version 1, is for the API server to judge, which knows more kinds.
        Ok(()) | Err(_) => Ok(pair),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
