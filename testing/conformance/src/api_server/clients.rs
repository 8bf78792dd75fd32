//! The requests of our own client, as the controllers make them.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    AddressBefore, AddressLoss, AddressNote, AddressType, Ingress, LoadBalancerStatus, Node, NodeAddress,
    NodeName, Service, ServiceKey, Taint, facts, keys,
};
use bowline_kube_io::{
    Decision, Election, EventSink, Kube, LeaseLock, LeaseTimings, NodeCache, NodePatch, ObjectRef,
    ServiceCache, watch_nodes, watch_services,
};
use bowline_plan::NoteKind;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::Instant;

use super::scope::{Scope, balanced, eventually, names};

fn uninitialized() -> serde_json::Value {
    json!({"spec": {"taints": [
        {"key": keys::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
        {"key": "keep", "effect": "NoExecute", "timeAdded": "2026-01-02T03:04:05Z"},
    ]}})
}

fn name(scope: &Scope, suffix: &str) -> NodeName {
    NodeName::new(scope.node_name(suffix))
}

/// What initialisation writes: provider ID, labels, and all taints but its own.
fn initialization(node: &Node) -> NodePatch {
    let kept: Vec<Taint> = node
        .taints
        .iter()
        .filter(|taint| taint.key != keys::TAINT_UNINITIALIZED)
        .cloned()
        .collect();
    NodePatch {
        labels: [(keys::LABEL_ZONE.to_owned(), Some("z1".to_owned()))].into(),
        provider_id: Some("nimbus://7".into()),
        taints: Some(kept),
        ..NodePatch::default()
    }
}

pub(super) async fn a_node_is_initialised(scope: Scope) {
    scope.new_node("a", uninitialized()).await;
    let kube = scope.kube();
    let fresh = kube.node(&name(&scope, "a")).await.unwrap();
    assert!(fresh.is_uninitialized());
    let addresses = [
        NodeAddress::new(AddressType::InternalIp, "10.0.0.1"),
        NodeAddress::new(AddressType::InternalIp, "fd00::1"),
        NodeAddress::new(AddressType::Hostname, "a"),
    ];
    let addressed = kube.patch_node_addresses(&fresh, &addresses).await.unwrap();
    assert_eq!(addressed.addresses, addresses);
    // Taints go with the version that was read, and that is an old one now.
    let late = kube.patch_node(&fresh, &initialization(&fresh)).await;
    assert!(late.unwrap_err().is_conflict());
    let written = kube
        .patch_node(&addressed, &initialization(&addressed))
        .await
        .unwrap();
    let done = kube.node(&fresh.name).await.unwrap();
    assert_eq!(
        (&*written.uid, &*written.resource_version),
        (&*done.uid, &*done.resource_version)
    );
    assert_eq!(done.provider_id.as_deref(), Some("nimbus://7"));
    assert_eq!(done.labels.value(keys::LABEL_ZONE), Some("z1"));
    assert!(!done.is_uninitialized() && done.has_taint("keep"));
    kube.set_network_unavailable(&done, false, "RouteCreated", "there is a way")
        .await
        .unwrap();
    let routed = kube.node(&done.name).await.unwrap();
    assert!(!routed.network_unavailable.as_ref().unwrap().is_unavailable);
}

pub(super) async fn a_successor_of_a_node_is_never_written_to(scope: Scope) {
    scope.new_node("a", uninitialized()).await;
    let kube = scope.kube();
    let old = kube.node(&name(&scope, "a")).await.unwrap();
    kube.delete_node(&old).await.unwrap();
    assert!(kube.delete_node(&old).await.unwrap_err().is_not_found());
    scope.new_node("a", uninitialized()).await;
    let new = kube.node(&name(&scope, "a")).await.unwrap();
    let patch = NodePatch {
        taints: None,
        ..initialization(&old)
    };
    let addresses = [NodeAddress::new(AddressType::InternalIp, "10.0.0.1")];
    assert!(kube.patch_node(&old, &patch).await.unwrap_err().is_conflict());
    let addressed = kube.patch_node_addresses(&old, &addresses).await;
    assert!(addressed.unwrap_err().is_conflict());
    let condition = kube.set_network_unavailable(&old, true, "R", "m").await;
    assert!(condition.unwrap_err().is_conflict());
    assert!(kube.delete_node(&old).await.unwrap_err().is_conflict());
    assert_eq!(kube.node(&new.name).await.unwrap(), new);
}

async fn listed(kube: &Kube, scope: &Scope, name: &str) -> Arc<Service> {
    let services = kube.list_services().await.unwrap();
    let wanted = ServiceKey::new(scope.namespace(), name);
    services
        .into_iter()
        .find(|service| ServiceKey::of(service) == wanted)
        .unwrap()
}

fn published(service: &Service) -> Vec<&str> {
    let balancer = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref());
    let ingress = balancer.and_then(|balancer| balancer.ingress.as_deref());
    ingress
        .unwrap_or_default()
        .iter()
        .filter_map(|entry| entry.ip.as_deref())
        .collect()
}

