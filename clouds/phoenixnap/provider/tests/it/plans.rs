//! What a plan shows to people.

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::plan::ReportedOutcome;
use bowline_kit::predict;

use crate::world::World;

const KEY: &str = "shop/checkout";

#[tokio::test(start_paused = true)]
async fn a_plan_shows_no_address_that_it_made_up() {
    let world = World::with_service();
    let facts = world.facts(KEY, world.now());
    let report = predict(world.cloud.load_balancer().unwrap(), facts).await;
    let ReportedOutcome::Settled { publishes } = &report.outcome else {
        panic!("{report:#?}");
    };
    assert_eq!(*publishes, ["an address of the block that is bought"]);
    let words = report.in_words();
    assert!(
        words.iter().any(|it| it.starts_with("attach IP block <new> to ")),
        "{words:?}"
    );
    let has_numbers = |it: &String| it.contains("192.0.2.") || it.contains("0.0.0.");
    assert!(!words.iter().any(has_numbers), "{words:?}");
}
