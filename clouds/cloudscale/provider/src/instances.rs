//! Servers as the machines of Nodes.

use std::sync::Arc;

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstancesV2, Node, NodeAddress, PowerState, Purpose,
};
use bowline_cloudscale_client::{InterfaceType, Server, ServerId, ServerStatus};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::observe::reads::Reads;
use crate::provider_id::{self, ProviderIdError};
use crate::servers::{Lookup, ServerIndex, region};

/// The servers of the project.
pub(crate) struct Servers {
    reads: Arc<Reads>,
}

/// What a question needs to be answered.
enum Need {
    /// Nothing: it is answered without a call.
    Answered(InstanceResult),
    /// The server with this id.
    Id(ServerId),
    /// The server with the Node's name.
    Name,
}

impl Servers {
    pub(crate) fn new(reads: Arc<Reads>) -> Self {
        Self { reads }
    }

    async fn answer_all(&self, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
        let needs: Vec<Need> = queries.iter().map(need).collect();
        // One server is cheaper to ask for than all of them, and its 404 is a proof.
        if let [query] = queries
            && let [Need::Id(id)] = needs.as_slice()
            && query.purpose != Purpose::Sighting
        {
            return vec![self.by_id(&query.node, query.purpose, *id).await];
        }
        let listing = if needs.iter().any(|need| !matches!(need, Need::Answered(_))) {
            self.reads.servers().await
        } else {
            Ok(Arc::default())
        };
        join_all(
            queries
                .iter()
                .zip(needs)
                .map(|(query, need)| self.answer(query, need, &listing)),
        )
        .await
    }

    async fn answer(
        &self,
        query: &InstanceQuery,
        need: Need,
        listing: &Result<Arc<ServerIndex>, CloudError>,
    ) -> InstanceResult {
        let node = &*query.node;
        if let Need::Answered(answer) = need {
            return answer;
        }
        let listing = listing
            .as_ref()
            .map_err(|error| unable_to_find(node, error.clone()))?;
        match listing.find(node) {
            Lookup::Server(server) => Ok(present(server)),
            // Proof is the API's 404 to this very server, never a miss in a listing.
            Lookup::NoSuchId(id) if query.purpose == Purpose::Existence => {
                self.by_id(node, query.purpose, id).await
            }
            Lookup::NoSuchId(_) | Lookup::NoSuchName => Err(found_none(node)),
            Lookup::Ambiguous => Err(unable_to_find(node, CloudError::other("found more than one"))),
            Lookup::BadId(error) => Err(bad_id(node, &error)),
        }
    }

    async fn by_id(&self, node: &Node, purpose: Purpose, id: ServerId) -> InstanceResult {
        match self
            .reads
            .server(id)
            .await
            .map_err(|error| unable_to_find(node, error))?
        {
            Some(server) => Ok(present(&server)),
            None if purpose == Purpose::Existence => {
                tracing::debug!(node = %node.name, server = %id, "instance does not exist");
                Ok(InstanceAnswer::Absent(AbsenceProof::new(format!(
                    "the API answered 404 to server {id}"
                ))))
            }
            None => Err(found_none(node)),
        }
    }
}

impl InstancesV2 for Servers {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        self.answer_all(queries).boxed()
    }
}

fn need(query: &InstanceQuery) -> Need {
    let node = &*query.node;
    match node.provider_id.as_deref().map(provider_id::parse) {
        Some(Ok(id)) => Need::Id(id),
        Some(Err(ProviderIdError::Foreign(_))) => Need::Answered(Ok(InstanceAnswer::Foreign)),
        Some(Err(error)) => Need::Answered(Err(bad_id(node, &error))),
        // A name is too weak to delete a Node on.
        None if query.purpose == Purpose::Existence => Need::Answered(Err(CloudError::other(format!(
            "node {} has no ProviderID",
            node.name
        )))),
        None => Need::Name,
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
