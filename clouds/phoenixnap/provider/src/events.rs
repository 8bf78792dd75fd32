//! Everything that the provider tells people: the reasons of its events, and those of the sweeper's lines in the log. It
//! works for no Service, so it has no object to raise an event on.

use bowline_plan::EventSpec;

bowline_plan::events! {
    TABLE;
    IPV4_ONLY = "IPv4Only", Normal,
        "The Service asks for both IP families and gets an IPv4 address only.",
        "None is needed.";
    BLOCK_PENDING = "IPBlockPending", Normal,
        "The Service's IP block cannot be attached to the public network yet: the API refused it because one of them is busy, or the block is still being made or taken off another network. It is tried again every 10 seconds.",
        "None is needed; if it stays, `IPBlockNotAttached` follows.";
    BLOCK_NOT_ATTACHED = "IPBlockNotAttached", Warning,
        "The Service's IP block has not become attachable to the public network for minutes.",
        "Look at the block and the network in the portal; the event names both.";
    PURCHASE_PENDING = "IPBlockPurchasePending", Normal,
        "Another process, or this one before, has begun to buy a block for the Service and its outcome is not known. No other one is bought for two minutes, or for ten seconds if it was this process and the API said that it had failed.",
        "None is needed; if it repeats, see whether two managers run without leader election.";
}

bowline_plan::events! {
    SWEEPER_TABLE;
    BLOCK_LEFT_ALONE = "IPBlockLeftAlone", Warning,
        "A block that is marked for deletion is attached to something that is no public network, or in a state that cannot be told, and is left alone.",
        "Take the block off by hand, or take its `delete` tag away.";
    SWEEP_FAILED = "IPBlockSweepFailed", Warning,
        "A block that is marked for deletion could not be taken off its network or given back; it is tried again.",
        "See the text; a server of the network may still use an address of the block.";
    ORPHAN = "IPBlockOrphaned", Warning,
        "A block of this cluster bears the tags of a Service that does not exist or is no load balancer any more, as after a finalizer was removed by hand, or of none. It is billed and never deleted by itself.",
        "Mark it with the tag `delete` if nobody needs it.";
    ADDRESS_IN_USE = "ServiceAddressInUse", Warning,
        "A server in the public network uses the address of a Service.",
        "Give the server another address.";
}

/// All reasons of events that the provider raises, besides those of the service loop.
#[must_use]
pub fn event_table() -> &'static [EventSpec] {
    TABLE
}

/// All reasons that the sweeper's lines in the log have.
#[must_use]
pub fn sweeper_table() -> &'static [EventSpec] {
    SWEEPER_TABLE
}
