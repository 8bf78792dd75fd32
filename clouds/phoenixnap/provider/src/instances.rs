//! Servers as the machines of Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_cloud_provider::{
    ANSWER_LOG, AbsenceProof, AddressType, CloudError, DATA_LOG, ErrorKind, Instance, InstanceAnswer,
    InstanceMetadata, InstanceQuery, InstanceResult, InstancesV2, MachineDirectory, Node, NodeAddress,
    PowerState, Purpose, Selector, Sought, answer_all,
};
use bowline_phoenixnap_client::{Server, ServerStatus};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::annotations::SERVER_ID;
use crate::observe::reads::{Known, Reads};
use crate::provider_id::{self, ProviderIdError};
use crate::servers::{Named, ServerIndex};

/// The servers of the account.
pub(crate) struct Servers {
    reads: Arc<Reads>,
    /// Nodes that get the annotation with their server's ID; none while load balancing is off.
    annotated: Option<Selector>,
    reserved_is_shut_down: bool,
    /// Provider IDs of other clouds that were told of.
    told: Mutex<BTreeSet<String>>,
}

impl Servers {
    pub(crate) fn new(reads: Arc<Reads>, annotated: Option<Selector>, reserved_is_shut_down: bool) -> Self {
        Self {
            reads,
            annotated,
            reserved_is_shut_down,
            told: Mutex::default(),
        }
    }

    fn present(&self, node: &Node, purpose: Purpose, server: &Server) -> InstanceResult {
        tracing::debug!(
            target: ANSWER_LOG,
            node = %node.name,
            server = server.id,
            hostname = server.hostname,
            status = ?server.status,
            "Server of a node"
        );
        tracing::debug!(target: DATA_LOG, node = %node.name, server = ?server, "Server of a node, whole");
        let metadata = match self.metadata(node, server) {
            Ok(metadata) => metadata,
            // A machine without a usable address exists all the same.
            Err(_) if purpose != Purpose::Metadata => InstanceMetadata::default(),
            Err(error) => return Err(error.context(of(node))),
        };
        let power = match server.status {
            ServerStatus::PoweredOff => PowerState::Off,
            ServerStatus::Reserved if self.reserved_is_shut_down => PowerState::Off,
            _ => PowerState::On,
        };
        Ok(InstanceAnswer::Present(Box::new(Instance { metadata, power })))
    }

    fn metadata(&self, node: &Node, server: &Server) -> Result<InstanceMetadata, CloudError> {
        let internal = addresses(server, AddressType::InternalIp, &server.private_ip_addresses);
        if internal.is_empty() {
            return Err(CloudError::other(format!(
                "server {} has no private IP address",
                server.id
            )));
        }
        let hostname = Some(server.hostname.clone()).filter(|name| !name.is_empty());
        let hostname = hostname.map(|name| NodeAddress::new(AddressType::Hostname, name));
        let external = addresses(server, AddressType::ExternalIp, &server.public_ip_addresses);
        let is_annotated = self
            .annotated
            .as_ref()
            .is_some_and(|selector| selector.matches(&node.labels));
        let annotations: BTreeMap<String, String> = is_annotated
            .then(|| (SERVER_ID.key.to_owned(), server.id.clone()))
            .into_iter()
            .collect();
        // A bare ID names the server as well, and the ID of a Node is never changed.
        let own = node.provider_id.as_deref();
        let own = own.filter(|text| provider_id::parse(text).is_ok_and(|id| id == server.id));
        Ok(InstanceMetadata {
            provider_id: Some(own.map_or_else(|| provider_id::format(&server.id), str::to_owned)),
            instance_type: server.kind.clone(),
            // A location is a region, and there is nothing below it.
            zone: String::new(),
            region: server.location.clone(),
            addresses: hostname.into_iter().chain(external).chain(internal).collect(),
            annotations,
            ..InstanceMetadata::default()
        })
    }
}

impl MachineDirectory for Servers {
    type Id = String;
    type Listing = ServerIndex;

    fn sought(&self, query: &InstanceQuery) -> Result<Sought<String>, InstanceResult> {
        let node = &*query.node;
        match node.provider_id.as_deref().map(provider_id::parse) {
            Some(Ok(id)) => Ok(Sought::Id(id.to_owned())),
            Some(Err(error @ ProviderIdError::Foreign(_))) => {
                let id = node.provider_id.as_deref().unwrap_or_default();
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.insert(id.to_owned()) {
                    tracing::error!(node = %node.name, err = %error, "The node is left alone");
                }
                Err(Ok(InstanceAnswer::Foreign))
            }
            Some(Err(error)) => Err(Err(CloudError::invalid(error.to_string()).context(of(node)))),
            // A name is too weak to delete or taint a Node on.
            None if query.purpose == Purpose::Existence => Err(Err(CloudError::other(
                ProviderIdError::Empty.to_string(),
            )
            .context(of(node)))),
            None if node.name.as_str().is_empty() => {
                Err(Err(CloudError::invalid("node name cannot be empty")))
            }
            None => Ok(Sought::Name),
        }
    }

    async fn ask(&self, query: &InstanceQuery, id: &String) -> InstanceResult {
        let node = &*query.node;
        let known = self.reads.server(id).await;
        match known.map_err(|error| error.context(of(node)))? {
            Known::Server(server) => self.present(node, query.purpose, &server),
            Known::Gone(_) if query.purpose != Purpose::Existence => Err(not_found(node)),
            Known::Gone(evidence) => {
                tracing::debug!(target: ANSWER_LOG, node = %node.name, evidence, "Server of a node is gone");
                Ok(InstanceAnswer::Absent(AbsenceProof::new(evidence)))
            }
        }
    }

    async fn list(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.reads.servers().await
    }

    async fn look_up(
        &self,
        query: &InstanceQuery,
        sought: &Sought<String>,
        listing: &ServerIndex,
    ) -> InstanceResult {
        let node = &*query.node;
        match sought {
            Sought::Id(id) => match listing.by_id(id) {
                Some(server) => self.present(node, query.purpose, server),
                // A miss in a listing proves nothing.
                None if query.purpose == Purpose::Sighting => Err(not_found(node)),
                None => self.ask(query, id).await,
            },
            // Its ID or its state is not known, so neither it nor a namesake can be taken.
            Sought::Name if listing.has_odd_named(node.name.as_str()) => {
                let text = "the list has a server of this hostname that cannot be read";
                Err(CloudError::other(text).context(of(node)))
            }
            Sought::Name => match listing.named(node.name.as_str()) {
                Named::Server(server) => self.present(node, query.purpose, server),
                Named::Nobody => Err(not_found(node)),
                Named::Several(ids) => Err(CloudError::other(format!(
                    "several servers have this hostname: {}; rename all but one",
                    ids.join(", ")
                ))
                .context(of(node))),
            },
        }
    }

    /// The API answered that it failed at the list, which is of the whole account. What does not answer at all, refuses the
    /// credentials or asks for patience does so to every call.
    fn outlives_listing(&self, error: &CloudError) -> bool {
        error.kind() == ErrorKind::Other
    }

    fn unlisted(&self, query: &InstanceQuery, error: CloudError) -> CloudError {
        error.context(of(&query.node))
    }
}

impl InstancesV2 for Servers {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        answer_all(self, queries).boxed()
    }
}

fn of(node: &Node) -> String {
    format!("server of node {}", node.name)
}

fn not_found(node: &Node) -> CloudError {
    tracing::debug!(target: ANSWER_LOG, node = %node.name, "No server of a node");
    CloudError::not_found("instance not found").context(of(node))
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
