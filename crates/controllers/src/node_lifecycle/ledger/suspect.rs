//! One Node that is not ready, or that carries the shutdown taint although it is.
//!
//! It is due until it is taken; then it is busy, until an answer, a ruling or a rest makes it due again or it is released.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, Readiness};
use jiff::Timestamp;
use tokio::time::Instant;

use super::{Moment, Ruling, Seen, Verdict};
use crate::credential_check::CredentialCheck;
use crate::event_dedup::EventDedup;
use crate::events;

/// The longest distance between two questions about one Node.
const LONGEST: Duration = Duration::from_secs(60);
/// The answers about a Node have to be the same for so long before it is asked about less often: a Node that is not ready
/// has most of its news in its first minutes, and they are waited for.
const STEADY: Duration = Duration::from_secs(2 * 60);
/// A Node that is not initialised, or names no instance, is not deleted before it is so old: its instance may be too new
/// for the cloud's listing.
pub(super) const GRACE: Duration = Duration::from_secs(5 * 60);

/// What all of them are judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) ticks: Ticks,
    /// How long an absence has to last.
    pub(super) confirmation: Duration,
    /// Whether more is asked for than one proof.
    pub(super) is_guarded: bool,
}

/// The times at which Nodes are asked about together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    pub(super) started: Instant,
    pub(super) period: Duration,
}

/// What is said of a Node that is held back.
const HELD: &str = "held";

/// What is known of it.
#[derive(Debug)]
pub(super) struct Suspect {
    uid: Arc<str>,
    is_ready: bool,
    stage: Stage,
    /// The distance to the next question.
    interval: Duration,
    last: Option<Seen>,
    /// Since when the answers have been like the last one.
    since: Instant,
    /// When the first proof of absence came that nothing has contradicted since.
    absent_since: Option<Instant>,
    hold: Option<Hold>,
    /// Whether its deletion was tried, and failed.
    has_failed: bool,
    dedup: EventDedup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// To be looked at then.
    Due(Instant),
    /// Being looked at.
    Busy,
    /// Its deletion was accepted; nothing is left to do.
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hold {
    Frozen,
    Throttled,
}

/// No Node may go now: so many have gone in the last window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Full {
    pub(super) recent: usize,
    /// Whether some of them are being tried, and may yet come to nothing: then it is not said that they went.
    pub(super) is_open: bool,
    /// When the next one may go.
    pub(super) frees_at: Option<Instant>,
}

impl Suspect {
    /// A Node that is to be looked at now.
    pub(super) fn new(node: &Node, now: Instant, ticks: Ticks) -> Self {
        Self {
            uid: Arc::clone(&node.uid),
            is_ready: node.readiness == Readiness::Ready,
            stage: Stage::Due(now),
            interval: ticks.period,
            last: None,
            since: now,
            absent_since: None,
            hold: None,
            has_failed: false,
            dedup: EventDedup::default(),
        }
    }

    /// Whether this is what is known of the Node, and not of another one of its name.
    pub(super) fn is_of(&self, node: &Node) -> bool {
        self.uid == node.uid
    }

    /// Whether the Node was ready when it was first noted.
    pub(super) fn is_ready(&self) -> bool {
        self.is_ready
    }

    pub(super) fn is_busy(&self) -> bool {
        self.stage == Stage::Busy
    }

    /// Why it waits although its instance is proved gone.
    pub(super) fn held(&self) -> Option<Hold> {
        self.hold
    }

    /// Who is deleted first: whoever was proved gone first, and last whose deletion has failed.
    pub(super) fn rank(&self) -> (bool, Option<Instant>) {
        (self.has_failed, self.absent_since)
    }

    /// Whether this is what the cloud answered last.
    pub(super) fn is_same(&self, seen: Seen) -> bool {
        self.last.is_some_and(|last| last.is_like(seen))
    }

