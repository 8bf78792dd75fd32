//! From a Go manager to this one and back, and from this one to itself: nothing is written where nothing changed.

use serde_json::json;
use std::time::Duration;

use super::go_manager::GoManager;
use super::objects::{OnCloudscale, service, web};
use super::world::World;

const PORTS: &[(&str, u16, u16)] = &[("web", 8080, 31200), ("admin", 9000, 31201)];

/// A cluster as the Go manager leaves it.
async fn left_by_the_go_manager() -> World {
    let world = World::new();
    for name in ["n1", "n2", "n3"] {
        world.go_node(name);
    }
    world.go_service(web(), PORTS).await;
    world
        .go_service(service("plain", &[("", 80, 30080)]), &[("", 80, 30080)])
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn what_the_go_manager_left_is_taken_over_without_a_write_to_either_side_and_no_event() {
    let mut world = left_by_the_go_manager().await;
    let (begun, before) = (world.since(), world.sim.snapshot());
    world.start();
    // Its first syncs, two periodic checks, and several passes over addresses.
    world.pass(Duration::from_secs(1_500)).await;
    let (reads, writes) = world.counts(begun);
    assert!(reads > 0, "it never looked");
    assert_eq!(writes, 0, "{:?}", world.writes(begun));
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    assert_eq!(world.all_events(), Vec::<String>::new());
    assert_eq!(world.sim.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn a_take_over_reads_each_thing_once() {
    let mut world = left_by_the_go_manager().await;
    let begun = world.since();
    world.start();
    world.rest().await;
    // Servers, balancers, pools, listeners, monitors and floating IPs once for all, and the members of three pools.
    let (reads, _) = world.counts(begun);
    assert!(reads <= 7 + 3 + 2, "{:#?}", world.tally(begun));
}

#[tokio::test(start_paused = true)]
async fn what_was_taken_over_follows_changes_without_being_made_anew() {
    let mut world = left_by_the_go_manager().await;
    let balancers: Vec<_> = world.sim.load_balancers().iter().map(|it| it.uuid).collect();
    let pools: Vec<_> = world.sim.pools().iter().map(|it| it.uuid).collect();
    world.start();
    world.rest().await;
    let begun = world.since();
    world.annotate("web", "timeout-member-data-ms", "120000");
    world.rest().await;
    assert_eq!(world.writes(begun), ["PATCH load-balancers/listeners/:id"; 2]);
    world.add_node("n4");
    world.until("its members", |w| w.sim.members().len() == 12).await;
    world.rest().await;
    assert_eq!(
        world
            .sim
            .load_balancers()
            .iter()
            .map(|it| it.uuid)
            .collect::<Vec<_>>(),
        balancers
    );
    assert_eq!(
        world.sim.pools().iter().map(|it| it.uuid).collect::<Vec<_>>(),
        pools
    );
    // An object that is there is never marked.
    assert!(world.sim.load_balancers().iter().all(|it| it.tags.is_empty()));

    world.delete_service("web");
    world.until("gone", |w| w.service("web").is_none()).await;
    assert_eq!(
        world.sim.load_balancers().len(),
        1,
        "an unmarked one is ours by its annotation"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_made_here_is_what_the_go_manager_makes_but_for_the_marks() {
    let (mut ours, theirs) = (World::new(), World::new());
    for name in ["n1", "n2", "n3"] {
        ours.join(name);
        theirs.go_node(name);
    }
    ours.apply(web());
    ours.start();
    ours.settled("web").await;
    theirs.go_service(web(), PORTS).await;

    let mut made = ours.sim.snapshot();
    for balancer in made["load_balancers"].as_array_mut().into_iter().flatten() {
        balancer["tags"] = json!({});
    }
    assert_eq!(made, theirs.sim.snapshot());
    for field in ["annotations", "finalizers", "labels"] {
        let of = |world: &World| {
            let mut all = world.service("web").unwrap()["metadata"][field].clone();
            if let Some(uuid) = all.get_mut(super::objects::key("uuid")) {
                uuid.take();
            }
            all
        };
        assert_eq!(of(&ours), of(&theirs), "{field}");
    }
    for name in ["n1", "n2", "n3"] {
        let (mine, other) = (ours.node(name).unwrap(), theirs.node(name).unwrap());
        assert_eq!(mine["metadata"]["labels"], other["metadata"]["labels"]);
        assert_eq!(mine["metadata"]["annotations"], other["metadata"]["annotations"]);
        let kinds = |node: &serde_json::Value| -> Vec<String> {
            let all = node["status"]["addresses"].as_array().unwrap();
            all.iter()
                .map(|it| it["type"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(kinds(&mine), kinds(&other));
    }
    let keys = |world: &World| {
        let ingress = &world.service("web").unwrap()["status"]["loadBalancer"]["ingress"];
        ingress.as_array().unwrap().len()
    };
    assert_eq!(keys(&ours), keys(&theirs));
}

#[tokio::test(start_paused = true)]
async fn a_service_restored_from_a_backup_keeps_its_balancer_although_its_uid_is_new() {
    let mut world = World::with_web(3).await;
    let before = world.sim.load_balancers()[0].clone();
    let members: Vec<_> = world.sim.members().iter().map(|it| it.uuid).collect();
    let mut backup = world.service("web").unwrap();
    world.kill().await;
    world.edit_service("web", |web| {
        web["metadata"].as_object_mut().unwrap().remove("finalizers");
    });
    world.delete_service("web");
    for field in ["uid", "resourceVersion", "creationTimestamp"] {
        backup["metadata"].as_object_mut().unwrap().remove(field);
    }
    for field in ["clusterIP", "clusterIPs"] {
        backup["spec"].as_object_mut().unwrap().remove(field);
    }
    backup["status"] = serde_json::json!({});
    world.apply(backup);
    let uid = world.service("web").unwrap()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_ne!(before.tags["k8s-service-uid"], uid);

    let begun = world.since();
    world.start();
    world.settled("web").await;
    // It is named after the Service, as the Go manager would name it; all else stays.
    assert_eq!(world.writes(begun), ["PATCH load-balancers/:id"]);
    let after = &world.sim.load_balancers()[0];
    assert_eq!((after.uuid, &after.tags), (before.uuid, &before.tags));
    assert_eq!(after.name, format!("k8s-service-{uid}"));
    assert_eq!(
        world.sim.members().iter().map(|it| it.uuid).collect::<Vec<_>>(),
        members
    );
    let vips: Vec<String> = before.vips.iter().map(|vip| vip.address.to_string()).collect();
    assert_eq!(world.addresses("web"), vips);
    world.delete_service("web");
    world.until("gone", |w| w.service("web").is_none()).await;
    assert!(world.sim.load_balancers().is_empty(), "{:?}", world.events("web"));
}
