//! The table of who has an address: from facts to a state, and from the state to what is done.

use std::time::Duration;

use super::*;
use crate::load_balancer::annotations::KEEP_IP;
use crate::load_balancer::claim::{AddressRequest, Subject};
use crate::load_balancer::evidence::{self, State, UNPLACED};
use crate::load_balancer::intent::Identity;
use crate::load_balancer::objects::Address;

/// What is done about an address.
#[derive(Debug, PartialEq, Eq)]
enum Done {
    Released,
    Kept,
    WaitedFor,
}

/// What makes an address what it is, its state, and what is done.
type Row<'a> = (&'static str, fn(&mut World), State<'a>, Done);

/// A Service that goes, and that claims `ip-9` without a rule on it.
fn going() -> World {
    let mut world = World::new();
    world.annotate(IP_IDS.key, "ip-9");
    world.annotate(IP_NETWORKS.key, "ip-9 n1");
    has(&mut world, |_| {});
    world.observed.rules_of_others.insert("ip-9".into(), Vec::new());
    world.observed.firewalls.insert(firewall_of("ip-9"), Vec::new());
    world.is_wanted = false;
    world
}

/// Somebody has the address, and it is like this.
fn has(world: &mut World, change: impl FnOnce(&mut Address)) {
    let mut known = address("ip-9", "203.0.113.9", AddressState::Allocated);
    change(&mut known);
    world.observed.addresses.insert("ip-9".into(), Some(known));
}

/// It is on its way for so long that who does not need it waits no more.
fn is_slow(world: &mut World) {
    has(world, |known| known.state = AddressState::Allocating);
    let Seen { observed, memory } = &mut world.observed;
    for waited in [0, 10].map(Duration::from_secs) {
        observed.time(&mut memory.own.on_the_way, waited);
    }
}

fn other() -> Rule {
    let mut world = World::new();
    world.settle();
    Rule {
        name: "theirs".to_owned(),
        ..world.rule("tcp-443").clone()
    }
}

fn firewall_rule() -> FirewallRule {
    FirewallRule {
        id: "f".into(),
        ingress: IngressPort {
            protocol: IpProtocol::Tcp,
            port: 22,
        },
        sources: Cidrs::default(),
        has_reason: false,
        is_new: false,
        is_going: false,
    }
}

#[test]
fn what_is_done_about_an_address_follows_from_its_state() {
    let theirs = other();
    let given_away = State::GivenAway(evidence::ACQUIRED_ANEW);
    let told = |why: &str| State::Persons(Some(why.to_owned()));
    let rows: [Row<'_>; 12] = [
        (
            "nobody has it",
            |world| drop(world.observed.addresses.insert("ip-9".into(), None)),
            State::Free,
            Done::Kept,
        ),
        (
            "it is on its way",
            |world| has(world, |known| known.state = AddressState::Allocating),
            ON_THE_WAY,
            Done::WaitedFor,
        ),
        ("it is on its way for long", is_slow, State::Held, Done::Released),
        (
            "it is on its way back",
            |world| {
                has(world, |known| {
                    known.state = AddressState::Releasing;
                    known.network = Some("n1".into());
                });
            },
            State::Releasing,
            Done::WaitedFor,
        ),
        ("it is claimed", |_| {}, State::Held, Done::Released),
        (
            "rules of others are on it",
            |world| {
                world
                    .observed
                    .rules_of_others
                    .insert("ip-9".into(), vec![other()]);
            },
            State::Shared(&theirs),
            Done::Kept,
        ),
        (
            "another Service claims it",
            |world| is_claimed_by(world, GOES_SECOND),
            State::Borrowed,
            Done::Kept,
        ),
        (
            "it leads elsewhere",
            |world| has(world, |known| known.network = Some("n2".into())),
            given_away,
            Done::Kept,
        ),
        (
            "nothing tells where it led",
            |world| world.annotate(IP_NETWORKS.key, ""),
            told(UNPLACED),
            Done::Kept,
        ),
        (
            "somebody opened a port of it",
            |world| {
                let rules = vec![firewall_rule()];
                world.observed.firewalls.insert(firewall_of("ip-9"), rules);
            },
            told("others use it, such as firewall rule f for tcp/22"),
            Done::Kept,
        ),
        (
            "people keep it",
            |world| world.annotate(KEEP_IP.key, "true"),
            State::Persons(None),
            Done::Kept,
        ),
        (
            "it leads to one virtual machine",
            |world| has(world, |known| known.is_static_nat = true),
            State::Persons(None),
            Done::Kept,
        ),
    ];
    for (what, change, expected, done) in rows {
        let mut world = going();
        change(&mut world);
        let Ok(Intent::Absent(absent)) = world.intent() else {
            panic!("{what}: it is to go");
        };
        let (identity, at) = (&absent.identity, "ip-9".into());
        let state = evidence::left(identity, &world.observed, &at, &[], Some(&absent));
        assert_eq!(state, Ok(expected), "{what}");
        let found = match world.run() {
            Err(waits) => {
                assert!(waits.contains("is being acquired or released"), "{what}: {waits}");
                Done::WaitedFor
            }
            Ok(_) if world.labels.contains(&"release-ip(203.0.113.9)".to_owned()) => Done::Released,
            Ok(_) => Done::Kept,
        };
        assert_eq!(found, done, "{what}");
    }
}

