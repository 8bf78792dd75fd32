//! How a sync fails, and what is told of it.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind};
use bowline_kube_io::KubeError;
use bowline_plan::{Refusal, RefusedBy};

use super::unsettled::Reason;
use crate::advice;
use crate::queue::RetryAfter;
use crate::trouble::{Again, Trouble};

/// Delays as events tell them, in seconds, rounded up: a cloud that asks for another one each time makes few events.
const TOLD_DELAYS_S: [u64; 8] = [2, 5, 10, 30, 60, 120, 300, 600];

/// The longest time from one try to the next, by the schedule.
const LONGEST: Duration = Duration::from_secs(300);

/// A failed or refused sync.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    /// The whole text, as it goes into the event.
    pub(super) text: String,
    /// The same in parts, as it goes into the condition.
    pub(super) trouble: Trouble,
    /// The cloud's own words, where the event has others.
    pub(super) words: Option<String>,
    /// What kind of failure it is, for whoever watches.
    pub(super) reason: Reason,
    /// What the cloud or the API server said about the next try; else the schedule decides.
    pub(super) retry_after: RetryAfter,
    /// The same failure at the next try is no news: the remedy is a person's.
    pub(super) is_quiet: bool,
}

impl Failure {
    pub(super) fn refused(prefix: &str, refusal: &Refusal) -> Self {
        let advice = match refusal.by {
            _ if refusal.remedy.is_some() => None,
            _ if refusal.is_limit => advice::about(ErrorKind::Exhausted, &refusal.reason),
            RefusedBy::Denial => Some(advice::DENIED),
            RefusedBy::Plan
            | RefusedBy::Cloud
            | RefusedBy::Failure
            | RefusedBy::Silence
            | RefusedBy::Undone => None,
        };
        let reason = match refusal.by {
            _ if refusal.is_limit => Reason::Quota,
            RefusedBy::Plan => Reason::Refused,
            RefusedBy::Denial => Reason::Denied,
            RefusedBy::Cloud => Reason::Invalid,
            RefusedBy::Failure | RefusedBy::Silence | RefusedBy::Undone => Reason::Failed,
        };
        let failure = Self::of_person(
            prefix,
            &refusal.reason,
            refusal.remedy.as_deref().or(advice),
            reason,
        );
        // What the cloud refused is held back for longer than the schedule has the Service looked at.
        let again = match refusal.by {
            RefusedBy::Plan if !refusal.is_limit => Again::Write,
            _ => Again::Refused,
        };
        Self {
            trouble: failure.trouble.tried(Some(again)),
            ..failure
        }
    }

    /// One whose remedy is a person's.
    fn of_person(prefix: &str, text: &str, remedy: Option<&str>, reason: Reason) -> Self {
        let text = said(prefix, text);
        let trouble = Trouble::new(&text).with_remedy(remedy).tried(Some(Again::Write));
        Self {
            text: with(text, remedy),
            trouble,
            words: None,
            reason,
            retry_after: RetryAfter::Nothing,
            is_quiet: true,
        }
    }

    /// The API server took a write of the finalizer, and what it stored says otherwise.
    pub(super) fn reverted(prefix: &str) -> Self {
        let text = "the API server accepted it, and something undid it before it was stored; look for a mutating admission webhook that changes Services";
        Self::of_person(prefix, text, None, Reason::Kubernetes)
    }

    /// `during` are the words for the step that failed; empty: a question did.
    pub(super) fn cloud(prefix: &str, during: &str, text: String, error: &CloudError) -> Self {
        let advice = advice::about(error.kind(), &text);
        let (text, words) = match throttled(error) {
            Some(throttled) => (format!("{during}{throttled}"), Some(text)),
            None => (text, None),
        };
        let text = said(prefix, &text);
        let again = match during.is_empty() {
            true => Again::Question,
            false => Again::Write,
        };
        // A cloud that asks for longer than the schedule says so in the text.
        let is_scheduled = error.retry_after().is_none_or(|it| it <= LONGEST);
        let trouble = Trouble::new(&text)
            .with_remedy(error.remedy().or(advice))
            .tried(Some(again).filter(|_| is_scheduled));
        Self {
            text: with(text, advice),
            trouble,
            words,
            reason: error.kind().into(),
            retry_after: RetryAfter::by_cloud(error),
            is_quiet: error.is_of_credentials() || error.kind() == ErrorKind::Invalid,
        }
    }

    pub(super) fn kube(prefix: &str, text: String, error: &KubeError) -> Self {
        let is_quiet = matches!(
            error,
            KubeError::Forbidden(_) | KubeError::Invalid(_) | KubeError::Unauthorized(_)
        );
        let failure = Self::of_person(prefix, &text, None, Reason::Kubernetes);
        let is_busy = matches!(error, KubeError::Throttled { code: 429, .. });
        Self {
            retry_after: RetryAfter::by_kube(error),
            is_quiet,
            trouble: failure.trouble.with_remedy(is_busy.then_some(advice::BUSY)),
            ..failure
        }
    }
}

/// What is said where the cloud asks to be left alone. Its own words are left out: they may count down.
fn throttled(error: &CloudError) -> Option<String> {
    let after = error.retry_after()?;
    let is_enough = |seconds: &u64| Duration::from_secs(*seconds) >= after;
    let seconds = TOLD_DELAYS_S
        .into_iter()
        .find(is_enough)
        .unwrap_or(after.as_secs());
    let asked = match error.stated_delay() {
        Some(_) => format!(", and asked to wait up to {seconds} s"),
        None => String::new(),
    };
    Some(format!(
        "the cloud limits the rate of calls, or is overloaded{asked}; tried again in up to {seconds} s"
    ))
}

/// A text with what to do about it.
fn with(text: String, advice: Option<&str>) -> String {
    match advice {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

/// A text behind what was being done; an empty prefix is none.
fn said(prefix: &str, text: &str) -> String {
    if prefix.is_empty() {
        text.to_owned()
    } else {
        format!("{prefix}: {text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_cloud_took_and_failed_is_nobodys_refusal() {
        for (by, reason) in [
            (RefusedBy::Plan, "refused"),
            (RefusedBy::Denial, "denied"),
            (RefusedBy::Cloud, "invalid"),
            (RefusedBy::Failure, "failed"),
            (RefusedBy::Silence, "failed"),
            (RefusedBy::Undone, "failed"),
        ] {
            let refusal = Refusal::new("pool web is in ERROR").by(by);
            assert_eq!(Failure::refused("", &refusal).reason.name(), reason);
        }
    }
}
