//! What a plan says would be published.

use bowline_cloud_provider::CloudProvider as _;
use bowline_cloud_provider::plan::ReportedOutcome;
use bowline_kit::{Outcome, predict};

use crate::world::{World, service};

#[tokio::test(start_paused = true)]
async fn a_plan_for_a_balancer_that_was_deleted_by_hand_publishes_what_the_cloud_chooses() {
    let world = World::with_nodes(1);
    world.put(service("web", &[("http", "TCP", 80, 30080)]));
    let Outcome::Settled(status) = world.run("web").await.outcome else {
        panic!("it is not served");
    };
    world.services.publish("web", &status);
    let uuid = world.annotation("web", "uuid").unwrap();
    world.sim.delete_load_balancer(uuid.parse().unwrap());
    let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
    let ReportedOutcome::Settled { publishes } = &report.outcome else {
        panic!("{report:#?}");
    };
    assert_eq!(*publishes, ["the address that the cloud assigns"]);
    assert!(
        report.headline().contains("clients have to follow"),
        "{report:#?}"
    );
}
