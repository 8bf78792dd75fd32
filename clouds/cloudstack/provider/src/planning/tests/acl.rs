//! VPC tiers: items of the ACL list.

use super::*;

#[test]
fn a_vpc_opens_its_acl_list_and_speaks_tcp_to_it() {
    let mut world = World::vpc();
    world.annotate(PROXY_PROTOCOL.key, "true");
    let labels = world.settle();
    assert!(
        labels.contains(&"open-acl(tier-acl tcp/443 from 0.0.0.0/0)".to_owned()),
        "{labels:?}"
    );
    assert_eq!(world.names(), ["tcp-proxy-443", "udp-4500"]);
    world.is_wanted = false;
    let labels = world.settle();
    let position = |part: &str| labels.iter().position(|label| label.contains(part)).unwrap();
    assert!(
        position("close-acl(tier-acl tcp/443") < position("release-ip"),
        "{labels:?}"
    );
    assert!(world.observed.rules.is_empty() && world.observed.acls["acl"].is_empty());
}

#[test]
fn an_acl_item_that_others_need_is_kept() {
    let mut world = World::vpc();
    world.settle();
    let mut neighbour = world.rule("tcp-443").clone();
    (neighbour.id, neighbour.name) = ("s".to_owned(), "other".to_owned());
    world.observed.neighbours.insert("n1".to_owned(), vec![neighbour]);
    world.is_wanted = false;
    world.settle();
    let left: Vec<String> = world.observed.acls["acl"]
        .iter()
        .map(|item| item.opening.to_string())
        .collect();
    assert_eq!(left, ["tcp/443"]);
}

#[test]
fn source_ranges_narrow_the_acl_list_and_open_it_again() {
    let mut world = World::vpc();
    world.settle();
    world.spec(|spec| spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]));
    let labels = world.settle();
    let kinds: Vec<&str> = labels
        .iter()
        .map(|label| label.split('(').next().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "annotate-service",
            "open-acl",
            "open-acl",
            "close-acl",
            "close-acl"
        ]
    );
    assert!(
        world.observed.acls["acl"]
            .iter()
            .all(|item| item.sources.is_same(&Cidrs::parse("192.0.2.0/24")))
    );
}
