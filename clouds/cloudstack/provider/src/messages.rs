//! Everything that the provider tells people: the reasons of its events, in one table.

use bowline_cloud_provider::{InstanceState, reasons};

bowline_plan::events! {
    pub EVENTS;
    NODES_LEFT_OUT = reasons::NODES_LEFT_OUT, Shared,
        "Nodes did not become members, because no virtual machine is known for them, or their virtual machine has no NIC, or is in another network than the one that the rules lead to.",
        "Give the virtual machine the name of its node and a NIC in that network. Check that the API keys may see it.";
    NO_SOURCE_CIDRS = "SourceCIDRsEmpty", Warning,
        "The annotation with the source networks is empty. An empty one restricts nothing, so everybody may connect.",
        "Remove the annotation, or list the networks that may connect.";
    IGNORED_FIELDS = reasons::IGNORED_FIELDS, Shared,
        "Fields of the Service have no effect on the load balancer.",
        "Remove the fields from the Service. The manual of Apache CloudStack says what can be used in their place.";
    IGNORED_ANNOTATIONS = reasons::IGNORED_ANNOTATIONS, Shared,
        "The Service has annotations with the prefix of this provider which the provider does not know, or which should be `true` or `false` and are neither. They have no effect.",
        "Correct the keys and values that the event names.";
    DEFAULT_DENY = "NetworkACLDeniesAll", Warning,
        "The network of the nodes uses the built-in ACL list `default_deny`. It denies everything, and no item can be added, so nobody reaches the Service.",
        "Give the tier an ACL list of its own.";
    ITEM_KEPT = "NetworkACLItemKept", Warning,
        "An item of the ACL list lets in more than the Service asks for. It stays, because a rule, a port forwarding or a static NAT of somebody else may need it. The restriction of the Service has no effect as long as the item is there.",
        "If nobody else needs the item, delete it by hand.";
    ONE_INSTANCE = "NodesShareInstance", Warning,
        "Two Nodes have the same virtual machine. It becomes a member once.",
        "Delete the Node that is left over.";
    ADDRESS_KEPT = reasons::ADDRESS_KEPT, Shared,
        "An address that this Service used is not released. Either others use it, or nothing proves that it was acquired for this Service.",
        "If nobody needs the address, release it by hand.";
    ADDRESS_GONE = reasons::ADDRESS_GONE, Shared,
        "The address that the Service shows was released in CloudStack, or given to another account. Bowline acquires another one.",
        "Have DNS and firewalls follow to the address that the Service shows now. Look in CloudStack's events who released the old one.";
    ADDRESS_PENDING = "PublicIPPending", Warning,
        "CloudStack has been acquiring or releasing an address of the Service for an unusually long time. An address that was being acquired is released and acquired again. If the release does not end either, and the Service asked for no particular address, it gets another one after a minute, and Bowline releases the first one later.",
        "Look at CloudStack's asynchronous jobs for the address. An administrator can end them.";
    ADDRESS_SOUGHT = "PublicIPSought", Warning,
        "Bowline asked for an address, and the answer was lost, or the process was stopped before the answer came. For two minutes Bowline looks for that address. Meanwhile it asks for no other one, and a Service that is being deleted keeps its finalizer.",
        "Wait two minutes. If the event stays, look whether the API answers.";
    ADDRESSES_UNCLEAR = "PublicIPUnclear", Warning,
        "Bowline asked for any free address, the answer was lost, and several addresses could be the one. Bowline uses none of them.",
        "The event names the addresses. Release by hand those that nobody needs.";
    LEFT_OPEN = "PortLeftOpen", Warning,
        "A firewall rule or an item of an ACL list could not be deleted, or the API keys may not list them, while a load balancer was being deleted. After a few tries Bowline deletes the rest without it. The port stays open.",
        "The event names the firewall rule or the item. Delete it by hand.";
    ROUTER_CONFIG_BROKEN = "RouterConfigBroken", Warning,
        "A load balancer rule of the Service lists its source networks with commas, as the Go manager leaves them. The router of the network cannot read such a list. No change of any load balancer in the network takes effect, although CloudStack reports success. After a restart of the router no load balancer works.",
        "Change the Service, for example by an annotation of any name. Bowline then replaces the rule, which interrupts its port for a moment.";
    DUPLICATE_REMOVED = "DuplicateRuleRemoved", Normal,
        "There was more than one load balancer rule for one port, as can happen after a lost answer. Bowline deletes the surplus ones.",
        "Nothing to do.";
}

/// What to do about a Node that is not ready, by the state of its virtual machine (`VirtualMachine.State` of CloudStack). The states that
/// are not here have no remedy of their own.
pub(crate) const MACHINE_STATES: &[(&str, &str)] = &[
    ("Migrating", InstanceState::AT_WORK),
    ("Starting", InstanceState::AT_WORK),
    ("Stopping", InstanceState::AT_WORK),
    (
        "Destroyed",
        "somebody deleted the virtual machine, and it can be brought back until it is expunged (recoverVirtualMachine, then start it). Otherwise the Node goes when it is expunged",
    ),
    (
        "Unknown",
        "CloudStack hears nothing from the host of the virtual machine: ask whoever runs CloudStack to look at that host",
    ),
];
