//! What a write does to the observation: as its answer tells, or as it can be predicted. Both go the same way.

use bowline_cloud_provider::WriteOutcome;
use bowline_cloudscale_client::{
    FloatingIp, Listener, ListenerChange, LoadBalancer, LoadBalancerStatus, Member, Monitor, MonitorChange,
    MonitorHttp, MonitorId, NewLoadBalancer, NewMonitor, Pool, Slug, Stub, SubnetStub, VipAddress,
};

use crate::apply::{Created, Learned};
use crate::intent::HttpWish;
use crate::observe::{Memory, Observed, ObservedPool, Seen, refused};
use crate::planning;
use crate::step::{CloudStep, PartChange};

/// Adds what a write's answer told.
pub(crate) fn learn(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    if learned.outcome() != WriteOutcome::PutOff {
        seen.memory.new_wait();
    }
    let own = &mut seen.memory.own;
    // Once the API has refused to be hurried, the balancer is looked at before the next write.
    if learned.is_busy || own.busy.was_once && step.balancer().is_some() {
        own.busy.set();
    }
    let is_of_member = matches!(
        step,
        CloudStep::Part {
            change: PartChange::Member { .. } | PartChange::DeleteMember { .. },
            ..
        }
    );
    own.is_reshaped |= !is_of_member;
    if learned.created.is_some() || learned.is_changed {
        own.done.push(step.clone());
        own.reads = 0;
    }
    let refusals = &mut seen.memory.refusals;
    if learned.created.is_some() {
        // All the same, as in place of something else.
        refusals.lift(|refused, _| refused.asks_the_same(step));
    }
    if learned.old_is_gone {
        refused::gone(refusals, step);
    }
    if let Some((place, is_vain)) = learned.is_room_vain {
        seen.memory.own.vain.learn(place, is_vain);
    }
    if learned.is_crowded
        && let CloudStep::Part {
            change: PartChange::Pool { new, .. },
            ..
        } = step
    {
        seen.crowded_pools.push(new.name.clone());
    }
    if let (
        CloudStep::DeleteBalancer {
            balancer, is_live, ..
        },
        true,
    ) = (step, learned.old_is_gone)
    {
        if *is_live {
            // Accepted is not done: the next looks confirm it.
            seen.deleting.push(*balancer);
        } else {
            seen.is_gone(*balancer);
        }
        return;
    }
    absorb(seen, step, learned);
}

/// Changes the observation as applying a step will.
pub(crate) fn predict(seen: &mut Seen, step: &CloudStep) {
    if let CloudStep::DeleteBalancer { balancer, .. } = step {
        seen.is_gone(*balancer);
        return;
    }
    let created = created(&mut seen.memory, step);
    absorb(
        seen,
        step,
        Learned {
            created,
            old_is_gone: true,
            is_changed: true,
            ..Learned::default()
        },
    );
}

fn absorb(seen: &mut Seen, step: &CloudStep, learned: Learned) {
    if let (
        CloudStep::AssignFloatingIp {
            address, balancer, ..
        },
        true,
    ) = (step, learned.is_changed)
    {
        planning::remember_move(seen, &address.0, *balancer, learned.move_number);
    }
    let observed = &mut seen.observed;
    if learned.old_is_gone {
        remove_old(observed, step);
    }
    if learned.is_changed {
        change(observed, step);
    }
    let Some(created) = learned.created else {
        return;
    };
    let change = match step {
        CloudStep::Part { change, .. } => Some(change),
        _ => None,
    };
    match (created, change) {
        (Created::Balancer(balancer), _) => {
            observed.pools_of = Some(balancer.uuid);
            observed.pools.clear();
            observed.loose_listeners.clear();
            observed.balancers.push(*balancer);
        }
        (Created::Pool(pool), _) => observed.pools.push(ObservedPool::new(pool)),
        (Created::Member(member), Some(PartChange::Member { pool, .. })) => {
            if let Some(pool) = observed.pool_mut(*pool) {
                pool.members.push(member);
            }
        }
        (Created::Listener(listener), Some(PartChange::Listener { new, .. })) => {
            if let Some(pool) = observed.pool_mut(new.pool) {
                pool.listeners.push(listener);
            }
        }
        (Created::Monitor(monitor), Some(PartChange::Monitor { new, .. })) => {
            if let Some(pool) = observed.pool_mut(new.pool) {
                pool.monitors.push(monitor);
            }
        }
        _ => {}
    }
}

