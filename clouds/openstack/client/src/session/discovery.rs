//! From the catalog's URL of a service to the URL of its calls.

use bowline_cloud_http::{Method, Request, Url};

use super::Endpoint;
use super::token::Tokens;
use super::versions::{Version, cut, versions};
use crate::error::ApiError;
use crate::operation::Service;

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
}
