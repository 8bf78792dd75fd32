//! What is known of each Node that is not ready, and what follows from an answer of its cloud.
//!
//! Pure: every time is handed in, nothing is asked and nothing is written here.

mod suspect;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName, Readiness, keys};
use bowline_plan::Said;
use jiff::Timestamp;
use tokio::time::Instant;

use super::NodeLifecycleSettings;
use super::throttle::Throttle;
use crate::events;
use crate::sighting::Sighting;
use suspect::{Hold, Stage, Suspect, align};

/// The longest distance between two questions about one Node.
const LONGEST: Duration = Duration::from_secs(60);
/// The answers about a Node have to be the same for so long before it is asked about less often: a Node that is not ready
/// has most of its news in its first minutes, and they are waited for.
const STEADY: Duration = Duration::from_secs(2 * 60);
/// A Node that is not initialised, or names no instance, is not deleted before it is so old: its instance may be too new
/// for the cloud's listing.
const GRACE: Duration = Duration::from_secs(5 * 60);

/// A time by the clock for distances and by the one on the wall.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) instant: Instant,
    pub(super) wall: Timestamp,
}

/// What a cloud answered about a Node that is not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// The instance runs.
    Running,
    /// The instance is powered off.
    Off,
    /// The instance is proved gone.
    Absent,
    /// The Node is another cloud's.
    Foreign,
    /// The credentials do not see the instance, which is no proof that it is gone.
    Unseen,
    /// Nothing is known.
    Unknown {
        /// The delay that the cloud stated.
        after: Option<Duration>,
    },
}

/// What follows from an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The Node stays as it is.
    Nothing,
    /// The Node must have the shutdown taint, or not.
    SetTaint(bool),
    /// The instance was proved gone often enough; [`Ledger::rule`] has the last word.
    Delete,
    /// The instance was not seen for as long as a proof takes. The Node stays in any case; [`Ledger::rule`] finds out whether
    /// the credentials see anything at all.
    Doubt,
}

/// What becomes of a Node that is to be deleted. Each is news once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is deleted now.
    Delete { is_news: bool },
    /// It stays, because the cloud does not show the instance of any of these ready Nodes either.
    Frozen { ready: usize, is_news: bool },
    /// It waits, because so many have gone in the last window.
    Throttled { recent: usize, is_news: bool },
    /// It waits, because nothing is known of the ready Nodes' instances, or nothing is proved about its own.
    Wait,
}

/// How many Nodes wait although their instances seem to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Held {
    pub(super) frozen: usize,
    pub(super) throttled: usize,
}

/// What is known of all Nodes that are not ready, or that carry the shutdown taint although they are.
#[derive(Debug)]
pub(super) struct Ledger {
    period: Duration,
    confirmation: Duration,
    is_guarded: bool,
    started: Instant,
    throttle: Throttle,
    suspects: BTreeMap<NodeName, Suspect>,
}

impl Ledger {
    pub(super) fn new(settings: &NodeLifecycleSettings, now: Instant) -> Self {
        Self {
            period: settings.node_monitor_period,
            confirmation: settings.node_deletion_confirmation,
            is_guarded: settings.is_guarded(),
            started: now,
            throttle: Throttle::new(settings.node_deletion_share, settings.node_deletion_window, now),
            suspects: BTreeMap::new(),
        }
    }

    /// From now on this process leads, so Nodes may be deleted.
    pub(super) fn begin(&mut self, now: Instant) {
        self.throttle.begin(now);
    }

    /// Takes note of a Node. Answers whether it is to be looked at now.
    ///
    /// A Node under deletion is nobody's any more: whoever asked for it has it gone already.
    pub(super) fn watch(&mut self, node: &Node, now: Instant) -> bool {
        let is_ready = node.readiness == Readiness::Ready;
        if node.deleting || (is_ready && !node.has_taint(keys::TAINT_SHUTDOWN)) {
            self.suspects.remove(&node.name);
            return false;
        }
        match self.suspects.get(&node.name) {
            Some(suspect) if suspect.uid == node.uid && suspect.is_ready == is_ready => false,
            _ => {
                let suspect = Suspect {
                    uid: Arc::clone(&node.uid),
                    is_ready,
                    stage: Stage::Due(now),
                    interval: self.period,
                    last: None,
                    since: now,
                    absent_since: None,
                    hold: None,
                    has_failed: false,
                    said: Said::default(),
                };
                self.suspects.insert(node.name.clone(), suspect);
                true
            }
        }
    }

    /// Forgets a Node that is gone.
    pub(super) fn forget(&mut self, node: &Node) {
        if self
            .suspects
            .get(&node.name)
            .is_some_and(|suspect| suspect.uid == node.uid)
        {
            self.suspects.remove(&node.name);
        }
    }

    /// Whether more is asked for than one proof; see [`NodeLifecycleSettings::is_guarded`].
    pub(super) fn is_guarded(&self) -> bool {
        self.is_guarded
    }

