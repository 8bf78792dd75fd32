//! How many calls things cost. The bounds are the targets for a replacement in the provider's specification, and
//! the project's own budgets; what is counted is what reached the cloud.

use std::time::Duration;

use bowline_cloudscale_sim::{CloudscaleSim, ServerSpec};

use super::objects::{OnCloudscale, service, settled_web, tainted_node};
use super::world::{Cloudscale, SECOND, Since, World};

/// A cloud that takes its time, so that reads and writes of many Services mix as they do in life.
fn with_latency() -> World {
    let sim = CloudscaleSim::builder()
        .seed(7)
        .latency(Duration::from_millis(20));
    World::over(Cloudscale(sim.build()), 7)
}

fn total(world: &World, since: Since) -> usize {
    let (reads, writes) = world.counts(since);
    reads + writes
}

fn polls(world: &World, since: Since) -> usize {
    world
        .tally(since)
        .get("GET load-balancers/:id")
        .copied()
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_create_costs_ten_and_its_parts() {
    for (nodes, ports) in [(1_usize, 1_usize), (3, 2), (20, 4)] {
        let mut world = World::new();
        world.add_nodes(nodes);
        world.start();
        world.rest().await;
        let begun = world.since();
        let names: Vec<(String, u16, u16)> = (0..ports)
            .map(|port| (format!("p{port}"), 80 + port as u16, 30080 + port as u16))
            .collect();
        let spec: Vec<(&str, u16, u16)> = names.iter().map(|(name, a, b)| (name.as_str(), *a, *b)).collect();
        world.apply(service("web", &spec));
        world.settled("web").await;
        let bound = 10 + 4 * ports + ports * nodes + polls(&world, begun);
        let (reads, writes) = world.counts(begun);
        assert!(
            reads + writes <= bound,
            "{nodes} nodes, {ports} ports: {:#?}",
            world.tally(begun)
        );
        assert_eq!(
            writes,
            1 + ports * (3 + nodes),
            "as many writes as there are parts"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sync_without_change_costs_seven_and_a_read_per_pool() {
    let world = settled_web(3).await;
    let begun = world.since();
    world.annotate("web", "unrelated-by-our-table", "x");
    world.rest().await;
    assert!(total(&world, begun) <= 7 + 2, "{:#?}", world.tally(begun));
    assert!(total(&world, begun) > 0, "any annotation leads to a real read");
    assert!(world.writes(begun).is_empty());
}

#[tokio::test(start_paused = true)]
async fn our_own_annotations_cost_nothing() {
    let world = settled_web(3).await;
    let begun = world.since();
    world.pass(SECOND * 60).await;
    assert!(world.calls(begun).is_empty(), "{:#?}", world.tally(begun));
}

#[tokio::test(start_paused = true)]
async fn a_node_more_costs_seven_lists_and_its_members() {
    let world = settled_web(3).await;
    let begun = world.since();
    world.add_node("n4");
    world.until("its members", |w| w.sim.members().len() == 8).await;
    world.rest().await;
    // Five lists and the members of two pools before; after it balancers and pools, because only members were written.
    assert!(total(&world, begun) <= 7 + 2 + 2, "{:#?}", world.tally(begun));
    assert_eq!(world.writes(begun), ["POST load-balancers/pools/:id/members"; 2]);
    assert_eq!(world.reasons("web").last().unwrap(), "UpdatedLoadBalancer");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_costs_five() {
    let world = settled_web(3).await;
    let begun = world.since();
    world.delete_service("web");
    world.until("gone", |w| w.service("web").is_none()).await;
    world.rest().await;
    let bound = 5 + polls(&world, begun);
    assert!(total(&world, begun) <= bound, "{:#?}", world.tally(begun));
    assert_eq!(world.writes(begun), ["DELETE load-balancers/:id"]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_are_initialised_in_ten_calls() {
    let mut world = World::new();
    for index in 0..1_000 {
        world.sim.add_server(ServerSpec::new(format!("n{index}")));
        world.apply(tainted_node(&format!("n{index}")));
    }
    world.start();
    let took = world
        .until("all initialised", |w| {
            w.api
                .objects("Node")
                .iter()
                .all(|node| node["spec"]["providerID"].is_string() && node["spec"]["taints"].is_null())
        })
        .await;
    world.rest().await;
    let calls = world.sim.journal().len();
    assert!(calls <= 10, "{calls} calls");
    assert!(took < SECOND * 10, "{took:?} of virtual time");
    assert_eq!(world.api.objects("Node").len(), 1_000);
}

#[tokio::test(start_paused = true)]
async fn five_services_of_two_ports_on_fifty_nodes_cost_six_hundred() {
    let mut world = with_latency();
    world.add_nodes(50);
    world.start();
    world.rest().await;
    let begun = world.since();
    for index in 0..5_u16 {
        let ports = [("a", 80, 30000 + 2 * index), ("b", 81, 30001 + 2 * index)];
        world.apply(service(&format!("s{index}"), &ports));
    }
    for index in 0..5 {
        world.settled(&format!("s{index}")).await;
    }
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, 535);
    assert!(reads + writes <= 600, "{:#?}", world.tally(begun));
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_hundred_services_and_then_one_node_more() {
    const SERVICES: usize = 100;
    let mut world = with_latency();
    world.add_nodes(20);
    world.start();
    world.rest().await;
    let begun = world.since();
    for index in 0..SERVICES {
        world.apply(service(&format!("s{index}"), &[("", 80, 30000 + index as u16)]));
    }
    world
        .until("all have their addresses", |w| {
            (0..SERVICES).all(|index| !w.addresses(&format!("s{index}")).is_empty())
        })
        .await;
    world.rest().await;
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, SERVICES * (1 + 3 + 20));
    assert!(reads + writes <= 2_700, "{:#?}", world.tally(begun));
    assert_eq!(world.sim.load_balancers().len(), SERVICES);

    let begun = world.since();
    world.add_node("n21");
    world
        .until("its members", |w| w.sim.members().len() == SERVICES * 21)
        .await;
    world.rest().await;
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, SERVICES);
    assert!(reads <= 10 + SERVICES, "{:#?}", world.tally(begun));
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn thirty_nodes_that_join_within_a_second_are_few_updates() {
    let mut world = World::new();
    world.add_nodes(1);
    world.start();
    world.rest().await;
    for index in 0..20_u16 {
        world.apply(service(&format!("s{index}"), &[("", 80, 30000 + index)]));
    }
    world
        .until("all", |w| {
            (0..20).all(|i| !w.addresses(&format!("s{i}")).is_empty())
        })
        .await;
    world.rest().await;
    let begun = world.since();
    for index in 0..30 {
        world.add_node(&format!("late{index}"));
        world.pass(SECOND / 25).await;
    }
    world
        .until("their members", |w| w.sim.members().len() == 20 * 31)
        .await;
    world.rest().await;
    // One listing of each kind and one read per pool for each round; two rounds at most.
    let (reads, writes) = world.counts(begun);
    assert_eq!(writes, 20 * 30);
    assert!(reads <= 2 * (10 + 20), "{:#?}", world.tally(begun));
}
