//! What is predicted is what is made.

use bowline_cloud_provider::CloudProvider;
use bowline_kit::faults::Disturbed;
use bowline_kit::predicted_kinds;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn the_writes_made_are_those_that_were_predicted_in_that_order() {
    for (name, change) in World::changes() {
        let world = World::before(change).await;
        let balancers = world.cloud.load_balancer().unwrap();
        let predicted = predicted_kinds(balancers, world.facts("web"));
        let (predicted, writes) = world.writes_of(predicted).await;
        assert!(writes.is_empty(), "{name}");
        let run = world.run("web").await.settled();
        assert_eq!(run.kinds_of_steps(), predicted, "{name}");
    }
}
