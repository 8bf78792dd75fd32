//! VPC tiers: items of the ACL list.

use super::*;
use crate::load_balancer::annotations::ACL_SOURCES;
use crate::load_balancer::names;
use crate::load_balancer::objects::Neighbour;

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
    assert!(world.observed.rules.is_empty() && world.observed.firewalls[&acl()].is_empty());
}

#[test]
fn an_acl_item_that_others_need_is_kept() {
    let mut world = World::vpc();
    world.settle();
    let mut neighbour = world.rule("tcp-443").clone();
    (neighbour.id, neighbour.name) = ("s".into(), "other".to_owned());
    world
        .observed
        .neighbours
        .insert("n1".into(), vec![Neighbour::Rule(neighbour)]);
    world.is_wanted = false;
    world.settle();
    let left: Vec<String> = world.observed.firewalls[&acl()]
        .iter()
        .map(|item| item.ingress.to_string())
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
        world.observed.firewalls[&acl()]
            .iter()
            .all(|item| item.sources.is_same(&Cidrs::parse("192.0.2.0/24")))
    );
}

#[test]
fn an_item_for_a_range_is_kept_for_those_who_may_live_on_it() {
    let range = "192.0.2.0/24";
    for (ranges, made_for, is_going, is_kept) in [
        (json!([range]), None, false, true),
        // It is there until its rules are gone.
        (json!([range]), None, true, true),
        (json!(["198.51.100.0/24"]), None, false, false),
        // Its sources were changed a moment ago.
        (json!(["198.51.100.0/24"]), Some(range), false, true),
        // Nobody knows what it is open for.
        (json!(["all of them"]), None, false, true),
    ] {
        let mut world = World::vpc();
        world.spec(|spec| spec["loadBalancerSourceRanges"] = json!([range]));
        world.settle();
        let uid = "8c9e6679-7425-40de-944b-e07fc1f90ae7";
        let mut other = world.service.clone();
        other.metadata.uid = Some(uid.to_owned());
        other.metadata.annotations = made_for.map(|made_for| [(ACL_SOURCES.key, made_for.to_owned())].into());
        if is_going {
            let since = json!("2026-01-01T00:00:00Z");
            other.metadata.deletion_timestamp = serde_json::from_value(since).unwrap();
        }
        let what = format!("{ranges} {made_for:?} {is_going}");
        other.spec.as_mut().unwrap().load_balancer_source_ranges = serde_json::from_value(ranges).unwrap();
        world.others.push(other);
        let mut rule = world.rule("tcp-443").clone();
        rule.name = rule.name.replace(NAME, &names::balancer(uid));
        rule.id = "theirs".into();
        world
            .observed
            .neighbours
            .insert("n1".into(), vec![Neighbour::Rule(rule)]);
        world.is_wanted = false;
        world.settle();
        let left = world.observed.firewalls[&acl()].iter();
        let left: Vec<String> = left.map(|item| item.ingress.to_string()).collect();
        assert_eq!(left, if is_kept { vec!["tcp/443"] } else { Vec::new() }, "{what}");
    }
}
