//! How long the cloud takes for a call: what Services wait for of which nothing else is known.

use std::collections::VecDeque;
use std::time::Duration;

use bowline_drive::LOOK;
use bowline_transport::Unheard;
use bowline_transport::patience::Took;
use tokio::time::Instant;

use super::{ServiceController, lock};

/// For how long a call tells of those after it.
const TELLS_FOR: Duration = Duration::from_secs(60);

/// The most looks, and steps, that are remembered.
const MOST: usize = 32;

/// What is told of numbers: no more than these, so that what is told changes seldom.
const TOLD: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/// A call that takes less is not worth a word.
const SLOW_S: u64 = 2;

/// However slow a cloud is, a write that goes without an answer for longer than this is noted.
const NOTED: Duration = Duration::from_secs(10);

/// What the calls of the last looks and steps took, the newest last.
#[derive(Default)]
struct Times(VecDeque<(Instant, Took)>);

impl Times {
    fn add(&mut self, took: Took) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), took));
    }

    fn recent(&self) -> impl Iterator<Item = Took> {
        let is_recent = |(at, _): &&(Instant, Took)| at.elapsed() < TELLS_FOR;
        self.0.iter().filter(is_recent).map(|(_, took)| *took)
    }

    /// What those that were answered took, the shortest first.
    fn answered(&self) -> Vec<Duration> {
        let mut answered: Vec<Duration> = self.recent().filter_map(|it| it.answered).collect();
        answered.sort_unstable();
        answered
    }
}

/// The pace of the cloud, by the last looks and steps.
#[derive(Default)]
pub(super) struct Pace {
    looks: Times,
    steps: Times,
}

impl Pace {
    /// The calls of a step or of a look took so long.
    pub(super) fn took(&mut self, label: &str, took: Took) {
        match label {
            LOOK => self.looks.add(took),
            _ => self.steps.add(took),
        }
    }

    /// After how long in all a write without an answer is noted: a cloud that is slow answers in a moment what it always answers late.
    pub(super) fn notes_after(&self) -> Duration {
        let (steps, looks) = (self.steps.answered(), self.looks.answered());
        let known = if steps.is_empty() { looks } else { steps };
        NOTED.min(2 * middle(&known))
    }

    /// What is slow, if something is: all calls, some of them, or one without an answer.
    fn slow(&self) -> Option<String> {
        let mut answered = [self.looks.answered(), self.steps.answered()].concat();
        answered.sort_unstable();
        let (usual, longest) = (
            slow(middle(&answered)),
            slow(answered.last().copied().unwrap_or_default()),
        );
        let silent = self.looks.recent().chain(self.steps.recent());
        let silent = slow(silent.filter_map(|it| it.silent).max().unwrap_or_default());
        let silent = silent.filter(|silent| usual.is_none_or(|usual| *silent > usual));
        let calls = match (usual, longest) {
            (Some(usual), _) => Some(format!("calls to the cloud take {usual} s or more")),
            (None, Some(longest)) => Some(format!("some calls to the cloud take {longest} s or more")),
            (None, None) => None,
        };
        let silent = silent.map(|silent| match (&calls, answered.is_empty()) {
            (Some(_), _) => format!("one had no answer for {silent} s or more"),
            (None, true) => format!("a call to the cloud had no answer for {silent} s or more"),
            (None, false) => {
                format!(
                    "a call to the cloud had no answer for {silent} s or more, while others are answered soon"
                )
            }
        });
        let told: Vec<String> = calls.into_iter().chain(silent).collect();
        (!told.is_empty()).then(|| told.join(", and "))
    }
}

/// That of which half are no shorter.
fn middle(sorted: &[Duration]) -> Duration {
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// How many seconds a call takes at least, if that is long.
fn slow(time: Duration) -> Option<u64> {
    at_least(time.as_secs()).filter(|seconds| *seconds >= SLOW_S)
}

/// The largest of the numbers that are told that is not larger.
fn at_least(number: u64) -> Option<u64> {
    TOLD.into_iter().rfind(|told| *told <= number)
}

impl ServiceController {
    /// What a Service waits for where the cloud is slow or does not answer, and how many wait with it.
    pub(super) fn slowness(&self) -> Option<String> {
        let silence = self.provider.silences.longest();
        if let Some(Unheard { call, .. }) = silence.as_ref().filter(|it| it.is_preliminary) {
            return Some(format!(
                "what each call to the cloud needs first has no answer yet: {call}"
            ));
        }
        let silent = |it: Unheard| format!("a call to the cloud has no answer yet: {}", it.call);
        let slow = lock(&self.pace).slow().or(silence.map(silent))?;
        let unsettled = lock(&self.tracked)
            .values()
            .filter(|it| it.unsettled.is_some())
            .count();
        Some(match at_least(unsettled.saturating_sub(1) as u64) {
            None => slow,
            Some(1) => format!("{slow}, and another Service waits for the cloud"),
            Some(others) => format!("{slow}, and at least {others} other Services wait for the cloud"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWERED: Took = Took {
        answered: Some(Duration::ZERO),
        silent: None,
    };

    fn answered(millis: u64) -> Took {
        Took {
            answered: Some(Duration::from_millis(millis)),
            silent: None,
        }
    }

    fn silent(seconds: u64) -> Took {
        Took {
            answered: None,
            silent: Some(Duration::from_secs(seconds)),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_told_is_true_of_most_calls_and_of_the_one_without_an_answer() {
        for (took, told) in [
            (vec![], None),
            (vec![answered(1_900); 3], None),
            (
                vec![answered(5_400); 3],
                Some("calls to the cloud take 5 s or more"),
            ),
            (
                vec![ANSWERED, ANSWERED, answered(7_000)],
                Some("some calls to the cloud take 5 s or more"),
            ),
            (
                vec![silent(24)],
                Some("a call to the cloud had no answer for 20 s or more"),
            ),
            (
                vec![ANSWERED, silent(24), ANSWERED],
                Some("a call to the cloud had no answer for 20 s or more, while others are answered soon"),
            ),
            (
                vec![answered(5_000), answered(5_000), silent(60)],
                Some("calls to the cloud take 5 s or more, and one had no answer for 50 s or more"),
            ),
            (
                vec![answered(20_000), silent(6)],
                Some("calls to the cloud take 20 s or more"),
            ),
        ] {
            let mut pace = Pace::default();
            took.iter().for_each(|took| pace.took("a", *took));
            assert_eq!(pace.slow().as_deref(), told, "{took:?}");
            tokio::time::advance(TELLS_FOR).await;
            assert_eq!(pace.slow(), None, "a minute later");
        }
    }

    #[test]
    fn a_write_is_noted_later_where_the_cloud_is_slow() {
        let mut pace = Pace::default();
        let mut after = |label: &str, took| {
            pace.took(label, took);
            pace.notes_after().as_secs()
        };
        assert_eq!(after(LOOK, silent(60)), 0, "nothing is known of answers");
        assert_eq!(after(LOOK, answered(3_000)), 6);
        assert_eq!(after("a", answered(4_500)), 9);
        assert_eq!(after("a", answered(20_000)), 10);
    }
}
