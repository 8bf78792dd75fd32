//! Addresses whose association the process that asked for it never heard of, of Services that go before it is looked for.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::model::{AddressState, PublicAddress};
use bowline_cloudstack_sim::{AddressSpec, FirewallSpec, JobFault, NetworkSpec, RuleSpec};
use serde_json::json;

use crate::site::Site;
use crate::world::{Outcome, WEB, World};

/// What becomes of the association.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The process is killed when it was accepted.
    Killed,
    /// The answer is lost, and the process goes on.
    Unanswered,
    /// It never reaches the server.
    Lost,
    /// Its job says that it failed, and has its effect.
    Denied,
    /// The same, and nobody tells which address it is.
    DeniedUntold,
}

const FATES: [Fate; 5] = [
    Fate::Killed,
    Fate::Unanswered,
    Fate::Lost,
    Fate::Denied,
    Fate::DeniedUntold,
];

/// A world in which a person has an address of the network.
async fn world(is_vpc: bool) -> (World, String) {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    let person = world.sim.take_address(place(&world, is_vpc));
    (world, person)
}

/// An address of the network that the balancer's will lead to.
fn place(world: &World, is_vpc: bool) -> AddressSpec {
    if is_vpc {
        let vpc = world.sim.vpcs().remove(0).id;
        AddressSpec::in_vpc(vpc)
    } else {
        AddressSpec {
            network: Some(world.sim.network()),
            ..AddressSpec::default()
        }
    }
}

/// Lets the Service ask for an address.
async fn ask(world: &mut World, fate: Fate) {
    let faults = world.sim.faults();
    match fate {
        Fate::Killed => {}
        Fate::Unanswered => {
            faults.add(Fault::operation("associateIpAddress").lose_answer());
        }
        Fate::Lost => {
            faults.add(Fault::operation("associateIpAddress").drop_before());
        }
        Fate::Denied => world.sim.fail_jobs(JobFault::of("associateIpAddress").kept()),
        Fate::DeniedUntold => {
            let job = Canned::json(200, r#"{"associateipaddressresponse":{"jobid":"j-1"}}"#);
            faults.add(Fault::operation("associateIpAddress").answer(job));
            let failure = r#"{"queryasyncjobresultresponse":{"jobid":"j-1","jobstatus":2,"jobresult":{"errorcode":530,"errortext":"no"}}}"#;
            let failure = Canned::json(200, failure);
            faults.add(Fault::operation("queryAsyncJobResult").answer(failure));
        }
    }
    let run = match fate {
        Fate::Killed => world.run_killed(WEB, 2).await,
        Fate::DeniedUntold => {
            let arrive = async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                let is_vpc = !world.sim.vpcs().is_empty();
                world.sim.take_address(place(world, is_vpc));
            };
            tokio::join!(world.run(WEB), arrive).0
        }
        _ => world.run(WEB).await,
    };
    assert!(
        matches!(run.outcome, Outcome::Stopped | Outcome::Failed(_)),
        "{run:#?}"
    );
    assert_ne!(world.annotation(WEB, "ip-ids"), None, "{run:#?}");
}

