//! Reviews: who is it, and may they.

use bowline_control_plane::Version;
use serde_json::{Value, json};

use super::scope::{Scope, text};

const TOKENS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(super) async fn a_minted_token_names_its_account(scope: Scope) {
    let here = scope.namespace();
    let accounts = format!("/api/v1/namespaces/{here}/serviceaccounts");
    let account = json!({"metadata": {"name": "scraper"}});
    let account = scope.post(&accounts, &account).await.granted();
    let request = json!({"spec": {"expirationSeconds": 600}});
    let minted = scope
        .post(&format!("{accounts}/scraper/token"), &request)
        .await
        .granted();
    let token = &minted["status"]["token"];
    assert!(!text(token).is_empty());
    let review = json!({"spec": {"token": token}});
    let status = scope.post(TOKENS, &review).await.granted()["status"].take();
    assert_eq!(status["authenticated"], true);
    assert_eq!(
        (&status["user"]["username"], &status["user"]["uid"]),
        (
            &json!(format!("system:serviceaccount:{here}:scraper")),
            &account["metadata"]["uid"]
        )
    );
    for group in [
        "system:serviceaccounts",
        &format!("system:serviceaccounts:{here}"),
        "system:authenticated",
    ] {
        let groups = status["user"]["groups"].as_array().unwrap();
        assert!(groups.contains(&json!(group)), "{group}: {groups:?}");
    }
}

pub(super) async fn an_unknown_token_is_nobody(scope: Scope) {
    let review = json!({"spec": {"token": "rubbish"}});
    let status = scope.post(TOKENS, &review).await.granted()["status"].take();
    assert_ne!(status["authenticated"], true);
    assert_eq!(status["user"], json!({}));
    assert!(!text(&status["error"]).is_empty());
}

pub(super) async fn access_is_answered_with_yes_or_no(scope: Scope) {
    let ask = |user: &str, group: &str, what: Value| {
        let mut spec = what;
        spec["user"] = json!(user);
        spec["groups"] = json!([group]);
        json!({"spec": spec})
    };
    let metrics = json!({"nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
    let nodes = json!({"resourceAttributes": {"verb": "patch", "resource": "nodes"}});
    for what in [metrics, nodes] {
        let answer = scope
            .post(ACCESS, &ask("root", "system:masters", what))
            .await
            .granted();
        assert_eq!(answer["status"]["allowed"], true, "{answer}");
    }
    let neither = ask("root", "system:masters", json!({}));
    let causes = scope.post(ACCESS, &neither).await.causes();
    let field = if scope.version() < Version::V1_37 {
        "spec.resourceAttributes"
    } else {
        "spec"
    };
    assert_eq!(causes[0].0, field, "{causes:?}");
    assert!(causes[0].1.contains("exactly one of"), "{causes:?}");
}
