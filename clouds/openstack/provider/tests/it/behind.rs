//! Lists of Neutron that are behind, as those of a database's copy: what is there is not shown for a while.

use bowline_openstack_sim::FloatingIpSpec;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::{Canned, FaultBuilder};
use serde_json::json;

use crate::world::{World, in_short};

const LIST: &str = "/network/v2.0/floatingips";

/// Questions for floating IPs, with and without conditions.
fn lists() -> FaultBuilder {
    Fault::on(http::Method::GET, LIST)
}

/// Has some of these lists show no floating IP.
fn hide(world: &World, lists: FaultBuilder) {
    let nothing = Canned::json(200, r#"{"floatingips": []}"#);
    world.sim.faults().add(lists.answer(nothing));
}

/// A Service that was served, and whose process stopped before the address was recorded.
async fn unrecorded() -> World {
    let mut world = World::with_nodes(1);
    let network = world.sim.home().external_network.to_string();
    world.configure(|options| options.floating.network = Some(network.into()));
    world.run("web").await.settled();
    world.remove_annotation("web", "load-balancer-address");
    world.restart();
    world
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_made_and_is_not_shown_yet_is_not_asked_for_again() {
    let world = World::with_nodes(1);
    hide(&world, lists().times(3));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.loadbalancers.create", "neutron.floatingips.create"]
    );
    world.sim.faults().clear();
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_has_its_floating_ip_already_tells_which_where_a_list_is_behind() {
    let world = unrecorded().await;
    hide(&world, lists());
    let (run, writes) = world.writes_of(world.run("web")).await;
    let address = world.sim.floating_ips()[0].address.address.to_string();
    assert_eq!(run.settled().published(), [address]);
    assert_eq!(
        (in_short(&writes), writes[0].status()),
        (vec!["neutron.floatingips.create"], Some(409))
    );
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("web").await;
}

/// One list that lacks it proves nothing, and nobody is told that it is gone.
#[tokio::test(start_paused = true)]
async fn a_recorded_floating_ip_that_a_list_does_not_show_is_asked_for_by_its_address() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    world.restart();
    hide(&world, lists());
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert_eq!(run.reasons(), [""; 0]);
    // Neither shows it, and then Neutron says that it is there.
    hide(&world, lists().times(2));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), [""; 0]);
    assert_eq!(writes[0].status(), Some(409));
    assert_eq!((writes.len(), world.sim.floating_ips().len()), (1, 1));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_new_load_balancer_gets_the_floating_ip_that_a_list_does_not_show() {
    let world = World::with_nodes(1);
    let address = world.run("web").await.settled().published();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.delete_load_balancer(id);
    hide(&world, lists());
    assert_eq!(world.run("web").await.settled().published(), address);
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("web").await;
}

/// Neutron's words name the one that it did not make, another one each time.
#[tokio::test(start_paused = true)]
async fn while_no_list_shows_the_floating_ip_the_same_is_told_each_time_and_no_setting_is_blamed() {
    let world = unrecorded().await;
    hide(&world, lists().always());
    let first = world.run("web").await;
    let again = world.run("web").await;
    assert_eq!(first.complaint(), again.complaint());
    let port = world.sim.load_balancers()[0].vip.port;
    let told = format!("Neutron says that a floating IP leads to port {port} already, and shows none: ");
    assert!(first.complaint().contains(&told), "{first:#?}");
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.sim.faults().clear();
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_shown_as_it_was_is_not_written_again_and_again() {
    let world = World::with_nodes(1);
    world.sim.add_floating_ip(FloatingIpSpec::default());
    let there = world.sim.floating_ips().remove(0);
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(there.address.address.to_string());
    });
    let before = json!({ "floatingips": [{
        "id": there.id, "floating_ip_address": there.address.address, "floating_network_id": there.network,
        "description": there.meta.description, "revision_number": 99,
    }] });
    let list = Canned::json(200, &before.to_string());
    world.sim.faults().add(lists().always().answer(list));
    let (run, writes) = world.writes_of(world.run("web")).await;
    let told = format!(
        "Neutron says that floating IP {} was changed, and does not show how",
        there.address.address
    );
    assert!(run.complaint().contains(&told), "{run:#?}");
    assert_eq!(writes.last().unwrap().status(), Some(412));
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert!(world.sim.floating_ips()[0].target.is_some());
    world.assert_settled("web").await;
}
