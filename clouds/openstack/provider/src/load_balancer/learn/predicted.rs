//! What the APIs will show of what they are asked for, with ids that are made up.

use std::sync::Arc;

use bowline_cloud_provider::effects::as_shown;
use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    FloatingIp, Listener, LoadBalancer, LoadBalancerId, Member, Monitor, NewListener, NewLoadBalancer,
    NewMember, NewMonitor, NewPool, Pool, Port, Reference,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::load_balancer::learned::Shown;
use crate::load_balancer::memory::{Memory, Seen};
use crate::load_balancer::observed::{Observed, PLANNED, Parts};
use crate::load_balancer::security_groups::ports::{with_group, without_group};
use crate::load_balancer::step::{CloudStep, FloatingIpChange, GroupChange, PartChange};

/// What stands for an address that only the cloud can tell.
const NEW_ADDRESS: &str = "a new address";
/// The same for a floating IP.
const NEW_FLOATING_IP: &str = "a new floating IP";

/// How deep a change of an object goes: what is written replaces the whole field.
pub(super) const DEPTH: usize = 1;

/// An id that no object has.
fn id(memory: &mut Memory) -> String {
    format!("{PLANNED}{}", memory.made_up())
}

pub(super) fn reference<Id>(id: Id) -> Reference<Id> {
    Reference { id }
}

/// What the answer to a step will show; `None` if it shows nothing.
pub(super) fn shown(seen: &mut Seen, step: &CloudStep) -> Option<Shown> {
    let Seen { observed, memory } = seen;
    Some(match step {
        CloudStep::CreateBalancer { new } => Shown::Balancer(balancer(memory, new)?),
        CloudStep::DeleteBalancer { .. } | CloudStep::DeletePort { .. } => return None,
        CloudStep::Part { balancer, change } => {
            let parts = observed.parts.get(balancer)?;
            return part(memory, parts, change);
        }
        CloudStep::FloatingIp(change) => {
            let mut list = observed.floating_ips.iter().flat_map(|list| list.iter());
            Shown::FloatingIp(match change {
                FloatingIpChange::Create { new, .. } => {
                    let filled_in = json!({"floating_ip_address": NEW_FLOATING_IP});
                    made(memory, filled_in, new)?
                }
                FloatingIpChange::Attach { id, port, .. } => FloatingIp {
                    port_id: port.clone(),
                    fixed_ip_address: None,
                    router_id: None,
                    ..list.find(|there| there.id == *id)?.clone()
                },
                FloatingIpChange::Delete { .. } => return None,
            })
        }
        CloudStep::Group(change) => match change {
            GroupChange::Create { new } => {
                Shown::Group(made(memory, json!({"security_group_rules": []}), new)?)
            }
            GroupChange::CreateRule { new } => Shown::Rule(made(memory, json!({}), new)?),
            GroupChange::Join { group, port } => Shown::Port(Port {
                security_groups: with_group(port, group),
                ..(**port).clone()
            }),
            GroupChange::Leave { group, port } => Shown::Port(Port {
                security_groups: without_group(port, group),
                tags: port
                    .tags
                    .iter()
                    .filter(|tag| *tag != group.as_str())
                    .cloned()
                    .collect(),
                ..(**port).clone()
            }),
            GroupChange::DeleteRule { .. } | GroupChange::Delete { .. } => return None,
        },
    })
}

/// A new object as an API will show it: what it fills in, and what is asked.
fn made<T: DeserializeOwned>(memory: &mut Memory, mut filled_in: Value, new: &impl Serialize) -> Option<T> {
    filled_in["id"] = json!(id(memory));
    filled_in["provisioning_status"] = json!("ACTIVE");
    filled_in["operating_status"] = json!("ONLINE");
    as_shown(&filled_in, new, DEPTH)
}

/// Floating IPs that led to a load balancer lead nowhere when it is gone.
pub(super) fn floating_ips_without(observed: &mut Observed, balancer: &LoadBalancerId) {
    let port = observed
        .balancer_mut(balancer)
        .and_then(|there| there.vip_port_id.clone());
    let (Some(port), Some(floating_ips)) = (port, &mut observed.floating_ips) else {
        return;
    };
    for floating_ip in Arc::make_mut(floating_ips) {
        if floating_ip.port_id.as_ref() == Some(&port) {
            (floating_ip.port_id, floating_ip.fixed_ip_address) = (None, None);
            floating_ip.router_id = None;
        }
    }
}

