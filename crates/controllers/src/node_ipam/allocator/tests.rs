use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn ranges() -> Ranges {
    Ranges {
        cluster: vec![(net("10.200.0.0/24"), 28), (net("fd00::/60"), 64)],
        services: vec![
            net("10.200.0.64/26"),
            net("172.16.0.0/16"),
            net("fd00:0:0:3::/112"),
        ],
    }
}

fn node(name: &str, uid: &str, networks: &[IpNet]) -> Node {
    Node {
        uid: uid.into(),
        pod_cidrs: networks.iter().map(ToString::to_string).collect(),
        ..Node::named(name)
    }
}

fn granted(allocator: &mut Allocator, node: &Node) -> Vec<String> {
    match allocator.grant(node).0 {
        Grant::Networks(networks) => networks.iter().map(ToString::to_string).collect(),
        Grant::Written => vec!["written".into()],
        Grant::Exhausted => vec!["exhausted".into()],
    }
}

#[test]
fn a_block_that_a_node_may_show_is_nobody_else_s_until_the_node_is_gone() {
    let mut allocator = Allocator::new(&ranges());
    let (a, b) = (node("a", "1", &[]), node("b", "2", &[]));
    let first = granted(&mut allocator, &a);
    allocator.doubt(&a);
    assert!(!allocator.give_back(&a), "the first try may have been made");
    assert_ne!(granted(&mut allocator, &b), first);
    assert_eq!(granted(&mut allocator, &a), first, "the same is tried again");
    assert!(
        !allocator.give_back(&a),
        "also after later tries that were refused"
    );
    assert!(allocator.give_back(&b));
    assert!(allocator.release(&a));
}

#[test]
fn a_node_gets_a_block_of_each_network_of_the_cluster() {
    let mut allocator = Allocator::new(&ranges());
    assert_eq!(
        granted(&mut allocator, &node("a", "1", &[])),
        ["10.200.0.0/28", "fd00::/64"]
    );
    assert_eq!(
        granted(&mut allocator, &node("b", "2", &[])),
        ["10.200.0.16/28", "fd00:0:0:1::/64"]
    );
    assert_eq!(
        granted(&mut allocator, &node("a", "1", &[])),
        ["10.200.0.0/28", "fd00::/64"],
        "the same until it is written"
    );
    allocator.written(&node("a", "1", &[]));
    assert_eq!(granted(&mut allocator, &node("a", "1", &[])), ["written"]);
    assert_eq!(
        granted(&mut allocator, &node("a", "9", &[])),
        ["10.200.0.32/28", "fd00:0:0:2::/64"],
        "another Node of that name is another Node"
    );
}

#[test]
fn what_is_given_back_or_released_can_be_given_again() {
    let mut allocator = Allocator::new(&ranges());
    let (a, b) = (node("a", "1", &[]), node("b", "2", &[]));
    granted(&mut allocator, &a);
    granted(&mut allocator, &b);
    allocator.written(&a);
    assert!(!allocator.give_back(&a), "it is the Node's by now");
    assert!(allocator.give_back(&b));
    assert!(!allocator.give_back(&b));
    assert!(
        !allocator.release(&node("a", "9", &[])),
        "an event about a predecessor"
    );
    assert!(allocator.release(&a));
    allocator.written(&a);
    assert_eq!(
        allocator.accounts()[0].usage(),
        4.0 / 16.0,
        "only the Services' blocks"
    );
}

#[test]
fn what_is_odd_about_the_networks_of_a_node_is_told_and_nothing_that_overlaps_them_is_given() {
    let mut allocator = Allocator::new(&ranges());
    let texts = |name: &str, uid: &str, networks: &[&str]| Node {
        pod_cidrs: networks.iter().map(|text| (*text).to_owned()).collect(),
        ..node(name, uid, &[])
    };
    let odd = allocator.observe(&texts(
        "a",
        "1",
        &["192.168.0.0/24", "nonsense", "010.200.0.1/28"],
    ));
    assert_eq!(odd.outside, ["192.168.0.0/24", "nonsense"]);
    assert_eq!(odd.shared_with, [""; 0].map(NodeName::new));
    let odd = allocator.observe(&texts("b", "2", &["10.200.0.0/27", "10.200.0.128/28"]));
    assert_eq!(odd.outside, [""; 0], "two of a family");
    assert_eq!(odd.shared_with, [NodeName::new("a")]);
    let given: Vec<String> = (0..9)
        .map(|n| granted(&mut allocator, &node(&format!("n{n}"), "3", &[])).swap_remove(0))
        .collect();
    assert_eq!(given[..2], ["10.200.0.32/28", "10.200.0.48/28"]);
    assert!(!given.contains(&"10.200.0.128/28".to_owned()), "{given:?}");
}

