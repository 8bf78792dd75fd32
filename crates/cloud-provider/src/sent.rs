//! Creations that were sent: a list may show late what came of them, and the answer may have been lost.
//!
//! The session holds the same creation back for a while, in which further looks may find the object. So nothing is made twice because
//! its answer did not come, said that the cloud had failed, or was followed by a list that is behind.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use crate::asker::pause;
use crate::{Asker, Kept};

/// The longest time for which a creation is held back.
const LONGEST: Duration = Duration::from_secs(120);

/// How many doublings longer a creation is held back that nobody says has failed: four times as long, 20 s at first.
const DOUBLINGS: u32 = 2;

/// How long a call of a process before this one may take effect yet: as long as one of this process that got no answer.
pub const OF_ANOTHER_PROCESS: Duration = Duration::from_secs(20);

/// When each Service was looked at first, by its UID, if an earlier process had begun with it: what that one sent last, nobody here
/// knows.
#[derive(Debug, Default)]
pub(crate) struct Inherited(Kept<String, Option<Timestamp>>);

impl Inherited {
    /// How long to look for what an earlier process may have created.
    pub(crate) fn held_back(&self, asker: &Asker) -> Duration {
        let first = self.0.with(&asker.uid, |first| {
            *first.get_or_insert_with(|| asker.has_begun.then_some(asker.now))
        });
        let passed = first.and_then(|first| Duration::try_from(asker.now.duration_since(first)).ok());
        passed.map_or(Duration::ZERO, |passed| OF_ANOTHER_PROCESS.saturating_sub(passed))
    }
}

/// What a step creates, as a number: the same for steps that create the same object, whatever goes for it. The steps themselves would be
/// the largest part of what is remembered of a Service in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Creation {
    asked: u64,
    is_root: bool,
}

impl Creation {
    /// What is asked for. Steps ask for the same if this reads the same.
    pub fn of(asked: &impl fmt::Debug) -> Self {
        let mut hash = DefaultHasher::new();
        format!("{asked:?}").hash(&mut hash);
        Self {
            asked: hash.finish(),
            is_root: false,
        }
    }

    /// Of the object that all others belong to, or not. Where an earlier process had begun with the Service, and nothing of it is found,
    /// that process may have sent just this: a new one looks for a while before it does.
    #[must_use]
    pub fn of_root(self, is_root: bool) -> Self {
        Self { is_root, ..self }
    }

    /// Whether it is of the object that all others belong to.
    #[must_use]
    pub fn is_root(self) -> bool {
        self.is_root
    }
}

/// A creation that was sent.
#[derive(Debug)]
pub(crate) struct Sent {
    creation: Creation,
    /// What came of it, as a number; `None`: no answer told.
    made: Option<u128>,
    /// How often, without a reconcile that settled.
    times: u32,
    /// When the last answer came, or was given up.
    since: Timestamp,
    has_failed: bool,
}

/// A creation that was sent, and may show up yet.
#[derive(Debug)]
pub(crate) struct Awaited {
    pub(crate) creation: Creation,
    /// How long it is looked for before it is sent again. Of two that come of it, one is removed then.
    pub(crate) before_another: Duration,
    /// How long where nobody looks after that, whatever the cloud said of it: what shows up later is left for ever.
    pub(crate) before_the_end: Duration,
}

/// What was created for each Service, by its UID, since its last reconcile that settled, as far as none that followed saw it.
pub(crate) type SentBook = Kept<String, Vec<Sent>>;

impl SentBook {
    /// A creation was sent, and was not refused. It has ended now. `has_failed`: the cloud says that it failed, which is the rule then, so
    /// the next one keeps to the schedule of a Service that fails.
    pub(crate) fn note(
        &self,
        uid: &String,
        (creation, made): (Creation, Option<u128>),
        (since, has_failed): (Timestamp, bool),
    ) {
        self.with(uid, |all| {
            let all = all.get_or_insert_default();
            let before = all.iter().position(|one| one.creation == creation);
            let times = before.map_or(0, |at| all.swap_remove(at).times).saturating_add(1);
            all.push(Sent {
                creation,
                made,
                times,
                since,
                has_failed,
            });
        });
    }

