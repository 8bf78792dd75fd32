use bowline_cloud_provider::AddressType;
use proptest::prelude::*;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn node(name: &str, networks: &[&str]) -> Arc<Node> {
    Arc::new(Node {
        pod_cidrs: networks.iter().map(|text| (*text).to_owned()).collect(),
        ..Node::named(name)
    })
}

fn route(target: &str, destination: &str) -> Route {
    Route {
        name: format!("{target}-{destination}"),
        target_node: (!target.is_empty()).then(|| NodeName::new(target)),
        target_provider_id: None,
        next_hop: None,
        target_addresses: Vec::new(),
        compares_addresses: false,
        destination: net(destination),
        is_blackhole: false,
        is_incomplete: false,
    }
}

fn address(text: &str) -> NodeAddress {
    NodeAddress::new(AddressType::InternalIp, text)
}

/// `network action` of each Node, then `-name` of each deletion.
fn shown(nodes: &[Arc<Node>], listed: &[Route]) -> Vec<String> {
    let plan = Plan::new(nodes, listed, &[net("10.200.0.0/16"), net("fd00::/48")]);
    let tables = plan.tables.iter().map(|table| {
        let networks = table.networks.iter().map(|network| match &network.destination {
            Ok(destination) => format!(" {destination} {:?}", network.action),
            Err(text) => format!(" ?{text} {:?}", network.action),
        });
        format!("{}:{}", table.node.name, networks.collect::<String>())
    });
    tables
        .chain(plan.deletions.iter().map(|route| format!("-{}", route.name)))
        .collect()
}

#[test]
fn what_is_incomplete_is_created_once_more_where_it_is_wanted_and_deleted_where_not() {
    let incomplete = |target: &str, destination: &str| Route {
        is_incomplete: true,
        ..route(target, destination)
    };
    let nodes = [node("a", &["10.200.1.0/24"]), node("b", &["10.200.2.0/24"])];
    let listed = [
        incomplete("a", "10.200.1.0/24"),
        incomplete("b", "10.200.2.0/24"),
        route("b", "10.200.2.0/24"),
        incomplete("c", "10.200.3.0/24"),
        incomplete("", "192.168.0.0/16"),
    ];
    assert_eq!(
        shown(&nodes, &listed),
        [
            "a: 10.200.1.0/24 Complete",
            "b: 10.200.2.0/24 Keep",
            "-c-10.200.3.0/24"
        ]
    );
}

#[test]
fn an_instance_of_another_name_is_known_by_its_provider_id() {
    let node = |name: &str, id: &str, network: &str| {
        Arc::new(Node {
            provider_id: Some(id.into()),
            ..Node::clone(&node(name, &[network]))
        })
    };
    let to = |id: &str, instance: &str, destination: &str| Route {
        target_provider_id: Some(id.into()),
        ..route(instance, destination)
    };
    let nodes = [
        node("a", "cloud://1", "10.200.1.0/24"),
        node("b", "cloud://2", "10.200.2.0/24"),
        node("c", "cloud://3", "10.200.3.0/24"),
    ];
    let listed = [
        to("cloud://1", "vm-1", "10.200.1.0/24"),
        // The ID goes before the name, and where it is nobody's the name counts.
        to("cloud://1", "b", "10.200.2.0/24"),
        to("cloud://eu/3", "c", "10.200.3.0/24"),
    ];
    assert_eq!(
        shown(&nodes, &listed),
        [
            "a: 10.200.1.0/24 Keep",
            "b: 10.200.2.0/24 Add",
            "c: 10.200.3.0/24 Keep",
            "-b-10.200.2.0/24"
        ]
    );
}

#[test]
fn a_route_to_an_address_is_one_to_the_node_that_has_it() {
    let node = |name: &str, addresses: &[&str], network: &str| {
        Arc::new(Node {
            addresses: addresses.iter().map(|text| address(text)).collect(),
            ..Node::clone(&node(name, &[network]))
        })
    };
    let via = |next_hop: &str, destination: &str| Route {
        name: destination.to_owned(),
        next_hop: Some(next_hop.parse().unwrap()),
        ..route("", destination)
    };
    let nodes = [
        node("a", &["a", "10.0.0.11"], "10.200.1.0/24"),
        node("b", &["10.0.0.12", "2001:DB8::c"], "fd00:0:0:2::/64"),
        node("c", &["10.0.0.12"], "10.200.3.0/24"),
    ];
    let listed = [
        via("10.0.0.11", "10.200.1.0/24"),
        via("2001:db8::c", "fd00:0:0:2::/64"),
        via("10.0.0.12", "10.200.3.0/24"),
        via("10.0.0.99", "10.200.4.0/24"),
        via("10.0.0.99", "192.168.0.0/24"),
    ];
    assert_eq!(
        shown(&nodes, &listed),
        [
            "a: 10.200.1.0/24 Keep",
            "b: fd00:0:0:2::/64 Keep",
            "c: 10.200.3.0/24 Keep",
            "-10.200.4.0/24"
        ]
    );
    let plan = Plan::new(&nodes, &listed, &[net("10.200.0.0/16"), net("fd00::/48")]);
    let blackholes: Vec<bool> = plan.deletions.iter().map(|route| route.is_blackhole).collect();
    assert_eq!(blackholes, [true]);
}

