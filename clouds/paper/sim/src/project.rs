//! The project in the words that all clouds have in common.

use bowline_cloud_kit::project::{self, Project};

use crate::model::Machine;
use crate::sim::PaperSim;

impl PaperSim {
    /// The machine of a name.
    pub fn machine_named(&self, name: &str) -> Option<Machine> {
        self.machines().into_iter().find(|it| it.name == name)
    }
}

impl Project for PaperSim {
    fn instances(&self) -> Vec<project::Instance> {
        self.machines().into_iter().map(instance).collect()
    }

    fn switch_instance(&self, name: &str, is_on: bool) -> bool {
        let power = if is_on { "on" } else { "off" };
        let machine = self.machine_named(name);
        machine
            .map(|it| self.change_machine(it.id, |it| it.power = power.to_owned()))
            .is_some()
    }

    fn delete_instance(&self, name: &str) -> bool {
        self.machine_named(name)
            .is_some_and(|it| self.remove_machine(it.id))
    }

    fn violations(&self) -> Vec<String> {
        self.check_invariants()
    }
}

fn instance(machine: Machine) -> project::Instance {
    let hostname = ("Hostname", machine.name.clone());
    let inside = machine.private.iter().map(|it| ("InternalIP", it.to_string()));
    let outside = machine.public.iter().map(|it| ("ExternalIP", it.to_string()));
    project::Instance {
        is_on: machine.power == "on",
        provider_id: format!("paper://{}", machine.id),
        addresses: std::iter::once(hostname).chain(inside).chain(outside).collect(),
        instance_type: machine.kind,
        zone: Some(machine.zone),
        region: machine.region,
        name: machine.name,
    }
}
