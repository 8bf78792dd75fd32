//! Calls to the cloud that have no answer. What such a call does may come after what was asked for since, and undo it, or be left behind where
//! nobody looks. So a Service is looked at until the time limit of each has passed, and keeps its finalizer if one may create something.
//!
//! Such a call may also do something to others: an address that has moved on goes back to where it was to lead. Which Services go by the same
//! object, only the cloud's plan knows. So every Service is looked at again that has settled since the call began, or settles before its
//! time limit has passed: by then it may have gone by what is undone after that.
//!
//! They stand in the condition of the Service from the moment on that one is silent, so the next process knows of them, however this one
//! ends.

use std::time::Duration;

use bowline_cloud_provider::{OF_ANOTHER_PROCESS, Service, ServiceKey, facts};
use bowline_transport::patience::GivenUp;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::causes::Causes;
use super::{Key, ServiceController, lock};
use crate::trouble::{Late, Trouble};

/// How long to wait at least and at most before a look for what comes late.
const LOOKS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// How much later than it is may be told that a call takes effect: times are told in whole seconds, and clocks are set.
const MARGIN: SignedDuration = SignedDuration::from_secs(2);

/// A call without an answer.
struct Call {
    /// The step that it is of; `None`: the process before this one made it, and it is not known.
    step: Option<String>,
    /// When that was known, and its time limit.
    since: Instant,
    until: Instant,
    /// Something of it may be left where all else is removed.
    may_be_left: bool,
    /// Its answer is waited for.
    is_waited_for: bool,
}

/// The calls of one Service without an answer.
#[derive(Default)]
pub(super) struct Unanswered {
    calls: Vec<Call>,
    /// What was told of them last.
    told: Option<Late>,
    /// How many times in a row a call of a step, or of a look, was given up because something newer waited.
    given_up: GivenUp,
}

impl Unanswered {
    /// How much time a call of a step, or of a look, has in any case before it is given up: twice as much each time that it was given up, so
    /// that also a cloud that is that slow gets it done. Unless it is `in_vain`, as for a Service that goes.
    pub(super) fn patience(&self, step: &str, in_vain: bool) -> Duration {
        match in_vain {
            true => GivenUp::default().patience(step),
            false => self.given_up.patience(step),
        }
    }

    /// A call of a step is silent, and is waited for.
    pub(super) fn is_silent(&mut self, step: &str, until: Instant, may_be_left: bool) {
        self.calls.push(Call {
            step: Some(step.to_owned()),
            since: Instant::now(),
            until,
            may_be_left,
            is_waited_for: true,
        });
    }

    /// A step or a look has ended: its calls are waited for no more. Says whether one of them was told.
    pub(super) fn made(&mut self, step: &str, gave_up: bool) -> bool {
        self.given_up.made(step, gave_up);
        let is_of_step = |call: &Call| call.is_waited_for && call.step.as_deref() == Some(step);
        self.calls.retain(|call| !is_of_step(call));
        self.told
            .as_ref()
            .is_some_and(|told| told.steps.iter().any(|told| told == step))
    }

    /// A call that nobody waits for any more may take effect until then.
    pub(super) fn gave_up(&mut self, step: Option<&str>, until: Instant, may_be_left: bool) {
        let now = Instant::now();
        self.calls.retain(|call| call.until > now);
        self.calls.push(Call {
            step: step.map(str::to_owned),
            since: now,
            until,
            may_be_left,
            is_waited_for: false,
        });
    }

    /// The Service has settled: what was given up is not tried any more.
    pub(super) fn settled(&mut self) {
        self.given_up = GivenUp::default();
    }

    /// After which time to look for what comes late. `None`: nothing comes any more.
    pub(super) fn look(&self) -> Option<Duration> {
        self.look_for(|_| true)
    }

    /// The same where all is removed: what comes to be after the last look would belong to nobody.
    pub(super) fn look_for_what_is_left(&self) -> Option<Duration> {
        self.look_for(|call| call.may_be_left)
    }

    /// What has not come for long will hardly come in the next moment: what comes stands for a quarter of the time that it took to come.
    fn look_for(&self, is_meant: impl Fn(&Call) -> bool) -> Option<Duration> {
        let is_meant = |call: &Call| !call.is_waited_for && is_meant(call);
        let before = look_before(self.last(is_meant)?.until)?;
        let ages = self.calls.iter().filter(|call| is_meant(call));
        let age = ages.map(|call| call.since.elapsed()).min()?;
        Some(before.min((age / 4).max(LOOKS.0)))
    }

    /// What is told of these calls, if any of them may take effect yet.
    pub(super) fn told(&mut self, now: Timestamp) -> Option<Late> {
        self.told = self.to_tell(now);
        self.told.clone()
    }

