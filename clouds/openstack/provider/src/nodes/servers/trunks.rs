//! Ports that travel on the ports of servers, each with addresses on a network of its own.

use std::collections::{BTreeMap, BTreeSet};

use bowline_openstack_client::{ApiError, Client, NetworkId, Port, PortId};
use futures::future::join_all;

use crate::nodes::addresses::TrunkAddress;

/// The addresses of each such port.
pub(super) type Addresses = BTreeMap<PortId, Vec<TrunkAddress>>;

/// The addresses of such ports of all servers, out of the list of all ports. Networks are listed once, if there is any.
pub(super) async fn listed(client: &Client, ports: &[Port]) -> Addresses {
    let wanted = sub_ports(ports);
    if wanted.is_empty() {
        return Addresses::new();
    }
    let networks = match client.networks().await {
        Ok(networks) => networks
            .into_iter()
            .map(|network| (network.id, network.name))
            .collect(),
        Err(error) => {
            tracing::warn!(err = %error, "Networks cannot be listed, each is asked for");
            BTreeMap::new()
        }
    };
    let by_id: BTreeMap<&PortId, &Port> = ports.iter().map(|port| (&port.id, port)).collect();
    let (known, unknown): (Vec<&PortId>, Vec<&PortId>) =
        wanted.into_iter().partition(|id| by_id.contains_key(id));
    let mut found: Vec<Port> = known.into_iter().map(|id| by_id[id].clone()).collect();
    found.extend(ask(client, unknown).await);
    addresses(client, found, networks).await
}

/// The addresses of such ports of one server: each is asked for.
pub(super) async fn asked(client: &Client, ports: &[Port]) -> Addresses {
    let found = ask(client, sub_ports(ports)).await;
    addresses(client, found, BTreeMap::new()).await
}

fn sub_ports(ports: &[Port]) -> BTreeSet<&PortId> {
    ports
        .iter()
        .flat_map(|port| &port.trunk_details.sub_ports)
        .map(|sub_port| &sub_port.port_id)
        .collect()
}

/// One that cannot be read costs its own addresses and nothing else.
async fn ask(client: &Client, wanted: impl IntoIterator<Item = &PortId>) -> Vec<Port> {
    let asked = wanted
        .into_iter()
        .map(async |id| told("port", id.as_str(), client.port(id).await));
    join_all(asked).await.into_iter().flatten().collect()
}

async fn addresses(
    client: &Client,
    ports: Vec<Port>,
    mut networks: BTreeMap<NetworkId, String>,
) -> Addresses {
    let unknown: BTreeSet<&NetworkId> = ports
        .iter()
        .filter_map(|port| port.network_id.as_ref())
        .filter(|id| !networks.contains_key(*id))
        .collect();
    let asked = unknown
        .into_iter()
        .map(async |id| told("network", id.as_str(), client.network(id).await));
    let asked = join_all(asked).await.into_iter().flatten();
    let asked: Vec<_> = asked.map(|network| (network.id, network.name)).collect();
    networks.extend(asked);
    ports
        .into_iter()
        .filter_map(|port| {
            let network = networks.get(port.network_id.as_ref()?)?;
            let address = |address: String| TrunkAddress {
                network: network.clone(),
                address,
            };
            let addresses = port.fixed_ips.into_iter().map(|fixed| address(fixed.ip_address));
            Some((port.id, addresses.collect()))
        })
        .collect()
}

/// What was found; what was not is told and left out.
fn told<T>(what: &'static str, id: &str, answer: Result<Option<T>, ApiError>) -> Option<T> {
    match answer {
        Ok(Some(found)) => return Some(found),
        Ok(None) => tracing::warn!(
            what,
            id,
            "Part of a trunk does not exist, its addresses are left out"
        ),
        Err(error) => {
            tracing::warn!(what, id, err = %error, "Part of a trunk cannot be read, its addresses are left out");
        }
    }
    None
}
