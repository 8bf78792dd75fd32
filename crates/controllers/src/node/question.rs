//! The question for new Nodes, and when an instance of a Node's name is not taken for the Node's.
//!
//! A name is weak evidence: with the credentials of another project, a server of that name is one of the other project. A Node
//! that was initialised from it would keep its provider ID for good. So Nodes that were initialised before are asked for in the
//! same question, where one listing answers all of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bowline_cloud_provider::{FoundBy, Instance, InstanceAnswer, InstanceResult, Node, Purpose, Readiness};

use super::failure::Failure;
use super::{NodeController, labels};
use crate::credential_check::{CredentialCheck, of_cloud, questions};

/// How many of the Nodes that were initialised and are Ready are asked for first. All are, if none of these is seen.
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
        // Where all Nodes name their instances, witnesses are hardly ever needed, and could cost a listing.
        let needs_witnesses = self.settings.needs_witnesses;
        let mut witnesses = match needs_witnesses && nodes.iter().any(|node| node.provider_id.is_none()) {
            true => self.first_witnesses(),
            false => Vec::new(),
        };
        let (mut answers, mut sightings) = self.ask_with(&nodes, &witnesses).await;
        if needs_witnesses
            && answers.iter().any(|answer| {
                let near = of_cloud(platform(answer), &witnesses, &sightings);
                is_weak(answer) && CredentialCheck::of(near) != CredentialCheck::Seen
            })
        {
            let all = self.witnesses();
            if all.len() > witnesses.len() && all.first().is_some_and(|node| is_ready(node)) {
                // About the new Nodes too: between two listings, the credentials may have been put right.
                (answers, sightings) = self.ask_with(&nodes, &all).await;
                witnesses = all;
            }
        }
        let is_elsewhere = |answer: &InstanceResult| speak_against(platform(answer), &witnesses, &sightings);
        let mut answers = answers.into_iter();
        let found = |node: Arc<Node>| {
            let found = match answers.next() {
                Some(answer) if is_weak(&answer) && is_elsewhere(&answer) => {
                    self.is_held.store(true, Ordering::Relaxed);
                    Err(Failure::OnlyName)
                }
                Some(Ok(InstanceAnswer::Present(instance))) => Ok(Found::Instance(instance)),
                Some(Ok(InstanceAnswer::Foreign)) => Ok(Found::Foreign),
                Some(Ok(InstanceAnswer::Absent(proof))) => Err(Failure::Absent(proof)),
                Some(Err(error)) => Err(Failure::Cloud(error)),
                None => Err(Failure::Unanswered),
            };
            (node, found)
        };
        nodes.into_iter().map(found).collect()
    }

    /// A Node went, which may have held others back: they need not wait for their next try.
    pub(super) fn let_go(&self) {
        if !self.is_held.swap(false, Ordering::Relaxed) {
            return;
        }
        for node in self.ctx.nodes.all() {
            if node.is_uninitialized() {
                self.queue.forget(&node.name);
                self.queue.add(node.name.clone());
            }
        }
    }

    /// Asks for new Nodes and witnesses in one question, so that what is told of both comes from one listing.
    async fn ask_with(
        &self,
        nodes: &[Arc<Node>],
        witnesses: &[Arc<Node>],
    ) -> (Vec<InstanceResult>, Vec<InstanceResult>) {
        let queries: Vec<_> = questions(nodes, Purpose::Metadata)
            .chain(questions(witnesses, Purpose::CredentialCheck))
            .collect();
        let mut answers = self.instances.instances(&queries).await;
        let sightings = answers.split_off(nodes.len().min(answers.len()));
        (answers, sightings)
    }

    /// Some of the [witnesses](Self::witnesses) that are Ready: all are gone through for each batch of new Nodes, so no more
    /// are looked at than it takes.
    fn first_witnesses(&self) -> Vec<Arc<Node>> {
        let nodes = self.ctx.nodes.all().into_iter();
        nodes
            .filter(|node| is_ready(node) && is_witness(node))
            .take(WITNESSES)
            .collect()
    }

    /// Nodes whose instances were seen once; those that are Ready first.
    fn witnesses(&self) -> Vec<Arc<Node>> {
        let mut nodes = self.ctx.nodes.all();
        nodes.retain(|node| is_witness(node));
        nodes.sort_by_key(|node| !is_ready(node));
        nodes
    }
}

/// Whether a Node has what a cloud says of an instance, so that its instance was seen once.
fn is_witness(node: &Node) -> bool {
    node.provider_id.is_some() && !node.is_uninitialized() && labels::are_of_a_cloud(node)
}

/// Whether an instance was found that has only the Node's name.
fn is_weak(answer: &InstanceResult) -> bool {
    matches!(answer, Ok(InstanceAnswer::Present(instance)) if instance.found_by == FoundBy::Name)
}

/// The cloud of an instance, as its provider ID has it.
fn platform(answer: &InstanceResult) -> Option<&str> {
    let Ok(InstanceAnswer::Present(instance)) = answer else {
        return None;
    };
    let (platform, _) = instance.metadata.provider_id.as_deref()?.split_once("://")?;
    Some(platform)
}

/// Whether the cloud shows the instance of none of these Nodes, and one of them at least certainly runs.
fn speak_against(cloud: Option<&str>, witnesses: &[Arc<Node>], sightings: &[InstanceResult]) -> bool {
    let ready = witnesses.iter().take_while(|node| is_ready(node)).count();
    let of_ready = CredentialCheck::of(of_cloud(cloud, &witnesses[..ready], sightings));
    let of_all = CredentialCheck::of(of_cloud(cloud, witnesses, sightings));
    matches!(of_ready, CredentialCheck::Blind { .. })
        && matches!(of_all, CredentialCheck::Blind { missing } if missing >= UNSEEN)
}

pub(super) fn is_ready(node: &Node) -> bool {
    node.readiness == Readiness::Ready
}
