//! What the cloud says about one Service's blocks.

use std::sync::Arc;
use std::time::Duration;

use bowline_phoenixnap_client::{IpBlock, PublicNetwork};
use tokio::time::Instant;

pub(crate) mod network;
pub(crate) mod reads;

/// One observation.
#[derive(Clone)]
pub(crate) struct Observed {
    /// The Service's active blocks, in the order of [`crate::blocks::sort`].
    pub(crate) blocks: Vec<IpBlock>,
    /// Which reconcile of this process it belongs to.
    pub(crate) reconcile: u64,
    /// When the blocks were listed.
    pub(crate) listed: Instant,
    /// When the reconcile began to look: its intent is as old as that.
    pub(crate) began: Instant,
    /// How long ago that was at the last look.
    pub(crate) waited: Duration,
    /// The names of tags that have to be made known before a purchase; none if it was not asked.
    pub(crate) missing_names: Option<Vec<&'static str>>,
    /// Whether they were read in this reconcile; else they were believed to be known.
    pub(crate) are_names_read: bool,
    /// Whether the claim on the Service is one of this process under which nothing was, and nothing will be, bought.
    pub(crate) is_claim_void: bool,
    /// The public network, before a purchase, if it can be read.
    pub(crate) network: Option<Arc<PublicNetwork>>,
    /// How the purchase stands.
    pub(crate) purchase: Purchase,
    /// Why the block could not be attached at the last try.
    pub(crate) unattached: Option<Unattached>,
    /// Why it was busy at the last try of this reconcile that was refused: it holds until a try is not.
    pub(crate) refused: Option<String>,
    /// Whether the name of the tag that marks blocks is known.
    pub(crate) mark: MarkName,
    /// Numbers for made-up IDs.
    pub(crate) made_up: u32,
}

/// How a purchase stands in this reconcile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purchase {
    /// None was tried.
    Untried,
    /// It was made. A list that does not show its block is behind.
    Made,
    /// It was refused because a tag's name is not known, though it was believed to be: the names have to be read.
    NamesForgotten,
    /// It was refused, and nothing was bought.
    Refused(String),
    /// The claim ran out before it began.
    ClaimExpired,
}

/// Why a block could not be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unattached {
    /// The network or the block is busy.
    Busy(String),
    /// The network takes no more.
    Full(String),
}

/// Whether the account knows the tag that marks blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkName {
    /// Most likely.
    Assumed,
    /// It does not.
    Missing,
    /// It was made known in this reconcile.
    Ensured,
}
