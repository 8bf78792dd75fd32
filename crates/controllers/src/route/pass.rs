//! One pass: read all routes, create and delete what the plan says, publish on each Node what came of it.

mod conditions;
mod creations;
mod deletions;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline_cloud_provider::{CloudError, Node, Route};
use futures::StreamExt as _;
use futures::future::{self, BoxFuture, FutureExt as _};
use futures::stream::FuturesUnordered;
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::attempts::{Next, Wish};
use super::calls::{self, Caller, Calls};
use super::plan::{self, Action, Plan, Shared};
use super::{NAME, RouteController};
use crate::events;
use crate::queue::RetryAfter;

/// Nodes that are asked about or written to at once: as many as there can be requests to the API server under way.
const REQUESTS_AT_ONCE: usize = 32;

/// What the parts of a pass share.
struct Pass {
    is_safety_pass: bool,
    begun: Instant,
    /// One draw of the jitter for all that fails.
    share: f64,
    /// Bounds the questions about Nodes and the writes to them in flight: what waits for its turn is not under way.
    requests: Semaphore,
    /// Whether a route was created or deleted.
    has_changed: AtomicBool,
}

/// What came of a pass. That single routes could not be created or deleted is no error of the pass, as upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A route at least was created or deleted.
    Changed,
    /// None was.
    Noop,
    /// The routes could not be read.
    Error,
}

impl Outcome {
    /// The value of the label `outcome`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Noop => "noop",
            Self::Error => "error",
        }
    }
}

impl RouteController {
    /// Makes one pass. A failure of a part of it is no failure of the pass: it is remembered, and tried again. Answers what
    /// came of it; `None`: the routes are not to be read yet.
    ///
    /// # Cancellation
    ///
    /// Every write stands by itself: the next pass begins with what the cloud then shows.
    pub(super) async fn pass(&self, is_safety_pass: bool) -> Option<Outcome> {
        let pass = Pass {
            is_safety_pass,
            begun: Instant::now(),
            share: self.attempts().draw(),
            requests: Semaphore::new(REQUESTS_AT_ONCE),
            has_changed: AtomicBool::new(false),
        };
        if !self.is_due(&pass, &Wish::List) {
            return None;
        }
        let Some(listed) = self.list(&pass).await else {
            return Some(Outcome::Error);
        };
        // Read after the routes, so that a route is not taken for one of a Node that is not known yet.
        let mut nodes = self.ctx.nodes.all();
        self.tell_left(&listed, &nodes);
        nodes.retain(|node| self.routes.leads_to(node));
        let mut plan = Plan::new(&nodes, &listed, &self.cluster_cidrs);
        self.forget_unwished(&plan);
        self.tell_shared(&plan);
        self.keep_what_was_never_seen(&pass, &mut plan).await;
        self.keep_what_leads_to_nodes(&pass, &mut plan).await;
        self.apply(&pass, &plan).await;
        Some(if pass.has_changed.load(Ordering::Relaxed) {
            Outcome::Changed
        } else {
            Outcome::Noop
        })
    }

    async fn list(&self, pass: &Pass) -> Option<Vec<Route>> {
        let _working = self.ctx.heartbeat.begin();
        match self.routes.list_routes(&self.ctx.cluster.name).await {
            Ok(listed) => {
                self.attempts().succeeded(&Wish::List);
                Some(listed)
            }
            Err(error) => {
                let next = Next::Soon(RetryAfter::by_cloud(&error));
                if self.failed(pass, Wish::List, &error, next).is_some() {
                    tracing::warn!(controller = NAME, err = %error, "Failed to list routes; nothing is changed before they can be read");
                }
                None
            }
        }
    }

    /// Says once of a route outside of `--cluster-cidr` that it stays when its Node is gone: it is never deleted, and no Node tells of
    /// it any more.
    fn tell_left(&self, listed: &[Route], nodes: &[Arc<Node>]) {
        let mut seen = self.seen();
        let outside = listed.iter().filter(|route| {
            let destination = &route.destination;
            seen.contains(&destination.trunc()) && !plan::is_ours(destination, &self.cluster_cidrs)
        });
        let left = outside.filter(|route| {
            let mut nodes = nodes.iter();
            !nodes.any(|node| plan::has_network(node, &route.destination))
        });
        let left: BTreeSet<IpNet> = left.map(|route| route.destination.trunc()).collect();
        for network in left {
            seen.remove(&network);
            tracing::warn!(controller = NAME, %network, "The node with this pod network is gone, and its route stays: only routes in --cluster-cidr are deleted. Delete it in the cloud if nothing needs it");
        }
    }

    /// What the plan does not wish for is not tried again.
    fn forget_unwished(&self, plan: &Plan) {
        let mut wishes: BTreeSet<Wish> = plan.deletions.iter().map(Wish::delete).collect();
        for table in &plan.tables {
            wishes.insert(Wish::Condition(table.node.name.clone()));
            let open = table
                .networks
                .iter()
                .filter(|network| !matches!(network.action, Action::Keep | Action::Taken));
            let open = open.filter_map(|network| network.destination.as_ref().ok());
            wishes.extend(open.map(|destination| Wish::Create(table.node.name.clone(), *destination)));
        }
        self.attempts().keep(|wish| wishes.contains(wish));
    }

    /// Tells each Node of those with the same pod network.
    fn tell_shared(&self, plan: &Plan) {
        let news: Vec<_> = self
            .attempts()
            .shared(&plan.shared)
            .into_iter()
            .cloned()
            .collect();
        for Shared {
            node,
            destination,
            others,
        } in news
        {
            for other in others {
                let text = events::shared_network(&destination.to_string(), &other);
                tracing::warn!(controller = NAME, node = %node.name, "{text}");
                self.ctx.event(&*node, events::POD_NETWORK_SHARED.note(text));
            }
        }
    }

    async fn apply(&self, pass: &Pass, plan: &Plan) {
        let networks: usize = plan.tables.iter().map(|table| table.networks.len()).sum();
        let (calls, waiting) = calls::queue(plan.deletions.len() + networks);
        let caller = Caller {
            routes: &*self.routes,
            cluster: &self.ctx.cluster.name,
            heartbeat: &self.ctx.heartbeat,
            stop: &self.ctx.stop,
        };
        caller.serve(self.make_changes(pass, plan, &calls), waiting).await;
    }

    async fn make_changes(&self, pass: &Pass, plan: &Plan, calls: &Calls) {
        let deletions = self.deletions(pass, &plan.deletions, calls);
        if plan.deletes_first {
            future::join_all(deletions.values().cloned()).await;
        }
        let mut parts: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        for table in &plan.tables {
            parts.push(self.bring_up(pass, table, &deletions, calls).boxed());
        }
        for deletion in deletions.values() {
            parts.push(deletion.clone().boxed());
        }
        while parts.next().await.is_some() {}
    }

    /// Remembers a failure; gives something if it is to be said.
    fn failed(&self, pass: &Pass, wish: Wish, error: &CloudError, next: Next) -> Option<String> {
        let text = error.to_string();
        self.attempts()
            .failed(wish, &text, next, pass.share, || text.clone())
    }

    fn is_due(&self, pass: &Pass, wish: &Wish) -> bool {
        self.attempts().is_due(wish, pass.begun, pass.is_safety_pass)
    }
}
