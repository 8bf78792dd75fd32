//! What the page knows: everybody writes here what they see, and the page's picture is drawn from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::cluster::{Event, Node, Service};
use super::flows::Flows;
use super::plan::Plans;

use crate::manager::{Plan, StepNews};

/// The most objects whose last event is remembered.
const OBJECTS: usize = 200;

/// Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Board(Arc<Mutex<Known>>);

/// All that is known.
#[derive(Default)]
pub(super) struct Known {
    /// By UID.
    pub(super) nodes: BTreeMap<String, Node>,
    /// By UID.
    pub(super) services: BTreeMap<String, Service>,
    /// The last one of each object, by `Kind/namespace/name`.
    pub(super) events: BTreeMap<String, Event>,
    /// Who holds the manager's lease.
    pub(super) holder: Option<String>,
    pub(super) plans: Plans,
    pub(super) flows: Flows,
    /// Why the buttons do not work; `None` if they do.
    pub(super) closed: Option<String>,
}

impl Board {
    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A plan was made, for this reason; it is about to be followed.
    pub(crate) fn planned(&self, why: &str, plan: &Plan) {
        let mut known = self.lock();
        for report in plan.reports() {
            known.plans.show(why, report);
        }
    }

    /// The manager makes a step, or has made it.
    pub(crate) fn heard(&self, news: &StepNews) {
        self.lock().plans.hear(news);
    }

    /// From now on the reader may press buttons, or may not, and why.
    pub(crate) fn close(&self, why: Option<&str>) {
        self.lock().closed = why.map(str::to_owned);
    }

    /// Keeps the last event of an object; one that says that a sync is over settles the plan as well.
    pub(super) fn event(&self, event: &Value) {
        let Some((object, event)) = Event::read(event) else {
            return;
        };
        let mut known = self.lock();
        if let Some(service) = object.strip_prefix("Service/")
            && event.is_end_of_sync()
        {
            known.plans.settle(service);
        }
        if known.events.len() < OBJECTS || known.events.contains_key(&object) {
            known.events.insert(object, event);
        }
    }
}
