//! A Node gets what its machine tells, and keeps it.

use bowline_cloud_kit::Fault;
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use serde_json::{Value, json};

use super::under_test::{CloudUnderTest, Machine};
use super::world::{SECOND, UNINITIALIZED, World, tainted_node};

const PROVIDED: &str = "alpha.kubernetes.io/provided-node-ip";

/// A world with a manager at rest and one machine `n1`, whose kubelet has not come up.
async fn with_machine<C: CloudUnderTest>(is_special: bool) -> World<C> {
    let world = World::<C>::with_nodes(0).await;
    world.sim.add_machine(&Machine {
        name: "n1".to_owned(),
        is_special,
    });
    world
}

async fn initialized<C: CloudUnderTest>(world: &World<C>, name: &str) {
    world.until("initialised", |w| w.is_initialized(name)).await;
    world.rest().await;
}

pub(super) async fn a_node_gets_what_its_machine_tells<C: CloudUnderTest>() {
    for is_special in [false, true] {
        let world = with_machine::<C>(is_special).await;
        let begun = world.since();
        world.apply(tainted_node("n1"));
        let took = world.until("initialised", |w| w.is_initialized("n1")).await;
        assert!(took < SECOND * 3, "{took:?}");
        world.rest().await;
        assert_eq!(world.unlike(), Vec::<String>::new());
        assert_eq!(world.events("n1"), ["Synced: Node synced successfully"]);
        let (reads, writes) = world.counts(begun);
        assert!(
            (1..=3).contains(&reads) && writes == 0,
            "{:?}",
            world.tally(begun)
        );
        assert_eq!(
            world.object_writes(begun).last().map(String::as_str),
            Some("patch nodes n1"),
            "the taint goes last, when everything else is there"
        );
    }
}

pub(super) async fn only_that_taint_goes_whatever_its_value_and_effect<C: CloudUnderTest>() {
    let world = with_machine::<C>(false).await;
    let mut node = tainted_node("n1");
    let others = [
        json!({ "key": "other", "value": "x", "effect": "NoSchedule" }),
        json!({ "key": "more", "effect": "NoExecute" }),
    ];
    let ours = json!({ "key": UNINITIALIZED, "value": "foo", "effect": "NoExecute" });
    node["spec"]["taints"] = json!([others[0], ours, others[1]]);
    world.apply(node);
    initialized(&world, "n1").await;
    let left = world.node("n1").unwrap()["spec"]["taints"].clone();
    let keys: Vec<&Value> = left.as_array().unwrap().iter().map(|it| &it["key"]).collect();
    assert_eq!(keys, ["other", "more"]);
}

pub(super) async fn a_provided_address_comes_first_and_is_the_only_one_of_its_type<C: CloudUnderTest>() {
    let world = with_machine::<C>(true).await;
    let all = world.sim.machines()["n1"].addresses.clone();
    let all: Vec<Value> = all
        .iter()
        .map(|it| json!({ "type": it.kind, "address": it.address }))
        .collect();
    // The last address that is one, so that there is something to put in front of others.
    let is_ip = |it: &&Value| {
        it["address"]
            .as_str()
            .unwrap()
            .parse::<std::net::IpAddr>()
            .is_ok()
    };
    let provided = all.iter().rfind(is_ip).unwrap();
    let mut wanted = vec![provided.clone()];
    wanted.extend(all.iter().filter(|it| it["type"] != provided["type"]).cloned());

    let mut node = tainted_node("n1");
    node["metadata"]["annotations"] = json!({ PROVIDED: provided["address"] });
    world.apply(node);
    initialized(&world, "n1").await;
    assert_eq!(world.node("n1").unwrap()["status"]["addresses"], json!(wanted));
}

pub(super) async fn a_provided_address_of_nobody_keeps_the_taint<C: CloudUnderTest>() {
    for wrong in ["192.0.2.99", "10.1.0.1, fd00::1", ""] {
        let world = with_machine::<C>(false).await;
        let mut node = tainted_node("n1");
        node["metadata"]["annotations"] = json!({ PROVIDED: wrong });
        world.apply(node);
        world.pass(SECOND * 3).await;
        let node = world.node("n1").unwrap();
        assert!(!world.is_initialized("n1"), "{wrong:?}");
        assert!(node["spec"]["providerID"].is_null(), "{wrong:?}");
        assert!(node["status"]["addresses"].is_null(), "{wrong:?}");
        assert!(!world.reasons("n1").contains(&"Synced".to_owned()), "{wrong:?}");

        world.edit_node("n1", |node| node["metadata"]["annotations"] = json!({}));
        initialized(&world, "n1").await;
        assert_eq!(world.unlike(), Vec::<String>::new());
    }
}

pub(super) async fn a_node_that_registers_before_its_machine_is_listed_is_waited_for<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(1).await;
    world.apply(tainted_node("early"));
    world.set_ready("early", "False");
    world.pass(SECOND * 30).await;
    assert!(world.node("early").is_some() && !world.is_initialized("early"));
    world.sim.add_machine(&Machine::plain("early"));
    initialized(&world, "early").await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}

pub(super) async fn nothing_is_written_before_the_cloud_has_answered<C: CloudUnderTest>() {
    let world = with_machine::<C>(false).await;
    let fault = world.cloud().faults().add(Fault::any().always().status(503));
    let begun = world.since();
    world.apply(tainted_node("n1"));
    world.pass(SECOND * 20).await;
    assert!(world.cloud().faults().struck(fault) > 0, "it never asked");
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
    world.cloud().faults().clear();
    initialized(&world, "n1").await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}

