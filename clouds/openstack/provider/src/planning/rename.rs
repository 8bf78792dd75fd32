//! A cluster that got another name: the load balancer and its parts are renamed. Namespace and Service in the names stay.
//!
//! Each Service renames what is its own: monitor, pool and listener of each of its ports. The load balancer itself, with the
//! tags of all who are known to be of this cluster, is renamed by the Service that it was made for; where that is gone, by one
//! of those that are left.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    Listener, ListenerAttributes, ListenerUpdate, LoadBalancer, LoadBalancerUpdate, MonitorUpdate, PoolUpdate,
};

use super::{floating, parts as planned};
use crate::intent::Identity;
use crate::names;
use crate::observe::{Observed, Parts};
use crate::ownership::{self, Role};
use crate::step::PartChange;

/// Whether what is there bears out what the annotations say of a load balancer under a former name of the cluster, if anything
/// rests on them: it is reached at the address that the Service records, and no listener of a guest is older than the guest.
///
/// A person may have sent the Service to another cluster's load balancer, and a copy names one of the cluster that it comes from.
pub(crate) fn is_borne_out(identity: &Identity, observed: &Observed, balancer: &LoadBalancer) -> bool {
    let Some(tag) = ownership::claimed_tag(identity, balancer) else {
        return true;
    };
    let recorded = identity.recorded_address.as_deref().map(spelling::of_address);
    let mut addresses = floating::reached_at(observed, balancer);
    let parts = observed.parts_of(&balancer.id);
    let mut listeners = parts.iter().flat_map(|parts| &parts.listeners);
    let is_older = |listener: &Listener| {
        let is_claimed = listener.tags.iter().any(|there| there == tag);
        is_claimed && ownership::is_made_before(listener.created_at.as_deref(), identity.created)
    };
    addresses.any(|address| Some(spelling::of_address(address)) == recorded)
        && (tag == balancer.name || !listeners.any(is_older))
}

/// The former names of the cluster under which parts of a load balancer may be the Service's.
fn formers<'a>(identity: &'a Identity, balancer: &'a LoadBalancer) -> impl Iterator<Item = &'a str> {
    let claimed = ownership::claimed_tag(identity, balancer).and_then(names::cluster_of);
    let configured = identity.options.former_clusters.iter().map(String::as_str);
    configured
        .chain(claimed)
        .filter(|former| *former != identity.cluster)
}

/// The next write of a renaming: of each listener the monitor, the pool, the listener; last of all the load balancer. `None` if
/// nothing of the Service bears a former name.
pub(crate) fn next(
    identity: &Identity,
    observed: &Observed,
    (balancer, role): (&LoadBalancer, Role),
    parts: &Parts,
) -> Option<PartChange> {
    formers(identity, balancer).next()?;
    if !is_borne_out(identity, observed, balancer) {
        return None;
    }
    let former_of = |name: &str| {
        let cluster = names::cluster_of(name)?;
        formers(identity, balancer).find(|former| *former == cluster)
    };
    let renamed = |name: &str| {
        let former = former_of(name)?;
        Some(names::with_cluster(name, former, &identity.cluster))
    };
    let is_configured = |name: &str| {
        let configured = &identity.options.former_clusters;
        former_of(name).is_some_and(|former| configured.iter().any(|name| name == former))
    };
    let is_former = |tag: &str| tag != identity.name && ownership::is_our_tag(identity, balancer, tag);
    let tags = |there: &[String], with_others: bool| {
        let mut now: Vec<String> = Vec::new();
        for tag in there {
            let is_to_change = is_former(tag) || with_others && is_configured(tag);
            let tag = renamed(tag)
                .filter(|_| is_to_change)
                .unwrap_or_else(|| tag.clone());
            if !now.contains(&tag) {
                now.push(tag);
            }
        }
        Some(now).filter(|now| now != there)
    };
    let mut own = parts.listeners.iter().filter(|listener| {
        let is_former = listener.tags.iter().any(|tag| is_former(tag));
        let bears_former = former_of(&listener.name).is_some();
        is_former || bears_former && ownership::is_own_listener(identity, role, listener)
    });
    if let Some(listener) = own.next() {
        let of_pools = parts.pool_of(&listener.id).and_then(|pool| {
            // Octavia takes no change of the monitor of a pool that failed. A write of the pool itself mends that, such as its renaming.
            let monitor = pool.healthmonitor_id.as_ref();
            let monitor = monitor.filter(|_| !planned::has_failed(pool));
            let monitor = monitor.and_then(|id| parts.monitors.as_ref()?.get(id));
            let of_monitor = monitor.and_then(|monitor| {
                Some(PartChange::UpdateMonitor {
                    update: MonitorUpdate {
                        name: Some(renamed(&monitor.name)?),
                        ..MonitorUpdate::default()
                    },
                    id: monitor.id.clone(),
                    name: monitor.name.clone(),
                })
            });
            let of_pool = || {
                Some(PartChange::UpdatePool {
                    update: PoolUpdate {
                        name: Some(renamed(&pool.name)?),
                        ..PoolUpdate::default()
                    },
                    id: pool.id.clone(),
                    name: pool.name.clone(),
                })
            };
            of_monitor.or_else(of_pool)
        });
        return of_pools.or_else(|| {
            Some(PartChange::UpdateListener {
                id: listener.id.clone(),
                name: listener.name.clone(),
                update: Box::new(ListenerUpdate {
                    name: renamed(&listener.name),
                    attributes: ListenerAttributes {
                        tags: tags(&listener.tags, true),
                        ..ListenerAttributes::default()
                    },
                }),
            })
        });
    }
    let is_left_to_owner = role == Role::Guest && !ownership::is_without_owner(balancer);
    let update = LoadBalancerUpdate {
        name: renamed(&balancer.name).filter(|_| !is_left_to_owner),
        tags: match is_left_to_owner {
            // The owner is of this cluster, and renames the tags with the load balancer.
            true if is_configured(&balancer.name) => None,
            is_left_to_owner => tags(&balancer.tags, !is_left_to_owner),
        },
    };
    (update != LoadBalancerUpdate::default()).then(|| PartChange::UpdateBalancer {
        name: balancer.name.clone(),
        update,
    })
}
