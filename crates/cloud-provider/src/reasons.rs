//! Facts that the Services of several clouds are told: reason and kind of the event are the same on each. What it means there and
//! what to do says the table of the cloud.

use bowline_plan::NoteKind::{self, Normal, Warning};

/// No Node is balanced over, although there are some.
pub const NO_VALID_NODES: (&str, NoteKind) = ("NoValidNodes", Warning);
/// Nodes are not balanced over, because nobody knows their instances.
pub const NODES_LEFT_OUT: (&str, NoteKind) = ("NodesLeftOut", Warning);
/// A creation that the cloud refused left a port there.
pub const PORT_LEFT: (&str, NoteKind) = ("LoadBalancerPortLeft", Warning);
/// Fields of the Service have no effect.
pub const IGNORED_FIELDS: (&str, NoteKind) = ("IgnoredServiceFields", Warning);
/// Annotations of the Service are not known or cannot be read, and have no effect.
pub const IGNORED_ANNOTATIONS: (&str, NoteKind) = ("IgnoredAnnotations", Warning);
/// A quota leaves no room for a new part beside the one whose place it takes.
pub const QUOTA_MET: (&str, NoteKind) = ("LoadBalancerQuotaMet", Warning);
/// The Service's load balancer vanished, and gets a successor.
pub const GONE: (&str, NoteKind) = ("LoadBalancerGone", Warning);
/// The floating IP that the Service shows was deleted or leads elsewhere.
pub const FLOATING_IP_GONE: (&str, NoteKind) = ("LoadBalancerFloatingIPGone", Warning);
/// The public IP address that the Service shows was released, or is another account's.
pub const ADDRESS_GONE: (&str, NoteKind) = ("PublicIPGone", Warning);
/// One load balancer too many was deleted.
pub const DUPLICATE_REMOVED: (&str, NoteKind) = ("LoadBalancerDuplicateRemoved", Normal);
/// A load balancer that the Service seems to have is another's, or may be, and is neither changed nor deleted.
pub const FOREIGN_KEPT: (&str, NoteKind) = ("ForeignLoadBalancerKept", Warning);
/// An address that the Service used is not released: others use it, or nothing proves whose it is.
pub const ADDRESS_KEPT: (&str, NoteKind) = ("PublicIPKept", Warning);

/// Nodes that are one member, under the names that each cloud has for it.
const NODES_SHARED: [&str; 3] = [
    "NodesShareInstance",
    "NodesShareAddress",
    "LoadBalancerNodesShareAddress",
];

/// Whether an event of this reason tells of what is beside the Service, and keeps it from nothing: Nodes that are no members while the
/// others serve it, or what a refused creation left.
#[must_use]
pub fn is_beside(reason: &str) -> bool {
    is_of_nodes(reason) || reason == PORT_LEFT.0
}

/// Whether it tells of Nodes that are no members, or not each a member, of any Service.
#[must_use]
pub fn is_of_nodes(reason: &str) -> bool {
    reason == NODES_LEFT_OUT.0 || NODES_SHARED.contains(&reason)
}

/// Whether it tells of Nodes that have one provider ID.
#[must_use]
pub fn is_of_one_instance(reason: &str) -> bool {
    reason == NODES_SHARED[0]
}

/// Whether an event of this reason says that something stays when the Service goes.
#[must_use]
pub fn says_kept(reason: &str) -> bool {
    [FOREIGN_KEPT.0, ADDRESS_KEPT.0].contains(&reason)
}
