//! Associations that take effect after the one who asked has heard nothing, or was stopped: nothing else is asked for, and no
//! Service goes, before that would have come to light.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloudstack_sim::kit::Fault;
use bowline_cloudstack_sim::kit::faults::{Action, Canned};
use bowline_cloudstack_sim::model::PublicAddress;
use bowline_cloudstack_sim::{AddressSpec, JobFault};
use serde_json::{Value, json};
use tracing::Level;

use crate::site::Site;
use crate::world::{Outcome, WEB, World};

const IP: &str = "203.0.113.77";
const ASSOCIATE: &str = "associateIpAddress";

/// How the one who asked loses sight of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// The connection breaks at once.
    Answer,
    /// No answer comes, until the time for one is over.
    Silence,
    /// The process is killed while it waits for the answer.
    Death,
}

/// What becomes of the Service before the address comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is served.
    Stays,
    /// It is deleted.
    Goes,
    /// It becomes one of another type.
    IsOfAnotherType,
}

fn held(world: &World) -> Vec<PublicAddress> {
    let mut all = world.sim.addresses();
    all.retain(|address| !address.is_source_nat);
    all
}

fn associations(world: &World) -> usize {
    world.sim.journal().count_operation(ASSOCIATE)
}

/// Lets the Service ask, and lose sight of it.
async fn ask(world: &World, loss: Loss, after: Duration) {
    let fault = Fault::operation(ASSOCIATE);
    let is_lost = loss == Loss::Answer;
    world.sim.faults().add(if is_lost {
        fault.take_effect_late(after)
    } else {
        fault.delay(after)
    });
    let run = world.run(WEB);
    match loss {
        Loss::Death => {
            let died = tokio::time::timeout(Duration::from_secs(5), run).await;
            assert!(died.is_err(), "{died:?}");
        }
        Loss::Answer | Loss::Silence => {
            let run = run.await;
            assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
        }
    }
    assert_eq!(associations(world), 1);
    assert_ne!(world.annotation(WEB, "ip-ids"), None);
}

async fn world(is_vpc: bool, requested: Option<&str>) -> World {
    let world = World::of(Site::new(), is_vpc).await;
    world.add_web();
    world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
    world
}

#[tokio::test(start_paused = true)]
async fn an_association_that_takes_effect_late_is_neither_lost_nor_made_twice() {
    let losses = [Loss::Answer, Loss::Silence, Loss::Death];
    let fates = [Fate::Stays, Fate::Goes, Fate::IsOfAnotherType];
    for loss in losses {
        for (after, fate) in [10, 60, 110]
            .into_iter()
            .flat_map(|s| fates.map(|fate| (s, fate)))
        {
            for requested in [None, Some(IP)] {
                for (is_vpc, restarts) in [(false, false), (false, true), (true, true)] {
                    let what = format!(
                        "{loss:?}, after {after} s, {fate:?}, {requested:?}, VPC {is_vpc}, restarts {restarts}"
                    );
                    let mut world = world(is_vpc, requested).await;
                    if loss == Loss::Silence && after < 60 {
                        continue;
                    }
                    ask(&world, loss, Duration::from_secs(after)).await;
                    if restarts || loss == Loss::Death {
                        world.restart().await;
                    }
                    match fate {
                        Fate::Goes => world.delete(WEB),
                        Fate::IsOfAnotherType => world.spec(WEB, |spec| spec["type"] = json!("ClusterIP")),
                        _ => {}
                    }
                    let run = world.run(WEB).await.settled();
                    assert_eq!(associations(&world), 1, "{what}: {run:#?}");
                    // Whatever comes has come by now.
                    tokio::time::sleep(Duration::from_secs(200)).await;
                    match fate {
                        Fate::Stays => {
                            assert_eq!(held(&world).len(), 1, "{what}: {run:#?}");
                            assert_eq!(run.published(), [held(&world)[0].address.to_string()], "{what}");
                            let id = held(&world)[0].id.clone();
                            assert_eq!(world.annotation(WEB, "ip-ids"), Some(id), "{what}");
                            let (run, writes) = world.writes_of(world.run(WEB)).await;
                            assert!(run.settled().waves.is_empty() && writes.is_empty(), "{what}");
                            world.delete(WEB);
                            world.run(WEB).await.settled();
                        }
                        Fate::IsOfAnotherType => assert_eq!(world.annotation(WEB, "ip-ids"), None, "{what}"),
                        _ => {}
                    }
                    assert_eq!(held(&world), [], "{what}: {run:#?}");
                }
            }
        }
    }
}

