//! The end state without ids and times, to compare runs that took different ways.

use std::collections::BTreeMap;

use serde::Serialize;
use uuid::Uuid;

use crate::model::{HttpProbe, Listener, Tags, Target};
use crate::state::State;

/// What a project holds, in an order that does not depend on how it came about.
///
/// Ids, times and automatically chosen addresses are left out: two runs that end with the same load balancers have equal
/// snapshots.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Snapshot {
    /// By name, then by content.
    pub load_balancers: Vec<LoadBalancerState>,
    /// Network to target, as `server <name>` or `load_balancer <name>`.
    pub floating_ips: BTreeMap<String, Option<String>>,
}

/// A load balancer with all its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LoadBalancerState {
    /// Name.
    pub name: String,
    /// Zone slug.
    pub zone: String,
    /// Flavor slug.
    pub flavor: String,
    /// The range of each address, in the order of the API.
    pub vip_subnets: Vec<String>,
    /// Labels.
    pub tags: Tags,
    /// Pools, sorted.
    pub pools: Vec<PoolState>,
    /// Listeners that lost their pool, sorted.
    pub loose_listeners: Vec<ListenerState>,
}

/// A pool with all its parts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PoolState {
    /// Name.
    pub name: String,
    /// `round_robin`, ...
    pub algorithm: String,
    /// `tcp`, ...
    pub protocol: String,
    /// Members, sorted.
    pub members: Vec<MemberState>,
    /// Listeners, sorted.
    pub listeners: Vec<ListenerState>,
    /// Monitors, sorted.
    pub monitors: Vec<MonitorState>,
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MemberState {
    /// Name.
    pub name: String,
    /// Address.
    pub address: String,
    /// Port for traffic.
    pub protocol_port: u16,
    /// Port for probes, if another one was asked for.
    pub monitor_port: Option<u16>,
    /// The subnet's range.
    pub subnet: String,
    /// Whether it gets connections.
    pub enabled: bool,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ListenerState {
    /// Name.
    pub name: String,
    /// `tcp` or `udp`.
    pub protocol: String,
    /// Port.
    pub protocol_port: u16,
    /// In the order given.
    pub allowed_cidrs: Vec<String>,
    /// Client, connect and member time-out in milliseconds.
    pub timeouts_ms: [u32; 3],
}

/// A monitor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct MonitorState {
    /// `tcp`, `http`, ...
    pub kind: String,
    /// Seconds between probes, and for one.
    pub delay_and_timeout_s: [u32; 2],
    /// Up and down threshold.
    pub thresholds: [u32; 2],
    /// The HTTP part as one line.
    pub http: Option<String>,
}

/// The word that serde writes for a variant.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => format!("{other:?}"),
    }
}

fn sorted<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort();
    items
}

/// Describes the state as it is now.
pub(crate) fn take(state: &State) -> Snapshot {
    let cidr = |subnet: &Uuid| {
        state
            .subnets
            .get(subnet)
            .map(|subnet| subnet.cidr.to_string())
            .unwrap_or_default()
    };
    let pool = |pool: &crate::model::Pool| PoolState {
        name: pool.name.clone(),
        algorithm: word(pool.algorithm),
        protocol: word(pool.protocol),
        members: sorted(state.members_of(pool.uuid).map(|member| MemberState {
            name: member.name.clone(),
            address: member.address.to_string(),
            protocol_port: member.protocol_port,
            monitor_port: member.monitor_port.filter(|&port| port != member.protocol_port),
            subnet: cidr(&member.subnet),
            enabled: member.enabled,
        })),
        listeners: sorted(
            state
                .listeners
                .values()
                .filter(|it| it.pool == Some(pool.uuid))
                .map(listener),
        ),
        monitors: sorted(
            state
                .monitors
                .values()
                .filter(|it| it.pool == pool.uuid)
                .map(|monitor| MonitorState {
                    kind: word(monitor.kind),
                    delay_and_timeout_s: [monitor.delay_s, monitor.timeout_s],
                    thresholds: [monitor.up_threshold, monitor.down_threshold],
                    http: monitor.http.as_ref().map(http),
                }),
        ),
    };
    let balancers = state.load_balancers.values().map(|balancer| LoadBalancerState {
        name: balancer.name.clone(),
        zone: balancer.zone.clone(),
        flavor: balancer.flavor.clone(),
        vip_subnets: balancer.vips.iter().map(|vip| cidr(&vip.subnet)).collect(),
        tags: balancer.tags.clone(),
        pools: sorted(state.pools_of(balancer.uuid).map(pool)),
        loose_listeners: sorted(
            state
                .listeners
                .values()
                .filter(|it| it.load_balancer == balancer.uuid && it.pool.is_none())
                .map(listener),
        ),
    });
    let target = |target: Target| match target {
        Target::Server(uuid) => {
            format!(
                "server {}",
                state
                    .servers
                    .get(&uuid)
                    .map_or("?", |server| server.name.as_str())
            )
        }
        Target::LoadBalancer(uuid) => {
            let balancer = state.load_balancers.get(&uuid);
            format!(
                "load_balancer {}",
                balancer.map_or("?", |balancer| balancer.name.as_str())
            )
        }
    };
    let floating = state
        .floating_ips
        .values()
        .map(|it| (it.network.to_string(), it.target.map(target)));
    Snapshot {
        load_balancers: sorted(balancers),
        floating_ips: floating.collect(),
    }
}

