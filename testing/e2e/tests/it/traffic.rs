//! `check traffic`: in a cluster whose parts are a test's own, with all that can be wrong; and as a program, beside the manager and a
//! simulated cloud that carries traffic.

mod program;
mod site;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_kube_io::{Kube, KubeOptions};
use bowline_manager::doctor::{Check, Outcome, Progress, render_text};
use bowline_manager::traffic::{Explain, Lines, Trial, Wanted, earlier};
use http::{Method, Request};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use site::{Behaviour, Site};

const NODES: &[&str] = &["node-a", "node-b", "node-c"];

fn here() -> Behaviour {
    Behaviour {
        balances: true,
        ..Behaviour::default()
    }
}

fn wanted() -> Wanted {
    Wanted {
        image: "example.com/whoami:1".to_owned(),
        port: 8080,
        ..Wanted::default()
    }
}

fn why<'a>(_: bowline_cloud_provider::ServiceKey) -> Lines<'a> {
    Box::pin(async { vec!["why not    the quota is used up".to_owned()] })
}

const WHY: Explain<'static> = &why;

/// A trial at this site, which is interrupted once so many writes were sent.
fn trial(site: &Site, wanted: Wanted, writes: usize) -> Trial<'static> {
    let interrupt = CancellationToken::new();
    let (stop, sent) = (interrupt.clone(), Arc::new(AtomicUsize::new(0)));
    let api = site.api.clone();
    let service = tower::service_fn(move |request: Request<bowline_kube_io::Body>| {
        let is_write = request.method() != Method::GET;
        let (api, stop, sent) = (api.clone(), stop.clone(), Arc::clone(&sent));
        async move {
            let answer = api.service().oneshot(request).await;
            if is_write && sent.fetch_add(1, Ordering::Relaxed) + 1 == writes {
                stop.cancel();
            }
            answer
        }
    });
    Trial {
        kube: Kube::with_service(service, KubeOptions::new("test")),
        wanted,
        run: "test".to_owned(),
        patience: Duration::from_secs(3),
        pause: Duration::from_millis(5),
        search: Err("there is no cloud".to_owned()),
        explain: WHY,
        progress: Progress::default(),
        interrupt,
    }
}

const NEVER: usize = usize::MAX;

fn outcomes(checks: &[Check]) -> Vec<(&str, &str)> {
    checks
        .iter()
        .map(|check| (check.topic.id, check.outcome.name()))
        .collect()
}

fn check<'a>(checks: &'a [Check], id: &str) -> &'a Check {
    let found = checks.iter().find(|check| check.topic.id == id);
    found.unwrap_or_else(|| panic!("{id} is not told:\n{}", render_text(checks)))
}

/// A trial in a cluster with this fault, which has this check fail; after so many milliseconds nothing is waited for any more.
async fn fails(change: impl FnOnce(&mut Behaviour), patience: u64, id: &str) -> (Site, Vec<Check>, Check) {
    let site = Site::start(here(), NODES);
    site.change(change);
    let mut trial = trial(&site, wanted(), NEVER);
    trial.patience = Duration::from_millis(patience);
    let checks = trial.run().await;
    let failed = check(&checks, id).clone();
    assert_eq!(failed.outcome, Outcome::Failed, "{}", render_text(&checks));
    (site, checks, failed)
}

#[track_caller]
fn is_ok(checks: &[Check], id: &str) {
    assert_eq!(check(checks, id).outcome, Outcome::Ok, "{}", render_text(checks));
}

/// All that is in the cluster but what moves by itself.
fn inventory(site: &Site) -> Vec<String> {
    let kinds = ["Namespace", "Service", "Deployment", "Pod", "Node"];
    let all = kinds.iter().flat_map(|kind| site.api.objects(kind));
    all.map(|mut it| {
        // A label that came and went leaves a newer version.
        it["metadata"]["resourceVersion"] = json!(null);
        if it["metadata"]["labels"] == json!({}) {
            it["metadata"].as_object_mut().unwrap().remove("labels");
        }
        it.to_string()
    })
    .collect()
}

