//! Which load balancer is a Service's own.

use bowline_kit::Interruption;
use bowline_openstack_sim::Id;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;

use crate::world::{World, in_short, lb_name, service};

#[tokio::test(start_paused = true)]
async fn one_that_was_deleted_by_hand_is_made_anew() {
    let world = World::with_nodes(1);
    let first = world.run("web").await.settled().published();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.delete_load_balancer(id);
    let (run, writes) = world.writes_of(world.run("web")).await;
    // The floating IP is the Service's, and leads to the new one.
    assert_eq!(run.settled().published(), first);
    assert_eq!(
        in_short(&writes),
        ["octavia.loadbalancers.create", "neutron.floatingips.update"]
    );
    world.assert_settled("web").await;
}

/// Wherever the process stops while it takes away what was made.
#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_mind_before_it_has_an_address_is_served_in_the_end() {
    for stop in 1..=8 {
        let mut world = World::with_nodes(1);
        // The load balancer is made, and its id is written: no address stands beside it.
        world.run_with("web", Interruption::AfterStep(2)).await;
        assert!(world.annotation("web", "load-balancer-id").is_some());
        assert_eq!(world.annotation("web", "load-balancer-address"), None);
        be(&world, "ClusterIP");
        world.run_with("web", Interruption::AfterStep(stop)).await;
        world.restart();
        world.run("web").await.settled();
        assert_eq!(world.annotation("web", "load-balancer-id"), None, "{stop}");
        assert_eq!(world.sim.leftovers(), Vec::<String>::new(), "{stop}");
        be(&world, "LoadBalancer");
        world.run("web").await.settled();
        world.assert_settled("web").await;
    }
}

fn be(world: &World, kind: &str) {
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().type_ = Some(kind.to_owned());
    });
}

/// As with credentials of another cloud, or of a region in which networks have the same IDs.
#[tokio::test(start_paused = true)]
async fn none_is_made_in_its_place_where_nothing_of_the_cluster_is_seen() {
    let mut world = World::with_nodes(2);
    let subnet = world.sim.home().subnet.to_string();
    world.configure(|options| options.placement.subnet = Some(subnet.as_str().into()));
    world.run("web").await.settled();
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.delete_load_balancer(id);
    for server in world.sim.servers() {
        world.sim.remove_server(server.id);
    }
    for there in world.sim.floating_ips() {
        world.sim.remove_floating_ip(there.id);
    }
    let (run, writes) = world.writes_of(world.run("web")).await;
    let told = run.complaint();
    assert!(
        told.contains("neither is a port of any of the servers of the 2 nodes")
            && told.contains("give the credentials of the project"),
        "{told}"
    );
    // The annotation stays, so that the right credentials find it again.
    assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?}");
}

/// The annotations stay on a Service of another type, and Bowline deleted what they name.
#[tokio::test(start_paused = true)]
async fn one_that_went_with_the_type_of_its_service_is_not_missed_when_the_type_comes_back() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    be(&world, "ClusterIP");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
    be(&world, "LoadBalancer");
    world.restart();
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), [""; 0]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_id_of_something_that_never_was_is_refused() {
    let world = World::with_nodes(1);
    world.annotate("web", "load-balancer-id", "11111111-2222-3333-4444-555555555555");
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint()
            .starts_with("failed to get load balancer 11111111")
    );
    assert!(writes.is_empty());
}

