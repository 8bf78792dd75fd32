//! ACL lists of VPC tiers and their items (`listNetworkACLLists`, `listNetworkACLs` and its kin).

use serde::Deserialize;

use super::{AclItemId, AclListId, Filter, RuleState, VpcId};

/// An ACL list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkAclList {
    /// Its id.
    pub id: AclListId,
    /// Its name. The built-in ones are `default_allow` and `default_deny`.
    #[serde(default, deserialize_with = "super::or_default")]
    pub name: String,
    /// The VPC that it belongs to.
    #[serde(default, rename = "vpcid", deserialize_with = "super::id_or_none")]
    pub vpc_id: Option<VpcId>,
}

/// An item of an ACL list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NetworkAcl {
    /// Its id.
    pub id: AclItemId,
    /// Which packets it is about.
    #[serde(flatten)]
    pub filter: Filter,
    /// `Ingress` or `Egress`.
    #[serde(default, rename = "traffictype", deserialize_with = "super::or_default")]
    pub traffic_type: String,
    /// `Allow` or `Deny`.
    #[serde(default, deserialize_with = "super::or_default")]
    pub action: String,
    /// What it is for, as a person wrote it.
    #[serde(default, deserialize_with = "super::text_or_none")]
    pub reason: Option<String>,
    /// Its place in the list: lower ones come first.
    #[serde(default, deserialize_with = "super::number_or_none")]
    pub number: Option<i64>,
    /// The list.
    #[serde(default, rename = "aclid", deserialize_with = "super::id_or_none")]
    pub list_id: Option<AclListId>,
    /// Its state.
    #[serde(default, deserialize_with = "super::or_default")]
    pub state: RuleState,
}

impl NetworkAcl {
    /// Whether it lets something in.
    pub fn allows_ingress(&self) -> bool {
        self.action.eq_ignore_ascii_case("allow") && self.traffic_type.eq_ignore_ascii_case("ingress")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_tells_port_and_direction() {
        let item: NetworkAcl = serde_json::from_str(
            r#"{"id":"c3","protocol":"tcp","startport":"443","endport":"443","cidrlist":"0.0.0.0/0",
                "traffictype":"Ingress","action":"Allow","number":4,"aclid":"ac","aclname":"tier-acl","state":"Active"}"#,
        )
        .unwrap();
        assert_eq!(
            (item.filter.start_port, item.filter.end_port),
            (Some(443), Some(443))
        );
        assert!(item.allows_ingress());
        assert_eq!((item.number, item.reason), (Some(4), None));
        let text = r#"{"id":"c4","reason":"the office"}"#;
        let item: NetworkAcl = serde_json::from_str(text).unwrap();
        assert_eq!(item.reason.as_deref(), Some("the office"));
    }
}
