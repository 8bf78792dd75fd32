//! Which answers about a lease are believed.
//!
//! On the word of an answer a process begins to write to the cloud, while another may still do so. A proxy that answers in
//! the place of the API server, or a server that has lost its mind, must not make a leader. So an answer counts only if it is
//! this lease, and the answer to a write only if it holds what was written, in a version of its own.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::election::is_same;
use super::{LeaseLock, LeaseRecord};
use crate::error::KubeError;
use crate::shape::{names, read};

impl LeaseLock {
    /// Reads an object that should be this lease. (The API server writes `spec` into every Lease: in Go it is a struct, which
    /// is never left out.)
    ///
    /// # Errors
    ///
    /// It is something else, or lacks what each lease has.
    pub(super) fn believe(&self, object: &[u8]) -> Result<LeaseRecord, KubeError> {
        let lease: Map<String, Value> =
            read(object).map_err(|error| self.refuse(&format!("it cannot be read ({error})")))?;
        let has_other = |key: &str, ours: &str| lease.get(key).is_some_and(|theirs| theirs != ours);
        if has_other("kind", "Lease") || has_other("apiVersion", "coordination.k8s.io/v1") {
            return Err(self.refuse("it is something else"));
        }
        let names = names(object);
        let is_elsewhere = !names.namespace.is_empty() && names.namespace != self.namespace;
        if names.name != self.name || is_elsewhere {
            return Err(self.refuse("it does not have this name"));
        }
        if matches!(&*names.resource_version, "" | "0") {
            return Err(self.refuse("it has no resourceVersion"));
        }
        if !lease.get("spec").is_some_and(Value::is_object) {
            return Err(self.refuse("it has no spec"));
        }
        // A holder or a time that cannot be read may be somebody's who leads.
        let is_odd = |key: &str| {
            let said = lease.get("spec").and_then(|spec| spec.get(key));
            said.is_some_and(|said| !said.is_null() && !is_of_form(key, said))
        };
        if let Some(odd) = READ.into_iter().find(|key| is_odd(key)) {
            return Err(self.refuse(&format!("its {odd} cannot be read")));
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
        sent: &Map<String, Value>,
        answer: &[u8],
    ) -> Result<LeaseRecord, KubeError> {
        let written = self.believe(answer)?;
        let wrong = |what: &str| self.refuse(&format!("its {what} is not the one that was written"));
        let asked = LeaseRecord::from_object(sent.clone());
        if written.holder != asked.holder {
            return Err(wrong("holderIdentity"));
        }
        if written.renew_time != asked.renew_time {
            return Err(wrong("renewTime"));
        }
        if written.lease_duration != asked.lease_duration {
            return Err(wrong("leaseDurationSeconds"));
        }
        // An echo of the request. Only what changes nothing keeps its version.
        let before = record.source.as_deref().cloned().unwrap_or_default();
        let is_change = !is_same(&LeaseRecord::from_object(before), &asked);
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

/// What of the spec is read.
const READ: [&str; 5] = [
    "holderIdentity",
    "leaseDurationSeconds",
    "acquireTime",
    "renewTime",
    "leaseTransitions",
];

fn is_of_form(key: &str, said: &Value) -> bool {
    match key {
        "holderIdentity" => said.is_string(),
        "leaseDurationSeconds" | "leaseTransitions" => said.is_i64(),
        _ => said
            .as_str()
            .is_some_and(|time| time.parse::<Timestamp>().is_ok()),
    }
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
            Ok::<_, Infallible>(Response::new(crate::Body::default()))
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
            with("/spec/renewTime", json!(null)),
            with("/spec/leaseDurationSeconds", json!(-1)),
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
    async fn what_nobody_reads_of_a_lease_may_be_anything_and_is_written_back() {
        let lock = lock();
        let mut odd = stored("8", "me", NOW);
        odd["metadata"]["labels"] = json!([null, {"a": 1e300}]);
        odd["metadata"]["creationTimestamp"] = json!(7);
        odd["metadata"]["managedFields"] = json!("x");
        odd["spec"]["strategy"] = json!({"a": null});
        odd["status"] = json!("since a later version");
        let record = lock.believe(odd.to_string().as_bytes()).unwrap();
        let sent = Value::Object(lock.object_of(&record));
        odd["metadata"].as_object_mut().unwrap().remove("managedFields");
        odd["spec"]["acquireTime"] = Value::Null;
        assert_eq!(sent, odd);
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
