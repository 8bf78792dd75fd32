//! Servers as the instances of Nodes.
//!
//! Nova's own 404 to the server of a Node is the proof that it is gone. A miss in a listing is none, and neither is a name unless
//! `cloud.conf` says so.

use std::sync::Arc;

use bowline_cloud_provider::{
    AbsenceProof, CloudError, InstanceDirectory, InstanceIndex, InstanceMetadata, InstanceQuery,
    InstanceResult, InstanceState, Node, PowerState, Purpose, Sought,
};
use bowline_openstack_client::{Client, ServerId, ServerStatus};

use crate::config::NodeOptions;
use crate::messages::SERVER_STATES;
use crate::nodes::servers::{Depth, Described, Servers};
use crate::provider_id::{self, Reference};

/// What is told of a Node whose server is gone where no Node may be deleted for that.
const KEPT: &str = "instance not found: its server is gone, and the environment variable SKIP_NODE_DELETION keeps the node; \
                    delete it by hand, or unset the variable";

/// The servers of the project.
pub(crate) struct Instances {
    servers: Servers,
    region: String,
    /// Whether a name that no server has proves that the server of a Node without provider ID is gone.
    deletes_by_name: bool,
    /// Whether nothing does.
    keeps_nodes: bool,
}

impl Instances {
    pub(crate) fn new(client: &Client, options: &NodeOptions) -> Self {
        Self {
            servers: Servers::new(client, options),
            region: options.region.clone(),
            deletes_by_name: options.deletes_by_name,
            keeps_nodes: options.keeps_nodes,
        }
    }
}

impl InstanceDirectory for Instances {
    type Id = ServerId;
    type Item = Described;
    type Listing = InstanceIndex<ServerId, Described>;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<ServerId>, CloudError> {
        let Some(text) = query.node.provider_id.as_deref() else {
            return Ok(Sought::Name);
        };
        match provider_id::parse(text) {
            Reference::Server { region, .. } if !region.is_empty() && region != self.region => {
                let text = format!(
                    "ProviderID {text:?} didn't match supported region {:?}; correct region in [Global] of cloud.conf if the node's server is in the region of its ID; otherwise delete the Node, and its kubelet registers it again",
                    self.region
                );
                Err(self.unable(query, CloudError::invalid(text)))
            }
            Reference::Server { id, .. } => Ok(Sought::Id(id.into())),
            Reference::Foreign => Ok(Sought::Foreign),
            Reference::Unreadable => {
                let text = format!(
                    "ProviderID {text:?} didn't match expected format \"openstack://region/InstanceID\"; it cannot be changed: delete the Node, and its kubelet registers it again"
                );
                Err(self.unable(query, CloudError::invalid(text)))
            }
        }
    }

    async fn list(&self) -> Result<Arc<Self::Listing>, CloudError> {
        self.servers.all().await
    }

    async fn ask(&self, query: &InstanceQuery, id: &ServerId) -> InstanceResult {
        let depth = match query.purpose {
            Purpose::Metadata => Depth::Everything,
            Purpose::Existence | Purpose::CredentialCheck => Depth::Server,
        };
        let asked = self.servers.one(id, depth).await;
        let found = asked.map_err(|error| self.unable(query, error))?;
        if found.is_none() && self.keeps_nodes && query.purpose == Purpose::Existence {
            return Err(self.unable(query, CloudError::not_found(KEPT)));
        }
        let evidence = || format!("Nova answered 404 to server {id}");
        self.answer(query, found.as_ref().ok_or_else(evidence))
    }

    fn with_id<'a>(&self, listing: &'a Self::Listing, id: &ServerId) -> Option<&'a Described> {
        listing.with_id(id)
    }

    fn named<'a>(&self, listing: &'a Self::Listing, name: &str) -> Result<Vec<&'a Described>, CloudError> {
        Ok(listing.with_name(name))
    }

    fn names(&self, listing: &Self::Listing) -> Vec<String> {
        listing.names()
    }

    fn id_of(&self, server: &Described) -> String {
        server.id.to_string()
    }

    fn metadata(&self, _: &Node, server: &Described) -> Result<InstanceMetadata, CloudError> {
        server.metadata.clone()
    }

    fn power(&self, server: &Described) -> PowerState {
        match server.status {
            ServerStatus::Shutoff => PowerState::Off,
            _ => PowerState::On,
        }
    }

    fn state(&self, server: &Described) -> InstanceState {
        InstanceState::new(server.status.to_string(), "ACTIVE", SERVER_STATES)
    }

    fn not_found(&self, query: &InstanceQuery) -> CloudError {
        let text = match &query.node.provider_id {
            Some(_) => "instance not found",
            None => {
                "failed to find object: no server has the node's name. The node is kept. Its server must have the same \
                 name, in the project of the credentials"
            }
        };
        self.unable(query, CloudError::not_found(text))
    }

    /// An empty listing may be that of other credentials.
    fn absence_by_name(&self, query: &InstanceQuery, listing: &Self::Listing) -> Option<AbsenceProof> {
        let may_be = self.deletes_by_name && !self.keeps_nodes && !listing.is_empty();
        may_be.then(|| {
            AbsenceProof::new(format!(
                "node {} has no provider ID, and Nova lists servers of which none has its name \
                 (delete-nodes-without-provider-id in cloud.conf)",
                query.node.name
            ))
        })
    }

    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(format!("unable to find the server of node {}", query.node.name))
    }
}