    fn to_tell(&self, now: Timestamp) -> Option<Late> {
        let last = self.last(|_| true)?;
        let left = last.until.checked_duration_since(Instant::now())?;
        let left = SignedDuration::try_from(left)
            .ok()
            .filter(|left| left.is_positive())?;
        let steps = self.steps();
        let is_covered = |told: &&Late| {
            steps.iter().all(|step| told.steps.contains(step))
                && (left..=left + MARGIN).contains(&told.until.duration_since(now))
        };
        if let Some(told) = self.told.as_ref().filter(is_covered) {
            return Some(told.clone());
        }
        let until = now.checked_add(left).ok()?;
        Some(Late { until, steps })
    }

    /// The steps of the calls that may take effect yet, each once, that of the last one first.
    fn steps(&self) -> Vec<String> {
        let now = Instant::now();
        let mut calls: Vec<&Call> = self.calls.iter().filter(|call| call.until > now).collect();
        calls.sort_by_key(|call| std::cmp::Reverse(call.until));
        let mut steps: Vec<String> = Vec::new();
        for call in calls {
            let step = call.step.as_deref().unwrap_or(OF_BEFORE);
            if steps.iter().all(|known| known != step) {
                steps.push(step.to_owned());
            }
        }
        steps
    }

    /// Whether one of them may take effect yet.
    pub(super) fn may_come(&self) -> bool {
        self.since().is_some()
    }

    /// Since when one of them has no answer that may take effect yet.
    pub(super) fn since(&self) -> Option<Instant> {
        let now = Instant::now();
        let calls = self.calls.iter().filter(|call| call.until > now);
        calls.map(|call| call.since).min()
    }

    fn last(&self, is_meant: impl Fn(&Call) -> bool) -> Option<&Call> {
        self.calls
            .iter()
            .filter(|call| is_meant(call))
            .max_by_key(|call| call.until)
    }
}

/// Until when calls may take effect on what several Services go by.
#[derive(Default)]
pub(super) struct LateOfOthers {
    /// Calls of this process.
    until: Option<Instant>,
    /// Calls of the process before this one.
    of_another: Option<Instant>,
}

/// What stands for the step of a call of the process before this one.
const OF_BEFORE: &str = "a call of the process before this one";

/// How long to wait before the next look for what may come until then; `None`: that has passed. The last look comes after it.
fn look_before(end: Instant) -> Option<Duration> {
    let left = end.checked_duration_since(Instant::now())?;
    let (shortest, longest) = LOOKS;
    (!left.is_zero()).then(|| (left / 2).clamp(shortest, longest))
}

impl ServiceController {
    /// Expects what the process before this one has left under way: what the condition tells, and what it may have begun to create for a
    /// Service that goes and shows no address.
    pub(super) fn expect_late(&self, key: &ServiceKey, service: &Service, is_removal: bool) {
        if self.tracked(key, |tracked| tracked.is_planned) {
            return;
        }
        let told = facts::trouble(service).and_then(|it| Trouble::read(&it.message).late().cloned());
        let left = told.as_ref().and_then(|it| {
            let left = it.until.duration_since(self.ctx.kube.clock().now());
            Some(Duration::try_from(left).ok()?.min(facts::LATEST))
        });
        let is_begun = facts::has_finalizer(service) && facts::published_addresses(service).is_empty();
        let may_be_made = is_removal && is_begun;
        let left = left.max(may_be_made.then_some(OF_ANOTHER_PROCESS));
        if let Some(left) = left {
            let steps = told.iter().flat_map(|it| &it.steps);
            let mut steps: Vec<_> = steps
                .map(|step| Some(&**step).filter(|it| !Late::is_of_others(it)))
                .collect();
            if steps.is_empty() {
                steps.push(None);
            }
            let until = Instant::now() + left;
            self.tracked(key, |tracked| {
                for step in steps {
                    tracked.unanswered.gave_up(step, until, true);
                }
                tracked.unanswered.told.clone_from(&told); // as it stands, and no later
            });
            if told.is_some() {
                self.may_come_to_anybody(until);
            }
        }
    }

    /// A call was given up that changes what other Services may go by too. It was begun no sooner than that, and may take effect until then.
    pub(super) fn may_come_to_others(&self, begun: Instant, until: Instant) {
        {
            let mut late = lock(&self.late_of_others);
            late.until = late.until.max(Some(until));
        }
        if let Some(after) = look_before(until) {
            self.look_at_others(Some(begun), after);
        }
    }

