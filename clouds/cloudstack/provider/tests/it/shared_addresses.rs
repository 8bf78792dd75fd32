//! Addresses that several Services use: the last one to go gives back what was acquired for one of them.

use bowline_cloud_provider::facts;
use bowline_cloudstack_sim::kit::Seed;
use serde_json::{Value, json};

use crate::site::Site;
use crate::world::{Outcome, UID, WEB, World};

const OTHER: &str = "shop/other";
const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
const THIRD: &str = "shop/third";
const THIRD_UID: &str = "9c9e6679-7425-40de-944b-e07fc1f90ae7";
const IP: &str = "203.0.113.77";

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
