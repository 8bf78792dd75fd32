//! A Node gets what its instance tells, and keeps it.

use bowline_cloud_kit::Fault;

use super::under_test::{CloudUnderTest, Instance};
use super::world::{SECOND, World, tainted_node};

/// A world with a manager at rest and one instance `n1`, whose kubelet has not come up.
async fn with_instance<C: CloudUnderTest>(is_special: bool) -> World<C> {
    let world = World::<C>::with_nodes(0).await;
    world.sim.add_instance(&Instance {
        name: "n1".to_owned(),
        is_special,
    });
    world
}

async fn initialized<C: CloudUnderTest>(world: &World<C>, name: &str) {
    world.until("initialised", |w| w.is_initialized(name)).await;
    world.rest().await;
}

pub(super) async fn a_node_gets_what_its_instance_tells<C: CloudUnderTest>() {
    for is_special in [false, true] {
        let world = with_instance::<C>(is_special).await;
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

pub(super) async fn a_node_that_registers_before_its_instance_is_listed_is_waited_for<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(1).await;
    world.apply(tainted_node("early"));
    world.set_ready("early", "False");
    world.pass(SECOND * 30).await;
    assert!(world.node("early").is_some() && !world.is_initialized("early"));
    world.sim.add_instance(&Instance::plain("early"));
    initialized(&world, "early").await;
    assert_eq!(world.unlike(), Vec::<String>::new());
}

pub(super) async fn nothing_is_written_before_the_cloud_has_answered<C: CloudUnderTest>() {
    let world = with_instance::<C>(false).await;
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

pub(super) async fn new_addresses_of_an_instance_come_to_its_node<C: CloudUnderTest>() {
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

pub(super) async fn a_node_at_rest_is_not_written_to<C: CloudUnderTest>() {
    let world = with_instance::<C>(true).await;
    world.apply(tainted_node("n1"));
    world.join("n2");
    initialized(&world, "n1").await;
    initialized(&world, "n2").await;
    let begun = world.since();
    world.pass(SECOND * 1_000).await;
    assert!(world.counts(begun).0 > 0, "it never looked");
    assert_eq!(world.kube_writes(begun), Vec::<String>::new());
    // Its instance goes while the kubelet still reports: unknown is not empty.
    world.sim.remove_instance("n2");
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