#[test]
fn the_rules_of_others_are_read_only_if_all_else_tells_that_an_address_is_held() {
    let mut world = going();
    world.observed.rules_of_others.clear();
    let state = |world: &World| {
        let Ok(Intent::Absent(absent)) = world.intent() else {
            panic!("it is to go");
        };
        let (identity, at) = (&absent.identity, "ip-9".into());
        evidence::left(identity, &world.observed, &at, &[], Some(&absent)).map(|_| ())
    };
    assert_eq!(state(&world), Err(Need::RulesOfOthers("ip-9".into()).into()));
    world.annotate(KEEP_IP.key, "true");
    assert_eq!(state(&world), Ok(()));
}

/// On its way, and not to be released to be acquired anew.
const ON_THE_WAY: State<'static> = State::Acquiring { is_own: false };

/// Looks at a Service that wants a balancer and claims `ip-9`, which somebody has.
fn look(change: impl FnOnce(&mut World), look: impl FnOnce(&Identity, &Seen, &Network)) {
    let mut world = going();
    world.is_wanted = true;
    change(&mut world);
    let network = world.observed.networks["n1"].clone().unwrap();
    let intent = world.intent().unwrap();
    look(intent.identity(), &world.observed, &network);
}

/// Another Service claims `ip-9`, too.
fn is_claimed_by(world: &mut World, uid: &str) {
    let mut other = world.service.clone();
    other.metadata.uid = Some(uid.to_owned());
    world.others.push(other);
}

/// Another Service is served by `ip-9`, as its status tells, and claims nothing.
fn is_published_by_another(world: &mut World) {
    is_claimed_by(world, GOES_SECOND);
    let other = world.others.last_mut().unwrap();
    other.metadata.annotations = None;
    other.metadata.deletion_timestamp = None;
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": "203.0.113.9" }] } });
    other.status = Some(serde_json::from_value(status).unwrap());
}

/// The same, but it notes another address: it has lost this one, and its status is older than that.
fn was_published_by_another(world: &mut World) {
    is_published_by_another(world);
    let other = world.others.last_mut().unwrap();
    let note = (IP_IDS.key.to_owned(), "ip-8".to_owned());
    other.metadata.annotations = Some([note].into());
}

const GOES_FIRST: &str = "6c9e6679-7425-40de-944b-e07fc1f90ae7";
const GOES_SECOND: &str = "8c9e6679-7425-40de-944b-e07fc1f90ae7";

