//! Which balancer is a Service's own, and which must not be touched.
//!
//! What this provider creates bears a mark, the Service's UID, set inside the create call and never added later. What
//! bears no mark is found as upstream finds it: by the UUID annotation or by name. What bears the name of another cluster
//! is never a Service's own, whatever else says so; nor, where this cluster's name is not known, what bears any cluster's
//! name, unless it also bears the Service's UID.

use bowline_cloud_provider::{MadeFor, ServiceKey, ServicesView};
use bowline_cloudscale_client::{LoadBalancer, LoadBalancerId};

use crate::intent::Identity;
use crate::names::{self, TAG_CLUSTER_NAME, TAG_CLUSTER_UID, TAG_SERVICE_NAME, TAG_SERVICE_UID};

mod claims;

use claims::Claims;

/// What was found for a Service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// There is none.
    None,
    /// This one, and others that were made for the same Service by accident.
    One {
        balancer: &'a LoadBalancer,
        surplus: Vec<&'a LoadBalancer>,
    },
    /// Several could be meant; nobody but a person can tell.
    Several {
        /// The only one that was made for the Service, if there is one: it serves all the same.
        own: Option<&'a LoadBalancer>,
    },
    /// The one that is meant belongs to somebody else, or may.
    Foreign {
        balancer: &'a LoadBalancer,
        owner: Owner<'a>,
        /// The only one that was made for the Service, if there is one: it serves all the same.
        own: Option<&'a LoadBalancer>,
    },
}

/// Whose a balancer is that is not the Service's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner<'a> {
    /// It bears the mark of another Service.
    Service,
    /// It bears the name of another cluster.
    Cluster {
        /// The name that it bears.
        theirs: &'a str,
    },
    /// It bears the name of a cluster, and nobody knows the name of this one.
    PerhapsCluster {
        /// The name that it bears.
        theirs: &'a str,
    },
}

/// Whether a balancer has anything to do with a Service: named by its annotation, by its name, or marked for it.
pub(crate) fn is_candidate(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid)
        || is_marked(identity, balancer)
        || !identity.name.is_empty() && balancer.name.trim() == identity.name.trim()
}

/// Whether a balancer was made for the Service.
fn is_marked(identity: &Identity, balancer: &LoadBalancer) -> bool {
    !identity.uid.is_empty() && balancer.tags.get(TAG_SERVICE_UID) == Some(identity.uid.as_str())
}

/// Whether a balancer holds the Service's UID, in its mark or in the name that nobody chose.
fn bears_uid(identity: &Identity, balancer: &LoadBalancer) -> bool {
    is_marked(identity, balancer)
        || !identity.uid.is_empty() && balancer.name == names::balancer(&identity.uid)
}

/// Whether a balancer is known to serve the Service: recorded on it, or with its UID. Any other one is only asked for, by a name.
pub(crate) fn is_known(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid) || bears_uid(identity, balancer)
}

/// Whether a balancer is recorded on the Service, or the Service on it. Anybody can give one the Service's name.
pub(crate) fn is_recorded(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid) || is_marked(identity, balancer)
}

/// Whose a balancer is that is not the Service's; `None` if nothing says that it is somebody else's.
///
/// The cluster's name decides first: two clusters of one project may know the same UUID, from a manifest that was
/// exported, and even the same Service UID, from a copy of the API server's data.
fn owner<'a>(identity: &Identity, balancer: &'a LoadBalancer) -> Option<Owner<'a>> {
    let theirs = balancer.tags.get(TAG_CLUSTER_NAME);
    match (theirs, identity.cluster_name.as_deref()) {
        (Some(theirs), Some(ours)) if theirs != ours => return Some(Owner::Cluster { theirs }),
        // The UUID annotation may have come from anywhere: only what holds the Service's own UID tells that it is ours.
        (Some(theirs), None) if !bears_uid(identity, balancer) => {
            return Some(Owner::PerhapsCluster { theirs });
        }
        _ => {}
    }
    let marked = balancer.tags.get(TAG_SERVICE_UID)?;
    let is_others = marked != identity.uid
        // A restored Service has a new UID but still names its balancer, or had it named after itself when it took it over.
        && (!is_known(identity, balancer) || identity.services.has_uid(marked));
    is_others.then_some(Owner::Service)
}

/// Whether this cluster made a balancer for a Service that is gone.
pub(crate) fn is_left_behind(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let is_of_cluster = identity
        .services
        .cluster_uid()
        .is_some_and(|uid| balancer.tags.get(TAG_CLUSTER_UID) == Some(uid.as_str()));
    let made_for = balancer.tags.get(TAG_SERVICE_UID);
    is_of_cluster && made_for.is_some_and(|uid| !identity.services.has_uid(uid))
}

/// Oldest first; the order of ids where ages are equal.
pub(crate) fn by_age<Id: Ord + Copy>(created_at: Option<&str>, id: Id) -> (String, Id) {
    (created_at.unwrap_or_default().to_owned(), id)
}

