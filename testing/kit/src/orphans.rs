//! The command `orphans` without a program.

use std::sync::Arc;

use bowline_cloud_provider::CloudProvider;
use bowline_cloud_provider::orphans::{Found, GoneCluster, OrphanFacts};
use bowline_cloud_provider::{ClusterFacts, Node};
use bowline_drive::orphans::{Planned, Removal, find};
use bowline_drive::{Driven, Lanes};
use jiff::Timestamp;

use crate::{MAX_WAITS, Services};

/// The facts about a cluster with these Services; about one that is gone without any.
#[must_use]
pub fn orphan_facts(
    services: Option<&Services>,
    nodes: &[Arc<Node>],
    name: &str,
    uid: Option<&str>,
) -> OrphanFacts {
    let uid = uid.map(str::to_owned);
    OrphanFacts {
        services: match services {
            Some(services) => Arc::new(services.clone()),
            None => Arc::new(GoneCluster(uid.clone())),
        },
        nodes: Arc::from(nodes),
        cluster: Arc::new(ClusterFacts {
            name: name.to_owned(),
            uid,
            server_version: None,
            holder: "test".to_owned(),
        }),
        now: Timestamp::UNIX_EPOCH,
    }
}

/// What is found: orphans with their plans, and what stays.
///
/// # Panics
///
/// If the cloud cannot be read.
pub async fn survey(cloud: &dyn CloudProvider, facts: &OrphanFacts) -> (Vec<Planned>, Vec<Found>) {
    let found = find(&cloud.load_balancer().unwrap(), facts, std::future::pending).await;
    let (planned, others, _) = found.unwrap();
    (planned, others)
}

/// Finds all orphans, and removes them. Gives what was found.
///
/// # Panics
///
/// If one of them is not gone afterwards.
pub async fn remove_orphans(cloud: &dyn CloudProvider, facts: &OrphanFacts) -> (Vec<Found>, Vec<Found>) {
    let load_balancer = cloud.load_balancer().unwrap();
    let (planned, others) = survey(cloud, facts).await;
    let lanes = Lanes::default();
    for (orphans, _) in &planned {
        let mut removal = Removal::begin(&load_balancer, &orphans[0], facts).unwrap();
        let mut waits = 0..MAX_WAITS;
        loop {
            match removal.go_on(&lanes).await.unwrap() {
                Driven::Settled(..) => break,
                Driven::Wait { after, .. } if waits.next().is_some() => tokio::time::sleep(after).await,
                driven => panic!("{orphans:#?}: {driven:?}"),
            }
        }
    }
    (
        planned.into_iter().flat_map(|(orphans, _)| orphans).collect(),
        others,
    )
}