#[test]
fn a_claimed_address_is_the_one_of_a_balancer_that_has_none_if_nobody_else_can_want_it() {
    type Row = (&'static str, fn(&mut World), State<'static>);
    let rows: [Row; 11] = [
        ("it is there", |_| {}, State::Held),
        (
            "it is free",
            |world| has(world, |known| known.state = AddressState::Free),
            State::Free,
        ),
        (
            "it is on its way",
            |world| has(world, |known| known.state = AddressState::Allocating),
            State::Acquiring { is_own: true },
        ),
        (
            "it is on its way elsewhere",
            |world| {
                has(world, |known| {
                    (known.state, known.network) = (AddressState::Allocating, Some("n2".into()));
                });
            },
            ON_THE_WAY,
        ),
        (
            "it is on its way back",
            |world| has(world, |known| known.state = AddressState::Releasing),
            State::Releasing,
        ),
        (
            "others are on it",
            |world| {
                drop(
                    world
                        .observed
                        .rules_of_others
                        .insert("ip-9".into(), vec![other()]),
                )
            },
            State::Persons(None),
        ),
        (
            "it is for source NAT",
            |world| has(world, |known| known.is_source_nat = true),
            State::Persons(None),
        ),
        (
            "another Service that claims it goes first",
            |world| is_claimed_by(world, GOES_FIRST),
            State::Persons(None),
        ),
        (
            "another Service that claims it goes second",
            |world| is_claimed_by(world, GOES_SECOND),
            State::Held,
        ),
        (
            "another Service is served by it",
            is_published_by_another,
            State::Persons(None),
        ),
        (
            "another Service was served by it",
            was_published_by_another,
            State::Held,
        ),
    ];
    for (what, change, expected) in rows {
        look(change, |identity, observed, network| {
            let known = observed.addresses["ip-9"].as_ref().unwrap();
            let state = evidence::of_claimed(identity, observed, known, network);
            assert_eq!(state, Ok(expected), "{what}");
        });
    }
}

#[test]
fn a_claimed_address_that_is_not_used_is_released_unless_it_is_on_its_way_or_somebody_elses() {
    type Row = (&'static str, bool, fn(&mut World), State<'static>);
    fn is_asked(world: &mut World, change: impl FnOnce(&mut Address)) {
        let since = Timestamp::from_second(1_700_000_000).unwrap();
        world.annotate(IP_IDS.key, &format!("ip-9 since {since}"));
        let request = AddressRequest {
            subject: Subject::Address("ip-9".into()),
            since,
        };
        let standing = &mut world.observed.memory.own.known.standing;
        standing.insert(request, Duration::from_secs(60));
        has(world, change);
    }
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let rows: [Row; 11] = [
        ("it is there", true, |_| {}, State::Held),
        (
            "nobody has it",
            true,
            |world| drop(world.observed.addresses.insert("ip-9".into(), None)),
            State::Free,
        ),
        (
            "it may still come",
            true,
            |world| is_asked(world, |known| known.state = AddressState::Free),
            State::Claimed(now),
        ),
        (
            "it came, whatever is known of the answer",
            true,
            |world| is_asked(world, |_| {}),
            State::Come,
        ),
        (
            "it is on its way",
            true,
            |world| has(world, |known| known.state = AddressState::Allocating),
            ON_THE_WAY,
        ),
        ("it is on its way for long", true, is_slow, State::Held),
        ("the status comes first", false, is_slow, ON_THE_WAY),
        (
            "another Service claims it",
            true,
            |world| is_claimed_by(world, GOES_SECOND),
            State::Borrowed,
        ),
        (
            "another Service is served by it",
            true,
            is_published_by_another,
            State::Borrowed,
        ),
        (
            "it leads elsewhere",
            true,
            |world| has(world, |known| known.network = Some("n2".into())),
            State::GivenAway(evidence::ACQUIRED_ANEW),
        ),
        (
            "people keep it",
            true,
            |world| world.annotate(KEEP_IP.key, "true"),
            State::Persons(None),
        ),
    ];
    for (what, is_shown, change, expected) in rows {
        look(change, |identity, observed, network| {
            let state = evidence::unused(identity, observed, &"ip-9".into(), (network, is_shown));
            assert_eq!(state, Ok(expected), "{what}");
        });
    }
}

