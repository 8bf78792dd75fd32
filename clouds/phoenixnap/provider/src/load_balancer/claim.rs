//! The claim to buy a block: an annotation of the Service, written before the purchase and tested by its resource
//! version, so that of several processes only one gets to buy.
//!
//! The tags of a block are part of its purchase, so a bought block can be found. What cannot be seen is a purchase that
//! is still under way, or whose answer was lost. The claim says that there may be one:
//!
//! - who has not written the claim itself, in this very reconcile, waits until it is [`PATIENCE`] old;
//! - who has written it begins the purchase no later than [`VALIDITY`] after it, and never twice;
//! - a purchase that was refused leaves nothing behind, so its claim is taken back at once;
//! - only a refusal (4xx) says that nothing was bought: an API that answers that it failed may have sold a block all the same;
//! - a process knows which of its own claims it has not bought under, and is not kept waiting by them;
//! - a process remembers for [`PATIENCE`] what it asked for and heard nothing of, whatever becomes of the annotation;
//! - a Service that goes is not let go while a claim stands whose block is nowhere to be seen.
//!
//! The gap between the two times is longer than one call may take.

use std::time::Duration;

use bowline_cloud_provider::{KubeWrite, Service, facts};
use jiff::{SignedDuration, Timestamp};

use crate::annotations::CLAIM;

/// How old a claim must be before another purchase may be made.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How long after its claim a purchase may begin.
pub(crate) const VALIDITY: Duration = Duration::from_secs(60);

/// Who is buying, and since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The identity of the process.
    pub(crate) holder: String,
    /// Which of its reconciles: the process counts them.
    pub(crate) reconcile: u64,
    /// When it was made.
    pub(crate) time: Timestamp,
}

impl Claim {
    /// The claim on a Service. A text that is none is as good as no claim: nobody of us wrote it.
    pub(crate) fn of(service: &Service) -> Option<Self> {
        let text = facts::annotation(service, CLAIM.key)?;
        let (time, rest) = text.split_once(' ')?;
        let (reconcile, holder) = rest.split_once(' ')?;
        Some(Self {
            holder: holder.to_owned(),
            reconcile: reconcile.parse().ok()?,
            time: time.parse().ok()?,
        })
    }

    /// How long it still keeps others from buying; `None` if it does not any more.
    ///
    /// A time in the future comes from another clock. It counts by its distance, or it would bar the Service for good.
    pub(crate) fn bars_for(&self, now: Timestamp) -> Option<Duration> {
        let age = now.duration_since(self.time).unsigned_abs();
        PATIENCE.checked_sub(age).filter(|left| !left.is_zero())
    }

    /// The write that makes the claim.
    pub(crate) fn write(&self) -> KubeWrite {
        KubeWrite::AnnotateService(vec![(
            CLAIM.key.to_owned(),
            Some(format!("{} {} {}", self.time, self.reconcile, self.holder)),
        )])
    }

    /// The annotations that take any claim back.
    pub(crate) fn withdrawn() -> Vec<(String, Option<String>)> {
        vec![(CLAIM.key.to_owned(), None)]
    }
}

/// Whether the annotation is there, claim or not.
pub(crate) fn is_written_on(service: &Service) -> bool {
    facts::annotation(service, CLAIM.key).is_some()
}

/// The time from `earlier` to `later` on the wall clock; zero if they stand the other way round.
pub(crate) fn elapsed(earlier: Timestamp, later: Timestamp) -> Duration {
    let distance: SignedDuration = later.duration_since(earlier);
    Duration::try_from(distance).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn claim() -> Claim {
        Claim {
            holder: "node-1_8f b".to_owned(),
            reconcile: 7,
            time: at(0),
        }
    }

    #[test]
    fn a_claim_reads_back_as_it_was_written() {
        let mut service = Service::default();
        assert_eq!(Claim::of(&service), None);
        claim().write().predict(&mut service);
        assert_eq!(Claim::of(&service), Some(claim()));
        KubeWrite::AnnotateService(Claim::withdrawn()).predict(&mut service);
        assert!(!is_written_on(&service));
    }

    #[test]
    fn a_claim_bars_others_for_two_minutes_in_either_direction() {
        assert_eq!(claim().bars_for(at(0)), Some(PATIENCE));
        assert_eq!(claim().bars_for(at(119)), Some(Duration::from_secs(1)));
        assert_eq!(claim().bars_for(at(120)), None);
        assert_eq!(claim().bars_for(at(-30)), Some(Duration::from_secs(90)));
        assert_eq!(claim().bars_for(at(-86_400)), None);
    }

    #[test]
    fn what_is_no_claim_bars_nobody() {
        for text in [
            "",
            "mine",
            "soon 1 node-1",
            "2024-12-01T00:00:00Z node-1",
            "2024-13-01T00:00:00Z 1 node-1",
        ] {
            let mut service = Service::default();
            KubeWrite::AnnotateService(vec![(CLAIM.key.to_owned(), Some(text.to_owned()))])
                .predict(&mut service);
            assert_eq!(Claim::of(&service), None, "{text}");
            assert!(is_written_on(&service));
        }
    }
}
