//! What people asked for beyond the Go manager: the address by annotation, an address that is kept, `ipMode`.

use serde_json::json;

use crate::world::{WEB, World};

#[tokio::test(start_paused = true)]
async fn a_change_that_the_server_ignores_is_an_error_and_not_made_for_ever() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let rules: Vec<_> = world.sim.rules();
    world.spec(WEB, |spec| spec["sessionAffinity"] = json!("ClientIP"));
    let sim = world.sim.clone();
    let undo = async {
        for _ in 0..1_000 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            for rule in &rules {
                sim.edit_rule(&rule.id, |known| known.algorithm.clone_from(&rule.algorithm));
            }
        }
    };
    let (run, ()) = tokio::join!(world.run(WEB), undo);
    assert!(
        run.complaint().contains("is not as it was written"),
        "{}",
        run.complaint()
    );
    world.run(WEB).await.settled();
    assert_eq!(world.rule("tcp-443").algorithm, "source");
}
