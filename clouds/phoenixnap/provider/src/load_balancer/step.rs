//! The writes to the cloud, as data.

use bowline_phoenixnap_client::{BlockTag, IpBlock, NewIpBlock};
use bowline_plan::{Impact, Lane, Step};

use crate::load_balancer::observe::busy::Move;
use crate::load_balancer::{evidence, names};

/// One write to the cloud.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CloudStep {
    /// Makes the name of a tag known to the account.
    CreateTagName {
        /// The name.
        name: &'static str,
    },
    /// Buys a block.
    BuyBlock {
        /// What is bought.
        new: NewIpBlock,
    },
    /// Attaches a block to the public network.
    Attach {
        /// The block.
        block: String,
        /// Its addresses.
        cidr: String,
        /// The network.
        network: String,
    },
    /// Marks a block for deletion.
    Mark {
        /// The block.
        block: String,
        /// Its addresses.
        cidr: String,
        /// Its tags from then on.
        tags: Vec<BlockTag>,
    },
    /// Takes a marked block off its network.
    Detach {
        /// The block.
        block: String,
        /// Its addresses.
        cidr: String,
        /// The network.
        network: String,
    },
    /// Gives a marked block back.
    Delete {
        /// The block.
        block: String,
        /// Its addresses.
        cidr: String,
    },
}

impl CloudStep {
    /// Attaches a block to a network.
    pub(crate) fn attach(block: &IpBlock, network: &str) -> Self {
        Self::Attach {
            block: block.id.clone(),
            cidr: block.cidr.clone(),
            network: network.to_owned(),
        }
    }

    /// Marks a block.
    pub(crate) fn mark(IpBlock { id, cidr, tags, .. }: &IpBlock) -> Self {
        Self::Mark {
            block: id.clone(),
            cidr: cidr.clone(),
            tags: evidence::marked(tags),
        }
    }

    /// The network that a block is moved to or off.
    pub(crate) fn network(&self) -> Option<&str> {
        match self {
            Self::Attach { network, .. } | Self::Detach { network, .. } => Some(network),
            _ => None,
        }
    }

    /// Which way a block goes.
    pub(crate) fn moves(&self) -> Option<Move> {
        match self {
            Self::Attach { .. } => Some(Move::On),
            Self::Detach { .. } => Some(Move::Off),
            _ => None,
        }
    }

    /// The block that is there already.
    pub(crate) fn block(&self) -> Option<&str> {
        match self {
            Self::CreateTagName { .. } | Self::BuyBlock { .. } => None,
            Self::Attach { block, .. }
            | Self::Mark { block, .. }
            | Self::Detach { block, .. }
            | Self::Delete { block, .. } => Some(block),
        }
    }
}

/// The label of a step that marks the block with these addresses.
pub(crate) fn mark_label(cidr: &str) -> String {
    format!("mark-ip-block({cidr}, {})", names::DELETE)
}

impl Step for CloudStep {
    fn label(&self) -> String {
        match self {
            Self::CreateTagName { name } => format!("create-tag-name({name})"),
            Self::BuyBlock { new } => format!("buy-ip-block({} in {})", new.cidr_block_size, new.location),
            Self::Attach { cidr, network, .. } => format!("attach-ip-block({cidr} to {network})"),
            Self::Mark { cidr, .. } => mark_label(cidr),
            Self::Detach { cidr, network, .. } => format!("detach-ip-block({cidr} from {network})"),
            Self::Delete { cidr, .. } => format!("delete-ip-block({cidr})"),
        }
    }

    fn object(&self) -> String {
        match self {
            Self::CreateTagName { name } => format!("tag {name}"),
            _ => self
                .block()
                .map_or_else(|| "ip block".to_owned(), |id| format!("ip block {id}")),
        }
    }

    fn impact(&self) -> Impact {
        match self {
            // The sweeper comes soon after.
            Self::Mark { .. } => Impact::Major,
            // What is marked serves nobody any more.
            _ => Impact::None,
        }
    }

    fn lanes(&self) -> Vec<Lane> {
        match self {
            // Services that are created together want the same names: all but one find them made.
            Self::CreateTagName { .. } => vec![Lane::courtesy("phoenixnap/tags/account")],
            // The API refuses what comes while it is at work on the network.
            Self::Attach { network, .. } | Self::Detach { network, .. } => {
                vec![Lane::courtesy(format!("phoenixnap/public-network/{network}"))]
            }
            Self::BuyBlock { .. } => Vec::new(),
            Self::Mark { block, .. } | Self::Delete { block, .. } => {
                vec![Lane::new(format!("phoenixnap/ip-block/{block}"))]
            }
        }
    }

    fn may_be_left(&self) -> bool {
        matches!(self, Self::BuyBlock { .. } | Self::Attach { .. })
    }
}
