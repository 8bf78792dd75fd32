//! Addresses that a person gave back and has acquired anew for something else, while the Service still shows or claims them.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AddressSpec, FirewallSpec, NetworkSpec, VpcSpec};
use serde_json::{Value, json};

use crate::site::Site;
use crate::world::{UID, WEB, World};

const IP: &str = "203.0.113.77";
const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

/// How the Service came to its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The cloud chose it.
    Chosen,
    /// It asked for it.
    Requested,
    /// It asks for one that was acquired for another Service, which is gone.
    Shared,
    /// The Go manager acquired it, and the Service asked for it.
    MarkedByGo,
    /// Chosen, and the claim is from before networks were written down.
    WithoutNetwork,
    /// Requested, the same.
    RequestedWithoutNetwork,
}

const ORIGINS: [Origin; 6] = [
    Origin::Chosen,
    Origin::Requested,
    Origin::Shared,
    Origin::MarkedByGo,
    Origin::WithoutNetwork,
    Origin::RequestedWithoutNetwork,
];

/// Where the address leads by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Now {
    Network,
    Vpc,
    /// A portable one that nothing is done with.
    Nowhere,
}

async fn served(is_vpc: bool, origin: Origin) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add(WEB, UID, &[("TCP", 80, 31080)]);
    let is_requested = !matches!(origin, Origin::Chosen | Origin::WithoutNetwork);
    if is_requested {
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    }
    if origin == Origin::Shared {
        world.add(OTHER, OTHER_UID, &[("TCP", 8080, 31880)]);
        world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!(IP));
        world.run(OTHER).await.settled();
    }
    let run = world.run(WEB).await.settled();
    world.publish_at(WEB, &run.published()[0]);
    match origin {
        Origin::Shared => {
            world.delete(OTHER);
            world.run(OTHER).await.settled();
            world.forget(OTHER);
        }
        Origin::MarkedByGo => {
            world.annotate(WEB, "ip-ids", None);
            world.annotate(WEB, "ip-networks", None);
        }
        Origin::WithoutNetwork | Origin::RequestedWithoutNetwork => {
            assert!(world.annotation(WEB, "ip-networks").is_some());
            world.annotate(WEB, "ip-networks", None);
        }
        _ => {}
    }
    world
}

