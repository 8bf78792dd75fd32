//! Load balancers of clusters that have the same name: the UIDs on their pools tell them apart.

use bowline_cloud_provider::reasons;
use bowline_kit::Interruption;
use bowline_openstack_sim::Id;
use serde_json::json;

use crate::upstream::as_upstream;
use crate::world::{World, service};

fn balancers(world: &World) -> Vec<Id> {
    world.sim.load_balancers().iter().map(|it| it.part.id).collect()
}

/// Asserts that the Service is as it should be, and that nobody is told of a duplicate, or to delete one.
async fn assert_silent(world: &World) {
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert_eq!(run.reasons(), [""; 0]);
}

/// Neither saw the other's when it looked.
#[tokio::test(start_paused = true)]
async fn of_two_clusters_that_make_one_at_once_each_keeps_its_own() {
    for (is_serial, goes_first) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let mut first = World::with_nodes(1);
        first.configure(|options| options.is_serial = is_serial);
        let second = first.another_cluster();
        let (one, other) = tokio::join!(first.run("web"), second.run("web"));
        assert_ne!(one.settled().published(), other.settled().published());
        let mut both = [first, second];
        for world in &mut both {
            assert_silent(world).await;
            world.restart();
            assert_silent(world).await;
        }
        let id = |world: &World| world.annotation("web", "load-balancer-id").unwrap();
        assert_ne!(id(&both[0]), id(&both[1]));
        both[goes_first].delete("web");
        both[goes_first].run("web").await.settled();
        let stays = &both[1 - goes_first];
        assert_silent(stays).await;
        stays.assert_settled("web").await;
        assert_eq!(balancers(stays)[0].to_string(), id(stays));
        assert_eq!(stays.sim.floating_ips().len(), 1);
        stays.delete("web");
        stays.run("web").await.settled();
        assert_eq!(stays.sim.leftovers(), Vec::<String>::new());
    }
}

/// It has no pools yet, and nothing else tells whose it is.
#[tokio::test(start_paused = true)]
async fn a_younger_one_that_another_cluster_has_just_begun_is_no_duplicate() {
    let mut first = World::with_nodes(1);
    first.configure(|options| options.is_serial = true);
    let second = first.another_cluster();
    let hidden = |is_hidden: bool| {
        for id in balancers(&first) {
            let name = if is_hidden {
                "hidden"
            } else {
                "kube_service_lab_default_web"
            };
            first.sim.edit_load_balancer(id, |it| {
                it.part.name = name.to_owned();
                it.part.meta.tags = vec![name.to_owned()];
            });
        }
    };
    first.run("web").await.settled();
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    hidden(true);
    second.run_with("web", Interruption::AfterStep(1)).await;
    hidden(false);
    let both = balancers(&first);
    assert_eq!(both.len(), 2);
    let (run, writes) = first.writes_of(first.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert_eq!(run.reasons(), ["LoadBalancerDuplicateKept"]);
    // Nor is it taken for the first one's where the annotation is lost.
    first.remove_annotation("web", "load-balancer-id");
    first.sim.edit_load_balancer(both[1], |it| {
        it.part.meta.created_at = "2001-01-01T00:00:00".into()
    });
    first.run("web").await.settled();
    assert_eq!(
        first.annotation("web", "load-balancer-id"),
        Some(both[0].to_string())
    );
    assert_eq!(balancers(&first), both);
}

#[tokio::test(start_paused = true)]
async fn what_a_stopped_process_made_is_found_again_beside_that_of_another_cluster() {
    for is_serial in [false, true] {
        let mut first = World::with_nodes(1);
        first.configure(|options| options.is_serial = is_serial);
        let mut second = first.another_cluster();
        // Both have asked, and only the second one has noted which one it got.
        let stop = Interruption::AfterStep(1);
        let (_, other) = tokio::join!(first.run_with("web", stop), second.run("web"));
        other.settled();
        first.remove_annotation("web", "load-balancer-id");
        assert_eq!(balancers(&first).len(), 2);
        first.restart();
        second.restart();
        first.run("web").await.settled();
        for world in [&first, &second] {
            assert_silent(world).await;
        }
        assert_eq!(balancers(&first).len(), 2);
    }
}

/// The Service from whose UID a cluster is known.
pub(crate) fn put_cluster(world: &World, uid: &str) {
    let mut service = service("kubernetes", &[("TCP", 443, 0)]);
    service.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
    world.put_as(uid, service);
}

/// A Go manager after v1.36.0 marked it for another cluster of the same name, and made pools that say nothing.
#[tokio::test(start_paused = true)]
async fn one_that_a_tag_gives_to_another_cluster_is_neither_taken_nor_deleted() {
    let mut world = World::with_nodes(3);
    as_upstream(&mut world).await;
    let theirs = balancers(&world)[0];
    world.sim.edit_load_balancer(theirs, |it| {
        it.part.meta.tags.push("kube_cluster_id_c2".to_owned());
    });
    world.configure(|options| options.cluster_uid = Some("c1".to_owned()));
    let named = world.annotation("web", "load-balancer-id").unwrap();
    world.remove_annotation("web", "load-balancer-id");
    world.remove_annotation("web", "load-balancer-address");
    let before = world.sim.snapshot()["load_balancers"][0].take();
    world.run("web").await.settled();
    assert_eq!(balancers(&world).len(), 2);
    assert_silent(&world).await;
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(balancers(&world), [theirs]);
    assert_eq!(world.sim.snapshot()["load_balancers"], json!([before]));
    // Named by a person, nobody could tell its parts from the Service's own.
    world.put_as("third", service("web", &[("TCP", 80, 30080)]));
    world.annotate("web", "load-balancer-id", &named);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?}");
    assert_eq!(
        run.complaint(),
        format!(
            "load balancer {theirs} (kube_service_lab_default_web) belongs to another cluster by its tag kube_cluster_id_c2, and is left alone; take loadbalancer.openstack.org/load-balancer-id off Service default/web to get a load balancer of its own; or, if that cluster is gone, take the tag off the load balancer"
        )
    );
    // The controller does not say then that anything was deleted.
    let before = world.sim.snapshot();
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty(), "{writes:?}");
    let told = run.settled().notes;
    assert!(told.len() == 1 && reasons::says_kept(told[0].reason), "{told:?}");
    assert!(told[0].text.contains(&theirs.to_string()), "{told:?}");
    assert_eq!(world.sim.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_renamed_where_the_file_says_so() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    world.cluster_name = "other".to_owned();
    world.configure(|options| options.renames = false);
    let before = world.sim.snapshot();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.is_empty(), "{run:#?}");
    assert!(
        run.complaint().contains("the listener port 80 already exists"),
        "{run:#?}"
    );
    assert_eq!(world.sim.snapshot(), before);
}
