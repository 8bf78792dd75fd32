//! Where the work on one Service has got to: one machine of states.
//!
//! | it is | what happens | it is then |
//! | --- | --- | --- |
//! | whatever | a sync begins | working |
//! | working | it has settled, or the Service needs us no longer | resting |
//! | working | the cloud is busy | waiting: a sync without another cause goes on with this reconcile |
//! | working | something moved under it | unfinished: the next sync begins anew, with its causes |
//! | working | it failed | unfinished, and no interruption counts any more |
//! | waiting | the Service vanishes | resting |
//! | resting | the Service is new here, and a process before this one began | unfinished |
//!
//! When a sync is tried again that something moved under (somebody else wrote the Service, or it is gone): nearly always the watch
//! shows in a moment what moved. If it does not, it is late, and tries would only meet the same refusal: then the Service is asked
//! for by its name, and the sync goes on as soon as there is a newer version.

use bowline_cloud_provider::{Reconcile, ReconcileKind, Service, ServiceFacts};
use tokio::time::Instant;

use super::causes::Causes;
use super::concurrency::Permit;

/// How far a sync has come; survives being parked.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Progress {
    /// The balancer was to go: what came of that says nothing to a sync that is to make it, nor the other way round.
    pub(super) is_removal: bool,
    /// All causes that the sync serves.
    pub(super) causes: Causes,
    /// Its beginning was said in an event.
    pub(super) is_announced: bool,
    /// It wrote to the cloud.
    pub(super) has_written: bool,
    /// Something that the Service seems to have stays, because it is, or may be, somebody else's.
    pub(super) keeps_something: bool,
    /// A call was given up, because something newer waited.
    pub(super) has_given_up: bool,
    /// It wrote to the cloud since the last full read.
    pub(super) is_unverified: bool,
    /// The syncs in a row before this one that something moved under.
    pub(super) interruptions: Interruptions,
}

/// A reconcile under way.
pub(super) type Session = Box<dyn Reconcile<ServiceFacts>>;

/// A reconcile that waits for the cloud.
pub(super) struct Parked<S = Session> {
    /// What it waits for.
    pub(super) reason: String,
    pub(super) session: S,
    pub(super) progress: Progress,
    /// Its permit, where it goes on before the permit's time is over.
    pub(super) permit: Permit,
}

impl Parked {
    /// Whether it is that of this very Service, and not of one that bore its name before.
    pub(super) fn is_about(&self, service: &Service) -> bool {
        self.session.facts().service.metadata.uid == service.metadata.uid
    }
}

/// What a reconcile is to do, and when it began.
pub(super) type Begun = (ReconcileKind, Instant);

#[derive(Default)]
pub(super) enum State<S = Session> {
    /// Nothing is begun.
    #[default]
    Resting,
    /// A sync is under way.
    Working(Begun),
    /// The cloud is busy with it.
    Waiting(Parked<S>, Begun),
    /// The last sync ended early. What it had come to: the next one does not announce it again.
    Unfinished(Progress),
}

impl<S> State<S> {
    /// A sync begins; gives the state before. Without a cause it only goes on with a reconcile that waited for the cloud.
    pub(super) fn begin(&mut self, kind: ReconcileKind, causes: Causes) -> Self {
        let begun = match self {
            Self::Waiting(_, begun) if causes.is_empty() => *begun,
            _ => (kind, Instant::now()),
        };
        std::mem::replace(self, Self::Working(begun))
    }

    /// What a sync goes on with that begins in this state: the reconcile that waits for the cloud, if it is to the same end and will
    /// do; else with what the one before it was for.
    pub(super) fn resume(
        self,
        is_removal: bool,
        will_do: impl FnOnce(&Parked<S>) -> bool,
    ) -> Result<Parked<S>, Progress> {
        let (earlier, is_said) = match self {
            Self::Waiting(parked, _) if parked.progress.is_removal == is_removal && will_do(&parked) => {
                return Ok(parked);
            }
            Self::Waiting(parked, _) => (parked.progress, true),
            // Each try of a removal is announced for itself.
            Self::Unfinished(progress) => (progress, !is_removal),
            Self::Resting | Self::Working(_) => return Err(Progress::of(is_removal)),
        };
        Err(match is_said && earlier.is_removal == is_removal {
            true => earlier,
            false => Progress {
                interruptions: earlier.interruptions,
                ..Progress::of(is_removal)
            },
        })
    }

