//! A cluster that got another name: the load balancer and its parts are renamed. Namespace and Service in the names stay.
//!
//! Each Service renames what is its own: monitor, pool and listener of each of its ports. The load balancer itself, with the
//! tags of all who are known to be of this cluster, is renamed by the Service that it was made for; where that is gone, by one
//! of those that are left.

use bowline_cloud_provider::spelling;
use bowline_openstack_client::{
    Listener, ListenerAttributes, ListenerUpdate, LoadBalancer, LoadBalancerUpdate, MonitorUpdate, Pool,
    PoolUpdate,
};

use super::{floating, parts as planned};
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::names;
use crate::load_balancer::observe::view::View;
use crate::load_balancer::observed::Parts;
use crate::load_balancer::step::PartChange;

/// Whether what is there bears out what the annotations say of a load balancer under a former name of the cluster, if anything
/// rests on them: it is reached at the address that the Service records, and no listener of a guest is older than the guest.
///
/// A person may have sent the Service to another cluster's load balancer, and a copy names one of the cluster that it comes from.
pub(super) fn is_borne_out(identity: &Identity, seen: &View<'_>, balancer: &LoadBalancer) -> bool {
    let Some(tag) = evidence::claimed_tag(identity, balancer) else {
        return true;
    };
    let recorded = identity.recorded_address.as_deref().map(spelling::of_address);
    let mut addresses = floating::reached_at(seen, balancer);
    let parts = seen.parts(&balancer.id);
    let mut listeners = parts.iter().flat_map(|parts| &parts.listeners);
    let is_older = |listener: &Listener| {
        let is_claimed = listener.tags.iter().any(|there| there == tag);
        is_claimed && evidence::is_made_before(listener.created_at.as_deref(), identity.created)
    };
    addresses.any(|address| Some(spelling::of_address(address)) == recorded)
        && (tag == balancer.name || !listeners.any(is_older))
}

/// The next write of a renaming: of each listener the monitor, the pool, the listener; last of all the load balancer. `None` if
/// nothing of the Service bears a former name.
pub(super) fn next(
    identity: &Identity,
    seen: &View<'_>,
    (balancer, role): (&LoadBalancer, Role),
    parts: &Parts,
) -> Option<PartChange> {
    let renaming = Renaming {
        identity,
        seen,
        balancer,
        role,
    };
    renaming.formers().next().filter(|_| identity.options.renames)?;
    if !is_borne_out(identity, seen, balancer) {
        return None;
    }
    let listener = parts
        .listeners
        .iter()
        .find(|listener| renaming.concerns(listener));
    listener.map_or_else(
        || renaming.of_balancer(),
        |listener| Some(renaming.of_listener(listener, parts)),
    )
}

/// Which names and tags of a load balancer and its parts are former ones, and what they become.
struct Renaming<'a> {
    identity: &'a Identity,
    seen: &'a View<'a>,
    balancer: &'a LoadBalancer,
    role: Role,
}

impl<'a> Renaming<'a> {
    /// The former names of the cluster under which parts of the load balancer may be the Service's.
    fn formers(&self) -> impl Iterator<Item = &'a str> {
        let claimed = evidence::claimed_tag(self.identity, self.balancer).and_then(names::cluster_of);
        let configured = self.identity.options.former_clusters.iter().map(String::as_str);
        configured
            .chain(claimed)
            .filter(|former| *former != self.identity.cluster)
    }

    /// The former name of the cluster that is in this name.
    fn former_of(&self, name: &str) -> Option<&'a str> {
        let cluster = names::cluster_of(name)?;
        self.formers().find(|former| *former == cluster)
    }

    fn renamed(&self, name: &str) -> Option<String> {
        let former = self.former_of(name)?;
        Some(names::with_cluster(name, former, &self.identity.cluster))
    }

    /// Whether the former name in it is a configured one, under which all Services know each other.
    fn is_configured(&self, name: &str) -> bool {
        let configured = &self.identity.options.former_clusters;
        self.former_of(name)
            .is_some_and(|former| configured.iter().any(|name| name == former))
    }

    /// Whether the tag is the Service's own, but under a former name.
    fn is_own_former(&self, tag: &str) -> bool {
        tag != self.identity.name && evidence::is_our_tag(self.identity, self.balancer, tag)
    }

    /// All tags, of which those that are `to_change` bear the present name; `None` if that changes nothing.
    fn tags(&self, there: &[String], to_change: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let mut now: Vec<String> = Vec::new();
        for tag in there {
            let renamed = self.renamed(tag).filter(|_| to_change(tag));
            let tag = renamed.unwrap_or_else(|| tag.clone());
            if !now.contains(&tag) {
                now.push(tag);
            }
        }
        Some(now).filter(|now| now != there)
    }

    /// The same for the Service's own tags and those of others of this cluster.
    fn all_tags(&self, there: &[String]) -> Option<Vec<String>> {
        self.tags(there, |tag| self.is_own_former(tag) || self.is_configured(tag))
    }

    /// Whether the listener is the Service's and bears a former name.
    fn concerns(&self, listener: &Listener) -> bool {
        listener.tags.iter().any(|tag| self.is_own_former(tag))
            || self.former_of(&listener.name).is_some()
                && evidence::is_own_listener(self.identity, self.role, listener)
    }

    fn of_listener(&self, listener: &Listener, parts: &Parts) -> PartChange {
        let pool = parts.pool_of(&listener.id);
        let of_pool = pool.and_then(|pool| self.of_monitor(pool, parts).or_else(|| self.of_pool(pool)));
        of_pool.unwrap_or_else(|| {
            let attributes = ListenerAttributes {
                tags: self.all_tags(&listener.tags),
                ..ListenerAttributes::default()
            };
            let update = ListenerUpdate {
                name: self.renamed(&listener.name),
                default_pool_id: None,
                attributes,
            };
            PartChange::update_listener(listener, update)
        })
    }

    fn of_monitor(&self, pool: &Pool, parts: &Parts) -> Option<PartChange> {
        // Octavia takes no change of the monitor of a pool that failed. A write of the pool itself mends that, such as its renaming.
        let id = pool
            .healthmonitor_id
            .as_ref()
            .filter(|_| !planned::has_failed(pool))?;
        let monitor = self.seen.monitors(parts)?.get(id)?;
        let update = MonitorUpdate {
            name: Some(self.renamed(&monitor.name)?),
            ..MonitorUpdate::default()
        };
        Some(PartChange::update_monitor(monitor, update))
    }

    fn of_pool(&self, pool: &Pool) -> Option<PartChange> {
        let update = PoolUpdate {
            name: Some(self.renamed(&pool.name)?),
            ..PoolUpdate::default()
        };
        Some(PartChange::update_pool(pool, update))
    }

    fn of_balancer(&self) -> Option<PartChange> {
        let name = &self.balancer.name;
        let tags = &self.balancer.tags;
        let is_left_to_owner = self.role == Role::Guest && !evidence::is_without_owner(self.balancer);
        let update = if !is_left_to_owner {
            LoadBalancerUpdate {
                name: self.renamed(name),
                tags: self.all_tags(tags),
            }
        } else if self.is_configured(name) {
            // The owner is of this cluster, and renames the tags with the load balancer.
            return None;
        } else {
            LoadBalancerUpdate {
                name: None,
                tags: self.tags(tags, |tag| self.is_own_former(tag)),
            }
        };
        let is_change = update != LoadBalancerUpdate::default();
        is_change.then(|| PartChange::update_balancer(self.balancer, update))
    }
}
