//! An API server that is ill, as one that stands by for the lease meets it: how often it asks, and how much it says.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::time::Duration;

use bowline_base::log::Log;
use bowline_kube_api::{Effect, Fault, KubeApi, Status};
use bowline_manager::End;
use bowline_manager::config::Config;
use bowline_manager::health::Endpoint;
use bowline_manager::migration::Migration;
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Level;

use crate::clouds::TestInstances;
use crate::process::{
    LEASE, Process, SECOND, api_server, edit_lease, instances, lease, meets, new_node, pass, until,
};

/// The shortest wait after a failed attempt is the retry period of 2 s, so these are the most attempts in a minute.
const MOST_PER_MINUTE: usize = 30;

/// What may be logged in a minute of an outage: the lease, and two watches that fail at their back-off.
const MOST_LINES_PER_MINUTE: usize = 20;

/// A lease that somebody holds, and never renews, or that was given up.
fn held(api: &KubeApi, holder: &str, seconds: u32) {
    api.apply_json(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": { "name": "cloud-controller-manager", "namespace": "kube-system" },
        "spec": { "holderIdentity": holder, "leaseDurationSeconds": seconds },
    }))
    .unwrap();
}

/// Answers that do not show that a lease was written.
const STATUS: &str = r#"{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}"#;
const WITHOUT_SPEC: &str = r#"{
    "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
    "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system", "resourceVersion": "5"}
}"#;
const OF_GONE: &str = r#"{
    "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
    "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system", "resourceVersion": "1"},
    "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15}
}"#;
/// As the first leader of a test writes it, before its first renewal.
const OF_A: &str = r#"{
    "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
    "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system", "resourceVersion": "900"},
    "spec": {"holderIdentity": "a_1", "leaseDurationSeconds": 15, "leaseTransitions": 0,
        "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}
}"#;

fn failures() -> Vec<(&'static str, Effect)> {
    let status = |code: u16, reason: &str| Effect::Answer(Status::new(code, reason, "no"));
    vec![
        ("500", status(500, "InternalError")),
        ("403", status(403, "Forbidden")),
        ("504", status(504, "Timeout")),
        ("429", Effect::Answer(Status::too_many_requests(1))),
        ("conflict", status(409, "Conflict")),
        ("a page of a proxy", Effect::Text(200, "<html>welcome</html>")),
        (
            "a page with an error",
            Effect::Text(502, "<html>bad gateway</html>"),
        ),
        ("an object without anything", Effect::Text(200, "{}")),
        ("a status", Effect::Text(200, STATUS)),
        ("no spec", Effect::Text(200, WITHOUT_SPEC)),
        ("what was before", Effect::Text(200, OF_GONE)),
        ("a cut", Effect::DropBefore),
        ("a cut after the write", Effect::DropAfter),
        ("silence", Effect::Silence),
    ]
}

