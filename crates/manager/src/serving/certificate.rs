//! The serving certificate: given, found in a directory, or made here.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::CertificateSource;

/// How long a certificate made here is valid, and how long before now its validity begins, for clocks that are behind.
const VALID: i64 = 365 * 24 * 3600;
const BEFORE: i64 = 3600;

/// The file names that the Go managers use in `--cert-dir`.
const STEM: &str = "cloud-controller-manager";

/// A certificate with its chain, and its key.
#[derive(Debug)]
pub(super) struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// A file could not be read or holds no certificate or key.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// Why.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not fit, or TLS cannot be set up with them.
    #[error("setting up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Gets the certificate. `address` becomes one of its names if it is a specific one.
///
/// Reads and writes files and blocks for it: this is done once, at start.
pub(super) fn obtain(
    source: &CertificateSource,
    address: IpAddr,
    now: Timestamp,
) -> Result<Identity, CertificateError> {
    match source {
        CertificateSource::Memory => Ok(make(address, now)?.identity),
        CertificateSource::Files { certificate, key } => read(certificate, key),
        CertificateSource::Directory(directory) => {
            let (certificate, key) = (
                directory.join(format!("{STEM}.crt")),
                directory.join(format!("{STEM}.key")),
            );
            read(&certificate, &key).or_else(|_| {
                let made = make(address, now)?;
                std::fs::create_dir_all(directory).map_err(|error| fault(directory, error))?;
                write(&certificate, &made.certificate_pem, 0o644)?;
                write(&key, &made.key_pem, 0o600)?;
                Ok(made.identity)
            })
        }
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Identity, CertificateError> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| fault(certificate, error))?;
    if chain.is_empty() {
        return Err(fault(certificate, "no certificate in it"));
    }
    let key = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(key, error))?;
    Ok(Identity { chain, key })
}

fn write(path: &Path, contents: &str, mode: u32) -> Result<(), CertificateError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(mode)
        .open(path)
        .and_then(|mut file| file.write_all(contents.as_bytes()))
        .map_err(|error| fault(path, error))
}

fn fault(path: &Path, reason: impl ToString) -> CertificateError {
    CertificateError::File {
        file: path.display().to_string(),
        reason: reason.to_string(),
    }
}

struct Made {
    identity: Identity,
    certificate_pem: String,
    key_pem: String,
}

/// A certificate for this machine, signed by an authority of its own that is thrown away.
fn make(address: IpAddr, now: Timestamp) -> Result<Made, rcgen::Error> {
    let second = now.as_second();
    let authority_key = KeyPair::generate()?;
    let mut authority = params(&format!("localhost-ca@{second}"), now);
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    let authority_certificate = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);

    let key = KeyPair::generate()?;
    let mut server = params(&format!("localhost@{second}"), now);
    server.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.subject_alt_names = vec![
        SanType::DnsName("localhost".try_into()?),
        SanType::IpAddress(IpAddr::from([127, 0, 0, 1])),
    ];
    if !address.is_unspecified() && address != IpAddr::from([127, 0, 0, 1]) {
        server.subject_alt_names.push(SanType::IpAddress(address));
    }
    let certificate = server.signed_by(&key, &issuer)?;
    Ok(Made {
        certificate_pem: certificate.pem() + &authority_certificate.pem(),
        key_pem: key.serialize_pem(),
        identity: Identity {
            chain: vec![certificate.der().clone(), authority_certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        },
    })
}

fn params(name: &str, now: Timestamp) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_1970(now.as_second() - BEFORE);
    params.not_after = epoch + since_1970(now.as_second() + VALID);
    params
}

/// The last second of the year 9000: a certificate can carry no year beyond 9999.
const LAST_SECOND: u64 = 221_876_927_999;

fn since_1970(second: i64) -> Duration {
    Duration::from_secs(u64::try_from(second).unwrap_or(0).min(LAST_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_780_000_000).unwrap()
    }

    #[test]
    fn a_directory_keeps_what_was_made() {
        let directory = tempfile::tempdir().unwrap();
        let source = CertificateSource::Directory(directory.path().join("certs"));
        let first = obtain(&source, IpAddr::from([0, 0, 0, 0]), now()).unwrap();
        let second = obtain(&source, IpAddr::from([0, 0, 0, 0]), now()).unwrap();
        assert_eq!(first.chain, second.chain);
        assert_eq!(first.chain.len(), 2);
    }

    #[test]
    fn a_missing_file_is_named() {
        let source = CertificateSource::Files {
            certificate: "/nonexistent/tls.crt".into(),
            key: "/nonexistent/tls.key".into(),
        };
        let error = obtain(&source, IpAddr::from([127, 0, 0, 1]), now()).unwrap_err();
        assert!(error.to_string().starts_with("/nonexistent/tls.crt: "), "{error}");
    }
}
