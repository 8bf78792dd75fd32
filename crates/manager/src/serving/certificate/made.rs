//! A certificate that is made here, for those who gave none.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls::pki_types::PrivateKeyDer;

use super::Pair;

/// How long a certificate made here is valid, and how long before now its validity begins, for clocks that are behind.
const VALID: i64 = 365 * 24 * 3600;
const BEFORE: i64 = 3600;

/// When this share of its life is over, a certificate is made anew.
const RENEWED_AT_PERCENT: i64 = 80;

/// A new certificate, also as text.
pub(super) struct Made {
    pub(super) pair: Pair,
    pub(super) certificate_pem: String,
    pub(super) key_pem: String,
}

/// When a certificate that was made at this time is due to be made anew.
pub(super) fn renewal(made: Timestamp) -> Timestamp {
    let seconds = (BEFORE + VALID) * RENEWED_AT_PERCENT / 100 - BEFORE;
    made.checked_add(Duration::from_secs(seconds.unsigned_abs()))
        .unwrap_or(Timestamp::MAX)
}

/// A certificate for this machine, signed by an authority of its own that is thrown away.
pub(super) fn make(address: IpAddr, now: Timestamp) -> Result<Made, rcgen::Error> {
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
        pair: Pair {
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
