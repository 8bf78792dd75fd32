//! Conflicts, gaps in the watch, calls that hang, and processes that end in the middle.

use std::time::Duration;

use bowline_kube_api::{Effect, Fault, Status};
use serde_json::json;
use tokio::time::Instant;

use super::seconds;
use super::world::{MADE, World};

#[tokio::test(start_paused = true)]
async fn one_slow_balancer_holds_up_nobody() {
    let world = World::running(&["a"]).await;
    world.slow("slow", seconds(100_000));
    world.add_service("slow");
    world.called("create(slow").await;
    world.add_service("quick");
    let begun = Instant::now();
    world.addressed("quick").await;
    assert!(begun.elapsed() < seconds(3));
    assert_eq!(world.stalled(), None);
    world.pass(seconds(9 * 60)).await;
    assert_eq!(world.stalled(), Some("service-lb-controller"));
}

#[tokio::test(start_paused = true)]
async fn of_many_new_services_those_that_have_begun_are_served_before_others_begin() {
    const AT_ONCE: u32 = 128;
    let world = World::running(&["a"]).await;
    // Each of the first waits once for its balancer.
    world.set(|cloud| cloud.busy_looks = AT_ONCE);
    for number in 0..2 * AT_ONCE {
        world.add_service(&format!("s{number}"));
    }
    world
        .until("all of them wait", |world| {
            world.cloud.state.lock().unwrap().busy_looks == 0
        })
        .await;
    let begun = || world.calls("create");
    world.pass(Duration::from_millis(500)).await;
    assert_eq!(begun(), AT_ONCE as usize);
    world
        .until("the last has its address", |world| {
            world.address(&format!("s{}", 2 * AT_ONCE - 1)).is_some()
        })
        .await;
    assert_eq!(begun(), 2 * AT_ONCE as usize);
}