    /// Forgets what shows by now: if it is gone later, it was deleted.
    pub(crate) fn shown(&self, uid: &String, is_shown: impl Fn(u128) -> bool) {
        self.with(uid, |all| {
            let sent = all.iter_mut();
            sent.for_each(|sent| sent.retain(|one| !one.made.is_some_and(&is_shown)));
        });
    }

    /// What may show up yet in a reconcile that begins now. A clock that was set back ends it.
    pub(crate) fn awaited(&self, uid: &String, now: Timestamp) -> Vec<Awaited> {
        self.with(uid, |all| {
            let left = |one: &Sent| {
                let passed = Duration::try_from(now.duration_since(one.since)).ok()?;
                let left =
                    |doublings| pause(one.times.saturating_add(doublings), LONGEST).saturating_sub(passed);
                let before_the_end = left(DOUBLINGS);
                (!before_the_end.is_zero()).then(|| Awaited {
                    creation: one.creation,
                    before_another: if one.has_failed { left(0) } else { before_the_end },
                    before_the_end,
                })
            };
            all.iter().flatten().filter_map(left).collect()
        })
    }

    /// The reconcile settled: everything is there.
    pub(crate) fn forget(&self, uid: &String) {
        self.with(uid, |all| all.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_process_looks_for_a_while_for_what_the_one_before_may_have_created() {
        let asker = |has_begun, second| Asker {
            uid: "u-1".to_owned(),
            asked: 0,
            is_removal: false,
            has_begun,
            is_unanswered: false,
            now: Timestamp::from_second(second).unwrap(),
        };
        let inherited = Inherited::default();
        let left = [100, 115, 120, 90].map(|second| inherited.held_back(&asker(true, second)).as_secs());
        assert_eq!(left, [20, 5, 0, 0], "at last with a clock that was set back");
        // Here it began in this process.
        let inherited = Inherited::default();
        let left = [false, true].map(|has_begun| inherited.held_back(&asker(has_begun, 100)));
        assert_eq!(left, [Duration::ZERO; 2]);
    }

    #[test]
    fn a_creation_is_held_back_for_longer_each_time_and_until_all_is_settled() {
        let book = SentBook::default();
        let uid = "u-1".to_owned();
        let at = |second| Timestamp::from_second(second).unwrap();
        let left = |second| {
            let awaited = book.awaited(&uid, at(second));
            let left = awaited.iter().map(|it| it.before_another.as_secs());
            left.filter(|left| *left > 0).collect::<Vec<_>>()
        };
        let to_the_end = |second| {
            let awaited = book.awaited(&uid, at(second));
            awaited.first().map(|it| it.before_the_end.as_secs())
        };
        let end =
            |second, has_failed| book.note(&uid, (Creation::of(&"a"), Some(7)), (at(second), has_failed));
        let send = |second| end(second, true);
        send(1_000);
        // The schedule of a Service that fails has the same waits, so it is not slower for this.
        assert_eq!((left(1_002), left(1_005)), (vec![3], vec![]));
        assert_eq!((to_the_end(1_005), to_the_end(1_020)), (Some(15), None));
        send(1_005);
        assert_eq!((left(1_006), left(1_015)), (vec![9], vec![]));
        assert_eq!(left(900), Vec::<u64>::new(), "a clock that was set back");
        (0..9).for_each(|_| send(2_000));
        assert_eq!(left(2_000), [120]);
        book.forget(&uid);
        assert!(left(2_000).is_empty());
        end(3_000, false);
        assert_eq!(
            (left(3_019), left(3_020)),
            (vec![1], vec![]),
            "nobody says that it failed"
        );
        book.shown(&uid, |made| made == 8);
        assert_eq!(left(3_019), [1]);
        book.shown(&uid, |made| made == 7);
        assert_eq!(
            left(3_019),
            Vec::<u64>::new(),
            "who deletes it by then may make it again"
        );
    }
}
