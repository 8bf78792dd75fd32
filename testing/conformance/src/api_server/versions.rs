//! What versions of Kubernetes answer otherwise.

use bowline_control_plane::Version;
use serde_json::{Value, json};

use super::scope::{Scope, text};

const ACCESS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub(super) async fn version_and_health_are_told(scope: Scope) {
    let version = scope.get("/version").await.granted();
    let told = format!("{}.{}", text(&version["major"]), text(&version["minor"]));
    // With the programs of somebody else, another version may run than was asked for.
    if std::env::var_os("KUBEBUILDER_ASSETS").is_none() {
        assert_eq!(told, scope.version().minor());
    }
    assert!(
        text(&version["gitVersion"]).starts_with(&format!("v{told}.")),
        "{version}"
    );
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(scope.get(path).await.granted(), "ok", "{path}");
    }
}

pub(super) async fn the_provider_id_is_set_once(scope: Scope) {
    scope.new_node("a", json!({})).await;
    let path = scope.node("a");
    let id = |id: &str| json!({"spec": {"providerID": id}});
    let patched = scope.merge(&path, &id("cloud://1")).await.granted();
    assert_eq!(patched["spec"]["providerID"], "cloud://1");
    scope.merge(&path, &id("cloud://1")).await.granted();
    let before_1_37 = "Forbidden: node updates may not change providerID except from \"\" to valid";
    for (wanted, since_1_37) in [
        (
            "cloud://2",
            "Invalid value: null: field cannot be modified once set",
        ),
        ("", "Invalid value: null: field cannot be cleared once set"),
    ] {
        let causes = scope.merge(&path, &id(wanted)).await.causes();
        let said = if scope.version() < Version::V1_37 {
            before_1_37
        } else {
            since_1_37
        };
        assert_eq!(
            causes,
            [("spec.providerID".to_owned(), said.to_owned())],
            "{wanted:?}"
        );
    }
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
