//! Discovery, version, health, and as much OpenAPI as `kubectl apply` wants to see.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Answer;
use crate::core::Core;
use crate::kind::Kind;
use crate::request::Request;
use crate::status::Status;
use crate::strategy::KINDS;

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Kinds that answer a question and are not stored: group, resource, kind.
const REVIEWS: &[(&str, &str, &str)] = &[
    ("authentication.k8s.io", "tokenreviews", "TokenReview"),
    (
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
    ),
    (
        "authorization.k8s.io",
        "subjectaccessreviews",
        "SubjectAccessReview",
    ),
];

/// Whether a path is part of discovery, which every authenticated user may read (`system:discovery`).
pub(super) fn is_discovery(path: &str) -> bool {
    ["/api", "/apis", "/openapi"]
        .iter()
        .any(|root| path == *root || path.starts_with(&format!("{root}/")))
}

pub(super) fn answer(core: &Core, request: &Request) -> Result<Answer, Status> {
    if request.method != http::Method::GET && request.method != http::Method::HEAD {
        return Err(Status::method_not_allowed());
    }
    let parts: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
    let found = match &parts[..] {
        ["healthz" | "livez" | "readyz", ..] => return Ok(Answer::Text(200, "ok")),
        [] => Some(
            json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz",
            "/version"]}),
        ),
        ["version"] => Some(version(core.minor)),
        ["api"] => Some(json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [],
        })),
        ["apis"] => Some(json!({
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": groups().into_iter().map(group).collect::<Vec<_>>(),
        })),
        ["apis", name] => groups().get(name).map(|name| {
            let mut group = group(name);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }),
        ["api", "v1"] => Some(resources("")),
        ["apis", name, "v1"] => groups().get(name).map(|name| resources(name)),
        ["openapi", "v3"] => Some(openapi_index()),
        ["openapi", "v3", "api", "v1"] => Some(openapi("")),
        ["openapi", "v3", "apis", name, "v1"] => groups().get(name).map(|name| openapi(name)),
        _ => None,
    };
    found
        .map(|value| Answer::Object(200, value))
        .ok_or_else(Status::no_such_path)
}

fn version(minor: u32) -> Value {
    json!({
        "major": "1",
        "minor": minor.to_string(),
        "gitVersion": format!("v1.{minor}.0"),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    })
}

/// Named groups; core has no name.
fn groups() -> BTreeSet<&'static str> {
    let stored = KINDS.iter().map(|kind| kind.group);
    stored
        .chain(REVIEWS.iter().map(|(group, ..)| *group))
        .filter(|group| !group.is_empty())
        .collect()
}

fn group(name: &str) -> Value {
    let version = json!({"groupVersion": format!("{name}/v1"), "version": "v1"});
    json!({"name": name, "versions": [version], "preferredVersion": version})
}

fn resources(group: &str) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for kind in KINDS.iter().filter(|kind| kind.group == group) {
        list.push(resource(kind));
        if kind.has_status {
            list.push(json!({
                "name": format!("{}/status", kind.plural),
                "singularName": "",
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": ["get", "patch", "update"],
            }));
        }
        if kind.kind == "ServiceAccount" {
            list.push(json!({
                "name": "serviceaccounts/token",
                "singularName": "",
                "namespaced": true,
                "group": "authentication.k8s.io",
                "version": "v1",
                "kind": "TokenRequest",
                "verbs": ["create"],
            }));
        }
    }
    for (_, plural, kind) in REVIEWS.iter().filter(|(of, ..)| *of == group) {
        list.push(json!({
            "name": plural,
            "singularName": kind.to_lowercase(),
            "namespaced": false,
            "kind": kind,
            "verbs": ["create"],
        }));
    }
    let version = if group.is_empty() {
        "v1".to_owned()
    } else {
        format!("{group}/v1")
    };
    json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list})
}

fn resource(kind: &Kind) -> Value {
    let verbs: Vec<&str> = VERBS
        .iter()
        .copied()
        .filter(|verb| kind.kind != "Namespace" || *verb != "deletecollection")
        .collect();
    let mut resource = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs,
    });
    if !kind.short_names.is_empty() {
        resource["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        resource["categories"] = json!(kind.categories);
    }
    resource
}

fn openapi_index() -> Value {
    let mut paths = json!({"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}});
    for group in groups() {
        let path = format!("apis/{group}/v1");
        paths[&path] = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
    }
    json!({"paths": paths})
}

/// Paths with their kinds and the parameter that tells kubectl that the server validates fields. Schemas are left
/// open: this server does not know them.
fn openapi(group: &str) -> Value {
    let (root, version) = if group.is_empty() {
        ("/api/v1".to_owned(), "v1".to_owned())
    } else {
        (format!("/apis/{group}/v1"), format!("{group}/v1"))
    };
    let mut paths = json!({});
    let mut schemas = json!({});
    for kind in KINDS.iter().filter(|kind| kind.group == group) {
        let scope = if kind.namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let gvk = json!({"group": group, "version": "v1", "kind": kind.kind});
        let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
        let operation = |action: &str| {
            json!({
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": gvk,
                "parameters": [parameter("dryRun"), parameter("fieldManager"), parameter("fieldValidation")],
                "responses": {"200": {"description": "OK"}},
            })
        };
        paths[format!("{root}{scope}/{}", kind.plural)] = json!({"post": operation("post")});
        paths[format!("{root}{scope}/{}/{{name}}", kind.plural)] =
            json!({"put": operation("put"), "patch": operation("patch")});
        schemas[format!("{version}.{}", kind.kind)] = json!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "x-kubernetes-group-version-kind": [gvk],
        });
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}
