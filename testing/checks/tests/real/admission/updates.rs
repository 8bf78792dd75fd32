//! Services that are there already: what may be edited, and which changes come too late.

use http::Method;
use serde_json::{Value, json};

use crate::admission::apiserver::{Answer, ApiServer, service};

const MODE: &str = "k8s.cloudscale.ch/loadbalancer-ip-mode";
const FLAVOR: &str = "k8s.cloudscale.ch/loadbalancer-flavor";
const ZONE: &str = "k8s.cloudscale.ch/loadbalancer-zone";
const VIPS: &str = "k8s.cloudscale.ch/loadbalancer-vip-addresses";
const UUID: &str = "k8s.cloudscale.ch/loadbalancer-uuid";

/// Makes a Service that is wrong already, as it was before there was a policy: as a type that no policy looks at, whose
/// annotations nobody minds. No other test has the name: they share the server.
async fn made(server: &ApiServer, cloud: &str, name: &str, service: &Value) -> String {
    let mut service = service.clone();
    service["metadata"]["name"] = name.into();
    let path = format!("/api/v1/namespaces/{cloud}/services");
    let made = server.send(Method::POST, &path, &service).await;
    assert_eq!(made.status, 201, "{made:?}");
    format!("{path}/{name}")
}

/// The API server tries a change on what its cache holds first, and what policies say to that stays when the cache was behind
/// and the change is tried again. So the cache is waited for.
async fn patch(server: &ApiServer, path: &str, patch: Value) -> Answer {
    let object = path.trim_end_matches("?dryRun=All").trim_end_matches("/status");
    server.wait_until_cached(object).await;
    server.send(Method::PATCH, path, &patch).await
}

fn annotated(key: &str, value: impl Into<Value>) -> Value {
    json!({ "metadata": { "annotations": { key: value.into() } } })
}

fn served(ip: &str) -> Value {
    json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ip }] } } })
}

fn asked(ip: &str) -> Value {
    json!({ "spec": { "loadBalancerIP": ip } })
}

