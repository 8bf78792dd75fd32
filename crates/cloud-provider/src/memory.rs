//! What a reconcile remembers of itself, beside what it observed.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use bowline_plan::{Refusal, RefusedBy, Step, refusal};
use jiff::Timestamp;

use crate::sent::Awaited;
use crate::{Creation, Refusals};

/// The shortest and the longest time between two looks for what was created and is not shown.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What a reconcile has seen: its last observation, and what it remembers of itself. It reads like the observation.
#[derive(Debug)]
pub struct Seen<O, T = (), S = ()> {
    /// What the cloud said.
    pub observed: O,
    /// What the reconcile remembers.
    pub memory: Memory<T, S>,
}

impl<O, T, S> Deref for Seen<O, T, S> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.observed
    }
}

impl<O, T, S> DerefMut for Seen<O, T, S> {
    fn deref_mut(&mut self) -> &mut O {
        &mut self.observed
    }
}

/// What a session remembers of its own reconcile: how often it looked and how long it waited, which ids it made up, and in
/// `own` what the provider adds. An observation then holds facts only.
///
/// It begins anew with each reconcile, so nothing may depend on it that another process would have to know. What is worth
/// remembering longer is [`Kept`](crate::Kept).
#[derive(Debug)]
pub struct Memory<T = (), S = ()> {
    looks: usize,
    /// How long the plans asked to wait in all.
    waited: Duration,
    /// How much of that was before the last new wait.
    waited_before: Duration,
    /// What the last plan asked to wait for.
    asked: Duration,
    made_up: u32,
    /// The steps that the cloud took, as numbers.
    taken: BTreeSet<u64>,
    /// How often it took those again that it had taken before, and how long the plans had asked to wait by then.
    taken_again: Vec<(S, u32, Duration)>,
    /// When the last answer to a write came.
    pub(crate) answered: Option<Timestamp>,
    /// How many writes got no answer and hold up nothing.
    unheard: usize,
    /// Whether a call had no answer when the reconcile began, so that removals come last.
    pub(crate) is_unanswered: bool,
    /// Why no removal is made before all else is done.
    pub(crate) no_removals: Option<Refusal>,
    /// Writes that are held back because the cloud refused them. The session notes what is refused in this reconcile.
    pub refusals: Refusals<S>,
    /// Creations that were sent in earlier reconciles, as they were when this one began.
    pub(crate) sent: Vec<Awaited>,
    /// The same for what an earlier process may have created.
    pub(crate) inherited: Duration,
    /// What the provider remembers: what it wrote, how far it is.
    pub own: T,
}

impl<T: Default, S> Default for Memory<T, S> {
    fn default() -> Self {
        Self {
            looks: 0,
            waited: Duration::ZERO,
            waited_before: Duration::ZERO,
            asked: Duration::ZERO,
            made_up: 0,
            taken: BTreeSet::new(),
            taken_again: Vec::new(),
            answered: None,
            unheard: 0,
            is_unanswered: false,
            no_removals: None,
            refusals: Refusals::default(),
            sent: Vec::new(),
            inherited: Duration::ZERO,
            own: T::default(),
        }
    }
}

impl<T, S> Memory<T, S> {
    /// How often was looked again since the reconcile began, or since the last [new wait](Self::new_wait).
    #[must_use]
    pub fn looks(&self) -> usize {
        self.looks
    }

