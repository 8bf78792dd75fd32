//! How long the cloud takes for a call: what Services wait for of which nothing else is known.

use std::time::Duration;

use tokio::time::Instant;

use super::{ServiceController, lock};

/// For how long a call that took long tells of those after it.
const TELLS_FOR: Duration = Duration::from_secs(60);

/// What is told of numbers: no more than these, so that what is told changes seldom.
const TOLD: [u64; 12] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000];

/// A call that takes less is not worth a word.
const SLOW_S: u64 = 2;

/// The longest of the last calls.
#[derive(Default)]
pub(super) struct Pace(Option<(Instant, Duration)>);

impl Pace {
    /// Calls took no longer than this.
    pub(super) fn took(&mut self, longest: Duration) {
        if self.longest().is_none_or(|known| known <= longest) {
            self.0 = Some((Instant::now(), longest));
        }
    }

    fn longest(&self) -> Option<Duration> {
        let (at, longest) = self.0?;
        (at.elapsed() < TELLS_FOR).then_some(longest)
    }

    /// How many seconds calls take at least, if that is long.
    fn seconds(&self) -> Option<u64> {
        let seconds = at_least(self.longest()?.as_secs())?;
        (seconds >= SLOW_S).then_some(seconds)
    }
}

/// The largest of the numbers that are told that is not larger.
fn at_least(number: u64) -> Option<u64> {
    TOLD.into_iter().rfind(|told| *told <= number)
}

impl ServiceController {
    /// What a Service waits for where the cloud is slow, and how many wait with it.
    pub(super) fn slowness(&self) -> Option<String> {
        let seconds = lock(&self.pace).seconds()?;
        let unsettled = lock(&self.tracked)
            .values()
            .filter(|it| it.unsettled.is_some())
            .count();
        Some(match at_least(unsettled.saturating_sub(1) as u64) {
            None => format!("calls to the cloud take {seconds} s or more"),
            Some(1) => {
                format!("calls to the cloud take {seconds} s or more, and another Service waits for it")
            }
            Some(others) => {
                format!(
                    "calls to the cloud take {seconds} s or more, and at least {others} other Services wait for it"
                )
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_longest_call_of_the_last_minute_is_told_in_few_numbers() {
        let mut pace = Pace::default();
        for (takes_ms, pause_s, seconds) in [
            (1_900, 0, None),
            (5_400, 10, Some(5)),
            (100, 49, Some(5)),
            (100, 1, None),
            (7_000, 0, Some(5)),
            (61_000, 0, Some(50)),
        ] {
            pace.took(Duration::from_millis(takes_ms));
            tokio::time::advance(Duration::from_secs(pause_s)).await;
            pace.took(Duration::from_millis(1));
            assert_eq!(pace.seconds(), seconds, "{takes_ms} ms");
        }
    }
}
