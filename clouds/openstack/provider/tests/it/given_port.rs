//! Two Services that name one port, as a copied manifest does.

use bowline_openstack_sim::Id;
use bowline_openstack_sim::model::network::FixedIp;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::world::{World, lb_name, service};

/// A Service `web` that is served on a given port, and its `copy`.
async fn copied() -> (World, Id) {
    let world = World::with_nodes(1);
    let own = FixedIp {
        subnet: world.sim.home().subnet,
        address: "10.0.0.77".parse().unwrap(),
    };
    let port = world.sim.add_port("given", vec![own]);
    world.annotate("web", "port-id", &port.to_string());
    world.run("web").await.settled();
    world.put(service("copy", &[("TCP", 80, 30081)]));
    world.annotate("copy", "port-id", &port.to_string());
    (world, port)
}

/// The copy has a load balancer on the port of `web`'s, as earlier versions and other controllers make it.
async fn both_there() -> World {
    let (world, port) = copied().await;
    world.remove_annotation("copy", "port-id");
    world.run("copy").await.settled();
    let own = world.sim.floating_ips();
    let own = own
        .iter()
        .find(|there| there.target.is_some_and(|target| target.port != port));
    world.sim.remove_floating_ip(own.unwrap().id);
    let balancers = world.sim.load_balancers();
    let [web, copy] = ["web", "copy"].map(|name| {
        balancers
            .iter()
            .find(|there| there.part.name == lb_name(name))
            .unwrap()
    });
    world
        .sim
        .edit_load_balancer(copy.part.id, |copy| (copy.vip, copy.owns_port) = (web.vip, false));
    world.sim.remove_port(copy.vip.port);
    world.annotate("copy", "port-id", &port.to_string());
    world
}

#[tokio::test(start_paused = true)]
async fn a_port_that_has_a_load_balancer_gets_no_second_one() {
    let (world, port) = copied().await;
    for attempt in ["external", "internal"] {
        let (run, writes) = world.writes_of(world.run("copy")).await;
        let complaint = run.complaint();
        for part in [
            port.to_string(),
            lb_name("web"),
            "default/web from cluster lab".to_owned(),
        ] {
            assert!(complaint.contains(&part), "{attempt}: {complaint}");
        }
        assert!(writes.is_empty(), "{attempt}: {writes:#?}");
        world.annotate("copy", "internal", "true");
    }
    world.delete("copy");
    let (run, writes) = world.writes_of(world.run("copy")).await;
    World::assert_quiet(&run, &writes);
    world.assert_settled("web").await;
    // The port is free when the other one is gone.
    world.put(service("copy", &[("TCP", 80, 30081)]));
    world.annotate("copy", "port-id", &port.to_string());
    world.delete("web");
    world.run("web").await.settled();
    world.run("copy").await.settled();
}

/// Older drivers ask for another port with its address. A newer one leaves it when the load balancer goes.
#[tokio::test(start_paused = true)]
async fn a_port_that_ovn_does_not_take_is_told_with_what_to_do() {
    for takes in [false, true] {
        let mut world = World::with_nodes(1);
        world.configure(|options| {
            options.provider = "ovn".into();
            options.method = "SOURCE_IP_PORT".into();
        });
        world.sim.set_behaviour(|it| it.ovn_takes_ports = takes);
        let own = FixedIp {
            subnet: world.sim.home().subnet,
            address: "10.0.0.77".parse().unwrap(),
        };
        let port = world.sim.add_port("given", vec![own]);
        let ports = world.sim.ports().len();
        world.annotate("web", "port-id", &port.to_string());
        let run = world.run("web").await;
        if takes {
            run.settled();
            world.delete("web");
            world.run("web").await.settled();
        } else {
            for told in ["already allocated", "port-id off", "spec.loadBalancerIP"] {
                assert!(run.complaint().contains(told), "{run:#?}");
            }
        }
        assert_eq!(
            world.sim.ports().len(),
            ports,
            "the port stays, and no other one does"
        );
    }
}

/// Before either has a load balancer, only the Services tell.
#[tokio::test(start_paused = true)]
async fn of_two_services_that_name_one_port_at_the_same_time_the_older_one_gets_it() {
    let world = World::with_nodes(1);
    let own = FixedIp {
        subnet: world.sim.home().subnet,
        address: "10.0.0.77".parse().unwrap(),
    };
    let port = world.sim.add_port("given", vec![own]);
    world.put(service("copy", &[("TCP", 80, 30081)]));
    for (name, second) in [("web", 1), ("copy", 2)] {
        world.annotate(name, "port-id", &port.to_string());
        world.services.edit(name, |service| {
            let created = Timestamp::from_second(second).unwrap();
            service.metadata.creation_timestamp = Some(Time(created));
        });
    }
    let (copy, web) = tokio::join!(world.run("copy"), world.run("web"));
    web.settled();
    let complaint = copy.complaint();
    assert!(
        complaint.contains(&port.to_string()) && complaint.contains("default/web"),
        "{complaint}"
    );
    assert_eq!(world.sim.load_balancers().len(), 1);
    // One that is served elsewhere does not want it any more.
    world.delete("web");
    world.run("web").await.settled();
    world.run("copy").await.settled();
}

#[tokio::test(start_paused = true)]
async fn of_two_load_balancers_on_a_port_one_goes_and_the_floating_ip_stays() {
    for internal in [false, true] {
        let world = both_there().await;
        let [floating] = &world.sim.floating_ips()[..] else {
            panic!("{:?}", world.sim.floating_ips())
        };
        if internal {
            world.annotate("copy", "internal", "true");
        }
        let run = world.run("copy").await;
        assert!(run.complaint().contains(&lb_name("web")), "{run:#?}");
        assert!(run.published_although_refused.is_some(), "{run:#?}");
        assert_eq!(world.sim.floating_ips()[0].target, floating.target);
        world.delete("copy");
        world.run("copy").await.settled();
        assert_eq!(world.sim.floating_ips()[0].target, floating.target);
        world.assert_settled("web").await;
        // It goes with the Service that it was made for.
        world.delete("web");
        world.run("web").await.settled();
        assert!(world.sim.floating_ips().is_empty());
    }
}

/// The Service that it was made for goes first; the other one tells people its address.
#[tokio::test(start_paused = true)]
async fn a_floating_ip_goes_with_the_last_service_that_is_reached_at_it() {
    let world = both_there().await;
    world.run("copy").await;
    world.delete("web");
    world.run("web").await.settled();
    assert_eq!(world.sim.floating_ips().len(), 1);
    world.assert_settled("copy").await;
    world.delete("copy");
    world.run("copy").await.settled();
    assert!(world.sim.floating_ips().is_empty());
}