    /// How long the plans asked to wait since then, in all.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited - self.waited_before
    }

    /// How long the plans asked to wait since the reconcile began, in all. What a look showed first when that was less has lasted for
    /// the difference, whatever was waited for meanwhile.
    #[must_use]
    pub fn waited_in_all(&self) -> Duration {
        self.waited
    }

    /// How long to wait before the next look for what came of a creation. `None`: it was not sent, or may be sent again.
    pub(crate) fn sought(&self, creation: Creation) -> Option<Duration> {
        let mut those = self.sent.iter().filter(|sent| sent.creation == creation);
        those.find_map(|sent| self.look_within(sent.before_another))
    }

    /// How long to wait before the next look for what came of the creation of the [root](Creation::is_root), where all is removed and nobody
    /// looks after that. `None`: it was not sent, or nothing comes of it any more.
    pub fn sought_to_the_end(&self) -> Option<Duration> {
        let mut roots = self.sent.iter().filter(|sent| sent.creation.is_root());
        roots.find_map(|sent| self.look_within(sent.before_the_end))
    }

    /// The same for what an earlier process may have created. Where a write to Kubernetes comes before the creation, the plan asks; else
    /// [`Creation::is_root`] says which step waits.
    pub fn sought_as_inherited(&self) -> Option<Duration> {
        self.look_within(self.inherited)
    }

    /// Whether it is, or was at the beginning of the reconcile.
    #[must_use]
    pub fn inherits(&self) -> bool {
        !self.inherited.is_zero()
    }

    /// How long to wait before the next look for something that was held back for so long when the reconcile began; `None`: no longer.
    fn look_within(&self, held_back: Duration) -> Option<Duration> {
        let (shortest, longest) = LOOKS;
        let left = held_back
            .checked_sub(self.waited)
            .filter(|left| !left.is_zero())?;
        Some((left / 2).clamp(shortest, longest).min(left))
    }

    /// How long to wait before the next look.
    #[must_use]
    pub fn pause(&self, pauses: Pauses) -> Duration {
        let Pauses(table) = pauses;
        let micros = table.get(self.looks).or(table.last());
        Duration::from_micros(micros.copied().unwrap_or_default())
    }

    /// What was waited for is over: looks and time are counted from here.
    pub fn new_wait(&mut self) {
        (self.looks, self.waited_before) = (0, self.waited);
    }

    /// A number for an id that no object has: another one each time.
    pub fn made_up(&mut self) -> u32 {
        self.made_up += 1;
        self.made_up
    }

    /// How many writes of this reconcile got no answer, and are told as [refusals](crate::Reconciler::refusal_of): each took as long as an
    /// answer is waited for.
    #[must_use]
    pub fn unheard(&self) -> usize {
        self.unheard
    }

    /// One more.
    pub(crate) fn add_unheard(&mut self) {
        self.unheard += 1;
    }

    /// The plan asks to wait for so long before the next look.
    pub(crate) fn asked_to_wait(&mut self, after: Duration) {
        self.asked = after;
    }

    /// A look that is not the first begins.
    pub(crate) fn look_again(&mut self) {
        self.looks += 1;
        self.waited += std::mem::take(&mut self.asked);
    }
}

/// How long to wait before a write is made the third time in one reconcile, the fourth and the fifth: a list that is late may not show it yet.
/// After the last one it is undone each time.
const KEPT: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(10),
];

impl<T, S: Step + Clone> Memory<T, S> {
    /// The cloud took a step.
    pub(crate) fn took(&mut self, step: &S, is_same: impl Fn(&S) -> bool) {
        if self.taken.insert(number(step)) {
            return;
        }
        let waited = self.waited;
        match self.taken_again.iter_mut().find(|(known, ..)| is_same(known)) {
            Some((_, times, at)) => (*times, *at) = (*times + 1, waited),
            None => self.taken_again.push((step.clone(), 1, waited)),
        }
    }

    /// Whether the cloud took no step twice.
    pub(crate) fn is_fresh(&self) -> bool {
        self.taken_again.is_empty()
    }

    /// How long to wait before the next look, if a step is to be made once more that the cloud has taken several times.
    pub(crate) fn rests(&self, is_same: impl Fn(&S) -> bool) -> Option<Duration> {
        let (_, again, at) = self.taken_again.iter().find(|(known, ..)| is_same(known))?;
        let pause = KEPT.get(*again as usize - 1)?;
        pause
            .checked_sub(self.waited - *at)
            .filter(|left| !left.is_zero())
    }

