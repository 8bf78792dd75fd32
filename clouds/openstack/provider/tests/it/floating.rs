//! The address from outside.

use std::time::Duration;

use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{FloatingIpSpec, SubnetSpec};
use futures::future::join_all;

use crate::world::{Outcome, Run, World, builder, in_short, service};

const DESCRIPTION: &str = "Floating IP for Kubernetes external service default/web from cluster lab";

#[tokio::test(start_paused = true)]
async fn internal_and_external_change_both_ways() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.annotate("web", "internal", "true");
    let (run, writes) = world.writes_of(world.run("web")).await;
    let vip = world.sim.load_balancers()[0].vip.fixed_ip.address.to_string();
    assert_eq!(run.settled().published(), [vip]);
    assert_eq!(in_short(&writes), ["neutron.floatingips.delete"]);
    world.annotate("web", "internal", "false");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["neutron.floatingips.create"]);
    assert_eq!(world.sim.floating_ips()[0].meta.description, DESCRIPTION);
    world.annotate("web", "internal", "true");
    world.annotate("web", "keep-floatingip", "true");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["neutron.floatingips.update"]);
    // Said aloud, and not by leaving the field out.
    assert_eq!(
        writes[0].body.as_ref().unwrap().to_string(),
        r#"{"floatingip":{"port_id":null}}"#
    );
    assert!(world.sim.floating_ips()[0].target.is_none());
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_made_by_hand_is_detached_and_not_deleted() {
    let world = World::with_nodes(1);
    let address = world.sim.add_floating_ip(FloatingIpSpec::default());
    let address = world
        .sim
        .floating_ips()
        .into_iter()
        .find(|ip| ip.id == address)
        .unwrap();
    let address = address.address.address.to_string();
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
    });
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().published(), [address]);
    assert_eq!(
        in_short(&writes),
        ["octavia.loadbalancers.create", "neutron.floatingips.update"]
    );
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
    assert!(world.sim.floating_ips()[0].target.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_leads_elsewhere_is_not_available() {
    let mut world = World::with_nodes(1);
    let server = world.add_node("other");
    let port = world.sim.ports_of(server)[0].id;
    let id = world.sim.add_floating_ip(FloatingIpSpec {
        port: Some(port),
        ..FloatingIpSpec::default()
    });
    let there = world
        .sim
        .floating_ips()
        .into_iter()
        .find(|ip| ip.id == id)
        .unwrap();
    let address = there.address.address.to_string();
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
    });
    let run = world.run("web").await;
    let port = world.sim.floating_ips()[0].target.as_ref().unwrap().port;
    assert_eq!(
        run.complaint(),
        format!(
            "floating IP {address} is not available; it leads to port {port}: take it from there, or choose another one in spec.loadBalancerIP"
        )
    );
    assert!(world.sim.floating_ips()[0].target.is_some());
}

/// Its own address is the one that was asked for, whatever led to it from outside before.
#[tokio::test(start_paused = true)]
async fn an_internal_load_balancer_at_the_address_that_was_asked_for_is_as_it_was_asked_for() {
    for keep in ["true", "false"] {
        let world = World::with_nodes(1);
        world.annotate("web", "keep-floatingip", keep);
        world.run("web").await.settled();
        let vip = world.sim.load_balancers()[0].vip.fixed_ip.address.to_string();
        world.annotate("web", "internal", "true");
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some(vip.clone());
        });
        for _ in 0..2 {
            let run = world.run("web").await.settled();
            assert!(
                !run.reasons().contains(&"LoadBalancerChangeIgnored"),
                "{:?}",
                run.notes
            );
            assert_eq!(run.published(), [vip.as_str()]);
        }
        // A new one gets it from the start.
        let world = World::with_nodes(1);
        world.annotate("web", "internal", "true");
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some("10.0.0.77".into());
        });
        let run = world.run("web").await.settled();
        assert_eq!(
            (run.reasons().len(), run.published()),
            (0, vec!["10.0.0.77".to_owned()])
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_not_there_is_asked_for() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.users_choose_addresses = true);
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some("203.0.113.77".into());
    });
    assert_eq!(world.run("web").await.settled().published(), ["203.0.113.77"]);
}

