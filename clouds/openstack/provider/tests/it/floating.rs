//! The address from outside.

use bowline_openstack_sim::FloatingIpSpec;
use bowline_openstack_sim::model::network::FixedIp;

use crate::world::World;

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
