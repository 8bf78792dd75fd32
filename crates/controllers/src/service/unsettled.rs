//! Why the balancers of Services are not as they should be, and since when: for whoever watches.

use std::sync::Arc;

use bowline_cloud_provider::ErrorKind;
use tokio::time::Instant;

use super::{ServiceController, lock};
use crate::metrics::gauges::{Standing, UNSETTLED, UNSETTLED_OLDEST};
use crate::metrics::{Probes, Readings};
use crate::trouble::Trouble;

/// What came of the last sync of a Service that is not settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// None has ended yet since it was settled.
    Pending,
    /// The cloud is busy with it.
    Waiting,
    /// There is no Node for it to lead to.
    NoNodes,
    /// A person has to change something.
    Refused,
    /// The cloud denied it.
    Denied,
    /// The cloud cannot do what it was asked for.
    Invalid,
    /// The cloud's objects were not as the call expected them.
    Conflict,
    /// The cloud asked to be left alone.
    Throttled,
    /// A quota or limit of the cloud is reached, or it has no more of what is needed.
    Quota,
    /// Any other failure of the cloud.
    Failed,
    /// The API server refused or failed.
    Kubernetes,
    /// A call to the cloud has no answer, and may take effect yet.
    Unanswered,
}

impl Reason {
    /// All of them in their order, with the values of the label `reason`.
    const ALL: [(Self, &'static str); 12] = [
        (Self::Pending, "pending"),
        (Self::Waiting, "waiting"),
        (Self::NoNodes, "no_nodes"),
        (Self::Refused, "refused"),
        (Self::Denied, "denied"),
        (Self::Invalid, "invalid"),
        (Self::Conflict, "conflict"),
        (Self::Throttled, "throttled"),
        (Self::Quota, "quota"),
        (Self::Failed, "failed"),
        (Self::Kubernetes, "kubernetes"),
        (Self::Unanswered, "unanswered"),
    ];

    /// Those of what is under way, and changes by itself.
    pub(super) const OF_WORK: [Self; 3] = [Self::Pending, Self::Waiting, Self::Unanswered];

    pub(super) fn is_of_work(self) -> bool {
        Self::OF_WORK.contains(&self)
    }

    /// The value of the label `reason`.
    pub(super) fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

impl From<ErrorKind> for Reason {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::Unauthenticated | ErrorKind::Denied => Self::Denied,
            ErrorKind::Invalid | ErrorKind::NotSupported => Self::Invalid,
            ErrorKind::Conflict => Self::Conflict,
            ErrorKind::Throttled { .. } => Self::Throttled,
            ErrorKind::Exhausted => Self::Quota,
            _ => Self::Failed,
        }
    }
}

/// What is not as it should be with one Service.
pub(super) struct Unsettled {
    /// When the oldest change was seen that no settled sync has served yet, else when the first sync since then did not settle.
    pub(super) since: Instant,
    /// It was a change.
    pub(super) is_since_change: bool,
    /// What came of the last sync.
    pub(super) reason: Reason,
    /// The same in words.
    pub(super) trouble: Trouble,
    /// What the sync that is under way waits for.
    pub(super) waits_for: Option<String>,
    /// What the last sync that failed had waited for.
    pub(super) waited_for: Option<String>,
}

impl Unsettled {
    /// From now on.
    pub(super) fn begin() -> Self {
        Self {
            since: Instant::now(),
            is_since_change: false,
            reason: Reason::Pending,
            trouble: Trouble::new(""),
            waits_for: None,
            waited_for: None,
        }
    }
}

impl ServiceController {
    /// Has the Services that are not settled shown at each scrape.
    pub(super) fn show_unsettled(self: &Arc<Self>, probes: &Probes) {
        probes.probe_weakly(&UNSETTLED, self, |controller| {
            controller.unsettled(Standing::count)
        });
        probes.probe_weakly(&UNSETTLED_OLDEST, self, |controller| {
            controller.unsettled(Standing::oldest)
        });
    }

    fn unsettled(&self, value: fn(Standing) -> f64) -> Readings {
        let now = Instant::now();
        let mut standing = [Standing::default(); Reason::ALL.len()];
        for tracked in lock(&self.tracked).values() {
            if let Some(unsettled) = &tracked.unsettled {
                standing[unsettled.reason as usize].add(now - unsettled.since);
            } else if let Some(since) = tracked.unanswered.since() {
                standing[Reason::Unanswered as usize].add(now - since);
            }
        }
        let all = Reason::ALL.into_iter().zip(standing);
        all.map(|((_, name), standing)| (name, value(standing))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_stands_at_its_place() {
        for (place, (reason, name)) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{name}");
        }
    }
}
