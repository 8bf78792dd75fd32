//! What the service controller remembers of a Service between two syncs: why to look again, and what was said already.
//!
//! A new process starts with none of it, and observes the cloud instead. That a Service vanished after somebody took its
//! finalizer off, and that its balancer was not removed yet ([`Tracked::vanished`]), it can only report where the cloud's
//! objects tell whom they were made for (`left_behind.rs`). So a finalizer that was taken off is put back while the Service
//! lives; what is left is told in `docs/decisions/0016-gone-by-name.md`.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{AddressLoss, KubeWrite, Service, ServiceClasses, facts};
use bowline_plan::Refusal;
use tokio::time::Instant;

use super::causes::Causes;
use super::fights::{Asked, Fights};
use super::needs_update::{changed_entries, needs_update};
use super::node_identities::{NodeIdentities, NodeSyncTimer};
use super::state::State;
use super::unanswered::Unanswered;
use super::unsettled::{Reason, Unsettled};
use crate::event_dedup::EventDedup;
use crate::events;
use crate::put_back::Part;
use crate::trouble::Trouble;

/// The events of syncs that failed. What they say holds until a sync has settled.
const FAILURES: &[&str] = &[
    events::SYNC_LOAD_BALANCER_FAILED.reason,
    events::UPDATE_LOAD_BALANCER_FAILED.reason,
    events::DELETE_LOAD_BALANCER_FAILED.reason,
];

/// Whether what was said under a reason holds beyond the plan that it was said at.
pub(super) fn is_lasting(reason: &str) -> bool {
    let others = [
        events::ANNOTATIONS_FORBIDDEN.reason,
        events::UNAVAILABLE_LOAD_BALANCER.reason,
    ];
    FAILURES.contains(&reason) || others.contains(&reason)
}

/// One Service.
#[derive(Default)]
pub(super) struct Tracked {
    /// Why to look again; taken by the next sync.
    pub(super) causes: Causes,
    /// The node syncs that wait for it.
    node_syncs: Vec<Arc<NodeSyncTimer>>,
    /// Where the work on it has got to.
    pub(super) state: State,
    /// Why it is not as it should be; `None`: it is, as far as is known.
    pub(super) unsettled: Option<Unsettled>,
    /// What is not as it is asked for although the last plan settled.
    pub(super) lacks: Option<Refusal>,
    /// Why the address in the status may be another one soon.
    pub(super) address_loss: Option<AddressLoss>,
    /// What clients used before the Service asked for no load balancer; empty: it asks for one, or never did.
    pub(super) used: Vec<String>,
    /// When this process wrote the condition that tells it; `None`: it does not stand there by this process.
    pub(super) told_at: Option<Instant>,
    /// The Service as it was last handed to a sync, with our own annotations since then.
    pub(super) synced: Option<Arc<Service>>,
    /// The same with a write of ours that is under way: the watch may show it before the answer has come.
    expected: Option<Arc<Service>>,
    /// The Nodes of the last sync that succeeded, or that failed where somebody may be served.
    pub(super) nodes: Option<NodeIdentities>,
    /// The Nodes that the last sync began with.
    pub(super) tried: Option<NodeIdentities>,
    /// A plan was made for it since the process started.
    pub(super) is_planned: bool,
    /// The calls to the cloud that have no answer.
    pub(super) unanswered: Unanswered,
    /// When the last sync that settled has ended.
    settled_at: Option<Instant>,
    /// What was said in events.
    pub(super) dedup: EventDedup,
    /// Services that vanished before their balancers were removed.
    pub(super) vanished: Vec<Arc<Service>>,
    /// How far the removal of the first of these is, where another Service has the name by now.
    pub(super) removal: Removal,
    /// It was seen with a class: its finalizer and balancer belong to another controller.
    pub(super) is_foreign: bool,
    /// What this process wrote on it, and others change back.
    pub(super) fights: Fights,
}

/// How long the removal of an earlier Service's balancer may hold up the one that has its name now.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(60);

/// How long it rests after that, while its successor is served.
const REMOVAL_REST: Duration = Duration::from_secs(300);

