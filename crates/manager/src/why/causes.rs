//! What programs know causes by: all ids in one list.

use std::cmp::Reverse;

use super::{Cause, Why, addresses};

/// What stands before the reason of the condition that tells of the last try.
pub(super) const LAST_TRY: &str = "last-try.";

/// What stands before the reason of an event.
pub(super) const EVENT: &str = "event.";

/// Causes, a line each: the id, and what it means.
macro_rules! causes {
    ($($id:literal: $means:literal;)*) => {
        /// The ids of causes that are neither checks of `doctor`, nor reasons of the condition or of events, with what they mean.
        pub const CAUSES: &[(&str, &str)] = &[$(($id, $means)),*];
    };
}

causes! {
    "cloud.busy": "the cloud is changing the load balancer";
    "cloud.no-answer": "the cloud gives no answer in time";
    "kubernetes.unread": "the object cannot be read from the API server";
    "node.autoscaled": "the taint of the cluster autoscaler keeps the Node from load balancers";
    "node.controller-off": "the manager initialises no Nodes";
    "node.foreign": "the Node waits, and its provider ID is of another cloud";
    "node.instance-unknown": "the cloud's answer about the instance is an error";
    "node.instances-not-listed": "the cloud does not list its instances";
    "node.credentials": "the credentials show the instances of no Node: another project or account";
    "node.no-network": "the condition NetworkUnavailable is True: the pods of the Node are not reached";
    "node.no-instance": "the cloud has no instance for the Node";
    "node.no-internal-address": "the instance has no address in the private network, or settings choose none";
    "node.not-ready": "the Node is not ready, and the state of its instance as the cloud tells it";
    "node.off": "the instance is switched off";
    "node.provided-ip": "the instance has not the address that the kubelet was given";
    "node.rebuilt": "the instance was rebuilt under the Node's name, with another ID";
    "node.shared-provider-id": "several Nodes have one provider ID";
    "node.tainted-again": "the Node was initialised before and has the taint again";
    "node.throttled": "the instance is proved gone, and enough other Nodes were deleted for now";
    "node.waits": "the instance is there, and the Node still waits";
    "node.without-provider-id": "the Node has neither a provider ID nor the taint";
    "object.missing": "there is no such object";
    "service.address-changed": "another Service shows an address that this one showed before";
    "service.address-changes": "the Service loses an address that it shows: clients have to follow";
    "service.address-shared": "another Service shows the same address with the same port";
    "service.differs": "the load balancer is not as the Service asks";
    "service.finalizer-of-another": "somebody else's finalizer holds the deletion";
    "service.members-down": "members do not answer";
    "service.no-member": "no Node may be a member";
    "service.no-member-ready": "no member is ready";
    "service.no-plan": "no plan could be made";
    "service.no-pods": "no pod is behind the Service";
    "service.no-such-port": "the Service leads to a port of its pods by a name that no pod has";
    "service.not-published": "the load balancer is there, and the Service does not show its address";
    "service.of-another-class": "the Service is of a class that this manager does not serve";
    "service.pods-not-ready": "no pod behind the Service is ready";
    "service.pods-on-no-member": "externalTrafficPolicy is Local, and the pods run on Nodes that are no members";
    "service.refused": "what the Service asks for is not possible";
    "service.unserved": "the manager serves no Services";
    "service.zone-differs": "no member is in the zone of the load balancer";
}

/// Whether an id is one that programs can know, and no check's of `doctor`.
pub(super) fn is_listed(id: &str) -> bool {
    id.starts_with(LAST_TRY) || id.starts_with(EVENT) || CAUSES.iter().any(|(known, _)| *known == id)
}

impl Why {
    /// The worst first; of the same weight, what a manager makes by itself and what it noted stand behind what is down.
    pub(super) fn put_in_order(&mut self) {
        let is_later = |it: &Cause| it.id == addresses::DIFFERS || it.id.starts_with(EVENT);
        self.causes.sort_by_key(|it| (Reverse(it.outcome), is_later(it)));
    }
}
