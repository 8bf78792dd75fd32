//! Addresses that several Services use: the last one to go gives back what was acquired for one of them.

use bowline_cloud_provider::facts;
use bowline_cloudstack_sim::AddressSpec;
use bowline_cloudstack_sim::kit::Seed;
use bowline_cloudstack_sim::model::PublicAddress;
use serde_json::{Value, json};

use crate::site::Site;
use crate::world::{Outcome, UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
const THIRD: &str = "shop/third";
const THIRD_UID: &str = "9c9e6679-7425-40de-944b-e07fc1f90ae7";
const IP: &str = "203.0.113.77";

/// One Service with an address that is acquired for it, and others that ask for that address.
async fn borrowed(is_vpc: bool, requested: Option<&str>, borrowers: &[(&str, &str, u16)]) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add(WEB, UID, &[("TCP", 80, 31080)]);
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
    let ip = served(&world, WEB).await;
    for (key, uid, port) in borrowers {
        world.add(key, uid, &[("TCP", *port, 30000 + port)]);
        world.spec(key, |spec| spec["loadBalancerIP"] = json!(ip));
        assert_eq!(served(&world, key).await, ip);
        assert_eq!(world.annotation(key, "ip-associated-by-controller"), None);
    }
    world
}

/// Serves a Service and shows it in its status, as the controller does.
async fn served(world: &World, key: &str) -> String {
    let ip = world.run(key).await.published().remove(0);
    world.edit(key, |service| {
        let status = json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
        service.status = Some(serde_json::from_value(status).unwrap());
    });
    ip
}

fn held(world: &World) -> Vec<PublicAddress> {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat);
    all
}

/// A Service goes, and nobody looks after it any more.
async fn remove(world: &World, key: &str) {
    world.delete(key);
    world.run(key).await.settled();
    world.forget(key);
}

