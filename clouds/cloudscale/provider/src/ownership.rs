//! Which balancer is a Service's own, and which must not be touched.
//!
//! What this provider creates bears a mark, the Service's UID, set inside the create call and never added later. What
//! bears no mark is found as upstream finds it: by the UUID annotation or by name.

use bowline_cloudscale_client::{LoadBalancer, LoadBalancerId};

use crate::intent::Identity;
use crate::names::{self, TAG_CLUSTER_NAME, TAG_SERVICE_UID};

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
    Several,
    /// The one that is meant belongs to somebody else.
    Foreign(&'a LoadBalancer),
}

/// Whether a balancer has anything to do with a Service: named by its annotation, by its name, or marked for it.
pub(crate) fn is_candidate(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated == Some(balancer.uuid)
        || is_marked(identity, balancer)
        || !identity.name.is_empty() && balancer.name == identity.name
}

/// Whether a balancer was made for the Service.
fn is_marked(identity: &Identity, balancer: &LoadBalancer) -> bool {
    !identity.uid.is_empty() && balancer.tags.get(TAG_SERVICE_UID) == Some(&identity.uid)
}

/// Whether a balancer that does not bear the Service's mark belongs to somebody else.
fn is_foreign(identity: &Identity, balancer: &LoadBalancer) -> bool {
    match balancer.tags.get(TAG_SERVICE_UID) {
        // A restored Service has a new UID but still names its balancer.
        Some(marked) => identity.annotated != Some(balancer.uuid) || identity.services.has_uid(marked),
        None => match (balancer.tags.get(TAG_CLUSTER_NAME), &identity.cluster_name) {
            (None, _) => false,
            (Some(theirs), Some(ours)) => theirs != ours,
            // It is not known which cluster this is. Only the annotation, which is written when a balancer is ready, and
            // the name that holds the Service's UID tell that the balancer was not chosen by its name alone.
            (Some(_), None) => {
                identity.annotated != Some(balancer.uuid) && balancer.name != names::balancer(&identity.uid)
            }
        },
    }
}

/// Oldest first; the order of ids where ages are equal.
pub(crate) fn by_age<Id: Ord + Copy>(created_at: Option<&str>, id: Id) -> (String, Id) {
    (created_at.unwrap_or_default().to_owned(), id)
}

/// Finds a Service's balancer among its candidates.
pub(crate) fn resolve<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Found<'a> {
    let (mut marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) = candidates
        .iter()
        .partition(|balancer| is_marked(identity, balancer));
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
        && is_foreign(identity, annotated)
    {
        return Found::Foreign(annotated);
    }
    match (marked.split_first(), others.as_slice()) {
        (None, []) => Found::None,
        (None, [other]) if is_foreign(identity, other) => Found::Foreign(other),
        (None, [other]) => Found::One {
            balancer: other,
            surplus: Vec::new(),
        },
        (Some((first, surplus)), []) => Found::One {
            balancer: first,
            surplus: surplus.to_vec(),
        },
        // Upstream refuses too: whichever it took, a Go manager after us might take the other.
        _ => Found::Several,
    }
}

/// What has to go when a Service's balancer is removed, and what stays although the Service names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Doomed<'a> {
    pub(crate) own: Vec<&'a LoadBalancer>,
    pub(crate) foreign: Vec<&'a LoadBalancer>,
    /// Whether several without a mark could be meant.
    pub(crate) is_ambiguous: bool,
}

/// Finds what has to go. What belongs to somebody else never does.
pub(crate) fn doomed<'a>(identity: &Identity, candidates: &'a [LoadBalancer]) -> Doomed<'a> {
    let candidates = candidates
        .iter()
        .filter(|balancer| is_candidate(identity, balancer));
    let (marked, others): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        candidates.partition(|balancer| is_marked(identity, balancer));
    let others = others.into_iter().filter(|_| identity.adopts_unmarked);
    let (foreign, unmarked): (Vec<&LoadBalancer>, Vec<&LoadBalancer>) =
        others.partition(|balancer| is_foreign(identity, balancer));
    let is_ambiguous = unmarked.len() + usize::from(!marked.is_empty()) > 1;
    let mut own = marked;
    if !is_ambiguous {
        own.extend(unmarked);
    }
    own.sort_by_key(|balancer| by_age(balancer.created_at.as_deref(), balancer.uuid));
    Doomed {
        own,
        foreign,
        is_ambiguous,
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
