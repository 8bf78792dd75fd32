//! Objects that are put into a cloud by hand: by a test's handle, and over the admin path. Nothing is checked.

use std::net::IpAddr;

use bowline_cloud_kit::addresses::v4_range;
use ipnet::IpNet;

use crate::model::{
    AclItem, AddressState, DEFAULT_DENY, FirewallRule, LoadBalancerRule, Network, Nic, Owner, Project,
    RuleState, StickinessPolicy, VirtualMachine, VmState, Vpc,
};
use crate::specs::{
    AclItemSpec, AddressSpec, FirewallSpec, NetworkSpec, NicSpec, PolicySpec, ProjectSpec, RuleSpec, VmSpec,
    VpcSpec,
};
use crate::state::{ISOLATED_SERVICES, State, TIER_SERVICES};

impl State {
    fn owner_or_home(&self, owner: Option<Owner>) -> Owner {
        owner.unwrap_or_else(|| Owner::Account(self.home.account.clone()))
    }

    pub(crate) fn insert_project(&mut self, spec: ProjectSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let home = || [self.home.account.clone()].into();
        let project = Project {
            id: id.clone(),
            name: spec.name,
            accounts: spec.accounts.unwrap_or_else(home),
        };
        self.projects.insert(id.clone(), project);
        id
    }

    pub(crate) fn insert_vm(&mut self, spec: VmSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let wishes = spec.nics.unwrap_or_else(|| vec![NicSpec::default()]);
        let has_default = wishes.iter().any(|nic| nic.is_default);
        let mut nics = Vec::new();
        for wish in wishes {
            let network = wish.network.unwrap_or_else(|| self.home.network.clone());
            let address = wish.address.or_else(|| self.guest_address(&network));
            nics.push(Nic {
                id: self.id(),
                network,
                address: address.unwrap_or_else(|| IpAddr::from([0, 0, 0, 0])),
                ipv6: wish.ipv6,
                is_default: wish.is_default || (!has_default && nics.is_empty()),
            });
        }
        let vm = VirtualMachine {
            id: id.clone(),
            number: self.number(),
            display_name: spec.name.clone(),
            name: spec.name,
            owner: self.owner_or_home(spec.owner),
            state: spec.state.unwrap_or(VmState::Running),
            zone: spec.zone.unwrap_or_else(|| self.home.zone.clone()),
            offering: spec.offering.unwrap_or_else(|| "Medium 4c/8g".to_owned()),
            host: "kvm-host-12".to_owned(),
            nics,
            created: self.now(),
        };
        self.vms.insert(id.clone(), vm);
        id
    }

    /// The next 10.N.0.0/16 that no network and no VPC has, or 127.N.0.0/16 if the first network is there.
    fn next_range(&self) -> IpNet {
        let home = self.networks.get(&self.home.network).map(|it| it.cidr.addr());
        let (first, from) = match home {
            Some(address) if address.is_loopback() => (127, 80),
            _ => (10, 2),
        };
        let taken = self.networks.values().map(|it| it.cidr);
        let taken: Vec<IpNet> = taken.chain(self.vpcs.values().map(|it| it.cidr)).collect();
        let ranges = (from..=u8::MAX).map(|second| v4_range([first, second, 0, 0], 16));
        let mut free = ranges.filter(|range| !taken.iter().any(|it| range.contains(it)));
        free.next().unwrap_or_else(|| v4_range([172, 16, 0, 0], 16))
    }

    /// The next /24 of a VPC that no tier has.
    fn next_tier_range(&self, vpc: &Vpc) -> Option<IpNet> {
        let taken: Vec<IpNet> = self.networks.values().map(|it| it.cidr).collect();
        let mut ranges = vpc.cidr.subnets(24).ok()?;
        ranges.find(|range| !taken.contains(range))
    }

    pub(crate) fn insert_network(&mut self, spec: NetworkSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let vpc = spec.vpc.as_ref().and_then(|vpc| self.vpcs.get(vpc)).cloned();
        let tier_range = vpc.as_ref().and_then(|vpc| self.next_tier_range(vpc));
        let services = match &vpc {
            Some(_) => TIER_SERVICES.as_slice(),
            None => ISOLATED_SERVICES.as_slice(),
        };
        let services = services.iter().map(|&name| name.to_owned()).collect();
        let deny = || {
            let mut lists = self.acl_lists.values();
            lists.find(|it| it.name == DEFAULT_DENY).map(|it| it.id.clone())
        };
        let owner = spec.owner.or_else(|| vpc.as_ref().map(|it| it.owner.clone()));
        let network = Network {
            id: id.clone(),
            name: spec.name,
            kind: spec.kind.unwrap_or_else(|| "Isolated".to_owned()),
            owner: self.owner_or_home(owner),
            zone: self.home.zone.clone(),
            cidr: spec.cidr.or(tier_range).unwrap_or_else(|| self.next_range()),
            services: spec.services.unwrap_or(services),
            acl: vpc.as_ref().and_then(|_| spec.acl.or_else(deny)),
            vpc: vpc.map(|it| it.id),
        };
        self.place_network(network);
        id
    }

