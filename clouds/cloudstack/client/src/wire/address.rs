//! Public addresses (`listPublicIpAddresses`, `associateIpAddress`).

use serde::Deserialize;

use super::{IpState, NetworkId, PublicIpId, VpcId};
use crate::sign::Parameters;

/// A public address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PublicIpAddress {
    /// Its id.
    pub id: PublicIpId,
    /// The address.
    #[serde(default, rename = "ipaddress", deserialize_with = "super::or_default")]
    pub ip_address: String,
    /// When somebody acquired it, as the server writes it. `None`: it is free.
    #[serde(default, deserialize_with = "super::text_or_none")]
    pub allocated: Option<String>,
    /// Its state.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: IpState,
    /// The network of virtual machines that it serves. One of a VPC has none until it has a rule.
    #[serde(
        default,
        rename = "associatednetworkid",
        deserialize_with = "super::id_or_none"
    )]
    pub network_id: Option<NetworkId>,
    /// The VPC that it belongs to.
    #[serde(default, rename = "vpcid", deserialize_with = "super::id_or_none")]
    pub vpc_id: Option<VpcId>,
    /// Whether virtual machines without an address of their own go out by it. It cannot be given back.
    #[serde(default, rename = "issourcenat", deserialize_with = "super::yes")]
    pub is_source_nat: bool,
    /// Whether it leads to one virtual machine alone.
    #[serde(default, rename = "isstaticnat", deserialize_with = "super::yes")]
    pub is_static_nat: bool,
}

impl PublicIpAddress {
    /// Whether nobody has it.
    pub fn is_free(&self) -> bool {
        self.allocated.is_none() && matches!(self.state, IpState::Free | IpState::Other(_))
    }
}

/// Which public addresses are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum PublicIpQuery {
    /// All that are allocated, and that the keys may see.
    #[default]
    Allocated,
    /// This one, be it free or not.
    Address(String),
}

impl PublicIpQuery {
    /// Whether an address can be one that was asked for.
    pub(crate) fn admits(&self, address: &PublicIpAddress) -> bool {
        match self {
            Self::Allocated => true,
            Self::Address(asked) => address.ip_address == *asked,
        }
    }

    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("listall", "true");
        if let Self::Address(address) = self {
            parameters.set("ipaddress", address.as_str());
            parameters.set("allocatedonly", "false");
        }
        parameters
    }
}

/// What a public address is to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Association {
    /// A network.
    Network(NetworkId),
    /// A tier of a VPC: the address belongs to the VPC.
    Vpc(VpcId),
}

impl Association {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        match self {
            Self::Network(id) => parameters.set("networkid", id.as_str()),
            Self::Vpc(id) => parameters.set("vpcid", id.as_str()),
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_free_or_allocated() {
        let address: PublicIpAddress = serde_json::from_str(
            r#"{"id":"77aa","ipaddress":"203.0.113.40","allocated":"2026-03-04T05:06:07+0000","state":"Allocated",
                "issourcenat":false,"networkid":"public","associatednetworkid":"6d0e","tags":[{"key":"a","value":"b"}]}"#,
        )
        .unwrap();
        assert!(!address.is_free());
        assert_eq!(address.network_id, Some("6d0e".into()));
        let address: PublicIpAddress =
            serde_json::from_str(r#"{"id":"77ab","ipaddress":"203.0.113.41","state":"Free"}"#).unwrap();
        assert!(address.is_free());
    }
}
