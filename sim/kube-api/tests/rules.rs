//! The rules of single kinds, as raw requests see them.

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

async fn create(api: &KubeApi, spec: Value) -> (u16, Value) {
    let service = json!({"metadata": {"generateName": "s-"}, "spec": spec});
    send(api, "POST", SERVICES, "application/json", &service).await
}

async fn patch(api: &KubeApi, object: &Value, body: Value) -> (u16, Value) {
    let uri = format!("{SERVICES}/{}", object["metadata"]["name"].as_str().unwrap());
    send(api, "PATCH", &uri, "application/merge-patch+json", &body).await
}

fn balanced() -> Value {
    json!({"type": "LoadBalancer", "ports": [{"port": 80}]})
}

#[tokio::test]
async fn a_new_service_gets_every_default_and_allocation() {
    let (code, made) = create(&server(), balanced()).await;
    assert_eq!(code, 201);
    let mut spec = made["spec"].clone();
    let address: std::net::Ipv4Addr = spec["clusterIP"].as_str().unwrap().parse().unwrap();
    assert_eq!(address.octets()[..2], [10, 96]);
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    let node = spec["ports"][0]["nodePort"].take();
    assert!((30_000..=32_767).contains(&node.as_i64().unwrap()), "{node}");
    for field in ["clusterIP", "clusterIPs"] {
        spec.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(
        spec,
        json!({
            "type": "LoadBalancer",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": null}],
            "sessionAffinity": "None",
            "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster",
            "allocateLoadBalancerNodePorts": true,
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
        })
    );
    assert_eq!(made["status"], json!({"loadBalancer": {}}));
}

#[tokio::test]
async fn headless_and_external_services_get_no_address() {
    let api = server();
    let (_, headless) = create(&api, json!({"clusterIP": "None", "selector": {"a": "b"}})).await;
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4"]));
    let (_, open) = create(&api, json!({"clusterIP": "None"})).await;
    assert_eq!(open["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(open["spec"]["ipFamilyPolicy"], "RequireDualStack");
    let (_, external) = create(
        &api,
        json!({"type": "ExternalName", "externalName": "x.example.com"}),
    )
    .await;
    assert_eq!(external["spec"]["clusterIP"], Value::Null);
    assert_eq!(external["spec"]["internalTrafficPolicy"], Value::Null);
}

#[tokio::test]
async fn addresses_and_node_ports_are_given_out_once() {
    let api = server();
    let (_, first) = create(&api, balanced()).await;
    let taken = |spec: Value| create(&api, spec);
    let (code, status) =
        taken(json!({"clusterIP": first["spec"]["clusterIP"], "ports": [{"port": 1}]})).await;
    assert_eq!(
        (code, status["details"]["causes"][0]["field"].as_str()),
        (422, Some("spec.clusterIPs"))
    );
    let (code, _) = taken(json!({"clusterIP": "10.97.0.1", "ports": [{"port": 1}]})).await;
    assert_eq!(code, 422);
    let node = &first["spec"]["ports"][0]["nodePort"];
    let (code, status) = taken(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": node}]})).await;
    assert_eq!(code, 422);
    assert_eq!(
        status["details"]["causes"][0]["message"],
        format!("Invalid value: {node}: provided port is already allocated")
    );
    let (code, status) = taken(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 80}]})).await;
    assert_eq!(code, 422);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .ends_with("The range of valid ports is 30000-32767")
    );
    let (code, asked) = taken(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30_001}]})).await;
    assert_eq!(
        (code, asked["spec"]["ports"][0]["nodePort"].as_i64()),
        (201, Some(30_001))
    );
    api.delete("Service", "default", asked["metadata"]["name"].as_str().unwrap());
    let (code, _) = taken(json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": 30_001}]})).await;
    assert_eq!(code, 201, "a Service that is gone has released its ports");
}

#[tokio::test]
async fn tcp_and_udp_on_one_port_share_a_node_port() {
    let ports = json!([
        {"name": "t", "port": 53, "protocol": "TCP"},
        {"name": "u", "port": 53, "protocol": "UDP"},
        {"name": "x", "port": 54},
    ]);
    let (_, made) = create(&server(), json!({"type": "LoadBalancer", "ports": ports})).await;
    let node = |index: usize| made["spec"]["ports"][index]["nodePort"].as_i64().unwrap();
    assert_eq!(node(0), node(1));
    assert_ne!(node(0), node(2));
}

#[tokio::test]
async fn node_ports_can_be_declined() {
    let api = server();
    let mut spec = balanced();
    spec["allocateLoadBalancerNodePorts"] = json!(false);
    let (_, made) = create(&api, spec).await;
    assert_eq!(made["spec"]["ports"][0]["nodePort"], Value::Null);
    let (_, changed) = patch(
        &api,
        &made,
        json!({"spec": {"allocateLoadBalancerNodePorts": true}}),
    )
    .await;
    assert!(changed["spec"]["ports"][0]["nodePort"].is_i64());
}

