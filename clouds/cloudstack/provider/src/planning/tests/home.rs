//! Which address a Service lives on: claimed, acquired, moved, given back.

use super::*;

fn address(id: &str, ip: &str, state: AddressState) -> Address {
    Address {
        address: AddressRef {
            id: id.to_owned(),
            ip: ip.to_owned(),
        },
        state,
        zone: "z".to_owned(),
        network: (state == AddressState::Allocated).then(|| "n1".to_owned()),
        vpc: None,
        is_source_nat: false,
        is_static_nat: false,
    }
}

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
                "annotate-service({}=true, {}=ip-77)",
                IP_ASSOCIATED.key, IP_IDS.key
            ),
            "associate-ip(203.0.113.77)".to_owned(),
        ]
    );
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
    world.observed.firewalls.insert("ip-77".to_owned(), Vec::new());
    world.observed.strangers.insert("ip-77".to_owned(), Vec::new());
    world.observed.addresses.insert("ip-77".to_owned(), Some(taken));
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
    assert_eq!(world.observed.firewalls["ip-77"], []);
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
            assert_eq!(labels[0], format!("annotate-service({}={CHOSEN})", IP_IDS.key));
        }
    }
}

#[test]
fn an_address_that_others_use_is_kept() {
    let mut world = World::new();
    world.settle();
    let mut stranger = world.rule("tcp-443").clone();
    (stranger.id, stranger.name, stranger.public_port) = ("s".to_owned(), "other".to_owned(), Some(8080));
    world.observed.strangers.insert(CHOSEN.to_owned(), vec![stranger]);
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("release-ip")),
        "{labels:?}"
    );
    assert!(world.observed.rules.is_empty() && world.observed.firewalls[CHOSEN].is_empty());
}