/// Whose turn it is: that of a Service that vanished, or of its successor.
#[derive(Debug, Default, Clone, Copy)]
pub(super) enum Removal {
    /// That of the one that vanished, and nothing is begun.
    #[default]
    Due,
    /// The same, since then.
    Begun(Instant),
    /// That of its successor, until then.
    Resting(Instant),
}

impl Removal {
    /// Whether the removal may go on.
    pub(super) fn begin(&mut self) -> bool {
        let is_turn = self.rest().is_none();
        if is_turn && !matches!(self, Self::Begun(_)) {
            *self = Self::Begun(Instant::now());
        }
        is_turn
    }

    /// Whether it has taken so long that its successor comes first.
    pub(super) fn is_long(self) -> bool {
        matches!(self, Self::Begun(since) if since.elapsed() >= REMOVAL_PATIENCE)
    }

    /// How long it rests yet.
    pub(super) fn rest(self) -> Option<Duration> {
        match self {
            Self::Resting(until) => until
                .checked_duration_since(Instant::now())
                .filter(|left| !left.is_zero()),
            Self::Due | Self::Begun(_) => None,
        }
    }
}

impl Tracked {
    /// The removal of an earlier Service's balancer does not get done: its successor comes first for a while.
    pub(super) fn rest_removal(&mut self) {
        self.removal = Removal::Resting(Instant::now() + REMOVAL_REST);
    }

    /// Adds causes to look again.
    pub(super) fn add_causes(&mut self, causes: Causes) {
        if causes.has(Causes::CHANGED.and(Causes::NODES)) {
            let unsettled = self.unsettled.get_or_insert_with(Unsettled::begin);
            // Where something had failed before, the change is what is waited for from now on.
            if !std::mem::replace(&mut unsettled.is_since_change, true) {
                unsettled.since = Instant::now();
            }
        }
        self.causes = self.causes.and(causes);
    }

    /// Whether something newer waits than what is being done, and a call that hangs is given up for it. Then this is how much time the call
    /// has in any case; see [`Unanswered::patience`].
    pub(super) fn is_impatient(&self, step: &str, in_vain: bool) -> Option<Duration> {
        let waits = self.causes.has(Causes::CHANGED.and(Causes::NODES));
        waits.then(|| self.unanswered.patience(step, in_vain))
    }

    /// Whether a sync has settled since then; `None`: ever.
    pub(super) fn has_settled_since(&self, then: Option<Instant>) -> bool {
        self.settled_at.is_some() && self.settled_at >= then
    }

    /// A node sync waits for the next sync of this Service.
    pub(super) fn join(&mut self, timer: &Arc<NodeSyncTimer>) {
        self.node_syncs.push(Arc::clone(timer));
    }

    /// A sync has come to an end, good or bad: node syncs no longer wait for it, unless they came meanwhile.
    pub(super) fn leave_node_syncs(&mut self) {
        if !self.causes.has(Causes::NODES) {
            self.node_syncs.clear();
        }
    }

    /// A sync has served everything up to now: gives when the oldest change was seen, unless there is a new one.
    pub(super) fn served(&mut self) -> Option<Instant> {
        if self.causes.has(Causes::CHANGED.and(Causes::NODES)) {
            if self.unsettled.is_some() {
                self.stays_unsettled(Reason::Pending, Trouble::new(""));
            }
            return None;
        }
        let served = self.unsettled.take().filter(|it| it.is_since_change);
        served.map(|it| it.since)
    }

    /// A sync has ended, and not settled.
    pub(super) fn stays_unsettled(&mut self, reason: Reason, trouble: Trouble) {
        let unsettled = self.unsettled.get_or_insert_with(Unsettled::begin);
        unsettled.waited_for = unsettled.waits_for.take();
        unsettled.reason = reason;
        unsettled.trouble = trouble;
    }

    /// A sync waits for the cloud. If the last one failed of the same wait, that failure stays what is told.
    pub(super) fn waits(&mut self, reason: &str) {
        let unsettled = self.unsettled.get_or_insert_with(Unsettled::begin);
        unsettled.waits_for = Some(reason.to_owned());
        if unsettled.waited_for != unsettled.waits_for {
            unsettled.waited_for = None;
            unsettled.reason = Reason::Waiting;
            unsettled.trouble = Trouble::new(reason);
        }
    }