fn listener(listener: &Listener) -> ListenerState {
    ListenerState {
        name: listener.name.clone(),
        protocol: word(listener.protocol),
        protocol_port: listener.protocol_port,
        allowed_cidrs: listener.allowed_cidrs.clone(),
        timeouts_ms: [
            listener.timeout_client_data_ms,
            listener.timeout_member_connect_ms,
            listener.timeout_member_data_ms,
        ],
    }
}

fn http(probe: &HttpProbe) -> String {
    let host = probe.host.as_deref().unwrap_or("-");
    let codes = probe.expected_codes.join(",");
    format!(
        "{} {} HTTP/{} host {host} expects {codes}",
        probe.method, probe.url_path, probe.version
    )
}

/// What a clean project does not have: duplicates and parts without their whole.
pub(crate) fn violations(state: &State) -> Vec<String> {
    let mut found = Vec::new();
    let snapshot = take(state);
    repeated(
        &mut found,
        "load balancer",
        snapshot.load_balancers.iter().map(|it| it.name.clone()),
    );
    for balancer in &snapshot.load_balancers {
        let name = &balancer.name;
        repeated(
            &mut found,
            &format!("pool of {name}"),
            balancer.pools.iter().map(|it| it.name.clone()),
        );
        let listeners = balancer
            .pools
            .iter()
            .flat_map(|pool| &pool.listeners)
            .chain(&balancer.loose_listeners);
        let ports = sorted(listeners.map(|it| format!("{}/{}", it.protocol, it.protocol_port)));
        repeated(&mut found, &format!("listener of {name}"), ports.into_iter());
        found.extend(
            balancer
                .loose_listeners
                .iter()
                .map(|it| format!("listener {} of {name} has no pool", it.name)),
        );
        for pool in &balancer.pools {
            let part = format!("{name}/{}", pool.name);
            let targets = sorted(
                pool.members
                    .iter()
                    .map(|it| format!("{}:{}", it.address, it.protocol_port)),
            );
            repeated(&mut found, &format!("member of {part}"), targets.into_iter());
            if pool.monitors.len() > 1 {
                found.push(format!("{} monitors for {part}", pool.monitors.len()));
            }
        }
    }
    orphans(state, &mut found);
    found
}

/// Equal neighbours of a sorted sequence.
fn repeated(found: &mut Vec<String>, what: &str, keys: impl Iterator<Item = String>) {
    let mut last = None;
    for key in keys {
        if last.as_ref() == Some(&key) {
            found.push(format!("duplicate {what}: {key}"));
        }
        last = Some(key);
    }
}

fn orphans(state: &State, found: &mut Vec<String>) {
    let balancer = |uuid: &Uuid| state.load_balancers.contains_key(uuid);
    let pool = |uuid: &Uuid| state.pools.contains_key(uuid);
    for it in state.pools.values().filter(|it| !balancer(&it.load_balancer)) {
        found.push(format!("pool {} has no load balancer", it.name));
    }
    for it in state.members.values().filter(|it| !pool(&it.pool)) {
        found.push(format!("member {} has no pool", it.name));
    }
    for it in state.listeners.values().filter(|it| !balancer(&it.load_balancer)) {
        found.push(format!("listener {} has no load balancer", it.name));
    }
    for it in state.monitors.values().filter(|it| !pool(&it.pool)) {
        found.push(format!("monitor {} has no pool", it.uuid));
    }
    for it in state.floating_ips.values() {
        let dangling = match it.target {
            Some(Target::Server(uuid)) => !state.servers.contains_key(&uuid),
            Some(Target::LoadBalancer(uuid)) => !balancer(&uuid),
            None => false,
        };
        if dangling {
            found.push(format!("floating IP {} has no target", it.network));
        }
    }
}
