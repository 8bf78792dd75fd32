//! Which load balancer is a Service's own, which one it shares, and which must not be touched.
//!
//! A load balancer bears the name of the Service that it was made for, and, as parts do, one tag for each Service that uses it.
//! What the annotation names counts before any name. Clusters of one name are told apart by the UID on [pools](marks).

use std::collections::BTreeSet;

use bowline_openstack_client::{Listener, LoadBalancer, LoadBalancerId, Pool, ProvisioningStatus};
use jiff::{SignedDuration, Timestamp};

use crate::config::LoadBalancerOptions;
use crate::load_balancer::intent::{Identity, Tagging};
use crate::load_balancer::names;
use crate::load_balancer::observed::Observed;

pub(crate) mod marks;

/// More than the clocks of the cloud and of the cluster differ where somebody looks after them.
const CLOCKS: SignedDuration = SignedDuration::from_secs(10);

/// What was found for a Service.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// There is none.
    None,
    /// The annotation names one that is not there, and nothing says that this controller wrote it.
    Missing(&'a LoadBalancerId),
    /// This one.
    One {
        /// The load balancer.
        balancer: &'a LoadBalancer,
        /// What the Service is to it.
        role: Role,
        /// Others that bear the Service's name, tag and description.
        twins: Vec<&'a LoadBalancer>,
    },
    /// It is being deleted; another one is made when it is gone, or does not go.
    Going(&'a LoadBalancer),
    /// The annotation names one of another cluster whose parts bear the very marks of this Service: nobody could tell whose they are.
    OfOtherCluster(&'a LoadBalancer),
    /// Several could be meant; nobody but a person can tell.
    Several(Vec<&'a LoadBalancer>),
}

impl<'a> Found<'a> {
    /// The load balancer that the Service uses.
    pub(crate) fn balancer(&self) -> Option<&'a LoadBalancer> {
        match self {
            Self::One { balancer, .. } => Some(balancer),
            _ => None,
        }
    }
}

/// What a Service is to its load balancer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It was made for the Service.
    Owner,
    /// It was made for somebody else, by a controller or by hand, and the Service uses it too.
    Guest,
}

/// Whether a load balancer has anything to do with a Service.
pub(crate) fn is_candidate(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let is_namesakes =
        identity.annotated.as_ref() != Some(&balancer.id) && identity.of_namesakes.contains(&balancer.id);
    // Its mark there is that of the other cluster's Service, unless the load balancer was made for somebody else.
    let is_named_alike = identity.annotated.as_ref() != Some(&balancer.id)
        && known_names(identity).any(|name| name == balancer.name)
        && is_of_other_cluster(identity, balancer);
    !is_namesakes && !is_named_alike && (is_meant(identity, balancer) || bears_tag(identity, balancer))
}

/// Whether a tag says that a load balancer belongs to another cluster. What a Service does not name itself is not seen then; what it names
/// it may share, and never renames or deletes.
pub(crate) fn is_of_other_cluster(identity: &Identity, balancer: &LoadBalancer) -> bool {
    other_cluster(&identity.options, balancer).is_some()
}

/// The UID of the other cluster that a load balancer belongs to by its tags; `None` if none names one, if one names this cluster too, or if
/// the UID of this one is not known.
pub(crate) fn other_cluster<'a>(
    options: &LoadBalancerOptions,
    balancer: &'a LoadBalancer,
) -> Option<&'a str> {
    let own = options.cluster_uid.as_deref()?;
    let marks = || balancer.tags.iter().filter_map(|tag| names::cluster_in_mark(tag));
    marks().next().filter(|_| marks().all(|uid| uid != own))
}

/// Whether a load balancer may be the one that a Service uses.
pub(crate) fn is_meant(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated.as_ref() == Some(&balancer.id) || bears_name(identity, balancer)
}

/// The load balancers that a Service used before the one that it uses now, and what it is to each: those that bear its tag still, while
/// nothing else says that the Service uses them, and its own one where a person sent it to another one.
pub(crate) fn left_behind<'a>(
    identity: &Identity,
    candidates: &'a [LoadBalancer],
    used: Option<(&LoadBalancer, Role)>,
) -> impl Iterator<Item = (&'a LoadBalancer, Role)> {
    let others = candidates
        .iter()
        .filter(|there| there.provisioning_status != ProvisioningStatus::Deleted)
        .filter(move |there| used.is_none_or(|(used, _)| used.id != there.id));
    let is_guest = used.is_some_and(|(_, role)| role == Role::Guest);
    others.filter_map(
        move |there| match bears_tag(identity, there) && !is_meant(identity, there) {
            true => Some((there, Role::Guest)),
            false => (is_guest && is_surely_ours(identity, there)).then_some((there, Role::Owner)),
        },
    )
}

