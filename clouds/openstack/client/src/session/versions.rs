//! The versions that a service of OpenStack offers: lists of them, and the one in a URL.

use bowline_cloud_http::{Class, Failure, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::{ApiError, Cause};

/// A list of versions, in the three forms that services write.
#[derive(Deserialize)]
#[serde(untagged)]
enum Versions {
    /// Nova, Neutron, Octavia.
    List { versions: Vec<Version> },
    /// Keystone, Barbican.
    Values { versions: Values },
    /// One version, where the URL is that of a version.
    One { version: Version },
}

#[derive(Deserialize)]
struct Values {
    values: Vec<Version>,
}

/// A version of an API.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Version {
    id: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    links: Vec<Link>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Link {
    #[serde(default)]
    rel: String,
    #[serde(default)]
    href: String,
}

impl Version {
    /// `v2.1` is (2, 1), `v3` is (3, 0).
    pub(crate) fn number(&self) -> Option<(u32, u32)> {
        number(&self.id)
    }

    pub(crate) fn is_usable(&self) -> bool {
        ["current", "supported", "stable"]
            .iter()
            .any(|status| self.status.eq_ignore_ascii_case(status))
    }

    pub(crate) fn self_link(&self) -> Option<Url> {
        let link = self.links.iter().find(|link| link.rel == "self")?;
        Url::parse(&link.href).ok()
    }
}

/// Reads a version word.
fn number(word: &str) -> Option<(u32, u32)> {
    let digits = word.strip_prefix('v')?;
    let (major, minor) = digits.split_once('.').unwrap_or((digits, "0"));
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Reads an answer to a question for versions: services answer `200` or `300 Multiple Choices`.
pub(crate) fn versions(
    answer: Result<bowline_cloud_http::Response, ApiError>,
) -> Result<Vec<Version>, ApiError> {
    let versions = match answer {
        Ok(response) => response.json::<Versions>()?,
        Err(error) => match choices(&error) {
            Some(versions) => versions,
            None => return Err(not_about_objects(error)),
        },
    };
    Ok(match versions {
        Versions::List { versions } => versions,
        Versions::Values { versions } => versions.values,
        Versions::One { version } => vec![version],
    })
}

/// The body of a `300`, which the HTTP stack counts as a refusal, because it follows no redirects.
pub(crate) fn choices<T: DeserializeOwned>(error: &ApiError) -> Option<T> {
    match &error.cause {
        Cause::Http(http) => match &http.failure {
            Failure::Status(failure) if failure.status.as_u16() == 300 => {
                serde_json::from_slice(&failure.body).ok()
            }
            _ => None,
        },
        _ => None,
    }
}

/// A refusal on the way to a call says nothing about the object of the call: least of all that it is gone.
pub(crate) fn not_about_objects(mut error: ApiError) -> ApiError {
    if matches!(error.class, Class::NotFound | Class::Invalid | Class::Conflict) {
        error.class = Class::Unavailable { after: None };
    }
    error
}

/// The URL up to the version in its path, and that version.
pub(crate) fn cut(url: &Url) -> (Url, Option<(u32, u32)>) {
    let segments: Vec<&str> = url.path().split('/').collect();
    let mut root = url.clone();
    let found = segments
        .iter()
        .enumerate()
        .find_map(|(place, segment)| Some((place, number(segment)?)));
    match found {
        Some((place, version)) => {
            root.set_path(&format!("{}/", segments[..place].join("/")));
            (root, Some(version))
        }
        None => {
            root.set_path(&format!("{}/", url.path().trim_end_matches('/')));
            (root, None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_in_every_form() {
        for text in [
            r#"{"versions": [{"id": "v2.1", "status": "CURRENT"}]}"#,
            r#"{"versions": {"values": [{"id": "v2.1", "status": "stable", "links": []}]}}"#,
            r#"{"version": {"id": "v2.1", "status": "SUPPORTED"}}"#,
        ] {
            let versions: Versions = serde_json::from_str(text).unwrap();
            let version = match versions {
                Versions::List { versions } => versions[0].clone(),
                Versions::Values { versions } => versions.values[0].clone(),
                Versions::One { version } => version,
            };
            assert_eq!(version.number(), Some((2, 1)), "{text}");
            assert!(version.is_usable(), "{text}");
        }
        assert_eq!(number("v3"), Some((3, 0)));
        assert_eq!(number("volumes"), None);
    }
}
