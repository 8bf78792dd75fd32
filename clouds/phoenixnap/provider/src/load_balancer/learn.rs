//! What a write's answer told, or will tell. Pure.

use bowline_cloud_provider::effects::as_shown;
use bowline_phoenixnap_client::{AssignedResource, BlockStatus};
use serde_json::json;

use crate::load_balancer::apply::Learned;
use crate::load_balancer::blocks::PREDICTED_CIDR;
use crate::load_balancer::names::DELETE;
use crate::load_balancer::observe::{MarkName, Purchase, Seen};
use crate::load_balancer::step::CloudStep;

/// Adds what an answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    match (step, learned) {
        (CloudStep::CreateTagName { name }, Learned::Name) => name_known(seen, name),
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
        (CloudStep::BuyBlock { .. }, Learned::PutOff(later)) => seen.unanswered = Some(later),
        (CloudStep::Attach { block, network, .. }, Learned::Attached) => attached(seen, block, network),
        (CloudStep::Attach { block, .. }, Learned::Block(now)) => {
            for known in seen.blocks.iter_mut().filter(|known| known.id == *block) {
                *known = (*now).clone();
            }
        }
        (_, Learned::PutOff(later)) => {
            seen.memory.own.refused = Some(later.why.clone());
            seen.busy = Some(later);
        }
        (CloudStep::Attach { .. }, Learned::Refused(_)) => {
            (seen.busy, seen.memory.own.refused) = (None, None)
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

/// Changes the observation as the write would: what its answer will tell is learned.
pub(crate) fn predict(seen: &mut Seen, step: &CloudStep) {
    let learned = match step {
        CloudStep::CreateTagName { .. } => Learned::Name,
        CloudStep::BuyBlock { new } => {
            let id = format!("new-{}", seen.memory.made_up());
            let filled_in = json!({"id": id, "cidr": PREDICTED_CIDR, "status": "unassigned"});
            Learned::Blocks(as_shown(&filled_in, new, 1).into_iter().collect())
        }
        CloudStep::Attach { .. } => Learned::Attached,
        CloudStep::Mark { .. } => Learned::Marked,
        CloudStep::Detach { .. } | CloudStep::Delete { .. } => return,
    };
    learn(seen, step, learned);
}

fn name_known(seen: &mut Seen, name: &str) {
    if let Some(missing) = &mut seen.missing_names {
        missing.retain(|missing| *missing != name);
    }
    if seen.memory.own.mark == MarkName::Missing && name == DELETE {
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
