//! The life of a balancer.

use std::time::Duration;

use bowline_cloud_provider::CloudProvider;
use bowline_kit::predicted_kinds;
use bowline_paper_sim::kit::Fault;
use http::Method;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn a_balancer_is_made_with_its_members_before_its_ports() {
    let world = World::new(2);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.build_time = Duration::from_secs(4));
    let run = world.run().await.settled();
    let wanted = [
        "create-balancer",
        "add-member",
        "add-member",
        "open-port",
        "open-port",
    ];
    assert_eq!(run.kinds_of_steps(), wanted);
    assert!(
        run.waited >= Duration::from_secs(4) && run.waited < Duration::from_secs(10),
        "{run:#?}"
    );
    let balancer = &world.sim.balancers()[0];
    assert_eq!(
        (balancer.owner.as_deref(), balancer.cluster.as_deref()),
        (Some("uid-web"), Some("kubernetes"))
    );
    assert_eq!(run.published(), [balancer.addresses[0].to_string()]);
}

#[tokio::test(start_paused = true)]
async fn the_writes_made_are_those_that_were_predicted_in_that_order() {
    let mut world = World::new(2);
    let changes: [fn(&mut World); 4] = [
        |_| {},
        |world| world.set_ports(&[("TCP", 80, 30_000), ("TCP", 8_080, 30_001)]),
        |world| world.remove_node("n1"),
        |world| world.delete(),
    ];
    for change in changes {
        change(&mut world);
        let predicted = predicted_kinds(world.cloud.load_balancer().unwrap(), world.facts()).await;
        let run = world.run().await.settled();
        assert_eq!(run.kinds_of_steps(), predicted);
    }
}

#[tokio::test(start_paused = true)]
async fn a_creation_costs_its_writes_and_three_lists() {
    let world = World::new(3);
    world.sim.set_behaviour(|behaviour| behaviour.page_size = 100);
    let (run, calls) = world.calls_of(world.run()).await;
    run.settled();
    let writes = calls.iter().filter(|call| call.write).count();
    assert_eq!((writes, calls.len() - writes), (1 + 3 + 2, 2 + 2));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_when_nothing_changed() {
    let mut world = World::new(3);
    world.sim.set_behaviour(|behaviour| behaviour.page_size = 100);
    world.run().await.settled();
    world.restart();
    let (run, calls) = world.calls_of(world.run()).await;
    assert!(run.settled().notes.is_empty());
    let paths: Vec<&str> = calls.iter().map(|call| call.path.as_str()).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(calls.iter().all(|call| !call.write));
}

#[tokio::test(start_paused = true)]
async fn a_member_comes_before_another_one_goes_and_a_port_changes_in_place() {
    let mut world = World::new(2);
    world.run().await.settled();
    world.remove_node("n1");
    world.add_node("n3");
    world.set_ports(&[("TCP", 80, 31080), ("TCP", 443, 30443)]);
    let run = world.run().await.settled();
    assert_eq!(
        run.kinds_of_steps(),
        [
            "add-member",
            "remove-member",
            "move-port",
            "open-port",
            "close-port"
        ]
    );
    assert_eq!(
        world
            .sim
            .journal()
            .count(Method::DELETE, "/v1/balancers/*/ports/*"),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn what_others_changed_is_repaired() {
    let world = World::new(2);
    world.run().await.settled();
    let state = world.sim.snapshot();
    let balancer = world.sim.balancers()[0].id;
    world.sim.change_balancer(balancer, |balancer| {
        balancer.members.pop();
        balancer.ports[0].node_port = 1;
        balancer.ports[1].port = 1;
    });
    assert_eq!(world.writes_of_a_run().await, 4);
    assert_eq!(world.sim.snapshot(), state);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_machine_a_listing_lacks_keeps_its_membership() {
    let world = World::new(2);
    world.run().await.settled();
    let hides = Fault::on(Method::GET, "/v1/machines").answer(bowline_paper_sim::kit::faults::Canned::json(
        200,
        r#"{"items": [], "next": null}"#,
    ));
    world.sim.faults().add(hides);
    let (run, calls) = world.calls_of(world.run()).await;
    assert_eq!(run.settled().notes[0].reason, "NodesLeftOut");
    assert!(calls.iter().all(|call| !call.write));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_removes_what_bears_the_mark_and_nothing_else() {
    let world = World::new(2);
    world.run().await.settled();
    let own = world.sim.balancers()[0].id;
    // The same name, another owner: another cluster, or a person.
    world.edit(|service| service.metadata.uid = Some("uid-other".to_owned()));
    world.run().await.settled();
    world.edit(|service| service.metadata.uid = Some("uid-web".to_owned()));
    world.delete();
    // What the Service says by now is of no interest.
    world.set_ports(&[("SCTP", 1, 0)]);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.delete_time = Duration::from_secs(3));
    let run = world.run().await.settled();
    assert_eq!(run.kinds_of_steps(), ["delete-balancer"]);
    assert!(run.waited >= Duration::from_secs(3), "{run:#?}");
    let left = world.sim.balancers();
    assert_eq!((left.len(), left[0].owner.as_deref()), (1, Some("uid-other")));
    assert!(left[0].id != own);
    assert_eq!(world.writes_of_a_run().await, 0);
}

#[tokio::test(start_paused = true)]
async fn everything_that_is_wrong_is_said_at_once_and_costs_no_call() {
    let world = World::new(1);
    world.set_ports(&[("SCTP", 80, 30080), ("TCP", 81, 0)]);
    world.edit(|service| {
        let spec = service.spec.as_mut().unwrap();
        spec.load_balancer_source_ranges = Some(vec!["192.0.2.0/24".to_owned()]);
        spec.load_balancer_ip = Some("192.0.2.1".to_owned());
    });
    assert_eq!(
        world.run().await.complaint(),
        "port 80: only TCP and UDP are balanced; port 81: it has no node port; \
         spec.loadBalancerSourceRanges: the balancers of this cloud admit everybody; \
         spec.loadBalancerIP: the cloud chooses the addresses"
    );
    assert!(world.sim.journal().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_balancer_in_a_state_nobody_knows_is_left_alone() {
    let world = World::new(1);
    world.run().await.settled();
    world
        .sim
        .change_balancer(world.sim.balancers()[0].id, |balancer| {
            balancer.state = "broken".to_owned()
        });
    let (run, calls) = world.calls_of(world.run()).await;
    assert!(run.complaint().contains("is in the state \"broken\""));
    assert!(calls.iter().all(|call| !call.write));
}