#[tokio::test(start_paused = true)]
async fn the_next_subnet_that_fits_is_tried_when_one_has_no_address_left() {
    let mut world = World::with_nodes(1);
    let network = world.sim.home().external_network;
    for (name, range) in [("pub-a", "198.51.100.0/30"), ("pub-b", "198.51.100.64/26")] {
        world
            .sim
            .add_subnet(SubnetSpec::new(name, network, range.parse().unwrap()));
    }
    world.configure(|options| options.floating.subnet_name = Some("pub-*".into()));
    let exhausted = world
        .sim
        .subnets()
        .into_iter()
        .find(|subnet| subnet.name == "pub-a")
        .unwrap();
    // A range of four has one address to give.
    world.sim.add_floating_ip(FloatingIpSpec {
        subnet: Some(exhausted.id),
        ..FloatingIpSpec::default()
    });
    world.run("web").await.settled();
    let state = world.sim.snapshot();
    assert!(
        state.floating_ips.iter().any(|ip| ip.subnet == "pub-b"),
        "{state:#?}"
    );
    world.put(crate::world::service("other", &[("TCP", 80, 30081)]));
    world.annotate("other", "floating-subnet", "none-*");
    let run = world.run("other").await;
    assert!(
        run.complaint().starts_with("no subnet matching"),
        "{}",
        run.complaint()
    );
}

#[tokio::test(start_paused = true)]
async fn without_an_external_network_the_service_is_internal_in_effect() {
    let sim = builder().build();
    let world = {
        let mut world = World::over(sim);
        world.add_node("node-1");
        world.put(crate::world::service("web", &[("TCP", 80, 30080)]));
        world
    };
    let hidden = r#"{"networks":[]}"#;
    let answer = Canned::json(200, hidden);
    world.sim.faults().add(
        Fault::on(http::Method::GET, "/network/v2.0/networks")
            .always()
            .answer(answer),
    );
    let run = world.run("web").await.settled();
    let vip = world.sim.load_balancers()[0].vip.fixed_ip.address.to_string();
    assert_eq!(run.published(), [vip]);
    assert!(run.has_note("LoadBalancerForcedInternal"), "{:?}", run.notes);
}

/// The answer was lost: what was created leads to the load balancer, and is found there.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_whose_answer_was_lost_is_not_created_twice() {
    let world = World::with_nodes(1);
    world
        .sim
        .faults()
        .add(Fault::operation("neutron.floatingips.create").lose_answer());
    world.run("web").await;
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
}

/// A world in which a Service `web` kept its floating IP, and another Service of that name came after it; and the address.
async fn with_kept() -> (World, String) {
    let mut world = World::with_nodes(1);
    world.annotate("web", "keep-floatingip", "true");
    let kept = world.run("web").await.settled().published().remove(0);
    world.delete("web");
    world.run("web").await.settled();
    assert!(world.sim.load_balancers().is_empty());
    assert!(world.sim.floating_ips()[0].target.is_none());
    world.restart();
    world.put_as("uid-next", service("web", &[("TCP", 80, 30080)]));
    (world, kept)
}

/// The addresses of all floating IPs.
fn addresses(world: &World) -> Vec<String> {
    let all = world.sim.floating_ips().into_iter();
    all.map(|there| there.address.address.to_string()).collect()
}

/// Its description names the Service, and says as much of the next one of that name.
#[tokio::test(start_paused = true)]
async fn a_kept_floating_ip_is_neither_attached_nor_deleted_by_the_next_service_of_the_name() {
    for restarts in [false, true] {
        let (mut world, kept) = with_kept().await;
        let published = world.run("web").await.settled().published();
        assert_ne!(published, std::slice::from_ref(&kept));
        assert_eq!(addresses(&world).len(), 2);
        world.assert_settled("web").await;
        world.delete("web");
        if restarts {
            world.restart();
        }
        world.run("web").await.settled();
        assert_eq!(addresses(&world), [kept]);
    }
}

/// As in an exported manifest, or of a Service that was of another type for a while: the status shows no address then.
#[tokio::test(start_paused = true)]
async fn a_kept_floating_ip_is_not_taken_for_an_annotation_that_came_along() {
    let (world, kept) = with_kept().await;
    world.annotate("web", "load-balancer-address", &kept);
    let published = world.run("web").await.settled().published();
    assert_ne!(published, std::slice::from_ref(&kept));
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(addresses(&world), [kept]);
}