    /// Why a step is not made once more: the cloud took it, and somebody undoes it each time. One that was refused for that before is made
    /// once.
    pub(crate) fn undone(&self, step: &S, is_same: impl Fn(&S) -> bool) -> Option<Refusal> {
        let mut again = self.taken_again.iter().filter(|(known, ..)| is_same(known));
        let times = again.next().map_or(1, |(_, again, _)| *again as usize + 1);
        let mut before = self.refusals.tried_again();
        let was_undone = before.any(|(known, why)| why.by == RefusedBy::Undone && is_same(known));
        let limit = if was_undone { 1 } else { KEPT.len() + 2 };
        (self.taken.contains(&number(step)) && times >= limit).then(|| {
            let (label, object) = (step.label(), step.object());
            let why = refusal!(
                "the cloud has done {label}, and it is undone each time";
                "find out who or what else changes {object}, such as another controller or a script, and have it stop; where nobody does, the cloud does not keep what is asked for: ask for a value that it keeps"
            );
            why.by(RefusedBy::Undone)
        })
    }
}

/// A step as a number. Others may have the same one.
fn number(step: &impl Step) -> u64 {
    let mut hash = DefaultHasher::new();
    (step.label(), step.object()).hash(&mut hash);
    hash.finish()
}

impl<T, S: Step> Memory<T, S> {
    /// Whether a [removal](Step::removes) is for a later reconcile: it failed or was refused, or the cloud left one unanswered, so that it is
    /// not waited for again and again.
    #[must_use]
    pub fn is_stuck(&self, step: &S) -> bool {
        self.stuck(step).is_some()
    }

    /// The same, and why.
    #[must_use]
    pub fn stuck(&self, step: &S) -> Option<&Refusal> {
        let of = |known: &S, why: &Refusal| match why.by {
            RefusedBy::Silence if self.unheard > 0 => known.removes(),
            _ => known.label() == step.label(),
        };
        let mut held = self.refusals.iter().filter(|(known, why)| of(known, why));
        let why = self
            .no_removals
            .as_ref()
            .or_else(|| held.next().map(|(_, why)| why));
        why.filter(|_| step.removes())
    }

    /// Takes such removals out of a wave: what comes after them follows.
    #[must_use]
    pub fn without_stuck(&self, mut wave: Vec<S>) -> Vec<S> {
        wave.retain(|step| !self.is_stuck(step));
        wave
    }
}

