//! Who may take a lease, and when: pure rules, with the time as an argument.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::{DeletionNote, LeaseRecord};

/// The three times of leader election.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimings {
    /// `--leader-elect-lease-duration`: how long others wait after they have last seen our record change.
    pub lease_duration: Duration,
    /// `--leader-elect-renew-deadline`: how long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// `--leader-elect-retry-period`: the time between two tries.
    pub retry_period: Duration,
}

impl Default for LeaseTimings {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// One candidate's view of a lease.
///
/// Clocks of different computers are never compared: a record is old when *we* have not seen it change for the duration
/// that it states. So a new candidate always waits out a foreign record that it has only just seen.
#[derive(Debug)]
pub struct Election {
    identity: String,
    timings: LeaseTimings,
    seen: Option<SeenRecord>,
}

#[derive(Debug)]
struct SeenRecord {
    record: LeaseRecord,
    changed_at: Instant,
}

/// What a candidate should do now.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// There is no lease: create this one.
    Create(LeaseRecord),
    /// It is ours, or free, or its holder is silent for too long: write this record over it.
    Update(LeaseRecord),
    /// Somebody else holds it, and may do so until this moment if the record does not change before.
    Wait {
        /// The holder.
        holder: String,
        /// When the lease is over, by our clock.
        until: Instant,
    },
}

impl Election {
    /// A candidate that has not seen the lease yet.
    pub fn new(identity: impl Into<String>, timings: LeaseTimings) -> Self {
        Self {
            identity: identity.into(),
            timings,
            seen: None,
        }
    }

    /// Takes note of what was read, or written by us; `None` if there is no lease. `at` is a moment not after the request
    /// was sent for our own writes, and when the answer came for reads.
    pub fn observe(&mut self, record: Option<LeaseRecord>, at: Instant) {
        self.seen = record.map(|record| match self.seen.take() {
            Some(seen) if is_same(&seen.record, &record) => SeenRecord {
                record,
                changed_at: seen.changed_at,
            },
            _ => SeenRecord {
                record,
                changed_at: at,
            },
        });
    }

    /// The last record that was seen.
    pub fn record(&self) -> Option<&LeaseRecord> {
        self.seen.as_ref().map(|seen| &seen.record)
    }

    /// Whether the last record names us.
    pub fn is_holder(&self) -> bool {
        self.record().is_some_and(|record| record.holder == self.identity)
    }

    /// Until when somebody else may hold the lease, by our clock; `None` if it is free, ours, or not known.
    pub fn held_by_others_until(&self) -> Option<Instant> {
        let SeenRecord { record, changed_at } = self.seen.as_ref()?;
        (!record.is_released() && record.holder != self.identity).then(|| *changed_at + self.lasts(record))
    }

    /// How long a record holds. One that does not say it is held as long as ours would be: a holder that is named is not
    /// taken for gone because a number is missing.
    fn lasts(&self, record: &LeaseRecord) -> Duration {
        match record.lease_duration {
            Duration::ZERO => self.timings.lease_duration,
            stated => stated,
        }
    }

    /// What to do now. `wall` goes into the record and is compared with nothing.
    pub fn decide(&self, now: Instant, wall: Timestamp) -> Decision {
        let Some(SeenRecord { record, changed_at }) = &self.seen else {
            return Decision::Create(self.claim(LeaseRecord::default(), wall));
        };
        if record.holder == self.identity {
            return Decision::Update(LeaseRecord {
                lease_duration: self.timings.lease_duration,
                renew_time: Some(wall),
                ..record.clone()
            });
        }
        let until = *changed_at + self.lasts(record);
        if !record.is_released() && now < until {
            return Decision::Wait {
                holder: record.holder.clone(),
                until,
            };
        }
        let transitions = record.transitions.saturating_add(1);
        let taken_over = |note: &DeletionNote| note.taken_over(record, transitions, wall);
        Decision::Update(self.claim(
            LeaseRecord {
                transitions,
                deletions: record.deletions.as_ref().map(taken_over),
                ..record.clone()
            },
            wall,
        ))
    }

    /// The record that gives the lease up; `None` if it is not ours. Whoever reads it may take the lease at once.
    pub fn release(&self, wall: Timestamp) -> Option<LeaseRecord> {
        let record = self.record().filter(|record| record.holder == self.identity)?;
        Some(LeaseRecord {
            holder: String::new(),
            // The shortest that the API allows; nobody waits for it, because there is no holder.
            lease_duration: Duration::from_secs(1),
            acquire_time: Some(wall),
            renew_time: Some(wall),
            ..record.clone()
        })
    }

    fn claim(&self, base: LeaseRecord, wall: Timestamp) -> LeaseRecord {
        LeaseRecord {
            holder: self.identity.clone(),
            lease_duration: self.timings.lease_duration,
            acquire_time: Some(wall),
            renew_time: Some(wall),
            ..base
        }
    }
}

