//! Which address a Service lives on: claimed, acquired, moved, released.

use super::*;

#[test]
fn a_requested_free_address_is_claimed_acquired_and_marked_before_any_rule() {
    let mut world = World::new();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let free = address("ip-77", "203.0.113.77", AddressState::Free);
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![free]);
    let labels = world.settle();
    assert_eq!(
        &labels[..2],
        [
            format!(
                "annotate-service({}=true, {}=ip-77 since 2023-11-14T22:13:20Z, {}=ip-77 n1)",
                IP_ASSOCIATED.key, IP_IDS.key, IP_NETWORKS.key
            ),
            "associate-ip(203.0.113.77)".to_owned(),
        ]
    );
    assert_eq!(world.annotation(IP_IDS.key), Some("ip-77"));
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        labels.contains(&"release-ip(203.0.113.77)".to_owned()),
        "{labels:?}"
    );
    // The Service lives on without a balancer, and nothing of it is left there.
    assert_eq!(
        (world.annotation(IP_IDS.key), world.annotation(IP_ASSOCIATED.key)),
        (None, None)
    );
}

#[test]
fn a_requested_address_of_the_user_is_used_and_never_released() {
    let mut world = World::new();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let taken = address("ip-77", "203.0.113.77", AddressState::Allocated);
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![taken.clone()]);
    world.observed.firewalls.insert(firewall_of("ip-77"), Vec::new());
    world.observed.rules_of_others.insert("ip-77".into(), Vec::new());
    world.observed.addresses.insert("ip-77".into(), Some(taken));
    world.settle();
    assert_eq!(
        (world.annotation(IP_IDS.key), world.annotation(IP_ASSOCIATED.key)),
        (Some(""), None)
    );
    // Not even when the Service stops asking for it first.
    world.spec(|spec| spec["loadBalancerIP"] = Value::Null);
    assert_eq!(world.settle(), Vec::<String>::new());
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("release-ip")),
        "{labels:?}"
    );
    assert!(world.observed.rules.is_empty());
    assert_eq!(world.observed.firewalls[&firewall_of("ip-77")], []);
}

#[test]
fn an_unknown_requested_address_changes_nothing() {
    let mut world = World::new();
    world.settle();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.99"));
    world
        .observed
        .looked_up
        .insert("203.0.113.99".to_owned(), Vec::new());
    let complaint = world.run().unwrap_err();
    assert!(
        complaint.starts_with("could not find IP address 203.0.113.99. Found 0 addresses"),
        "{complaint}"
    );
    assert!(world.labels.is_empty());
}

#[test]
fn a_balancer_moves_to_another_address_before_it_leaves_the_old_one() {
    let mut world = World::new();
    world.settle();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let free = address("ip-77", "203.0.113.77", AddressState::Free);
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![free]);
    let mut was_served = true;
    let served = |world: &World| {
        let has_members = |rule: &&Rule| !world.observed.members[&rule.id].is_empty();
        world.observed.rules.iter().filter(has_members).count() >= 2
    };
    let settled = world.run_checked(|world| was_served &= served(world));
    assert_eq!(
        settled,
        Ok(Some("203.0.113.77".to_owned())),
        "{:#?}",
        world.labels
    );
    assert!(was_served, "{:#?}", world.labels);
    assert!(
        world.labels.contains(&format!("release-ip({CHOSEN_IP})")),
        "{:#?}",
        world.labels
    );
    assert_eq!(world.annotation(IP_IDS.key), Some("ip-77"));
}

#[test]
fn what_an_earlier_manager_made_needs_no_write_and_is_released_by_its_rule() {
    for (requested, mark, is_released) in [
        (None, None, true),
        (Some(CHOSEN_IP), None, false),
        (Some(CHOSEN_IP), Some("true"), true),
        (Some(CHOSEN_IP), Some("yes"), false),
    ] {
        let mut world = World::new();
        world.settle();
        world.service.metadata.annotations = None;
        if let Some(ip) = requested {
            world.spec(|spec| spec["loadBalancerIP"] = json!(ip));
        }
        if let Some(mark) = mark {
            world.annotate(IP_ASSOCIATED.key, mark);
        }
        assert_eq!(world.settle(), Vec::<String>::new());
        world.is_wanted = false;
        let labels = world.settle();
        let releases = labels.contains(&format!("release-ip({CHOSEN_IP})"));
        assert_eq!(releases, is_released, "{requested:?} {mark:?}: {labels:?}");
        if releases {
            // So that a release that fails half-way is found again.
            let keys = (IP_IDS.key, IP_NETWORKS.key);
            assert_eq!(
                labels[0],
                format!("annotate-service({}={CHOSEN}, {}={CHOSEN} n1)", keys.0, keys.1)
            );
        }
    }
}

