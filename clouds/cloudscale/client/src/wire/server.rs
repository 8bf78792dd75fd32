//! Servers (cloudscale.ch API, "Servers").

use serde::Deserialize;

use super::{InterfaceType, ServerId, ServerStatus, Slug, SubnetStub};

/// A server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// Its id.
    pub uuid: ServerId,
    /// Its host name; several servers may share one.
    pub name: String,
    /// Its state.
    pub status: ServerStatus,
    /// Where it stands, e.g. `rma1`.
    pub zone: Slug,
    /// Its size, e.g. `flex-8-4`.
    pub flavor: Slug,
    /// Its interfaces, in the API's order.
    #[serde(default, deserialize_with = "super::list")]
    pub interfaces: Vec<Interface>,
}

/// An interface of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Interface {
    /// Where it leads.
    #[serde(rename = "type", default = "unnamed")]
    pub kind: InterfaceType,
    /// Its addresses, in the API's order; none in a network without a subnet.
    #[serde(default, deserialize_with = "super::list")]
    pub addresses: Vec<Address>,
}

/// An address of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Address {
    /// The address as the API writes it.
    pub address: String,
    /// 4 or 6.
    pub version: Option<u8>,
    /// The subnet that it belongs to.
    pub subnet: Option<SubnetStub>,
}

fn unnamed() -> InterfaceType {
    InterfaceType::Other(String::new())
}
