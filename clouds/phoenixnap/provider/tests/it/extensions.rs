//! What upstream does not have: without effect unless it is configured.

use crate::world::{USUAL, World};

const KEY: &str = "shop/checkout";

fn world(variable: &'static str, value: &'static str) -> World {
    let world = World::with(&[USUAL[0], USUAL[1], (variable, value)]);
    world.add(KEY);
    world
}

#[tokio::test(start_paused = true)]
async fn a_block_is_described_only_if_the_operator_says_how() {
    for (value, expected) in [
        ("", None),
        ("{namespace}/{name}", Some("shop/checkout")),
        ("  Kubernetes ", Some("Kubernetes")),
    ] {
        let world = world("PNAP_BLOCK_DESCRIPTION", value);
        world.run(KEY).await.settled();
        assert_eq!(world.sim.blocks()[0].description.as_deref(), expected, "{value}");
        let bought = world
            .sim
            .journal()
            .filter(|entry| entry.operation == "ip-blocks.create");
        let body = bought[0].body.as_ref().unwrap();
        assert_eq!(body.get("description").is_some(), expected.is_some(), "{body}");
    }
}