    /// Whether an answer now may confirm that the instance is gone.
    pub(super) fn may_be_confirmed(&self, now: Instant, confirmation: Duration) -> bool {
        let unseen = (self.last == Some(Seen::Unseen)).then_some(self.since);
        let since = self.absent_since.or(unseen);
        since.is_some_and(|since| since + confirmation <= now)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Due(at) => Some(at),
            Stage::Busy | Stage::Released => None,
        }
    }

    /// It is looked at, or written to.
    pub(super) fn take(&mut self) {
        self.stage = Stage::Busy;
    }

    /// Nothing is left to do.
    pub(super) fn release(&mut self) {
        self.stage = Stage::Released;
    }

    /// It is asked about again when its interval is over.
    pub(super) fn ask_again(&mut self, now: Instant, ticks: Ticks) {
        self.stage = Stage::Due(ticks.nearest(now + self.interval));
    }

    /// It is asked about again when its interval is over, and then less often.
    pub(super) fn rest(&mut self, now: Instant, ticks: Ticks) {
        self.ask_again(now, ticks);
        self.slow_down(ticks);
    }

    /// It is asked about less often from now on.
    fn slow_down(&mut self, ticks: Ticks) {
        self.interval = (self.interval * 2).min(LONGEST.max(ticks.period));
    }

    /// Enters an answer to a question that was asked at `asked`.
    pub(super) fn enter(
        &mut self,
        node: &Node,
        asked: Instant,
        now: Moment,
        seen: Seen,
        rules: Rules,
    ) -> Verdict {
        let is_same = self.is_same(seen);
        if !is_same {
            self.since = now.instant;
        }
        // A Node that is held stays as it is until a person or time changes something.
        let is_steady = self.hold.is_some() || now.instant >= self.since + STEADY;
        if is_same && is_steady {
            self.slow_down(rules.ticks);
        } else {
            self.interval = rules.ticks.period;
        }
        self.last = Some(seen);
        self.ask_again(now.instant, rules.ticks);
        match seen {
            // It proves nothing and contradicts nothing.
            Seen::Unknown { after } => {
                if let Some(after) = after {
                    self.stage = Stage::Due(now.instant + after);
                }
                Verdict::Nothing
            }
            // Nor does this; but where ready Nodes are not seen either, somebody should know. After a proof the cloud was not
            // asked for another one if it does not show those.
            Seen::Unseen => {
                let since = self.absent_since.or(is_same.then_some(self.since));
                if rules.is_guarded && since.is_some_and(|since| asked >= since + rules.confirmation) {
                    self.stage = Stage::Busy;
                    Verdict::Doubt
                } else {
                    Verdict::Nothing
                }
            }
            Seen::Foreign | Seen::Running | Seen::Off => {
                self.absent_since = None;
                self.let_go();
                match seen {
                    Seen::Running => Verdict::SetTaint(false),
                    Seen::Off => Verdict::SetTaint(true),
                    _ => Verdict::Nothing,
                }
            }
            Seen::Absent => {
                let first = *self.absent_since.get_or_insert(now.instant);
                if !rules.confirmation.is_zero() && asked < first + rules.confirmation {
                    self.stage = Stage::Due(first + rules.confirmation);
                    return Verdict::Nothing;
                }
                if let Some(left) = grace_left(node, now.wall).filter(|_| rules.is_guarded) {
                    let end = Stage::Due(now.instant + left);
                    self.stage = self.stage.earlier(end);
                    return Verdict::Nothing;
                }
                self.stage = Stage::Busy;
                Verdict::Gone
            }
        }
    }

    /// Decides about a Node that is to be deleted, or in doubt. One that is not deleted is asked about again.
    pub(super) fn rule(
        &mut self,
        check: CredentialCheck,
        full: Option<Full>,
        now: Instant,
        ticks: Ticks,
    ) -> Ruling {
        self.ask_again(now, ticks);
        match (check, full) {
            (CredentialCheck::Blind { missing: ready }, _) => {
                let is_proved = self.absent_since.is_some();
                let (begins, is_news) = self.hold(Hold::Frozen, true);
                Ruling::Frozen {
                    ready,
                    is_proved,
                    begins,
                    is_news,
                }
            }
            (CredentialCheck::Unclear, _) => Ruling::Wait,
            (CredentialCheck::Seen | CredentialCheck::NoWitness, _) if self.last == Some(Seen::Unseen) => {
                self.let_go();
                Ruling::Wait
            }
            (CredentialCheck::Seen | CredentialCheck::NoWitness, Some(full)) => {
                // All who wait are asked for again together when the next one may go, oldest first.
                if let Some(at) = full.frees_at {
                    self.stage = self.stage.earlier(Stage::Due(at));
                }
                let (begins, is_news) = self.hold(Hold::Throttled, !full.is_open);
                Ruling::Throttled {
                    recent: full.recent,
                    begins,
                    is_news,
                }
            }
            (CredentialCheck::Seen | CredentialCheck::NoWitness, None) => {
                self.take(); // until it is told how the deletion ended
                self.let_go();
                Ruling::Delete {
                    is_news: self.dedup.is_news(events::DELETING_NODE.reason, ""),
                }
            }
        }
    }

    /// Its deletion failed, and is tried again. Answers whether the text is news.
    pub(super) fn deletion_failed(&mut self, text: &str, now: Instant, ticks: Ticks) -> bool {
        self.ask_again(now, ticks);
        self.has_failed = true;
        self.dedup.is_news(events::DELETING_NODE_FAILED.reason, text)
    }

    /// Holds the Node back. Answers whether that begins, and whether it is to be said, where that is certain.
    fn hold(&mut self, hold: Hold, is_certain: bool) -> (bool, bool) {
        let begins = self.hold.replace(hold) != Some(hold);
        let text = match hold {
            Hold::Frozen => "frozen",
            Hold::Throttled => "throttled",
        };
        (begins, is_certain && self.dedup.is_news(HELD, text))
    }

    fn let_go(&mut self) {
        self.hold = None;
        self.dedup.over(HELD);
    }
}

impl Seen {
    /// Whether it is the same answer. The delay that a cloud states makes no other one.
    fn is_like(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl Stage {
    fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::Due(a), Self::Due(b)) => Self::Due(a.min(b)),
            (stage, _) => stage,
        }
    }
}

impl Ticks {
    /// The tick of the period that is nearest to this time: questions that are in no hurry are asked together. An answer comes
    /// a moment after its question, so one period after it the nearest tick is the next one, not the one after that.
    pub(super) fn nearest(self, at: Instant) -> Instant {
        if self.period.is_zero() {
            return at;
        }
        let over = at.saturating_duration_since(self.started).as_nanos() % self.period.as_nanos();
        let Ok(over) = u64::try_from(over).map(Duration::from_nanos) else {
            return at; // longer than five centuries
        };
        if over <= self.period / 2 {
            at - over
        } else {
            at + (self.period - over)
        }
    }
}

/// How long a Node is still too young to be deleted; `None` if it is not.
fn grace_left(node: &Node, now: Timestamp) -> Option<Duration> {
    if !node.is_uninitialized() && node.provider_id.is_some() {
        return None;
    }
    let age = Duration::try_from(now.duration_since(node.created)).unwrap_or_default();
    GRACE.checked_sub(age).filter(|left| !left.is_zero())
}
