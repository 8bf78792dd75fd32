//! What is shown of Services that are not settled, and of steps that wait for others.

#![expect(clippy::expect_used, reason = "a test ends on a surprise")]

use bowline_cloud_provider::plan::Refusal;
use bowline_cloud_provider::{CloudError, ErrorKind, ServiceClasses};
use serde_json::json;

use super::seconds;
use super::world::World;

/// The Services that are shown as not settled, by reason, with the age of the oldest; those without one left out.
fn unsettled(world: &World) -> Vec<(String, u64, u64)> {
    let page = world.page();
    let values = |name: &str| -> Vec<(String, f64)> {
        let start = format!("{name}{{reason=\"");
        let lines = page.lines().filter_map(|line| line.strip_prefix(&start));
        lines
            .map(|line| {
                let (reason, value) = line.split_once("\"} ").expect("one label and a value");
                (reason.to_owned(), value.parse().expect("a number"))
            })
            .collect()
    };
    let oldest = values("load_balancers_unsettled_oldest_seconds");
    let counts = values("load_balancers_unsettled").into_iter().zip(oldest);
    counts
        .map(|((reason, count), (of, oldest))| {
            assert_eq!(reason, of);
            (reason, count as u64, oldest as u64)
        })
        .filter(|(_, count, oldest)| (*count, *oldest) != (0, 0))
        .collect()
}

fn shown(reason: &str, count: u64, oldest: u64) -> (String, u64, u64) {
    (reason.to_owned(), count, oldest)
}

#[tokio::test(start_paused = true)]
async fn a_service_is_shown_as_unsettled_from_its_change_until_it_is_settled() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(30));
    world.set(|cloud| {
        cloud.busy_looks = 1;
    });
    world.pass(seconds(1)).await;
    assert_eq!(unsettled(&world), []);
    world.add_service("web");
    world.pass(seconds(20)).await;
    assert_eq!(unsettled(&world), [shown("pending", 1, 20)]);
    world.settled("web").await;
    assert_eq!(unsettled(&world), []);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_the_cloud_is_busy_with_is_shown_as_waiting() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = u32::MAX);
    world.add_service("web");
    world.pass(seconds(100)).await;
    assert_eq!(unsettled(&world), [shown("waiting", 1, 100)]);
    world.set(|cloud| cloud.busy_looks = 0);
    world.settled("web").await;
    assert_eq!(unsettled(&world), []);
}

#[tokio::test(start_paused = true)]
async fn what_came_of_the_last_sync_is_the_reason_and_the_oldest_is_told_for_each() {
    let world = World::running(&["a"]).await;
    world.add_service("well");
    world.settled("well").await;
    world.add("first", json!({}));
    world.annotate("first", "cloud.example/broken", "x");
    world.pass(seconds(50)).await;
    world.add("second", json!({}));
    world.annotate("second", "cloud.example/broken", "x");
    world.pass(seconds(10)).await;
    assert_eq!(unsettled(&world), [shown("refused", 2, 60)]);
    for (kind, reason) in [
        (ErrorKind::Unauthenticated, "denied"),
        (ErrorKind::Denied, "denied"),
        (ErrorKind::Invalid, "invalid"),
        (ErrorKind::NotSupported, "invalid"),
        (ErrorKind::Conflict, "conflict"),
        (ErrorKind::Throttled { after: seconds(300) }, "throttled"),
        (ErrorKind::Exhausted, "quota"),
        (ErrorKind::Transient, "failed"),
        (ErrorKind::Other, "failed"),
    ] {
        world.set(|cloud| {
            cloud.read_errors.clear();
            cloud.read_errors.push_back(CloudError::new(kind, "no"));
        });
        let name = format!("of-{reason}-{kind:?}")
            .to_lowercase()
            .replace([' ', '{', '}', ':'], "");
        world.add_service(&name);
        world.pass(seconds(1)).await;
        let found = unsettled(&world);
        assert!(found.contains(&shown(reason, 1, 1)), "{kind:?}: {found:?}");
        world.api.delete("Service", "default", &name);
        world.gone(&name).await;
        world.pass(seconds(1)).await;
        assert!(!unsettled(&world).iter().any(|(of, ..)| of == reason), "{kind:?}");
    }
}

