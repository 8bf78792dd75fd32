//! Port forwarding rules (`listPortForwardingRules`).

use serde::Deserialize;

use super::{PortForwardingId, PublicIpId};
use crate::paging::Listed;

/// A port of a public address that leads to one virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PortForwardingRule {
    /// Its id.
    pub id: PortForwardingId,
    /// The public address.
    #[serde(default, rename = "ipaddressid", deserialize_with = "super::id_or_none")]
    pub public_ip_id: Option<PublicIpId>,
    /// The port of the public address, the first one of several; `None` if it is no number.
    #[serde(default, rename = "publicport", deserialize_with = "super::port_or_none")]
    pub public_port: Option<u16>,
}

impl Listed for PortForwardingRule {
    const KEY: &'static str = "portforwardingrule";

    fn id(&self) -> &str {
        self.id.as_str()
    }
}
