//! Load balancers of clusters that have the same name: the UIDs on their pools tell them apart.

use bowline_kit::Interruption;
use bowline_openstack_sim::Id;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;

use crate::takeover::as_upstream;
use crate::world::{Run, World, in_one_page, in_short, service};

const POOLS: &str = "/load-balancer/v2.0/lbaas/pools";

/// A cluster whose Service `web` has a load balancer, and another one that wants one of that name.
async fn clusters(change: impl FnOnce(&mut World)) -> (World, World) {
    let mut first = World::with_nodes(2);
    change(&mut first);
    first.run("web").await.settled();
    let second = first.another_cluster();
    (first, second)
}

fn balancers(world: &World) -> Vec<Id> {
    world.sim.load_balancers().iter().map(|it| it.part.id).collect()
}

/// What is written on the pools, in the order of their names.
fn marks(world: &World) -> Vec<String> {
    let mut pools = world.sim.pools();
    pools.sort_by_key(|pool| pool.part.name.clone());
    pools.into_iter().map(|pool| pool.part.meta.description).collect()
}

fn mark(service: &str, uid: &str) -> String {
    format!("Kubernetes Service default/{service}, uid {uid}")
}

/// Asserts that a Service leaves everything as it is because the load balancer of its name is another one's.
async fn assert_left_alone(world: &World, uids: (&str, &str)) {
    let (id, before) = (balancers(world)[0], world.sim.snapshot());
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(
        run.complaint(),
        format!(
            "load balancer {id} (kube_service_lab_default_web) serves another Service default/web, uid {}, and is left alone; another cluster in this project has, or had, the same --cluster-name (lab): give one of the clusters another --cluster-name; or, if that cluster is gone and this Service is to take the load balancer over, set loadbalancer.openstack.org/load-balancer-id: {id}",
            uids.0
        )
    );
    assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?}");
    assert_eq!(run.reasons(), [""; 0]);
    assert_eq!(world.sim.snapshot(), before);
    let uid = world.services.service("web").metadata.uid.clone();
    assert_eq!(uid.as_deref(), Some(uids.1));
}

/// Deletes a Service, and asserts that it goes without a write.
async fn assert_goes_without_a_write(world: &World) {
    let before = world.sim.snapshot();
    world.delete("web");
    let (run, writes) = world.writes_of(world.run("web")).await;
    World::assert_quiet(&run, &writes);
    assert_eq!(world.sim.snapshot(), before);
}