#[test]
fn an_address_whose_only_rule_is_going_is_kept_if_it_is_still_there() {
    for (state, is_kept) in [(AddressState::Allocated, true), (AddressState::Free, false)] {
        let mut world = of_one_rule();
        world.observed.rules[0].state = RuleState::Revoke;
        let known = address(CHOSEN, CHOSEN_IP, state);
        world.observed.addresses.insert(CHOSEN.into(), Some(known));
        let labels = world.settle();
        let acquires = labels.iter().any(|label| label.starts_with("associate-ip"));
        assert_eq!(acquires, !is_kept, "{state:?}: {labels:?}");
        if is_kept {
            let expected = ["delete-rule", "create-rule", "assign"];
            let done = labels.iter().filter_map(|label| label.split_once('('));
            let done: Vec<&str> = done
                .map(|(kind, _)| kind)
                .filter(|it| expected.contains(it))
                .collect();
            assert_eq!(done, expected, "{labels:?}");
        }
    }
}

/// A balancer of the Go manager with one rule, whose status shows its address.
fn of_one_rule() -> World {
    let mut world = World::new();
    world.spec(|spec| {
        spec["ports"].as_array_mut().unwrap().pop();
    });
    world.settle();
    world.service.metadata.annotations = None;
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": CHOSEN_IP }] } });
    world.service.status = Some(serde_json::from_value(status).unwrap());
    world.observed.memory.own.made = Default::default();
    let known = address(CHOSEN, CHOSEN_IP, AddressState::Allocated);
    world.observed.addresses.insert(CHOSEN.into(), Some(known));
    world
}

#[test]
fn a_port_that_changes_while_its_rule_is_missing_leaves_the_address() {
    for is_same_process in [true, false] {
        let mut world = of_one_rule();
        world.spec(|spec| spec["ports"][0]["nodePort"] = json!(32000));
        // It is noted, and then deleted.
        for _ in 0..2 {
            assert!(world.step());
        }
        assert!(world.observed.rules.is_empty());
        if !is_same_process {
            world.observed.memory.own.cleared = None;
        }
        world.spec(|spec| spec["ports"][0]["port"] = json!(8443));
        let labels = world.settle();
        assert!(
            !labels.iter().any(|label| label.starts_with("associate-ip")),
            "{labels:?}"
        );
        assert_eq!(world.rule("tcp-8443").address.id.as_str(), CHOSEN);
    }
}

#[test]
fn a_rule_that_nobody_could_make_again_leaves_its_address() {
    let mut world = of_one_rule();
    world.observed.rules[0].private_port = None;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("associate-ip")),
        "{labels:?}"
    );
    assert_eq!(world.rule("tcp-443").private_port, Some(31443));
}

#[test]
fn an_address_that_others_use_is_kept() {
    let mut world = World::new();
    world.settle();
    let mut other = world.rule("tcp-443").clone();
    (other.id, other.name, other.public_port) = ("s".into(), "other".to_owned(), Some(8080));
    world.observed.rules_of_others.insert(CHOSEN.into(), vec![other]);
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("release-ip")),
        "{labels:?}"
    );
    assert!(world.observed.rules.is_empty() && world.observed.firewalls[&firewall_of(CHOSEN)].is_empty());
}

#[test]
fn a_free_address_that_is_claimed_without_the_mark_is_marked_before_it_is_acquired() {
    let mut world = World::new();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    world.annotate(IP_IDS.key, "ip-77");
    let free = address("ip-77", "203.0.113.77", AddressState::Free);
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![free]);
    world.settle();
    assert!(
        world.labels[0].contains(&format!("{}=true", IP_ASSOCIATED.key)),
        "{:#?}",
        world.labels
    );
    assert_eq!(world.labels[1], "associate-ip(203.0.113.77)");
}

#[test]
fn a_claimed_address_that_went_elsewhere_is_neither_claimed_nor_marked_any_more() {
    let mut world = World::new();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    world.annotate(IP_IDS.key, "ip-77");
    world.annotate(IP_ASSOCIATED.key, "true");
    let elsewhere = Address {
        network: Some("n2".into()),
        ..address("ip-77", "203.0.113.77", AddressState::Allocated)
    };
    let found = vec![elsewhere];
    world.observed.looked_up.insert("203.0.113.77".to_owned(), found);
    let complaint = world.run().unwrap_err();
    assert!(complaint.contains("belongs to another network"), "{complaint}");
    assert_eq!(world.labels.len(), 1, "in one write: {:#?}", world.labels);
    assert_eq!(
        (world.annotation(IP_IDS.key), world.annotation(IP_ASSOCIATED.key)),
        (Some(""), None)
    );
}

