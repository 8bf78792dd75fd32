//! Port forwarding rules (`listPortForwardingRules`).

use serde::Deserialize;

use super::{NetworkId, PortForwardingId, PublicIpId};

/// A port of a public address that leads to one virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PortForwardingRule {
    /// Its id.
    pub id: PortForwardingId,
    /// The public address.
    #[serde(default, rename = "ipaddressid", deserialize_with = "super::id_or_none")]
    pub public_ip_id: Option<PublicIpId>,
    /// The network of the virtual machine.
    #[serde(default, rename = "networkid", deserialize_with = "super::id_or_none")]
    pub network_id: Option<NetworkId>,
    /// `tcp` or `udp`.
    #[serde(default, deserialize_with = "super::text_or_none")]
    pub protocol: Option<String>,
    /// The port of the public address, the first one of several; `None` if it is no number.
    #[serde(default, rename = "publicport", deserialize_with = "super::port_or_none")]
    pub public_port: Option<u16>,
    /// The last one.
    #[serde(default, rename = "publicendport", deserialize_with = "super::port_or_none")]
    public_end: Option<u16>,
    /// The port of the virtual machine, the first one of several.
    #[serde(default, rename = "privateport", deserialize_with = "super::port_or_none")]
    private_port: Option<u16>,
    /// The last one.
    #[serde(default, rename = "privateendport", deserialize_with = "super::port_or_none")]
    private_end: Option<u16>,
}

impl PortForwardingRule {
    /// Whether a port is one of the address or of the virtual machine, as far as the API tells them.
    pub fn concerns(&self, port: u16) -> bool {
        let ends = [
            (self.public_port, self.public_end),
            (self.private_port, self.private_end),
        ];
        ends.into_iter().any(|(first, last)| match first {
            Some(first) => (first..=last.unwrap_or(first)).contains(&port),
            None => true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forwarding_concerns_the_ports_on_both_sides() {
        let read = |text: &str| serde_json::from_str::<PortForwardingRule>(text).unwrap();
        let rule = read(
            r#"{"id":"f","protocol":"tcp","publicport":"80","publicendport":"82","privateport":"8080","privateendport":"8082","networkid":"n"}"#,
        );
        let of = |rule: &PortForwardingRule| [79, 80, 82, 83, 8082].map(|port| rule.concerns(port));
        assert_eq!(of(&rule), [false, true, true, false, true]);
        let old = read(r#"{"id":"f","publicport":80,"privateport":80}"#);
        assert_eq!(of(&old), [false, true, false, false, false]);
        assert_eq!(of(&read(r#"{"id":"f"}"#)), [true; 5]);
    }
}
