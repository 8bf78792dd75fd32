use std::collections::BTreeSet;

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::{FloatingSpec, Scope, ServerSpec, Target};

use crate::change;
use bowline_kit::Outcome;

use crate::world::{World, in_short, service};

#[tokio::test(start_paused = true)]
async fn a_floating_ip_moves_last_and_only_once_however_it_is_written() {
    for spelling in ["198.51.100.9/32", "198.51.100.9"] {
        let world = World::with_nodes(1);
        let server = world.sim.servers()[0].uuid;
        world.sim.add_floating_ip(FloatingSpec {
            address: Some("198.51.100.9".parse().unwrap()),
            target: Some(Target::Server(server)),
            ..FloatingSpec::default()
        });
        world.annotate("web", "floating-ips", &format!("[\"{spelling}\"]"));
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.settled().reasons().contains(&"FloatingIPMoved"));
        assert_eq!(in_short(&writes).last().unwrap(), "PATCH floating-ips");
        assert_eq!(writes.last().unwrap().path, "/v1/floating-ips/198.51.100.9");
        let balancer = world.sim.load_balancers()[0].uuid;
        assert_eq!(
            world.sim.floating_ips()[0].target,
            Some(Target::LoadBalancer(balancer))
        );
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
        // Taken off the list it stays: the API knows no way to take it off the balancer.
        world.remove_annotation("web", "floating-ips");
        assert!(world.writes_of(world.run("web")).await.1.is_empty());
        assert_eq!(
            world.sim.floating_ips()[0].target,
            Some(Target::LoadBalancer(balancer))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_not_moved_is_not_told_to_be() {
    for (status, zone) in [(None, "lpg1"), (Some(503), "rma1"), (Some(409), "rma1")] {
        let world = World::with_nodes(1);
        let server = world.sim.add_server(ServerSpec {
            zone: Some(zone.to_owned()),
            ..ServerSpec::new("other")
        });
        let address = world.sim.add_floating_ip(FloatingSpec {
            target: Some(Target::Server(server)),
            ..FloatingSpec::default()
        });
        world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
        if let Some(status) = status {
            let patches = Fault::on(http::Method::PATCH, "/v1/floating-ips/*");
            world.sim.faults().add(patches.always().status(status));
        }
        for _ in 0..2 {
            let run = world.run("web").await;
            assert!(run.complaint().contains("assign-floating-ip("), "{run:?}");
            assert!(run.reasons().is_empty(), "{run:?}");
        }
        let there = world.sim.floating_ips()[0].target;
        assert_eq!(there, Some(Target::Server(server)));
        if status.is_some() {
            world.sim.faults().clear();
            let run = world.run("web").await.settled();
            assert_eq!(run.reasons(), ["FloatingIPMoved"]);
        }
    }
}

/// As where two clusters fight over it.
#[tokio::test(start_paused = true)]
async fn each_move_of_a_floating_ip_is_news() {
    let world = World::with_nodes(1);
    let server = world.sim.servers()[0].uuid;
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
    world.run("web").await.settled();
    let mut said = BTreeSet::new();
    for _ in 0..3 {
        world
            .sim
            .assign_floating_ip(address, Some(Target::Server(server)));
        let run = world.run("web").await.settled();
        let news = run.notes.iter();
        let news: Vec<_> = news
            .filter(|it| said.insert((it.text.clone(), it.occasion)))
            .collect();
        assert_eq!(news.len(), 1);
        assert!(
            news[0].text.contains(&format!("from server {server}")),
            "{news:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn two_services_with_one_floating_ip_are_refused_and_either_can_be_deleted() {
    let world = World::with_nodes(1);
    world.put(service("a", &[("", "TCP", 80, 30080)]));
    world.put(service("b", &[("", "TCP", 80, 30081)]));
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("a", "floating-ips", &format!("[\"{address}/32\"]"));
    world.run("a").await.settled();
    world.annotate("b", "floating-ips", &format!("[\"{address}\"]"));
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert!(
        run.complaint().contains("assigned to another service") && run.complaint().contains("->a"),
        "{run:?}"
    );
    assert!(writes.is_empty());
    world.delete("b");
    world.run("b").await.settled();
    world.run("a").await.settled();
}

/// Everything of the Service `web` is there, is published and follows its nodes, and only the floating IPs are refused,
/// with a text that says this.
async fn is_refused_alone(mut world: World, floating_ips: &str, text: &str) {
    world.annotate("web", "floating-ips", floating_ips);
    let run = world.run("web").await;
    assert!(matches!(run.outcome, Outcome::Refused(_)), "{run:?}");
    assert!(run.complaint().contains(text), "{run:?}");
    assert!(
        run.complaint()
            .contains("correct k8s.cloudscale.ch/loadbalancer-floating-ips"),
        "{run:?}"
    );
    let count = |world: &World| {
        let (members, listeners) = (world.sim.members().len(), world.sim.listeners().len());
        (members, listeners, world.sim.health_monitors().len())
    };
    assert_eq!(count(&world), (2, 2, 2));
    let published = run.published_although_refused.unwrap();
    assert_eq!(published.ingress.len(), 2);
    let balancer = world.sim.load_balancers()[0].uuid;
    assert_eq!(world.annotation("web", "uuid"), Some(balancer.to_string()));
    world.add_node("n2");
    change::set_ports(&world, &[("web", "TCP", 8081, 31200)]);
    assert!(world.run("web").await.complaint().contains(text));
    assert_eq!(count(&world), (2, 1, 1));
    // Nothing but the refused one is tried again.
    let (_, writes) = world.writes_of(world.run("web")).await;
    assert!(writes.iter().all(|it| it.path.starts_with("/v1/floating-ips/")));
    world.remove_annotation("web", "floating-ips");
    assert!(world.writes_of(world.run("web")).await.1.is_empty());
    world.run("web").await.settled();
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_of_another_region_fails_with_the_apis_words_and_the_rest_works() {
    let world = World::with_nodes(1);
    let elsewhere = FloatingSpec {
        scope: Scope::Region("lpg".into()),
        ..FloatingSpec::default()
    };
    let address = world.sim.add_floating_ip(elsewhere);
    let text = format!("error during assign-floating-ip({address}/32 -> ");
    is_refused_alone(world, &format!("[\"{address}/32\"]"), &text).await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_floating_ip_holds_up_nothing() {
    let text = "floating IPs do not exist in this project: 198.51.100.200/32";
    is_refused_alone(World::with_nodes(1), r#"["198.51.100.200/32"]"#, text).await;
}

#[tokio::test(start_paused = true)]
async fn a_floating_network_holds_up_nothing() {
    let text = "takes single addresses only: 2001:db8:5::/56";
    is_refused_alone(World::with_nodes(1), r#"["2001:db8:5::/56"]"#, text).await;
}

/// Of a Service that is served, and of a new one.
#[tokio::test(start_paused = true)]
async fn floating_ips_that_cannot_be_read_hold_up_nothing() {
    for status in [403, 500] {
        for is_new in [true, false] {
            let mut world = World::with_nodes(2);
            let address = world.sim.add_floating_ip(FloatingSpec::default());
            let list = format!("[\"{address}\"]");
            world.annotate("web", "floating-ips", &list);
            if !is_new {
                world.run("web").await.settled();
            }
            let lists = Fault::on(http::Method::GET, "/v1/floating-ips").always();
            world.sim.faults().add(lists.status(status));
            world.remove_node("n1");
            world.add_node("n3");
            world.annotate("web", "timeout-client-data-ms", "7");
            for _ in 0..2 {
                let run = world.run("web").await;
                let text = run.complaint();
                assert!(text.contains("failed to load floating ips"), "{text}");
                assert!(!text.contains("do not exist"), "{text}");
                assert_eq!(run.published_although_refused.unwrap().ingress.len(), 2);
            }
            let members = world.sim.members().into_iter();
            let mut members: Vec<String> = members.map(|it| it.name).collect();
            members.sort();
            let expected = [
                "10.20.0.11:31200",
                "10.20.0.11:31201",
                "10.20.0.12:31200",
                "10.20.0.12:31201",
            ];
            assert_eq!(members, expected, "{status} {is_new}");
            let mut listeners = world.sim.listeners().into_iter();
            assert!(listeners.all(|it| it.timeout_client_data_ms == 7));
            let balancer = Target::LoadBalancer(world.sim.load_balancers()[0].uuid);
            let led = world.sim.floating_ips()[0].target;
            assert_eq!(led, Some(balancer).filter(|_| !is_new));
            assert!(world.writes_of(world.run("web")).await.1.is_empty());
            world.sim.faults().clear();
            let (run, writes) = world.writes_of(world.run("web")).await;
            run.settled();
            assert_eq!(writes.len(), usize::from(is_new), "{writes:?}");
            assert_eq!(world.sim.floating_ips()[0].target, Some(balancer));
            world.sim.faults().add(
                Fault::on(http::Method::GET, "/v1/floating-ips")
                    .always()
                    .status(status),
            );
            world.delete("web");
            world.run("web").await.settled();
            assert!(world.sim.load_balancers().is_empty());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_fine_is_led_here_beside_one_that_is_not() {
    let world = World::with_nodes(1);
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate(
        "web",
        "floating-ips",
        &format!("[\"198.51.100.200\", \"{address}\"]"),
    );
    let run = world.run("web").await;
    assert!(run.complaint().contains("198.51.100.200/32"), "{run:?}");
    let balancer = world.sim.load_balancers()[0].uuid;
    let led = world.sim.floating_ips()[0].target;
    assert_eq!(led, Some(Target::LoadBalancer(balancer)));
}

#[tokio::test(start_paused = true)]
async fn trouble_with_floating_ips_that_passes_is_a_failure_and_not_a_refusal() {
    let world = World::with_nodes(1);
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
    let patches = Fault::on(http::Method::PATCH, "/v1/floating-ips/*");
    world.sim.faults().add(patches.always().status(503));
    let run = world.run("web").await;
    assert!(matches!(run.outcome, Outcome::Failed(_)), "{run:?}");
    world.sim.faults().clear();
    world.run("web").await.settled();
}
