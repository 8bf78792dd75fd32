//! The end state without ids, addresses and times, to compare runs that took different ways.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::model::{AclItem, AddressState, LoadBalancerRule, PublicAddress, RuleState, Tag};
use crate::state::State;

/// What a cloud holds beside its virtual machines and networks, in an order that does not depend on how it came about.
///
/// Ids, times and public addresses are left out: two runs that end with the same rules have equal snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Snapshot {
    /// Held addresses, those for source NAT only if they have rules. Sorted.
    pub addresses: Vec<HeldAddress>,
    /// Items of ACL lists. Sorted.
    pub acl_items: Vec<Item>,
}

/// A public address that is somebody's, and what is on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HeldAddress {
    /// Name of the network.
    pub network: Option<String>,
    /// Name of the VPC.
    pub vpc: Option<String>,
    /// What it is doing.
    pub state: AddressState,
    /// Sorted.
    pub tags: BTreeSet<Tag>,
    /// Load balancer rules. Sorted.
    pub rules: Vec<Rule>,
    /// Firewall rules. Sorted.
    pub firewall: Vec<Opening>,
}

/// A load balancer rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Rule {
    /// Name.
    pub name: String,
    /// Protocol.
    pub protocol: Option<String>,
    /// Algorithm.
    pub algorithm: String,
    /// Port of the public address.
    pub public_port: u16,
    /// Port of the members.
    pub private_port: u16,
    /// The clients that may come, whatever separates them.
    pub cidrs: BTreeSet<String>,
    /// What it is doing.
    pub state: RuleState,
    /// Names of the members.
    pub members: BTreeSet<String>,
}

/// A firewall rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Opening {
    /// Protocol.
    pub protocol: String,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
    /// Sources.
    pub cidrs: BTreeSet<String>,
    /// Whether it is in force.
    pub state: RuleState,
}

/// An ACL item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Item {
    /// Name of the list.
    pub list: String,
    /// Protocol.
    pub protocol: String,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
    /// The other side.
    pub cidrs: BTreeSet<String>,
    /// Whether it lets pass.
    pub is_allow: bool,
    /// Whether it is about what comes in.
    pub is_ingress: bool,
    /// Whether it is in force.
    pub state: RuleState,
}

/// Describes the state as it is now.
pub(crate) fn take(state: &State) -> Snapshot {
    let held = state.addresses.values().filter(|it| it.owner.is_some());
    let mut addresses: Vec<HeldAddress> = held
        .map(|it| (it.is_source_nat, describe(state, it)))
        .filter(|(is_source_nat, it)| !is_source_nat || !it.rules.is_empty() || !it.firewall.is_empty())
        .map(|(_, it)| it)
        .collect();
    addresses.sort();
    let mut acl_items: Vec<Item> = state.acl_items.values().map(|it| item(state, it)).collect();
    acl_items.sort();
    Snapshot { addresses, acl_items }
}

fn describe(state: &State, address: &PublicAddress) -> HeldAddress {
    let network = address.network.as_ref().and_then(|id| state.networks.get(id));
    let vpc = address.vpc.as_ref().and_then(|id| state.vpcs.get(id));
    let rules = state.rules.values().filter(|it| it.address == address.id);
    let mut rules: Vec<Rule> = rules.map(|it| rule(state, it)).collect();
    rules.sort();
    let firewall = state.firewall.values().filter(|it| it.address == address.id);
    let mut firewall: Vec<Opening> = firewall
        .map(|it| Opening {
            protocol: it.protocol.clone(),
            ports: it.ports,
            cidrs: it.cidrs.iter().cloned().collect(),
            state: it.state,
        })
        .collect();
    firewall.sort();
    HeldAddress {
        network: network.map(|it| it.name.clone()),
        vpc: vpc.map(|it| it.name.clone()),
        state: address.state,
        tags: address.tags.iter().cloned().collect(),
        rules,
        firewall,
    }
}