#[test]
fn of_nodes_with_one_instance_the_one_with_the_pod_network_has_the_route() {
    let node = |name: &str, network: &str| {
        Arc::new(Node {
            provider_id: Some("cloud://1".into()),
            addresses: vec![address("10.0.0.7")],
            ..Node::clone(&node(name, &[network]))
        })
    };
    let nodes = [
        node("a", "10.200.1.0/24"),
        node("a.example.com", "10.200.2.0/24"),
        node("b", "10.200.2.0/24"),
    ];
    let via = |destination: &str| Route {
        next_hop: Some("10.0.0.7".parse().unwrap()),
        ..route("", destination)
    };
    let to = |destination: &str| Route {
        target_provider_id: Some("cloud://1".into()),
        ..route("vm", destination)
    };
    let cluster = [net("10.200.0.0/16")];
    for route in [&via as &dyn Fn(&str) -> Route, &to] {
        let listed = ["10.200.1.0/24", "10.200.2.0/24"].map(route);
        let plan = Plan::new(&nodes, &listed, &cluster);
        assert!(plan.is_settled(), "{plan:?}");

        let unwished = [route("10.200.3.0/24")];
        let plan = Plan::new(&nodes, &unwished, &cluster);
        assert_eq!(
            plan.deletions, unwished,
            "no Node has this network, but one has its target"
        );
        let with_routes: Vec<bool> = plan.tables.iter().map(|table| table.has_routes).collect();
        assert_eq!(with_routes, [true, false, false]);
    }
}

#[test]
fn each_pod_network_of_each_node_has_its_action() {
    let nodes = [
        node("a", &["10.200.1.0/24"]),
        node("b", &["10.200.2.0/24", "fd00:0:0:2::/64"]),
        node("c", &[]),
        node("d", &["what"]),
    ];
    assert_eq!(
        shown(&nodes, &[route("b", "10.200.2.0/24")]),
        [
            "a: 10.200.1.0/24 Add",
            "b: 10.200.2.0/24 Keep fd00:0:0:2::/64 Add",
            "d: ?what Add"
        ]
    );
}

#[test]
fn a_node_with_routes_and_without_pod_networks_has_an_empty_table() {
    assert_eq!(
        shown(&[node("a", &[]), node("b", &[])], &[route("a", "192.168.1.0/24")]),
        ["a:"]
    );
}

#[test]
fn routes_of_the_cluster_that_nobody_wants_are_deleted() {
    let nodes = [node("a", &["10.200.1.0/24"])];
    let listed = [
        route("a", "10.200.1.0/24"),
        route("a", "10.200.9.0/24"),
        route("gone", "10.200.2.0/24"),
        route("gone", "10.200.1.0/24"),
        route("", "10.200.3.0/24"),
        route("", "fd00:0:0:9::/64"),
    ];
    assert_eq!(
        shown(&nodes, &listed),
        [
            "a: 10.200.1.0/24 Keep",
            "-a-10.200.9.0/24",
            "-gone-10.200.2.0/24",
            "-gone-10.200.1.0/24",
            "--10.200.3.0/24",
            "--fd00:0:0:9::/64"
        ]
    );
}

#[test]
fn other_peoples_routes_are_never_deleted() {
    let mut dead = route("", "192.168.1.0/24");
    dead.is_blackhole = true;
    let listed = [
        route("", "192.168.0.0/24"),
        route("gone", "172.16.0.0/12"),
        route("", "0.0.0.0/0"),
        route("", "10.0.0.0/8"),
        route("", "::/0"),
        route("", "10.201.0.0/16"),
        dead,
    ];
    assert!(shown(&[], &listed).is_empty());
}

#[test]
fn a_route_that_reaches_into_the_cluster_is_the_clusters() {
    let cluster = [net("10.200.0.0/17")];
    assert!(is_ours(&net("10.200.0.0/16"), &cluster), "its first address");
    assert!(is_ours(&net("10.200.0.0/24"), &cluster));
    assert!(!is_ours(&net("10.200.128.0/17"), &cluster));
    assert!(
        is_ours(&net("10.0.0.0/8"), &[net("10.255.0.0/16")]),
        "its last address"
    );
}

#[test]
fn a_route_without_a_live_target_is_replaced_in_one_pass() {
    let mut dead = route("a", "10.200.1.0/24");
    dead.is_blackhole = true;
    assert_eq!(
        shown(&[node("a", &["10.200.1.0/24"])], &[dead]),
        ["a: 10.200.1.0/24 Add", "-a-10.200.1.0/24"]
    );
}

