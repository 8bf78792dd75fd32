//! Tags that a Service asks for: beside the marks, and beside what people put there.

use bowline_kit::Interruption;

use crate::upstream::as_upstream;
use crate::world::{World, in_short, lb_name, service};

/// The tags of the load balancer, of its first listener and of its first pool.
fn tags(world: &World) -> [Vec<String>; 3] {
    let balancer = world.sim.load_balancers().remove(0).part.meta.tags;
    let listener = world.sim.listeners().remove(0).part.meta.tags;
    [balancer, listener, world.sim.pools().remove(0).part.meta.tags]
}

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

fn ask(world: &World, balancer: &str, listener: &str, pool: &str) {
    world.annotate("web", "load-balancer-tags", balancer);
    world.annotate("web", "listener-tags", listener);
    world.annotate("web", "pool-tags", pool);
}

#[tokio::test(start_paused = true)]
async fn tags_come_with_the_load_balancer_and_follow_the_annotations() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(2);
        world.configure(|options| options.is_serial = is_serial);
        ask(&world, "env=prod, team=net,env=prod", "env=prod", "tier=1");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let is_update = |call: &&str| call.ends_with(".update");
        assert_eq!(
            in_short(&writes).into_iter().filter(is_update).count(),
            0,
            "{writes:#?}"
        );
        let mark = lb_name("web");
        assert_eq!(
            tags(&world),
            [
                texts(&[&mark, "env=prod", "team=net"]),
                texts(&[&mark, "env=prod"]),
                texts(&["tier=1"]),
            ]
        );
        assert_eq!(
            world.annotation("web", "added-tags").as_deref(),
            Some("env=prod,team=net,tier=1")
        );
        world.restart();
        world.assert_settled("web").await;
        ask(&world, "team=net", "", "tier=2");
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(
            in_short(&writes),
            [
                "octavia.listeners.update",
                "octavia.pools.update",
                "octavia.loadbalancers.update"
            ]
        );
        assert_eq!(
            tags(&world),
            [texts(&[&mark, "team=net"]), texts(&[&mark]), texts(&["tier=2"])]
        );
        assert_eq!(
            world.annotation("web", "added-tags").as_deref(),
            Some("team=net,tier=2")
        );
        for suffix in ["load-balancer-tags", "listener-tags", "pool-tags"] {
            world.remove_annotation("web", suffix);
        }
        world.run("web").await.settled();
        assert_eq!(tags(&world), [texts(&[&mark]), texts(&[&mark]), texts(&[])]);
        assert_eq!(world.annotation("web", "added-tags"), None);
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_people_put_there_stays() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let by_hand = |tags: &mut Vec<String>| tags.push("by-hand".to_owned());
    let balancer = world.sim.load_balancers().remove(0).part.id;
    world
        .sim
        .edit_load_balancer(balancer, |it| by_hand(&mut it.part.meta.tags));
    world.assert_settled("web").await;
    ask(&world, "a", "a", "a");
    world.run("web").await.settled();
    ask(&world, "", "", "");
    world.run("web").await.settled();
    let mark = lb_name("web");
    assert_eq!(
        tags(&world),
        [texts(&[&mark, "by-hand"]), texts(&[&mark]), texts(&[])]
    );
}

/// Stopped after each of its writes, the next process takes off what this one added.
#[tokio::test(start_paused = true)]
async fn no_tag_is_forgotten_wherever_the_process_stops() {
    for stop in 1..8 {
        let mut world = World::with_nodes(1);
        world.run("web").await.settled();
        ask(&world, "a", "b", "c");
        world.run_with("web", Interruption::AfterStep(stop)).await;
        world.restart();
        ask(&world, "", "", "");
        world.run("web").await.settled();
        let mark = lb_name("web");
        assert_eq!(
            tags(&world),
            [texts(&[&mark]), texts(&[&mark]), texts(&[])],
            "{stop}"
        );
        assert_eq!(world.annotation("web", "added-tags"), None, "{stop}");
    }
}

/// The Go manager after v1.36.0 adds them in an order of its own, and takes none off.
#[tokio::test(start_paused = true)]
async fn what_the_go_manager_tagged_is_taken_over_without_a_write() {
    let mut world = World::with_nodes(3);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    world.put(service("web", &[("TCP", 80, 30080)]));
    as_upstream(&world).await;
    ask(&world, "b,a", "a", "p");
    let mark = lb_name("web");
    let balancer = world.sim.load_balancers().remove(0).part.id;
    world.sim.edit_load_balancer(balancer, |it| {
        it.part.meta.tags = texts(&["a", "b", "kube_cluster_id_7c9e", &mark, "of-before"]);
    });
    let listener = world.sim.listeners().remove(0).part.id;
    world
        .sim
        .edit_listener(listener, |it| it.part.meta.tags = texts(&["a", &mark]));
    let pool = world.sim.pools().remove(0).part.id;
    world.sim.edit_pool(pool, |it| it.part.meta.tags = texts(&["p"]));
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
}

#[tokio::test(start_paused = true)]
async fn a_guest_takes_its_tags_along_when_it_goes() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.put(service("guest", &[("TCP", 81, 30081)]));
    world.annotate("guest", "load-balancer-id", &id);
    world.annotate("guest", "load-balancer-tags", "of-guest");
    world.run("guest").await.settled();
    let mark = lb_name("web");
    let now = tags(&world)[0].clone();
    assert_eq!(now, texts(&[&mark, &lb_name("guest"), "of-guest"]));
    world.assert_settled("web").await;
    world.delete("guest");
    world.run("guest").await.settled();
    assert_eq!(tags(&world)[0], texts(&[&mark]));
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_no_tag_to_ask_for() {
    let world = World::with_nodes(1);
    ask(
        &world,
        "kube_service_lab_default_other,ok",
        "kube_cluster_id_7c9e",
        "",
    );
    let run = world.run("web").await;
    let mark = lb_name("web");
    assert_eq!(tags(&world), [texts(&[&mark, "ok"]), texts(&[&mark]), texts(&[])]);
    assert_eq!(run.reasons(), ["IgnoredAnnotations"]);
}

#[tokio::test(start_paused = true)]
async fn an_octavia_without_tags_gets_none_and_nothing_is_recorded() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.octavia_minor_version = 4);
    ask(&world, "a", "b", "c");
    world.run("web").await.settled();
    assert_eq!(world.annotation("web", "added-tags"), None);
    world.assert_settled("web").await;
}