/// Objects of others, some with names and labels much like ours.
fn add_foreign(site: &Site) {
    for (kind, group) in [("Service", "v1"), ("Deployment", "apps/v1")] {
        for (name, label) in [
            ("bowline-traffic-other", "theirs"),
            ("web", "test"),
            ("plain", ""),
        ] {
            let mut object = json!({ "apiVersion": group, "kind": kind, "metadata": { "name": name, "namespace": "default" } });
            if !label.is_empty() {
                object["metadata"]["labels"] = json!({ "bowline/check-traffic": label });
            }
            object["spec"] = match kind {
                "Service" => json!({ "type": "ClusterIP", "ports": [{ "port": 80 }] }),
                _ => json!({ "replicas": 0, "template": { "metadata": {}, "spec": {} } }),
            };
            site.api.apply_json(object).unwrap();
        }
    }
}

#[tokio::test]
async fn all_is_well_and_nothing_is_left() {
    let site = Site::start(here(), NODES);
    add_foreign(&site);
    let before = inventory(&site);
    let checks = trial(&site, wanted(), NEVER).run().await;
    assert_eq!(
        outcomes(&checks),
        [
            ("traffic.made", "ok"),
            ("traffic.workload", "ok"),
            ("traffic.address", "ok"),
            ("traffic.nodes", "ok"),
            ("traffic.answers", "ok"),
            ("traffic.source-cluster", "ok"),
            ("traffic.source-local", "ok"),
            ("traffic.member-removed", "ok"),
            ("traffic.member-added", "ok"),
            ("traffic.gone", "ok"),
            ("traffic.cloud-gone", "skipped"),
        ],
        "{}",
        render_text(&checks)
    );
    assert!(check(&checks, "traffic.nodes").seen.starts_with("3 of 3"));
    assert!(
        check(&checks, "traffic.source-cluster")
            .seen
            .contains("which is Node node-")
    );
    assert_eq!(
        check(&checks, "traffic.source-local").seen,
        "the workload saw 127.0.0.1, the client's own"
    );
    assert_eq!(inventory(&site), before);
}

