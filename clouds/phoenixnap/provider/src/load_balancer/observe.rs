//! What the cloud says about one Service's blocks.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_phoenixnap_client::IpBlock;
use bowline_plan::Refusal;
use tokio::time::Instant;

use crate::load_balancer::observe::busy::Later;
use crate::load_balancer::step::CloudStep;

pub(crate) mod busy;
pub(crate) mod network;
pub(crate) mod reads;
pub(crate) mod releases;

/// One observation.
pub(crate) struct Observed {
    /// The Service's active blocks, in the order of [`crate::load_balancer::blocks::sort`].
    pub(crate) blocks: Vec<IpBlock>,
    /// Those of them that this process began to give back. Where the Service wants a block they are none of its own, and only here.
    pub(crate) going: BTreeSet<String>,
    /// When the blocks were listed.
    pub(crate) listed: Instant,
    /// The names of tags that have to be made known before a purchase; `None` if it was not asked.
    pub(crate) missing_names: Option<Vec<&'static str>>,
    /// Whether the claim on the Service is one of this process of which nothing can come any more.
    pub(crate) is_claim_void: bool,
    /// How long ago this process asked for a block and heard nothing of it, if it may still come.
    pub(crate) asked: Option<Duration>,
    /// The public network, where it was looked at before a purchase.
    pub(crate) network: Option<network::Shown>,
    /// Why no block is to be bought now: the network is full.
    pub(crate) full: Option<Refusal>,
    /// It is not known whether the network takes the block that was bought for another Service.
    pub(crate) unanswered: Option<Later>,
    /// The account's block that has the address in the field, where none is the Service's.
    pub(crate) stray: Option<IpBlock>,
    /// It was the Service's, which had no address when this process took it, and bears a mark since then: it was being given back.
    pub(crate) is_lost_late: bool,
    /// Why no block is attached now: something is busy.
    pub(crate) busy: Option<Later>,
}

/// What a reconcile remembers.
pub(crate) type Memory = bowline_cloud_provider::Memory<Remembered, CloudStep>;

/// What a reconcile has seen.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// What a reconcile of a Service's blocks remembers of itself.
#[derive(Default)]
pub(crate) struct Remembered {
    /// Which reconcile of this process it is, from its first look on.
    pub(crate) reconcile: u64,
    /// When it began to look: its intent is as old as that.
    pub(crate) began: Option<Instant>,
    /// How long ago that was at the last look.
    pub(crate) age: Duration,
    /// Whether the names of tags were read in it; else they were believed to be known.
    pub(crate) are_names_read: bool,
    /// How the purchase stands.
    pub(crate) purchase: Purchase,
    /// Why the block was busy at the last try that was refused: it holds until a try is not.
    pub(crate) refused: Option<String>,
    /// Whether an attachment of the block has failed.
    pub(crate) has_failed: bool,
    /// Whether the name of the tag that marks blocks is known.
    pub(crate) mark: MarkName,
    /// The blocks that were marked. A list that does not show it is behind.
    pub(crate) marked: BTreeSet<String>,
}

/// How a purchase stands in this reconcile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Purchase {
    /// None was tried.
    #[default]
    Untried,
    /// It was made. A list that does not show its block is behind.
    Made,
    /// It was refused because a tag's name is not known, though it was believed to be: the names have to be read.
    NamesForgotten,
    /// The claim ran out before it began.
    ClaimExpired,
}

/// Whether the account knows the tag that marks blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum MarkName {
    /// Most likely.
    #[default]
    Assumed,
    /// It does not.
    Missing,
    /// It was made known in this reconcile.
    Ensured,
}
