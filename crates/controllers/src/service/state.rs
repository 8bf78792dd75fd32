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

use super::tracked::Causes;

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
    /// It wrote to the cloud since the last full read.
    pub(super) is_unverified: bool,
}

/// A reconcile under way.
pub(super) type Session = Box<dyn Reconcile<ServiceFacts>>;

/// A reconcile that waits for the cloud.
pub(super) struct Parked<S = Session> {
    /// What it waits for.
    pub(super) reason: String,
    pub(super) session: S,
    pub(super) progress: Progress,
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
    /// What a sync goes on with that begins in this state: the reconcile that waits for the cloud, if it is to the same end and will
    /// do; else with what the one before it was for.
    pub(super) fn resume(
        self,
        is_removal: bool,
        will_do: impl FnOnce(&Parked<S>) -> bool,
    ) -> Result<Parked<S>, Progress> {
        let earlier = match self {
            Self::Waiting(parked, _) if parked.progress.is_removal == is_removal && will_do(&parked) => {
                return Ok(parked);
            }
            Self::Waiting(parked, _) => Some(parked.progress),
            // Each try of a removal is announced for itself.
            Self::Unfinished(progress) => Some(progress).filter(|_| !is_removal),
            Self::Resting | Self::Working(_) => None,
        };
        let to_this_end = earlier.filter(|earlier| earlier.is_removal == is_removal);
        Err(to_this_end.unwrap_or(Progress {
            is_removal,
            ..Progress::default()
        }))
    }
}

/// The machine, and how often in a row something moved under a sync.
pub(super) struct Work<S = Session> {
    state: State<S>,
    interruptions: Interruptions,
}

impl<S> Default for Work<S> {
    fn default() -> Self {
        Self {
            state: State::default(),
            interruptions: Interruptions::default(),
        }
    }
}

impl<S> Work<S> {
    /// A sync begins; gives the state before. Without a cause it only goes on with a reconcile that waited for the cloud.
    pub(super) fn begin(&mut self, kind: ReconcileKind, causes: Causes) -> State<S> {
        let begun = match &self.state {
            State::Waiting(_, begun) if causes.is_empty() => *begun,
            _ => (kind, Instant::now()),
        };
        std::mem::replace(&mut self.state, State::Working(begun))
    }

    /// The reconcile under way.
    pub(super) fn begun(&self) -> Option<Begun> {
        match &self.state {
            State::Working(begun) => Some(*begun),
            _ => None,
        }
    }

    /// It has settled, or is needed no longer.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }

    /// The cloud is busy with it.
    pub(super) fn wait(&mut self, parked: Parked<S>) {
        if let State::Working(begun) = self.state {
            self.state = State::Waiting(parked, begun);
        }
    }

    /// Something moved under it; `version` is what the cache shows now.
    pub(super) fn interrupt(&mut self, progress: Progress, version: Option<&str>) -> Interruption {
        self.state = State::Unfinished(progress);
        self.interruptions.add(version)
    }

    /// It failed.
    pub(super) fn fail(&mut self, progress: Progress) {
        let state = State::Unfinished(progress);
        let interruptions = Interruptions::default();
        *self = Self { state, interruptions };
    }

    /// The Service vanished.
    pub(super) fn vanish(&mut self) {
        if matches!(self.state, State::Waiting(..)) {
            self.state = State::Resting;
        }
    }

    /// A process before this one began to make the balancer, and said so.
    pub(super) fn was_begun_before(&mut self) {
        if self.is_resting() {
            self.state = State::Unfinished(Progress {
                is_announced: true,
                ..Progress::default()
            });
        }
    }

    /// Whether nothing is begun.
    pub(super) fn is_resting(&self) -> bool {
        matches!(self.state, State::Resting)
    }

    /// Whether somebody is to be told of the interruptions: a question brought nothing new either, or they have no end.
    pub(super) fn is_told(&self) -> bool {
        let Interruptions { count, outdated, .. } = self.interruptions;
        outdated >= 2 || count > Interruptions::MOST
    }

    /// Whether the next sync gives way to changes no more. A Service that changes faster than its cloud can be looked at
    /// would never be served, nor let go: its newest change comes after the one that is being worked on, as in upstream.
    pub(super) fn insists(&self) -> bool {
        self.interruptions.count >= Interruptions::SOME
    }

