//! What becomes of a block that is to go. Pure.

use bowline_phoenixnap_client::{BlockStatus, IpBlock};

use crate::load_balancer::blocks::{self, Place};
use crate::load_balancer::step::CloudStep;

/// What becomes of a marked block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is taken off its network, or given back.
    Step(CloudStep),
    Wait,
    LeaveAlone(String),
}

/// What is done next with a marked block. One whose network is not known is taken off `network`.
pub(crate) fn fate(block: &IpBlock, network: &str) -> Fate {
    let own_network = match blocks::place(block) {
        Place::Other(kind) => return Fate::LeaveAlone(format!("is attached to a resource of type {kind}")),
        Place::Network(id) => Some(id),
        Place::Nowhere | Place::SomeNetwork => None,
    };
    let (id, cidr) = (block.id.clone(), block.cidr.clone());
    let off = match &block.status {
        BlockStatus::Unassigned => None,
        BlockStatus::Creating | BlockStatus::Assigning | BlockStatus::Unassigning => return Fate::Wait,
        BlockStatus::Assigned | BlockStatus::ErrorUnassigning => Some(own_network.unwrap_or(network)),
        BlockStatus::ErrorAssigning => own_network,
        BlockStatus::Subnetted | BlockStatus::Absent | BlockStatus::Other(_) => {
            return Fate::LeaveAlone(format!("is {}", block.status));
        }
    };
    Fate::Step(match off {
        Some(network) => CloudStep::Detach {
            block: id,
            cidr,
            network: network.to_owned(),
        },
        None => CloudStep::Delete { block: id, cidr },
    })
}
