//! The command `orphans --delete` that ends in the middle: the next run finishes it, and nothing of anybody else is touched.

use std::sync::Arc;

use bowline_kube_io::{Kube, KubeOptions, TokioClock};
use bowline_manager::orphans::{Removed, Search};
use serde_json::json;

use super::fuse::Fuse;
use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, Start, World, web};

/// The name that was chosen for the cluster: in some clouds nothing else says whose the rest of a load balancer is.
const CLUSTER: &str = "lab";

/// A Service that is served, and what is left of one that lost its finalizer while no manager ran.
async fn with_orphan<C: CloudUnderTest>() -> World<C> {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    world.ask(web(), Wish::Rich);
    world.ask_for("shop", 30_090);
    let mut start = Start::alone();
    CLUSTER.clone_into(&mut start.config.cluster_name);
    world.start_with(start);
    world.settled("web").await;
    world.settled("shop").await;
    world.kill().await;
    world.edit_service("web", |it| it["metadata"]["finalizers"] = json!([]));
    world.delete_service("web");
    assert!(world.service("web").is_none());
    world
}

/// One run of the command, in a process that dies with the fuse.
async fn run<C: CloudUnderTest>(world: &World<C>, fuse: &Fuse) -> Result<Vec<Removed>, String> {
    let options = KubeOptions {
        clock: Arc::new(TokioClock::starting_at(world.api.now())),
        ..KubeOptions::new("bowline/conformance")
    };
    let kube = Kube::with_service(world.api.service(), options);
    let provider = world.provider_until(fuse);
    let search = Search::of_cluster(&*provider, kube, CLUSTER, "person").await?;
    let survey = search.survey().await?;
    search.remove(&survey, |_| {}).await
}

pub(super) async fn a_removal_is_finished_by_the_next_run_wherever_it_ended<C: CloudUnderTest>() {
    let world = with_orphan::<C>().await;
    let before = world.sim.state();
    let removed = run(&world, &Fuse::never()).await.unwrap();
    assert!(
        !removed.is_empty() && removed.iter().all(|it| it.why_not.is_none()),
        "{removed:?}"
    );
    let undisturbed = (world.sim.state(), world.sim.violations());
    assert_ne!(before, undisturbed.0);
    // That of the Service that is there.
    assert_eq!(world.sim.balancers().len(), 1);
    let mut k = 1;
    loop {
        let world = with_orphan::<C>().await;
        let fuse = Fuse::at(k);
        tokio::select! {
            biased;
            () = fuse.burnt() => {}
            _ = run(&world, &fuse) => {}
        }
        if !fuse.is_burnt() {
            break;
        }
        // What was under way when the process died goes on by itself.
        world.pass(SECOND * 60).await;
        let removed = run(&world, &Fuse::never()).await.unwrap();
        assert!(
            removed.iter().all(|it| it.why_not.is_none()),
            "after write {k}: {removed:?}"
        );
        let end = (world.sim.state(), world.sim.violations());
        assert_eq!(end, undisturbed, "after write {k}");
        k += 1;
    }
    assert!(k > 1, "no write met the end of the process");
}
