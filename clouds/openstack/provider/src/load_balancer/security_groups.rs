//! The security group of a Service: it lets the load balancer reach the node ports of its members (pure).
//!
//! ```text
//! security_groups/rules.rs   the wanted rules, and what is missing or too many
//! security_groups/ports.rs   which ports get the group and which lose it
//! ```

pub(crate) mod ports;
pub(crate) mod rules;

use crate::load_balancer::step::GroupChange;

/// What makes a security group, or its ports, as they shall be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Missing rules, and ports of members without the group.
    pub(crate) opening: Vec<GroupChange>,
    /// Rules that are too many, and ports with the group that belong to no member: the Node left the cluster or the selection.
    pub(crate) closing: Vec<GroupChange>,
}
