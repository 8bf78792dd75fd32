//! Node sync: the balancers follow the set of Nodes.

use std::cell::LazyCell;
use std::sync::Arc;

use bowline_cloud_provider::{Node, NodeSet, Service, ServiceKey};
use bowline_kube_io::Change;

use super::causes::Causes;
use super::node_changes::{NodeChange, Taken};
use super::node_identities::{NodeIdentities, NodeIdentity, NodeSyncTimer, hash_of};
use super::tracked::Tracked;
use super::{ServiceController, lock};
use crate::{events, node_set};

/// At most this many node names stand in one message; upstream's limit.
const MAX_NAMED_NODES: usize = 20;

/// A pass over all Services, because the set of Nodes has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NodeSync;

/// The Nodes to balance over, and who they are.
#[derive(Clone)]
pub(super) struct BalancedNodes {
    pub(super) nodes: Arc<[Arc<Node>]>,
    pub(super) identities: NodeIdentities,
}

/// The Nodes to balance over, with and without those that are about to go.
#[derive(Clone)]
pub(super) struct Balanced {
    all: BalancedNodes,
    staying: BalancedNodes,
}

impl ServiceController {
    /// A Node changed. What most changes of a Node are about, its heartbeat above all, concerns no balancer.
    pub(super) fn on_node(&self, change: &Change<Node>) {
        let kind = self.provider.load_balancer.node_set();
        let drains_otherwise = self.note_drain(change, kind);
        let is_altered = match change {
            Change::Added(node) | Change::Deleted(node) => node_set::is_balanced(node, kind),
            Change::Updated { old, new } => node_set::alters(old, new, kind),
        };
        if is_altered {
            *lock(&self.balanced) = None;
        }
        let (is_trigger, with_labels, is_first_of_two) = match change {
            Change::Added(node) => (true, true, node.is_uninitialized()),
            Change::Deleted(_) => (true, true, false),
            Change::Updated { old, new } => (
                node_set::concerns_balancers(old, new, kind) || drains_otherwise,
                old.labels != new.labels,
                new.is_uninitialized(),
            ),
        };
        if is_trigger || (with_labels && self.any_service_selects_by_label()) {
            self.node_changes.note(NodeChange {
                with_labels,
                is_first_of_two,
            });
        }
    }

    /// Whether the members change because a Node is drained now, or is drained no more and need not rest.
    fn note_drain(&self, change: &Change<Node>, kind: NodeSet) -> bool {
        match change {
            Change::Updated { old, new } if old.draining.is_some() && new.drained_by().is_none() => {
                !self.node_changes.rests(&new.name)
            }
            Change::Updated { old, new } => {
                node_set::begins_or_ends_to_drain(old, new, kind)
                    && !(new.draining.is_some() && self.node_changes.end_rest(&new.name))
            }
            Change::Added(node) | Change::Deleted(node) => {
                self.node_changes.end_rest(&node.name);
                false
            }
        }
    }

    fn any_service_selects_by_label(&self) -> bool {
        if !self.provider.load_balancer.follows_nodes() {
            return false;
        }
        let tracked = lock(&self.tracked);
        tracked
            .values()
            .filter_map(|tracked| tracked.synced.as_deref())
            .any(|service| self.provider.load_balancer.selects_nodes_by_label(service))
    }

    /// Has the balancers follow the Nodes, for ever. A pass goes through a queue of its own for the sake of its series, as
    /// upstream's does.
    pub(super) async fn follow_nodes(&self) {
        loop {
            self.node_changes.settled().await;
            self.node_queue.add(NodeSync);
            let pass = self.node_queue.next().await; // at once: nobody else takes from it
            self.sync_all();
            self.node_queue.done(&pass);
        }
    }

