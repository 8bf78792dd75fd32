//! Load balancers that Octavia gave up after they served, of a provider that says so of all parts. What an amphora that died leaves is in
//! `repair_traffic`.

use std::time::Duration;

use bowline_cloud_provider::k8s::LoadBalancerIngress;
use bowline_kit::Interruption;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::model::balancing::LoadBalancer;

use crate::shared::join;
use crate::world::{World, in_short};

/// The only load balancer dies, and goes into ERROR. Says what it was.
fn fail(world: &World) -> LoadBalancer {
    let balancer = world.sim.load_balancers().remove(0);
    world.sim.break_load_balancer(balancer.part.id);
    balancer
}

#[tokio::test(start_paused = true)]
async fn one_that_failed_is_made_anew_at_its_addresses_once_an_hour() {
    let world = World::with_nodes(1);
    let before = world.run("web").await.settled().published();
    let floating_ip = world.sim.floating_ips()[0].id;
    for hour in 0..2 {
        let failed = fail(&world);
        let (run, writes) = world.writes_of(world.run("web")).await;
        let run = run.settled();
        assert_eq!(run.published(), before, "{hour}");
        assert_eq!(run.reasons(), ["LoadBalancerInError"]);
        assert!(
            run.notes[0].is_said_at_start,
            "whoever starts does it, and says so"
        );
        assert_eq!(
            in_short(&writes),
            [
                "octavia.loadbalancers.delete",
                "octavia.loadbalancers.create",
                "neutron.floatingips.update"
            ]
        );
        assert_eq!(world.sim.floating_ips()[0].id, floating_ip);
        let made = world.sim.load_balancers().remove(0);
        assert_eq!(made.vip.fixed_ip.address, failed.vip.fixed_ip.address);
        world.assert_settled("web").await;
        // Whatever is wrong with the cloud, it does not become a loop.
        fail(&world);
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(
            run.complaint()
                .contains("is not ACTIVE, current provisioning status: ERROR"),
            "{run:#?}"
        );
        assert_eq!(run.reasons(), ["LoadBalancerInError"]);
        assert!(writes.is_empty());
        tokio::time::advance(Duration::from_secs(3_600)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_address_of_an_internal_one_survives_a_process_that_stops() {
    let mut world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    let before = world.run("web").await.settled().published();
    let failed = fail(&world);
    // Others would take the address of one that is gone.
    world.sim.delete_load_balancer(failed.part.id);
    world.restart();
    world.add_node("node-2");
    assert_eq!(world.run("web").await.settled().published(), before);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_somebody_else_has_by_now_is_not_insisted_on() {
    let world = World::with_nodes(1);
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    fail(&world);
    let taken = r#"{"faultcode": "Client", "faultstring": "IP address 10.0.0.9 already allocated in subnet s", "debuginfo": null}"#;
    let create = Fault::operation("octavia.loadbalancers.create");
    world.sim.faults().add(create.answer(Canned::json(409, taken)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    let bodies: Vec<bool> = writes
        .iter()
        .filter(|call| call.operation == "octavia.loadbalancers.create")
        .map(|call| call.body.as_ref().unwrap()["loadbalancer"]["vip_address"].is_string())
        .collect();
    assert_eq!(bodies, [true, false]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn one_that_others_use_is_only_told_of() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    fail(&world);
    for name in ["web", "b"] {
        let (run, writes) = world.writes_of(world.run(name)).await;
        assert!(run.complaint().contains("is not ACTIVE"), "{run:#?}");
        assert!(run.complaint().contains("no other one uses it"), "{run:#?}");
        assert_eq!(run.reasons(), ["LoadBalancerInError"]);
        assert!(writes.is_empty(), "{name}");
    }
}

/// An older Go manager wrote no address on the Service; its status shows one.
#[tokio::test(start_paused = true)]
async fn without_a_recorded_address_the_id_goes_before_the_load_balancer() {
    let world = World::with_nodes(1);
    let published = world.run("web").await.settled().published();
    world.remove_annotation("web", "load-balancer-address");
    world.edit("web", |service| {
        let ingress = LoadBalancerIngress {
            ip: published.first().cloned(),
            ..LoadBalancerIngress::default()
        };
        let status = service.status.get_or_insert_default();
        status.load_balancer.get_or_insert_default().ingress = Some(vec![ingress]);
    });
    fail(&world);
    assert_eq!(world.run("web").await.settled().published(), published);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn one_that_still_carries_traffic_is_left_and_told_of() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.add_node("node-2");
    let run = world.run("web").await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    world.restart();
    // At whatever time: it is told once, for the text is the same.
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.reasons(), ["LoadBalancerInError"]);
    assert!(run.notes[0].text.contains("loadbalancer failover"), "{run:#?}");
    assert!(writes.is_empty());
    world.sim.fail_over_load_balancer(id);
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers()[0].part.id, id);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_fails_and_takes_the_load_balancer_with_it_is_made_with_another_one() {
    let world = World::with_nodes(1);
    let before = world.run("web").await.settled().published();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.set_behaviour(|behaviour| behaviour.failing_changes = 1);
    world.annotate("web", "connection-limit", "5");
    let run = world.run("web").await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    world.sim.break_load_balancer(id);
    let run = world.run("web").await.settled();
    assert_eq!(run.published(), before);
    assert_ne!(world.sim.load_balancers()[0].part.id, id);
    assert_eq!(world.sim.load_balancers().len(), 1);
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("web").await;
}

/// Octavia left the port behind, or is late: the floating IP leads to it still.
#[tokio::test(start_paused = true)]
async fn the_floating_ip_on_a_port_that_outlives_its_load_balancer_is_taken_over() {
    for stop in 0..5 {
        let mut world = World::with_nodes(1);
        let before = world.run("web").await.settled().published();
        let floating_ip = world.sim.floating_ips()[0].id;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.keeps_vip_ports = true);
        let failed = fail(&world);
        world.run_with("web", Interruption::AfterStep(stop)).await;
        world.restart();
        let run = world.run("web").await.settled();
        assert_eq!(run.published(), before, "after {stop}");
        let there: Vec<_> = world.sim.floating_ips().iter().map(|it| it.id).collect();
        assert_eq!(there, [floating_ip], "after {stop}");
        let made = world.sim.load_balancers().remove(0);
        assert_ne!(made.vip.fixed_ip.address, failed.vip.fixed_ip.address);
        world.assert_settled("web").await;
        world.delete("web");
        world.run("web").await.settled();
        assert_eq!(world.sim.leftovers(), Vec::<String>::new(), "after {stop}");
    }
}

/// A person's own floating IP, asked for by its address, is no less the Service's.
#[tokio::test(start_paused = true)]
async fn an_address_that_is_asked_for_is_taken_over_from_such_a_port_too() {
    let world = World::with_nodes(1);
    let given = world
        .sim
        .add_floating_ip(bowline_openstack_sim::FloatingIpSpec::default());
    let address = world.sim.floating_ips()[0].address.address.to_string();
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
    });
    assert_eq!(
        world.run("web").await.settled().published(),
        std::slice::from_ref(&address)
    );
    world
        .sim
        .set_behaviour(|behaviour| behaviour.keeps_vip_ports = true);
    fail(&world);
    assert_eq!(world.run("web").await.settled().published(), [address]);
    assert_eq!(world.sim.floating_ips().len(), 1);
    assert_eq!(world.sim.floating_ips()[0].id, given);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_on_a_port_of_a_load_balancer_that_is_gone_goes_with_the_service() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.keeps_vip_ports = true);
    world
        .sim
        .delete_load_balancer(world.sim.load_balancers()[0].part.id);
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

/// What a person sent elsewhere stays there.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_leads_to_something_is_not_taken_from_it() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let port = world.sim.ports_of(world.sim.server_named("node-1").unwrap().id)[0].id;
    let floating_ip = world.sim.floating_ips()[0].id;
    assert!(world.sim.assign_floating_ip(floating_ip, Some(port)));
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 2);
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
    assert_eq!(world.sim.floating_ips()[0].id, floating_ip);
}

/// As when somebody has asked for a failover in the meantime.
#[tokio::test(start_paused = true)]
async fn one_that_failed_and_is_at_work_again_is_waited_for() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    fail(&world);
    let busy = r#"{"faultcode": "Client", "faultstring": "Invalid state PENDING_UPDATE of loadbalancer resource", "debuginfo": null}"#;
    let delete = Fault::operation("octavia.loadbalancers.delete").always();
    world.sim.faults().add(delete.answer(Canned::json(409, busy)));
    let begun = tokio::time::Instant::now();
    let (_, writes) = world.writes_of(world.run("web")).await;
    let seconds = usize::try_from(begun.elapsed().as_secs()).unwrap();
    assert!(
        writes.len() <= 1 + seconds,
        "{} deletions in {seconds} s",
        writes.len()
    );
}
