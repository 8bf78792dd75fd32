//! A load balancer that is made anew, and the address of the one before it.

use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::kit::journal::Entry;

use crate::world::World;

/// The addresses that new load balancers were asked to have.
fn asked(writes: &[Entry]) -> Vec<Option<&str>> {
    let created = writes
        .iter()
        .filter(|call| call.operation == "octavia.loadbalancers.create");
    let bodies = created.filter_map(|call| call.body.as_ref());
    bodies
        .map(|body| body["loadbalancer"]["vip_address"].as_str())
        .collect()
}

/// As where its annotations come from a backup of a cluster in another network: Octavia leaves the check to its provider, and
/// answers 500.
#[tokio::test(start_paused = true)]
async fn an_address_of_another_network_is_not_asked_for() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    world
        .sim
        .delete_load_balancer(world.sim.load_balancers()[0].part.id);
    world.annotate("web", "load-balancer-address", "192.168.7.9");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(asked(&writes), [None]);
    world.assert_settled("web").await;
}

/// The Service was of another type meanwhile, and recorded its floating IP.
#[tokio::test(start_paused = true)]
async fn a_service_that_becomes_internal_does_not_ask_for_its_floating_ip() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let set_type = |kind: &str| {
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().type_ = Some(kind.into());
        });
    };
    set_type("ClusterIP");
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers().len(), 0);
    world.annotate("web", "internal", "true");
    set_type("LoadBalancer");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(asked(&writes), [None]);
    world.assert_settled("web").await;
}

/// An Octavia older than 2023 says so of one that is taken, and others of a subnet that the project does not see.
#[tokio::test(start_paused = true)]
async fn an_address_that_the_provider_cannot_give_is_not_insisted_on() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    world
        .sim
        .delete_load_balancer(world.sim.load_balancers()[0].part.id);
    let said = r#"{"faultcode": "Server", "faultstring": "Provider 'amphora' reports error: IP address 10.0.0.9 already allocated in subnet s", "debuginfo": null}"#;
    let create = Fault::operation("octavia.loadbalancers.create");
    world.sim.faults().add(create.answer(Canned::json(500, said)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let asked = asked(&writes);
    assert!(matches!(asked[..], [Some(_), None]), "{asked:?}");
    world.assert_settled("web").await;
}