/// Whether a load balancer bears a tag that says that this Service uses it.
pub(crate) fn bears_tag(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let mut tags = balancer.tags.iter();
    tags.any(|tag| is_our_tag(identity, balancer, tag))
}

/// Whether a load balancer bears a name that a Service's own may have: the present one, one with a former name of the
/// cluster, or a very old one.
fn bears_name(identity: &Identity, balancer: &LoadBalancer) -> bool {
    let is_named = balancer.name == identity.name
        || balancer.name == identity.legacy_name && identity.legacy_name.len() > 1
        || former_cluster(identity, balancer).is_some() && bears_our_service(identity, balancer);
    is_named && !is_of_other_cluster(identity, balancer)
}

/// Whether a load balancer is the Service's own under a former name of the cluster: a configured one, or one that the
/// Service's annotations speak for.
fn is_under_former_name(identity: &Identity, balancer: &LoadBalancer) -> bool {
    balancer.name != identity.name
        && !is_of_other_cluster(identity, balancer)
        && bears_our_service(identity, balancer)
        && (former_cluster(identity, balancer).is_some()
            || claimed_tag(identity, balancer) == Some(&balancer.name))
}

/// The tag under which a Service has used the load balancer that it names since before the cluster got another name, as far as
/// the Service itself tells: what is there has to bear it out before anything is written (`plan::rename::is_borne_out`).
///
/// A guest of another cluster has left its tag; who is not renamed yet has not. An owner was there before its load balancer
/// was made. A guest comes later, but a controller of this cluster has told it the address: the API server drops the status of
/// a Service that is created with one, so a copy has none.
pub(crate) fn claimed_tag<'a>(identity: &Identity, balancer: &'a LoadBalancer) -> Option<&'a str> {
    let annotations_speak = identity.annotated.as_ref() == Some(&balancer.id)
        && identity.recorded_address.is_some()
        && !bears_known_tag(identity, balancer);
    let may_be_renamed = identity.options.renames && !is_of_other_cluster(identity, balancer);
    if !annotations_speak || !may_be_renamed || balancer.name == identity.name {
        return None;
    }
    if bears_our_service(identity, balancer) {
        let is_copy = is_made_before(balancer.created_at.as_deref(), identity.created);
        return (!is_copy).then_some(&balancer.name);
    }
    let mut alike = balancer
        .tags
        .iter()
        .filter(|tag| is_of_our_service(identity, tag));
    let tag = alike.next()?;
    (identity.is_told_recorded && alike.next().is_none()).then_some(tag)
}

/// Whether something of a load balancer, or all of it, was there before its Service was, by more than clocks differ. Then it was
/// made for another one: this one was copied, annotations and all, as from a backup into a second cluster.
pub(crate) fn is_made_before(made: Option<&str>, service: Option<Timestamp>) -> bool {
    // Octavia writes UTC, and does not say so.
    let made = made.map(|made| made.trim_end_matches('Z'));
    let made = made.and_then(|made| format!("{made}Z").parse::<Timestamp>().ok());
    made.zip(service)
        .is_some_and(|(made, service)| service.duration_since(made) > CLOCKS)
}

/// The cluster in a tag that is this Service's but for that, and that is no former name of this cluster.
pub(crate) fn namesake<'a>(identity: &Identity, tags: &'a [String]) -> Option<&'a str> {
    let alike = tags.iter().filter(|tag| is_of_our_service(identity, tag));
    let clusters = alike.filter_map(|tag| names::cluster_of(tag));
    let formers = &identity.options.former_clusters;
    let mut others = clusters
        .filter(|cluster| *cluster != identity.cluster && formers.iter().all(|former| former != cluster));
    others.next()
}

/// Whether the name is this Service's but for the cluster.
fn bears_our_service(identity: &Identity, balancer: &LoadBalancer) -> bool {
    is_of_our_service(identity, &balancer.name)
}

