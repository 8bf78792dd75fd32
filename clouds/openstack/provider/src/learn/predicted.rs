//! What the APIs will show of what they are asked for, with ids that are made up.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    AdditionalVip, FloatingIp, Listener, ListenerAttributes, ListenerId, LoadBalancer, LoadBalancerId,
    Member, MemberId, Monitor, MonitorUpdate, NewListener, NewLoadBalancer, NewMember, NewMonitor, NewPool,
    OperatingStatus, Pool, Port, ProvisioningStatus, Reference, SecurityGroup, SecurityGroupRule,
};

use crate::apply::Shown;
use crate::observe::{Memory, Observed, Parts, Seen};
use crate::security_groups::ports::{with_group, without_group};
use crate::step::{CloudStep, FloatingIpChange, GroupChange, PartChange};

/// What stands for an address that only the cloud can tell.
const NEW_ADDRESS: &str = "a new address";
/// The same for a floating IP.
const NEW_FLOATING_IP: &str = "a new floating IP";

/// What the ids begin with that are made up.
const PLANNED: &str = "planned-";

/// An id that no object has.
fn id(memory: &mut Memory) -> String {
    format!("{PLANNED}{}", memory.made_up())
}

/// Whether a member's id is made up.
pub(crate) fn is_made_up(id: &MemberId) -> bool {
    id.as_str().starts_with(PLANNED)
}

pub(super) fn reference<Id>(id: Id) -> Reference<Id> {
    Reference { id }
}

