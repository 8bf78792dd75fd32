//! What the server says about itself.

use serde_json::{Value, json};

use super::scope::{Scope, text};

fn resource<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list["resources"].as_array().unwrap().iter();
    found
        .into_iter()
        .find(|resource| resource["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

fn has_verbs(resource: &Value, verbs: &[&str]) {
    for verb in verbs {
        let listed = resource["verbs"].as_array().unwrap();
        assert!(listed.contains(&json!(verb)), "{verb}: {resource}");
    }
}

pub(super) async fn the_kinds_we_use_are_listed_with_their_verbs(scope: Scope) {
    let core = scope.get("/api/v1").await.granted();
    assert_eq!(core["groupVersion"], "v1");
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    for (name, kind, namespaced) in [
        ("nodes", "Node", false),
        ("services", "Service", true),
        ("events", "Event", true),
        ("namespaces", "Namespace", false),
    ] {
        let resource = resource(&core, name);
        assert_eq!(
            (&resource["kind"], &resource["namespaced"]),
            (&json!(kind), &json!(namespaced))
        );
        has_verbs(resource, &all);
    }
    for name in ["nodes/status", "services/status"] {
        has_verbs(resource(&core, name), &["get", "patch", "update"]);
    }
    assert!(
        resource(&core, "services")["shortNames"]
            .as_array()
            .unwrap()
            .contains(&json!("svc"))
    );

    let leases = scope.get("/apis/coordination.k8s.io/v1").await.granted();
    assert_eq!(resource(&leases, "leases")["kind"], "Lease");
    has_verbs(resource(&leases, "leases"), &all);
    let groups = scope.get("/apis").await.granted();
    for group in [
        "coordination.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    ] {
        let listed = groups["groups"].as_array().unwrap();
        let found = listed.iter().find(|listed| listed["name"] == group).unwrap();
        assert_eq!(found["preferredVersion"]["groupVersion"], format!("{group}/v1"));
    }
}

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

pub(super) async fn unknown_paths_kinds_and_methods_are_refused(scope: Scope) {
    assert_eq!(scope.get("/api/v1/widgets").await.code, 404);
    assert_eq!(scope.get("/apis/widgets.example.com/v1/widgets").await.code, 404);
    let (code, reason, message) = scope.put("/api/v1/nodes", &json!({})).await.refused();
    assert_eq!(
        (code, reason.as_str(), message.as_str()),
        (
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource"
        )
    );
    let (code, reason, _) = scope.post(&scope.services(), &json!("no object")).await.refused();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
}