/// How long to wait before each look at something that the cloud does by itself.
#[derive(Debug, Clone, Copy)]
pub struct Pauses(&'static [u64]);

impl Pauses {
    /// Times in microseconds, one for each look; the last holds for all further ones.
    #[must_use]
    pub const fn of_micros(table: &'static [u64]) -> Self {
        Self(table)
    }

    /// How long until the next look at what began so long ago. All who wait for the same thing look at the same moments, so they share the
    /// reads, however late they came.
    #[must_use]
    pub fn next(self, age: Duration) -> Duration {
        let mut pauses = self.0.iter().copied().map(Duration::from_micros);
        let mut at = Duration::ZERO;
        let mut last = Duration::ZERO;
        while at <= age {
            last = pauses.next().unwrap_or(last);
            if last.is_zero() {
                return Duration::ZERO;
            }
            at += last;
        }
        at - age
    }
}

/// What a reconcile wrote, to be laid over lists that may be behind. Part of a provider's own [`Memory`] where the lists of a
/// cloud are late; objects have ids of type `K`.
#[derive(Debug, Clone)]
pub struct Recent<K, T> {
    /// In the order of the writes.
    written: Vec<(K, T)>,
    deleted: Vec<K>,
}

impl<K, T> Default for Recent<K, T> {
    fn default() -> Self {
        Self {
            written: Vec::new(),
            deleted: Vec::new(),
        }
    }
}

impl<K: PartialEq, T> Recent<K, T> {
    /// An object was created or changed, and is like this now.
    pub fn write(&mut self, id: K, now: T) {
        match self.written.iter_mut().find(|(known, _)| *known == id) {
            Some((_, known)) => *known = now,
            None => self.written.push((id, now)),
        }
    }

    /// An object was deleted.
    pub fn delete(&mut self, id: K) {
        self.forget(&id);
        self.deleted.push(id);
    }

    /// What was written of an object counts no more: a list that has it or not is right.
    pub fn forget(&mut self, id: &K) {
        self.written.retain(|(known, _)| known != id);
    }

    /// An object as it was written.
    #[must_use]
    pub fn written(&self, id: &K) -> Option<&T> {
        self.written
            .iter()
            .find(|(known, _)| known == id)
            .map(|(_, now)| now)
    }

    /// Whether an object was deleted.
    #[must_use]
    pub fn is_deleted(&self, id: &K) -> bool {
        self.deleted.contains(id)
    }

    /// Adds to a list what was written and is not in it yet, and takes off what was deleted. What the list has is left as the
    /// list shows it: whether it is as it was written is for the provider to say.
    pub fn lay_over(&self, listed: &mut Vec<T>, id: impl Fn(&T) -> &K)
    where
        T: Clone,
    {
        for (written, now) in &self.written {
            if listed.iter().all(|known| id(known) != written) {
                listed.push(now.clone());
            }
        }
        listed.retain(|one| !self.is_deleted(id(one)));
    }

    /// The same, and what the list has counts as it shows it from then on.
    pub fn lay_over_last(&mut self, listed: &mut Vec<T>, id: impl Fn(&T) -> &K)
    where
        T: Clone,
    {
        self.written
            .retain(|(written, _)| listed.iter().all(|known| id(known) != written));
        self.lay_over(listed, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_and_waits_are_counted_from_the_last_new_wait() {
        const PAUSES: Pauses = Pauses::of_micros(&[100_000, 1_000_000]);
        let mut memory = Memory::<(), ()>::default();
        let mut pauses = Vec::new();
        for _ in 0..3 {
            let pause = memory.pause(PAUSES);
            pauses.push(pause.as_millis());
            memory.asked_to_wait(pause);
            memory.look_again();
        }
        assert_eq!(pauses, [100, 1_000, 1_000]);
        assert_eq!(
            (memory.looks(), memory.waited()),
            (3, Duration::from_millis(2_100))
        );
        memory.new_wait();
        // Nobody waited for this look.
        memory.look_again();
        assert_eq!((memory.looks(), memory.waited()), (1, Duration::ZERO));
        assert_eq!(memory.waited_in_all(), Duration::from_millis(2_100));
        assert_ne!(memory.made_up(), memory.made_up());
    }

    #[test]
    fn all_who_wait_for_the_same_thing_look_at_the_same_moments() {
        const PAUSES: Pauses = Pauses::of_micros(&[1_000_000, 2_000_000, 10_000_000]);
        let next = |age| PAUSES.next(Duration::from_millis(age)).as_millis();
        assert_eq!([0, 400, 1_000, 2_500].map(next), [1_000, 600, 2_000, 500]);
        assert_eq!(
            [3_000, 12_999, 13_000, 95_000].map(next),
            [10_000, 1, 10_000, 8_000]
        );
    }

    #[test]
    fn a_list_that_is_behind_shows_what_was_written_and_nothing_that_was_deleted() {
        let mut recent = Recent::default();
        for object in [("new", 1), ("changed", 1), ("deleted", 1), ("new", 2)] {
            recent.write(object.0, object);
        }
        recent.delete("deleted");
        let mut listed = vec![("deleted", 0), ("changed", 0), ("other", 0)];
        recent.lay_over(&mut listed, |object| &object.0);
        assert_eq!(listed, [("changed", 0), ("other", 0), ("new", 2)]);
        assert_eq!(recent.written(&"changed"), Some(&("changed", 1)));
        recent.forget(&"new");
        recent.lay_over(&mut listed, |object| &object.0);
        assert_eq!((listed.len(), recent.written(&"new")), (3, None));
    }
}