#[tokio::test(start_paused = true)]
async fn the_last_service_on_an_address_gives_it_back_in_whichever_order_they_go() {
    let all = [WEB, OTHER, THIRD];
    for is_vpc in [false, true] {
        for requested in [None, Some(IP)] {
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let what = format!("VPC {is_vpc}, {requested:?}, {order:?}");
                let borrowers = [(OTHER, OTHER_UID, 81), (THIRD, THIRD_UID, 82)];
                let mut world = borrowed(is_vpc, requested, &borrowers).await;
                for (gone, place) in order.into_iter().enumerate() {
                    assert_eq!((held(&world).len(), world.rules().len()), (1, 3 - gone), "{what}");
                    remove(&world, all[place]).await;
                    world.restart().await;
                    for left in &order[gone + 1..] {
                        let run = world.run(all[*left]).await.settled();
                        assert!(run.waves.is_empty(), "{what}: {run:#?}");
                    }
                }
                world.check_nothing_left(&what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn services_that_go_together_give_it_back_wherever_the_process_stops() {
    for is_vpc in [false, true] {
        for requested in [None, Some(IP)] {
            for (first, second) in (0..6).flat_map(|first| (0..6).map(move |second| (first, second))) {
                let what = format!("VPC {is_vpc}, {requested:?}, stopped at {first} and {second}");
                let mut world = borrowed(is_vpc, requested, &[(OTHER, OTHER_UID, 81)]).await;
                world.delete(WEB);
                world.delete(OTHER);
                let (one, other) =
                    tokio::join!(world.run_killed(WEB, first), world.run_killed(OTHER, second));
                world.restart().await;
                for (key, run) in [(WEB, one), (OTHER, other)] {
                    if run.outcome == Outcome::Stopped {
                        // A release that both begin is refused to one of them, and then it is done.
                        let mut tries = 0;
                        while !matches!(world.run(key).await.outcome, Outcome::Settled(_)) {
                            tries += 1;
                            assert!(tries < 3, "{what}");
                        }
                    }
                }
                world.check_nothing_left(&what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_first_hands_on_whenever_the_process_is_killed() {
    for is_vpc in [false, true] {
        for requested in [None, Some(IP)] {
            for (first, second) in (0..6).flat_map(|first| (0..6).map(move |second| (first, second))) {
                let what = format!("VPC {is_vpc}, {requested:?}, killed at {first} and {second}");
                let mut world = borrowed(is_vpc, requested, &[(OTHER, OTHER_UID, 81)]).await;
                for (key, limit) in [(WEB, first), (OTHER, second)] {
                    world.delete(key);
                    world.run_killed(key, limit).await;
                    world.restart().await;
                    world.run(key).await.settled();
                    world.forget(key);
                    world.restart().await;
                    if key == WEB {
                        assert_eq!((held(&world).len(), world.rules().len()), (1, 1), "{what}");
                    }
                }
                world.check_nothing_left(&what);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_borrower_that_is_killed_while_it_comes_leaves_nothing() {
    for is_vpc in [false, true] {
        for limit in 0..6 {
            let what = format!("VPC {is_vpc}, killed at {limit}");
            let mut world = borrowed(is_vpc, None, &[]).await;
            world.add(OTHER, OTHER_UID, &[("TCP", 81, 31081)]);
            let ip = held(&world).remove(0).address.to_string();
            world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!(ip));
            world.run_killed(OTHER, limit).await;
            world.restart().await;
            assert_eq!(served(&world, OTHER).await, ip, "{what}");
            remove(&world, WEB).await;
            assert_eq!((held(&world).len(), world.rules().len()), (1, 1), "{what}");
            remove(&world, OTHER).await;
            world.check_nothing_left(&what);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_its_owner_moved_away_from_goes_with_the_last_one_on_it() {
    let world = borrowed(false, None, &[(OTHER, OTHER_UID, 81)]).await;
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(IP));
    assert_eq!(served(&world, WEB).await, IP);
    assert_eq!(held(&world).len(), 2);
    world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!("203.0.113.78"));
    assert_eq!(served(&world, OTHER).await, "203.0.113.78");
    assert_eq!(held(&world).len(), 2);
    remove(&world, WEB).await;
    remove(&world, OTHER).await;
    world.check_nothing_left("all gone");
}

#[tokio::test(start_paused = true)]
async fn an_address_of_a_person_that_services_share_stays() {
    let world = World::new().await;
    let id = world.sim.take_address(AddressSpec::at(IP.parse().unwrap()));
    for (key, uid, port) in [(WEB, UID, 80), (OTHER, OTHER_UID, 81)] {
        world.add(key, uid, &[("TCP", port, 30000 + port)]);
        world.spec(key, |spec| spec["loadBalancerIP"] = json!(IP));
        served(&world, key).await;
        world.run(key).await.settled();
    }
    remove(&world, WEB).await;
    remove(&world, OTHER).await;
    assert_eq!(held(&world).remove(0).id, id);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_a_person_took_from_its_owner_stays() {
    for requested in [None, Some(IP)] {
        for annotation in ["ip-associated-by-controller", "keep-ip"] {
            for is_looked_at in [false, true] {
                let what = format!("{requested:?}, {annotation}, looked at {is_looked_at}");
                if requested.is_none() && annotation != "keep-ip" {
                    continue; // it bears no mark
                }
                let world = borrowed(false, requested, &[(OTHER, OTHER_UID, 81)]).await;
                let value = (annotation == "keep-ip").then_some("true");
                world.annotate(WEB, annotation, value);
                let order = if is_looked_at {
                    world.run(OTHER).await.settled();
                    [WEB, OTHER]
                } else {
                    [OTHER, WEB]
                };
                for key in order {
                    remove(&world, key).await;
                }
                assert_eq!(held(&world).len(), 1, "{what}");
                assert!(world.rules().is_empty(), "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_person_acquired_before_the_borrower_came_to_serve_is_his() {
    let world = borrowed(false, None, &[]).await;
    let ip = held(&world).remove(0).address;
    // The port is taken, so there is never a rule of its own.
    world.add(OTHER, OTHER_UID, &[("TCP", 80, 31081)]);
    world.spec(OTHER, |spec| spec["loadBalancerIP"] = json!(ip.to_string()));
    assert!(world.run(OTHER).await.complaint().contains("537"));
    remove(&world, WEB).await;
    world.check_nothing_left("its owner is gone");
    let theirs = world.sim.take_address(AddressSpec::at(ip));
    served(&world, OTHER).await;
    remove(&world, OTHER).await;
    assert_eq!(held(&world).remove(0).id, theirs);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_is_found_later_is_noted_then() {
    let world = borrowed(false, None, &[(OTHER, OTHER_UID, 81)]).await;
    // As if the other's claim had not been seen yet.
    world.annotate(OTHER, "ip-ids", Some(""));
    world.run(OTHER).await.settled();
    assert!(world.annotation(OTHER, "ip-ids").unwrap().starts_with("shared "));
    assert!(world.run(OTHER).await.settled().waves.is_empty());
    remove(&world, WEB).await;
    remove(&world, OTHER).await;
    world.check_nothing_left("both gone");
}

#[tokio::test(start_paused = true)]
async fn a_borrower_that_asks_for_no_address_any_more_keeps_it_until_it_goes() {
    let world = borrowed(false, None, &[(OTHER, OTHER_UID, 81)]).await;
    remove(&world, WEB).await;
    world.spec(OTHER, |spec| spec["loadBalancerIP"] = Value::Null);
    world.run(OTHER).await.settled();
    assert_eq!(held(&world).len(), 1);
    remove(&world, OTHER).await;
    world.check_nothing_left("both gone");
}

/// Runs a Service until it settles, and shows its address in its status.
async fn settle(world: &World, key: &str, what: &str) {
    for _ in 0..5 {
        let run = world.run(key).await;
        if let Outcome::Settled(status) = &run.outcome {
            let status = json!({ "loadBalancer": { "ingress": status.ingress.iter().map(|entry| json!({ "ip": entry.ip })).collect::<Vec<_>>() } });
            world.edit(key, |service| {
                service.status = Some(serde_json::from_value(status).unwrap())
            });
            return;
        }
    }
    panic!("{what}: {key} never settles: {:#?}", world.run(key).await);
}

#[tokio::test(start_paused = true)]
async fn whatever_services_borrow_from_each_other_nothing_is_left_in_the_end() {
    const ALL: [(&str, &str, u16); 3] = [(WEB, UID, 80), (OTHER, OTHER_UID, 81), (THIRD, THIRD_UID, 82)];
    for seed in 0..30 {
        let what = format!("seed {seed}");
        let dice = Seed::new(seed);
        let pick = |bound: usize| usize::try_from(dice.below(bound as u64)).unwrap();
        let mut world = World::of(Site::new(), seed % 2 == 1).await;
        let add = |world: &World, (key, uid, port): (&str, &str, u16)| {
            world.add(key, uid, &[("TCP", port, 30000 + port)]);
        };
        for service in ALL {
            add(&world, service);
        }
        for _ in 0..12 {
            let service = ALL[pick(3)];
            let key = service.0;
            let shown = |key: &str| facts::published_addresses(&world.service(key)).pop();
            // Whoever asks for the very address that was chosen for it keeps that.
            let other = shown(ALL[pick(3)].0).filter(|ip| shown(key).as_ref() != Some(ip));
            match pick(5) {
                0 | 1 => world.spec(key, |spec| spec["loadBalancerIP"] = json!(other)),
                2 => world.spec(key, |spec| spec["loadBalancerIP"] = json!(IP)),
                3 => world.spec(key, |spec| spec["loadBalancerIP"] = Value::Null),
                _ => world.delete(key),
            }
            if pick(2) == 0 {
                world.run_killed(key, pick(8)).await;
                world.restart().await;
            }
            settle(&world, key, &what).await;
            if world.service(key).metadata.deletion_timestamp.is_some() {
                world.forget(key);
                add(&world, service);
            }
        }
        let first = pick(3);
        for (key, ..) in (0..3).map(|place| ALL[(first + place) % 3]) {
            world.delete(key);
            world.run_killed(key, pick(6)).await;
            world.restart().await;
            settle(&world, key, &what).await;
            world.forget(key);
        }
        world.check_nothing_left(&what);
    }
}
