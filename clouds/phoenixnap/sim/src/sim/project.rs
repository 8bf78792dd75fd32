//! The account in the words that all clouds have in common.

use bowline_cloud_kit::project::{Instance, Project};

use super::PhoenixnapSim;
use crate::model::{Server, ServerStatus};

impl PhoenixnapSim {
    /// The server of a hostname, in which small and capital letters are the same.
    pub fn server_named(&self, hostname: &str) -> Option<Server> {
        let state = self.read();
        let mut servers = state.servers.values();
        servers
            .find(|it| it.hostname.eq_ignore_ascii_case(hostname))
            .cloned()
    }
}

impl Project for PhoenixnapSim {
    fn instances(&self) -> Vec<Instance> {
        self.servers().into_iter().map(instance).collect()
    }

    fn switch_instance(&self, name: &str, is_on: bool) -> bool {
        let status = match is_on {
            true => ServerStatus::PoweredOn,
            false => ServerStatus::PoweredOff,
        };
        let server = self.server_named(name);
        server.map(|it| self.set_server_status(&it.id, status)).is_some()
    }

    fn delete_instance(&self, name: &str) -> bool {
        self.server_named(name)
            .is_some_and(|it| self.remove_server(&it.id))
    }

    fn violations(&self) -> Vec<String> {
        self.check_invariants()
    }
}

fn instance(server: Server) -> Instance {
    let of = |kind: &'static str, addresses: Vec<String>| addresses.into_iter().map(move |it| (kind, it));
    let outside = of("ExternalIP", server.public_addresses);
    let inside = of("InternalIP", server.private_addresses);
    let hostname = ("Hostname", server.hostname.clone());
    Instance {
        is_on: server.status != ServerStatus::PoweredOff,
        provider_id: format!("phoenixnap://{}", server.id),
        addresses: std::iter::once(hostname).chain(outside).chain(inside).collect(),
        instance_type: server.instance_type,
        region: server.location,
        zone: None,
        name: server.hostname,
    }
}