fn requests(api: &KubeApi, verb: &str) -> usize {
    api.journal().of(verb, "leases").len()
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_for_a_lease_that_has_run_out_waits_a_retry_period() {
    for verb in ["update", "get"] {
        for (name, effect) in failures() {
            if verb == "get" && matches!(effect, Effect::DropAfter) {
                continue; // what a read does is its answer
            }
            let (log, _guards) = Log::listen(Level::INFO);
            let api = api_server();
            held(&api, "gone", 15);
            let process = Process::start(&api, "a");
            until("it has read the lease", || requests(&api, "get") > 0).await;
            api.faults()
                .inject(Fault::new(effect).verb(verb).resource("leases"));
            // The lease runs out in this minute.
            pass(60).await;
            for _ in 0..3 {
                let before = requests(&api, verb);
                log.take();
                pass(60).await;
                let attempts = requests(&api, verb) - before;
                // What is never answered never gets into the journal.
                let least = if name == "silence" { 0 } else { 10 };
                assert!(
                    (least..=MOST_PER_MINUTE).contains(&attempts),
                    "{attempts} attempts in a minute: {verb}, {name}"
                );
                let said = log.take();
                assert!(said.len() <= 2, "{verb}, {name}: {said:#?}");
            }
            assert!(!process.leads(), "{verb}, {name}");
            // It is no longer ill: the lease is taken within a try, unless a lost write has made us the holder already.
            api.faults().clear();
            let took = process.leading().await;
            assert!(took < 15 * SECOND, "{took:?}: {verb}, {name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_renewals_are_answered_with_something_else_ends_at_the_renew_deadline() {
    for answer in ["{}", STATUS, WITHOUT_SPEC, OF_GONE, OF_A] {
        for main in [true, false] {
            let (log, _guards) = Log::listen(Level::INFO);
            let api = api_server();
            let config = Config {
                migration: Some(Migration::built_in()),
                ..Config::default()
            };
            let mut process = Process::with(&api, "a", config, TestInstances::default());
            let name = if main {
                "cloud-controller-manager"
            } else {
                "cloud-provider-extraction-migration"
            };
            let is_held = || api.object("Lease", "kube-system", name).is_some();
            until("both are held", || process.leads() && is_held()).await;
            pass(5).await;
            api.faults().inject(
                Fault::new(Effect::Text(200, answer))
                    .verb("update")
                    .resource("leases")
                    .name(name),
            );
            let begun = Instant::now();
            let closed = until("the gate closes", || !process.gate.is_open()).await;
            assert!(closed <= 13 * SECOND, "{closed:?}: {answer}");
            assert_eq!(process.end().await, End::LeadershipLost, "{answer}");
            assert!(begun.elapsed() <= 13 * SECOND, "{:?}: {answer}", begun.elapsed());
            let said = log.take();
            let explained = said
                .iter()
                .filter(|line| line.contains("Look for a proxy"))
                .count();
            assert_eq!(explained, 1, "{said:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_is_answered_with_something_else_is_tried_again() {
    for (times, is_released) in [(1, true), (5, true), (u32::MAX, false)] {
        let api = api_server();
        let mut process = Process::start(&api, "a");
        process.leading().await;
        api.faults().inject(
            Fault::new(Effect::Text(200, "{}"))
                .verb("update")
                .resource("leases")
                .times(times),
        );
        let before = requests(&api, "update");
        let begun = Instant::now();
        process.stop().await;
        assert!(begun.elapsed() <= 3 * SECOND, "{:?}", begun.elapsed());
        assert!(requests(&api, "update") - before <= 20);
        let expected = if is_released { "" } else { "a_1" };
        assert_eq!(lease(&api)["holderIdentity"], expected, "after {times} answers");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_watch_of_the_lease_shows_of_another_object_frees_no_lease() {
    for event in [
        "{\"type\":\"MODIFIED\",\"object\":{}}\n",
        "{\"type\":\"DELETED\",\"object\":{}}\n",
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"other\",\"namespace\":\"kube-system\",\"resourceVersion\":\"9\"},\"spec\":{}}}\n",
        "{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":\"other\",\"namespace\":\"kube-system\",\"resourceVersion\":\"9\"},\"spec\":{}}}\n",
    ] {
        let (log, _guards) = Log::listen(Level::INFO);
        let api = api_server();
        held(&api, "other", 3_600);
        let process = Process::start(&api, "a");
        meets(&api, Effect::Text(200, event), "watch", "leases");
        pass(60).await;
        let before = (requests(&api, "get"), requests(&api, "watch"));
        log.take();
        pass(60).await;
        let asked = requests(&api, "get") - before.0 + requests(&api, "watch") - before.1;
        assert!(asked <= 2 * MOST_PER_MINUTE, "{asked} requests in a minute");
        assert_eq!(log.take(), Vec::<String>::new(), "the lease was not given up");
        assert!(!process.leads());
    }
}

#[tokio::test(start_paused = true)]
async fn without_any_api_server_little_is_tried_and_said() {
    for effect in [Effect::DropBefore, Effect::Silence] {
        let (log, _guards) = Log::listen(Level::INFO);
        let api = api_server();
        held(&api, "gone", 15);
        let _process = Process::start(&api, "a");
        pass(5).await;
        api.close_watches();
        api.faults().inject(Fault::new(effect));
        pass(60).await;
        for _ in 0..5 {
            let before = api.journal().all().len();
            log.take();
            pass(60).await;
            let sent = api.journal().all().len() - before;
            assert!(sent <= MOST_PER_MINUTE + 10, "{sent} requests in a minute");
            let said = log.take();
            assert!(said.len() <= MOST_LINES_PER_MINUTE, "{said:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_somebody_gives_up_and_takes_again_all_the_time_is_not_asked_for_all_the_time() {
    let (log, _guards) = Log::listen(Level::INFO);
    let api = api_server();
    held(&api, "gone", 15);
    let _process = Process::start(&api, "a");
    let record = |holder: &str, number: u32| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "cloud-controller-manager", "namespace": "kube-system" },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": number },
        })
    };
    // Somebody is always faster.
    meets(
        &api,
        Effect::Answer(Status::new(409, "Conflict", "no")),
        "update",
        "leases",
    );
    pass(5).await;
    log.take();
    let before = requests(&api, "get");
    let begun = Instant::now();
    let mut number = 0;
    while begun.elapsed() < 60 * SECOND {
        number += 1;
        api.apply_json(record("other", number)).unwrap();
        tokio::time::sleep(Duration::from_millis(25)).await;
        api.apply_json(record("", number)).unwrap();
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    let attempts = requests(&api, "get") - before;
    assert!(attempts <= MOST_PER_MINUTE, "{attempts} attempts in a minute");
    let said = log.take();
    assert!(said.len() <= MOST_PER_MINUTE, "{said:#?}");
    assert_eq!(lease(&api)["holderIdentity"], "");
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_the_lease_that_cannot_be_had_costs_one_request_in_a_retry_period() {
    for effect in [
        Effect::Answer(Status::internal("etcd")),
        Effect::DropBefore,
        Effect::Text(200, "<html>\n<html>\n"),
        Effect::Text(200, ""),
    ] {
        let (log, _guards) = Log::listen(Level::INFO);
        let api = api_server();
        let _leader = Process::start(&api, "a");
        pass(1).await;
        meets(&api, effect, "watch", "leases");
        let _follower = Process::start(&api, "b");
        pass(60).await;
        let before = requests(&api, "watch");
        log.take();
        pass(60).await;
        let watches = requests(&api, "watch") - before;
        assert!((1..=MOST_PER_MINUTE).contains(&watches), "{watches}");
        assert_eq!(log.take(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_of_a_long_lease_is_found_out() {
    let api = api_server();
    held(&api, "other", 3_600);
    let process = Process::start(&api, "a");
    until("it watches the lease", || requests(&api, "watch") > 0).await;
    api.silence_watches();
    held(&api, "", 3_600);
    let took = process.leading().await;
    assert!(took <= 45 * SECOND, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_a_conflict_is_tried_again_unless_somebody_else_holds_the_lease() {
    // How often the release meets a conflict; whether it is the last word.
    for conflicts in [1, 2, 5] {
        let api = api_server();
        let mut process = Process::start(&api, "a");
        process.leading().await;
        api.faults().inject(
            Fault::new(Effect::Answer(Status::new(409, "Conflict", "changed")))
                .verb("update")
                .resource("leases")
                .times(conflicts),
        );
        let begun = Instant::now();
        process.stop().await;
        assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
        assert_eq!(lease(&api)["holderIdentity"], "", "after {conflicts} conflicts");
    }
    // It never ends: given up in time, and without a flood.
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    let conflict = Effect::Answer(Status::new(409, "Conflict", "changed"));
    meets(&api, conflict, "update", "leases");
    let before = requests(&api, "update");
    process.stop().await;
    let tries = requests(&api, "update") - before;
    assert!((3..=20).contains(&tries), "{tries}");
    // Somebody else took it.
    let api = api_server();
    let mut process = Process::start(&api, "a");
    process.leading().await;
    edit_lease(&api, LEASE, &json!({ "holderIdentity": "b" }));
    process.stop().await;
    assert_eq!(lease(&api)["holderIdentity"], "b");
}

#[tokio::test(start_paused = true)]
async fn caches_whose_watches_cannot_be_had_are_listed_which_readiness_knows_and_the_log_says_seldom() {
    let mut effects: Vec<Effect> = failures().into_iter().map(|(_, effect)| effect).collect();
    // A role without the verb is a fault that a person has to mend: readiness tells it.
    effects.retain(|effect| !matches!(effect, Effect::Answer(status) if status.code == 403));
    effects.extend([
        Effect::Delay(3_600 * SECOND),
        Effect::Text(200, ""),
        Effect::Text(200, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n"),
    ]);
    for effect in effects {
        let (log, _guards) = Log::listen(Level::INFO);
        let what = format!("{effect:?}");
        let api = api_server();
        held(&api, "other", 3_600);
        let follower = Process::start(&api, "a");
        pass(5).await;
        api.close_watches();
        for resource in ["nodes", "services"] {
            let fault = Fault::new(effect.clone()).verb("watch").resource(resource);
            api.faults().inject(fault);
        }
        let before = api.journal().of("list", "services").len();
        log.take();
        for second in 0..240 {
            pass(1).await;
            let is_ready = follower.is_ready();
            assert!(is_ready, "after {second} s: {what}");
        }
        let lists = api.journal().of("list", "services").len() - before;
        assert!((4..=24).contains(&lists), "{lists} lists in four minutes: {what}");
        let said = log.take();
        let most = if matches!(effect, Effect::Silence) { 4 } else { 10 };
        assert!(
            (1..=most).contains(&said.len()),
            "{} lines: {what}: {said:#?}",
            said.len()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_acts_on_nothing_that_was_not_listed_after_its_lease_was_won() {
    for resource in ["nodes", "services"] {
        let api = api_server();
        api.apply_json(new_node("node-1")).unwrap();
        let routes_too = |has_routes| TestInstances {
            has_routes,
            ..instances()
        };
        let mut first = Process::with(&api, "a", Config::default(), routes_too(true));
        until("a works", || first.cloud_calls() > 0).await;
        let second = Process::with(&api, "b", Config::default(), routes_too(true));
        pass(10).await;
        let is_ready = || second.is_ready();
        assert!(is_ready(), "a follower whose caches are well");
        meets(&api, Effect::Silence, "list", resource);
        first.stop().await;
        second.leading().await;
        pass(60).await;
        assert!(!is_ready());
        if resource == "nodes" {
            assert_eq!(second.cloud_calls(), 0, "it acts on what it knew as a follower");
        }
        api.faults().clear();
        until("b works", || second.cloud_calls() > 0 && is_ready()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn caches_whose_watches_cannot_be_had_are_told_by_readiness_and_then_no_more() {
    for effect in [Effect::DropBefore, Effect::Answer(Status::internal("etcd"))] {
        let api = api_server();
        held(&api, "other", 3_600);
        let follower = Process::start(&api, "a");
        pass(5).await;
        let is_ready = || follower.is_ready();
        assert!(is_ready());
        api.close_watches();
        meets(&api, effect.clone(), "watch", "services");
        meets(&api, effect, "list", "services");
        let took = until("it is told", || !is_ready()).await;
        assert!(took > 50 * SECOND && took < 75 * SECOND, "{took:?}");
        api.faults().clear();
        until("it heals", is_ready).await;
        pass(600).await;
        assert!(is_ready(), "a quiet cluster is heard of all the same");
    }
}

#[tokio::test(start_paused = true)]
async fn one_node_that_cannot_be_read_keeps_no_other_from_anything_and_is_told_of() {
    let lossy = r#"{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"900"},
        "items":[{"metadata":{"name":"node-1","uid":"u","resourceVersion":"7"},"spec":null}]}"#;
    let api = api_server();
    api.apply_json(new_node("node-1")).unwrap();
    meets(&api, Effect::Text(200, lossy), "list", "nodes");
    let process = Process::busy(&api, "a");
    until("it works", || process.cloud_calls() > 0).await;
    assert!(process.is_ready());
    let told = || {
        let events = api.objects("Event");
        let of_node = |event: &&Value| event["reason"] == "ObjectNotUnderstood";
        let messages = events
            .iter()
            .filter(of_node)
            .map(|event| event["message"].to_string());
        messages.collect::<Vec<String>>()
    };
    until("it is told", || !told().is_empty()).await;
    assert!(told()[0].contains("it has no `spec`"), "{:?}", told());
    let metrics = process.metrics.render().unwrap();
    assert!(
        metrics.contains(r#"kubernetes_objects_not_understood{kind="nodes"} 1"#),
        "{metrics}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_condition_without_a_time_keeps_no_leader_from_its_work() {
    let api = api_server();
    api.apply_json(new_node("node-1")).unwrap();
    // What an API server stores of `kubectl patch svc other --subresource=status -p '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'`.
    let service = |name: &str, status: Value| {
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "namespace": "default", "name": name },
            "spec": { "type": "ClusterIP", "ports": [{ "port": 80 }] }, "status": status,
        })
    };
    api.apply_json(service("other", json!({}))).unwrap();
    let mut first = Process::busy(&api, "a");
    until("a works", || first.cloud_calls() > 0).await;
    let conditions =
        json!({ "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": null }] });
    api.apply_json(service("other", conditions)).unwrap();
    let stored = api.object("Service", "default", "other").unwrap();
    let condition = stored["status"]["conditions"][0].as_object().unwrap();
    assert_eq!(condition.get("lastTransitionTime"), Some(&Value::Null));
    let second = Process::busy(&api, "b");
    first.stop().await;
    second.leading().await;
    until("b works", || second.cloud_calls() > 0).await;
    pass(1).await;
    let ready = second.health.probe(Endpoint::Ready, true, &[]);
    assert!(ready.passed, "{}", ready.body);
    assert!(
        second
            .metrics
            .render()
            .unwrap()
            .contains(r#"kubernetes_objects_not_understood{kind="services"} 0"#)
    );
}

#[tokio::test(start_paused = true)]
async fn the_loops_of_a_second_lease_wait_for_caches_as_new_as_it_is() {
    let api = api_server();
    let name = "cloud-provider-extraction-migration";
    let of_other = |holder: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": name, "namespace": "kube-system" },
            "spec": { "holderIdentity": holder, "leaseDurationSeconds": 3_600 },
        })
    };
    api.apply_json(of_other("kube-controller-manager")).unwrap();
    let config = Config {
        migration: Some(Migration::built_in()),
        ..Config::default()
    };
    let _process = Process::with(&api, "a", config, instances());
    pass(10).await;
    let lists = || api.journal().of("list", "services").len();
    let before = lists();
    api.apply_json(of_other("")).unwrap();
    until("the services are listed anew", || lists() > before).await;
}
