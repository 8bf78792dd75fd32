//! Balancers go with what asked for them.

use std::time::Duration;

use bowline_cloud_provider::{CloudError, ErrorKind, reasons};
use bowline_kube_api::{Effect, Fault, Status};
use bowline_plan::EventSpec;
use serde_json::json;
use tokio::time::Instant;

use super::seconds;
use super::world::World;

#[tokio::test(start_paused = true)]
async fn a_deleted_service_takes_its_balancer_along() {
    let (world, uid) = World::serving(&["a"]).await;
    world.delete("web");
    world.gone("web").await;
    assert_eq!(world.balancer(&uid), None);
    world.pass(seconds(1)).await;
    assert_eq!(
        world.reasons("web")[2..],
        ["DeletingLoadBalancer", "DeletedLoadBalancer"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_removal_whose_last_answer_is_lost_is_told_as_what_it_is() {
    let (world, _) = World::serving(&["a"]).await;
    let reads = world.calls("read");
    let lost = Fault::new(Effect::DropAfter).verb("patch");
    world.inject(lost.resource("services").times(1));
    world.delete("web");
    world.pass(seconds(60)).await;
    assert!(world.service("web").is_none());
    assert_eq!(
        world.reasons("web")[2..],
        ["DeletingLoadBalancer", "DeletedLoadBalancer"]
    );
    assert_eq!(world.calls("read"), reads + 2, "the cloud is not asked again");
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_gone_already_does_not_block_deletion_but_is_asked_for() {
    let (world, _) = World::serving(&["a"]).await;
    world.set(|cloud| cloud.balancers.clear());
    let reads = world.calls("read");
    world.delete("web");
    world.gone("web").await;
    world.pass(seconds(1)).await;
    assert_eq!(world.reasons("web")[2..], ["DeletedLoadBalancer"]);
    assert_eq!(world.calls("read"), reads + 1);
}

#[tokio::test(start_paused = true)]
async fn where_all_that_a_service_seems_to_have_is_anothers_no_event_says_that_it_was_deleted() {
    let (reason, kind) = reasons::FOREIGN_KEPT;
    for has_own in [false, true] {
        let (world, _) = World::serving(&["a"]).await;
        world.set(|cloud| {
            if !has_own {
                cloud.balancers.clear();
            }
            cloud.note = Some(EventSpec::on_service((reason, kind), "", "").note("lb-1 stays"));
        });
        world.delete("web");
        world.gone("web").await;
        world.pass(seconds(1)).await;
        assert_eq!(world.count(reason), 1);
        assert_eq!(world.count("DeletedLoadBalancer"), u64::from(has_own));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_deletion_keeps_the_service_and_follows_the_schedule() {
    let (world, _) = World::serving(&["a"]).await;
    world.fail(2, CloudError::other("busy"));
    world.delete("web");
    world.pass(seconds(2)).await;
    assert!(world.has_finalizer("web"));
    world.gone("web").await;
    assert_eq!(world.calls("delete"), 3);
    let failed = world.message("web", "SyncLoadBalancerFailed");
    assert_eq!(
        failed,
        "Error syncing load balancer: failed to delete load balancer: error during delete(web): busy"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_cannot_be_read_is_no_proof_that_the_balancer_is_gone() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| {
        cloud
            .read_errors
            .push_back(CloudError::transient("503 Service Unavailable"))
    });
    world.delete("web");
    world.pass(seconds(2)).await;
    assert!(world.has_finalizer("web") && world.balancer(&uid).is_some());
    let probe = "Error syncing load balancer: failed to check if load balancer exists before cleanup: 503 Service Unavailable";
    assert_eq!(world.events("web").last().unwrap().1, probe);
    world.gone("web").await;
    assert_eq!(world.balancer(&uid), None);
}

#[tokio::test(start_paused = true)]
async fn a_type_change_removes_the_balancer_and_back_makes_it_again() {
    let (world, uid) = World::serving(&["a"]).await;
    world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
    world
        .until("the balancer is gone", |w| {
            w.balancer(&uid).is_none() && !w.has_finalizer("web")
        })
        .await;
    assert_eq!(world.address("web"), None);
    world.pass(seconds(1)).await;
    world.edit("web", |s| s["spec"]["type"] = json!("LoadBalancer"));
    world.settled("web").await;
    assert!(world.balancer(&uid).is_some());
}

/// Changes a Service away from a balancer and lets `happen` what may, then changes it back. Its ports stay, so that it is as
/// it was when it was synced last. It must have its address again within seconds.
async fn there_and_back(world: &World, name: &str, happen: impl AsyncFnOnce(&World)) {
    world.edit(name, |s| s["spec"]["type"] = json!("NodePort"));
    happen(world).await;
    world.edit(name, |s| s["spec"]["type"] = json!("LoadBalancer"));
    let begun = Instant::now();
    world
        .until("it has its address", |w| {
            w.address(name).is_some() && w.has_finalizer(name)
        })
        .await;
    assert!(begun.elapsed() <= seconds(10), "after {:?}", begun.elapsed());
    world.pass(seconds(600)).await;
    assert!(world.address(name).is_some() && world.has_finalizer(name));
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_wanted_again_while_its_removal_fails_comes_back_at_once() {
    for fails_for in [1, 100, 1000] {
        let (world, uid) = World::serving(&["a"]).await;
        there_and_back(&world, "web", async |world| {
            world.fail(50, CloudError::other("busy"));
            world.pass(seconds(fails_for)).await;
            assert!(world.has_finalizer("web") && world.balancer(&uid).is_some());
            world.set(|cloud| cloud.write_errors.clear());
        })
        .await;
        assert_eq!(world.balancer(&uid).as_deref(), Some(&["a".to_owned()][..]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_wanted_again_while_its_removal_waits_comes_back_at_once() {
    let (world, uid) = World::serving(&["a"]).await;
    there_and_back(&world, "web", async |world| {
        world.set(|cloud| cloud.busy_looks = 5);
        world.pass(seconds(2)).await;
        assert!(world.balancer(&uid).is_some());
    })
    .await;
    assert!(world.calls("delete") == 0, "the removal is over");
    assert_eq!(world.balancer(&uid).as_deref(), Some(&["a".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_wanted_again_while_it_is_being_deleted_comes_back_at_once() {
    let (world, uid) = World::serving(&["a"]).await;
    world.slow("web", seconds(2));
    there_and_back(&world, "web", async |world| {
        world.called("delete").await;
    })
    .await;
    assert_eq!(world.balancer(&uid).as_deref(), Some(&["a".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_wanted_no_more_while_it_is_being_made_goes_at_once() {
    for edit in ["type", "deletion"] {
        let world = World::running(&["a"]).await;
        world.set(|cloud| cloud.busy_looks = 400);
        let uid = world.add_service("web");
        world
            .until("it is being built", |w| w.balancer(&uid).is_some())
            .await;
        world.pass(seconds(10)).await;
        if edit == "type" {
            world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
        } else {
            world.delete("web");
        }
        world.pass(seconds(2)).await;
        world.set(|cloud| cloud.busy_looks = 0);
        world.pass(seconds(5)).await;
        assert_eq!(world.balancer(&uid), None, "{edit}");
        assert!(!world.has_finalizer("web"), "{edit}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_was_asked_for_while_nobody_ran_is_done_at_start() {
    let (mut world, uid) = World::serving(&["a"]).await;
    world.stop().await;
    world.delete("web");
    world.start();
    world.gone("web").await;
    assert_eq!(world.balancer(&uid), None);
}

/// A served Service whose removal begins with a write to it.
async fn with_an_address_to_clear() -> (World, String) {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.clears_address = true);
    let uid = world.add("web", json!({ "loadBalancerIP": "198.51.100.7" }));
    world.settled("web").await;
    (world, uid)
}

#[tokio::test(start_paused = true)]
async fn each_write_of_a_removal_is_based_on_the_one_before_it() {
    let removals: [fn(&World); 2] = [
        |world| world.delete("web"),
        |world| world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP")),
    ];
    for removal in removals {
        let (world, _) = with_an_address_to_clear().await;
        removal(&world);
        world
            .until("the finalizer is off", |w| !w.has_finalizer("web"))
            .await;
        assert_eq!(world.conflicts(), 0);
        world.pass(seconds(1)).await;
        assert_eq!(world.count("DeletedLoadBalancer"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_somebody_else_wrote_while_a_removal_waited_is_in_its_way_no_more() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = 3);
    world.delete("web");
    world.pass(seconds(2)).await;
    assert!(world.balancer(&uid).is_some());
    world.edit("web", |s| s["metadata"]["labels"]["team"] = json!("shop"));
    world.gone("web").await;
    assert_eq!(world.conflicts(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_echo_of_its_own_writes_begins_no_second_removal() {
    for seconds_to_delete in [0, 2] {
        let (world, _) = with_an_address_to_clear().await;
        world.slow("web", seconds(seconds_to_delete));
        let looks = world.calls("read");
        world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
        world.pass(seconds(60)).await;
        assert!(!world.has_finalizer("web"));
        // One look, and another one after the writes.
        assert_eq!(world.calls("read"), looks + 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_turns_out_to_be_another_s_when_it_is_to_go_keeps_no_service() {
    let (world, _) = World::serving(&["a"]).await;
    let elsewhere = CloudError::new(ErrorKind::ImplementedElsewhere, "another controller's");
    world.fail(1, elsewhere);
    world.delete("web");
    world.gone("web").await;
    world.pass(seconds(1)).await;
    assert_eq!(world.calls("delete"), 1);
    assert!(!world.is_told("web", "SyncLoadBalancerFailed"));
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_that_was_taken_off_a_living_service_comes_back_at_once() {
    let (mut world, uid) = World::serving(&["a"]).await;
    let events = world.reasons("web").len();
    world.strip_finalizer("web");
    world.pass(seconds(1)).await;
    assert!(world.has_finalizer("web"));
    assert_eq!(world.reasons("web").len(), events, "nobody changed the balancer");
    // So that a deletion waits for the next process.
    world.stop().await;
    world.delete("web");
    world.start();
    world.removed(&uid).await;
}

#[tokio::test(start_paused = true)]
async fn who_takes_the_finalizer_off_again_and_again_is_told_of_and_met_less_and_less_often() {
    let (world, _) = World::serving(&["a"]).await;
    let reads = world.calls("read web");
    let written = world.api.journal().of("patch", "services").len();
    let begun = Instant::now();
    while begun.elapsed() < seconds(300) {
        world.strip_finalizer("web");
        world.until("it is back", |w| w.has_finalizer("web")).await;
    }
    assert_eq!(world.calls("read web"), reads, "the cloud has no part in it");
    // Five times at once, then after 5, 15, 35, 75, 155 and 315 s.
    let patches = world.api.journal().of("patch", "services").len();
    assert_eq!(patches - written, 11);
    let told = world
        .reasons("web")
        .into_iter()
        .filter(|reason| reason == "FinalizerRemoved");
    assert_eq!(told.count(), 1, "one event that is counted up");
}

/// The rule: the watch is sooner than the answer to the write that takes the finalizer off.
#[tokio::test(start_paused = true)]
async fn a_deletion_whose_service_is_seen_to_be_gone_before_it_is_answered_is_counted() {
    let mut world = World::new(&["a"]);
    world.answers_late = Duration::from_millis(300);
    world.start();
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(5)).await;
    world.cloud.state.lock().unwrap().reconciled.clear();
    let settled = |world: &World| {
        let name = "load_balancer_settle_duration_seconds_count ";
        let page = world.page();
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse::<u64>().unwrap()
    };
    let before = settled(&world);
    world.delete("web");
    world.gone("web").await;
    world.pass(seconds(1)).await;
    let ended = std::mem::take(&mut world.cloud.state.lock().unwrap().reconciled);
    assert_eq!(ended, [("delete", 0, false)]);
    assert_eq!(settled(&world) - before, 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_for_a_service_that_a_webhook_keeps_without_finalizer() {
    let world = World::running(&["a"]).await;
    let strip = Effect::Rewrite(|service| service["metadata"]["finalizers"] = json!([]));
    world.inject(Fault::new(strip).resource("services"));
    let uid = world.add_service("web");
    world.pass(seconds(60)).await;
    assert_eq!(world.balancer(&uid), None);
    let failed = world.message("web", "SyncLoadBalancerFailed");
    assert!(failed.contains("admission webhook"));
    world.api.faults().clear();
    world.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_a_webhook_keeps_with_its_finalizer_is_told_of_and_let_go_in_the_end() {
    let (world, _) = World::serving(&["a"]).await;
    let keep = Effect::Rewrite(|service| {
        service["metadata"]["finalizers"] = json!(["service.kubernetes.io/load-balancer-cleanup"]);
    });
    world.inject(Fault::new(keep).resource("services"));
    world.delete("web");
    world.pass(seconds(60)).await;
    let failed = world.message("web", "SyncLoadBalancerFailed");
    assert!(failed.contains("admission webhook"));
    assert!(!world.is_told("web", "DeletedLoadBalancer"));
    world.api.faults().clear();
    world.gone("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_type_during_the_last_look_gets_no_address_and_no_warning() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.read_time = seconds(3));
    let uid = world.add_service("web");
    // After the first look come the writes, and then the look that verifies them.
    world.until("it is verified", |w| w.calls("read web") == 2).await;
    world.edit("web", |s| s["spec"]["type"] = json!("ClusterIP"));
    world.removed(&uid).await;
    world.pass(seconds(10)).await;
    assert_eq!(
        world.reasons("web"),
        [
            "EnsuringLoadBalancer",
            "DeletingLoadBalancer",
            "DeletedLoadBalancer"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_finalizer_was_stripped_does_not_leak_its_balancer() {
    let (world, uid) = World::serving(&["a"]).await;
    world.strip_finalizer("web");
    world.delete("web");
    world.removed(&uid).await;
    let updates = world.calls("set-nodes");
    world.add_node("b");
    world.pass(seconds(10)).await;
    assert_eq!(world.calls("set-nodes"), updates);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_written_to_a_service_that_is_gone_keeps_its_balancer_from_nothing() {
    let (world, uid) = with_an_address_to_clear().await;
    world.strip_finalizer("web");
    world.delete("web");
    world.removed(&uid).await;
    assert_eq!(world.calls("delete"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_gone_before_the_watch_tells_of_it_keeps_its_balancer_from_nothing() {
    let (world, uid) = with_an_address_to_clear().await;
    let gone = Status::new(404, "NotFound", "services \"web\" not found");
    world.api.faults().fail_next(100, "patch", "services", gone);
    world.delete("web");
    world.removed(&uid).await;
    assert_eq!(world.calls("delete"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_made_again_under_the_same_name_gets_a_balancer_of_its_own() {
    let ip = || json!({ "loadBalancerIP": "198.51.100.7" });
    for (name, is_busy) in [("at-rest", false), ("at-work", true)] {
        let world = World::running(&["a"]).await;
        world.set(|cloud| cloud.clears_address = true);
        let old = world.add(name, ip());
        world.settled(name).await;
        if is_busy {
            world.slow("set-nodes", seconds(2));
            world.add_node("b");
            world
                .until("the cloud works", |w| w.calls("set-nodes") == 2)
                .await;
        }
        world.strip_finalizer(name);
        world.delete(name);
        let new = world.add(name, ip());
        assert_ne!(old, new);
        world
            .until("the new one has its balancer, and the old one's is gone", |w| {
                w.balancer(&new).is_some_and(|nodes| !nodes.is_empty()) && w.balancer(&old).is_none()
            })
            .await;
        world.settled(name).await;
    }
}

/// Somebody takes the finalizer off a Service, deletes it and makes another one of its name, and the cloud does not get rid of the first
/// one's balancer.
#[tokio::test(start_paused = true)]
async fn who_has_the_name_of_a_service_that_vanished_is_served_although_the_cloud_does_not_get_rid_of_that_ones_balancer()
 {
    for is_failing in [false, true] {
        let (world, gone) = World::serving(&["a"]).await;
        world.set(|cloud| {
            cloud.deletes_nothing = !is_failing;
            if is_failing {
                cloud.write_errors.push_back(CloudError::other("busy"));
            }
        });
        world.strip_finalizer("web");
        world.delete("web");
        let successor = world.add_service("web");
        let begun = Instant::now();
        world.addressed("web").await;
        assert!(begun.elapsed() < seconds(120), "{:?}", begun.elapsed());
        assert!(world.balancer(&gone).is_some() && world.balancer(&successor).is_some());
        if is_failing {
            let events = world.events("web");
            let told = format!("load balancer of an earlier Service of this name (uid {gone}): ");
            assert!(events.iter().any(|(_, text)| text.contains(&told)), "{events:#?}");
        }
        world.set(|cloud| cloud.deletes_nothing = false);
        world.removed(&gone).await;
        world.pass(seconds(10)).await;
        assert!(world.balancer(&successor).is_some());
        assert_eq!(world.count("EnsuredLoadBalancer"), 2);
    }
}
