//! The question for new Nodes, and when an instance of a Node's name is not taken for the Node's.
//!
//! A name is weak evidence: with the credentials of another project, a server of that name is one of the other project. A Node
//! that was initialised from it would keep its provider ID for good. So Nodes that were initialised before are asked for in the
//! same question, where one listing answers all of it.

use std::sync::Arc;

use bowline_cloud_provider::{Instance, InstanceAnswer, InstanceResult, Node, Purpose, Readiness};

use super::{NodeController, initialize::Failure, labels};
use crate::sighting::{Sighting, questions};

/// How many of the Nodes that were initialised are asked for first. All are, if none of these is seen.
const WITNESSES: usize = 10;
/// So many must not be seen, and one of them must be Ready. One alone may be Ready for most of a minute after its machine has
/// gone, as where the only Node of a cluster is replaced.
const UNSEEN: usize = 2;

/// What a new Node is initialised from.
#[derive(Debug)]
pub(super) enum Found {
    /// Its instance.
    Instance(Box<Instance>),
    /// It belongs to another cloud.
    Foreign,
}

impl NodeController {
    /// Asks for the instances of new Nodes, in one question.
    pub(super) async fn ask(&self, nodes: Vec<Arc<Node>>) -> Vec<(Arc<Node>, Result<Found, Failure>)> {
        let witnesses = match self.settings.needs_witnesses && nodes.iter().any(|node| goes_by_name(node)) {
            true => self.witnesses(),
            false => Vec::new(),
        };
        let (first, others) = witnesses.split_at(witnesses.len().min(WITNESSES));
        let queries: Vec<_> = questions(&nodes, Purpose::Metadata)
            .chain(questions(first, Purpose::Sighting))
            .collect();
        let mut answers = self.instances.instances(&queries).await;
        let mut sightings = answers.split_off(nodes.len().min(answers.len()));
        if !others.is_empty() && Sighting::of(&sightings) != Sighting::Seen {
            let queries: Vec<_> = questions(others, Purpose::Sighting).collect();
            sightings.extend(self.instances.instances(&queries).await);
        }
        let unseen = match Sighting::of(&sightings) {
            Sighting::Blind { missing } if missing >= UNSEEN => Some(missing),
            _ => None,
        };
        let mut answers = answers.into_iter();
        let found = |node: Arc<Node>| {
            let found = found(&node, answers.next(), unseen);
            (node, found)
        };
        nodes.into_iter().map(found).collect()
    }

    /// Nodes whose instances were seen once: they have what a cloud says of an instance. None, if of none the instance
    /// certainly runs.
    fn witnesses(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.ctx.nodes.all();
        nodes.retain(|node| {
            node.provider_id.is_some() && !node.is_uninitialized() && labels::are_of_a_cloud(node)
        });
        let is_ready = |node: &Arc<Node>| node.readiness == Readiness::Ready;
        if !nodes.iter().any(is_ready) {
            nodes.clear();
        }
        // Those first whose instances are there if the credentials are right.
        nodes.sort_by_key(|node| !is_ready(node));
        nodes
    }
}

fn goes_by_name(node: &Node) -> bool {
    node.provider_id.is_none()
}

/// What follows from the answer about a Node. `unseen`: so many Nodes were initialised, and the cloud shows none of their instances.
fn found(node: &Node, answer: Option<InstanceResult>, unseen: Option<usize>) -> Result<Found, Failure> {
    match answer {
        Some(Ok(InstanceAnswer::Present(instance))) => match unseen {
            Some(others) if goes_by_name(node) => Err(Failure::OnlyName { others }),
            _ => Ok(Found::Instance(instance)),
        },
        Some(Ok(InstanceAnswer::Foreign)) => Ok(Found::Foreign),
        Some(Ok(InstanceAnswer::Absent(proof))) => Err(Failure::Absent(proof)),
        Some(Err(error)) => Err(Failure::Cloud(error)),
        None => Err(Failure::Unanswered),
    }
}