/// What the answer to a step will show; `None` if it shows nothing.
pub(super) fn shown(seen: &mut Seen, step: &CloudStep) -> Option<Shown> {
    let Seen { observed, memory } = seen;
    Some(match step {
        CloudStep::CreateBalancer { new } => Shown::Balancer(balancer(memory, new)),
        CloudStep::DeleteBalancer { .. } | CloudStep::DeletePort { .. } => return None,
        CloudStep::Part { balancer, change } => {
            let parts = observed.parts.get(balancer)?;
            return part(memory, parts, change);
        }
        CloudStep::FloatingIp(change) => {
            let mut list = observed.floating_ips.iter().flat_map(|list| list.iter());
            Shown::FloatingIp(match change {
                FloatingIpChange::Create { attempts } => {
                    let new = attempts.first()?;
                    FloatingIp {
                        id: id(memory).into(),
                        floating_ip_address: new
                            .floating_ip_address
                            .clone()
                            .unwrap_or_else(|| NEW_FLOATING_IP.to_owned()),
                        floating_network_id: new.floating_network_id.clone(),
                        port_id: new.port_id.clone(),
                        fixed_ip_address: None,
                        project_id: None,
                        is_foreign: false,
                        description: new.description.clone(),
                        revision_number: None,
                    }
                }
                FloatingIpChange::Attach { id, port, .. } => FloatingIp {
                    port_id: port.clone(),
                    fixed_ip_address: None,
                    ..list.find(|there| there.id == *id)?.clone()
                },
                FloatingIpChange::Delete { .. } => return None,
            })
        }
        CloudStep::Group(change) => match change {
            GroupChange::Create { new } => Shown::Group(SecurityGroup {
                id: id(memory).into(),
                name: new.name.clone(),
                project_id: None,
                created_at: None,
                description: new.description.clone(),
                rules: Vec::new(),
            }),
            GroupChange::CreateRule { new } => Shown::Rule(SecurityGroupRule {
                id: id(memory).into(),
                security_group_id: new.security_group_id.clone(),
                direction: new.direction.clone(),
                ethertype: Some(new.ethertype.clone()),
                protocol: Some(new.protocol.clone()),
                port_range_min: Some(new.port_range_min),
                port_range_max: Some(new.port_range_max),
                remote_ip_prefix: Some(new.remote_ip_prefix.clone()),
                remote_group_id: None,
            }),
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
        }
    }
}

fn part(memory: &mut Memory, parts: &Parts, change: &PartChange) -> Option<Shown> {
    Some(match change {
        PartChange::CreateListener { new } => Shown::Listener(listener(memory, &parts.of, new)),
        PartChange::UpdateListener { id, update, .. } => {
            let mut listener = parts.listeners.iter().find(|there| there.id == *id)?.clone();
            if let Some(name) = &update.name {
                listener.name.clone_from(name);
            }
            set(&mut listener, &update.attributes);
            Shown::Listener(listener)
        }
        PartChange::CreatePool { new } => Shown::Pool(pool(memory, &parts.of, new)),
        PartChange::UpdatePool { id, update, .. } => {
            let mut pool = parts.pools.iter().find(|there| there.id == *id)?.clone();
            if let Some(name) = &update.name {
                pool.name.clone_from(name);
            }
            if let Some(method) = &update.lb_algorithm {
                pool.lb_algorithm.clone_from(method);
            }
            if let Some(persistence) = &update.session_persistence {
                pool.session_persistence.clone_from(persistence);
            }
            Shown::Pool(pool)
        }
        PartChange::AddMember { new, .. } => Shown::Member(member(memory, new)),
        PartChange::UpdateMember { pool, id, update } => {
            let there = parts.members.get(pool)?.iter().find(|there| there.id == *id)?;
            Shown::Member(Member {
                name: update.name.clone(),
                monitor_port: update.monitor_port,
                ..there.clone()
            })
        }
        PartChange::CreateMonitor { new } => Shown::Monitor(monitor(memory, new)),
        PartChange::UpdateMonitor { id, update, .. } => {
            let mut monitor = parts.monitors.as_ref()?.get(id)?.clone();
            set_monitor(&mut monitor, update);
            Shown::Monitor(monitor)
        }
        PartChange::UpdateBalancer { .. }
        | PartChange::DeleteListener { .. }
        | PartChange::DeletePool { .. }
        | PartChange::SetMembers { .. }
        | PartChange::RemoveMember { .. }
        | PartChange::DeleteMonitor { .. } => return None,
    })
}

fn balancer(memory: &mut Memory, new: &NewLoadBalancer) -> LoadBalancer {
    LoadBalancer {
        id: id(memory).into(),
        name: new.name.clone(),
        project_id: None,
        description: new.description.clone(),
        provisioning_status: ProvisioningStatus::Active,
        operating_status: OperatingStatus::Online,
        vip_address: new.vip_address.clone().unwrap_or_else(|| NEW_ADDRESS.to_owned()),
        vip_port_id: Some(new.vip_port_id.clone().unwrap_or_else(|| id(memory).into())),
        vip_subnet_id: new.vip_subnet_id.clone(),
        vip_network_id: new.vip_network_id.clone(),
        additional_vips: new
            .additional_vips
            .iter()
            .map(|vip| AdditionalVip {
                ip_address: vip.ip_address.clone().unwrap_or_else(|| NEW_ADDRESS.to_owned()),
                subnet_id: Some(vip.subnet_id.clone()),
            })
            .collect(),
        tags: new.tags.clone().unwrap_or_default(),
        listeners: Vec::new(),
        pools: Vec::new(),
        provider: new.provider.clone(),
        flavor_id: new.flavor_id.clone(),
        availability_zone: new.availability_zone.clone(),
        created_at: None,
    }
}

/// The parts of a load balancer that was created with all of them.
pub(super) fn parts(memory: &mut Memory, of: LoadBalancerId, new: &NewLoadBalancer) -> Parts {
    let mut parts = Parts {
        is_predicted: true,
        ..Parts::none(of)
    };
    for new in &new.listeners {
        let mut listener = listener(memory, &parts.of, new);
        if let Some(new) = &new.default_pool {
            let mut pool = pool(memory, &parts.of, new);
            pool.listeners.push(reference(listener.id.clone()));
            let members = new.members.iter().map(|new| member(memory, new)).collect();
            parts.members.insert(pool.id.clone(), members);
            if let Some(new) = &new.healthmonitor {
                let monitor = monitor(memory, new);
                pool.healthmonitor_id = Some(monitor.id.clone());
                parts
                    .monitors
                    .get_or_insert_default()
                    .insert(monitor.id.clone(), monitor);
            }
            listener.default_pool_id = Some(pool.id.clone());
            parts.pools.push(pool);
        }
        parts.listeners.push(listener);
    }
    parts
}

fn listener(memory: &mut Memory, of: &LoadBalancerId, new: &NewListener) -> Listener {
    let mut listener = Listener {
        id: ListenerId::from(id(memory)),
        name: new.name.clone(),
        protocol: new.protocol.clone(),
        protocol_port: new.protocol_port,
        connection_limit: Some(-1),
        insert_headers: BTreeMap::new(),
        default_tls_container_ref: None,
        // The API's defaults.
        timeout_client_data: Some(50_000),
        timeout_member_connect: Some(5_000),
        timeout_member_data: Some(50_000),
        timeout_tcp_inspect: Some(0),
        allowed_cidrs: Vec::new(),
        tags: Vec::new(),
        default_pool_id: None,
        l7policies: Vec::new(),
        loadbalancers: vec![reference(of.clone())],
        provisioning_status: ProvisioningStatus::Active,
        operating_status: OperatingStatus::Online,
        created_at: None,
    };
    set(&mut listener, &new.attributes);
    listener
}

fn set(listener: &mut Listener, attributes: &ListenerAttributes) {
    let ListenerAttributes {
        tags,
        connection_limit,
        insert_headers,
        default_tls_container_ref,
        timeout_client_data,
        timeout_member_connect,
        timeout_member_data,
        timeout_tcp_inspect,
        allowed_cidrs,
    } = attributes;
    fn take<T: Clone>(there: &mut T, now: Option<&T>) {
        if let Some(now) = now {
            there.clone_from(now);
        }
    }
    fn take_some<T: Clone>(there: &mut Option<T>, now: Option<&T>) {
        if now.is_some() {
            *there = now.cloned();
        }
    }
    take(&mut listener.tags, tags.as_ref());
    take(&mut listener.insert_headers, insert_headers.as_ref());
    take(&mut listener.allowed_cidrs, allowed_cidrs.as_ref());
    take_some(&mut listener.connection_limit, connection_limit.as_ref());
    take_some(
        &mut listener.default_tls_container_ref,
        default_tls_container_ref.as_ref(),
    );
    take_some(&mut listener.timeout_client_data, timeout_client_data.as_ref());
    take_some(
        &mut listener.timeout_member_connect,
        timeout_member_connect.as_ref(),
    );
    take_some(&mut listener.timeout_member_data, timeout_member_data.as_ref());
    take_some(&mut listener.timeout_tcp_inspect, timeout_tcp_inspect.as_ref());
}

fn pool(memory: &mut Memory, of: &LoadBalancerId, new: &NewPool) -> Pool {
    Pool {
        id: id(memory).into(),
        name: new.name.clone(),
        description: new.description.clone(),
        protocol: new.protocol.clone(),
        lb_algorithm: new.lb_algorithm.clone(),
        listeners: new.listener_id.clone().into_iter().map(reference).collect(),
        loadbalancers: vec![reference(of.clone())],
        members: Vec::new(),
        healthmonitor_id: None,
        session_persistence: new.session_persistence.clone(),
        provisioning_status: ProvisioningStatus::Active,
        operating_status: OperatingStatus::Online,
    }
}

/// A member of a list as it will be shown: one that was there keeps its id and its subnet.
pub(super) fn listed_member(memory: &mut Memory, new: &NewMember, before: &[Member]) -> Member {
    let now = member(memory, new);
    let is_it = |there: &&Member| {
        spelling::of_address(&there.address) == spelling::of_address(&new.address)
            && there.protocol_port == new.protocol_port
    };
    match before.iter().find(is_it) {
        Some(there) => Member {
            id: there.id.clone(),
            subnet_id: there.subnet_id.clone(),
            ..now
        },
        None => now,
    }
}

/// A member as it will be shown.
pub(super) fn member(memory: &mut Memory, new: &NewMember) -> Member {
    Member {
        id: id(memory).into(),
        name: new.name.clone(),
        address: new.address.clone(),
        protocol_port: new.protocol_port,
        monitor_port: new.monitor_port,
        subnet_id: new.subnet_id.clone(),
        settings: new.settings.clone(),
        provisioning_status: ProvisioningStatus::Active,
    }
}

fn monitor(memory: &mut Memory, new: &NewMonitor) -> Monitor {
    Monitor {
        id: id(memory).into(),
        name: new.name.clone(),
        kind: new.kind.clone(),
        delay: new.delay,
        timeout: new.timeout,
        max_retries: new.max_retries,
        max_retries_down: new.max_retries_down,
        url_path: new.http.as_ref().map(|http| http.url_path.clone()),
        http_method: new.http.as_ref().map(|http| http.http_method.clone()),
        expected_codes: new.http.as_ref().map(|http| http.expected_codes.clone()),
        pools: new.pool_id.clone().into_iter().map(reference).collect(),
        provisioning_status: ProvisioningStatus::Active,
    }
}

fn set_monitor(monitor: &mut Monitor, update: &MonitorUpdate) {
    let MonitorUpdate {
        name,
        delay,
        timeout,
        max_retries,
        max_retries_down,
    } = update;
    if let Some(name) = name {
        monitor.name.clone_from(name);
    }
    for (there, now) in [
        (&mut monitor.delay, delay),
        (&mut monitor.timeout, timeout),
        (&mut monitor.max_retries, max_retries),
        (&mut monitor.max_retries_down, max_retries_down),
    ] {
        *there = now.unwrap_or(*there);
    }
}