#[tokio::test]
async fn without_an_address_it_says_why_and_leaves_nothing() {
    let site = Site::start(here(), NODES);
    site.change(|it| it.gives_no_address = true);
    let before = inventory(&site);
    let mut trial = trial(&site, wanted(), NEVER);
    trial.patience = Duration::from_millis(300);
    let checks = trial.run().await;
    let address = check(&checks, "traffic.address");
    assert_eq!(address.outcome, Outcome::Failed);
    assert_eq!(address.details, ["why not    the quota is used up"]);
    is_ok(&checks, "traffic.gone");
    assert_eq!(inventory(&site), before);
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_named() {
    let silent = |it: &mut Behaviour| it.silent = vec!["node-b".to_owned()];
    let (_, _, nodes) = fails(silent, 3_000, "traffic.nodes").await;
    let seen = &nodes.seen;
    assert!(
        seen.starts_with("2 of 3") && seen.ends_with("not node-b"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_load_balancer_that_lets_nobody_in_is_told_from_nodes_that_do_not_answer() {
    for (silent, told) in [
        (&[][..], "the Nodes answer, so look in between"),
        (&["node-a"], "do not answer either: node-a"),
    ] {
        let shut = |it: &mut Behaviour| {
            it.is_closed = true;
            it.silent = silent.iter().map(|name| (*name).to_owned()).collect();
        };
        let (_, _, answers) = fails(shut, 300, "traffic.answers").await;
        assert!(answers.remedy.contains(told), "{}", answers.remedy);
    }
}

#[tokio::test]
async fn a_source_address_that_is_lost_with_the_policy_local_is_a_failure() {
    let (_, checks, local) = fails(|it| it.loses_source = true, 1_500, "traffic.source-local").await;
    assert!(local.seen.contains("which is Node node-"), "{local:?}");
    assert!(local.remedy.contains("kube-proxy"), "{local:?}");
    is_ok(&checks, "traffic.gone");
}

#[tokio::test]
async fn a_workload_that_does_not_start_says_what_it_waits_for() {
    let (_, _, workload) = fails(|it| it.pulls_nothing = true, 300, "traffic.workload").await;
    let waits_for = "ImagePullBackOff Back-off pulling image";
    assert!(workload.details[0].ends_with(waits_for), "{workload:?}");
    assert!(workload.remedy.contains("--image"));
}

#[tokio::test]
async fn interrupted_after_any_write_it_leaves_nothing() {
    let site = Site::start(here(), NODES);
    add_foreign(&site);
    let before = inventory(&site);
    let wanted = Wanted {
        excluded_node: Some(bowline_cloud_provider::NodeName::new("node-a")),
        ..wanted()
    };
    for writes in 1.. {
        let trial = trial(&site, wanted.clone(), writes);
        let checks = trial.run().await;
        assert_eq!(
            inventory(&site),
            before,
            "after {writes} writes:\n{}",
            render_text(&checks)
        );
        is_ok(&checks, "traffic.gone");
        if !trial.interrupt.is_cancelled() {
            is_ok(&checks, "traffic.node-excluded");
            // Three objects made and deleted, a policy, two scales, a label on and off.
            assert_eq!(writes, 12);
            return;
        }
    }
}

#[tokio::test]
async fn in_a_namespace_of_others_only_its_own_objects_are_removed() {
    let site = Site::start(here(), NODES);
    add_foreign(&site);
    let before = inventory(&site);
    let wanted = Wanted {
        namespace: Some("default".to_owned()),
        ..wanted()
    };
    let checks = trial(&site, wanted, NEVER).run().await;
    is_ok(&checks, "traffic.gone");
    is_ok(&checks, "traffic.member-added");
    assert_eq!(inventory(&site), before);
}

#[tokio::test]
async fn a_service_that_stays_is_told_with_what_keeps_it_and_how_to_remove_it() {
    let keeps = |it: &mut Behaviour| {
        it.keeps = true;
        it.gives_no_address = true;
    };
    let (_, _, gone) = fails(keeps, 300, "traffic.gone").await;
    assert!(
        gone.seen.contains("service.kubernetes.io/load-balancer-cleanup"),
        "{}",
        gone.seen
    );
    let remedy = "kubectl delete namespace bowline-traffic-test";
    assert!(gone.remedy.ends_with(remedy), "{}", gone.remedy);
    assert_eq!(gone.details, ["why not    the quota is used up"]);
}

#[tokio::test]
async fn what_an_earlier_trial_left_is_found_and_removed_and_nothing_else() {
    let site = Site::start(here(), NODES);
    add_foreign(&site);
    let before = inventory(&site);
    let wanted = Wanted {
        keeps: true,
        ..wanted()
    };
    let first = trial(&site, wanted, NEVER);
    let checks = first.run().await;
    let kept = check(&checks, "traffic.gone");
    assert_eq!(kept.outcome, Outcome::Skipped);
    assert!(
        kept.seen
            .ends_with("kubectl delete namespace bowline-traffic-test")
    );

    let found = earlier(&first.kube).await.unwrap();
    let mut places: Vec<String> = found.iter().map(|it| it.place()).collect();
    places.sort();
    assert_eq!(
        places,
        ["bowline-traffic-test in namespace bowline-traffic-test"],
        "objects with the label and another name are somebody else's"
    );
    assert!(found[0].is_young);
    let removed = found[0].remove(&first).await;
    assert_eq!(removed[0].outcome, Outcome::Ok, "{}", render_text(&removed));
    assert_eq!(inventory(&site), before);
    assert_eq!(earlier(&first.kube).await.unwrap(), []);
}
