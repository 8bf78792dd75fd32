//! Objects that this program does not understand, from a server made up for it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{Node, NodeName};
use bowline_kube_io::{
    Body, Cache, CacheKey, Kube, KubeOptions, NodeCache, NodePatch, watch_nodes, watch_services,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{Watched, pass, scripted, until};

/// A server of Nodes and Services that says what it is told to say.
#[derive(Clone, Default)]
struct Server(Arc<Told>);

#[derive(Default)]
struct Told {
    /// What lists show, each with the name that it really has.
    items: Mutex<Vec<(String, Value)>>,
    /// What the next watch shows before it falls silent; without any, it says that it has expired.
    events: Mutex<Vec<Value>>,
}

impl Server {
    fn showing(items: &[Value]) -> Self {
        let server = Self::default();
        server.show(items);
        server
    }

    fn show(&self, items: &[Value]) {
        *self.0.items.lock().unwrap() = named(items);
    }

    fn then(&self, events: &[Value]) {
        *self.0.events.lock().unwrap() = events.to_vec();
    }

    fn client(&self) -> Kube {
        let told = Arc::clone(&self.0);
        scripted(move |uri| {
            let (body, is_open) = told.answer(uri);
            (body, (!is_open).then_some(Duration::ZERO))
        })
    }

    fn watched(&self) -> Watched<Node> {
        Watched::nodes(self.client())
    }
}

/// Objects with the names that they tell.
fn named(items: &[Value]) -> Vec<(String, Value)> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    items.iter().map(|item| (name(item), item.clone())).collect()
}

impl Told {
    /// A body, and whether it stays open.
    fn answer(&self, uri: &http::Uri) -> (String, bool) {
        let query = uri.query().unwrap_or_default();
        if query.contains("watch=true") {
            let events = std::mem::take(&mut *self.events.lock().unwrap());
            if events.is_empty() {
                let status = json!({"kind": "Status", "code": 410, "message": "too old"});
                return (format!("{}\n", json!({"type": "ERROR", "object": status})), false);
            }
            let line = |object| format!("{}\n", json!({"type": "MODIFIED", "object": object}));
            return (events.iter().map(line).collect(), true);
        }
        let mut items = self.items.lock().unwrap().clone();
        if let Some((_, name)) = query.split_once("metadata.name%3D") {
            items.retain(|(is, _)| is == name);
        }
        let items: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
        let kind = match uri.path().ends_with("/services") {
            true => "ServiceList",
            false => "NodeList",
        };
        let list = json!({
            "kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": "70"}, "items": items,
        });
        (list.to_string(), false)
    }
}

/// A Node that is read.
fn good(name: &str, version: &str) -> Value {
    json!({"metadata": {"name": name, "uid": name, "resourceVersion": version}, "spec": {}})
}

fn version(cache: &NodeCache, name: &str) -> Option<String> {
    let node = cache.get(&NodeName::new(name))?;
    Some(node.resource_version.to_string())
}

