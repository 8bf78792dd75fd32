//! Load balancer rules (`listLoadBalancerRules` and its kin).

use serde::Deserialize;

use super::{Algorithm, NetworkId, PublicIpId, RuleId, RuleProtocol, RuleState, is_or_unsaid, parts};
use crate::sign::Parameters;

/// A load balancer rule: one port of a public address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LoadBalancerRule {
    /// Its id.
    pub id: RuleId,
    /// Its name, which need not be unique.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// How it chooses a member.
    #[serde(default, deserialize_with = "super::or_default")]
    pub algorithm: Algorithm,
    /// What it accepts. Old rules tell none.
    #[serde(default, deserialize_with = "super::or_default")]
    pub protocol: RuleProtocol,
    /// The public address.
    #[serde(default, rename = "publicipid", deserialize_with = "super::id_or_none")]
    pub public_ip_id: Option<PublicIpId>,
    /// The public address itself.
    #[serde(default, rename = "publicip", deserialize_with = "super::or_default")]
    pub public_ip: String,
    /// The port of the public address; `None` if it is no number.
    #[serde(default, rename = "publicport", deserialize_with = "super::port_or_none")]
    pub public_port: Option<u16>,
    /// The port of the members; `None` if it is no number.
    #[serde(default, rename = "privateport", deserialize_with = "super::port_or_none")]
    pub private_port: Option<u16>,
    /// The network of the members.
    #[serde(default, rename = "networkid", deserialize_with = "super::id_or_none")]
    pub network_id: Option<NetworkId>,
    /// From where it accepts, as the server writes it; see [`LoadBalancerRule::cidrs`].
    #[serde(default, rename = "cidrlist", deserialize_with = "super::text_or_none")]
    pub cidr_list: Option<String>,
    /// Its state.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: RuleState,
}

impl LoadBalancerRule {
    /// From where it accepts; from everywhere if empty. The server separates them by blanks after a create and by commas
    /// after an update.
    pub fn cidrs(&self) -> impl Iterator<Item = &str> {
        parts(self.cidr_list.as_deref().unwrap_or_default())
    }
}

/// Which load balancer rules are asked for, of those that the keys may see.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RuleQuery {
    /// All.
    #[default]
    All,
    /// Those whose name or description has this in it, whatever the case. Compare again.
    Named(String),
    /// Those on this public address.
    On(PublicIpId),
}

impl RuleQuery {
    /// Whether a rule can be one that was asked for.
    pub(crate) fn admits(&self, rule: &LoadBalancerRule) -> bool {
        match self {
            Self::On(address) => is_or_unsaid(&rule.public_ip_id, Some(address)),
            Self::All | Self::Named(_) => true,
        }
    }

    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("listall", "true");
        match self {
            Self::All => {}
            Self::Named(keyword) => parameters.set("keyword", keyword.as_str()),
            Self::On(address) => parameters.set("publicipid", address.as_str()),
        }
        parameters
    }
}

/// A load balancer rule to be created. It opens no firewall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLoadBalancerRule {
    /// Its name.
    pub name: String,
    /// How it chooses a member.
    pub algorithm: Algorithm,
    /// What it accepts.
    pub protocol: RuleProtocol,
    /// The public address.
    pub public_ip: PublicIpId,
    /// The port of the public address.
    pub public_port: u16,
    /// The port of the members.
    pub private_port: u16,
    /// The network of the members.
    pub network: NetworkId,
    /// From where it accepts. `None`: not sent, which servers before 4.18 demand; empty: sent as an empty text.
    pub cidrs: Option<Vec<String>>,
}

impl NewLoadBalancerRule {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("name", self.name.as_str());
        parameters.set("algorithm", self.algorithm.as_str());
        parameters.set("protocol", self.protocol.as_str());
        parameters.set("publicipid", self.public_ip.as_str());
        parameters.set("publicport", self.public_port.to_string());
        parameters.set("privateport", self.private_port.to_string());
        parameters.set("networkid", self.network.as_str());
        parameters.set("openfirewall", "false");
        if let Some(cidrs) = &self.cidrs {
            parameters.set("cidrlist", cidrs.join(","));
        }
        parameters
    }
}

/// What is to be changed about a load balancer rule. What is none stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleUpdate {
    /// Its name.
    pub name: Option<String>,
    /// How it chooses a member.
    pub algorithm: Option<Algorithm>,
    /// What it accepts.
    pub protocol: Option<RuleProtocol>,
    /// From where it accepts; empty is sent as an empty text. Servers before 4.22 ignore it.
    pub cidrs: Option<Vec<String>>,
}

impl RuleUpdate {
    pub(crate) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        if let Some(name) = &self.name {
            parameters.set("name", name.as_str());
        }
        if let Some(algorithm) = &self.algorithm {
            parameters.set("algorithm", algorithm.as_str());
        }
        if let Some(protocol) = &self.protocol {
            parameters.set("protocol", protocol.as_str());
        }
        if let Some(cidrs) = &self.cidrs {
            parameters.set("cidrlist", cidrs.join(","));
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_texts_and_lists_have_blanks_or_commas() {
        let rule = |list: &str| -> LoadBalancerRule {
            serde_json::from_str(&format!(
                r#"{{"id":"e5","name":"a-tcp-443","publicport":"443","privateport":"31443","state":"Add"{list}}}"#
            ))
            .unwrap()
        };
        assert_eq!(rule("").public_port, Some(443));
        assert_eq!(rule("").private_port, Some(31443));
        assert_eq!(rule("").cidrs().count(), 0);
        for list in [
            "10.0.0.0/8 192.168.0.0/16",
            "10.0.0.0/8,192.168.0.0/16",
            "10.0.0.0/8, 192.168.0.0/16 ",
        ] {
            let rule = rule(&format!(r#","cidrlist":"{list}""#));
            assert_eq!(rule.cidrs().collect::<Vec<_>>(), ["10.0.0.0/8", "192.168.0.0/16"]);
        }
    }

    #[test]
    fn what_cannot_be_read_of_a_rule_does_not_hide_the_others() {
        let rule: LoadBalancerRule =
            serde_json::from_str(r#"{"id":"e5","publicport":"many","privateport":70000,"protocol":"TCP"}"#)
                .unwrap();
        assert_eq!((rule.public_port, rule.private_port), (None, None));
        assert_eq!(rule.protocol, RuleProtocol::Other("TCP".to_owned()));
    }
}
