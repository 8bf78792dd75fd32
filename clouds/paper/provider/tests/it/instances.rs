//! Machines as the instances of Nodes.

use std::sync::Arc;

use bowline_cloud_provider::{
    CloudProvider, ErrorKind, Instance, InstanceAnswer, InstanceQuery, InstanceResult, Node, PowerState,
    Purpose,
};
use bowline_paper_sim::kit::Fault;
use http::Method;

use crate::world::World;

async fn ask(world: &World, nodes: &[Arc<Node>], purpose: Purpose) -> Vec<InstanceResult> {
    let query = |node: &Arc<Node>| InstanceQuery {
        node: Arc::clone(node),
        purpose,
    };
    let queries: Vec<InstanceQuery> = nodes.iter().map(query).collect();
    world.cloud.instances().unwrap().instances(&queries).await
}

fn with_id(id: &str) -> Arc<Node> {
    Arc::new(Node {
        provider_id: Some(id.into()),
        ..Node::named("a")
    })
}

fn present(answer: &InstanceResult) -> &Instance {
    match answer {
        Ok(InstanceAnswer::Present(instance)) => instance,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_nodes_cost_a_page_per_hundred() {
    let world = World::new(1_000);
    world.sim.set_behaviour(|behaviour| behaviour.page_size = 100);
    let (answers, calls) = world
        .calls_of(ask(&world, &world.nodes, Purpose::Existence))
        .await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Ok(InstanceAnswer::Present(_))))
    );
    assert_eq!(calls.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_provider_id_is_found_by_name_but_never_deleted_on_it() {
    let world = World::new(1);
    let node = [Arc::new(Node::named("n1"))];
    let answers = ask(&world, &node, Purpose::Metadata).await;
    let metadata = &present(&answers[0]).metadata;
    assert_eq!(
        metadata.provider_id.as_deref(),
        world.nodes[0].provider_id.as_deref()
    );
    assert_eq!(
        (&*metadata.instance_type, &*metadata.zone, &*metadata.region),
        ("paper-2", "north-1", "north")
    );
    let shown: Vec<String> = metadata
        .addresses
        .iter()
        .map(|it| format!("{:?} {}", it.kind, it.address))
        .collect();
    assert_eq!(
        shown,
        ["Hostname n1", "InternalIp 10.60.0.2", "ExternalIp 198.19.0.2"]
    );
    world.sim.remove_machine(world.sim.machines()[0].id);
    let error = ask(&world, &node, Purpose::Existence)
        .await
        .remove(0)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot tell the machine of node n1: it has no provider ID"
    );
}

#[tokio::test(start_paused = true)]
async fn absence_is_the_apis_own_404_to_this_machine() {
    let world = World::new(1);
    world.sim.remove_machine(world.sim.machines()[0].id);
    let answer = ask(&world, &world.nodes, Purpose::Existence)
        .await
        .remove(0)
        .unwrap();
    assert!(matches!(&answer, InstanceAnswer::Absent(proof) if proof.to_string().contains("answered 404")));
    for fault in [
        Fault::on(Method::GET, "/v1/machines/*").html(404),
        Fault::on(Method::GET, "/v1/machines/*").empty(404),
        Fault::on(Method::GET, "/v1/machines/*").status(404),
        Fault::on(Method::GET, "/v1/machines/*").status(403),
    ] {
        world.sim.faults().clear();
        world.sim.faults().add(fault);
        assert!(ask(&world, &world.nodes, Purpose::Existence).await[0].is_err());
    }
    // A failed listing says nothing about anybody.
    world.sim.faults().clear();
    world
        .sim
        .faults()
        .add(Fault::on(Method::GET, "/v1/machines").always().status(500));
    let twice = [&world.nodes[0], &world.nodes[0]].map(Arc::clone);
    let answers = ask(&world, &twice, Purpose::Existence).await;
    assert!(answers.iter().all(Result::is_err), "{answers:?}");
}

#[tokio::test(start_paused = true)]
async fn one_machine_is_asked_for_and_of_several_only_those_that_the_listing_lacks() {
    let world = World::new(3);
    world.sim.set_behaviour(|behaviour| behaviour.page_size = 100);
    let calls = async |nodes: &[Arc<Node>]| {
        world
            .calls_of(ask(&world, nodes, Purpose::Existence))
            .await
            .1
            .len()
    };
    assert_eq!(calls(&world.nodes[..1]).await, 1);
    assert_eq!(calls(&world.nodes).await, 1);
    world.sim.remove_machine(world.sim.machines()[0].id);
    assert_eq!(calls(&world.nodes).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_sighting_costs_the_listing_only() {
    let world = World::new(1);
    world.sim.remove_machine(world.sim.machines()[0].id);
    let (answers, calls) = world
        .calls_of(ask(&world, &world.nodes, Purpose::CredentialCheck))
        .await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(calls.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_clouds_node_is_left_alone_and_a_damaged_id_is_an_error() {
    let world = World::new(0);
    let foreign = [with_id("aws:///eu/i-1"), with_id("gce://zone/name")];
    let (answers, calls) = world.calls_of(ask(&world, &foreign, Purpose::Existence)).await;
    assert_eq!(
        answers,
        [Ok(InstanceAnswer::Foreign), Ok(InstanceAnswer::Foreign)]
    );
    assert!(calls.is_empty(), "{calls:?}");
    // Whatever is wrong with this cloud, it is nothing to a Node of another one.
    world.sim.faults().add(Fault::any().always().status(500));
    let both = [with_id("aws:///eu/i-1"), with_id("paper://1")];
    let answers = ask(&world, &both, Purpose::Existence).await;
    assert_eq!(answers[0], Ok(InstanceAnswer::Foreign));
    assert!(answers[1].is_err());
    world.sim.faults().clear();
    let answers = ask(&world, &[with_id("paper://")], Purpose::Existence).await;
    assert_eq!(answers[0].as_ref().unwrap_err().kind(), ErrorKind::Invalid);
}

#[tokio::test(start_paused = true)]
async fn only_a_machine_that_is_off_is_off() {
    let world = World::new(1);
    for (word, power) in [
        ("on", PowerState::On),
        ("rebooting", PowerState::On),
        ("off", PowerState::Off),
    ] {
        world.sim.change_machine(world.sim.machines()[0].id, |machine| {
            machine.power = word.to_owned()
        });
        assert_eq!(
            present(&ask(&world, &world.nodes, Purpose::Existence).await[0]).power,
            power
        );
    }
}