fn remove_old(observed: &mut Observed, step: &CloudStep) {
    let CloudStep::Part { change, .. } = step else {
        return;
    };
    match change {
        PartChange::Pool { old: Some(old), .. } | PartChange::DeletePool { old, .. } => {
            observed.pools.retain(|pool| pool.pool.uuid != old.id);
        }
        PartChange::Member {
            pool, old: Some(old), ..
        }
        | PartChange::DeleteMember { pool, old } => {
            if let Some(pool) = observed.pool_mut(*pool) {
                pool.members.retain(|member| member.uuid != old.id);
            }
        }
        PartChange::Listener { old: Some(old), .. } | PartChange::DeleteListener { old } => {
            for pool in &mut observed.pools {
                pool.listeners.retain(|listener| listener.uuid != old.id);
            }
            observed
                .loose_listeners
                .retain(|listener| listener.uuid != old.id);
        }
        PartChange::Monitor { old: Some(old), .. } | PartChange::DeleteMonitor { old, .. } => {
            for pool in &mut observed.pools {
                pool.monitors.retain(|monitor| monitor.uuid != old.id);
            }
        }
        _ => {}
    }
}

fn change(observed: &mut Observed, step: &CloudStep) {
    match step {
        CloudStep::RenameBalancer { balancer, name } => {
            for there in observed
                .balancers
                .iter_mut()
                .filter(|there| there.uuid == *balancer)
            {
                there.name.clone_from(name);
            }
        }
        CloudStep::AssignFloatingIp {
            address, balancer, ..
        } => {
            let is_it = |there: &&mut FloatingIp| address.0.is(there);
            for there in observed.floating_ips.iter_mut().filter(is_it) {
                there.server = None;
                there.load_balancer = Some(Stub {
                    uuid: *balancer,
                    name: None,
                });
            }
        }
        CloudStep::Part {
            change: PartChange::UpdateListener { id, change, .. },
            ..
        } => {
            let listeners = observed.pools.iter_mut().flat_map(|pool| &mut pool.listeners);
            for listener in listeners.filter(|listener| listener.uuid == *id) {
                change_listener(listener, change);
            }
        }
        CloudStep::Part {
            change: PartChange::UpdateMonitor { id, change, .. },
            ..
        } => {
            change_monitor(observed, *id, change);
        }
        CloudStep::CreateBalancer { .. } | CloudStep::DeleteBalancer { .. } | CloudStep::Part { .. } => {}
    }
}

fn change_listener(listener: &mut Listener, change: &ListenerChange) {
    match change {
        ListenerChange::AllowedCidrs(cidrs) => listener.allowed_cidrs.clone_from(cidrs),
        ListenerChange::TimeoutClientDataMs(ms) => listener.timeout_client_data_ms = Some(*ms),
        ListenerChange::TimeoutMemberConnectMs(ms) => listener.timeout_member_connect_ms = Some(*ms),
        ListenerChange::TimeoutMemberDataMs(ms) => listener.timeout_member_data_ms = Some(*ms),
    }
}

fn change_monitor(observed: &mut Observed, id: MonitorId, change: &MonitorChange) {
    let monitors = observed.pools.iter_mut().flat_map(|pool| &mut pool.monitors);
    for monitor in monitors.filter(|monitor| monitor.uuid == id) {
        match change {
            MonitorChange::DelayS(seconds) => monitor.delay_s = *seconds,
            MonitorChange::TimeoutS(seconds) => monitor.timeout_s = *seconds,
            MonitorChange::UpThreshold(count) => monitor.up_threshold = *count,
            MonitorChange::DownThreshold(count) => monitor.down_threshold = *count,
            MonitorChange::HttpMethod(method) => http(monitor).method = Some(method.clone()),
            MonitorChange::HttpPath(path) => http(monitor).url_path = Some(path.clone()),
            MonitorChange::HttpHost(host) => http(monitor).host.clone_from(host),
            MonitorChange::HttpExpectedCodes(codes) => http(monitor).expected_codes.clone_from(codes),
        }
    }
}

