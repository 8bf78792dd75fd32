//! A Node goes only when its instance is proved gone.

use std::time::Duration;

use bowline_cloud_kit::Fault;
use serde_json::json;

use super::outages::ILLNESSES;
use super::under_test::{CloudUnderTest, Denial, Instance, Wish};
use super::world::{SECOND, SHUTDOWN, Start, World, tainted_node, web};

const GONE: &str = "DeletingNode: Deleting node n1 because it does not exist in the cloud provider";

pub(super) async fn a_node_goes_when_its_instance_is_proved_gone_twice<C: CloudUnderTest>() {
    for conditions in [
        json!([{ "type": "Ready", "status": "Unknown" }]),
        json!([{ "type": "Ready", "status": "False" }]),
        json!([]),
    ] {
        let world = World::<C>::with_nodes(4).await;
        world.sim.remove_instance("n1");
        let begun = world.since();
        world.edit_node("n1", |node| node["status"]["conditions"] = conditions.clone());
        let took = world.until("the node is gone", |w| w.node("n1").is_none()).await;
        assert!(took >= SECOND * 5 && took < SECOND * 6, "{conditions}: {took:?}");
        world.rest().await;
        assert_eq!(world.events("n1"), [GONE]);
        assert_eq!(world.object_writes(begun), ["delete nodes n1"]);
        assert_eq!(world.api.objects("Node").len(), 3);
        assert_eq!(world.counts(begun).1, 0);
    }
}

pub(super) async fn no_error_is_a_proof<C: CloudUnderTest>() {
    for (name, ill) in ILLNESSES {
        let world = World::<C>::with_nodes(3).await;
        world.cloud().faults().add(ill(Fault::any().always()));
        world.sim.remove_instance("n1");
        for node in ["n1", "n2"] {
            world.set_ready(node, "Unknown");
        }
        world.pass(SECOND * 300).await;
        for node in ["n1", "n2", "n3"] {
            assert!(world.node(node).is_some(), "{name} deleted {node}");
            assert_eq!(world.taints(node), Vec::<String>::new(), "{name}");
        }
        // Over, and only the one that is proved gone goes.
        world.cloud().faults().clear();
        world.until("the lost one goes", |w| w.node("n1").is_none()).await;
        world.pass(SECOND * 60).await;
        assert!(world.node("n2").is_some() && world.node("n3").is_some(), "{name}");
    }
}

pub(super) async fn an_instance_that_is_switched_off_taints_its_node<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    world.edit_node("n1", |node| {
        node["spec"]["taints"] = json!([{ "key": "other", "effect": "NoSchedule" }]);
    });
    world.sim.set_power("n1", false);
    world.set_ready("n1", "Unknown");
    let took = world
        .until("the taint", |w| w.taints("n1").contains(&SHUTDOWN.to_owned()))
        .await;
    assert!(took < SECOND * 6, "{took:?}");
    let node = world.node("n1").unwrap();
    let taints = node["spec"]["taints"].as_array().unwrap();
    let taint = taints.iter().find(|it| it["key"] == SHUTDOWN).unwrap();
    assert_eq!(
        (&taint["effect"], taint["value"].is_null()),
        (&json!("NoSchedule"), true)
    );
    // It is written once, however often it is seen.
    let begun = world.since();
    world.pass(SECOND * 60).await;
    assert_eq!(world.kube_writes(begun), Vec::<String>::new());

    world.sim.set_power("n1", true);
    world.set_ready("n1", "True");
    let took = world
        .until("the taint is off", |w| w.taints("n1") == ["other"])
        .await;
    assert!(took < SECOND * 6, "{took:?}");
}

pub(super) async fn an_instance_that_runs_changes_nothing<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(3).await;
    let begun = world.since();
    world.set_ready("n1", "Unknown");
    world.pass(SECOND * 60).await;
    assert!(world.counts(begun).0 > 0, "it never asked");
    assert_eq!(world.kube_writes(begun), Vec::<String>::new());
}