/// Whether a name or tag is this Service's but for the cluster.
fn is_of_our_service(identity: &Identity, tag: &str) -> bool {
    names::cluster_of(tag).is_some_and(|cluster| names::balancer(cluster, &identity.service) == tag)
}

/// The cluster in a load balancer's name, if it is a configured former name of this cluster.
fn former_cluster<'a>(identity: &Identity, balancer: &'a LoadBalancer) -> Option<&'a str> {
    let cluster = names::cluster_of(&balancer.name)?;
    let formers = &identity.options.former_clusters;
    (cluster != identity.cluster && formers.iter().any(|former| former == cluster)).then_some(cluster)
}

/// Whether a load balancer is on its way out, or only still shown.
pub(crate) fn is_going(balancer: &LoadBalancer) -> bool {
    matches!(
        balancer.provisioning_status,
        ProvisioningStatus::PendingDelete | ProvisioningStatus::Deleted
    )
}

/// Finds a Service's load balancer among those that were seen.
pub(crate) fn resolve<'a>(identity: &'a Identity, observed: &'a Observed) -> Found<'a> {
    let Observed {
        balancers: candidates,
        gone,
        marked,
        ..
    } = observed;
    let mut named: Vec<&LoadBalancer> = candidates
        .iter()
        .filter(|balancer| bears_name(identity, balancer) && !is_going(balancer))
        .collect();
    named.sort_by_key(|balancer| by_age(balancer));
    if let Some(id) = &identity.annotated {
        let annotated = candidates.iter().find(|balancer| balancer.id == *id);
        match annotated {
            Some(balancer) if balancer.provisioning_status == ProvisioningStatus::PendingDelete => {
                return Found::Going(balancer);
            }
            Some(balancer) if balancer.name == identity.name && is_of_other_cluster(identity, balancer) => {
                return Found::OfOtherCluster(balancer);
            }
            Some(balancer) if balancer.provisioning_status != ProvisioningStatus::Deleted => {
                let role = role(identity, balancer);
                // A guest's own one may still be wanted: the Service was sent elsewhere by a person.
                let twins = named.into_iter().filter(|other| {
                    role == Role::Owner && other.id != *id && is_surely_ours(identity, other)
                });
                return Found::One {
                    balancer,
                    role,
                    twins: twins.collect(),
                };
            }
            // Not there any more. What was written beside an address was written here: a new one takes its place.
            Some(_) | None if identity.recorded_address.is_some() => {}
            None if !gone.contains(id) => {}
            Some(_) | None => return Found::Missing(id),
        }
    }
    // The present name counts before a former one, and that before the very old one.
    let rank = |balancer: &LoadBalancer| match &balancer.name {
        name if *name == identity.name => 0,
        name if *name == identity.legacy_name => 2,
        _ => 1,
    };
    let best = named.iter().map(|balancer| rank(balancer)).min();
    named.retain(|balancer| Some(rank(balancer)) == best);
    match named.as_slice() {
        [] => match candidates.iter().find(|balancer| {
            balancer.name == identity.name
                && balancer.provisioning_status == ProvisioningStatus::PendingDelete
        }) {
            Some(going) => Found::Going(going),
            None => Found::None,
        },
        [oldest, others @ ..] if others.is_empty() || named.iter().all(|it| is_surely_ours(identity, it)) => {
            // One without pools may be another cluster's that has just begun.
            let is_marked = |balancer: &&&LoadBalancer| marked.contains(&balancer.id);
            let balancer = *named.iter().find(is_marked).unwrap_or(oldest);
            let twins = named.iter().filter(|other| other.id != balancer.id);
            Found::One {
                balancer,
                role: Role::Owner,
                twins: twins.copied().collect(),
            }
        }
        _ => Found::Several(named),
    }
}

/// Of twins of a load balancer those that were surely made for this very Service, by what is on their pools: these are superfluous.
/// Who or what the others are for, nothing tells.
pub(crate) fn surplus<'a>(
    observed: &Observed,
    twins: Vec<&'a LoadBalancer>,
) -> (Vec<&'a LoadBalancer>, Vec<&'a LoadBalancer>) {
    twins
        .into_iter()
        .partition(|twin| observed.marked.contains(&twin.id))
}

