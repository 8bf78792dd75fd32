//! From the catalog's URL of a service to the URL of its calls, and Keystone's versions.

use bowline_cloud_http::{Class, Failure, Method, Request, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Endpoint;
use super::token::Tokens;
use crate::error::{ApiError, Cause};
use crate::operation::Service;

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

/// Looks for the endpoint of a service: the first of the catalog's URLs that has the wanted major version, if one has.
pub(crate) async fn endpoint(
    tokens: &Tokens,
    service: Service,
    urls: &[String],
) -> Result<Option<Endpoint>, ApiError> {
    for url in urls {
        let Ok(url) = bowline_cloud_http::base_url(url) else {
            tracing::warn!(
                service = service.kind(),
                "URL in the service catalog cannot be used"
            );
            continue;
        };
        let place = Place::new(url);
        if let Some((major, _)) = place.version {
            if major == service.major() {
                return Ok(Some(place.endpoint(service, None)));
            }
            continue;
        }
        let versions = match list(tokens, service.versions(), place.root.clone()).await {
            // Its calls have one place only, and may work although the root does not.
            Err(error) if service == Service::LoadBalancer && urls.len() == 1 && is_of_server(&error) => {
                return Ok(Some(place.endpoint(service, None)));
            }
            versions => versions?,
        };
        let best = versions
            .iter()
            .filter_map(Version::number)
            .filter(|(major, _)| *major == service.major())
            .max();
        if let Some(version) = best {
            return Ok(Some(place.endpoint(service, Some(version))));
        }
    }
    Ok(None)
}

fn is_of_server(error: &ApiError) -> bool {
    error.status().is_some_and(|status| status >= 500)
}

async fn list(tokens: &Tokens, operation: &'static str, url: Url) -> Result<Vec<Version>, ApiError> {
    let request = Request::read(Method::GET, operation, url).preliminary();
    versions(tokens.send(request).await)
}

/// A URL of the catalog, taken apart.
struct Place {
    /// As it stands there, with a slash at its end.
    whole: Url,
    /// Up to the version in its path.
    root: Url,
    /// The version in its path.
    version: Option<(u32, u32)>,
}

impl Place {
    fn new(mut url: Url) -> Self {
        url.set_query(None);
        url.set_fragment(None);
        let path = format!("{}/", url.path().trim_end_matches('/'));
        url.set_path(&path);
        let (root, version) = cut(&url);
        Self {
            whole: url,
            root,
            version,
        }
    }

    fn endpoint(self, service: Service, found: Option<(u32, u32)>) -> Endpoint {
        let below = |path: &str| {
            let mut base = self.root.clone();
            base.set_path(&format!("{}{path}", self.root.path()));
            base
        };
        let base = match (service, found) {
            (Service::Network, _) => below("v2.0/"),
            (Service::LoadBalancer, _) => below("v2.0/lbaas/"),
            (Service::KeyManager, _) => below("v1/"),
            (Service::Compute, Some((major, minor))) => below(&format!("v{major}.{minor}/")),
            // With the project's id behind the version, in old catalogs.
            (Service::Compute, None) => self.whole,
        };
        Endpoint {
            root: self.root,
            base,
        }
    }
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

    fn base(service: Service, url: &str, found: Option<(u32, u32)>) -> (String, String) {
        let endpoint = Place::new(Url::parse(url).unwrap()).endpoint(service, found);
        (endpoint.root.into(), endpoint.base.into())
    }

    #[test]
    fn calls_go_below_the_version_whatever_the_catalog_says() {
        let table = [
            (
                Service::Network,
                "http://h:9696",
                "http://h:9696/",
                "http://h:9696/v2.0/",
            ),
            (
                Service::Network,
                "http://h/net/v2.0/",
                "http://h/net/",
                "http://h/net/v2.0/",
            ),
            (
                Service::LoadBalancer,
                "http://h:9876/",
                "http://h:9876/",
                "http://h:9876/v2.0/lbaas/",
            ),
            (
                Service::LoadBalancer,
                "https://h/load-balancer/v2.0",
                "https://h/load-balancer/",
                "https://h/load-balancer/v2.0/lbaas/",
            ),
            (
                Service::KeyManager,
                "http://h:9311",
                "http://h:9311/",
                "http://h:9311/v1/",
            ),
            (
                Service::Compute,
                "http://h:8774/v2.1",
                "http://h:8774/",
                "http://h:8774/v2.1/",
            ),
            (
                Service::Compute,
                "http://h:8774/v2/0123abc",
                "http://h:8774/",
                "http://h:8774/v2/0123abc/",
            ),
        ];
        for (service, url, root, expected) in table {
            assert_eq!(
                base(service, url, None),
                (root.to_owned(), expected.to_owned()),
                "{url}"
            );
        }
        let found = base(Service::Compute, "http://h/compute", Some((2, 1)));
        assert_eq!(found.1, "http://h/compute/v2.1/");
    }

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
