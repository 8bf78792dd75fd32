use std::sync::Arc;

use serde_json::{Value, json};

use super::super::tests::{balancer, identity, outcome};
use super::*;
use crate::intent::Identity;

/// A Service `u2` that wants a balancer and shows an address of it, changed by `patch`.
fn held_by(balancer: &LoadBalancer, patch: &Value) -> bool {
    let mut service = json!({
        "metadata": { "namespace": "shop", "name": "web", "uid": "u2" },
        "spec": { "type": "LoadBalancer" },
        "status": { "loadBalancer": { "ingress": [{ "ip": "2001:db8::7" }] } },
    });
    for (key, value) in patch.as_object().unwrap() {
        service[key] = value.clone();
    }
    let services: Vec<Arc<Service>> = serde_json::from_value(json!([service])).unwrap();
    Claims::of(&services).is_held(balancer, "u9")
}

#[test]
fn a_living_service_holds_what_bears_its_uid_in_its_name_or_serves_its_address() {
    let named = balancer(1, "k8s-service-u2", Some("u1"), None);
    let mut shown = balancer(1, "edge", Some("u1"), None);
    shown.vip_addresses = serde_json::from_value(json!([{ "address": "2001:DB8:0::7" }])).unwrap();
    let is_as_it_is = json!({});
    for held in [&named, &shown] {
        assert!(held_by(held, &is_as_it_is));
        for patch in [
            json!({ "metadata": { "uid": "u3", "deletionTimestamp": "2026-02-03T08:15:00Z" } }),
            json!({ "metadata": { "uid": "u2", "deletionTimestamp": "2026-02-03T08:15:00Z" } }),
            json!({ "spec": { "type": "ClusterIP" } }),
            json!({ "spec": { "type": "LoadBalancer", "loadBalancerClass": "other" } }),
            // The one that the question is about.
            json!({ "metadata": { "uid": "u9" } }),
            // The one that it is marked for.
            json!({ "metadata": { "uid": "u1" } }),
        ] {
            assert!(!held_by(held, &patch), "{patch}");
        }
    }
    assert!(!held_by(
        &named,
        &json!({ "metadata": { "uid": "u3" }, "status": {} })
    ));
    assert!(!held_by(&shown, &json!({ "status": {} })));
    assert!(!held_by(&balancer(1, "edge", None, None), &is_as_it_is));
}

/// Any private network may have it.
#[test]
fn a_private_address_holds_nothing_for_a_service_that_names_another_balancer() {
    let uuid = |number: u128| uuid::Uuid::from_u128(number).to_string();
    for (address, is_private) in [
        ("10.0.0.5", true),
        ("172.31.0.5", true),
        ("192.168.0.5", true),
        ("100.64.0.5", true),
        ("fd00::5", true),
        ("FD00:0::5", true),
        ("203.0.113.5", false),
        ("172.32.0.5", false),
        ("100.128.0.5", false),
        ("2001:db8::5", false),
    ] {
        let mut there = balancer(1, "edge", Some("u1"), None);
        there.vip_addresses = serde_json::from_value(json!([{ "address": address }])).unwrap();
        for (named, is_another) in [(Some(uuid(2)), true), (Some(uuid(1)), false), (None, false)] {
            let annotations = json!({ "k8s.cloudscale.ch/loadbalancer-uuid": named.unwrap_or_default() });
            let service = json!({
                "metadata": { "uid": "u2", "annotations": annotations },
                "status": { "loadBalancer": { "ingress": [{ "ip": address }] } },
            });
            let expected = !(is_private && is_another);
            assert_eq!(held_by(&there, &service), expected, "{address} {is_another}");
        }
        // It bears the UID in its name all the same.
        let named = LoadBalancer {
            name: "k8s-service-u2".into(),
            ..there
        };
        let annotations = json!({ "k8s.cloudscale.ch/loadbalancer-uuid": uuid(2) });
        assert!(held_by(
            &named,
            &json!({ "metadata": { "uid": "u2", "annotations": annotations } })
        ));
    }
}

#[test]
fn the_name_that_holds_the_service_s_uid_proves_a_restore_like_the_annotation() {
    for (marked, theirs, ours, expected) in [
        // `u3` is not here.
        ("u3", None, None, "1 []"),
        ("u3", Some("blue"), Some("blue"), "1 []"),
        ("u2", None, None, "foreign 1"),
        ("u3", Some("green"), Some("blue"), "foreign 1"),
    ] {
        let identity = Identity {
            name: names::balancer("u1"),
            ..identity(None, ours)
        };
        let there = balancer(1, "k8s-service-u1", Some(marked), theirs);
        assert_eq!(outcome(&identity, &[there]), expected, "{marked} {theirs:?}");
    }
}

#[test]
fn what_another_living_service_is_served_by_stays_when_one_goes_that_names_it() {
    let (named, edge) = (
        balancer(1, "k8s-service-u2", None, None),
        balancer(1, "edge", None, None),
    );
    let wanting = json!([
        { "metadata": { "uid": "u1" }, "spec": { "type": "LoadBalancer" } },
        { "metadata": { "uid": "u2" }, "spec": { "type": "LoadBalancer" } },
    ]);
    let services: Vec<Arc<Service>> = serde_json::from_value(wanting).unwrap();
    let going = Identity {
        services: Arc::new(services),
        ..identity(Some(1), None)
    };
    let (named, edge) = ([named], [edge]);
    let doomed = |there| {
        let doomed = super::super::doomed(&going, there);
        (doomed.own.len(), doomed.foreign.len())
    };
    // As with an annotation that was copied from the other Service.
    assert_eq!(doomed(&named), (0, 1));
    assert_eq!(doomed(&edge), (1, 0));
    // What bears the mark of the one that goes was made for it.
    let marked = [balancer(1, "k8s-service-u2", Some("u1"), None)];
    assert_eq!(doomed(&marked), (1, 0));
}
