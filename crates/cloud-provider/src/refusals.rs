//! The one book of refusals: what a cloud definitely refused is held back until what is asked changes, or a pause is over.
//!
//! The session notes and holds back by itself (`erased.rs`), so a provider that does nothing is safe: a refused write is repeated
//! after longer and longer pauses, and all that does not lean on it goes on. A provider says which failures are no refusals
//! ([`Reconciler::refusal_of`](crate::Reconciler::refusal_of)), and its plan may ask [`Refusals`] in order to go on with other
//! parts. A new process begins with an empty book, and tries once more.

use std::time::Duration;

use bowline_plan::Refusal;
use jiff::Timestamp;

use crate::asker::pause;
use crate::sent::{Inherited, SentBook};
use crate::{Asker, Kept};

/// The longest time for which a write is held back.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// What a write was refused for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedFor {
    /// What it asks, which does not change by itself.
    WhatItAsks,
    /// What is in its way, or a failure of the cloud, and that may go without a word.
    WhatMayGo,
}

impl RefusedFor {
    /// The longest pause; the brief one is that of the schedule of Services.
    fn longest(self) -> Duration {
        match self {
            Self::WhatItAsks => LONGEST,
            Self::WhatMayGo => Duration::from_secs(5 * 60),
        }
    }
}

/// A write that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refused<S> {
    step: S,
    why: Refusal,
    /// How often in a row.
    times: u32,
    since: Timestamp,
    of: RefusedFor,
    /// Whether it stands whatever is asked: a removal that had no answer.
    is_of_removal: bool,
}

/// What is noted of a write that was refused or failed.
#[derive(Debug)]
pub(crate) struct News<'a, S> {
    pub(crate) step: &'a S,
    pub(crate) why: &'a Refusal,
    pub(crate) of: RefusedFor,
    pub(crate) is_of_removal: bool,
}

impl<S> Refused<S> {
    /// Whether the pause is not over. A clock that was set back ends it: it lasts no longer than it is long.
    fn is_held_back(&self, now: Timestamp) -> bool {
        let passed = Duration::try_from(now.duration_since(self.since));
        passed.is_ok_and(|passed| passed < pause(self.times, self.of.longest()))
    }
}

/// For how long a write is held back that was refused so many times in a row, wherever that is remembered.
#[must_use]
pub fn held_back_for(times: u32) -> Duration {
    pause(times, LONGEST)
}

/// What was refused to each Service, for as long as the process lives. A field of the provider; see
/// [`Reconciler::book`](crate::Reconciler::book). And what was created for each, and may not be listed yet.
#[derive(Debug)]
pub struct RefusalBook<S> {
    refused: Kept<String, Page<S>>,
    pub(crate) sent: SentBook,
    pub(crate) inherited: Inherited,
}

#[derive(Debug)]
struct Page<S> {
    asked: u64,
    refused: Vec<Refused<S>>,
}

impl<S> Default for RefusalBook<S> {
    fn default() -> Self {
        Self {
            refused: Kept::default(),
            sent: Kept::default(),
            inherited: Inherited::default(),
        }
    }
}

impl<S: Clone> RefusalBook<S> {
    /// What is held back now.
    pub(crate) fn of(&self, asker: &Asker) -> Refusals<S> {
        self.refused.with(&asker.uid, |page| {
            let is_same = page.as_ref().is_some_and(|page| page.asked == asker.asked);
            let refused = page.iter().flat_map(|page| &page.refused);
            let refused = refused.filter(|one| is_same || one.is_of_removal && !asker.is_removal);
            let (held, over): (Vec<_>, Vec<_>) = refused.partition(|one| one.is_held_back(asker.now));
            let held = held.into_iter().map(|one| Held {
                step: one.step.clone(),
                why: one.why.clone(),
                unnoted: None,
            });
            Refusals {
                held: held.collect(),
                tried_again: over
                    .into_iter()
                    .filter(|one| one.of == RefusedFor::WhatItAsks || one.why.by.is_failure())
                    .map(|one| (one.step.clone(), one.why.clone()))
                    .collect(),
            }
        })
    }

