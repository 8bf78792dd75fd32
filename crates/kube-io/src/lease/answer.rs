//! Which answers about a lease are believed.
//!
//! On the word of an answer a process begins to write to the cloud, while another may still do so. A proxy that answers in
//! the place of the API server, or a server that has lost its mind, must not make a leader. So an answer counts only if it is
//! this lease, and the answer to a write only if it holds what was written, in a version of its own.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::{LeaseLock, LeaseRecord};
use crate::error::KubeError;
use crate::reads::read;

impl LeaseLock {
    /// Reads an object that should be this lease. (The API server writes `spec` into every Lease: in Go it is a struct, which
    /// is never left out.)
    ///
    /// # Errors
    ///
    /// It is something else, or lacks what each lease has.
    pub(super) fn believe(&self, object: &[u8]) -> Result<LeaseRecord, KubeError> {
        let lease: Lease =
            read(object).map_err(|error| self.refuse(&format!("it cannot be read ({error})")))?;
        let metadata = &lease.metadata;
        let is_elsewhere = |namespace: &String| *namespace != self.namespace;
        if metadata.name.as_ref() != Some(&self.name) || metadata.namespace.as_ref().is_some_and(is_elsewhere)
        {
            return Err(self.refuse("it does not have this name"));
        }
        if matches!(metadata.resource_version.as_deref(), None | Some("" | "0")) {
            return Err(self.refuse("it has no resourceVersion"));
        }
        if lease.spec.is_none() {
            return Err(self.refuse("it has no spec"));
        }
        Ok(LeaseRecord::from_object(lease))
    }

    /// Reads the answer to a write of this record, which was sent in this form.
    ///
    /// # Errors
    ///
    /// It does not show that the write was made.
    pub(super) fn believe_written(
        &self,
        record: &LeaseRecord,
        sent: &Lease,
        answer: &[u8],
    ) -> Result<LeaseRecord, KubeError> {
        let written = self.believe(answer)?;
        let wrong = |what: &str| self.refuse(&format!("its {what} is not the one that was written"));
        let (asked, given) = (spec_of(Some(sent)), spec_of(written.source.as_deref()));
        if given.holder_identity.unwrap_or_default() != asked.holder_identity.clone().unwrap_or_default() {
            return Err(wrong("holderIdentity"));
        }
        if given.renew_time != asked.renew_time {
            return Err(wrong("renewTime"));
        }
        if given.lease_duration_seconds != asked.lease_duration_seconds {
            return Err(wrong("leaseDurationSeconds"));
        }
        // An echo of the request. Only what changes nothing keeps its version.
        let is_change = spec_of(record.source.as_deref()) != asked;
        if is_change && written.resource_version == record.resource_version {
            return Err(self.refuse("it was changed, and has the version from before"));
        }
        Ok(written)
    }

    fn refuse(&self, why: &str) -> KubeError {
        KubeError::Decode(format!(
            "the lease {}/{} is not believed, because {why}. Look for a proxy that answers for the API server.",
            self.namespace, self.name
        ))
    }
}

fn spec_of(lease: Option<&Lease>) -> LeaseSpec {
    lease.and_then(|lease| lease.spec.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use serde_json::{Value, json};

    use super::*;
    use crate::client::{Kube, KubeOptions};

    fn lock() -> LeaseLock {
        let nobody = tower::service_fn(|_: Request<crate::Body>| async {
            Ok::<_, Infallible>(Response::new(crate::Body::empty()))
        });
        let kube = Kube::with_service(nobody, KubeOptions::new("test/1"));
        LeaseLock::new(kube, "kube-system", "ccm", "me")
    }

    fn stored(version: &str, holder: &str, renewed: &str) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": "kube-system", "name": "ccm", "resourceVersion": version, "uid": "u"},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed, "leaseTransitions": 0},
        })
    }

    const BEFORE: &str = "2026-03-01T10:00:00.000000Z";
    const NOW: &str = "2026-03-01T10:00:02.000001Z";

    fn without(pointer: &str, key: &str) -> Value {
        let mut lease = stored("8", "me", NOW);
        lease
            .pointer_mut(pointer)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key);
        lease
    }

    fn with(pointer: &str, value: Value) -> Value {
        let mut lease = stored("8", "me", NOW);
        *lease.pointer_mut(pointer).unwrap() = value;
        lease
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_not_the_lease_that_was_asked_for_is_not_believed() {
        let lock = lock();
        for lease in [
            stored("8", "", NOW),
            without("", "kind"), // a hand-made server may leave these out
            without("", "apiVersion"),
            without("/metadata", "namespace"),
            without("/metadata", "uid"),
            with("/spec", json!({})),
        ] {
            lock.believe(lease.to_string().as_bytes()).unwrap();
        }
        for lease in [
            json!({}),
            json!(null),
            json!([]),
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
            with("/kind", json!("LeaseList")),
            with("/apiVersion", json!("v1")),
            with("/metadata/name", json!("other")),
            with("/metadata/namespace", json!("other")),
            with("/metadata/resourceVersion", json!("")),
            with("/metadata/resourceVersion", json!("0")),
            with("/spec", json!(null)),
            with("/spec/renewTime", json!("yesterday")),
            without("", "metadata"),
            without("", "spec"),
            without("/metadata", "name"),
            without("/metadata", "resourceVersion"),
        ] {
            let error = lock.believe(lease.to_string().as_bytes()).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("the lease kube-system/ccm is not believed") && text.contains("proxy"),
                "{lease}: {text}"
            );
        }
        for text in ["", "<html>", "{"] {
            lock.believe(text.as_bytes()).unwrap_err();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_hold_what_was_written_is_no_write() {
        let lock = lock();
        let before = lock
            .believe(stored("7", "me", BEFORE).to_string().as_bytes())
            .unwrap();
        let record = LeaseRecord {
            // More digits than are sent.
            renew_time: Some("2026-03-01T10:00:02.000001999Z".parse().unwrap()),
            ..before.clone()
        };
        let sent = lock.object_of(&record);
        let answered = |answer: Value| {
            lock.believe_written(&record, &sent, answer.to_string().as_bytes())
                .map(drop)
        };
        assert_eq!(answered(stored("8", "me", NOW)), Ok(()));
        assert_eq!(
            answered(stored("8", "me", "2026-03-01T11:00:02.000001+01:00")),
            Ok(())
        );
        for (answer, why) in [
            (json!({}), "name"),
            (stored("8", "other", NOW), "holderIdentity"),
            (stored("8", "", NOW), "holderIdentity"),
            (without("/spec", "holderIdentity"), "holderIdentity"),
            (stored("7", "me", BEFORE), "renewTime"),
            (without("/spec", "renewTime"), "renewTime"),
            (
                with("/spec/leaseDurationSeconds", json!(1)),
                "leaseDurationSeconds",
            ),
            (stored("7", "me", NOW), "version"),
        ] {
            let error = answered(answer.clone()).unwrap_err().to_string();
            assert!(error.contains(why), "{answer}: {error}");
        }
        // Nothing was changed.
        let sent = lock.object_of(&before);
        let answer = stored("7", "me", BEFORE).to_string();
        lock.believe_written(&before, &sent, answer.as_bytes()).unwrap();
    }
}
