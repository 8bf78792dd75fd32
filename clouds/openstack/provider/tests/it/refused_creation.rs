//! Creations that Octavia refuses after it has made the port: the port stays, and has the address.

use std::time::Duration;

use bowline_base::log::Log;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::kit::{Entry, Fault};
use bowline_openstack_sim::model::network::Port;
use bowline_openstack_sim::{FloatingIpSpec, Provisioning};
use tokio::time::advance;
use tracing::Level;

use crate::world::{World, in_short, lb_name, service};

/// The ports that Octavia made for load balancers that are not there.
fn leaked(world: &World) -> Vec<Port> {
    let balancers = world.sim.load_balancers();
    let is_vip = |port: &Port| balancers.iter().any(|it| it.vip.port == port.id);
    let mut ports = world.sim.ports();
    ports.retain(|port| port.device.starts_with("lb-") && !is_vip(port));
    ports
}

/// What Octavia makes the port before.
fn limit_members(world: &World, most: Option<usize>) {
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.members = most);
}

fn ask_for(world: &World, address: &str) {
    world.annotate("web", "internal", "true");
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.to_owned());
    });
}

#[tokio::test(start_paused = true)]
async fn one_that_is_refused_for_a_part_is_made_empty_and_leaves_one_port_which_goes_later() {
    let world = World::with_nodes(1);
    limit_members(&world, Some(0));
    for _ in 0..3 {
        let run = world.run("web").await;
        assert!(
            run.complaint()
                .contains("Quota has been met for resources: Member"),
            "{run:#?}"
        );
        assert_eq!(leaked(&world).len(), 1);
        assert_eq!(world.sim.load_balancers().len(), 1);
        advance(Duration::from_secs(100)).await;
    }
    // Somebody else's creation may be under way, and then its port looks the same.
    world.reap().await;
    assert_eq!(leaked(&world).len(), 1);
    advance(Duration::from_secs(301)).await;
    world.reap().await;
    assert_eq!(leaked(&world).len(), 0);
    limit_members(&world, None);
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_left_goes_also_where_the_service_is_well_by_then() {
    let world = World::with_nodes(1);
    limit_members(&world, Some(0));
    world.run("web").await;
    limit_members(&world, None);
    world.run("web").await.settled();
    assert_eq!(leaked(&world).len(), 1);
    advance(Duration::from_secs(601)).await;
    world.reap().await;
    assert_eq!(leaked(&world).len(), 0);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn ports_that_are_left_go_after_their_services_too_and_each_load_balancer_is_asked_for_once() {
    let world = World::with_nodes(1);
    world.put(service("stays", &[("TCP", 90, 30090)]));
    world.run("stays").await.settled();
    limit_members(&world, Some(1));
    world.put(service("b", &[("TCP", 81, 30081)]));
    for name in ["web", "b"] {
        world.run(name).await;
    }
    assert_eq!(leaked(&world).len(), 2);
    let asked = |calls: &[Entry]| {
        let all = in_short(calls).into_iter();
        all.filter(|it| *it == "octavia.loadbalancers.get").count()
    };
    // Nothing is asked for meanwhile, and the deletion of one takes no port of another one.
    let (_, calls) = world
        .calls_of(async {
            world.reap().await;
            world.delete("web");
            world.run("web").await.settled();
            world.run_again("b").await;
        })
        .await;
    assert!(asked(&calls) <= 1, "{:?}", in_short(&calls));
    assert_eq!(leaked(&world).len(), 2);
    advance(Duration::from_secs(601)).await;
    let (_, calls) = world.calls_of(world.reap()).await;
    assert_eq!(asked(&calls), 2, "{:?}", in_short(&calls));
    assert_eq!(leaked(&world).len(), 0);
    let (_, calls) = world.calls_of(world.reap()).await;
    assert!(calls.is_empty(), "{:?}", in_short(&calls));
}

/// Nobody saw a creation that was refused as they came.
#[tokio::test(start_paused = true)]
async fn ports_that_came_otherwise_stay() {
    let mut world = World::with_nodes(1);
    limit_members(&world, Some(0));
    world.run("web").await;
    world.restart();
    world.run("web").await;
    advance(Duration::from_secs(601)).await;
    world.reap().await;
    assert_eq!(leaked(&world).len(), 1);
}

/// The time of a Service that is older than any process here.
fn make_older(world: &World, name: &str) {
    world.edit(name, |service| {
        service.metadata.creation_timestamp = Some("1970-01-01T00:00:00Z".parse().unwrap());
    });
}

/// Another process may have been refused it before, and its port shows that somebody was.
#[tokio::test(start_paused = true)]
async fn restarts_add_no_port_to_the_one_that_a_refused_creation_left() {
    let mut world = World::with_nodes(1);
    make_older(&world, "web");
    limit_members(&world, Some(0));
    world.run("web").await;
    assert_eq!(leaked(&world).len(), 1);
    // It never got as far as to have one.
    for balancer in world.sim.load_balancers() {
        world.sim.delete_load_balancer(balancer.part.id);
    }
    world.remove_annotation("web", "load-balancer-id");
    for _ in 0..3 {
        world.restart();
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains("Member"), "{run:#?}");
        assert_eq!(in_short(&writes)[0], "octavia.loadbalancers.create");
        assert!(run.has_note("LoadBalancerPortLeft"), "{:?}", run.notes);
        assert_eq!(leaked(&world).len(), 1);
        for balancer in world.sim.load_balancers() {
            world.sim.delete_load_balancer(balancer.part.id);
        }
        world.remove_annotation("web", "load-balancer-id");
    }
    // What this process saw from its beginning on was not refused before.
    limit_members(&world, None);
    world.put(service("young", &[("TCP", 81, 30081)]));
    let (run, writes) = world.writes_of(world.run("young")).await;
    assert!(!run.settled().has_note("LoadBalancerPortLeft"));
    assert_eq!(writes.len(), 2, "{:?}", in_short(&writes));
}

#[tokio::test(start_paused = true)]
async fn a_port_that_came_after_the_start_of_a_process_is_no_sign_of_an_earlier_try() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    limit_members(&world, Some(0));
    let other = world.another_cluster();
    other.put_as("another-c", service("c", &[("TCP", 82, 31082)]));
    other.run("c").await;
    assert_eq!(leaked(&world).len(), 1);
    limit_members(&world, None);
    world.put(service("b", &[("TCP", 81, 30081)]));
    make_older(&world, "b");
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(!run.settled().has_note("LoadBalancerPortLeft"));
    assert_eq!(writes.len(), 2, "{:?}", in_short(&writes));
}

