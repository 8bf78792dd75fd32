//! Whatever goes wrong at whichever write: one address for each Service that lives, nothing twice, nothing left open.

use std::time::Duration;

use bowline_cloudstack_sim::JobFault;
use bowline_cloudstack_sim::kit::faults::{Canned, FaultBuilder};
use bowline_kit::Interruption;
use bowline_kit::faults::{
    Disturbed, at_every_stop, at_every_write, finish, struck_at_every_write, undisturbed,
};
use serde_json::{Value, json};

use crate::world::{Outcome, Run, WEB, World};

/// What is disturbed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    Create,
    CreateRequested,
    Change,
    Delete,
}

const WORKS: [Work; 4] = [Work::Create, Work::CreateRequested, Work::Change, Work::Delete];

impl Disturbed for World {
    /// What is done, and whether the network is a tier of a VPC.
    type Change = (Work, bool);
    type State = Value;
    const RUNS: usize = 4;

    fn changes() -> Vec<(String, Self::Change)> {
        let of = |work| [false, true].map(|is_vpc| (format!("{work:?}, VPC {is_vpc}"), (work, is_vpc)));
        WORKS.into_iter().flat_map(of).collect()
    }

    async fn before((work, is_vpc): Self::Change) -> Self {
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

    async fn reconcile(&self, interruption: Interruption) -> Run {
        self.run_with(WEB, interruption).await
    }

    async fn start_anew(&mut self) {
        self.restart().await;
    }

    bowline_kit::disturbed!();
}

#[tokio::test(start_paused = true)]
async fn a_service_has_one_address_until_it_is_removed() {
    for (name, change) in World::changes() {
        let (end, _) = undisturbed::<World>(change).await;
        let is_wanted = change.0 != Work::Delete;
        assert_eq!(
            end["addresses"].as_array().unwrap().len(),
            usize::from(is_wanted),
            "{name}: {end:#?}"
        );
    }
}

const REFUSAL: &str =
    r#"{"errorresponse":{"uuidList":[],"errorcode":530,"cserrorcode":9999,"errortext":"injected"}}"#;

#[tokio::test(start_paused = true)]
async fn a_write_that_is_refused_is_made_good() {
    at_every_write::<World>("530", |fault| fault.answer(Canned::json(530, REFUSAL))).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_made_good() {
    at_every_write::<World>("lost answer", FaultBuilder::lose_answer).await;
}

#[tokio::test(start_paused = true)]
async fn a_write_that_is_lost_is_made_good() {
    at_every_write::<World>("lost", FaultBuilder::drop_before).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_is_made_good() {
    struck_at_every_write("failed job", |world: &World, k| {
        world.sim.fail_jobs(JobFault::any().nth(k));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_denies_its_effect_is_made_good() {
    struck_at_every_write("kept job", |world: &World, k| {
        world.sim.fail_jobs(JobFault::any().nth(k).kept());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for job_time in [Duration::ZERO, Duration::from_secs(3)] {
        at_every_stop(Interruption::BeforeStep, |world: &World| {
            world.sim.set_behaviour(|behaviour| behaviour.job_time = job_time);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_nobody_asks_after_any_more_is_made_good() {
    for (name, change) in World::changes() {
        let (expected, _) = undisturbed::<World>(change).await;
        for k in 1.. {
            let what = format!("{name}: killed after {k}");
            let mut world = World::before(change).await;
            // It is carried out by the poll that tells its end.
            world
                .sim
                .set_behaviour(|behaviour| behaviour.jobs_wait_for_polls = true);
            let killed = world.run_killed(WEB, k).await;
            world.restart().await;
            let begin = tokio::time::Instant::now();
            // What is listed counts as made: the states of openings are the server's matter.
            let all = |end: &Value| end.to_string().replace("\"Add\"", "\"Active\"");
            assert_eq!(all(&finish(&world, &what).await), all(&expected), "{what}");
            // Whether anything was asked for under the claim, nobody can know.
            let is_claim = killed.steps().last().is_some_and(|step| step.contains(" since "));
            let most = if is_claim { 180 } else { 60 };
            assert!(
                begin.elapsed() < Duration::from_secs(most),
                "{what}: {:?}",
                begin.elapsed()
            );
            if matches!(killed.outcome, Outcome::Settled(_)) {
                break;
            }
        }
    }
}
