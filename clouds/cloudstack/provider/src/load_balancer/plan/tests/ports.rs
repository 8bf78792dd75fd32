//! Rules follow the Service port by port.

use super::*;

#[test]
fn a_new_balancer_claims_its_address_before_it_acquires_it() {
    let mut world = World::new();
    assert_eq!(world.run(), Ok(Some(CHOSEN_IP.to_owned())));
    let all = "vm-cp-a, vm-pool-a-7, vm-pool-a-8";
    assert_eq!(
        world.labels,
        [
            format!(
                "annotate-service({}=any-of n1 since 2023-11-14T22:13:20Z but)",
                IP_IDS.key
            ),
            "associate-ip(any for network n1)".to_owned(),
            format!(
                "annotate-service({}={CHOSEN}, {}={CHOSEN} n1)",
                IP_IDS.key, IP_NETWORKS.key
            ),
            format!("create-rule({NAME}-tcp-443 -> 31443)"),
            format!("create-rule({NAME}-udp-4500 -> 31500)"),
            format!("assign({NAME}-tcp-443: {all})"),
            format!("open-firewall({CHOSEN_IP} tcp/443 from 0.0.0.0/0)"),
            format!("assign({NAME}-udp-4500: {all})"),
            format!("open-firewall({CHOSEN_IP} udp/4500 from 0.0.0.0/0)"),
        ]
    );
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn a_rule_follows_affinity_and_a_source_network_in_place() {
    let mut world = World::new();
    world.settle();
    let ids = |world: &World| {
        world
            .observed
            .rules
            .iter()
            .map(|rule| rule.id.clone())
            .collect::<Vec<_>>()
    };
    let before = ids(&world);
    world.spec(|spec| spec["sessionAffinity"] = json!("ClientIP"));
    world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16");
    let labels = world.settle();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(
        labels.iter().all(|label| label.starts_with("update-rule(")),
        "{labels:?}"
    );
    assert_eq!(ids(&world), before);
    assert_eq!(world.rule("tcp-443").algorithm.as_str(), "source");
    assert!(world.rule("tcp-443").cidrs.is_same(&Cidrs::parse("10.9.0.0/16")));
}

/// The kinds of what was done to rules, in order.
fn rule_steps(labels: &[String]) -> Vec<&str> {
    let kinds = labels.iter().filter_map(|label| Some(label.split_once('(')?.0));
    kinds
        .filter(|kind| ["create-rule", "update-rule", "delete-rule", "assign", "remove"].contains(kind))
        .collect()
}

const ANEW: [&str; 3] = ["delete-rule", "create-rule", "assign"];

#[test]
fn what_an_update_cannot_do_or_the_router_would_not_hear_of_makes_the_rule_anew() {
    type Change = fn(&mut World);
    let cases: [(&str, Change); 4] = [
        ("two networks", |world| {
            world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16,192.0.2.0/24")
        }),
        ("the same one twice", |world| {
            world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16,10.9.0.0/16")
        }),
        ("IPv6", |world| world.annotate(SOURCE_CIDRS.key, "2001:db8::/32")),
        ("a protocol", |world| world.annotate(PROXY_PROTOCOL.key, "true")),
    ];
    for (what, change) in cases {
        let mut world = World::new();
        world.spec(|spec| {
            spec["ports"].as_array_mut().unwrap().pop();
        });
        world.settle();
        change(&mut world);
        let labels = world.settle();
        assert_eq!(rule_steps(&labels), ANEW, "{what}: {labels:?}");
        assert_eq!(world.settle(), Vec::<String>::new(), "{what}");
    }
}

/// Both rules list two networks with commas, as the Go manager's update leaves them, and nothing else is wrong.
fn with_commas() -> World {
    let mut world = World::new();
    world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16,192.0.2.0/24");
    world.settle();
    for rule in &mut world.observed.rules {
        rule.has_commas = true;
    }
    world
}

fn reasons(world: &World) -> Vec<&'static str> {
    let plan = plan(&world.intent().unwrap(), &world.observed);
    plan.notes.iter().map(|note| note.reason).collect()
}

