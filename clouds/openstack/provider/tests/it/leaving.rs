//! Services that leave a load balancer which several use.

use bowline_kit::Interruption;

use crate::world::Run;
use crate::world::two;

/// However often the process is restarted meanwhile.
#[tokio::test(start_paused = true)]
async fn that_a_guest_has_left_is_told_once_with_the_write_that_ends_it() {
    for stop in 1..9 {
        let mut world = two(81).await;
        world.run("b").await.settled();
        world.remove_annotation("b", "load-balancer-id");
        let stopped = world.run_with("b", Interruption::BeforeStep(stop)).await;
        world.restart();
        let run = world.run("b").await.settled();
        let told = |run: &Run| {
            run.notes
                .iter()
                .filter(|note| note.reason == "LoadBalancerLeft")
                .count()
        };
        // Stopped right before the write that ends it, the first process has told it, too.
        let expected = match run.waves.len() {
            0 => (1, 0),
            1 => (1, 1),
            _ => (0, 1),
        };
        assert_eq!(
            (told(&stopped), told(&run)),
            expected,
            "{stop}: {stopped:#?} {run:#?}"
        );
    }
}