    /// Whether a newer version of the Service than the one that a write of it was refused for ends the wait. Whoever writes without
    /// end is not followed at each step.
    pub(super) fn waits_for_news(&self) -> bool {
        matches!(self.state, State::Unfinished(_))
            && (1..=Interruptions::MOST).contains(&self.interruptions.count)
    }
}

/// Syncs in a row that something moved under.
#[derive(Default)]
pub(super) struct Interruptions {
    count: u32,
    /// Those of them in a row that brought nothing new.
    outdated: u32,
    /// The version of the Service that the cache showed after the last of them.
    version: Option<String>,
}

/// What an interruption tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interruption {
    /// The watch will show in a moment what moved.
    Passing,
    /// The watch has had that moment, and shows nothing new.
    Outdated,
    /// There is always something new. It counts as a failure.
    Endless,
}

impl Interruptions {
    /// In a row, after which they have no end.
    const MOST: u32 = 10;
    /// In a row, after which a sync is brought to its end all the same.
    const SOME: u32 = 3;

    /// There was another one; `version` is what the cache shows now.
    pub(super) fn add(&mut self, version: Option<&str>) -> Interruption {
        let is_known = self.count > 0 && version.is_some() && self.version.as_deref() == version;
        self.count = self.count.saturating_add(1);
        self.outdated = if is_known { self.outdated + 1 } else { 0 };
        self.version = version.map(str::to_owned);
        if self.count > Self::MOST {
            Interruption::Endless
        } else if is_known {
            Interruption::Outdated
        } else {
            Interruption::Passing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_of(work: &Work<()>) -> &'static str {
        match &work.state {
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
        type Event = fn(&mut Work<()>);
        let begin: Event = |work| drop(work.begin(ReconcileKind::Ensure, Causes::CHANGED));
        let wait: Event = |work| work.wait(parked(false));
        let interrupt: Event = |work| {
            work.interrupt(progress(false), Some("5"));
        };
        let fail: Event = |work| work.fail(progress(false));
        let (rest, vanish): (Event, Event) = (Work::rest, Work::vanish);
        let was_begun: Event = Work::was_begun_before;
        for (events, state, waits_for_news) in [
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
            let mut work = Work::<()>::default();
            events.iter().for_each(|event| event(&mut work));
            assert_eq!(state_of(&work), state, "after {} events", events.len());
            assert_eq!(work.begun().is_some(), state == "working");
            assert_eq!(work.is_resting(), state == "resting");
            assert_eq!(work.waits_for_news(), waits_for_news);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reconcile_lasts_from_its_first_sync_on_and_begins_anew_with_a_cause() {
        let mut work = Work::<()>::default();
        work.begin(ReconcileKind::Update, Causes::NODES);
        let first = work.begun();
        tokio::time::advance(std::time::Duration::from_secs(9)).await;
        work.wait(parked(false));
        work.begin(ReconcileKind::Ensure, Causes::default());
        assert_eq!(work.begun(), first);
        work.wait(parked(false));
        work.begin(ReconcileKind::Ensure, Causes::CHANGED);
        assert_ne!(work.begun(), first);
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

    #[test]
    fn a_version_that_was_refused_before_is_outdated() {
        let mut work = Work::<()>::default();
        assert!(!work.waits_for_news());
        let told = [Some("5"), Some("6"), Some("6"), None, None]
            .map(|version| work.interrupt(progress(false), version));
        use Interruption::{Outdated, Passing};
        assert_eq!(told, [Passing, Passing, Outdated, Passing, Passing]);
        assert!(work.waits_for_news() && work.insists());
        work.fail(progress(false));
        assert!(!work.waits_for_news() && !work.insists());
    }

    #[test]
    fn who_writes_without_end_is_not_followed() {
        let mut work = Work::<()>::default();
        let told: Vec<Interruption> = (0..12)
            .map(|version| work.interrupt(progress(false), Some(&version.to_string())))
            .collect();
        assert!(told[..10].iter().all(|told| *told == Interruption::Passing));
        assert_eq!(told[10..], [Interruption::Endless; 2]);
        assert!(!work.waits_for_news() && work.is_told());
    }
}
