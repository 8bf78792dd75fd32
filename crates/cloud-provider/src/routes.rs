//! Routes to pod networks.

use std::sync::Arc;

use futures::future::BoxFuture;
use ipnet::IpNet;

use crate::{CloudError, NodeAddress, NodeName};

/// The route table of a cloud.
pub trait Routes: Send + Sync + 'static {
    /// All routes of this cluster, following every page.
    ///
    /// # Errors
    ///
    /// A listing that is not complete is an error: routes are created and deleted on its word.
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>>;

    /// Creates a route. `name_hint` is the Node's UID; with dual stack the same hint comes once per CIDR.
    ///
    /// # Errors
    ///
    /// The call is tried again by the controller. Creating a route that is already there is a success.
    fn create_route<'a>(
        &'a self,
        cluster: &'a str,
        name_hint: &'a str,
        route: &'a Route,
    ) -> BoxFuture<'a, Result<(), CloudError>>;

    /// Deletes a route as it was listed.
    ///
    /// # Errors
    ///
    /// The call is tried again by the controller. Deleting a route that is not there is a success.
    fn delete_route<'a>(
        &'a self,
        cluster: &'a str,
        route: &'a Route,
    ) -> BoxFuture<'a, Result<(), CloudError>>;

    /// How many of these calls may be under way at once. A cloud that makes routes slowly, and side by side, may want more
    /// than the default of 10; one that takes a write at a time wants 1.
    fn calls_at_once(&self) -> usize {
        10
    }
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
    /// The Node's addresses.
    pub target_addresses: Vec<NodeAddress>,
    /// Set by the cloud in what it lists: the addresses count in a comparison.
    pub compares_addresses: bool,
    /// The destination as the cloud writes it.
    pub destination: IpNet,
    /// No live target: may be deleted if it lies in the managed range.
    pub is_blackhole: bool,
}
