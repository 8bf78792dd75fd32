use bowline_cloud_provider::{AddressType, TaintEffect, keys};

use super::*;

const NODE: &str = r#"{
  "kind": "Node", "apiVersion": "v1",
  "metadata": {
    "name": "worker-1", "uid": "5c9b", "resourceVersion": "4711",
    "creationTimestamp": "2026-03-01T10:00:00Z",
    "deletionTimestamp": null,
    "labels": {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"},
    "annotations": {
      "alpha.kubernetes.io/provided-node-ip": "10.0.0.1",
      "kubectl.kubernetes.io/last-applied-configuration": "{\"kind\":\"Node\"}",
      "volumes.kubernetes.io/controller-managed-attach-detach": "true",
      "csi.volume.kubernetes.io/nodeid": "{\"csi.example.com\":\"worker-1\"}",
      "node.alpha.kubernetes.io/ttl": "0",
      "note": "a \"quoted\" word"
    },
    "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]
  },
  "spec": {
    "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd00:1::/64"],
    "providerID": "nimbus://7", "unschedulable": true,
    "taints": [
      {"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"},
      {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-03-01T10:00:00Z"}
    ]
  },
  "status": {
    "capacity": {"cpu": "4"},
    "addresses": [
      {"type": "InternalIP", "address": "10.0.0.1"}, {"type": "InternalIP", "address": "fd00::1"},
      {"type": "Hostname", "address": "worker-1"}, {"type": "PodIP", "address": "10.1.0.1"}
    ],
    "conditions": [
      {"type": "NetworkUnavailable", "status": "True", "reason": "NoRouteCreated", "message": "none yet"},
      {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "lastHeartbeatTime": "2026-03-01T10:00:00Z"}
    ],
    "images": [{"names": ["registry.k8s.io/pause:3.10"], "sizeBytes": 320368}],
    "nodeInfo": {"kubeletVersion": "v1.34.4"}
  }
}"#;

fn node(json: &str) -> Node {
    whole(json, &Interner::default()).unwrap()
}

fn whole(json: &str, strings: &Interner) -> Result<Node, KubeError> {
    let Shown { object, trouble } = decode(json.as_bytes(), strings)?;
    trouble.map_or(Ok(Arc::unwrap_or_clone(object)), Err)
}

#[test]
fn all_that_is_looked_at_is_read() {
    let node = node(NODE);
    assert_eq!(
        (node.name.as_str(), &*node.uid, &*node.resource_version),
        ("worker-1", "5c9b", "4711")
    );
    assert_eq!(node.created.to_string(), "2026-03-01T10:00:00Z");
    assert!(!node.deleting);
    assert_eq!(node.labels.value("kubernetes.io/arch"), Some("amd64"));
    assert_eq!(
        node.annotations.value(keys::ANNOTATION_PROVIDED_NODE_IP),
        Some("10.0.0.1")
    );
    assert_eq!(node.annotations.value("note"), Some("a \"quoted\" word"));
    assert_eq!(node.provider_id.as_deref(), Some("nimbus://7"));
    assert_eq!(node.pod_cidrs, ["10.1.0.0/24", "fd00:1::/64"]);
    assert!(node.is_uninitialized());
    assert_eq!(node.taints[1].effect, TaintEffect::NoExecute);
    assert_eq!(node.taints[1].time_added.as_deref(), Some("2026-03-01T10:00:00Z"));
    assert_eq!(node.addresses.len(), 4);
    assert_eq!(
        node.addresses[1],
        NodeAddress::new(AddressType::InternalIp, "fd00::1")
    );
    assert_eq!(node.addresses[3].kind, AddressType::Other("PodIP".into()));
    assert_eq!(node.readiness, Readiness::NotReady);
    let network = node.network_unavailable.unwrap();
    assert_eq!(
        (network.is_unavailable, &*network.reason),
        (true, "NoRouteCreated")
    );
}

#[test]
fn annotations_that_nobody_asks_for_are_dropped() {
    let kept = node(NODE).annotations;
    assert!(
        DROPPED
            .iter()
            .all(|key| NODE.contains(key) && !kept.contains(key))
    );
}

/// A Node with no more than it must have, and this beside its `metadata`.
fn bare(rest: &str) -> String {
    format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"1"}},{rest}}}"#)
}

