//! Address pairs: what a port lets through beside its own addresses.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_openstack_client::{NetworkId, Port, PortFilter, PortId, PortUpdate};
use futures::future::join_all;

use super::RouteTable;
use super::change::{Change, Results, TRIES};
use super::ports::{changed, has_security, only_port};

/// What a person can do where Neutron refuses the pairs: by default that takes the owner of the network, or an administrator.
const FORBIDDEN: &str = "by default Neutron allows that to the project that owns the port's network. Use credentials of that project, have the operator \
    of the cloud allow `update_port:allowed_address_pairs`, or switch port security off at the nodes' ports";

/// Neutron's word for a port with as many pairs as it may have.
const EXHAUSTED: &str = "AllowedAddressPairExhausted";

/// What a person can do then.
const TOO_MANY: &str = "take those off that are of earlier pod networks of this node, or have the \
    operator of the cloud raise `max_allowed_address_pair` of Neutron";

/// Why a port was not written.
enum Unwritten {
    /// It has no room for all pairs that it would have.
    Full(CloudError),
    Other(CloudError),
}

impl From<CloudError> for Unwritten {
    fn from(error: CloudError) -> Self {
        Self::Other(error)
    }
}

impl From<Unwritten> for CloudError {
    fn from(unwritten: Unwritten) -> Self {
        let (Unwritten::Full(error) | Unwritten::Other(error)) = unwritten;
        error
    }
}

impl RouteTable {
    /// Gives the ports of created routes their address pairs, and takes those of deleted ones away. Each port is written
    /// once, all of them side by side; one that has no room for all, change by change.
    pub(super) async fn change_pairs(&self, changes: &[&Change], results: &mut Results) {
        let hops: BTreeSet<IpAddr> = changes.iter().map(|change| change.hop).collect();
        let ports = match self.ports_of(&hops).await {
            Ok(ports) => ports,
            Err(error) => return results.fail(changes.iter().copied(), &error),
        };
        // A Node's addresses may be on one port, and each of its pod networks needs a pair there.
        let mut by_port: BTreeMap<&PortId, (&Port, Vec<&Change>)> = BTreeMap::new();
        for change in changes {
            match ports.get(&change.hop) {
                Some(port) => by_port
                    .entry(&port.id)
                    .or_insert((port, Vec::new()))
                    .1
                    .push(change),
                None if change.is_creation => {
                    let text = format!(
                        "no single port has the address {} in the networks of router {}",
                        change.hop, self.router
                    );
                    results.fail([*change], &CloudError::other(text));
                }
                // Where there is no port, there is no pair.
                None => {}
            }
        }
        let writes = by_port
            .into_values()
            .map(|(port, changes)| self.change_port(port, changes));
        for (changes, error) in join_all(writes).await.into_iter().flatten() {
            results.fail(changes, &error);
        }
    }

    /// Answers which changes were not made, and why.
    async fn change_port<'a>(
        &self,
        port: &Port,
        changes: Vec<&'a Change>,
    ) -> Vec<(Vec<&'a Change>, CloudError)> {
        match self.change_at_once(port, &changes).await {
            Ok(()) => Vec::new(),
            Err(Unwritten::Full(_)) if changes.len() > 1 => {
                let mut failed = Vec::new();
                for change in changes {
                    if let Err(error) = self.change_alone(&port.id, change).await {
                        failed.push((vec![change], error));
                    }
                }
                failed
            }
            Err(error) => vec![(changes, error.into())],
        }
    }

    async fn change_alone(&self, port: &PortId, change: &Change) -> Result<(), CloudError> {
        let port = self.read_port(port).await?;
        Ok(self.change_at_once(&port, &[change]).await?)
    }

    async fn read_port(&self, id: &PortId) -> Result<Port, CloudError> {
        let port = self.client.port(id).await?;
        port.ok_or_else(|| conflict(id, "was deleted"))
    }

    async fn change_at_once(&self, port: &Port, changes: &[&Change]) -> Result<(), Unwritten> {
        let mut read_again = None;
        for _ in 0..TRIES {
            let port = read_again.as_ref().unwrap_or(port);
            if !has_security(port) {
                tracing::warn!(port = %port.id, "Port security is off at the port of a node, so its routes need no address pairs");
                return Ok(());
            }
            let Some(pairs) = changed(port, changes) else {
                return Ok(());
            };
            let update = PortUpdate {
                allowed_address_pairs: Some(pairs),
                ..PortUpdate::default()
            };
            match self
                .client
                .update_port(&port.id, &update, port.revision_number)
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) if error.is_outdated() => {}
                Err(error) if error.status() == Some(403) => {
                    let text = format!(
                        "address pairs of port {} may not be written: {FORBIDDEN}",
                        port.id
                    );
                    return Err(CloudError::of_write(error).context(text).into());
                }
                Err(error) if error.word.as_deref() == Some(EXHAUSTED) => {
                    let text = format!(
                        "port {} has as many address pairs as it may have: {TOO_MANY}",
                        port.id
                    );
                    return Err(Unwritten::Full(CloudError::of_write(error).context(text)));
                }
                Err(error) => return Err(CloudError::of_write(error).into()),
            }
            read_again = Some(self.read_port(&port.id).await?);
        }
        Err(conflict(&port.id, "is changed again and again by others").into())
    }

    /// The ports with these addresses, in the first of the router's networks in which a single port has the address. One list
    /// per network, however many addresses there are.
    pub(super) async fn ports_of(
        &self,
        hops: &BTreeSet<IpAddr>,
    ) -> Result<BTreeMap<IpAddr, Port>, CloudError> {
        let mut found = BTreeMap::new();
        if hops.is_empty() {
            return Ok(found);
        }
        for network in &*self.networks().await? {
            let missing: Vec<IpAddr> = hops
                .iter()
                .copied()
                .filter(|hop| !found.contains_key(hop))
                .collect();
            if missing.is_empty() {
                break;
            }
            let ports = self.ports_with(network, &missing).await?;
            found.extend(
                missing
                    .into_iter()
                    .filter_map(|hop| Some((hop, only_port(&ports, hop)?.clone()))),
            );
        }
        Ok(found)
    }

    /// Which of these addresses a port has, or several have, in any of the router's networks.
    pub(super) async fn used(&self, hops: &BTreeSet<IpAddr>) -> Result<BTreeSet<IpAddr>, CloudError> {
        let all: Vec<IpAddr> = hops.iter().copied().collect();
        let mut used = BTreeSet::new();
        for network in &*self.networks().await? {
            let ports = self.ports_with(network, &all).await?;
            let addresses = ports.iter().flat_map(|port| &port.fixed_ips);
            used.extend(addresses.filter_map(|fixed| fixed.ip_address.parse::<IpAddr>().ok()));
        }
        Ok(used)
    }

    /// The ports of a network, or, of a single address, those that have it.
    async fn ports_with(&self, network: &NetworkId, hops: &[IpAddr]) -> Result<Vec<Port>, CloudError> {
        let only = match hops {
            [only] => Some(only.to_string()),
            _ => None,
        };
        let filter = PortFilter {
            network_id: Some(network),
            address: only.as_deref(),
            ..PortFilter::default()
        };
        Ok(self.client.ports(&filter).await?)
    }
}

fn conflict(port: &PortId, what: &str) -> CloudError {
    CloudError::new(ErrorKind::Conflict, format!("port {port} {what}"))
}
