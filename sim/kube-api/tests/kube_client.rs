//! What a `kube` client sees of the server, in the same process and under a stopped clock.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::time::Duration;

use bowline_kube_api::{Effect, Fault, KubeApi, Status};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, Node, Service};
use kube::api::{
    Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions, WatchEvent,
    WatchParams,
};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Error, ResourceExt};
use serde_json::{Value, json};

const FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";

fn server() -> (KubeApi, Client) {
    let api = KubeApi::builder()
        .seed(7)
        .start_time("2026-01-02T03:04:05Z".parse().unwrap())
        .build();
    let client = Client::new(api.service(), "default");
    (api, client)
}

fn node(name: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"taints": [{"key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true",
            "effect": "NoSchedule"}]},
        "status": {"addresses": [{"type": "Hostname", "address": name}]},
    }))
    .unwrap()
}

fn load_balancer(name: &str) -> Service {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"type": "LoadBalancer", "selector": {"app": "x"}, "ports": [{"port": 80}]},
    }))
    .unwrap()
}

fn refusal(result: Result<impl std::fmt::Debug, Error>) -> (u16, String, String) {
    match result {
        Err(Error::Api(status)) => (status.code, status.reason.clone(), status.message.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn objects_are_created_read_updated_and_deleted() {
    let (api, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let made = nodes.create(&PostParams::default(), &node("a")).await.unwrap();
    assert_eq!(
        made.creation_timestamp().unwrap().0.to_string(),
        "2026-01-02T03:04:05Z"
    );
    assert!(
        made.status.unwrap().addresses.is_some(),
        "a Node brings its status with it"
    );
    assert_eq!(
        refusal(nodes.create(&PostParams::default(), &node("a")).await),
        (409, "AlreadyExists".into(), "nodes \"a\" already exists".into())
    );

    let mut fetched = nodes.get("a").await.unwrap();
    fetched.spec.as_mut().unwrap().provider_id = Some("x://1".into());
    let stale = fetched.clone();
    let updated = nodes
        .replace("a", &PostParams::default(), &fetched)
        .await
        .unwrap();
    assert_eq!(
        refusal(nodes.replace("a", &PostParams::default(), &stale).await),
        (
            409,
            "Conflict".into(),
            "Operation cannot be fulfilled on nodes \"a\": the object has been modified; please apply your changes to \
             the latest version and try again"
                .into()
        )
    );
    let mut changed = updated.clone();
    changed.spec.as_mut().unwrap().provider_id = Some("x://2".into());
    let (code, reason, message) = refusal(nodes.replace("a", &PostParams::default(), &changed).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert_eq!(
        message,
        "Node \"a\" is invalid: spec.providerID: Invalid value: null: field cannot be modified once set"
    );

    assert!(
        nodes
            .delete("a", &DeleteParams::default())
            .await
            .unwrap()
            .is_right()
    );
    assert_eq!(
        refusal(nodes.get("a").await),
        (404, "NotFound".into(), "nodes \"a\" not found".into())
    );
    assert_eq!(api.objects("Node"), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_has_no_revision_and_no_event() {
    let (api, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let made = nodes.create(&PostParams::default(), &node("a")).await.unwrap();
    let before = api.revision();
    let same = json!({"metadata": {"labels": null}, "spec": {"unschedulable": false}});
    let after = nodes
        .patch("a", &PatchParams::default(), &Patch::Strategic(same))
        .await
        .unwrap();
    nodes.replace("a", &PostParams::default(), &made).await.unwrap();
    assert_eq!(after.resource_version(), made.resource_version());
    assert_eq!(api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn each_kind_of_patch_works_and_carries_its_preconditions() {
    let (_, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let made = nodes.create(&PostParams::default(), &node("a")).await.unwrap();
    let params = PatchParams::default();
    let strategic = json!({"metadata": {"labels": {"zone": "x"}}, "spec": {"taints": null}});
    let patched = nodes
        .patch("a", &params, &Patch::Strategic(strategic))
        .await
        .unwrap();
    assert_eq!(patched.labels()["zone"], "x");
    assert_eq!(patched.spec.unwrap().taints, None);
    let merge = json!({"metadata": {"annotations": {"k": "v"}}});
    assert_eq!(
        nodes
            .patch("a", &params, &Patch::Merge(merge))
            .await
            .unwrap()
            .annotations()["k"],
        "v"
    );
    let operations =
        serde_json::from_value(json!([{"op": "remove", "path": "/metadata/labels/zone"}])).unwrap();
    assert!(
        nodes
            .patch("a", &params, &Patch::Json::<Node>(operations))
            .await
            .unwrap()
            .labels()
            .is_empty()
    );

    let stale = json!({"metadata": {"resourceVersion": made.resource_version(), "labels": {"a": "b"}}});
    let (code, reason, _) = refusal(nodes.patch("a", &params, &Patch::Strategic(stale)).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    let foreign = json!({"metadata": {"uid": "other", "labels": {"a": "b"}}});
    let (code, reason, message) = refusal(nodes.patch("a", &params, &Patch::Merge(foreign)).await);
    assert_eq!((code, reason.as_str()), (422, "Invalid"));
    assert!(
        message.contains("metadata.uid: Invalid value: \"other\": field is immutable"),
        "{message}"
    );
    let apply = nodes
        .patch("a", &PatchParams::apply("test"), &Patch::Apply(node("a")))
        .await;
    let (code, _, message) = refusal(apply);
    assert_eq!(
        (code, message.as_str()),
        (415, "server-side apply is not served by this embedded API server")
    );
}

#[tokio::test(start_paused = true)]
async fn status_goes_through_its_subresource_only() {
    let (_, client) = server();
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.create(&PostParams::default(), &node("a")).await.unwrap();
    let both = json!({
        "metadata": {"annotations": {"seen": "1"}},
        "spec": {"unschedulable": true},
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]},
    });
    let params = PatchParams::default();
    let main = nodes.patch("a", &params, &Patch::Strategic(&both)).await.unwrap();
    assert_eq!(main.spec.as_ref().unwrap().unschedulable, Some(true));
    assert_eq!(
        main.status.unwrap().addresses.unwrap().len(),
        1,
        "status unchanged by the main resource"
    );
    let reset = json!({"spec": {"unschedulable": null}});
    nodes
        .patch("a", &params, &Patch::Strategic(&reset))
        .await
        .unwrap();
    let status = nodes
        .patch_status("a", &params, &Patch::Strategic(&both))
        .await
        .unwrap();
    assert_eq!(
        status.spec.as_ref().unwrap().unschedulable,
        None,
        "spec unchanged by the status subresource"
    );
    assert_eq!(status.status.unwrap().addresses.unwrap().len(), 2);
    assert_eq!(status.metadata.annotations.unwrap()["seen"], "1");

    let services: Api<Service> = Api::default_namespaced(client);
    services
        .create(&PostParams::default(), &load_balancer("s"))
        .await
        .unwrap();
    let publish = json!({
        "metadata": {"finalizers": [FINALIZER]},
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}, {"hostname": "lb.example.com"}]}},
    });
    let published = services
        .patch_status("s", &params, &Patch::Strategic(publish))
        .await
        .unwrap();
    assert_eq!(published.finalizers(), [FINALIZER]);
    let ingress = published.status.unwrap().load_balancer.unwrap().ingress.unwrap();
    assert_eq!(ingress[0].ip_mode.as_deref(), Some("VIP"));
    assert_eq!(ingress[1].ip_mode, None);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_they_are_gone() {
    let (api, client) = server();
    let services: Api<Service> = Api::default_namespaced(client);
    let mut service = load_balancer("s");
    service.metadata.finalizers = Some(vec![FINALIZER.into()]);
    let made = services.create(&PostParams::default(), &service).await.unwrap();
    let foreign = Preconditions {
        uid: Some("other".into()),
        resource_version: None,
    };
    let params = DeleteParams {
        preconditions: Some(foreign),
        ..DeleteParams::default()
    };
    let (code, reason, message) = refusal(services.delete("s", &params).await);
    assert_eq!((code, reason.as_str()), (409, "Conflict"));
    assert!(
        message.contains("the UID in the precondition (other) does not match the UID in record"),
        "{message}"
    );

    let marked = services
        .delete("s", &DeleteParams::default())
        .await
        .unwrap()
        .left()
        .unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    assert_eq!(marked.uid(), made.uid());
    let add = json!({"metadata": {"finalizers": ["example.com/new"]}});
    let (code, ..) = refusal(
        services
            .patch("s", &PatchParams::default(), &Patch::Strategic(add))
            .await,
    );
    assert_eq!(code, 422);
    let remove = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": [FINALIZER]}});
    services
        .patch_status("s", &PatchParams::default(), &Patch::Strategic(remove))
        .await
        .unwrap();
    assert_eq!(api.object("Service", "default", "s"), None);
}

#[tokio::test(start_paused = true)]
async fn lists_select_and_page_consistently_until_history_is_compacted() {
    let (api, client) = server();
    for index in 0..5 {
        let zone = if index % 2 == 0 { "x" } else { "y" };
        api.apply_json(
            json!({"kind": "Node", "metadata": {"name": format!("n{index}"), "labels": {"zone": zone}}}),
        )
        .unwrap();
    }
    let nodes: Api<Node> = Api::all(client);
    let names =
        |list: &kube::core::ObjectList<Node>| list.iter().map(ResourceExt::name_any).collect::<Vec<_>>();
    let chosen = nodes
        .list(&ListParams::default().labels("zone in (y)"))
        .await
        .unwrap();
    assert_eq!(names(&chosen), ["n1", "n3"]);
    let chosen = nodes
        .list(&ListParams::default().fields("metadata.name=n2"))
        .await
        .unwrap();
    assert_eq!(names(&chosen), ["n2"]);

    let first = nodes.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(names(&first), ["n0", "n1"]);
    assert_eq!(first.metadata.remaining_item_count, Some(3));
    api.delete("Node", "", "n3");
    let token = first.metadata.continue_.clone().unwrap();
    let second = nodes
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(
        names(&second),
        ["n2", "n3"],
        "the page is of the same moment as the first"
    );
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    api.compact();
    let (code, reason, _) = refusal(
        nodes
            .list(&ListParams::default().limit(2).continue_token(&token))
            .await,
    );
    assert_eq!((code, reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn watches_translate_selector_transitions() {
    let (api, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let start = api.revision().to_string();
    let params = WatchParams::default()
        .labels("on=yes")
        .disable_bookmarks()
        .timeout(5);
    let stream = nodes.watch(&params, &start).await.unwrap();
    let label =
        |value: Option<&str>| json!({"kind": "Node", "metadata": {"name": "a", "labels": {"on": value}}});
    for value in [None, Some("yes"), Some("yes"), Some("no"), Some("yes")] {
        api.apply_json(label(value)).unwrap();
    }
    api.delete("Node", "", "a");
    let events: Vec<String> = stream
        .map_ok(|event| match event {
            WatchEvent::Added(node) => format!("added {}", node.labels()["on"]),
            WatchEvent::Modified(node) => format!("modified {}", node.labels()["on"]),
            WatchEvent::Deleted(node) => format!("deleted {}", node.labels()["on"]),
            other => format!("{other:?}"),
        })
        .try_collect()
        .await
        .unwrap();
    assert_eq!(events, ["added yes", "deleted yes", "added yes", "deleted yes"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_before_the_compaction_is_told_that_it_expired() {
    let (api, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let old = api.revision().to_string();
    api.apply_json(json!({"kind": "Node", "metadata": {"name": "a"}}))
        .unwrap();
    api.compact();
    let mut stream = nodes.watch(&WatchParams::default(), &old).await.unwrap().boxed();
    let Some(Ok(WatchEvent::Error(status))) = stream.next().await else {
        panic!("no error event")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    assert!(stream.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn watchers_follow_in_both_ways_of_starting() {
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let (api, client) = server();
        api.apply_json(json!({"kind": "Node", "metadata": {"name": "a"}}))
            .unwrap();
        let nodes: Api<Node> = Api::all(client);
        let mut stream = watcher(nodes, config)
            .applied_objects()
            .map_ok(|node| node.name_any())
            .boxed();
        assert_eq!(stream.next().await.unwrap().unwrap(), "a");
        api.apply_json(json!({"kind": "Node", "metadata": {"name": "b"}}))
            .unwrap();
        assert_eq!(stream.next().await.unwrap().unwrap(), "b");
        // Across closed watches and lost history nothing is missed.
        api.close_watches();
        api.apply_json(json!({"kind": "Node", "metadata": {"name": "c"}}))
            .unwrap();
        api.compact();
        let mut seen = Vec::new();
        while !seen.contains(&"c".to_owned()) {
            if let Ok(name) = stream.next().await.unwrap() {
                seen.push(name);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_at_its_timeout_and_sends_bookmarks_until_then() {
    let (_, client) = server();
    let nodes: Api<Node> = Api::all(client);
    let begun = tokio::time::Instant::now();
    let stream = nodes
        .watch(&WatchParams::default().timeout(150), "0")
        .await
        .unwrap();
    let events: Vec<_> = stream.try_collect().await.unwrap();
    assert!(
        events
            .iter()
            .all(|event| matches!(event, WatchEvent::Bookmark(_))),
        "{events:?}"
    );
    assert_eq!(
        events.len(),
        3,
        "after one minute, after two, and shortly before the end"
    );
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn leases_keep_microseconds_and_want_a_resource_version() {
    let (_, client) = server();
    let leases: Api<Lease> = Api::namespaced(client, "kube-system");
    let lease: Lease = serde_json::from_value(json!({
        "metadata": {"name": "ccm"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z"},
    }))
    .unwrap();
    let made = leases.create(&PostParams::default(), &lease).await.unwrap();
    assert_eq!(
        made.spec
            .as_ref()
            .unwrap()
            .renew_time
            .as_ref()
            .unwrap()
            .0
            .subsec_nanosecond(),
        123_456_000
    );
    let mut blind = made.clone();
    blind.metadata.resource_version = None;
    let (code, _, message) = refusal(leases.replace("ccm", &PostParams::default(), &blind).await);
    assert_eq!(code, 422);
    assert!(message.ends_with("metadata.resourceVersion: Invalid value: 0: must be specified for an update"));
    leases
        .replace("ccm", &PostParams::default(), &made)
        .await
        .unwrap();
    let missing: Api<Lease> = Api::namespaced(leases.into_client(), "nowhere");
    assert_eq!(
        refusal(missing.create(&PostParams::default(), &lease).await).2,
        "namespaces \"nowhere\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn events_belong_to_the_namespace_of_their_object() {
    let (_, client) = server();
    let event = |namespace: Option<&str>| Event {
        metadata: ObjectMeta {
            generate_name: Some("a.".into()),
            ..ObjectMeta::default()
        },
        involved_object: serde_json::from_value(json!({"kind": "Node", "name": "a", "namespace": namespace}))
            .unwrap(),
        reason: Some("Synced".into()),
        ..Event::default()
    };
    let events: Api<Event> = Api::default_namespaced(client);
    let made = events.create(&PostParams::default(), &event(None)).await.unwrap();
    assert_eq!(made.name_any().len(), "a.".len() + 5);
    let (code, _, message) = refusal(events.create(&PostParams::default(), &event(Some("other"))).await);
    assert_eq!(code, 422);
    assert!(
        message
            .ends_with("involvedObject.namespace: Invalid value: \"other\": does not match event.namespace"),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn faults_refuse_delay_and_break_requests() {
    let (api, client) = server();
    let nodes: Api<Node> = Api::all(client);
    api.faults()
        .fail_next(1, "create", "nodes", Status::too_many_requests(3));
    let (code, reason, _) = refusal(nodes.create(&PostParams::default(), &node("a")).await);
    assert_eq!((code, reason.as_str()), (429, "TooManyRequests"));
    api.faults()
        .inject(Fault::new(Effect::DropBefore).verb("create").times(1));
    assert!(nodes.create(&PostParams::default(), &node("a")).await.is_err());
    assert_eq!(api.object("Node", "", "a"), None);
    api.faults()
        .inject(Fault::new(Effect::DropAfter).verb("create").times(1));
    assert!(nodes.create(&PostParams::default(), &node("a")).await.is_err());
    assert!(api.object("Node", "", "a").is_some());
    api.faults()
        .inject(Fault::new(Effect::Delay(Duration::from_secs(7))).resource("nodes"));
    let begun = tokio::time::Instant::now();
    nodes.get("a").await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), 7);

    let codes: Vec<u16> = api
        .journal()
        .of("create", "nodes")
        .iter()
        .map(|exchange| exchange.status)
        .collect();
    assert_eq!(codes, [429, 0, 0]);
    assert_eq!(api.journal().writes().len(), 3);
    assert_eq!(
        api.journal().all()[0].body.as_ref().unwrap()["metadata"]["name"],
        "a"
    );
}