#[test]
fn lists_with_commas_are_told_of_and_left_until_something_changes() {
    let mut world = with_commas();
    assert_eq!(reasons(&world), ["RouterConfigBroken"]);
    assert_eq!(world.settle(), Vec::<String>::new());
    // Before 4.18 such lists are none of the rules'.
    world.observed.abilities.as_mut().unwrap().takes_cidrs = Some(false);
    world.annotate(SOURCE_CIDRS.key, "0.0.0.0/0");
    for rule in &mut world.observed.rules {
        rule.cidrs = Cidrs::default();
    }
    assert_eq!(reasons(&world), Vec::<&str>::new());
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn whatever_changes_all_lists_with_commas_go_first() {
    type Change = fn(&mut World);
    let cases: [(&str, Change, &[&str]); 5] = [
        (
            "an annotation",
            |world| world.observed.memory.own.known.is_changed = true,
            &[],
        ),
        ("a node", |world| world.nodes = vec!["cp-a"], &[]),
        (
            "affinity",
            |world| world.spec(|spec| spec["sessionAffinity"] = json!("ClientIP")),
            &[],
        ),
        (
            "one node port",
            |world| world.spec(|spec| spec["ports"][0]["nodePort"] = json!(32000)),
            &[],
        ),
        (
            "a new port",
            |world| {
                world.spec(|spec| {
                    let port = json!({ "port": 80, "nodePort": 31080, "protocol": "TCP" });
                    spec["ports"].as_array_mut().unwrap().insert(0, port);
                });
            },
            &["create-rule", "assign"],
        ),
    ];
    for (what, change, rest) in cases {
        let mut world = with_commas();
        change(&mut world);
        let labels = world.settle();
        let expected = [&ANEW, &ANEW, rest].concat();
        assert_eq!(rule_steps(&labels), expected, "{what}: {labels:?}");
        assert!(!world.observed.rules.iter().any(|rule| rule.has_commas), "{what}");
        world.observed.memory.own.known.is_changed = false;
        assert_eq!(reasons(&world), Vec::<&str>::new(), "{what}");
    }
}

#[test]
fn a_list_with_commas_becomes_one_network_where_the_rule_stands() {
    let mut world = with_commas();
    world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16");
    let labels = world.settle();
    assert_eq!(rule_steps(&labels), ["update-rule", "update-rule"], "{labels:?}");
    assert!(!world.observed.rules.iter().any(|rule| rule.has_commas));
}

#[test]
fn nobody_to_lead_to_leaves_lists_with_commas() {
    let mut world = with_commas();
    world.nodes.clear();
    world.observed.memory.own.known.is_changed = true;
    assert_eq!(world.settle(), Vec::<String>::new());
    assert_eq!(reasons(&world), ["RouterConfigBroken"]);
}

/// One port for TCP and UDP.
fn both(world: &mut World) {
    world.spec(|spec| spec["ports"][1]["port"] = json!(443));
}

#[test]
fn one_port_for_tcp_and_udp_has_two_rules() {
    let mut world = World::new();
    both(&mut world);
    world.settle();
    assert_eq!(world.names(), ["tcp-443", "udp-443"]);
    assert_eq!(
        (world.sources("tcp/443").len(), world.sources("udp/443").len()),
        (1, 1)
    );
    let tcp = world.rule("tcp-443").id.clone();
    // Each follows what is asked for alone.
    world.spec(|spec| spec["ports"][1]["nodePort"] = json!(32000));
    let labels = world.settle();
    assert_eq!(rule_steps(&labels), ANEW, "{labels:?}");
    assert_eq!(world.rule("tcp-443").id, tcp);
    world.spec(|spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    let labels = world.settle();
    assert_eq!(rule_steps(&labels), ["delete-rule"], "{labels:?}");
    assert_eq!(world.names(), ["tcp-443"]);
    assert_eq!(
        (world.sources("tcp/443").len(), world.sources("udp/443").len()),
        (1, 0)
    );
    assert_eq!(reasons(&world), Vec::<&str>::new(), "none was there twice");
    world.spec(|spec| {
        let udp = json!({ "port": 443, "nodePort": 31500, "protocol": "UDP" });
        spec["ports"].as_array_mut().unwrap().push(udp);
    });
    world.settle();
    assert_eq!(world.names(), ["tcp-443", "udp-443"]);
    assert_eq!(world.rule("tcp-443").id, tcp);
}

#[test]
fn a_server_that_cannot_change_source_networks_makes_the_rule_anew() {
    let mut world = World::new();
    world.observed.abilities.as_mut().unwrap().changes_cidrs = false;
    world.settle();
    world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16");
    let labels = world.settle();
    let kinds: Vec<&str> = labels
        .iter()
        .map(|label| label.split('(').next().unwrap())
        .collect();
    assert_eq!(
        kinds[1..7],
        [
            "delete-rule",
            "create-rule",
            "assign",
            "delete-rule",
            "create-rule",
            "assign"
        ]
    );
    world.observed.abilities.as_mut().unwrap().takes_cidrs = Some(false);
    assert!(world.run().unwrap_err().contains("from version 4.18 on"));
}

#[test]
fn a_new_node_port_makes_one_rule_anew_and_leaves_the_others() {
    let mut world = World::new();
    world.settle();
    let udp = world.rule("udp-4500").id.clone();
    world.spec(|spec| spec["ports"][0]["nodePort"] = json!(32000));
    let labels = world.settle();
    let kinds: Vec<&str> = labels
        .iter()
        .map(|label| label.split('(').next().unwrap())
        .collect();
    // The port stays open meanwhile, which is written down.
    assert_eq!(
        kinds,
        [
            "annotate-service",
            "delete-rule",
            "create-rule",
            "assign",
            "annotate-service"
        ]
    );
    assert_eq!(world.rule("tcp-443").private_port, Some(32000));
    assert_eq!(world.rule("udp-4500").id, udp);
}

#[test]
fn the_proxy_protocol_is_switched_by_a_new_rule_and_the_port_stays_open() {
    let mut world = World::new();
    world.settle();
    for (value, end) in [("true", "tcp-proxy-443"), ("enabled", "tcp-443")] {
        world.annotate(PROXY_PROTOCOL.key, value);
        let labels = world.settle();
        assert_eq!(rule_steps(&labels), ANEW, "{labels:?}");
        assert!(
            !labels.iter().any(|label| label.contains("firewall")),
            "{labels:?}"
        );
        assert_eq!(world.names(), ["udp-4500", end]);
    }
}

#[test]
fn a_port_that_changes_between_tcp_and_udp_is_freed_first() {
    let mut world = World::new();
    world.settle();
    world.spec(|spec| spec["ports"][1]["protocol"] = json!("TCP"));
    let labels = world.settle();
    let position = |part: &str| labels.iter().position(|label| label.contains(part)).unwrap();
    assert!(position("delete-rule") < position("create-rule"), "{labels:?}");
    assert_eq!(world.names(), ["tcp-443", "tcp-4500"]);
}

#[test]
fn a_removed_port_is_closed_before_its_rule_goes() {
    let mut world = World::new();
    world.settle();
    world.spec(|spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    let labels = world.settle();
    let kinds: Vec<&str> = labels
        .iter()
        .map(|label| label.split('(').next().unwrap())
        .collect();
    assert_eq!(kinds, ["close-firewall", "delete-rule"]);
    assert_eq!(world.names(), ["tcp-443"]);
    assert_eq!(world.sources("udp/4500"), Vec::<String>::new());
}

#[test]
fn rules_of_the_provider_inside_of_kubernetes_are_adopted() {
    let mut world = World::new();
    world.settle();
    for rule in &mut world.observed.rules {
        rule.name = format!("{NAME}-{}", rule.public_port.unwrap());
    }
    let labels = world.settle();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(
        labels.iter().all(|label| label.starts_with("update-rule(")),
        "{labels:?}"
    );
    assert_eq!(world.names(), ["tcp-443", "udp-4500"]);
}

#[test]
fn surplus_rules_on_a_port_go_and_the_best_one_stays() {
    let mut world = World::new();
    world.settle();
    let kept = world.rule("tcp-443").id.clone();
    let mut surplus = world.rule("tcp-443").clone();
    (surplus.id, surplus.state) = ("0".into(), RuleState::Add);
    world.observed.rules.insert(0, surplus);
    assert_eq!(world.settle(), [format!("delete-rule({NAME}-tcp-443)")]);
    assert_eq!(world.rule("tcp-443").id, kept);
}

#[test]
fn what_cannot_be_read_of_a_rule_does_not_keep_it() {
    let mut world = World::new();
    world.settle();
    let mut odd = world.rule("udp-4500").clone();
    (odd.id, odd.public_port, odd.protocol) = ("odd".into(), None, "ssl".into());
    world.observed.rules.push(odd);
    assert_eq!(world.settle().len(), 1);
    assert_eq!(world.names(), ["tcp-443", "udp-4500"]);
}

#[test]
fn members_follow_the_nodes_and_missing_ones_come_first() {
    let mut world = World::new();
    world.settle();
    world.nodes = vec!["cp-a", "pool-a-7"];
    let labels = world.settle();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(
        labels
            .iter()
            .all(|label| label.starts_with("remove(") && label.ends_with(": vm-pool-a-8)"))
    );
    world.nodes = vec!["pool-a-8"];
    let labels = world.settle();
    let kinds: Vec<&str> = labels
        .iter()
        .map(|label| label.split('(').next().unwrap())
        .collect();
    assert_eq!(kinds, ["assign", "assign", "remove", "remove"]);
    // Nobody to lead to: better the old ones than none.
    world.nodes.clear();
    assert_eq!(world.settle(), Vec::<String>::new());
}

#[test]
fn a_gap_is_closed_before_another_one_begins_in_whatever_order_the_ports_come() {
    for steps in 0..8 {
        let mut world = World::new();
        world.settle();
        world.spec(|spec| {
            spec["ports"][0]["nodePort"] = json!(32000);
            spec["ports"][1]["nodePort"] = json!(32001);
        });
        for _ in 0..steps {
            world.step();
        }
        world.spec(|spec| spec["ports"].as_array_mut().unwrap().reverse());
        let mut fewest = usize::MAX;
        let settled = world.run_checked(|world| {
            let members = &world.observed.members;
            let serves = |rule: &&Rule| members.get(&rule.id).is_none_or(|members| !members.is_empty());
            fewest = fewest.min(world.observed.rules.iter().filter(serves).count());
        });
        assert_eq!(
            settled,
            Ok(Some(CHOSEN_IP.to_owned())),
            "{steps}: {:?}",
            world.labels
        );
        assert!(fewest >= 1, "after {steps} steps: {:#?}", world.labels);
    }
}
