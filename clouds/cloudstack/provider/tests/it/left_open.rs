//! Ports that cannot be closed while a balancer is removed: tried again, and then left, so that the rest goes.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{AddressSpec, JobFault};
use serde_json::json;

use crate::site::Site;
use crate::world::{WEB, World};

const IP: &str = "203.0.113.77";

/// A served Service on an address of the user's, so that its firewall rules or ACL items go one by one.
async fn served(is_vpc: bool) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    if !is_vpc {
        world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    }
    world.run(WEB).await.settled();
    world
}

fn command(is_vpc: bool) -> &'static str {
    if is_vpc {
        "deleteNetworkACL"
    } else {
        "deleteFirewallRule"
    }
}

fn open(world: &World) -> usize {
    world.openings().len() + world.acl_items().len()
}

fn rule_ids(world: &World) -> BTreeSet<String> {
    let rules = world.sim.rules();
    rules.into_iter().map(|rule| rule.id).collect()
}

fn refusal(is_vpc: bool, code: u16) -> Canned {
    let envelope = format!("{}response", command(is_vpc).to_lowercase());
    Canned::json(
        code,
        &json!({ envelope: { "errorcode": code, "errortext": "no" } }).to_string(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_port_that_cannot_be_closed_does_not_keep_the_rule() {
    for is_vpc in [false, true] {
        for kind in ["530", "431", "432", "job", "lost"] {
            let what = format!("VPC {is_vpc}, {kind}");
            let world = served(is_vpc).await;
            let fault = Fault::operation(command(is_vpc)).always();
            let fault = match kind {
                "job" => None,
                "lost" => Some(fault.drop_before()),
                code => Some(fault.answer(refusal(is_vpc, code.parse().unwrap()))),
            };
            match fault {
                Some(fault) => drop(world.sim.faults().add(fault)),
                None => world.sim.fail_jobs(JobFault::of(command(is_vpc)).always()),
            }
            world.delete(WEB);
            let (run, calls) = world.calls_of(world.run(WEB)).await;
            let run = run.settled();
            assert!(run.has_note("PortLeftOpen"), "{what}: {run:#?}");
            let tries = calls.iter().filter(|call| *call == command(is_vpc)).count();
            // Two ports, and each up to three times with time between, unless the API says that it will never be.
            let (most, waits) = match kind {
                "431" | "432" => (2, false),
                _ => (6, true),
            };
            assert_eq!(
                (tries, run.waited > Duration::from_secs(3)),
                (most, waits),
                "{what}"
            );
            assert_eq!((world.rules().len(), open(&world)), (0, 2), "{what}");
            let mut held = world.sim.addresses();
            held.retain(|address| !address.is_source_nat);
            assert_eq!(held.len(), usize::from(!is_vpc), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_hard_to_close_is_closed() {
    for is_vpc in [false, true] {
        for kind in ["530", "job", "before", "after"] {
            let what = format!("VPC {is_vpc}, {kind}");
            let world = served(is_vpc).await;
            let fault = Fault::operation(command(is_vpc)).times(2);
            let fault = match kind {
                "530" => Some(fault.answer(refusal(is_vpc, 530))),
                "before" => Some(fault.drop_before()),
                "after" => Some(fault.status_after(500)),
                _ => None,
            };
            match fault {
                Some(fault) => drop(world.sim.faults().add(fault)),
                None => world.sim.fail_jobs(JobFault::of(command(is_vpc))),
            }
            world.delete(WEB);
            let run = world.run(WEB).await.settled();
            assert!(!run.has_note("PortLeftOpen"), "{what}: {run:#?}");
            assert_eq!((world.rules().len(), open(&world)), (0, 0), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_cannot_be_deleted_ends_the_removal() {
    let world = served(false).await;
    world.sim.faults().add(
        Fault::operation("deleteLoadBalancerRule")
            .always()
            .answer(refusal(false, 530)),
    );
    world.delete(WEB);
    let run = world.run(WEB).await;
    assert!(
        run.complaint().starts_with("error deleting load balancer rule "),
        "{}",
        run.complaint()
    );
}

#[tokio::test(start_paused = true)]
async fn a_port_of_a_service_that_stays_is_not_left_open() {
    let world = served(false).await;
    world.sim.faults().add(
        Fault::operation("deleteFirewallRule")
            .always()
            .answer(refusal(false, 431)),
    );
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    let run = world.run(WEB).await;
    assert!(
        run.complaint().starts_with("error deleting firewall rule "),
        "{}",
        run.complaint()
    );
    assert_eq!(world.rules().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_cannot_be_looked_at_does_not_keep_the_rule() {
    for is_vpc in [false, true] {
        for (status, times) in [(530, 2), (530, u64::MAX), (432, u64::MAX)] {
            let what = format!("VPC {is_vpc}, {status}, {times} times");
            let mut world = served(is_vpc).await;
            world.restart().await;
            let list = if is_vpc {
                "listNetworkACLs"
            } else {
                "listFirewallRules"
            };
            let fault = Fault::operation(list).times(times).status(status);
            let fault = world.sim.faults().add(fault);
            world.delete(WEB);
            let (mut run, calls) = world.calls_of(world.run(WEB)).await;
            assert_eq!(world.rules().len(), 0, "{what}");
            let looks = calls.iter().filter(|call| *call == list).count();
            let (most, waits) = if status == 432 { (1, false) } else { (3, true) };
            assert_eq!(
                (looks, run.waited > Duration::from_secs(3)),
                (most, waits),
                "{what}"
            );
            // What may pass is waited for, by whatever process: the rules are gone, and only the note of them is left.
            if (status, times) == (530, u64::MAX) {
                for restarts in [false, true] {
                    assert!(run.complaint().contains("may be open"), "{what}: {run:#?}");
                    assert_eq!(open(&world), 2, "{what}");
                    if restarts {
                        world.restart().await;
                    }
                    run = world.run(WEB).await;
                }
                world.sim.faults().remove(fault);
                run = world.run(WEB).await;
            }
            let run = run.settled();
            let left = if status == 432 { 2 } else { 0 };
            assert_eq!(
                (run.has_note("PortLeftOpen"), open(&world)),
                (left > 0, left),
                "{what}: {run:#?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_taken_back_under_its_rules_is_when_they_are_gone() {
    for is_vpc in [false, true] {
        for moves in [false, true] {
            let what = format!("VPC {is_vpc}, moves {moves}");
            let world = World::of(Site::new(), is_vpc).await;
            world.add_web();
            world.run(WEB).await.settled();
            world
                .sim
                .set_behaviour(|behaviour| behaviour.releases_refuse_rules = true);
            let before = rule_ids(&world);
            if moves {
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
            } else {
                world.delete(WEB);
            }
            let (run, writes) = world.writes_of(world.run(WEB)).await;
            run.settled();
            let deleted = |command: &str| writes.iter().filter(|call| *call == command).count();
            assert_eq!(deleted("deleteLoadBalancerRule"), 2, "{what}: {writes:?}");
            if !moves {
                world.check_nothing_left(&what);
                continue;
            }
            assert!(before.is_disjoint(&rule_ids(&world)), "{what}");
            assert_eq!(world.address().address.to_string(), IP, "{what}");
            world.delete(WEB);
            world.run(WEB).await.settled();
            world.check_nothing_left(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_released_address_leaves_is_deleted() {
    for is_vpc in [false, true] {
        for (moves, restarts) in [(false, false), (false, true), (true, false)] {
            let what = format!("VPC {is_vpc}, moves {moves}, restarts {restarts}");
            let mut world = World::of(Site::new(), is_vpc).await;
            world.add_web();
            world.run(WEB).await.settled();
            world
                .sim
                .set_behaviour(|behaviour| behaviour.releases_leave_rules = true);
            let before = rule_ids(&world);
            if moves {
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
            } else {
                world.delete(WEB);
            }
            if restarts {
                // It is killed when the release was accepted.
                world.run_killed(WEB, if is_vpc { 3 } else { 1 }).await;
                world.restart().await;
            }
            world.run(WEB).await.settled();
            let rules = rule_ids(&world);
            assert!(before.is_disjoint(&rules), "{what}");
            assert_eq!(rules.len(), if moves { 2 } else { 0 }, "{what}");
            assert_eq!(open(&world), if moves { 2 } else { 0 }, "{what}");
            assert_eq!(world.sim.addresses().len(), usize::from(moves), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_of_a_service_that_stays_is_not_left_open_though_it_cannot_be_looked_at() {
    let world = served(false).await;
    world
        .sim
        .faults()
        .add(Fault::operation("listFirewallRules").always().status(530));
    world.spec(WEB, |spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    let run = world.run(WEB).await;
    assert!(
        run.complaint()
            .starts_with("error fetching firewall rules for public IP "),
        "{}",
        run.complaint()
    );
    assert_eq!(world.rules().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_api_that_is_too_busy_to_close_a_port_leaves_none_open() {
    for is_vpc in [false, true] {
        for operation in [command(is_vpc), "listFirewallRules", "listNetworkACLs"] {
            if is_vpc != operation.contains("NetworkACL") {
                continue;
            }
            let mut world = served(is_vpc).await;
            world.restart().await;
            let busy = Fault::operation(operation).always();
            let busy = world
                .sim
                .faults()
                .add(busy.too_many_requests(Duration::from_secs(1)));
            world.delete(WEB);
            for _ in 0..5 {
                assert!(!world.run(WEB).await.complaint().is_empty(), "{operation}");
            }
            assert_eq!(world.rules().len(), 2, "{operation}");
            world.sim.faults().remove(busy);
            let run = world.run(WEB).await.settled();
            assert!(!run.has_note("PortLeftOpen"), "{operation}: {run:#?}");
            assert_eq!((world.rules().len(), open(&world)), (0, 0), "{operation}");
        }
    }
}
