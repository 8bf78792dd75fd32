//! Whatever goes wrong at whichever write: one address for each Service that lives, nothing twice, nothing left open.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::{Canned, FaultBuilder};
use bowline_cloudstack_sim::{AddressSpec, JobFault};
use bowline_kit::Interruption;
use bowline_kit::faults::{
    Disturbed, at_every_stop, at_every_write, finish, struck_at_every_write, undisturbed,
};
use serde_json::{Value, json};
use tracing::Level;

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
        assert_eq!(end.addresses.len(), usize::from(is_wanted), "{name}: {end:#?}");
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

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_removed_in_the_middle_of_its_making_leaves_nothing() {
    for job_time in [Duration::ZERO, Duration::from_secs(3)] {
        for work in [Work::Create, Work::CreateRequested, Work::Change] {
            for is_vpc in [false, true] {
                for k in 0.. {
                    let what = format!("{work:?}, VPC {is_vpc}: stopped after {k}, jobs of {job_time:?}");
                    let mut world = World::before((work, is_vpc)).await;
                    world.sim.set_behaviour(|behaviour| behaviour.job_time = job_time);
                    let stopped = world.run_steps(WEB, k).await;
                    if k % 2 == 1 {
                        world.restart().await;
                    }
                    world.delete(WEB);
                    // The finalizer goes when this settles: nobody looks again.
                    for _ in 0..4 {
                        if matches!(world.run(WEB).await.outcome, Outcome::Settled(_)) {
                            break;
                        }
                    }
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    world.check_nothing_left(&what);
                    if matches!(stopped.outcome, Outcome::Settled(_)) {
                        break;
                    }
                }
            }
        }
    }
}

