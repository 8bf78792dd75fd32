//! The address that the cloud chose, and that has to be found again.

use super::*;
use crate::load_balancer::annotations::KEEP_IP;

const OTHER_UID: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

/// A Service with an open claim for an address of `n1`, to which `ip-8` led before.
fn claimed() -> World {
    let mut world = World::new();
    came(&mut world, "ip-8", "203.0.113.8");
    world.annotate(IP_IDS.key, "any-of n1 but ip-8");
    world
}

/// An address leads to the network, and nothing is on it.
fn came(world: &mut World, id: &str, ip: &str) {
    let address = address(id, ip, AddressState::Allocated);
    let observed = &mut world.observed;
    observed
        .recovered
        .entry("n1".into())
        .or_default()
        .push(address.clone());
    observed.addresses.insert(id.into(), Some(address));
    observed.rules_of_others.insert(id.into(), Vec::new());
    observed.firewalls.insert(firewall_of(id), Vec::new());
}

fn releases(labels: &[String]) -> Vec<&str> {
    let labels = labels.iter().map(String::as_str);
    labels.filter(|label| label.starts_with("release-ip")).collect()
}

fn firewall_rule() -> FirewallRule {
    FirewallRule {
        id: "theirs".into(),
        ingress: IngressPort {
            protocol: IpProtocol::Tcp,
            port: 22,
        },
        sources: Cidrs::parse("0.0.0.0/0"),
        has_reason: false,
        is_new: false,
        is_going: false,
    }
}

#[test]
fn what_came_after_the_claim_is_used_or_goes_with_the_service() {
    let mut world = claimed();
    came(&mut world, "ip-9", "203.0.113.9");
    assert_eq!(world.run(), Ok(Some("203.0.113.9".to_owned())));
    let mut world = claimed();
    came(&mut world, "ip-9", "203.0.113.9");
    world.is_wanted = false;
    assert_eq!(releases(&world.settle()), ["release-ip(203.0.113.9)"]);
}

#[test]
fn what_came_long_before_or_after_the_claim_is_a_persons() {
    let claimed_at = Timestamp::from_second(1_700_000_000).unwrap();
    for (seconds, is_taken) in [
        (-86_400, false),
        (-151, false),
        (-60, true),
        (0, true),
        (150, true),
        (151, false),
        (86_400, false),
    ] {
        for is_wanted in [true, false] {
            let mut world = World::new();
            world.annotate(IP_IDS.key, &format!("any-of n1 since {claimed_at} but"));
            came(&mut world, "ip-9", "203.0.113.9");
            let came = &mut world.observed.recovered.get_mut("n1").unwrap()[0];
            came.allocated = Some(claimed_at + jiff::SignedDuration::from_secs(seconds));
            world.is_wanted = is_wanted;
            let labels = world.settle();
            let named = labels
                .iter()
                .any(|label| label.contains("ip-9") || label.contains("203.0.113.9"));
            assert_eq!(named, is_taken, "{seconds} s, wanted {is_wanted}: {labels:?}");
        }
    }
}

#[test]
fn a_claim_is_dated_anew_before_an_address_is_asked_for_again() {
    for (since, renews) in [
        ("since 2023-11-14T22:13:00Z ", false),
        ("since 2023-11-14T22:12:00Z ", true),
        ("", true),
    ] {
        let mut world = World::new();
        world.annotate(IP_IDS.key, &format!("any-of n1 {since}but"));
        let labels = world.settle();
        let renewed = format!(
            "annotate-service({}=any-of n1 since 2023-11-14T22:13:20Z but)",
            IP_IDS.key
        );
        assert_eq!(labels[0] == renewed, renews, "{since}: {labels:?}");
        assert!(
            labels.contains(&"associate-ip(any for network n1)".to_owned()),
            "{labels:?}"
        );
    }
}

#[test]
fn what_came_stays_with_a_service_that_keeps_its_address() {
    let mut world = claimed();
    came(&mut world, "ip-9", "203.0.113.9");
    world.annotate(KEEP_IP.key, "true");
    world.is_wanted = false;
    let labels = world.settle();
    assert!(!labels.iter().any(|label| label.contains("ip-9")), "{labels:?}");
    assert_eq!(releases(&labels), Vec::<&str>::new());
}

#[test]
fn what_somebody_else_uses_is_not_taken() {
    for is_wanted in [true, false] {
        let mut world = claimed();
        came(&mut world, "ip-9", "203.0.113.9");
        let rules = vec![firewall_rule()];
        world.observed.firewalls.insert(firewall_of("ip-9"), rules);
        world.is_wanted = is_wanted;
        let labels = world.settle();
        assert!(
            !labels.iter().any(|label| label.contains("203.0.113.9")),
            "{labels:?}"
        );
        assert_ne!(world.annotation(IP_IDS.key), Some("ip-9"));
    }
}

#[test]
fn a_claim_for_a_network_that_is_gone_holds_nothing_up() {
    let mut world = claimed();
    world.annotate(IP_IDS.key, "any-of n0 but");
    world.observed.networks.insert("n0".into(), None);
    world.is_wanted = false;
    world.settle();
    assert_eq!(world.annotation(IP_IDS.key), None);
}

#[test]
fn an_address_is_not_acquired_under_a_claim_for_another_network() {
    let mut world = claimed();
    world.annotate(IP_IDS.key, "any-of n0 but");
    world.observed.networks.insert("n0".into(), None);
    assert_eq!(world.run(), Ok(Some(CHOSEN_IP.to_owned())));
    let acquired = world
        .labels
        .iter()
        .position(|label| label.starts_with("associate-ip"));
    let claimed = format!(
        "annotate-service({}=any-of n1 since 2023-11-14T22:13:20Z but ip-8)",
        IP_IDS.key
    );
    let claimed = world.labels.iter().position(|label| *label == claimed);
    assert!(claimed.is_some() && claimed < acquired, "{:#?}", world.labels);
}

#[test]
fn what_came_is_given_back_by_a_service_that_has_another_address_since() {
    let mut world = World::new();
    world.settle();
    let claim = format!("{CHOSEN},any-of n1 but ip-8");
    world.annotate(IP_IDS.key, &claim);
    came(&mut world, "ip-9", "203.0.113.9");
    let labels = world.settle();
    assert_eq!(releases(&labels), ["release-ip(203.0.113.9)"], "{labels:?}");
    assert_eq!(world.annotation(IP_IDS.key), Some(CHOSEN));
}

#[test]
fn only_claims_for_the_same_network_share_what_came() {
    for (network, is_shared) in [("n1", true), ("n2", false)] {
        let mut world = claimed();
        came(&mut world, "ip-9", "203.0.113.9");
        came(&mut world, "ip-10", "203.0.113.10");
        let mut other = world.service.clone();
        other.metadata.uid = Some(OTHER_UID.to_owned());
        let annotations = other.metadata.annotations.get_or_insert_default();
        annotations.insert(IP_IDS.key.to_owned(), format!("any-of {network} but ip-8"));
        world.others.push(other);
        world.settle();
        // Where there are more addresses than claims, some are somebody else's, and nobody can tell which.
        let expected = if is_shared {
            format!(
                "annotate-service({}=ip-9, {}=ip-9 n1)",
                IP_IDS.key, IP_NETWORKS.key
            )
        } else {
            format!("annotate-service({}=any-of n1 but ip-10 ip-8 ip-9)", IP_IDS.key)
        };
        assert_eq!(world.labels[0], expected, "{:#?}", world.labels);
    }
}
