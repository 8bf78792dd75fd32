//! What rules of a firewall and items of an ACL list have in common: which packets they are about.

use serde::Deserialize;

use super::parts;
use crate::sign::Parameters;

/// Which packets a firewall rule or an item of an ACL list is about.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Filter {
    /// `tcp`, `udp` or `icmp`; in an ACL list also `all` or a number.
    #[serde(default, deserialize_with = "super::or_default")]
    pub protocol: String,
    /// The first port; `None` for all, and for ICMP.
    #[serde(default, rename = "startport", deserialize_with = "super::port_or_none")]
    pub start_port: Option<u16>,
    /// The last port.
    #[serde(default, rename = "endport", deserialize_with = "super::port_or_none")]
    pub end_port: Option<u16>,
    /// From or to where, as the server writes it; see [`Filter::cidrs`].
    #[serde(default, rename = "cidrlist", deserialize_with = "super::text_or_none")]
    pub cidr_list: Option<String>,
}

impl Filter {
    /// From or to where.
    pub fn cidrs(&self) -> impl Iterator<Item = &str> {
        parts(self.cidr_list.as_deref().unwrap_or_default())
    }
}

/// One port that is to be let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFilter {
    /// `tcp` or `udp`.
    pub protocol: String,
    /// The port.
    pub port: u16,
    /// From where.
    pub cidrs: Vec<String>,
}

impl NewFilter {
    pub(crate) fn write(&self, parameters: &mut Parameters) {
        parameters.set("protocol", self.protocol.as_str());
        parameters.set("startport", self.port.to_string());
        parameters.set("endport", self.port.to_string());
        parameters.set("cidrlist", self.cidrs.join(","));
    }
}
