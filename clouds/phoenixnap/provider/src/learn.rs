//! What a write's answer told, or will tell. Pure.

use bowline_phoenixnap_client::{AssignedResource, BlockStatus, IpBlock};

use crate::apply::Learned;
use crate::observe::{MarkName, Observed, Purchase, Unattached};
use crate::step::CloudStep;

/// Adds what an answer told.
pub(crate) fn learn(observed: &mut Observed, step: &CloudStep, learned: Learned) {
    match (step, learned) {
        (CloudStep::CreateTagName { name, .. }, Learned::Name) => name_known(observed, name),
        (_, Learned::Blocks(blocks)) => {
            observed.blocks = blocks;
            observed.purchase = Purchase::Made;
        }
        (_, Learned::NotBought(purchase)) => {
            if purchase == Purchase::NamesForgotten {
                observed.missing_names = None;
            }
            observed.purchase = purchase;
        }
        (CloudStep::Attach { block, network, .. }, Learned::Attached) => attached(observed, block, network),
        (CloudStep::Attach { block, .. }, Learned::Block(now)) => {
            for known in observed.blocks.iter_mut().filter(|known| known.id == *block) {
                *known = (*now).clone();
            }
        }
        (_, Learned::NotAttached(why)) => {
            observed.refused = match &why {
                Unattached::Busy(reason) => Some(reason.clone()),
                Unattached::Full(_) => None,
            };
            observed.unattached = Some(why);
        }
        (CloudStep::Mark { block, .. }, Learned::Marked) => {
            observed.blocks.retain(|known| known.id != *block)
        }
        (_, Learned::NoMarkName) => observed.mark = MarkName::Missing,
        _ => {}
    }
}

/// Changes the observation as the write would.
pub(crate) fn predict(observed: &mut Observed, step: &CloudStep) {
    match step {
        CloudStep::CreateTagName { name, .. } => name_known(observed, name),
        CloudStep::BuyBlock { new } => {
            observed.made_up += 1;
            observed.purchase = Purchase::Made;
            observed.blocks = vec![IpBlock {
                id: format!("new-{}", observed.made_up),
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
        CloudStep::Attach { block, network, .. } => attached(observed, block, network),
        CloudStep::Mark { block, .. } => observed.blocks.retain(|known| known.id != *block),
        CloudStep::Detach { .. } | CloudStep::Delete { .. } => {}
    }
}

fn name_known(observed: &mut Observed, name: &str) {
    if let Some(missing) = &mut observed.missing_names {
        missing.retain(|missing| *missing != name);
    }
    if observed.mark == MarkName::Missing && name == crate::tags::DELETE {
        observed.mark = MarkName::Ensured;
    }
}

fn attached(observed: &mut Observed, block: &str, network: &str) {
    (observed.unattached, observed.refused) = (None, None);
    for known in observed.blocks.iter_mut().filter(|known| known.id == block) {
        known.status = BlockStatus::Assigning;
        known.assigned_resource_id = Some(network.to_owned());
        known.assigned_resource_type = Some(AssignedResource::PublicNetwork);
    }
}