    /// The same of a call of the process before this one, of which it is not known what it changes: each Service is looked at once, after
    /// its time limit.
    fn may_come_to_anybody(&self, until: Instant) {
        let is_news = {
            let mut late = lock(&self.late_of_others);
            let is_news = late.of_another < Some(until);
            late.of_another = late.of_another.max(Some(until));
            is_news
        };
        if is_news {
            self.look_at_others(None, until - Instant::now() + LOOKS.0);
        }
    }

    /// Has Services looked at again that have settled since then; `None`: ever.
    fn look_at_others(&self, since: Option<Instant>, after: Duration) {
        let mut tracked = lock(&self.tracked);
        let settled = tracked.iter_mut().filter(|it| it.1.has_settled_since(since));
        for (key, tracked) in settled {
            tracked.add_causes(Causes::VERIFY);
            self.queue.add_after(Key::Service(ServiceKey::clone(key)), after);
        }
    }

    /// After which time a Service that settles now is looked at again for that.
    pub(super) fn late_of_others(&self) -> Option<Duration> {
        let late = lock(&self.late_of_others);
        let left = late
            .of_another
            .and_then(|until| until.checked_duration_since(Instant::now()));
        let once = left.filter(|left| !left.is_zero()).map(|left| left + LOOKS.0);
        let looks = [late.until.and_then(look_before), once];
        looks.into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(s: u64) -> Option<Duration> {
        Some(Duration::from_secs(s))
    }

    #[test]
    fn a_step_has_more_time_each_time_that_it_was_given_up_in_a_row() {
        let mut unanswered = Unanswered::default();
        for (gave_up, times) in [(false, 1), (true, 2), (true, 4), (false, 1)] {
            unanswered.made("a", gave_up);
            let patience = [("a", false), ("b", false), ("a", true)];
            let patience = patience.map(|(step, in_vain)| unanswered.patience(step, in_vain));
            assert_eq!(
                patience,
                [times, 1, 1].map(|times| times * Duration::from_millis(5_500))
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_late_is_looked_for_until_its_time_is_over_and_once_more() {
        let mut unanswered = Unanswered::default();
        let looks = |it: &Unanswered| (it.look(), it.look_for_what_is_left());
        assert_eq!(looks(&unanswered), (None, None));
        unanswered.gave_up(Some("a"), Instant::now() + Duration::from_secs(100), false);
        unanswered.gave_up(Some("b"), Instant::now() + Duration::from_secs(20), true);
        assert_eq!(looks(&unanswered), (seconds(1), seconds(1)), "the first one");
        tokio::time::advance(Duration::from_secs(12)).await;
        assert_eq!(looks(&unanswered), (seconds(3), seconds(3)));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(looks(&unanswered).1, seconds(1), "the last one");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(looks(&unanswered), (seconds(5), None));
        tokio::time::advance(Duration::from_secs(48)).await;
        assert_eq!(unanswered.look(), seconds(15));
    }

    #[tokio::test(start_paused = true)]
    async fn every_step_is_told_and_told_anew_only_for_another_one() {
        let mut unanswered = Unanswered::default();
        let after = |seconds| Instant::now() + Duration::from_secs(seconds);
        let mut told = |step, seconds| {
            unanswered.gave_up(step, after(seconds), false);
            let told = unanswered.told(Timestamp::UNIX_EPOCH).unwrap();
            (told.steps.join(" "), told.until.as_second())
        };
        assert_eq!(told(Some("a"), 30), ("a".to_owned(), 30));
        assert_eq!(told(Some("b"), 20), ("a b".to_owned(), 30));
        assert_eq!(told(Some("a"), 25), ("a b".to_owned(), 30));
        assert_eq!(told(None, 60), (format!("{OF_BEFORE} a b"), 60));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_waited_for_is_told_and_not_looked_for() {
        let mut unanswered = Unanswered::default();
        let told = |it: &mut Unanswered| {
            it.told(Timestamp::UNIX_EPOCH)
                .map(|it| (it.steps.join(" "), it.until.as_second()))
        };
        let until = Instant::now() + Duration::from_secs(60);
        unanswered.is_silent("a", until, false);
        assert_eq!(
            (told(&mut unanswered), unanswered.look()),
            (Some(("a".to_owned(), 60)), None)
        );
        unanswered.made("a", true);
        assert_eq!(told(&mut unanswered), None, "it has ended");
        unanswered.gave_up(Some("a"), until, false);
        unanswered.is_silent("a", until + Duration::from_secs(9), false);
        unanswered.made("a", false);
        assert_eq!(
            (told(&mut unanswered), unanswered.look()),
            (Some(("a".to_owned(), 60)), seconds(1))
        );
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!((told(&mut unanswered), unanswered.look()), (None, None));
    }
}
