//! Networks (`listNetworks`).

use serde::Deserialize;

use super::{AclListId, NetworkId, VpcId};

/// A network of virtual machines.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Network {
    /// Its id.
    pub id: NetworkId,
    /// Its name.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// The VPC of which it is a tier.
    #[serde(default, rename = "vpcid", deserialize_with = "super::id_or_none")]
    pub vpc_id: Option<VpcId>,
    /// The ACL list of the tier.
    #[serde(default, rename = "aclid", deserialize_with = "super::id_or_none")]
    pub acl_list_id: Option<AclListId>,
    /// The name of that list.
    #[serde(default, rename = "aclname", deserialize_with = "super::text_or_none")]
    pub acl_list_name: Option<String>,
    #[serde(default, rename = "service", deserialize_with = "super::list")]
    services: Vec<Service>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Service {
    #[serde(default, deserialize_with = "super::or_default")]
    name: String,
    #[serde(default, rename = "provider", deserialize_with = "super::list")]
    providers: Vec<Provider>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Provider {
    #[serde(default, deserialize_with = "super::or_default")]
    name: String,
}

impl Network {
    /// Whether the network offers a service, such as `Lb`, `Firewall` or `NetworkACL`. Case matters.
    pub fn offers(&self, service: &str) -> bool {
        self.services.iter().any(|offered| offered.name == service)
    }

    /// The providers of a service, such as `VirtualRouter`, as far as the server tells them.
    pub fn providers(&self, service: &str) -> impl Iterator<Item = &str> {
        let services = self
            .services
            .iter()
            .filter(move |offered| offered.name == service);
        services.flat_map(|offered| offered.providers.iter().map(|provider| provider.name.as_str()))
    }

    /// The services that the network offers, in the server's order.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.services.iter().map(|service| service.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_tells_its_vpc_its_list_and_its_services() {
        let network: Network = serde_json::from_str(
            r#"{"id":"6d0e","name":"tier","type":"Isolated","zoneid":"z","vpcid":"v","aclid":"a","aclname":"tier-acl",
                "service":[{"name":"Lb","capability":[],"provider":[{"name":"VpcVirtualRouter"}]},{"name":"NetworkACL"}]}"#,
        )
        .unwrap();
        assert_eq!(network.vpc_id, Some("v".into()));
        assert_eq!(network.acl_list_name.as_deref(), Some("tier-acl"));
        assert!(network.offers("Lb") && network.offers("NetworkACL"));
        assert_eq!(network.providers("Lb").collect::<Vec<_>>(), ["VpcVirtualRouter"]);
        assert_eq!(network.providers("NetworkACL").count(), 0);
        assert!(!network.offers("lb") && !network.offers("Firewall"));
    }
}
