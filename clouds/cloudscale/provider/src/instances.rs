//! Servers as the machines of Nodes.

use std::sync::Arc;

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstancesV2, MachineDirectory, Node, NodeAddress, PowerState, Purpose, Sought,
    answer_all,
};
use bowline_cloudscale_client::{InterfaceType, Server, ServerId, ServerStatus};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::observe::reads::Reads;
use crate::provider_id::{self, ProviderIdError};
use crate::servers::{Lookup, ServerIndex, region};

/// The servers of the project.
pub(crate) struct Servers {
    reads: Arc<Reads>,
}

impl Servers {
    pub(crate) fn new(reads: Arc<Reads>) -> Self {
        Self { reads }
    }
}

impl MachineDirectory for Servers {
    type Id = ServerId;
    type Listing = ServerIndex;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<ServerId>, InstanceResult> {
        let node = &*query.node;
        match node.provider_id.as_deref().map(provider_id::parse) {
            Some(Ok(id)) => Ok(Sought::Id(id)),
            Some(Err(ProviderIdError::Foreign(_))) => Err(Ok(InstanceAnswer::Foreign)),
            Some(Err(error)) => Err(Err(bad_id(node, &error))),
            // A name is too weak to delete a Node on.
            None if query.purpose == Purpose::Existence => Err(Err(CloudError::other(format!(
                "node {} has no ProviderID",
                node.name
            )))),
            None => Ok(Sought::Name),
        }
    }

    /// A 404 to this very server proves that it is gone.
    async fn ask(&self, query: &InstanceQuery, id: &ServerId) -> InstanceResult {
        let node = &*query.node;
        match self
            .reads
            .server(*id)
            .await
            .map_err(|error| unable_to_find(node, error))?
        {
            Some(server) => Ok(present(&server)),
            None if query.purpose == Purpose::Existence => {
                tracing::debug!(node = %node.name, server = %id, "instance does not exist");
                Ok(InstanceAnswer::Absent(AbsenceProof::new(format!(
                    "the API answered 404 to server {id}"
                ))))
            }
            None => Err(found_none(node)),
        }
    }

    async fn list(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.reads.servers().await
    }

    async fn look_up(
        &self,
        query: &InstanceQuery,
        _: &Sought<ServerId>,
        listing: &ServerIndex,
    ) -> InstanceResult {
        let node = &*query.node;
        match listing.find(node) {
            Lookup::Server(server) => Ok(present(server)),
            Lookup::NoSuchId(id) if query.purpose == Purpose::Existence => self.ask(query, &id).await,
            Lookup::NoSuchId(_) | Lookup::NoSuchName => Err(found_none(node)),
            Lookup::Ambiguous => Err(unable_to_find(node, CloudError::other("found more than one"))),
            Lookup::BadId(error) => Err(bad_id(node, &error)),
        }
    }

    fn unlisted(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        unable_to_find(&query.node, error)
    }
}

impl InstancesV2 for Servers {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        answer_all(self, queries).boxed()
    }
}

fn bad_id(node: &Node, error: &ProviderIdError) -> CloudError {
    let id = node.provider_id.as_deref().unwrap_or_default();
    unable_to_find(
        node,
        CloudError::invalid(format!("{id} is not a valid cloudscale provider id: {error}")),
    )
}

fn unable_to_find(node: &Node, error: CloudError) -> CloudError {
    error.context(format!("unable to find node {}", node.name))
}

fn found_none(node: &Node) -> CloudError {
    unable_to_find(node, CloudError::not_found("found none"))
}

fn present(server: &Server) -> InstanceAnswer {
    let power = if server.status == ServerStatus::Stopped {
        PowerState::Off
    } else {
        PowerState::On
    };
    InstanceAnswer::Present(Box::new(Instance {
        metadata: metadata(server),
        power,
    }))
}

fn metadata(server: &Server) -> InstanceMetadata {
    InstanceMetadata {
        provider_id: Some(provider_id::format(server.uuid)),
        instance_type: server.flavor.slug.clone(),
        zone: server.zone.slug.clone(),
        region: region(&server.zone.slug).to_owned(),
        addresses: addresses(server),
        ..InstanceMetadata::default()
    }
}

/// The host name, then every address in the API's order: what is not public is internal.
fn addresses(server: &Server) -> Vec<NodeAddress> {
    let hostname = NodeAddress::new(AddressType::Hostname, server.name.clone());
    let of_interfaces = server.interfaces.iter().flat_map(|interface| {
        let kind = if interface.kind == InterfaceType::Public {
            AddressType::ExternalIp
        } else {
            AddressType::InternalIp
        };
        interface
            .addresses
            .iter()
            .map(move |address| NodeAddress::new(kind.clone(), address.address.clone()))
    });
    std::iter::once(hostname).chain(of_interfaces).collect()
}
