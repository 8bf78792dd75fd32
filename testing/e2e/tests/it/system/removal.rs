//! The end of a Service.

use bowline_cloudscale_sim::{FloatingSpec, Target};
use serde_json::json;

use super::objects::{OnCloudscale, settled_web};
use super::world::{SECOND, World};

async fn gone(world: &World) {
    world
        .until("the service is gone", |w| w.service("web").is_none())
        .await;
    world.rest().await;
}

#[tokio::test(start_paused = true)]
async fn the_balancer_goes_with_all_its_parts_and_the_floating_ips_stay() {
    let world = settled_web(3).await;
    world.sim.add_floating_ip(FloatingSpec::default());
    let ip = world.sim.floating_ips()[0].network.to_string();
    world.annotate("web", "floating-ips", &json!([ip]).to_string());
    world
        .until("it moves", |w| {
            matches!(w.sim.floating_ips()[0].target, Some(Target::LoadBalancer(_)))
        })
        .await;
    world.rest().await;
    let begun = world.since();
    world.delete_service("web");
    gone(&world).await;
    assert_eq!(world.writes(begun), ["DELETE load-balancers/:id"]);
    assert!(world.sim.load_balancers().is_empty() && world.sim.pools().is_empty());
    assert_eq!(world.sim.floating_ips().len(), 1);
    assert_eq!(world.sim.floating_ips()[0].target, None);
    assert!(
        world.reasons("web").ends_with(&[
            "DeletingLoadBalancer".to_owned(),
            "DeletedLoadBalancer".to_owned()
        ]),
        "{:?}",
        world.events("web")
    );
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_the_finalizer_and_after_it_the_balancer_goes() {
    let world = settled_web(2).await;
    world.sim.set_behaviour(|it| it.maintenance = true);
    world.delete_service("web");
    world.pass(SECOND * 600).await;
    assert!(world.has_finalizer("web"), "the balancer would be leaked");
    assert_eq!(world.sim.load_balancers().len(), 1);
    world.sim.set_behaviour(|it| it.maintenance = false);
    gone(&world).await;
    assert!(world.sim.load_balancers().is_empty());
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_broken_annotation_does_not_stand_in_the_way_of_deletion() {
    let world = settled_web(2).await;
    world.annotate("web", "health-monitor-http", "null");
    world.annotate("web", "node-selector", "a==b==c");
    world.rest().await;
    world.delete_service("web");
    gone(&world).await;
    assert!(world.sim.load_balancers().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_balancer_of_another_service_is_never_deleted() {
    let world = settled_web(2).await;
    let uuid = world.sim.load_balancers()[0].uuid;
    let tags = [(
        "k8s-service-uid".to_owned(),
        "11111111-2222-4333-8444-555555555555".to_owned(),
    )];
    world.sim.tag_load_balancer(uuid, tags.into());
    // Somebody else's Service by that UID would be a restore if it were gone, so let it be here.
    let mut other = super::objects::service("other", &[("", 80, 30080)]);
    other["metadata"]["uid"] = json!("11111111-2222-4333-8444-555555555555");
    world.apply(other);
    let owned = world.service("other").unwrap()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    world
        .sim
        .tag_load_balancer(uuid, [("k8s-service-uid".to_owned(), owned)].into());
    world.rest().await;
    world.delete_service("web");
    gone(&world).await;
    assert!(
        world.sim.load_balancer(uuid).is_some(),
        "{:?}",
        world.events("web")
    );
    assert!(
        world
            .reasons("web")
            .contains(&"ForeignLoadBalancerKept".to_owned()),
        "{:?}",
        world.events("web")
    );
}
