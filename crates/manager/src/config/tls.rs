//! Which TLS may be spoken: suites and groups by name and number, as far as the TLS library has them.

use rustls::crypto::{SupportedKxGroup, ring};
use rustls::{CipherSuite, SupportedCipherSuite};

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
    pub(crate) served: Vec<CipherSuite>,
    pub(crate) dropped: Vec<String>,
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
pub(crate) fn suite(name: &str) -> Option<SupportedCipherSuite> {
    let is_older = name.ends_with("_WITH_CHACHA20_POLY1305");
    let has_name = |suite: &&SupportedCipherSuite| {
        let known = suite
            .suite()
            .as_str()
            .unwrap_or_default()
            .replace("TLS13_", "TLS_");
        known == name || is_older && known.strip_suffix("_SHA256") == Some(name)
    };
    ring::ALL_CIPHER_SUITES.iter().find(has_name).copied()
}

/// Key exchange groups that were asked for by their number in IANA's registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Groups {
    pub(crate) served: Vec<i64>,
    pub(crate) dropped: Vec<i64>,
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

pub(crate) fn group(number: i64) -> Option<&'static dyn SupportedKxGroup> {
    Some(match number {
        23 => ring::kx_group::SECP256R1,
        24 => ring::kx_group::SECP384R1,
        29 => ring::kx_group::X25519,
        _ => return None,
    })
}

pub(crate) fn listed(numbers: &[i64]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
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
}