#[test]
fn a_marked_address_that_the_claim_does_not_name_stays() {
    let mut world = World::new();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    world.annotate(IP_IDS.key, "ip-1");
    world.annotate(IP_ASSOCIATED.key, "true");
    let theirs = address("ip-77", "203.0.113.77", AddressState::Allocated);
    let addresses = &mut world.observed.addresses;
    addresses.insert("ip-1".into(), None);
    addresses.insert("ip-77".into(), Some(theirs.clone()));
    world.observed.rules_of_others.insert("ip-77".into(), Vec::new());
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![theirs]);
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("release-ip")),
        "{labels:?}"
    );
}

#[test]
fn the_mark_goes_with_the_last_address_that_turned_out_to_be_nobody_s() {
    for (is_other_gone, ids, mark) in [(false, "ip-77", Some("true")), (true, "", None)] {
        let mut world = World::new();
        world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
        world.annotate(IP_IDS.key, "ip-1,ip-77");
        world.annotate(IP_ASSOCIATED.key, "true");
        let other = address("ip-77", "203.0.113.77", AddressState::Allocated);
        let addresses = &mut world.observed.addresses;
        addresses.insert("ip-1".into(), None);
        addresses.insert("ip-77".into(), Some(other).filter(|_| !is_other_gone));
        world.observed.memory.own.failure = Some(Failure::new(CloudError::transient("refused"), true));
        assert!(world.run().is_err());
        assert_eq!(
            (world.annotation(IP_IDS.key), world.annotation(IP_ASSOCIATED.key)),
            (Some(ids), mark)
        );
    }
}

/// What is claimed was free then. If it never came to serve, another's firewall rule tells that somebody was faster.
#[test]
fn an_address_that_is_claimed_goes_unless_it_never_served_and_others_use_it() {
    for (is_published, port, place, is_released) in [
        (false, 443, "ip-9 n1", true),
        (false, 22, "ip-9 n1", false),
        (true, 22, "ip-9 n1", true),
        (true, 443, "ip-9 n1", true),
        // Somebody has acquired it anew, or may have.
        (true, 443, "ip-9 n2", false),
        (true, 443, "", false),
    ] {
        let mut world = World::new();
        let ip = "203.0.113.9";
        world.annotate(IP_IDS.key, "ip-9");
        world.annotate(IP_NETWORKS.key, place);
        if is_published {
            let status = json!({ "loadBalancer": { "ingress": [{ "ip": ip }] } });
            world.service.status = serde_json::from_value(status).unwrap();
        }
        let claimed = address("ip-9", ip, AddressState::Allocated);
        let rule = FirewallRule {
            id: "f".into(),
            ingress: IngressPort {
                protocol: IpProtocol::Tcp,
                port,
            },
            sources: Cidrs::parse("0.0.0.0/0"),
            has_reason: false,
            is_new: false,
            is_going: false,
        };
        let observed = &mut world.observed;
        observed.addresses.insert("ip-9".into(), Some(claimed));
        observed.rules_of_others.insert("ip-9".into(), Vec::new());
        observed.firewalls.insert(firewall_of("ip-9"), vec![rule]);
        world.is_wanted = false;
        let labels = world.settle();
        let releases = labels.contains(&format!("release-ip({ip})"));
        assert_eq!(releases, is_released, "{is_published} {port} {place}: {labels:?}");
    }
}

/// A policy may refuse a status for as long as it likes.
#[test]
fn as_long_as_another_address_is_shown_its_rules_follow_the_nodes_and_the_claim_is_settled() {
    let mut world = World::new();
    world.settle();
    let shown = json!({ "loadBalancer": { "ingress": [{ "ip": CHOSEN_IP }] } });
    world.service.status = serde_json::from_value(shown).unwrap();
    world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.77"));
    let free = address("ip-77", "203.0.113.77", AddressState::Free);
    world
        .observed
        .looked_up
        .insert("203.0.113.77".to_owned(), vec![free]);
    // How many steps are in the wave with the publication.
    let to_publication = |world: &mut World| {
        for _ in 0..40 {
            let answer = plan(&world.intent().unwrap(), &world.observed).answer;
            if let Answer::Apply(wave) = &answer
                && format!("{wave:?}").contains("PublishStatus")
            {
                return wave.steps().len();
            }
            assert!(world.step(), "{answer:?}");
        }
        panic!("it is never published");
    };
    assert_eq!(to_publication(&mut world), 1);
    assert_eq!(
        world.annotation(IP_IDS.key),
        Some(format!("{CHOSEN},ip-77").as_str())
    );
    world.nodes.pop();
    // Neither the two rules that are shown wait for it, nor it for them.
    assert_eq!(to_publication(&mut world), 3);
    // Nor does the claim outlive an address that is not asked for any more.
    world.spec(|spec| spec["loadBalancerIP"] = Value::Null);
    let labels = world.settle();
    assert!(
        labels.contains(&"release-ip(203.0.113.77)".to_owned()),
        "{labels:?}"
    );
    assert_eq!(world.annotation(IP_IDS.key), Some(CHOSEN));
}
