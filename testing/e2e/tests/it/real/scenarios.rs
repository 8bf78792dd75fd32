//! The most telling scenarios. What is expected is as in the tests in memory.

use bowline_cloudscale_sim::kit::Fault;
use k8s_openapi::api::core::v1::Service;
use rustix::process::Signal;
use serde_json::json;

use super::plane::Plane;
use crate::deploy;
use crate::process::cluster::{ask, free_port};

pub(super) fn addresses(service: &Service) -> Vec<String> {
    let ingress = service
        .status
        .as_ref()
        .and_then(|it| it.load_balancer.as_ref()?.ingress.clone());
    ingress
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| entry.ip)
        .collect()
}

pub(super) fn web() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web" },
        "spec": { "type": "LoadBalancer", "ports": [
            { "name": "web", "protocol": "TCP", "port": 8080 },
            { "name": "admin", "protocol": "TCP", "port": 9000 },
        ] },
    })
}

#[tokio::test]
async fn a21_nodes_and_services_live_under_the_go_manager_s_role_and_nothing_is_forbidden() {
    let Some(plane) = Plane::start("nodes and services under the Go manager's role").await else {
        return;
    };
    let mut manager = plane.manager();
    let server = plane.join("n1").await;
    plane.join("n2").await;
    for name in ["n1", "n2"] {
        plane
            .until("the node is initialised", async || {
                let spec = plane.node(name).await.unwrap().spec.unwrap();
                spec.provider_id.is_some() && spec.taints.unwrap_or_default().is_empty()
            })
            .await;
    }
    let node = plane.node("n1").await.unwrap();
    assert_eq!(
        node.spec.unwrap().provider_id,
        Some(format!("cloudscale://{server}"))
    );
    let labels = node.metadata.labels.unwrap();
    assert_eq!(labels["topology.kubernetes.io/zone"], "rma1");
    let kinds: Vec<String> = node
        .status
        .unwrap()
        .addresses
        .unwrap()
        .into_iter()
        .map(|it| it.type_)
        .collect();
    assert_eq!(kinds, ["Hostname", "ExternalIP", "ExternalIP", "InternalIP"]);

    plane.add_service(web()).await;
    plane
        .until("the address", async || {
            !addresses(&plane.service("web").await.unwrap()).is_empty()
        })
        .await;
    let balancer = &plane.sim.load_balancers()[0];
    let vips: Vec<String> = balancer.vips.iter().map(|vip| vip.address.to_string()).collect();
    assert_eq!(addresses(&plane.service("web").await.unwrap()), vips);
    assert_eq!((plane.sim.pools().len(), plane.sim.members().len()), (2, 4));
    plane
        .until("the events", async || {
            plane.reasons("web").await == ["EnsuringLoadBalancer", "EnsuredLoadBalancer"]
        })
        .await;
    assert_eq!(plane.reasons("n1").await, ["Synced"]);

    plane
        .patch_service(
            "web",
            json!({ "metadata": { "annotations": {
            "k8s.cloudscale.ch/loadbalancer-timeout-member-data-ms": "120000"
        } } }),
        )
        .await;
    plane
        .until("the listeners follow", async || {
            plane
                .sim
                .listeners()
                .iter()
                .all(|it| it.timeout_member_data_ms == 120_000)
        })
        .await;
    plane.delete_service("web").await;
    plane
        .until("the service is gone", async || {
            plane.service("web").await.is_none()
        })
        .await;
    assert!(plane.sim.load_balancers().is_empty());

    manager.signal(Signal::TERM);
    assert_eq!(
        manager.ended().await.0.code(),
        Some(0),
        "{}",
        manager.log().join("\n")
    );
    assert_eq!(plane.holder().await, "");
    plane.assert_nothing_forbidden();
    let gets: Vec<_> = plane
        .requests()
        .into_iter()
        .filter(|it| it.verb == "update" && !it.uri.contains("/leases"))
        .collect();
    assert!(
        gets.is_empty(),
        "a PUT writes other people's fields back: {gets:?}"
    );
    assert_eq!(plane.sim.check_invariants(), Vec::<String>::new());
}

