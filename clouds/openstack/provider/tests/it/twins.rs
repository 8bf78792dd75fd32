//! Several security groups of one name, as a process leaves them that was stopped while Neutron's lists were behind.

use std::time::Duration;

use bowline_openstack_sim::Id;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;

use crate::world::{World, in_short};

const NAME: &str = "lb-sg-uid-web-default-web";
const DESCRIPTION: &str = "Security Group for default/web Service LoadBalancer in cluster lab";

/// A Service with a security group on the ports of two nodes.
async fn served() -> (World, Id) {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.manages_security_groups = true);
    world.run("web").await.settled();
    let group = groups(&world)[0];
    (world, group)
}

/// The groups of the name, in the order of their creation.
fn groups(world: &World) -> Vec<Id> {
    let mut groups = world.sim.security_groups();
    groups.retain(|group| group.name == NAME);
    groups.iter().map(|group| group.id).collect()
}

/// How many ports have a group.
fn users(world: &World, group: Id) -> usize {
    let ports = world.sim.ports();
    ports.iter().filter(|port| port.groups.contains(&group)).count()
}

fn dated(world: &World, group: Id, created: &str) {
    world
        .sim
        .edit_security_group(group, |group| group.meta.created_at = created.to_owned());
}

#[tokio::test(start_paused = true)]
async fn of_two_groups_the_one_that_ports_have_is_kept() {
    let (world, group) = served().await;
    let twin = world.sim.add_security_group(NAME, DESCRIPTION);
    dated(&world, twin, "2001-01-01T00:00:00Z");
    let by_hand = world.sim.add_security_group(NAME, "for something else");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["neutron.security-groups.delete"]);
    assert_eq!(groups(&world), [group, by_hand]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    // What a person made outlives the Service.
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(groups(&world), [by_hand]);
}

#[tokio::test(start_paused = true)]
async fn of_two_groups_on_the_same_ports_the_older_one_is_kept() {
    let (mut world, first) = served().await;
    tokio::time::advance(Duration::from_secs(10)).await;
    world.restart();
    let list = Fault::on(http::Method::GET, "/network/v2.0/security-groups");
    let nothing = Canned::json(200, r#"{"security_groups": []}"#);
    world.sim.faults().add(list.answer(nothing));
    world.run("web").await.settled();
    let [_, second] = groups(&world)[..] else {
        panic!("{:?}", groups(&world))
    };
    assert_eq!((users(&world, first), users(&world, second)), (2, 2));
    world.add_node("node-3");
    let run = world.run("web").await.settled();
    // No port is without any of them in between.
    assert_eq!(
        run.kinds_of_steps(),
        [
            "set-members",
            "add-security-group",
            "remove-security-group",
            "remove-security-group",
            "delete-security-group",
        ]
    );
    assert_eq!((groups(&world), users(&world, first)), (vec![first], 3));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_groups_that_no_port_has_the_older_one_is_used() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.manages_security_groups = true);
    let young = world.sim.add_security_group(NAME, DESCRIPTION);
    dated(&world, young, "2099-01-01T00:00:00Z");
    // The cluster was called something else then.
    let old = world
        .sim
        .add_security_group(NAME, &DESCRIPTION.replace("lab", "old"));
    world.run("web").await.settled();
    assert_eq!((groups(&world), users(&world, old)), (vec![old], 1));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_groups_that_people_may_have_made_none_is_touched() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.manages_security_groups = true);
    let made = [(); 2].map(|()| world.sim.add_security_group(NAME, ""));
    let run = world.run("web").await;
    for group in made {
        assert!(run.complaint().contains(&group.to_string()), "{run:#?}");
        assert_eq!(users(&world, group), 0);
    }
    assert!(run.published_although_refused.is_some());
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(groups(&world), made);
}

/// Nothing but their name says whose they are.
#[tokio::test(start_paused = true)]
async fn all_groups_that_were_made_for_a_service_go_with_it() {
    let (world, group) = served().await;
    let twin = world.sim.add_security_group(NAME, DESCRIPTION);
    let port = world
        .sim
        .ports()
        .into_iter()
        .find(|port| port.groups.contains(&group));
    world
        .sim
        .edit_port(port.unwrap().id, |port| port.groups.push(twin));
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(groups(&world), Vec::<Id>::new());
}

/// Within one process; one that was stopped in between makes another one.
#[tokio::test(start_paused = true)]
async fn while_the_list_does_not_show_a_group_that_was_made_no_other_one_is_made() {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.manages_security_groups = true);
    let list = Fault::on(http::Method::GET, "/network/v2.0/security-groups");
    let nothing = Canned::json(200, r#"{"security_groups": []}"#);
    world.sim.faults().add(list.always().answer(nothing));
    world.run("web").await.settled();
    let [group] = groups(&world)[..] else {
        panic!("{:?}", groups(&world))
    };
    for _ in 0..3 {
        let (run, writes) = world.writes_of(world.run("web")).await;
        World::assert_quiet(&run, &writes);
    }
    // What it opens follows the Service.
    world.set_ports("web", &[("TCP", 80, 30090)]);
    world.run("web").await.settled();
    let rules = world.sim.rules_of(group);
    let ports: Vec<_> = rules.iter().filter_map(|rule| rule.content.port_min).collect();
    assert_eq!((groups(&world), ports), (vec![group], vec![30090]));
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    // It goes with the Service, whatever the list shows.
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(groups(&world), Vec::<Id>::new());
}

/// Somebody deleted it: what a list does not show for so long is not behind.
#[tokio::test(start_paused = true)]
async fn a_group_that_no_list_shows_for_a_minute_is_made_anew() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.manages_security_groups = true);
    let list = Fault::on(http::Method::GET, "/network/v2.0/security-groups");
    let nothing = Canned::json(200, r#"{"security_groups": []}"#);
    world.sim.faults().add(list.always().answer(nothing));
    for made in [1, 1, 1, 2] {
        world.run("web").await.settled();
        assert_eq!(groups(&world).len(), made);
        tokio::time::advance(Duration::from_secs(20)).await;
    }
}
