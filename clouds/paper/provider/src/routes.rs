//! Routes to the pod networks of Nodes.

use std::net::IpAddr;
use std::sync::Arc;

use bowline_cloud_http::{Class, Classified};
use bowline_cloud_provider::{AddressType, CloudError, NodeAddress, NodeName, Route, RouteChange, Routes};
use bowline_paper_client::{Client, Machine, NewRoute, Route as PaperRoute, RouteId};
use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, TryFutureExt, try_join};

use crate::instances::node_addresses;
use crate::observe::{Machines, Reads};
use crate::provider_id;

/// The route table of the project.
pub(crate) struct RouteTable {
    pub(crate) client: Client,
    pub(crate) reads: Arc<Reads>,
    /// Whether routes name the addresses of their machine, so that they follow a Node whose addresses change.
    pub(crate) by_address: bool,
}

impl Routes for RouteTable {
    // guide: list
    fn list_routes<'a>(&'a self, cluster: &'a str) -> BoxFuture<'a, Result<Vec<Route>, CloudError>> {
        async move {
            let routes = self.client.routes().map_err(CloudError::from);
            let (routes, machines) = try_join!(routes, self.reads.machines())?;
            // The controller deletes what is listed here and not wanted, so what does not bear our mark is not listed.
            let own = routes
                .iter()
                .filter(|route| route.cluster.as_deref() == Some(cluster));
            own.map(|route| self.route(route, &machines)).collect()
        }
        .boxed()
    }
    // guide: end

    // guide: change
    fn change_routes<'a>(
        &'a self,
        cluster: &'a str,
        changes: &'a [RouteChange],
    ) -> BoxFuture<'a, Vec<Result<(), CloudError>>> {
        // The API takes a route at a time, so one call brings one change unless `changes_per_call` says otherwise.
        let results = changes.iter().map(|change| self.change(cluster, change));
        join_all(results).boxed()
    }
    // guide: end
}

impl RouteTable {
    async fn change(&self, cluster: &str, change: &RouteChange) -> Result<(), CloudError> {
        match change {
            RouteChange::Create { name_hint, route } => self.create(cluster, name_hint, route).await,
            RouteChange::Delete(route) => {
                let id = RouteId::from(route.name.as_str());
                self.client.delete_route(&id).await.map_err(CloudError::of_write)
            }
        }
    }

    // guide: create
    async fn create(&self, cluster: &str, name_hint: &str, route: &Route) -> Result<(), CloudError> {
        let machines = self.reads.machines().await?;
        let machine = target(route, &machines)?;
        let new = NewRoute {
            destination: route.destination,
            machine: machine.id.clone(),
            cluster: cluster.to_owned(),
            description: name_hint.to_owned(),
            via: if self.by_address {
                ips(&route.target_addresses)
            } else {
                Vec::new()
            },
        };
        match self.client.create_route(&new).await {
            Ok(_) => Ok(()),
            // It may be ours, made by a call whose answer was lost: then all is well.
            Err(error) if error.class() == Class::Conflict && self.is_there(&new).await? => Ok(()),
            Err(error) => Err(CloudError::of_write(error)),
        }
    }
    // guide: end

    fn route(&self, route: &PaperRoute, machines: &Machines) -> Result<Route, CloudError> {
        // The cloud names no machine that is gone, so one that the other listing lacks means that a listing is not whole.
        let unknown = |id| CloudError::transient(format!("machine {id} of route {} is not listed", route.id));
        let machine = route
            .machine
            .as_ref()
            .map(|id| machines.with_id(id).ok_or_else(|| unknown(id)));
        let machine = machine.transpose()?;
        Ok(Route {
            name: route.id.to_string(),
            target_node: machine.map(|machine| NodeName::new(machine.name.as_str())),
            target_provider_id: machine.map(|machine| provider_id::format(&machine.id).into()),
            // The cloud knows the machine behind each route.
            next_hop: None,
            target_addresses: machine.map(|machine| used(route, machine)).unwrap_or_default(),
            compares_addresses: self.by_address,
            destination: route.destination,
            is_blackhole: route.blackhole,
            is_incomplete: false,
        })
    }

    async fn is_there(&self, new: &NewRoute) -> Result<bool, CloudError> {
        let routes = self.client.routes().await?;
        let of = |route: &PaperRoute| (route.destination, route.machine.clone(), route.cluster.clone());
        let wanted = (
            new.destination,
            Some(new.machine.clone()),
            Some(new.cluster.clone()),
        );
        Ok(routes.iter().any(|route| of(route) == wanted))
    }
}

// guide: target
/// The machine that a wanted route leads to. Its name may be another one than the Node's.
fn target<'a>(route: &Route, machines: &'a Machines) -> Result<&'a Machine, CloudError> {
    let name = route.target_node.as_ref().map_or("", NodeName::as_str);
    let found = match route.target_provider_id.as_deref().map(provider_id::parse) {
        Some(Ok(id)) => machines.with_id(&id),
        Some(Err(error)) => return Err(CloudError::invalid(error.to_string())),
        // No two machines of a project share a name.
        None => machines.with_name(name).first().copied(),
    };
    found.ok_or_else(|| CloudError::not_found(format!("there is no machine of node {name}")))
}
// guide: end

/// The addresses that a route uses, in the words of a Node: those that its machine had when it was made.
fn used(route: &PaperRoute, machine: &Machine) -> Vec<NodeAddress> {
    let private = route.via.iter().filter(|ip| !machine.public.contains(ip));
    let public = route.via.iter().filter(|ip| machine.public.contains(ip));
    node_addresses(&machine.name, private, public)
}

fn ips(addresses: &[NodeAddress]) -> Vec<IpAddr> {
    let is_ip =
        |address: &&NodeAddress| matches!(address.kind, AddressType::InternalIp | AddressType::ExternalIp);
    addresses
        .iter()
        .filter(is_ip)
        .filter_map(|address| address.address.parse().ok())
        .collect()
}
