//! Everything that the provider tells people: the reasons of its events, in one table.

use bowline_cloud_provider::{InstanceState, reasons};

bowline_plan::events! {
    pub EVENTS;
    FORCED_INTERNAL = "LoadBalancerForcedInternal", Warning,
        "There is no network that a floating IP could come from, so the load balancer is reached at its address in the project's network only.",
        "Set floating-network-id in cloud.conf or on the Service, or mark the Service as internal.";
    EXTERNAL_NETWORK_SEARCH_FAILED = "LoadBalancerExternalNetworkSearchFailed", Warning,
        "No floating network is configured, and the search for one failed.",
        "Set floating-network-id in cloud.conf or on the Service.";
    SOURCE_RANGES_IGNORED = "LoadBalancerSourceRangesIgnored", Warning,
        "The Service limits who may connect, and this cloud's load balancers cannot do that, or security groups that a person set on the load balancer's address say who may.",
        "Limit the sources with security groups or network policies, or use Octavia from API version 2.12 on with a provider that knows allowed CIDRs. Where security groups are set on the address, put the sources there, or take these groups off the address.";
    ZONES_IGNORED = "LoadBalancerAvailabilityZonesIgnored", Warning,
        "The Service asks for an availability zone, and this cloud's load balancers have none.",
        "Remove the annotation or option.";
    FLOATING_IP_SKIPPED = "LoadBalancerFloatingIPSkipped", Warning,
        "The Service is external and its address is IPv6, which no floating IP leads to. The load balancer's own address is published.",
        "Nothing to do if that address can be reached from outside.";
    QUOTA_MET = reasons::QUOTA_MET, Shared,
        "A port of the Service changed, and a quota of the project leaves no room for the new listener beside the old one. Bowline removes the old one first, so neither port is served for a moment.",
        "Nothing to do. To have later changes without that, have the quota for listeners, pools or members raised.";
    FLOATING_IP_GONE = reasons::FLOATING_IP_GONE, Shared,
        "The floating IP that the Service's status shows was deleted or leads elsewhere, and another one takes its place, so the address changes. Where no other one can be had, the address in the status does not lead to the Service until then. Bowline itself takes a floating IP away only from a Service that is made internal, gets another type or is deleted.",
        "Have DNS and whatever else leads to the old address follow. To choose the address, set spec.loadBalancerIP.";
    RENAMED = "LoadBalancerRename", Warning,
        "The cluster was renamed. Bowline gives the load balancer and its parts names with the new cluster name.",
        "Nothing to do.";
    LB_METHOD_UNKNOWN = "LoadBalancerLbMethodUnknown", Warning,
        "Octavia refused the balancing method. The pool keeps the one that it has.",
        "Choose a method that the provider of the load balancer knows.";
    IGNORED_ANNOTATIONS = reasons::IGNORED_ANNOTATIONS, Shared,
        "Annotations of the Service cannot be read, or are not known. They have no effect; a node selector that is no list of labels fits no Node.",
        "Correct the keys and values that the event names.";
    CHANGE_IGNORED = "LoadBalancerChangeIgnored", Warning,
        "The Service asks for something that an existing load balancer cannot change, or that a person set otherwise on it.",
        "Undo the change, or delete the Service and create it anew.";
    IN_ERROR = "LoadBalancerInError", Warning,
        "Octavia says that the load balancer, or a part of it, failed, or took a change and did not make it, which Bowline writes again then. In this state a load balancer takes no change. Bowline leaves one that may still carry traffic: it, a listener or a pool of it is in another operating status than ERROR and OFFLINE. That is so of most, because Octavia does not tell a project that an amphora died. One that carries none and is the Service's alone is deleted, and another one made at the same addresses, once an hour at most.",
        "Follow the text: where the load balancer is left, ask the operator of the cloud for a failover.";
    DUPLICATE_REMOVED = reasons::DUPLICATE_REMOVED, Shared,
        "There was more than one load balancer of this Service, as can happen after a lost answer. Bowline deletes those of which all pools say that they were made for this very Service, but for the one that it uses.",
        "Nothing to do.";
    DUPLICATE_KEPT = "LoadBalancerDuplicateKept", Warning,
        "There are load balancers of this Service's name beside the one that it uses: no pool of them says that they were made for it, or a person sent the Service to another one by load-balancer-id. Bowline cannot tell what they are for, and leaves them until the Service is deleted.",
        "Look at what uses them. If nothing does, delete them by hand.";
    FOREIGN_KEPT = reasons::FOREIGN_KEPT, Shared,
        "The Service goes, and the load balancer that it names is another cluster's, as far as name, tags and description tell. Bowline neither changes nor deletes it.",
        "Follow the text. If nobody needs the load balancer, delete it by hand.";
    GONE = reasons::GONE, Shared,
        "The load balancer of the Service is gone, for example because somebody deleted it, or Octavia has been deleting it for more than a minute and does not get done. Another one is made. A Service that shared it gets one of its own, at another address.",
        "Find out who deleted it, unless LoadBalancerInError appeared shortly before, or the Service was of another type for a moment: then Bowline did. To share a load balancer again, set load-balancer-id.";
    PORT_LEFT = reasons::PORT_LEFT, Shared,
        "Octavia made a port for a load balancer that is not there, as it leaves one when it refuses a creation. The port has an address of the subnet. It may be of an earlier try for this Service or of another cluster, so Bowline leaves it, and makes the Service's load balancer empty first, then part by part.",
        "If nothing needs the port, delete it: `openstack port delete`.";
    NO_VALID_NODES = reasons::NO_VALID_NODES, Shared,
        "The node selector leaves out every Node that may be a member, so the load balancer has no members and drops all traffic; or no Node has an InternalIP or ExternalIP of the load balancer's family.",
        "If the text speaks of addresses: `explain node/NAME` says why a Node has none. Else compare the node selector, of the annotation or of cloud.conf, with the labels of the Nodes, and look for the taint ToBeDeletedByClusterAutoscaler on those that have them.";
    NODES_LEFT_OUT = reasons::NODES_LEFT_OUT, Shared,
        "Nodes have no provider ID of a server, so Bowline cannot find their ports, and these do not get the security group of the Service; or they have no address of the load balancer's family, so they are no members. All other nodes are served.",
        "Wait until the nodes are initialised: their own events, `explain node/NAME` and `doctor` say why one is not, or why it has no address.";
    NODES_ELSEWHERE = "LoadBalancerNodesElsewhere", Warning,
        "Nodes have no address in the subnet that the members are in. The load balancer may not reach them, and where Bowline manages security groups, their ports do not get the group.",
        "Where member-subnet-id names that subnet, in cloud.conf or on the Service: give the servers of the nodes a port in it, or correct it. Else set it to the subnet of the nodes.";
    NODES_SHARE_ADDRESS = "LoadBalancerNodesShareAddress", Warning,
        "Two Nodes have one address, as when the Node of a server that is gone was kept, or a server has one private address in two networks. The load balancer has one member for both.",
        "Compare the addresses of the servers, and delete the Node whose server is gone.";
    UNMONITORED = "LoadBalancerUnmonitored", Warning,
        "The Service has externalTrafficPolicy: Local, and no health monitor tells the load balancer which Nodes have endpoints of it. The share of the connections that goes to the other Nodes is lost.",
        "Set create-monitor = true in [LoadBalancer] of cloud.conf, or enable-health-monitor on the Service.";
    LEFT = "LoadBalancerLeft", Warning,
        "The Service shared a load balancer and uses another one now, because load-balancer-id was taken off it or changed. Bowline removes its listeners, pools, health monitors and tag from the one before; that one goes as a whole if no other Service uses it and it was made for one. As long as the status shows the address of the one before, that one follows the Service, and the event tells what keeps it from that.",
        "Follow the text if it names a reason. Else nothing, but that clients have to follow to the address that the Service shows now.";
}

