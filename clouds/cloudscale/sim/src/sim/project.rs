//! The project in the words that all clouds have in common.

use bowline_cloud_kit::project::{Instance, Project};

use super::{CloudscaleSim, region_of};
use crate::model::{Server, ServerStatus};

impl CloudscaleSim {
    /// The server of a name.
    pub fn server_named(&self, name: &str) -> Option<Server> {
        self.read().servers.values().find(|it| it.name == name).cloned()
    }
}

impl Project for CloudscaleSim {
    fn instances(&self) -> Vec<Instance> {
        self.servers().into_iter().map(instance).collect()
    }

    fn switch_instance(&self, name: &str, is_on: bool) -> bool {
        let status = match is_on {
            true => ServerStatus::Running,
            false => ServerStatus::Stopped,
        };
        let server = self.server_named(name);
        server.map(|it| self.set_server_status(it.uuid, status)).is_some()
    }

    fn delete_instance(&self, name: &str) -> bool {
        self.server_named(name)
            .is_some_and(|it| self.remove_server(it.uuid))
    }

    fn violations(&self) -> Vec<String> {
        self.check_invariants()
    }
}

fn instance(server: Server) -> Instance {
    let interfaces = server.interfaces.iter();
    let addresses = interfaces.flat_map(|interface| {
        let kind = match interface.public {
            true => "ExternalIP",
            false => "InternalIP",
        };
        let addresses = interface.addresses.iter();
        addresses.map(move |it| (kind, it.address.to_string()))
    });
    let hostname = ("Hostname", server.name.clone());
    Instance {
        is_on: server.status != ServerStatus::Stopped,
        provider_id: format!("cloudscale://{}", server.uuid),
        addresses: std::iter::once(hostname).chain(addresses).collect(),
        instance_type: server.flavor,
        region: region_of(&server.zone).to_owned(),
        zone: Some(server.zone),
        name: server.name,
    }
}
