//! What bears the marks of a cluster and has no Service goes, and nothing else.

use std::collections::BTreeSet;

use bowline_cloud_provider::keys::FINALIZER_LOAD_BALANCER;
use bowline_cloud_provider::orphans::{Found, OrphanFacts, Standing};
use bowline_cloudscale_sim::Tags;
use bowline_kit::orphans::{orphan_facts, remove_orphans, survey};
use uuid::Uuid;

use crate::world::{World, service};

const GONE: &str = "uid-gone";

/// A cluster with a Service `web` that is served.
async fn cluster() -> World {
    let world = World::with_nodes(1);
    world.put(service("kubernetes", &[]));
    world.edit("kubernetes", |service| {
        service.spec.as_mut().unwrap().type_ = Some("ClusterIP".into());
    });
    world.run("web").await.settled();
    world
}

fn facts(world: &World) -> OrphanFacts {
    orphan_facts(Some(&world.services), &world.nodes, &world.cluster_name, None)
}

fn add(world: &World, name: &str, tags: &[(&str, &str)]) -> Uuid {
    let tags = tags
        .iter()
        .map(|(key, value)| (format!("k8s-{key}"), (*value).to_owned()));
    world.sim.add_load_balancer(name, tags.collect::<Tags>())
}

/// The marks of a Service that is gone, of the cluster with this UID.
fn marks<'a>(uid: &'a str, cluster: &'a str) -> [(&'static str, &'a str); 3] {
    [
        ("service-uid", uid),
        ("service-name", "shop/gone"),
        ("cluster-uid", cluster),
    ]
}

fn ids(world: &World) -> BTreeSet<Uuid> {
    world.sim.load_balancers().iter().map(|it| it.uuid).collect()
}

#[tokio::test(start_paused = true)]
async fn among_hundreds_of_objects_only_orphans_of_this_cluster_go() {
    let world = cluster().await;
    let mut orphans = BTreeSet::new();
    for number in 0..50 {
        let uid = format!("{GONE}-{number}");
        let other = format!("{uid}-elsewhere");
        orphans.insert(add(&world, "edge", &marks(&uid, "uid-kubernetes")));
        add(&world, &format!("web-{number}"), &[]);
        add(&world, "by-hand", &[("team", "blue")]);
        add(&world, "elsewhere", &marks(&other, "uid-of-another"));
        add(&world, &format!("k8s-service-{other}"), &[]);
        add(&world, "unsaid", &[("service-uid", &other)]);
        add(&world, "clusterless", &[("cluster-uid", "uid-kubernetes")]);
    }
    // A copy of a load balancer of this cluster: what bears the same UID of a Service is spared with it.
    add(&world, "copy", &marks("uid-twin", "uid-of-another"));
    add(&world, "twin", &marks("uid-twin", "uid-kubernetes"));
    let before = ids(&world);
    let (found, others) = remove_orphans(&world.cloud, &facts(&world)).await;
    let found: BTreeSet<String> = found.iter().map(|it| it.id.clone()).collect();
    assert_eq!(found, orphans.iter().map(Uuid::to_string).collect());
    assert_eq!(ids(&world), &before - &orphans);
    assert!(others.iter().all(|it| it.standing != Standing::Orphan));
    let of_another = others
        .iter()
        .filter(|it| it.standing == Standing::AnotherClusters);
    assert_eq!(of_another.count(), 51);
}

/// What another Service than its own keeps from being an orphan is told, with that Service: nothing is spared silently.
#[tokio::test(start_paused = true)]
async fn what_a_living_service_names_or_publishes_is_no_orphan_and_is_told_unless_it_is_in_use() {
    let world = cluster().await;
    let named = add(&world, "named", &marks("uid-before", "uid-kubernetes"));
    world.put(service("other", &[("web", "TCP", 8080, 31300)]));
    world.annotate("other", "uuid", &named.to_string());
    let shown = add(&world, "shown", &marks("uid-older", "uid-kubernetes"));
    let balancers = world.sim.load_balancers();
    let shown = balancers.iter().find(|it| it.uuid == shown).unwrap();
    let address = shown.vips[0].address.to_string();
    world.put(service("third", &[("web", "TCP", 8080, 31400)]));
    world.edit("third", |service| {
        let ingress = serde_json::json!({ "loadBalancer": { "ingress": [{ "ip": address }] } });
        service.status = Some(serde_json::from_value(ingress).unwrap());
    });
    let left = add(&world, "left", &marks("uid-left", "uid-kubernetes"));
    world.put(service("former", &[("web", "TCP", 8080, 31500)]));
    world.annotate("former", "uuid", &left.to_string());
    world.edit("former", |service| {
        service.spec.as_mut().unwrap().type_ = Some("ClusterIP".into());
    });
    world.put(service("leaving", &[("web", "TCP", 8080, 31600)]));
    world.run("leaving").await.settled();
    world.edit("leaving", |service| {
        service.metadata.finalizers = Some(vec![FINALIZER_LOAD_BALANCER.to_owned()]);
        service.metadata.deletion_timestamp = Some("2026-02-03T08:15:00Z".parse().unwrap());
    });
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(orphans.is_empty(), "{orphans:#?}");
    let why = |standing, id: &str| {
        let of_it = |it: &&Found| it.standing == standing && (it.id == id || id.is_empty());
        others.iter().find(of_it).map(|it| it.why.clone())
    };
    let why_shown = why(Standing::Unclear, &shown.uuid.to_string());
    let expected = format!("Service default/third shows its address {address}");
    assert!(why_shown.is_some_and(|it| it.contains(&expected)), "{others:#?}");
    let why_left = why(Standing::Unclear, &left.to_string());
    let expected = "Service default/former, which asks for no load balancer, names it";
    assert!(why_left.is_some_and(|it| it.contains(expected)), "{others:#?}");
    let why_held = why(Standing::Held, "");
    let expected = "is being deleted since 2026-02-03T08:15:00Z";
    assert!(why_held.is_some_and(|it| it.contains(expected)), "{others:#?}");
    assert_eq!(others.len(), 3, "{others:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_gone_is_known_by_its_name_or_its_uid() {
    let world = cluster().await;
    let named = |uid, cluster, name| {
        let marks = marks(uid, cluster);
        add(&world, "edge", &[&marks[..], &[("cluster-name", name)]].concat())
    };
    let old = named("uid-a", "uid-old", "old");
    let renamed = named("uid-b", "uid-new", "new");
    let gone = |name, uid| orphan_facts(None, &[], name, uid);
    let orphans = async |facts: OrphanFacts| {
        let (orphans, _) = survey(&world.cloud, &facts).await;
        orphans
            .into_iter()
            .flat_map(|(orphans, _)| orphans)
            .map(|it| it.id)
            .collect::<Vec<_>>()
    };
    assert_eq!(orphans(gone("old", None)).await, [old.to_string()]);
    assert_eq!(
        orphans(gone("kubernetes", Some("uid-new"))).await,
        [renamed.to_string()]
    );
    assert_eq!(orphans(gone("kubernetes", None)).await, [""; 0]);
    // Two clusters of one name are told apart by their UIDs alone.
    let twin = named("uid-c", "uid-older", "old");
    assert_eq!(orphans(gone("old", None)).await, [""; 0]);
    assert_eq!(orphans(gone("old", Some("uid-older"))).await, [twin.to_string()]);
    let before = ids(&world);
    remove_orphans(&world.cloud, &gone("old", Some("uid-older"))).await;
    assert_eq!(ids(&world), &before - &BTreeSet::from([twin]));
}
