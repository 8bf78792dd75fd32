//! Every event that the loops record: the reasons with their meaning and what the operator can do.
//!
//! Reasons and messages that upstream has are upstream's, because people alert on them; the rest are ours. The pages
//! of reference and the loops take them from here.

use bowline_plan::NoteKind;

/// One kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpec {
    /// The reason: one word.
    pub reason: &'static str,
    /// Whether somebody should look.
    pub kind: NoteKind,
    /// The kind of object that it is recorded on.
    pub object: &'static str,
    /// The message, with what varies in angle brackets.
    pub message: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What the operator can do.
    pub remedy: &'static str,
}

/// A Node was initialised.
pub const SYNCED: &str = "Synced";
/// A Node could not be initialised.
pub const NODE_INIT_FAILED: &str = "NodeInitFailed";
/// The cloud knows a Node's machine under another provider ID.
pub const PROVIDER_ID_MISMATCH: &str = "ProviderIDMismatch";
/// A Node is being deleted because its machine is gone.
pub const DELETING_NODE: &str = "DeletingNode";
/// A Node could not be deleted.
pub const DELETING_NODE_FAILED: &str = "DeletingNodeFailed";
/// A Node is not deleted although its machine looks gone, because the answer is not credible.
pub const NODE_DELETION_FROZEN: &str = "NodeDeletionFrozen";
/// A Node is not deleted yet, because many were a short time ago.
pub const NODE_DELETION_THROTTLED: &str = "NodeDeletionThrottled";
/// Work on a Service's balancer begins.
pub const ENSURING_LOAD_BALANCER: &str = "EnsuringLoadBalancer";
/// A Service's balancer is as it should be.
pub const ENSURED_LOAD_BALANCER: &str = "EnsuredLoadBalancer";
/// A Service's balancer follows a change of Nodes.
pub const UPDATED_LOAD_BALANCER: &str = "UpdatedLoadBalancer";
/// A Service's balancer has no Node to balance over.
pub const UNAVAILABLE_LOAD_BALANCER: &str = "UnAvailableLoadBalancer";
/// Work on a Service's balancer failed.
pub const SYNC_LOAD_BALANCER_FAILED: &str = "SyncLoadBalancerFailed";
/// A Service's balancer could not follow a change of Nodes.
pub const UPDATE_LOAD_BALANCER_FAILED: &str = "UpdateLoadBalancerFailed";
/// Deletion of a Service's balancer begins.
pub const DELETING_LOAD_BALANCER: &str = "DeletingLoadBalancer";
/// A Service's balancer is gone.
pub const DELETED_LOAD_BALANCER: &str = "DeletedLoadBalancer";
/// The balancer of a Service that has vanished could not be deleted.
pub const DELETE_LOAD_BALANCER_FAILED: &str = "DeleteLoadBalancerFailed";
/// What a provider has to remember may not be written on a Service.
pub const ANNOTATIONS_FORBIDDEN: &str = "AnnotationsForbidden";
/// A route to a Node could not be made.
pub const FAILED_TO_CREATE_ROUTE: &str = "FailedToCreateRoute";

/// No pod network is left for a Node.
pub const CIDR_NOT_AVAILABLE: &str = "CIDRNotAvailable";
/// A Node could not be given its pod networks.
pub const CIDR_ASSIGNMENT_FAILED: &str = "CIDRAssignmentFailed";