/// Whether the Service was ever served or not.
#[tokio::test(start_paused = true)]
async fn a_kept_floating_ip_outlives_a_service_of_the_name_that_never_had_it() {
    for internal in ["true", "false"] {
        let (world, kept) = with_kept().await;
        world.annotate("web", "internal", internal);
        let create = Fault::operation("octavia.loadbalancers.create").always();
        world.sim.faults().add(create.status(500));
        world.run("web").await;
        world.delete("web");
        world.run("web").await.settled();
        assert_eq!(addresses(&world), [kept]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kept_floating_ip_is_attached_where_its_address_is_asked_for() {
    let (world, kept) = with_kept().await;
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(kept.clone());
    });
    let published = world.run("web").await.settled().published();
    assert_eq!(published, std::slice::from_ref(&kept));
    assert_eq!(addresses(&world), [kept]);
}

/// Another load balancer takes the place of one that failed before any address was told.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_goes_with_a_load_balancer_that_failed_before_its_address_was_told() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    world.remove_annotation("web", "load-balancer-address");
    world.edit("web", |service| service.status = None);
    let id = world.sim.load_balancers()[0].part.id;
    world.sim.break_load_balancer(id);
    world.run("web").await;
    let published = world.run("web").await.settled().published();
    assert_eq!(addresses(&world), published);
}

/// Neutron takes a floating IP away from where it leads without a question.
#[tokio::test(start_paused = true)]
async fn of_two_services_that_want_one_address_the_first_keeps_it() {
    let world = World::with_nodes(1);
    let id = world.sim.add_floating_ip(FloatingIpSpec::default());
    let there = world.sim.floating_ips();
    let address = there
        .iter()
        .find(|ip| ip.id == id)
        .unwrap()
        .address
        .address
        .to_string();
    world.put(crate::world::service("other", &[("TCP", 80, 30081)]));
    for name in ["web", "other"] {
        world.edit(name, |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
        });
    }
    let run = async { tokio::join!(world.run("web"), world.run("other")) };
    let ((web, other), writes) = world.writes_of(run).await;
    let moves = writes
        .iter()
        .filter(|write| write.operation == "neutron.floatingips.update" && write.status() == Some(200));
    assert_eq!(moves.count(), 1, "{:?}", in_short(&writes));
    let (winner, loser) = match web.outcome {
        Outcome::Settled(_) => (web, other),
        _ => (other, web),
    };
    assert_eq!(winner.settled().published(), std::slice::from_ref(&address));
    let refused = format!("floating IP {address} is not available; it leads to port ");
    assert!(loser.complaint().starts_with(&refused), "{}", loser.complaint());
}

#[tokio::test(start_paused = true)]
async fn a_search_for_networks_that_fails_is_told_and_makes_no_service_internal() {
    let world = World::with_nodes(1);
    let list = Fault::operation("neutron.networks.list").always().status(500);
    world.sim.faults().add(list);
    let run = world.run("web").await;
    let told = "Failed to find floating-network-id for Service default/web: ";
    assert!(run.complaint().starts_with(told), "{run:#?}");
    assert!(run.reasons().contains(&"LoadBalancerExternalNetworkSearchFailed"));
    assert!(!run.reasons().contains(&"LoadBalancerForcedInternal"));
    assert!(world.sim.floating_ips().is_empty());
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_has_its_floating_ip_already_is_used_with_it() {
    for (names_address, network) in [
        (true, None),
        (false, Some("0c3e6a2f-0000-4000-8000-000000000001")),
    ] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.floating.network = network.map(Into::into));
        let own = FixedIp {
            subnet: world.sim.home().subnet,
            address: "10.0.0.77".parse().unwrap(),
        };
        let port = world.sim.add_port("kept", vec![own]);
        let id = world.sim.add_floating_ip(FloatingIpSpec {
            port: Some(port),
            ..FloatingIpSpec::default()
        });
        let floating = world
            .sim
            .floating_ips()
            .into_iter()
            .find(|it| it.id == id)
            .unwrap();
        let address = floating.address.address.to_string();
        world.annotate("web", "port-id", &port.to_string());
        if names_address {
            world.edit("web", |service| {
                service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
            });
        }
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert_eq!(run.settled().published(), [address]);
        let asked = &writes[0].body.as_ref().unwrap()["loadbalancer"];
        assert_eq!(asked["vip_port_id"], port.to_string());
        assert!(
            asked["vip_subnet_id"].is_null() && asked["vip_network_id"].is_null(),
            "{asked}"
        );
    }
}