pub(super) async fn a_pass_costs_the_same_for_many_nodes<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let world = World::<C>::with_nodes(nodes).await;
        world.cloud().set_latency(Duration::from_millis(100));
        for index in 2..=nodes {
            world.set_ready(&format!("n{index}"), "Unknown");
        }
        world.pass(SECOND * 10).await;
        let begun = world.since();
        world.pass(SECOND * 60).await;
        world.counts(begun).0
    };
    let (few, many) = (cost(4).await, cost(60).await);
    // The periods begin at the end of a pass, so that a minute may hold one more or less.
    assert!(many.abs_diff(few) <= 2, "{few} calls for 3, {many} for 59");
}

pub(super) async fn a_node_of_another_cloud_is_left_alone_and_costs_no_call<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    let mut node = tainted_node("far");
    node["spec"] = json!({ "providerID": "elsewhere:///eu/i-123" });
    world.apply(node);
    world.set_ready("far", "Unknown");
    world.start();
    world.rest().await;
    let begun = world.since();
    world.pass(SECOND * 400).await;
    assert!(world.node("far").is_some());
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    assert!(world.calls(begun).is_empty(), "{:?}", world.tally(begun));
}

pub(super) async fn credentials_of_another_project_delete_no_node<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(4);
    world.sim.deny(Some(Denial::OtherProject));
    for node in ["n1", "n2", "n3"] {
        world.set_ready(node, "Unknown");
    }
    world.start();
    world.pass(SECOND * 900).await;
    assert_eq!(world.api.objects("Node").len(), 4);
    for node in ["n1", "n2", "n3"] {
        assert_eq!(
            world.reasons(node),
            ["NodeDeletionFrozen"],
            "{:?}",
            world.events(node)
        );
    }
    // The right ones are put back: what is proved gone goes, the others stay.
    world.sim.remove_instance("n1");
    world.sim.deny(None);
    world.until("the lost one goes", |w| w.node("n1").is_none()).await;
    world.pass(SECOND * 60).await;
    assert_eq!(world.api.objects("Node").len(), 3);
}

pub(super) async fn nothing_moves_to_a_project_whose_instances_have_only_the_names_of_the_nodes<
    C: CloudUnderTest,
>() {
    let mut world = World::<C>::new();
    let nodes = ["n1", "n2", "n3"];
    for name in nodes {
        world.join(name);
    }
    world.ask(web(), Wish::Plain);
    world.start_with(Start::alone());
    world.settled("web").await;
    for name in nodes {
        world.until("initialised", |w| w.is_initialized(name)).await;
        world.sim.remove_instance(name);
        world.sim.add_instance(&Instance::plain(name));
    }
    world.pass(SECOND * 400).await; // a refresh of the Nodes, in which nothing of this is believed either
    let begun = world.since();
    world.join("n4");
    world.set_ready("n2", "Unknown");
    world.pass(SECOND * 900).await;
    assert!(world.node("n2").is_some() && !world.is_initialized("n4"));
    assert_eq!(
        world.reasons("n4"),
        ["NodeInitFailed"],
        "{:?}",
        world.events("n4")
    );
    // But for the condition of a Service that cannot follow them.
    let mut writes = world.object_writes(begun);
    writes.retain(|write| !write.starts_with("patch services/status"));
    assert_eq!(writes, Vec::<String>::new());
    assert_eq!(world.counts(begun).1, 0, "{:?}", world.tally(begun));
    // Whoever says so, by taking the Nodes away, gets the other instances.
    for name in nodes {
        world.api.delete("Node", "", name);
        world.apply(tainted_node(name));
    }
    for name in nodes.into_iter().chain(["n4"]) {
        world.until("initialised", |w| w.is_initialized(name)).await;
    }
    world.rest().await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}

pub(super) async fn unknown_credentials_delete_no_node<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(4);
    world.sim.deny(Some(Denial::Unknown));
    for node in ["n1", "n2", "n3", "n4"] {
        world.set_ready(node, "Unknown");
    }
    world.start();
    world.pass(SECOND * 900).await;
    assert_eq!(world.api.objects("Node").len(), 4);
}
