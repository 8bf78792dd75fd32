//! Servers as the machines of Nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, Instance, InstanceAnswer, InstanceMetadata, InstanceQuery,
    InstanceResult, InstancesV2, Node, NodeAddress, PowerState, Purpose, Selector,
};
use bowline_phoenixnap_client::{Server, ServerStatus};
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};

use crate::annotations::SERVER_ID;
use crate::observe::reads::{Known, Reads};
use crate::provider_id::{self, ProviderIdError};
use crate::servers::{Named, ServerIndex};

/// The servers of the account.
pub(crate) struct Servers {
    reads: Arc<Reads>,
    /// Nodes that get the annotation with their server's ID; none while load balancing is off.
    annotated: Option<Selector>,
    /// Provider IDs of other clouds that were told of.
    told: Mutex<BTreeSet<String>>,
}

/// What a question needs to be answered.
enum Need {
    /// Nothing: it is answered without a call.
    Answered(InstanceResult),
    /// The server with this ID.
    Id(String),
    /// The server with the Node's name.
    Name,
}

impl Servers {
    pub(crate) fn new(reads: Arc<Reads>, annotated: Option<Selector>) -> Self {
        Self {
            reads,
            annotated,
            told: Mutex::default(),
        }
    }

    async fn answer_all(&self, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
        let needs: Vec<Need> = queries.iter().map(|query| self.need(query)).collect();
        // One server is cheaper to ask for than all of them.
        if let [query] = queries
            && let [Need::Id(id)] = needs.as_slice()
            && query.purpose != Purpose::Sighting
        {
            return vec![self.by_id(query, id).await];
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

    fn need(&self, query: &InstanceQuery) -> Need {
        let node = &*query.node;
        match node.provider_id.as_deref().map(provider_id::parse) {
            Some(Ok(id)) => Need::Id(id.to_owned()),
            Some(Err(error @ ProviderIdError::Foreign(_))) => {
                let id = node.provider_id.as_deref().unwrap_or_default();
                let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
                if told.insert(id.to_owned()) {
                    tracing::error!(node = %node.name, err = %error, "The node is left alone");
                }
                Need::Answered(Ok(InstanceAnswer::Foreign))
            }
            Some(Err(error)) => Need::Answered(Err(CloudError::invalid(error.to_string()).context(of(node)))),
            // A name is too weak to delete or taint a Node on.
            None if query.purpose == Purpose::Existence => Need::Answered(Err(CloudError::other(
                ProviderIdError::Empty.to_string(),
            )
            .context(of(node)))),
            None if node.name.as_str().is_empty() => {
                Need::Answered(Err(CloudError::invalid("node name cannot be empty")))
            }
            None => Need::Name,
        }
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
            .map_err(|error| error.clone().context(of(node)))?;
        match need {
            Need::Id(id) => match listing.by_id(&id) {
                Some(server) => self.present(node, query.purpose, server),
                // A miss in a listing proves nothing.
                None if query.purpose == Purpose::Sighting => Err(not_found(node)),
                None => self.by_id(query, &id).await,
            },
            Need::Name | Need::Answered(_) => match listing.named(node.name.as_str()) {
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

    async fn by_id(&self, query: &InstanceQuery, id: &str) -> InstanceResult {
        let node = &*query.node;
        let known = self.reads.server(id).await;
        match known.map_err(|error| error.context(of(node)))? {
            Known::Server(server) => self.present(node, query.purpose, &server),
            Known::Gone(_) if query.purpose != Purpose::Existence => Err(not_found(node)),
            Known::Gone(evidence) => Ok(InstanceAnswer::Absent(AbsenceProof::new(evidence))),
        }
    }

    fn present(&self, node: &Node, purpose: Purpose, server: &Server) -> InstanceResult {
        let metadata = match self.metadata(node, server) {
            Ok(metadata) => metadata,
            // A machine without a usable address exists all the same.
            Err(_) if purpose != Purpose::Metadata => InstanceMetadata::default(),
            Err(error) => return Err(error.context(of(node))),
        };
        let power = if server.status == ServerStatus::PoweredOff {
            PowerState::Off
        } else {
            PowerState::On
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
        let hostname = NodeAddress::new(AddressType::Hostname, server.hostname.clone());
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
            addresses: std::iter::once(hostname)
                .chain(external)
                .chain(internal)
                .collect(),
            annotations,
            ..InstanceMetadata::default()
        })
    }
}

impl InstancesV2 for Servers {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        self.answer_all(queries).boxed()
    }
}

fn of(node: &Node) -> String {
    format!("server of node {}", node.name)
}

fn not_found(node: &Node) -> CloudError {
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
