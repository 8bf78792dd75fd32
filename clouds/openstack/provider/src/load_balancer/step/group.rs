//! Writes to the Service's security group and to the ports that have it.

use bowline_openstack_client::{
    NewSecurityGroup, NewSecurityGroupRule, Port, SecurityGroupId, SecurityGroupRuleId,
};
use bowline_plan::{Impact, Lane};

/// A write to the Service's security group or to a port that has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// Creates the group.
    Create { new: NewSecurityGroup },
    /// Creates a rule.
    CreateRule { new: NewSecurityGroupRule },
    /// Deletes a rule.
    DeleteRule {
        group: SecurityGroupId,
        id: SecurityGroupRuleId,
        text: String,
    },
    /// Gives the group to a port, which is as it was read.
    Join { group: SecurityGroupId, port: Box<Port> },
    /// Takes the group off a port, which is as it was read, and the tag that old controllers left.
    Leave { group: SecurityGroupId, port: Box<Port> },
    /// Deletes the group.
    Delete { group: SecurityGroupId, name: String },
}

impl GroupChange {
    pub(super) fn label(&self) -> String {
        match self {
            Self::Create { new } => format!("create-security-group({})", new.name),
            Self::CreateRule { new } => format!(
                "create-security-group-rule({}: {} {} from {})",
                new.security_group_id, new.protocol, new.port_range_min, new.remote_ip_prefix
            ),
            Self::DeleteRule { group, text, .. } => format!("delete-security-group-rule({group}: {text})"),
            Self::Join { group, port } => format!("add-security-group({}: {group})", port.id),
            Self::Leave { group, port } => format!("remove-security-group({}: {group})", port.id),
            Self::Delete { group, .. } => format!("delete-security-group({group})"),
        }
    }

    pub(super) fn object(&self) -> String {
        match self {
            Self::Create { new } => format!("security group {}", new.name),
            Self::CreateRule { new } => format!("security group {}", new.security_group_id),
            Self::DeleteRule { group, .. } => format!("security group {group}"),
            Self::Join { port, .. } | Self::Leave { port, .. } => format!("port {}", port.id),
            Self::Delete { name, .. } => format!("security group {name}"),
        }
    }

    pub(super) fn impact(&self) -> Impact {
        match self {
            Self::Create { .. } | Self::CreateRule { .. } | Self::Join { .. } => Impact::None,
            Self::DeleteRule { .. } | Self::Leave { .. } | Self::Delete { .. } => Impact::Minimal,
        }
    }

    /// Whether it may undo what others wrote to a port since it was read: where Neutron does not tell one version from another.
    pub(super) fn may_undo_others(&self) -> bool {
        match self {
            Self::Join { port, .. } | Self::Leave { port, .. } => port.revision_number.is_none(),
            _ => false,
        }
    }

    pub(super) fn lane(&self) -> Lane {
        match self {
            Self::Create { new } => Lane::new(format!("openstack/security-group-name/{}", new.name)),
            Self::CreateRule { new } => {
                Lane::new(format!("openstack/security-group/{}", new.security_group_id))
            }
            Self::DeleteRule { group, .. } | Self::Delete { group, .. } => {
                Lane::new(format!("openstack/security-group/{group}"))
            }
            // The groups of a port are written as a whole, by every Service that has it as a member.
            Self::Join { port, .. } | Self::Leave { port, .. } => {
                Lane::new(format!("openstack/port/{}", port.id))
            }
        }
    }
}
