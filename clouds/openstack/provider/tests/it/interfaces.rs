//! Nodes with several interfaces: a member's address, its subnet and the port with the security group are of one interface.

use std::net::IpAddr;

use bowline_openstack_sim::{Id, NetworkSpec, NicSpec, ServerSpec, SubnetSpec};

use crate::world::{World, builder, service};

const GROUP: &str = "lb-sg-uid-web-default-web";

/// A world with a second network, and the subnet of that.
fn with_storage(mut world: World) -> (World, Id, Id) {
    let network = world.sim.add_network(NetworkSpec::default());
    let subnet = SubnetSpec::new("storage", network, "10.9.0.0/24".parse().unwrap());
    let subnet = world.sim.add_subnet(subnet);
    for name in ["node-1", "node-2"] {
        world.add_server_node(ServerSpec {
            nics: vec![NicSpec::default(), NicSpec::on(network)],
            ..ServerSpec::new(name)
        });
    }
    (world, network, subnet)
}

/// The address and the subnet of each member.
fn members(world: &World) -> Vec<(IpAddr, Option<Id>)> {
    let all = world.sim.members().into_iter();
    all.map(|member| (member.address, member.subnet)).collect()
}

fn assert_in(world: &World, range: &str, subnet: Id, count: usize) {
    let range: ipnet::IpNet = range.parse().unwrap();
    let members = members(world);
    let is_there = |(address, of): &(IpAddr, Option<Id>)| range.contains(address) && *of == Some(subnet);
    assert!(
        members.len() == count && members.iter().all(is_there),
        "{members:?}"
    );
}

/// The addresses of the ports that have the group.
fn grouped(world: &World) -> Vec<String> {
    let groups = world.sim.security_groups();
    let id = groups.iter().find(|group| group.name == GROUP).unwrap().id;
    let ports = world.sim.ports().into_iter();
    let with_group = ports.filter(|port| port.groups.contains(&id));
    with_group
        .map(|port| port.fixed_ips[0].address.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn members_have_the_address_that_is_in_their_subnet() {
    let (mut world, _, storage) = with_storage(World::with_nodes(0));
    world.configure(|options| options.manages_security_groups = true);
    let home = world.sim.home().subnet;
    world.run("web").await.settled();
    assert_in(&world, "10.0.0.0/24", home, 2);
    world.annotate("web", "member-subnet-id", &storage.to_string());
    let run = world.run("web").await.settled();
    assert_in(&world, "10.9.0.0/24", storage, 2);
    let on_ports = grouped(&world);
    assert!(
        on_ports.iter().all(|address| address.starts_with("10.9.0.")) && on_ports.len() == 2,
        "{on_ports:?}"
    );
    assert_eq!(run.reasons(), [""; 0]);
    world.assert_settled("web").await;
    // A new load balancer has them from the start.
    world.put(service("other", &[("TCP", 80, 30081)]));
    world.annotate("other", "member-subnet-id", &storage.to_string());
    world.run("other").await.settled();
    assert_in(&world, "10.9.0.0/24", storage, 4);
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_address_in_the_named_subnet_is_told_of() {
    for manages_groups in [true, false] {
        let (mut world, _, storage) = with_storage(World::with_nodes(0));
        world.configure(|options| options.manages_security_groups = manages_groups);
        world.add_node("bare");
        world.annotate("web", "member-subnet-id", &storage.to_string());
        let run = world.run("web").await.settled();
        assert_eq!(run.reasons(), ["LoadBalancerNodesElsewhere"]);
        let text = &run.notes[0].text;
        assert!(text.contains(": bare; give their servers a port in it"), "{text}");
        assert!(
            text.contains("annotation loadbalancer.openstack.org/member-subnet-id"),
            "{text}"
        );
        world.assert_settled("web").await;
    }
}

/// A public interface is one more, and only a subnet that is named can mean it.
#[tokio::test(start_paused = true)]
async fn the_second_family_is_that_of_the_load_balancers_network() {
    let sim = builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let mut world = World::over(sim);
    world.put(service("web", &[("TCP", 80, 30080)]));
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv4".into(), "IPv6".into()]);
    });
    let network = world.sim.add_network(NetworkSpec::default());
    let other = SubnetSpec::new("other", network, "fd00:99::/64".parse().unwrap());
    world.sim.add_subnet(other);
    world.add_server_node(ServerSpec {
        nics: vec![NicSpec::on(network), NicSpec::default()],
        ..ServerSpec::new("node-1")
    });
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), [""; 0]);
    let published = run.published();
    assert!(
        published.len() == 2 && published[1].starts_with("fd00:10::"),
        "{published:?}"
    );
    let members = members(&world);
    let second = |(address, _): &&(IpAddr, Option<Id>)| address.to_string().starts_with("fd00:10::");
    assert!(
        members.len() == 2 && members.iter().filter(second).count() == 1,
        "{members:?}"
    );
    world.assert_settled("web").await;
}