pub(super) async fn a_service_is_guarded_published_and_let_go(scope: Scope) {
    scope.new_balanced("a").await;
    let kube = scope.kube();
    let seen = listed(&kube, &scope, "a").await;
    let guarded = kube.set_service_finalizer(&seen, true).await.unwrap();
    assert_eq!(
        guarded.metadata.finalizers.as_deref(),
        Some([keys::FINALIZER_LOAD_BALANCER.to_owned()].as_slice())
    );
    let late = kube.set_service_finalizer(&seen, false).await;
    assert!(late.unwrap_err().is_conflict());
    let status = LoadBalancerStatus {
        ingress: vec![Ingress {
            ip: Some("192.0.2.1".into()),
            ..Ingress::default()
        }],
    };
    // Addresses only need the same object, not the same version.
    let with_address = kube
        .patch_service_status(&seen, &status, &AddressNote::Keep)
        .await
        .unwrap();
    assert_eq!(published(&with_address), ["192.0.2.1"]);
    // The condition goes with the addresses, which are replaced as a whole, and leaves the other condition as it is.
    let trouble = Some(("quota", "no room"));
    let unwell = kube
        .set_service_trouble(&with_address, trouble, Duration::ZERO)
        .await;
    let status = LoadBalancerStatus {
        ingress: vec![Ingress::address("192.0.2.2", None)],
    };
    let note =
        |service: &Service| AddressNote::of(service, &status, &[], AddressLoss::Unknown, Timestamp::now());
    let unwell = unwell.unwrap();
    let changed = kube
        .patch_service_status(&unwell, &status, &note(&unwell))
        .await
        .unwrap();
    assert_eq!(published(&changed), ["192.0.2.2"]);
    let told = AddressBefore::told(&changed, Timestamp::now()).unwrap();
    assert_eq!(told.from, ["192.0.2.1"]);
    let gone = AddressNote::of_removal(&changed);
    let with_address = kube.patch_service_status(&changed, &status, &gone).await.unwrap();
    assert!(facts::address_changed(&with_address).is_none() && facts::trouble(&with_address).is_some());
    scope.delete(&scope.service("a"), &json!({})).await.granted();
    let emptied = kube
        .patch_service_status(&with_address, &LoadBalancerStatus::empty(), &AddressNote::Keep)
        .await
        .unwrap();
    assert!(published(&emptied).is_empty());
    kube.set_service_finalizer(&emptied, false).await.unwrap();
    assert_eq!(scope.get(&scope.service("a")).await.code, 404);
    let gone = kube
        .patch_service_status(&emptied, &status, &AddressNote::Keep)
        .await;
    assert!(gone.unwrap_err().is_not_found());
}

pub(super) async fn annotations_and_address_of_a_service_are_written(scope: Scope) {
    scope.new_balanced("a").await;
    let kube = scope.kube();
    let seen = listed(&kube, &scope, "a").await;
    let annotated = kube
        .annotate_service(&seen, &[("example.com/uuid".into(), Some("1".into()))])
        .await
        .unwrap();
    assert_eq!(
        annotated
            .metadata
            .annotations
            .as_ref()
            .unwrap()
            .text("example.com/uuid"),
        Some("1")
    );
    let late = kube.set_load_balancer_ip(&seen, "192.0.2.1", &[]).await;
    assert!(late.unwrap_err().is_conflict());
    let addressed = kube
        .set_load_balancer_ip(&annotated, "192.0.2.1", &[])
        .await
        .unwrap();
    let asked = |service: &Service| {
        service
            .spec
            .as_ref()
            .and_then(|spec| spec.load_balancer_ip.clone())
    };
    assert_eq!(asked(&addressed).as_deref(), Some("192.0.2.1"));
    let cleared = kube.set_load_balancer_ip(&addressed, "", &[]).await.unwrap();
    assert_eq!(asked(&cleared), None);
    let bare = kube
        .annotate_service(&cleared, &[("example.com/uuid".into(), None)])
        .await
        .unwrap();
    assert_eq!(bare.metadata.annotations.unwrap_or_default().len(), 0);
}

/// One round of election: look, decide, write.
async fn round(lock: &LeaseLock, election: &mut Election, now: Timestamp) -> bool {
    election.observe(lock.get().await.ok(), Instant::now());
    let begun = Instant::now();
    let written = match election.decide(begun, now) {
        Decision::Create(record) => lock.create(&record).await.ok(),
        Decision::Update(record) => lock.update(&record).await.ok(),
        Decision::Wait { .. } => None,
    };
    if written.is_some() {
        election.observe(written, begun);
    }
    election.is_holder()
}

