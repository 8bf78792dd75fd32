//! The lease as it changes, for a follower that wants to know at once that it was given up.

use std::time::Duration;

use http::Method;
use serde_json::json;

use super::{LeaseLock, LeaseRecord};
use crate::error::KubeError;
use crate::exchange::{Call, segment};
use crate::rank::Rank;
use crate::rbac::Asked;
use crate::watch::{Lines, WireEvent};

/// How long the API server is asked to keep the watch open.
const OPEN: Duration = Duration::from_secs(600);

/// The changes of one lease.
pub struct LeaseWatch {
    lock: LeaseLock,
    lines: Lines,
}

impl LeaseLock {
    /// Asks whether the role has the verb `watch` for the lease, as everybody may about himself. Unlike a watch that is
    /// refused, the question leaves no refusal in the audit log.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] if it does not, as the roles of the Go managers do not.
    pub async fn check_watch(&self) -> Result<(), KubeError> {
        let attributes = json!({
            "group": "coordination.k8s.io",
            "resource": "leases",
            "verb": "watch",
            "namespace": self.namespace,
            "name": self.name,
        });
        if self.kube.review_own_access(attributes).await? {
            return Ok(());
        }
        let refusal = format!(
            "lease {:?}: this user cannot watch resource \"leases\"",
            self.name
        );
        let asked = Asked::of(&Method::GET, &format!("{}?watch=true", self.path(false)));
        Err(KubeError::Forbidden(
            asked.map_or(refusal.clone(), |asked| asked.explain(&refusal)),
        ))
    }

    /// Watches the lease from this version on.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] if the role does not have the verb `watch`, as those of the Go managers do not.
    pub async fn watch(&self, version: &str) -> Result<LeaseWatch, KubeError> {
        let path = format!(
            "{}?watch=true&fieldSelector=metadata.name%3D{}&timeoutSeconds={}&resourceVersion={}",
            self.path(false),
            segment(&self.name),
            OPEN.as_secs(),
            segment(version),
        );
        let answer = self.kube.open(Call::get(path).ranked(Rank::Watch)).await?;
        Ok(LeaseWatch {
            lock: self.clone(),
            lines: Lines::new(answer.into_body()),
        })
    }
}

impl LeaseWatch {
    /// The next record; `None` when the lease was deleted.
    ///
    /// # Errors
    ///
    /// The watch is over, in whatever way, or shows something else than this lease. Who wants to know more begins with a read.
    ///
    /// # Cancellation
    ///
    /// May be dropped and called again: no change is lost.
    pub async fn next(&mut self) -> Result<Option<LeaseRecord>, KubeError> {
        loop {
            let Some(line) = self.lines.next().await? else {
                return Err(KubeError::Expired("the watch has ended".into()));
            };
            let event = WireEvent::read(line)?;
            let object = event.object;
            match event.kind {
                "ADDED" | "MODIFIED" => return self.lock.believe(object).map(Some),
                "DELETED" => return self.lock.believe(object).map(|_| None),
                _ => {}
            }
        }
    }
}
