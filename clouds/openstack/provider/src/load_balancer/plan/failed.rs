//! A load balancer that Octavia gave up: whether another one takes its place.

use bowline_openstack_client::{
    Listener, ListenerId, LoadBalancer, OperatingStatus, Pool, ProvisioningStatus,
};
use bowline_plan::{Answer, Note, Refusal, RefusedBy};

use super::next::{Next, annotate, apply, delete};
use super::waiting::{may_carry, wait_for};
use super::{Existing, absent, floating, rename};
use crate::load_balancer::annotations as keys;
use crate::load_balancer::evidence::{self, Role};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::memory::Remembered;
use crate::load_balancer::observed::Parts;
use crate::load_balancer::remedies;
use crate::load_balancer::step::CloudStep;
use crate::messages::IN_ERROR;

/// Whether it is known, whatever a load balancer has, that nothing can have come through it. One that is older than the Service may
/// have served it before: a Service that is restored has no status.
fn is_untold(identity: &Identity, own: &Remembered, balancer: &LoadBalancer) -> bool {
    let is_older = || evidence::is_made_before(balancer.created_at.as_deref(), identity.created);
    own.created.as_ref() == Some(&balancer.id) || !identity.is_published && !is_older()
}

/// Where traffic may come through a load balancer.
struct Ways<'a> {
    identity: &'a Identity,
    role: Role,
    balancer: &'a LoadBalancer,
    parts: &'a Parts,
}

impl Ways<'_> {
    /// Whether there is one.
    ///
    /// Octavia calls a load balancer `ERROR` as soon as no member of one of its pools answers, and its other pools go on. So each
    /// part is looked at. A listener that is `ONLINE` takes connections, so something carries it: its pool is in `ERROR` because no
    /// member answers probes, as where a Service has no endpoints for a moment.
    fn exist(&self) -> bool {
        let Parts { listeners, pools, .. } = self.parts;
        let are_shown = {
            let of_listeners = &self.balancer.listeners;
            let of_pools = &self.balancer.pools;
            of_listeners
                .iter()
                .all(|of| listeners.iter().any(|there| there.id == of.id))
                && of_pools
                    .iter()
                    .all(|of| pools.iter().any(|there| there.id == of.id))
        };
        let mut listeners = listeners.iter().filter(|listener| !self.is_going(listener));
        let of_listener = |listener: &Listener| {
            !self.is_ours(listener) || self.carries(&listener.operating_status, &listener.provisioning_status)
        };
        let of_pool = |pool: &Pool| {
            let is_ours =
                !pool.listeners.is_empty() || evidence::is_own_pool(self.identity, self.balancer, pool);
            !is_ours || self.carries(&pool.operating_status, &pool.provisioning_status)
        };
        let mut pools = pools.iter().filter(|pool| !self.is_of_going(pool));
        !are_shown || listeners.any(of_listener) || pools.any(of_pool)
    }

    /// Whether a part may carry traffic. Where nothing of the whole load balancer was ever reported, as where Octavia's health
    /// manager is not reached, parts that were made may well work.
    fn carries(&self, operating: &OperatingStatus, provisioning: &ProvisioningStatus) -> bool {
        let is_unreported = *operating == OperatingStatus::Offline
            && self.balancer.operating_status == OperatingStatus::Offline
            && !matches!(
                provisioning,
                ProvisioningStatus::Error | ProvisioningStatus::PendingCreate
            );
        may_carry(operating) || is_unreported
    }

    fn is_ours(&self, listener: &Listener) -> bool {
        let mut tags = listener.tags.iter();
        evidence::is_own_listener(self.identity, self.role, listener)
            || tags.any(|tag| evidence::is_our_tag(self.identity, self.balancer, tag))
    }

    /// Whether a listener is only there because Octavia takes nothing off a load balancer that failed.
    fn is_going(&self, listener: &Listener) -> bool {
        let is_going = |tag| self.identity.going.contains(tag);
        !listener.tags.is_empty() && listener.tags.iter().all(is_going)
    }

    fn is_of_going(&self, pool: &Pool) -> bool {
        let is_going = |id: &ListenerId| {
            let mut listeners = self.parts.listeners.iter();
            listeners.any(|listener| listener.id == *id && self.is_going(listener))
        };
        !pool.listeners.is_empty() && pool.listeners.iter().all(|there| is_going(&there.id))
    }
}

