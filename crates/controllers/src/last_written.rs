//! What was written last on each Node, for those who look again from time to time: who finds something else there puts it back by the
//! rule of [`put_back`](crate::put_back).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bowline_cloud_provider::{Node, NodeName};
use tokio::time::Instant;

use crate::controller::Context;
use crate::put_back::{Part, PutBack};

/// The last writes of one part, by Node.
#[derive(Debug)]
pub(crate) struct LastWritten<V> {
    part: Part,
    /// The keys of a value, where it has some.
    keys: fn(&V) -> BTreeSet<String>,
    nodes: Mutex<BTreeMap<NodeName, Entry<V>>>,
}

#[derive(Debug)]
struct Entry<V> {
    uid: Arc<str>,
    value: V,
    /// The version that the write made: what the cache shows before it is older.
    version: Option<u64>,
    put_back: PutBack,
    /// When it is put back that somebody changed it.
    due: Option<Instant>,
    is_news: bool,
}

/// Whether a value may be written now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Now { is_news: bool },
    NotYet,
}

impl<V: PartialEq> LastWritten<V> {
    pub(crate) fn of(part: Part) -> Self {
        Self::with_keys(part, |_| BTreeSet::new())
    }

    pub(crate) fn with_keys(part: Part, keys: fn(&V) -> BTreeSet<String>) -> Self {
        Self {
            part,
            keys,
            nodes: Mutex::default(),
        }
    }

    /// Whether a value that a Node does not show may be written now. Who changes it back again and again is told of before that,
    /// as long as it is known who that is.
    pub(crate) async fn may_write(&self, ctx: &Context, node: &Node, value: &V) -> bool {
        let turn = self.turn(node, value);
        if turn == (Turn::Now { is_news: true }) {
            ctx.tell_changed_back(node, self.part, &(self.keys)(value)).await;
        }
        turn != Turn::NotYet
    }

    fn turn(&self, node: &Node, value: &V) -> Turn {
        let now = Instant::now();
        let mut nodes = self.nodes();
        let entry = nodes.get_mut(&node.name);
        let Some(entry) = entry.filter(|entry| entry.uid == node.uid && entry.value == *value) else {
            return Turn::Now { is_news: false };
        };
        let shown: Option<u64> = node.resource_version.parse().ok();
        if matches!((shown, entry.version), (Some(shown), Some(version)) if shown < version) {
            return Turn::NotYet; // the cache is behind the write
        }
        if entry.due.is_none() {
            let again = entry.put_back.again(self.part);
            entry.due = Some(now + again.after);
            entry.is_news |= again.is_news;
        }
        match entry.due.is_some_and(|due| due <= now) {
            true => Turn::Now {
                is_news: std::mem::take(&mut entry.is_news),
            },
            false => Turn::NotYet,
        }
    }

    /// The value was written, in this version of the Node.
    pub(crate) fn written(&self, node: &Node, value: V, version: &str) {
        let mut nodes = self.nodes();
        let before = nodes.remove(&node.name).filter(|entry| entry.uid == node.uid);
        let entry = Entry {
            uid: Arc::clone(&node.uid),
            value,
            version: version.parse().ok(),
            put_back: before.map(|entry| entry.put_back).unwrap_or_default(),
            due: None,
            is_news: false,
        };
        nodes.insert(node.name.clone(), entry);
    }

    /// When the next value is to be put back.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.nodes().values().filter_map(|entry| entry.due).min()
    }

    /// The Node is gone.
    pub(crate) fn forget(&self, name: &NodeName) {
        self.nodes().remove(name);
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<NodeName, Entry<V>>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_changed_back_again_and_again_is_written_less_and_less_often() {
        let last = LastWritten::of(Part::NetworkUnavailable);
        let mut node = Node {
            resource_version: "7".into(),
            ..Node::named("n1")
        };
        let (begun, mut version, mut writes, mut news) = (Instant::now(), 7, 0, 0);
        while begun.elapsed() < Duration::from_secs(30 * 60) {
            if let Turn::Now { is_news } = last.turn(&node, &true) {
                version += 1;
                last.written(&node, true, &version.to_string());
                (writes, news) = (writes + 1, news + u32::from(is_news));
                assert_eq!(last.turn(&node, &true), Turn::NotYet, "the cache is behind");
                version += 1; // somebody else wrote after that
                node.resource_version = version.to_string().into();
            }
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        // The first, five at once, then after 5, 10, 20, 40, 80, 160, 300 ... s.
        assert_eq!((writes, news), (16, 1));
        assert_eq!(
            last.turn(&node, &false),
            Turn::Now { is_news: false },
            "another value"
        );
        node.uid = "new".into();
        assert_eq!(
            last.turn(&node, &true),
            Turn::Now { is_news: false },
            "another Node"
        );
        last.forget(&node.name);
        assert_eq!(last.next_due(), None);
    }
}
