//! Servers as the instances of Nodes.

use std::sync::Arc;

use bowline_cloud_provider::{
    AddressType, CloudError, InstanceDirectory, InstanceMetadata, InstanceQuery, InstanceResult,
    InstanceState, Node, NodeAddress, PowerState, Purpose, Sought,
};
use bowline_cloudscale_client::{InterfaceType, Server, ServerId, ServerStatus};

use crate::nodes::provider_id::ProviderIdError;
use crate::nodes::servers::{ServerIndex, ServerReads, region};

pub mod provider_id;
pub(crate) mod servers;

/// The servers of the project.
pub(crate) struct Servers {
    reads: Arc<ServerReads>,
}

impl Servers {
    pub(crate) fn new(reads: Arc<ServerReads>) -> Self {
        Self { reads }
    }
}

impl InstanceDirectory for Servers {
    type Id = ServerId;
    type Item = Server;
    type Listing = ServerIndex;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<ServerId>, CloudError> {
        let node = &*query.node;
        match node.provider_id.as_deref() {
            Some(text) => match provider_id::parse(text) {
                Ok(id) => Ok(Sought::Id(id)),
                Err(ProviderIdError::Foreign(_)) => Ok(Sought::Foreign),
                Err(error) => {
                    let text = format!("{text} is not a valid cloudscale provider id: {error}");
                    Err(self.unable(query, CloudError::invalid(text)))
                }
            },
            // A name is too weak to delete a Node on.
            None if query.purpose == Purpose::Existence => {
                Err(CloudError::other(format!("node {} has no ProviderID", node.name)))
            }
            None => Ok(Sought::Name),
        }
    }

    async fn list(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.reads.all().await
    }

    /// A 404 to this very server proves that it is gone.
    async fn ask(&self, query: &InstanceQuery, id: &ServerId) -> InstanceResult {
        let asked = self.reads.one(*id).await;
        let found = asked.map_err(|error| self.unable(query, error))?;
        if found.is_none() {
            // In the words of the Go manager.
            tracing::debug!(node = %query.node.name, server = %id, "instance does not exist");
        }
        let evidence = || format!("the API answered 404 to server {id}");
        self.answer(query, found.as_ref().ok_or_else(evidence))
    }

    fn with_id<'a>(&self, listing: &'a ServerIndex, id: &ServerId) -> Option<&'a Server> {
        listing.with_id(id)
    }

    fn named<'a>(&self, listing: &'a ServerIndex, name: &str) -> Result<Vec<&'a Server>, CloudError> {
        Ok(listing.with_name(name))
    }

    fn names(&self, listing: &ServerIndex) -> Vec<String> {
        listing.names()
    }

    fn id_of(&self, server: &Server) -> String {
        server.uuid.to_string()
    }

    fn metadata(&self, _: &Node, server: &Server) -> Result<InstanceMetadata, CloudError> {
        Ok(InstanceMetadata {
            provider_id: Some(provider_id::format(server.uuid)),
            instance_type: server.flavor.slug.to_string(),
            zone: server.zone.slug.to_string(),
            region: region(&server.zone.slug).to_owned(),
            addresses: addresses(server),
            ..InstanceMetadata::default()
        })
    }

    fn power(&self, server: &Server) -> PowerState {
        match server.status {
            ServerStatus::Stopped => PowerState::Off,
            _ => PowerState::On,
        }
    }

    fn state(&self, server: &Server) -> InstanceState {
        InstanceState::new(server.status.to_string(), "running", &[])
    }

    /// The API says of a path that it does not have what it says of a server, as where its address has one `/v1` too many.
    fn needs_listing(&self) -> bool {
        true
    }

    fn not_found(&self, query: &InstanceQuery) -> CloudError {
        let text = match &query.node.provider_id {
            Some(id) => format!("found none with the provider ID {id}, which the node has and cannot change"),
            None => "found none".to_owned(),
        };
        self.unable(query, CloudError::not_found(text))
    }

    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(format!("unable to find node {}", query.node.name))
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
