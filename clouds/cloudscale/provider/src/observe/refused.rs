//! What the API refused to create, and what holds up nothing else.

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_cloudscale_client::PoolId;
use bowline_plan::Refusal;

use crate::apply::Learned;
use crate::step::{CloudStep, PartChange};

/// Something of which there may be no more than a quota allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A pool.
    Pool,
    /// A member of a pool.
    Member(PoolId),
}

impl Place {
    /// What a step takes that creates something and lets nothing go for it.
    pub(crate) fn taken_by(step: &CloudStep) -> Option<Self> {
        match step {
            CloudStep::Part { change, .. } => match change {
                PartChange::Pool { old: None, .. } => Some(Self::Pool),
                PartChange::Member { pool, old: None, .. } => Some(Self::Member(*pool)),
                _ => None,
            },
            _ => None,
        }
    }

    /// What is left by a step that takes nothing.
    fn left_by(step: &CloudStep) -> Option<Self> {
        match step {
            CloudStep::Part { change, .. } => match change {
                PartChange::DeletePool { .. } => Some(Self::Pool),
                PartChange::DeleteMember { pool, .. } => Some(Self::Member(*pool)),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Whether something went to make room, and there was none after it: then nothing more is to go. `None` if a step says nothing
/// about it. `before` is what was refused before the wave of the step: where there was no room, only what makes some is planned.
pub(crate) fn is_room_vain(
    before: &Refused,
    step: &CloudStep,
    outcome: Result<&Learned, &CloudError>,
) -> Option<bool> {
    let CloudStep::Part { change, .. } = step else {
        return None;
    };
    let is_told = match change {
        PartChange::Member { pool, .. } => before.has_no(Place::Member(*pool)),
        PartChange::Pool { old, .. } => old.is_some(),
        _ => return None,
    };
    match outcome {
        Ok(learned) if learned.created.is_some() => Some(false),
        Ok(learned) => (is_told && learned.refused.as_ref()?.is_limit).then_some(true),
        Err(error) => (is_told && error.kind() == ErrorKind::Exhausted).then_some(true),
    }
}

/// Creations that the API refused in this reconcile.
#[derive(Debug, Default)]
pub(crate) struct Refused(Vec<(CloudStep, Refusal)>);

impl Refused {
    pub(crate) fn add(&mut self, step: &CloudStep, why: Refusal) {
        self.0.push((step.clone(), why));
    }

    /// Something went: what had no room is tried again. A quota may be of the whole project, so it matters not where.
    pub(crate) fn gone(&mut self, step: &CloudStep) {
        let Some(left) = Place::left_by(step) else {
            return;
        };
        let is_of_kind = |step: &CloudStep| {
            let taken = Place::taken_by(step);
            left == Place::Pool || taken.is_some_and(|taken| taken != Place::Pool)
        };
        self.0.retain(|(step, why)| !why.is_limit || !is_of_kind(step));
    }

    /// Something was created all the same, as in place of something else.
    pub(crate) fn made(&mut self, step: &CloudStep) {
        self.0.retain(|(refused, _)| !refused.asks_the_same(step));
    }

    /// Whether a quota leaves no room there.
    pub(crate) fn has_no(&self, place: Place) -> bool {
        self.0
            .iter()
            .any(|(step, why)| why.is_limit && Place::taken_by(step) == Some(place))
    }

    /// Whether just this was refused, and for another reason than a quota.
    pub(crate) fn has(&self, asked: &CloudStep) -> bool {
        self.0
            .iter()
            .any(|(step, why)| !why.is_limit && step.asks_the_same(asked))
    }

    /// Why pools are missing.
    pub(crate) fn of_pools(&self) -> Option<Refusal> {
        self.first(|place| place == Place::Pool)
    }

    /// Why members are missing.
    pub(crate) fn of_members(&self) -> Option<Refusal> {
        self.first(|place| place != Place::Pool)
    }

    fn first(&self, is_it: impl Fn(Place) -> bool) -> Option<Refusal> {
        let mut found = self
            .0
            .iter()
            .filter(|(step, _)| Place::taken_by(step).is_some_and(&is_it));
        found.next().map(|(_, why)| why.clone())
    }
}
