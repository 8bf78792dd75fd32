//! Ports that a Service names: what a driver does with one, and two Services that name the same one at the same time.

use bowline_openstack_sim::model::network::FixedIp;
use jiff::Timestamp;

use crate::world::{World, service};

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
            service.metadata.creation_timestamp = Some(created);
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