    /// The set of Nodes has settled: every Service that was synced with another set is looked at again, or, if its balancer
    /// follows no Nodes, is served by that.
    fn sync_all(&self) {
        let provider = &self.provider.load_balancer;
        let follows_nodes = provider.follows_nodes();
        let timer = NodeSyncTimer::begin(&self.ctx.metrics.nodesync_latency_seconds);
        let Taken {
            with_labels,
            has_rested,
        } = self.node_changes.take();
        if has_rested {
            *lock(&self.balanced) = None;
        }
        // A cluster grows to its thousands of Nodes with no Service there yet to ask for them.
        let balanced = LazyCell::new(|| self.balanced());
        let classes = self.classes();
        let is_concerned = |tracked: &Tracked| {
            let service = tracked.synced.as_deref();
            let Some(service) = service.filter(|service| classes.wants_load_balancer(service)) else {
                return false;
            };
            // One that never had a balancer is under way, or waits for its next try with the Nodes of then.
            tracked.nodes.as_ref().is_some_and(|nodes| {
                let may_select = || with_labels && follows_nodes && provider.selects_nodes_by_label(service);
                *nodes != self.of_service(&balanced, service).identities || may_select()
            })
        };
        let concerned: Vec<ServiceKey> = {
            let tracked = lock(&self.tracked);
            let concerned = tracked.iter().filter(|(_, tracked)| is_concerned(tracked));
            concerned.map(|(key, _)| key.clone()).collect()
        };
        for key in concerned {
            if !follows_nodes {
                self.update_nothing(&key, &balanced.all.identities);
                continue;
            }
            self.ctx.metrics.loadbalancer_sync_total.inc();
            self.tracked(&key, |tracked| tracked.join(&timer));
            self.enqueue(&key, Causes::NODES);
        }
    }

    /// Somebody is served by now though the sync goes on: from here on a change of the Nodes is followed, and one that came since it
    /// began.
    pub(super) fn note_served(&self, key: &ServiceKey, nodes: &Arc<[Arc<Node>]>) {
        let identities = self.identities(nodes);
        let is_behind = identities != self.nodes_of_key(key).identities;
        self.tracked(key, |tracked| tracked.nodes = Some(identities));
        if is_behind && self.provider.load_balancer.follows_nodes() {
            self.enqueue(key, Causes::NODES);
        }
    }

    /// The Nodes changed under a balancer that does not follow them: that is an update as others are, with nothing to do.
    pub(super) fn update_nothing(&self, key: &ServiceKey, identities: &NodeIdentities) {
        let is_news = self.tracked(key, |tracked| {
            tracked.nodes.replace(Arc::clone(identities)).as_ref() != Some(identities)
        });
        let service = self.services.get(key);
        let service = service.filter(|service| is_news && self.classes().is_wanted(service));
        let Some(service) = service else { return };
        self.annotate_nodes_soon();
        self.ctx.metrics.loadbalancer_sync_total.inc();
        self.ctx
            .metrics
            .update_loadbalancer_host_latency_seconds
            .observe(0.0);
        self.ctx.metrics.synced("update", "settled");
        self.tell_updated(&service, identities);
    }

    /// Says that a balancer is up to date with these Nodes, after they have changed.
    pub(super) fn tell_updated(&self, service: &Service, identities: &NodeIdentities) {
        if identities.is_empty() {
            self.tell_unavailable(service);
        } else {
            self.ctx.event(service, events::UPDATED_LOAD_BALANCER.verbatim());
        }
    }

    /// Says that there is no Node to lead to.
    pub(super) fn tell_unavailable(&self, service: &Service) {
        let event = events::UNAVAILABLE_LOAD_BALANCER;
        self.ctx.event(service, event.verbatim());
        self.tracked(&ServiceKey::of(service), |tracked| {
            tracked.dedup.is_news(event.reason, event.message)
        });
    }

    /// A sync has settled, with Nodes to lead to or without: as long as there are none, that is said from time to time.
    pub(super) fn keep_telling_unavailable(&self, key: &ServiceKey, lacks_nodes: bool) {
        let event = events::UNAVAILABLE_LOAD_BALANCER;
        let is_due = self.tracked(key, |Tracked { dedup, .. }| {
            if !lacks_nodes {
                dedup.over(event.reason);
                return false;
            }
            let is_due = dedup.noted_again(event.reason);
            dedup.is_news(event.reason, event.message); // after a start: the process before this one has said it
            is_due
        });
        if let Some(service) = self.services.get(key).filter(|_| is_due) {
            self.tell_unavailable(&service);
        }
    }

