//! Static routes of a Neutron router to the pod networks of Nodes.
//!
//! A route leads to an address of a Node, and the Node's port has to let the pod network through: the route is written
//! first, then the address pair of the port; if that fails, a route that was added is taken back. A deletion goes the other way round, so
//! that what is half done shows as a route and is done again. A pair that was refused is tried before its route from then on. Many changes share one write of the router.
//!
//! ```text
//! routes/change.rs       one change, read                                       (pure)
//! routes/router.rs       the router's list: all at once, or as a whole with its revision
//! routes/portion.rs      how much one write of it asks for
//! routes/pairs.rs        the address pairs of the Nodes' ports
//! routes/ports.rs        those ports, read                                      (pure)
//! routes/extensions.rs   what this cloud's Neutron can do
//! ```

mod change;
mod extensions;
mod pairs;
mod portion;
mod ports;
mod router;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::{CloudError, Route, RouteChange, Routes};
use bowline_openstack_client::{
    ApiError, Client, NetworkId, Port, PortFilter, Router, RouterId, RouterRoute, Subnet,
};
use futures::future::{BoxFuture, FutureExt as _};
use futures::try_join;
use ipnet::IpNet;

use change::{Change, Results, is_same, range};
use extensions::{Extensions, KnownExtensions};
use portion::Portion;

/// The changes of one call. A call ends when the ports of all of its Nodes are written, some side by side; with more of them
/// it could take so long that it looks stuck.
const CHANGES_PER_CALL: usize = 50;

/// The routes of a router that a client reaches, for tests and for the provider. Makes no call.
#[must_use]
pub fn routes(client: &Client, router: RouterId) -> Arc<dyn Routes> {
    Arc::new(RouteTable::new(client, router))
}

/// The routes of one router.
pub(crate) struct RouteTable {
    client: Client,
    router: RouterId,
    extensions: KnownExtensions,
    state: Mutex<State>,
}

/// What is remembered from one call to the next.
#[derive(Default)]
struct State {
    /// The networks that the router joins, in which the ports of Nodes are found. Read with every listing.
    networks: Option<Arc<[NetworkId]>>,
    /// Whether no route is there without its address pair: not known when this process was just started, or a change was cut off.
    is_certain: bool,
    /// Whether the router took no more routes when the last one was added.
    is_full: bool,
    /// Where routes lead whose address pairs were refused the last time.
    pair_refused: BTreeSet<IpNet>,
    /// How much one write asks for.
    portion: Portion,
    /// Routes that the router has, and whose ports lack their address pairs.
    incomplete: Vec<RouterRoute>,
}

/// Whether Neutron lets routers have routes.
pub(crate) async fn are_offered(client: &Client) -> Result<bool, ApiError> {
    Ok(Extensions::of(&client.extensions().await?).is_some())
}

impl RouteTable {
    pub(crate) fn new(client: &Client, router: RouterId) -> Self {
        Self {
            client: client.clone(),
            router,
            extensions: KnownExtensions::default(),
            state: Mutex::default(),
        }
    }

    async fn read_router(&self) -> Result<Router, CloudError> {
        let router = self.client.router(&self.router).await?;
        router.ok_or_else(|| {
            CloudError::other(format!(
                "router {} does not exist, or the project cannot see it; correct router-id in [Route] of cloud.conf: `openstack router list` shows those that there are",
                self.router
            ))
        })
    }

    /// The ports of the router itself.
    async fn own_ports(&self) -> Result<Vec<Port>, ApiError> {
        let filter = PortFilter {
            device_id: Some(self.router.as_str()),
            ..PortFilter::default()
        };
        self.client.ports(&filter).await
    }

    /// The networks that the router joins.
    async fn read_networks(&self) -> Result<Arc<[NetworkId]>, CloudError> {
        let ports = self.own_ports().await?;
        let mut seen = BTreeSet::new();
        let networks = ports.into_iter().filter_map(|port| port.network_id);
        let networks: Arc<[NetworkId]> = networks.filter(|network| seen.insert(network.clone())).collect();
        self.state().networks = Some(Arc::clone(&networks));
        Ok(networks)
    }

    /// The ranges of the subnets that the router is in, where a Node has several addresses. If they cannot be read, its first address is
    /// tried, and Neutron tells.
    async fn near(&self, changes: &[RouteChange]) -> Vec<IpNet> {
        if !changes.iter().any(change::has_choice) {
            return Vec::new();
        }
        let Ok((ports, subnets)) = try_join!(self.own_ports(), self.client.subnets()) else {
            return Vec::new();
        };
        let of_router = |subnet: &&Subnet| {
            let mut fixed = ports.iter().flat_map(|port| &port.fixed_ips);
            fixed.any(|fixed| fixed.subnet_id == subnet.id)
        };
        let near = subnets.iter().filter(of_router);
        near.filter_map(|subnet| subnet.cidr.parse().ok()).collect()
    }

    /// The networks as the last listing saw them.
    async fn networks(&self) -> Result<Arc<[NetworkId]>, CloudError> {
        let known = self.state().networks.clone();
        match known {
            Some(networks) => Ok(networks),
            None => self.read_networks().await,
        }
    }

