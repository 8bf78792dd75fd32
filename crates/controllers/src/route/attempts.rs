//! What failed, and when each of it is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, NodeName, Route, held_back_for};
use ipnet::IpNet;
use tokio::time::Instant;

use super::plan::Shared;
use crate::event_dedup::EventDedup;
use crate::metrics::Readings;
use crate::metrics::gauges::number;
use crate::queue::{Backoff, RetryAfter};

/// How long after a route has gone those are tried again that were refused for want of room.
const ROOM: Duration = Duration::from_secs(1);

/// What is said with a failure about the next try.
#[derive(Debug, Clone, Copy)]
pub(super) enum Next {
    /// By the back-off, or as stated.
    Soon(RetryAfter),
    /// The write is refused as it is: the next try is in vain unless somebody changes what stands in the way. No pass writes it sooner
    /// than the book of refusals would have it, unless the Node changes.
    Refused,
    /// The same for want of room, and a route that goes makes some.
    Full,
}

impl Next {
    /// What follows from a failed write. Each is made after a look at all routes, so that even a conflict is none with what was
    /// looked at.
    pub(super) fn of_write(error: &CloudError) -> Self {
        match error.kind() {
            ErrorKind::Exhausted => Self::Full,
            ErrorKind::Conflict | ErrorKind::NotSupported => Self::Refused,
            _ if error.is_definite() => Self::Refused,
            _ => Self::Soon(RetryAfter::by_cloud(error)),
        }
    }
}

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

/// What is said of a wish, and of a Node.
const FAILED: &str = "failed";
const SHARED: &str = "shared";

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
    /// Whether no safety pass leads to a try before it is due.
    is_refused: bool,
    /// Whether it is refused for want of room.
    is_full: bool,
    /// The error, in words that do not change from try to try, and the text of the try at which it was new.
    error: String,
    text: String,
    dedup: EventDedup,
}

/// The failures of wishes that are still open.
#[derive(Debug)]
pub(super) struct Attempts {
    backoff: Backoff,
    failed: BTreeMap<Wish, Attempt>,
    /// The routes to Nodes that have no address yet, and until when they wait for one.
    joining: BTreeMap<Wish, Instant>,
    /// The Nodes that share a pod network with others.
    shared: BTreeMap<(NodeName, IpNet), EventDedup>,
}

