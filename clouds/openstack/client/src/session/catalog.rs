//! The catalog that comes with a token: which services there are, and where (Identity API v3, "Service catalog").

use bowline_cloud_http::lenient::{list, or_default};
use serde::Deserialize;

use super::Service;
use crate::settings::Interface;

/// The services of a cloud.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalog(#[serde(deserialize_with = "list")] Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Entry {
    #[serde(rename = "type", default, deserialize_with = "or_default")]
    kind: String,
    #[serde(default, deserialize_with = "list")]
    endpoints: Vec<Location>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Location {
    #[serde(default, deserialize_with = "or_default")]
    interface: String,
    #[serde(default, deserialize_with = "or_default")]
    region: String,
    #[serde(default, deserialize_with = "or_default")]
    region_id: String,
    #[serde(default, deserialize_with = "or_default")]
    url: String,
}

impl Catalog {
    /// The URLs of a service for an interface in a region, in the catalog's order; an empty region is any.
    pub(crate) fn urls<'a>(
        &'a self,
        service: Service,
        interface: Interface,
        region: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |entry| entry.kind == service.kind())
            .flat_map(|entry| &entry.endpoints)
            .filter(move |place| place.interface == interface.as_str())
            .filter(move |place| region.is_empty() || place.region == region || place.region_id == region)
            .map(|place| place.url.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_endpoints_of_the_interface_and_the_region_count() {
        let catalog: Catalog = serde_json::from_str(
            r#"[{"type": "compute", "endpoints": []},
                {"type": "network", "name": "neutron", "endpoints": [
                    {"interface": "internal", "region": "One", "region_id": "One", "url": "http://internal"},
                    {"interface": "public", "region": "Two", "region_id": "Two", "url": "http://two"},
                    {"interface": "public", "region": null, "region_id": "One", "url": "http://one"}]},
                {"type": "network", "endpoints": [{"interface": "public", "region": "One", "url": "http://other"}]}]"#,
        )
        .unwrap();
        let urls = |interface, region| {
            catalog
                .urls(Service::Network, interface, region)
                .collect::<Vec<_>>()
        };
        assert_eq!(urls(Interface::Public, "One"), ["http://one", "http://other"]);
        assert_eq!(
            urls(Interface::Public, ""),
            ["http://two", "http://one", "http://other"]
        );
        assert_eq!(urls(Interface::Internal, "One"), ["http://internal"]);
        assert!(urls(Interface::Admin, "One").is_empty());
        assert_eq!(
            catalog.urls(Service::LoadBalancer, Interface::Public, "").count(),
            0
        );
    }
}