#[tokio::test(start_paused = true)]
async fn what_a_node_cannot_lose_is_not_lost() {
    let whole = || {
        json!({
            "metadata": {
                "name": "a", "uid": "a", "resourceVersion": "5", "deletionTimestamp": "2026-03-01T10:00:00Z"
            },
            "spec": {"providerID": "nimbus://7", "podCIDRs": ["10.1.0.0/24"]},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "conditions": [{"type": "Ready", "status": "True"}]
            }
        })
    };
    let losses: [fn(&mut Value); 6] = [
        |node| node["spec"]["providerID"] = Value::Null,
        |node| node["spec"]["providerID"] = json!(""),
        |node| node["spec"]["podCIDRs"] = Value::Null,
        |node| node["spec"] = json!({}),
        |node| node["status"] = Value::Null,
        |node| node["metadata"]["deletionTimestamp"] = Value::Null,
    ];
    for lose in losses {
        let mut lossy = whole();
        lose(&mut lossy);
        let mut old = lossy.clone();
        old["metadata"]["resourceVersion"] = json!("4");
        lossy["metadata"]["resourceVersion"] = json!("6");

        let server = Server::showing(&[whole()]);
        server.then(&[old, lossy.clone()]);
        let watched = server.watched();
        let cache = &watched.cache;
        cache.synced().await;
        server.show(&[lossy.clone(), good("b", "6")]);
        until("the second list", || version(cache, "b").is_some()).await;
        pass(60).await;
        assert_eq!(version(cache, "a").as_deref(), Some("5"), "{lossy}");
        // Others of its fields may change.
        let mut next = whole();
        next["metadata"]["resourceVersion"] = json!("7");
        next["metadata"]["labels"] = Value::Null;
        next["status"]["addresses"] = json!([]);
        server.show(&[next]);
        until("the next list", || version(cache, "a").as_deref() == Some("7")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_the_object_asked_for_is_an_error() {
    let nameless = "Node a: the answer is about another object";
    let versionless = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {}});
    let cases = [
        (json!({}), "`metadata`", None),
        (good("b", "2"), nameless, None),
        (versionless, "Node a: it has no `metadata.resourceVersion`", None),
        // Of what was written, only the metadata is looked at.
        (
            json!({"metadata": good("a", "2")["metadata"]}),
            "Node a: it has no `spec`",
            Some("2"),
        ),
    ];
    for (body, why, written) in cases {
        let answer = body.to_string();
        let kube = scripted(move |_| (answer.clone(), Some(Duration::ZERO)));
        let node = Node::named("a");
        let error = kube.node(&node.name).await.unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        match (kube.patch_node(&node, &NodePatch::default()).await, written) {
            (Ok(answer), Some(version)) => assert_eq!(answer.resource_version, version),
            (Err(error), None) => assert!(error.to_string().contains(why), "{error}"),
            (answer, _) => panic!("{answer:?}"),
        }
    }
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
        let written = kube
            .patch_node(&Node::named("a"), &NodePatch::default())
            .await
            .unwrap();
        assert_eq!((&*written.uid, &*written.resource_version), ("uid-1", "8"));
    }
}

/// An object with all that a real one has.
fn real(kind: &str, name: &str, version: &str) -> Value {
    let time = "2026-03-01T10:00:00Z";
    let condition = json!([{"type": "Ready", "status": "True", "reason": "r", "message": "m",
        "lastTransitionTime": time, "lastHeartbeatTime": time, "observedGeneration": 1}]);
    let mut metadata = json!({
        "name": name, "uid": name, "resourceVersion": version, "creationTimestamp": time, "generation": 1,
        "labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["e/f"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "q"}],
        "managedFields": [{"manager": "kubectl", "time": time, "fieldsV1": {"f:spec": {}}}],
    });
    if kind == "nodes" {
        return json!({
            "metadata": metadata,
            "spec": {"providerID": "nimbus://7", "podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"],
                "taints": [{"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": time}]},
            "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}], "conditions": condition,
                "nodeInfo": {"kubeletVersion": "v1.37.0"}, "images": [{"names": ["a"], "sizeBytes": 1}]},
        });
    }
    metadata["namespace"] = json!("default");
    json!({
        "metadata": metadata,
        "spec": {"type": "LoadBalancer", "clusterIP": "10.2.0.1", "clusterIPs": ["10.2.0.1"],
            "ports": [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080, "targetPort": 8080, "appProtocol": "http"}],
            "externalIPs": ["192.0.2.1"], "externalTrafficPolicy": "Local", "healthCheckNodePort": 30081,
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "loadBalancerIP": "192.0.2.2",
            "loadBalancerSourceRanges": ["192.0.2.0/24"], "sessionAffinity": "ClientIP", "selector": {"a": "b"},
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}, "internalTrafficPolicy": "Cluster"},
        "status": {"conditions": condition, "loadBalancer": {"ingress": [
            {"ip": "192.0.2.2", "ipMode": "VIP", "ports": [{"port": 80, "protocol": "TCP", "error": "e"}]}, {"hostname": "h"}]}},
    })
}

