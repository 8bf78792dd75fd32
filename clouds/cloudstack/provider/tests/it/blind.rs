//! Something that cannot be read: what does not lean on it goes on.

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use serde_json::json;

use crate::site::Site;
use crate::world::{Outcome, UID, WEB, World};

const LEFT: [&str; 2] = ["cp-a", "pool-a-7"];

/// TCP 443, 80 and 8443, of which nothing is known any more; and one Node fewer.
async fn without_a_node(is_vpc: bool) -> World {
    let mut world = World::of(Site::new(), is_vpc).await;
    world.add(
        WEB,
        UID,
        &[("TCP", 443, 31443), ("TCP", 80, 31080), ("TCP", 8443, 31444)],
    );
    world.run(WEB).await.settled();
    world.restart().await;
    world.remove_node("pool-a-8");
    world
}

fn refusal(command: &str) -> Canned {
    let name = format!("{}response", command.to_lowercase());
    Canned::json(
        431,
        &json!({ name: { "errorcode": 431, "errortext": "not now" } }).to_string(),
    )
}

/// How many rules have followed the Nodes.
fn followed(world: &World) -> usize {
    let ports = ["tcp-443", "tcp-80", "tcp-8443"];
    ports
        .into_iter()
        .filter(|port| world.members(port) == LEFT)
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_rule_whose_members_cannot_be_listed_keeps_no_other_rule_from_following_the_nodes() {
    let world = without_a_node(false).await;
    let command = "listLoadBalancerRuleInstances";
    world
        .sim
        .faults()
        .add(Fault::operation(command).answer(refusal(command)));
    let run = world.run(WEB).await;
    let complaint = run.complaint();
    let ports = ["tcp-443", "tcp-80", "tcp-8443"];
    let is_named = |port: &&str| complaint.contains(&world.rule(port).id);
    assert!(
        complaint.starts_with("error retrieving associated instances of load balancer rule "),
        "{complaint}"
    );
    assert_eq!(
        ports.iter().filter(|port| is_named(port)).count(),
        1,
        "{complaint}"
    );
    assert_eq!(followed(&world), 2);
    world.run(WEB).await.settled();
    assert_eq!(followed(&world), 3);
}

#[tokio::test(start_paused = true)]
async fn nodes_are_followed_whatever_else_cannot_be_read_and_nothing_is_taken_away_for_it() {
    for is_vpc in [false, true] {
        let firewall = if is_vpc {
            "listNetworkACLs"
        } else {
            "listFirewallRules"
        };
        for command in [firewall, "listPublicIpAddresses"] {
            let what = format!("VPC {is_vpc}, {command}");
            let world = without_a_node(is_vpc).await;
            if command == "listPublicIpAddresses" {
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
            }
            world.spec(WEB, |spec| drop(spec["ports"].as_array_mut().unwrap().pop()));
            let fault = world
                .sim
                .faults()
                .add(Fault::operation(command).always().answer(refusal(command)));
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            assert!(matches!(run.outcome, Outcome::Failed(_)), "{what}: {run:#?}");
            let is_removal = |write: &&String| *write == "removeFromLoadBalancerRule";
            assert_eq!(
                writes.iter().filter(is_removal).count(),
                writes.len(),
                "{what}: {writes:?}"
            );
            assert!(followed(&world) >= 2, "{what}: {writes:?}");
            world.sim.faults().remove(fault);
            world.run(WEB).await.settled();
            assert_eq!(
                (followed_of(&world, "tcp-443"), world.rules().len()),
                (true, 2),
                "{what}"
            );
        }
    }
}

fn followed_of(world: &World, port: &str) -> bool {
    world.members(port) == LEFT
}

#[tokio::test(start_paused = true)]
async fn an_address_whose_rules_cannot_be_listed_keeps_no_other_address() {
    let world = World::new().await;
    world.add(WEB, UID, &[("TCP", 443, 31443), ("TCP", 80, 31080)]);
    world.run(WEB).await.settled();
    // A person moved a rule to another address.
    let other = world
        .sim
        .take_address(bowline_cloudstack_sim::AddressSpec::default());
    let moved = world.rule("tcp-80").id;
    world
        .sim
        .edit_rule(&moved, |rule| rule.address.clone_from(&other));
    world.delete(WEB);
    // The first list is that of the Service itself.
    let command = "listLoadBalancerRules";
    let fault = Fault::operation(command).nth(2);
    world.sim.faults().add(fault.answer(refusal(command)));
    let run = world.run(WEB).await;
    assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
    assert_eq!(world.rules().len(), 1, "{:?}", world.rules());
    world.run(WEB).await.settled();
    assert!(world.rules().is_empty());
}

/// Somebody released the address of the first one, and the cloud gives it to the next: what the first one notes is out of date.
#[tokio::test(start_paused = true)]
async fn an_address_that_the_cloud_gave_is_used_though_another_service_notes_it_still() {
    let world = World::new().await;
    world.add(
        "shop/first",
        "10000000-0000-4000-8000-000000000001",
        &[("TCP", 443, 31443)],
    );
    world.run("shop/first").await.settled();
    let address = world.address();
    world.sim.release_address(&address.id);
    world.add(WEB, UID, &[("TCP", 80, 31080)]);
    let (run, calls) = world.calls_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(
        calls
            .iter()
            .filter(|call| call.contains("associateIpAddress"))
            .count(),
        1,
        "{calls:?}"
    );
    assert_eq!(world.address().id, address.id);
    world.run(WEB).await.settled();
}
