use std::sync::Arc;

use bowline_cloud_provider::{AddressNote, AddressType, Ingress, IpMode, TaintEffect};

use super::*;

fn some_node() -> Node {
    Node {
        uid: Arc::from("node-uid"),
        resource_version: Arc::from("42"),
        ..Node::named("worker-1")
    }
}

fn some_service() -> Service {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": "web", "name": "front", "uid": "service-uid", "resourceVersion": "43",
            "finalizers": ["example.com/other"]
        }
    }))
    .unwrap()
}

#[test]
fn bodies_of_node_writes() {
    let taint = Taint {
        key: "example.com/dedicated".into(),
        value: Some("gpu".into()),
        effect: TaintEffect::NoSchedule,
        time_added: None,
    };
    let initialized = NodePatch {
        labels: [
            ("topology.kubernetes.io/zone".into(), Some("z1".into())),
            ("old".into(), None),
        ]
        .into(),
        provider_id: Some("nimbus://7".into()),
        taints: Some(vec![taint]),
        ..NodePatch::default()
    };
    let annotated = NodePatch {
        annotations: [
            ("example.com/a".into(), Some("1".into())),
            ("example.com/b".into(), None),
        ]
        .into(),
        ..NodePatch::default()
    };
    let untainted = NodePatch {
        taints: Some(Vec::new()),
        ..NodePatch::default()
    };
    let addresses = [
        NodeAddress::new(AddressType::InternalIp, "10.0.0.1"),
        NodeAddress::new(AddressType::InternalIp, "fd00::1"),
    ];
    let node = some_node();
    let now: Timestamp = "2026-03-01T10:00:00.25Z".parse().unwrap();
    let bodies = json!({
        "initialized": super::node(&node, &initialized),
        "annotated": super::node(&node, &annotated),
        "without taints": super::node(&node, &untainted),
        "addresses": node_addresses(&node, &addresses),
        "network unavailable": network_unavailable(&node, false, "RouteCreated", "a route was created", now),
        "delete": delete_node(&node),
    });
    insta::with_settings!({omit_expression => true}, { insta::assert_json_snapshot!(bodies) });
}

#[test]
fn bodies_of_service_writes() {
    let service = some_service();
    let status = LoadBalancerStatus {
        ingress: vec![
            Ingress {
                ip: Some("192.0.2.1".into()),
                ip_mode: Some(IpMode::Proxy),
                ..Ingress::default()
            },
            Ingress {
                hostname: Some("lb.example.com".into()),
                ports: vec![
                    IngressPort {
                        port: 80,
                        protocol: "TCP".into(),
                        error: None,
                    },
                    IngressPort {
                        port: 53,
                        protocol: "UDP".into(),
                        error: Some("NotSupported".into()),
                    },
                ],
                ..Ingress::default()
            },
        ],
    };
    let condition = serde_json::from_value(json!({
        "type": "LoadBalancerAddressChanged", "status": "True", "reason": "Unknown", "message": "was 192.0.2.9 until then: so",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    let bodies = json!({
        "finalizer added": service_finalizer(&service, true),
        "finalizer removed": service_finalizer(&service, false),
        "status": service_status(&service, &status, &AddressNote::Keep),
        "status emptied": service_status(&service, &LoadBalancerStatus::empty(), &AddressNote::Keep),
        "status with another address than before": service_status(&service, &status, &AddressNote::Set(condition)),
        "status with the same for long": service_status(&service, &LoadBalancerStatus::empty(), &AddressNote::Remove),
        "annotations": service_annotations(&service, &[("a".into(), Some("1".into())), ("b".into(), None)]),
        "address": load_balancer_ip(&service, "192.0.2.1", &[]),
        "address and annotation": load_balancer_ip(&service, "192.0.2.1", &[("a".into(), None)]),
        "address cleared": load_balancer_ip(&service, "", &[]),
    });
    insta::with_settings!({omit_expression => true}, { insta::assert_json_snapshot!(bodies) });
}

#[test]
fn a_finalizer_that_is_there_is_not_doubled() {
    let mut service = some_service();
    service.metadata.finalizers = Some(vec![
        keys::FINALIZER_LOAD_BALANCER.into(),
        "example.com/other".into(),
    ]);
    let body = service_finalizer(&service, true);
    assert_eq!(
        body["metadata"]["finalizers"],
        json!(["example.com/other", "service.kubernetes.io/load-balancer-cleanup"])
    );
}

/// For the next leader, should the API server clear the class with the type.
#[test]
fn the_class_is_noted_with_the_finalizer_and_the_note_goes_with_it() {
    let mut service = some_service();
    let notes =
        |service: &Service, present| service_finalizer(service, present)["metadata"]["annotations"].clone();
    assert_eq!(notes(&service, true), json!(null), "without a class");
    service.spec.get_or_insert_default().load_balancer_class = Some("example.com/a".into());
    assert_eq!(
        notes(&service, true),
        json!({keys::ANNOTATION_CLASS: "example.com/a"})
    );
    let annotations = service.metadata.annotations.get_or_insert_default();
    annotations.insert(keys::ANNOTATION_CLASS.to_owned(), "example.com/a".to_owned());
    assert_eq!(notes(&service, true), json!(null));
    assert_eq!(notes(&service, false), json!({keys::ANNOTATION_CLASS: null}));
    service.spec.get_or_insert_default().load_balancer_class = None;
    assert_eq!(
        notes(&service, true),
        json!({keys::ANNOTATION_CLASS: null}),
        "an old note"
    );
}

#[test]
fn what_is_not_known_is_no_precondition() {
    assert_eq!(
        json!(node(&Node::named("a"), &NodePatch::default())),
        json!({"metadata": {}})
    );
}
