//! One line in the log is one action.

use std::collections::BTreeSet;

use bowline_base::log::Log;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use tracing::Level;

use crate::world::World;
use crate::world::two;

/// The actions that were logged, without the time.
fn actions(log: &Log) -> Vec<String> {
    let lines = log.take().into_iter();
    let actions = lines.filter_map(|line| Some(line.split_once("executing action")?.1.to_owned()));
    actions.collect()
}

#[tokio::test(start_paused = true)]
async fn an_action_that_octavia_takes_at_the_third_time_is_logged_once() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let busy = r#"{"faultcode": "Client", "faultstring": "Load Balancer x is immutable and cannot be updated.", "debuginfo": null}"#;
    let fault = Fault::operation("octavia.listeners.update").times(2);
    world.sim.faults().add(fault.answer(Canned::json(409, busy)));
    let (log, _guards) = Log::listen(Level::INFO);
    for limit in ["7", "8"] {
        world.annotate("web", "connection-limit", limit);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        let sent = if limit == "7" { 3 } else { 1 };
        assert_eq!(writes.len(), sent);
        // Another change of the same listener is another action.
        assert_eq!(actions(&log).len(), 1, "{limit}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_that_waits_for_another_services_is_logged_once() {
    let world = two(81).await;
    world.run("b").await.settled();
    for name in ["web", "b"] {
        world.annotate(name, "connection-limit", "7");
        world.annotate(name, "enable-health-monitor", "true");
    }
    let (log, _guards) = Log::listen(Level::INFO);
    let (owner, guest) = tokio::join!(world.run("web"), world.run("b"));
    owner.settled();
    guest.settled();
    let actions = actions(&log);
    let once: BTreeSet<&String> = actions.iter().collect();
    assert_eq!((actions.len(), once.len()), (4, 4), "{actions:#?}");
}
