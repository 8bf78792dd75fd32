//! The end state without ids, addresses and times, and what a clean cloud does not have.

use std::collections::{BTreeMap, BTreeSet};

use bowline_cloud_kit::Inspect;
use bowline_cloud_kit::snapshot::sorted;
use serde_json::{Value, json};

use crate::model::{AclItem, FirewallRule, LoadBalancerRule, PublicAddress, RuleState};
use crate::state::State;

impl Inspect for State {
    fn snapshot(&self) -> Value {
        take(self)
    }

    fn violations(&self) -> Vec<String> {
        violations(self)
    }
}

/// Public addresses that are somebody's with what is on them, those for source NAT only if there are rules; and the items of
/// ACL lists.
fn take(state: &State) -> Value {
    let is_bare = |it: &PublicAddress| {
        let has_rule = state.rules.values().any(|rule| rule.address == it.id);
        !has_rule && !state.firewall.values().any(|rule| rule.address == it.id)
    };
    let held = state.addresses.values().filter(|it| it.owner.is_some());
    let held = held.filter(|it| !it.is_source_nat || !is_bare(it));
    json!({
        "addresses": sorted(held.map(|it| address(state, it))),
        "acl_items": sorted(state.acl_items.values().map(|it| item(state, it))),
    })
}

fn address(state: &State, address: &PublicAddress) -> Value {
    let network = address.network.as_ref().and_then(|id| state.networks.get(id));
    let vpc = address.vpc.as_ref().and_then(|id| state.vpcs.get(id));
    let rules = state.rules.values().filter(|it| it.address == address.id);
    let firewall = state.firewall.values().filter(|it| it.address == address.id);
    let opening = |it: &FirewallRule| json!({ "protocol": it.protocol, "ports": it.ports, "cidrs": sorted(&it.cidrs), "state": it.state });
    json!({
        "network": network.map(|it| &it.name), "vpc": vpc.map(|it| &it.name), "state": address.state,
        "tags": sorted(&address.tags), "rules": sorted(rules.map(|it| rule(state, it))),
        "firewall": sorted(firewall.map(opening)),
    })
}

fn rule(state: &State, rule: &LoadBalancerRule) -> Value {
    let name = |id: &String| state.vms.get(id).map_or(id, |vm| &vm.name).clone();
    json!({
        "name": rule.name, "protocol": rule.protocol, "algorithm": rule.algorithm,
        "public_port": rule.public_port, "private_port": rule.private_port,
        // Whatever separates them.
        "cidrs": sorted(separated(rule.cidrs.as_deref())), "state": rule.state,
        "members": sorted(rule.members.iter().map(name)),
        "sticky": sorted(rule.policies.iter().map(|it| json!({ "method": it.method, "params": sorted(&it.params) }))),
    })
}

fn item(state: &State, item: &AclItem) -> Value {
    let list = state.acl_lists.get(&item.list);
    json!({
        "list": list.map_or(&item.list, |it| &it.name), "protocol": item.protocol, "ports": item.ports,
        "cidrs": sorted(&item.cidrs), "is_allow": item.is_allow, "is_ingress": item.is_ingress,
        "state": item.state,
    })
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
                it.policies.clone(),
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
fn violations(state: &State) -> Vec<String> {
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
        if !items.insert(item(state, it).to_string()) {
            found.push(format!("ACL item {} is there twice", it.id));
        }
    }
    found
}
