//! What a clean cloud does not have: duplicates, and parts without their whole.

use bowline_cloud_kit::snapshot::repeated;

use crate::model::Id;
use crate::state::State;

/// Listeners and pools may share a name: it bears the place of a port among the others, which changes.
pub(super) fn violations(state: &State) -> Vec<String> {
    let balancers = state.load_balancers.values();
    let mut found = repeated("load balancer", balancers.map(|it| it.part.name.clone()));
    let groups = state.groups.values();
    let groups = groups.map(|it| format!("{} of project {}", it.name, it.meta.project));
    found.extend(repeated("security group", groups));
    orphans(state, &mut found);
    found
}

fn orphans(state: &State, found: &mut Vec<String>) {
    let has_port = |id: Id| state.ports.contains_key(&id);
    let is_vip = |id: Id| state.load_balancers.values().any(|it| it.vip.port == id);
    for it in state.load_balancers.values().filter(|it| !has_port(it.vip.port)) {
        found.push(format!("load balancer {} has no port", it.part.name));
    }
    for it in state.ports.values() {
        let may_stay = state.behaviour.keeps_vip_ports;
        if ["Octavia", "ovn-lb:vip"].contains(&it.device_owner.as_str()) && !is_vip(it.id) && !may_stay {
            found.push(format!("port {} has no load balancer", it.name));
        }
        if it.groups.iter().any(|group| !state.groups.contains_key(group)) {
            found.push(format!("port {} has a security group that does not exist", it.id));
        }
    }
    for it in state.floating_ips.values() {
        if it.target.is_some_and(|to| !has_port(to.port)) {
            found.push(format!("floating IP {} has no port", it.address.address));
        }
    }
    for it in state.pools.values() {
        let used = state
            .listeners_of(it.load_balancer)
            .any(|listener| listener.reaches(it.part.id));
        if !used {
            found.push(format!("pool {} has no listener", it.part.name));
        }
    }
    for it in state.listeners.values().filter(|it| it.default_pool.is_none()) {
        found.push(format!("listener {} has no pool", it.part.name));
    }
    for it in state
        .members
        .values()
        .filter(|it| !state.pools.contains_key(&it.pool))
    {
        found.push(format!("member {} has no pool", it.part.name));
    }
    for it in state
        .monitors
        .values()
        .filter(|it| !state.pools.contains_key(&it.pool))
    {
        found.push(format!("health monitor {} has no pool", it.part.name));
    }
}
