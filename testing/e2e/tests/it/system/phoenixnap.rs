//! phoenixNAP with a whole manager. What every cloud must do is in the conformance suite; what one Service or Node leads
//! to is tested beside the provider.

mod metrics;
mod services;
mod takeover;

use std::time::Duration;

use bowline_conformance::cloud::{CloudUnderTest as _, FINALIZER, SECOND, Since, service, web};
use bowline_conformance::clouds::Phoenixnap;
use bowline_phoenixnap_sim::BlockSpec;
use bowline_phoenixnap_sim::kit::Fault;
use serde_json::{Value, json};

type World = bowline_conformance::cloud::World<Phoenixnap>;

const NETWORK: &str = Phoenixnap::NETWORK;

/// A manager with nothing to do yet.
async fn idle() -> World {
    let mut world = World::new();
    world.start();
    world.rest().await;
    world
}

/// A manager with the Service `web`, which has its address.
async fn settled() -> World {
    let world = idle().await;
    world.apply(web());
    world.settled("web").await;
    world
}

/// The same manager with another environment.
fn world_with(variables: &[(&str, &str)]) -> World {
    let mut sim = Phoenixnap::new(7);
    for (variable, value) in variables {
        sim.set(variable, value);
    }
    World::over(sim, 7)
}

fn cluster(world: &World) -> String {
    let namespace = world.api.object("Namespace", "", "kube-system").unwrap();
    namespace["metadata"]["uid"].as_str().unwrap().to_owned()
}

/// The names of the calls, those by the clock left aside.
fn calls(world: &World, since: Since) -> Vec<String> {
    world
        .calls(since)
        .into_iter()
        .map(|call| call.operation)
        .collect()
}

/// The block of a Service that was marked and not yet taken away.
fn marked(world: &World) -> Vec<String> {
    let blocks = world.sim.blocks();
    let marked = blocks.into_iter().filter(|block| block.has_tag("delete", None));
    marked.map(|block| block.id).collect()
}