#[tokio::test(start_paused = true)]
async fn each_pool_says_which_service_it_serves() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.is_serial = is_serial);
        world.set_ports("web", &[("TCP", 80, 30080), ("UDP", 53, 30053)]);
        world.run("web").await.settled();
        assert_eq!(marks(&world), [mark("web", "uid-web"), mark("web", "uid-web")]);
        world.assert_settled("web").await;
        // One that is made anew, and one that comes later.
        world.annotate("web", "proxy-protocol", "v1");
        world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]);
        world.run("web").await.settled();
        assert_eq!(marks(&world), [mark("web", "uid-web"), mark("web", "uid-web")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_cluster_of_the_same_name_takes_nothing_and_deletes_nothing() {
    for (is_serial, deletes_by_cascade) in [(false, true), (false, false), (true, true), (true, false)] {
        let (first, second) = clusters(|world| {
            world.configure(|options| {
                options.is_serial = is_serial;
                options.deletes_by_cascade = deletes_by_cascade;
                options.manages_security_groups = true;
            });
        })
        .await;
        assert_left_alone(&second, ("uid-web", "another")).await;
        second.set_ports("web", &[("TCP", 443, 31443)]);
        assert_left_alone(&second, ("uid-web", "another")).await;
        first.annotate("web", "connection-limit", "7");
        first.run("web").await.settled();
        assert_goes_without_a_write(&second).await;
        first.assert_settled("web").await;
        // The other way round, as soon as the first one is gone.
        first.delete("web");
        first.run("web").await.settled();
        assert!(balancers(&first).is_empty());
        second.put_as("third", service("web", &[("TCP", 80, 31080)]));
        second.run("web").await.settled();
        first.put_as("fourth", service("web", &[("TCP", 80, 30080)]));
        assert_left_alone(&first, ("third", "fourth")).await;
        assert_goes_without_a_write(&first).await;
        second.assert_settled("web").await;
    }
}

/// It never served this one, so it would be deleted.
#[tokio::test(start_paused = true)]
async fn one_of_another_cluster_that_failed_is_not_made_anew() {
    let (first, second) = clusters(|_| {}).await;
    let id = balancers(&first)[0];
    first.sim.break_load_balancer(id);
    assert_left_alone(&second, ("uid-web", "another")).await;
    assert_goes_without_a_write(&second).await;
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

#[tokio::test(start_paused = true)]
async fn one_that_the_go_manager_made_is_still_found_by_its_name() {
    let mut world = World::with_nodes(3);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
    });
    as_upstream(&world).await;
    let id = world.annotation("web", "load-balancer-id");
    world.remove_annotation("web", "load-balancer-id");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    assert_eq!(world.annotation("web", "load-balancer-id"), id);
    // No mark is written only to have it there.
    assert_eq!(marks(&world), [""]);
    world.assert_settled("web").await;
}

/// The Service from whose UID a cluster is known.
pub(crate) fn put_cluster(world: &World, uid: &str) {
    let mut service = service("kubernetes", &[("TCP", 443, 0)]);
    service.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
    world.put_as(uid, service);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_made_again_without_its_finalizer_finds_what_it_had() {
    let mut world = World::with_nodes(1);
    put_cluster(&world, "a-cluster");
    world.run("web").await.settled();
    let written = format!("{}, cluster a-cluster", mark("web", "uid-web"));
    assert_eq!(marks(&world), [written]);
    let address = world.annotation("web", "load-balancer-address").unwrap();
    // Another cluster does not.
    let second = world.another_cluster();
    put_cluster(&second, "another-cluster");
    assert_left_alone(&second, ("uid-web", "another")).await;
    assert_goes_without_a_write(&second).await;
    world.services.forget("web");
    world.put_as("anew", service("web", &[("TCP", 80, 30080)]));
    world.restart();
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().published(), [address]);
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    world.assert_settled("web").await;
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.leftovers(), Vec::<String>::new());
}

/// The cluster of both is not known, and may be another one.
#[tokio::test(start_paused = true)]
async fn a_service_that_was_made_again_in_a_cluster_that_is_not_known_is_refused() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    world.services.forget("web");
    world.put_as("anew", service("web", &[("TCP", 80, 30080)]));
    assert_left_alone(&world, ("uid-web", "anew")).await;
    world.restart();
    assert_left_alone(&world, ("uid-web", "anew")).await;
    assert_goes_without_a_write(&world).await;
}

/// A person says so with the annotation. The Service owns it then, because it bears the Service's name.
#[tokio::test(start_paused = true)]
async fn one_that_is_taken_over_on_purpose_is_owned_and_refused_no_more() {
    for is_serial in [false, true] {
        let (first, mut second) =
            clusters(|world| world.configure(|options| options.is_serial = is_serial)).await;
        let address = first.annotation("web", "load-balancer-address").unwrap();
        let id = balancers(&first)[0];
        second.run("web").await;
        second.annotate("web", "load-balancer-id", &id.to_string());
        let run = second.run("web").await.settled();
        assert_eq!((run.published(), run.reasons()), (vec![address], vec![]));
        // The pool that is kept is not written for the sake of its mark.
        assert_eq!(marks(&second), [mark("web", "uid-web")]);
        for _ in 0..2 {
            second.assert_settled("web").await;
            second.restart();
        }
        second.set_ports("web", &[("TCP", 80, 31080), ("TCP", 443, 31443)]);
        second.run("web").await.settled();
        assert_eq!(marks(&second), [mark("web", "uid-web"), mark("web", "another")]);
        second.assert_settled("web").await;
        // With pools of both, it is found by its name too, and all of it follows the Service.
        second.remove_annotation("web", "load-balancer-id");
        second.restart();
        let (run, writes) = second.writes_of(second.run("web")).await;
        run.settled();
        assert!(writes.is_empty(), "{:?}", in_short(&writes));
        second.set_ports("web", &[("TCP", 443, 31443)]);
        second.run("web").await.settled();
        assert_eq!(marks(&second), [mark("web", "another")]);
        second.assert_settled("web").await;
        second.delete("web");
        second.run("web").await.settled();
        assert_eq!(second.sim.leftovers(), Vec::<String>::new());
    }
}

