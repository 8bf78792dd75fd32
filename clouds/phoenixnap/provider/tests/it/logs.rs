//! What is said of servers and blocks, and at which verbosity: the targets of the lines decide.

use std::sync::Arc;

use bowline_base::log::Log;
use bowline_cloud_provider::{
    CloudProvider as _, InstanceAnswer, InstanceQuery, Node, Purpose, Readiness, Taint, TaintEffect, keys,
};
use tracing::Level;

use crate::world::World;

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
