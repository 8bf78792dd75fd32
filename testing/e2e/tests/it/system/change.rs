//! Changes of a Service and of the Nodes around it: what is written, and what is left in peace.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloudscale_sim::OverlapMode;
use serde_json::json;
use uuid::Uuid;

use super::objects::{OnCloudscale, service, settled_web, web};
use super::world::{SECOND, World};

fn pools(world: &World) -> BTreeSet<Uuid> {
    world.sim.pools().iter().map(|pool| pool.uuid).collect()
}

fn listeners(world: &World) -> BTreeSet<Uuid> {
    world.sim.listeners().iter().map(|it| it.uuid).collect()
}

fn monitors(world: &World) -> BTreeSet<Uuid> {
    world.sim.health_monitors().iter().map(|it| it.uuid).collect()
}

fn members(world: &World) -> BTreeSet<Uuid> {
    world.sim.members().iter().map(|it| it.uuid).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_comes_and_goes_and_only_its_members_do() {
    let world = settled_web(3).await;
    let before = (
        pools(&world),
        listeners(&world),
        monitors(&world),
        members(&world),
    );
    let begun = world.since();
    world.add_node("n4");
    world.until("its members", |w| w.sim.members().len() == 8).await;
    world.rest().await;
    assert_eq!(world.writes(begun), ["POST load-balancers/pools/:id/members"; 2]);

    let begun = world.since();
    assert!(world.api.delete("Node", "", "n4"));
    world.until("they are gone", |w| w.sim.members().len() == 6).await;
    world.rest().await;
    assert_eq!(
        world.writes(begun),
        ["DELETE load-balancers/pools/:id/members/:id"; 2]
    );
    assert_eq!(
        (
            pools(&world),
            listeners(&world),
            monitors(&world),
            members(&world)
        ),
        before
    );
    assert_eq!(
        world.reasons("web"),
        [
            "EnsuringLoadBalancer",
            "EnsuredLoadBalancer",
            "UpdatedLoadBalancer"
        ],
        "the second update is counted up in the first one's event"
    );
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn new_node_ports_never_empty_a_pool() {
    let world = settled_web(3).await;
    let (old_pools, old_listeners, old_members) = (pools(&world), listeners(&world), members(&world));
    world.edit_service("web", |web| {
        for (index, port) in web["spec"]["ports"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .enumerate()
        {
            port["nodePort"] = json!(32_000 + index);
        }
    });
    while world
        .sim
        .members()
        .iter()
        .any(|member| member.protocol_port < 32_000)
        || world.sim.members().len() != 6
    {
        for pool in world.sim.pools() {
            assert!(
                !world.sim.members_of(pool.uuid).is_empty(),
                "{} is empty",
                pool.name
            );
        }
        world.pass(Duration::from_millis(1)).await;
    }
    world.rest().await;
    // The journal tells what a sample could miss: in each pool the creates come before the deletes.
    assert_eq!((pools(&world), listeners(&world)), (old_pools, old_listeners));
    assert!(members(&world).is_disjoint(&old_members));
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn the_traffic_policy_goes_to_local_and_back_and_the_end_is_the_beginning() {
    let world = settled_web(3).await;
    let (first, old_pools, old_listeners) = (world.sim.snapshot(), pools(&world), listeners(&world));
    world.edit_service("web", |web| {
        web["spec"]["externalTrafficPolicy"] = json!("Local");
        web["spec"]["healthCheckNodePort"] = json!(32_500);
    });
    world
        .until("local", |w| {
            w.sim
                .members()
                .iter()
                .all(|member| member.monitor_port == Some(32_500))
                && w.sim.members().len() == 6
        })
        .await;
    world.rest().await;
    for pool in &world.sim.snapshot().load_balancers[0].pools {
        assert_eq!(pool.monitors[0].kind, "http");
        let http = pool.monitors[0].http.as_deref().unwrap();
        assert!(
            http.starts_with("GET /livez HTTP/1.0 host - expects 200"),
            "{http}"
        );
    }
    world.edit_service("web", |web| {
        web["spec"]["externalTrafficPolicy"] = json!("Cluster");
        web["spec"].as_object_mut().unwrap().remove("healthCheckNodePort");
    });
    world.until("back", |w| w.sim.snapshot() == first).await;
    world.rest().await;
    assert_eq!(world.sim.snapshot(), first);
    assert_eq!((pools(&world), listeners(&world)), (old_pools, old_listeners));
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn the_selector_steers_members_down_to_none() {
    let world = settled_web(4).await;
    world.edit_node("n2", |node| node["metadata"]["labels"]["tier"] = json!("edge"));
    world.edit_node("n3", |node| {
        node["metadata"]["labels"]["tier"] = json!("edge");
        node["metadata"]["labels"]["gpu"] = json!("yes");
    });
    world.annotate("web", "node-selector", "tier in (edge),!gpu");
    world
        .until("one member per pool", |w| w.sim.members().len() == 2)
        .await;
    world.rest().await;

    world.annotate("web", "node-selector", "tier=nowhere");
    world.until("none", |w| w.sim.members().is_empty()).await;
    world.rest().await;
    assert!(
        world.reasons("web").contains(&"NoValidNodes".to_owned()),
        "{:?}",
        world.events("web")
    );
    assert_eq!(world.sim.pools().len(), 2);

    let begun = world.since();
    world.annotate("web", "node-selector", "a==b==c");
    world
        .until("the event", |w| {
            w.reasons("web").contains(&"SyncLoadBalancerFailed".to_owned())
        })
        .await;
    world.rest().await;
    assert!(world.writes(begun).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_label_that_a_selector_reads_is_followed_without_an_edit_of_the_service() {
    let mut world = World::new();
    world.add_nodes(3);
    world.apply(web());
    world.annotate("web", "node-selector", "tier=edge");
    world.edit_node("n1", |node| node["metadata"]["labels"]["tier"] = json!("edge"));
    world.start();
    world.settled("web").await;
    assert_eq!(world.sim.members().len(), 2);
    world.edit_node("n2", |node| node["metadata"]["labels"]["tier"] = json!("edge"));
    world.until("two nodes", |w| w.sim.members().len() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_by_hand_is_put_right() {
    use bowline_cloudscale_sim::ManualPool;

    let world = settled_web(2).await;
    let before = world.sim.snapshot();
    let balancer = world.sim.load_balancers()[0].uuid;
    world.sim.set_member_enabled(world.sim.members()[0].uuid, false);
    world.sim.add_pool(ManualPool::new(balancer, "manual"));
    world.sim.delete_listener(world.sim.listeners()[0].uuid);
    assert_ne!(world.sim.snapshot(), before);
    // Nobody tells us: the periodic check finds it.
    world
        .until("all is as before", |w| w.sim.snapshot() == before)
        .await;
    world.rest().await;
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_member_that_is_there_twice_is_there_once() {
    let world = settled_web(2).await;
    let before = world.sim.snapshot();
    world.sim.duplicate_member(world.sim.members()[0].uuid).unwrap();
    world
        .until("one of them is gone", |w| w.sim.snapshot() == before)
        .await;
    world.rest().await;
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn no_write_ever_meets_another_one_on_its_balancer() {
    let mut world = World::new();
    world.add_nodes(4);
    world.sim.set_behaviour(|it| {
        it.overlap = OverlapMode::Refuse(409);
        it.lb_write_time = Duration::from_millis(700);
    });
    world.start();
    world.rest().await;
    world.apply(web());
    world.until("the first pool", |w| !w.sim.pools().is_empty()).await;
    world.join("late1");
    world.pass(Duration::from_millis(900)).await;
    world.join("late2");
    world.edit_service("web", |it| {
        it["spec"]["ports"] =
            service("web", &[("web", 8080, 31200), ("extra", 9001, 31205)])["spec"]["ports"].clone();
    });
    world
        .until("all of it", |w| {
            w.sim.pools().len() == 2 && w.sim.members().len() == 12 && w.sim.health_monitors().len() == 2
        })
        .await;
    world.rest().await;
    let refused: Vec<_> = world.sim.journal().filter(|call| call.status() == Some(409));
    assert!(refused.is_empty(), "{refused:?}");
    let names: BTreeSet<String> = world.sim.pools().iter().map(|pool| pool.name.clone()).collect();
    assert_eq!(names, ["tcp/extra", "tcp/web"].map(str::to_owned).into());
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_refused_writes_nothing_and_members_and_deletion_go_on() {
    let world = settled_web(2).await;
    let begun = world.since();
    world.annotate("web", "flavor", "lb-large");
    world
        .until("the event", |w| {
            w.events("web").iter().any(|it| it.contains("flavor for "))
        })
        .await;
    world.rest().await;
    let events = world.events("web");
    let told = events
        .iter()
        .filter(|it| it.contains("please configure the previous flavor"))
        .count();
    assert_eq!(told, 1, "{events:?}");
    assert!(world.writes(begun).is_empty());

    world.add_node("n3");
    world
        .until("members follow", |w| w.sim.members().len() == 6)
        .await;
    world.rest().await;
    assert_eq!(world.writes(begun), ["POST load-balancers/pools/:id/members"; 2]);
    world.delete_service("web");
    world.until("gone", |w| w.service("web").is_none()).await;
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn setting_a_refused_change_back_heals() {
    let world = settled_web(2).await;
    let begun = world.since();
    world.annotate("web", "flavor", "lb-large");
    world.pass(SECOND * 30).await;
    world.unannotate("web", "flavor");
    world.annotate("web", "timeout-member-data-ms", "60000");
    world
        .until("the change after it", |w| w.writes(begun).len() == 2)
        .await;
    world.rest().await;
    assert_eq!(world.reasons("web").last().unwrap(), "EnsuredLoadBalancer");
}
