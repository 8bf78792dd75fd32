//! Members follow the nodes.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, Taint, keys};
use bowline_openstack_sim::{NetworkSpec, NicSpec, ServerSpec, SubnetSpec};

use crate::world::{World, in_short, service};

fn names(world: &World) -> Vec<String> {
    let state = world.sim.snapshot();
    let members = &state["load_balancers"][0]["listeners"][0]["pool"]["members"];
    let members = members.as_array().unwrap().iter();
    members
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_without_an_address_is_told_and_no_member() {
    let mut world = World::with_nodes(2);
    let bare = Node {
        addresses: Vec::new(),
        ..(*world.nodes[1]).clone()
    };
    let unknown = Node {
        provider_id: None,
        ..bare.clone()
    };
    // A kubelet may give the ID itself.
    let waiting = Node {
        taints: vec![Taint {
            key: keys::TAINT_UNINITIALIZED.to_owned(),
            ..Taint::shutdown()
        }],
        ..bare.clone()
    };
    for (node, is_told) in [(bare, true), (unknown, false), (waiting, false)] {
        world.nodes[1] = Arc::new(node);
        let run = world.run("web").await.settled();
        assert_eq!(names(&world), ["node-1"]);
        assert_eq!(run.has_note("NodesLeftOut"), is_told, "{:?}", run.notes);
    }
}

/// Nothing is configured, so the subnet is that of the nodes. A first node elsewhere makes nobody move, and the rule and the
/// group that let the load balancer in stay.
#[tokio::test(start_paused = true)]
async fn another_first_node_moves_no_member() {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.manages_security_groups = true);
    world.run("web").await.settled();
    let network = world.sim.add_network(NetworkSpec::default());
    world
        .sim
        .add_subnet(SubnetSpec::new("other", network, "10.9.0.0/24".parse().unwrap()));
    world.add_server_node(ServerSpec {
        nics: vec![NicSpec::on(network)],
        ..ServerSpec::new("node-0")
    });
    world.nodes.rotate_right(1);
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
    world.assert_settled("web").await;
}

/// Which subnet of a network its members are in, Octavia's choice tells and nothing else.
#[tokio::test(start_paused = true)]
async fn nodes_in_another_subnet_of_the_network_are_told_of() {
    let mut world = World::with_nodes(1);
    let network = world.sim.home().network;
    let wide = SubnetSpec::new("wide", network, "10.1.0.0/16".parse().unwrap());
    let wide = world.sim.add_subnet(wide);
    world.configure(|options| {
        options.placement.network = Some(network.to_string().as_str().into());
        options.manages_security_groups = true;
    });
    world.add_server_node(ServerSpec {
        nics: vec![NicSpec {
            addresses: vec!["10.1.0.9".parse().unwrap()],
            ..NicSpec::on(network)
        }],
        ..ServerSpec::new("node-9")
    });
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerNodesElsewhere"]);
    let text = &run.notes[0].text;
    assert!(text.contains("security group: node-9;"), "{text}");
    world.nodes.remove(0);
    world.annotate("web", "member-subnet-id", &wide.to_string());
    assert!(world.run("web").await.settled().notes.is_empty());
    world.assert_settled("web").await;
}

/// Octavia answers 202 to a list of members, and makes it later.
#[tokio::test(start_paused = true)]
async fn a_list_of_members_that_octavia_took_and_did_not_make_is_written_again_and_told() {
    let mut world = World::with_nodes(1);
    world.put(service("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]));
    world.run("web").await.settled();
    world.add_node("node-2");
    let fails = async {
        let written = || {
            world
                .sim
                .members()
                .into_iter()
                .find(|it| it.part.name == "node-2")
        };
        for _ in 0..1_000 {
            if written().is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        world.sim.delete_member(written().unwrap().part.id);
    };
    let ((run, writes), ()) = tokio::join!(world.writes_of(world.run("web")), fails);
    let run = run.settled();
    assert_eq!(in_short(&writes), ["octavia.members.replace"; 3]);
    assert_eq!(run.reasons(), ["LoadBalancerInError"]);
    let text = &run.notes[0].text;
    assert!(
        text.contains("Octavia took set-members(") && text.contains("and did not make it"),
        "{text}"
    );
    assert_eq!(names(&world), ["node-1", "node-2"]);
    world.assert_settled("web").await;
}

/// As two Nodes have of which one's server is gone, or whose servers have private networks of the same range. Octavia refuses a list with
/// one address twice: 409 where it is new, 400 where it is there.
#[tokio::test(start_paused = true)]
async fn two_nodes_with_one_address_are_one_member_and_are_told_of() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(2);
        world.configure(|options| options.is_serial = is_serial);
        let twin = Node {
            addresses: world.nodes[0].addresses.clone(),
            ..Node::named("twin")
        };
        for is_there in [false, true] {
            world.nodes.retain(|node| node.name.as_str() != "twin");
            if is_there {
                world.run("web").await.settled();
                world.add_node("node-3");
            }
            world.nodes.push(Arc::new(twin.clone()));
            let run = world.run("web").await.settled();
            assert_eq!(world.sim.members().len(), if is_there { 3 } else { 2 });
            assert_eq!(run.reasons(), ["LoadBalancerNodesShareAddress"]);
            let text = &run.notes[0].text;
            assert!(text.contains("node-1 and twin have 10.0.0.11"), "{text}");
            world.assert_settled("web").await;
        }
    }
}