    /// When the next Node is to be looked at.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.suspects.values().filter_map(Suspect::due).min()
    }

    /// The Nodes to look at now, in name order. They are busy until an answer, a ruling or a rest ends that.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<NodeName> {
        let due = self
            .suspects
            .iter_mut()
            .filter(|(_, suspect)| suspect.due().is_some_and(|due| due <= now));
        due.map(|(name, suspect)| {
            suspect.stage = Stage::Busy;
            name.clone()
        })
        .collect()
    }

    /// Whether asking for these Nodes now may confirm that one of them is gone.
    pub(super) fn may_confirm(&self, nodes: &[Arc<Node>], now: Instant) -> bool {
        self.is_guarded
            && nodes.iter().any(|node| {
                self.suspects.get(&node.name).is_some_and(|suspect| {
                    let unseen = (suspect.last == Some(Seen::Unseen)).then_some(suspect.since);
                    let since = suspect.absent_since.or(unseen);
                    since.is_some_and(|since| since + self.confirmation <= now)
                })
            })
    }

    /// Whether this is another answer than the last one about the Node.
    pub(super) fn is_news(&self, node: &Node, seen: Seen) -> bool {
        let suspect = self.suspects.get(&node.name);
        let suspect = suspect.filter(|suspect| suspect.uid == node.uid);
        suspect.is_some_and(|suspect| !suspect.last.is_some_and(|last| last.is_like(seen)))
    }

    /// Enters an answer to a question that was asked at `asked`. An answer to a question that nobody waits for any more,
    /// because the Node came back or is another one, counts for nothing.
    pub(super) fn judge(&mut self, node: &Node, asked: Instant, now: Moment, seen: Seen) -> Verdict {
        let (period, confirmation, is_guarded) = (self.period, self.confirmation, self.is_guarded);
        let Some(suspect) = busy(&mut self.suspects, node) else {
            return Verdict::Nothing;
        };
        let is_same = suspect.last.is_some_and(|last| last.is_like(seen));
        if !is_same {
            suspect.since = now.instant;
        }
        // A Node that is held stays as it is until a person or time changes something.
        let is_steady = suspect.hold.is_some() || now.instant >= suspect.since + STEADY;
        suspect.interval = if is_same && is_steady {
            (suspect.interval * 2).min(LONGEST.max(period))
        } else {
            period
        };
        suspect.last = Some(seen);
        suspect.stage = Stage::Due(align(self.started, period, now.instant + suspect.interval));
        match seen {
            // It proves nothing and contradicts nothing.
            Seen::Unknown { after } => {
                if let Some(after) = after {
                    suspect.stage = Stage::Due(now.instant + after);
                }
                Verdict::Nothing
            }
            // Nor does this; but where ready Nodes are not seen either, somebody should know. After a proof the cloud was not
            // asked for another one if it does not show those.
            Seen::Unseen => {
                let since = suspect.absent_since.or(is_same.then_some(suspect.since));
                if is_guarded && since.is_some_and(|since| asked >= since + confirmation) {
                    suspect.stage = Stage::Busy;
                    Verdict::Doubt
                } else {
                    Verdict::Nothing
                }
            }
            Seen::Foreign | Seen::Running | Seen::Off => {
                suspect.absent_since = None;
                suspect.hold = None;
                match seen {
                    Seen::Running => Verdict::SetTaint(false),
                    Seen::Off => Verdict::SetTaint(true),
                    _ => Verdict::Nothing,
                }
            }
            Seen::Absent => {
                let first = *suspect.absent_since.get_or_insert(now.instant);
                if !confirmation.is_zero() && asked < first + confirmation {
                    suspect.stage = Stage::Due(first + confirmation);
                    return Verdict::Nothing;
                }
                if let Some(left) = grace_left(node, now.wall).filter(|_| is_guarded) {
                    let end = Stage::Due(now.instant + left);
                    suspect.stage = suspect.stage.earlier(end);
                    return Verdict::Nothing;
                }
                suspect.stage = Stage::Busy;
                Verdict::Delete
            }
        }
    }

    /// Decides about Nodes that are to be deleted, or in doubt; `all` are the Nodes of the cluster. Whoever was proved gone first goes
    /// first, and whose deletion has failed last.
    pub(super) fn rule(
        &mut self,
        doomed: &[Arc<Node>],
        sighting: Sighting,
        all: &[Arc<Node>],
        now: Instant,
    ) -> Vec<(Arc<Node>, Ruling)> {
        let mut doomed: Vec<&Arc<Node>> = doomed.iter().collect();
        doomed.sort_by_key(|node| {
            let suspect = self.suspects.get(&node.name);
            let since = suspect.and_then(|suspect| suspect.absent_since);
            let has_failed = suspect.is_some_and(|suspect| suspect.has_failed);
            (has_failed, since, node.name.clone())
        });
        let mut free = self.throttle.free(all, now);
        let mut rulings = Vec::with_capacity(doomed.len());
        for node in doomed {
            let Some(suspect) = busy(&mut self.suspects, node) else {
                continue;
            };
            let later = align(self.started, self.period, now + suspect.interval);
            let has_turn = self.throttle.has_turn(node, now);
            let ruling = match sighting {
                Sighting::Blind { missing: ready } => {
                    suspect.stage = Stage::Due(later);
                    Ruling::Frozen {
                        ready,
                        is_news: suspect.hold(Hold::Frozen),
                    }
                }
                Sighting::Unclear => {
                    suspect.stage = Stage::Due(later);
                    Ruling::Wait
                }
                Sighting::Seen | Sighting::NoWitness if suspect.last == Some(Seen::Unseen) => {
                    suspect.stage = Stage::Due(later);
                    suspect.hold = None;
                    Ruling::Wait
                }
                Sighting::Seen | Sighting::NoWitness if free == 0 && !has_turn => {
                    // All who wait are asked for again together when the next one may go, oldest first.
                    let frees = self.throttle.frees_at(now).unwrap_or(later);
                    suspect.stage = Stage::Due(later.min(frees));
                    Ruling::Throttled {
                        recent: self.throttle.recent(),
                        is_news: suspect.hold(Hold::Throttled),
                    }
                }
                Sighting::Seen | Sighting::NoWitness => {
                    free -= usize::from(!has_turn);
                    self.throttle.take(node, now);
                    suspect.hold = None;
                    Ruling::Delete {
                        is_news: suspect.said.is_news(events::DELETING_NODE.reason, ""),
                    }
                }
            };
            rulings.push((Arc::clone(node), ruling));
        }
        rulings
    }

    /// The deletion was accepted. The Node may stay for a while, if a finalizer holds it.
    pub(super) fn deleted(&mut self, node: &Node) {
        self.throttle.spend(node);
        self.release(node);
    }

    fn release(&mut self, node: &Node) {
        if let Some(suspect) = busy(&mut self.suspects, node) {
            suspect.stage = Stage::Released;
        }
    }

    /// There was nothing to delete: the Node had gone. By an earlier try, if there was one that may have been made.
    pub(super) fn not_deleted(&mut self, node: &Node) {
        self.throttle.give_back(node);
        self.release(node);
    }

    /// The deletion failed, which may mean that it was made all the same, and is tried again. Answers whether the text is news.
    pub(super) fn deletion_failed(
        &mut self,
        node: &Node,
        text: &str,
        may_be_made: bool,
        now: Instant,
    ) -> bool {
        if may_be_made {
            self.throttle.spend(node);
        } else {
            self.throttle.give_back(node);
        }
        let Some(suspect) = busy(&mut self.suspects, node) else {
            return false;
        };
        suspect.stage = Stage::Due(align(self.started, self.period, now + suspect.interval));
        suspect.has_failed = true;
        suspect.said.is_news(events::DELETING_NODE_FAILED.reason, text)
    }

    /// A ready Node was freed from its taint, or could not be: it is looked at again if the watch does not show it free.
    pub(super) fn rest(&mut self, node: &Node, now: Instant) {
        let (started, period) = (self.started, self.period);
        if let Some(suspect) = busy(&mut self.suspects, node) {
            suspect.stage = Stage::Due(align(started, period, now + suspect.interval));
            suspect.interval = (suspect.interval * 2).min(LONGEST.max(period));
        }
    }

    /// The taint of a Node is about to be written: it is not looked at again before that has ended.
    pub(super) fn writing(&mut self, node: &Node) {
        let suspect = self.suspects.get_mut(&node.name);
        if let Some(suspect) = suspect.filter(|suspect| suspect.uid == node.uid) {
            suspect.stage = Stage::Busy;
        }
    }

    /// That has ended, well or not.
    pub(super) fn written(&mut self, node: &Node, now: Instant) {
        let (started, period) = (self.started, self.period);
        if let Some(suspect) = busy(&mut self.suspects, node) {
            suspect.stage = Stage::Due(align(started, period, now + suspect.interval));
        }
    }

    /// How many wait although their instances are proved gone.
    pub(super) fn held(&self) -> Held {
        let count = |hold| {
            let held = self
                .suspects
                .values()
                .filter(|suspect| suspect.hold == Some(hold));
            held.count()
        };
        Held {
            frozen: count(Hold::Frozen),
            throttled: count(Hold::Throttled),
        }
    }
}

impl Seen {
    /// Whether it is the same answer. The delay that a cloud states makes no other one.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

/// The entry of this very Node, if it is being looked at.
fn busy<'a>(suspects: &'a mut BTreeMap<NodeName, Suspect>, node: &Node) -> Option<&'a mut Suspect> {
    suspects
        .get_mut(&node.name)
        .filter(|suspect| suspect.uid == node.uid && suspect.stage == Stage::Busy)
}

/// How long a Node is still too young to be deleted; none if it is not.
fn grace_left(node: &Node, now: Timestamp) -> Option<Duration> {
    if !node.is_uninitialized() && node.provider_id.is_some() {
        return None;
    }
    let age = Duration::try_from(now.duration_since(node.created)).unwrap_or_default();
    GRACE.checked_sub(age).filter(|left| !left.is_zero())
}

#[cfg(test)]
mod tests;
