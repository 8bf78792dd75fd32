//! Servers and flavors (Compute API, microversion 2.1).

use bowline_cloud_http::Pairs;
use bowline_cloud_http::lenient::{map, or_default};
use serde::Deserialize;

use super::{AddressKind, FlavorId, ServerId, ServerStatus};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: ServerId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its state.
    #[serde(default, deserialize_with = "or_default")]
    pub status: ServerStatus,
    /// The IPv4 address at which its owner says that it is reached; empty if none.
    #[serde(rename = "accessIPv4", default, deserialize_with = "or_default")]
    pub access_ipv4: String,
    /// The IPv6 address at which its owner says that it is reached; empty if none.
    #[serde(rename = "accessIPv6", default, deserialize_with = "or_default")]
    pub access_ipv6: String,
    /// What its owner wrote on it.
    #[serde(default, deserialize_with = "map")]
    pub metadata: Pairs<String>,
    /// Its size.
    #[serde(default, deserialize_with = "or_default")]
    pub flavor: ServerFlavor,
    /// Where it stands.
    #[serde(
        rename = "OS-EXT-AZ:availability_zone",
        default,
        deserialize_with = "or_default"
    )]
    pub availability_zone: String,
    /// A hash of its project and of the host that it runs on; empty where it runs on none, as when it is shelved.
    #[serde(rename = "hostId", default, deserialize_with = "or_default")]
    pub host_id: String,
    /// Its addresses by the name of their network.
    #[serde(default, deserialize_with = "map")]
    pub addresses: Pairs<Box<[ServerAddress]>>,
}

/// What a server says of its flavor: an id, and from microversion 2.47 a name and no id.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct ServerFlavor {
    /// The flavor's id.
    pub id: Option<FlavorId>,
    /// The name that the flavor had when the server was made.
    pub original_name: Option<String>,
}

/// An address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerAddress {
    /// The address as the API writes it.
    pub addr: String,
    /// What it is, where the API says so.
    #[serde(rename = "OS-EXT-IPS:type", default)]
    pub kind: Option<AddressKind>,
}

/// A size of servers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Flavor {
    /// Its id.
    pub id: FlavorId,
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
}
