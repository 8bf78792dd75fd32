//! Addresses that several Services use: the last one to go gives back what was acquired for one of them.

use bowline_cloud_provider::facts;
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