    /// A write was refused.
    pub(crate) fn note(
        &self,
        asker: &Asker,
        News {
            step,
            why,
            of,
            is_of_removal,
        }: News<'_, S>,
        is_same: impl Fn(&S) -> bool,
    ) {
        self.refused.with(&asker.uid, |page| {
            let page = page.get_or_insert_with(|| Page {
                asked: asker.asked,
                refused: Vec::new(),
            });
            if page.asked != asker.asked {
                page.refused.retain(|one| one.is_of_removal);
                page.asked = asker.asked;
            }
            let before = page.refused.iter().position(|one| is_same(&one.step));
            let times = before.map_or(0, |at| page.refused.swap_remove(at).times);
            page.refused.push(Refused {
                step: step.clone(),
                why: why.clone(),
                times: times.saturating_add(1),
                since: asker.now,
                of,
                is_of_removal,
            });
        });
    }

    /// Something of the cloud was freed: what was refused to any Service for want of room, or of this very place, is held back no longer.
    pub fn room_was_made(&self) {
        self.refused.each(|page| {
            let is_in_the_way =
                |one: &Refused<S>| one.of == RefusedFor::WhatMayGo && !one.why.by.is_failure();
            let is_for_room = |one: &&mut Refused<S>| one.why.is_limit || is_in_the_way(one);
            let for_room = page.refused.iter_mut().filter(is_for_room);
            for_room.for_each(|one| one.since = Timestamp::MIN);
        });
    }

    /// These writes are refused no more.
    pub(crate) fn lift(&self, uid: &String, is_it: impl Fn(&S, &Refusal) -> bool) {
        self.refused.with(uid, |page| {
            if let Some(known) = page {
                known.refused.retain(|one| !is_it(&one.step, &one.why));
            }
            page.take_if(|page| page.refused.is_empty());
        });
    }
}

/// What is held back in a reconcile: what the book said when it began, and what was refused since. Part of its
/// [`Memory`](crate::Memory), for the plan to ask.
#[derive(Debug, Clone)]
pub struct Refusals<S> {
    held: Vec<Held<S>>,
    /// What was refused in earlier reconciles for what it asks, or failed, and is held back no more.
    tried_again: Vec<(S, Refusal)>,
}

#[derive(Debug, Clone)]
struct Held<S> {
    step: S,
    why: Refusal,
    /// As what the book is to note it; `None`: it has it, or is not to.
    unnoted: Option<RefusedFor>,
}

impl<S> Default for Refusals<S> {
    fn default() -> Self {
        Self {
            held: Vec::new(),
            tried_again: Vec::new(),
        }
    }
}

impl<S> Refusals<S> {
    /// All of them; in a plan by the labels of the steps.
    pub fn iter(&self) -> impl Iterator<Item = (&S, &Refusal)> {
        self.held.iter().map(|held| (&held.step, &held.why))
    }

    /// Whether nothing was refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Why the first of these writes was refused.
    pub fn first(&self, is_it: impl Fn(&S) -> bool) -> Option<&Refusal> {
        self.iter().find(|(step, _)| is_it(step)).map(|(_, why)| why)
    }

    /// The writes that were refused or failed in earlier reconciles, and may be tried once more.
    pub fn tried_again(&self) -> impl Iterator<Item = (&S, &Refusal)> {
        self.tried_again.iter().map(|(step, why)| (step, why))
    }

    /// Something changed by which these writes are worth another try in this reconcile, as room that was made. The book forgets
    /// them when they are taken.
    pub fn lift(&mut self, is_it: impl Fn(&S, &Refusal) -> bool) {
        self.held.retain(|held| !is_it(&held.step, &held.why));
    }

    /// A write was refused. The session says so by itself of what the answer to a write tells; a provider says it where a look tells,
    /// as of a job that the write began.
    pub fn add(&mut self, step: S, why: Refusal) {
        let unnoted = Some(RefusedFor::WhatItAsks);
        self.held.push(Held { step, why, unnoted });
    }

    /// A write was refused for what is in the way, or failed, and that may go without a word: it is tried again after five minutes at the
    /// latest.
    pub fn add_briefly(&mut self, step: S, why: Refusal) {
        let unnoted = Some(RefusedFor::WhatMayGo);
        self.held.push(Held { step, why, unnoted });
    }

    /// A write is held back in this reconcile, and not beyond: the state may move by then.
    pub fn hold(&mut self, step: S, why: Refusal) {
        let unnoted = None;
        self.held.push(Held { step, why, unnoted });
    }