/// What is there of a Service that is being removed.
///
/// As [`resolve`], but where the Service has recorded a load balancer, only that one and what was surely made for the Service
/// count. Another one that merely bears the name may be a person's, and comes into sight when the recorded one is gone.
pub(crate) fn resolve_removed<'a>(identity: &'a Identity, observed: &'a Observed) -> Found<'a> {
    let is_certain = |balancer: &&LoadBalancer| match &identity.annotated {
        Some(recorded) => balancer.id == *recorded || is_surely_ours(identity, balancer),
        None => true,
    };
    match resolve(identity, observed) {
        Found::One { balancer, .. } if !is_certain(&balancer) => Found::None,
        Found::Several(named) if identity.annotated.is_some() => {
            named
                .into_iter()
                .find(is_certain)
                .map_or(Found::None, |balancer| Found::One {
                    balancer,
                    role: Role::Owner,
                    twins: Vec::new(),
                })
        }
        found => found,
    }
}

/// What a Service is to a load balancer that it names.
fn role(identity: &Identity, balancer: &LoadBalancer) -> Role {
    let is_own = bears_name(identity, balancer) || is_under_former_name(identity, balancer);
    if is_own { Role::Owner } else { Role::Guest }
}

/// The tags that a Service may take off its load balancer: those that are recorded as added for it, but for what another Service of the
/// load balancer asks for. A guest takes off none: its record may have come along with a copy, and name what is not its own.
pub(crate) fn removable_tags<'a>(identity: &'a Identity, balancer: &LoadBalancer) -> BTreeSet<&'a String> {
    if role(identity, balancer) == Role::Guest {
        return BTreeSet::new();
    }
    let is_user = |other: &&Tagging| {
        balancer.tags.contains(&other.mark) || other.balancer.as_ref() == Some(&balancer.id)
    };
    let is_asked_for = |tag: &&String| {
        let mut users = identity.tagging.iter().filter(is_user);
        users.any(|other| other.tags.contains(*tag))
    };
    let added = identity.added_tags.all.iter();
    added.filter(|tag| !is_asked_for(tag)).collect()
}

/// Whether a load balancer was made for this Service alone, by its tag, its description and its name together.
fn is_surely_ours(identity: &Identity, balancer: &LoadBalancer) -> bool {
    balancer.name == identity.name
        && balancer.tags.contains(&identity.name)
        && balancer.description == names::balancer_description(&identity.cluster, &identity.service)
        && !is_shared(identity, balancer)
}

/// Oldest first; the order of ids where ages are equal.
fn by_age(balancer: &LoadBalancer) -> (String, LoadBalancerId) {
    (
        balancer.created_at.clone().unwrap_or_default(),
        balancer.id.clone(),
    )
}

/// Whether another Service uses a load balancer too.
pub(crate) fn is_shared(identity: &Identity, balancer: &LoadBalancer) -> bool {
    !others(identity, balancer).is_empty()
}

/// The tags of other Services that use a load balancer too.
pub(crate) fn others<'a>(identity: &Identity, balancer: &'a LoadBalancer) -> Vec<&'a str> {
    let tags = balancer.tags.iter().filter(|tag| tag.starts_with(names::PREFIX));
    let others = tags.filter(|tag| !is_our_tag(identity, balancer, tag));
    others.map(String::as_str).collect()
}

/// Whether a tag of a load balancer says that this Service uses it, under the present name of the cluster or a former one.
pub(crate) fn is_our_tag(identity: &Identity, balancer: &LoadBalancer, tag: &str) -> bool {
    is_known_tag(identity, tag) || claimed_tag(identity, balancer) == Some(tag)
}

/// The same, as far as no annotation is needed to tell.
fn is_known_tag(identity: &Identity, tag: &str) -> bool {
    known_names(identity).any(|name| name == tag)
}

/// The names that the Service's load balancer may have: the present one, and those under configured former names of the cluster.
fn known_names(identity: &Identity) -> impl Iterator<Item = String> {
    let formers = identity.options.former_clusters.iter();
    let formers = formers.map(|former| names::balancer(former, &identity.service));
    std::iter::once(identity.name.clone()).chain(formers)
}

/// Whether a load balancer says, without any annotation, that this Service uses it.
pub(crate) fn bears_known_tag(identity: &Identity, balancer: &LoadBalancer) -> bool {
    balancer.tags.iter().any(|tag| is_known_tag(identity, tag))
}

