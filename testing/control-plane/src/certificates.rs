//! The certificates of one control plane. They die with it.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A certificate could not be made.
#[derive(Debug, thiserror::Error)]
#[error("cannot make the certificate of {subject}")]
pub struct CertificateError {
    subject: String,
    source: rcgen::Error,
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate and its key, PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Result<Self, CertificateError> {
        let make = || {
            let key = KeyPair::generate()?;
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
            let pem = params.self_signed(&key)?.pem();
            Ok(Self {
                issuer: Issuer::new(params, key),
                pem,
            })
        };
        make().map_err(|source| CertificateError {
            subject: name.to_owned(),
            source,
        })
    }

    /// The authority's own certificate.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a server that is reached by these names and addresses.
    pub(crate) fn server(&self, names: &[&str]) -> Result<Identity, CertificateError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        self.issue(
            &names.join(","),
            CertificateParams::new(names),
            None,
            ExtendedKeyUsagePurpose::ServerAuth,
        )
    }

    /// A certificate that the API server reads as this user in this group.
    ///
    /// One group at most: the library's distinguished name holds each attribute once.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, CertificateError> {
        self.issue(
            user,
            Ok(CertificateParams::default()),
            group,
            ExtendedKeyUsagePurpose::ClientAuth,
        )
    }

    fn issue(
        &self,
        subject: &str,
        params: Result<CertificateParams, rcgen::Error>,
        group: Option<&str>,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, CertificateError> {
        let make = || {
            let mut params = params?;
            params.distinguished_name.push(DnType::CommonName, subject);
            if let Some(group) = group {
                params.distinguished_name.push(DnType::OrganizationName, group);
            }
            params.key_usages = vec![
                KeyUsagePurpose::DigitalSignature,
                KeyUsagePurpose::KeyEncipherment,
            ];
            params.extended_key_usages = vec![usage];
            let key = KeyPair::generate()?;
            let certificate = params.signed_by(&key, &self.issuer)?;
            Ok(Identity {
                certificate: certificate.pem(),
                key: key.serialize_pem(),
            })
        };
        make().map_err(|source| CertificateError {
            subject: subject.to_owned(),
            source,
        })
    }
}

/// The pair of keys by which the API server signs and verifies service-account tokens, PEM.
pub(crate) struct TokenKeys {
    pub(crate) public: String,
    pub(crate) private: String,
}

impl TokenKeys {
    pub(crate) fn new() -> Result<Self, CertificateError> {
        let key = KeyPair::generate().map_err(|source| CertificateError {
            subject: "service-account tokens".to_owned(),
            source,
        })?;
        Ok(Self {
            public: key.public_key_pem(),
            private: key.serialize_pem(),
        })
    }
}