    /// Whether labels that a Service may select by are others now than when its sync was given these Nodes.
    pub(super) fn has_old_labels(&self, service: &Service, nodes: &[Arc<Node>]) -> bool {
        let provider = &self.provider.load_balancer;
        if !provider.follows_nodes() || !provider.selects_nodes_by_label(service) {
            return false;
        }
        let now = self.nodes_of(service).nodes;
        let now = now.iter().map(|node| &node.labels);
        !now.eq(nodes.iter().map(|node| &node.labels))
    }

    /// The Nodes to balance over now, in name order; worked out once per change of what is read of them.
    fn balanced(&self) -> Balanced {
        let mut balanced = lock(&self.balanced);
        let of = |nodes: Vec<Arc<Node>>| BalancedNodes {
            identities: self.identify(&nodes),
            nodes: nodes.into(),
        };
        let select = || {
            let kind = self.provider.load_balancer.node_set();
            let all = node_set::balanced(&self.ctx.nodes.all(), kind);
            let staying = node_set::staying(all.clone(), |node| self.node_changes.is_resting(&node.name));
            let is_same = all.len() == staying.len();
            let (staying, all) = match self.provider.load_balancer.keeps_drained() {
                true => (
                    node_set::marked(all.clone(), &staying),
                    node_set::marked(all.clone(), &all),
                ),
                false => (staying, all),
            };
            let all = of(all);
            Balanced {
                staying: if is_same { all.clone() } else { of(staying) },
                all,
            }
        };
        balanced.get_or_insert_with(select).clone()
    }

    /// All Nodes to balance over now, those that are about to go among them.
    pub(super) fn balanced_nodes(&self) -> BalancedNodes {
        self.balanced().all
    }

    /// The Nodes that a Service's load balancer leads to now.
    pub(super) fn nodes_of(&self, service: &Service) -> BalancedNodes {
        self.of_service(&self.balanced(), service).clone()
    }

    /// The same, of the Service of this name.
    pub(super) fn nodes_of_key(&self, key: &ServiceKey) -> BalancedNodes {
        let service = self.services.get(key);
        service.map_or_else(|| self.balanced_nodes(), |service| self.nodes_of(&service))
    }

    fn of_service<'a>(&self, balanced: &'a Balanced, service: &Service) -> &'a BalancedNodes {
        match node_set::drains(service, &*self.provider.load_balancer) {
            true => &balanced.staying,
            false => &balanced.all,
        }
    }

    /// Who these Nodes are.
    pub(super) fn identities(&self, nodes: &Arc<[Arc<Node>]>) -> NodeIdentities {
        let balanced = lock(&self.balanced);
        let mut known = balanced.iter().flat_map(|it| [&it.all, &it.staying]);
        let known = known.find(|it| Arc::ptr_eq(&it.nodes, nodes));
        known.map_or_else(|| self.identify(nodes), |known| Arc::clone(&known.identities))
    }

    fn identify(&self, nodes: &[Arc<Node>]) -> NodeIdentities {
        let provider = &self.provider.load_balancer;
        let (follows_nodes, kind) = (provider.follows_nodes(), provider.node_set());
        let keeps_drained = provider.keeps_drained();
        let identities = nodes.iter().map(|node| NodeIdentity {
            name: node.name.clone(),
            provider_id: node.provider_id.clone(),
            addresses: follows_nodes.then(|| hash_of(&node.addresses)),
            is_ready: node_set::counts_as_ready(node, kind),
            is_drained: keeps_drained && node.draining.is_some(),
        });
        lock(&self.known_identities).share(identities.collect())
    }

    /// Upstream's words for a failed update, with the Nodes' names limited.
    pub(super) fn update_failed_text(&self, error: &str) -> String {
        let nodes = self.balanced_nodes().identities;
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        format!(
            "Error updating load balancer with new hosts {} [node names limited, total number of nodes: {}], error: {error}",
            limited(&names),
            names.len()
        )
    }
}

fn limited(names: &[&str]) -> String {
    let more = names.len().saturating_sub(MAX_NAMED_NODES);
    let shown = names[..names.len() - more].join(" ");
    if more == 0 {
        format!("[{shown}]")
    } else {
        format!("[{shown} <{more} more>]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_twenty_nodes_are_named() {
        assert_eq!(limited(&["a", "b"]), "[a b]");
        let names: Vec<String> = (0..25).map(|n| format!("n{n:02}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(limited(&names).ends_with("n19 <5 more>]"));
    }
}
