//! Two managers, one lease.

use bowline_kube_api::{Effect, Fault};
use bowline_manager::End;

use super::objects::web;
use super::world::{SECOND, World};

fn holder(world: &World) -> String {
    let lease = world
        .api
        .object("Lease", "kube-system", "cloud-controller-manager");
    let holder = lease.map(|lease| lease["spec"]["holderIdentity"].clone());
    holder
        .and_then(|it| it.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Two managers; the first one leads.
async fn two() -> World {
    let mut world = World::new();
    world.add_nodes(2);
    world.start();
    world.until("somebody leads", |w| !holder(w).is_empty()).await;
    world.start();
    world.rest().await;
    assert_eq!(holder(&world), world.holders()[0]);
    world
}

#[tokio::test(start_paused = true)]
async fn a_write_that_hangs_does_not_hold_up_the_end() {
    use bowline_cloudscale_sim::kit::Fault as CloudFault;

    let mut world = two().await;
    world.sim.faults().add(CloudFault::write().nth(3).hang_after());
    world.apply(web());
    world
        .until("it hangs", |w| w.sim.journal().writes().len() >= 3)
        .await;
    let (end, took) = world.stop().await;
    assert_eq!(end, End::Stopped);
    assert!(took < SECOND * 10, "{took:?}");
    let next = world.holders()[0].to_owned();
    world.until("the other one leads", |w| holder(w) == next).await;
    world.settled("web").await;
    assert_eq!(
        (world.sim.load_balancers().len(), world.sim.pools().len()),
        (1, 2)
    );
    world.assert_one_writer();
    world.assert_sound();
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_watches_had_died_does_not_make_a_deleted_balancer_again() {
    for resource in ["services", "nodes"] {
        let mut world = World::new();
        world.add_nodes(2);
        world.apply(web());
        world.start();
        world.settled("web").await;
        world.rest().await;
        // The watch that the next process opens is one of a server that dies at once, without a word.
        let dies = Fault::new(Effect::Silence)
            .verb("watch")
            .resource(resource)
            .times(1);
        world.api.faults().inject(dies);
        world.start();
        world.pass(SECOND * 5).await;
        assert_eq!(holder(&world), world.holders()[0]);

        assert!(world.api.delete("Service", "default", "web"));
        world.join("n3");
        world
            .until("the service is gone", |w| {
                w.api.object("Service", "default", "web").is_none()
            })
            .await;
        assert!(world.sim.load_balancers().is_empty());
        world.until("the node", |w| w.is_initialized("n3")).await;
        let (end, _) = world.stop().await;
        assert_eq!(end, End::Stopped);
        let next = world.holders()[0].to_owned();
        let begun = world.since();
        world.until("the other one leads", |w| holder(w) == next).await;
        world.pass(SECOND * 120).await;
        assert!(world.sim.load_balancers().is_empty(), "an orphan");
        let calls = world.calls(begun);
        let writes: Vec<_> = calls
            .iter()
            .filter(|call| call.method != http::Method::GET)
            .collect();
        assert!(writes.is_empty(), "{writes:#?}");
        assert!(
            world.object_writes(begun).is_empty(),
            "{:?}",
            world.object_writes(begun)
        );
    }
}
