//! Machines and their Nodes.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::{InterfaceSpec, ServerSpec, ServerStatus};
use http::Method;
use serde_json::{Value, json};

use super::objects::{OnCloudscale, SHUTDOWN, settled_web, tainted_node};
use super::world::{Cloudscale, SECOND, World};

fn addresses(node: &Value) -> Vec<String> {
    let all = node["status"]["addresses"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    all.iter()
        .map(|it| it["type"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_gets_what_its_server_tells() {
    let sim = bowline_cloudscale_sim::CloudscaleSim::builder()
        .zones(["rma1", "lpg2"])
        .seed(7)
        .build();
    let mut world = World::over(Cloudscale(sim), 7);
    let server = world.sim.add_server(ServerSpec {
        zone: Some("lpg2".into()),
        flavor: "flex-16-4".into(),
        interfaces: vec![
            InterfaceSpec::Private,
            InterfaceSpec::Private,
            InterfaceSpec::Public { v6: true },
        ],
        ..ServerSpec::new("db-1")
    });
    world.start();
    world.rest().await;
    let begun = world.since();
    world.apply(tainted_node("db-1"));
    let took = world.until("initialised", |w| w.is_initialized("db-1")).await;
    assert!(took < SECOND * 3, "{took:?}");
    world.rest().await;

    let node = world.node("db-1").unwrap();
    assert_eq!(node["spec"]["providerID"], format!("cloudscale://{server}"));
    assert_eq!(
        addresses(&node),
        ["Hostname", "InternalIP", "InternalIP", "ExternalIP", "ExternalIP"]
    );
    for (key, value) in [
        ("node.kubernetes.io/instance-type", "flex-16-4"),
        ("beta.kubernetes.io/instance-type", "flex-16-4"),
        ("topology.kubernetes.io/region", "lpg"),
        ("failure-domain.beta.kubernetes.io/region", "lpg"),
        ("topology.kubernetes.io/zone", "lpg2"),
        ("failure-domain.beta.kubernetes.io/zone", "lpg2"),
    ] {
        assert_eq!(node["metadata"]["labels"][key], value, "{key}");
    }
    assert_eq!(world.events("db-1"), ["Synced: Node synced successfully"]);
    assert_eq!(world.counts(begun), (1, 0));
    assert_eq!(
        world.object_writes(begun),
        ["patch nodes/status db-1", "patch nodes db-1"],
        "the taint goes last, when everything else is there"
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_two_servers_bear_keeps_the_taint_until_it_is_one() {
    let mut world = World::new();
    world.sim.add_server(ServerSpec::new("app"));
    let second = world.sim.add_server(ServerSpec::new("app"));
    world.apply(tainted_node("app"));
    world.start();
    world.pass(SECOND * 20).await;
    assert!(!world.is_initialized("app"));
    assert!(world.node("app").unwrap()["spec"]["providerID"].is_null());
    let events = world.events("app");
    assert!(
        events.len() == 1
            && events[0].starts_with("NodeInitFailed: ")
            && events[0].contains("found more than one"),
        "{events:?}"
    );
    world.sim.rename_server(second, "app-2");
    world.until("initialised", |w| w.is_initialized("app")).await;
}

#[tokio::test(start_paused = true)]
async fn an_id_in_another_spelling_is_asked_for_in_the_usual_one() {
    let mut world = World::new();
    let gone = "6f9619ff-8b86-d011-b42d-00cf4fc964ff";
    let mut node = tainted_node("old");
    node["spec"] = json!({ "providerID": "cloudscale://{6F9619FF-8B86-D011-B42D-00CF4FC964FF}" });
    world.apply(node);
    world.add_node("ready");
    world.set_ready("old", "Unknown");
    world.start();
    world.until("it is gone", |w| w.node("old").is_none()).await;
    let asked: Vec<String> = world
        .sim
        .journal()
        .reads()
        .iter()
        .map(|call| call.path.clone())
        .collect();
    assert!(asked.contains(&format!("/v1/servers/{gone}")), "{asked:?}");
    assert!(!asked.iter().any(|path| path.contains("6F9619FF")));
}

#[tokio::test(start_paused = true)]
async fn a_node_of_another_cloud_is_left_alone_without_a_call() {
    let mut world = World::new();
    let mut node = tainted_node("far");
    node["spec"] = json!({ "providerID": "aws:///eu/i-123" });
    world.apply(node);
    world.set_ready("far", "Unknown");
    world.start();
    world.pass(SECOND * 120).await;
    assert!(world.node("far").is_some());
    let asked = world.sim.journal().reads();
    assert!(
        !asked.iter().any(|call| call.path.starts_with("/v1/servers/")),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_stopped_server_taints_its_node_and_one_that_changes_does_not() {
    let mut world = World::new();
    world.add_node("n1");
    let server = world.server("n1");
    world.add_node("n2");
    world.start();
    world.rest().await;
    world.sim.set_server_status(server, ServerStatus::Changing);
    world.set_ready("n1", "Unknown");
    world.pass(SECOND * 20).await;
    assert!(!world.taints("n1").contains(&SHUTDOWN.to_owned()));
    world.sim.set_server_status(server, ServerStatus::Stopped);
    world
        .until("the taint", |w| w.taints("n1").contains(&SHUTDOWN.to_owned()))
        .await;
    world.sim.set_server_status(server, ServerStatus::Running);
    world.set_ready("n1", "True");
    let took = world
        .until("the taint is off", |w| {
            !w.taints("n1").contains(&SHUTDOWN.to_owned())
        })
        .await;
    assert!(took < SECOND * 6, "{took:?}");
    assert!(world.node("n1").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_server_is_gone_is_deleted_in_six_seconds_and_its_members_follow() {
    let world = settled_web(4).await;
    world.sim.remove_server(world.server("n2"));
    let begun = world.since();
    world.set_ready("n2", "Unknown");
    let took = world.until("the node is gone", |w| w.node("n2").is_none()).await;
    assert!(took >= SECOND * 5 && took < SECOND * 6, "{took:?}");
    world
        .until("its members are gone", |w| w.sim.members().len() == 6)
        .await;
    world.rest().await;
    assert_eq!(
        world.events("n2"),
        ["DeletingNode: Deleting node n2 because it does not exist in the cloud provider"]
    );
    assert_eq!(
        world.writes(begun),
        ["DELETE load-balancers/pools/:id/members/:id"; 2]
    );
    assert!(world.node("n1").is_some() && world.node("n3").is_some() && world.node("n4").is_some());
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_single_404_that_is_taken_back_deletes_no_node() {
    let mut world = World::new();
    world.add_node("n1");
    let server = world.server("n1");
    world.add_node("n2");
    world.start();
    world.rest().await;
    let path = format!("/v1/servers/{server}");
    let once = Fault::on(Method::GET, path.as_str()).answer(
        bowline_cloudscale_sim::kit::faults::Canned::json(404, r#"{"detail":"Not found."}"#),
    );
    let id = world.sim.faults().add(once);
    world.set_ready("n1", "Unknown");
    world.pass(SECOND * 60).await;
    assert_eq!(world.sim.faults().struck(id), 1);
    assert!(world.node("n1").is_some());
}