fn http(monitor: &mut Monitor) -> &mut MonitorHttp {
    monitor.http.get_or_insert_default()
}

/// What a step will create, with a made-up id.
fn created(memory: &mut Memory, step: &CloudStep) -> Option<Created> {
    let id = uuid::Uuid::from_u128(memory.made_up().into());
    Some(match step {
        CloudStep::CreateBalancer { new } => Created::Balancer(Box::new(balancer(new, id))),
        CloudStep::Part { change, .. } => match change {
            PartChange::Pool { new, .. } => Created::Pool(Pool {
                uuid: id.into(),
                name: new.name.clone(),
                created_at: None,
                load_balancer: Stub {
                    uuid: new.load_balancer,
                    name: None,
                },
                algorithm: new.algorithm.clone(),
                protocol: new.protocol.clone(),
            }),
            PartChange::Member { new, .. } => Created::Member(Member {
                uuid: id.into(),
                name: new.name.clone(),
                created_at: None,
                enabled: Some(true),
                protocol_port: new.protocol_port,
                monitor_port: Some(new.monitor_port),
                address: new.address.clone(),
                subnet: Some(SubnetStub {
                    uuid: new.subnet.as_str().into(),
                }),
                monitor_status: None,
            }),
            PartChange::Listener { new, .. } => Created::Listener(Listener {
                uuid: id.into(),
                name: new.name.clone(),
                created_at: None,
                pool: Some(Stub {
                    uuid: new.pool,
                    name: None,
                }),
                load_balancer: None,
                protocol: new.protocol.clone(),
                protocol_port: new.protocol_port,
                allowed_cidrs: new.allowed_cidrs.clone(),
                timeout_client_data_ms: Some(new.timeout_client_data_ms),
                timeout_member_connect_ms: Some(new.timeout_member_connect_ms),
                timeout_member_data_ms: Some(new.timeout_member_data_ms),
            }),
            PartChange::Monitor { new, .. } => Created::Monitor(monitor(new, id.into())),
            _ => return None,
        },
        _ => return None,
    })
}

fn balancer(new: &NewLoadBalancer, id: uuid::Uuid) -> LoadBalancer {
    let vip_addresses = new
        .vip_addresses
        .iter()
        .map(|vip| VipAddress {
            address: vip.address.clone().unwrap_or_default(),
            version: None,
            subnet: vip.subnet.as_deref().map(|uuid| SubnetStub { uuid: uuid.into() }),
        })
        .collect();
    LoadBalancer {
        uuid: id.into(),
        name: new.name.clone(),
        created_at: None,
        status: LoadBalancerStatus::Running,
        zone: Slug {
            slug: new.zone.as_deref().unwrap_or_default().into(),
        },
        flavor: Slug {
            slug: new.flavor.as_str().into(),
        },
        vip_addresses,
        tags: new
            .tags
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

fn monitor(new: &NewMonitor, id: MonitorId) -> Monitor {
    let speaks_http = matches!(new.kind.as_str(), "http" | "https");
    // The API fills what is left out.
    let defaults = HttpWish::Defaults.resolved().unwrap_or_default();
    let http = MonitorHttp {
        expected_codes: Some(new.http.expected_codes.clone())
            .filter(|codes| !codes.is_empty())
            .unwrap_or(defaults.expected_codes),
        method: new.http.method.clone().or(defaults.method),
        url_path: new.http.url_path.clone().or(defaults.url_path),
        version: new.http.version.clone().or(defaults.version),
        host: new.http.host.clone(),
    };
    Monitor {
        uuid: id,
        created_at: None,
        pool: Stub {
            uuid: new.pool,
            name: None,
        },
        load_balancer: None,
        delay_s: new.delay_s,
        timeout_s: new.timeout_s,
        up_threshold: new.up_threshold,
        down_threshold: new.down_threshold,
        kind: new.kind.clone(),
        http: speaks_http.then_some(http),
    }
}

#[cfg(test)]
mod tests;