/// A person wrote it: Bowline takes an id off the Service before it makes another load balancer.
#[tokio::test(start_paused = true)]
async fn a_wrong_id_on_a_service_that_is_served_is_refused_and_left() {
    const WRONG: &str = "11111111-2222-3333-4444-555555555555";
    for internal in ["false", "true"] {
        let mut world = World::with_nodes(1);
        world.annotate("web", "internal", internal);
        world.run("web").await.settled();
        let id = world.annotation("web", "load-balancer-id").unwrap();
        world.annotate("web", "load-balancer-id", WRONG);
        world.restart();
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(
            run.complaint(),
            format!(
                "failed to get load balancer {WRONG}: there is no such load balancer; correct loadbalancer.openstack.org/load-balancer-id: load balancer {id} serves the Service"
            )
        );
        assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?}");
        world.remove_annotation("web", "load-balancer-id");
        world.run("web").await.settled();
        world.assert_settled("web").await;
        world.annotate("web", "load-balancer-id", WRONG);
        world.delete("web");
        world.run("web").await.settled();
        assert!(world.sim.load_balancers().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_with_a_wrong_id_stays_where_it_is() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let id = world.annotation("web", "load-balancer-id").unwrap();
    world.put(service("guest", &[("TCP", 81, 30081)]));
    world.annotate("guest", "load-balancer-id", &id);
    world.run("guest").await.settled();
    world.annotate(
        "guest",
        "load-balancer-id",
        "11111111-2222-3333-4444-555555555555",
    );
    let (run, writes) = world.writes_of(world.run("guest")).await;
    let told = format!("load balancer {id} serves the Service");
    assert!(run.complaint().contains(&told), "{run:#?}");
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn whoever_stops_while_one_that_is_gone_is_made_anew_is_no_reason_to_refuse_it() {
    for internal in ["false", "true"] {
        for step in 0..6 {
            let mut world = World::with_nodes(1);
            world.annotate("web", "internal", internal);
            let address = world.run("web").await.settled().published();
            let id = world.sim.load_balancers()[0].part.id;
            world.sim.delete_load_balancer(id);
            world.run_with("web", Interruption::AfterStep(step)).await;
            world.restart();
            let run = world.run("web").await.settled();
            assert_eq!(run.published(), address, "{internal} {step}");
            assert_eq!(world.sim.load_balancers().len(), 1);
            world.assert_settled("web").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_very_old_name_is_taken_over() {
    let world = World::with_nodes(1);
    let name = "auidweb";
    world.sim.add_load_balancer(name, Vec::new());
    world.run("web").await.settled();
    assert_eq!(world.sim.load_balancers().len(), 1);
    assert_eq!(world.sim.snapshot().load_balancers[0].name, name);
    world.assert_settled("web").await;
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
}

/// The Go manager makes another one where it lost sight of the first, and leaves that; and another cluster of the name may be about to
/// make its own.
#[tokio::test(start_paused = true)]
async fn one_without_the_services_mark_stays_whatever_its_age_is() {
    for age in ["older", "as old", "younger"] {
        let world = World::with_nodes(1);
        let before = world.run("web").await.settled().published();
        let made = match age {
            "older" => "2001-01-01T00:00:00".to_owned(),
            "younger" => "2099-01-01T00:00:00".to_owned(),
            _ => world.sim.load_balancers()[0].part.meta.created_at.clone(),
        };
        let twin = world.sim.add_load_balancer(&lb_name("web"), vec![lb_name("web")]);
        world.sim.edit_load_balancer(twin, |twin| {
            twin.part.meta.description = "Kubernetes external service default/web from cluster lab".into();
            twin.part.meta.created_at = made;
        });
        let (run, writes) = world.writes_of(world.run("web")).await;
        World::assert_quiet(&run, &writes);
        assert_eq!(run.published(), before);
        assert_eq!(run.reasons(), ["LoadBalancerDuplicateKept"]);
        let note = &run.notes[0];
        let told = format!("of which nothing tells for whom they were made: {twin};");
        assert!(note.text.contains(&told), "{note:?}");
        assert!(note.is_said_at_start);
        assert_eq!(world.sim.load_balancers().len(), 2);
        // Nobody finds it when the Service is gone.
        world.delete("web");
        world.run("web").await.settled();
        assert!(world.sim.load_balancers().is_empty());
    }
}

/// A person sent it there; who comes to the old address is not cut off, and the person is told.
#[tokio::test(start_paused = true)]
async fn one_that_a_service_was_sent_away_from_stays_and_is_told_of() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.put(service("b", &[("TCP", 81, 30081)]));
    world.run("b").await.settled();
    let id_of = |name| world.annotation(name, "load-balancer-id").unwrap();
    let (own, other) = (id_of("b"), id_of("web"));
    world.annotate("b", "load-balancer-id", &other);
    for _ in 0..2 {
        let run = world.run("b").await.settled();
        assert_eq!(run.reasons(), ["LoadBalancerDuplicateKept"]);
        let note = &run.notes[0];
        let told = format!("its own one {own} is there too");
        assert!(note.text.contains(&told), "{note:?}");
        assert!(note.is_said_at_start);
    }
    assert_eq!(world.sim.load_balancers().len(), 2);
    assert!(world.run("web").await.settled().notes.is_empty());
    world.remove_annotation("b", "load-balancer-id");
    let run = world.run("b").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerLeft"]);
    assert_eq!(id_of("b"), own);
    world.assert_settled("b").await;
}

/// A Service with a load balancer, and another one that was made for it: the request of a process that was stopped waited in a gateway,
/// while the next one made a load balancer of its own.
async fn with_a_duplicate() -> (World, Id, Vec<String>) {
    let mut world = World::with_nodes(1);
    world.run_with("web", Interruption::AfterStep(1)).await;
    let late = world.sim.load_balancers()[0].part.id;
    let show = |world: &World, is_shown: bool| {
        let name = if is_shown {
            lb_name("web")
        } else {
            "not there yet".into()
        };
        world.sim.edit_load_balancer(late, |late| {
            late.part.meta.tags = vec![name.clone()];
            late.part.name = name;
            late.part.meta.created_at = "2001-01-01T00:00:00".into();
        });
    };
    show(&world, false);
    world.restart();
    let before = world.run("web").await.settled().published();
    show(&world, true);
    world.restart();
    (world, late, before)
}

#[tokio::test(start_paused = true)]
async fn one_that_a_late_request_made_for_this_very_service_goes_however_old_it_is() {
    let (world, late, before) = with_a_duplicate().await;
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerDuplicateRemoved"]);
    assert_eq!(run.published(), before);
    assert_eq!(world.sim.load_balancers().len(), 1);
    assert_ne!(world.sim.load_balancers()[0].part.id, late);
    world.assert_settled("web").await;
}

/// That comes before its parts are looked at.
#[tokio::test(start_paused = true)]
async fn where_a_duplicate_may_not_be_deleted_members_follow_the_nodes() {
    let (mut world, late, _) = with_a_duplicate().await;
    let path = format!("/load-balancer/v2.0/lbaas/loadbalancers/{late}");
    let deletion = Fault::on(http::Method::DELETE, path.as_str());
    world.sim.faults().add(deletion.always().status(403));
    world.add_node("node-2");
    let run = world.run("web").await;
    assert!(run.complaint().contains("403"), "{run:#?}");
    assert_eq!(run.kinds_of_steps(), ["delete-lb", "set-members"]);
    assert_eq!(world.sim.load_balancers().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn one_of_the_name_that_a_person_made_outlives_the_service() {
    for twins in [1, 2] {
        let world = World::with_nodes(1);
        world.run("web").await.settled();
        let mut made: Vec<_> = (0..twins)
            .map(|_| world.sim.add_load_balancer(&lb_name("web"), Vec::new()))
            .collect();
        world.delete("web");
        world.run("web").await.settled();
        let mut left: Vec<_> = world.sim.load_balancers().iter().map(|it| it.part.id).collect();
        made.sort();
        left.sort();
        assert_eq!(left, made);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_that_may_be_somebody_elses_none_is_touched() {
    let world = World::with_nodes(1);
    for _ in 0..2 {
        world.sim.add_load_balancer(&lb_name("web"), Vec::new());
    }
    let (run, writes) = world.writes_of(world.run("web")).await;
    for balancer in world.sim.load_balancers() {
        assert!(
            run.complaint().contains(&balancer.part.id.to_string()),
            "{}",
            run.complaint()
        );
    }
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_without_the_load_balancer_is_no_proof_that_it_is_gone() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let empty = Canned::json(200, r#"{"loadbalancers": [], "loadbalancers_links": []}"#);
    let list = Fault::on(http::Method::GET, "/load-balancer/v2.0/lbaas/loadbalancers");
    world.sim.faults().add(list.always().answer(empty));
    world.assert_settled("web").await;
    // Nor while it is waited for.
    world.annotate("web", "connection-limit", "7");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["octavia.listeners.update"]);
    assert_eq!(world.sim.load_balancers().len(), 1);
}

/// All of their names begin with the same 255 characters.
#[tokio::test(start_paused = true)]
async fn of_two_services_whose_cut_names_are_equal_the_second_gets_none_and_takes_none() {
    let mut world = World::with_nodes(1);
    world.cluster_name = "c".repeat(240);
    world.run("web").await.settled();
    let before = world.sim.snapshot();
    world.put(service("zoo", &[("TCP", 80, 30081)]));
    for claims in [false, true] {
        if claims {
            // As a manager left it that did not look.
            let id = world.annotation("web", "load-balancer-id").unwrap();
            world.annotate("zoo", "load-balancer-id", &id);
        }
        let (run, writes) = world.writes_of(world.run("zoo")).await;
        let text = "the load balancer of service default/zoo would have the name of that of service default/web, because names are cut to 255 characters: ";
        assert!(run.complaint().starts_with(text), "{run:#?}");
        assert!(writes.is_empty());
    }
    world.delete("zoo");
    let (run, writes) = world.writes_of(world.run("zoo")).await;
    run.settled();
    assert!(writes.is_empty());
    assert_eq!(world.sim.snapshot(), before);
    world.services.forget("zoo");
    world.assert_settled("web").await;
    // One of its own has a tag of that name too, and is nobody else's.
    world.put(service("zoo", &[("TCP", 80, 30081)]));
    let id = world.sim.add_load_balancer("by-hand", Vec::new());
    world.annotate("zoo", "load-balancer-id", &id.to_string());
    world.annotate("web", "internal", "true");
    world.run("zoo").await;
    world.run("web").await.settled();
    let tags = world
        .sim
        .load_balancers()
        .into_iter()
        .map(|it| it.part.meta.tags.len());
    assert_eq!(tags.collect::<Vec<_>>(), [1, 1]);
}

/// A person gave the floating IP to something else: whatever that is, it is not this Service's.
#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_the_floating_ip_was_given_to_is_not_taken_for_the_services_own() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    let floating_ip = world.sim.floating_ips()[0].id;
    world
        .sim
        .delete_load_balancer(world.sim.load_balancers()[0].part.id);
    let theirs = world.sim.add_load_balancer("theirs", Vec::new());
    let port = world.sim.load_balancer(theirs).unwrap().vip.port;
    assert!(world.sim.assign_floating_ip(floating_ip, Some(port)));
    let run = world.run("web").await.settled();
    assert!(run.has_note("LoadBalancerFloatingIPGone"), "{run:#?}");
    assert_eq!(world.sim.load_balancers().len(), 2);
    assert_eq!(world.sim.floating_ips().len(), 2);
    world.assert_settled("web").await;
}