/// Upstream's event is told once and is gone after an hour.
#[tokio::test(start_paused = true)]
async fn a_service_without_a_node_to_lead_to_is_shown_until_there_is_one() {
    let (world, _) = World::serving(&["a"]).await;
    world.delete_node("a");
    world.until("it leads nowhere", |w| unsettled(w).len() == 1).await;
    assert_eq!(unsettled(&world)[0].0, "no_nodes");
    let age = unsettled(&world)[0].2;
    world.pass(seconds(900)).await;
    let [(reason, 1, later)] = &unsettled(&world)[..] else {
        panic!("{:?}", unsettled(&world));
    };
    assert_eq!(reason, "no_nodes");
    assert!((age + 899..=age + 901).contains(later), "{later}");
    world.add_node("b");
    world.until("it is served", |w| unsettled(w).is_empty()).await;

    // Of a refusal the lack of Nodes is the first cause: some clouds refuse for it.
    world.delete_node("b");
    world.pass(seconds(60)).await;
    world.add("other", json!({}));
    world.annotate("other", "cloud.example/broken", "x");
    world.pass(seconds(60)).await;
    let found = unsettled(&world);
    assert!(
        matches!(&found[..], [(reason, 2, _)] if reason == "no_nodes"),
        "{found:?}"
    );
    world.delete("other");
    world.gone("other").await;
}