#[test]
fn addresses_count_where_the_cloud_says_so_and_their_order_does_not() {
    let with = |addresses: &[&str]| {
        let mut node = Node::clone(&node("a", &["10.200.1.0/24"]));
        node.addresses = addresses.iter().map(|text| address(text)).collect();
        [Arc::new(node)]
    };
    let mut listed = route("a", "10.200.1.0/24");
    listed.target_addresses = vec![address("1.1.1.1"), address("2.2.2.2")];
    assert_eq!(shown(&with(&[]), &[listed.clone()]), ["a: 10.200.1.0/24 Keep"]);

    listed.compares_addresses = true;
    assert_eq!(
        shown(&with(&["2.2.2.2", "1.1.1.1"]), &[listed.clone()]),
        ["a: 10.200.1.0/24 Keep"]
    );
    for others in [
        &["1.1.1.1"] as &[&str],
        &["1.1.1.1", "3.3.3.3"],
        &["1.1.1.1", "1.1.1.1"],
        &["1.1.1.1", "2.2.2.2", "3.3.3.3"],
    ] {
        assert_eq!(
            shown(&with(others), &[listed.clone()]),
            ["a: 10.200.1.0/24 Update", "-a-10.200.1.0/24"],
            "{others:?}"
        );
    }
    let cluster = [net("10.200.0.0/16")];
    assert!(Plan::new(&[], &[listed.clone()], &cluster).deletes_first);
    assert!(!Plan::new(&[], &[route("b", "10.200.7.0/24"), listed], &cluster).deletes_first);
}

fn destination() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..6_u8).prop_map(|n| format!("10.200.{n}.0/24")),
        (0..3_u8).prop_map(|n| format!("192.168.{n}.0/24")),
        (0..3_u8).prop_map(|n| format!("fd00:0:0:{n}::/64")),
        Just("0.0.0.0/0".to_owned()),
        Just("10.200.0.0/15".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    (0..4_u8).prop_map(|n| format!("n{n}"))
}

fn listed_route() -> impl Strategy<Value = Route> {
    let target = prop_oneof![Just(String::new()), name()];
    let addresses = proptest::collection::vec(0..3_u8, 0..3);
    let next_hop = proptest::option::of(0..3_u8);
    (
        target,
        next_hop,
        destination(),
        addresses,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(target, next_hop, destination, addresses, compares, is_blackhole)| Route {
                next_hop: next_hop.map(|n| format!("1.1.1.{n}").parse().unwrap()),
                target_addresses: addresses.iter().map(|n| address(&format!("1.1.1.{n}"))).collect(),
                compares_addresses: compares,
                is_blackhole,
                ..route(&target, &destination)
            },
        )
}

fn some_nodes() -> impl Strategy<Value = Vec<Arc<Node>>> {
    let networks = proptest::collection::btree_set(0..6_u8, 0..3);
    let addresses = proptest::collection::vec(0..3_u8, 0..3);
    proptest::collection::btree_map(name(), (networks, addresses), 0..4).prop_map(|nodes| {
        let node = |(name, (networks, addresses)): (String, (BTreeSet<u8>, Vec<u8>))| {
            Arc::new(Node {
                pod_cidrs: networks.iter().map(|n| format!("10.200.{n}.0/24")).collect(),
                addresses: addresses.iter().map(|n| address(&format!("1.1.1.{n}"))).collect(),
                ..Node::named(&name)
            })
        };
        nodes.into_iter().map(node).collect()
    })
}

proptest! {
    #[test]
    fn after_a_plan_is_applied_nothing_is_left_to_do(nodes in some_nodes(), mut listed in proptest::collection::vec(listed_route(), 0..12)) {
        for (n, route) in listed.iter_mut().enumerate() {
            route.name = format!("r{n}");
        }
        let cluster = [net("10.200.0.0/16"), net("fd00::/48")];
        let plan = Plan::new(&nodes, &listed, &cluster);
        prop_assert_eq!(&plan, &Plan::new(&nodes, &listed, &cluster));
        for route in &plan.deletions {
            prop_assert!(is_ours(&route.destination, &cluster));
        }
        let mut after: Vec<Route> = listed.iter().filter(|route| plan.deletions.iter().all(|deleted| deleted.name != route.name)).cloned().collect();
        for table in &plan.tables {
            for network in &table.networks {
                if network.action != Action::Keep {
                    let destination = *network.destination.as_ref().unwrap();
                    after.push(Route {
                        target_addresses: table.node.addresses.clone(),
                        compares_addresses: true,
                        ..route(table.node.name.as_str(), &destination.to_string())
                    });
                }
            }
        }
        let again = Plan::new(&nodes, &after, &cluster);
        prop_assert!(again.is_settled(), "{:?}", again);
        for foreign in listed.iter().filter(|route| !is_ours(&route.destination, &cluster)) {
            prop_assert!(after.contains(foreign));
        }
        for (node, text) in nodes.iter().flat_map(|node| node.pod_cidrs.iter().map(move |text| (node, text))) {
            let leads_to = |route: &Route| match &route.target_node {
                Some(name) => *name == node.name,
                None => route.next_hop.is_some_and(|hop| addresses(node).any(|address| address == hop)),
            };
            prop_assert!(after.iter().any(|route| leads_to(route) && route.destination == net(text)));
        }
    }
}