/// What to do about a Node that is not ready, by the status of its server (Nova, "Server status"). The statuses that are not here have
/// no remedy of their own.
pub(crate) const SERVER_STATES: &[(&str, &str)] = &[
    ("BUILD", InstanceState::AT_WORK),
    ("HARD_REBOOT", InstanceState::AT_WORK),
    ("MIGRATING", InstanceState::AT_WORK),
    ("PASSWORD", InstanceState::AT_WORK),
    ("REBOOT", InstanceState::AT_WORK),
    ("REBUILD", InstanceState::AT_WORK),
    ("RESIZE", InstanceState::AT_WORK),
    ("REVERT_RESIZE", InstanceState::AT_WORK),
    (
        "PAUSED",
        "whoever owns the project has the server go on: `openstack server unpause` (if it is locked, `openstack server unlock` comes first)",
    ),
    (
        "RESCUE",
        "whoever rescues the server ends that when it is done: `openstack server unrescue`",
    ),
    (
        "SHELVED",
        "whoever owns the project brings the server back, which keeps its disk: `openstack server unshelve`. To rebuild it would lose the disk",
    ),
    (
        "SHELVED_OFFLOADED",
        "whoever owns the project brings the server back, which keeps its disk: `openstack server unshelve`. To rebuild it would lose the disk",
    ),
    (
        "SOFT_DELETED",
        "somebody deleted the server, and it can still be brought back: `openstack server restore`. Otherwise delete the Node",
    ),
    (
        "SUSPENDED",
        "whoever owns the project has the server go on: `openstack server resume` (if it is locked, `openstack server unlock` comes first)",
    ),
    (
        "UNKNOWN",
        "Nova hears nothing from the host of the server: ask the operator of the cloud to look at that host",
    ),
    (
        "VERIFY_RESIZE",
        "the server was resized, and runs: look at its kubelet. Whoever resized it says whether it stays so: `openstack server resize confirm` or `openstack server resize revert`",
    ),
];
