//! An association that takes effect late, and what is logged of it. The others are in `scenarios/late.scenario`.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloudstack_sim::kit::Fault;
use serde_json::json;
use tracing::Level;

use crate::world::{Outcome, WEB, World};

const IP: &str = "203.0.113.77";
const ASSOCIATE: &str = "associateIpAddress";

/// The server takes up late what was asked for, and its router takes 15 seconds for it. Eight of them are over when the address is
/// first seen on its way. How long the process has waited before that says nothing about the address.
#[tokio::test(start_paused = true)]
async fn an_address_that_has_just_begun_to_come_is_neither_tried_nor_given_back_at_once() {
    let (job_time, seen, tried) = (15, 8, 4);
    for (is_killed, after) in [(false, 52), (true, 57)] {
        for (requested, goes) in [(Some(IP), false), (Some(IP), true), (None, false), (None, true)] {
            let what = format!("killed {is_killed}, {requested:?}, goes {goes}");
            let mut world = World::with_service().await;
            world.spec(WEB, |spec| spec["loadBalancerIP"] = json!(requested));
            world
                .sim
                .set_behaviour(|behaviour| behaviour.job_time = Duration::from_secs(job_time));
            let (fault, time) = (Fault::operation(ASSOCIATE), Duration::from_secs(after));
            world.sim.faults().add(match is_killed {
                true => fault.delay(time),
                false => fault.take_effect_late(time),
            });
            if is_killed {
                let died = tokio::time::timeout(Duration::from_secs(5), world.run(WEB)).await;
                assert!(died.is_err(), "{died:?}");
                world.restart().await;
            } else {
                assert!(matches!(world.run(WEB).await.outcome, Outcome::Failed(_)));
            }
            if goes {
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
            assert_eq!(
                world.sim.journal().count_operation(ASSOCIATE),
                1,
                "{what}: {run:#?}"
            );
            if goes {
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
