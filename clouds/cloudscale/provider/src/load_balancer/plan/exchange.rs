//! What goes for what comes. Pools, their members and listeners have one rule: nothing that serves goes for something that cannot
//! come.

use crate::load_balancer::refused::Room;

/// How something that is there stands to something that is missing, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// The API may want no two of them: one goes back to back with the creation of the other.
    Twin,
    /// It serves what the missing one is to serve.
    Forerunner,
    /// It serves the same port, under another name.
    SamePort,
    /// It serves nothing that is wanted. If it goes, there may be room.
    Stranger,
}

/// When twins change places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twins {
    /// With all others.
    AtOnce,
    /// When nothing else is missing: the API may have refused what is missing when its twin was gone.
    Last,
    /// Not now: that was refused.
    Never,
}

/// Who serves for something that cannot come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stead {
    /// Its own forerunners, and nobody else.
    Forerunners,
    /// Whoever is there. With `is_one_kept`, somebody is who stays in any case.
    Anybody {
        /// Somebody stays in any case.
        is_one_kept: bool,
    },
}

/// Under which terms parts of one kind come and go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub(super) room: Room,
    pub(super) twins: Twins,
    pub(super) stead: Stead,
}

/// What comes, what goes for it, and what stays.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exchange<W, A> {
    /// What comes, in the order of what is missing, with what goes for it.
    pub(super) coming: Vec<(W, Option<(A, Fit)>)>,
    /// What cannot come now.
    pub(super) kept_out: Vec<W>,
    /// What is missing and waits, with the twin that serves on.
    pub(super) held: Vec<(W, A)>,
    /// What goes when everything is there that can come.
    pub(super) going: Vec<A>,
    /// What serves on for something that cannot come.
    pub(super) staying: Vec<A>,
}

impl<W: Copy, A: Copy> Exchange<W, A> {
    /// Compares what is missing with what is there and not wanted. `can_come` says whether the API has not refused it by itself.
    pub(super) fn new(
        terms: Terms,
        missing: &[W],
        surplus: &[A],
        can_come: impl Fn(W) -> bool,
        fit: impl Fn(W, A) -> Option<Fit>,
    ) -> Self {
        let mut left = surplus.to_vec();
        let twin = |wanted: &W| {
            let is_twin = |old: &A| fit(*wanted, *old) == Some(Fit::Twin);
            left.iter().position(is_twin).map(|index| left.remove(index))
        };
        let twins: Vec<Option<A>> = missing.iter().map(twin).collect();
        let has_twins = twins.iter().any(Option::is_some);
        let (mut coming, mut kept_out) = (Vec::new(), Vec::new());
        for (wanted, twin) in missing.iter().copied().zip(twins) {
            let old = match (twin, terms.room) {
                (Some(twin), _) => Some(Some((twin, Fit::Twin))),
                (None, _) if !can_come(wanted) => None,
                (None, Room::Free) => Some(None),
                (None, Room::Full) => {
                    nearest(&left, |old| fit(wanted, old)).map(|(index, fit)| Some((left.remove(index), fit)))
                }
                (None, Room::StillFull) => None,
            };
            match old {
                Some(old) => coming.push((wanted, old)),
                None => kept_out.push(wanted),
            }
        }
        let is_other = |(_, old): &(W, Option<(A, Fit)>)| !matches!(old, Some((_, Fit::Twin)));
        let is_held = match terms.twins {
            _ if terms.room == Room::StillFull => true,
            Twins::AtOnce => false,
            Twins::Last => !kept_out.is_empty() || coming.iter().any(is_other),
            Twins::Never => true,
        };
        let held = coming.extract_if(.., |it| is_held && !is_other(it));
        let held: Vec<(W, A)> = held.filter_map(|(wanted, old)| Some((wanted, old?.0))).collect();
        let is_served = match terms.stead {
            Stead::Forerunners => false,
            Stead::Anybody { is_one_kept } => is_one_kept || has_twins,
        };
        let serves = |old: &A| {
            let waiting = kept_out.iter().chain(held.iter().map(|(wanted, _)| wanted));
            let mut fits = waiting.filter_map(|wanted| fit(*wanted, *old));
            !is_served && fits.any(|fit| fit < Fit::Stranger)
        };
        let (staying, going) = left.iter().copied().partition(serves);
        Self {
            coming,
            kept_out,
            held,
            going,
            staying,
        }
    }
}

/// The first of those that fit best.
fn nearest<A: Copy>(all: &[A], fit: impl Fn(A) -> Option<Fit>) -> Option<(usize, Fit)> {
    let mut best: Option<(usize, Fit)> = None;
    for (index, old) in all.iter().enumerate() {
        let is_better = |fit: &Fit| best.is_none_or(|(_, other)| *fit < other);
        best = fit(*old).filter(is_better).map(|fit| (index, fit)).or(best);
        if best.is_some_and(|(_, fit)| fit <= Fit::Forerunner) {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests;
