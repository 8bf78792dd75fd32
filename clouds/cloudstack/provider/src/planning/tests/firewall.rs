//! Isolated networks: firewall rules of an address.

use super::*;

fn firewall(sources: &[&str]) -> Vec<FirewallRule> {
    let rule = |(index, sources): (usize, &&str)| FirewallRule {
        id: format!("old-{index}").into(),
        ingress: IngressPort {
            protocol: IpProtocol::Tcp,
            port: 443,
        },
        sources: Cidrs::parse(sources),
        has_reason: false,
        is_going: false,
    };
    sources.iter().enumerate().map(rule).collect()
}

#[test]
fn a_firewall_rule_is_replaced_without_a_gap() {
    let table: [(&[&str], &str, &[&str]); 7] = [
        (&["192.0.2.0/24"], "198.51.100.0/24", &["open", "close"]),
        (&["0.0.0.0/0"], "192.0.2.0/24", &["open", "close"]),
        // Both lists name a network: a stand-in is needed.
        (
            &["192.0.2.0/24"],
            "192.0.2.0/24,198.51.100.0/24",
            &["open", "close", "open", "close"],
        ),
        (
            &["192.0.2.0/24,198.51.100.0/24"],
            "192.0.2.0/24",
            &["open", "close", "open", "close"],
        ),
        // Single addresses cannot be written in another way.
        (&["192.0.2.1/32"], "192.0.2.1/32,192.0.2.2/32", &["close", "open"]),
        (&["192.0.2.0/24", "192.0.2.0/24"], "192.0.2.0/24", &["close"]),
        (&["192.0.2.0/24", "10.0.0.0/8"], "192.0.2.0/24", &["close"]),
    ];
    for (present, wanted, expected) in table {
        let mut world = World::new();
        world.settle();
        world
            .observed
            .firewalls
            .get_mut(&firewall_of(CHOSEN))
            .unwrap()
            .retain(|rule| rule.ingress.port != 443);
        world
            .observed
            .firewalls
            .get_mut(&firewall_of(CHOSEN))
            .unwrap()
            .extend(firewall(present));
        world.spec(|spec| {
            spec["ports"].as_array_mut().unwrap().pop();
            spec["loadBalancerSourceRanges"] = json!(wanted.split(',').collect::<Vec<_>>());
        });
        let labels = world.settle();
        let kinds: Vec<&str> = labels
            .iter()
            .filter(|label| label.contains("tcp/443"))
            .map(|label| label.split('-').next().unwrap())
            .collect();
        assert_eq!(kinds, expected, "{present:?} -> {wanted}: {labels:?}");
        assert_eq!(world.sources("tcp/443"), [format!("{:?}", Cidrs::parse(wanted))]);
    }
}

const PROBES: [&str; 6] = [
    "10.1.2.3",
    "10.200.0.1",
    "192.0.2.7",
    "198.51.100.3",
    "203.0.113.9",
    "2001:db8::7",
];

fn covers<'a>(networks: impl IntoIterator<Item = &'a String>, probe: &str) -> bool {
    let probe: std::net::IpAddr = probe.parse().unwrap();
    let mut networks = networks
        .into_iter()
        .map(|text| text.parse::<ipnet::IpNet>().unwrap());
    networks.any(|network| network.contains(&probe))
}

fn is_single(network: &str) -> bool {
    network.ends_with("/32") && !network.contains(':')
}

fn is_let_in(world: &World, probe: &str) -> bool {
    let probe: Cidrs = [probe].iter().collect();
    let rules = &world.observed.firewalls[&firewall_of(CHOSEN)];
    rules.iter().any(|rule| rule.sources.contains(&probe))
}

fn some_cidrs() -> impl Strategy<Value = Vec<String>> {
    let pool = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/9",
        "192.0.2.0/24",
        "192.0.2.1/32",
        "198.51.100.0/25",
        "2001:db8::/32",
    ];
    prop::sample::subsequence(pool.to_vec(), 1..4)
        .prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

proptest! {
    /// The API never refuses a step, every address that stays allowed stays allowed but single ones, and the end is exactly
    /// one rule; also when the process stops anywhere on the way and the wish changes.
    #[test]
    fn a_firewall_ends_as_wished_from_wherever_it_stands(
        present in prop::collection::vec(some_cidrs(), 0..3),
        wishes in prop::collection::vec((some_cidrs(), 0_usize..6), 1..4),
    ) {
        let mut world = World::new();
        world.spec(|spec| {
            spec["ports"].as_array_mut().unwrap().pop();
        });
        world.settle();
        let rules = world.observed.firewalls.get_mut(&firewall_of(CHOSEN)).unwrap();
        rules.clear();
        for sources in &present {
            let rule = firewall(&[&sources.join(",")]).remove(0);
            // Two rules with a network in common cannot be.
            if rules.iter().all(|other| !other.sources.shares_with(&rule.sources)) {
                rules.push(FirewallRule { id: format!("old-{}", rules.len()).into(), ..rule });
            }
        }
        for (wish, stop) in &wishes {
            // Who may connect now and later, by a network that can be written in another way, is never shut out.
            let served: Vec<&&str> = PROBES
                .iter()
                .filter(|probe| is_let_in(&world, probe) && covers(wish.iter().filter(|net| !is_single(net)), probe))
                .collect();
            world.spec(|spec| spec["loadBalancerSourceRanges"] = json!(wish));
            let intent = world.intent().unwrap();
            for _ in 0..*stop {
                let Answer::Apply(wave) = plan(&intent, &world.observed).answer else { break };
                let LoadBalancerStep::Cloud(step) = wave.into_steps().remove(0) else { break };
                if let CloudStep::Open(new) = &step {
                    let new: Cidrs = new.sources.iter().collect();
                    prop_assert!(world.observed.firewalls[&firewall_of(CHOSEN)].iter().all(|rule| !rule.sources.shares_with(&new)));
                }
                learn::predict(&mut world.observed, &step);
                for probe in &served {
                    prop_assert!(is_let_in(&world, probe), "{} is shut out", probe);
                }
            }
        }
        world.settle();
        let wish: Cidrs = wishes.last().unwrap().0.iter().collect();
        let rules = &world.observed.firewalls[&firewall_of(CHOSEN)];
        prop_assert_eq!(rules.len(), 1);
        prop_assert!(rules[0].sources.is_same(&wish));
    }
}
