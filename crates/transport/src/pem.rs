//! Certificates and keys in PEM. The library's errors repeat the line that they stumble over; these do not.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustls::pki_types::pem::{Error, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::Malformed;

/// All certificates in a file, in their order; what else is in it is passed over.
///
/// # Errors
///
/// There is none, or what looks like one is broken.
pub fn certificates(contents: &[u8]) -> Result<Vec<CertificateDer<'static>>, Malformed> {
    let found: Vec<_> = CertificateDer::pem_slice_iter(contents)
        .collect::<Result<_, _>>()
        .map_err(|error| malformed(&error))?;
    if found.is_empty() {
        return Err(Malformed::because("there is no certificate in PEM in it"));
    }
    Ok(found)
}

/// The first private key in a file.
///
/// # Errors
///
/// There is none, or what looks like one is broken.
pub fn private_key(contents: &[u8]) -> Result<PrivateKeyDer<'static>, Malformed> {
    PrivateKeyDer::from_pem_slice(contents).map_err(|error| match error {
        Error::NoItemsFound if contents.windows(9).any(|word| word == b"ENCRYPTED") => {
            Malformed::because("the private key in it is encrypted, which is not supported")
        }
        Error::NoItemsFound => Malformed::because("there is no private key in PEM in it"),
        error => malformed(&error),
    })
}

/// What stands in a file of another kind as base64, with or without line breaks.
///
/// # Errors
///
/// It is not base64.
pub fn from_base64(text: &str) -> Result<Vec<u8>, Malformed> {
    let text: String = text.split_ascii_whitespace().collect();
    BASE64_STANDARD
        .decode(text)
        .map_err(|_| Malformed::because("it is not base64"))
}

/// What a file holds, for a file of another kind.
pub fn to_base64(contents: &[u8]) -> String {
    BASE64_STANDARD.encode(contents)
}

fn malformed(error: &Error) -> Malformed {
    Malformed::because(match error {
        Error::MissingSectionEnd { .. } => "a section of PEM has no end line; the file may be half written",
        Error::IllegalSectionStart { .. } => "a line that begins a section of PEM is broken",
        Error::Base64Decode(_) => "a section of PEM is not base64",
        Error::SectionTooLarge => "a section of PEM is too large",
        _ => "it cannot be read as PEM",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_broken_is_told_without_its_contents() {
        let secret = "aHVudGVyMmh1bnRlcjI";
        let table = [
            (
                String::new(),
                "there is no certificate",
                "there is no private key",
            ),
            (
                secret.to_owned(),
                "there is no certificate",
                "there is no private key",
            ),
            (
                format!("-----BEGIN {secret}\nx\n"),
                "a line that begins a section",
                "a line that begins a section",
            ),
            (
                format!("-----BEGIN PRIVATE KEY-----\n{secret}\n"),
                "no end line",
                "no end line",
            ),
            (
                format!("-----BEGIN CERTIFICATE-----\n{secret}!\n-----END CERTIFICATE-----\n"),
                "not base64",
                "not base64",
            ),
            (
                format!(
                    "-----BEGIN ENCRYPTED PRIVATE KEY-----\n{secret}==\n-----END ENCRYPTED PRIVATE KEY-----\n"
                ),
                "there is no certificate",
                "encrypted",
            ),
        ];
        for (contents, of_certificates, of_keys) in table {
            let certificates = certificates(contents.as_bytes()).unwrap_err();
            let key = private_key(contents.as_bytes()).unwrap_err();
            for (error, expected) in [(certificates, of_certificates), (key, of_keys)] {
                let text = format!("{error} {error:?}");
                assert!(text.contains(expected), "{contents}: {text}");
                assert!(!text.contains(&secret[..6]), "{contents}: {text}");
            }
        }
    }
}