#[test]
fn a_bare_node_is_read() {
    let expected = Node {
        uid: Arc::from("u"),
        resource_version: Arc::from("1"),
        created: UNKNOWN_AGE,
        ..Node::named("a")
    };
    assert_eq!(node(&bare(r#""spec":{"providerID":""}"#)), expected);
    assert_eq!(node(&bare(r#""spec":{},"status":null"#)), expected);
    assert_eq!(node(&bare(r#""spec":{},"status":{}"#)), expected);
}

#[test]
fn a_node_that_lost_a_part_on_its_way_is_not_understood() {
    let metadata = |metadata: &str| format!(r#"{{"metadata":{{{metadata}}},"spec":{{}}}}"#);
    for (field, json) in [
        (
            "`metadata.name`",
            metadata(r#""name":"","uid":"u","resourceVersion":"1""#),
        ),
        ("`metadata.uid`", metadata(r#""name":"a","resourceVersion":"1""#)),
        (
            "`metadata.uid`",
            metadata(r#""name":"a","uid":"","resourceVersion":"1""#),
        ),
        ("`metadata.resourceVersion`", metadata(r#""name":"a","uid":"u""#)),
        ("`spec`", bare(r#""status":{}"#)),
        ("`spec`", bare(r#""spec":null"#)),
        (
            "missing field `name`",
            metadata(r#""uid":"u","resourceVersion":"1""#),
        ),
        ("`metadata`", "{}".to_owned()),
        ("invalid length", bare(r#""spec":[]"#)),
        ("it is no Node", bare(r#""spec":{},"kind":"Pod""#)),
    ] {
        let error = whole(&json, &Interner::default()).unwrap_err().to_string();
        assert!(error.contains(field), "{json}: {error}");
    }
}

#[test]
fn a_node_is_read_as_far_as_it_is_looked_at() {
    let all = node(NODE);
    let images = NODE.find(r#""images""#).unwrap();
    for end in 0..NODE.len() {
        let cut = super::understood(&NODE.as_bytes()[..end], &Interner::default());
        match cut {
            Ok(node) => assert_eq!(node, all, "{end}"),
            Err(_) => assert!(end < images, "{end} of {images}"),
        }
    }
    let spoilt = NODE.replace(r#""sizeBytes": 320368"#, "}");
    assert_eq!(node(&spoilt), all);
}

#[test]
fn an_effect_that_is_not_known_yet_is_kept_as_it_is() {
    let node = node(&bare(r#""spec":{"taints":[{"key":"k","effect":"NoMercy"}]}"#));
    assert_eq!(node.taints[0].effect, TaintEffect::Other("NoMercy".to_owned()));
    assert_eq!(serde_json::json!(node.taints[0])["effect"], "NoMercy");
}

#[test]
fn a_node_that_is_going_away_is_known_as_such() {
    let going = |at: &str| {
        let metadata = format!(r#""name":"a","uid":"u","resourceVersion":"1","deletionTimestamp":{at}"#);
        let json = format!(r#"{{"metadata":{{{metadata}}},"spec":{{}}}}"#);
        whole(&json, &Interner::default()).map(|node| node.deleting)
    };
    assert_eq!(going(r#""2026-03-01T10:00:00Z""#), Ok(true));
    assert_eq!(going("null"), Ok(false));
    assert!(going(r#""""#).is_err());
}

#[test]
fn nodes_share_the_strings_that_many_have_and_no_others() {
    let strings = Interner::default();
    let first = whole(NODE, &strings).unwrap();
    let second = whole(NODE, &strings).unwrap();
    let place = |node: &Node| node.labels.value("kubernetes.io/os").unwrap().as_ptr();
    assert_eq!(place(&first), place(&second));
    assert!(!Arc::ptr_eq(
        first.provider_id.as_ref().unwrap(),
        second.provider_id.as_ref().unwrap()
    ));
    let keys = first.labels.iter().map(|(key, _)| Arc::from(key)).collect();
    // This one, the one of the shared lists, and those of the two Nodes.
    assert_eq!(Arc::strong_count(&strings.share_list(keys)), 4);
}

#[test]
fn readiness_follows_the_ready_condition() {
    for (status, readiness) in [
        ("True", Readiness::Ready),
        ("False", Readiness::NotReady),
        ("Unknown", Readiness::Unknown),
    ] {
        let json = format!(
            r#""spec":{{}},"status":{{"conditions":[
                {{"type":"DiskPressure","status":"True"}},{{"type":"Ready","status":"{status}"}}]}}"#
        );
        assert_eq!(node(&bare(&json)).readiness, readiness);
    }
}

#[test]
fn of_a_node_all_is_read_that_can_be_understood() {
    let spoilt = NODE
        .replace(r#""linux""#, "7")
        .replace(r#"{"type": "InternalIP", "address": "10.0.0.1"}"#, "null")
        .replace(r#""effect": "NoExecute""#, r#""effect": {}"#)
        .replace(r#""nimbus://7""#, "[]");
    let Shown { object, trouble } = decode(spoilt.as_bytes(), &Interner::default()).unwrap();
    assert!(trouble.unwrap().to_string().contains("invalid type: integer `7`"));
    assert_eq!(
        object.labels.iter().collect::<Vec<_>>(),
        [("kubernetes.io/arch", "amd64")]
    );
    assert_eq!((object.addresses.len(), object.taints.len()), (3, 1));
    assert_eq!((&object.provider_id, object.created), (&None, UNKNOWN_AGE));
    assert_eq!(object.pod_cidrs.len(), 2);
}
