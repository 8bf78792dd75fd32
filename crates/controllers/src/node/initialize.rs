//! The writes of an initialisation: the addresses first, then everything else with the removal of the taint, so that
//! nothing is scheduled to a Node that does not show its addresses yet. What the API server refuses is left out and told of, but
//! for the provider ID and the removal of the taint: without them a Node is not initialised.

use std::sync::Arc;

use bowline_cloud_provider::{Instance, InstanceMetadata, Node};
use bowline_kube_io::{KubeError, NodePatch, Written};
use futures::stream::{self, StreamExt as _};

use super::failure::Failure;
use super::intent;
use super::question::Found;
use super::refused::{Refused, is_refusal};
use super::{AT_ONCE, NAME, NodeController, addresses};
use crate::queue::RetryAfter;
use crate::{conflict, events};

/// What came of an initialisation.
#[derive(Debug)]
pub(super) enum Initialized {
    /// The Node is initialised now.
    Done,
    /// The Node is gone, is another one, or was initialised by somebody else.
    NotNeeded,
}

impl NodeController {
    /// Asks for the instances of new Nodes, then initialises each whose instance is there.
    pub(super) async fn initialize_all(&self, nodes: Vec<Arc<Node>>) {
        if nodes.is_empty() {
            return;
        }
        let mut failed = Vec::new();
        let mut present = Vec::with_capacity(nodes.len());
        for (node, found) in self.ask(nodes).await {
            match found {
                Ok(Found::Instance(instance)) => present.push((node, instance)),
                Ok(Found::Foreign) => {
                    let provider_id = node.provider_id.as_deref().unwrap_or_default();
                    let reason = events::FOREIGN_PROVIDER_ID.reason;
                    if self.remembered.is_news(&node, reason, Some(provider_id)) {
                        self.tell_foreign(&node);
                    }
                    self.queue.finish(&node.name);
                }
                Err(failure) => failed.push((node, failure)),
            }
        }
        // Nodes that failed on one answer are tried again together, so that they share the next question, too.
        let mut again = Vec::new();
        for (node, failure) in failed {
            self.tell_failure(&node, &failure);
            match failure.retry_after() {
                RetryAfter::Nothing => again.push(node.name.clone()),
                retry_after => self.give_back(&node, retry_after),
            }
        }
        self.queue.retry_together(again.iter().cloned());
        for key in &again {
            self.queue.done(key);
        }
        self.wait_for_their_turn(present.iter().map(|(node, _)| node));
        let initialize = |(node, instance): (Arc<Node>, Box<Instance>)| async move {
            let node = &node;
            match self.initialize(node, &instance.metadata).await {
                Ok(Initialized::Done) => self.tell_other_id(node, &instance.metadata),
                Ok(Initialized::NotNeeded) => {}
                Err(failure) => {
                    self.tell_failure(node, &failure);
                    return self.give_back(node, failure.retry_after());
                }
            }
            self.queue.finish(&node.name);
        };
        stream::iter(present)
            .for_each_concurrent(AT_ONCE, initialize)
            .await;
    }

    /// Says again which Nodes wait for another cloud, without a question to this one.
    pub(super) fn keep_telling_foreign(&self) {
        let waiting = self
            .ctx
            .nodes
            .all()
            .into_iter()
            .filter(|node| node.is_uninitialized());
        let reason = events::FOREIGN_PROVIDER_ID.reason;
        waiting
            .filter(|node| self.remembered.again(node, reason))
            .for_each(|node| self.tell_foreign(&node));
    }

    fn tell_foreign(&self, node: &Node) {
        // Where managers share a cluster, another one's Node is nothing to tell.
        if self.settings.ownership.is_some() {
            return;
        }
        let text = format!(
            "The provider ID {:?} is none of this cloud, so the node is not initialized here and keeps its uninitialized taint until the manager of its cloud takes the taint off",
            node.provider_id.as_deref().unwrap_or_default()
        );
        self.warn(node, &events::FOREIGN_PROVIDER_ID, text);
    }

