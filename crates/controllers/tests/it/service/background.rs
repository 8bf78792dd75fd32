//! Work of a provider that belongs to no single Service.

use bowline_base::log::Log;
use bowline_cloud_provider::plan::Note;
use bowline_cloud_provider::{CloudError, ErrorKind};
use tracing::Level;

use super::seconds;
use super::world::World;

fn runs(world: &World) -> usize {
    world.cloud.state.lock().unwrap().sweeps
}

#[tokio::test(start_paused = true)]
async fn it_begins_a_period_after_the_loop_and_comes_back() {
    let world = World::running(&["a"]).await;
    world.pass(seconds(29)).await;
    assert_eq!(runs(&world), 0);
    world.pass(seconds(2)).await;
    assert_eq!(runs(&world), 1);
    world.pass(seconds(60)).await;
    assert_eq!(runs(&world), 3);
}

#[tokio::test(start_paused = true)]
async fn it_begins_when_it_says_and_comes_back_after_its_period() {
    let world = World::new_with(&["a"], |cloud| cloud.first_sweep = Some(seconds(2)));
    world.pass(seconds(1)).await;
    assert_eq!(runs(&world), 0);
    world.pass(seconds(2)).await;
    assert_eq!(runs(&world), 1);
    world.pass(seconds(28)).await;
    assert_eq!(runs(&world), 1);
    world.pass(seconds(2)).await;
    assert_eq!(runs(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn it_runs_at_once_when_a_balancer_was_removed() {
    let (world, _) = World::serving(&["a"]).await;
    world.pass(seconds(5)).await;
    assert_eq!(runs(&world), 0);
    world.delete("web");
    world.pass(seconds(2)).await;
    assert_eq!(runs(&world), 1);
}

/// By the schedule it would be tried again after five minutes, in which somebody else may take the place.
#[tokio::test(start_paused = true)]
async fn a_removal_ends_the_pause_of_those_that_were_refused_for_want_of_room_and_of_no_others() {
    for (kind, is_made) in [(ErrorKind::Exhausted, true), (ErrorKind::Invalid, false)] {
        let (world, _) = World::serving(&["a"]).await;
        let refused = (0..50).map(|_| CloudError::new(kind, "no room"));
        world.set(|cloud| cloud.write_errors.extend(refused));
        let uid = world.add_service("late");
        world.pass(seconds(165)).await;
        assert_eq!(world.calls("create(late)"), 6, "{kind:?}");
        world.set(|cloud| cloud.write_errors.clear());
        world.delete("web");
        world.pass(seconds(10)).await;
        assert_eq!(world.balancer(&uid).is_some(), is_made, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_had_nothing_to_write_wakes_nobody() {
    let (world, uid) = World::serving(&["a"]).await;
    world.set(|cloud| {
        cloud.balancers.remove(&uid);
    });
    world.delete("web");
    world.pass(seconds(5)).await;
    assert!(world.service("web").is_none());
    assert_eq!(runs(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn what_holds_for_many_runs_is_said_once_and_again_after_it_had_ended() {
    let (log, _while_it_lasts) = Log::listen(Level::WARN);
    let world = World::running(&["a"]).await;
    let says = |text: Option<&str>| {
        let note = text.map(|text| Note::warning("Orphan", text));
        world.set(|cloud| cloud.sweep_note = note);
    };
    says(Some("block 7 is nobody's"));
    world.pass(seconds(150)).await;
    assert!(runs(&world) >= 4);
    assert_eq!(log.count("block 7 is nobody's"), 1);
    says(None);
    world.pass(seconds(35)).await;
    says(Some("block 7 is nobody's"));
    world.pass(seconds(70)).await;
    assert_eq!(log.count("block 7 is nobody's"), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_about_a_service_is_an_event_of_that_one() {
    let (world, _) = World::serving(&["a"]).await;
    let note = Note::warning("Surplus", "two blocks").about("default/web");
    world.set(|cloud| cloud.sweep_note = Some(note));
    world.pass(seconds(95)).await;
    let told = world.reasons("web");
    assert_eq!(
        told.iter().filter(|reason| *reason == "Surplus").count(),
        1,
        "{told:?}"
    );
}

/// By itself it would be looked at after ten minutes.
#[tokio::test(start_paused = true)]
async fn what_is_about_a_service_has_it_looked_at_once() {
    let (world, _) = World::serving(&["a"]).await;
    world.pass(seconds(20)).await;
    let calls = world.calls("");
    world.pass(seconds(95)).await;
    assert_eq!(world.calls(""), calls);
    let note = Note::warning("Surplus", "two blocks").about("default/web");
    world.set(|cloud| cloud.sweep_note = Some(note));
    world.pass(seconds(95)).await;
    assert_eq!(world.calls(""), calls + 1);
}
