//! Who asks the cloud for something, and for how long it is held back.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use crate::{AnnotationSpec, Changeability, ServiceFacts, facts};

/// How long a write is held back that was refused once. The time doubles with each further refusal.
const SHORTEST: Duration = Duration::from_secs(5);

/// Who asks the cloud for something, what is asked for, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asker {
    /// The UID of the Service.
    pub uid: String,
    /// What people ask for, as a number: another one lifts all refusals.
    pub asked: u64,
    /// Whether all is to go that was made.
    pub is_removal: bool,
    /// Whether a sync began with the Service before; see [`ServiceFacts::has_begun`].
    pub has_begun: bool,
    /// Whether a call for it has no answer and may take effect yet, as this process or the one before it noted.
    pub is_unanswered: bool,
    /// The wall time of the question.
    pub now: Timestamp,
}

impl Asker {
    /// The Service of a reconcile. What a person asks for is in the spec and in the annotations of `table`, but for what is written
    /// here: `spec.loadBalancerIP`, whose address is another step anyway, and annotations of the provider's own.
    #[must_use]
    pub fn of(facts: &ServiceFacts, table: &[AnnotationSpec]) -> Self {
        let metadata = &facts.service.metadata;
        let mut hash = DefaultHasher::new();
        facts.is_wanted.hash(&mut hash);
        let mut spec = facts.service.spec.clone().unwrap_or_default();
        spec.load_balancer_ip = None;
        format!("{spec:?}").hash(&mut hash);
        let asked = table.iter().filter(|spec| spec.change != Changeability::Written);
        for spec in asked {
            let value = metadata.annotations.as_ref().and_then(|all| all.get(spec.key));
            value.hash(&mut hash);
        }
        Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            asked: hash.finish(),
            is_removal: !facts.is_wanted,
            has_begun: facts.has_begun,
            is_unanswered: facts::unanswered_steps(&facts.service, facts.now)
                .next()
                .is_some(),
            now: facts.now,
        }
    }
}

/// How long a write is held back after so many refusals in a row, or losses, but no longer than `longest`.
pub(crate) fn pause(times: u32, longest: Duration) -> Duration {
    let doublings = times.saturating_sub(1).min(16);
    SHORTEST.saturating_mul(1 << doublings).min(longest)
}