    /// Holds back for now what failed before and may be tried once more, where this is so.
    pub(crate) fn hold_tried_again(&mut self, is_it: impl Fn(&S, &Refusal) -> bool)
    where
        S: Clone,
    {
        let again = self.tried_again.iter().filter(|(step, why)| is_it(step, why));
        self.held.extend(again.map(|(step, why)| Held {
            step: step.clone(),
            why: why.clone(),
            unnoted: None,
        }));
    }

    /// Puts all of them in a fixed order, so that what is told of several does not depend on which came first.
    pub(crate) fn sort_by_key(&mut self, key: impl Fn(&S) -> String) {
        self.held.sort_by_cached_key(|held| key(&held.step));
    }

    /// Whether the book does not have all of them.
    pub(crate) fn has_news(&self) -> bool {
        self.held.iter().any(|held| held.unnoted.is_some())
    }

    /// What the book does not have yet. It does then.
    pub(crate) fn unnoted(&mut self) -> impl Iterator<Item = (&S, &Refusal, RefusedFor)> {
        let held = self.held.iter_mut();
        held.filter_map(|held| Some((&held.step, &held.why, held.unnoted.take()?)))
    }
}

impl<S: PartialEq> Refusals<S> {
    /// Why just this write is held back.
    #[must_use]
    pub fn why(&self, step: &S) -> Option<&Refusal> {
        self.first(|refused| refused == step)
    }

