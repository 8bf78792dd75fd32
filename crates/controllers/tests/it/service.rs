//! The service controller against an API server and a cloud in memory.

mod addresses;
mod background;
mod cloud;
mod delete;
mod drain;
mod fights;
mod forbidden;
mod interruptions;
mod left_behind;
mod missing;
mod node_sync;
mod ownership;
mod throttled;
mod unsettled;
mod world;

use std::time::Duration;

use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::{CloudError, ErrorKind, IpMode};
use bowline_controllers::service::COMPONENT;
use serde_json::json;
use tokio::time::Instant;
use world::{MADE, World};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_new_service_gets_finalizer_balancer_status_and_two_events() {
    let (world, uid) = World::serving(&["a", "b"]).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    assert_eq!(world.address("web").as_deref(), Some("198.51.100.7"));
    assert!(world.has_finalizer("web"));
    assert_eq!(world.reasons("web"), MADE);
    assert_eq!(world.calls("create"), 1);
    let patches = world.api.journal().of("patch", "services");
    let parts: Vec<&str> = patches.iter().map(|it| it.subresource.as_str()).collect();
    // The finalizer, by the status as upstream does it; the cloud's annotation; the address.
    assert_eq!(parts, ["status", "", "status"]);
}

#[tokio::test(start_paused = true)]
async fn the_provider_is_told_how_each_reconcile_ended_and_how_long_it_took() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(3));
    world.fail(1, CloudError::transient("bad gateway"));
    world.add_service("web");
    world.settled("web").await;
    let ended = || std::mem::take(&mut world.cloud.state.lock().unwrap().reconciled);
    assert_eq!(
        ended(),
        [("ensure", 3, true), ("ensure", 6, false)],
        "a second write sets the nodes"
    );
    world.delete("web");
    world.gone("web").await;
    world.pass(seconds(1)).await;
    assert_eq!(ended(), [("delete", 3, false)]);
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_waits_for_the_cloud_is_one_from_its_first_sync_to_its_last() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = 3);
    world.add_service("web");
    world.settled("web").await;
    let ended = std::mem::take(&mut world.cloud.state.lock().unwrap().reconciled);
    let [(kind, took, has_failed)] = ended[..] else {
        panic!("{ended:?}");
    };
    assert_eq!((kind, has_failed), ("ensure", false));
    assert!(took >= 1, "{took}");
}

#[tokio::test(start_paused = true)]
async fn the_finalizer_is_there_before_the_first_write_to_the_cloud() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(5));
    world.add_service("web");
    world.called("create").await;
    assert!(world.has_finalizer("web"));
    assert_eq!(world.address("web"), None);
}

#[tokio::test(start_paused = true)]
async fn without_nodes_a_warning_is_given_and_the_balancer_made_all_the_same() {
    let (world, _) = World::serving(&[]).await;
    assert_eq!(
        world.reasons("web"),
        [
            "EnsuringLoadBalancer",
            "UnAvailableLoadBalancer",
            "EnsuredLoadBalancer"
        ]
    );
    assert_eq!(world.calls("create"), 1);
}

#[tokio::test(start_paused = true)]
async fn our_own_annotation_leads_to_no_cloud_call() {
    let (world, _) = World::serving(&["a"]).await;
    let calls = world.calls("");
    world.pass(seconds(60)).await;
    assert_eq!(world.calls(""), calls);
    assert_eq!(world.annotation("web", cloud::MARK), "yes");
}

#[tokio::test(start_paused = true)]
async fn our_own_annotation_may_be_seen_before_it_is_answered() {
    let mut world = World::new(&["a"]);
    world.answers_late = Duration::from_millis(300);
    world.start();
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(5)).await;
    assert_eq!(world.annotation("web", cloud::MARK), "yes");
    let counts: Vec<_> = world
        .api
        .objects("Event")
        .into_iter()
        .map(|event| (event["reason"].clone(), event["count"].clone()))
        .collect();
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts.iter().all(|(_, count)| count == 1), "{counts:?}");
}