/// Whether a controller made a load balancer for a Service whose tag is not on it any more.
pub(crate) fn is_without_owner(balancer: &LoadBalancer) -> bool {
    balancer.name.starts_with(names::PREFIX) && !balancer.tags.contains(&balancer.name)
}

/// How many Services use a load balancer, by its tags.
pub(crate) fn users(balancer: &LoadBalancer) -> usize {
    let tags = balancer.tags.iter();
    tags.filter(|tag| tag.starts_with(names::PREFIX)).count()
}

/// Whether a controller made a load balancer.
fn is_made_by_controller(identity: &Identity, balancer: &LoadBalancer) -> bool {
    balancer.name.starts_with(names::PREFIX) || balancer.name == identity.legacy_name
}

/// Whether a load balancer goes with the Service: one that a controller made, that the Service owns or has its tag on, and
/// that no other Service uses.
///
/// Octavia deletes one that failed as a whole only. A Service that is going could not take its part off it, and has no use for
/// it either, so its tag does not count then.
pub(crate) fn is_to_be_deleted(identity: &Identity, role: Role, balancer: &LoadBalancer) -> bool {
    let is_ours = role == Role::Owner || bears_tag(identity, balancer);
    let has_failed = balancer.provisioning_status == ProvisioningStatus::Error;
    let mut others = balancer
        .tags
        .iter()
        .filter(|tag| tag.starts_with(names::PREFIX) && !is_our_tag(identity, balancer, tag));
    let is_used = others.any(|tag| !(has_failed && identity.going.contains(tag)));
    let is_foreign = is_of_other_cluster(identity, balancer);
    is_ours && is_made_by_controller(identity, balancer) && !is_used && !is_foreign
}

/// Whether a listener is the Service's: by its tag, or, where nobody tagged it, because the load balancer is.
pub(crate) fn is_own_listener(identity: &Identity, role: Role, listener: &Listener) -> bool {
    listener.tags.contains(&identity.name) || listener.tags.is_empty() && role == Role::Owner
}

/// Whether a listener is the Service's where the load balancer stays for others: by its tag, or, where nobody tagged it, by its name too.
/// What a person put beside it is nobody's part.
pub(crate) fn is_own_part(
    identity: &Identity,
    role: Role,
    balancer: &LoadBalancer,
    listener: &Listener,
) -> bool {
    let mut tags = listener.tags.iter();
    let is_named = names::is_listener_of(&listener.name, &balancer.name);
    // Also by a former name of the cluster: it goes before it was renamed.
    tags.any(|tag| tag == &identity.name || is_our_tag(identity, balancer, tag))
        || is_named && is_own_listener(identity, role, listener)
}

/// Whether a listener says that another Service uses the load balancer, whatever that says itself. Of a Service that goes too, it does not
/// count.
pub(crate) fn is_of_other_service(identity: &Identity, balancer: &LoadBalancer, listener: &Listener) -> bool {
    let mut tags = listener.tags.iter();
    tags.any(|tag| {
        tag.starts_with(names::PREFIX)
            && !is_our_tag(identity, balancer, tag)
            && !identity.going.contains(tag)
    })
}

/// Whether a pool is the Service's, by its name.
pub(crate) fn is_own_pool(identity: &Identity, balancer: &LoadBalancer, pool: &Pool) -> bool {
    let is_ours = |name: &str| name == identity.name || is_our_tag(identity, balancer, name);
    names::balancer_of_pool(&pool.name).is_some_and(is_ours)
}

/// A load balancer that was surely made for a Service, beside this one: a person sent the Service elsewhere.
pub(crate) fn own_beside<'a>(
    identity: &Identity,
    candidates: &'a [LoadBalancer],
    used: &LoadBalancer,
) -> Option<&'a LoadBalancer> {
    let mut others = left_behind(identity, candidates, Some((used, Role::Guest)));
    others.find_map(|(there, role)| (role == Role::Owner).then_some(there))
}

/// The ids of load balancers, for messages.
pub(crate) fn ids(balancers: &[&LoadBalancer]) -> String {
    let ids: Vec<&str> = balancers.iter().map(|balancer| balancer.id.as_str()).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests;