/// The address of the Service.
fn own(world: &World) -> bowline_cloudstack_sim::model::PublicAddress {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

/// A person gives an address back and acquires it for something else.
fn acquire_anew(world: &World, now: Now) -> String {
    let before = own(world);
    let mut spec = AddressSpec::at(before.address);
    match now {
        Now::Network | Now::Nowhere => spec.network = Some(world.sim.add_network(NetworkSpec::new("theirs"))),
        Now::Vpc => spec.vpc = Some(world.sim.add_vpc(VpcSpec::new("theirs"))),
    }
    world.sim.release_address(&before.id);
    let id = world.sim.take_address(spec);
    if now == Now::Nowhere {
        world.sim.edit_address(&id, |address| address.network = None);
    }
    assert_eq!(id, before.id);
    id
}

fn holds(world: &World, id: &str) -> bool {
    world.sim.addresses().iter().any(|address| address.id == id)
}

#[tokio::test(start_paused = true)]
async fn what_a_person_acquired_anew_for_something_else_stays_theirs() {
    for is_vpc in [false, true] {
        for now in [Now::Network, Now::Vpc, Now::Nowhere] {
            for origin in ORIGINS {
                for stays in [false, true] {
                    let what = format!("VPC {is_vpc}, {origin:?}, {now:?}, stays {stays}");
                    let mut world = served(is_vpc, origin).await;
                    let id = acquire_anew(&world, now);
                    if stays {
                        world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
                    } else {
                        world.restart().await;
                        world.delete(WEB);
                    }
                    let (run, writes) = world.writes_of(world.run(WEB)).await;
                    let run = run.settled();
                    assert!(holds(&world, &id), "{what}: {run:#?}");
                    assert_eq!(writes, Vec::<String>::new(), "{what}");
                    let kept = run.notes.iter().find(|note| note.reason == "PublicIPKept");
                    let ip = world
                        .sim
                        .addresses()
                        .iter()
                        .find(|it| it.id == id)
                        .unwrap()
                        .address;
                    assert!(
                        kept.is_some_and(|note| note.text.contains(&ip.to_string())),
                        "{what}: {run:#?}"
                    );
                    if stays {
                        assert_eq!(world.annotation(WEB, "ip-networks"), None, "{what}");
                    }
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_acquired_anew_keeps_its_firewall_whatever_a_late_list_shows() {
    for origin in [Origin::Chosen, Origin::Requested, Origin::Shared] {
        let world = served(false, origin).await;
        let rule = world.rule("tcp-80");
        let address = own(&world).address.to_string();
        let id = acquire_anew(&world, Now::Network);
        // The rule is still listed, as it was.
        let late = json!({ "listloadbalancerrulesresponse": { "count": 1, "loadbalancerrule": [{
            "id": rule.id, "name": rule.name, "publicipid": id, "publicip": address, "publicport": "80",
            "privateport": "31080", "networkid": rule.network, "protocol": "tcp", "algorithm": "roundrobin",
            "state": "Active"
        }] } });
        let late = Canned::json(200, &late.to_string());
        world
            .sim
            .faults()
            .add(Fault::operation("listLoadBalancerRules").answer(late));
        world.sim.add_firewall_rule(FirewallSpec::new(&id, "tcp", 80));
        world.delete(WEB);
        let run = world.run(WEB).await.settled();
        assert!(run.has_note("PublicIPKept"), "{origin:?}: {run:#?}");
        assert!(holds(&world, &id), "{origin:?}: {run:#?}");
        assert_eq!(world.openings(), ["tcp 80 0.0.0.0/0"], "{origin:?}: {run:#?}");
        assert_eq!(world.rules(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_acquired_anew_while_the_process_stood_still_stays_theirs() {
    for is_vpc in [false, true] {
        for origin in [Origin::Chosen, Origin::Requested] {
            let world = served(is_vpc, origin).await;
            world.delete(WEB);
            // The release is decided, then the person acts, then the release goes on.
            let steps = usize::from(is_vpc);
            let removal = world.run_paused(WEB, steps, Duration::from_secs(60));
            let acting = async {
                tokio::time::sleep(Duration::from_secs(30)).await;
                acquire_anew(&world, Now::Network)
            };
            let (run, id) = tokio::join!(removal, acting);
            let run = run.settled();
            let what = format!("VPC {is_vpc}, {origin:?}: {run:#?}");
            assert!(
                run.steps().iter().any(|step| step.starts_with("release-ip(")),
                "{what}"
            );
            assert!(holds(&world, &id), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_service_gave_up_and_a_person_acquired_anew_stays_theirs() {
    for is_vpc in [false, true] {
        for now in [Now::Network, Now::Vpc] {
            for origin in [Origin::Chosen, Origin::Requested] {
                let what = format!("VPC {is_vpc}, {origin:?}, {now:?}");
                let world = served(is_vpc, origin).await;
                let id = acquire_anew(&world, now);
                world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null);
                let run = world.run(WEB).await.settled();
                assert!(holds(&world, &id), "{what}: {run:#?}");
                world.delete(WEB);
                let run = world.run(WEB).await.settled();
                assert!(holds(&world, &id), "{what}: {run:#?}");
                assert_eq!(
                    world
                        .sim
                        .addresses()
                        .iter()
                        .filter(|it| !it.is_source_nat)
                        .count(),
                    1
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_whose_rules_a_person_removed_is_still_the_services() {
    for is_vpc in [false, true] {
        for origin in [Origin::Chosen, Origin::Requested, Origin::Shared] {
            let mut world = served(is_vpc, origin).await;
            for rule in world.sim.rules() {
                world.sim.remove_rule(&rule.id);
            }
            world.restart().await;
            world.delete(WEB);
            let run = world.run(WEB).await.settled();
            let mut left = world.sim.addresses();
            left.retain(|address| !address.is_source_nat);
            assert_eq!(left, [], "VPC {is_vpc}, {origin:?}: {run:#?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_tier_of_the_same_vpc_is_somebody_elses_place() {
    for origin in [Origin::Chosen, Origin::Requested, Origin::Shared] {
        let world = served(true, origin).await;
        let before = own(&world);
        let list = world.sim.acl_list("tier-acl").unwrap();
        let vpc = before.vpc.clone().unwrap();
        let tier = world.sim.add_network(NetworkSpec::tier("theirs", &vpc, list));
        world.sim.release_address(&before.id);
        let spec = AddressSpec {
            vpc: Some(vpc.clone()),
            ..AddressSpec::at(before.address)
        };
        let id = world.sim.take_address(spec);
        world
            .sim
            .edit_address(&id, |address| address.network = Some(tier.clone()));
        world.delete(WEB);
        let run = world.run(WEB).await.settled();
        assert!(holds(&world, &id), "{origin:?}: {run:#?}");
    }
}
