//! Addresses whose association is not heard of again, because the process was killed when it was accepted.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::model::{AddressState, PublicAddress};

use serde_json::json;

use crate::site::Site;
use crate::world::{WEB, World};

/// A world in which the job of the first address never ends, and the process that began it is gone.
async fn killed(is_vpc: bool) -> (World, PublicAddress) {
    killed_for(is_vpc, None).await
}

/// The same, if the Service asks for an address.
async fn killed_for(is_vpc: bool, requested: Option<&str>) -> (World, PublicAddress) {
    let mut world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
    world.sim.fail_jobs(JobFault::of("associateIpAddress").stuck());
    world.run_killed(WEB, 2).await;
    let begun = one(&world, |address| address.state == AddressState::Allocating);
    world.restart().await;
    (world, begun)
}

/// The address that fits; those that a VPC goes out by are nobody's matter.
fn one(world: &World, fits: impl Fn(&PublicAddress) -> bool) -> PublicAddress {
    let mut found = held(world);
    found.retain(fits);
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

fn held(world: &World) -> Vec<PublicAddress> {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat);
    all
}

#[tokio::test(start_paused = true)]
async fn an_address_on_its_way_is_taken_up_and_waited_for() {
    for is_vpc in [false, true] {
        for tells_where in [false, true] {
            let what = format!("VPC {is_vpc}, tells where {tells_where}");
            let (world, begun) = killed(is_vpc).await;
            if !tells_where {
                world.sim.edit_address(&begun.id, |address| {
                    (address.network, address.vpc) = (None, None);
                });
            }
            let arrive = async {
                tokio::time::sleep(Duration::from_secs(9)).await;
                world.sim.edit_address(&begun.id, |address| {
                    (address.network, address.vpc) = (begun.network.clone(), begun.vpc.clone());
                    address.state = AddressState::Allocated;
                });
            };
            let (run, ()) = tokio::join!(world.run(WEB), arrive);
            let run = run.settled();
            assert_eq!(run.published(), [begun.address.to_string()], "{what}");
            assert!(!run.has_note("PublicIPPending"), "{what}");
            assert_eq!(one(&world, |_| true).id, begun.id, "{what}");
            assert_eq!(world.annotation(WEB, "ip-ids"), Some(begun.id), "{what}");
            world.delete(WEB);
            world.run(WEB).await.settled();
            world.check_nothing_left(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_never_comes_is_given_back_and_acquired_anew() {
    for is_vpc in [false, true] {
        for requested in [None, Some("203.0.113.77")] {
            let what = format!("VPC {is_vpc}, {requested:?}");
            let (world, _) = killed_for(is_vpc, requested).await;
            let run = world.run(WEB).await.settled();
            assert!((10..20).contains(&run.waited.as_secs()), "{what}: {run:#?}");
            assert!(run.has_note("PublicIPPending"), "{what}");
            let held = one(&world, |_| true);
            assert_eq!(run.published(), [held.address.to_string()], "{what}");
            assert!(requested.is_none_or(|ip| run.published() == [ip]), "{what}");
            assert_eq!(world.annotation(WEB, "ip-ids"), Some(held.id), "{what}");
            world.publish(WEB);
            assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
            world.delete(WEB);
            world.run(WEB).await.settled();
            world.check_nothing_left(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn where_jobs_end_only_when_asked_after_one_address_serves() {
    for is_vpc in [false, true] {
        for takes_rules in [false, true] {
            for requested in [None, Some("203.0.113.77")] {
                let what = format!("VPC {is_vpc}, takes rules {takes_rules}, {requested:?}");
                let mut world = World::of(Site::new(), is_vpc).await;
                world.add_web();
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
                world.sim.set_behaviour(|behaviour| {
                    behaviour.jobs_wait_for_polls = true;
                    behaviour.pending_addresses_take_rules = takes_rules;
                });
                world.run_killed(WEB, 2).await;
                let begun = one(&world, |address| address.state == AddressState::Allocating);
                world.restart().await;
                let run = world.run(WEB).await.settled();
                let seconds = if takes_rules { 4..9 } else { 10..20 };
                assert!(seconds.contains(&run.waited.as_secs()), "{what}: {run:#?}");
                let held = one(&world, |_| true);
                assert!(held.id == begun.id || !takes_rules, "{what}");
                assert_eq!(run.published(), [held.address.to_string()], "{what}");
                assert!(requested.is_none_or(|ip| run.published() == [ip]), "{what}");
                assert_eq!(world.members("tcp-443").len(), 3, "{what}");
                world.restart().await;
                assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
                world.delete(WEB);
                let run = world.run(WEB).await.settled();
                assert!(run.waited < Duration::from_secs(5), "{what}: {:?}", run.waited);
                world.check_nothing_left(&what);
            }
        }
    }
}

/// A world in which jobs go on when they are asked after, and a change of the Service ended the sync that began one.
async fn changed(is_vpc: bool, steps: usize) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.jobs_wait_for_polls = true);
    world.run_killed(WEB, steps).await;
    world
}

#[tokio::test(start_paused = true)]
async fn the_job_of_a_sync_that_a_change_ended_is_asked_after() {
    for is_vpc in [false, true] {
        for ip in [None, Some("203.0.113.77")] {
            let what = format!("VPC {is_vpc}, then {ip:?}");
            let world = changed(is_vpc, 2).await;
            let begun = one(&world, |address| address.state == AddressState::Allocating);
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            let run = run.settled();
            assert!(run.waited < Duration::from_secs(10), "{what}: {run:#?}");
            let acquired = writes.iter().filter(|call| *call == "associateIpAddress").count();
            assert_eq!(acquired, usize::from(ip.is_some()), "{what}: {writes:?}");
            let held = one(&world, |_| true);
            assert_eq!(held.id == begun.id, ip.is_none(), "{what}");
            assert_eq!(run.published(), [held.address.to_string()], "{what}");
        }
        let world = changed(is_vpc, 2).await;
        world.delete(WEB);
        let run = world.run(WEB).await.settled();
        assert!(run.waited < Duration::from_secs(5), "VPC {is_vpc}: {run:#?}");
        world.check_nothing_left("deleted");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_job_a_change_left_behind_nothing_is_made_twice() {
    for is_vpc in [false, true] {
        for steps in 1..12 {
            let world = changed(is_vpc, steps).await;
            world.annotate(WEB, "proxy-protocol", Some("true"));
            let run = world.run(WEB).await.settled();
            let what = format!("VPC {is_vpc}, after {steps} steps");
            assert!(run.waited < Duration::from_secs(20), "{what}: {:?}", run.waited);
            one(&world, |_| true);
            assert_eq!(world.rules(), ["tcp-proxy-443", "udp-4500"], "{what}");
            world.check(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_job_of_an_ended_sync_that_never_ends_holds_up_nobody() {
    for is_vpc in [false, true] {
        let world = World::of(Site::new(), is_vpc).await;
        world.add_web();
        world.sim.fail_jobs(JobFault::of("associateIpAddress").stuck());
        world.run_killed(WEB, 2).await;
        world.annotate(WEB, "proxy-protocol", Some("true"));
        let run = world.run(WEB).await.settled();
        // A minute for the job, and as after a restart then.
        assert!((70..85).contains(&run.waited.as_secs()), "{run:#?}");
        let held = one(&world, |_| true);
        assert_eq!(run.published(), [held.address.to_string()]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_needed_any_more_goes_once_the_status_shows_where_the_balancer_is() {
    for is_vpc in [false, true] {
        for hostname in [None, Some("edge.example.org")] {
            let what = format!("VPC {is_vpc}, {hostname:?}");
            let (world, begun) = killed(is_vpc).await;
            if hostname.is_some() {
                // The API told which one it is, and does not tell where it leads to.
                world.annotate(WEB, "ip-ids", Some(&begun.id));
                world.sim.edit_address(&begun.id, |address| {
                    (address.network, address.vpc) = (None, None);
                });
            }
            world.annotate(WEB, "hostname", hostname);
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
            let run = world.run(WEB).await.settled();
            let shown = hostname.unwrap_or("203.0.113.77");
            assert_eq!(run.published(), [shown], "{what}");
            let is_left = world.sim.addresses().iter().any(|address| address.id == begun.id);
            assert_eq!((is_left, run.again.is_some()), (true, true), "{what}");
            world.publish_at(WEB, shown);
            let run = world.run(WEB).await.settled();
            assert!((10..20).contains(&run.waited.as_secs()), "{what}: {run:#?}");
            assert_eq!(run.again, None, "{what}");
            assert_eq!(
                one(&world, |_| true).address.to_string(),
                "203.0.113.77",
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_neither_comes_nor_goes_is_told_and_given_back_once_another_one_serves() {
    for is_vpc in [false, true] {
        for comes_at_last in [false, true] {
            let what = format!("VPC {is_vpc}, comes {comes_at_last}");
            let (world, begun) = killed(is_vpc).await;
            world
                .sim
                .faults()
                .add(Fault::operation("disassociateIpAddress").status(431));
            let run = world.run(WEB).await.settled();
            assert!(
                (60..90).contains(&run.waited.as_secs()),
                "{what}: {:?}",
                run.waited
            );
            assert!(run.has_note("PublicIPPending"), "{what}");
            let other = one(&world, |address| address.id != begun.id);
            assert_eq!(run.published(), [other.address.to_string()], "{what}");
            let claim = format!("{},{}", begun.id, other.id);
            assert_eq!(world.annotation(WEB, "ip-ids"), Some(claim), "{what}");
            world.publish_at(WEB, &other.address.to_string());
            if comes_at_last {
                world
                    .sim
                    .edit_address(&begun.id, |address| address.state = AddressState::Allocated);
            }
            let run = world.run(WEB).await.settled();
            assert_eq!(run.published(), [other.address.to_string()], "{what}");
            let seconds = if comes_at_last { 0..5 } else { 10..20 };
            assert!(seconds.contains(&run.waited.as_secs()), "{what}: {run:#?}");
            assert_eq!(one(&world, |_| true).id, other.id, "{what}");
            assert_eq!(world.annotation(WEB, "ip-ids"), Some(other.id), "{what}");
            assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
            world.delete(WEB);
            world.run(WEB).await.settled();
            world.check_nothing_left(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_leaves_no_address_on_its_way_behind() {
    for is_vpc in [false, true] {
        for is_served in [false, true] {
            let what = format!("VPC {is_vpc}, served {is_served}");
            let (world, _) = killed(is_vpc).await;
            if is_served {
                world.run(WEB).await.settled();
            }
            world.delete(WEB);
            let run = world.run(WEB).await.settled();
            let seconds = if is_served { 0..5 } else { 10..20 };
            assert!(
                seconds.contains(&run.waited.as_secs()),
                "{what}: {:?}",
                run.waited
            );
            world.check_nothing_left(&what);
        }
    }
}

type Change = fn(&World);

/// What a Service may want while a job of somebody else never ends on its network, and holds up all after it.
const WISHES: [(&str, Change); 5] = [
    ("new", |_| {}),
    ("node port", |world| {
        world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
    }),
    ("port off", |world| {
        world.spec(WEB, |spec| {
            spec["ports"].as_array_mut().unwrap().pop();
        });
    }),
    ("node", |world| world.remove_node("pool-a-8")),
    ("deleted", |world| world.delete(WEB)),
];

#[tokio::test(start_paused = true)]
async fn a_network_that_is_held_up_gets_nothing_twice_and_all_when_it_goes_on() {
    for is_vpc in [false, true] {
        for (wish, change) in WISHES {
            let what = format!("VPC {is_vpc}, {wish}");
            let world = World::of(Site::new(), is_vpc).await;
            world.add_web();
            if wish != "new" {
                let run = world.run(WEB).await.settled();
                world.publish_at(WEB, &run.published()[0]);
            }
            world.sim.set_behaviour(|behaviour| {
                behaviour.stuck_jobs_hold_up = true;
                behaviour.job_time = Duration::from_secs(1);
            });
            world.add(
                "shop/other",
                "8c9e6679-7425-40de-944b-e07fc1f90ae7",
                &[("TCP", 80, 31080)],
            );
            world.sim.fail_jobs(JobFault::of("associateIpAddress").stuck());
            world.run_killed("shop/other", 2).await;
            change(&world);
            for _ in 0..2 {
                let run = world.run(WEB).await;
                assert!(
                    run.complaint().contains("Timeout while waiting"),
                    "{what}: {run:#?}"
                );
            }
            world.sim.end_stuck_jobs();
            let run = world.run(WEB).await.settled();
            assert!(run.waited < Duration::from_secs(20), "{what}: {:?}", run.waited);
            assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
            world.check(&what);
            if wish == "deleted" {
                world.check_nothing_left(&what);
                continue;
            }
            assert_eq!(
                run.published(),
                [one(&world, |_| true).address.to_string()],
                "{what}"
            );
            let members = if wish == "node" { 2 } else { 3 };
            let rules = world.rules();
            assert_eq!(rules.len(), if wish == "port off" { 1 } else { 2 }, "{what}");
            for rule in rules {
                assert_eq!(world.members(&rule).len(), members, "{what}");
            }
        }
    }
}
