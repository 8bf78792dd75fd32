//! Histories by chance, and plans that are kept.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;
use bowline_cloudstack_sim::kit::{Fault, Seed};
use serde_json::{Value, json};

use crate::world::{Outcome, WEB, World};

/// One change that a person makes.
fn change(world: &World, number: u64) {
    match number {
        0 => world.annotate(WEB, "proxy-protocol", Some("true")),
        1 => world.annotate(WEB, "proxy-protocol", None),
        2 => world.annotate(WEB, "source-cidrs", Some("10.0.0.0/8, 192.0.2.0/24")),
        3 => world.annotate(WEB, "source-cidrs", None),
        4 => world.spec(WEB, |spec| {
            spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])
        }),
        5 => world.spec(WEB, |spec| {
            spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24", "10.0.0.0/8"])
        }),
        6 => world.spec(WEB, |spec| spec["loadBalancerSourceRanges"] = Value::Null),
        7 => world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000)),
        8 => world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(31443)),
        9 => world.spec(WEB, |spec| spec["ports"][1]["protocol"] = json!("TCP")),
        10 => world.spec(WEB, |spec| spec["ports"][1]["port"] = json!(4501)),
        11 => world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP")),
        12 => world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77")),
        13 => world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null),
        14 => world.remove_node("pool-a-8"),
        _ => {
            world.remove_node("pool-a-8");
            let id = world.sim.vm_named("pool-a-8").unwrap().id;
            world.add_node("pool-a-8", Some(&id));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_the_cloud_ends_as_if_nothing_had() {
    for seed in 0..60 {
        let dice = Seed::new(seed);
        let is_vpc = dice.below(2) == 1;
        let mut world = if is_vpc {
            World::vpc("tier-acl").await
        } else {
            World::new().await
        };
        world.add_web();
        for _ in 0..dice.below(8) {
            change(&world, dice.below(16));
            match dice.below(6) {
                0 => {
                    world
                        .sim
                        .faults()
                        .add(Fault::write().nth(1 + dice.below(6)).lose_answer());
                }
                1 => {
                    world
                        .sim
                        .faults()
                        .add(Fault::write().nth(1 + dice.below(6)).drop_before());
                }
                2 => world.sim.fail_jobs(JobFault::any().nth(1 + dice.below(6))),
                _ => {}
            }
            let steps = usize::try_from(dice.below(12)).unwrap();
            world.run_steps(WEB, steps).await;
            if dice.below(3) == 0 {
                world.restart().await;
            }
        }
        world.sim.faults().clear();
        world.sim.clear_job_faults();
        // What failed is held back for five minutes at most.
        tokio::time::advance(Duration::from_secs(300)).await;
        let mut run = world.run(WEB).await;
        for _ in 0..3 {
            if matches!(run.outcome, Outcome::Failed(_)) {
                run = world.run(WEB).await;
            }
        }
        let what = format!("seed {seed}");
        assert!(matches!(run.outcome, Outcome::Settled(_)), "{what}: {run:#?}");
        world.check(&what);
        assert_eq!(
            (world.sim.addresses().len(), world.rules().len()),
            (1, 2),
            "{what}"
        );
        assert!(world.run(WEB).await.settled().waves.is_empty(), "{what}");
        let openings = if is_vpc {
            world.acl_items()
        } else {
            world.openings()
        };
        assert_eq!(openings.len(), 2, "{what}: {openings:?}");
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert!(
            world.sim.addresses().is_empty() && world.rules().is_empty(),
            "{what}"
        );
        assert_eq!(
            (world.openings(), world.acl_items()),
            (Vec::new(), Vec::new()),
            "{what}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_printed_plan_is_what_is_done() {
    for seed in 0..40 {
        let dice = Seed::new(1000 + seed);
        let world = if dice.below(2) == 1 {
            World::vpc("tier-acl").await
        } else {
            World::new().await
        };
        // What a plan foretells of a rule for another protocol.
        world.sim.set_behaviour(|it| it.protocols_conflict = true);
        world.add_web();
        for round in 0..4 {
            let (planned, is_settled) = world.predicted(WEB).await;
            let what = format!("seed {seed}, round {round}");
            assert!(is_settled, "{what}: {planned:#?}");
            let run = world.run(WEB).await.settled();
            let id = world.annotation(WEB, "ip-ids").unwrap();
            let ip = run.published().remove(0);
            // What is not known yet is made up in the plan: IDs, and the address that the cloud will choose.
            let blur = |waves: &[Vec<String>]| -> Vec<Vec<String>> {
                let known = |label: &String| {
                    label
                        .replace("new-ip-1", &id)
                        .replace("an address that CloudStack chooses", &ip)
                };
                // When something is claimed is told to the second.
                let undated = |label: String| {
                    let is_time = |word: &str| {
                        let until = word.find([')', ',']).unwrap_or(word.len());
                        word[..until].parse::<jiff::Timestamp>().is_ok()
                    };
                    let words = label
                        .split(' ')
                        .map(|word| if is_time(word) { "then" } else { word });
                    words.collect::<Vec<_>>().join(" ")
                };
                let known = |label: &String| undated(known(label));
                let label = |label: &String| match known(label).split_once(", new-") {
                    Some((start, _)) => start.to_owned(),
                    None if label.starts_with("close-") => {
                        known(label).rsplit_once(", ").unwrap().0.to_owned()
                    }
                    None => known(label),
                };
                waves
                    .iter()
                    .map(|wave| wave.iter().map(label).collect())
                    .collect()
            };
            assert_eq!(blur(&run.waves), blur(&planned), "{what}");
            for _ in 0..=dice.below(3) {
                change(&world, dice.below(16));
            }
        }
        world.delete(WEB);
        let (planned, is_settled) = world.predicted(WEB).await;
        assert!(is_settled, "seed {seed}: {planned:#?}");
        assert_eq!(world.run(WEB).await.settled().waves, planned, "seed {seed}");
    }
}
