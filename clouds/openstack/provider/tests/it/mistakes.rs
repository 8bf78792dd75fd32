//! Mistakes after which nobody can tell what a Service asks for: what is served stays as it is, and follows the Nodes.

use std::time::Duration;

use bowline_openstack::ClassOptions;
use bowline_openstack_sim::kit::Entry;
use bowline_openstack_sim::{NetworkSpec, Provisioning, SubnetSpec};

use crate::shared::join;
use crate::world::{World, in_short, service};

/// Annotations of one mistake, and what is told of them.
type Mistake = (&'static [(&'static str, &'static str)], &'static str);

const MISTAKES: [Mistake; 5] = [
    (
        &[("x-forwarded-for", "true"), ("proxy-protocol", "v2")],
        "cannot be used together",
    ),
    (&[("class", "nope")], "invalid loadbalancer class \"nope\""),
    (
        &[("default-tls-container-ref", "https://kms/x")],
        "failed to parse TLS container reference",
    ),
    (
        &[("x-forwarded-for", "true")],
        "stands for more than one protocol",
    ),
    (&[("floating-subnet", "~(")], "invalid subnet name pattern"),
];

/// A Service of the class `dmz`, whose section names the subnet that the nodes are in, as nothing else does.
async fn served(nodes: usize) -> World {
    let mut world = World::with_nodes(nodes);
    let network = world.sim.add_network(NetworkSpec::default());
    let other = SubnetSpec::new("other", network, "10.9.0.0/24".parse().unwrap());
    let other = world.sim.add_subnet(other).to_string();
    let home = world.sim.home().subnet.to_string();
    world.configure(|options| {
        options.manages_security_groups = true;
        options.placement.member_subnet = Some(other.as_str().into());
        let mut class = ClassOptions::default();
        class.placement.member_subnet = Some(home.as_str().into());
        options.classes.insert("dmz".to_owned(), class);
    });
    world.put(service("web", &[("TCP", 80, 30080), ("UDP", 80, 30080)]));
    world.annotate("web", "class", "dmz");
    world.run("web").await.settled();
    world.assert_settled("web").await;
    world
}

#[tokio::test(start_paused = true)]
async fn what_is_served_follows_the_nodes_whatever_is_wrong_with_its_annotations() {
    for (annotations, told) in MISTAKES {
        let mut world = served(2).await;
        let before = world.sim.snapshot();
        world.annotate("web", "internal", "true");
        world.annotate("web", "timeout-client-data", "1000");
        for (suffix, value) in annotations {
            world.annotate("web", suffix, value);
        }
        // Nothing opens the node port of what is not served.
        world.edit("web", |service| {
            let ports = service.spec.as_mut().unwrap().ports.as_mut().unwrap();
            let mut added = ports[0].clone();
            (added.name, added.port, added.node_port) = (Some("added".to_owned()), 8443, Some(30999));
            ports.push(added);
        });
        world.remove_node("node-1");
        world.add_node("node-3");
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(told), "{run:#?}");
        assert!(run.published_although_refused.is_none(), "{run:#?}");
        assert_eq!(
            in_short(&writes),
            [
                "octavia.members.replace",
                "octavia.members.replace",
                "neutron.ports.update",
                "neutron.ports.update",
            ],
            "{told}"
        );
        let after = world.sim.snapshot();
        assert_eq!(before.floating_ips, after.floating_ips);
        for listener in &after.load_balancers[0].listeners {
            let members = &listener.pool.as_ref().unwrap().members;
            let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
            assert_eq!(names, ["node-2", "node-3"], "{told}");
            assert!(members.iter().all(|member| member.subnet == members[0].subnet));
        }
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(run.complaint().contains(told), "{run:#?}");
        assert!(writes.is_empty(), "{told}: {:?}", in_short(&writes));
        world.annotate("web", "class", "dmz");
        for (suffix, _) in annotations.iter().filter(|(suffix, _)| *suffix != "class") {
            world.remove_annotation("web", suffix);
        }
        world.run("web").await.settled();
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_served_yet_a_mistake_costs_no_call() {
    for (annotations, told) in MISTAKES {
        for names_one in [false, true] {
            let world = World::with_nodes(1);
            world.put(service("web", &[("TCP", 80, 30080), ("UDP", 80, 30080)]));
            for (suffix, value) in annotations {
                world.annotate("web", suffix, value);
            }
            if names_one {
                world.annotate("web", "load-balancer-id", "0c3e6a2f-0000-4000-8000-000000000001");
            }
            let (run, calls): (_, Vec<Entry>) = world.calls_of(world.run("web")).await;
            assert!(run.complaint().contains(told), "{run:#?}");
            assert!(calls.is_empty(), "{calls:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn sources_that_cannot_be_read_close_nothing() {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
        options.manages_security_groups = true;
    });
    let let_in = |sources: &[&str]| {
        let sources = sources.iter().map(ToString::to_string).collect();
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_source_ranges = Some(sources);
        });
    };
    let_in(&["192.0.2.0/24", "198.51.100.0/24"]);
    world.run("web").await.settled();
    let_in(&["192.0.2.0/24", "198.51.100.0/240"]);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(
        run.complaint().contains("is not a network in CIDR notation"),
        "{run:#?}"
    );
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_is_made_internal_follows_the_nodes() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    join(&world, "b", 81);
    world.run("b").await.settled();
    world.annotate("b", "internal", "true");
    world.remove_node("node-1");
    let (run, writes) = world.writes_of(world.run("b")).await;
    assert_eq!(run.complaint(), "internal Service cannot share a load balancer");
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
    let (_, writes) = world.writes_of(world.run("b")).await;
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
}

/// One that failed is not made anew: nobody can tell how.
#[tokio::test(start_paused = true)]
async fn a_failed_load_balancer_stays_until_the_mistake_is_mended() {
    let world = served(1).await;
    world.annotate("web", "class", "nope");
    world
        .sim
        .break_load_balancer(world.sim.load_balancers()[0].part.id);
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains("invalid loadbalancer class"), "{run:#?}");
    assert!(writes.is_empty(), "{:?}", in_short(&writes));
    world.annotate("web", "class", "dmz");
    world.run("web").await.settled();
    world.assert_settled("web").await;
}

/// A pool that failed takes no members before it is written itself.
#[tokio::test(start_paused = true)]
async fn a_pool_that_failed_is_mended_all_the_same() {
    let mut world = served(1).await;
    world.annotate("web", "class", "nope");
    for pool in world.sim.pools() {
        world
            .sim
            .edit_pool(pool.part.id, |it| it.part.status = Provisioning::Error);
    }
    world.run("web").await;
    tokio::time::advance(Duration::from_secs(60)).await;
    world.add_node("node-2");
    let run = world.run("web").await;
    assert!(run.complaint().contains("invalid loadbalancer class"), "{run:#?}");
    assert_eq!(world.sim.members().len(), 4);
}