    /// Writes what the instance's metadata says to a Node, and takes its taint away last.
    ///
    /// # Repeatability
    ///
    /// Stopped between the two writes, the Node keeps the taint; the next try finds the addresses written.
    pub(super) async fn initialize(
        &self,
        asked: &Node,
        metadata: &InstanceMetadata,
    ) -> Result<Initialized, Failure> {
        // The cache may have moved on while the cloud was asked.
        let Some(mut node) = self.ctx.nodes.get(&asked.name) else {
            return Ok(Initialized::NotNeeded);
        };
        let mut is_sent = false;
        for attempt in 1.. {
            // Where writes hang, each try waits for its turn behind those of other Nodes.
            self.queue.touch(&asked.name);
            if node.uid != asked.uid {
                return Ok(Initialized::NotNeeded);
            }
            if !node.is_uninitialized() {
                if is_sent {
                    break; // only the answer was lost
                }
                return Ok(Initialized::NotNeeded);
            }
            match self.write(&node, metadata).await {
                Ok(()) => break,
                Err(Failure::Write(_, KubeError::NotFound(_))) => return Ok(Initialized::NotNeeded),
                Err(Failure::Write(_, error)) if attempt < conflict::TRIES && is_worth_a_look(&error) => {
                    is_sent |= !matches!(error, KubeError::Conflict(_));
                    conflict::pause(&self.ctx.jitter).await;
                    node = match self.ctx.kube.node(&asked.name).await {
                        Ok(node) => Arc::new(node),
                        Err(KubeError::NotFound(_)) => return Ok(Initialized::NotNeeded),
                        Err(error) => return Err(Failure::Write("the taints", error)),
                    };
                }
                Err(failure) => return Err(failure),
            }
        }
        self.ctx.event(asked, events::SYNCED.verbatim());
        self.ctx
            .metrics
            .initial_node_sync_delay_seconds
            .observe(self.age_seconds(asked));
        Ok(Initialized::Done)
    }

    /// The two writes.
    async fn write(&self, node: &Node, metadata: &InstanceMetadata) -> Result<(), Failure> {
        let mut update = intent::initialize(node, metadata)?;
        let mut refused = Refused::default();
        let mut with_addresses = None;
        if let Some(addresses) = update.addresses.take() {
            match self.ctx.kube.patch_node_addresses(node, &addresses).await {
                Ok(written) => {
                    // The list of taints is replaced as a whole, so it must come from the version that is tested for.
                    update = intent::initialize(&written, metadata)?;
                    with_addresses = Some(written);
                }
                Err(error) if self.does_without(node, &error) => refused.addresses(&error),
                Err(error) => return Err(Failure::write("the addresses")(error)),
            }
        }
        let node = with_addresses.as_ref().unwrap_or(node);
        refused.note(node, &update.skipped);
        let patch = update.into_patch();
        let written = match self.ctx.kube.patch_node(node, &patch).await {
            Err(error) if is_refusal(&error) => {
                self.initialize_by_parts(node, metadata, &patch, error, &mut refused)
                    .await?
            }
            written => written.map_err(Failure::write("the taints"))?,
        };
        // Where a webhook puts the taint back before it is stored, nothing changes, so no watch will show anything either.
        if self.remembered.is_reverted(node, &written) {
            return Err(Failure::Reverted);
        }
        self.remembered.written(node, &written);
        self.tell_refused(node, &refused);
        let is_without = !addresses::can_be_reached(&node.addresses) && !refused.lacks_addresses();
        self.tell_without_address(node, is_without);
        self.ctx
            .metrics
            .taint_removal_delay_seconds
            .observe(self.age_seconds(node));
        tracing::info!(
            controller = NAME,
            node = %node.name,
            provider_id = node.provider_id.as_deref().or(patch.provider_id.as_deref()),
            "Node initialized"
        );
        Ok(())
    }

    /// The second write, part by part, after it was refused as a whole. The taint goes last.
    async fn initialize_by_parts(
        &self,
        node: &Node,
        metadata: &InstanceMetadata,
        patch: &NodePatch,
        error: KubeError,
        refused: &mut Refused,
    ) -> Result<Written, Failure> {
        let others = NodePatch {
            taints: None,
            ..patch.clone()
        };
        if others.is_empty() {
            return Err(Failure::Write("the taints", error));
        }
        match self.write_parts(node, others, refused).await {
            Err(by_parts) if is_refusal(&by_parts) => return Err(Failure::Write("the taints", error)),
            by_parts => by_parts.map_err(Failure::write("the provider ID and labels"))?,
        }
        if let Some(error) = refused.provider_id.take() {
            return Err(Failure::Write("the provider ID", error));
        }
        let read = self.ctx.kube.node(&node.name).await;
        let read = read.map_err(Failure::write("the taints"))?;
        if read.uid != node.uid {
            let error = KubeError::Conflict("another node has its name by now".to_owned());
            return Err(Failure::Write("the taints", error));
        }
        let taints = NodePatch {
            taints: intent::initialize(&read, metadata)?.taints,
            ..NodePatch::default()
        };
        let written = self.ctx.kube.patch_node(&read, &taints).await;
        written.map_err(Failure::write("the taints"))
    }

    /// Seconds since a Node was created, by the wall clock of this machine.
    fn age_seconds(&self, node: &Node) -> f64 {
        let age = self.ctx.kube.clock().now().duration_since(node.created);
        age.as_secs_f64().max(0.0)
    }
}

/// Whether the Node has changed, or may have been written although no answer came that can be understood.
fn is_worth_a_look(error: &KubeError) -> bool {
    matches!(
        error,
        KubeError::Conflict(_) | KubeError::Timeout | KubeError::Transport(_) | KubeError::Decode(_)
    )
}
