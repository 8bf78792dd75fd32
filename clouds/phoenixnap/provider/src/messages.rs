//! Everything that the provider tells people: the reasons of its events, and those of the sweeper's lines in the log. It
//! works for no Service, so it has no object to raise an event on.

use bowline_cloud_provider::{InstanceState, reasons};

bowline_plan::events! {
    pub EVENTS;
    IGNORED_ANNOTATIONS = reasons::IGNORED_ANNOTATIONS, Shared,
        "The Service has annotations with the prefix of this provider which the provider does not know, or a location other than that of the configuration, which counts. They have no effect.",
        "Correct the keys and values that the event names, or remove them.";
    IPV4_ONLY = "IPv4Only", Normal,
        "The Service asks for both IP families and gets an IPv4 address only.",
        "Nothing to do.";
    BLOCK_PENDING = "IPBlockPending", Normal,
        "The Service's IP block cannot be attached to the public network yet. Either the API refused because block or network is busy, or the block is still being created or detached from another network. Bowline tries again every 10 seconds.",
        "Nothing to do. If it takes minutes, the event `IPBlockNotAttached` follows.";
    BLOCK_NOT_ATTACHED = "IPBlockNotAttached", Warning,
        "For minutes now the Service's IP block could not be attached to the public network, or its attachment failed more than once.",
        "The event names the block and the network. Look at both in the portal.";
    NETWORK_UNKNOWN = "PublicNetworkUnknown", Warning,
        "Before a purchase Bowline reads how many blocks the public network has, and that fails. No block is bought meanwhile, for it might not find a place.",
        "Follow the text. Bowline reads the network again every 10 seconds, and every five minutes if it takes longer.";
    RELEASED = "IPBlockReleased", Warning,
        "A block on whose address a Service lives has the tag `delete`, so the block is taken off its network and given back. The Service keeps the address, which leads nowhere then.",
        "If that is a mistake, remove the tag from the block at once. Once the block is gone, clear `spec.loadBalancerIP` of the Service, and another block is bought.";
    FALLEN_OFF = "IPBlockFallenOff", Warning,
        "A block on whose address a Service lives is not attached to the public network any more, or could not be attached, and attaching it again is refused. Its address leads nowhere meanwhile. Bowline tries again at each sweep, or less and less often, up to every half an hour, where the refusal will not end by itself.",
        "Follow the text. Look at the block and the network in the portal: a block whose attachment failed may have to be taken off by hand.";
    TAGS_CHANGED = "IPBlockTagsChanged", Warning,
        "No block of the cluster has the address of a Service, or the one that has it does not have the Service's tags: somebody took tags off the block or changed them, or deleted the block.",
        "The event `SyncLoadBalancerFailed` that follows says what to do.";
    SURPLUS = "IPBlockSurplus", Warning,
        "A Service has more than one active block. All of them are billed, and Bowline changes none of them.",
        "Put the tag `delete` on all but one. The address of the one that stays is that in `spec.loadBalancerIP`.";
    MARK_UNCLEAR = "IPBlockMarkUnclear", Warning,
        "The Service's block, or another one of the cluster, has the tag `delete` with a value that is neither empty nor `true`, such as `false`. Bowline does not give the block back; the Go manager would.",
        "Give the tag the value `true` if the block is to go, else remove the tag.";
    PURCHASE_PENDING = "IPBlockPurchasePending", Normal,
        "A purchase of a block for the Service was begun, by this process or another one, and its outcome is not known. Bowline buys no other block for two minutes.",
        "Wait. If the event comes back, look whether two managers run without leader election.";
}

bowline_plan::events! {
    pub SWEEPER_EVENTS;
    BLOCK_LEFT_ALONE = "IPBlockLeftAlone", Warning,
        "A block that is marked for deletion is attached to something other than a public network, or its state is not known. Bowline leaves the block alone.",
        "Detach the block by hand, or remove its tag `delete`.";
    SWEEP_FAILED = "IPBlockSweepFailed", Warning,
        "A block that is marked for deletion could not be detached from its network, or could not be deleted. Bowline tries again.",
        "Follow the text. Often a server of the network still uses an address of the block.";
    ORPHAN = "IPBlockOrphaned", Warning,
        "A block of this cluster has the tags of no Service, or of a Service that does not exist or has another type than LoadBalancer by now, as after somebody removed a finalizer by hand. The block is billed. Bowline never deletes it by itself.",
        "If nobody needs the block, put the tag `delete` on it.";
    ADDRESS_IN_USE = "ServiceAddressInUse", Warning,
        "A server in the public network uses the address of a Service.",
        "Give the server another address.";
}

/// What to do about a Node that is not ready, by the status of its server (BMC API, `status` of a server). The statuses that are not here
/// have no remedy of their own.
pub(crate) const SERVER_STATES: &[(&str, &str)] = &[
    ("creating", InstanceState::AT_WORK),
    ("rebooting", InstanceState::AT_WORK),
    ("reinstating", InstanceState::AT_WORK),
    (
        "resetting",
        "somebody reset the server: phoenixNAP installs its system anew, and what was on its disks is gone. When that is done, whoever runs the cluster joins it again; until then leave the Node as it is",
    ),
];