impl Attempts {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failed: BTreeMap::new(),
            joining: BTreeMap::new(),
            shared: BTreeMap::new(),
        }
    }

    /// Whether a wish may be tried now. The safety pass tries whatever was not put off by somebody.
    pub(super) fn is_due(&self, wish: &Wish, now: Instant, is_safety_pass: bool) -> bool {
        self.failed.get(wish).is_none_or(|attempt| {
            attempt.due <= now || is_safety_pass && !attempt.is_refused && attempt.not_before <= now
        })
    }

    /// The earliest moment at which something that failed, or that waits for an address, is to be tried. What was due when the last
    /// pass began, and is still, that pass had no reason to try: the next one by the period looks again.
    pub(super) fn next_due(&self, last_pass: Instant) -> Option<Instant> {
        let due = self.failed.values().map(|attempt| attempt.due);
        due.chain(self.joining.values().copied())
            .filter(|due| *due > last_pass)
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
        if matches!(wish, Wish::Delete(..)) {
            let now = Instant::now();
            for attempt in self.failed.values_mut().filter(|attempt| attempt.is_full) {
                attempt.due = attempt.due.min(now + ROOM);
            }
        }
    }

    /// Remembers a failure. Gives the text to be said, if it is time to: a new error with the text of this try, an old one
    /// with the text it was first said with.
    pub(super) fn failed(
        &mut self,
        wish: Wish,
        error: &str,
        next: Next,
        share: f64,
        text: impl FnOnce() -> String,
    ) -> Option<String> {
        let now = Instant::now();
        let attempt = self.failed.entry(wish).or_insert_with(|| Attempt {
            failures: 0,
            due: now,
            not_before: now,
            is_refused: false,
            is_full: false,
            error: String::new(),
            text: String::new(),
            dedup: EventDedup::default(),
        });
        let is_refused = matches!(next, Next::Refused | Next::Full);
        attempt.is_full = matches!(next, Next::Full);
        if attempt.is_refused != is_refused {
            (attempt.is_refused, attempt.failures) = (is_refused, 0);
        }
        let (delay, retry_after) = match next {
            Next::Soon(retry_after) => (delay(&self.backoff, attempt.failures, share), retry_after),
            Next::Refused | Next::Full => {
                let times = attempt.failures.saturating_add(1);
                (held_back_for(times), RetryAfter::Nothing)
            }
        };
        attempt.due = now + retry_after.delay(delay);
        attempt.not_before = now + retry_after.delay(Duration::ZERO);
        if !matches!(retry_after, RetryAfter::Exactly(_)) {
            attempt.failures = attempt.failures.saturating_add(1);
        }
        if attempt.error != error {
            error.clone_into(&mut attempt.error);
            attempt.text = text();
        }
        attempt
            .dedup
            .is_news(FAILED, &attempt.text)
            .then(|| attempt.text.clone())
    }

    /// What was said of a wish that is not tried now, if it is due to be said again.
    pub(super) fn again(&mut self, wish: &Wish) -> Option<String> {
        let said = self.failed.get_mut(wish)?.dedup.again(FAILED);
        said.map(ToOwned::to_owned)
    }

    /// Which of these Nodes, with whom each shares a pod network, are to be told so now.
    pub(super) fn shared<'a>(&mut self, shared: &'a [Shared]) -> Vec<&'a Shared> {
        let key = |one: &Shared| (one.node.name.clone(), one.destination);
        let holds: BTreeSet<_> = shared.iter().map(key).collect();
        self.shared.retain(|key, _| holds.contains(key));
        let is_news = |one: &&Shared| {
            let said = self.shared.entry(key(one)).or_default();
            said.is_news(SHARED, &format!("{:?}", one.others))
        };
        shared.iter().filter(is_news).collect()
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

    const SOON: Next = Next::Soon(RetryAfter::Nothing);

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
            attempts.failed(wish("n1"), "no", SOON, 1.0, || "No".into());
            waits.push((attempts.next_due(Instant::now()).unwrap() - Instant::now()).as_secs());
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
        assert_eq!(attempts.next_due(Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_held_back_for_longer_and_longer_until_the_node_changes() {
        let mut attempts = attempts();
        let mut waits = Vec::new();
        for _ in 0..11 {
            attempts.failed(wish("n1"), "it exists", Next::Refused, 1.0, || "No".into());
            let due = attempts.next_due(Instant::now()).unwrap();
            waits.push((due - Instant::now()).as_secs());
            assert!(
                !attempts.is_due(&wish("n1"), Instant::now(), true),
                "the safety pass"
            );
            tokio::time::advance(due - Instant::now()).await;
            assert!(attempts.is_due(&wish("n1"), Instant::now(), false));
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1800, 1800]);
        attempts.failed(wish("n1"), "it exists", Next::Refused, 1.0, || "No".into());
        attempts.node_changed(&NodeName::new("n1"));
        assert!(attempts.is_due(&wish("n1"), Instant::now(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_pass_left_although_it_was_due_calls_for_no_other_one() {
        let mut attempts = attempts();
        attempts.failed(wish("n1"), "no", SOON, 1.0, || "No".into());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(attempts.next_due(Instant::now()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_comes_before_the_time_that_the_cloud_stated() {
        let mut attempts = attempts();
        let minute = Duration::from_secs(60);
        attempts.failed(
            wish("n1"),
            "slow down",
            Next::Soon(RetryAfter::Exactly(minute)),
            1.0,
            || "S".into(),
        );
        attempts.node_changed(&NodeName::new("n1"));
        assert!(!attempts.is_due(&wish("n1"), Instant::now(), true));
        tokio::time::advance(minute).await;
        assert!(attempts.is_due(&wish("n1"), Instant::now(), false));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_is_said_when_it_is_news_and_again_after_a_while_in_the_same_words() {
        let mut attempts = attempts();
        let mut said = Vec::new();
        for second in 0..3600 {
            let error = if second == 1800 { "denied" } else { "quota" };
            let text = attempts.failed(wish("n1"), error, SOON, 1.0, || {
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
                "quota after 0s",
                "denied after 1800s",
                "quota after 1801s",
                "quota after 1801s",
                "quota after 1801s"
            ]
        );
    }
}