    /// Takes what is left of its permit from a reconcile that waits for the cloud. Such a one goes on without another permit.
    pub(super) fn take_permit(&mut self) -> Option<Permit> {
        match self {
            Self::Waiting(parked, _) => Some(std::mem::replace(&mut parked.permit, Permit::NONE)),
            _ => None,
        }
    }

    /// The reconcile under way.
    pub(super) fn begun(&self) -> Option<Begun> {
        match self {
            Self::Working(begun) => Some(*begun),
            _ => None,
        }
    }

    /// The cloud is busy with it.
    pub(super) fn wait(&mut self, parked: Parked<S>) {
        if let Self::Working(begun) = *self {
            *self = Self::Waiting(parked, begun);
        }
    }

    /// The Service vanished.
    pub(super) fn vanish(&mut self) {
        if matches!(self, Self::Waiting(..)) {
            *self = Self::Resting;
        }
    }

    /// A process before this one began to make the balancer, and said so.
    pub(super) fn was_begun_before(&mut self) {
        if matches!(self, Self::Resting) {
            *self = Self::Unfinished(Progress {
                is_announced: true,
                ..Progress::of(false)
            });
        }
    }

    /// Whether a newer version of the Service than the one that a write of it was refused for ends the wait. Whoever writes without
    /// end is not followed at each step.
    pub(super) fn waits_for_news(&self) -> bool {
        matches!(self, Self::Unfinished(progress) if (1..=MOST).contains(&progress.interruptions.count))
    }
}

impl Progress {
    /// Nothing yet.
    fn of(is_removal: bool) -> Self {
        Self {
            is_removal,
            ..Self::default()
        }
    }
}

/// Interruptions in a row, after which they have no end.
const MOST: u32 = 10;

/// In a row, after which a sync is brought to its end all the same.
const SOME: u32 = 3;

/// Syncs in a row that something moved under.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Interruptions {
    count: u32,
    /// Those of them in a row that brought nothing new.
    outdated: u32,
    /// The version of the Service that the cache showed after the last of them.
    version: Option<u64>,
}

impl Interruptions {
    /// There was another one; `version` is what the cache shows now.
    pub(super) fn add(&mut self, version: Option<u64>) {
        let is_known = self.count > 0 && version.is_some() && self.version == version;
        self.count = self.count.saturating_add(1);
        self.outdated = if is_known { self.outdated + 1 } else { 0 };
        self.version = version;
    }

    /// The watch will show in a moment what moved.
    pub(super) fn is_passing(self) -> bool {
        self.outdated == 0 && self.count <= MOST
    }

    /// The watch has had that moment, and shows nothing new.
    pub(super) fn is_outdated(self) -> bool {
        self.outdated > 0 && self.count <= MOST
    }

    /// Whether somebody is to be told: a question brought nothing new either, or it has no end.
    pub(super) fn is_told(self) -> bool {
        self.outdated >= 2 || self.count > MOST
    }

    /// Whether the next sync gives way to changes no more. A Service that changes faster than its cloud can be looked at
    /// would never be served, nor let go: its newest change comes after the one that is being worked on, as in upstream.
    pub(super) fn are_to_end(self) -> bool {
        self.count >= SOME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(state: &State<()>) -> &'static str {
        match state {
            State::Resting => "resting",
            State::Working(_) => "working",
            State::Waiting(..) => "waiting",
            State::Unfinished(_) => "unfinished",
        }
    }

    fn parked(is_removal: bool) -> Parked<()> {
        Parked {
            reason: "busy".to_owned(),
            session: (),
            progress: progress(is_removal),
            permit: Permit::NONE,
        }
    }

    fn progress(is_removal: bool) -> Progress {
        Progress {
            is_removal,
            is_announced: true,
            ..Progress::default()
        }
    }

