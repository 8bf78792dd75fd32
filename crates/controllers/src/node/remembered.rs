//! What was said of a Node and written to it, as long as the next look needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{NodeCache, Written};
use tokio::time::Instant;

use crate::event_dedup::EventDedup;
use crate::events;
use crate::put_back::{Part, PutBack, Row};

/// The Nodes that are not as usual.
pub(super) struct Remembered {
    /// Most Nodes are as usual and have no entry.
    nodes: Mutex<BTreeMap<NodeName, Entry>>,
    cache: Arc<NodeCache>,
}

/// What is remembered of a Node while it is not as usual.
#[derive(Default, PartialEq, Eq)]
struct Entry {
    /// The failure and the other provider ID of its events, and in the log what was not written and why, or that it is another cloud's.
    dedup: EventDedup,
    /// The version that this controller wrote last, until the watch has brought it: what the cache shows is older.
    written: Option<u64>,
    /// How often somebody put the taint back, or took the two names of a label apart.
    rows: PutBack,
    /// What of that is not put right yet.
    reverted: BTreeMap<Part, Reverted>,
    /// What goes on, and is to be told with the next write.
    untold: BTreeSet<Part>,
    /// Changes since the last write for which a try came sooner.
    hastened: Row,
}

/// A part that somebody changed back.
#[derive(PartialEq, Eq)]
struct Reverted {
    /// The version of the Node that showed it first.
    version: Option<u64>,
    /// When it is put right. The Node is not written sooner for another part.
    due: Instant,
    /// Whether it happened so often in a row that it waits.
    is_fought: bool,
}

/// How long a Node is not written to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Wait {
    pub(super) after: Duration,
    /// Because somebody changes back what is written.
    pub(super) is_fight: bool,
}

impl Remembered {
    pub(super) fn new(cache: Arc<NodeCache>) -> Self {
        Self {
            nodes: Mutex::default(),
            cache,
        }
    }

    /// Nothing is remembered of a Node that went.
    pub(super) fn forget(&self, name: &NodeName) {
        self.nodes().remove(name);
    }

    /// Remembers the version that was written, so that an older one from the cache is not taken for a new Node.
    pub(super) fn written(&self, node: &Node, written: &Written) {
        let version = written.resource_version.parse().ok();
        let mut nodes = self.nodes();
        let cached = self.cache.get(&node.name);
        let is_behind =
            cached.is_some_and(|cached| *cached.uid == *written.uid && version_before(&cached, version));
        let mut entry = nodes.remove(&node.name).unwrap_or_default();
        entry.written = version.filter(|_| is_behind);
        entry.hastened = Row::default();
        let is_fought = entry.reverted.values().any(|reverted| reverted.is_fought);
        entry.reverted.retain(|_, reverted| reverted.version > version);
        // It waits no more. What it goes on without may hold still, and so may a fight.
        if !is_fought {
            for subject in [
                events::NODE_INIT_FAILED.reason,
                events::FOREIGN_PROVIDER_ID.reason,
            ] {
                entry.dedup.over(subject);
            }
        }
        if entry != Entry::default() {
            nodes.insert(node.name.clone(), entry);
        }
    }

    /// The Node changed, and somebody undid these parts of what this controller wrote to it: how long to wait before it is written
    /// again. A change that undoes nothing hastens a try as often in a row as a part is put back, and the wait for a part holds.
    pub(super) fn changed(&self, node: &Node, reverted: &BTreeSet<Part>) -> Wait {
        let now = Instant::now();
        let mut nodes = self.nodes();
        let entry = nodes.entry(node.name.clone()).or_default();
        let hastened = match reverted.is_empty() {
            true => entry.hastened.again().after,
            false => Duration::ZERO,
        };
        for &part in reverted {
            if entry.reverted.get(&part).is_some_and(|waiting| waiting.due > now) {
                continue;
            }
            let again = entry.rows.again(part);
            if again.is_news {
                entry.untold.insert(part);
            }
            let reverted = Reverted {
                version: version(node),
                due: now + again.after,
                is_fought: !again.after.is_zero(),
            };
            entry.reverted.insert(part, reverted);
        }
        let waits = entry.reverted.values().map(|reverted| reverted.due - now);
        let wait = waits.max().unwrap_or_default();
        Wait {
            after: wait.max(hastened),
            is_fight: !wait.is_zero(),
        }
    }