/// A process is lost with the answer of each write in turn, of a Service's creation and then of its removal.
#[tokio::test(start_paused = true)]
async fn the_user_s_address_stays_the_user_s_whichever_answer_is_lost() {
    let at_the_users = async || {
        let world = World::before((Work::CreateRequested, false)).await;
        let address = "203.0.113.77".parse().unwrap();
        world.sim.take_address(AddressSpec::at(address));
        world
    };
    let world = at_the_users().await;
    let creation = world.writes_of(world.run(WEB)).await.1.len();
    world.delete(WEB);
    let removal = world.writes_of(world.run(WEB)).await.1.len();
    assert!(creation > 0 && removal > 0, "{creation} and {removal} writes");
    for k in 1..=creation + removal {
        let what = format!("lost answer of write {k}");
        let mut world = at_the_users().await;
        let lost = Fault::write().nth(k as u64).lose_answer();
        let lost = world.sim.faults().add(lost);
        world.run(WEB).await;
        if k > creation {
            world.delete(WEB);
            world.run(WEB).await;
        }
        assert_eq!(world.sim.faults().struck(lost), 1, "{what}");
        world.restart().await;
        finish(&world, &what).await;
        world.delete(WEB);
        let end = finish(&world, &what).await;
        assert_eq!(end.addresses.len(), 1, "{what}: {end:#?}");
        assert!(world.rules().is_empty() && world.openings().is_empty(), "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_given_up_while_its_rule_is_made_anew_is_closed() {
    for is_vpc in [false, true] {
        for k in 0.. {
            let what = format!("VPC {is_vpc}: stopped after {k}");
            let mut world = World::before((Work::Create, is_vpc)).await;
            world.run(WEB).await.settled();
            world.spec(WEB, |spec| spec["ports"][0]["nodePort"] = json!(32000));
            let stopped = world.run_steps(WEB, k).await;
            world.restart().await;
            world.spec(WEB, |spec| {
                spec["ports"].as_array_mut().unwrap().remove(0);
            });
            finish(&world, &what).await;
            let open = if is_vpc {
                world.acl_items()
            } else {
                world.openings()
            };
            assert_eq!((world.rules().len(), open.len()), (1, 1), "{what}: {open:?}");
            assert_eq!(world.annotation(WEB, "replaced-rules"), None, "{what}");
            if matches!(stopped.outcome, Outcome::Settled(_)) {
                break;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_a_list_did_not_show_is_taken_for_what_it_is() {
    let mut world = World::before((Work::Create, false)).await;
    world.spec(WEB, |spec| {
        spec["loadBalancerIP"] = json!("203.0.113.77");
        spec["ports"].as_array_mut().unwrap().pop();
    });
    world.run(WEB).await.settled();
    let rule = world.rule("tcp-443").id;
    let opening = world.sim.firewall_rules()[0].id.clone();
    world.restart().await;
    let hidden = |command: &str| {
        let body = json!({ format!("{}response", command.to_lowercase()): {} });
        world
            .sim
            .faults()
            .add(Fault::operation(command).answer(Canned::json(200, &body.to_string())));
    };
    hidden("listLoadBalancerRules");
    hidden("listFirewallRules");
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    run.settled();
    assert_eq!(writes, ["createLoadBalancerRule", "createFirewallRule"]);
    assert_eq!(
        (world.rule("tcp-443").id, world.sim.firewall_rules()[0].id.clone()),
        (rule, opening)
    );
    assert_eq!(world.members("tcp-443").len(), 3);
    world.check("taken up");
}

#[tokio::test(start_paused = true)]
async fn a_busy_api_gets_no_more_to_do() {
    let world = World::before((Work::Create, false)).await;
    let busy = Canned::json(
        429,
        r#"{"createloadbalancerruleresponse":{"errorcode":429,"errortext":"too many"}}"#,
    );
    world
        .sim
        .faults()
        .add(Fault::operation("createLoadBalancerRule").answer(busy));
    let (run, writes) = world.writes_of(world.run(WEB)).await;
    assert!(run.complaint().contains("429"), "{}", run.complaint());
    assert!(
        !writes.contains(&"disassociateIpAddress".to_owned()),
        "{writes:?}"
    );
    let address = world.address();
    finish(&world, "after it").await;
    assert_eq!(world.address(), address);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_cannot_be_asked_after_is_told_soon_and_not_done_twice() {
    let refusal = r#"{"queryasyncjobresultresponse":{"errorcode":401,"errortext":"no"}}"#;
    for work in WORKS {
        for (kind, seconds) in [
            ("401", 5),
            ("empty", 5),
            ("{}", 5),
            ("html", 5),
            ("530", 70),
            ("lost", 90),
        ] {
            let what = format!("{work:?}, {kind}");
            let world = World::before((work, false)).await;
            let poll = Fault::operation("queryAsyncJobResult").always();
            let faults = world.sim.faults();
            faults.add(match kind {
                "401" => poll.answer(Canned::json(401, refusal)),
                "empty" => poll.empty(200),
                "{}" => poll.answer(Canned::json(200, "{}")),
                "html" => poll.html(404),
                "530" => poll.status(530),
                _ => poll.drop_before(),
            });
            let begin = tokio::time::Instant::now();
            let run = world.run(WEB).await;
            assert!(
                run.complaint().contains("a job could not be asked after"),
                "{what}: {}",
                run.complaint()
            );
            let took = begin.elapsed().as_secs();
            assert!(took <= seconds, "{what}: {took} s");
            faults.clear();
            finish(&world, &what).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_of_which_nothing_is_heard_for_a_moment_is_waited_for() {
    for kind in ["{}", "530"] {
        let world = World::before((Work::Create, false)).await;
        let poll = Fault::operation("queryAsyncJobResult");
        world.sim.faults().add(match kind {
            "{}" => poll.times(2).answer(Canned::json(200, "{}")),
            _ => poll.times(8).status(530),
        });
        world.run(WEB).await.settled();
        world.check(kind);
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_without_an_answer_is_logged_as_unknown_and_a_refused_one_as_not_taken() {
    let refusal = r#"{"createloadbalancerruleresponse":{"errorcode":431,"errortext":"no"}}"#;
    let fault = || Fault::operation("createLoadBalancerRule").times(2);
    for (fault, outcome) in [
        (fault().lose_answer(), "unknown"),
        (fault().status_after(503), "unknown"),
        (fault().hang_after(), "unknown"),
        (fault().answer(Canned::json(431, refusal)), "not taken"),
        (fault().status(429), "not taken"),
    ] {
        let world = World::new().await;
        world.add_web();
        world.sim.faults().add(fault.clone());
        let (log, _guards) = Log::listen(Level::DEBUG);
        let run = world.run(WEB).await;
        let ended = |line: &&String| line.contains("action ended") && line.contains("create-rule(");
        let lines = log.take();
        let first = lines.iter().find(ended).expect("it was made");
        let expected = format!("outcome=\"{outcome}\"");
        assert!(first.contains(&expected), "{fault:?}: {first}; {run:#?}");
    }
}
