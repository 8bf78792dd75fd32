//! Security groups and their rules (Networking API v2.0).

use bowline_cloud_http::lenient::{list, or_default};
use serde::{Deserialize, Serialize};

use super::{Direction, EtherType, SecurityGroupId, SecurityGroupRuleId};

/// A security group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecurityGroup {
    /// Its id.
    pub id: SecurityGroupId,
    /// Its name; several may share one.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// The project that it belongs to.
    pub project_id: Option<String>,
    /// When it was made, as the API writes it.
    pub created_at: Option<String>,
    /// What its maker wrote on it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// Its rules. An answer that does not name them is none: all would be created.
    #[serde(rename = "security_group_rules", deserialize_with = "list")]
    pub rules: Vec<SecurityGroupRule>,
}

/// A security group to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSecurityGroup {
    /// Its name.
    pub name: String,
    /// Whose it is.
    pub description: String,
}

/// A rule of a security group.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SecurityGroupRule {
    /// Its id.
    pub id: SecurityGroupRuleId,
    /// The group that it belongs to.
    pub security_group_id: SecurityGroupId,
    /// Which way it looks.
    pub direction: Direction,
    /// Its IP version.
    pub ethertype: Option<EtherType>,
    /// The protocol: a name or a number; `None` is any.
    pub protocol: Option<String>,
    /// The first port; `None` is any.
    pub port_range_min: Option<u16>,
    /// The last port; `None` is any.
    pub port_range_max: Option<u16>,
    /// Whom it lets through; `None` is everyone, unless a group is named.
    pub remote_ip_prefix: Option<String>,
    /// The group whose ports it lets through.
    pub remote_group_id: Option<SecurityGroupId>,
}

/// A rule to be created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewSecurityGroupRule {
    /// The group that it shall belong to.
    pub security_group_id: SecurityGroupId,
    /// Which way it shall look.
    pub direction: Direction,
    /// Its IP version.
    pub ethertype: EtherType,
    /// The protocol, in lower case.
    pub protocol: String,
    /// The first port.
    pub port_range_min: u16,
    /// The last port.
    pub port_range_max: u16,
    /// Whom it shall let through.
    pub remote_ip_prefix: String,
}