#[tokio::test(start_paused = true)]
async fn a_long_sync_that_gets_on_is_not_stuck() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| {
        cloud.steps_of_a_change = 12;
        cloud.write_time.insert("web".into(), seconds(100));
    });
    let uid = world.add_service("web");
    for _ in 0..24 {
        world.pass(seconds(50)).await;
        assert_eq!(world.stalled(), None);
    }
    world.pass(seconds(200)).await;
    assert!(world.balancer(&uid).is_some_and(|nodes| !nodes.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_waits_for_the_lane_of_others_is_not_stuck() {
    let world = World::running(&["a"]).await;
    let names: Vec<String> = (0..10).map(|n| format!("s{n}")).collect();
    world.set(|cloud| {
        cloud.has_one_lane = true;
        for name in &names {
            cloud.write_time.insert(name.clone(), seconds(100));
        }
    });
    for name in &names {
        world.add_service(name);
    }
    for _ in 0..25 {
        world.pass(seconds(100)).await;
        assert_eq!(world.stalled(), None);
    }
    assert!(names.iter().all(|name| world.address(name).is_some()));
    // But one that holds its lane for good is.
    world.slow("s0", seconds(100_000));
    world.add_node("b");
    world.pass(seconds(1500)).await;
    assert_eq!(world.stalled(), Some("service-lb-controller"));
}

#[tokio::test(start_paused = true)]
async fn conflicts_are_tried_again_soon_and_without_events() {
    let world = World::running(&["a"]).await;
    world.api.faults().fail_next(
        2,
        "patch",
        "services",
        Status::new(409, "Conflict", "the object has been modified"),
    );
    world.add_service("web");
    world.settled("web").await;
    assert_eq!(world.reasons("web"), MADE);
}

#[tokio::test(start_paused = true)]
async fn a_settled_balancer_is_looked_at_again_when_its_plan_says_so() {
    let world = World::running(&["a"]).await;
    // The first one is asked for before the writes are verified.
    world.set(|cloud| cloud.later_looks = 3);
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(300)).await;
    let reads = world.cloud.calls("read web");
    let seconds: Vec<u64> = reads.iter().map(|(at, _)| at.as_secs()).collect();
    // Read, verified, and looked at twice more.
    assert_eq!(seconds, [0, 0, 60, 120]);
    assert_eq!(world.reasons("web"), MADE);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_the_api_server_does_not_find_is_not_asked_for_without_pause() {
    let world = World::running(&["a"]).await;
    let not_found = Status::new(404, "NotFound", "services \"web\" not found");
    world.api.faults().fail_next(1000, "patch", "services", not_found);
    world.add_service("web");
    world.pass(seconds(10)).await;
    let tries = world.api.journal().of("patch", "services").len();
    assert!((2..=15).contains(&tries), "{tries}");
    assert!(world.is_told("web", "SyncLoadBalancerFailed"));
    world.api.faults().clear();
    world.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_whose_write_conflicts_is_not_written_without_pause() {
    let world = World::running(&["a"]).await;
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    world.api.faults().fail_next(1000, "patch", "services", conflict);
    world.add_service("web");
    world.pass(seconds(4)).await;
    assert_eq!(
        world.reasons("web"),
        ["EnsuringLoadBalancer"],
        "the watch may show what moved"
    );
    world.pass(seconds(10)).await;
    let text = world.message("web", "SyncLoadBalancerFailed");
    assert!(text.ends_with("the object has been modified"), "{text}");
    // At once, after a moment, after 5 s; and with nothing new to see there is nothing to list anew.
    assert_eq!(world.conflicts(), 3);
    assert_eq!(world.api.journal().of("patch", "services").len(), 3);
    let lists = world.api.journal().of("list", "services").len();
    world.pass(seconds(10)).await;
    assert_eq!(world.conflicts(), 4);
    let questions = world.api.journal().of("list", "services").len() - lists;
    assert_eq!(questions, 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_with_what_the_watch_does_not_show_is_settled_by_a_question() {
    let world = World::running(&["a"]).await;
    let conflict = Status::new(409, "Conflict", "the object has been modified");
    world.api.faults().fail_next(1000, "patch", "services", conflict);
    world.inject(Fault::new(Effect::Silence).verb("watch").resource("services"));
    world.add_service("web");
    world.pass(seconds(32)).await; // the next watch is open, and silent
    world.edit("web", |service| {
        service["metadata"]["labels"] = json!({"seen": "no"})
    });
    world.api.faults().clear();
    let conflicts = world.conflicts();
    world
        .until("it conflicts with the edit", |w| w.conflicts() > conflicts)
        .await;
    let begun = Instant::now();
    world.addressed("web").await;
    assert!(begun.elapsed() < seconds(1), "{:?}", begun.elapsed());
    assert_eq!(world.conflicts(), conflicts + 1);
}

/// Has somebody change the Service ten times a second until the condition holds, while a look at the cloud takes seconds.
async fn until_beside_a_busy_writer(world: &World, what: &str, condition: impl Fn(&World) -> bool) {
    let writes = async {
        for turn in 0.. {
            if condition(world) {
                return;
            }
            world.annotate("web", "example.org/heartbeat", &turn.to_string());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::select! {
        () = world.until(what, &condition) => {}
        () = writes => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_faster_than_the_cloud_is_looked_at_is_served_and_let_go() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.read_time = Duration::from_millis(2050));
    let uid = world.add_service("web");
    until_beside_a_busy_writer(&world, "it is served", |w| w.address("web").is_some()).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a"]);
    assert_eq!(world.calls("create"), 1);
    world.delete("web");
    let is_let_go = |w: &World| w.service("web").is_none();
    until_beside_a_busy_writer(&world, "it is gone", is_let_go).await;
    assert_eq!(world.balancer(&uid), None);
}

#[tokio::test(start_paused = true)]
async fn stopping_at_any_write_to_the_api_server_is_repaired_by_the_next_process() {
    for k in 0..4 {
        let mut world = World::new(&["a"]);
        // The answer to the k-th patch never arrives, and the process ends there.
        world.inject(
            Fault::new(Effect::DropAfter)
                .verb("patch")
                .resource("services")
                .after(k)
                .times(1000),
        );
        world.start();
        let uid = world.add_service("web");
        world.pass(seconds(2)).await;
        world.stop().await;
        world.api.faults().clear();
        world.start();
        world.settled("web").await;
        assert_eq!(world.balancer(&uid).unwrap(), ["a"], "after patch {k}");
        assert_eq!(world.calls("create"), 1, "after patch {k}");
        world.delete("web");
        world.gone("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_at_any_write_changes_neither_the_end_nor_what_is_said() {
    for k in 0..5 {
        let world = World::running(&["a"]).await;
        let conflict = Status::new(409, "Conflict", "the object has been modified");
        world.inject(
            Fault::new(Effect::Answer(conflict))
                .verb("patch")
                .resource("services")
                .after(k)
                .times(1),
        );
        let uid = world.add_service("web");
        world.settled("web").await;
        assert_eq!(world.balancer(&uid).unwrap(), ["a"], "patch {k}");
        world.delete("web");
        world.gone("web").await;
        world.pass(seconds(1)).await;
        assert_eq!(world.balancer(&uid), None, "patch {k}");
        let said = [
            "EnsuringLoadBalancer",
            "EnsuredLoadBalancer",
            "DeletingLoadBalancer",
            "DeletedLoadBalancer",
        ];
        assert_eq!(world.reasons("web"), said, "patch {k}");
        assert_eq!(world.calls("create"), 1, "patch {k}");
        assert_eq!(world.calls("delete"), 1, "patch {k}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_happens_while_the_watch_is_away_is_made_good() {
    let world = World::running(&["a"]).await;
    let (gone, replaced) = (world.add_service("gone"), world.add_service("replaced"));
    let changed = world.add_service("changed");
    for name in ["gone", "replaced", "changed"] {
        world.settled(name).await;
    }
    // The watch sees none of this, and what it has missed is compacted away: it has to list anew.
    let away = Fault::new(Effect::Delay(seconds(20)))
        .verb("watch")
        .resource("services");
    world.inject(away.times(1));
    world.api.close_watches();
    for name in ["gone", "replaced"] {
        world.strip_finalizer(name);
        world.delete(name);
    }
    let successor = world.add_service("replaced");
    world.edit("changed", |s| s["spec"]["type"] = json!("ClusterIP"));
    world.api.compact();
    world
        .until("the balancers of before are gone", |w| {
            [&gone, &replaced, &changed]
                .iter()
                .all(|uid| w.balancer(uid).is_none())
        })
        .await;
    world.settled("replaced").await;
    assert!(world.balancer(&successor).is_some());
    assert!(!world.has_finalizer("changed"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_comes_while_a_service_waits_does_not_make_its_change_forgotten() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = 5);
    world.edit("web", |s| s["spec"]["ports"][0]["port"] = json!(81));
    world.pass(seconds(1)).await;
    assert_eq!(world.count("EnsuredLoadBalancer"), 1, "it waits");
    world.add_node("b");
    world.pass(seconds(30)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    assert_eq!(
        (
            world.count("EnsuredLoadBalancer"),
            world.count("UpdatedLoadBalancer")
        ),
        (2, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_without_an_end_is_told_once_and_tried_again_by_the_schedule() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.never_settles = true);
    world.add_service("web");
    world.pass(seconds(60)).await;
    let syncs = world.calls("read web");
    assert!((2..6).contains(&syncs), "{syncs} syncs");
    assert!(world.calls("set-nodes") <= 100 * syncs);
    let failed = "SyncLoadBalancerFailed";
    assert_eq!(world.count(failed), 1);
    let events = world.events("web");
    let (_, told) = events.iter().find(|(reason, _)| reason == failed).unwrap();
    assert!(
        told.starts_with(
            "Error syncing load balancer: failed to ensure load balancer: the plan does not settle"
        ),
        "{told}"
    );
}
