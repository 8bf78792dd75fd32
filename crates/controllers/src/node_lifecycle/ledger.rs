//! What is known of each Node that is not ready, and what follows from an answer of its cloud.
//!
//! Pure: every time is handed in, nothing is asked and nothing is written here. What becomes of one Node by itself is the
//! [`Suspect`]'s; here is who is one, and how many may go.

mod suspect;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName, Readiness, keys};
use bowline_kube_io::{DeletionNote, FoundNote};
use tokio::time::Instant;

use super::NodeLifecycleSettings;
use super::throttle::{Moment, Throttle};
use crate::credential_check::CredentialCheck;
use suspect::{Full, Hold, Rules, Suspect, Ticks};

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
    Gone,
    /// The instance was not seen for as long as a proof takes. The Node stays in any case; [`Ledger::rule`] finds out whether
    /// the credentials see anything at all.
    Doubt,
}

/// What becomes of a Node that is to be deleted. Each is news once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is deleted now.
    Delete { is_news: bool },
    /// It stays, because the cloud does not show the instance of any of these ready Nodes either. Its own need not be proved gone.
    Frozen {
        ready: usize,
        is_proved: bool,
        /// It was not held back for this before.
        begins: bool,
        is_news: bool,
    },
    /// It waits, because so many have gone in the last window.
    Throttled {
        recent: usize,
        begins: bool,
        is_news: bool,
    },
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
    rules: Rules,
    throttle: Throttle,
    suspects: Suspects,
}

/// The suspects by name, and how many of them are held: each change goes through here, so that nobody has to count.
#[derive(Debug, Default)]
struct Suspects {
    by_name: BTreeMap<NodeName, Suspect>,
    held: Held,
}

impl Suspects {
    fn get(&self, node: &Node) -> Option<&Suspect> {
        let suspect = self.by_name.get(&node.name);
        suspect.filter(|suspect| suspect.is_of(node))
    }

    fn insert(&mut self, node: &Node, suspect: Suspect) {
        self.remove(&node.name);
        self.by_name.insert(node.name.clone(), suspect);
    }

    fn remove(&mut self, name: &NodeName) {
        if let Some(suspect) = self.by_name.remove(name) {
            self.held.count(suspect.held(), None);
        }
    }

    /// Changes what is known of this very Node.
    fn change<R>(&mut self, node: &Node, change: impl FnOnce(&mut Suspect) -> R) -> Option<R> {
        let suspect = self.by_name.get_mut(&node.name);
        let suspect = suspect.filter(|suspect| suspect.is_of(node))?;
        let before = suspect.held();
        let changed = change(suspect);
        self.held.count(before, suspect.held());
        Some(changed)
    }

    /// The same, if it is being looked at.
    fn change_busy<R>(&mut self, node: &Node, change: impl FnOnce(&mut Suspect) -> R) -> Option<R> {
        let is_busy = self.get(node).is_some_and(Suspect::is_busy);
        is_busy.then(|| self.change(node, change)).flatten()
    }
}

impl Held {
    fn count(&mut self, before: Option<Hold>, after: Option<Hold>) {
        for (hold, is_more) in [(before, false), (after, true)] {
            let count = match hold {
                Some(Hold::Frozen) => &mut self.frozen,
                Some(Hold::Throttled) => &mut self.throttled,
                None => continue,
            };
            *count = if is_more {
                *count + 1
            } else {
                count.saturating_sub(1)
            };
        }
    }
}

impl Ledger {
    pub(super) fn new(settings: &NodeLifecycleSettings, now: Instant) -> Self {
        Self {
            rules: Rules {
                ticks: Ticks {
                    started: now,
                    period: settings.node_monitor_period,
                },
                confirmation: settings.node_deletion_confirmation,
                is_guarded: settings.is_guarded(),
            },
            throttle: Throttle::new(settings.node_deletion_share, settings.node_deletion_window, now),
            suspects: Suspects::default(),
        }
    }

    /// From now on this process leads, so Nodes may be deleted; `found` says how many were lately.
    pub(super) fn begin(&mut self, now: Instant, found: Option<&FoundNote>) {
        self.throttle.begin(now, found);
    }

    /// What the next leader has to know of the deletions; `None`: nothing.
    pub(super) fn note(&self, now: Moment) -> Option<DeletionNote> {
        self.throttle.note(now)
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
        match self.suspects.get(node) {
            Some(suspect) if suspect.is_ready() == is_ready => false,
            _ => {
                self.suspects
                    .insert(node, Suspect::new(node, now, self.rules.ticks));
                true
            }
        }
    }

