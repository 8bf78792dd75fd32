//! Everything a cloud holds, and the clock-driven changes to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bowline_cloud_kit::addresses::{host_count, nth};
use bowline_cloud_kit::dataplane::Bound;
use bowline_cloud_kit::{Clock, Moved, Seed, Simulated};
use indexmap::IndexMap;
use ipnet::IpNet;
use tokio::time::Instant;

use crate::behaviour::Behaviour;
use crate::jobs::Jobs;
use crate::model::{
    AclItem, AclList, AddressState, DEFAULT_ALLOW, DEFAULT_DENY, FirewallRule, LoadBalancerRule, Network,
    Owner, PortForwarding, Project, PublicAddress, RuleState, Tag, VirtualMachine, Vpc, Zone,
};
use crate::options::{API_KEY, Options, Role, SECRET_KEY, UserSpec, Users, default_account};
use crate::router::Routers;

/// The first host number handed out of a small network; those below are for routers and the like.
const FIRST_HOST: u128 = 10;

/// The same of a network with more than 256 addresses, whose first 256 are left out: 10.1.1.10 in 10.1.0.0/16.
const FIRST_HOST_OF_MANY: u128 = 256 + FIRST_HOST;

/// The most addresses of the pool that are made: a range may be wider.
const MOST_ADDRESSES: u128 = 4096;

/// The ports of a rule that names none.
pub(crate) const ALL_PORTS: (u16, u16) = (1, u16::MAX);

/// The services of an isolated network that load balancers can be in.
pub(crate) const ISOLATED_SERVICES: [&str; 9] = [
    "Dhcp",
    "Dns",
    "Firewall",
    "Lb",
    "PortForwarding",
    "SourceNat",
    "StaticNat",
    "UserData",
    "Vpn",
];

/// The services of a VPC's tier that load balancers can be in.
pub(crate) const TIER_SERVICES: [&str; 8] = [
    "Dhcp",
    "Dns",
    "Lb",
    "NetworkACL",
    "PortForwarding",
    "SourceNat",
    "StaticNat",
    "UserData",
];

/// The state of one simulated cloud. All maps keep the order of creation.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) behaviour: Behaviour,
    pub(crate) users: Users,
    pub(crate) seed: Seed,
    pub(crate) clock: Clock,
    pub(crate) zones: IndexMap<String, Zone>,
    pub(crate) projects: IndexMap<String, Project>,
    pub(crate) vms: IndexMap<String, VirtualMachine>,
    pub(crate) networks: IndexMap<String, Network>,
    pub(crate) vpcs: IndexMap<String, Vpc>,
    pub(crate) addresses: IndexMap<String, PublicAddress>,
    pub(crate) rules: IndexMap<String, LoadBalancerRule>,
    pub(crate) firewall: IndexMap<String, FirewallRule>,
    pub(crate) forwardings: IndexMap<String, PortForwarding>,
    pub(crate) acl_lists: IndexMap<String, AclList>,
    pub(crate) acl_items: IndexMap<String, AclItem>,
    /// What the rules of each network really do.
    pub(crate) routers: Routers,
    pub(crate) jobs: Jobs,
    /// When the last requests of each account came, for the rate limit.
    pub(crate) recent: BTreeMap<String, VecDeque<Instant>>,
    pub(crate) home: Home,
    /// What the data plane listens on.
    pub(crate) bound: Vec<Bound>,
    /// Where virtual machines' ports really are that cannot be bound at their own place.
    pub(crate) moved: Moved,
    number: u64,
    /// The next host number of each network.
    hosts: BTreeMap<String, u128>,
}

/// What exists from the start, and ids that never change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Home {
    pub(crate) domain: String,
    pub(crate) zone: String,
    pub(crate) network: String,
    pub(crate) public_network: String,
    pub(crate) management_server: String,
    /// The account of the first user, which owns what names no owner.
    pub(crate) account: String,
}

impl State {
    pub(crate) fn new(options: Options, behaviour: Behaviour, seed: Seed, clock: Clock) -> Self {
        let id = || seed.uuid().to_string();
        let account = options
            .users
            .first()
            .map_or_else(default_account, |it| it.account.clone());
        let home = Home {
            account,
            domain: id(),
            zone: id(),
            network: id(),
            public_network: id(),
            management_server: id(),
        };
        let mut state = Self {
            behaviour,
            seed,
            clock,
            home,
            ..Self::default()
        };
        state.furnish(options);
        state
    }

    fn furnish(&mut self, options: Options) {
        let mut users = options.users;
        if users.is_empty() {
            users.push(UserSpec::new(API_KEY, SECRET_KEY));
        }
        for user in users {
            let id = self.id();
            self.users.set(id, user);
        }
        for name in [DEFAULT_ALLOW, DEFAULT_DENY] {
            let id = self.id();
            let list = AclList {
                id: id.clone(),
                name: name.to_owned(),
                vpc: None,
            };
            self.acl_lists.insert(id, list);
        }
        let Home {
            zone,
            network,
            account,
            ..
        } = self.home.clone();
        let name = options.zone;
        self.zones.insert(
            zone.clone(),
            Zone {
                id: zone.clone(),
                name,
            },
        );
        self.add_pool(&zone, options.public);
        let network = Network {
            id: network,
            name: "k8s".to_owned(),
            kind: "Isolated".to_owned(),
            owner: Owner::Account(account),
            zone,
            cidr: options.guest,
            services: ISOLATED_SERVICES.map(str::to_owned).into(),
            vpc: None,
            acl: None,
        };
        self.place_network(network);
    }

