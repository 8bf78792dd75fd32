//! Who a client's certificate is for.

use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// What a certificate says about its holder.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    /// The end of its validity, in seconds since 1970.
    pub(super) not_after: i64,
}

impl Subject {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, String> {
        let (_, certificate) = X509Certificate::from_der(certificate).map_err(|error| error.to_string())?;
        let subject = certificate.subject();
        Ok(Self {
            common_name: subject
                .iter_common_name()
                .last()
                .and_then(|name| name.as_str().ok())
                .unwrap_or_default()
                .to_owned(),
            organizations: subject
                .iter_organization()
                .filter_map(|name| name.as_str().ok())
                .map(str::to_owned)
                .collect(),
            not_after: certificate.validity().not_after.timestamp(),
        })
    }
}
