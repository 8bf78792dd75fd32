//! The cloud in the words that all clouds have in common.

use bowline_cloud_kit::project::{Instance, Project};

use super::OpenstackSim;
use crate::model::compute::Server;
use crate::state::State;

impl OpenstackSim {
    /// What a cluster that is gone must not leave behind, because it costs money or counts against a limit: load balancers,
    /// floating IPs, and security groups but those that every project has. In words.
    pub fn leftovers(&self) -> Vec<String> {
        let state = self.read();
        let balancers = state.load_balancers.values();
        let balancers = balancers.map(|it| format!("load balancer {}", it.part.name));
        let floating = state.floating_ips.values();
        let floating = floating.map(|it| format!("floating IP {}", it.address.address));
        let groups = state.groups.values().filter(|it| it.name != "default");
        let groups = groups.map(|it| format!("security group {}", it.name));
        balancers.chain(floating).chain(groups).collect()
    }
}

impl Project for OpenstackSim {
    fn instances(&self) -> Vec<Instance> {
        let state = self.read();
        state.servers.values().map(|it| instance(&state, it)).collect()
    }

    fn switch_instance(&self, name: &str, is_on: bool) -> bool {
        let status = match is_on {
            true => "ACTIVE",
            false => "SHUTOFF",
        };
        let server = self.server_named(name);
        server.map(|it| self.set_server_status(it.id, status)).is_some()
    }

    fn delete_instance(&self, name: &str) -> bool {
        self.server_named(name)
            .is_some_and(|it| self.remove_server(it.id))
    }

    fn violations(&self) -> Vec<String> {
        self.check_invariants()
    }
}

/// The addresses of the ports, and behind them the floating IPs that lead to them.
fn instance(state: &State, server: &Server) -> Instance {
    let device = server.id.to_string();
    let ports: Vec<_> = state.ports_of(&device).collect();
    let active = ports.iter().filter(|it| it.status == "ACTIVE");
    let fixed = active.flat_map(|it| &it.fixed_ips);
    let fixed = fixed.map(|it| ("InternalIP", it.address.to_string()));
    let leads_here = |it: &&crate::model::network::FloatingIp| {
        it.target
            .is_some_and(|to| ports.iter().any(|port| port.id == to.port))
    };
    let floating = state.floating_ips.values().filter(leads_here);
    let floating = floating.map(|it| ("ExternalIP", it.address.address.to_string()));
    let flavor = state.flavors.get(&server.flavor);
    Instance {
        name: server.name.clone(),
        is_on: server.status != "SHUTOFF",
        provider_id: format!("openstack:///{}", server.id),
        instance_type: flavor.map_or_else(|| server.flavor.clone(), |it| it.name.clone()),
        zone: Some(server.zone.clone()),
        region: state.options.region().to_owned(),
        addresses: fixed.chain(floating).collect(),
    }
}
