//! What failed, and when each of it is tried again.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_cloud_provider::{NodeName, Route};
use bowline_plan::Said;
use ipnet::IpNet;
use tokio::time::Instant;

use crate::metrics::Readings;
use crate::metrics::gauges::number;
use crate::queue::{Backoff, Stated};

/// The time after which a failure is said again with the same text, so that the API server counts up one event and does
/// not forget it: it keeps events for an hour.
const SAY_AGAIN: Duration = Duration::from_secs(15 * 60);

/// How long a route waits for the addresses of a Node that is not initialized yet, before its creation is tried all the same:
/// then the failure tells of a Node that stays so.
const JOINING: Duration = Duration::from_secs(2 * 60);

/// One write that is wished for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wish {
    /// The list of all routes.
    List,
    /// A route to be created.
    Create(NodeName, IpNet),
    /// A route to be deleted.
    Delete(Option<NodeName>, IpNet, String),
    /// The condition of a Node.
    Condition(NodeName),
}

impl Wish {
    pub(super) fn delete(route: &Route) -> Self {
        Self::Delete(route.target_node.clone(), route.destination, route.name.clone())
    }

    /// Its place among the operations.
    fn operation(&self) -> usize {
        match self {
            Self::List => 0,
            Self::Create(..) => 1,
            Self::Delete(..) => 2,
            Self::Condition(_) => 3,
        }
    }

    fn concerns(&self, node: &NodeName) -> bool {
        match self {
            Self::List => false,
            Self::Create(name, _) | Self::Condition(name) | Self::Delete(Some(name), ..) => name == node,
            Self::Delete(None, ..) => false,
        }
    }
}

/// The values of the label `operation`.
const OPERATIONS: [&str; 4] = ["list", "create", "delete", "condition"];

/// What is remembered of a wish that failed.
#[derive(Debug)]
struct Attempt {
    failures: u32,
    /// Not to be tried before.
    due: Instant,
    /// What was stated: before that no change of a Node and no safety pass leads to a try.
    not_before: Instant,
    /// The error, in words that do not change from try to try.
    said: Said,
    /// The text that was said with it.
    text: String,
    said_at: Instant,
}

/// The failures of wishes that are still open.
#[derive(Debug)]
pub(super) struct Attempts {
    backoff: Backoff,
    failed: BTreeMap<Wish, Attempt>,
    /// The routes to Nodes that have no address yet, and until when they wait for one.
    joining: BTreeMap<Wish, Instant>,
}

impl Attempts {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failed: BTreeMap::new(),
            joining: BTreeMap::new(),
        }
    }

    /// Whether a wish may be tried now. The safety pass tries whatever was not put off by somebody.
    pub(super) fn is_due(&self, wish: &Wish, now: Instant, is_safety_pass: bool) -> bool {
        self.failed
            .get(wish)
            .is_none_or(|attempt| attempt.due <= now || is_safety_pass && attempt.not_before <= now)
    }

    /// The earliest moment at which something that failed, or that waits for an address, is to be tried.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let joining = self.joining.values().copied().filter(|until| *until > now);
        self.failed
            .values()
            .map(|attempt| attempt.due)
            .chain(joining)
            .min()
    }

    /// Whether a wish that lacks its Node's address waits for it, as it does for a while from the first time it is seen.
    pub(super) fn waits_for_address(&mut self, wish: &Wish) -> bool {
        let now = Instant::now();
        let until = self.joining.entry(wish.clone()).or_insert(now + JOINING);
        now < *until
    }

    /// How many there are by operation.
    pub(super) fn failing(&self) -> Readings {
        let mut counts = [0_usize; OPERATIONS.len()];
        for wish in self.failed.keys() {
            counts[wish.operation()] += 1;
        }
        OPERATIONS.into_iter().zip(counts.map(number)).collect()
    }

    pub(super) fn succeeded(&mut self, wish: &Wish) {
        self.failed.remove(wish);
    }

    /// Remembers a failure. Gives the text to be said, if it is time to: a new error with the text of this try, an old one
    /// with the text it was first said with.
    pub(super) fn failed(
        &mut self,
        wish: Wish,
        error: &str,
        stated: Stated,
        share: f64,
        text: impl FnOnce() -> String,
    ) -> Option<String> {
        let now = Instant::now();
        let attempt = self.failed.entry(wish).or_insert_with(|| Attempt {
            failures: 0,
            due: now,
            not_before: now,
            said: Said::default(),
            text: String::new(),
            said_at: now,
        });
        attempt.due = now + stated.delay(delay(&self.backoff, attempt.failures, share));
        attempt.not_before = now + stated.delay(Duration::ZERO);
        if !matches!(stated, Stated::Exactly(_)) {
            attempt.failures += 1;
        }
        if attempt.said.is_news("error", error) {
            attempt.text = text();
        } else if now - attempt.said_at < SAY_AGAIN {
            return None;
        }
        attempt.said_at = now;
        Some(attempt.text.clone())
    }

    /// One draw for a whole pass: what failed together comes back together and shares a list again.
    pub(super) fn draw(&self) -> f64 {
        self.backoff.draw()
    }

    /// A Node changed, which may be the remedy: what is open for it is tried at once.
    pub(super) fn node_changed(&mut self, node: &NodeName) {
        let now = Instant::now();
        for (wish, attempt) in &mut self.failed {
            if wish.concerns(node) {
                attempt.due = attempt.due.min(attempt.not_before.max(now));
                if attempt.not_before <= now {
                    attempt.failures = 0;
                }
            }
        }
    }

    /// Forgets what nobody wishes for any more.
    pub(super) fn keep(&mut self, is_wished: impl Fn(&Wish) -> bool) {
        self.failed.retain(|wish, _| is_wished(wish));
        self.joining.retain(|wish, _| is_wished(wish));
    }
}

