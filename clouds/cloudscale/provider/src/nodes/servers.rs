//! The servers of the project, found by id or by name, and how they are read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex, Node, NodeName, lock};
use bowline_cloudscale_client::{Client, Server, ServerId};
use futures::future::try_join_all;
use tokio::time::Instant;

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

/// How long a proof of absence spares another one to the Services that look. A list that has the server ends it at once.
const PROOF_HOLDS: Duration = Duration::from_secs(60);

/// Servers that no list has, and when each was proved absent, if it was.
type Suspects = Arc<Mutex<BTreeMap<ServerId, Option<Instant>>>>;

/// Reads servers. What several ask for at the same time is read once.
pub(crate) struct ServerReads {
    client: Client,
    shared: SharedRead<Result<Arc<ServerIndex>, CloudError>>,
    suspects: Suspects,
    /// Asks for each suspect without a proof, and answers those that are there.
    found: SharedRead<Result<Arc<Vec<Server>>, CloudError>>,
}

impl ServerReads {
    pub(crate) fn new(client: &Client) -> Self {
        let shared = SharedRead::listing(Duration::ZERO, client, |client| async move {
            Ok(Arc::new(index(client.servers().await?)))
        });
        let suspects = Suspects::default();
        let source = (client.clone(), Arc::clone(&suspects));
        Self {
            client: client.clone(),
            shared,
            suspects,
            found: SharedRead::new(Duration::ZERO, &source, |(client, suspects)| async move {
                ask_for_suspects(&client, &suspects).await.map(Arc::new)
            }),
        }
    }

    /// All servers of the project.
    pub(crate) async fn all(&self) -> Result<Arc<ServerIndex>, CloudError> {
        self.shared.ask().await
    }

    /// One server; none if the API says that there is no such one.
    pub(crate) async fn one(&self, id: ServerId) -> Result<Option<Server>, CloudError> {
        one(&self.client, id).await
    }

    /// Which of these servers, that a list lacks, are proved absent, and those that are there. Each is asked for once in a while, however
    /// many Services want to know.
    pub(crate) async fn prove(
        &self,
        missing: Vec<ServerId>,
    ) -> Result<(Vec<ServerId>, Vec<Server>), CloudError> {
        let mut are_proved = true;
        {
            let mut suspects = lock(&self.suspects);
            suspects.retain(|_, since| since.is_none_or(|since| since.elapsed() < PROOF_HOLDS));
            for id in &missing {
                are_proved &= suspects.entry(*id).or_default().is_some();
            }
        }
        let found = match are_proved {
            true => Arc::default(),
            false => self.found.ask().await?,
        };
        let suspects = lock(&self.suspects);
        let (absent, there): (Vec<_>, Vec<_>) = missing
            .into_iter()
            .partition(|id| suspects.get(id).is_some_and(Option::is_some));
        let found = found.iter().filter(|server| there.contains(&server.uuid));
        Ok((absent, found.cloned().collect()))
    }
}

async fn ask_for_suspects(client: &Client, suspects: &Suspects) -> Result<Vec<Server>, CloudError> {
    let unproven = lock(suspects).clone().into_iter();
    let unproven: Vec<ServerId> = unproven.filter(|it| it.1.is_none()).map(|(id, _)| id).collect();
    let answers = try_join_all(unproven.iter().map(|id| one(client, *id))).await?;
    let mut suspects = lock(suspects);
    for (id, _) in unproven.iter().zip(&answers).filter(|it| it.1.is_none()) {
        suspects.insert(*id, Some(Instant::now()));
    }
    let found: Vec<Server> = answers.into_iter().flatten().collect();
    suspects.retain(|id, _| found.iter().all(|server| server.uuid != *id));
    Ok(found)
}

/// One server; none if the API says that there is no such one.
async fn one(client: &Client, id: ServerId) -> Result<Option<Server>, CloudError> {
    match client.server(id).await {
        Ok(server) => Ok(Some(server)),
        Err(error) if error.proves_absence() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
