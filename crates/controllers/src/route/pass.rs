//! One pass: read all routes, create and delete what the plan says, publish on each Node what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, Node, Route, RouteChange};
use bowline_kube_io::KubeError;
use futures::StreamExt as _;
use futures::future::{self, BoxFuture, FutureExt as _, Shared};
use futures::stream::FuturesUnordered;
use ipnet::IpNet;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::attempts::Wish;
use super::calls::{self, Answer, Caller, Calls};
use super::plan::{self, Action, NodeTable, Plan};
use super::verdict::{self, Verdict};
use super::{NAME, RouteController};
use crate::queue::Stated;
use crate::{conflict, events};

/// Nodes that are asked about or written to at once: as many as there can be requests to the API server under way.
const REQUESTS_AT_ONCE: usize = 32;

/// How long the API server may take for the list of all Nodes. Page after page it may take longer than a controller is believed to
/// get on; the routes in question are kept until it is asked again.
const LISTED_WITHIN: Duration = Duration::from_secs(120);

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

/// The deletions of routes to one destination, for those who have to wait for them.
type Deletion<'a> = Shared<BoxFuture<'a, ()>>;

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
        let nodes = self.ctx.nodes.all();
        let mut plan = Plan::new(&nodes, &listed, &self.cluster_cidrs);
        self.forget_unwished(&plan);
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
                if self.failed(pass, Wish::List, &error).is_some() {
                    tracing::warn!(controller = NAME, err = %error, "Failed to list routes; nothing is changed before they can be read");
                }
                None
            }
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
                .filter(|network| network.action != Action::Keep);
            let open = open.filter_map(|network| network.destination.as_ref().ok());
            wishes.extend(open.map(|destination| Wish::Create(table.node.name.clone(), *destination)));
        }
        self.attempts().keep(|wish| wishes.contains(wish));
    }

    /// Takes the routes to an address out of the deletions, unless it is certain that no Node has the address. That none is
    /// known is no proof: the API server is asked for all Nodes, once for all such routes.
    async fn keep_what_leads_to_nodes(&self, pass: &Pass, plan: &mut Plan) {
        let is_in_question = |route: &Route| {
            route.target_node.is_none()
                && route.next_hop.is_some()
                && route.is_blackhole
                && self.is_due(pass, &Wish::delete(route))
        };
        if !plan.deletions.iter().any(is_in_question) {
            return;
        }
        let asked = {
            let _working = self.ctx.heartbeat.begin();
            let list = timeout(LISTED_WITHIN, self.ctx.kube.list_nodes());
            self.ctx.stop.run_until_cancelled(list).await
        };
        let Some(asked) = asked else {
            return; // nothing is deleted after the stop
        };
        let asked = asked.unwrap_or(Err(KubeError::Timeout));
        let known: Result<BTreeSet<IpAddr>, KubeError> =
            asked.map(|nodes| nodes.iter().flat_map(|node| plan::addresses(node)).collect());
        plan.deletions.retain(|route| {
            let Some(address) = route.next_hop.filter(|_| is_in_question(route)) else {
                return true;
            };
            match &known {
                Ok(known) if !known.contains(&address) => return true,
                Ok(_) => {
                    tracing::warn!(controller = NAME, route = route.name, destination = %route.destination, %address, "Route kept: the node with its address was missing from the list of nodes, but is there");
                }
                Err(error) => self.cannot_tell(pass, route, error),
            }
            false
        });
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

    /// The deletions by destination.
    fn deletions<'a>(
        &'a self,
        pass: &'a Pass,
        routes: &'a [Route],
        calls: &'a Calls,
    ) -> BTreeMap<IpNet, Deletion<'a>> {
        let mut by_destination: BTreeMap<IpNet, Vec<&Route>> = BTreeMap::new();
        for route in routes {
            by_destination.entry(route.destination).or_default().push(route);
        }
        by_destination
            .into_iter()
            .map(|(destination, routes)| {
                let deletions =
                    future::join_all(routes.into_iter().map(|route| self.delete(pass, route, calls)));
                (destination, deletions.map(drop).boxed().shared())
            })
            .collect()
    }

    async fn delete(&self, pass: &Pass, route: &Route, calls: &Calls) {
        let wish = Wish::delete(route);
        if !self.is_due(pass, &wish) || self.ctx.stop.is_cancelled() {
            return;
        }
        if !self.has_no_node(pass, route).await {
            return;
        }
        let target = route.target_node.as_ref().map_or("", |node| node.as_str());
        let Some(Answer { result, .. }) = calls.make(RouteChange::Delete(route.clone())).await else {
            return;
        };
        match result {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                if self.failed(pass, wish, &error).is_some() {
                    tracing::warn!(controller = NAME, route = route.name, destination = %route.destination, node = target, err = %error, "Failed to delete a route; it will be tried again");
                }
            }
            deleted => {
                if deleted.is_ok() {
                    pass.has_changed.store(true, Ordering::Relaxed);
                }
                self.attempts().succeeded(&wish);
                tracing::info!(controller = NAME, route = route.name, destination = %route.destination, node = target, "Route deleted");
            }
        }
    }

    /// Whether the Node that a route leads to is known and has no use for it, or is proved not to exist. That it is not known
    /// is no proof: the API server is asked for it by its name.
    async fn has_no_node(&self, pass: &Pass, route: &Route) -> bool {
        let nodes = &self.ctx.nodes;
        let id = route.target_provider_id.as_ref();
        let is_known = |name| {
            let has_id = |node: &Arc<Node>| id.is_some() && node.provider_id.as_deref() == id.map(|id| &**id);
            nodes.get(name).is_some() || nodes.all().iter().any(has_id)
        };
        let Some(name) = route.target_node.as_ref().filter(|name| !is_known(name)) else {
            return true;
        };
        let Ok(_turn) = pass.requests.acquire().await else {
            return false;
        };
        let _working = self.ctx.heartbeat.begin();
        match self.ctx.kube.has_node(name).await {
            Ok(false) => true,
            Ok(true) => {
                tracing::warn!(controller = NAME, route = route.name, destination = %route.destination, node = %name, "Route kept: its node was missing from the list of nodes, but is there");
                false
            }
            Err(error) => {
                self.cannot_tell(pass, route, &error);
                false
            }
        }
    }

    /// Remembers that a route is kept because its Node may be there.
    fn cannot_tell(&self, pass: &Pass, route: &Route, error: &KubeError) {
        let (text, wish) = (error.to_string(), Wish::delete(route));
        let say = self
            .attempts()
            .failed(wish, &text, Stated::by_kube(error), pass.share, || text.clone());
        if say.is_some() {
            let target = route.target_node.as_ref().map_or("", |node| node.as_str());
            tracing::warn!(controller = NAME, route = route.name, destination = %route.destination, node = target, err = %error, "Route kept: it is not known whether its node is gone; it will be asked for again");
        }
    }

    /// Gives a Node its routes, then says on it whether they are there.
    async fn bring_up(
        &self,
        pass: &Pass,
        table: &NodeTable,
        deletions: &BTreeMap<IpNet, Deletion<'_>>,
        calls: &Calls,
    ) {
        let creations = table.networks.iter().map(|network| async move {
            match (&network.destination, network.action) {
                (_, Action::Keep) => true,
                (Ok(destination), _) => {
                    // One destination, one route: what stands in its place goes first.
                    if let Some(deletion) = deletions.get(destination) {
                        deletion.clone().await;
                    }
                    self.create(pass, &table.node, *destination, calls).await
                }
                (Err(text), _) => {
                    tracing::debug!(controller = NAME, node = %table.node.name, text, "Pod network cannot be understood");
                    false
                }
            }
        });
        let is_there = future::join_all(creations).await;
        let open = is_there.iter().filter(|is_there| !**is_there).count();
        self.publish(pass, &table.node, Verdict::of(table.networks.len(), open))
            .await;
    }

    /// Creates a route; gives whether it is there now.
    async fn create(&self, pass: &Pass, node: &Node, destination: IpNet, calls: &Calls) -> bool {
        let wish = Wish::Create(node.name.clone(), destination);
        if !self.is_due(pass, &wish) || self.ctx.stop.is_cancelled() {
            return false;
        }
        if plan::lacks_address(node, &destination) && self.attempts().waits_for_address(&wish) {
            tracing::debug!(controller = NAME, node = %node.name, %destination, "Route waits for an address of the node, which is not initialized yet");
            return false;
        }
        let change = RouteChange::Create {
            name_hint: Arc::clone(&node.uid),
            route: Route {
                name: String::new(),
                target_node: Some(node.name.clone()),
                target_provider_id: node.provider_id.clone(),
                next_hop: None,
                target_addresses: node.addresses.clone(),
                compares_addresses: false,
                destination,
                is_blackhole: false,
            },
        };
        let Some(Answer { begun, result }) = self.try_to_create(&change, calls).await else {
            return false;
        };
        match result {
            Ok(()) => {
                pass.has_changed.store(true, Ordering::Relaxed);
                self.attempts().succeeded(&wish);
                tracing::info!(controller = NAME, node = %node.name, %destination, "Route created");
                true
            }
            Err(error) => {
                let text = || verdict::failure_text(node, &destination, begun.elapsed(), &error.to_string());
                let say = self.attempts().failed(
                    wish,
                    &error.to_string(),
                    Stated::by_cloud(&error),
                    pass.share,
                    text,
                );
                if let Some(text) = say {
                    tracing::warn!(controller = NAME, node = %node.name, %destination, err = %error, "Failed to create a route; it will be tried again");
                    self.ctx.event(node, events::FAILED_TO_CREATE_ROUTE.note(text));
                }
                false
            }
        }
    }

    /// What came of a creation, since its first try; `None`: the controller is stopping, and it was not begun.
    async fn try_to_create(&self, change: &RouteChange, calls: &Calls) -> Option<Answer> {
        let mut answer = calls.make(change.clone()).await?;
        for _ in 1..conflict::TRIES {
            let is_conflict = matches!(&answer.result, Err(error) if error.kind() == ErrorKind::Conflict);
            if !is_conflict || self.ctx.stop.is_cancelled() {
                break;
            }
            conflict::pause(&self.ctx.jitter).await;
            let Some(again) = calls.make(change.clone()).await else {
                break;
            };
            answer.result = again.result;
        }
        Some(answer)
    }

    /// Sets the condition of a Node, unless it shows it already or is another Node by now.
    async fn publish(&self, pass: &Pass, asked: &Node, verdict: Verdict) {
        let wish = Wish::Condition(asked.name.clone());
        let still = || {
            self.ctx
                .nodes
                .get(&asked.name)
                .filter(|node| node.uid == asked.uid)
        };
        for attempt in 1..=conflict::TRIES {
            let Ok(_turn) = pass.requests.acquire().await else {
                return;
            };
            let Some(node) = still().filter(|node| !verdict.is_shown_by(node)) else {
                break;
            };
            if self.ctx.stop.is_cancelled() || !self.is_due(pass, &wish) {
                return;
            }
            let _working = self.ctx.heartbeat.begin();
            let written = self
                .ctx
                .kube
                .set_network_unavailable(
                    &node,
                    verdict.is_unavailable(),
                    verdict.reason(),
                    verdict.message(),
                )
                .await;
            match written {
                Ok(_) => {
                    tracing::info!(controller = NAME, node = %node.name, reason = verdict.reason(), "Condition NetworkUnavailable set");
                    break;
                }
                Err(KubeError::Conflict(_)) if attempt < conflict::TRIES => {
                    conflict::pause(&self.ctx.jitter).await
                }
                // It is gone: the watch brings the news.
                Err(KubeError::NotFound(_)) => break,
                Err(error) => {
                    let stated = Stated::by_kube(&error);
                    let say = self
                        .attempts()
                        .failed(wish, &error.to_string(), stated, pass.share, || error.to_string());
                    if say.is_some() {
                        tracing::warn!(controller = NAME, node = %node.name, err = %error, "Failed to set the condition NetworkUnavailable; it will be tried again");
                    }
                    return;
                }
            }
        }
        self.attempts().succeeded(&wish);
    }

    /// Remembers a failure; gives something if it is to be said.
    fn failed(&self, pass: &Pass, wish: Wish, error: &CloudError) -> Option<String> {
        let text = error.to_string();
        self.attempts()
            .failed(wish, &text, Stated::by_cloud(error), pass.share, || text.clone())
    }

    fn is_due(&self, pass: &Pass, wish: &Wish) -> bool {
        self.attempts().is_due(wish, pass.begun, pass.is_safety_pass)
    }
}