/// Whether two records say the same; the version may differ by what others have changed around it.
pub(super) fn is_same(a: &LeaseRecord, b: &LeaseRecord) -> bool {
    let said = |record: &LeaseRecord| {
        (
            record.lease_duration,
            record.acquire_time,
            record.renew_time,
            record.transitions,
        )
    };
    a.holder == b.holder && said(a) == said(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn wall(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn held_by(holder: &str, renewed: i64) -> LeaseRecord {
        LeaseRecord {
            holder: holder.into(),
            lease_duration: 15 * SECOND,
            acquire_time: Some(wall(0)),
            renew_time: Some(wall(renewed)),
            transitions: 3,
            resource_version: Some("7".into()),
            ..LeaseRecord::default()
        }
    }

    fn candidate() -> Election {
        Election::new("me", LeaseTimings::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_lease_is_created_without_a_transition() {
        let mut election = candidate();
        election.observe(None, Instant::now());
        let Decision::Create(record) = election.decide(Instant::now(), wall(5)) else {
            panic!()
        };
        assert_eq!((record.holder.as_str(), record.transitions), ("me", 0));
        assert_eq!(
            (record.acquire_time, record.renew_time),
            (Some(wall(5)), Some(wall(5)))
        );
        assert_eq!(record.lease_duration, 15 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_foreign_lease_is_taken_when_it_has_not_changed_for_its_duration() {
        let mut election = candidate();
        let begun = Instant::now();
        election.observe(Some(held_by("other", 0)), begun);
        // Its times say that it is over for hours: they are another computer's.
        let waits = |until| Decision::Wait {
            holder: "other".into(),
            until,
        };
        assert_eq!(
            election.decide(begun + 14 * SECOND, wall(9000)),
            waits(begun + 15 * SECOND)
        );
        // Seen again unchanged: the time runs on.
        election.observe(Some(held_by("other", 0)), begun + 10 * SECOND);
        let Decision::Update(record) = election.decide(begun + 15 * SECOND, wall(9000)) else {
            panic!()
        };
        assert_eq!((record.holder.as_str(), record.transitions), ("me", 4));
        assert_eq!(record.acquire_time, Some(wall(9000)));
        assert_eq!(record.resource_version.as_deref(), Some("7"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_without_a_duration_is_waited_for_as_long_as_we_would_hold() {
        let mut election = candidate();
        let begun = Instant::now();
        let record = LeaseRecord {
            lease_duration: Duration::ZERO,
            ..held_by("other", 0)
        };
        election.observe(Some(record), begun);
        let until = Some(begun + 15 * SECOND);
        assert_eq!(election.held_by_others_until(), until);
        let decided = |after: u32| election.decide(begun + after * SECOND, wall(0));
        assert!(matches!(decided(14), Decision::Wait { .. }));
        assert!(matches!(decided(15), Decision::Update(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_seen_starts_the_time_anew() {
        let mut election = candidate();
        let begun = Instant::now();
        election.observe(Some(held_by("other", 0)), begun);
        election.observe(Some(held_by("other", 2)), begun + 2 * SECOND);
        let Decision::Wait { until, .. } = election.decide(begun + 16 * SECOND, wall(16)) else {
            panic!()
        };
        assert_eq!(until, begun + 17 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_released_lease_is_taken_at_once() {
        let mut election = candidate();
        election.observe(Some(held_by("", 0)), Instant::now());
        let Decision::Update(record) = election.decide(Instant::now(), wall(1)) else {
            panic!()
        };
        assert_eq!((record.holder.as_str(), record.transitions), ("me", 4));
    }

    #[tokio::test(start_paused = true)]
    async fn renewing_keeps_the_time_of_acquisition_and_the_count() {
        let mut election = candidate();
        election.observe(Some(held_by("me", 0)), Instant::now());
        assert!(election.is_holder());
        let Decision::Update(record) = election.decide(Instant::now() + 60 * SECOND, wall(60)) else {
            panic!()
        };
        assert_eq!(
            (record.acquire_time, record.renew_time),
            (Some(wall(0)), Some(wall(60)))
        );
        assert_eq!(record.transitions, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_holder_can_release() {
        let mut election = candidate();
        assert_eq!(election.release(wall(1)), None);
        election.observe(Some(held_by("other", 0)), Instant::now());
        assert_eq!(election.release(wall(1)), None);
        election.observe(Some(held_by("me", 0)), Instant::now());
        let record = election.release(wall(1)).unwrap();
        assert!(record.is_released());
        assert_eq!((record.lease_duration, record.transitions), (SECOND, 3));
        assert_eq!(record.resource_version.as_deref(), Some("7"));
    }
}