    #[test]
    fn each_event_leads_to_one_state() {
        type Event = fn(&mut State<()>);
        let begin: Event = |state| drop(state.begin(ReconcileKind::Ensure, Causes::CHANGED));
        let wait: Event = |state| state.wait(parked(false));
        let interrupt: Event = |state| *state = State::Unfinished(interrupted(&[Some(5)]));
        let fail: Event = |state| *state = State::Unfinished(progress(false));
        let (rest, vanish): (Event, Event) = (|state| *state = State::Resting, State::vanish);
        let was_begun: Event = State::was_begun_before;
        for (events, name, waits_for_news) in [
            (&[][..], "resting", false),
            (&[begin], "working", false),
            (&[begin, rest], "resting", false),
            (&[begin, wait], "waiting", false),
            (&[begin, wait, begin], "working", false),
            (&[begin, wait, vanish], "resting", false),
            (&[begin, vanish], "working", false),
            (&[begin, interrupt], "unfinished", true),
            (&[begin, interrupt, begin], "working", false),
            (&[begin, interrupt, vanish], "unfinished", true),
            (&[begin, interrupt, begin, wait], "waiting", false),
            (&[begin, interrupt, begin, fail], "unfinished", false),
            (&[begin, fail, begin, rest], "resting", false),
            (&[was_begun], "unfinished", false),
            (&[begin, was_begun], "working", false),
        ] {
            let mut state = State::default();
            events.iter().for_each(|event| event(&mut state));
            assert_eq!(state_of(&state), name, "after {} events", events.len());
            assert_eq!(state.begun().is_some(), name == "working");
            assert_eq!(state.waits_for_news(), waits_for_news);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_lasts_from_its_first_sync_on_and_begins_anew_with_a_cause() {
        let mut state = State::default();
        state.begin(ReconcileKind::Update, Causes::NODES);
        let first = state.begun();
        tokio::time::advance(std::time::Duration::from_secs(9)).await;
        state.wait(parked(false));
        state.begin(ReconcileKind::Ensure, Causes::default());
        assert_eq!(state.begun(), first);
        state.wait(parked(false));
        state.begin(ReconcileKind::Ensure, Causes::CHANGED);
        assert_ne!(state.begun(), first);
    }

    #[test]
    fn a_sync_goes_on_only_with_what_was_to_the_same_end() {
        for (was_removal, is_removal) in [(true, true), (true, false), (false, true), (false, false)] {
            let is_same = was_removal == is_removal;
            let begun = (ReconcileKind::Ensure, Instant::now());
            let waiting = || State::Waiting(parked(was_removal), begun);
            assert_eq!(waiting().resume(is_removal, |_| true).is_ok(), is_same);
            for (before, keeps) in [
                (waiting(), is_same),
                (State::Unfinished(progress(was_removal)), is_same && !is_removal),
            ] {
                let progress = before.resume(is_removal, |_| false).err().unwrap();
                assert_eq!((progress.is_removal, progress.is_announced), (is_removal, keeps));
            }
        }
    }

    /// What a sync has come to that something moved under, with these versions in the cache.
    fn interrupted(versions: &[Option<u64>]) -> Progress {
        let mut progress = progress(false);
        versions
            .iter()
            .for_each(|version| progress.interruptions.add(*version));
        progress
    }

    #[test]
    fn a_version_that_was_refused_before_is_outdated() {
        let versions = [Some(5), Some(6), Some(6), None, None];
        for (count, is_outdated) in [(1, false), (2, false), (3, true), (4, false), (5, false)] {
            let row = interrupted(&versions[..count]).interruptions;
            assert_eq!((row.is_outdated(), row.is_passing()), (is_outdated, !is_outdated));
            assert_eq!(row.are_to_end(), count >= 3);
        }
    }

    #[test]
    fn who_writes_without_end_is_not_followed() {
        for count in 1..12 {
            let versions: Vec<Option<u64>> = (0..count).map(Some).collect();
            let progress = interrupted(&versions);
            let row = progress.interruptions;
            assert_eq!((row.is_passing(), row.is_told()), (count <= 10, count > 10));
            let state = State::<()>::Unfinished(progress);
            assert_eq!(state.waits_for_news(), count <= 10);
        }
    }

    #[test]
    fn how_often_a_sync_was_interrupted_counts_for_the_next_one_whatever_its_end() {
        for is_removal in [false, true] {
            let next = State::<()>::Unfinished(interrupted(&[None; 3])).resume(is_removal, |_| false);
            assert!(next.err().unwrap().interruptions.are_to_end());
        }
    }
}
