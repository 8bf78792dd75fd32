//! The routes that go, and the proof that nobody needs them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bowline_cloud_provider::{ErrorKind, NodeName, Route, RouteChange};
use bowline_kube_io::KubeError;
use futures::future::{self, BoxFuture, FutureExt as _, Shared};
use ipnet::IpNet;
use tokio::time::timeout;

use super::Pass;
use crate::queue::RetryAfter;
use crate::route::attempts::{Next, Wish};
use crate::route::calls::{Answer, Calls};
use crate::route::plan::{self, Plan};
use crate::route::{NAME, RouteController};

/// How long the API server may take for the list of all Nodes. Page after page it may take longer than a controller is believed to
/// get on; the routes in question are kept until it is asked again.
const LISTED_WITHIN: Duration = Duration::from_secs(120);

/// Why a route is kept whose Node is not known.
const IS_THERE: &str = "its node was missing from the list of nodes, but is there";

/// Why a route is kept whose Node this process never saw.
const NEVER_SEEN: &str = "no node had its network while this process watched, and what it leads to lives: it may be a route of the cluster \
     that this one is a copy of; delete it in the cloud if nothing needs it";

/// The deletions of routes to one destination, for those who have to wait for them.
pub(super) type Deletion<'a> = Shared<BoxFuture<'a, ()>>;

impl RouteController {
    /// Takes out of the deletions what may be needed by another copy of this cluster: routes to Nodes that are not known, and to networks
    /// that no Node had while this process watched, unless the cloud proves that they lead to nothing.
    pub(super) async fn keep_what_was_never_seen(&self, pass: &Pass, plan: &mut Plan) {
        let ids = self.provider_ids(&plan.deletions);
        let (doubtful, mut sure): (Vec<Route>, Vec<Route>) = {
            let seen = self.seen();
            let is_doubtful = |route: &Route| {
                let is_known = match &route.target_node {
                    Some(name) => self.is_known(route, name, &ids),
                    None => route.next_hop.is_some() && !route.is_blackhole,
                };
                !is_known
                    && !seen.contains(&route.destination.trunc())
                    && self.is_due(pass, &Wish::delete(route))
            };
            std::mem::take(&mut plan.deletions)
                .into_iter()
                .partition(is_doubtful)
        };
        if !doubtful.is_empty() {
            let _working = self.ctx.heartbeat.begin();
            let live = self.routes.live(&doubtful).await;
            for (at, route) in doubtful.into_iter().enumerate() {
                match &live {
                    Ok(live) if live.get(at) == Some(&false) => sure.push(route),
                    Ok(_) => self.keep(pass, &route, NEVER_SEEN, Next::Refused),
                    Err(error) => {
                        let why = format!("it is not known whether what it leads to lives: {error}");
                        self.keep(pass, &route, &why, Next::Soon(RetryAfter::by_cloud(error)));
                    }
                }
            }
        }
        plan.deletions = sure;
    }

    /// The provider IDs of all Nodes, once for all routes; none where there are no routes.
    fn provider_ids(&self, routes: &[Route]) -> BTreeSet<Arc<str>> {
        match routes.is_empty() {
            true => BTreeSet::new(),
            false => {
                let nodes = self.ctx.nodes.all();
                nodes.iter().filter_map(|node| node.provider_id.clone()).collect()
            }
        }
    }

    /// Whether the Node of this name, to which a route leads, is known, or another one that has the provider ID.
    fn is_known(&self, route: &Route, name: &NodeName, ids: &BTreeSet<Arc<str>>) -> bool {
        let nodes = &self.ctx.nodes;
        let id = route.target_provider_id.as_deref();
        nodes.get(name).is_some() && !nodes.is_unreadable(name) || id.is_some_and(|id| ids.contains(id))
    }

    /// Takes the routes to an address out of the deletions, unless it is certain that no Node has the address. That none is
    /// known is no proof: the API server is asked for all Nodes, once for all such routes.
    pub(super) async fn keep_what_leads_to_nodes(&self, pass: &Pass, plan: &mut Plan) {
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
            let list = timeout(LISTED_WITHIN, self.ctx.kube.list_whole_nodes());
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
                Ok(_) => self.keep(pass, route, IS_THERE, Next::Soon(RetryAfter::Nothing)),
                Err(error) => self.cannot_tell(pass, route, error),
            }
            false
        });
    }

    /// The deletions by destination.
    pub(super) fn deletions<'a>(
        &'a self,
        pass: &'a Pass,
        routes: &'a [Route],
        calls: &'a Calls,
    ) -> BTreeMap<IpNet, Deletion<'a>> {
        let mut by_destination: BTreeMap<IpNet, Vec<&Route>> = BTreeMap::new();
        for route in routes {
            by_destination
                .entry(route.destination.trunc())
                .or_default()
                .push(route);
        }
        let ids = Arc::new(self.provider_ids(routes));
        by_destination
            .into_iter()
            .map(|(destination, routes)| {
                let ids = Arc::clone(&ids);
                let deletions = async move {
                    let all = routes
                        .into_iter()
                        .map(|route| self.delete(pass, route, &ids, calls));
                    future::join_all(all).await;
                };
                (destination, deletions.boxed().shared())
            })
            .collect()
    }

    async fn delete(&self, pass: &Pass, route: &Route, ids: &BTreeSet<Arc<str>>, calls: &Calls) {
        let wish = Wish::delete(route);
        if !self.is_due(pass, &wish) || self.ctx.stop.is_cancelled() {
            return;
        }
        if !self.has_no_node(pass, route, ids).await {
            return;
        }
        let target = route.target_node.as_ref().map_or("", |node| node.as_str());
        let Some(Answer { result, .. }) = calls.make(RouteChange::Delete(route.clone())).await else {
            return;
        };
        match result {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let next = Next::of_write(&error);
                if self.failed(pass, wish, &error, next).is_some() {
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
    async fn has_no_node(&self, pass: &Pass, route: &Route, ids: &BTreeSet<Arc<str>>) -> bool {
        let target = route.target_node.as_ref();
        let Some(name) = target.filter(|name| !self.is_known(route, name, ids)) else {
            return true;
        };
        let Ok(_turn) = pass.requests.acquire().await else {
            return false;
        };
        let _working = self.ctx.heartbeat.begin();
        match self.ctx.kube.has_node(name).await {
            Ok(false) => true,
            Ok(true) => {
                self.keep(pass, route, IS_THERE, Next::Soon(RetryAfter::Nothing));
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
        let why = format!("it is not known whether its node is gone: {error}");
        self.keep(pass, route, &why, Next::Soon(RetryAfter::by_kube(error)));
    }

    /// Remembers that a route is kept, and why: it is asked about again later.
    fn keep(&self, pass: &Pass, route: &Route, why: &str, next: Next) {
        let wish = Wish::delete(route);
        let say = self
            .attempts()
            .failed(wish, why, next, pass.share, || why.to_owned());
        if say.is_some() {
            let target = route.target_node.as_ref().map_or("", |node| node.as_str());
            tracing::warn!(controller = NAME, route = route.name, destination = %route.destination, node = target, why, "Route kept; it will be asked for again");
        }
    }
}
