//! Members follow the nodes.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{Node, Taint, keys};
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::kit::{Entry, Fault};
use bowline_openstack_sim::{NetworkSpec, NicSpec, ServerSpec, SubnetSpec};

use crate::world::{World, in_short, service};

fn names(world: &World) -> Vec<String> {
    let state = world.sim.snapshot();
    let pool = state.load_balancers[0].listeners[0].pool.as_ref().unwrap();
    pool.members.iter().map(|member| member.name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_is_one_write_of_the_list_for_each_pool() {
    let mut world = World::with_nodes(3);
    world.put(service("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]));
    world.run("web").await.settled();
    world.remove_node("node-3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.members.replace", "octavia.members.replace"]
    );
    assert_eq!(names(&world), ["node-1", "node-2"]);
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn only_nodes_with_the_labels_become_members() {
    let mut world = World::with_nodes(3);
    world.label_node("node-1", &[("env", "prod"), ("gpu", "a")]);
    world.label_node("node-2", &[("env", "prod")]);
    world.annotate("web", "node-selector", "env=prod,gpu");
    world.run("web").await.settled();
    assert_eq!(names(&world), ["node-1"]);
    world.remove_annotation("web", "node-selector");
    world.run("web").await.settled();
    assert_eq!(names(&world).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_leaves_out_every_node_is_told() {
    let world = World::with_nodes(2);
    world.annotate("web", "node-selector", "env=prod");
    let run = world.run("web").await.settled();
    assert!(names(&world).is_empty());
    assert!(run.has_note("NoValidNodes"), "{:?}", run.notes);
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
        assert_eq!(run.has_note("NoValidNodes"), is_told, "{:?}", run.notes);
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_in_the_selector_is_told_and_fits_no_node() {
    let mut world = World::with_nodes(2);
    world.label_node("node-1", &[("env", "prod")]);
    world.annotate("web", "node-selector", "env in (prod)");
    let run = world.run("web").await.settled();
    assert!(names(&world).is_empty());
    assert!(run.has_note("NoValidNodes"), "{:?}", run.notes);
    let told = "no label can be `env in (prod)`";
    assert!(
        run.notes
            .iter()
            .any(|note| note.reason == "IgnoredAnnotations" && note.text.contains(told)),
        "{:?}",
        run.notes
    );
}

#[tokio::test(start_paused = true)]
async fn without_node_ports_there_are_no_members() {
    let world = World::with_nodes(2);
    world.put(service("web", &[("TCP", 80, 0)]));
    world.run("web").await.settled();
    assert!(names(&world).is_empty());
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn without_nodes_nothing_is_made() {
    let mut world = World::with_nodes(1);
    world.remove_node("node-1");
    let (run, calls) = world.calls_of(world.run("web")).await;
    assert_eq!(
        run.complaint(),
        "there are no available nodes for LoadBalancer service default/web"
    );
    assert!(calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_network_alone_says_enough() {
    let mut world = World::with_nodes(2);
    let network = world.sim.home().network.to_string();
    world.configure(|options| {
        options.placement.network = Some(network.as_str().into());
        options.manages_security_groups = true;
    });
    world.run("web").await.settled();
    world.assert_settled("web").await;
    world.add_server_node(ServerSpec::new("node-9"));
    world.run("web").await.settled();
    let state = world.sim.snapshot();
    let pool = state.load_balancers[0].listeners[0].pool.as_ref().unwrap();
    assert_eq!(pool.members.len(), 3);
    assert!(pool.members.iter().all(|member| member.subnet.is_some()));
    world.assert_settled("web").await;
}

/// A member keeps its subnet for life, so it has to go and come back; never all of them at once.
#[tokio::test(start_paused = true)]
async fn members_move_to_another_subnet_half_by_half() {
    for is_serial in [false, true] {
        let mut world = World::with_nodes(3);
        let network = world.sim.home().network;
        let wide = SubnetSpec::new("wide", network, "10.1.0.0/16".parse().unwrap());
        let wide = world.sim.add_subnet(wide);
        world.configure(|options| options.is_serial = is_serial);
        world.run("web").await.settled();
        for member in world.sim.members() {
            world.sim.edit_member(member.part.id, |member| member.weight = 7);
        }
        world.annotate("web", "member-subnet-id", &wide.to_string());
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        if !is_serial {
            let members = |entry: &Entry| entry.body.as_ref().unwrap()["members"].as_array().unwrap().len();
            let counts: Vec<usize> = writes.iter().map(members).collect();
            assert_eq!(counts, [1, 3, 2, 3]);
        }
        let state = world.sim.snapshot();
        let pool = state.load_balancers[0].listeners[0].pool.as_ref().unwrap();
        let mut subnets = pool.members.iter().map(|member| member.subnet.as_deref());
        assert!(subnets.all(|subnet| subnet == Some("wide")));
        // What a person set on them comes back with them.
        let weights: Vec<u16> = world.sim.members().iter().map(|member| member.weight).collect();
        assert_eq!(weights, [7; 3], "serial: {is_serial}");
        world.assert_settled("web").await;
    }
}

#[tokio::test(start_paused = true)]
async fn members_come_and_go_one_by_one_where_the_provider_needs_it() {
    let mut world = World::with_nodes(2);
    world.configure(|options| options.is_serial = true);
    world.run("web").await.settled();
    world.remove_node("node-1");
    world.add_node("node-3");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(
        in_short(&writes),
        ["octavia.members.create", "octavia.members.delete"]
    );
    world.assert_settled("web").await;
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

#[tokio::test(start_paused = true)]
async fn members_follow_the_nodes_whatever_octavia_makes_of_the_listener() {
    let mut world = World::with_nodes(2);
    world.run("web").await.settled();
    let body =
        r#"{"faultcode": "Client", "faultstring": "Validation failure: no such CIDR", "debuginfo": null}"#;
    let fault = Fault::operation("octavia.listeners.update").always();
    world.sim.faults().add(fault.answer(Canned::json(400, body)));
    world.annotate("web", "connection-limit", "7");
    world.remove_node("node-1");
    world.add_node("node-3");
    assert!(world.run("web").await.complaint().contains("no such CIDR"));
    assert_eq!(names(&world), ["node-2", "node-3"]);
}

/// A person drains a node: its weight is 0, or it is switched off. The list that Octavia takes writes defaults for what it leaves out.
#[tokio::test(start_paused = true)]
async fn what_a_person_set_on_a_member_outlives_a_change_of_the_list() {
    let mut world = World::with_nodes(3);
    world.run("web").await.settled();
    let of_node = |world: &World, name: &str| {
        let mut members = world.sim.members().into_iter();
        members.find(|member| member.part.name == name).unwrap()
    };
    world
        .sim
        .edit_member(of_node(&world, "node-1").part.id, |member| {
            (member.weight, member.is_backup) = (0, true);
            member.monitor_address = Some("10.0.0.99".parse().unwrap());
        });
    world
        .sim
        .edit_member(of_node(&world, "node-2").part.id, |member| {
            member.part.is_up = false;
        });
    world.assert_settled("web").await;
    world.remove_node("node-3");
    world.add_node("node-4");
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    assert_eq!(in_short(&writes), ["octavia.members.replace"]);
    let drained = of_node(&world, "node-1");
    assert_eq!((drained.weight, drained.is_backup), (0, true));
    assert_eq!(drained.monitor_address, Some("10.0.0.99".parse().unwrap()));
    assert!(!of_node(&world, "node-2").part.is_up);
    assert_eq!(of_node(&world, "node-4").weight, 1);
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

/// What can be read follows the Nodes; the rest is told, and followed later.
#[tokio::test(start_paused = true)]
async fn a_pool_whose_members_cannot_be_read_holds_up_no_other_one() {
    let mut world = World::with_nodes(1);
    world.put(service("web", &[("TCP", 80, 30080), ("TCP", 443, 30443)]));
    world.run("web").await.settled();
    let [first, second] = [0, 1].map(|index| world.sim.pools()[index].part.id);
    let path = format!("/load-balancer/v2.0/lbaas/pools/{first}/members");
    let list = Fault::on(http::Method::GET, path.as_str()).always().status(500);
    world.sim.faults().add(list);
    world.add_node("node-2");
    let run = world.run("web").await;
    let complaint = run.complaint();
    let told = "the members of pool pool_0_kube_service_lab_default_web cannot be read: ";
    assert!(complaint.starts_with(told), "{complaint}");
    let members = |pool| world.sim.members().iter().filter(|it| it.pool == pool).count();
    assert_eq!((members(first), members(second)), (1, 2));
    world.sim.faults().clear();
    world.run("web").await.settled();
    assert_eq!((members(first), members(second)), (2, 2));
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn members_follow_the_nodes_while_monitors_cannot_be_read() {
    let mut world = World::with_nodes(1);
    world.configure(|options| options.monitor.is_wanted = true);
    world.run("web").await.settled();
    let list = Fault::operation("octavia.healthmonitors.list")
        .always()
        .status(500);
    world.sim.faults().add(list);
    world.add_node("node-2");
    let run = world.run("web").await;
    let complaint = run.complaint();
    assert!(
        complaint.starts_with("health monitors cannot be read: "),
        "{complaint}"
    );
    assert_eq!(world.sim.members().len(), 2);
    world.sim.faults().clear();
    world.assert_settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn local_traffic_without_monitors_is_told_with_the_setting() {
    for (configured, annotated, told) in [
        (false, None, Some("create-monitor of [LoadBalancer]")),
        (true, Some("false"), Some("enable-health-monitor of the Service")),
        (false, Some("true"), None),
        (true, None, None),
    ] {
        let mut world = World::with_nodes(1);
        world.configure(|options| options.monitor.is_wanted = configured);
        if let Some(annotated) = annotated {
            world.annotate("web", "enable-health-monitor", annotated);
        }
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            spec.external_traffic_policy = Some("Local".into());
            spec.health_check_node_port = Some(31_000);
        });
        let run = world.run("web").await.settled();
        let note = run
            .notes
            .iter()
            .find(|note| note.reason == "LoadBalancerUnmonitored");
        let is_right = match (note, told) {
            (Some(note), Some(told)) => note.text.contains(told),
            (note, told) => note.is_none() && told.is_none(),
        };
        assert!(is_right, "{configured} {annotated:?}: {:?}", run.notes);
    }
}
