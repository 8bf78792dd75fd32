//! Leases, as leader election uses them.

use serde_json::json;

use super::scope::{Scope, version_of};

fn leases(scope: &Scope) -> String {
    format!(
        "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
        scope.namespace()
    )
}

pub(super) async fn a_lease_is_created_and_replaced_in_its_version(scope: Scope) {
    let path = format!("{}/leader", leases(&scope));
    let (code, _, message) = scope.get(&path).await.refused();
    assert_eq!(
        (code, message.as_str()),
        (404, "leases.coordination.k8s.io \"leader\" not found")
    );
    let lease = json!({"metadata": {"name": "leader"},
        "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "leaseTransitions": 0}});
    let made = scope.post(&leases(&scope), &lease).await.granted();
    let (code, reason, message) = scope.post(&leases(&scope), &lease).await.refused();
    assert_eq!(
        (code, reason.as_str(), message.as_str()),
        (
            409,
            "AlreadyExists",
            "leases.coordination.k8s.io \"leader\" already exists"
        )
    );
    let mut mine = made.clone();
    mine["spec"]["holderIdentity"] = json!("b");
    let replaced = scope.put(&path, &mine).await.granted();
    assert_ne!(version_of(&replaced), version_of(&made));
    let (code, reason, message) = scope.put(&path, &mine).await.refused();
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(
        message.starts_with("Operation cannot be fulfilled on leases.coordination.k8s.io \"leader\": "),
        "{message}"
    );
    let causes = scope.put(&path, &lease).await.causes();
    assert_eq!(
        causes,
        [(
            "metadata.resourceVersion".to_owned(),
            "Invalid value: 0: must be specified for an update".to_owned()
        )]
    );
}

pub(super) async fn times_keep_their_microseconds(scope: Scope) {
    let times =
        json!({"acquireTime": "2026-01-02T03:04:05.000007Z", "renewTime": "2026-01-02T03:04:05.123456Z"});
    let mut spec = times.clone();
    spec["holderIdentity"] = json!("a");
    spec["leaseDurationSeconds"] = json!(15);
    let lease = json!({"metadata": {"name": "leader"}, "spec": spec});
    let made = scope.post(&leases(&scope), &lease).await.granted();
    for field in ["acquireTime", "renewTime"] {
        assert_eq!(made["spec"][field], times[field]);
    }
    let path = format!("{}/leader", leases(&scope));
    let patched = scope
        .merge(
            &path,
            &json!({"spec": {"renewTime": "2026-01-02T03:04:06.500000Z"}}),
        )
        .await
        .granted();
    assert_eq!(patched["spec"]["renewTime"], "2026-01-02T03:04:06.500000Z");
    for not_six_digits in ["2026-01-02T03:04:06.5Z", "2026-01-02T03:04:06Z"] {
        let patch = json!({"spec": {"renewTime": not_six_digits}});
        assert_eq!(scope.merge(&path, &patch).await.code, 422, "{not_six_digits}");
    }
    let wrong = json!({"spec": {"leaseDurationSeconds": 0}});
    assert_eq!(scope.merge(&path, &wrong).await.code, 422);
}