#[tokio::test]
async fn l02_c10_a_node_goes_when_its_server_is_proved_gone_and_not_before() {
    let Some(plane) = Plane::start("the deletion of nodes").await else {
        return;
    };
    for (name, server) in [("gone", false), ("sick", true), ("well", true)] {
        let id = if server {
            plane
                .sim
                .add_server(bowline_cloudscale_sim::ServerSpec::new(name))
        } else {
            uuid::Uuid::from_u128(7)
        };
        plane
            .add_node(json!({
                "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                "spec": { "providerID": format!("cloudscale://{id}") },
                "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
            }))
            .await;
    }
    let ill = plane.sim.faults().add(Fault::any().always().status(500));
    let manager = plane.manager_with(&["--node-monitor-period=1s"]);
    for name in ["gone", "sick"] {
        plane.set_ready(name, "Unknown").await;
    }
    manager
        .until("it has asked several times", async || {
            plane.sim.faults().struck(ill) > 3
        })
        .await;
    for name in ["gone", "sick", "well"] {
        assert!(plane.node(name).await.is_some(), "{name} was deleted on an error");
    }
    plane.sim.faults().clear();
    manager
        .until("the node goes", async || plane.node("gone").await.is_none())
        .await;
    plane
        .until("the event", async || {
            plane.reasons("gone").await.contains(&"DeletingNode".to_owned())
        })
        .await;
    assert!(plane.node("sick").await.is_some() && plane.node("well").await.is_some());
    plane.assert_nothing_forbidden();
}

#[tokio::test]
async fn what_one_process_left_the_next_one_takes_over_without_a_write_and_without_an_event() {
    let Some(plane) = Plane::start("a take-over without a write").await else {
        return;
    };
    // One process makes it, then the mark, which is ours alone, is taken off: so the Go manager leaves it.
    let mut first = plane.manager();
    plane.join("n1").await;
    plane.add_service(web()).await;
    first
        .until("the address", async || {
            !addresses(&plane.service("web").await.unwrap()).is_empty()
        })
        .await;
    plane.unchanged(|| plane.sim.journal().len()).await;
    first.signal(Signal::TERM);
    assert_eq!(first.ended().await.0.code(), Some(0));
    plane
        .sim
        .tag_load_balancer(plane.sim.load_balancers()[0].uuid, Default::default());
    let (before, service, events) = (
        plane.sim.snapshot(),
        plane.service("web").await.unwrap(),
        plane.reasons("web").await,
    );
    let (writes, cloud_writes) = (plane.object_writes().len(), plane.sim.journal().writes().len());
    let reads = plane.sim.journal().reads().len();

    let second = plane.manager();
    second
        .until("it has looked", async || {
            plane.sim.journal().reads().len() > reads + 5
        })
        .await;
    plane
        .unchanged(|| (plane.sim.journal().len(), plane.object_writes().len()))
        .await;
    assert_eq!(plane.sim.journal().writes().len(), cloud_writes);
    assert_eq!(plane.object_writes()[writes..], Vec::<String>::new()[..]);
    assert_eq!(plane.sim.snapshot(), before);
    assert_eq!(plane.service("web").await.unwrap(), service);
    assert_eq!(plane.reasons("web").await, events);
    plane.assert_nothing_forbidden();
}

/// Who may read the metrics.
pub(super) const SCRAPER: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scraper}
rules:
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scraper}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scraper}
subjects:
- {kind: ServiceAccount, name: scraper, namespace: default}
";

#[tokio::test]
async fn our_manifests_are_accepted_and_their_role_is_enough_for_everything() {
    let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    let config = text(&deploy::root().join("cloudscale/config.yml"));
    let Some(plane) = Plane::start_with("our own manifests", &config).await else {
        return;
    };
    for example in deploy::manifests(&deploy::root().join("cloudscale/examples")) {
        // The kinds of the Gateway API are no part of Kubernetes.
        if !example.ends_with("gateway-api.yml") {
            plane.apply(&text(&example)).await;
        }
    }
    plane.apply(SCRAPER).await;
    let (token, stranger) = (plane.token("scraper").await, plane.token("stranger").await);

    let port = free_port().await;
    let mut manager = plane.manager_with(&["--bind-address=127.0.0.1", &format!("--secure-port={port}")]);
    plane.join("worker-1").await; // one of the examples asks for it by name
    for service in plane.load_balancers().await {
        manager
            .until("every example has an address", async || {
                !addresses(&plane.service(&service).await.unwrap()).is_empty()
            })
            .await;
    }
    manager
        .until("the scraper is let in", async || {
            matches!(ask(port, Some(&token), "/metrics").await, Some((200, _)))
        })
        .await;
    assert_eq!(ask(port, Some(&stranger), "/metrics").await.unwrap().0, 403);
    assert_eq!(ask(port, Some("nonsense"), "/metrics").await.unwrap().0, 401);
    assert_eq!(ask(port, None, "/metrics").await.unwrap().0, 403);
    manager.signal(Signal::TERM);
    assert_eq!(
        manager.ended().await.0.code(),
        Some(0),
        "{}",
        manager.log().join("\n")
    );
    plane.assert_nothing_forbidden();
    assert_eq!(plane.sim.check_invariants(), Vec::<String>::new());
}
