//! What is said of servers and blocks, and at which verbosity: the targets of the lines decide.

use std::sync::Arc;
use std::time::Duration;

use bowline_base::log::Log;
use bowline_cloud_provider::{
    ANSWER_LOG, CloudProvider as _, DATA_LOG, InstanceAnswer, InstanceQuery, Node, Purpose, Readiness, Taint,
    TaintEffect, keys,
};
use bowline_phoenixnap_sim::ServerSpec;
use bowline_phoenixnap_sim::kit::Fault;
use bowline_phoenixnap_sim::kit::faults::Canned;
use tracing::Level;

use crate::world::World;

#[tokio::test(start_paused = true)]
async fn what_was_found_of_servers_and_blocks_is_told_once_in_short_and_once_whole() {
    let (log, _while_it_lasts) = Log::listen(Level::DEBUG);
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
    let text = log.text();
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

/// Of one with the taint the node controller tells, for all clouds.
#[tokio::test(start_paused = true)]
async fn a_node_of_another_cloud_is_told_of_once_when_it_is_not_ready_and_as_no_error() {
    let (log, _while_it_lasts) = Log::listen(Level::DEBUG);
    let world = World::new();
    let told = "The node is left alone";
    let new = Taint {
        key: keys::TAINT_UNINITIALIZED.to_owned(),
        value: None,
        effect: TaintEffect::NoSchedule,
        time_added: None,
    };
    let (lost, ready) = (Readiness::Unknown, Readiness::Ready);
    for (purpose, readiness, taint, expected) in [
        (Purpose::Metadata, lost, None, 0),
        (Purpose::Metadata, lost, Some(new.clone()), 0),
        (Purpose::Existence, lost, Some(new), 0),
        (Purpose::Existence, lost, None, 1),
        (Purpose::Metadata, lost, None, 1),
        (Purpose::Existence, lost, None, 1),
        (Purpose::CredentialCheck, ready, None, 1),
        (Purpose::Existence, lost, None, 2),
    ] {
        let node = Arc::new(Node {
            provider_id: Some("openstack:///abc".into()),
            taints: taint.into_iter().collect(),
            readiness,
            ..Node::named("w1")
        });
        let query = InstanceQuery { node, purpose };
        let what = format!("{query:?}");
        let answers = world.cloud.instances().unwrap().instances(&[query]).await;
        assert_eq!(answers, [Ok(InstanceAnswer::Foreign)]);
        assert_eq!(log.count(told), expected, "{what}: {}", log.text());
    }
    let text = log.text();
    let line = text.lines().find(|line| line.contains(told)).unwrap();
    for words in [
        " INFO ",
        "w1",
        "provider name from providerID should be phoenixnap: openstack:///abc",
    ] {
        assert!(line.contains(words), "{words}: {line}");
    }
}

#[tokio::test(start_paused = true)]
async fn entries_that_cannot_be_read_are_told_of_when_their_number_changes() {
    let (log, _while_it_lasts) = Log::listen(Level::DEBUG);
    let world = World::new();
    let mut told = Vec::new();
    for entries in ["[null]", "[null]", "[null,null]", "[]", "[null]", "[null]"] {
        let list = Fault::operation("ip-blocks.list").always();
        let list = world.sim.faults().add(list.answer(Canned::json(200, entries)));
        world.sweep().await;
        told.push(log.count("Entries of a list cannot be read"));
        world.sim.faults().remove(list);
    }
    assert_eq!(told, [1, 1, 2, 2, 3, 3], "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn why_a_network_cannot_be_read_is_told_once_until_it_could_be_or_another_reason_holds() {
    let (log, _while_it_lasts) = Log::listen(Level::DEBUG);
    let world = World::new();
    let mut told = Vec::new();
    for failure in [
        Some(403),
        Some(403),
        None,
        Some(403),
        Some(403),
        Some(500),
        Some(403),
    ] {
        world.sim.faults().clear();
        if let Some(status) = failure {
            let reading = Fault::operation("public-networks.read").always();
            world.sim.faults().add(reading.status(status));
        }
        tokio::time::sleep(Duration::from_secs(3600)).await;
        world.watch().await;
        told.push(log.count("The public network of Services cannot be read"));
    }
    assert_eq!(told, [1, 1, 1, 2, 2, 3, 4], "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_the_network_takes_at_the_fourth_time_is_logged_once() {
    let world = World::with_service();
    let busy = Canned::json(409, r#"{"message":"The network is BUSY."}"#);
    let fault = Fault::operation("public-networks.attach").times(3);
    world.sim.faults().add(fault.answer(busy));
    let reading = Fault::operation("public-networks.read").always();
    world.sim.faults().add(reading.status(404));
    let (log, _while_it_lasts) = Log::listen(Level::INFO);
    let run = world.run("shop/checkout").await.settled();
    let is_attachment = |step: &&str| step.starts_with("attach");
    assert_eq!(
        run.steps().into_iter().filter(is_attachment).count(),
        4,
        "{run:#?}"
    );
    assert_eq!(
        log.count("executing action"),
        run.steps().len() - 3,
        "{}",
        log.text()
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_of_the_sweeper_without_an_answer_is_logged_as_unknown_and_a_refused_one_as_not_taken() {
    for (fault, outcome) in [
        (Fault::write().lose_answer(), "unknown"),
        (Fault::write().status(403), "not taken"),
    ] {
        let world = World::with_service();
        world.run("shop/checkout").await.settled();
        world.delete("shop/checkout");
        world.run("shop/checkout").await.settled();
        world.forget("shop/checkout");
        world.sim.faults().add(fault);
        let (log, _while_it_lasts) = Log::listen(Level::DEBUG);
        world.sweep().await;
        let expected = format!("outcome=\"{outcome}\"");
        assert_eq!(log.count(&expected), 1, "{outcome}: {}", log.text());
    }
}
