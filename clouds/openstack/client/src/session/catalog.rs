//! The catalog that comes with a token: which services there are, and where (Identity API v3, "Service catalog").

use std::collections::BTreeSet;

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

    /// Why a service has no usable URL for an interface in a region, and what to do in `source`, where these are set.
    pub(crate) fn remedy(
        &self,
        service: Service,
        interface: Interface,
        region: &str,
        source: &str,
    ) -> String {
        let places = || {
            let entries = self.0.iter().filter(|entry| entry.kind == service.kind());
            entries.flat_map(|entry| &entry.endpoints)
        };
        let is_there =
            |place: &&Location| region.is_empty() || place.region == region || place.region_id == region;
        let (regions, interfaces) = (
            words(places().map(|place| match place.region.as_str() {
                "" => place.region_id.as_str(),
                region => region,
            })),
            words(places().filter(is_there).map(|place| place.interface.as_str())),
        );
        if places().next().is_none() {
            let without = match service {
                Service::LoadBalancer => {
                    "the cloud has no Octavia for this project (then set `enabled = false` in section [LoadBalancer]), or"
                }
                _ => "the cloud does not offer it to this project, or",
            };
            return format!("{without} Keystone's catalog is not whole");
        }
        if interfaces.is_empty() {
            return format!("set `region` of {source} to one that the catalog has for it: {regions}");
        }
        if self.urls(service, interface, region).next().is_none() {
            return format!(
                "set `os-endpoint-type` of {source} to one that the catalog has for it there: {interfaces}"
            );
        }
        "no URL of the catalog leads to a version of it that this program speaks".to_owned()
    }
}

/// Each of the words once.
fn words<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let words: BTreeSet<&str> = words.filter(|word| !word.is_empty()).collect();
    words.into_iter().collect::<Vec<_>>().join(", ")
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
        let remedy = |interface, region| catalog.remedy(Service::Network, interface, region, "cloud.conf");
        assert_eq!(
            remedy(Interface::Public, "Nowhere"),
            "set `region` of cloud.conf to one that the catalog has for it: One, Two"
        );
        assert_eq!(
            remedy(Interface::Admin, "One"),
            "set `os-endpoint-type` of cloud.conf to one that the catalog has for it there: internal, public"
        );
        assert_eq!(
            catalog.urls(Service::LoadBalancer, Interface::Public, "").count(),
            0
        );
    }
}