impl Existing<'_> {
    /// Whether nothing can have come through: nobody was told of it, or it has no listener. That it names none proves nothing by itself.
    fn never_served(&self) -> bool {
        let (identity, own) = (&self.wanted.identity, &self.seen.memory.own);
        let has_none = || {
            let parts = self.seen.parts(&self.balancer.id);
            parts.is_some_and(|there| there.listeners.is_empty())
        };
        is_untold(identity, own, self.balancer) || self.balancer.listeners.is_empty() && has_none()
    }

    /// Whether traffic may come through, whatever became of changes. Of parts that were not read, anything may be true.
    fn may_serve(&self) -> bool {
        let ways = || {
            let parts = self.seen.parts(&self.balancer.id);
            parts.filter(|parts| !parts.is_predicted).map(|parts| Ways {
                identity: &self.wanted.identity,
                role: self.role,
                balancer: self.balancer,
                parts,
            })
        };
        may_carry(&self.balancer.operating_status) || ways().is_none_or(|ways| ways.exist())
    }

    /// Whether Octavia gave up a load balancer that is the Service's alone. Another one takes its place: always if it never
    /// served; if it served and does not any more, not more often than once an hour.
    pub(super) fn is_to_be_made_anew(&self) -> bool {
        let (identity, own) = (&self.wanted.identity, &self.seen.memory.own);
        // One that is not found by its name is found by the annotation only, and that goes beforehand where no address is
        // recorded beside it.
        let is_found_again = self.role == Role::Owner || identity.recorded_address.is_some();
        self.balancer.provisioning_status == ProvisioningStatus::Error
            && (self.never_served() || own.may_repair && is_found_again && !self.may_serve())
            && evidence::is_to_be_deleted(identity, self.role, self.balancer)
            && rename::is_borne_out(identity, self.seen, self.balancer)
            && !absent::is_shared_by_listener(identity, self.seen, self.balancer)
    }

    /// Deletes a load balancer that failed. An id that nothing says to be ours is taken off the Service first: it must not name
    /// one that is gone.
    pub(super) fn unmake(&self, notes: &mut Vec<Note>) -> Next {
        let (identity, balancer) = (&self.wanted.identity, self.balancer);
        let is_live = !self.never_served();
        if is_live {
            let note = IN_ERROR.note(format!(
                "load balancer {} is in provisioning status ERROR, in which it takes no change: it is deleted, and another one takes its place and its addresses",
                balancer.id
            ));
            notes.push(note.even_at_start()); // this process does it
        }
        if identity.annotated.as_ref() == Some(&balancer.id) && identity.recorded_address.is_none() {
            return annotate(keys::ID.key, None);
        }
        // Octavia is at work on it all the same.
        if self.seen.memory.own.is_busy {
            return wait_for(balancer, self.seen);
        }
        // Its description would be all that says whose it is.
        match floating::untold(identity, self.seen, balancer).filter(|_| !is_live) {
            Some(change) => apply(vec![CloudStep::FloatingIp(change)]),
            None => apply(vec![delete(balancer, is_live)]),
        }
    }

    /// Octavia gave the load balancer up. It may still carry traffic, and takes no change.
    pub(super) fn failed(&self, notes: &mut Vec<Note>) -> Next {
        let (identity, balancer) = (&self.wanted.identity, self.balancer);
        let is_for_later = !self.seen.memory.own.may_repair;
        let failover = remedies::failover(balancer);
        let remedy = match evidence::is_to_be_deleted(identity, self.role, balancer) {
            true if self.may_serve() => {
                format!("it may still carry traffic (Octavia does not tell whether it does), so Bowline leaves it, and can change nothing of it: neither ports nor members follow the cluster. Ask the operator of the cloud {failover}, or delete the Service and create it anew")
            }
            true if is_for_later => {
                "Bowline made another one in its place within the last hour and does so again after that hour; ask the operator of the cloud what is wrong".to_owned()
            }
            _ => {
                format!("nothing says that it was made for this Service and that no other one uses it, so Bowline leaves it as it is; ask the operator of the cloud {failover}")
            }
        };
        let reason = format!(
            "load balancer {} is not ACTIVE, current provisioning status: {}",
            balancer.id, balancer.provisioning_status
        );
        notes.push(IN_ERROR.note(format!("{reason}; {remedy}")));
        let refusal = Refusal::new(reason).with_remedy(remedy);
        Answer::Refused(refusal.by(RefusedBy::Failure))
    }
}
