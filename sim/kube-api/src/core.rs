//! What all handles and connections of one server share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::json;
use tokio::sync::watch;

use crate::access::Access;
use crate::clock::Clock;
use crate::faults::Faults;
use crate::journal::Journal;
use crate::kind::Kind;
use crate::registry::{Registry, State};
use crate::store::Store;

/// Namespaces that every cluster has.
const NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

pub(crate) struct Core {
    state: Mutex<State>,
    clock: Clock,
    pub(crate) minor: u32,
    pub(crate) faults: Faults,
    pub(crate) journal: Journal,
    pub(crate) access: Access,
    /// Counts how often all watches have been closed.
    pub(crate) closed: watch::Sender<u64>,
    /// Counts how often all watches have fallen silent.
    pub(crate) silenced: watch::Sender<u64>,
}

impl Core {
    pub(crate) fn new(minor: u32, seed: u64, start: Timestamp, history: usize, access: Access) -> Self {
        let core = Self {
            state: Mutex::new(State {
                store: Store::new(history),
                random: StdRng::seed_from_u64(seed),
            }),
            clock: Clock::starting_at(start),
            minor,
            faults: Faults::default(),
            journal: Journal::default(),
            access,
            closed: watch::Sender::new(0),
            silenced: watch::Sender::new(0),
        };
        core.found();
        core
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a failed test already; what it left behind is still worth looking at.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A registry for one write.
    pub(crate) fn registry<'a>(&self, state: &'a mut State, dry_run: bool) -> Registry<'a> {
        Registry {
            state,
            now: self.now(),
            minor: self.minor,
            dry_run,
        }
    }

    /// Puts in what a server makes for itself when it starts on an empty etcd.
    fn found(&self) {
        let mut state = self.lock();
        let mut registry = self.registry(&mut state, false);
        let mut objects: Vec<_> = NAMESPACES
            .iter()
            .map(|name| json!({"kind": "Namespace", "metadata": {"name": name}}))
            .collect();
        objects.push(json!({
            "kind": "Service",
            "metadata": {
                "name": "kubernetes",
                "namespace": "default",
                "labels": {"component": "apiserver", "provider": "kubernetes"},
            },
            "spec": {
                "clusterIP": "10.96.0.1",
                "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
            },
        }));
        for object in objects {
            let kind = object["kind"].as_str().and_then(Kind::named);
            let made = kind.map(|kind| registry.apply(kind, object));
            debug_assert!(matches!(made, Some(Ok(_))), "{made:?}");
        }
    }
}