#[tokio::test(start_paused = true)]
async fn a_check_that_fails_is_shown_from_then_on_and_the_change_after_it_from_the_change_on() {
    let (world, _) = World::serving(&["a"]).await;
    let settles = |world: &World| {
        let page = world.page();
        let count = "load_balancer_settle_duration_seconds_count ";
        page.lines()
            .find_map(|line| line.strip_prefix(count))
            .map(str::to_owned)
    };
    assert_eq!(settles(&world).as_deref(), Some("1"));
    let deny = || {
        world.set(|cloud| {
            let denied = || CloudError::new(ErrorKind::Denied, "wrong token");
            cloud
                .read_errors
                .extend(std::iter::repeat_with(denied).take(1000));
        });
    };
    // The periodic check comes every ten minutes.
    let until_checked = || world.pass(seconds(600));
    deny();
    until_checked().await;
    let [(reason, 1, age)] = &unsettled(&world)[..] else {
        panic!("{:?}", unsettled(&world));
    };
    assert_eq!(reason, "denied");
    let age = *age;
    world.pass(seconds(100)).await;
    assert_eq!(unsettled(&world), [shown("denied", 1, age + 100)]);
    world.set(|cloud| cloud.read_errors.clear());
    world.pass(seconds(301)).await;
    assert_eq!(unsettled(&world), []);
    assert_eq!(settles(&world).as_deref(), Some("1"), "there was no change");

    deny();
    until_checked().await;
    assert_ne!(unsettled(&world), []);
    world.edit("web", |service| service["spec"]["ports"][0]["port"] = json!(81));
    world.pass(seconds(10)).await;
    assert_eq!(unsettled(&world), [shown("denied", 1, 10)]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_by_a_process_whose_controller_has_ended() {
    let mut world = World::running(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = u32::MAX);
    world.add_service("web");
    world.pass(seconds(10)).await;
    assert!(world.page().contains("load_balancers_unsettled{"));
    world.stop().await;
    assert!(!world.page().contains("load_balancers_unsettled{"));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_waits_for_another_services_step_is_shown_and_measured() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| {
        cloud.has_one_lane = true;
        for name in ["one", "two"] {
            cloud.write_time.insert(name.into(), seconds(20));
        }
    });
    let line = |world: &World, line: &str| world.page().lines().any(|found| found == line);
    world.add_service("one");
    world.add_service("two");
    world.pass(seconds(10)).await;
    assert!(
        line(&world, "load_balancer_lane_waiting{lane=\"nimbus/all\"} 1"),
        "{}",
        world.page()
    );
    world.settled("one").await;
    world.settled("two").await;
    world.pass(seconds(60)).await;
    assert!(line(&world, "load_balancer_lane_waiting{lane=\"nimbus/all\"} 0"));
    let waits = "load_balancer_lane_wait_duration_seconds_count{lane=\"nimbus/all\"} ";
    let page = world.page();
    let count = page.lines().find_map(|line| line.strip_prefix(waits));
    assert!(count.is_some_and(|count| count != "0"), "{page}");
}

#[tokio::test(start_paused = true)]
async fn a_condition_of_this_name_on_a_service_of_another_controller_stays() {
    let (world, _) = World::serving(&["a"]).await;
    world.edit("web", |it| it["spec"]["type"] = json!("ClusterIP"));
    world
        .until("it is ours no more", |w| !w.has_finalizer("web"))
        .await;
    let theirs = json!({
        "type": "LoadBalancerReconciled", "status": "False", "reason": "theirs", "message": "no",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    world.edit("web", |it| {
        it["spec"]["type"] = json!("LoadBalancer");
        it["spec"]["loadBalancerClass"] = json!("example.com/other");
        it["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    });
    world.edit("web", |it| it["status"]["conditions"] = json!([theirs]));
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(900)).await;
    let kept = world.service("web").expect("a Service");
    assert_eq!(kept["status"]["conditions"], json!([theirs]));
}

/// The API server cleared its class with its type, so it may be anybody's that is being cleaned up.
#[tokio::test(start_paused = true)]
async fn a_condition_on_what_another_manager_is_cleaning_up_stays() {
    for note in [None, Some("other")] {
        let mut world = World::new(&["a"]);
        world.classes = ServiceClasses::new(["ours".to_owned()], false).expect("a class");
        world.start();
        world.add("web", json!({ "loadBalancerClass": "other" }));
        let theirs = json!({
            "type": "LoadBalancerReconciled", "status": "False", "reason": "waiting", "message": "a call",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        world.edit("web", |it| {
            it["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
            it["metadata"]["annotations"] = json!({ "bowline/load-balancer-class": note });
            it["spec"]["type"] = json!("ClusterIP");
            it["spec"]["loadBalancerClass"] = json!(null);
        });
        world.edit("web", |it| it["status"]["conditions"] = json!([theirs]));
        world.pass(seconds(900)).await;
        let kept = world.service("web").expect("a Service");
        assert_eq!(kept["status"]["conditions"], json!([theirs]), "{note:?}");
    }
}

/// Reason and message of the condition that tells of trouble.
fn condition(world: &World) -> Option<(String, String)> {
    let service = world.service("web")?;
    let conditions = service["status"]["conditions"].as_array()?;
    let ours = conditions
        .iter()
        .find(|condition| condition["type"] == "LoadBalancerReconciled")?;
    assert_eq!(ours["status"], "False");
    assert!(ours["lastTransitionTime"].is_string());
    let text = |field: &str| ours[field].as_str().map(str::to_owned);
    Some((text("reason")?, text("message")?))
}

#[tokio::test(start_paused = true)]
async fn a_service_in_trouble_has_a_condition_that_tells_why_until_it_is_settled() {
    let mut world = World::running(&["a"]).await;
    let theirs =
        json!({ "type": "Ready", "status": "True", "reason": "", "message": "", "lastTransitionTime": null });
    world.add_service("web");
    world.settled("web").await;
    world.edit("web", |it| it["status"]["conditions"] = json!([theirs]));
    let changed = world.api.now();
    world.annotate("web", "cloud.example/broken", "x");
    world.pass(seconds(29)).await;
    assert_eq!(condition(&world), None);
    world.pass(seconds(2)).await;
    let (reason, message) = condition(&world).expect("a condition");
    // The trouble did not begin with the condition.
    let service = world.service("web").expect("a Service");
    let ours = service["status"]["conditions"].as_array().into_iter().flatten();
    let since = ours.rev().find_map(|it| it["lastTransitionTime"].as_str());
    let since: jiff::Timestamp = since.expect("a time").parse().expect("RFC 3339");
    let later = since.duration_since(changed).as_secs().abs();
    assert!(later <= 1, "{since}: {changed}");
    assert_eq!(reason, "refused");
    assert!(message.contains("tried again"), "{message}");
    let writes = || world.api.journal().writes().len();
    let before = writes();
    world.pass(seconds(3600)).await;
    assert!(writes() - before < 20, "{}", writes() - before);
    assert_eq!(condition(&world), Some((reason, message)));
    // The next process leaves it until it knows better, and its time.
    let before = world.service("web");
    world.stop().await;
    world.start();
    world.pass(seconds(120)).await;
    assert_eq!(world.service("web"), before);
    world.stop().await;
    world.edit("web", |it| it["metadata"]["annotations"] = json!(null));
    world.start();
    world
        .until("it is gone", |world| condition(world).is_none())
        .await;
    let kept = world.service("web").expect("a Service");
    assert_eq!(kept["status"]["conditions"], json!([theirs]));
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_written_during_a_sync_is_no_conflict_and_no_cause_to_read_again() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(40));
    world.add_service("web");
    world
        .until("it has its condition", |world| condition(world).is_some())
        .await;
    world.settled("web").await;
    assert_eq!(world.conflicts(), 0);
    let reads = world.calls("read web");
    assert_eq!(reads, 2, "at first, and after the writes");
}

/// Its event is gone after a while.
#[tokio::test(start_paused = true)]
async fn what_is_held_back_of_a_service_that_is_settled_stands_on_it_until_it_is_done() {
    let world = World::running(&["a"]).await;
    let refusal = Refusal::new("no such method").with_remedy("choose another one");
    world.set(|cloud| cloud.lacks = Some(refusal));
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(31)).await;
    let told = condition(&world);
    let (reason, message) = told.clone().expect("a condition");
    assert_eq!(reason, "refused");
    assert!(
        message.starts_with("no such method. What to do: choose another one"),
        "{message}"
    );
    // The periodic check comes every ten minutes.
    world.pass(seconds(1300)).await;
    assert_eq!(condition(&world), told);
    world.set(|cloud| cloud.lacks = None);
    world.pass(seconds(700)).await;
    assert_eq!((condition(&world), unsettled(&world)), (None, Vec::new()));
}

/// A wait that comes to no end is a failure in the end, and the next try waits again.
#[tokio::test(start_paused = true)]
async fn a_wait_that_failed_once_is_told_as_that_failure_as_long_as_it_is_waited_for_the_same() {
    let world = World::running(&["a"]).await;
    world.add_service("web");
    world.settled("web").await;
    world.set(|cloud| cloud.busy_looks = u32::MAX);
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(40)).await;
    assert_eq!(condition(&world).expect("a condition").0, "waiting");
    world.set(|cloud| {
        cloud
            .read_errors
            .push_back(CloudError::new(ErrorKind::Other, "it is not ACTIVE"))
    });
    world
        .until("it failed", |w| condition(w).expect("a condition").0 == "failed")
        .await;
    let writes = world.api.journal().writes().len();
    world.pass(seconds(60)).await;
    assert_eq!(condition(&world).expect("a condition").0, "failed");
    assert_eq!(world.api.journal().writes().len(), writes);
}

/// An autoscaler that ended in the middle leaves its taint.
#[tokio::test(start_paused = true)]
async fn a_taint_that_leaves_all_nodes_out_is_told_with_how_to_take_it_off() {
    let (world, _) = World::serving(&["a"]).await;
    let taint = json!([{ "key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule" }]);
    world.edit_node("a", |node| node["spec"]["taints"] = taint);
    world.until("it is told", |w| condition(w).is_some()).await;
    let (reason, message) = condition(&world).expect("a condition");
    assert_eq!(reason, "no_nodes");
    let command = "kubectl taint node a ToBeDeletedByClusterAutoscaler-";
    assert!(message.ends_with(command), "{message}");
}
