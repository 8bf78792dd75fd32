//! Ports of a Service's address that a person forwards to a virtual machine.

use bowline_cloudstack_sim::kit::Fault;
use serde_json::json;

use crate::site::Site;
use crate::world::{MACHINES, WEB, World};

const ASKED: &str = "listPortForwardingRules";

/// A Service that is served, with a port forwarding of a person on its address.
async fn forwarded(is_vpc: bool) -> (World, String) {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    let ip = world.run(WEB).await.published().remove(0);
    world.publish_at(WEB, &ip);
    let address = world.rule("tcp-443").address;
    let vm = world.sim.vm_named(MACHINES[0]).unwrap().id;
    world.sim.add_port_forwarding(&address, 2222, &vm);
    (world, address)
}

fn is_held(world: &World, address: &str) -> bool {
    world.sim.addresses().iter().any(|held| held.id == address)
}

#[tokio::test(start_paused = true)]
async fn an_address_with_a_forwarded_port_of_a_person_is_never_released() {
    for is_vpc in [false, true] {
        for restarts in [false, true] {
            let what = format!("VPC {is_vpc}, restarts {restarts}");
            let (mut world, address) = forwarded(is_vpc).await;
            if restarts {
                world.restart().await;
            }
            world.delete(WEB);
            let (run, calls) = world.calls_of(world.run(WEB)).await;
            let run = run.settled();
            assert!(is_held(&world, &address), "{what}: {calls:?}");
            assert!(run.has_note("PublicIPKept"), "{what}: {:#?}", run.notes);
            assert_eq!((world.rules().len(), world.openings().len()), (0, 0), "{what}");
        }
        // The same when the balancer moves.
        let (world, address) = forwarded(is_vpc).await;
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        let run = world.run(WEB).await.settled();
        assert_eq!(run.published(), ["203.0.113.77"]);
        world.publish_at(WEB, "203.0.113.77");
        world.run(WEB).await.settled();
        assert!(is_held(&world, &address), "VPC {is_vpc}");
        assert!(world.run(WEB).await.settled().waves.is_empty());
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert!(is_held(&world, &address) && world.rules().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn forwarded_ports_are_asked_for_before_a_release_and_at_no_other_time() {
    let world = World::with_service().await;
    let (run, calls) = world.calls_of(world.run(WEB)).await;
    run.settled();
    assert!(!calls.contains(&ASKED.to_owned()), "{calls:?}");
    world.delete(WEB);
    let (run, calls) = world.calls_of(world.run(WEB)).await;
    run.settled();
    let asked = calls.iter().filter(|call| *call == ASKED);
    assert_eq!(asked.count(), 1, "{calls:?}");
    world.check_nothing_left("deleted");
}

#[tokio::test(start_paused = true)]
async fn where_nobody_may_ask_for_forwarded_ports_addresses_are_released_as_before() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let unknown = Fault::operation(ASKED).always().status(404);
    world.sim.faults().add(unknown);
    world.delete(WEB);
    world.run(WEB).await.settled();
    world.check_nothing_left("deleted");
    for status in [432, 401, 531] {
        let world = World::with_service().await;
        world.run(WEB).await.settled();
        world.sim.set_behaviour(|behaviour| {
            behaviour.forbidden_to_users.insert(ASKED.to_owned());
            behaviour.forbidden_status = status;
        });
        world.delete(WEB);
        world.run(WEB).await.settled();
        world.check_nothing_left("deleted");
    }
}
