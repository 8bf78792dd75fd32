//! Reads who may become a member.

use std::sync::Arc;

use bowline_cloud_provider::{Node, Selector, ServiceFacts};
use bowline_plan::Note;

use crate::load_balancer::annotations::{self as keys, Reader};
use crate::load_balancer::intent::Membership;
use crate::messages::NO_VALID_NODES;

/// `None` if what decides it cannot be read.
pub(super) fn membership(
    facts: &ServiceFacts,
    reader: &mut Reader<'_>,
    notes: &mut Vec<Note>,
) -> Option<Membership> {
    let nodes = nodes(facts, reader, notes);
    let allowed_subnets = reader.list(&keys::LISTENER_ALLOWED_SUBNETS);
    Some(Membership {
        nodes: nodes?,
        selected_by: Some(reader.text(&keys::NODE_SELECTOR))
            .filter(|it| !it.is_empty())
            .map(str::to_owned),
        allowed_subnets: allowed_subnets?,
    })
}

fn nodes(facts: &ServiceFacts, reader: &mut Reader<'_>, notes: &mut Vec<Note>) -> Option<Vec<Arc<Node>>> {
    let text = reader.text(&keys::NODE_SELECTOR);
    let selector = match Selector::parse(text) {
        Ok(selector) => selector,
        Err(error) => {
            reader.problem_of(
                &keys::NODE_SELECTOR,
                &format!("unable to parse selector: {error} ({})", keys::NODE_SELECTOR.key),
            );
            return None;
        }
    };
    let nodes: Vec<Arc<Node>> = facts
        .nodes
        .iter()
        .filter(|node| selector.matches(&node.labels))
        .cloned()
        .collect();
    if nodes.is_empty() {
        notes.push(NO_VALID_NODES.note(if selector.is_empty() {
            "No valid nodes for service found: no node of the cluster may become a member".to_owned()
        } else {
            format!(
                "No valid nodes for service found, double-check node-selector annotation: {}: {text}",
                keys::NODE_SELECTOR.key
            )
        }));
    }
    Some(nodes)
}
