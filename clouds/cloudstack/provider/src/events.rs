//! Everything that the provider tells people: the reasons of its events, in one table.

use bowline_plan::EventSpec;

bowline_plan::events! {
    TABLE;
    NODES_LEFT_OUT = "NodesLeftOut", Warning,
        "Nodes are not balanced over because no virtual machine is known for them, or theirs has no NIC.",
        "Give the virtual machine the name of its node and a NIC, and see whether the API keys may see it.";
    PROXY_PROTOCOL_IGNORED = "ProxyProtocolIgnored", Warning,
        "The annotation that switches the PROXY protocol on has a value that does not.",
        "Set it to exactly `true` or `false`.";
    KEEP_IP_IGNORED = "KeepIPIgnored", Warning,
        "The annotation that keeps the address of a Service has a value that does not.",
        "Set it to exactly `true` or `false`.";
    NO_SOURCE_CIDRS = "SourceCIDRsEmpty", Warning,
        "The annotation with the source networks is there and empty. That restricts nothing.",
        "Remove it, or list the networks that may connect.";
    IGNORED_FIELDS = "IgnoredServiceFields", Warning,
        "Fields of the Service have no effect on the load balancer.",
        "Take them off the Service, or see the documentation for what takes their place.";
    UNKNOWN_ANNOTATIONS = "UnknownAnnotations", Warning,
        "Annotations look like ones of this provider and are none; they have no effect.",
        "Correct their spelling.";
    DEFAULT_DENY = "NetworkACLDeniesAll", Warning,
        "The network of the nodes uses the built-in ACL list that denies everything and takes no items, so nobody reaches the Service.",
        "Give the tier an ACL list of its own.";
    ADDRESS_KEPT = "PublicIPKept", Warning,
        "An address that this Service used is not released: others use it, or it cannot be proved that it was associated for this Service.",
        "Release it by hand if nobody needs it.";
    ADDRESS_PENDING = "PublicIPPending", Warning,
        "An address has been on its way to the Service, or back, for an unusually long time. One that was claimed for the Service is given back and acquired anew; if it is not taken back either, the Service gets another one after a minute, if it asked for none in particular, and the first one is released later.",
        "See what the cloud's asynchronous jobs for the address do; an administrator can end them.";
    ADDRESS_SOUGHT = "PublicIPSought", Warning,
        "An address was asked for, and the answer was lost, or the process was stopped before it came. For two minutes it is looked for; no other one is asked for meanwhile, and a Service that goes is not let go.",
        "None is needed. If it stays like that, see whether the API answers.";
    ADDRESSES_UNCLEAR = "PublicIPUnclear", Warning,
        "An address was asked for without knowing which one, the answer was lost, and several could be it. None is taken.",
        "Release the addresses that nobody needs by hand; the event names them.";
    LEFT_OPEN = "PortLeftOpen", Warning,
        "What lets a port in could not be deleted, or not even listed, while a load balancer was removed: a firewall rule or an item of an ACL list. After a few tries the rest is removed without it.",
        "Delete the firewall rule or the item by hand; the event names it.";
    ROUTER_CONFIG_BROKEN = "RouterConfigBroken", Warning,
        "A load balancer rule of the Service lists its source networks with commas, as the former manager leaves them. The router of the network cannot read that: no change of any load balancer in the network takes effect, though CloudStack says that it does, and after a restart of the router none works.",
        "Change the Service, as by an annotation of any name: then the rule is made anew, which interrupts its port for a moment.";
    DUPLICATE_REMOVED = "DuplicateRuleRemoved", Normal,
        "More than one load balancer rule was made for one port, as after a lost answer; the surplus ones are removed.",
        "None is needed.";
}

/// All reasons of events that the provider raises, besides those of the service loop.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    TABLE
}