#[test]
fn an_address_that_a_balancer_leaves_stays_with_a_word_where_nothing_proves_that_it_is_the_services() {
    type Row = (&'static str, fn(&mut World), State<'static>);
    let rows: [Row; 6] = [
        ("it is claimed", |_| {}, State::Held),
        (
            "another Service is served by it, whose rule is away",
            is_published_by_another,
            State::Borrowed,
        ),
        (
            "another Service was served by it",
            was_published_by_another,
            State::Held,
        ),
        (
            "nothing is written",
            |world| world.service.metadata.annotations = None,
            State::Persons(Some(evidence::UNPROVED.to_owned())),
        ),
        (
            "people keep it anyhow",
            |world| world.annotate(KEEP_IP.key, "true"),
            State::Persons(None),
        ),
        (
            "nothing is written, and nobody has it",
            |world| {
                world.service.metadata.annotations = None;
                world.observed.addresses.insert("ip-9".into(), None);
            },
            State::Free,
        ),
    ];
    let mut rule = other();
    rule.address.id = "ip-9".into();
    for (what, change, expected) in rows {
        look(change, |identity, observed, _| {
            let state = evidence::left(identity, observed, &rule.address.id, &[&rule], None);
            assert_eq!(state, Ok(expected), "{what}");
        });
    }
}

#[test]
fn a_requested_address_is_claimed_acquired_borrowed_or_a_persons() {
    let now = Timestamp::from_second(1_700_000_000).unwrap();
    let state = |ids: Option<&str>, known: AddressState, network: &str| {
        let mut world = World::new();
        world.spec(|spec| spec["loadBalancerIP"] = json!("203.0.113.9"));
        world.observed.rules_of_others.insert("ip-9".into(), Vec::new());
        if let Some(ids) = ids {
            world.annotate(IP_IDS.key, ids);
            world.annotate(IP_ASSOCIATED.key, "true");
        }
        let mut known = address("ip-9", "203.0.113.9", known);
        known.network = Some(network.into());
        let network = world.observed.networks["n1"].clone().unwrap();
        let intent = world.intent().unwrap();
        evidence::of_requested(intent.identity(), &world.observed, &known, (&network, now))
    };
    let fresh = format!("ip-9 since {now}");
    for (ids, known, network, expected) in [
        (None, AddressState::Free, "n1", State::Free),
        (
            Some(fresh.as_str()),
            AddressState::Free,
            "n1",
            State::Claimed(now),
        ),
        (
            Some("ip-9 since 2023-11-14T22:12:00Z"),
            AddressState::Free,
            "n1",
            State::Free,
        ),
        (Some(fresh.as_str()), AddressState::Allocating, "n1", State::Come),
        (
            Some("ip-9"),
            AddressState::Allocating,
            "n1",
            State::Acquiring { is_own: true },
        ),
        (Some(""), AddressState::Allocating, "n1", ON_THE_WAY),
        (Some("ip-9"), AddressState::Releasing, "n1", State::Releasing),
        (Some("ip-9"), AddressState::Allocated, "n1", State::Held),
        (None, AddressState::Allocated, "n1", State::Persons(None)),
        (
            None,
            AddressState::Allocated,
            "n2",
            State::GivenAway("belongs to another network, tier or VPC than the nodes"),
        ),
    ] {
        assert_eq!(state(ids, known, network), Ok(expected), "{ids:?} {known:?}");
    }
}
