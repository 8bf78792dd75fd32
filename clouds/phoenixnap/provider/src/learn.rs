//! What a write's answer told, or will tell. Pure.

use bowline_phoenixnap_client::{AssignedResource, BlockStatus, IpBlock};

use crate::apply::Learned;
use crate::observe::{MarkName, Purchase, Seen, Unattached};
use crate::step::CloudStep;

/// Adds what an answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    match (step, learned) {
        (CloudStep::CreateTagName { name, .. }, Learned::Name) => name_known(seen, name),
        (_, Learned::Blocks(blocks)) => {
            seen.blocks = blocks;
            seen.memory.own.purchase = Purchase::Made;
        }
        (_, Learned::NotBought(purchase)) => {
            if purchase == Purchase::NamesForgotten {
                seen.missing_names = None;
            }
            seen.memory.own.purchase = purchase;
        }
        (CloudStep::Attach { block, network, .. }, Learned::Attached) => attached(seen, block, network),
        (CloudStep::Attach { block, .. }, Learned::Block(now)) => {
            for known in seen.blocks.iter_mut().filter(|known| known.id == *block) {
                *known = (*now).clone();
            }
        }
        (_, Learned::NotAttached(why)) => {
            let busy = match why {
                Unattached::Busy(reason) => Some(reason),
                Unattached::Refused(_) => None,
            };
            seen.memory.own.refused.clone_from(&busy);
            seen.busy = busy;
        }
        (CloudStep::Mark { block, .. }, Learned::Marked) => {
            seen.blocks.retain(|known| known.id != *block);
            seen.memory.own.marked.insert(block.clone());
            seen.memory.new_wait();
        }
        (_, Learned::NoMarkName) => seen.memory.own.mark = MarkName::Missing,
        _ => {}
    }
}

/// Changes the observation as the write would.
pub(crate) fn predict(seen: &mut Seen, step: &CloudStep) {
    match step {
        CloudStep::CreateTagName { name, .. } => name_known(seen, name),
        CloudStep::BuyBlock { new } => {
            seen.memory.own.purchase = Purchase::Made;
            seen.blocks = vec![IpBlock {
                id: format!("new-{}", seen.memory.made_up()),
                // Whatever it will be; documentation addresses cannot be mistaken for it.
                cidr: "192.0.2.0/29".to_owned(),
                location: Some(new.location.clone()),
                status: BlockStatus::Unassigned,
                assigned_resource_id: None,
                assigned_resource_type: None,
                tags: new.tags.clone(),
                created_on: None,
            }];
        }
        CloudStep::Attach { block, network, .. } => attached(seen, block, network),
        CloudStep::Mark { block, .. } => seen.blocks.retain(|known| known.id != *block),
        CloudStep::Detach { .. } | CloudStep::Delete { .. } => {}
    }
}

fn name_known(seen: &mut Seen, name: &str) {
    if let Some(missing) = &mut seen.missing_names {
        missing.retain(|missing| *missing != name);
    }
    if seen.memory.own.mark == MarkName::Missing && name == crate::tags::DELETE {
        seen.memory.own.mark = MarkName::Ensured;
    }
}

fn attached(seen: &mut Seen, block: &str, network: &str) {
    (seen.busy, seen.memory.own.refused) = (None, None);
    for known in seen.blocks.iter_mut().filter(|known| known.id == block) {
        known.status = BlockStatus::Assigning;
        known.assigned_resource_id = Some(network.to_owned());
        known.assigned_resource_type = Some(AssignedResource::PublicNetwork);
    }
}
