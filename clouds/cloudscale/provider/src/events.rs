//! Everything that the provider tells people: the reasons of its events, in one table.

use bowline_plan::EventSpec;

bowline_plan::events! {
    TABLE;
    NO_VALID_NODES = "NoValidNodes", Warning,
        "No node may be balanced over, so the load balancer has no members.",
        "Compare the node selector annotation with the labels of the nodes; without one, see why no node is eligible.";
    NO_MEMBERS = "NoPoolMembers", Warning,
        "There are nodes, but none of them has a private address that may become a member.",
        "Give the nodes a private interface with a subnet, or correct the annotation with the allowed subnets.";
    NODES_LEFT_OUT = "NodesLeftOut", Warning,
        "Nodes are not balanced over because their servers cannot be told.",
        "Give a node without provider ID the name of its server, or remove nodes whose servers are gone.";
    FLOATING_IP_MOVED = "FloatingIPMoved", Normal,
        "A floating IP led elsewhere and is led to the load balancer of this Service.",
        "If that was not meant, take it off the annotation and lead it back by hand.";
    IGNORED_FIELDS = "IgnoredServiceFields", Warning,
        "Fields of the Service have no effect on the load balancer.",
        "Use the annotations that the event names, where there are any.";
    UNKNOWN_ANNOTATIONS = "UnknownAnnotations", Warning,
        "Annotations look like ones of this provider and are none; they have no effect.",
        "Correct their spelling.";
    UDP_MONITOR = "UDPHealthMonitor", Warning,
        "A UDP port is checked by TCP because no monitor type is set, and nothing answers there unless the port is also a TCP port.",
        "Set the monitor type `udp-connect`, with a delay of 3 and a timeout of 2 seconds.";
    LOCAL_POLICY_HTTP = "CustomHealthMonitor", Normal,
        "The Service balances to local endpoints only, and its HTTP check is the one of the annotation instead of the nodes' own.",
        "Remove the annotation unless the check answers on the health check node port.";
    CLUSTER_NAME_AMBIGUOUS = "ClusterNameTagAmbiguous", Warning,
        "The nodes name different clusters, so what is created gets no cluster name tag.",
        "Give all nodes the same cluster name annotation, or set --cluster-name.";
    STILL_CHANGING = "LoadBalancerStillChanging", Warning,
        "The load balancer has been changing for minutes; nothing is written to it before it is done.",
        "Look at it in the control panel; contact support if it does not get ready.";
    FOREIGN_KEPT = "ForeignLoadBalancerKept", Warning,
        "A load balancer that this Service names belongs to another Service or cluster, or may, and is neither changed nor deleted.",
        "Follow the text. If it is this cluster's, because it was restored under a new name, change its tag k8s-cluster-name by hand, or say the cluster's name with --cluster-name; if nobody needs it, delete it by hand.";
    DUPLICATE_REMOVED = "DuplicateLoadBalancerRemoved", Normal,
        "More than one load balancer was made for this Service, as after a lost answer; the newer ones are removed.",
        "None is needed.";
}

/// All reasons of events that the provider raises, besides those of the service loop.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    TABLE
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_are_single_words_and_differ() {
        let reasons: BTreeSet<&str> = event_table().iter().map(|event| event.reason).collect();
        assert_eq!(reasons.len(), event_table().len());
        assert!(
            reasons
                .iter()
                .all(|reason| reason.chars().all(|c| c.is_ascii_alphanumeric()))
        );
        assert!(
            event_table()
                .iter()
                .all(|event| event.remedy.ends_with('.') && event.meaning.ends_with('.'))
        );
    }
}