    /// The steps that may be written, and why the first of the others is held back.
    #[must_use]
    pub fn hold_back(&self, steps: Vec<S>) -> (Vec<S>, Option<&Refusal>) {
        let why = steps.iter().find_map(|step| self.why(step));
        let steps = steps.into_iter().filter(|step| self.why(step).is_none());
        (steps.collect(), why)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bowline_plan::RefusedBy;

    use super::*;

    fn asker(asked: u64, second: i64) -> Asker {
        Asker {
            uid: "u-1".to_owned(),
            asked,
            is_removal: false,
            has_begun: false,
            is_unanswered: false,
            now: Timestamp::from_second(second).unwrap(),
        }
    }

    fn held(book: &RefusalBook<&'static str>, asker: &Asker) -> Vec<&'static str> {
        book.of(asker).iter().map(|(step, _)| *step).collect()
    }

    fn note(book: &RefusalBook<&'static str>, asker: &Asker, step: &'static str) {
        note_that(
            book,
            asker,
            (step, &Refusal::new("no")),
            RefusedFor::WhatItAsks,
            false,
        );
    }

    fn note_that(
        book: &RefusalBook<&'static str>,
        asker: &Asker,
        (step, why): (&'static str, &Refusal),
        of: RefusedFor,
        is_of_removal: bool,
    ) {
        let step = &step;
        let news = News {
            step,
            why,
            of,
            is_of_removal,
        };
        book.note(asker, news, |known| known == step);
    }

    #[test]
    fn the_same_is_held_back_for_longer_and_longer() {
        let pauses = [1, 2, 3, 9, 10, 100].map(|times| pause(times, LONGEST).as_secs());
        assert_eq!(pauses, [5, 10, 20, 1_280, 1_800, 1_800]);
        let book = RefusalBook::default();
        note(&book, &asker(1, 100), "a");
        assert_eq!(held(&book, &asker(1, 104)), ["a"]);
        assert!(held(&book, &asker(1, 105)).is_empty());
        let over = |second| book.of(&asker(1, second)).tried_again().count();
        assert_eq!(over(105), 1);
        note(&book, &asker(1, 105), "a");
        assert_eq!(over(114), 0);
        assert_eq!(held(&book, &asker(1, 114)), ["a"]);
        assert!(held(&book, &asker(1, 115)).is_empty());
    }

    #[test]
    fn room_that_was_made_ends_the_pauses_of_what_was_refused_for_want_of_it() {
        let book = RefusalBook::default();
        use RefusedBy::{Cloud, Failure};
        use RefusedFor::{WhatItAsks, WhatMayGo};
        for (step, is_limit, by, of) in [
            ("a", true, Cloud, WhatItAsks),
            ("b", false, Cloud, WhatItAsks),
            ("c", false, Cloud, WhatMayGo),
            ("d", false, Failure, WhatMayGo),
        ] {
            for second in [100, 105] {
                let why = Refusal::new("no").of_limit(is_limit).by(by);
                note_that(&book, &asker(1, second), (step, &why), of, false);
            }
        }
        book.room_was_made();
        assert_eq!(held(&book, &asker(1, 106)), ["b", "d"]);
        note(&book, &asker(1, 106), "a");
        assert_eq!(held(&book, &asker(1, 125)), ["a"], "its pauses grow on");
    }

    #[test]
    fn what_is_written_here_is_no_other_wish() {
        let asked = |field: &str, value: serde_json::Value| {
            let mut service = serde_json::json!({ "spec": { "loadBalancerIP": "192.0.2.1" } });
            service["spec"][field] = value;
            let service = serde_json::from_value(service).unwrap();
            Asker::of(&crate::ServiceFacts::alone(Arc::new(service)), &[]).asked
        };
        let before = asked("loadBalancerIP", serde_json::Value::Null);
        assert_eq!(asked("loadBalancerIP", "192.0.2.2".into()), before);
        assert_ne!(asked("externalTrafficPolicy", "Local".into()), before);
    }

    #[test]
    fn another_wish_lifts_all_refusals() {
        let book = RefusalBook::default();
        note(&book, &asker(1, 100), "a");
        assert!(held(&book, &asker(2, 100)).is_empty());
        note(&book, &asker(2, 100), "b");
        assert_eq!(held(&book, &asker(2, 100)), ["b"]);
        assert!(
            held(&book, &asker(1, 100)).is_empty(),
            "what was asked before is forgotten"
        );
    }

    /// It may take as long as an answer is waited for, and what is asked since is not to wait for that.
    #[test]
    fn a_removal_without_an_answer_is_held_back_whatever_is_asked_until_all_is_to_go() {
        let book = RefusalBook::default();
        let why = Refusal::new("no").by(RefusedBy::Silence);
        note_that(&book, &asker(1, 100), ("a", &why), RefusedFor::WhatMayGo, true);
        note(&book, &asker(2, 100), "b");
        assert_eq!(held(&book, &asker(2, 104)), ["a", "b"]);
        assert_eq!(held(&book, &asker(3, 104)), ["a"]);
        let end = Asker {
            is_removal: true,
            ..asker(4, 104)
        };
        assert!(held(&book, &end).is_empty());
        let mut later = book.of(&asker(3, 105));
        assert!(later.is_empty());
        later.hold_tried_again(|step, _| *step == "a");
        assert_eq!(later.iter().count(), 1);
    }

    #[test]
    fn a_write_that_was_taken_counts_anew_and_others_stay() {
        let book = RefusalBook::default();
        for second in [100, 105] {
            note(&book, &asker(1, second), "a");
            note(&book, &asker(1, second), "b");
        }
        book.lift(&"u-1".to_owned(), |step, _| *step == "a");
        assert_eq!(held(&book, &asker(1, 114)), ["b"]);
        note(&book, &asker(1, 114), "a");
        assert!(held(&book, &asker(1, 119)).is_empty());
    }

    #[test]
    fn a_clock_that_was_set_back_ends_the_pause() {
        let book = RefusalBook::default();
        note(&book, &asker(1, 100), "a");
        assert!(held(&book, &asker(1, 50)).is_empty());
    }

    #[test]
    fn what_a_provider_finds_refused_is_noted_once_and_what_it_holds_back_is_not() {
        let mut refusals = Refusals::default();
        refusals.add("a", Refusal::new("no"));
        refusals.hold("b", Refusal::new("not now"));
        let new: Vec<&str> = refusals.unnoted().map(|(step, ..)| *step).collect();
        assert_eq!((new, refusals.unnoted().count()), (vec!["a"], 0));
        assert!(refusals.why(&"a").is_some() && refusals.why(&"b").is_some());
    }

    #[test]
    fn steps_that_were_refused_are_split_off() {
        let mut refusals = Refusals::default();
        refusals.add("b", Refusal::new("quota").of_limit(true));
        let (steps, why) = refusals.hold_back(vec!["a", "b", "c"]);
        assert_eq!(
            (steps, why),
            (vec!["a", "c"], Some(&Refusal::new("quota").of_limit(true)))
        );
        refusals.lift(|_, why| why.is_limit);
        assert!(refusals.is_empty());
    }
}
