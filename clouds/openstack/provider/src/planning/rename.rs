//! A cluster that got another name: the load balancer and its parts are renamed. Namespace and Service in the names stay.

use bowline_openstack_client::{
    ListenerAttributes, ListenerUpdate, LoadBalancer, LoadBalancerUpdate, MonitorUpdate, PoolUpdate,
};

use crate::intent::Wanted;
use crate::names;
use crate::observe::{Observed, Parts};
use crate::ownership;
use crate::step::PartChange;

/// The former name of the cluster that a load balancer bears, if it is to be renamed.
pub(crate) fn former<'a>(
    wanted: &Wanted,
    observed: &Observed,
    balancer: &'a LoadBalancer,
) -> Option<&'a str> {
    let floating_ips = observed.floating_ips.iter().flat_map(|list| list.iter());
    let leading_here = floating_ips
        .filter(|floating_ip| floating_ip.port_id.is_some() && floating_ip.port_id == balancer.vip_port_id);
    let addresses: Vec<&str> = leading_here
        .map(|floating_ip| floating_ip.floating_ip_address.as_str())
        .chain([balancer.vip_address.as_str()])
        .collect();
    ownership::renamed_from(&wanted.identity, balancer, &addresses)
}

/// The next write of a renaming: of each listener the monitor, the pool, the listener; last of all the load balancer, so that
/// one that was interrupted is taken up again. `None` only if nothing bears the former name.
pub(super) fn next(
    former: &str,
    cluster: &str,
    balancer: &LoadBalancer,
    parts: &Parts,
) -> Option<PartChange> {
    let bears = |name: &str| names::cluster_of(name) == Some(former);
    let renamed = |name: &str| names::with_cluster(name, former, cluster);
    let tags = |tags: &[String]| -> Vec<String> { tags.iter().map(|tag| renamed(tag)).collect() };
    if let Some(listener) = parts.listeners.iter().find(|listener| bears(&listener.name)) {
        let of_pools = parts.pools_of(&listener.id).find_map(|pool| {
            let monitor = pool.healthmonitor_id.as_ref();
            let monitor = monitor.and_then(|id| parts.monitors.as_ref()?.get(id));
            let of_monitor =
                monitor
                    .filter(|monitor| bears(&monitor.name))
                    .map(|monitor| PartChange::UpdateMonitor {
                        id: monitor.id.clone(),
                        name: monitor.name.clone(),
                        update: MonitorUpdate {
                            name: Some(renamed(&monitor.name)),
                            ..MonitorUpdate::default()
                        },
                    });
            let of_pool = bears(&pool.name).then(|| PartChange::UpdatePool {
                id: pool.id.clone(),
                name: pool.name.clone(),
                update: PoolUpdate {
                    name: Some(renamed(&pool.name)),
                    ..PoolUpdate::default()
                },
            });
            of_monitor.or(of_pool)
        });
        return of_pools.or_else(|| {
            Some(PartChange::UpdateListener {
                id: listener.id.clone(),
                name: listener.name.clone(),
                update: Box::new(ListenerUpdate {
                    name: Some(renamed(&listener.name)),
                    attributes: ListenerAttributes {
                        tags: Some(tags(&listener.tags)).filter(|tags| *tags != listener.tags),
                        ..ListenerAttributes::default()
                    },
                }),
            })
        });
    }
    bears(&balancer.name).then(|| PartChange::UpdateBalancer {
        name: balancer.name.clone(),
        update: LoadBalancerUpdate {
            name: Some(renamed(&balancer.name)),
            tags: Some(tags(&balancer.tags)).filter(|tags| *tags != balancer.tags),
        },
    })
}
