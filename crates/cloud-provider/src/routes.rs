//! Routes to pod networks.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use ipnet::IpNet;

use crate::{CloudError, Node, NodeAddress, NodeName};

/// The route table of a cloud.
pub trait Routes: Send + Sync + 'static {
    /// All routes of this cluster, following every page. A route that is there only in part may be left out: it is created
    /// again, which completes it.
    ///
    /// # Errors
    ///
    /// A listing that is not complete is an error: routes are created and deleted on its word.
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>>;

    /// Makes these changes, at most [`changes_per_call`](Self::changes_per_call), and none that creates a route beside one that
    /// deletes another to the same destination. Answers what came of each, in their order: that one fails says nothing
    /// about the others.
    ///
    /// # Errors
    ///
    /// A change that failed is tried again by the controller. To create a route that is there, and to delete one that is
    /// not, is a success.
    fn change_routes<'a>(
        &'a self,
        cluster: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>>;

    /// Which of these routes lead to something that lives, such as an instance, or a port that has the address. It is asked before a
    /// route is deleted whose Node is not known and whose network no Node had while this process watched: a copy of the API server's
    /// data lacks the Nodes that joined the original later, and their routes are not to go.
    ///
    /// # Errors
    ///
    /// It cannot be told. The routes are kept.
    fn live<'a>(&'a self, routes: &'a [Route]) -> BoxFuture<'a, Result<Vec<bool>, CloudError>> {
        let is_live = |route: &Route| {
            let has_target = route.target_node.is_some() || route.target_provider_id.is_some();
            has_target && !route.is_blackhole
        };
        Box::pin(std::future::ready(Ok(routes.iter().map(is_live).collect())))
    }

    /// Whether the cloud makes routes to this Node. The Nodes of another cloud in the same process have none here.
    fn leads_to(&self, node: &Node) -> bool {
        let _ = node;
        true
    }

    /// How many calls of [`change_routes`](Self::change_routes) may be under way at once. A cloud that makes routes slowly, and
    /// side by side, may want more than the default of 10; one that takes a write at a time wants 1.
    fn calls_at_once(&self) -> usize {
        10
    }

    /// How many changes one call may bring. A cloud that writes many routes with one request wants more than the default
    /// of 1: what waits for a call to end then goes together with the next one.
    fn changes_per_call(&self) -> usize {
        1
    }
}

/// A change of the route table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RouteChange {
    /// This route is to be there.
    Create {
        /// The UID of the Node, for a name or a description. With dual stack the same hint comes once per pod network.
        name_hint: Arc<str>,
        /// The route.
        route: Route,
    },
    /// This route, as it was listed, is not to be there. It [is a blackhole](Route::is_blackhole) also if it leads to an
    /// address that no Node has.
    Delete(Route),
}

/// One route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The cloud's name for it; empty in a route that is to be created.
    pub name: String,
    /// The Node it leads to; `None` if the cloud does not know one. In what a cloud lists it may be the name of the instance,
    /// which counts as the Node's where [`target_provider_id`](Self::target_provider_id) is no Node's.
    pub target_node: Option<NodeName>,
    /// The provider ID of the Node it leads to, if the Node has one: how a cloud finds the instance whose name is not the
    /// Node's. In what a cloud lists it goes before the name, and may be left out where the names are the same.
    pub target_provider_id: Option<Arc<str>>,
    /// Where it leads, if the cloud knows an address and no instance. In what a cloud lists it makes the route one to the Node
    /// that has the address, and a blackhole if no Node has it.
    pub next_hop: Option<IpAddr>,
    /// The Node's addresses.
    pub target_addresses: Vec<NodeAddress>,
    /// Set by the cloud in what it lists: the addresses count in a comparison.
    pub compares_addresses: bool,
    /// The destination as the cloud writes it.
    pub destination: IpNet,
    /// No live target: may be deleted if it lies in the managed range.
    pub is_blackhole: bool,
    /// Set by the cloud in what it lists: something that belongs to the route is missing, so that traffic may not pass. It is created
    /// once more where it is wanted, and deleted like any other where it is not.
    pub is_incomplete: bool,
}
