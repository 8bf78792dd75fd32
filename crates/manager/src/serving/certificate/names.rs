//! The names that a certificate is served for.

use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

/// The names that were given, else those in the certificate: its DNS names, and its common name if that could be one.
/// Addresses are left aside, as in Kubernetes' server library: who connects to an address asks for no name.
pub(super) fn of(given: &[String], key: &CertifiedKey) -> Vec<String> {
    let names = if given.is_empty() {
        key.end_entity_cert()
            .ok()
            .and_then(|der| X509Certificate::from_der(der).ok())
            .map(|(_, certificate)| found(&certificate))
            .unwrap_or_default()
    } else {
        given.to_vec()
    };
    names.iter().map(|name| name.to_ascii_lowercase()).collect()
}

fn found(certificate: &X509Certificate<'_>) -> Vec<String> {
    let common = certificate
        .subject()
        .iter_common_name()
        .filter_map(|name| name.as_str().ok())
        .filter(|name| is_dns(name));
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let alternative = alternative
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        });
    common.chain(alternative).map(str::to_owned).collect()
}

/// Whether the text can be a DNS name, also as `*.domain`, and is no address.
fn is_dns(name: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| matches!(c, 'a'..='z' | 'A'..='Z' | '0'..='9' | '-'))
    };
    name.parse::<std::net::IpAddr>().is_err() && name.strip_prefix("*.").unwrap_or(name).split('.').all(label)
}
