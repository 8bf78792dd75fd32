//! What bears the name of a cluster and has no Service goes, and nothing else.

use std::collections::BTreeSet;

use bowline_cloud_provider::orphans::{OrphanFacts, Standing};
use bowline_kit::orphans::{orphan_facts, remove_orphans, survey};
use bowline_openstack_sim::{Id, Provisioning};

use crate::world::{World, lb_name, service};

fn facts(world: &World) -> OrphanFacts {
    orphan_facts(Some(&world.services), &world.nodes, &world.cluster_name, None)
}

fn ids(world: &World) -> BTreeSet<Id> {
    world.sim.load_balancers().iter().map(|it| it.part.id).collect()
}

/// The Service from whose UID a cluster is known.
fn put_cluster(world: &World, uid: &str) {
    let mut service = service("kubernetes", &[("TCP", 443, 0)]);
    service.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
    world.put_as(uid, service);
}

/// A load balancer of the Service `default/NAME` of a cluster, as a Go manager makes it.
fn add(world: &World, cluster: &str, service: &str) -> Id {
    let name = format!("kube_service_{cluster}_default_{service}");
    world.sim.add_load_balancer(&name, vec![name.clone()])
}

/// A cluster with a Service `web` that is served, and one that was and is gone without its finalizer.
async fn cluster() -> (World, Id) {
    let world = World::with_nodes(1);
    put_cluster(&world, "a-cluster");
    world.run("web").await.settled();
    let before = ids(&world);
    world.put(service("gone", &[("TCP", 80, 30090)]));
    world.run("gone").await.settled();
    world.services.forget("gone");
    let orphan = (&ids(&world) - &before).into_iter().next().unwrap();
    (world, orphan)
}

#[tokio::test(start_paused = true)]
async fn among_hundreds_of_load_balancers_only_orphans_of_this_cluster_go() {
    let (world, orphan) = cluster().await;
    let mut orphans = BTreeSet::from([orphan]);
    for number in 0..40 {
        let name = format!("gone-{number}");
        if number % 10 == 0 {
            orphans.insert(add(&world, "lab", &name));
        }
        add(&world, "lab2", &name);
        add(&world, "kubernetes", &name);
        world.sim.add_load_balancer(&format!("web-{number}"), Vec::new());
        world
            .sim
            .add_load_balancer("by-hand", vec![lb_name(&format!("guest-{number}"))]);
        // Another Service's tag is on it.
        let shared = lb_name(&format!("shared-{number}"));
        world
            .sim
            .add_load_balancer(&shared, vec![shared.clone(), lb_name("web")]);
    }
    let before = ids(&world);
    let floating = world.sim.floating_ips().len();
    let (found, others) = remove_orphans(&world.cloud, &facts(&world)).await;
    let found: BTreeSet<String> = found.into_iter().map(|it| it.id).collect();
    assert_eq!(found, orphans.iter().map(ToString::to_string).collect());
    assert_eq!(ids(&world), &before - &orphans);
    // With the one that had a floating IP that goes too.
    assert_eq!(world.sim.floating_ips().len(), floating - 1);
    let of = |standing| others.iter().filter(|it| it.standing == standing).count();
    assert_eq!(
        (
            of(Standing::AnotherClusters),
            of(Standing::Persons),
            of(Standing::Unclear)
        ),
        (40, 40, 80)
    );
}

#[tokio::test(start_paused = true)]
async fn of_two_clusters_of_one_name_the_pools_tell_whose_a_load_balancer_is() {
    let (world, orphan) = cluster().await;
    let other = world.another_cluster();
    put_cluster(&other, "another-cluster");
    other.put_as("uid-theirs", service("theirs", &[("TCP", 80, 31080)]));
    other.run("theirs").await.settled();
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    let orphans: Vec<String> = orphans
        .into_iter()
        .flat_map(|(found, _)| found)
        .map(|it| it.id)
        .collect();
    assert_eq!(orphans, [orphan.to_string()]);
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].standing, Standing::AnotherClusters);
    // Both are gone: the name tells nothing.
    let gone = orphan_facts(None, &[], "lab", None);
    assert!(survey(&world.cloud, &gone).await.0.is_empty());
    let gone = orphan_facts(None, &[], "lab", Some("another-cluster"));
    let (orphans, _) = survey(&world.cloud, &gone).await;
    assert_eq!(orphans.len(), 1);
    let before = ids(&world);
    remove_orphans(&world.cloud, &gone).await;
    assert_eq!((&before - &ids(&world)).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_living_service_names_is_no_orphan() {
    let (world, orphan) = cluster().await;
    world.put(service("heir", &[("TCP", 80, 30100)]));
    world.annotate("heir", "load-balancer-id", &orphan.to_string());
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    assert!(
        orphans.is_empty() && others.is_empty(),
        "{orphans:#?} {others:#?}"
    );
}

/// The load balancer has the name of the one that is gone, and a living Service uses it too.
#[tokio::test(start_paused = true)]
async fn what_a_service_left_on_a_load_balancer_that_others_use_goes_and_the_load_balancer_stays() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.manages_security_groups = true);
    put_cluster(&world, "a-cluster");
    world.put(service("gone", &[("TCP", 81, 30090)]));
    world.run("gone").await.settled();
    let shared = world.sim.load_balancers()[0].part.id;
    world.annotate("web", "load-balancer-id", &shared.to_string());
    world.run("web").await.settled();
    world.services.forget("gone");
    let (found, others) = remove_orphans(&world.cloud, &facts(&world)).await;
    let kinds: Vec<&str> = found.iter().map(|it| it.kind).collect();
    assert_eq!((kinds, others), (vec!["pool", "security group"], Vec::new()));
    assert!(
        found[0]
            .why
            .starts_with("the words on it name Service default/gone"),
        "{}",
        found[0].why
    );
    assert_eq!(ids(&world), BTreeSet::from([shared]));
    let ports: Vec<u16> = world.sim.listeners().iter().map(|it| it.port).collect();
    assert_eq!(ports, [80]);
    assert_eq!(world.sim.pools().len(), 1);
    world.assert_settled("web").await;
}

/// One that stays so, as after a crash of a worker of Octavia, blocks its address and its name for good.
#[tokio::test(start_paused = true)]
async fn what_octavia_is_deleting_is_listed_as_going_and_is_no_orphan() {
    let (world, orphan) = cluster().await;
    world.sim.set_provisioning(orphan, Provisioning::PendingDelete);
    let (orphans, others) = survey(&world.cloud, &facts(&world)).await;
    let going: Vec<_> = others.iter().map(|it| (it.id.clone(), it.standing)).collect();
    assert_eq!(going, [(orphan.to_string(), Standing::Deleting)]);
    assert!(
        others[0].made.is_some() && others[0].why.contains("PENDING_DELETE"),
        "{others:?}"
    );
    assert!(orphans.is_empty(), "{orphans:?}");
}

#[tokio::test(start_paused = true)]
async fn that_a_load_balancer_without_pools_is_an_orphan_its_name_alone_tells() {
    let world = World::with_nodes(1);
    add(&world, "lab", "gone");
    let (orphans, _) = survey(&world.cloud, &facts(&world)).await;
    let why = &orphans[0].0[0].why;
    assert!(
        why.starts_with("the words of its name name Service default/gone"),
        "{why}"
    );
}