fn rule(state: &State, rule: &LoadBalancerRule) -> Rule {
    let name = |id: &String| state.vms.get(id).map_or(id, |vm| &vm.name).clone();
    Rule {
        name: rule.name.clone(),
        protocol: rule.protocol.clone(),
        algorithm: rule.algorithm.clone(),
        public_port: rule.public_port,
        private_port: rule.private_port,
        cidrs: separated(rule.cidrs.as_deref()).map(str::to_owned).collect(),
        state: rule.state,
        members: rule.members.iter().map(name).collect(),
    }
}

fn item(state: &State, item: &AclItem) -> Item {
    let list = state.acl_lists.get(&item.list);
    Item {
        list: list.map_or(&item.list, |it| &it.name).clone(),
        protocol: item.protocol.clone(),
        ports: item.ports,
        cidrs: item.cidrs.iter().cloned().collect(),
        is_allow: item.is_allow,
        is_ingress: item.is_ingress,
        state: item.state,
    }
}

/// The parts of a CIDR list as it is stored: by blanks or commas.
pub(crate) fn separated(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default()
        .split([' ', ','])
        .filter(|it| !it.is_empty())
}

/// What the API stores and no router does.
fn not_in_force(state: &State) -> Vec<String> {
    let complaints = state.routers.complaints();
    let mut found: Vec<String> = complaints
        .map(|(network, complaint)| {
            let name = state.networks.get(network).map_or(network, |it| &it.name);
            format!("the router of network {name} takes no change: {complaint}")
        })
        .collect();
    let serves = |it: &&LoadBalancerRule| it.state != RuleState::Revoke && !it.members.is_empty();
    for rule in state.rules.values().filter(serves) {
        // A rule without a protocol is one for TCP.
        let means = |it: &LoadBalancerRule| {
            (
                it.protocol_word(),
                it.algorithm.clone(),
                it.cidrs.clone(),
                it.members.clone(),
            )
        };
        let is_as_stored = |it: &LoadBalancerRule| means(it) == means(rule);
        let running = state.routers.running_rule(&rule.id);
        if !running.is_some_and(is_as_stored) {
            found.push(format!("rule {} is not in force as it is stored", rule.name));
        }
    }
    let gone = state.routers.running();
    let gone = gone.filter(|it| !state.rules.contains_key(&it.id));
    found.extend(gone.map(|it| format!("rule {} is gone, and still in force", it.name)));
    found
}

/// What a clean cloud does not have. What is on its way out does not count.
pub(crate) fn violations(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let stays = |it: RuleState| it != RuleState::Revoke;
    for rule in state.rules.values().filter(|it| stays(it.state)) {
        names.entry(&rule.name).or_default().push(&rule.id);
        let is_held = state
            .addresses
            .get(&rule.address)
            .is_some_and(|it| it.owner.is_some());
        if !is_held {
            found.push(format!("rule {} is on an address that is nobody's", rule.name));
        }
        let unique: BTreeSet<&String> = rule.members.iter().collect();
        if unique.len() < rule.members.len() {
            found.push(format!("rule {} has a member twice", rule.name));
        }
    }
    found.extend(not_in_force(state));
    for (name, ids) in names.iter().filter(|(_, ids)| ids.len() > 1) {
        found.push(format!("name {name} has rules {}", ids.join(", ")));
    }
    let mut openings = BTreeSet::new();
    for rule in state.firewall.values().filter(|it| stays(it.state)) {
        let cidrs: BTreeSet<&String> = rule.cidrs.iter().collect();
        if !openings.insert((&rule.address, &rule.protocol, rule.ports, cidrs)) {
            found.push(format!("firewall rule {} is there twice", rule.id));
        }
    }
    let mut items = BTreeSet::new();
    for it in state.acl_items.values().filter(|it| stays(it.state)) {
        if !items.insert(item(state, it)) {
            found.push(format!("ACL item {} is there twice", it.id));
        }
    }
    found
}
