//! What bears the marks of a cluster and has no Service goes, and nothing else.

use std::sync::Arc;

use bowline_cloud_provider::orphans::Standing;
use bowline_cloud_provider::{ClusterFacts, ServiceFacts};
use bowline_kit::orphans::{orphan_facts, remove_orphans, survey};
use bowline_kit::{Interruption, balanced_service, service_port};

use crate::world::World;

/// Makes a balancer for a Service of a cluster, and forgets the Service.
async fn leave_behind(world: &World, cluster: &str, key: &str, uid: &str) {
    let mut service = balanced_service(key, uid);
    service.spec.as_mut().unwrap().ports = Some(vec![service_port("TCP", 80, 30_000)]);
    world.services.put(key, service);
    let facts = || ServiceFacts {
        service: world.services.service(key),
        cluster: Arc::new(ClusterFacts {
            name: cluster.to_owned(),
            ..(*world.facts().cluster).clone()
        }),
        ..world.facts()
    };
    let run = world
        .service_loop
        .reconcile(&world.cloud, key, facts, Interruption::Never)
        .await;
    run.settled();
    world.services.forget(key);
}

fn names(world: &World) -> Vec<String> {
    let snapshot = world.sim.snapshot();
    let balancers = snapshot["balancers"].as_array().unwrap().iter();
    balancers
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn only_orphans_of_the_named_cluster_go() {
    let world = World::new(1);
    world.run().await.settled();
    for number in 0..20 {
        leave_behind(
            &world,
            "lab",
            &format!("gone/ours-{number}"),
            &format!("uid-{number}"),
        )
        .await;
        leave_behind(
            &world,
            "other",
            &format!("gone/theirs-{number}"),
            &format!("uid-other-{number}"),
        )
        .await;
        leave_behind(
            &world,
            "kubernetes",
            &format!("gone/unsaid-{number}"),
            &format!("uid-x-{number}"),
        )
        .await;
    }
    let facts = orphan_facts(Some(&world.services), &world.nodes, "lab", None);
    let (removed, others) = remove_orphans(&world.cloud, &facts).await;
    assert_eq!(removed.len(), 20);
    let of = |standing| others.iter().filter(|it| it.standing == standing).count();
    assert_eq!((of(Standing::AnotherClusters), of(Standing::Unclear)), (20, 20));
    let left = names(&world);
    assert_eq!(left.len(), 41);
    assert!(left.iter().all(|name| !name.contains("ours")), "{left:?}");
    assert!(survey(&world.cloud, &facts).await.0.is_empty());
}
