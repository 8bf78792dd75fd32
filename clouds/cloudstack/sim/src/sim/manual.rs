//! What somebody does by hand behind the manager's back. None of it is in the journal.

use super::CloudstackSim;
use crate::model::{AclList, AddressState, LoadBalancerRule, PortForwarding, RuleState, VmState, Zone};
use crate::options::UserSpec;
use crate::specs::{
    AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, PolicySpec, ProjectSpec, RuleSpec, VmSpec, VpcSpec,
};

impl CloudstackSim {
    /// Accepts a user's keys, or changes who they belong to.
    pub fn add_user(&self, user: UserSpec) {
        self.write(|state| {
            let id = state.id();
            state.users.set(id, user);
        });
    }

    /// Refuses a user's keys from now on; whether they were good.
    pub fn remove_user(&self, api_key: &str) -> bool {
        self.write(|state| state.users.remove(api_key))
    }

    /// Adds a zone; answers its id.
    pub fn add_zone(&self, name: impl Into<String>) -> String {
        self.write(|state| {
            let id = state.id();
            let name = name.into();
            state.zones.insert(id.clone(), Zone { id: id.clone(), name });
            id
        })
    }

    /// Adds a project; answers its id.
    pub fn add_project(&self, spec: ProjectSpec) -> String {
        self.write(|state| state.insert_project(spec))
    }

    /// Adds a virtual machine; answers its id.
    pub fn add_vm(&self, spec: VmSpec) -> String {
        self.write(|state| state.insert_vm(spec))
    }

    /// Expunges a virtual machine; whether there was one. Rules lose it as a member.
    pub fn expunge_vm(&self, id: &str) -> bool {
        self.write(|state| state.remove_vm(id))
    }

    /// Sets what a virtual machine is doing.
    pub fn set_vm_state(&self, id: &str, state: VmState) {
        self.edit_vm(id, |vm| vm.state = state);
    }

    /// Adds a network; answers its id.
    pub fn add_network(&self, spec: NetworkSpec) -> String {
        self.write(|state| state.insert_network(spec))
    }

    /// Adds a VPC with an address for source NAT; answers its id.
    pub fn add_vpc(&self, spec: VpcSpec) -> String {
        self.write(|state| state.insert_vpc(spec))
    }

    /// Adds an ACL list to a VPC; answers its id.
    pub fn add_acl_list(&self, name: impl Into<String>, vpc: impl Into<String>) -> String {
        self.write(|state| {
            let id = state.id();
            let list = AclList {
                id: id.clone(),
                name: name.into(),
                vpc: Some(vpc.into()),
            };
            state.acl_lists.insert(id.clone(), list);
            id
        })
    }

    /// The id of an ACL list by its name, such as `default_allow`.
    pub fn acl_list(&self, name: &str) -> Option<String> {
        let state = self.read();
        let found = state.acl_lists.values().find(|it| it.name == name);
        found.map(|it| it.id.clone())
    }

    /// Takes a public address as a user does; answers its id.
    ///
    /// # Panics
    ///
    /// If there is no free address: a mistake in the test.
    pub fn take_address(&self, spec: AddressSpec) -> String {
        match self.write(|state| state.insert_address(spec)) {
            Ok(id) => id,
            Err(text) => panic!("{text}"),
        }
    }

    /// Makes a public address nobody's, by its id, with every rule on it; whether there was one.
    pub fn release_address(&self, id: &str) -> bool {
        self.write(|state| {
            let is_held = state.addresses.get(id).is_some_and(|it| it.owner.is_some());
            state.free(id);
            is_held
        })
    }

    /// Gives a public address to a virtual machine altogether.
    pub fn set_static_nat(&self, address: &str, vm: Option<&str>) {
        self.edit_address(address, |it| it.static_nat = vm.map(str::to_owned));
    }

    /// Takes all free addresses of the pool away, so that none can be had.
    pub fn exhaust_addresses(&self) {
        self.write(|state| state.addresses.retain(|_, it| it.state != AddressState::Free));
    }

    /// Adds a load balancer rule, and tells its network's router; answers its id.
    pub fn add_rule(&self, spec: RuleSpec) -> String {
        self.write(|state| state.insert_rule(spec))
    }

    /// Gives a load balancer rule a stickiness policy; answers its id.
    pub fn add_policy(&self, spec: PolicySpec) -> String {
        self.write(|state| state.insert_policy(spec))
    }

    /// Removes a load balancer rule; whether there was one.
    pub fn remove_rule(&self, id: &str) -> bool {
        self.write(|state| state.remove_rule(id))
    }

    /// Changes a load balancer rule in any way, and tells its network's router.
    pub fn edit_rule(&self, id: &str, change: impl FnOnce(&mut LoadBalancerRule)) {
        self.write(|state| {
            let rule = state.rules.get_mut(id)?;
            change(rule);
            let network = rule.network.clone();
            state.tell_router(&network);
            Some(())
        });
    }

    /// Restarts the router of a network, which is told all rules then.
    pub fn restart_router(&self, network: &str) {
        self.write(|state| state.restart_router(network));
    }

    /// Adds a member to a rule that has it not.
    pub fn add_member(&self, rule: &str, vm: &str) {
        self.edit_rule(rule, |rule| {
            rule.members.retain(|it| it != vm);
            rule.members.push(vm.to_owned());
            rule.state = RuleState::Active;
        });
    }

    /// Removes a member from a rule.
    pub fn remove_member(&self, rule: &str, vm: &str) {
        self.edit_rule(rule, |rule| rule.lose_members(|it| it == vm));
    }

    /// Adds a firewall rule; answers its id.
    pub fn add_firewall_rule(&self, spec: FirewallSpec) -> String {
        self.write(|state| state.insert_firewall_rule(spec))
    }

    /// Removes a firewall rule; whether there was one.
    pub fn remove_firewall_rule(&self, id: &str) -> bool {
        self.write(|state| state.firewall.shift_remove(id).is_some())
    }

    /// Adds a port forwarding of one TCP port to a virtual machine; answers its id.
    pub fn add_port_forwarding(&self, address: &str, port: u16, vm: &str) -> String {
        self.write(|state| {
            let network = state.addresses.get(address).and_then(|it| it.network.clone());
            let rule = PortForwarding {
                id: state.id(),
                number: state.number(),
                address: address.to_owned(),
                ports: (port, port),
                vm: vm.to_owned(),
                network: network.unwrap_or_default(),
            };
            let id = rule.id.clone();
            state.forwardings.insert(id.clone(), rule);
            id
        })
    }

    /// Adds a network ACL item; answers its id.
    pub fn add_acl_item(&self, spec: AclItemSpec) -> String {
        self.write(|state| state.insert_acl_item(spec))
    }

    /// Removes a network ACL item; whether there was one.
    pub fn remove_acl_item(&self, id: &str) -> bool {
        self.write(|state| state.acl_items.shift_remove(id).is_some())
    }
}