    /// Adds the addresses of a range to a zone's pool, without the range's first ten and its last one.
    pub(crate) fn add_pool(&mut self, zone: &str, range: IpNet) {
        let last = host_count(range).saturating_sub(1).min(MOST_ADDRESSES);
        for host in FIRST_HOST..last {
            self.add_free(zone, nth(range, host));
        }
    }

    /// Adds one address to a zone's pool; answers its id.
    pub(crate) fn add_free(&mut self, zone: &str, address: IpAddr) -> String {
        let id = self.id();
        let free = PublicAddress {
            id: id.clone(),
            address,
            state: AddressState::Free,
            zone: zone.to_owned(),
            allocated: None,
            owner: None,
            network: None,
            vpc: None,
            is_source_nat: false,
            static_nat: None,
            tags: Vec::new(),
        };
        self.addresses.insert(id.clone(), free);
        id
    }

    /// Adds a network. An isolated one with source NAT gets an address for it, as a router does when it starts.
    pub(crate) fn place_network(&mut self, network: Network) {
        let (id, zone, owner) = (network.id.clone(), network.zone.clone(), network.owner.clone());
        let wants_address = network.vpc.is_none() && network.offers("SourceNat");
        self.networks.insert(id.clone(), network);
        if wants_address && let Some(address) = self.free_address(&zone) {
            self.allocate(&address, owner, AddressState::Allocated);
            if let Some(address) = self.addresses.get_mut(&address) {
                (address.network, address.is_source_nat) = (Some(id), true);
            }
        }
    }

    /// A new id.
    pub(crate) fn id(&self) -> String {
        self.seed.uuid().to_string()
    }

    /// A new number of the database.
    pub(crate) fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// The next address of a network for a virtual machine. Addresses are not used twice.
    pub(crate) fn guest_address(&mut self, network: &str) -> Option<IpAddr> {
        let cidr = self.networks.get(network)?.cidr;
        let first = if host_count(cidr) > 256 {
            FIRST_HOST_OF_MANY
        } else {
            FIRST_HOST
        };
        let used: Vec<IpAddr> = self
            .vms
            .values()
            .flat_map(|vm| &vm.nics)
            .map(|nic| nic.address)
            .collect();
        let next = self.hosts.entry(network.to_owned()).or_insert(first);
        loop {
            let address = nth(cidr, *next);
            *next += 1;
            if !used.contains(&address) {
                return Some(address);
            }
        }
    }

    /// The first free public address of a zone.
    pub(crate) fn free_address(&self, zone: &str) -> Option<String> {
        let mut free = self
            .addresses
            .values()
            .filter(|it| it.state == AddressState::Free);
        free.find(|it| it.zone == zone).map(|it| it.id.clone())
    }

    /// Makes an address somebody's.
    pub(crate) fn allocate(&mut self, id: &str, owner: Owner, to: AddressState) {
        let now = self.now();
        if let Some(address) = self.addresses.get_mut(id) {
            address.state = to;
            address.allocated = Some(now);
            address.owner = Some(owner);
        }
    }

    /// Makes an address nobody's, and takes every rule on it along.
    pub(crate) fn free(&mut self, id: &str) {
        if !self.behaviour.releases_leave_rules {
            let on_it = self.rules.values().filter(|rule| rule.address == id);
            let networks: BTreeSet<String> = on_it.map(|rule| rule.network.clone()).collect();
            self.rules.retain(|_, rule| rule.address != id);
            self.tell_routers(networks);
            self.firewall.retain(|_, rule| rule.address != id);
            self.forwardings.retain(|_, rule| rule.address != id);
        }
        if let Some(address) = self.addresses.get_mut(id) {
            address.state = AddressState::Free;
            (address.allocated, address.owner) = (None, None);
            (address.network, address.vpc) = (None, None);
            (address.is_source_nat, address.static_nat) = (false, None);
            address.tags.clear();
        }
    }

    /// Removes a load balancer rule; whether there was one.
    pub(crate) fn remove_rule(&mut self, id: &str) -> bool {
        let Some(rule) = self.rules.shift_remove(id) else {
            return false;
        };
        let is_last = !self.rules.values().any(|it| it.address == rule.address)
            && !self.forwardings.values().any(|it| it.address == rule.address);
        let address = self.addresses.get_mut(&rule.address);
        if let Some(address) = address.filter(|it| is_last && it.vpc.is_some()) {
            address.network = None;
        }
        self.tell_router(&rule.network);
        true
    }

