//! Whatever goes wrong at whichever write: one address for each Service that lives, nothing twice, nothing left open.

use std::time::Duration;

use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::Canned;
use bowline_cloudstack_sim::{JobFault, Snapshot};
use serde_json::json;

use crate::world::{Outcome, WEB, World};

/// What is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Create,
    CreateRequested,
    Change,
    Delete,
}

const WORKS: [Work; 4] = [Work::Create, Work::CreateRequested, Work::Change, Work::Delete];

async fn before(work: Work, is_vpc: bool) -> World {
    let world = if is_vpc {
        World::vpc("tier-acl").await
    } else {
        World::new().await
    };
    world.add_web();
    match work {
        Work::Create => {}
        Work::CreateRequested => world.spec(WEB, |spec| spec["loadBalancerIP"] = json!("203.0.113.77")),
        Work::Change => {
            world.run(WEB).await.settled();
            world.annotate(WEB, "proxy-protocol", Some("true"));
            world.spec(WEB, |spec| {
                spec["ports"][0]["nodePort"] = json!(32000);
                spec["ports"].as_array_mut().unwrap().pop();
                spec["ports"].as_array_mut().unwrap().push(json!(
                    { "name": "http", "protocol": "TCP", "port": 80, "nodePort": 31080 }
                ));
                spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
            });
            world.remove_node("pool-a-8");
        }
        Work::Delete => {
            world.run(WEB).await.settled();
            world.delete(WEB);
        }
    }
    world
}

/// Runs until it settles, as the service loop does after failures.
async fn finish(world: &World, what: &str) -> Snapshot {
    for _ in 0..4 {
        let run = world.run(WEB).await;
        match run.outcome {
            Outcome::Settled(_) => {
                world.check(what);
                let (again, writes) = world.writes_of(world.run(WEB)).await;
                assert!(
                    again.settled().waves.is_empty() && writes.is_empty(),
                    "{what}: {writes:?}"
                );
                return world.sim.snapshot();
            }
            Outcome::Failed(_) => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    panic!("{what}: never settles: {:#?}", world.run(WEB).await);
}

/// The end of an undisturbed run, and how many writes it makes.
async fn undisturbed(work: Work, is_vpc: bool) -> (Snapshot, u64) {
    let world = before(work, is_vpc).await;
    let (_, writes) = world.writes_of(world.run(WEB)).await;
    let end = finish(&world, "undisturbed").await;
    assert_eq!(end.addresses.len(), usize::from(work != Work::Delete), "{end:#?}");
    (end, writes.len() as u64)
}

async fn disturbed(kind: &str, strike: impl Fn(&World, u64), strikes: impl Fn(&World) -> bool) {
    for work in WORKS {
        for is_vpc in [false, true] {
            let (expected, writes) = undisturbed(work, is_vpc).await;
            assert!(writes > 0);
            for k in 1..=writes {
                for restarts in [false, true] {
                    let what = format!("{work:?}, VPC {is_vpc}: {kind} at {k}, restarts {restarts}");
                    let mut world = before(work, is_vpc).await;
                    strike(&world, k);
                    world.run(WEB).await;
                    assert!(strikes(&world), "{what}");
                    if restarts {
                        world.restart().await;
                    }
                    assert_eq!(finish(&world, &what).await, expected, "{what}");
                }
            }
        }
    }
}

fn has_struck(world: &World) -> bool {
    world.sim.faults().list().iter().all(|rule| rule.struck == 1)
}

const REFUSAL: &str =
    r#"{"errorresponse":{"uuidList":[],"errorcode":530,"cserrorcode":9999,"errortext":"injected"}}"#;

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_is_made_good() {
    disturbed(
        "530",
        |world, k| {
            world
                .sim
                .faults()
                .add(Fault::write().nth(k).answer(Canned::json(530, REFUSAL)));
        },
        has_struck,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_made_good() {
    disturbed(
        "lost answer",
        |world, k| {
            world.sim.faults().add(Fault::write().nth(k).lose_answer());
        },
        has_struck,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_lost_is_made_good() {
    disturbed(
        "lost",
        |world, k| {
            world.sim.faults().add(Fault::write().nth(k).drop_before());
        },
        has_struck,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_is_made_good() {
    disturbed(
        "failed job",
        |world, k| world.sim.fail_jobs(JobFault::any().nth(k)),
        |_| true,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_denies_its_effect_is_made_good() {
    disturbed(
        "kept job",
        |world, k| world.sim.fail_jobs(JobFault::any().nth(k).kept()),
        |_| true,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for job_time in [Duration::ZERO, Duration::from_secs(3)] {
        for work in WORKS {
            for is_vpc in [false, true] {
                let (expected, _) = undisturbed(work, is_vpc).await;
                for k in 0.. {
                    let what = format!("{work:?}, VPC {is_vpc}: stopped after {k}, jobs of {job_time:?}");
                    let mut world = before(work, is_vpc).await;
                    world.sim.set_behaviour(|behaviour| behaviour.job_time = job_time);
                    let stopped = world.run_steps(WEB, k).await;
                    world.restart().await;
                    assert_eq!(finish(&world, &what).await, expected, "{what}");
                    if matches!(stopped.outcome, Outcome::Settled(_)) {
                        break;
                    }
                }
            }
        }
    }
}
