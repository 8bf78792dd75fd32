//! What is said of servers and blocks, and at which verbosity: the targets of the lines decide.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bowline_cloud_provider::{ANSWER_LOG, CloudProvider as _, DATA_LOG, InstanceQuery, Node, Purpose};
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing_subscriber::fmt::MakeWriter;

use crate::world::World;

/// Everything that is written.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl Sink {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    fn count(&self, words: &str) -> usize {
        self.text().lines().filter(|line| line.contains(words)).count()
    }
}

/// Notes everything that is written as long as the guards are there.
fn listen() -> (Sink, (Dispatch, DefaultGuard)) {
    let sink = Sink::default();
    let log = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .with_ansi(false)
        .with_writer(sink.clone())
        .finish();
    // While there is but one subscriber, a line that another thread meets first is off for all of them.
    let second = Dispatch::new(NoSubscriber::default());
    (sink, (second, set_default(log)))
}

#[tokio::test(start_paused = true)]
async fn what_was_found_of_servers_and_blocks_is_told_once_in_short_and_once_whole() {
    let (sink, _while_it_lasts) = listen();
    let world = World::with_service();
    let id = world.sim.add_server(ServerSpec::new("n1"));
    world.run("shop/checkout").await.settled();
    world.run("shop/checkout").await.settled();
    let node = |id: &str| InstanceQuery {
        node: Arc::new(Node {
            provider_id: Some(format!("phoenixnap://{id}").into()),
            ..Node::named("n1")
        }),
        purpose: Purpose::Existence,
    };
    let instances = world.cloud.instances().unwrap();
    for id in [id.as_str(), "gone"] {
        assert!(instances.instances(&[node(id)]).await[0].is_ok());
    }
    let text = sink.text();
    let has = |target: &str, words: &[&str]| {
        text.lines()
            .any(|line| line.contains(target) && words.iter().all(|word| line.contains(word)))
    };
    let block = world.sim.blocks()[0].id.clone();
    assert!(
        has(ANSWER_LOG, &["IP blocks of a service", "shop/checkout", &block]),
        "{text}"
    );
    assert!(
        has(DATA_LOG, &["IP blocks of a service", "/29", &block]),
        "{text}"
    );
    assert!(has(ANSWER_LOG, &["Server of a node", "n1", &id]), "{text}");
    assert!(
        has(DATA_LOG, &["Server of a node", "public_ip_addresses", &id]),
        "{text}"
    );
    assert!(has(ANSWER_LOG, &["is gone", "n1"]), "{text}");
    assert!(!text.contains("Tz81-secret"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn entries_that_cannot_be_read_are_told_of_when_their_number_changes() {
    let (sink, _while_it_lasts) = listen();
    let world = World::new();
    let mut told = Vec::new();
    for entries in ["[null]", "[null]", "[null,null]", "[]", "[null]", "[null]"] {
        let list = Fault::operation("ip-blocks.list").always();
        let list = world.sim.faults().add(list.answer(Canned::json(200, entries)));
        world.sweep().await;
        told.push(sink.count("Entries of a list cannot be read"));
        world.sim.faults().remove(list);
    }
    assert_eq!(told, [1, 1, 2, 2, 3, 3], "{}", sink.text());
}

#[tokio::test(start_paused = true)]
async fn a_network_that_cannot_be_read_is_told_of_once_until_it_could_be() {
    let (sink, _while_it_lasts) = listen();
    let world = World::new();
    let mut told = Vec::new();
    for fails in [true, true, false, true, true] {
        world.sim.faults().clear();
        if fails {
            let reading = Fault::operation("public-networks.read").always();
            world.sim.faults().add(reading.status(403));
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        world.watch().await;
        told.push(sink.count("The public network of Services cannot be read"));
    }
    assert_eq!(told, [1, 1, 1, 2, 2], "{}", sink.text());
}
