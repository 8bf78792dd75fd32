//! Whose a load balancer is that only a name or a tag speaks for.
//!
//! Two clusters of one name in one project give their load balancers the same names and tags, and `kubernetes` is the name of every
//! cluster that was given none. What tells their load balancers apart is what is written on the pools that Bowline made: a load
//! balancer whose pools were made for a Service of our name with another UID, in another cluster, and none for ours, is somebody
//! else's. It is taken out of sight ([`Observed`](crate::load_balancer::observed::Observed)) before anything is decided, so that no decision can write
//! to it.
//!
//! - One with a tag that names another cluster, and none that names ours, is [not seen](super::is_of_other_cluster) where `cluster-uid` in
//!   `cloud.conf` says which one ours is: Go managers after v1.36.0 may write such tags.
//! - One that was made for a Service of our name in our own cluster is ours whatever its UID: a cluster has one Service of a name
//!   at a time, and that one was deleted without its finalizer.
//! - One that the Service's annotation names is never in doubt: a controller wrote it, or a person who wants the load balancer taken
//!   over. The pools that are kept then keep the other UID, and that settles, because the annotation stays.
//! - One without any such pool, as the Go manager makes it, is ours by its name.
//! - One with pools of both is ours: it was taken over in that way, new pools were made since, and the annotation was lost. Pools with
//!   the other UID are changed and deleted as any other there: the ports that they serve would never be as the Service wants them.
//! - One without pools tells nothing, and is ours by its name: of two clusters that make parts one by one
//!   (`provider-requires-serial-api-calls`), one that comes before the other's first pool is there takes that load balancer.

use bowline_openstack_client::{LoadBalancer, Pool};

use super::{is_candidate, is_going, known_names};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::names::{self, PoolMark};
use crate::load_balancer::observed::Told;

/// Whether the pools of a load balancer have to be seen before it may be taken for the Service's.
pub(crate) fn is_in_doubt(identity: &Identity, balancer: &LoadBalancer) -> bool {
    identity.annotated.as_ref() != Some(&balancer.id)
        && !balancer.pools.is_empty()
        && !is_going(balancer)
        && is_candidate(identity, balancer)
}

/// What the pools of a load balancer tell.
///
/// Pools of guests say nothing: only those count that are named as this Service's are, and say that they serve one of its name.
pub(crate) fn told<'a>(identity: &Identity, pools: impl IntoIterator<Item = &'a Pool>) -> Told {
    let names: Vec<String> = known_names(identity).collect();
    let is_named_so = |pool: &&Pool| names.iter().any(|name| names::is_pool_of(&pool.name, name));
    let pools = pools.into_iter().filter(is_named_so);
    let marks = pools.map(|pool| names::mark_on_pool(&pool.description, &identity.service));
    let marks: Vec<Option<PoolMark<'_>>> = marks.collect();
    let ours = identity.mark();
    let is_this = |mark: &PoolMark<'_>| mark.uid == ours.uid;
    if !marks.is_empty() && marks.iter().all(|mark| mark.as_ref().is_some_and(is_this)) {
        return Told::Ours;
    }
    let is_ours =
        |mark: &PoolMark<'_>| is_this(mark) || mark.cluster.is_some() && mark.cluster == ours.cluster;
    let known = || marks.iter().flatten();
    match known().map(|mark| mark.uid).min() {
        Some(uid) if !known().any(is_ours) => Told::OfAnother(uid.to_owned()),
        Some(_) | None => Told::Nothing,
    }
}

/// The UIDs of Services of this name that the cluster had before this one, as far as pools tell. A cluster has one Service of a name at
/// a time, so these are gone.
pub(crate) fn former<'a>(
    identity: &'a Identity,
    pools: impl Iterator<Item = &'a Pool>,
) -> impl Iterator<Item = &'a str> {
    let cluster = identity.cluster_uid.as_deref();
    let marks = pools.filter_map(|pool| names::mark_on_pool(&pool.description, &identity.service));
    let is_former =
        move |mark: &PoolMark<'_>| mark.uid != identity.uid && cluster.is_some() && mark.cluster == cluster;
    marks.filter(is_former).map(|mark| mark.uid)
}
