//! The cloud in the words that all clouds have in common.

use bowline_cloud_kit::project::{Instance, Project};

use super::CloudstackSim;
use crate::model::{VirtualMachine, VmState};
use crate::state::State;

impl Project for CloudstackSim {
    fn instances(&self) -> Vec<Instance> {
        let state = self.read();
        state.vms.values().map(|vm| instance(&state, vm)).collect()
    }

    fn switch_instance(&self, name: &str, is_on: bool) -> bool {
        let wanted = match is_on {
            true => VmState::Running,
            false => VmState::Stopped,
        };
        let vm = self.vm_named(name);
        vm.map(|it| self.set_vm_state(&it.id, wanted)).is_some()
    }

    fn delete_instance(&self, name: &str) -> bool {
        self.vm_named(name).is_some_and(|it| self.expunge_vm(&it.id))
    }

    fn violations(&self) -> Vec<String> {
        self.check_invariants()
    }
}

fn instance(state: &State, vm: &VirtualMachine) -> Instance {
    let zone = state.zones.get(&vm.zone).map(|it| it.name.clone());
    let nic = vm.nics.iter().find(|nic| nic.is_default);
    Instance {
        name: vm.name.clone(),
        is_on: vm.state != VmState::Stopped,
        provider_id: format!("external-cloudstack://{}", vm.id),
        instance_type: vm.offering.chars().filter(char::is_ascii_alphanumeric).collect(),
        region: zone.clone().unwrap_or_default(),
        zone,
        addresses: nic
            .map(|it| ("InternalIP", it.address.to_string()))
            .into_iter()
            .collect(),
    }
}
