//! The servers of the project, found by id or by name, and how they are read.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex, Node, NodeName};
use bowline_cloudscale_client::{Client, Server, ServerId};

use crate::nodes::provider_id::{self, ProviderIdError};

/// One listing of the project's servers.
pub(crate) type ServerIndex = InstanceIndex<ServerId, Server>;

/// Why a listing does not tell a node's server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoServer {
    #[error("server {0} is gone")]
    WithId(ServerId),
    #[error("no server is named {0}")]
    Named(NodeName),
    #[error("found more than one server of this name")]
    Several,
    #[error(transparent)]
    BadId(#[from] ProviderIdError),
}

pub(crate) fn index(servers: Vec<Server>) -> ServerIndex {
    ServerIndex::new(servers, |server| server.uuid, |server| server.name.clone())
}

/// A node's server: by provider ID if it has one, whatever its name, else by name.
pub(crate) fn find<'a>(servers: &'a ServerIndex, node: &Node) -> Result<&'a Server, NoServer> {
    if let Some(text) = &node.provider_id {
        let id = provider_id::parse(text)?;
        return servers.with_id(&id).ok_or(NoServer::WithId(id));
    }
    match servers.with_name(node.name.as_str())[..] {
        [] => Err(NoServer::Named(node.name.clone())),
        [server] => Ok(server),
        _ => Err(NoServer::Several),
    }
}

/// The id of a node's server if neither the listing has it nor its absence was proved.
pub(crate) fn unproven(servers: &ServerIndex, node: &Node, absent: &[ServerId]) -> Option<ServerId> {
    match find(servers, node) {
        Err(NoServer::WithId(id)) if !absent.contains(&id) => Some(id),
        _ => None,
    }
}

/// The region of a zone: its slug without the digits at the end.
pub(crate) fn region(zone: &str) -> &str {
    zone.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Reads servers. What several ask for at the same time is read once.
pub(crate) struct ServerReads {
    client: Client,
    shared: SharedRead<Result<Arc<ServerIndex>, CloudError>>,
}

impl ServerReads {
    pub(crate) fn new(client: &Client) -> Self {
        let shared = SharedRead::listing(Duration::ZERO, client, |client| async move {
            Ok(Arc::new(index(client.servers().await?)))
        });
        let client = client.clone();
        Self { client, shared }
    }

    /// All servers of the project.
    pub(crate) async fn all(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.shared.ask().await
    }

    /// One server; none if the API says that there is no such one.
    pub(crate) async fn one(&self, id: ServerId) -> Result<Option<Server>, CloudError> {
        match self.client.server(id).await {
            Ok(server) => Ok(Some(server)),
            Err(error) if error.proves_absence() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