#[tokio::test]
async fn a_service_that_was_wrong_before_stays_editable() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    // With Warn it can be made, as it could before there was a policy.
    let path = made(
        &server,
        "cloudscale",
        "old",
        &service(&[(MODE, "vip"), ("k8s.cloudscale.ch/loadbalancer-x", "")]),
    )
    .await;
    for edit in [
        json!({ "metadata": { "labels": { "a": "b" } } }),
        json!({ "spec": { "ports": [{ "name": "http", "port": 81 }] } }),
        json!({ "metadata": { "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] } }),
        annotated("k8s.cloudscale.ch/loadbalancer-node-selector", "a=b"),
        // What the manager writes.
        annotated(UUID, "1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f"),
        annotated("k8s.cloudscale.ch/loadbalancer-config-version", "1"),
        annotated(ZONE, "rma1"),
        annotated("k8s.cloudscale.ch/loadbalancer-x", Value::Null),
    ] {
        patch(&server, &path, edit).await.is_silent();
    }
    patch(&server, &format!("{path}/status"), served("192.0.2.7"))
        .await
        .is_silent();
    // What is changed is looked at, and the correction is fine.
    assert!(
        patch(&server, &path, annotated(MODE, "proxy"))
            .await
            .said()
            .contains(MODE)
    );
    patch(&server, &path, annotated(MODE, "Proxy")).await.is_silent();
    // While it is being deleted nobody minds.
    server.send(Method::DELETE, &path, &json!({})).await.is_silent();
    patch(&server, &path, annotated(MODE, "nonsense"))
        .await
        .is_silent();
    patch(&server, &path, json!({ "metadata": { "finalizers": null } }))
        .await
        .is_silent();
}

#[tokio::test]
async fn a_service_is_looked_at_when_it_comes_to_want_a_load_balancer() {
    let Some(server) = ApiServer::start("Deny").await else {
        return;
    };
    let mut other = service(&[(MODE, "vip")]);
    other["spec"]["type"] = "NodePort".into();
    let path = made(&server, "cloudscale", "late", &other).await;
    let become_one = patch(&server, &path, json!({ "spec": { "type": "LoadBalancer" } })).await;
    assert_eq!(become_one.status, 422, "{become_one:?}");
    assert!(become_one.said().contains(MODE), "{become_one:?}");
    // Of another class it is somebody else's.
    let classed = json!({ "spec": { "type": "LoadBalancer", "loadBalancerClass": "example.org/other" } });
    patch(&server, &path, classed).await.is_silent();
}

#[tokio::test]
async fn changes_that_come_too_late_are_complained_of() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let uuid = "1a2b3c4d-1a2b-3c4d-5e6f-1a2b3c4d5e6f";
    // Before there is a load balancer everything can change.
    let path = made(
        &server,
        "cloudscale",
        "kept",
        &service(&[(FLAVOR, "lb-flex-4-2")]),
    )
    .await;
    patch(&server, &path, annotated(FLAVOR, "lb-standard"))
        .await
        .is_silent();
    patch(&server, &path, annotated(UUID, uuid)).await.is_silent();
    // The manager writes the zone that it found.
    patch(&server, &path, annotated(ZONE, "rma1")).await.is_silent();
    for (key, value) in [
        (FLAVOR, "lb-flex-4-2"),
        (ZONE, "lpg1"),
        (VIPS, "[{\"address\": \"10.0.0.7\"}]"),
    ] {
        let path = format!("{path}?dryRun=All");
        let said = patch(&server, &path, annotated(key, value)).await.said();
        assert!(
            said.contains(&format!("{key} is `{value}` and was")) && said.contains("Take the change back"),
            "{said}"
        );
    }
    // The default in another form, and nothing asked for.
    for (key, value) in [(FLAVOR, Value::Null), (ZONE, Value::Null), (VIPS, " [ ] ".into())] {
        patch(&server, &path, annotated(key, value)).await.is_silent();
    }

    // Another spelling is no change, and another address is one.
    let path = made(
        &server,
        "cloudscale",
        "six",
        &service(&[
            (UUID, uuid),
            (VIPS, r#"[{"subnet": "aa", "address": "fd00:0::1"}]"#),
        ]),
    )
    .await;
    let written = |address: &str, subnet: &str| {
        annotated(
            VIPS,
            format!(r#"[ {{"address": "{address}", "subnet": "{subnet}"}} ]"#),
        )
    };
    patch(&server, &path, written("fd00::0001", "AA"))
        .await
        .is_silent();
    for (address, subnet) in [("fd00::2", "aa"), ("fd00::1", "bb")] {
        let path = format!("{path}?dryRun=All");
        let said = patch(&server, &path, written(address, subnet)).await.said();
        assert!(said.contains("cannot change its addresses"), "{said}");
    }

    let (flavor, id) = (
        "loadbalancer.openstack.org/flavor-id",
        "loadbalancer.openstack.org/load-balancer-id",
    );
    let path = made(&server, "openstack", "kept", &service(&[(flavor, "small")])).await;
    patch(&server, &path, annotated(flavor, "large"))
        .await
        .is_silent();
    patch(&server, &path, annotated(id, "lb-1")).await.is_silent();
    let answer = patch(&server, &path, annotated(flavor, "small")).await.said();
    assert!(
        answer.contains("flavor-id is `small` and was `large`: a change has no effect"),
        "{answer}"
    );
    patch(&server, &path, annotated(flavor, Value::Null))
        .await
        .is_silent();
    patch(
        &server,
        &path,
        annotated("loadbalancer.openstack.org/timeout-client-data", "5"),
    )
    .await
    .is_silent();

    for key in [
        "class",
        "floating-network-id",
        "floating-subnet",
        "floating-subnet-id",
        "floating-subnet-tags",
    ] {
        let key = format!("loadbalancer.openstack.org/{key}");
        let path = format!("{path}?dryRun=All");
        let said = patch(&server, &path, annotated(&key, "other")).await.said();
        assert!(
            said.contains(&format!("{key} is `other` and was not set: a change counts when")),
            "{said}"
        );
    }
    patch(&server, &format!("{path}/status"), served("192.0.2.7"))
        .await
        .is_silent();
    patch(&server, &path, asked("192.0.2.7")).await.is_silent();
    let said = patch(&server, &path, asked("192.0.2.8")).await.said();
    assert!(
        said.contains("spec.loadBalancerIP: the load balancer has another address"),
        "{said}"
    );
    patch(&server, &path, asked("")).await.is_silent();
    // What is said for the first time may be what the load balancer has.
    let zone = "loadbalancer.openstack.org/availability-zone";
    patch(&server, &path, annotated(zone, "az1")).await.is_silent();

    let location = "phoenixnap.com/ip-location";
    let path = made(&server, "phoenixnap", "kept", &service(&[(location, "NLD")])).await;
    patch(&server, &path, annotated(location, "ASH"))
        .await
        .is_silent();
    // An address that a person typed, for which nothing is bought.
    patch(&server, &path, asked("192.0.2.100")).await.is_silent();
    patch(&server, &path, asked("192.0.2.7")).await.is_silent();
    patch(&server, &path, annotated(location, "PHX"))
        .await
        .is_silent();
    patch(&server, &path, annotated(location, "ASH"))
        .await
        .is_silent();
    patch(&server, &format!("{path}/status"), served("192.0.2.7"))
        .await
        .is_silent();
    let answer = patch(&server, &path, annotated(location, "NLD")).await.said();
    assert!(
        answer.contains("ip-location is `NLD` and was `ASH`: the IP block is bought"),
        "{answer}"
    );
    patch(&server, &path, asked("192.0.2.3")).await.is_silent();
    let said = patch(&server, &path, asked("192.0.2.9")).await.said();
    assert!(
        said.contains("spec.loadBalancerIP: the IP block is bought"),
        "{said}"
    );
}

#[tokio::test]
async fn an_internal_load_balancer_that_becomes_another_one_gets_the_floating_ip_that_is_asked_for() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let internal = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let network = "loadbalancer.openstack.org/floating-network-id";
    let id = ("loadbalancer.openstack.org/load-balancer-id", "lb-1");
    let external = |value: Value| {
        let mut edit = annotated(internal, value);
        edit["metadata"]["annotations"][network] = "net-2".into();
        edit["spec"]["loadBalancerIP"] = "192.0.2.8".into();
        edit
    };
    let inside = service(&[id, (internal, "true"), (network, "net-1")]);
    let path = made(&server, "openstack", "inside", &inside).await;
    patch(&server, &format!("{path}/status"), served("10.0.0.7"))
        .await
        .is_silent();
    let tried = format!("{path}?dryRun=All");
    for edit in [
        external("false".into()),
        external(Value::Null),
        // As long as it is internal, there is no floating IP that would be another's.
        annotated(network, "net-2"),
    ] {
        patch(&server, &tried, edit).await.is_silent();
    }
    let said = patch(&server, &tried, asked("192.0.2.8")).await.said();
    assert!(said.contains("the load balancer has another address"), "{said}");

    // By cloud.conf it was internal.
    let path = made(
        &server,
        "openstack",
        "by-file",
        &service(&[id, (network, "net-1")]),
    )
    .await;
    let tried = format!("{path}?dryRun=All");
    patch(&server, &tried, external("false".into())).await.is_silent();
    let said = patch(&server, &tried, external("true".into())).await.said();
    assert!(said.contains(network), "{said}");
}

#[tokio::test]
async fn the_api_server_takes_no_host_name_that_a_policy_refuses() {
    let Some(server) = ApiServer::start("Warn").await else {
        return;
    };
    let path = made(&server, "cloudscale", "named", &service(&[])).await;
    for (name, is_taken) in [
        ("www.example.org", true),
        ("https://www.example.org", false),
        ("WWW.example.org", false),
        ("192.0.2.7", false),
        ("www.example.org.", false),
        ("www.example.org:443", false),
    ] {
        let status = json!({ "status": { "loadBalancer": { "ingress": [{ "hostname": name }] } } });
        let answer = patch(&server, &format!("{path}/status?dryRun=All"), status).await;
        assert_eq!(answer.status == 200, is_taken, "{name}: {answer:?}");
        let key = "k8s.cloudscale.ch/loadbalancer-force-hostname";
        let said = server.create("cloudscale", &service(&[(key, name)])).await.said();
        assert_eq!(said.trim().is_empty(), is_taken, "{name}: {said}");
    }
}