    /// What of the Node somebody changes back again and again, if that is to be told now.
    pub(super) fn untold(&self, name: &NodeName) -> BTreeSet<Part> {
        let mut nodes = self.nodes();
        nodes
            .get_mut(name)
            .map(|entry| std::mem::take(&mut entry.untold))
            .unwrap_or_default()
    }

    /// Whether this Node was initialised a moment ago, and somebody puts the taint back again and again: nothing else is to be
    /// learned from the cloud.
    pub(super) fn is_fought(&self, node: &Node) -> bool {
        let nodes = self.nodes();
        let reverted = nodes
            .get(&node.name)
            .and_then(|entry| entry.reverted.get(&Part::Taint));
        reverted.is_some_and(|reverted| reverted.is_fought) && node.provider_id.is_some()
    }

    /// Whether the cache shows, as of this write or later, that the taint is on the Node all the same.
    pub(super) fn is_reverted(&self, node: &Node, written: &Written) -> bool {
        let version = written.resource_version.parse().ok();
        let cached = self.cache.get(&node.name);
        cached.is_some_and(|cached| {
            *cached.uid == *written.uid && !version_before(&cached, version) && cached.is_uninitialized()
        })
    }

    /// Whether the cache shows a Node as it was before this controller wrote to it.
    pub(super) fn is_behind(&self, node: &Node) -> bool {
        let nodes = self.nodes();
        nodes
            .get(&node.name)
            .is_some_and(|entry| version_before(node, entry.written))
    }

    /// Whether the watch has now brought what this controller wrote, or more.
    pub(super) fn has_caught_up(&self, node: &Node) -> bool {
        let mut nodes = self.nodes();
        match nodes.get_mut(&node.name) {
            Some(entry) if entry.written.is_some() && !version_before(node, entry.written) => {
                entry.written = None;
                if *entry == Entry::default() {
                    nodes.remove(&node.name);
                }
                true
            }
            _ => false,
        }
    }

    /// Whether what is said of a Node is news; `None`: nothing holds on this subject. Of one that went meanwhile nothing is
    /// remembered: nobody would ever forget it.
    pub(super) fn is_news(&self, node: &Node, subject: &'static str, text: Option<&str>) -> bool {
        let mut nodes = self.nodes(); // before the look: a Node that goes after it is forgotten after this
        let Some(text) = text else {
            if let Some(entry) = nodes.get_mut(&node.name) {
                entry.dedup.over(subject);
                if *entry == Entry::default() {
                    nodes.remove(&node.name);
                }
            }
            return false;
        };
        let there = self.cache.get(&node.name);
        there.is_some_and(|there| there.uid == node.uid)
            && nodes
                .entry(node.name.clone())
                .or_default()
                .dedup
                .is_news(subject, text)
    }

    /// Whether what was said of a Node on a subject is due to be said again.
    pub(super) fn again(&self, node: &Node, subject: &str) -> bool {
        let mut nodes = self.nodes();
        let entry = nodes.get_mut(&node.name);
        entry.is_some_and(|entry| entry.dedup.again(subject).is_some())
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<NodeName, Entry>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resource version as a number, which may be compared within one kind of objects. `None` if it is not one: then
/// nothing counts as older.
fn version(node: &Node) -> Option<u64> {
    node.resource_version.parse().ok()
}

fn version_before(node: &Node, other: Option<u64>) -> bool {
    matches!((version(node), other), (Some(version), Some(other)) if version < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_of_which_nothing_holds_any_more_is_as_usual_again() {
        let cache = Arc::new(NodeCache::new());
        let node = Node::named("n1");
        cache.apply(node.clone());
        let remembered = Remembered::new(cache);
        assert!(remembered.is_news(&node, "addresses", Some("none")));
        assert!(remembered.is_news(&node, "labels", Some("forbidden")));
        remembered.is_news(&node, "addresses", None);
        assert_eq!(remembered.nodes().len(), 1);
        remembered.is_news(&node, "labels", None);
        assert!(remembered.nodes().is_empty());
    }
}