/// Until then nothing but the annotation speaks for it.
#[tokio::test(start_paused = true)]
async fn one_that_is_taken_over_goes_with_the_service_that_names_it() {
    let (first, second) = clusters(|_| {}).await;
    second.annotate("web", "load-balancer-id", &balancers(&first)[0].to_string());
    second.delete("web");
    second.run("web").await.settled();
    assert_eq!(second.sim.leftovers(), Vec::<String>::new());
}

/// Two clusters of one name, the first one's `b` being a guest of its `web`.
async fn with_guest() -> (World, World) {
    let (first, second) = clusters(|_| {}).await;
    first.put(service("b", &[("TCP", 81, 30081)]));
    let id = balancers(&first)[0];
    first.annotate("b", "load-balancer-id", &id.to_string());
    first.run("b").await.settled();
    (first, second)
}

#[tokio::test(start_paused = true)]
async fn a_guests_pools_are_the_guests_and_say_nothing_about_the_owner() {
    let (first, _) = with_guest().await;
    assert_eq!(marks(&first), [mark("b", "uid-b"), mark("web", "uid-web")]);
    // As of a load balancer that the Go manager made.
    for pool in first.sim.pools() {
        if pool.part.name.ends_with("web") {
            first
                .sim
                .edit_pool(pool.part.id, |pool| pool.part.meta.description.clear());
        }
    }
    for name in ["web", "b"] {
        first.assert_settled(name).await;
    }
    first.remove_annotation("web", "load-balancer-id");
    let (run, writes) = first.writes_of(first.run("web")).await;
    run.settled();
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

/// Its tag says that a Service of the name uses it.
#[tokio::test(start_paused = true)]
async fn what_another_clusters_guest_shares_is_no_load_balancer_that_was_left() {
    let (first, second) = with_guest().await;
    second.put_as("other-b", service("b", &[("TCP", 81, 31081)]));
    let (run, writes) = second.writes_of(second.run("b")).await;
    assert_eq!(run.settled().reasons(), [""; 0]);
    assert_eq!(
        in_short(&writes),
        ["octavia.loadbalancers.create", "neutron.floatingips.create"]
    );
    for (world, name) in [(&first, "web"), (&first, "b"), (&second, "b")] {
        world.assert_settled(name).await;
    }
    // The guest goes, and leaves the load balancer that bears its name and is another cluster's.
    first.delete("b");
    let (run, writes) = first.writes_of(first.run("b")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        [
            "octavia.pools.delete",
            "octavia.listeners.delete",
            "octavia.loadbalancers.update"
        ]
    );
    first.services.forget("b");
    second.assert_settled("b").await;
    second.delete("b");
    second.run("b").await.settled();
    first.assert_settled("web").await;
    assert_eq!(balancers(&first).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guest_of_another_cluster_is_told_apart_from_its_owner() {
    let (first, second) = clusters(|_| {}).await;
    // Shared on purpose; the other cluster's own `web` is not.
    second.put_as("other-b", service("b", &[("TCP", 81, 31081)]));
    second.annotate("b", "load-balancer-id", &balancers(&first)[0].to_string());
    second.run("b").await.settled();
    assert_left_alone(&second, ("uid-web", "another")).await;
    first.assert_settled("web").await;
    second.assert_settled("b").await;
}

#[tokio::test(start_paused = true)]
async fn a_former_name_of_the_cluster_is_no_claim_to_what_serves_another_service() {
    let (first, mut second) = clusters(|_| {}).await;
    second.put(service("b", &[("TCP", 80, 31081)]));
    second.run("b").await.settled();
    second.run("web").await;
    second.cluster_name = "new".into();
    second.configure(|options| options.former_clusters = vec!["lab".into()]);
    for name in ["b", "web"] {
        second.run(name).await.settled();
        second.assert_settled(name).await;
    }
    first.assert_settled("web").await;
    let mut names: Vec<String> = first
        .sim
        .load_balancers()
        .into_iter()
        .map(|it| it.part.name)
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "kube_service_lab_default_web",
            "kube_service_new_default_b",
            "kube_service_new_default_web"
        ]
    );
    second.delete("web");
    second.run("web").await.settled();
    first.assert_settled("web").await;
}

/// Its description says the same in both clusters.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_another_cluster_keeps_for_later_stays() {
    let (first, second) = clusters(|_| {}).await;
    first.annotate("web", "keep-floatingip", "true");
    first.annotate("web", "internal", "true");
    first.run("web").await.settled();
    assert!(first.sim.floating_ips()[0].target.is_none());
    assert_left_alone(&second, ("uid-web", "another")).await;
    assert_goes_without_a_write(&second).await;
    assert_eq!(first.sim.floating_ips().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_whose_pools_are_not_listed_yet_is_not_taken() {
    let (first, second) = clusters(|_| {}).await;
    let nothing = Canned::json(200, r#"{"pools": []}"#);
    let list = Fault::on(http::Method::GET, POOLS);
    second.sim.faults().add(list.always().answer(nothing));
    for goes in [false, true] {
        if goes {
            second.delete("web");
        }
        let (run, writes) = second.writes_of(second.run("web")).await;
        let id = balancers(&first)[0];
        assert_eq!(
            run.complaint(),
            format!(
                "whose load balancer {id} is cannot be told: Octavia's list of pools does not show those that it has"
            )
        );
        assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?}");
    }
    first.sim.faults().clear();
    first.assert_settled("web").await;
}

/// The list of pools is read for the parts in any case.
#[tokio::test(start_paused = true)]
async fn a_look_at_the_marks_costs_no_request() {
    let (first, second) = with_guest().await;
    in_one_page(&first.sim);
    second.put_as("other-b", service("b", &[("TCP", 81, 31081)]));
    second.run("b").await.settled();
    let lists = |calls: &[bowline_openstack_sim::kit::journal::Entry]| {
        let of_pools = calls.iter().filter(|call| call.operation == "octavia.pools.list");
        (of_pools.count(), calls.len())
    };
    for (world, name) in [(&first, "web"), (&first, "b"), (&second, "b")] {
        let (run, calls) = world.calls_of(world.run(name)).await;
        let run: Run = run.settled();
        assert_eq!(lists(&calls), (1, 7), "{name}: {run:#?} {:?}", in_short(&calls));
    }
    // Found by its name.
    first.remove_annotation("web", "load-balancer-id");
    let (_, calls) = first.calls_of(first.run("web")).await;
    assert_eq!(lists(&calls), (1, 7), "{:?}", in_short(&calls));
}

/// A Go manager after v1.36.0 marked it for another cluster of the same name, and made pools that say nothing.
#[tokio::test(start_paused = true)]
async fn one_that_a_tag_gives_to_another_cluster_is_neither_taken_nor_deleted() {
    let mut world = World::with_nodes(3);
    as_upstream(&world).await;
    let theirs = balancers(&world)[0];
    world.sim.edit_load_balancer(theirs, |it| {
        it.part.meta.tags.push("kube_cluster_id_c2".to_owned());
    });
    world.configure(|options| {
        options.cluster_uid = Some("c1".to_owned());
        options.manages_security_groups = true;
    });
    let named = world.annotation("web", "load-balancer-id").unwrap();
    world.remove_annotation("web", "load-balancer-id");
    world.remove_annotation("web", "load-balancer-address");
    let before = world.sim.snapshot().load_balancers.remove(0);
    world.run("web").await.settled();
    assert_eq!(balancers(&world).len(), 2);
    assert_silent(&world).await;
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(balancers(&world), [theirs]);
    assert_eq!(world.sim.snapshot().load_balancers, [before]);
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
    assert_goes_without_a_write(&world).await;
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
