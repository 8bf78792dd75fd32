//! Firewall rules (`listFirewallRules` and its kin).

use serde::Deserialize;

use super::{FirewallRuleId, PublicIpId, joined, parts};
use crate::paging::Listed;
use crate::sign::Parameters;

/// A firewall rule of a public address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FirewallRule {
    /// Its id.
    pub id: FirewallRuleId,
    /// What it lets in: `tcp`, `udp` or `icmp`.
    #[serde(default, deserialize_with = "super::or_default")]
    pub protocol: String,
    /// The first port; ICMP has none.
    #[serde(default, rename = "startport", deserialize_with = "super::port_or_none")]
    pub start_port: Option<u16>,
    /// The last port.
    #[serde(default, rename = "endport", deserialize_with = "super::port_or_none")]
    pub end_port: Option<u16>,
    /// The public address.
    #[serde(default, rename = "ipaddressid", deserialize_with = "super::id_or_none")]
    pub public_ip_id: Option<PublicIpId>,
    /// From where, as the server writes it; see [`FirewallRule::cidrs`].
    #[serde(default, rename = "cidrlist", deserialize_with = "super::text_or_none")]
    pub cidr_list: Option<String>,
    /// Its state, e.g. `Active`, or `Revoke` on its way out.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: String,
}

impl FirewallRule {
    /// From where it lets in.
    pub fn cidrs(&self) -> impl Iterator<Item = &str> {
        parts(self.cidr_list.as_deref().unwrap_or_default())
    }

    /// Whether it is for this one port and no other.
    pub fn is_for(&self, protocol: &str, port: u16) -> bool {
        self.protocol == protocol && self.start_port == Some(port) && self.end_port == Some(port)
    }
}

impl Listed for FirewallRule {
    const KEY: &'static str = "firewallrule";

    fn id(&self) -> &str {
        self.id.as_str()
    }
}

/// A firewall rule to be created, for one port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFirewallRule {
    /// The public address.
    pub public_ip: PublicIpId,
    /// What it lets in: `tcp` or `udp`.
    pub protocol: String,
    /// The port.
    pub port: u16,
    /// From where.
    pub cidrs: Vec<String>,
}

impl NewFirewallRule {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("ipaddressid", self.public_ip.as_str());
        parameters.set("protocol", self.protocol.as_str());
        parameters.set("startport", self.port.to_string());
        parameters.set("endport", self.port.to_string());
        parameters.set("cidrlist", joined(&self.cidrs));
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_numbers_and_icmp_has_none() {
        let rule: FirewallRule = serde_json::from_str(
            r#"{"id":"f1","protocol":"tcp","startport":443,"endport":443,"ipaddressid":"77aa","cidrlist":"10.0.0.0/8,0.0.0.0/0"}"#,
        )
        .unwrap();
        assert!(rule.is_for("tcp", 443));
        assert!(!rule.is_for("udp", 443) && !rule.is_for("tcp", 80));
        assert_eq!(rule.cidrs().count(), 2);
        let rule: FirewallRule =
            serde_json::from_str(r#"{"id":"f2","protocol":"icmp","icmptype":8,"icmpcode":0}"#).unwrap();
        assert_eq!(rule.start_port, None);
    }
}
