//! Gate, slots, pace and time limit.

use std::time::Duration;

use bowline_cloud_provider::NodeName;
use bowline_kube_api::{Effect, Fault, Status};
use bowline_kube_io::rbac::{Named, Part, questions};
use bowline_kube_io::{Kube, KubeError, KubeOptions, NodePatch, Rate};
use tokio::time::Instant;

use crate::{Switch, client, node, options, server};

const SECOND: Duration = Duration::from_secs(1);

fn label() -> NodePatch {
    NodePatch {
        labels: [("a".into(), Some("1".into()))].into(),
        ..NodePatch::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_gate_stops_writes_and_no_reads() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let gate = Switch::open();
    let kube = client(&api).with_gate(gate.clone());
    let node = kube.node(&NodeName::new("a")).await.unwrap();
    gate.close();
    assert_eq!(
        kube.patch_node(&node, &label()).await.unwrap_err(),
        KubeError::GateClosed
    );
    assert_eq!(kube.delete_node(&node).await.unwrap_err(), KubeError::GateClosed);
    assert!(api.journal().writes().is_empty());
    kube.node(&node.name).await.unwrap();
    client(&api).patch_node(&node, &label()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn behind_a_closed_gate_one_may_ask_what_one_may_and_nothing_else() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let gate = Switch::open();
    gate.close();
    let kube = client(&api).with_gate(gate);
    let parts = [Part::CloudNode, Part::LeaderElection, Part::ServiceAccounts];
    let asked = questions(&parts, &Named::default());
    for question in &asked {
        assert_eq!(kube.may(question).await, Ok(true), "{question}");
    }
    let node = kube.node(&NodeName::new("a")).await.unwrap();
    let closed = kube.patch_node(&node, &label()).await;
    assert_eq!(closed.unwrap_err(), KubeError::GateClosed);
    assert_eq!(kube.review_token("any").await.unwrap_err(), KubeError::GateClosed);
    let sent = api
        .journal()
        .all()
        .into_iter()
        .filter(|request| request.verb != "get");
    let sent: Vec<String> = sent
        .map(|request| format!("{} {}", request.verb, request.resource))
        .collect();
    assert_eq!(
        sent,
        vec!["create selfsubjectaccessreviews".to_owned(); asked.len()]
    );
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_asked_when_the_write_has_its_turn() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let gate = Switch::open();
    let kube = Kube::with_service(
        api.service(),
        KubeOptions {
            max_in_flight: 1,
            gate: gate.clone(),
            ..options()
        },
    );
    let node = kube.node(&NodeName::new("a")).await.unwrap();
    api.faults()
        .inject(Fault::new(Effect::Delay(5 * SECOND)).verb("get").times(1));
    let closing = async {
        tokio::time::sleep(2 * SECOND).await;
        gate.close();
    };
    let patch = label();
    let (read, write, ()) =
        tokio::join!(biased; kube.node(&node.name), kube.patch_node(&node, &patch), closing);
    read.unwrap();
    assert_eq!(write.unwrap_err(), KubeError::GateClosed);
    assert!(api.journal().writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_more_requests_are_under_way_than_allowed() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    api.faults().inject(Fault::new(Effect::Delay(SECOND)).verb("get"));
    let kube = Kube::with_service(
        api.service(),
        KubeOptions {
            max_in_flight: 2,
            ..options()
        },
    );
    let begun = Instant::now();
    let name = NodeName::new("a");
    let reads: Vec<_> = (0..10).map(|_| kube.node(&name)).collect();
    for read in futures::future::join_all(reads).await {
        read.unwrap();
    }
    assert_eq!(begun.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_pace_is_kept_only_if_given() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let name = NodeName::new("a");
    for (pace, seconds) in [
        (None, 0),
        (
            Some(Rate {
                per_second: 1.0,
                burst: 2,
            }),
            3,
        ),
    ] {
        let kube = Kube::with_service(api.service(), KubeOptions { pace, ..options() });
        let begun = Instant::now();
        for _ in 0..5 {
            kube.node(&name).await.unwrap();
        }
        assert_eq!(begun.elapsed().as_secs(), seconds);
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_answer_ends_in_time() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    api.faults()
        .inject(Fault::new(Effect::Delay(3600 * SECOND)).verb("get"));
    let begun = Instant::now();
    let kube = client(&api);
    let name = NodeName::new("a");
    assert_eq!(kube.node(&name).await.unwrap_err(), KubeError::Timeout);
    assert_eq!(begun.elapsed(), 30 * SECOND);
    assert_eq!(
        kube.with_timeout(5 * SECOND).node(&name).await.unwrap_err(),
        KubeError::Timeout
    );
    assert_eq!(begun.elapsed(), 35 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn refusals_and_broken_connections_are_told_apart() {
    let api = server();
    api.apply_json(node("a")).unwrap();
    let kube = client(&api);
    let seen = kube.node(&NodeName::new("a")).await.unwrap();
    api.faults()
        .fail_next(1, "patch", "nodes", Status::too_many_requests(7));
    let error = kube.patch_node(&seen, &label()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(7 * SECOND));

    api.faults()
        .fail_next(1, "patch", "nodes", Status::new(403, "Forbidden", "no"));
    assert_eq!(
        kube.patch_node(&seen, &label()).await.unwrap_err(),
        KubeError::Forbidden("no".into())
    );

    api.faults()
        .fail_next(1, "patch", "nodes", Status::internal("etcd"));
    let error = kube.patch_node(&seen, &label()).await.unwrap_err();
    let message = "Internal error occurred: etcd".to_owned();
    assert_eq!(error, KubeError::Server { code: 500, message });

    // The write was made, and nobody knows.
    api.faults()
        .inject(Fault::new(Effect::DropAfter).verb("patch").times(1));
    let error = kube.patch_node(&seen, &label()).await.unwrap_err();
    assert!(matches!(error, KubeError::Transport(_)), "{error:?}");
    assert_eq!(kube.node(&seen.name).await.unwrap().labels.value("a"), Some("1"));
}