pub(super) async fn new_addresses_of_a_machine_come_to_its_node<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    world.pass(SECOND * 310).await;
    assert_eq!(world.unlike(), Vec::<String>::new());
    world.sim.renumber("n1");
    assert_ne!(
        world.unlike(),
        Vec::<String>::new(),
        "the simulator changed nothing"
    );
    let took = world.until("the new addresses", |w| w.unlike().is_empty()).await;
    assert!(took <= SECOND * 330, "one pass over addresses: {took:?}");
}

pub(super) async fn a_host_name_that_the_cloud_does_not_know_is_kept<C: CloudUnderTest>() {
    let world = with_machine::<C>(false).await;
    let knows = world.sim.machines()["n1"]
        .addresses
        .iter()
        .any(|it| json!(it.kind) == "Hostname");
    let mut node = tainted_node("n1");
    node["status"]["addresses"] = json!([{ "type": "Hostname", "address": "h1" }]);
    world.apply(node);
    initialized(&world, "n1").await;
    world.pass(SECOND * 310).await;
    let node = world.node("n1").unwrap();
    let addresses = node["status"]["addresses"].as_array().unwrap();
    let names: Vec<&Value> = addresses.iter().filter(|it| it["type"] == "Hostname").collect();
    assert_eq!(names.len(), 1, "{addresses:?}");
    assert_eq!(names[0]["address"] == "h1", !knows);
}

pub(super) async fn the_two_families_of_labels_agree_and_come_back_to_what_is_true<C: CloudUnderTest>() {
    const BETA: &str = "beta.kubernetes.io/instance-type";
    const STABLE: &str = "node.kubernetes.io/instance-type";
    let world = with_machine::<C>(false).await;
    world.apply(tainted_node("n1"));
    initialized(&world, "n1").await;
    let before = world.node("n1").unwrap()["metadata"]["labels"].clone();
    for edit in [Some("edited"), None] {
        world.label_node("n1", STABLE, edit);
        let took = world
            .until("they agree", |w| {
                let labels = &w.node("n1").unwrap()["metadata"]["labels"];
                labels[STABLE].is_string() && labels[STABLE] == labels[BETA]
            })
            .await;
        assert!(took < SECOND, "{took:?}");
        world.pass(SECOND * 310).await;
        assert_eq!(world.node("n1").unwrap()["metadata"]["labels"], before);
    }
}

pub(super) async fn a_node_at_rest_is_not_written_to<C: CloudUnderTest>() {
    let world = with_machine::<C>(true).await;
    world.apply(tainted_node("n1"));
    world.join("n2");
    initialized(&world, "n1").await;
    initialized(&world, "n2").await;
    let begun = world.since();
    world.pass(SECOND * 1_000).await;
    assert!(world.counts(begun).0 > 0, "it never looked");
    assert_eq!(world.kube_writes(begun), Vec::<String>::new());
    // Its machine goes while the kubelet still reports: unknown is not empty.
    world.sim.remove_machine("n2");
    world.pass(SECOND * 1_000).await;
    assert_eq!(world.object_writes(begun), Vec::<String>::new());
}

pub(super) async fn the_calls_for_many_nodes_are_those_for_a_few<C: CloudUnderTest>() {
    let cost = async |nodes: usize| {
        let mut world = World::<C>::new();
        for index in 0..nodes {
            world.join(&format!("n{index}"));
        }
        let begun = world.since();
        world.start();
        world
            .until("all initialised", |w| {
                (0..nodes).all(|index| w.is_initialized(&format!("n{index}")))
            })
            .await;
        world.rest().await;
        assert_eq!(world.unlike(), Vec::<String>::new());
        let of_initialisation = world.counts(begun).0;
        let begun = world.since();
        world.pass(SECOND * 310).await;
        (of_initialisation, world.counts(begun).0)
    };
    let (few, many) = (cost(3).await, cost(60).await);
    assert!(many.0 <= few.0 + 3, "{} calls for 3, {} for 60", few.0, many.0);
    assert_eq!(many.1, few.1, "one pass over addresses");
}

pub(super) async fn the_taint_stays_until_the_addresses_are_there<C: CloudUnderTest>() {
    let world = with_machine::<C>(false).await;
    let refused = KubeFault::new(Effect::Answer(Status::new(
        403,
        "Forbidden",
        "not by this policy",
    )))
    .verb("patch")
    .resource("nodes")
    .subresource("status");
    world.api.faults().inject(refused);
    world.apply(tainted_node("n1"));
    world.pass(SECOND * 30).await;
    assert!(!world.is_initialized("n1"));
    world.api.faults().clear();
    initialized(&world, "n1").await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}

pub(super) async fn a_node_that_goes_while_it_is_asked_about_is_not_written_to<C: CloudUnderTest>() {
    let world = with_machine::<C>(false).await;
    world.cloud().set_latency(SECOND * 2);
    let begun = world.since();
    world.apply(tainted_node("n1"));
    world
        .until("it is asked about", |w| !w.calls(begun).is_empty())
        .await;
    assert!(world.api.delete("Node", "", "n1"));
    world.rest().await;
    assert!(world.node("n1").is_none());
    assert!(
        !world.reasons("n1").contains(&"Synced".to_owned()),
        "{:?}",
        world.events("n1")
    );
    // And one that comes again under its name is another one, which is initialised for itself.
    world.apply(tainted_node("n1"));
    initialized(&world, "n1").await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}
