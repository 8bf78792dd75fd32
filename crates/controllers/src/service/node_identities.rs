//! Which Nodes the balancers were brought up to date with, and how long that took.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::{Arc, Weak};

use bowline_cloud_provider::NodeName;
use prometheus_client::metrics::histogram::Histogram;
use tokio::time::Instant;

/// Which Nodes a balancer was brought up to date with, in name order.
pub(super) type NodeIdentities = Arc<[NodeIdentity]>;

/// The lists that somebody holds, by their hashes: equal ones are one in memory, however many Services remember it.
#[derive(Default)]
pub(super) struct KnownIdentities(BTreeMap<u64, Weak<[NodeIdentity]>>);

impl KnownIdentities {
    pub(super) fn share(&mut self, list: Vec<NodeIdentity>) -> NodeIdentities {
        let hash = hash_of(&list);
        let known = self.0.get(&hash).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| **known == *list) {
            return known;
        }
        self.0.retain(|_, list| list.strong_count() > 0);
        let list = NodeIdentities::from(list);
        self.0.insert(hash, Arc::downgrade(&list));
        list
    }
}

/// Gives the same in every run, unlike that of a map.
pub(super) fn hash_of(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A Node, as far as the balancers are concerned.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct NodeIdentity {
    pub(super) name: NodeName,
    pub(super) provider_id: Option<Arc<str>>,
    /// A hash, because it is remembered for each Service; `None` where balancers do not follow the Nodes.
    pub(super) addresses: Option<u64>,
    /// `None` where it does not count.
    pub(super) is_ready: Option<bool>,
    /// Whether its member is to get no new connections.
    pub(super) is_drained: bool,
}

/// The time that a node sync takes. Held by each Service that it concerns; measured when the last of them has been brought
/// up to date, or could not be.
pub(super) struct NodeSyncTimer {
    begun: Instant,
    latency: Histogram,
}

impl NodeSyncTimer {
    /// Begins now.
    pub(super) fn begin(latency: &Histogram) -> Arc<Self> {
        Arc::new(Self {
            begun: Instant::now(),
            latency: latency.clone(),
        })
    }
}

impl Drop for NodeSyncTimer {
    fn drop(&mut self) {
        self.latency.observe(self.begun.elapsed().as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_of_nodes_are_one_in_memory_and_forgotten_with_their_last_holder() {
        let list = |addresses| {
            vec![NodeIdentity {
                name: NodeName::new("a"),
                provider_id: None,
                addresses: Some(addresses),
                is_ready: None,
                is_drained: false,
            }]
        };
        let mut known = KnownIdentities::default();
        let (one, other) = (known.share(list(1)), known.share(list(2)));
        assert!(Arc::ptr_eq(&one, &known.share(list(1))));
        assert!(one != other);
        drop((one, other));
        let _third = known.share(list(3));
        assert_eq!(known.0.len(), 1);
    }
}
