//! What somebody does by hand behind the manager's back. None of it is in the journal.

use std::net::IpAddr;

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use super::{
    AclItemSpec, AddressSpec, CloudstackSim, FirewallSpec, NetworkSpec, NicSpec, ProjectSpec, RuleSpec,
    VmSpec, VpcSpec,
};
use crate::model::{
    AclItem, AclList, AddressState, DEFAULT_DENY, FirewallRule, LoadBalancerRule, Network, Nic, Owner,
    PortForwarding, Project, PublicAddress, RuleState, Tag, VirtualMachine, VmState, Vpc, Zone,
};
use crate::options::UserSpec;
use crate::state::{ISOLATED_SERVICES, State, TIER_SERVICES};

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
        self.write(|state| insert_project(state, spec))
    }

    /// Adds a virtual machine; answers its id.
    pub fn add_vm(&self, spec: VmSpec) -> String {
        self.write(|state| insert_vm(state, spec))
    }

    /// Adds virtual machines `<prefix>-1` and so on; answers their ids.
    pub fn add_vms(&self, prefix: &str, count: u64) -> Vec<String> {
        (1..=count)
            .map(|number| self.add_vm(VmSpec::new(format!("{prefix}-{number}"))))
            .collect()
    }

    /// Deletes a virtual machine as a person does who can still recover it.
    pub fn destroy_vm(&self, id: &str) {
        self.set_vm_state(id, VmState::Destroyed);
    }

    /// Expunges a virtual machine; whether there was one. Rules lose it as a member.
    pub fn expunge_vm(&self, id: &str) -> bool {
        self.write(|state| state.remove_vm(id))
    }

    /// Sets what a virtual machine is doing.
    pub fn set_vm_state(&self, id: &str, state: VmState) {
        self.edit_vm(id, |vm| vm.state = state);
    }

    /// Changes a virtual machine in any way.
    pub fn edit_vm(&self, id: &str, change: impl FnOnce(&mut VirtualMachine)) {
        self.write(|state| state.vms.get_mut(id).map(change));
    }

    /// Adds a network; answers its id.
    pub fn add_network(&self, spec: NetworkSpec) -> String {
        self.write(|state| insert_network(state, spec))
    }

    /// Changes a network in any way.
    pub fn edit_network(&self, id: &str, change: impl FnOnce(&mut Network)) {
        self.write(|state| state.networks.get_mut(id).map(change));
    }

    /// Adds a VPC with an address for source NAT; answers its id.
    pub fn add_vpc(&self, spec: VpcSpec) -> String {
        self.write(|state| insert_vpc(state, spec))
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
        match self.write(|state| insert_address(state, spec)) {
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

    /// Changes a public address in any way.
    pub fn edit_address(&self, id: &str, change: impl FnOnce(&mut PublicAddress)) {
        self.write(|state| state.addresses.get_mut(id).map(change));
    }

    /// Tags a public address.
    pub fn tag_address(&self, id: &str, key: &str, value: &str) {
        let tag = Tag {
            key: key.to_owned(),
            value: value.to_owned(),
        };
        self.edit_address(id, |address| address.tags.push(tag));
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
        self.write(|state| insert_rule(state, spec))
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
        self.write(|state| insert_firewall_rule(state, spec))
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
        self.write(|state| insert_acl_item(state, spec))
    }

    /// Removes a network ACL item; whether there was one.
    pub fn remove_acl_item(&self, id: &str) -> bool {
        self.write(|state| state.acl_items.shift_remove(id).is_some())
    }
}

fn owner_or_home(state: &State, owner: Option<Owner>) -> Owner {
    owner.unwrap_or_else(|| Owner::Account(state.home.account.clone()))
}

pub(crate) fn insert_project(state: &mut State, spec: ProjectSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let home = || [state.home.account.clone()].into();
    let project = Project {
        id: id.clone(),
        name: spec.name,
        accounts: spec.accounts.unwrap_or_else(home),
    };
    state.projects.insert(id.clone(), project);
    id
}

pub(crate) fn insert_vm(state: &mut State, spec: VmSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let wishes = spec.nics.unwrap_or_else(|| vec![NicSpec::default()]);
    let has_default = wishes.iter().any(|nic| nic.is_default);
    let mut nics = Vec::new();
    for wish in wishes {
        let network = wish.network.unwrap_or_else(|| state.home.network.clone());
        let address = wish.address.or_else(|| state.guest_address(&network));
        nics.push(Nic {
            id: state.id(),
            network,
            address: address.unwrap_or_else(|| IpAddr::from([0, 0, 0, 0])),
            ipv6: wish.ipv6,
            is_default: wish.is_default || (!has_default && nics.is_empty()),
        });
    }
    let vm = VirtualMachine {
        id: id.clone(),
        number: state.number(),
        display_name: spec.name.clone(),
        name: spec.name,
        owner: owner_or_home(state, spec.owner),
        state: spec.state.unwrap_or(VmState::Running),
        zone: spec.zone.unwrap_or_else(|| state.home.zone.clone()),
        offering: spec.offering.unwrap_or_else(|| "Medium 4c/8g".to_owned()),
        host: "kvm-host-12".to_owned(),
        nics,
        created: state.now(),
    };
    state.vms.insert(id.clone(), vm);
    id
}

/// The next 10.N.0.0/16 that no network and no VPC has, or 127.N.0.0/16 if the first network is there.
fn next_range(state: &State) -> IpNet {
    let home = state.networks.get(&state.home.network).map(|it| it.cidr.addr());
    let (first, from) = match home {
        Some(address) if address.is_loopback() => (127, 80),
        _ => (10, 2),
    };
    let taken = state.networks.values().map(|it| it.cidr);
    let taken: Vec<IpNet> = taken.chain(state.vpcs.values().map(|it| it.cidr)).collect();
    let ranges = (from..=u8::MAX).map(|second| v4_range([first, second, 0, 0], 16));
    let mut free = ranges.filter(|range| !taken.iter().any(|it| range.contains(it)));
    free.next().unwrap_or_else(|| v4_range([172, 16, 0, 0], 16))
}

/// The next /24 of a VPC that no tier has.
fn next_tier_range(state: &State, vpc: &Vpc) -> Option<IpNet> {
    let taken: Vec<IpNet> = state.networks.values().map(|it| it.cidr).collect();
    let mut ranges = vpc.cidr.subnets(24).ok()?;
    ranges.find(|range| !taken.contains(range))
}

pub(crate) fn insert_network(state: &mut State, spec: NetworkSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let vpc = spec.vpc.as_ref().and_then(|vpc| state.vpcs.get(vpc)).cloned();
    let tier_range = vpc.as_ref().and_then(|vpc| next_tier_range(state, vpc));
    let services = match &vpc {
        Some(_) => TIER_SERVICES.as_slice(),
        None => ISOLATED_SERVICES.as_slice(),
    };
    let services = services.iter().map(|&name| name.to_owned()).collect();
    let deny = || {
        let mut lists = state.acl_lists.values();
        lists.find(|it| it.name == DEFAULT_DENY).map(|it| it.id.clone())
    };
    let owner = spec.owner.or_else(|| vpc.as_ref().map(|it| it.owner.clone()));
    let network = Network {
        id: id.clone(),
        name: spec.name,
        kind: spec.kind.unwrap_or_else(|| "Isolated".to_owned()),
        owner: owner_or_home(state, owner),
        zone: state.home.zone.clone(),
        cidr: spec.cidr.or(tier_range).unwrap_or_else(|| next_range(state)),
        services: spec.services.unwrap_or(services),
        acl: vpc.as_ref().and_then(|_| spec.acl.or_else(deny)),
        vpc: vpc.map(|it| it.id),
    };
    state.insert_network(network);
    id
}

pub(crate) fn insert_vpc(state: &mut State, spec: VpcSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let owner = owner_or_home(state, spec.owner);
    let zone = state.home.zone.clone();
    if let Some(address) = state.free_address(&zone) {
        state.allocate(&address, owner.clone(), AddressState::Allocated);
        if let Some(address) = state.addresses.get_mut(&address) {
            (address.vpc, address.is_source_nat) = (Some(id.clone()), true);
        }
    }
    let vpc = Vpc {
        id: id.clone(),
        name: spec.name,
        owner,
        zone,
        cidr: spec.cidr.unwrap_or_else(|| next_range(state)),
    };
    state.vpcs.insert(id.clone(), vpc);
    id
}

/// The id, or why there is no such address.
pub(crate) fn insert_address(state: &mut State, spec: AddressSpec) -> Result<String, String> {
    let zone = state.home.zone.clone();
    let id = match spec.address {
        Some(wanted) => {
            let mut all = state.addresses.values();
            match all.find(|it| it.address == wanted) {
                Some(held) if held.owner.is_some() => return Err(format!("{wanted} is somebody's")),
                Some(free) => free.id.clone(),
                None => state.add_free(&zone, wanted),
            }
        }
        None => state.free_address(&zone).ok_or("no free public address")?,
    };
    let network = match &spec.vpc {
        Some(_) => spec.network,
        None => Some(spec.network.unwrap_or_else(|| state.home.network.clone())),
    };
    let of_network = network
        .as_ref()
        .and_then(|id| state.networks.get(id))
        .map(|it| it.owner.clone());
    let of_vpc = spec
        .vpc
        .as_ref()
        .and_then(|id| state.vpcs.get(id))
        .map(|it| it.owner.clone());
    let owner = owner_or_home(state, spec.owner.or(of_network).or(of_vpc));
    state.allocate(&id, owner, AddressState::Allocated);
    if let Some(address) = state.addresses.get_mut(&id) {
        (address.network, address.vpc, address.tags) = (network, spec.vpc, spec.tags);
    }
    Ok(id)
}

pub(crate) fn insert_rule(state: &mut State, spec: RuleSpec) -> String {
    let id = spec.id.unwrap_or_else(|| state.id());
    let address = state.addresses.get(&spec.address);
    let of_address = address.and_then(|it| it.owner.clone());
    let network = spec.network.or_else(|| address.and_then(|it| it.network.clone()));
    let network = network.unwrap_or_else(|| state.home.network.clone());
    let rule = LoadBalancerRule {
        id: id.clone(),
        number: state.number(),
        name: spec.name,
        description: spec.description,
        algorithm: spec.algorithm.unwrap_or_else(|| "roundrobin".to_owned()),
        protocol: spec.protocol,
        public_port: spec.public_port,
        private_port: spec.private_port,
        network: network.clone(),
        cidrs: spec.cidrs,
        state: match spec.members.is_empty() {
            true => RuleState::Add,
            false => RuleState::Active,
        },
        members: spec.members,
        owner: owner_or_home(state, spec.owner.or(of_address)),
        tags: Vec::new(),
        address: spec.address,
    };
    if let Some(address) = state
        .addresses
        .get_mut(&rule.address)
        .filter(|it| it.vpc.is_some())
    {
        address.network = Some(network);
    }
    let network = rule.network.clone();
    state.rules.insert(id.clone(), rule);
    state.tell_router(&network);
    id
}

pub(crate) fn insert_firewall_rule(state: &mut State, spec: FirewallSpec) -> String {
    let address = state.addresses.get(&spec.address);
    let owner = address.and_then(|it| it.owner.clone());
    let network = address.and_then(|it| it.network.clone());
    let rule = FirewallRule {
        id: state.id(),
        number: state.number(),
        address: spec.address,
        network: network.unwrap_or_else(|| state.home.network.clone()),
        protocol: spec.protocol,
        ports: spec.ports,
        cidrs: spec.cidrs,
        state: RuleState::Active,
        owner: owner_or_home(state, owner),
        tags: Vec::new(),
    };
    let id = rule.id.clone();
    state.firewall.insert(id.clone(), rule);
    id
}

pub(crate) fn insert_acl_item(state: &mut State, spec: AclItemSpec) -> String {
    let items = state.acl_items.values().filter(|it| it.list == spec.list);
    let last = items.map(|it| it.number).max().unwrap_or(0);
    let item = AclItem {
        id: state.id(),
        list: spec.list,
        number: spec.number.unwrap_or(last + 1),
        protocol: spec.protocol,
        ports: spec.ports,
        cidrs: spec.cidrs,
        is_allow: spec.is_allow,
        is_ingress: spec.is_ingress,
        reason: spec.reason,
        state: RuleState::Active,
    };
    let id = item.id.clone();
    state.acl_items.insert(id.clone(), item);
    id
}