/// Both came while either one was refused, and nothing at a port says whose it is.
#[tokio::test(start_paused = true)]
async fn a_port_that_may_be_another_clusters_stays() {
    let world = World::with_nodes(1);
    let other = world.another_cluster();
    limit_members(&world, Some(0));
    tokio::join!(world.run("web"), other.run("web"));
    assert_eq!(leaked(&world).len(), 2);
    advance(Duration::from_secs(601)).await;
    let (log, _guards) = Log::listen(Level::WARN);
    world.reap().await;
    assert_eq!(leaked(&world).len(), 2);
    for port in leaked(&world) {
        assert_eq!(log.count(&port.id.to_string()), 1, "{}", log.text());
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_ports_as_creations_that_were_refused_together_go() {
    let world = World::with_nodes(1);
    world.put(service("b", &[("TCP", 81, 30081)]));
    limit_members(&world, Some(0));
    tokio::join!(world.run("web"), world.run("b"));
    assert_eq!(leaked(&world).len(), 2);
    advance(Duration::from_secs(601)).await;
    world.reap().await;
    assert_eq!(leaked(&world).len(), 0);
}

/// As where a driver breaks on a part: nothing tells what it is about.
#[tokio::test(start_paused = true)]
async fn one_on_which_octavia_breaks_is_made_empty_and_then_part_by_part() {
    let world = World::with_nodes(1);
    let said =
        r#"{"faultcode": "Server", "faultstring": "An unknown exception occurred.", "debuginfo": null}"#;
    let broken = Fault::operation("octavia.loadbalancers.create").times(1);
    world.sim.faults().add(broken.answer(Canned::json(500, said)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes)[..3],
        [
            "octavia.loadbalancers.create",
            "octavia.loadbalancers.create",
            "octavia.listeners.create"
        ]
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_is_left_and_that_somebody_uses_stays() {
    let world = World::with_nodes(1);
    limit_members(&world, Some(0));
    world.run("web").await;
    let port = Some(leaked(&world)[0].id);
    world.sim.add_floating_ip(FloatingIpSpec {
        port,
        ..FloatingIpSpec::default()
    });
    advance(Duration::from_secs(601)).await;
    world.reap().await;
    assert_eq!(leaked(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_asked_for_is_had_although_a_refused_creation_left_it_on_a_port() {
    let world = World::with_nodes(1);
    ask_for(&world, "10.0.0.77");
    limit_members(&world, Some(0));
    for _ in 0..2 {
        let run = world.run("web").await;
        assert!(run.complaint().contains("Member"), "{run:#?}");
        assert_eq!(leaked(&world).len(), 0);
    }
    limit_members(&world, None);
    assert_eq!(world.run("web").await.settled().published(), ["10.0.0.77"]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn one_that_failed_is_made_anew_at_its_address_although_a_part_of_it_is_refused() {
    let mut world = World::with_nodes(2);
    world.annotate("web", "internal", "true");
    let before = world.run("web").await.settled().published();
    world
        .sim
        .break_load_balancer(world.sim.load_balancers()[0].part.id);
    limit_members(&world, Some(0));
    let run = world.run("web").await;
    assert!(run.complaint().contains("Member"), "{run:#?}");
    assert_eq!(leaked(&world).len(), 0);
    limit_members(&world, None);
    world.restart();
    assert_eq!(world.run("web").await.settled().published(), before);
    world.assert_settled("web").await;
}

/// The empty one is refused, too: as where the provider is another one of the two that a flavor names.
#[tokio::test(start_paused = true)]
async fn one_that_is_refused_as_a_whole_leaves_one_port_however_often_it_is_tried() {
    let mut world = World::with_nodes(1);
    world.run("web").await.settled();
    world.put(service("b", &[("TCP", 81, 30081)]));
    limit_members(&world, Some(1));
    let empty = Fault::operation("octavia.loadbalancers.create");
    let said =
        r#"{"faultcode": "Client", "faultstring": "Validation failure: no such thing", "debuginfo": null}"#;
    let fault = empty.nth(2).always().answer(Canned::json(400, said));
    world.sim.faults().add(fault);
    for index in 0..5 {
        let run = world.run("b").await;
        assert!(run.complaint().contains("no such thing"), "{run:#?}");
        world.add_node(&format!("more-{index}"));
        assert_eq!(leaked(&world).len(), 1);
    }
}

/// Octavia looks at their number first.
#[tokio::test(start_paused = true)]
async fn one_that_is_refused_because_there_are_too_many_load_balancers_is_asked_for_once() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.quota.load_balancers = Some(0));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("Load Balancer"), "{run:#?}");
    assert_eq!(in_short(&writes), ["octavia.loadbalancers.create"]);
    assert_eq!(leaked(&world).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_ovn_cannot_do_is_refused_before_anything_is_made() {
    for (wish, value, told) in [
        ("lb-method", "ROUND_ROBIN", "lb-method"),
        ("x-forwarded-for", "true", "x-forwarded-for"),
        ("proxy-protocol", "v2", "proxy-protocol"),
    ] {
        let mut world = World::with_nodes(1);
        world.configure(|options| {
            options.provider = "ovn".into();
            options.method = "SOURCE_IP_PORT".into();
        });
        world.annotate("web", wish, value);
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(told), "{run:#?}");
        assert!(run.complaint().contains("ovn"), "{run:#?}");
        assert!(writes.is_empty(), "{wish}: {:?}", in_short(&writes));
        // What is served stays so.
        world.annotate("web", wish, "");
        if wish == "lb-method" {
            world.remove_annotation("web", wish);
        }
        world.run("web").await.settled();
        let served = world.sim.snapshot();
        world.annotate("web", wish, value);
        world.run("web").await;
        assert_eq!(world.sim.snapshot(), served, "{wish}");
    }
}

/// Octavia looks at it only when the pool is changed by itself.
#[tokio::test(start_paused = true)]
async fn a_method_that_amphorae_do_not_have_is_refused_before_anything_is_made() {
    let world = World::with_nodes(1);
    world.annotate("web", "lb-method", "SOURCE_IP_PORT");
    let (run, writes) = world.writes_of(world.run("web")).await;
    for told in ["amphora", "SOURCE_IP_PORT", "lb-method", "ROUND_ROBIN"] {
        assert!(run.complaint().contains(told), "{run:#?}");
    }
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    world.remove_annotation("web", "lb-method");
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn ovn_is_asked_for_no_monitor_of_sctp() {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
        options.monitor.is_wanted = true;
    });
    world.set_ports("web", &[("SCTP", 80, 30080)]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("SCTP"), "{run:#?}");
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

/// Of a load balancer that Octavia does not get rid of, nobody can say when it goes.
#[tokio::test(start_paused = true)]
async fn a_namesake_that_stays_pending_delete_is_left_alone_after_a_while() {
    for is_annotated in [false, true] {
        let world = World::with_nodes(1);
        let stuck = world.sim.add_load_balancer(&lb_name("web"), vec![lb_name("web")]);
        if is_annotated {
            world.annotate("web", "load-balancer-id", &stuck.to_string());
            world.run("web").await.settled();
        }
        world.sim.set_provisioning(stuck, Provisioning::PendingDelete);
        let begun = tokio::time::Instant::now();
        let run = world.run("web").await.settled();
        let waited = begun.elapsed();
        assert!((30..=120).contains(&waited.as_secs()), "{waited:?} {run:#?}");
        let id = world.annotation("web", "load-balancer-id").unwrap();
        assert_ne!(id, stuck.to_string());
        assert_eq!(world.sim.load_balancers().len(), 2);
        let told = run
            .notes
            .iter()
            .any(|note| note.text.contains(&stuck.to_string()));
        assert!(told, "{run:#?}");
        let (run, writes) = world.writes_of(world.run("web")).await;
        World::assert_quiet(&run, &writes);
    }
}

/// As from a backup, which has no status, and of an older Go manager, which wrote no address.
#[tokio::test(start_paused = true)]
async fn one_that_is_older_than_its_service_may_serve() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.remove_annotation("web", "load-balancer-address");
    world.edit("web", |service| {
        service.status = None;
        service.metadata.creation_timestamp = Some("2099-01-01T00:00:00Z".parse().unwrap());
    });
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.lose_load_balancer(id);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("may still carry traffic"), "{run:#?}");
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}
