use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::plan::NoteKind;
use bowline_cloud_provider::{Node, Service};
use bowline_kube_api::{BoxError, Effect, Fault, KubeApi, Status};
use bowline_kube_io::{EventSink, Kube, KubeMetrics, KubeOptions, ObjectRef, Recorder};
use bytes::Bytes;
use http_body_util::{Either, Full};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::{Switch, client, options, server, service, until};

const MINUTE: Duration = Duration::from_secs(60);

struct Written {
    api: KubeApi,
    sink: EventSink,
    recorder: Recorder,
    node: ObjectRef,
}

impl Written {
    fn start() -> Self {
        let api = server();
        let (sink, writer) = EventSink::channel(client(&api), "host-1");
        tokio::spawn(writer.run());
        let recorder = sink.recorder("cloud-node-controller");
        let node = ObjectRef::from(&Node {
            uid: Arc::from("uid-a"),
            ..Node::named("a")
        });
        Self {
            api,
            sink,
            recorder,
            node,
        }
    }

    fn say(&self, message: &str) {
        self.recorder
            .record(&self.node, NoteKind::Normal, "Synced", message);
    }

    /// The events there are once everything is written.
    async fn events(&self) -> Vec<Value> {
        assert_eq!(self.sink.drain(30 * MINUTE).await, 0);
        self.api.objects("Event")
    }