/// Neutron chooses none of several addresses of a port.
#[tokio::test(start_paused = true)]
async fn of_a_port_with_two_addresses_the_load_balancers_gets_the_floating_ip() {
    for is_there in [false, true] {
        let world = World::with_nodes(1);
        let own = ["10.0.0.77", "10.0.0.78"].map(|address| FixedIp {
            subnet: world.sim.home().subnet,
            address: address.parse().unwrap(),
        });
        let port = world.sim.add_port("kept", own.to_vec());
        world.annotate("web", "port-id", &port.to_string());
        if is_there {
            world.sim.add_floating_ip(FloatingIpSpec::default());
            let address = world.sim.floating_ips()[0].address.address.to_string();
            world.edit("web", |service| {
                service.spec.as_mut().unwrap().load_balancer_ip = Some(address);
            });
        }
        world.run("web").await.settled();
        let vip = world.sim.load_balancers()[0].vip.fixed_ip.address;
        let target = world.sim.floating_ips()[0].target.unwrap();
        assert_eq!((target.port, target.address), (port, vip));
        world.assert_settled("web").await;
    }
}

/// Floating IPs are listed before the load balancers are made, and Octavia takes its time.
#[tokio::test(start_paused = true)]
async fn of_two_services_that_ask_for_one_address_at_once_only_one_gets_it() {
    let world = World::with_nodes(1);
    world
        .sim
        .set_behaviour(|behaviour| behaviour.lb_create_time = Duration::from_secs(5));
    world.sim.add_floating_ip(FloatingIpSpec::default());
    let address = world.sim.floating_ips()[0].address.address.to_string();
    let names = ["one", "two"];
    for (name, port) in names.into_iter().zip(30_080..) {
        world.put(service(name, &[("TCP", 80, port)]));
        world.edit(name, |service| {
            service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
        });
    }
    let both = join_all(names.map(|name| world.run(name)));
    let (runs, writes) = world.writes_of(both).await;
    let (served, others): (Vec<&Run>, Vec<&Run>) = runs
        .iter()
        .partition(|run| matches!(run.outcome, Outcome::Settled(_)));
    assert_eq!((served.len(), others.len()), (1, 1), "{runs:#?}");
    let complaint = others[0].complaint();
    let refused = format!("floating IP {address} is not available; it leads to port ");
    assert!(complaint.starts_with(&refused), "{complaint}");
    let moved = writes.iter().filter(|call| call.status() == Some(200));
    let moved = moved.filter(|call| call.operation == "neutron.floatingips.update");
    assert_eq!(moved.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_somebody_deleted_is_told_once_since_the_address_changes() {
    let world = World::with_nodes(1);
    let before = world.run("web").await.settled().published();
    assert!(world.sim.remove_floating_ip(world.sim.floating_ips()[0].id));
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerFloatingIPGone"]);
    assert_ne!(run.published(), before);
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), [""; 0]);
}

/// Neutron neither attaches nor deletes it.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_with_port_forwardings_is_in_use() {
    let world = World::with_nodes(1);
    world.annotate("web", "keep-floatingip", "true");
    let address = world.run("web").await.settled().published().remove(0);
    let there = world.sim.floating_ips()[0].id;
    world.annotate("web", "internal", "true");
    world.run("web").await.settled();
    let router = world.sim.home().router;
    world
        .sim
        .edit_floating_ip(there, |it| it.forwards_through = Some(router));
    world.annotate("web", "internal", "false");
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().load_balancer_ip = Some(address.clone());
    });
    let complaint = world.run("web").await.complaint().to_owned();
    assert!(complaint.contains("it has port forwardings"), "{complaint}");
    // Nor does it hold up the end of its Service.
    world.remove_annotation("web", "keep-floatingip");
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
}
