//! IPv6 and both families.

use bowline_cloud_provider::Node;
use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;

use crate::shared::join;
use crate::world::{Outcome, World, builder, service};

fn dual(families: &[&str]) -> World {
    let sim = builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let mut world = World::over(sim);
    for name in ["node-1", "node-2"] {
        world.add_node(name);
    }
    world.put(service("web", &[("TCP", 80, 30080)]));
    world.edit("web", |service| {
        let families = families.iter().map(ToString::to_string).collect();
        service.spec.as_mut().unwrap().ip_families = Some(families);
    });
    world
}

fn addresses(world: &World) -> Vec<String> {
    let state = world.sim.snapshot();
    let pool = state.load_balancers[0].listeners[0].pool.as_ref().unwrap();
    pool.members.iter().map(|member| member.address.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn ipv6_first_has_no_floating_ip() {
    let world = dual(&["IPv6"]);
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerFloatingIPSkipped"]);
    assert!(
        run.published()[0].starts_with("fd00:10::"),
        "{:?}",
        run.published()
    );
    assert!(
        addresses(&world)
            .iter()
            .all(|address| address.starts_with("fd00:10::"))
    );
    assert_eq!(
        world.sim.snapshot().load_balancers[0].listeners[0].allowed_cidrs,
        ["::/0"]
    );
    assert!(world.sim.floating_ips().is_empty());
    world.assert_settled("web").await;
}

/// A host name cannot be made of it.
#[tokio::test(start_paused = true)]
async fn an_ipv6_address_is_published_as_it_is_where_a_host_name_is_wanted() {
    let mut world = dual(&["IPv6"]);
    world.configure(|options| options.has_ingress_hostname = true);
    world.annotate("web", "proxy-protocol", "true");
    let published = world.run("web").await.settled().published();
    assert!(
        published[0].starts_with("fd00:10::") && !published[0].contains("nip.io"),
        "{published:?}"
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_of_both_families_has_an_address_of_each() {
    let world = dual(&["IPv4", "IPv6"]);
    let run = world.run("web").await.settled();
    let published = run.published();
    assert_eq!(published.len(), 2);
    assert!(published[0].starts_with("203.0.113.") && published[1].starts_with("fd00:10::"));
    assert_eq!(addresses(&world).len(), 4);
    assert_eq!(
        world.sim.snapshot().load_balancers[0].listeners[0].allowed_cidrs,
        ["0.0.0.0/0", "::/0"]
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_one_family_is_never_rebuilt_for_a_second_one() {
    let mut world = dual(&["IPv4"]);
    world.configure(|options| options.manages_security_groups = true);
    world.run("web").await.settled();
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv4".into(), "IPv6".into()]);
    });
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), ["LoadBalancerChangeIgnored"]);
    assert!(writes.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_second_address_that_is_not_wanted_any_more_stays_and_is_told_of() {
    let world = dual(&["IPv4", "IPv6"]);
    world.run("web").await.settled();
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv4".into()]);
    });
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    assert_eq!((run.published().len(), addresses(&world).len()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_address_of_the_family_is_no_member() {
    let mut world = dual(&["IPv4"]);
    world.nodes.push(std::sync::Arc::new(Node::named("node-x")));
    world.run("web").await.settled();
    assert_eq!(addresses(&world).len(), 2);
}

/// Octavia takes the IPv4 subnet of a network unless another one is named.
#[tokio::test(start_paused = true)]
async fn an_ipv6_service_in_a_configured_network_gets_its_address_from_the_ipv6_subnet() {
    let mut world = dual(&["IPv6"]);
    let network = world.sim.home().network.to_string();
    world.configure(|options| options.placement.network = Some(network.as_str().into()));
    let run = world.run("web").await.settled();
    assert!(
        run.published()[0].starts_with("fd00:10::"),
        "{:?}",
        run.published()
    );
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_service_in_a_network_without_ipv6_is_refused_before_anything_is_made() {
    let world = World::with_nodes(1);
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv6".into()]);
    });
    let network = world.sim.home().network.to_string();
    world.annotate("web", "network-id", &network);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let expected = format!(
        "network {network} has no IPv6 subnet; make one, or correct annotation loadbalancer.openstack.org/network-id"
    );
    assert!(run.complaint().contains(&expected), "{}", run.complaint());
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_service_in_an_ipv4_subnet_is_refused_before_anything_is_made() {
    let world = dual(&["IPv6"]);
    let subnet = world.sim.home().subnet.to_string();
    world.annotate("web", "subnet-id", &subnet);
    let (run, writes) = world.writes_of(world.run("web")).await;
    let expected = format!("subnet {subnet} (10.0.0.0/24) has none; name an IPv6 subnet with");
    assert!(run.complaint().contains(&expected), "{}", run.complaint());
    assert!(writes.is_empty(), "{writes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_another_family_is_not_joined() {
    for (own, other) in [("IPv6", "IPv4"), ("IPv4", "IPv6")] {
        let world = dual(&[own]);
        world.run("web").await.settled();
        let id = world.annotation("web", "load-balancer-id").unwrap();
        world.put(service("b", &[("TCP", 81, 30081)]));
        world.annotate("b", "load-balancer-id", &id);
        let families = |families: &[&str]| {
            let families = families.iter().map(ToString::to_string).collect();
            world.edit("b", |service| {
                service.spec.as_mut().unwrap().ip_families = Some(families)
            });
        };
        for asked in [vec![other], vec![other, own]] {
            families(&asked);
            let (run, writes) = world.writes_of(world.run("b")).await;
            let expected =
                format!("Service default/b is to have an {other} address, and load balancer {id} has none (");
            assert!(run.complaint().starts_with(&expected), "{run:#?}");
            let remedy = "load-balancer-id, or take that off to get a load balancer of its own";
            assert!(run.complaint().ends_with(remedy), "{run:#?}");
            assert!(writes.is_empty(), "{writes:?}");
        }
        families(&[own]);
        world.run("b").await.settled();
        world.assert_settled("b").await;
    }
    // One of two families takes either.
    let world = dual(&["IPv4", "IPv6"]);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.edit("b", |service| {
        service.spec.as_mut().unwrap().ip_families = Some(vec!["IPv6".into()])
    });
    let run = world.run("b").await;
    assert!(matches!(run.outcome, Outcome::Settled(_)), "{run:#?}");
}

/// An external network: an ordinary user sees it, and not its subnets.
#[tokio::test(start_paused = true)]
async fn where_the_subnets_of_a_network_are_hidden_octavia_chooses() {
    let world = dual(&["IPv6"]);
    world.annotate(
        "web",
        "network-id",
        &world.sim.home().external_network.to_string(),
    );
    world.sim.faults().add(
        Fault::operation("neutron.subnets.list")
            .always()
            .answer(Canned::json(200, r#"{"subnets": []}"#)),
    );
    let (_, writes) = world.writes_of(world.run("web")).await;
    let asked = &writes[0].body.as_ref().unwrap()["loadbalancer"];
    assert_eq!(writes[0].operation, "octavia.loadbalancers.create");
    assert!(
        asked["vip_network_id"].is_string() && asked["vip_subnet_id"].is_null(),
        "{asked}"
    );
}
