//! How a sync ended: what is said about it, and when the key comes back.

use std::time::Duration;

use bowline_cloud_provider::{ReconcileKind, Service, ServiceKey};
use bowline_drive::DriveError;
use bowline_kube_io::KubeError;
use bowline_plan::Refusal;

use super::causes::Causes;
use super::concurrency::Permit;
use super::failure::Failure;
use super::node_identities::NodeIdentities;
use super::state::{Interruptions, Parked, Progress, Session, State};
use super::tracked::Tracked;
use super::unsettled::Reason;
use super::{Key, SOON, ServiceController};
use crate::events;
use crate::node_set::let_in;
use crate::queue::RetryAfter;
use crate::trouble::{Again, Trouble};

/// Why a sync does not come to its end where no write failed.
const INTERRUPTED: &str = "the Service changes faster than its load balancer can follow";

/// How a sync of one Service ended, and when it comes back.
pub(super) enum Outcome {
    /// All is as it should be.
    Settled(Settled),
    /// The balancer is gone and the Service needs us no longer.
    Removed,
    /// Nothing had to be done.
    Nothing,
    /// The cloud is busy: go on after this time.
    Parked(Parked, Duration),
    /// Something moved under the sync: start anew, at once if the Service has changed meanwhile, else soon.
    Superseded(Progress),
    /// The API server has another version of the Service, or none: the same. Told, if it does not end.
    Moved(Failure, Progress),
    /// It failed.
    Failed(Failure, Progress),
}

/// What a sync has come to that has settled.
#[derive(Default)]
pub(super) struct Settled {
    /// The Nodes that it went by.
    pub(super) identities: NodeIdentities,
    /// It is looked again after this time.
    pub(super) again: Option<Duration>,
    /// There is no Node for it to lead to, and it needs some.
    pub(super) lacks_nodes: bool,
    /// Labels by which the Service may select Nodes have changed meanwhile.
    pub(super) has_old_labels: bool,
}

impl Outcome {
    /// The cloud is busy: this reconcile goes on after this time.
    pub(super) fn parked(reason: String, session: Session, progress: Progress, after: Duration) -> Self {
        let parked = Parked {
            reason,
            session,
            progress,
            permit: Permit::NONE,
        };
        Self::Parked(parked, after)
    }

    /// What follows from an error of the API server. Some end the sync without being a failure of it.
    pub(super) fn of_kube_error(prefix: &str, error: &KubeError, progress: Progress) -> Self {
        Self::of_kube_text(prefix, error.to_string(), error, progress)
    }

    /// What follows from an error that ended a drive.
    pub(super) fn of_drive_error(prefix: &str, error: &DriveError<KubeError>, progress: Progress) -> Self {
        let text = error.to_string();
        match error {
            DriveError::Observe(cause) => Self::Failed(Failure::cloud(prefix, "", text, cause), progress),
            DriveError::Step { error: cause, label } => {
                let during = format!("error during {label}: ");
                Self::Failed(Failure::cloud(prefix, &during, text, cause), progress)
            }
            DriveError::Kube { error: cause, .. } => Self::of_kube_text(prefix, text, cause, progress),
            // As for a refusal: nobody is told again before the text is another one.
            DriveError::Endless(..) => Self::Failed(Failure::refused(prefix, &Refusal::new(text)), progress),
        }
    }

    fn of_kube_text(prefix: &str, text: String, error: &KubeError, progress: Progress) -> Self {
        match error {
            // The watch or the next leader knows what to do.
            KubeError::Conflict(_) | KubeError::NotFound(_) => {
                Self::Moved(Failure::kube(prefix, text, error), progress)
            }
            KubeError::GateClosed => Self::Superseded(progress),
            _ => Self::Failed(Failure::kube(prefix, text, error), progress),
        }
    }
}

impl ServiceController {
    /// Counts a sync by what it was to do and how it ended, and tells the provider of the end of a reconcile, which is that of
    /// the last of its syncs.
    pub(super) fn count(&self, key: &ServiceKey, kind: ReconcileKind, outcome: &Outcome) {
        let result = match outcome {
            Outcome::Settled(..) | Outcome::Removed => "settled",
            Outcome::Parked(..) => "waiting",
            Outcome::Superseded(_) => "interrupted",
            Outcome::Moved(..) => "conflict",
            Outcome::Failed(..) => "failed",
            Outcome::Nothing => return,
        };
        self.ctx.metrics.synced(kind.as_str(), result);
        let begun = self.tracked(key, |tracked| tracked.state.begun());
        let goes_on = matches!(
            outcome,
            Outcome::Parked(..) | Outcome::Superseded(_) | Outcome::Moved(..)
        );
        if let Some((kind, begun)) = begun.filter(|_| !goes_on) {
            let has_failed = matches!(outcome, Outcome::Failed(..));
            let provider = &self.provider.load_balancer;
            provider.reconciled(key, kind, begun.elapsed(), has_failed);
        }
    }