    /// What a sync waited for is over, and it goes on; says whether that is news.
    pub(super) fn goes_on(&mut self) -> bool {
        let Some(unsettled) = &mut self.unsettled else {
            return false;
        };
        let is_news = unsettled.waits_for.take().is_some() && unsettled.reason == Reason::Waiting;
        if is_news {
            unsettled.reason = Reason::Pending;
            unsettled.trouble = Trouble::new("");
        }
        is_news
    }

    /// Our own write to the Service is about to be sent.
    pub(super) fn expect_write(&mut self, write: &KubeWrite) {
        self.expected = self.synced.clone();
        if let Some(expected) = &mut self.expected {
            write.predict(Arc::make_mut(expected));
        }
    }

    /// The write that was expected has been answered. If it was made, it is remembered, so that its echo is no change.
    pub(super) fn written(&mut self, write: &KubeWrite, is_made: bool) {
        self.expected = None;
        if !is_made {
            return;
        }
        self.fights.wrote(write);
        if let Some(synced) = &mut self.synced {
            write.predict(Arc::make_mut(synced));
        }
    }

    /// What a change of the Service asks for.
    pub(super) fn asked(&mut self, classes: &ServiceClasses, old: &Service, new: &Service) -> Asked {
        let mut asked = Asked::default();
        let is_another = old.metadata.uid != new.metadata.uid;
        if is_another {
            self.fights = Fights::default();
        }
        if self.is_changed(classes, old, new) {
            let known = self.synced.as_deref().unwrap_or(old);
            match changed_entries(classes, known, new).filter(|changed| !changed.is_empty()) {
                Some(changed) => asked = self.fights.entries_changed(&changed),
                None => {
                    self.fights.changed();
                    asked.sync = true;
                }
            }
        }
        if is_another || !classes.is_wanted(new) {
            return asked;
        }
        // Without it the Service could vanish while no process runs, and its balancer would stay for ever.
        let lost_finalizer = facts::has_finalizer(old) && !facts::has_finalizer(new);
        let lost_status = self.fights.lost_status(old, new);
        // This process takes it off only when there is no trouble. Whoever takes the status with it is met for that.
        let is_told = self.told_at.is_some() && self.unsettled.is_some() && !lost_status;
        let lost_condition = is_told && facts::trouble(old).is_some() && facts::trouble(new).is_none();
        for (is_lost, part) in [
            (lost_finalizer, Part::Finalizer),
            (lost_status, Part::Status),
            (lost_condition, Part::Reconciled),
        ] {
            if is_lost {
                asked.put_back = asked.put_back.into_iter().chain(self.fights.lost(part)).min();
            }
        }
        // Without it a manager that serves no classes may take the finalizer off, once the class has gone with the type.
        let is_noted = |service| facts::noted_class(service) == facts::class(service);
        let may_note = !self.fights.is_note_refused;
        if may_note && is_noted(old) && !is_noted(new) && facts::class(old) == facts::class(new) {
            asked.put_back = asked.put_back.into_iter().chain(self.fights.lost_note()).min();
        }
        asked
    }

    /// Whether this change is more than our own writing.
    pub(super) fn is_changed(&self, classes: &ServiceClasses, old: &Service, new: &Service) -> bool {
        match (classes.wants_load_balancer(old), classes.wants_load_balancer(new)) {
            // What was wanted before may still be remembered; its removal was asked for when that ended.
            (false, false) => return false,
            (true, true) => {}
            // Never our own writing. The Service may be as it was last synced, and the removal of its balancer under way.
            (false, true) | (true, false) => return true,
        }
        let is_echo = |expected: &Arc<Service>| !needs_update(classes, expected, new);
        needs_update(classes, self.synced.as_deref().unwrap_or(old), new)
            && !self.expected.as_ref().is_some_and(is_echo)
    }