/// All addresses that somebody has, but for those that networks go out by.
fn held(world: &World) -> Vec<PublicAddress> {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat);
    all
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_its_service() {
    for is_vpc in [false, true] {
        for fate in FATES {
            for restarts in [false, true] {
                for stays in [false, true] {
                    let what = format!("VPC {is_vpc}, {fate:?}, restarts {restarts}, stays {stays}");
                    let (mut world, person) = world(is_vpc).await;
                    ask(&mut world, fate).await;
                    assert_eq!(
                        held(&world).len(),
                        if fate == Fate::Lost { 1 } else { 2 },
                        "{what}"
                    );
                    if restarts {
                        world.restart().await;
                    }
                    if stays {
                        world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
                    } else {
                        world.delete(WEB);
                    }
                    let run = world.run(WEB).await.settled();
                    let left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
                    assert_eq!(left, [person], "{what}: {run:#?}");
                    if stays {
                        assert_eq!(world.annotation(WEB, "ip-ids"), None, "{what}");
                    }
                    // Nobody looks again.
                    assert!(!run.has_note("PublicIPUnclear"), "{what}: {run:#?}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_waited_for_while_it_is_on_its_way() {
    for is_vpc in [false, true] {
        for tells_where in [false, true] {
            let what = format!("VPC {is_vpc}, tells where {tells_where}");
            let (mut world, person) = world(is_vpc).await;
            world.sim.fail_jobs(JobFault::of("associateIpAddress").stuck());
            ask(&mut world, Fate::Killed).await;
            let begun = held(&world).into_iter().find(|address| address.id != person);
            let begun = begun.unwrap();
            if !tells_where {
                world.sim.edit_address(&begun.id, |address| {
                    (address.network, address.vpc) = (None, None);
                });
            }
            world.restart().await;
            world.delete(WEB);
            let arrive = async {
                tokio::time::sleep(Duration::from_secs(9)).await;
                assert_eq!(held(&world).len(), 2, "{what}");
                world.sim.edit_address(&begun.id, |address| {
                    (address.network, address.vpc) = (begun.network.clone(), begun.vpc.clone());
                    address.state = AddressState::Allocated;
                });
            };
            let (run, ()) = tokio::join!(world.run(WEB), arrive);
            run.settled();
            assert_eq!(held(&world).len(), 1, "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_acquired_meanwhile_and_use_stays_theirs() {
    type Use = fn(&World, &str);
    let uses: [(&str, Use); 4] = [
        ("rule", |world, id| {
            world.sim.add_rule(RuleSpec::new("theirs", id, 8080, 8080));
        }),
        ("firewall", |world, id| {
            world.sim.add_firewall_rule(FirewallSpec::new(id, "tcp", 22));
        }),
        ("static NAT", |world, id| {
            let vm = world.sim.vm_named("cp-a").unwrap().id;
            world.sim.set_static_nat(id, Some(&vm));
        }),
        ("elsewhere", |world, id| {
            let other = world.sim.add_network(NetworkSpec::new("other"));
            world
                .sim
                .edit_address(id, |address| address.network = Some(other));
        }),
    ];
    for (name, give_use) in uses {
        let (mut world, person) = world(false).await;
        ask(&mut world, Fate::Lost).await;
        world.restart().await;
        let theirs = world.sim.take_address(place(&world, false));
        give_use(&world, &theirs);
        world.delete(WEB);
        let run = world.run(WEB).await.settled();
        let left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
        assert!(
            left.len() == 2 && left.contains(&person) && left.contains(&theirs),
            "{name}: {left:?} {run:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_acquires_minutes_later_stays_theirs() {
    for is_vpc in [false, true] {
        for is_wanted in [false, true] {
            let (mut world, person) = world(is_vpc).await;
            ask(&mut world, Fate::Lost).await;
            tokio::time::sleep(std::time::Duration::from_secs(180)).await;
            let later = world.sim.take_address(place(&world, is_vpc));
            world.restart().await;
            if is_wanted {
                let run = world.run(WEB).await.settled();
                assert_ne!(world.annotation(WEB, "ip-ids").unwrap(), later, "{run:#?}");
            }
            world.delete(WEB);
            world.run(WEB).await.settled();
            let mut left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
            let mut theirs = [person, later];
            left.sort();
            theirs.sort();
            assert_eq!(left, theirs, "VPC {is_vpc}, wanted {is_wanted}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_several_none_is_released_and_people_are_told() {
    for is_vpc in [false, true] {
        let (mut world, _) = world(is_vpc).await;
        ask(&mut world, Fate::Killed).await;
        world.sim.take_address(place(&world, is_vpc));
        world.restart().await;
        world.delete(WEB);
        let run = world.run(WEB).await.settled();
        assert!(run.has_note("PublicIPUnclear"), "{run:#?}");
        assert_eq!(held(&world).len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_asks_for_another_one_since_gives_it_back() {
    for is_vpc in [false, true] {
        for is_free in [false, true] {
            let what = format!("VPC {is_vpc}, the other one is free {is_free}");
            let (mut world, person) = world(is_vpc).await;
            let ip = "203.0.113.77";
            if !is_free {
                let address = ip.parse().unwrap();
                world.sim.take_address(AddressSpec {
                    address: Some(address),
                    ..place(&world, is_vpc)
                });
            }
            ask(&mut world, Fate::Killed).await;
            world.restart().await;
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(ip));
            let run = world.run(WEB).await.settled();
            assert_eq!(run.published(), [ip], "{what}");
            let held = held(&world);
            assert_eq!(held.len(), 2, "{what}: {held:#?}");
            assert!(held.iter().any(|address| address.id == person), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn services_whose_answers_are_lost_together_share_what_came() {
    const KEYS: [&str; 3] = ["shop/one", "shop/two", "shop/three"];
    for killed in 1..=3 {
        for first in 0..killed {
            for is_kept in [false, true] {
                let what = format!("{killed} killed, {first} goes on first, kept {is_kept}");
                let (mut world, person) = world(false).await;
                for (number, key) in KEYS.into_iter().enumerate().take(killed) {
                    let uid = format!("0000000{number}-0000-4000-8000-000000000000");
                    world.add(key, &uid, &[("TCP", 443, 31443)]);
                }
                // All of them claim before any of them acquires, or one after the other.
                for limit in if is_kept { 1..=2 } else { 2..=2 } {
                    for key in &KEYS[..killed] {
                        world.run_killed(key, limit).await;
                    }
                }
                assert_eq!(held(&world).len(), 1 + killed, "{what}");
                world.restart().await;
                let mut order = KEYS[..killed].to_vec();
                order.rotate_left(first);
                if is_kept {
                    for key in &order {
                        world.run(key).await.settled();
                    }
                    assert_eq!(held(&world).len(), 1 + killed, "{what}");
                }
                for key in &order {
                    world.delete(key);
                    let run = world.run(key).await.settled();
                    assert!(!run.has_note("PublicIPUnclear"), "{what}: {run:#?}");
                }
                let left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
                assert_eq!(left, [person], "{what}");
            }
        }
    }
}