    /// Measures how long the changes took that a settled sync has served.
    fn observe_settled(&self, key: &ServiceKey) {
        if let Some(changed_at) = self.tracked(key, Tracked::served) {
            let seconds = changed_at.elapsed().as_secs_f64();
            self.ctx.metrics.settle_duration_seconds.observe(seconds);
        }
    }

    /// Decides when a key comes back, and says what has to be said.
    pub(super) fn conclude(&self, key: &ServiceKey, outcome: Outcome) {
        let queued = Key::Service(key.clone());
        let is_over = matches!(outcome, Outcome::Removed | Outcome::Nothing);
        match outcome {
            Outcome::Settled(settled) => self.conclude_settled(key, settled),
            Outcome::Removed | Outcome::Nothing => {
                if matches!(outcome, Outcome::Removed) {
                    self.observe_settled(key);
                }
                self.queue.forget(&queued);
                self.tracked(key, Tracked::released);
            }
            Outcome::Parked(parked, after) => {
                self.tracked(key, |tracked| {
                    tracked.waits(&parked.reason);
                    tracked.state.wait(parked);
                });
                self.queue.add_after(queued, after);
            }
            Outcome::Superseded(progress) => self.conclude_interruption(key, None, progress),
            Outcome::Moved(failure, progress) => self.conclude_interruption(key, Some(&failure), progress),
            Outcome::Failed(failure, progress) => self.conclude_failure(key, &failure, progress),
        }
        self.condition_is_due(key);
        if is_over {
            self.forget_unused(key);
        }
    }

    fn conclude_settled(&self, key: &ServiceKey, settled: Settled) {
        let queued = Key::Service(key.clone());
        self.keep_telling_unavailable(key, settled.lacks_nodes);
        if settled.lacks_nodes {
            // All is done that can be done, and nobody is served.
            let remedy = let_in(&self.ctx.nodes.all(), self.provider.load_balancer.node_set());
            let trouble = Trouble::new(events::UNAVAILABLE_LOAD_BALANCER.message).with_remedy(Some(&remedy));
            self.tracked(key, |tracked| tracked.stays_unsettled(Reason::NoNodes, trouble));
        } else if let Some(lacks) = self.tracked(key, |tracked| tracked.lacks.take()) {
            // The rest is done, and the cause holds until the cloud takes what is asked for, or something else is.
            let Failure { reason, trouble, .. } = Failure::refused("", &lacks);
            let trouble = trouble.tried(Some(Again::Refused));
            self.tracked(key, |tracked| tracked.stays_unsettled(reason, trouble));
        } else {
            self.observe_settled(key);
        }
        let current = self.nodes_of_key(key).identities;
        let is_current = settled.identities == current;
        // They changed while it was under way. A pass that was told of labels may have come and gone meanwhile.
        let is_behind = settled.has_old_labels || !is_current && !self.node_changes.is_pending();
        let follows_nodes = self.provider.load_balancer.follows_nodes();
        let (rest, late) = self.tracked(key, |tracked| {
            tracked.leave_node_syncs();
            if follows_nodes || !is_behind {
                tracked.nodes = Some(settled.identities);
            }
            tracked.settled();
            (tracked.removal.rest(), tracked.unanswered.look())
        });
        self.queue.forget(&queued);
        let late = late.into_iter().chain(self.late_of_others());
        if let Some(after) = settled.again.into_iter().chain(rest).chain(late).min() {
            self.tracked(key, |tracked| tracked.add_causes(Causes::VERIFY));
            self.queue.add_after(queued, after);
        }
        if is_behind && follows_nodes {
            self.enqueue(key, Causes::NODES);
        } else if is_behind {
            self.update_nothing(key, &current);
        }
    }