    /// Goes on with a newer version of the Service that asks for the same as the one that was synced, so that no old version
    /// is held in memory beside the one in the cache.
    pub(super) fn keep_newest(&mut self, classes: &ServiceClasses, new: &Arc<Service>) {
        if let Some(synced) = &mut self.synced
            && classes.wants_load_balancer(new)
            && !needs_update(classes, synced, new)
        {
            *synced = Arc::clone(new);
        }
    }

    /// A sync has settled: failures from before it are news when they come again.
    pub(super) fn settled(&mut self) {
        self.state = State::Resting;
        self.settled_at = Some(Instant::now());
        self.unanswered.settled();
        FAILURES.iter().for_each(|reason| self.dedup.over(reason));
    }

    /// The Service needs us no longer.
    pub(super) fn released(&mut self) {
        self.served();
        self.leave_node_syncs();
        self.state = State::Resting;
        self.unanswered = Unanswered::default();
        self.settled_at = None;
        self.synced = None;
        self.fights = Fights::default();
        self.dedup = EventDedup::default();
    }

    /// Whether nothing is remembered that the next sync would need.
    pub(super) fn is_unused(&self) -> bool {
        self.causes.is_empty()
            && matches!(self.state, State::Resting)
            && self.synced.is_none()
            && self.vanished.is_empty()
            && !self.is_foreign
            && self.told_at.is_none()
            && self.used.is_empty()
    }

    /// Whether a balancer may exist for a Service that this controller has synced.
    pub(super) fn may_have_balancer(&self, classes: &ServiceClasses) -> bool {
        let synced = self.synced.as_deref();
        synced.is_some_and(|synced| classes.wants_load_balancer(synced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_given_up_only_for_something_newer() {
        let mut tracked = Tracked::default();
        tracked.add_causes(Causes::VERIFY.and(Causes::RETRY));
        assert_eq!(tracked.is_impatient("a", false), None, "nothing changed");
        for cause in [Causes::CHANGED, Causes::NODES] {
            tracked.causes = cause;
            assert!(tracked.is_impatient("a", false).is_some());
        }
    }

    #[test]
    fn a_balancer_that_is_asked_for_again_is_a_change_whatever_was_synced_last() {
        let service = |kind: &str| -> Arc<Service> {
            let object = serde_json::json!({ "metadata": { "uid": "u" }, "spec": { "type": kind } });
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let (with, without) = (service("LoadBalancer"), service("ClusterIP"));
        let tracked = Tracked {
            synced: Some(Arc::clone(&with)),
            ..Tracked::default()
        };
        let classes = ServiceClasses::upstream();
        assert!(tracked.is_changed(classes, &with, &without));
        assert!(tracked.is_changed(classes, &without, &with));
        assert!(!tracked.is_changed(classes, &with, &with));
        assert!(!tracked.is_changed(classes, &without, &without));
    }

    #[test]
    fn no_old_version_of_a_service_is_held_that_asks_for_the_same() {
        let version = |version: &str, kind: &str, ip: &str| -> Arc<Service> {
            let object = serde_json::json!({
                "metadata": { "uid": "u", "resourceVersion": version },
                "spec": { "type": kind, "loadBalancerIP": ip },
            });
            Arc::new(serde_json::from_value(object).unwrap())
        };
        let (first, second) = (version("1", "LoadBalancer", ""), version("2", "LoadBalancer", ""));
        let mut tracked = Tracked::default();
        tracked.keep_newest(ServiceClasses::upstream(), &second);
        assert!(tracked.synced.is_none(), "it was never synced");
        tracked.synced = Some(Arc::clone(&first));
        tracked.keep_newest(ServiceClasses::upstream(), &second);
        assert!(Arc::ptr_eq(tracked.synced.as_ref().unwrap(), &second));
        for other in [
            version("3", "LoadBalancer", "192.0.2.1"),
            version("4", "ClusterIP", ""),
        ] {
            tracked.keep_newest(ServiceClasses::upstream(), &other);
            assert!(
                Arc::ptr_eq(tracked.synced.as_ref().unwrap(), &second),
                "not synced yet"
            );
        }
    }
}