/// Whether a balancer was made for the Service, by the Service's own cluster.
fn is_made_for(identity: &Identity, balancer: &LoadBalancer) -> bool {
    is_marked(identity, balancer) && owner(identity, balancer).is_none()
}

/// Finds a Service's balancer among its candidates.
pub(crate) fn resolve<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Found<'a> {
    let (mut marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) = candidates
        .iter()
        .partition(|balancer| is_made_for(identity, balancer));
    marked.sort_by_key(|balancer| {
        (
            identity.annotated != Some(balancer.uuid),
            by_age(balancer.created_at.as_deref(), balancer.uuid),
        )
    });
    let others: Vec<&LoadBalancer> = others
        .into_iter()
        .filter(|balancer| identity.adopts_unmarked && is_candidate(identity, balancer))
        .collect();
    if let Some(annotated) = others
        .iter()
        .find(|balancer| identity.annotated == Some(balancer.uuid))
        && let Some(owner) = owner(identity, annotated)
    {
        return Found::Foreign {
            balancer: annotated,
            owner,
            own: only(&marked),
        };
    }
    match (marked.split_first(), others.as_slice()) {
        (None, []) => Found::None,
        (None, [other]) => match owner(identity, other) {
            Some(owner) => Found::Foreign {
                balancer: other,
                owner,
                own: None,
            },
            None => Found::One {
                balancer: other,
                surplus: Vec::new(),
            },
        },
        (Some((first, surplus)), []) => Found::One {
            balancer: first,
            surplus: surplus.to_vec(),
        },
        // Upstream refuses too: whichever it took, a Go manager after us might take the other.
        _ => Found::Several { own: only(&marked) },
    }
}

fn only<'a>(balancers: &[&'a LoadBalancer]) -> Option<&'a LoadBalancer> {
    match balancers {
        [only] => Some(*only),
        _ => None,
    }
}

/// What has to go when a Service's balancer is removed, and what stays although the Service names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doomed<'a> {
    pub(crate) own: Vec<&'a LoadBalancer>,
    pub(crate) foreign: Vec<&'a LoadBalancer>,
    /// Those of which only one can be meant; none goes.
    pub(crate) ambiguous: Vec<&'a LoadBalancer>,
}

/// The Services that balancers were made for by this cluster.
pub(crate) fn made_by_cluster(balancers: &[LoadBalancer], services: &dyn ServicesView) -> Vec<MadeFor> {
    let Some(cluster) = services.cluster_uid() else {
        return Vec::new();
    };
    let claims = Claims::of(services);
    let made_for = |balancer: &LoadBalancer| {
        let (namespace, name) = balancer.tags.get(TAG_SERVICE_NAME)?.split_once('/')?;
        Some(MadeFor {
            key: ServiceKey::new(namespace, name),
            uid: balancer.tags.get(TAG_SERVICE_UID)?.to_owned(),
        })
    };
    balancers
        .iter()
        .filter(|balancer| balancer.tags.get(TAG_CLUSTER_UID) == Some(cluster.as_str()))
        .filter(|balancer| !claims.is_annotated(balancer) && !claims.is_held(balancer, ""))
        .filter_map(made_for)
        .collect()
}

/// Finds what has to go. What belongs to somebody else never does, nor what a Service will take over from one that is gone.
pub(crate) fn doomed<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Doomed<'a> {
    let claims = Claims::of(&*identity.services);
    let is_gone = !identity.services.has_uid(&identity.uid);
    let is_held = |balancer: &LoadBalancer| claims.is_held(balancer, &identity.uid);
    let candidates = candidates
        .iter()
        .filter(|balancer| is_candidate(identity, balancer))
        .filter(|balancer| !is_gone || !claims.is_annotated(balancer));
    let (marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        candidates.partition(|balancer| is_made_for(identity, balancer));
    let others = others.into_iter().filter(|_| identity.adopts_unmarked);
    let (mut foreign, unmarked): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        others.partition(|balancer| owner(identity, balancer).is_some() || is_held(balancer));
    // What was made for one that is gone may serve another one by now, and nobody will ask for it again.
    let (held, marked): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        marked.into_iter().partition(|it| is_gone && is_held(it));
    foreign.extend(held);
    let is_ambiguous = unmarked.len() + usize::from(!marked.is_empty()) > 1;
    let mut all = marked;
    all.extend(unmarked);
    all.sort_by_key(|balancer| by_age(balancer.created_at.as_deref(), balancer.uuid));
    let (own, ambiguous) = match is_ambiguous {
        true => (Vec::new(), all),
        false => (all, Vec::new()),
    };
    Doomed {
        own,
        foreign,
        ambiguous,
    }
}

/// The ids of balancers, for messages.
pub(crate) fn ids(balancers: &[&LoadBalancer]) -> String {
    let ids: Vec<String> = balancers
        .iter()
        .map(|balancer| LoadBalancerId::to_string(&balancer.uuid))
        .collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests;
