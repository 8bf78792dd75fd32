//! Everything that the provider tells people: the reasons of its events, in one table.

use bowline_cloud_provider::reasons;

bowline_plan::events! {
    pub EVENTS;
    NO_VALID_NODES = reasons::NO_VALID_NODES, Shared,
        "No node may become a member, so the load balancer has no members and drops all traffic.",
        "Compare the node selector annotation with the labels of the nodes. Without that annotation, look for nodes with the label node.kubernetes.io/exclude-from-external-load-balancers.";
    NO_MEMBERS = "NoPoolMembers", Warning,
        "There are nodes, but none of them has a private address that may become a member.",
        "Give the nodes a private interface with a subnet, or correct the annotation with the allowed subnets.";
    NODES_LEFT_OUT = reasons::NODES_LEFT_OUT, Shared,
        "Nodes did not become members, because it is not known which servers they are, or because their servers have no interface in a private network.",
        "Give a node without provider ID the name of its server, and a server its private interface. Delete nodes whose servers do not exist any more.";
    NODES_SHARE_ADDRESS = "NodesShareAddress", Warning,
        "Nodes have one private address, as when two of them name one server, or servers in two private networks have the same address. In one subnet the load balancer has one member for them; of two in different subnets cloudscale.ch may refuse one.",
        "Compare the addresses of the servers that the event names, and delete a Node whose server is gone.";
    FLOATING_IP_MOVED = "FloatingIPMoved", Normal,
        "A floating IP pointed to something else, and Bowline has pointed it to the load balancer of this Service.",
        "If that was not intended, remove the floating IP from the annotation and assign it by hand to what it pointed to before. The event names that.";
    IGNORED_FIELDS = reasons::IGNORED_FIELDS, Shared,
        "Fields of the Service have no effect on the load balancer.",
        "Use the annotations that the event names, where there are any.";
    IGNORED_ANNOTATIONS = reasons::IGNORED_ANNOTATIONS, Shared,
        "The Service has annotations with the prefix of this provider, or fields in their JSON, which the provider does not know. They have no effect.",
        "Correct the spelling of the keys and fields that the event names.";
    UDP_MONITOR = "UDPHealthMonitor", Warning,
        "No type of health monitor is set, so a UDP port is checked over TCP. Unless the same port is also a TCP port, no member answers that check and all members count as down.",
        "Set the monitor type `udp-connect`, with a delay of 3 and a timeout of 2 seconds.";
    LOCAL_POLICY_HTTP = "CustomHealthMonitor", Normal,
        "The Service has externalTrafficPolicy Local. The health monitor makes the HTTP check of the annotation instead of the one that kube-proxy answers.",
        "Remove the annotation unless the check answers on the health check node port.";
    CLUSTER_NAME_AMBIGUOUS = "ClusterNameTagAmbiguous", Warning,
        "The nodes' annotations name different clusters, so new load balancers get no tag with a cluster name.",
        "Give all nodes the same cluster name annotation, or set --cluster-name.";
    STILL_CHANGING = "LoadBalancerStillChanging", Warning,
        "cloudscale.ch has been changing the load balancer for minutes. Bowline writes nothing to it before that ends.",
        "Look at the load balancer in the control panel. If it stays like that, ask the support of cloudscale.ch.";
    QUOTA_MET = reasons::QUOTA_MET, Shared,
        "A port of the Service changed, and a quota leaves no room for the new pool beside the old one. Bowline removes the old one first, so the port is not served until the new pool is there: for a moment, or if what went made no room, until SyncLoadBalancerFailed does not say so any more.",
        "Nothing to do. To have later changes without that, have the quota for pools raised.";
    FOREIGN_KEPT = reasons::FOREIGN_KEPT, Shared,
        "A load balancer that this Service names belongs, or may belong, to another Service or cluster. Bowline neither changes nor deletes it.",
        "Follow the text. If the load balancer is this cluster's, because the cluster was restored under a new name, change the tag k8s-cluster-name by hand, or give the cluster's name with --cluster-name. If nobody needs the load balancer, delete it by hand.";
    GONE = reasons::GONE, Shared,
        "The load balancer of the Service is gone, for example because somebody deleted it. Another one is made, with other addresses of its own, or the event `SyncLoadBalancerFailed` says what is in the way of that.",
        "Find out who deleted it. Have DNS and whatever else leads to the old addresses follow; floating IPs follow by themselves.";
    DUPLICATE_REMOVED = reasons::DUPLICATE_REMOVED, Shared,
        "There was more than one load balancer of this Service, as can happen after a lost answer. Bowline deletes the newer ones.",
        "Nothing to do.";
}
