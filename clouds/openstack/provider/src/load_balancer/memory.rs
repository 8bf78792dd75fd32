//! What a reconcile remembers beside what it observed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::Recent;
use bowline_openstack_client::{
    FloatingIp, FloatingIpId, LoadBalancerId, Member, NewSecurityGroupRule, PoolId,
};
use bowline_plan::{AtRest, Refusal};

use crate::load_balancer::observed::Observed;
use crate::load_balancer::step::{CloudStep, PartChange, PoolSetting};
use crate::load_balancer::vip_ports::{Known, Place};

/// What a reconcile remembers.
pub(crate) type Memory = bowline_cloud_provider::Memory<Remembered, CloudStep>;

/// How often a load balancer was looked at since the last write to it, or in this reconcile.
pub(crate) fn looks(memory: &Memory) -> usize {
    memory.looks() + usize::from(!memory.own.is_written)
}

/// How long after it was seen that a load balancer is at rest a change of it may come about. Of one change `ovn` makes several requests, and
/// says after each that all is done; each asks Neutron, which takes up to some seconds.
const LATE: Duration = Duration::from_secs(12);

/// Whether what this reconcile took away may be there only for a moment longer.
pub(crate) fn may_be_late(memory: &Memory) -> bool {
    memory.own.is_verified && memory.waited() < LATE
}

/// Whether Octavia answered a change of this reconcile that takes something away, and that may come about only now.
pub(crate) fn is_late(memory: &Memory, change: &PartChange) -> bool {
    may_be_late(memory) && memory.own.has_taken(change)
}

/// What Octavia and Neutron refused.
pub(crate) type Refusals = bowline_cloud_provider::Refusals<CloudStep>;

/// What is refused of the parts of load balancers.
pub(crate) trait PartRefusals {
    /// The changes of parts that are refused.
    fn of_parts(&self) -> impl Iterator<Item = (&PartChange, &Refusal)>;

    /// Why Octavia does not take a change. Where a quota leaves no room for one thing, it leaves none for another of its kind.
    fn of_change(&self, change: &PartChange) -> Option<&Refusal> {
        let is_full = |refused: &PartChange| change.room().is_some() && refused.room() == change.room();
        let mut refused = self.of_parts();
        let found = refused.find(|(refused, why)| *refused == change || why.is_limit && is_full(refused));
        found.map(|(_, why)| why)
    }

    /// A creation that was refused and is like another one: of what cannot stand beside what is there. Only what is of the port differs.
    fn of_alike(&self, create: &PartChange) -> Option<&PartChange> {
        let mut refused = self.of_parts().map(|(refused, _)| refused);
        refused.find(|refused| match (refused, create) {
            (PartChange::CreateListener { new: a }, PartChange::CreateListener { new: b }) => {
                (&a.protocol, &a.attributes) == (&b.protocol, &b.attributes)
            }
            (PartChange::CreateMonitor { new: a }, PartChange::CreateMonitor { new: b }) => a.kind == b.kind,
            _ => false,
        })
    }

    /// Why a pool is not deleted, as when an L7 policy names it; `None` if nothing is known to bar that.
    fn of_deletion(&self, pool: &PoolId) -> Option<&Refusal> {
        let is_it = |change: &PartChange| matches!(change, PartChange::DeletePool { id, .. } if id == pool);
        let mut refused = self.of_parts();
        refused.find(|(refused, _)| is_it(refused)).map(|(_, why)| why)
    }

    /// Why a pool does not get a setting.
    fn of_setting(&self, pool: &PoolId, setting: &PoolSetting) -> Option<&Refusal> {
        let is_it = |change: &PartChange| match change {
            PartChange::UpdatePool { id, update, .. } => {
                id == pool && PoolSetting::of(update).as_ref() == Some(setting)
            }
            _ => false,
        };
        let mut refused = self.of_parts();
        refused.find(|(refused, _)| is_it(refused)).map(|(_, why)| why)
    }
}

impl PartRefusals for Refusals {
    fn of_parts(&self) -> impl Iterator<Item = (&PartChange, &Refusal)> {
        self.iter().filter_map(|(step, why)| match step {
            CloudStep::Part { change, .. } => Some((change, why)),
            _ => None,
        })
    }
}

/// What a reconcile has seen.
pub(crate) type Seen = bowline_cloud_provider::Seen<Observed, Remembered, CloudStep>;