    fn conclude_interruption(&self, key: &ServiceKey, by: Option<&Failure>, mut progress: Progress) {
        let queued = Key::Service(key.clone());
        let known = self.services.get(key);
        let version = |it: &Service| it.metadata.resource_version.as_deref()?.parse().ok();
        progress.interruptions.add(known.as_deref().and_then(version));
        let row = progress.interruptions;
        let is_changed = self.tracked(key, |tracked| {
            tracked.state = State::Unfinished(progress);
            if !row.is_passing() {
                let (reason, trouble) = match by {
                    Some(failure) => (Reason::Kubernetes, failure.trouble.clone()),
                    // It is the cloud that is slow, which is told of whatever is worked on.
                    None if progress.has_given_up => (Reason::Pending, Trouble::new("")),
                    None => (
                        Reason::Kubernetes,
                        Trouble::new(INTERRUPTED).tried(Some(Again::Write)),
                    ),
                };
                tracked.stays_unsettled(reason, trouble);
            }
            tracked.causes.has(Causes::CHANGED)
        });
        if let Some(known) = known.filter(|_| row.is_outdated()) {
            self.services.ask_about(&known);
        }
        if let Some(failure) = by
            && row.is_told()
        {
            self.tell_failed(key, failure, progress);
        }
        // At once only for a change that has come meanwhile: whatever else moved, the watch has to catch up first.
        if is_changed {
            self.queue.add(queued);
        } else if row.is_passing() {
            self.queue.add_after(queued, SOON);
        } else {
            self.queue.retry(queued);
        }
    }

    /// Whether load balancers need Nodes to lead to, and there are none.
    pub(super) fn has_no_nodes(&self) -> bool {
        self.provider.load_balancer.follows_nodes() && self.balanced_nodes().nodes.is_empty()
    }

    fn conclude_failure(&self, key: &ServiceKey, failure: &Failure, progress: Progress) {
        let queued = Key::Service(key.clone());
        let was_nodes_only = progress.causes == Causes::NODES;
        // Whatever else is refused, without Nodes nobody would be served.
        let reason = match failure.reason {
            Reason::Refused | Reason::Invalid if !progress.is_removal && self.has_no_nodes() => {
                Reason::NoNodes
            }
            reason => reason,
        };
        let retry = progress.causes.and(Causes::RETRY);
        self.tracked(key, |tracked| {
            tracked.leave_node_syncs();
            tracked.fights.look_ended(true);
            tracked.stays_unsettled(reason, failure.trouble.clone());
            tracked.state = State::Unfinished(Progress {
                causes: retry,
                interruptions: Interruptions::default(),
                ..progress
            });
        });
        if was_nodes_only {
            self.ctx.metrics.nodesync_error_total.inc();
        }
        if !matches!(failure.retry_after, RetryAfter::Planned(_)) {
            self.tell_failed(key, failure, progress);
        }
        let is_unpublished = self.tracked(key, |tracked| tracked.fights.is_unpublished());
        if was_nodes_only && !is_unpublished && failure.retry_after == RetryAfter::Nothing {
            self.queue.add(queued); // a full sync follows at once
        } else {
            let after = self.queue.retry_after(queued, failure.retry_after);
            self.tracked(key, |tracked| tracked.fights.publishes_after(after));
        }
        // Nodes that changed while it was under way do not wait for the back-off: the pass that was told of them compared them with
        // those of the sync before. With those that it failed with, it would only fail again.
        let current = self.nodes_of_key(key).identities;
        let has_others = |tracked: &mut Tracked| {
            tracked.nodes.is_some() && tracked.tried.as_ref().is_some_and(|tried| *tried != current)
        };
        if !progress.is_removal
            && self.provider.load_balancer.follows_nodes()
            && !self.node_changes.is_pending()
            && self.tracked(key, has_others)
        {
            self.enqueue(key, Causes::NODES);
        }
    }

    /// Says in the log, and in an event if it is news, that a sync failed.
    pub(super) fn tell_failed(&self, key: &ServiceKey, failure: &Failure, progress: Progress) {
        // Another one of the name may have been found to have vanished while this one was synced.
        let vanished = self.tracked(key, |tracked| {
            let is_turn = progress.is_removal && tracked.removal.rest().is_none();
            tracked.vanished.first().filter(|_| is_turn).cloned()
        });
        let cause = &failure.text;
        let note = if let Some(vanished) = &vanished {
            let of = match self.services.get(key) {
                Some(_) => format!(
                    " of an earlier Service of this name (uid {})",
                    vanished.metadata.uid.as_deref().unwrap_or_default()
                ),
                None => String::new(),
            };
            events::DELETE_LOAD_BALANCER_FAILED.note(format!("Error deleting load balancer{of}: {cause}"))
        } else if progress.causes == Causes::NODES {
            events::UPDATE_LOAD_BALANCER_FAILED.note(self.update_failed_text(cause))
        } else {
            events::SYNC_LOAD_BALANCER_FAILED.note(format!("Error syncing load balancer: {cause}"))
        };
        let is_news = self.tracked(key, |tracked| tracked.dedup.is_news(note.reason, &note.text));
        let words = failure.words.as_deref();
        tracing::warn!(service = %key, err = %failure.text, words, "Load balancer sync failed, will be tried again");
        if (is_news || !failure.is_quiet)
            && let Some(service) = vanished.or_else(|| self.services.get(key))
        {
            self.ctx.event(&*service, note);
        }
    }
}
