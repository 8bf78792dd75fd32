//! Work of a provider that belongs to no single Service.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::plan::Note;

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
async fn it_runs_at_once_when_a_balancer_was_removed() {
    let world = World::running(&["a"]).await;
    world.add_service("web");
    world.settled("web").await;
    world.pass(seconds(5)).await;
    assert_eq!(runs(&world), 0);
    world.api.delete("Service", "default", "web");
    world.pass(seconds(2)).await;
    assert_eq!(runs(&world), 1);
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_had_nothing_to_write_wakes_nobody() {
    let world = World::running(&["a"]).await;
    let uid = world.add_service("web");
    world.settled("web").await;
    world.cloud.set(|cloud| {
        cloud.balancers.remove(&uid);
    });
    world.api.delete("Service", "default", "web");
    world.pass(seconds(5)).await;
    assert!(world.service("web").is_none());
    assert_eq!(runs(&world), 0);
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn lines_with(&self, text: &str) -> usize {
        let log = self.0.lock().unwrap();
        String::from_utf8_lossy(&log)
            .lines()
            .filter(|line| line.contains(text) && line.contains("WARN"))
            .count()
    }
}

#[tokio::test(start_paused = true)]
async fn what_holds_for_many_runs_is_said_once_and_again_after_it_had_ended() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .finish();
    let _logged = tracing::subscriber::set_default(subscriber);
    let world = World::running(&["a"]).await;
    let says = |text: Option<&str>| {
        let note = text.map(|text| Note::warning("Orphan", text));
        world.cloud.set(|cloud| cloud.sweep_note = note);
    };
    says(Some("block 7 is nobody's"));
    world.pass(seconds(150)).await;
    assert!(runs(&world) >= 4);
    assert_eq!(log.lines_with("block 7 is nobody's"), 1);
    says(None);
    world.pass(seconds(35)).await;
    says(Some("block 7 is nobody's"));
    world.pass(seconds(70)).await;
    assert_eq!(log.lines_with("block 7 is nobody's"), 2);
}
