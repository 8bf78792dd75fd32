//! What raw requests see of the embedded server alone. What it shares with a real one is in the conformance suite.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use bowline_kube_api::{KubeApi, Permit, User};
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::ServiceExt;

const SERVICES: &str = "/api/v1/namespaces/default/services";

fn server() -> KubeApi {
    KubeApi::builder()
        .seed(3)
        .start_time("2026-01-02T03:04:05Z".parse().unwrap())
        .build()
}

/// Sends a request, with a body of the given content type; returns code and body.
async fn send(api: &KubeApi, method: &str, uri: &str, content_type: &str, body: &Value) -> (u16, Value) {
    send_as(api, "", method, uri, content_type, body).await
}

async fn send_as(
    api: &KubeApi,
    token: &str,
    method: &str,
    uri: &str,
    content_type: &str,
    body: &Value,
) -> (u16, Value) {
    let bytes = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header("content-type", content_type);
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let response = api
        .service()
        .oneshot(request.body(Full::from(bytes)).unwrap())
        .await
        .unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

fn balanced() -> Value {
    json!({"type": "LoadBalancer", "ports": [{"port": 80}]})
}

#[tokio::test]
async fn names_of_services_may_begin_with_a_digit_from_1_36_on() {
    let service = json!({"metadata": {"name": "1a"}, "spec": balanced()});
    for (minor, expected) in [(35, 422), (36, 201)] {
        let api = KubeApi::builder().version(minor).build();
        assert_eq!(
            send(&api, "POST", SERVICES, "application/json", &service).await.0,
            expected,
            "1.{minor}"
        );
    }
}

#[tokio::test]
async fn paths_and_methods_that_are_not_served_say_so() {
    let api = server();
    for (method, uri, content_type, code, reason) in [
        ("GET", "/apis/apps/v1/statefulsets", "", 404, "NotFound"),
        (
            "POST",
            "/api/v1/nodes/a",
            "application/json",
            405,
            "MethodNotAllowed",
        ),
        (
            "PATCH",
            "/api/v1/nodes/a",
            "application/yaml",
            415,
            "UnsupportedMediaType",
        ),
        (
            "POST",
            "/api/v1/nodes",
            "application/yaml",
            415,
            "UnsupportedMediaType",
        ),
        ("GET", "/api/v1/nodes?resourceVersion=99999", "", 504, "Timeout"),
        (
            "GET",
            "/api/v1/nodes?watch=1&sendInitialEvents=true",
            "",
            422,
            "Invalid",
        ),
    ] {
        let (found, status) = send(&api, method, uri, content_type, &json!({})).await;
        assert_eq!(
            (found, status["reason"].as_str()),
            (code, Some(reason)),
            "{method} {uri}"
        );
    }
}

#[tokio::test]
async fn collections_are_deleted_by_selector() {
    let api = server();
    for (name, zone) in [("a", "x"), ("b", "y"), ("c", "x")] {
        api.apply_json(json!({"kind": "Node", "metadata": {"name": name, "labels": {"zone": zone}}}))
            .unwrap();
    }
    let (code, list) = send(
        &api,
        "DELETE",
        "/api/v1/nodes?labelSelector=zone%3Dx",
        "",
        &Value::Null,
    )
    .await;
    assert_eq!((code, list["items"].as_array().map(Vec::len)), (200, Some(2)));
    assert_eq!(api.objects("Node").len(), 1);
}

#[tokio::test]
async fn tokens_and_permits_decide_who_may_do_what() {
    let ccm = User::service_account("kube-system", "ccm", "1");
    let name = ccm.name.clone();
    let api = KubeApi::builder()
        .token("good", ccm)
        .permit(Permit::new(&name, &["get", "list"], "", &["nodes"]))
        .permit(
            Permit::new(&name, &["update"], "coordination.k8s.io", &["leases"])
                .in_namespace("kube-system")
                .named(&["ccm"]),
        )
        .build();
    let get = |token: &'static str, uri: &'static str| {
        let api = api.clone();
        async move { send_as(&api, token, "GET", uri, "", &Value::Null).await }
    };
    assert_eq!(get("bad", "/api/v1/nodes").await.0, 401);
    assert_eq!(get("", "/api/v1/nodes").await.0, 401);
    assert_eq!(get("", "/healthz").await.0, 200);
    assert_eq!(get("good", "/api/v1/nodes").await.0, 200);
    let (code, status) = get("good", "/api/v1/namespaces/default/services/a").await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        format!(
            "services \"a\" is forbidden: User {name:?} cannot get resource \"services\" in API group \"\" in the \
             namespace \"default\""
        )
    );
    let ask = |verb: &str, namespace: &str, lease: &str| {
        json!({"spec": {"resourceAttributes":
            {"verb": verb, "group": "coordination.k8s.io", "resource": "leases", "namespace": namespace, "name": lease}}})
    };
    let review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (asked, allowed) in [
        (ask("update", "kube-system", "ccm"), true),
        (ask("update", "kube-system", "other"), false),
        (ask("update", "default", "ccm"), false),
        (ask("delete", "kube-system", "ccm"), false),
    ] {
        let (code, answer) = send_as(&api, "good", "POST", review, "application/json", &asked).await;
        assert_eq!(
            (code, answer["status"]["allowed"].as_bool()),
            (201, Some(allowed)),
            "{asked}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn minted_tokens_are_known_until_they_expire_and_never_journaled() {
    let api = server();
    api.apply_json(
        json!({"kind": "ServiceAccount", "metadata": {"name": "ccm", "namespace": "kube-system"}}),
    )
    .unwrap();
    let uri = "/api/v1/namespaces/kube-system/serviceaccounts/ccm/token";
    let (code, made) = send(
        &api,
        "POST",
        uri,
        "application/json",
        &json!({"spec": {"expirationSeconds": 600}}),
    )
    .await;
    assert_eq!(
        (code, made["status"]["expirationTimestamp"].as_str()),
        (201, Some("2026-01-02T03:14:05Z"))
    );
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let review = json!({"spec": {"token": token}});
    let uri = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (_, answer) = send(&api, "POST", uri, "application/json", &review).await;
    assert_eq!(
        answer["status"]["user"]["username"],
        "system:serviceaccount:kube-system:ccm"
    );
    tokio::time::advance(std::time::Duration::from_secs(601)).await;
    let (_, answer) = send(&api, "POST", uri, "application/json", &review).await;
    assert_eq!(answer["status"]["authenticated"], Value::Null);
    assert!(
        api.journal()
            .all()
            .iter()
            .all(|exchange| !format!("{exchange:?}").contains(&token))
    );
}

#[tokio::test]
async fn the_server_on_a_socket_stops_with_its_watches() {
    let api = server();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = api.serve(listener).unwrap();
    let address = server.address();
    assert!(KubeApi::kubeconfig(address).contains(&format!("server: http://{address}")));
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> =
        kube::Api::all(kube::Client::try_from(config).unwrap());
    let watch = nodes
        .watch(&kube::api::WatchParams::default(), "0")
        .await
        .unwrap();
    api.apply_json(json!({"kind": "Node", "metadata": {"name": "a"}}))
        .unwrap();
    let (seen, ()) = tokio::join!(futures::StreamExt::collect::<Vec<_>>(watch), server.stop());
    assert_eq!(seen.len(), 1);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