/// What a reconcile remembers of its writes, beyond what the API shows.
#[derive(Debug, Default)]
pub(crate) struct Remembered {
    /// The load balancer was written to in this reconcile: before that, the reconcile's own first look counts.
    pub(crate) is_written: bool,
    /// What the last write came to was read, and nothing was written since.
    pub(crate) is_verified: bool,
    /// The load balancer was written to and not looked at since.
    pub(crate) is_unseen: bool,
    /// How long a change of a part is given before it is looked at.
    pub(crate) change_pause: Duration,
    /// The last write to the load balancer was put off because another change is under way.
    pub(crate) is_busy: bool,
    /// The writes of which Octavia said so while each look showed the load balancer at rest.
    pub(crate) at_rest: AtRest<CloudStep>,
    /// Since when the load balancer was pending at the first look that waited for it, in words.
    pub(crate) pending_since: Option<String>,
    /// It was a pool of it that Octavia said so of: it may have failed, which the load balancer does not show.
    pub(crate) is_pool_locked: bool,
    /// The creation of the load balancer was not answered in time, so it may still show.
    pub(crate) is_creation_late: bool,
    /// The load balancer that this reconcile created.
    pub(crate) created: Option<LoadBalancerId>,
    /// The load balancer that failed and that this reconcile therefore deleted.
    pub(crate) failed: Option<LoadBalancerId>,
    /// Whether one that served and failed may be deleted, so that another one takes its place.
    pub(crate) may_repair: bool,
    /// The address of one that this reconcile deleted for that: the other one is to have it too.
    pub(crate) vacated: Option<String>,
    /// Octavia refused the Service's load balancer with all its parts before, so an empty one comes first.
    pub(crate) is_tree_doubtful: bool,
    /// The Service is older than this process: its load balancer may have been refused with all its parts before.
    pub(crate) is_older: bool,
    /// Octavia refused this creation in this reconcile, so a port may be left behind.
    pub(crate) refused_creation: Option<RefusedCreation>,
    /// The ports of load balancers that this process saw first, in another reconcile.
    pub(crate) first_ports: Option<Known>,
    /// The ports of load balancers that there were before that, if they were read.
    pub(crate) ports_before: Option<Known>,
    /// A load balancer or a floating IP was made, deleted or sent elsewhere: what leads where is to be seen anew.
    pub(crate) is_address_changed: bool,
    /// Floating IPs as they were written, or found where a list did not show them.
    pub(crate) floating_ips: Recent<FloatingIpId, FloatingIp>,
    /// The last change of each part that was answered, the very last one at the end.
    pub(crate) changes: Vec<PartChange>,
    /// The creations of what was deleted because something else was to have its place, as it was.
    pub(crate) made_way: Vec<PartChange>,
    /// The deletions of load balancers, and the writes that made parts or took them away, of which no look has shown what came of them.
    pub(crate) unconfirmed: Vec<CloudStep>,
    /// Pools whose members were written: what Octavia made of them, only a read tells.
    pub(crate) members_written: BTreeSet<PoolId>,
    /// Load balancers of which a listener, pool or monitor was written: the same.
    pub(crate) parts_written: BTreeSet<LoadBalancerId>,
    /// When what failed is to be looked at again.
    pub(crate) mend_after: Option<Duration>,
    /// Members on which people set something, and that went: those that come back, in another subnet, get it too.
    pub(crate) left: Vec<(PoolId, Member)>,
    /// Rules that Neutron says are there already, in whatever words it lists them.
    pub(crate) rules_there: Vec<NewSecurityGroupRule>,
    /// The parts that failed by themselves and have been so for a while, by id: these are written once more.
    pub(crate) stuck: BTreeSet<String>,
}

/// A creation of a load balancer that was refused.
#[derive(Debug)]
pub(crate) struct RefusedCreation {
    /// Where its port was to be; `None` if that was there before.
    pub(crate) place: Option<Place>,
    /// Whether it was surely refused after Octavia had made the port.
    pub(crate) had_port: bool,
}

impl Remembered {
    /// Whether Octavia answered a change that takes something away, whatever it came to.
    fn has_taken(&self, change: &PartChange) -> bool {
        let is_it = |before: &PartChange| match (before, change) {
            (
                PartChange::SetMembers { pool, members, .. },
                PartChange::SetMembers {
                    pool: of,
                    members: wanted,
                    ..
                },
            ) => (pool, members) == (of, wanted),
            _ => before == change,
        };
        let takes = matches!(
            change,
            PartChange::SetMembers { .. } | PartChange::RemoveMember { .. }
        ) || change.takes_part();
        takes && self.changes.iter().any(is_it)
    }

    /// A list of floating IPs, with what is known to be newer: lists may be behind.
    pub(crate) fn over(&self, mut listed: Arc<Vec<FloatingIp>>) -> Arc<Vec<FloatingIp>> {
        if !self.is_address_changed {
            return listed; // nothing was written
        }
        let all = Arc::make_mut(&mut listed);
        self.floating_ips.lay_over(all, |there| &there.id);
        for there in all {
            let written = self.floating_ips.written(&there.id);
            if let Some(newer) = written.filter(|written| written.revision_number > there.revision_number) {
                there.clone_from(newer);
            }
        }
        listed
    }
}
