use std::sync::Arc;

use bowline_cloud_provider::{
    AddressNote, AddressType, Ingress, LoadBalancerStatus, Node, NodeAddress, NodeName, ServerVersion,
    Service, Taint, facts, keys,
};
use bowline_kube_api::KubeApi;
use bowline_kube_io::{Body, Kube, KubeError, KubeOptions, NodePatch};
use serde_json::json;

use crate::{client, node, server, service};

async fn conflicts<T: std::fmt::Debug>(write: impl Future<Output = Result<T, KubeError>>) {
    let error = write.await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
}

fn zone(value: &str) -> NodePatch {
    NodePatch {
        labels: [(keys::LABEL_ZONE.into(), Some(value.into()))].into(),
        ..NodePatch::default()
    }
}

async fn created(api: &KubeApi, kube: &Kube, name: &str) -> Node {
    api.apply_json(node(name)).unwrap();
    kube.node(&NodeName::new(name)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_node_is_initialised_by_one_patch() {
    let api = server();
    let kube = client(&api);
    let mut fresh = node("a");
    fresh["spec"]["taints"] = json!([{"key": keys::TAINT_UNINITIALIZED, "effect": "NoSchedule"}, {"key": "keep", "effect": "NoExecute"}]);
    api.apply_json(fresh).unwrap();
    let fresh = kube.node(&NodeName::new("a")).await.unwrap();
    assert!(fresh.is_uninitialized());

    let kept: Vec<Taint> = fresh
        .taints
        .iter()
        .filter(|taint| taint.key != keys::TAINT_UNINITIALIZED)
        .cloned()
        .collect();
    let patch = NodePatch {
        provider_id: Some("nimbus://7".into()),
        taints: Some(kept),
        ..zone("z1")
    };
    let written = kube.patch_node(&fresh, &patch).await.unwrap();
    let writes = api.journal().writes();
    let patched = kube.node(&fresh.name).await.unwrap();
    assert_eq!(
        (&*written.uid, &*written.resource_version),
        (&*patched.uid, &*patched.resource_version)
    );
    assert_eq!(patched.provider_id.as_deref(), Some("nimbus://7"));
    assert_eq!(patched.labels.value(keys::LABEL_ZONE), Some("z1"));
    assert!(!patched.is_uninitialized() && patched.has_taint("keep"));

    assert_eq!(writes.len(), 1);
    assert_eq!(
        (writes[0].verb.as_str(), writes[0].user_agent.as_str()),
        ("patch", "test/1")
    );
}

#[tokio::test(start_paused = true)]
async fn taints_conflict_with_any_change_and_labels_with_none() {
    let api = server();
    let kube = client(&api);
    let seen = created(&api, &kube, "a").await;
    kube.patch_node(&seen, &zone("z1")).await.unwrap();
    kube.patch_node(&seen, &zone("z2")).await.unwrap();
    let tainted = NodePatch {
        taints: Some(vec![Taint::shutdown()]),
        ..NodePatch::default()
    };
    let error = kube.patch_node(&seen, &tainted).await.unwrap_err();
    assert!(error.is_conflict(), "{error:?}");
    let now = kube.node(&seen.name).await.unwrap();
    kube.patch_node(&now, &tainted).await.unwrap();
    let now = kube.node(&seen.name).await.unwrap();
    assert_eq!(now.taints, [Taint::shutdown()]);
}

#[tokio::test(start_paused = true)]
async fn a_successor_of_the_same_name_is_never_written_to() {
    let api = server();
    let kube = client(&api);
    let old = created(&api, &kube, "a").await;
    api.delete("Node", "", "a");
    let new = created(&api, &kube, "a").await;
    assert_ne!(old.uid, new.uid);
    let addresses = [NodeAddress::new(AddressType::InternalIp, "10.0.0.1")];
    conflicts(kube.patch_node(&old, &zone("z1"))).await;
    conflicts(kube.patch_node_addresses(&old, &addresses)).await;
    conflicts(kube.set_network_unavailable(&old, true, "R", "m")).await;
    conflicts(kube.delete_node(&old)).await;
    assert_eq!(kube.node(&new.name).await.unwrap(), new);

    kube.delete_node(&new).await.unwrap();
    assert!(kube.delete_node(&new).await.unwrap_err().is_not_found());
}

#[tokio::test(start_paused = true)]
async fn two_addresses_of_one_type_replace_two_others() {
    let api = server();
    let kube = client(&api);
    let fresh = created(&api, &kube, "a").await;
    let addresses = |last: u8| {
        [
            NodeAddress::new(AddressType::InternalIp, format!("10.0.0.{last}")),
            NodeAddress::new(AddressType::InternalIp, format!("fd00::{last}")),
            NodeAddress::new(AddressType::Hostname, "a"),
        ]
    };
    let once = kube.patch_node_addresses(&fresh, &addresses(1)).await.unwrap();
    assert_eq!(once.addresses, addresses(1));
    // Also with a view of the Node from before it had addresses.
    let twice = kube.patch_node_addresses(&fresh, &addresses(2)).await.unwrap();
    assert_eq!(twice.addresses, addresses(2));
}

#[tokio::test]
async fn a_write_to_a_node_asks_for_its_metadata_and_takes_the_whole_node_too() {
    let whole = json!({
        "kind": "Node", "apiVersion": "v1", "spec": {},
        "metadata": {"name": "a", "uid": "uid-1", "resourceVersion": "8"},
    });
    let mut partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"});
    partial["metadata"] = whole["metadata"].clone();
    for answer in [whole, partial] {
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let accept = request.headers()["accept"].to_str().unwrap_or_default();
            assert!(accept.contains("as=PartialObjectMetadata;"), "{accept}");
            assert!(
                accept.ends_with(",application/json;drop=metadata.managedFields"),
                "{accept}"
            );
            let body = Body::from(answer.to_string().into_bytes());
            std::future::ready(Ok::<_, std::convert::Infallible>(http::Response::new(body)))
        });
        let kube = Kube::with_service(service, KubeOptions::new("test/1"));
        let written = kube.patch_node(&Node::named("a"), &zone("z1")).await.unwrap();
        assert_eq!((&*written.uid, &*written.resource_version), ("uid-1", "8"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_condition_leaves_the_others_alone() {
    let api = server();
    let kube = client(&api);
    let mut ready = node("a");
    ready["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    api.apply_json(ready).unwrap();
    let node = kube.node(&NodeName::new("a")).await.unwrap();
    kube.set_network_unavailable(&node, true, "NoRouteCreated", "not yet")
        .await
        .unwrap();
    let node = kube.node(&node.name).await.unwrap();
    let condition = node.network_unavailable.clone().unwrap();
    assert_eq!(
        (condition.is_unavailable, &*condition.reason),
        (true, "NoRouteCreated")
    );
    kube.set_network_unavailable(&node, false, "RouteCreated", "now")
        .await
        .unwrap();
    let node = kube.node(&node.name).await.unwrap();
    assert!(!node.network_unavailable.unwrap().is_unavailable);
    assert_eq!(node.readiness, bowline_cloud_provider::Readiness::Ready);
}

async fn listed(kube: &Kube, name: &str) -> Arc<Service> {
    let services = kube.list_services().await.unwrap();
    services
        .into_iter()
        .find(|service| service.metadata.name.as_deref() == Some(name))
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn finalizer_and_addresses_of_a_service_go_through_its_status() {
    let api = server();
    let kube = client(&api);
    api.apply_json(service("front")).unwrap();
    let seen = listed(&kube, "front").await;
    api.journal().clear();

    let guarded = kube.set_service_finalizer(&seen, true).await.unwrap();
    assert!(facts::has_finalizer(&guarded));
    conflicts(kube.set_service_finalizer(&seen, false)).await;
    let status = LoadBalancerStatus {
        ingress: vec![Ingress {
            ip: Some("192.0.2.1".into()),
            ..Ingress::default()
        }],
    };
    // The status only needs the same object, not the same version.
    let published = kube
        .patch_service_status(&seen, &status, &AddressNote::Keep)
        .await
        .unwrap();
    assert_eq!(facts::published_addresses(&published), ["192.0.2.1"]);
    assert!(facts::has_finalizer(&published));
    let emptied = kube
        .patch_service_status(&published, &LoadBalancerStatus::empty(), &AddressNote::Keep)
        .await
        .unwrap();
    assert!(facts::published_addresses(&emptied).is_empty());
    let freed = kube.set_service_finalizer(&emptied, false).await.unwrap();
    assert!(!facts::has_finalizer(&freed));

    for write in api.journal().writes() {
        assert_eq!(
            (write.verb.as_str(), write.subresource.as_str()),
            ("patch", "status")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn annotations_and_address_of_a_service_are_written_to_the_version_seen() {
    let api = server();
    let kube = client(&api);
    api.apply_json(service("front")).unwrap();
    let seen = listed(&kube, "front").await;
    let annotated = kube
        .annotate_service(&seen, &[("uuid".into(), Some("1".into()))])
        .await
        .unwrap();
    assert_eq!(facts::annotation(&annotated, "uuid"), Some("1"));
    assert!(
        kube.annotate_service(&seen, &[("uuid".into(), None)])
            .await
            .unwrap_err()
            .is_conflict()
    );
    conflicts(kube.set_load_balancer_ip(&seen, "192.0.2.1", &[])).await;
    let addressed = kube
        .set_load_balancer_ip(&annotated, "192.0.2.1", &[])
        .await
        .unwrap();
    assert_eq!(
        facts::load_balancer_ip(&addressed),
        Ok(Some("192.0.2.1".parse().unwrap()))
    );
    let cleared = kube.set_load_balancer_ip(&addressed, "", &[]).await.unwrap();
    assert_eq!(facts::load_balancer_ip(&cleared), Ok(None));
    let bare = kube
        .annotate_service(&cleared, &[("uuid".into(), None)])
        .await
        .unwrap();
    assert_eq!(facts::annotation(&bare, "uuid"), None);
}

#[tokio::test(start_paused = true)]
async fn the_cluster_tells_its_version_identity_and_health() {
    let api = KubeApi::builder().version(35).build();
    let kube = client(&api);
    assert_eq!(
        kube.server_version().await.unwrap(),
        ServerVersion { major: 1, minor: 35 }
    );
    assert!(!kube.namespace_uid("kube-system").await.unwrap().is_empty());
    assert!(kube.namespace_uid("nowhere").await.unwrap_err().is_not_found());
    kube.is_healthy().await.unwrap();
}