#[test]
fn the_books_count_what_was_taken_and_freed() {
    let mut allocator = Allocator::new(&ranges());
    let a = node("a", "1", &[net("10.200.0.128/27")]);
    allocator.observe(&a);
    allocator.observe(&a);
    granted(&mut allocator, &node("b", "2", &[]));
    allocator.release(&a);
    let account = &allocator.accounts()[0];
    assert_eq!((account.allocations, account.releases), (3, 2));
    assert_eq!(account.blocks(), 16);
}

#[derive(Debug, Clone)]
enum Step {
    /// A Node registers and asks.
    Grant(u8),
    /// The write of what it was given arrives.
    Write(u8),
    /// The write fails for good.
    Fail(u8),
    /// Somebody else gives it this block.
    Elsewhere(u8, u8),
    /// It is deleted.
    Delete(u8),
    /// The manager starts anew from what Nodes show.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..10_u8;
    prop_oneof![
        4 => name.clone().prop_map(Step::Grant),
        3 => name.clone().prop_map(Step::Write),
        1 => name.clone().prop_map(Step::Fail),
        1 => (name.clone(), 0..16_u8).prop_map(|(name, block)| Step::Elsewhere(name, block)),
        2 => name.prop_map(Step::Delete),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn no_network_is_given_twice_or_from_the_services(steps in proptest::collection::vec(step(), 1..120)) {
        let ranges = ranges();
        let mut allocator = Allocator::new(&ranges);
        // What the API server holds, and what was given and is not written yet.
        let mut nodes: BTreeMap<u8, Node> = BTreeMap::new();
        let mut given: BTreeMap<u8, Vec<IpNet>> = BTreeMap::new();
        let mut registered = 0_u32;
        for step in steps {
            match step {
                Step::Grant(n) => {
                    let node = nodes.entry(n).or_insert_with(|| {
                        registered += 1;
                        node(&format!("n{n}"), &registered.to_string(), &[])
                    });
                    if !node.pod_cidrs.is_empty() {
                        continue;
                    }
                    match allocator.grant(node).0 {
                        Grant::Networks(networks) => {
                            prop_assert_eq!(networks.len(), 2);
                            if let Some(before) = given.get(&n) {
                                prop_assert_eq!(before, &networks, "the same until it is written");
                                continue;
                            }
                            for network in &networks {
                                let of_others = nodes.iter().filter(|(other, _)| **other != n);
                                for (other, node) in of_others {
                                    let shown = node.pod_cidrs.iter().map(|text| net(text));
                                    let theirs = shown.chain(given.get(other).into_iter().flatten().copied());
                                    for theirs in theirs {
                                        prop_assert!(!theirs.contains(network) && !network.contains(&theirs), "{network} {theirs}");
                                    }
                                }
                                for services in &ranges.services {
                                    prop_assert!(!services.contains(network) && !network.contains(services), "{network}");
                                }
                            }
                            given.insert(n, networks);
                        }
                        Grant::Written => prop_assert!(false, "nothing was written"),
                        Grant::Exhausted => {}
                    }
                }
                Step::Write(n) => if let (Some(networks), Some(node)) = (given.remove(&n), nodes.get_mut(&n)) {
                    allocator.written(node);
                    node.pod_cidrs = networks.iter().map(ToString::to_string).collect();
                    prop_assert!(allocator.observe(node).outside.is_empty());
                },
                Step::Fail(n) => if given.remove(&n).is_some() {
                    prop_assert!(allocator.give_back(&nodes[&n]));
                },
                Step::Elsewhere(n, block) => if let Some(node) = nodes.get_mut(&n)
                    && node.pod_cidrs.is_empty()
                {
                    given.remove(&n);
                    node.pod_cidrs = vec![format!("10.200.0.{}/28", u32::from(block) * 16)];
                    prop_assert!(allocator.observe(node).outside.is_empty());
                },
                Step::Delete(n) => if let Some(node) = nodes.remove(&n) {
                    given.remove(&n);
                    allocator.release(&node);
                },
                Step::Restart => {
                    given.clear();
                    allocator = Allocator::new(&ranges);
                    for node in nodes.values().filter(|node| !node.pod_cidrs.is_empty()) {
                        prop_assert!(allocator.observe(node).outside.is_empty());
                    }
                }
            }
        }
        for node in nodes.into_values() {
            allocator.release(&node);
        }
        let untouched = Allocator::new(&ranges);
        for (after, before) in allocator.accounts().iter().zip(untouched.accounts()) {
            prop_assert_eq!(after.usage(), before.usage(), "everything was freed");
        }
    }
}
