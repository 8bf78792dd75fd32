//! Servers with all that a Node takes from them: ports and trunks are Neutron's, the names of flavors are asked for by id.

mod flavors;
mod trunks;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::SharedRead;
use bowline_cloud_provider::{CloudError, InstanceIndex, InstanceMetadata};
use bowline_openstack_client::{ApiError, Client, Port, PortFilter, Server, ServerId, ServerStatus};

use self::flavors::{Flavors, Names};
use crate::config::NodeOptions;
use crate::nodes::{addresses, labels};
use crate::provider_id;

/// The label that tells which Nodes are on one host (the Go manager after v1.36.0, `docs/openstack-cloud-controller-manager`). A live
/// migration changes it.
const HOST_ID: &str = "topology.openstack.org/host-id";

/// A server, and what it contributes to its Node.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) id: ServerId,
    pub(crate) name: String,
    pub(crate) status: ServerStatus,
    /// Or why it is not known: a server is there whatever becomes of the questions about its ports.
    pub(crate) metadata: Result<InstanceMetadata, CloudError>,
}

/// How much is asked about one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Whether it is there and runs.
    Server,
    /// Its addresses and its type too.
    Everything,
}

/// The servers of the project, one by one or all.
pub(crate) struct Servers {
    source: Source,
    all: SharedRead<Result<Arc<InstanceIndex<ServerId, Described>>, CloudError>>,
}

#[derive(Clone)]
struct Source {
    client: Client,
    options: Arc<NodeOptions>,
    flavors: Arc<Flavors>,
}

impl Servers {
    pub(crate) fn new(client: &Client, options: &NodeOptions) -> Self {
        let source = Source {
            client: client.clone(),
            options: Arc::new(options.clone()),
            flavors: Arc::new(Flavors::new(client)),
        };
        Self {
            all: SharedRead::listing(Duration::ZERO, &source, |source: Source| async move {
                let all = source.all().await?;
                Ok(Arc::new(InstanceIndex::new(
                    all,
                    |server| server.id.clone(),
                    |server| server.name.clone(),
                )))
            }),
            source,
        }
    }

    /// All servers; those who ask at the same time share one listing.
    pub(crate) async fn all(&self) -> Result<Arc<InstanceIndex<ServerId, Described>>, CloudError> {
        self.all.ask().await
    }

    /// One server; `None` is Nova's own word that there is none.
    pub(crate) async fn one(&self, id: &ServerId, depth: Depth) -> Result<Option<Described>, CloudError> {
        self.source.one(id, depth).await
    }
}

impl Source {
    async fn all(&self) -> Result<Vec<Described>, CloudError> {
        let filter = PortFilter::default();
        let (servers, ports) = futures::join!(self.client.servers(), self.client.ports(&filter));
        let servers = servers?;
        let names = self.flavors.names(flavors::unnamed(&servers)).await;
        let trunks = match &ports {
            Ok(ports) => trunks::listed(&self.client, ports).await,
            Err(_) => BTreeMap::new(),
        };
        let of_server = of_devices(&ports);
        Ok(servers
            .into_iter()
            .map(|server| {
                let ports = match &of_server {
                    Ok(of_server) => Ok(of_server.get(server.id.as_str()).map_or(&[][..], Vec::as_slice)),
                    Err(error) => Err(error.clone()),
                };
                self.described(server, ports, &trunks, &names)
            })
            .collect())
    }

    async fn one(&self, id: &ServerId, depth: Depth) -> Result<Option<Described>, CloudError> {
        let Some(server) = self.client.server(id.as_str()).await? else {
            return Ok(None);
        };
        if depth == Depth::Server {
            return Ok(Some(Described {
                metadata: Err(CloudError::other("addresses and type were not asked for")),
                ..bare(server)
            }));
        }
        let filter = PortFilter {
            device_id: Some(id.as_str()),
            ..PortFilter::default()
        };
        let unnamed = flavors::unnamed(std::slice::from_ref(&server));
        let (ports, names) = futures::join!(self.client.ports(&filter), self.flavors.names(unnamed));
        let trunks = match &ports {
            Ok(ports) => trunks::asked(&self.client, ports).await,
            Err(_) => BTreeMap::new(),
        };
        let ports = ports.as_ref().map(|ports| ports.iter().collect::<Vec<_>>());
        let ports = match &ports {
            Ok(ports) => Ok(ports.as_slice()),
            Err(error) => Err(of_ports(error)),
        };
        Ok(Some(self.described(server, ports, &trunks, &names)))
    }

    fn described(
        &self,
        server: Server,
        ports: Result<&[&Port], CloudError>,
        trunks: &trunks::Addresses,
        names: &Names,
    ) -> Described {
        let metadata = ports.and_then(|ports| self.metadata(&server, ports, trunks, names));
        Described {
            metadata,
            ..bare(server)
        }
    }

    fn metadata(
        &self,
        server: &Server,
        ports: &[&Port],
        trunks: &trunks::Addresses,
        names: &Names,
    ) -> Result<InstanceMetadata, CloudError> {
        let options = &self.options;
        let of_trunks: Vec<_> = ports
            .iter()
            .flat_map(|port| &port.trunk_details.sub_ports)
            .filter_map(|sub_port| trunks.get(&sub_port.port_id))
            .flatten()
            .cloned()
            .collect();
        let region = if options.is_regional {
            options.region.as_str()
        } else {
            ""
        };
        let addresses = addresses::of_server(server, ports, &of_trunks, options);
        Ok(InstanceMetadata {
            unmatched: addresses::unmatched(server, &of_trunks, &addresses, options),
            provider_id: Some(provider_id::format(region, server.id.as_str())),
            instance_type: flavors::instance_type(&server.flavor, names)?,
            zone: labels::value(&server.availability_zone),
            region: options.region.clone(),
            addresses,
            additional_labels: (!server.host_id.is_empty())
                .then(|| (HOST_ID.to_owned(), server.host_id.clone()))
                .into_iter()
                .collect(),
            moving_labels: &[HOST_ID],
        })
    }
}

/// What the server itself says.
fn bare(server: Server) -> Described {
    Described {
        id: server.id,
        name: server.name,
        status: server.status,
        metadata: Ok(InstanceMetadata::default()),
    }
}

fn of_ports(error: &ApiError) -> CloudError {
    CloudError::from(error).context("the server's ports are not known")
}

/// Ports by what they belong to, each in the API's order.
fn of_devices(ports: &Result<Vec<Port>, ApiError>) -> Result<BTreeMap<&str, Vec<&Port>>, CloudError> {
    let mut devices: BTreeMap<&str, Vec<&Port>> = BTreeMap::new();
    for port in ports.as_ref().map_err(of_ports)? {
        devices.entry(&port.device_id).or_default().push(port);
    }
    Ok(devices)
}