    /// Forgets a Node that is gone.
    pub(super) fn forget(&mut self, node: &Node) {
        if self.suspects.get(node).is_some() {
            self.suspects.remove(&node.name);
        }
    }

    /// Whether more is asked for than one proof; see [`NodeLifecycleSettings::is_guarded`].
    pub(super) fn is_guarded(&self) -> bool {
        self.rules.is_guarded
    }

    /// When the next Node is to be looked at.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.suspects.by_name.values().filter_map(Suspect::due).min()
    }

    /// The Nodes to look at now, in name order. They are busy until an answer, a ruling or a rest ends that.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<NodeName> {
        let due = self
            .suspects
            .by_name
            .iter_mut()
            .filter(|(_, suspect)| suspect.due().is_some_and(|due| due <= now));
        due.map(|(name, suspect)| {
            suspect.take();
            name.clone()
        })
        .collect()
    }

    /// Whether asking for these Nodes now may confirm that one of them is gone.
    pub(super) fn may_confirm(&self, nodes: &[Arc<Node>], now: Instant) -> bool {
        self.rules.is_guarded
            && nodes.iter().any(|node| {
                let suspect = self.suspects.get(node);
                suspect.is_some_and(|suspect| suspect.may_be_confirmed(now, self.rules.confirmation))
            })
    }

    /// Whether this is another answer than the last one about the Node.
    pub(super) fn is_news(&self, node: &Node, seen: Seen) -> bool {
        self.suspects
            .get(node)
            .is_some_and(|suspect| !suspect.is_same(seen))
    }

    /// Enters an answer to a question that was asked at `asked`. An answer to a question that nobody waits for any more,
    /// because the Node came back or is another one, counts for nothing.
    pub(super) fn judge(&mut self, node: &Node, asked: Instant, now: Moment, seen: Seen) -> Verdict {
        let rules = self.rules;
        self.suspects
            .change_busy(node, |suspect| suspect.enter(node, asked, now, seen, rules))
            .unwrap_or(Verdict::Nothing)
    }

    /// Decides about Nodes that are to be deleted, or in doubt. `check` tells whether the cloud of a Node is to be believed, `all` are
    /// the Nodes of the cluster. Whoever was proved gone first goes first, and last whose deletion has failed.
    pub(super) fn rule(
        &mut self,
        doomed: &[Arc<Node>],
        check: impl Fn(&Node) -> CredentialCheck,
        all: &[Arc<Node>],
        now: Instant,
    ) -> Vec<(Arc<Node>, Ruling)> {
        let mut doomed: Vec<&Arc<Node>> = doomed.iter().collect();
        doomed.sort_by_key(|node| {
            let rank = self.suspects.get(node).map(Suspect::rank);
            (rank, node.name.clone())
        });
        let mut free = self.throttle.free(all, now);
        let mut is_open = self.throttle.is_open();
        let mut rulings = Vec::with_capacity(doomed.len());
        for node in doomed {
            let has_turn = self.throttle.has_turn(node, now);
            let full = (free == 0 && !has_turn).then(|| Full {
                recent: self.throttle.recent(),
                is_open,
                frees_at: self.throttle.frees_at(now),
            });
            let (ticks, check) = (self.rules.ticks, check(node));
            let ruling = self
                .suspects
                .change_busy(node, |suspect| suspect.rule(check, full, now, ticks));
            let Some(ruling) = ruling else {
                continue;
            };
            if matches!(ruling, Ruling::Delete { .. }) {
                free -= usize::from(!has_turn);
                self.throttle.take(node, now);
                is_open = true;
            }
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
        self.suspects.change_busy(node, Suspect::release);
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
        let ticks = self.rules.ticks;
        self.suspects
            .change_busy(node, |suspect| suspect.deletion_failed(text, now, ticks))
            .unwrap_or(false)
    }

    /// A ready Node was freed from its taint, or could not be: it is looked at again if the watch does not show it free.
    pub(super) fn rest(&mut self, node: &Node, now: Instant) {
        let ticks = self.rules.ticks;
        self.suspects
            .change_busy(node, |suspect| suspect.rest(now, ticks));
    }

    /// The taint of a Node is about to be written: it is not looked at again before that has ended.
    pub(super) fn writing(&mut self, node: &Node) {
        self.suspects.change(node, Suspect::take);
    }

    /// That has ended, well or not.
    pub(super) fn written(&mut self, node: &Node, now: Instant) {
        let ticks = self.rules.ticks;
        self.suspects
            .change_busy(node, |suspect| suspect.ask_again(now, ticks));
    }

    /// How many wait although their instances are proved gone.
    pub(super) fn held(&self) -> Held {
        self.suspects.held
    }
}

#[cfg(test)]
mod tests;