#[tokio::test(start_paused = true)]
async fn only_listed_changes_lead_to_a_read_and_each_to_one() {
    let (world, _) = World::serving(&["a"]).await;
    let reads = || world.calls("read");
    let change = async |path: &str, value| {
        world.edit("web", |service| {
            let mut field = service;
            for part in path.split(' ') {
                field = match part.parse::<usize>() {
                    Ok(index) => &mut field[index],
                    Err(_) => &mut field[part],
                };
            }
            *field = value;
        });
        world.pass(seconds(1)).await;
    };
    let (before, written) = (reads(), world.api.journal().writes().len());
    for (path, value) in [
        ("metadata labels", json!({ "x": "y" })),
        ("spec selector", json!({ "x": "y" })),
        ("spec internalTrafficPolicy", json!("Local")),
        ("spec publishNotReadyAddresses", json!(true)),
    ] {
        change(path, value).await;
    }
    assert_eq!(reads(), before);
    assert_eq!(world.api.journal().writes().len(), written);
    for (path, value) in [
        ("spec loadBalancerSourceRanges", json!(["192.0.2.0/24"])),
        ("spec ports 0 port", json!(81)),
        ("spec ports 0 name", json!("www")),
        ("spec ports 0 appProtocol", json!("http")),
        ("spec sessionAffinity", json!("ClientIP")),
        (
            "spec sessionAffinityConfig",
            json!({ "clientIP": { "timeoutSeconds": 60 } }),
        ),
        ("spec ports 0 nodePort", json!(30_123)),
        ("spec ports 0 targetPort", json!(8080)),
        ("spec externalIPs", json!(["192.0.2.9"])),
        ("spec externalTrafficPolicy", json!("Local")),
        ("spec loadBalancerIP", json!("192.0.2.1")),
        ("metadata annotations x", json!("y")),
    ] {
        let before = reads();
        change(path, value).await;
        assert_eq!(reads(), before + 1, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_cloud_is_tried_again_by_upstreams_schedule() {
    let world = World::running(&["a"]).await;
    world.fail(4, CloudError::other("quota"));
    world.add_service("web");
    world.until("the fourth try", |w| w.calls("create") == 4).await;
    let times = world.seconds_of("create");
    assert_eq!(times, [0, 5, 15, 35]);
    let begun = world.event("EnsuringLoadBalancer");
    assert_eq!(
        begun["count"], 1,
        "one change is announced once, however often it is tried"
    );
    let text = "Error syncing load balancer: failed to ensure load balancer: error during create(web): quota";
    assert_eq!(
        world.events("web")[1],
        ("SyncLoadBalancerFailed".to_owned(), text.to_owned())
    );
    assert!(world.has_finalizer("web"));
    assert_eq!(world.address("web"), None);
}

#[tokio::test(start_paused = true)]
async fn a_stated_delay_is_kept_and_does_not_grow() {
    let world = World::running(&["a"]).await;
    let throttled = CloudError::new(ErrorKind::Throttled { after: seconds(3) }, "busy");
    world.fail(3, throttled);
    world.add_service("web");
    world.settled("web").await;
    let times = world.seconds_of("create");
    assert_eq!(times, [0, 3, 6, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_handled_elsewhere_is_left_in_silence() {
    let world = World::running(&["a"]).await;
    let elsewhere = CloudError::new(
        ErrorKind::ImplementedElsewhere,
        "implemented by alternate to cloud provider",
    );
    world.set(|cloud| cloud.read_errors.extend(vec![elsewhere; 2]));
    world.add_service("web");
    world.pass(seconds(60)).await;
    assert_eq!(world.reasons("web"), ["EnsuringLoadBalancer"]);
    assert!(world.has_finalizer("web"));
    world.delete("web");
    world.pass(seconds(2)).await;
    assert!(world.service("web").is_none(), "our finalizer keeps nobody");
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_and_says_nothing() {
    let (mut world, _) = World::serving(&["a"]).await;
    world.stop().await;
    let (events, version) = (
        world.events("web"),
        world.service("web").unwrap()["metadata"]["resourceVersion"].clone(),
    );
    let writes = world.calls("set-nodes") + world.calls("create");
    world.api.journal().clear();
    world.start();
    world.pass(seconds(60)).await;
    assert_eq!(world.events("web"), events);
    assert_eq!(
        world.service("web").unwrap()["metadata"]["resourceVersion"],
        version
    );
    assert_eq!(world.calls("set-nodes") + world.calls("create"), writes);
    assert!(
        world.api.journal().writes().is_empty(),
        "{:?}",
        world.api.journal().writes()
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_service_does_not_wait_for_the_old_ones_that_a_new_leader_looks_at() {
    let mut world = World::running(&["a"]).await;
    for n in 0..200 {
        world.add_service(&format!("old-{n}"));
    }
    world
        .until("all have addresses", |w| {
            (0..200).all(|n| w.address(&format!("old-{n}")).is_some())
        })
        .await;
    world.pass(seconds(2)).await;
    world.stop().await;
    let writes = world.calls("create") + world.calls("set-nodes");
    world.set(|cloud| cloud.read_time = seconds(1));
    world.start();
    world.add_service("new");
    let begun = Instant::now();
    world.addressed("new").await;
    assert!(begun.elapsed() < seconds(5), "{:?}", begun.elapsed());
    world.pass(seconds(300)).await;
    let now = world.calls("create") + world.calls("set-nodes");
    assert_eq!(now, writes + 2, "nothing is written for the old ones");
}

#[tokio::test(start_paused = true)]
async fn a_busy_cloud_is_waited_for_without_events_and_with_one_full_read() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = 5);
    world.add_service("web");
    world.settled("web").await;
    assert_eq!(world.reasons("web"), MADE);
    assert_eq!(world.calls("poll"), 5);
    assert_eq!(world.calls("read"), 2, "one at the beginning, one at the end");
}

#[tokio::test(start_paused = true)]
async fn a_change_during_a_wait_is_served_with_the_wait_and_announced() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.busy_looks = 20);
    world.add_service("web");
    world.until("waiting", |w| w.calls("poll") == 2).await;
    world.annotate("web", "x", "y");
    world.settled("web").await;
    assert_eq!(world.calls("create"), 1);
    assert_eq!(world.reasons("web").last().unwrap(), "EnsuredLoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn an_address_without_mode_is_not_written_again() {
    let (world, _) = World::serving(&["a"]).await;
    world.api.journal().clear();
    world.annotate("web", "x", "y");
    world.pass(seconds(5)).await;
    let patches = world
        .api
        .journal()
        .matching(|e| e.verb == "patch" && e.subresource == "status");
    assert!(patches.is_empty(), "{patches:?}");
    world.set(|cloud| cloud.ip_mode = Some(IpMode::Proxy));
    world.annotate("web", "x", "z");
    world
        .until("the mode is published", |w| {
            w.service("web").unwrap()["status"]["loadBalancer"]["ingress"][0]["ipMode"] == "Proxy"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_does_not_parse_costs_no_call_and_is_said_once() {
    let world = World::running(&["a"]).await;
    world.apply(json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": { "name": "web", "namespace": "default", "annotations": { "cloud.example/broken": "x" } },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    }));
    world.pass(seconds(100)).await;
    assert!(world.calls("") == 0 && !world.has_finalizer("web"));
    let failed: Vec<_> = world
        .events("web")
        .into_iter()
        .filter(|(reason, _)| reason == "SyncLoadBalancerFailed")
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(
        failed[0].1,
        "Error syncing load balancer: failed to ensure load balancer: cloud.example/broken is not a number"
    );
    let said = world.event("SyncLoadBalancerFailed");
    assert_eq!(said["count"], 1);
    world.edit("web", |s| s["metadata"]["annotations"] = json!({}));
    world.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_balancer_of_which_a_part_is_refused_is_published_and_follows_its_nodes() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.refuses_a_part = true);
    let uid = world.add_service("web");
    world
        .until("the refusal is said", |w| {
            w.is_told("web", "SyncLoadBalancerFailed")
        })
        .await;
    assert_eq!(world.address("web").as_deref(), Some("198.51.100.7"));
    assert_eq!(world.balancer(&uid).unwrap(), ["a"]);
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    world.add_node("b");
    world.pass(seconds(5)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
    // The same refusal at each try is no news.
    let count = |reason: &str| world.reasons("web").iter().filter(|it| *it == reason).count();
    assert_eq!(count("SyncLoadBalancerFailed"), 1);
    assert_eq!(count("EnsuredLoadBalancer"), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_served_and_refused_follows_its_nodes_after_a_restart_too() {
    let (mut world, uid) = World::serving(&["a"]).await;
    world.stop().await;
    world.set(|cloud| {
        cloud.refuses_a_part = true;
        cloud.refuses_silently = true;
    });
    world.start();
    world.pass(seconds(400)).await; // the next try by the schedule is minutes away
    world.add_node("b");
    world.pass(seconds(5)).await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_note_becomes_one_event_as_long_as_it_holds() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| cloud.note = Some(Note::warning("NoValidNodes", "no node matches")));
    world.add_service("web");
    world.settled("web").await;
    world.annotate("web", "x", "y");
    world.pass(seconds(5)).await;
    assert_eq!(
        world
            .reasons("web")
            .iter()
            .filter(|reason| *reason == "NoValidNodes")
            .count(),
        1
    );
    let said = |reason| world.event(reason);
    assert_eq!(said("NoValidNodes")["count"], 1);
    // A provider may note things in a name of its own.
    assert_eq!(said("NoValidNodes")["source"]["component"], "cloud-provider-test");
    assert_eq!(said("EnsuredLoadBalancer")["source"]["component"], COMPONENT);
}

#[tokio::test(start_paused = true)]
async fn a_note_of_the_last_plan_only_is_not_raised_again_when_nodes_change() {
    let world = World::running(&["a"]).await;
    world.set(|cloud| {
        cloud.note = Some(Note::warning("FloatingIPSkipped", "the address is IPv6"));
        cloud.notes_at_the_end = true;
    });
    let uid = world.add_service("web");
    world.settled("web").await;
    world.add_node("b");
    world.leads_to(&uid, &["a", "b"]).await;
    world.pass(seconds(5)).await;
    let said = |world: &World| {
        let reasons = world.reasons("web");
        reasons
            .iter()
            .filter(|reason| *reason == "FloatingIPSkipped")
            .count()
    };
    assert_eq!(said(&world), 1);
    let raised = world.api.objects("Event");
    let raised = raised.iter().find(|it| it["reason"] == "FloatingIPSkipped");
    assert_eq!(raised.unwrap()["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_note_that_held_before_a_restart_is_not_raised_again() {
    let mut world = World::running(&["a"]).await;
    world.set(|cloud| cloud.note = Some(Note::warning("NoValidNodes", "no node matches")));
    world.add_service("web");
    world.settled("web").await;
    world.stop().await;
    world.api.journal().clear();
    world.start();
    world.pass(seconds(60)).await;
    assert!(
        world.api.journal().writes().is_empty(),
        "{:?}",
        world.api.journal().writes()
    );
    world.set(|cloud| cloud.note = Some(Note::warning("NoValidNodes", "no node at all")));
    world
        .until("the new text is raised", |w| {
            w.events("web").iter().any(|(_, text)| text == "no node at all")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_note_that_nobody_can_have_raised_before_is_raised_at_a_start_and_again_while_it_holds() {
    let (mut world, _) = World::serving(&["a"]).await;
    world.stop().await;
    let note = Note::warning("RouterConfigBroken", "a list with commas").even_at_start();
    world.set(|cloud| cloud.note = Some(note));
    world.api.journal().clear();
    world.start();
    world
        .until("it is raised", |w| {
            w.events("web")
                .iter()
                .any(|(_, text)| text == "a list with commas")
        })
        .await;
    world.pass(seconds(290)).await;
    assert_eq!(world.api.journal().writes().len(), 1);
    world.pass(seconds(620)).await;
    assert_eq!(
        world.api.journal().writes().len(),
        2,
        "{:?}",
        world.api.journal().writes()
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_changed_by_hand_in_the_cloud_is_repaired_by_the_periodic_check() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| cloud.balancers.get_mut(&uid).unwrap().push("intruder".into()));
    world.leads_to(&uid, &["a"]).await;
}

#[tokio::test(start_paused = true)]
async fn the_time_from_a_change_to_a_settled_balancer_is_measured_once_for_each_change() {
    let world = World::running(&["a"]).await;
    world.slow("web", seconds(2));
    world.add_service("web");
    world.settled("web").await;
    let line = |name: &str| {
        let page = world.page();
        page.lines()
            .find_map(|line| line.strip_prefix(name))
            .map(str::trim)
            .map(str::to_owned)
    };
    let settled = "load_balancer_settle_duration_seconds";
    assert_eq!(line(&format!("{settled}_count")).as_deref(), Some("1"));
    assert_eq!(
        line(&format!("{settled}_bucket{{le=\"1.0\"}}")).as_deref(),
        Some("0")
    );
    assert_eq!(
        line(&format!("{settled}_bucket{{le=\"10.0\"}}")).as_deref(),
        Some("1")
    );
    let ensured = "load_balancer_syncs_total{operation=\"ensure\",result=\"settled\"}";
    assert_eq!(line(ensured).as_deref(), Some("1"));
    assert!(line("load_balancer_plans_total{result=\"apply\"}").is_some());

    // A periodic check finds nothing changed.
    world.pass(seconds(700)).await;
    assert_eq!(line(&format!("{settled}_count")).as_deref(), Some("1"));
    assert_eq!(line(ensured).as_deref(), Some("2"));
}

#[tokio::test(start_paused = true)]
async fn many_new_services_are_made_in_turns_and_none_waits_long_behind_a_slow_cloud() {
    let world = World::running(&["a"]).await;
    let names: Vec<String> = (0..140).map(|number| format!("s{number}")).collect();
    world.set(|cloud| {
        let slow = |name: &String| (name.clone(), seconds(600));
        cloud.write_time = names.iter().map(slow).collect();
    });
    for name in &names {
        world.add_service(name);
    }
    world.pass(seconds(2)).await;
    assert_eq!(world.calls("create"), 128);
    world.pass(seconds(10)).await;
    assert_eq!(world.calls("create"), 140);
}

/// As where the login is refused: every look fails, and the program may be restarted meanwhile.
#[tokio::test(start_paused = true)]
async fn a_change_is_announced_once_however_long_the_cloud_answers_nothing() {
    for error in [
        CloudError::new(ErrorKind::Denied, "login refused"),
        CloudError::transient("bad gateway"),
    ] {
        let mut world = World::running(&["a"]).await;
        world.set(|cloud| cloud.read_errors.extend(vec![error; 1_000]));
        world.add_service("web");
        world.pass(seconds(1_500)).await;
        world.add_node("b");
        world.pass(seconds(1_500)).await;
        let announced = |world: &World| -> u64 {
            let events = world.api.objects("Event");
            let begun = events.iter().filter(|it| it["reason"] == "EnsuringLoadBalancer");
            begun.map(|it| it["count"].as_u64().unwrap()).sum()
        };
        assert_eq!(announced(&world), 1);
        for _ in 0..3 {
            world.stop().await;
            world.start();
            world.pass(seconds(120)).await;
        }
        assert_eq!(announced(&world), 1);
        world.set(|cloud| cloud.read_errors.clear());
        world.settled("web").await;
        assert_eq!(
            world.reasons("web").last().map(String::as_str),
            Some("EnsuredLoadBalancer")
        );
    }
}
