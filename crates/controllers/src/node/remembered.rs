//! What was said of a Node and written to it, as long as the next look needs it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{NodeCache, Written};

use crate::events;
use crate::put_back::{Part, PutBack};
use crate::said::Said;

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
    said: Said,
    /// The version that this controller wrote last, until the watch has brought it: what the cache shows is older.
    written: Option<u64>,
    /// That somebody put the taint back, or took the two names of a label apart.
    undone: PutBack,
    /// That this goes on, and is to be told with the next write.
    fight: Option<Part>,
    /// Whether the taint is back for no other reason: nothing else is to be learned from the cloud.
    is_only_taint: bool,
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
        entry.is_only_taint = false;
        // It waits no more. What it goes on without may hold still.
        for subject in [
            events::NODE_INIT_FAILED.reason,
            events::FOREIGN_PROVIDER_ID.reason,
        ] {
            entry.said.over(subject);
        }
        if entry != Entry::default() {
            nodes.insert(node.name.clone(), entry);
        }
    }

    /// Somebody undid what this controller wrote to the Node: how long to wait before it is written again.
    pub(super) fn undone(&self, node: &Node) -> Duration {
        let part = match node.is_uninitialized() {
            true => Part::Taint,
            false => Part::Labels,
        };
        let mut nodes = self.nodes();
        let entry = nodes.entry(node.name.clone()).or_default();
        let again = entry.undone.again(part);
        if again.is_news {
            entry.fight = Some(part);
        }
        entry.is_only_taint = part == Part::Taint && !again.after.is_zero();
        again.after
    }

    /// What of the Node somebody changes back again and again, if that is to be told now.
    pub(super) fn fight(&self, name: &NodeName) -> Option<Part> {
        self.nodes().get_mut(name)?.fight.take()
    }

    /// Whether this Node was initialised a moment ago, and nothing is known but that somebody puts the taint back.
    pub(super) fn is_only_taint(&self, node: &Node) -> bool {
        let nodes = self.nodes();
        let is_it = nodes.get(&node.name).is_some_and(|entry| entry.is_only_taint);
        is_it && node.provider_id.is_some()
    }

    /// Whether the cache shows, as of this write or later, that the taint is on the Node all the same.
    pub(super) fn is_undone(&self, node: &Node, written: &Written) -> bool {
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
                entry.said.over(subject);
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
                .said
                .is_news(subject, text)
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
