//! What the API refused to create, and what holds up nothing else.

use std::collections::BTreeSet;
use std::mem::discriminant;

use bowline_cloudscale_client::PoolId;
use bowline_plan::{Refusal, Step as _};

use crate::load_balancer::step::{CloudStep, PartChange};

/// What the API refused: creations, and changes of attributes.
pub(crate) type Refusals = bowline_cloud_provider::Refusals<CloudStep>;

/// Something of which there may be no more than a quota allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A pool.
    Pool,
    /// A member of a pool.
    Member(PoolId),
    /// A listener.
    Listener,
}

impl Place {
    /// The place of what a step creates, whatever goes for it.
    pub(crate) fn of(step: &CloudStep) -> Option<Self> {
        match step.part()? {
            PartChange::Pool { .. } => Some(Self::Pool),
            PartChange::Member { pool, .. } => Some(Self::Member(*pool)),
            PartChange::Listener { .. } => Some(Self::Listener),
            _ => None,
        }
    }

    /// What a step takes that creates something and lets nothing go for it.
    pub(crate) fn taken_by(step: &CloudStep) -> Option<Self> {
        Self::of(step).filter(|_| !step.replaces())
    }

    /// Whether two are of one kind.
    fn is_like(self, other: Self) -> bool {
        discriminant(&self) == discriminant(&other)
    }

    /// What is left by a step that takes nothing.
    fn left_by(step: &CloudStep) -> Option<Self> {
        match step.part()? {
            PartChange::DeletePool { .. } => Some(Self::Pool),
            PartChange::DeleteMember { pool, .. } => Some(Self::Member(*pool)),
            PartChange::DeleteListener { .. } => Some(Self::Listener),
            _ => None,
        }
    }
}

/// What is known of the room for what comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    /// There is some beside what is there.
    Free,
    /// A quota leaves none; what goes may make some.
    Full,
    /// A quota leaves none, and what went made none.
    StillFull,
}

/// Where something went to make room, and there was none after it; until something was created there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StillFull(Vec<Place>);

impl StillFull {
    /// Remembers what a step told.
    pub(crate) fn learn(&mut self, place: Place, is_still_full: bool) {
        self.0.retain(|known| *known != place);
        self.0.extend(Some(place).filter(|_| is_still_full));
    }

    /// The same, without members of pools that are not there any more.
    pub(crate) fn of_pools(mut self, is_there: impl Fn(PoolId) -> bool) -> Option<Self> {
        self.0.retain(|place| match place {
            Place::Member(pool) => is_there(*pool),
            Place::Pool | Place::Listener => true,
        });
        Some(self).filter(|known| !known.0.is_empty())
    }

    /// Whether it is so of this kind. A quota may be of the whole project, so it matters not where.
    fn is_of_kind(&self, place: Place) -> bool {
        self.0.iter().any(|known| known.is_like(place))
    }
}

/// Whether something went to make room, and there was none after it: then nothing more is to go. `None` if a step says nothing
/// about it, which was made, or met a limit, or neither. `before` is what was refused before the wave of the step: where there was no room,
/// only what makes some is planned.
pub(crate) fn is_still_full(
    before: &Refusals,
    step: &CloudStep,
    (is_made, is_limit): (bool, bool),
) -> Option<(Place, bool)> {
    let place = Place::of(step)?;
    let is_told = match place {
        Place::Member(_) => has_no(before, place),
        Place::Pool => step.replaces(),
        Place::Listener => step.makes_room(),
    };
    (is_made || is_told && is_limit).then_some((place, !is_made))
}

/// Something went: what had no room is tried again. A quota may be of the whole project, so it matters not where. With a pool
/// go its members and listeners.
pub(crate) fn gone(refusals: &mut Refusals, step: &CloudStep) {
    let Some(left) = Place::left_by(step) else {
        return;
    };
    let is_of_kind =
        |step: &CloudStep| left == Place::Pool || Place::of(step).is_some_and(|place| place.is_like(left));
    refusals.lift(|refused, why| why.is_limit && refused != step && is_of_kind(refused));
}

/// What is known of the room there.
pub(crate) fn room(refusals: &Refusals, full: &StillFull, place: Place) -> Room {
    match has_no(refusals, place) {
        false => Room::Free,
        true if full.is_of_kind(place) => Room::StillFull,
        true => Room::Full,
    }
}

/// Whether a quota leaves no room there.
pub(crate) fn has_no(refusals: &Refusals, place: Place) -> bool {
    let mut all = refusals.iter();
    all.any(|(step, why)| why.is_limit && Place::taken_by(step) == Some(place))
}

/// Whether just this was refused, wherever a member is probed. A creation that a quota refuses is tried again where something
/// goes for it, but not if something went for it already.
pub(crate) fn has(refusals: &Refusals, asked: &CloudStep) -> bool {
    let may_come = |step: &CloudStep, why: &Refusal| why.is_limit && Place::taken_by(step).is_some();
    let mut all = refusals.iter();
    all.any(|(step, why)| !may_come(step, why) && step.asks_for_the_same(asked))
}

/// Whether a member was refused, in whichever pool: all pools have members of the same nodes.
pub(crate) fn has_member(refusals: &Refusals) -> bool {
    !those(refusals, |place| matches!(place, Place::Member(_))).is_empty()
}

/// Why ports are not served: pools are missing, or listeners.
pub(crate) fn of_ports(refusals: &Refusals) -> Option<Refusal> {
    let of_pools = those(refusals, |place| place == Place::Pool);
    Refusal::all(
        of_pools
            .into_iter()
            .chain(those(refusals, |place| place == Place::Listener)),
    )
}

/// Why members are missing, or are there that nobody wants.
pub(crate) fn of_members(refusals: &Refusals) -> Option<Refusal> {
    let is_removed = refusals.iter().filter(|(step, _)| step.removes());
    let missing = those(refusals, |place| matches!(place, Place::Member(_)));
    Refusal::all(missing.into_iter().chain(is_removed.map(|(_, why)| why)))
}

/// Whether something of a member failed.
pub(crate) fn has_failed_member(refusals: &Refusals) -> bool {
    let mut all = refusals.iter();
    all.any(|(step, why)| why.by.is_failure() && step.is_of_member())
}

/// Whether a creation failed or was refused before, and is tried once more.
pub(crate) fn is_tried_again(refusals: &Refusals, asked: &CloudStep) -> bool {
    let mut all = refusals.tried_again();
    all.any(|(step, why)| why.by.is_failure() && step.asks_for_the_same(asked))
}

/// Why attributes are not changed and monitors are missing: once for each kind, on however many parts.
pub(crate) fn of_attributes(refusals: &Refusals) -> Option<Refusal> {
    let is_it = |step: &CloudStep| step.changes_attribute() || step.is_first_monitor();
    let changes = refusals.iter().filter(|(step, _)| is_it(step));
    let mut told = BTreeSet::new();
    let reasons = changes
        .filter(|(step, _)| told.insert(step.label().split('(').next().map(ToOwned::to_owned)))
        .map(|(_, why)| why);
    Refusal::all(reasons)
}

/// Why these were not created, in an order that does not depend on when it was tried.
fn those(refusals: &Refusals, is_it: impl Fn(Place) -> bool) -> Vec<&Refusal> {
    let all = refusals.iter();
    let mut those: Vec<&Refusal> = all
        .filter(|(step, _)| Place::of(step).is_some_and(&is_it))
        .map(|(_, why)| why)
        .collect();
    those.sort_by_key(|why| &why.reason);
    those
}