#[tokio::test]
async fn local_traffic_has_a_health_check_port_as_long_as_it_lasts() {
    let api = server();
    let (_, made) = create(&api, balanced()).await;
    let (_, local) = patch(&api, &made, json!({"spec": {"externalTrafficPolicy": "Local"}})).await;
    let port = local["spec"]["healthCheckNodePort"].as_i64().unwrap();
    assert_ne!(Some(port), local["spec"]["ports"][0]["nodePort"].as_i64());
    let (code, _) = patch(&api, &made, json!({"spec": {"healthCheckNodePort": port + 1}})).await;
    assert_eq!(code, 422, "immutable while in use");
    let (_, kept) = patch(&api, &made, json!({"spec": {"healthCheckNodePort": null}})).await;
    assert_eq!(kept["spec"]["healthCheckNodePort"], port);
    let (_, cluster) = patch(&api, &made, json!({"spec": {"externalTrafficPolicy": "Cluster"}})).await;
    assert_eq!(cluster["spec"]["healthCheckNodePort"], Value::Null);
}

#[tokio::test]
async fn what_the_type_has_no_use_for_goes_when_the_type_changes() {
    let api = server();
    let mut spec = balanced();
    spec["loadBalancerClass"] = json!("example.com/lb");
    spec["externalTrafficPolicy"] = json!("Local");
    let (_, made) = create(&api, spec).await;
    let uri = format!("{SERVICES}/{}/status", made["metadata"]["name"].as_str().unwrap());
    let publish = json!({"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}});
    let (code, published) = send(&api, "PATCH", &uri, "application/merge-patch+json", &publish).await;
    assert_eq!(
        (
            code,
            published["status"]["loadBalancer"]["ingress"][0]["ipMode"].as_str()
        ),
        (200, Some("VIP"))
    );
    let (code, _) = patch(
        &api,
        &made,
        json!({"spec": {"loadBalancerClass": "example.com/other"}}),
    )
    .await;
    assert_eq!(code, 422);

    let (code, plain) = patch(&api, &made, json!({"spec": {"type": "ClusterIP"}})).await;
    assert_eq!(code, 200, "{plain}");
    for gone in [
        "loadBalancerClass",
        "healthCheckNodePort",
        "externalTrafficPolicy",
        "allocateLoadBalancerNodePorts",
    ] {
        assert_eq!(plain["spec"][gone], Value::Null, "{gone}");
    }
    assert_eq!(plain["spec"]["ports"][0]["nodePort"], Value::Null);
    assert_eq!(plain["spec"]["clusterIP"], made["spec"]["clusterIP"]);
    assert_eq!(plain["status"], json!({"loadBalancer": {}}));
    let (code, _) = send(&api, "PATCH", &uri, "application/merge-patch+json", &publish).await;
    assert_eq!(code, 422, "ingress only for load balancers");
}

#[tokio::test]
async fn a_manifest_sent_again_keeps_what_was_allocated() {
    let api = server();
    let manifest = json!({"metadata": {"name": "web"}, "spec": balanced()});
    let uri = format!("{SERVICES}/web");
    let (code, made) = send(&api, "PUT", &uri, "application/json", &manifest).await;
    assert_eq!(code, 201, "a Service can be created by PUT");
    let (code, again) = send(&api, "PUT", &uri, "application/json", &manifest).await;
    assert_eq!((code, &again), (200, &made));
    let mut foreign = manifest.clone();
    foreign["metadata"]["uid"] = json!("other");
    let (code, status) = send(&api, "PUT", &uri, "application/json", &foreign).await;
    assert_eq!(code, 409);
    let message = status["message"].as_str().unwrap();
    let expected = format!(
        "UID in precondition: other, UID in object meta: {}",
        made["metadata"]["uid"].as_str().unwrap()
    );
    assert!(message.ends_with(&expected), "{message}");
}

#[tokio::test]
async fn invalid_services_are_refused_field_by_field() {
    let api = server();
    for (spec, field, message) in [
        (json!({}), "spec.ports", "Required value"),
        (
            json!({"ports": [{"port": 0}]}),
            "spec.ports[0].port",
            "Invalid value: 0: must be between 1 and 65535, inclusive",
        ),
        (
            json!({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}),
            "spec.ports[0].name",
            "Required value",
        ),
        (
            json!({"ports": [{"port": 1, "protocol": "ICMP"}]}),
            "spec.ports[0].protocol",
            "Unsupported value: \"ICMP\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (
            json!({"ports": [{"port": 1}], "loadBalancerClass": "a"}),
            "spec.loadBalancerClass",
            "Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (
            json!({"type": "LoadBalancer", "ports": [{"port": 1}], "loadBalancerSourceRanges": ["10.0.0.0"]}),
            "spec.LoadBalancerSourceRanges[0]",
            "Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        ),
        (
            json!({"type": "LoadBalancer", "clusterIP": "None", "ports": [{"port": 1}]}),
            "spec.clusterIPs[0]",
            "Invalid value: \"None\": may not be set to 'None' for LoadBalancer services",
        ),
        (
            json!({"type": "Balancer", "ports": [{"port": 1}]}),
            "spec.type",
            "Unsupported value: \"Balancer\": supported values: \"ClusterIP\", \"ExternalName\", \"LoadBalancer\", \
             \"NodePort\"",
        ),
    ] {
        let (code, status) = create(&api, spec.clone()).await;
        assert_eq!(code, 422, "{spec}");
        let cause = &status["details"]["causes"][0];
        assert_eq!(
            (cause["field"].as_str(), cause["message"].as_str()),
            (Some(field), Some(message)),
            "{spec}"
        );
    }
    let (code, status) = create(&api, json!({"ports": [{"port": "80"}]})).await;
    assert_eq!((code, status["reason"].as_str()), (400, Some("BadRequest")));
    assert_eq!(api.objects("Service").len(), 1, "only the server's own");
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
async fn labels_and_taints_of_nodes_are_checked() {
    let api = server();
    let node = |meta: Value, taints: Value| json!({"metadata": meta, "spec": {"taints": taints}});
    for (object, field) in [
        (node(json!({"name": "A"}), json!([])), "metadata.name"),
        (
            node(json!({"name": "a", "labels": {"a b": ""}}), json!([])),
            "metadata.labels",
        ),
        (
            node(json!({"name": "a", "labels": {"a": "b/c"}}), json!([])),
            "metadata.labels",
        ),
        (
            node(json!({"name": "a"}), json!([{"key": "k"}])),
            "metadata.taints[0].effect",
        ),
        (
            node(
                json!({"name": "a"}),
                json!([{"key": "k", "effect": "NoSchedule"}, {"key": "k", "effect": "NoSchedule"}]),
            ),
            "metadata.taints[1]",
        ),
    ] {
        let (code, status) = send(&api, "POST", "/api/v1/nodes", "application/json", &object).await;
        assert_eq!(
            (code, status["details"]["causes"][0]["field"].as_str()),
            (422, Some(field)),
            "{object}"
        );
    }
}

#[tokio::test]
async fn paths_and_methods_that_are_not_served_say_so() {
    let api = server();
    for (method, uri, content_type, code, reason) in [
        ("GET", "/api/v1/widgets", "", 404, "NotFound"),
        ("GET", "/apis/apps/v1/deployments", "", 404, "NotFound"),
        (
            "POST",
            "/api/v1/nodes/a",
            "application/json",
            405,
            "MethodNotAllowed",
        ),
        (
            "PUT",
            "/api/v1/nodes",
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
            "PATCH",
            "/api/v1/nodes/a",
            "application/merge-patch+json",
            404,
            "NotFound",
        ),
        (
            "POST",
            "/api/v1/nodes",
            "application/yaml",
            415,
            "UnsupportedMediaType",
        ),
        ("GET", "/api/v1/nodes?limit=x", "", 400, "BadRequest"),
        ("GET", "/api/v1/nodes?resourceVersion=99999", "", 504, "Timeout"),
        (
            "GET",
            "/api/v1/nodes?resourceVersionMatch=Exact",
            "",
            422,
            "Invalid",
        ),
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
async fn dry_runs_change_nothing() {
    let api = server();
    let before = api.revision();
    let service = json!({"metadata": {"name": "web"}, "spec": balanced()});
    let uri = format!("{SERVICES}?dryRun=All");
    let (code, made) = send(&api, "POST", &uri, "application/json", &service).await;
    assert_eq!((code, made["spec"]["type"].as_str()), (201, Some("LoadBalancer")));
    let delete = json!({"dryRun": ["All"]});
    let (code, _) = send(
        &api,
        "DELETE",
        &format!("{SERVICES}/kubernetes"),
        "application/json",
        &delete,
    )
    .await;
    assert_eq!((code, api.revision()), (200, before));
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
async fn tables_have_the_columns_of_kubectl() {
    let api = server();
    api.apply_json(json!({
        "kind": "Node",
        "metadata": {"name": "a", "labels": {"node-role.kubernetes.io/worker": ""}},
        "spec": {"unschedulable": true},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1.37.0"},
            "addresses": [{"type": "ExternalIP", "address": "192.0.2.1"}]},
    }))
    .unwrap();
    let request = Request::get("/api/v1/nodes")
        .header(
            "accept",
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        )
        .body(Full::<bytes::Bytes>::default())
        .unwrap();
    let response = api.service().oneshot(request).await.unwrap();
    let table: Value =
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap();
    let names: Vec<&str> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["name"].as_str().unwrap())
        .collect();
    assert_eq!(names[..5], ["Name", "Status", "Roles", "Age", "Version"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells[1], "Ready,SchedulingDisabled");
    assert_eq!(cells[2], "worker");
    assert_eq!(
        (cells[5].as_str(), cells[6].as_str()),
        (Some("<none>"), Some("192.0.2.1"))
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
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