/// The paths of all that is in a value, itself included.
fn paths(value: &Value) -> Vec<String> {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.replace('/', "~1"), value))
            .collect(),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        _ => Vec::new(),
    };
    let below = inner
        .iter()
        .flat_map(|(key, value)| paths(value).into_iter().map(move |path| format!("/{key}{path}")));
    [String::new()].into_iter().chain(below).collect()
}

fn odd_values() -> Vec<Value> {
    let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
    let huge = "9".repeat(2_000);
    vec![
        json!(null),
        json!(-1),
        json!(7),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("spam"),
        json!("\u{0}\"\n\u{202e}"),
        json!(huge),
        json!([]),
        json!([null]),
        json!(["x"]),
        json!({}),
        json!({"": {"": []}}),
        deep,
    ]
}

/// Whatever some objects hold: they are there, and all others are followed without a moment's delay. `changed`: the one of a
/// name has another name or UID by that, so it is another object.
async fn survives<T: CacheKey>(
    what: &str,
    odd: &[(String, Value)],
    of_name: impl Fn(&str, &str) -> Value,
    changed: impl Fn(&str) -> bool,
    watch: impl AsyncFn(Kube, Arc<Cache<T>>),
) {
    let ours = |version| ["a", "z"].map(|name| (name.to_owned(), of_name(name, version)));
    let known = odd.iter().map(|(name, _)| (name.clone(), of_name(name, "1")));
    for (is_known, first) in [(false, odd.to_vec()), (true, known.collect())] {
        let server = Server::default();
        let show = |odd: &[(String, Value)], version| {
            *server.0.items.lock().unwrap() = [&ours(version)[..], odd].concat();
        };
        show(&first, "1");
        // The watch shows them so, too, and then something that is well.
        let odd_events = odd.iter().map(|(_, odd)| odd.clone());
        server.then(&odd_events.chain([of_name("a", "8")]).collect::<Vec<_>>());
        let cache = Arc::new(Cache::<T>::new());
        let version_of = |name: &str| {
            let all = cache.all();
            let one = all.iter().find(|object| object.uid() == name);
            one.map(|object| object.resource_version().to_owned())
        };
        let begun = Instant::now();
        let looks = async {
            cache.synced().await;
            show(odd, "9");
            until(what, || version_of("a").as_deref() != Some("1")).await;
            assert_eq!(version_of("a").as_deref(), Some("8"), "{what}: the watch went on");
            assert_eq!(version_of("z").as_deref(), Some("1"), "{what}");
            // A new leader lists.
            cache.renew();
            cache.synced().await;
            for name in ["a", "z"] {
                assert_eq!(version_of(name).as_deref(), Some("9"), "{what}");
            }
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "{:?}: {what}",
                begun.elapsed()
            );
            pass(40).await;
            for (name, odd) in odd {
                let is_there = version_of(name).is_some() || changed(name) || !is_known;
                assert!(is_there, "{what}: gone is {odd}");
            }
            assert!(cache.is_synced() && cache.refusal().is_none(), "{what}");
        };
        tokio::select! {
            done = tokio::time::timeout(Duration::from_secs(90), looks) => assert!(done.is_ok(), "{what}"),
            () = watch(server.client(), Arc::clone(&cache)) => panic!("the watch ended: {what}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_stands_anywhere_in_an_object_is_the_trouble_of_that_object_alone() {
    for kind in ["nodes", "services"] {
        for path in paths(&real(kind, "b", "7")) {
            let spoilt = |(number, value): (usize, Value)| {
                let name = format!("b{number}");
                let mut odd = real(kind, &name, "7");
                *odd.pointer_mut(&path).unwrap() = value;
                (name, odd)
            };
            let odd: Vec<(String, Value)> = odd_values().into_iter().enumerate().map(spoilt).collect();
            let what = format!("{kind} {path}");
            let of_name = |name: &str, version: &str| real(kind, name, version);
            let changed =
                |_: &str| ["/metadata/name", "/metadata/namespace", "/metadata/uid"].contains(&&*path);
            match kind {
                "nodes" => survives(&what, &odd, of_name, changed, watch_nodes).await,
                _ => survives(&what, &odd, of_name, changed, watch_services).await,
            }
        }
    }
}
