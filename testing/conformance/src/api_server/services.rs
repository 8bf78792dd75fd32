//! Services: defaults, allocation, and what a change of type takes away.

use serde_json::{Value, json};

use super::scope::{Scope, balanced, version_of};

fn node_port(service: &Value, index: usize) -> i64 {
    service["spec"]["ports"][index]["nodePort"].as_i64().unwrap()
}

pub(super) async fn a_new_service_gets_its_defaults(scope: Scope) {
    let made = scope.new_balanced("a").await;
    let mut spec = made["spec"].clone();
    let address: std::net::Ipv4Addr = spec["clusterIP"].as_str().unwrap().parse().unwrap();
    assert_eq!(address.octets()[..2], [10, 96]);
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    let port = spec["ports"][0]["nodePort"].take().as_i64().unwrap();
    assert!((30_000..=32_767).contains(&port), "{port}");
    for field in ["clusterIP", "clusterIPs"] {
        spec.as_object_mut().unwrap().remove(field);
    }
    assert_eq!(
        spec,
        json!({
            "type": "LoadBalancer",
            "selector": {"app": "x"},
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

pub(super) async fn addresses_and_ports_are_given_out_once(scope: Scope) {
    let first = scope.new_balanced("a").await;
    let taken = json!({"clusterIP": first["spec"]["clusterIP"], "ports": [{"port": 1}]});
    let causes = scope.try_service("b", taken).await.causes();
    assert_eq!(causes[0].0, "spec.clusterIPs");
    assert!(
        causes[0].1.contains("failed to allocate IP")
            && causes[0].1.contains("provided IP is already allocated"),
        "{causes:?}"
    );
    let outside = json!({"clusterIP": "10.97.0.1", "ports": [{"port": 1}]});
    let causes = scope.try_service("b", outside).await.causes();
    assert_eq!(causes[0].0, "spec.clusterIPs", "{causes:?}");

    let port = node_port(&first, 0);
    let spec = |port: i64| json!({"type": "NodePort", "ports": [{"port": 1, "nodePort": port}]});
    let causes = scope.try_service("b", spec(port)).await.causes();
    assert_eq!(
        causes,
        [(
            "spec.ports[0].nodePort".to_owned(),
            format!("Invalid value: {port}: provided port is already allocated")
        )]
    );
    let causes = scope.try_service("b", spec(80)).await.causes();
    assert_eq!(
        causes,
        [(
            "spec.ports[0].nodePort".to_owned(),
            "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767"
                .to_owned()
        )]
    );
    // What a Service had is free again when it is gone.
    scope.delete(&scope.service("a"), &json!({})).await.granted();
    let again = scope.new_service("b", spec(port)).await;
    assert_eq!(node_port(&again, 0), port);
}

pub(super) async fn tcp_and_udp_of_one_number_share_a_node_port(scope: Scope) {
    let ports = json!([
        {"name": "t", "port": 53, "protocol": "TCP"},
        {"name": "u", "port": 53, "protocol": "UDP"},
        {"name": "x", "port": 54},
    ]);
    let made = scope
        .new_service("a", json!({"type": "LoadBalancer", "ports": ports}))
        .await;
    assert_eq!(node_port(&made, 0), node_port(&made, 1));
    assert_ne!(node_port(&made, 0), node_port(&made, 2));
}

pub(super) async fn node_ports_can_be_declined(scope: Scope) {
    let mut spec = balanced();
    spec["allocateLoadBalancerNodePorts"] = json!(false);
    let made = scope.new_service("a", spec).await;
    assert_eq!(made["spec"]["ports"][0]["nodePort"], Value::Null);
    let changed = scope
        .merge(
            &scope.service("a"),
            &json!({"spec": {"allocateLoadBalancerNodePorts": true}}),
        )
        .await
        .granted();
    assert!(node_port(&changed, 0) >= 30_000);
}

pub(super) async fn local_traffic_has_a_health_check_port(scope: Scope) {
    let mut spec = balanced();
    spec["externalTrafficPolicy"] = json!("Local");
    let made = scope.new_service("a", spec).await;
    let path = scope.service("a");
    let port = made["spec"]["healthCheckNodePort"].as_i64().unwrap();
    assert!((30_000..=32_767).contains(&port), "{port}");
    assert_ne!(port, node_port(&made, 0));
    let other = json!({"spec": {"healthCheckNodePort": port + 1}});
    assert_eq!(
        scope.merge(&path, &other).await.code,
        422,
        "it stays while it is used"
    );
    let kept = scope
        .merge(&path, &json!({"spec": {"healthCheckNodePort": null}}))
        .await
        .granted();
    assert_eq!(kept["spec"]["healthCheckNodePort"], port);
    let cluster = scope
        .merge(&path, &json!({"spec": {"externalTrafficPolicy": "Cluster"}}))
        .await
        .granted();
    assert_eq!(cluster["spec"]["healthCheckNodePort"], Value::Null);
    let local = scope
        .merge(&path, &json!({"spec": {"externalTrafficPolicy": "Local"}}))
        .await
        .granted();
    assert!(local["spec"]["healthCheckNodePort"].is_i64());
}

fn ingress(entries: &Value) -> Value {
    json!({"status": {"loadBalancer": {"ingress": entries}}})
}

pub(super) async fn ingress_gets_its_mode(scope: Scope) {
    scope.new_balanced("a").await;
    let status = format!("{}/status", scope.service("a"));
    let entries = json!([
        {"ip": "192.0.2.1"},
        {"ip": "2001:db8::1", "ipMode": "Proxy"},
        {"hostname": "a.example.com"},
    ]);
    let published = scope.merge(&status, &ingress(&entries)).await.granted();
    assert_eq!(
        published["status"]["loadBalancer"]["ingress"],
        json!([
            {"ip": "192.0.2.1", "ipMode": "VIP"},
            {"ip": "2001:db8::1", "ipMode": "Proxy"},
            {"hostname": "a.example.com"},
        ])
    );
    // The same without the mode is the same.
    let again = scope.merge(&status, &ingress(&entries)).await.granted();
    assert_eq!(version_of(&again), version_of(&published));
    for wrong in [
        json!([{"ip": "not an address"}]),
        json!([{"hostname": "192.0.2.1"}]),
        json!([{"ip": "192.0.2.1", "ipMode": "Sideways"}]),
    ] {
        let answer = scope.merge(&status, &ingress(&wrong)).await;
        assert_eq!(answer.code, 422, "{wrong}");
    }
    let cleared = scope.merge(&status, &ingress(&Value::Null)).await.granted();
    assert_eq!(cleared["status"], json!({"loadBalancer": {}}));
}

pub(super) async fn another_type_clears_ports_and_status(scope: Scope) {
    let mut spec = balanced();
    spec["loadBalancerClass"] = json!("example.com/lb");
    spec["externalTrafficPolicy"] = json!("Local");
    let made = scope.new_service("a", spec).await;
    let path = scope.service("a");
    let status = format!("{path}/status");
    let publish = ingress(&json!([{"ip": "192.0.2.1"}]));
    scope.merge(&status, &publish).await.granted();
    let plain = scope
        .merge(&path, &json!({"spec": {"type": "ClusterIP"}}))
        .await
        .granted();
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
    assert_eq!(
        scope.merge(&status, &publish).await.code,
        422,
        "only balancers have addresses"
    );
    let back = scope
        .merge(&path, &json!({"spec": {"type": "LoadBalancer"}}))
        .await
        .granted();
    assert!(node_port(&back, 0) >= 30_000);
    assert_eq!(back["spec"]["externalTrafficPolicy"], "Cluster");
}

pub(super) async fn an_external_name_has_no_address(scope: Scope) {
    let made = scope
        .new_service(
            "a",
            json!({"type": "ExternalName", "externalName": "x.example.com"}),
        )
        .await;
    for none in ["clusterIP", "clusterIPs", "ipFamilies", "internalTrafficPolicy"] {
        assert_eq!(made["spec"][none], Value::Null, "{none}");
    }
    scope.new_balanced("b").await;
    let patch = json!({"spec": {"type": "ExternalName", "externalName": "x.example.com"}});
    let changed = scope.merge(&scope.service("b"), &patch).await.granted();
    for none in ["clusterIP", "clusterIPs", "ipFamilies"] {
        assert_eq!(changed["spec"][none], Value::Null, "{none}");
    }
    let headless = scope
        .new_service("c", json!({"clusterIP": "None", "selector": {"a": "b"}}))
        .await;
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(headless["spec"]["ipFamilies"], json!(["IPv4"]));
    let open = scope.new_service("d", json!({"clusterIP": "None"})).await;
    assert_eq!(open["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(open["spec"]["ipFamilyPolicy"], "RequireDualStack");
}

pub(super) async fn what_may_not_change_is_refused(scope: Scope) {
    scope.new_balanced("a").await;
    let path = scope.service("a");
    let causes = scope
        .merge(&path, &json!({"spec": {"clusterIP": "10.96.250.250"}}))
        .await
        .causes();
    assert!(causes[0].0.starts_with("spec.clusterIPs"), "{causes:?}");
    let causes = scope
        .merge(&path, &json!({"spec": {"loadBalancerClass": "example.com/lb"}}))
        .await
        .causes();
    assert_eq!(
        causes,
        [(
            "spec.loadBalancerClass".to_owned(),
            "Invalid value: \"example.com/lb\": may not change once set".to_owned()
        )]
    );
}

pub(super) async fn wrong_services_are_refused(scope: Scope) {
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
        let causes = scope.try_service("bad", spec.clone()).await.causes();
        assert_eq!(causes[0], (field.to_owned(), message.to_owned()), "{spec}");
    }
    let wrong_type = json!({"ports": [{"port": "80"}]});
    let (code, reason, _) = scope.try_service("bad", wrong_type).await.refused();
    assert_eq!((code, reason.as_str()), (400, "BadRequest"));
    let bad_name = scope.try_service("under_score", balanced()).await.causes();
    assert_eq!(bad_name[0].0, "metadata.name");
}

pub(super) async fn a_manifest_sent_again_keeps_what_was_given_out(scope: Scope) {
    let manifest = json!({"metadata": {"name": "a"}, "spec": balanced()});
    let path = scope.service("a");
    let answer = scope.put(&path, &manifest).await;
    assert_eq!(answer.code, 201, "a Service can be created by PUT");
    let made = answer.granted();
    let again = scope.put(&path, &manifest).await.granted();
    assert_eq!(again["spec"], made["spec"]);
    assert_eq!(version_of(&again), version_of(&made));
}

pub(super) async fn a_port_that_stays_keeps_its_node_port(scope: Scope) {
    let ports = json!([{"name": "a", "port": 80}, {"name": "b", "port": 81}]);
    let made = scope
        .new_service("a", json!({"type": "LoadBalancer", "ports": ports}))
        .await;
    let fewer = json!({"spec": {"ports": [{"name": "b", "port": 81, "nodePort": node_port(&made, 1)}]}});
    let path = scope.service("a");
    let patched = scope.merge(&path, &fewer).await.granted();
    assert_eq!(node_port(&patched, 0), node_port(&made, 1));
    // A strategic patch finds the port by its number.
    let renamed = json!({"spec": {"ports": [{"port": 81, "name": "c"}]}});
    let patched = scope.strategic(&path, &renamed).await.granted();
    assert_eq!(
        (&patched["spec"]["ports"][0]["name"], node_port(&patched, 0)),
        (&json!("c"), node_port(&made, 1))
    );
}