/// At the limit the delay is the limit: the safety pass comes round in that time, and all that is so far off waits for it.
fn delay(backoff: &Backoff, failures: u32, share: f64) -> Duration {
    let is_below_limit = backoff.delay(failures, 1.0) < backoff.max;
    backoff.delay(failures, if is_below_limit { share } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Jitter;

    fn attempts() -> Attempts {
        Attempts::new(Backoff {
            base: Duration::from_secs(1),
            max: Duration::from_secs(10),
            jitter: Some(Jitter::seeded(1)),
        })
    }

    fn wish(node: &str) -> Wish {
        Wish::Create(NodeName::new(node), "10.0.1.0/24".parse().unwrap())
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_put_off_for_longer_and_longer_up_to_the_limit() {
        let mut attempts = attempts();
        let mut waits = Vec::new();
        for _ in 0..6 {
            attempts.failed(wish("n1"), "no", Stated::Nothing, 1.0, || "No".into());
            waits.push((attempts.next_due().unwrap() - Instant::now()).as_secs());
        }
        assert_eq!(waits, [1, 2, 4, 8, 10, 10]);
        assert!(!attempts.is_due(&wish("n1"), Instant::now(), false));
        assert!(
            attempts.is_due(&wish("n1"), Instant::now(), true),
            "the safety pass"
        );
        assert!(attempts.is_due(&wish("n2"), Instant::now(), false));
        attempts.node_changed(&NodeName::new("n1"));
        assert!(attempts.is_due(&wish("n1"), Instant::now(), false));
        assert_eq!(
            attempts.failing(),
            [
                ("list", 0.0),
                ("create", 1.0),
                ("delete", 0.0),
                ("condition", 0.0)
            ]
        );
        attempts.succeeded(&wish("n1"));
        assert_eq!(attempts.failing()[1], ("create", 0.0));
        assert_eq!(attempts.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_comes_before_the_time_that_the_cloud_stated() {
        let mut attempts = attempts();
        let minute = Duration::from_secs(60);
        attempts.failed(wish("n1"), "slow down", Stated::Exactly(minute), 1.0, || {
            "S".into()
        });
        attempts.node_changed(&NodeName::new("n1"));
        assert!(!attempts.is_due(&wish("n1"), Instant::now(), true));
        tokio::time::advance(minute).await;
        assert!(attempts.is_due(&wish("n1"), Instant::now(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_said_when_it_is_news_and_four_times_an_hour_in_the_same_words() {
        let mut attempts = attempts();
        let mut said = Vec::new();
        for second in 0..3600 {
            let error = if second == 1800 { "denied" } else { "quota" };
            let text = attempts.failed(wish("n1"), error, Stated::Nothing, 1.0, || {
                format!("{error} after {second}s")
            });
            said.extend(text);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(
            said,
            [
                "quota after 0s",
                "quota after 0s",
                "denied after 1800s",
                "quota after 1801s",
                "quota after 1801s"
            ]
        );
    }
}