    pub(crate) fn insert_vpc(&mut self, spec: VpcSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let owner = self.owner_or_home(spec.owner);
        let zone = self.home.zone.clone();
        if let Some(address) = self.free_address(&zone) {
            self.allocate(&address, owner.clone(), AddressState::Allocated);
            if let Some(address) = self.addresses.get_mut(&address) {
                (address.vpc, address.is_source_nat) = (Some(id.clone()), true);
            }
        }
        let vpc = Vpc {
            id: id.clone(),
            name: spec.name,
            owner,
            zone,
            cidr: spec.cidr.unwrap_or_else(|| self.next_range()),
        };
        self.vpcs.insert(id.clone(), vpc);
        id
    }

    /// The id, or why there is no such address.
    pub(crate) fn insert_address(&mut self, spec: AddressSpec) -> Result<String, String> {
        let zone = self.home.zone.clone();
        let id = match spec.address {
            Some(wanted) => {
                let mut all = self.addresses.values();
                match all.find(|it| it.address == wanted) {
                    Some(held) if held.owner.is_some() => return Err(format!("{wanted} is somebody's")),
                    Some(free) => free.id.clone(),
                    None => self.add_free(&zone, wanted),
                }
            }
            None => self.free_address(&zone).ok_or("no free public address")?,
        };
        let network = match &spec.vpc {
            Some(_) => spec.network,
            None => Some(spec.network.unwrap_or_else(|| self.home.network.clone())),
        };
        let of_network = network
            .as_ref()
            .and_then(|id| self.networks.get(id))
            .map(|it| it.owner.clone());
        let of_vpc = spec
            .vpc
            .as_ref()
            .and_then(|id| self.vpcs.get(id))
            .map(|it| it.owner.clone());
        let owner = self.owner_or_home(spec.owner.or(of_network).or(of_vpc));
        self.allocate(&id, owner, AddressState::Allocated);
        if let Some(address) = self.addresses.get_mut(&id) {
            (address.network, address.vpc, address.tags) = (network, spec.vpc, spec.tags);
        }
        Ok(id)
    }

    /// Gives a rule a policy beside those that it has; answers its id.
    pub(crate) fn insert_policy(&mut self, spec: PolicySpec) -> String {
        let id = self.id();
        if let Some(rule) = self.rules.get_mut(&spec.rule) {
            rule.policies.push(StickinessPolicy {
                id: id.clone(),
                name: spec.name,
                method: spec.method,
                params: spec.params.into_iter().collect(),
                is_revoked: false,
            });
            let network = rule.network.clone();
            self.tell_router(&network);
        }
        id
    }

    pub(crate) fn insert_rule(&mut self, spec: RuleSpec) -> String {
        let id = spec.id.unwrap_or_else(|| self.id());
        let address = self.addresses.get(&spec.address);
        let of_address = address.and_then(|it| it.owner.clone());
        let network = spec.network.or_else(|| address.and_then(|it| it.network.clone()));
        let network = network.unwrap_or_else(|| self.home.network.clone());
        let rule = LoadBalancerRule {
            id: id.clone(),
            number: self.number(),
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
            policies: Vec::new(),
            owner: self.owner_or_home(spec.owner.or(of_address)),
            tags: Vec::new(),
            address: spec.address,
        };
        if let Some(address) = self
            .addresses
            .get_mut(&rule.address)
            .filter(|it| it.vpc.is_some())
        {
            address.network = Some(network);
        }
        let network = rule.network.clone();
        self.rules.insert(id.clone(), rule);
        self.tell_router(&network);
        id
    }

    pub(crate) fn insert_firewall_rule(&mut self, spec: FirewallSpec) -> String {
        let address = self.addresses.get(&spec.address);
        let owner = address.and_then(|it| it.owner.clone());
        let network = address.and_then(|it| it.network.clone());
        let rule = FirewallRule {
            id: self.id(),
            number: self.number(),
            address: spec.address,
            network: network.unwrap_or_else(|| self.home.network.clone()),
            protocol: spec.protocol,
            ports: spec.ports,
            cidrs: spec.cidrs,
            state: RuleState::Active,
            owner: self.owner_or_home(owner),
            tags: Vec::new(),
        };
        let id = rule.id.clone();
        self.firewall.insert(id.clone(), rule);
        id
    }

    pub(crate) fn insert_acl_item(&mut self, spec: AclItemSpec) -> String {
        let items = self.acl_items.values().filter(|it| it.list == spec.list);
        let last = items.map(|it| it.number).max().unwrap_or(0);
        let item = AclItem {
            id: self.id(),
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
        self.acl_items.insert(id.clone(), item);
        id
    }
}
