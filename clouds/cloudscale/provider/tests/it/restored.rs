//! A balancer that serves a restored Service bears the mark of the one that it was made for, which is gone.

use bowline_cloud_provider::plan::Answer;
use bowline_cloud_provider::{CloudProvider, ask_all};
use bowline_cloudscale_sim::Tags;
use uuid::Uuid;

use crate::world::{World, service};

/// A restored Service `web` that has taken its balancer over, and served it with an address.
async fn restored() -> (World, Uuid) {
    let world = World::with_nodes(1);
    world.put(service("kubernetes", &[]));
    world.edit("kubernetes", |service| {
        service.spec.as_mut().unwrap().type_ = Some("ClusterIP".into());
    });
    let tags = [
        ("k8s-service-uid", "uid-before"),
        ("k8s-service-name", "default/web"),
        ("k8s-cluster-uid", "uid-kubernetes"),
    ];
    let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let there = world
        .sim
        .add_load_balancer("k8s-service-uid-before", Tags::from(tags));
    world.annotate("web", "uuid", &there.to_string());
    world.run("web").await.settled();
    (world, there)
}

/// The UIDs of the Services that this cluster is thought to have made balancers for.
async fn made_for(world: &World) -> Vec<String> {
    let services = world.facts("kubernetes").services;
    let balancers = world.cloud.load_balancer().unwrap();
    let (made, failed) = ask_all(balancers.made_for(&*services), std::future::pending).await;
    assert!(failed.is_empty(), "{failed:?}");
    made.into_iter().map(|made| made.uid).collect()
}

#[tokio::test(start_paused = true)]
async fn a_restored_service_that_lost_its_annotation_gets_it_back_and_its_balancer_stays() {
    let (world, there) = restored().await;
    world.remove_annotation("web", "uuid");
    assert_eq!(made_for(&world).await, [""; 0]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!((run.settled().reasons(), writes.len()), (vec![], 0));
    assert_eq!(world.annotation("web", "uuid"), Some(there.to_string()));
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_serves_a_living_service_is_not_left_behind_by_one_that_is_gone() {
    let (world, there) = restored().await;
    // By its address: a person chose another name, and mistyped the UUID.
    world.annotate("web", "name", "edge");
    world.run("web").await.settled();
    world.annotate("web", "uuid", "no UUID");
    assert_eq!(world.sim.load_balancers()[0].name, "edge");
    assert_eq!(made_for(&world).await, [""; 0]);
    assert!(world.run("web").await.complaint().contains("not a UUID"));
    // An earlier look had it removed.
    world.put(service("gone", &[]));
    world.edit("gone", |service| service.metadata.uid = Some("uid-before".into()));
    let mut facts = world.facts("gone");
    facts.is_wanted = false;
    world.forget("gone");
    let mut session = world.cloud.load_balancer().unwrap().begin(facts).unwrap();
    session.observe().await.unwrap();
    let plan = session.plan().unwrap();
    assert!(matches!(plan.answer, Answer::Settled(_)), "{:?}", plan.answer);
    let [note] = plan.notes.as_slice() else {
        panic!("{:?}", plan.notes)
    };
    assert_eq!(note.reason, "ForeignLoadBalancerKept");
    assert!(note.text.ends_with(&there.to_string()), "{}", note.text);
    assert_eq!(world.sim.load_balancers()[0].uuid, there);
    // One that has an address of its own network, which is the same.
    let own = world
        .sim
        .add_load_balancer("k8s-service-uid-web", Tags::default());
    world.annotate("web", "uuid", &own.to_string());
    let private = "10.20.0.99".parse().unwrap();
    world
        .sim
        .edit_load_balancer(there, |it| it.vips[0].address = private);
    world.edit("web", |service| {
        let status = service.status.as_mut().unwrap().load_balancer.as_mut().unwrap();
        let ingress = status.ingress.as_mut().unwrap();
        ingress.truncate(1);
        ingress[0].ip = Some(private.to_string());
    });
    assert_eq!(made_for(&world).await, ["uid-before"]);
    // When it goes, so does the balancer.
    world.forget("web");
    assert_eq!(made_for(&world).await, ["uid-before"]);
}