fn part(memory: &mut Memory, parts: &Parts, change: &PartChange) -> Option<Shown> {
    Some(match change {
        PartChange::CreateListener { new } => Shown::Listener(listener(memory, &parts.of, new)?),
        PartChange::UpdateListener { id, update, .. } => {
            let there = parts.listeners.iter().find(|there| there.id == *id)?;
            Shown::Listener(as_shown(there, update, DEPTH)?)
        }
        PartChange::CreatePool { new } => Shown::Pool(pool(memory, &parts.of, new)?),
        PartChange::UpdatePool { id, update, .. } => {
            let there = parts.pools.iter().find(|there| there.id == *id)?;
            Shown::Pool(as_shown(there, update, DEPTH)?)
        }
        PartChange::AddMember { new, .. } => Shown::Member(made(memory, json!({}), new)?),
        PartChange::UpdateMember { pool, id, update } => {
            let there = parts.members.get(pool)?.iter().find(|there| there.id == *id)?;
            Shown::Member(as_shown(there, update, DEPTH)?)
        }
        PartChange::CreateMonitor { new } => Shown::Monitor(monitor(memory, new)?),
        PartChange::UpdateMonitor { id, update, .. } => {
            Shown::Monitor(as_shown(parts.monitors.as_ref()?.get(id)?, update, DEPTH)?)
        }
        PartChange::UpdateBalancer { .. }
        | PartChange::DeleteListener { .. }
        | PartChange::DeletePool { .. }
        | PartChange::SetMembers { .. }
        | PartChange::RemoveMember { .. }
        | PartChange::DeleteMonitor { .. } => return None,
    })
}

fn balancer(memory: &mut Memory, new: &NewLoadBalancer) -> Option<LoadBalancer> {
    let mut new = NewLoadBalancer {
        listeners: Vec::new(), // shown by their ids
        ..new.clone()
    };
    for vip in &mut new.additional_vips {
        vip.ip_address.get_or_insert_with(|| NEW_ADDRESS.to_owned());
    }
    let filled_in = json!({"vip_address": NEW_ADDRESS, "vip_port_id": id(memory)});
    made(memory, filled_in, &new)
}

/// The parts of a load balancer that was created with all of them.
pub(super) fn parts(memory: &mut Memory, of: LoadBalancerId, new: &NewLoadBalancer) -> Parts {
    let mut parts = Parts {
        is_predicted: true,
        ..Parts::none(of)
    };
    for new in &new.listeners {
        add(&mut parts, memory, new);
    }
    parts
}

/// Adds a listener with its pool and all that hangs on that.
fn add(parts: &mut Parts, memory: &mut Memory, new: &NewListener) -> Option<()> {
    let mut listener = listener(memory, &parts.of, new)?;
    if let Some(new) = &new.default_pool {
        let mut pool = pool(memory, &parts.of, new)?;
        pool.listeners.push(reference(listener.id.clone()));
        let members = new.members.iter().filter_map(|new| made(memory, json!({}), new));
        parts.members.insert(pool.id.clone(), members.collect());
        if let Some(new) = &new.healthmonitor {
            let monitor = monitor(memory, new)?;
            pool.healthmonitor_id = Some(monitor.id.clone());
            let monitors = parts.monitors.get_or_insert_default();
            monitors.insert(monitor.id.clone(), monitor);
        }
        listener.default_pool_id = Some(pool.id.clone());
        parts.pools.push(pool);
    }
    parts.listeners.push(listener);
    Some(())
}

fn listener(memory: &mut Memory, of: &LoadBalancerId, new: &NewListener) -> Option<Listener> {
    let filled_in = json!({
        "loadbalancers": [reference(of)],
        // The API's defaults.
        "connection_limit": -1,
        "timeout_client_data": 50_000,
        "timeout_member_connect": 5_000,
        "timeout_member_data": 50_000,
        "timeout_tcp_inspect": 0,
    });
    made(memory, filled_in, new)
}

fn pool(memory: &mut Memory, of: &LoadBalancerId, new: &NewPool) -> Option<Pool> {
    let filled_in = json!({
        "loadbalancers": [reference(of)],
        "listeners": new.listener_id.iter().map(reference).collect::<Vec<_>>(),
    });
    let new = NewPool {
        members: Vec::new(), // shown by their ids
        ..new.clone()
    };
    made(memory, filled_in, &new)
}

/// A member of a list as it will be shown: one that was there keeps its id and its subnet.
pub(super) fn listed_member(memory: &mut Memory, new: &NewMember, before: &[Member]) -> Option<Member> {
    let now: Member = made(memory, json!({}), new)?;
    let is_it = |there: &&Member| {
        spelling::of_address(&there.address) == spelling::of_address(&new.address)
            && there.protocol_port == new.protocol_port
    };
    Some(match before.iter().find(is_it) {
        Some(there) => Member {
            id: there.id.clone(),
            subnet_id: there.subnet_id.clone(),
            ..now
        },
        None => now,
    })
}

fn monitor(memory: &mut Memory, new: &NewMonitor) -> Option<Monitor> {
    let pools: Vec<_> = new.pool_id.iter().map(reference).collect();
    made(memory, json!({"pools": pools}), new)
}
