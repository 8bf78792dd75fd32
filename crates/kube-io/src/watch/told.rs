//! What the log says of watches that fail.

use std::time::Duration;

use tokio::time::Instant;

use super::{TOLD_EVERY, is_about_credentials, silence};
use crate::error::KubeError;

/// What the log says of a watch. An API server that is ill for hours is news once a minute; one that never ends a watch and
/// sends no bookmarks is news once.
#[derive(Default)]
pub(super) struct Told {
    failed: Option<Instant>,
    refused: Option<Instant>,
    /// Whether a watch fell silent since one was ended.
    is_silent: bool,
}

impl Told {
    /// A watch has ended as it should.
    pub(super) fn end(&mut self) {
        self.is_silent = false;
    }

    /// A watch fell silent.
    pub(super) fn silence(&mut self, kind: &str, open: Duration) {
        let err = silence(open);
        if std::mem::replace(&mut self.is_silent, true) {
            tracing::debug!(kind, %err, "Watch fell silent once more, listing again");
        } else {
            tracing::warn!(kind, %err, "Watch fell silent, listing again");
        }
    }

    /// A list or a watch failed, and the next attempt comes after this wait.
    pub(super) fn failure(&mut self, kind: &str, err: &KubeError, wait: Duration) {
        let (now, wait_seconds) = (Instant::now(), wait.as_secs_f64());
        let is_refusal = is_about_credentials(err);
        let told = if is_refusal {
            &mut self.refused
        } else {
            &mut self.failed
        };
        if told.is_some_and(|told| now < told + TOLD_EVERY) {
            tracing::debug!(kind, %err, wait_seconds, "Watch still fails");
            return;
        }
        *told = Some(now);
        if is_refusal {
            tracing::error!(kind, %err, wait_seconds, "Watch refused");
        } else {
            tracing::warn!(kind, %err, wait_seconds, "Watch failed");
        }
    }
}
