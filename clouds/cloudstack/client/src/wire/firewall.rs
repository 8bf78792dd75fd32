//! Firewall rules (`listFirewallRules` and its kin).

use serde::Deserialize;

use super::{Filter, FirewallRuleId, PublicIpId, RuleState};

/// A firewall rule of a public address.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FirewallRule {
    /// Its id.
    pub id: FirewallRuleId,
    /// Which packets it lets in.
    #[serde(flatten)]
    pub filter: Filter,
    /// The public address.
    #[serde(default, rename = "ipaddressid", deserialize_with = "super::id_or_none")]
    pub public_ip_id: Option<PublicIpId>,
    /// Its state.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: RuleState,
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
        assert_eq!(
            (rule.filter.start_port, rule.filter.end_port),
            (Some(443), Some(443))
        );
        assert_eq!(rule.filter.cidrs().count(), 2);
        let rule: FirewallRule =
            serde_json::from_str(r#"{"id":"f2","protocol":"icmp","icmptype":8,"icmpcode":0}"#).unwrap();
        assert_eq!(rule.filter.start_port, None);
    }
}
