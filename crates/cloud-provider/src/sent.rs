//! Creations that were sent: a list may show late what came of them, and the answer may have been lost.
//!
//! The session holds the same creation back for a while, in which further looks may find the object. So nothing is made twice because
//! its answer did not come, said that the cloud had failed, or was followed by a list that is behind.

use std::time::Duration;

use jiff::Timestamp;

use crate::Kept;
use crate::refusals::pause;

/// The longest time for which a creation is held back.
const LONGEST: Duration = Duration::from_secs(120);

/// A creation that was sent.
#[derive(Debug)]
struct Sent<S> {
    step: S,
    /// How often, without a reconcile that settled.
    times: u32,
    /// When a later reconcile began to look for what came of it.
    sought: Option<Timestamp>,
}

/// What was created for each Service, by its UID, since its last reconcile that settled.
#[derive(Debug)]
pub(crate) struct SentBook<S>(Kept<String, Vec<Sent<S>>>);

impl<S> Default for SentBook<S> {
    fn default() -> Self {
        Self(Kept::default())
    }
}

impl<S: Clone> SentBook<S> {
    /// A creation was sent, and was not refused.
    pub(crate) fn note(&self, uid: &String, step: &S, is_same: impl Fn(&S) -> bool) {
        self.0.with(uid, |all| {
            let all = all.get_or_insert_default();
            let before = all.iter().position(|one| is_same(&one.step));
            let times = before.map_or(0, |at| all.swap_remove(at).times).saturating_add(1);
            let (step, sought) = (step.clone(), None);
            all.push(Sent { step, times, sought });
        });
    }

    /// What is held back in a reconcile that begins now, and for how long. A clock that was set back ends it.
    pub(crate) fn of(&self, uid: &String, now: Timestamp) -> Vec<(S, Duration)> {
        self.0.with(uid, |all| {
            let left = |one: &mut Sent<S>| {
                let since = *one.sought.get_or_insert(now);
                let passed = Duration::try_from(now.duration_since(since)).ok()?;
                let left = pause(one.times, LONGEST).checked_sub(passed)?;
                Some((one.step.clone(), left))
            };
            all.iter_mut().flatten().filter_map(left).collect()
        })
    }

    /// The reconcile settled: everything is there.
    pub(crate) fn forget(&self, uid: &String) {
        self.0.with(uid, |all| all.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_creation_is_held_back_from_the_next_look_on_for_longer_each_time_and_until_all_is_settled() {
        let book = SentBook::default();
        let uid = "u-1".to_owned();
        let left = |second| {
            let held = book.of(&uid, Timestamp::from_second(second).unwrap());
            held.iter().map(|(_, left)| left.as_secs()).collect::<Vec<_>>()
        };
        book.note(&uid, &"a", |known| *known == "a");
        assert_eq!(
            (left(1_000), left(1_003), left(1_006)),
            (vec![5], vec![2], vec![])
        );
        book.note(&uid, &"a", |known| *known == "a");
        assert_eq!((left(2_000), left(1_000)), (vec![10], vec![]));
        (0..9).for_each(|_| book.note(&uid, &"a", |known| *known == "a"));
        assert_eq!(left(3_000), [120]);
        book.forget(&uid);
        assert!(left(3_000).is_empty());
    }
}