    /// Removes a virtual machine for good; whether there was one.
    pub(crate) fn remove_vm(&mut self, id: &str) -> bool {
        let mut networks = BTreeSet::new();
        for rule in self.rules.values_mut() {
            if rule.members.iter().any(|member| member == id) {
                rule.lose_members(|member| member == id);
                networks.insert(rule.network.clone());
            }
        }
        self.tell_routers(networks);
        self.forwardings.retain(|_, rule| rule.vm != id);
        for address in self.addresses.values_mut() {
            address.static_nat.take_if(|vm| vm == id);
        }
        self.vms.shift_remove(id).is_some()
    }

    /// Tells the router of a network all of its rules.
    pub(crate) fn tell_router(&mut self, network: &str) {
        for rule in self.rules.values_mut().filter(|rule| rule.network == network) {
            rule.policies.retain(|policy| !policy.is_revoked);
        }
        let is_told = |rule: &&LoadBalancerRule| rule.network == network && rule.state != RuleState::Revoke;
        let rules = self.rules.values().filter(is_told).cloned().collect();
        self.routers.tell(network, rules, !self.behaviour.takes_udp);
    }

    /// The same for several networks.
    pub(crate) fn tell_routers(&mut self, networks: impl IntoIterator<Item = String>) {
        for network in networks {
            self.tell_router(&network);
        }
    }

    /// Starts a router anew, which is told everything then. If haproxy cannot read it, it does not start.
    pub(crate) fn restart_router(&mut self, network: &str) {
        self.routers.remove(network);
        self.tell_router(network);
    }

    /// What the server's clock shows, as it writes it.
    pub(crate) fn now(&self) -> String {
        self.clock.iso8601_seconds()
    }

    /// The rules of a public address that hold a port of it, as number and ports.
    pub(crate) fn holder(&self, address: &str, port: u16, protocol: &str) -> Option<(u64, (u16, u16))> {
        let conflicts = |it: &&LoadBalancerRule| {
            let transport = |protocol: &str| protocol == "udp";
            self.behaviour.protocols_conflict || transport(&it.protocol_word()) == transport(protocol)
        };
        let rules = self
            .rules
            .values()
            .filter(|it| it.address == address && it.public_port == port && it.state != RuleState::Revoke)
            .filter(conflicts)
            .map(|it| (it.number, (it.public_port, it.public_port)));
        let forwardings = self
            .forwardings
            .values()
            .filter(|it| it.address == address && (it.ports.0..=it.ports.1).contains(&port))
            .map(|it| (it.number, it.ports));
        rules.chain(forwardings).next()
    }

    /// A firewall rule that shares ports and at least one source with another one to be; ports alone where that is a conflict.
    pub(crate) fn overlapping(
        &self,
        address: &str,
        protocol: &str,
        ports: Option<(u16, u16)>,
        cidrs: &[String],
    ) -> Option<&FirewallRule> {
        // One with ports and one without do not meet.
        let meets = |taken: Option<(u16, u16)>| match (ports, taken) {
            (Some(wanted), Some(taken)) => wanted.0 <= taken.1 && taken.0 <= wanted.1,
            (wanted, taken) => wanted == taken,
        };
        self.firewall.values().find(|it| {
            it.address == address
                && it.protocol == protocol
                && it.state != RuleState::Revoke
                && meets(it.ports)
                && (self.behaviour.firewall_ports_conflict
                    || it.cidrs.iter().any(|cidr| cidrs.contains(cidr)))
        })
    }

    /// How many public addresses an owner has.
    pub(crate) fn addresses_of(&self, owner: &Owner) -> usize {
        let owned = |it: &&PublicAddress| it.owner.as_ref() == Some(owner);
        self.addresses.values().filter(owned).count()
    }

    /// Whether an account may change what somebody owns.
    pub(crate) fn may(&self, account: &str, role: Role, owner: &Owner) -> bool {
        role == Role::Admin
            || match owner {
                Owner::Account(name) => name == account,
                Owner::Project(id) => self.is_in_project(account, id),
            }
    }

    pub(crate) fn is_in_project(&self, account: &str, project: &str) -> bool {
        let project = self.projects.get(project);
        project.is_some_and(|it| it.accounts.contains(account))
    }

    /// The tags of an object, if there is one of this kind and id.
    pub(crate) fn tags_mut(&mut self, kind: &str, id: &str) -> Option<&mut Vec<Tag>> {
        match kind.to_ascii_lowercase().as_str() {
            "publicipaddress" => self.addresses.get_mut(id).map(|it| &mut it.tags),
            "loadbalancer" => self.rules.get_mut(id).map(|it| &mut it.tags),
            "firewallrule" => self.firewall.get_mut(id).map(|it| &mut it.tags),
            _ => None,
        }
    }

    /// Whether a list is one of the two that cannot be changed.
    pub(crate) fn is_default_list(&self, list: &str) -> bool {
        self.acl_lists.get(list).is_some_and(|it| it.vpc.is_none())
    }
}

impl Simulated for State {
    fn settle(&mut self) {
        self.finish_due_jobs();
    }
}