pub(super) async fn a_lease_passes_from_hand_to_hand(scope: Scope) {
    let kube = scope.kube();
    let lock = |identity: &str| LeaseLock::new(kube.clone(), scope.namespace(), "leader", identity);
    let (first, second) = (lock("first"), lock("second"));
    let mut of_first = Election::new("first", LeaseTimings::default());
    let mut of_second = Election::new("second", LeaseTimings::default());
    let now = kube.clock().now();
    assert!(round(&first, &mut of_first, now).await);
    assert!(!round(&second, &mut of_second, now).await);
    assert!(round(&first, &mut of_first, now).await, "renewed");
    second.update(&of_first.release(now).unwrap()).await.unwrap();
    assert!(round(&second, &mut of_second, now).await);
    assert!(!round(&first, &mut of_first, now).await);
    assert_eq!(first.get().await.unwrap().transitions, 1);
}

pub(super) async fn events_are_written_and_counted_up(scope: Scope) {
    scope.new_balanced("a").await;
    let kube = scope.kube();
    let service = listed(&kube, &scope, "a").await;
    let (sink, writer) = EventSink::channel(kube, "host");
    let writing = tokio::spawn(writer.run());
    let recorder = sink.recorder("service-controller");
    for _ in 0..3 {
        recorder.record(
            &ObjectRef::from(&*service),
            NoteKind::Normal,
            "EnsuredLoadBalancer",
            "Ensured load balancer",
        );
    }
    let left = sink.drain(Duration::from_secs(60)).await;
    assert_eq!(left, 0, "written within a minute");
    writing.abort();
    // The API server's own repair of addresses may say something about the Service, too.
    let ours = "fieldSelector=source%3Dservice-controller";
    let path = format!("/api/v1/namespaces/{}/events?{ours}", scope.namespace());
    let list = scope.get(&path).await.granted();
    assert_eq!(names(&list).len(), 1, "{list}");
    assert_eq!(
        (&list["items"][0]["count"], &list["items"][0]["reason"]),
        (&json!(3), &json!("EnsuredLoadBalancer"))
    );
}

pub(super) async fn a_cache_follows_the_server(scope: Scope) {
    scope.new_node("a", uninitialized()).await;
    let (nodes, services) = (Arc::new(NodeCache::new()), Arc::new(ServiceCache::new()));
    let kube = scope.kube();
    let following = [
        tokio::spawn(watch_nodes(kube.clone(), Arc::clone(&nodes))),
        tokio::spawn(watch_services(kube.clone(), Arc::clone(&services))),
    ];
    nodes.synced().await;
    services.synced().await;
    let (present, later) = (name(&scope, "a"), name(&scope, "b"));
    assert!(nodes.get(&present).unwrap().is_uninitialized());
    scope.new_node("b", json!({})).await;
    eventually("a new Node is seen", async || nodes.get(&later)).await;
    let node = nodes.get(&present).unwrap();
    kube.patch_node(&node, &initialization(&node)).await.unwrap();
    eventually("a change is seen", async || {
        let node = nodes.get(&present)?;
        (!node.is_uninitialized()).then_some(())
    })
    .await;
    kube.delete_node(&node).await.unwrap();
    eventually("a deletion is seen", async || {
        nodes.get(&present).is_none().then_some(())
    })
    .await;
    scope.new_balanced("a").await;
    let key = ServiceKey::new(scope.namespace(), "a");
    eventually("a Service is seen", async || services.get(&key)).await;
    for task in following {
        task.abort();
    }
}

pub(super) async fn a_condition_without_a_time_is_stored_and_keeps_no_cache_from_being_filled(scope: Scope) {
    let spec = json!({"type": "ClusterIP", "selector": {"app": "x"}, "ports": [{"port": 80}]});
    scope.new_service("a", spec).await;
    let status = format!("{}/status", scope.service("a"));
    let patch = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let stored = scope.merge(&status, &patch).await.granted();
    assert_eq!(
        stored["status"]["conditions"],
        json!([{"type": "Ready", "status": "True", "lastTransitionTime": null, "reason": "", "message": ""}])
    );
    let services = Arc::new(ServiceCache::new());
    let following = tokio::spawn(watch_services(scope.kube(), Arc::clone(&services)));
    services.synced().await;
    assert!(services.get(&ServiceKey::new(scope.namespace(), "a")).is_some());
    assert!(services.unreadable().borrow().is_empty());
    following.abort();
}

pub(super) async fn more_services_than_a_page_are_listed(scope: Scope) {
    for number in 0..105 {
        let mut spec = balanced();
        spec["allocateLoadBalancerNodePorts"] = json!(false);
        scope.new_service(&format!("s-{number}"), spec).await;
    }
    let services = scope.kube().list_services().await.unwrap();
    let own = services
        .iter()
        .filter(|service| service.metadata.namespace.as_deref() == Some(scope.namespace()));
    assert_eq!(own.count(), 105);
}
