//! Servers by hand. None of it is in the journal.

use std::net::IpAddr;

use super::{NicSpec, OpenstackSim, ServerSpec};
use crate::model::Id;
use crate::model::compute::{Flavor, Server};
use crate::model::network::FixedIp;
use crate::state::{NoAddress, PortWish, State};

impl OpenstackSim {
    /// Adds a running server.
    ///
    /// # Panics
    ///
    /// If an address or network that the spec names cannot be had: a mistake in the test.
    pub fn add_server(&self, spec: ServerSpec) -> Id {
        self.write(|state| {
            let id = state.seed.uuid();
            let project = spec.project.unwrap_or_else(|| state.home.project.clone());
            for nic in spec.nics {
                add_nic(state, id, &project, nic);
            }
            let now = state.clock.rfc3339_seconds();
            let first_flavor = state.flavors.keys().next().cloned();
            let server = Server {
                id,
                name: spec.name,
                project,
                status: "ACTIVE".to_owned(),
                flavor: spec.flavor.or(first_flavor).unwrap_or_default(),
                zone: spec.zone.unwrap_or_else(|| state.options.zone.clone()),
                host_id: id.simple().to_string(),
                access_v4: spec.access_v4,
                access_v6: spec.access_v6,
                metadata: spec.metadata,
                shown_addresses: spec.shown_addresses,
                created_at: now.clone(),
                updated_at: now,
            };
            state.servers.insert(id, server);
            id
        })
    }

    /// Removes a server and its ports; whether there was one.
    pub fn remove_server(&self, id: Id) -> bool {
        self.write(|state| state.remove_server(id))
    }

    /// Sets a server's status, as Nova writes it: `ACTIVE`, `SHUTOFF`, `PAUSED`, ...
    pub fn set_server_status(&self, id: Id, status: &str) {
        self.edit_server(id, |server| status.clone_into(&mut server.status));
    }

    /// Adds a flavor.
    pub fn add_flavor(&self, flavor: Flavor) {
        self.write(|state| state.flavors.insert(flavor.id.clone(), flavor));
    }

    /// The server of a name.
    pub fn server_named(&self, name: &str) -> Option<Server> {
        self.read().servers.values().find(|it| it.name == name).cloned()
    }

    /// The first address of a server.
    pub fn address_of(&self, server: Id) -> Option<IpAddr> {
        let ports = self.ports_of(server);
        let mut addresses = ports.iter().flat_map(|it| &it.fixed_ips);
        addresses.next().map(|it| it.address)
    }
}

impl State {
    /// Removes a server and its ports; whether there was one.
    pub(crate) fn remove_server(&mut self, id: Id) -> bool {
        let ports: Vec<Id> = self.ports_of(&id.to_string()).map(|it| it.id).collect();
        for port in ports {
            self.remove_port(port);
        }
        self.servers.shift_remove(&id).is_some()
    }
}

fn add_nic(state: &mut State, server: Id, project: &str, nic: NicSpec) -> Id {
    let network = nic.network.unwrap_or(state.home.network);
    let fixed_ips = match fixed_ips(state, network, &nic.addresses) {
        Ok(fixed_ips) => fixed_ips,
        Err(reason) => panic!("no address for a server: {reason:?}"),
    };
    let id = state.add_port(PortWish {
        name: String::new(),
        network,
        project: project.to_owned(),
        device: server.to_string(),
        device_owner: "compute:nova",
        fixed_ips,
        is_active: nic.is_active,
    });
    if let (Some(port), Some(port_security)) = (state.ports.get_mut(&id), nic.port_security) {
        port.port_security = port_security;
        if !port_security {
            port.groups.clear();
        }
    }
    id
}

/// The addresses named, else the next free one of each subnet.
fn fixed_ips(state: &mut State, network: Id, addresses: &[IpAddr]) -> Result<Vec<FixedIp>, NoAddress> {
    let subnets = state.subnets_of(network);
    let subnets: Vec<_> = subnets.map(|it| (it.id, it.cidr)).collect();
    if addresses.is_empty() {
        return subnets.iter().map(|(id, _)| state.allocate(*id)).collect();
    }
    let reserved = addresses.iter().map(|&address| {
        let holding = subnets.iter().find(|(_, cidr)| cidr.contains(&address));
        let subnet = holding.map(|(id, _)| *id).ok_or(NoAddress::NoSubnet(network))?;
        state.reserve(FixedIp { subnet, address })
    });
    reserved.collect()
}
