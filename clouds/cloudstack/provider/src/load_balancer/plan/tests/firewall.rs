//! Isolated networks: firewall rules of an address.

use super::*;
use crate::load_balancer::observe::observed::Fact;

fn firewall(sources: &[&str]) -> Vec<FirewallRule> {
    let rule = |(index, sources): (usize, &&str)| FirewallRule {
        id: format!("old-{index}").into(),
        ingress: IngressPort {
            protocol: IpProtocol::Tcp,
            port: 443,
        },
        sources: Cidrs::parse(sources),
        has_reason: false,
        is_new: false,
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

/// The Go manager sends the networks of IPv6 along, to servers that take them.
#[test]
fn a_rule_that_differs_by_networks_of_ipv6_is_right() {
    let mut world = World::new();
    world.spec(|spec| {
        spec["ports"].as_array_mut().unwrap().pop();
        spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24", "2001:db8::/32"]);
    });
    world.settle();
    assert_eq!(
        world.sources("tcp/443"),
        [format!("{:?}", Cidrs::parse("192.0.2.0/24"))]
    );
    let rules = world.observed.firewalls.get_mut(&firewall_of(CHOSEN)).unwrap();
    *rules = firewall(&["192.0.2.0/24,2001:db8::/32"]);
    assert_eq!(world.settle(), Vec::<String>::new());
}

const PROBES: [&str; 5] = [
    "10.1.2.3",
    "10.200.0.1",
    "192.0.2.7",
    "198.51.100.3",
    "203.0.113.9",
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
    let firewall = firewall_of(CHOSEN);
    let rules = world.observed.firewalls[&firewall].iter();
    let rules = rules.flat_map(|rule| rule.sources.written());
    let ranges = world.observed.observed.ranges(&firewall).iter();
    let ranges = ranges.flat_map(|range| range.networks.clone());
    covers(&rules.chain(ranges).collect::<Vec<_>>(), probe)
}

fn some_cidrs() -> impl Strategy<Value = Vec<String>> {
    let pool = [
        "0.0.0.0/0",
        "10.0.0.0/8",
        "10.0.0.0/9",
        "192.0.2.0/24",
        "192.0.2.1/32",
        "198.51.100.0/25",
    ];
    prop::sample::subsequence(pool.to_vec(), 1..4)
        .prop_map(|list| list.into_iter().map(str::to_owned).collect())
}

/// What the model of the API refuses.
#[derive(Debug, Clone)]
struct Api {
    /// A second rule for a port, whatever its sources.
    takes_one: bool,
    /// Lists that name this network, of a new rule and not of one that was there.
    refuses: Option<&'static str>,
    /// What conflicts with a rule of a person for several ports.
    range: Option<&'static str>,
}

impl Api {
    /// What comes of a new rule; none if it is made.
    fn refusal(&self, seen: &Seen, new: &Opening) -> Option<Learned> {
        let failed = |why: &str| Some(Learned::Refused(Refusal::new(why)));
        let present = seen.allowing(&new.at, new.ingress).unwrap();
        let sources: Cidrs = new.sources.iter().collect();
        if new
            .sources
            .iter()
            .any(|source| Some(source.as_str()) == self.refuses)
        {
            return failed("no such network");
        }
        let mut ranges = seen.observed.ranges(&new.at.id).iter();
        let is_range = ranges.any(|range| range.is_in_the_way(new.ingress, &new.sources));
        let is_in_the_way = |rule: &&FirewallRule| self.takes_one || rule.sources.shares_with(&sources);
        let is_conflict = is_range || present.iter().any(is_in_the_way);
        match is_conflict {
            false => None,
            true if present.is_empty() => failed("conflicts"),
            true => {
                let fact = Fact::TakesOneFirewallRule(new.at.id.clone(), new.ingress);
                Some(Learned::Seen(fact))
            }
        }
    }

    /// One reconcile, of which only some steps are made. The labels of the steps, and whether it came to its end.
    fn reconcile(
        &self,
        world: &mut World,
        most: usize,
        mut check: impl FnMut(&World, &CloudStep) -> Result<(), TestCaseError>,
    ) -> Result<(Vec<String>, bool), TestCaseError> {
        let intent = world.intent().unwrap();
        let mut labels = Vec::new();
        let is_over = loop {
            let Answer::Apply(wave) = plan(&intent, &world.observed).answer else {
                break true;
            };
            if labels.len() >= most.min(40) {
                break false;
            }
            let step = wave.into_steps().remove(0);
            labels.push(step.view().label);
            let LoadBalancerStep::Cloud(step) = step else {
                panic!("a write on the Service: {labels:?}");
            };
            let refused = match &step {
                CloudStep::Open(new) => self.refusal(&world.observed, new),
                _ => None,
            };
            match refused {
                Some(learned) => {
                    if let Learned::Refused(why) = &learned {
                        world.observed.memory.refusals.add(step.clone(), why.clone());
                    }
                    learn::learn(&mut world.observed, &step, learned);
                }
                None => learn::predict(&mut world.observed, &step),
            }
            check(world, &step)?;
        };
        std::mem::take(&mut world.observed.memory.own);
        prop_assert!(labels.len() < 40, "never ends: {:?}", labels);
        Ok((labels, is_over))
    }
}

fn some_api() -> impl Strategy<Value = Api> {
    let network = || {
        prop::option::of(prop::sample::select(vec![
            "0.0.0.0/0",
            "10.0.0.0/8",
            "192.0.2.0/24",
            "192.0.2.1/32",
        ]))
    };
    (any::<bool>(), network(), network()).prop_map(|(takes_one, refuses, range)| Api {
        takes_one,
        refuses,
        range,
    })
}

proptest! {
    /// Whatever the API refuses, and wherever a process stops: who may connect before and after a reconcile can connect after it; on
    /// the way, too, but for single addresses and on a server that takes one rule for a port. What cannot be is found out once, and
    /// then nothing more is closed for it. All else ends as exactly one rule.
    #[test]
    fn a_firewall_ends_as_wished_from_wherever_it_stands(
        api in some_api(),
        present in prop::collection::vec(some_cidrs(), 0..3),
        wishes in prop::collection::vec((some_cidrs(), 0_usize..6), 1..4),
    ) {
        let mut world = World::new();
        world.spec(|spec| {
            spec["ports"].as_array_mut().unwrap().pop();
        });
        world.settle();
        std::mem::take(&mut world.observed.memory.own); // of another reconcile
        let rules = world.observed.firewalls.get_mut(&firewall_of(CHOSEN)).unwrap();
        rules.clear();
        for sources in &present {
            let rule = firewall(&[&sources.join(",")]).remove(0);
            // Two rules that the API would not take cannot be, and what it refuses cannot come back.
            let is_possible = |other: &FirewallRule| !api.takes_one && !other.sources.shares_with(&rule.sources);
            let is_refused = sources.iter().any(|source| [api.refuses, api.range].contains(&Some(source)));
            if rules.iter().all(is_possible) && !is_refused {
                rules.push(FirewallRule { id: format!("old-{}", rules.len()).into(), ..rule });
            }
        }
        let range = api.range.map(|network| PortRange {
            id: "persons".into(),
            protocol: IpProtocol::Tcp,
            ports: 400..=500,
            networks: vec![network.to_owned()],
        });
        world.observed.ranges.insert(firewall_of(CHOSEN), range.into_iter().collect());
        for (index, (wish, stop)) in wishes.iter().enumerate() {
            let is_last = index + 1 == wishes.len();
            let is_served = |world: &World, by: &dyn Fn(&str) -> bool| -> Vec<&str> {
                let may = |probe: &&str| covers(wish.iter().filter(|net| by(net)), probe);
                PROBES.into_iter().filter(|probe| is_let_in(world, probe) && may(probe)).collect()
            };
            // Who may connect now and later, by a network that can be written in another way, is never shut out.
            let always = is_served(&world, &|network| !is_single(network) && !api.takes_one);
            let after = is_served(&world, &|_| true);
            world.observed.memory.refusals.lift(|_, _| true);
            world.spec(|spec| spec["loadBalancerSourceRanges"] = json!(wish));
            let most = if is_last { usize::MAX } else { *stop };
            let (labels, is_over) = api.reconcile(&mut world, most, |world, step| {
                for probe in &always {
                    prop_assert!(is_let_in(world, probe), "{} is shut out by {:?}", probe, step);
                }
                Ok(())
            })?;
            if is_over {
                for probe in &after {
                    prop_assert!(is_let_in(&world, probe), "{} is shut out at last: {:?}", probe, labels);
                }
            }
        }
        // The same again: nothing is closed, unless it ends as it is wished.
        let (labels, _) = api.reconcile(&mut world, usize::MAX, |_, _| Ok(()))?;
        prop_assert!(labels.iter().all(|label| !label.starts_with("close-")), "{:?}", labels);
        let wish = &wishes.last().unwrap().0;
        // A person's rule lets in just those who may connect.
        if api.range.is_some_and(|network| wish.iter().all(|it| it == network)) {
            prop_assert_eq!(labels, Vec::<String>::new());
            prop_assert!(world.observed.firewalls[&firewall_of(CHOSEN)].is_empty());
            return Ok(());
        }
        let is_possible = |network: &String| ![api.refuses, api.range].contains(&Some(network));
        if wish.iter().all(is_possible) {
            let rules = &world.observed.firewalls[&firewall_of(CHOSEN)];
            prop_assert_eq!(rules.len(), 1);
            prop_assert!(rules[0].sources.is_same(&wish.iter().collect()));
            prop_assert_eq!(labels, Vec::<String>::new());
        }
    }
}