/// All of them, Nodes first.
pub static EVENTS: &[EventSpec] = &[
    EventSpec {
        reason: SYNCED,
        kind: NoteKind::Normal,
        object: "Node",
        message: "Node synced successfully",
        meaning: "The Node has its provider ID, addresses and labels, and its uninitialized taint is gone.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: NODE_INIT_FAILED,
        kind: NoteKind::Warning,
        object: "Node",
        message: "<what failed>",
        meaning: "The Node could not be initialised. It keeps its uninitialized taint, so most pods cannot run there. Bowline tries again after 1 to 60 s, and at once when the Node's labels, taints, provider ID or provided IPs change. The event is recorded again only when its text changes.",
        remedy: "Follow the text. The instance must have the Node's name, or the Node must have the right provider ID. A node IP that the kubelet was given must be an address of the instance. The credentials must be allowed to see the instance.",
    },
    EventSpec {
        reason: PROVIDER_ID_MISMATCH,
        kind: NoteKind::Warning,
        object: "Node",
        message: "The cloud gives this instance the provider ID <id>, but the Node has <id>",
        meaning: "The provider ID of a Node cannot be changed, so the Node keeps the one that it has.",
        remedy: "If the instance was replaced by another one of the same name, delete the Node. Its kubelet registers it again.",
    },
    EventSpec {
        reason: DELETING_NODE,
        kind: NoteKind::Normal,
        object: "Node",
        message: "Deleting node <name> because it does not exist in the cloud provider",
        meaning: "The Node is not ready, and the cloud has proved that its instance does not exist any more.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: DELETING_NODE_FAILED,
        kind: NoteKind::Warning,
        object: "Node",
        message: "Failed deleting node <name>: <error>",
        meaning: "The API server did not delete the Node. Bowline tries again.",
        remedy: "Follow the error text. The account needs the verb delete on nodes.",
    },
    EventSpec {
        reason: NODE_DELETION_FROZEN,
        kind: NoteKind::Warning,
        object: "Node",
        message: "Not deleting node <name>: the cloud reports that the instances of all <n> ready nodes do not exist either. Check that the credentials belong to the project of this cluster",
        meaning: "The cloud reported that even the instances of Nodes that are ready do not exist. Bowline takes this as wrong credentials or the wrong project, and deletes nothing.",
        remedy: "Check that the credentials belong to the project of this cluster.",
    },
    EventSpec {
        reason: NODE_DELETION_THROTTLED,
        kind: NoteKind::Warning,
        object: "Node",
        message: "Not deleting node <name> yet: <n> nodes were deleted within <duration>, which is the limit of --node-deletion-share. It is deleted when its turn comes",
        meaning: "Many instances are gone at once: fewer Nodes than the share --node-deletion-share of the cluster are deleted within --node-deletion-window, but up to three in any case. The Node is deleted when its turn comes.",
        remedy: "If the instances were removed on purpose, wait, delete the Nodes by hand, or raise --node-deletion-share.",
    },
    EventSpec {
        reason: CIDR_NOT_AVAILABLE,
        kind: NoteKind::Normal,
        object: "Node",
        message: "Node <name> status is now: CIDRNotAvailable",
        meaning: "All pod networks of the cluster are in use, so the Node gets none, and no pod can run there. The Node gets the next pod network that becomes free.",
        remedy: "Delete Nodes that nobody needs, or give a larger --cluster-cidr.",
    },
    EventSpec {
        reason: CIDR_ASSIGNMENT_FAILED,
        kind: NoteKind::Normal,
        object: "Node",
        message: "Node <name> status is now: CIDRAssignmentFailed",
        meaning: "The pod networks could not be written on the Node. Bowline tries again after 1 to 60 s.",
        remedy: "Look for the error in the log. The account needs the verb patch on nodes.",
    },
    EventSpec {
        reason: ENSURING_LOAD_BALANCER,
        kind: NoteKind::Normal,
        object: "Service",
        message: "Ensuring load balancer",
        meaning: "The load balancer is being created or changed after somebody changed the Service.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: ENSURED_LOAD_BALANCER,
        kind: NoteKind::Normal,
        object: "Service",
        message: "Ensured load balancer",
        meaning: "The load balancer is as the Service asks for.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: UPDATED_LOAD_BALANCER,
        kind: NoteKind::Normal,
        object: "Service",
        message: "Updated load balancer with new hosts",
        meaning: "Nodes changed, and the members of the load balancer were changed with them.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: UNAVAILABLE_LOAD_BALANCER,
        kind: NoteKind::Warning,
        object: "Service",
        message: "There are no available nodes for LoadBalancer",
        meaning: "No Node may become a member of the load balancer, so the load balancer drops all traffic.",
        remedy: "Add Nodes, or remove the label node.kubernetes.io/exclude-from-external-load-balancers from Nodes.",
    },
    EventSpec {
        reason: SYNC_LOAD_BALANCER_FAILED,
        kind: NoteKind::Warning,
        object: "Service",
        message: "Error syncing load balancer: <error>",
        meaning: "The load balancer could not be made as the Service asks for, or could not be deleted. Bowline tries again after 5, 10, 20 ... 300 s.",
        remedy: "Follow the error text.",
    },
    EventSpec {
        reason: UPDATE_LOAD_BALANCER_FAILED,
        kind: NoteKind::Warning,
        object: "Service",
        message: "Error updating load balancer with new hosts <names> [node names limited, total number of nodes: <n>], error: <error>",
        meaning: "The members of the load balancer could not be changed after a change of Nodes. A full sync follows at once.",
        remedy: "Follow the error text.",
    },
    EventSpec {
        reason: DELETING_LOAD_BALANCER,
        kind: NoteKind::Normal,
        object: "Service",
        message: "Deleting load balancer",
        meaning: "The Service is being deleted or no longer asks for a load balancer.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: DELETED_LOAD_BALANCER,
        kind: NoteKind::Normal,
        object: "Service",
        message: "Deleted load balancer",
        meaning: "The load balancer and all its parts are deleted.",
        remedy: "Nothing to do.",
    },
    EventSpec {
        reason: DELETE_LOAD_BALANCER_FAILED,
        kind: NoteKind::Warning,
        object: "Service",
        message: "Error deleting load balancer: <error>",
        meaning: "The Service was deleted without its finalizer, which somebody had removed by hand, and its load balancer could not be deleted. Bowline tries again.",
        remedy: "Follow the error text. Bowline tries again as long as this process leads. After that nothing in the cluster names the load balancer any more: look for it in the cloud by the name or the UID of the Service, and delete it there.",
    },
    EventSpec {
        reason: ANNOTATIONS_FORBIDDEN,
        kind: NoteKind::Warning,
        object: "Service",
        message: "Annotations may not be written on the service, so it is served without them: <error>",
        meaning: "The API server forbids Bowline to write annotations on the Service. Bowline serves the Service without them, where the provider can. But if the process is killed, or an answer of the cloud is lost, while an address is being acquired, that address may stay in the cloud and be billed. The event is recorded once for each Service.",
        remedy: "Give the account the verb patch on services, as the shipped role does.",
    },
    EventSpec {
        reason: FAILED_TO_CREATE_ROUTE,
        kind: NoteKind::Warning,
        object: "Node",
        message: "Could not create route <node UID> <cidr> for node <name> after <duration>: <error>",
        meaning: "Pods of the Node cannot be reached from other Nodes, and the Node's condition NetworkUnavailable is True. Bowline tries again after --route-reconciliation-period at the latest. The event is recorded when the error is new, then every 15 minutes.",
        remedy: "Follow the error text.",
    },
];

/// The entry of a reason.
#[must_use]
pub fn spec(reason: &str) -> Option<&'static EventSpec> {
    EVENTS.iter().find(|event| event.reason == reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed_once() {
        for event in EVENTS {
            assert_eq!(
                EVENTS.iter().filter(|other| other.reason == event.reason).count(),
                1,
                "{}",
                event.reason
            );
            assert_eq!(spec(event.reason), Some(event));
        }
    }

    #[test]
    fn every_event_says_what_to_do() {
        for event in EVENTS {
            assert!(
                event.reason.chars().all(|c| c.is_ascii_alphabetic()),
                "{}",
                event.reason
            );
            assert!(
                event.meaning.ends_with('.') && event.remedy.ends_with('.'),
                "{}",
                event.reason
            );
            assert!(!event.message.ends_with('.'), "{}", event.reason);
            let is_warning = event.kind == NoteKind::Warning;
            // Upstream has two that are Normal although somebody should look.
            let is_upstreams = event.reason.starts_with("CIDR");
            assert_eq!(
                is_warning || is_upstreams,
                event.remedy != "Nothing to do.",
                "{}",
                event.reason
            );
        }
    }
}