    fn verbs(&self) -> Vec<String> {
        let of_events = self
            .api
            .journal()
            .matching(|exchange| exchange.resource == "events");
        of_events.into_iter().map(|exchange| exchange.verb).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_looks_like_that_of_a_go_manager() {
    let written = Written::start();
    written.say("Node synced successfully");
    let mut event = written.events().await.remove(0);
    let metadata = event.as_object_mut().unwrap().remove("metadata").unwrap();
    // A server may show the time of the newer events API, which is not set, as null or not at all.
    assert_eq!(event["eventTime"], Value::Null);
    event.as_object_mut().unwrap().remove("eventTime");
    assert_eq!(metadata["namespace"], "default");
    assert!(metadata["name"].as_str().unwrap().starts_with("a."));
    assert_eq!(
        event,
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": {"kind": "Node", "apiVersion": "v1", "name": "a", "uid": "uid-a"},
            "type": "Normal",
            "reason": "Synced",
            "message": "Node synced successfully",
            "source": {"component": "cloud-node-controller", "host": "host-1"},
            "reportingComponent": "cloud-node-controller",
            "reportingInstance": "host-1",
            "firstTimestamp": "2026-03-01T10:00:00Z",
            "lastTimestamp": "2026-03-01T10:00:00Z",
            "count": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_event_is_counted_up_in_place() {
    let written = Written::start();
    written.say("m");
    tokio::time::sleep(MINUTE).await;
    written.say("m");
    written.say("m");
    let events = written.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 3);
    assert_eq!(events[0]["firstTimestamp"], "2026-03-01T10:00:00Z");
    assert_eq!(events[0]["lastTimestamp"], "2026-03-01T10:01:00Z");
    assert_eq!(written.verbs(), ["create", "patch", "patch"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_expired_is_made_anew() {
    let written = Written::start();
    written.say("m");
    let first = written.events().await.remove(0);
    written
        .api
        .delete("Event", "default", first["metadata"]["name"].as_str().unwrap());
    written.say("m");
    let events = written.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["count"], 2);
    assert_ne!(events[0]["metadata"]["name"], first["metadata"]["name"]);
    assert_eq!(written.verbs(), ["create", "patch", "create"]);
}

#[tokio::test(start_paused = true)]
async fn events_of_a_service_are_kept_in_its_namespace() {
    let written = Written::start();
    let mut front = service("front");
    front["metadata"]["namespace"] = json!("kube-system");
    let front: Service = serde_json::from_value(written.api.apply_json(front).unwrap()).unwrap();
    written.recorder.record(
        &ObjectRef::from(&front),
        NoteKind::Warning,
        "SyncLoadBalancerFailed",
        "bad",
    );
    let events = written.events().await;
    assert_eq!(events[0]["metadata"]["namespace"], "kube-system");
    assert_eq!(events[0]["involvedObject"]["namespace"], "kube-system");
    assert_eq!(events[0]["type"], "Warning");
}

#[tokio::test(start_paused = true)]
async fn an_outage_delays_events_and_nobody_else() {
    let written = Written::start();
    let outage = Fault::new(Effect::DropBefore)
        .verb("create")
        .resource("events")
        .times(3);
    written.api.faults().inject(outage);
    let begun = Instant::now();
    written.say("m");
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(written.events().await.len(), 1);
    assert_eq!(begun.elapsed(), MINUTE / 2);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_takes_no_more_events_for_now_holds_up_no_other() {
    let api = server();
    api.apply_json(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "loud"}}))
        .unwrap();
    let inner = api.service();
    let begun = Instant::now();
    // As the admission plugin `EventRateLimit` of an API server does for one namespace.
    let limited = tower::service_fn(move |request: http::Request<bowline_kube_io::Body>| {
        let is_refused = request.uri().path().contains("/loud/") && begun.elapsed() < 3 * MINUTE;
        let inner = inner.clone();
        async move {
            if !is_refused {
                let (head, body) = inner.oneshot(request).await?.into_parts();
                return Ok(http::Response::from_parts(head, Either::Left(body)));
            }
            let busy = http::Response::builder().status(429).header("retry-after", "10");
            Ok::<_, BoxError>(busy.body(Either::Right(Full::new(Bytes::new())))?)
        }
    });
    let (sink, writer) = EventSink::channel(Kube::with_service(limited, options()), "host-1");
    tokio::spawn(writer.run());
    let recorder = sink.recorder("service-controller");
    let say = |namespace: &str, message: String| {
        let mut object = service("web");
        object["metadata"]["namespace"] = json!(namespace);
        let object: Service = serde_json::from_value(object).unwrap();
        recorder.record(&ObjectRef::from(&object), NoteKind::Normal, "R", message);
    };
    let written = |namespace: &str| {
        let mut events = api.objects("Event");
        events.retain(|event| event["metadata"]["namespace"] == namespace);
        events
            .iter()
            .map(|event| event["message"].to_string())
            .collect::<Vec<_>>()
    };
    for number in 0..3 {
        say("loud", number.to_string());
        say("default", number.to_string());
    }
    until("the others are written", || written("default").len() == 3).await;
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(sink.drain(10 * MINUTE).await, 0);
    // The first was given up after twelve tries.
    assert_eq!(written("loud"), [r#""1""#, r#""2""#]);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_given_up_after_twelve_tries() {
    let written = Written::start();
    written
        .api
        .faults()
        .inject(Fault::new(Effect::DropBefore).verb("create").resource("events"));
    written.say("m");
    assert!(written.events().await.is_empty());
    assert_eq!(written.verbs().len(), 12);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_is_not_tried_again() {
    let written = Written::start();
    let refusal = Status::new(403, "Forbidden", "no events for you");
    written.api.faults().fail_next(1, "create", "events", refusal);
    written.say("m");
    assert!(written.events().await.is_empty());
    assert_eq!(written.verbs(), ["create"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_namespace_refuses_on_its_way_out_counts_as_no_missing_right() {
    let api = server();
    let mut registry = Registry::default();
    let kube = Kube::with_service(
        api.service(),
        KubeOptions {
            metrics: KubeMetrics::registered(&mut registry),
            ..options()
        },
    );
    let (sink, writer) = EventSink::channel(kube, "host-1");
    tokio::spawn(writer.run());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "old", "finalizers": ["example.com/wait"]}});
    api.apply_json(namespace).unwrap();
    let mut front = service("front");
    front["metadata"]["namespace"] = json!("old");
    let front: Service = serde_json::from_value(api.apply_json(front).unwrap()).unwrap();
    api.delete("Namespace", "", "old");
    api.faults().inject(
        Fault::new(Effect::Answer(Status::new(403, "Forbidden", "exceeded quota")))
            .verb("create")
            .resource("events")
            .after(1),
    );
    let recorder = sink.recorder("service-controller");
    for text in ["one", "two"] {
        recorder.record(
            &ObjectRef::from(&front),
            NoteKind::Warning,
            "SyncLoadBalancerFailed",
            text,
        );
    }
    assert_eq!(sink.drain(30 * MINUTE).await, 0);
    let mut page = String::new();
    encode(&mut page, &registry).unwrap();
    let codes: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("rest_client_requests_total{"))
        .collect();
    assert_eq!(codes.len(), 2, "{codes:?}");
    assert!(
        codes
            .iter()
            .any(|line| line.contains(r#"code="<terminating>",method="POST""#)),
        "{codes:?}"
    );
    assert!(
        codes
            .iter()
            .any(|line| line.contains(r#"code="403",method="POST""#)),
        "{codes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_answer_was_lost_is_not_doubled() {
    let written = Written::start();
    let lost = Fault::new(Effect::DropAfter)
        .verb("create")
        .resource("events")
        .times(1);
    written.api.faults().inject(lost);
    written.say("m");
    assert_eq!(written.events().await.len(), 1);
    assert_eq!(written.verbs(), ["create", "create"]);
}

#[tokio::test(start_paused = true)]
async fn draining_ends_at_its_deadline() {
    let written = Written::start();
    written
        .api
        .faults()
        .inject(Fault::new(Effect::DropBefore).resource("events"));
    written.say("m");
    written.say("n");
    let begun = Instant::now();
    assert_eq!(written.sink.drain(Duration::from_secs(5)).await, 2);
    assert_eq!(begun.elapsed(), Duration::from_secs(5));
}

#[tokio::test(start_paused = true)]
async fn without_the_lease_no_event_is_sent() {
    let api = server();
    let gate = Switch::open();
    gate.close();
    let (sink, writer) = EventSink::channel(client(&api).with_gate(gate), "");
    tokio::spawn(writer.run());
    let lease = ObjectRef::lease("kube-system", "cloud-controller-manager", "");
    sink.recorder("manager")
        .record(&lease, NoteKind::Normal, "LeaderElection", "x became leader");
    assert_eq!(sink.drain(MINUTE).await, 0);
    assert!(api.journal().all().is_empty());
}