    async fn list(&self) -> Result<Vec<Route>, CloudError> {
        let networks = self.read_networks();
        let extensions = self.extensions.ask(&self.client);
        let (extensions, router, _) = try_join!(extensions, self.read_router(), networks)?;
        let mut routes: Vec<Route> = router.routes.iter().filter_map(route).collect();
        let is_certain = self.state().is_certain;
        let incomplete = if extensions.has_pairs && !is_certain {
            let without_pair = self.without_pair(&routes).await?;
            let there = router.routes.into_iter();
            let incomplete = there.filter(|route| without_pair.contains(&change::name(route)));
            let mut state = self.state();
            (state.incomplete, state.is_certain) = (incomplete.collect(), true);
            without_pair
        } else {
            let mut state = self.state();
            state.incomplete.retain(|route| router.routes.contains(route));
            state.incomplete.iter().map(change::name).collect()
        };
        for route in &mut routes {
            route.is_incomplete = incomplete.contains(&route.name);
        }
        Ok(routes)
    }

    /// The names of routes whose port does not let their network through.
    async fn without_pair(&self, routes: &[Route]) -> Result<BTreeSet<String>, CloudError> {
        let hops: BTreeSet<IpAddr> = routes.iter().filter_map(|route| route.next_hop).collect();
        let ports = self.ports_of(&hops).await?;
        let lacks_pair = |route: &&Route| {
            let port = route.next_hop.and_then(|hop| ports.get(&hop));
            port.is_some_and(|port| !ports::lets_through(port, &route.destination))
        };
        let without = routes.iter().filter(lacks_pair);
        Ok(without.map(|route| route.name.clone()).collect())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creations of routes whose address pairs were refused the last time. They are forgotten with that.
    fn were_refused<'a>(&self, changes: &'a [Change]) -> Vec<&'a Change> {
        let refused = &mut self.state().pair_refused;
        let mut was_refused = |change: &Change| change.is_creation && refused.remove(&change.destination);
        changes.iter().filter(|change| was_refused(change)).collect()
    }

    async fn change(&self, changes: &[RouteChange]) -> Vec<Result<(), CloudError>> {
        let (mut results, changes) = Results::of(changes, &self.near(changes).await);
        let extensions = match self.extensions.ask(&self.client).await {
            Ok(extensions) => extensions,
            Err(error) => {
                results.fail(&changes, &error);
                return results.into_inner();
            }
        };
        let was_certain = std::mem::take(&mut self.state().is_certain);
        let with_port = |change: &&Change| !change.is_creation && change.may_have_port;
        let deletions: Vec<&Change> = changes.iter().filter(with_port).collect();
        if extensions.has_pairs {
            self.change_pairs(&deletions, &mut results).await;
        }
        // What is at the router already needs no write of the router.
        let there: Vec<&Change> = {
            let incomplete = &self.state().incomplete;
            let is_there = |change: &&Change| {
                change.is_creation && incomplete.iter().any(|route| is_same(route, &change.route))
            };
            changes.iter().filter(is_there).collect()
        };
        // Else the router would be written twice at each try, in vain.
        let has_pair = self.were_refused(&changes);
        if extensions.has_pairs {
            self.change_pairs(&has_pair, &mut results).await;
            self.state().pair_refused.extend(results.failed(&has_pair));
        }
        let open = results.open(&changes).into_iter();
        let open = open.filter(|change| !there.contains(change)).collect();
        let mut is_certain = self.change_router(extensions.mode, open, &mut results).await;
        if extensions.has_pairs {
            let written = results.open(&changes).into_iter();
            let creations: Vec<&Change> = written
                .filter(|change| change.is_creation && !has_pair.contains(change))
                .collect();
            self.change_pairs(&creations, &mut results).await;
            self.state().pair_refused.extend(results.failed(&creations));
            let added = creations
                .into_iter()
                .filter(|change| results.has_failed(change) && !there.contains(change));
            is_certain &= self.take_back(extensions.mode, added.collect()).await;
        }
        // Its pair may be gone, and the Node may want it again.
        is_certain &= !deletions.iter().any(|change| results.has_failed(change));
        for change in there.iter().filter(|change| !results.has_failed(change)) {
            self.state()
                .incomplete
                .retain(|route| !is_same(route, &change.route));
        }
        if is_certain {
            self.state().is_certain = was_certain;
        }
        results.into_inner()
    }
}

impl Routes for RouteTable {
    fn list_routes<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        self.list().boxed()
    }

    fn change_routes<'a>(
        &'a self,
        _: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        self.change(changes).boxed()
    }

    /// Whoever has a port with the address.
    fn live<'a>(&'a self, routes: &'a [Route]) -> BoxFuture<'a, Result<Vec<bool>, CloudError>> {
        async move {
            let hops: BTreeSet<IpAddr> = routes.iter().filter_map(|route| route.next_hop).collect();
            let used = self.used(&hops).await?;
            let is_used = |route: &Route| route.next_hop.is_some_and(|hop| used.contains(&hop));
            Ok(routes.iter().map(is_used).collect())
        }
        .boxed()
    }

    /// The router takes one write at a time.
    fn calls_at_once(&self) -> usize {
        1
    }

    fn changes_per_call(&self) -> usize {
        CHANGES_PER_CALL
    }
}

/// A route as the controller knows it. One whose text is no range or no address cannot be one of a pod network.
fn route(listed: &RouterRoute) -> Option<Route> {
    Some(Route {
        name: change::name(listed),
        target_node: None,
        target_provider_id: None,
        next_hop: Some(listed.nexthop.parse().ok()?),
        target_addresses: Vec::new(),
        compares_addresses: false,
        destination: range(&listed.destination)?,
        is_blackhole: false,
        is_incomplete: false,
    })
}
