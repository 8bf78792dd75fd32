//! Servers as the instances of Nodes.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::{
    ANSWER_LOG, AddressType, CloudError, DATA_LOG, ErrorKind, InstanceDirectory, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, Node, NodeAddress, NodeName, PowerState, Purpose,
    Readiness, Sought, lock,
};
use bowline_phoenixnap_client::{Client, Server, ServerStatus};

use crate::messages::SERVER_STATES;
use crate::nodes::provider_id::ProviderIdError;
use crate::nodes::servers::{Reads, ServerIndex};

pub mod provider_id;
mod servers;

/// What to do about a server without a private address.
const ADD_TO_NETWORK: &str = "whoever owns the project adds the server to a private network";

/// The servers of the account.
pub(crate) struct Servers {
    reads: Reads,
    reserved_is_shut_down: bool,
    /// Nodes of other clouds that were told of, as long as they are not ready.
    told: Mutex<BTreeSet<NodeName>>,
}

impl Servers {
    pub(crate) fn new(client: &Client, reserved_is_shut_down: bool) -> Self {
        Self {
            reads: Reads::new(client),
            reserved_is_shut_down,
            told: Mutex::default(),
        }
    }
}

impl InstanceDirectory for Servers {
    type Id = String;
    type Item = Server;
    type Listing = ServerIndex;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<String>, CloudError> {
        let node = &*query.node;
        match node.provider_id.as_deref().map(provider_id::parse) {
            Some(Ok(id)) => Ok(Sought::Id(id.to_owned())),
            Some(Err(error @ ProviderIdError::Foreign(_))) => {
                let mut told = lock(&self.told);
                // Of one with the taint the node controller tells.
                let is_lost = query.purpose == Purpose::Existence && !node.is_uninitialized();
                if node.readiness == Readiness::Ready {
                    told.remove(&node.name);
                } else if is_lost && told.insert(node.name.clone()) {
                    tracing::info!(node = %node.name, err = %error, "The node is left alone");
                }
                Ok(Sought::Foreign)
            }
            Some(Err(error)) => Err(self.unable(query, CloudError::invalid(error.to_string()))),
            // A name is too weak to delete or taint a Node on.
            None if query.purpose == Purpose::Existence => {
                Err(self.unable(query, CloudError::other(ProviderIdError::Empty.to_string())))
            }
            None if node.name.as_str().is_empty() => Err(CloudError::invalid("node name cannot be empty")),
            None => Ok(Sought::Name),
        }
    }

    async fn list(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.reads.all().await
    }

    async fn ask(&self, query: &InstanceQuery, id: &String) -> InstanceResult {
        let asked = self.reads.one(id).await;
        let found = asked.map_err(|error| self.unable(query, error))?;
        if let Err(evidence) = &found {
            tracing::debug!(target: ANSWER_LOG, node = %query.node.name, evidence, "Server of a node is gone");
        }
        self.answer(query, found.as_ref().map_err(Clone::clone))
    }

    fn with_id<'a>(&self, listing: &'a ServerIndex, id: &String) -> Option<&'a Server> {
        listing.with_id(id)
    }

    fn named<'a>(&self, listing: &'a ServerIndex, name: &str) -> Result<Vec<&'a Server>, CloudError> {
        // Its ID or its state is not known, so neither it nor a namesake can be taken.
        if listing.has_odd_named(name) {
            let text = "the list has a server of this hostname that cannot be read";
            return Err(CloudError::other(text));
        }
        Ok(listing.with_name(name))
    }

    fn names(&self, listing: &ServerIndex) -> Vec<String> {
        listing.names()
    }

    fn id_of(&self, server: &Server) -> String {
        server.id.clone()
    }

    fn metadata(&self, node: &Node, server: &Server) -> Result<InstanceMetadata, CloudError> {
        tracing::debug!(
            target: ANSWER_LOG,
            node = %node.name,
            server = server.id,
            hostname = server.hostname,
            status = ?server.status,
            "Server of a node"
        );
        tracing::debug!(target: DATA_LOG, node = %node.name, server = ?server, "Server of a node, whole");
        let internal = addresses(server, AddressType::InternalIp, &server.private_ip_addresses);
        if internal.is_empty() {
            let text = format!("server {} has no private IP address; {ADD_TO_NETWORK}", server.id);
            return Err(CloudError::other(text)
                .with_remedy(ADD_TO_NETWORK)
                .context(of(node)));
        }
        let hostname = Some(server.hostname.clone()).filter(|name| !name.is_empty());
        let hostname = hostname.map(|name| NodeAddress::new(AddressType::Hostname, name));
        let external = addresses(server, AddressType::ExternalIp, &server.public_ip_addresses);
        Ok(InstanceMetadata {
            provider_id: Some(provider_id::format(&server.id)),
            instance_type: server.kind.clone(),
            // A location is a region, and there is nothing below it.
            zone: String::new(),
            region: server.location.clone(),
            addresses: hostname.into_iter().chain(external).chain(internal).collect(),
            ..InstanceMetadata::default()
        })
    }

    fn power(&self, server: &Server) -> PowerState {
        match server.status {
            ServerStatus::PoweredOff => PowerState::Off,
            ServerStatus::Reserved if self.reserved_is_shut_down => PowerState::Off,
            _ => PowerState::On,
        }
    }

    fn state(&self, server: &Server) -> InstanceState {
        InstanceState::new(server.status.as_str(), "powered-on", SERVER_STATES)
    }

    fn not_found(&self, query: &InstanceQuery) -> CloudError {
        tracing::debug!(target: ANSWER_LOG, node = %query.node.name, "No server of a node");
        self.unable(query, CloudError::not_found("instance not found"))
    }

    fn unable(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(of(&query.node))
    }

    /// For metadata as well: a server that the list lacks may be there all the same.
    fn is_asked_for(&self, purpose: Purpose) -> bool {
        purpose != Purpose::CredentialCheck
    }

    /// The API answered that it failed at the list, which is of the whole account. What does not answer at all, refuses the
    /// credentials or asks for patience does so to every call.
    fn outlives_listing(&self, error: &CloudError) -> bool {
        error.kind() == ErrorKind::Other
    }
}

fn of(node: &Node) -> String {
    format!("server of node {}", node.name)
}

fn addresses(server: &Server, kind: AddressType, texts: &[String]) -> Vec<NodeAddress> {
    texts
        .iter()
        .filter(|text| {
            let is_address = text.parse::<IpAddr>().is_ok();
            if !is_address {
                tracing::warn!(
                    server = server.id,
                    address = text.as_str(),
                    "Not an IP address, left out"
                );
            }
            is_address
        })
        .map(|text| NodeAddress::new(kind.clone(), text.clone()))
        .collect()
}