/// The server takes up late what was asked for, and its router takes 15 seconds for it. Eight of them are over when the address is
/// first seen on its way. How long the process has waited before that says nothing about the address.
#[tokio::test(start_paused = true)]
async fn an_address_that_has_just_begun_to_come_is_neither_tried_nor_given_back_at_once() {
    let (job_time, seen, tried) = (15, 8, 4);
    for (loss, after) in [(Loss::Answer, 52), (Loss::Death, 57)] {
        for (requested, fate) in [
            (Some(IP), Fate::Stays),
            (Some(IP), Fate::Goes),
            (None, Fate::Stays),
            (None, Fate::Goes),
        ] {
            let what = format!("{loss:?}, {requested:?}, {fate:?}");
            let mut world = world(false, requested).await;
            world
                .sim
                .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(job_time));
            ask(&world, loss, Duration::from_secs(after)).await;
            if loss == Loss::Death {
                world.restart().await;
            }
            if fate == Fate::Goes {
                world.delete(WEB);
            }
            let (log, _guards) = Log::listen(Level::INFO);
            let run = world.run(WEB).await.settled();
            // When this was called, in seconds since the server took up what was asked for.
            let at = |operation: &str| -> Vec<i64> {
                let calls = world.sim.journal().entries();
                let calls = calls.into_iter().filter(|call| call.operation == operation);
                calls
                    .map(|call| call.at.as_secs().cast_signed() - after.cast_signed())
                    .collect()
            };
            let released = at("disassociateIpAddress");
            assert_eq!(associations(&world), 1, "{what}: {run:#?}");
            if fate == Fate::Goes {
                assert!(
                    released.len() == 1 && released[0] >= job_time.cast_signed(),
                    "{what}: {released:?}"
                );
            } else {
                let created = at("createLoadBalancerRule");
                assert!(created[0] >= seen + tried, "{what}: {created:?}");
                // Both ports were refused once, and what is tried again is the same action.
                assert_eq!(created.len(), 4, "{what}");
                assert_eq!(log.count("executing action"), run.steps().len() - 2, "{what}");
                assert!(released.is_empty(), "{what}: {released:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_service_asked_for_before_it_wanted_another_one_is_given_back_when_it_comes() {
    let theirs = "203.0.113.88";
    for loss in [Loss::Answer, Loss::Death] {
        for after in [10, 60, 110] {
            for (requested, then) in [
                (None, Some(IP)),
                (None, Some(theirs)),
                (Some(IP), None),
                (Some(IP), Some(theirs)),
            ] {
                let what = format!("{loss:?}, after {after} s, {requested:?}, then {then:?}");
                let mut world = world(false, requested).await;
                let person = AddressSpec::at(theirs.parse().unwrap());
                let person = world.sim.take_address(person);
                ask(&world, loss, Duration::from_secs(after)).await;
                if loss == Loss::Death {
                    world.restart().await;
                }
                world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(then));
                let mut run = world.run(WEB).await.settled();
                for _ in 0..5 {
                    let published = run.published();
                    world.publish_at(WEB, &published[0]);
                    tokio::time::sleep(run.again.unwrap_or_default()).await;
                    run = world.run(WEB).await.settled();
                }
                tokio::time::sleep(Duration::from_secs(200)).await;
                let mut left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
                left.retain(|id| *id != person);
                assert_eq!(left.len(), usize::from(then != Some(theirs)), "{what}: {run:#?}");
                if let Some(then) = then {
                    assert_eq!(run.published(), [then], "{what}");
                }
                world.delete(WEB);
                world.run(WEB).await.settled();
                let left: Vec<String> = held(&world).into_iter().map(|address| address.id).collect();
                assert_eq!(left, [person], "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_never_comes_is_waited_for_two_minutes() {
    for (fate, requested) in [
        (Fate::Stays, None),
        (Fate::Goes, None),
        (Fate::Stays, Some(IP)),
        (Fate::Goes, Some(IP)),
    ] {
        for restarts in [false, true] {
            let what = format!("{fate:?}, {requested:?}, restarts {restarts}");
            let mut world = world(false, requested).await;
            world.sim.faults().add(Fault::operation(ASSOCIATE).drop_before());
            assert!(matches!(world.run(WEB).await.outcome, Outcome::Failed(_)));
            if restarts {
                world.restart().await;
            }
            if fate == Fate::Goes {
                world.delete(WEB);
            }
            let (run, calls) = world.calls_of(world.run(WEB)).await;
            let run = run.settled();
            let waited = run.waited.as_secs();
            assert!((110..=135).contains(&waited), "{what}: {waited} s");
            assert!(run.has_note("PublicIPSought"), "{what}: {run:#?}");
            assert!(calls.len() < 90, "{what}: {} calls", calls.len());
            let made = usize::from(fate == Fate::Stays);
            assert_eq!(
                (associations(&world), held(&world).len()),
                (1 + made, made),
                "{what}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_and_what_was_never_sent_keep_nobody_waiting() {
    let refused = r#"{"associateipaddressresponse":{"errorcode":533,"errortext":"no capacity"}}"#;
    for (fault, pause) in [
        (Fault::operation(ASSOCIATE).answer(Canned::json(533, refused)), 5),
        (Fault::operation(ASSOCIATE).status(429), 0),
    ] {
        for requested in [None, Some(IP)] {
            let what = format!("{fault:?}, {requested:?}");
            let world = world(false, requested).await;
            world.sim.faults().add(fault.clone());
            assert!(!matches!(world.run(WEB).await.outcome, Outcome::Settled(_)));
            tokio::time::sleep(Duration::from_secs(pause)).await;
            let run = world.run(WEB).await.settled();
            assert!(run.waited < Duration::from_secs(5), "{what}: {:?}", run.waited);
            assert_eq!((associations(&world), held(&world).len()), (2, 1), "{what}");
        }
    }
}

/// Each claim is a write to Kubernetes, and so is its end.
#[tokio::test(start_paused = true)]
async fn a_refused_address_is_claimed_once_and_not_at_each_try() {
    let refused = r#"{"associateipaddressresponse":{"errorcode":531,"errortext":"no permission"}}"#;
    for requested in [None, Some(IP)] {
        let world = world(false, requested).await;
        let fault = Fault::operation(ASSOCIATE).always();
        world.sim.faults().add(fault.answer(Canned::json(531, refused)));
        let steps = world.run(WEB).await.steps().len();
        assert_eq!(steps, 3, "the claim, the request and its end");
        for _ in 0..3 {
            let run = world.run(WEB).await;
            assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:#?}");
            assert!(run.complaint().contains("no permission"), "{run:#?}");
            assert_eq!(run.steps(), Vec::<String>::new(), "{requested:?}");
        }
        world.sim.faults().clear();
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.run(WEB).await.settled();
    }
}

/// `ApiServer.processAsyncCmd` makes the address before it queues the job: what fails in between is a 530, and the address is there, with
/// a job or without one.
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_that_it_failed_is_asked_again_only_when_nothing_came() {
    #[derive(Debug, PartialEq)]
    enum Effect {
        None,
        Job,
        NoJob,
        Late,
    }
    let failed = r#"{"associateipaddressresponse":{"errorcode":530,"errortext":"Internal error"}}"#;
    let failed = || Canned::json(530, failed);
    for effect in [Effect::None, Effect::Job, Effect::NoJob, Effect::Late] {
        for requested in [None, Some(IP)] {
            let what = format!("{effect:?}, {requested:?}");
            let world = world(false, requested).await;
            let fault = Fault::operation(ASSOCIATE);
            world.sim.faults().add(match effect {
                Effect::None | Effect::Late => fault.answer(failed()),
                Effect::Job | Effect::NoJob => fault.act(Action::AnswerAfter(failed())),
            });
            if effect == Effect::NoJob {
                world.sim.fail_jobs(JobFault::of(ASSOCIATE).stuck());
            }
            assert!(matches!(world.run(WEB).await.outcome, Outcome::Failed(_)));
            let arrive = async {
                if effect == Effect::Late {
                    tokio::time::sleep(Duration::from_secs(30)).await;
                    world.sim.take_address(AddressSpec {
                        address: requested.map(|ip| ip.parse().unwrap()),
                        network: Some(world.sim.network()),
                        ..AddressSpec::default()
                    });
                }
            };
            let (run, ()) = tokio::join!(world.run(WEB), arrive);
            let waited = run.settled().waited.as_secs();
            let (asked, times) = match effect {
                Effect::None => (2, 110..=135),
                Effect::Job => (1, 0..=15),
                Effect::NoJob => (2, 0..=30),
                Effect::Late => (1, 20..=50),
            };
            assert!(times.contains(&waited), "{what}: {waited} s");
            assert_eq!((associations(&world), held(&world).len()), (asked, 1), "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_of_the_service_before_anything_was_asked_for_keeps_nobody_waiting() {
    for requested in [None, Some(IP)] {
        let world = world(false, requested).await;
        let stopped = world.run_steps(WEB, 1).await;
        assert_eq!(stopped.outcome, Outcome::Stopped);
        assert_eq!(associations(&world), 0);
        // The same process, and a person changed something.
        world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
        let run = world.run(WEB).await.settled();
        assert!(
            run.waited < Duration::from_secs(5),
            "{requested:?}: {:?}",
            run.waited
        );
        assert_eq!((associations(&world), held(&world).len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stood_still_does_not_ask_under_an_old_claim() {
    for requested in [None, Some(IP)] {
        let world = world(false, requested).await;
        let before = world.site.now();
        let run = world.run_paused(WEB, 1, Duration::from_secs(90)).await.settled();
        let claims: Vec<&str> = run
            .steps()
            .into_iter()
            .filter(|step| step.contains("since"))
            .collect();
        assert_eq!(claims.len(), 2, "since {before}: {run:#?}");
        assert_eq!((associations(&world), held(&world).len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_stays_pending_is_not_begun_twice() {
    for (requested, tells_id) in [(None, true), (None, false), (Some(IP), true)] {
        for restarts in [false, true] {
            for goes in [false, true] {
                let what = format!("{requested:?}, tells ID {tells_id}, restarts {restarts}, goes {goes}");
                let mut world = world(false, requested).await;
                world
                    .sim
                    .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(100));
                if !tells_id {
                    // The job is one that nobody can ask after.
                    let job = r#"{"associateipaddressresponse":{"jobid":"j-1"}}"#;
                    let fault = Fault::operation(ASSOCIATE);
                    let answer = Canned::json(200, job);
                    world.sim.faults().add(fault.act(Action::AnswerAfter(answer)));
                }
                let died = tokio::time::timeout(Duration::from_secs(20), world.run(WEB)).await;
                assert!(died.is_err() || !tells_id, "{what}: {died:?}");
                if restarts {
                    world.restart().await;
                }
                if goes {
                    world.delete(WEB);
                }
                let mut run = world.run(WEB).await;
                for _ in 0..5 {
                    if matches!(run.outcome, Outcome::Settled(_)) {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    run = world.run(WEB).await;
                }
                run.settled();
                tokio::time::sleep(Duration::from_secs(400)).await;
                assert_eq!(held(&world).len(), usize::from(!goes), "{what}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_without_an_end_leaves_nothing_when_its_service_goes() {
    for requested in [None, Some(IP)] {
        let mut world = world(false, requested).await;
        world.sim.fail_jobs(JobFault::of(ASSOCIATE).stuck());
        let died = tokio::time::timeout(Duration::from_secs(60), world.run(WEB)).await;
        assert!(died.is_err());
        world.restart().await;
        world.delete(WEB);
        world.run(WEB).await.settled();
        assert_eq!(held(&world), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_goes_on_with_all_else_while_an_address_is_looked_for() {
    let world = world(false, Some(IP)).await;
    world.run(WEB).await.settled();
    world.publish_at(WEB, IP);
    // It moves, the answer is lost, and it is deleted.
    world.spec(WEB, |spec| spec["loadBalancerIP"] = Value::Null);
    world.annotate(WEB, "address", Some("203.0.113.90"));
    let late = Fault::operation(ASSOCIATE).take_effect_late(Duration::from_secs(60));
    world.sim.faults().add(late);
    assert!(matches!(world.run(WEB).await.outcome, Outcome::Failed(_)));
    world.delete(WEB);
    let early = async {
        tokio::time::sleep(Duration::from_secs(30)).await;
        (world.rules(), world.openings())
    };
    let (run, early) = tokio::join!(world.run(WEB), early);
    run.settled();
    assert_eq!(early, (Vec::new(), Vec::new()));
    assert_eq!(held(&world), []);
}

/// The process lives, and knows that something may go that is listed as if it stayed.
#[tokio::test(start_paused = true)]
async fn an_address_whose_release_was_not_answered_is_looked_at_again_when_its_service_comes_back() {
    let minutes = Duration::from_secs(120);
    for is_answered in [false, true] {
        let world = world(false, None).await;
        world.run(WEB).await.settled();
        let release = Fault::operation("disassociateIpAddress");
        // A server in trouble may have queued the job before it says so.
        let failed = r#"{"disassociateipaddressresponse":{"errorcode":530,"errortext":"Internal error"}}"#;
        if is_answered {
            world.sim.set_behaviour(|it| it.job_time = Duration::from_secs(8));
        }
        world.sim.faults().add(match is_answered {
            true => release.act(Action::AnswerAfter(Canned::json(530, failed))),
            false => release.take_effect_late(Duration::from_secs(8)),
        });
        world.spec(WEB, |spec| spec["type"] = json!("ClusterIP"));
        let run = world.run(WEB).await;
        assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:#?}");
        world.spec(WEB, |spec| spec["type"] = json!("LoadBalancer"));
        let run = world.run(WEB).await.settled();
        let again = run.again.expect("it may go yet");
        assert!(again <= Duration::from_secs(10), "{again:?}");
        tokio::time::sleep(again).await;
        let run = world.run(WEB).await.settled();
        assert_eq!(run.published(), [held(&world)[0].address.to_string()], "{run:#?}");
        tokio::time::sleep(minutes).await;
        assert_eq!(world.run(WEB).await.settled().again, None);
    }
}

/// The job is known, so nobody has to guess what became of it.
#[tokio::test(start_paused = true)]
async fn an_address_on_a_slow_router_is_waited_for_also_by_the_sync_after_a_change() {
    let job_time = Duration::from_secs(40);
    for fate in [Fate::Stays, Fate::Goes] {
        let world = world(false, None).await;
        world.sim.set_behaviour(|behaviour| behaviour.job_time = job_time);
        let first = tokio::time::timeout(Duration::from_secs(3), world.run(WEB)).await;
        assert!(first.is_err(), "{first:?}");
        world.annotate(WEB, "example.com/label", Some("new"));
        if fate == Fate::Goes {
            world.delete(WEB);
        }
        let run = world.run(WEB).await.settled();
        let releases = world.sim.journal().count_operation("disassociateIpAddress");
        assert_eq!(
            (associations(&world), releases),
            (1, usize::from(fate == Fate::Goes)),
            "{run:#?}"
        );
    }
}

/// What came of the first address is known as soon as it is listed: the API answered with its job.
#[tokio::test(start_paused = true)]
async fn another_address_that_is_asked_for_while_the_first_one_comes_waits_for_nothing_else() {
    let then = "203.0.113.90";
    let job_time = Duration::from_secs(15);
    for restarts in [false, true] {
        let mut world = world(false, Some(IP)).await;
        world.sim.set_behaviour(|behaviour| behaviour.job_time = job_time);
        let first = tokio::time::timeout(Duration::from_secs(3), world.run(WEB)).await;
        assert!(first.is_err(), "{first:?}");
        if restarts {
            world.restart().await;
        }
        world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(then));
        let run = world.run(WEB).await.settled();
        let calls = world.sim.journal().entries();
        let mut asked = calls.iter().filter(|call| call.operation == ASSOCIATE);
        let asked = asked.next_back().map(|call| call.at);
        assert!(asked < Some(job_time * 2), "restarts {restarts}: {asked:?}");
        assert!(!run.has_note("PublicIPSought"), "restarts {restarts}: {run:#?}");
        assert_eq!(run.published(), [then]);
        world.publish_at(WEB, then);
        world.run(WEB).await.settled();
        let held: Vec<String> = held(&world).iter().map(|at| at.address.to_string()).collect();
        assert_eq!((associations(&world), held), (2, vec![then.to_owned()]));
    }
}

/// Each try is an allocation on the server, whoever ends the sync that waits for its job.
#[tokio::test(start_paused = true)]
async fn an_address_whose_job_fails_is_asked_for_once_in_a_sync() {
    for requested in [None, Some(IP)] {
        let world = world(false, requested).await;
        world
            .sim
            .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(2));
        world.sim.fail_jobs(JobFault::of(ASSOCIATE).always());
        for tries in 1..4 {
            // A change of the Service ends the sync that waits for the job, and the next one hears of it.
            let ended = tokio::time::timeout(Duration::from_secs(1), world.run(WEB)).await;
            assert!(ended.is_err(), "{requested:?}: {ended:?}");
            let run = world.run(WEB).await;
            assert!(
                matches!(run.outcome, Outcome::Failed(_)),
                "{requested:?}: {run:#?}"
            );
            assert_eq!(associations(&world), tries, "{requested:?}: {run:#?}");
            tokio::time::sleep(Duration::from_secs(40)).await;
        }
        world.sim.clear_job_faults();
        tokio::time::sleep(Duration::from_secs(20)).await;
        world.run(WEB).await.settled();
        assert_eq!(held(&world).len(), 1);
    }
}
