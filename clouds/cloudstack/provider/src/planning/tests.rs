//! Decisions on observations that are whole from the beginning: plan, predict, plan again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::plan::{Answer, Refusal};
use bowline_cloud_provider::{LoadBalancerStep, Node, NodeName, Service, ServiceFacts};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::annotations::{IP_ASSOCIATED, IP_IDS, PROXY_PROTOCOL, SOURCE_CIDRS};
use crate::cidrs::Cidrs;
use crate::intent;
use crate::learn;
use crate::names::IpProtocol;
use crate::objects::{AclRef, AddressRef, AddressState, FirewallRule, Machine, Network, Opening, RuleState};

const UID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const NAME: &str = "a7c9e6679742540de944be07fc1f90ae";

/// A Service, its Nodes, and a cloud that is nothing but an observation.
struct World {
    service: Service,
    nodes: Vec<&'static str>,
    observed: Observed,
    is_wanted: bool,
    labels: Vec<String>,
}

impl World {
    /// A Service with TCP 443 and UDP 4500 in an isolated network with three machines and one free address.
    fn new() -> Self {
        let machine = |id: &str| Machine {
            id: format!("vm-{id}"),
            name: id.to_owned(),
            networks: vec!["n1".to_owned()],
            is_going: false,
        };
        let network = Network {
            id: "n1".to_owned(),
            name: "k8s".to_owned(),
            zone: "z".to_owned(),
            vpc: None,
            services: ["Lb", "Firewall", "SourceNat"].map(str::to_owned).into(),
            acl: None,
        };
        let observed = Observed {
            abilities: Some(Abilities {
                takes_cidrs: Some(true),
                changes_cidrs: true,
            }),
            networks: BTreeMap::from([("n1".to_owned(), Some(Arc::new(network)))]),
            machines: Some(Arc::new(["cp-a", "pool-a-7", "pool-a-8"].map(machine).into())),
            candidates: Some(vec![AddressRef {
                id: "ip-1".to_owned(),
                ip: "203.0.113.40".to_owned(),
            }]),
            ..Observed::default()
        };
        Self {
            service: serde_json::from_value(json!({
                "metadata": { "uid": UID, "namespace": "shop", "name": "web" },
                "spec": {
                    "type": "LoadBalancer", "sessionAffinity": "None",
                    "ports": [
                        { "port": 443, "nodePort": 31443, "protocol": "TCP" },
                        { "port": 4500, "nodePort": 31500, "protocol": "UDP" }
                    ]
                }
            }))
            .unwrap(),
            nodes: vec!["cp-a", "pool-a-7", "pool-a-8"],
            observed,
            is_wanted: true,
            labels: Vec::new(),
        }
    }

    /// The same in a tier of a VPC with an ACL list of its own.
    fn vpc() -> Self {
        let mut world = Self::new();
        let network = Network {
            vpc: Some("v".to_owned()),
            services: ["Lb", "NetworkACL"].map(str::to_owned).into(),
            acl: Some(AclRef {
                id: "acl".to_owned(),
                name: "tier-acl".to_owned(),
            }),
            ..(**world.observed.networks["n1"].as_ref().unwrap()).clone()
        };
        world
            .observed
            .networks
            .insert("n1".to_owned(), Some(Arc::new(network)));
        world.observed.acls.insert("acl".to_owned(), Vec::new());
        world.observed.neighbours.insert("n1".to_owned(), Vec::new());
        world
    }

    fn facts(&self) -> ServiceFacts {
        let node = |name: &&str| {
            Arc::new(Node {
                name: NodeName::new(*name),
                provider_id: Some(format!("external-cloudstack://vm-{name}").into()),
                ..Node::named(name)
            })
        };
        ServiceFacts {
            service: Arc::new(self.service.clone()),
            is_wanted: self.is_wanted,
            nodes: self.nodes.iter().map(node).collect(),
            services: Arc::new(Vec::<Arc<Service>>::new()),
            cluster: Arc::new(bowline_cloud_provider::ClusterFacts {
                name: "kubernetes".to_owned(),
                uid: None,
                server_version: None,
                holder: "one".to_owned(),
            }),
            now: Timestamp::from_second(1_700_000_000).unwrap(),
        }
    }

    fn intent(&self) -> Result<Intent, Refusal> {
        intent::read(&self.facts())
    }

    fn spec(&mut self, change: impl FnOnce(&mut Value)) {
        let mut value = serde_json::to_value(&self.service).unwrap();
        change(&mut value["spec"]);
        self.service = serde_json::from_value(value).unwrap();
    }

    fn annotate(&mut self, key: &str, value: &str) {
        let annotations = self.service.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        self.service
            .metadata
            .annotations
            .as_ref()?
            .get(key)
            .map(String::as_str)
    }

    /// Applies waves as predicted until nothing is left to do. `check` sees the world after every step.
    fn run_checked(&mut self, mut check: impl FnMut(&Self)) -> Result<Option<String>, String> {
        self.labels.clear();
        for _ in 0..40 {
            let intent = self.intent().map_err(|refusal| refusal.to_string())?;
            match plan(&intent, &self.observed).answer {
                Answer::Apply(wave) => {
                    for step in wave.into_steps() {
                        self.labels.push(step.view().label);
                        match step {
                            LoadBalancerStep::Cloud(step) => learn::predict(&mut self.observed, &step),
                            LoadBalancerStep::Kube(write) => write.predict(&mut self.service),
                        }
                        check(self);
                    }
                }
                Answer::Settled(status) => {
                    let first = status.ingress.into_iter().next();
                    return Ok(first.and_then(|entry| entry.ip.or(entry.hostname)));
                }
                Answer::Wait { reason, .. } => {
                    return Err(format!("waits: {reason}: {:?}", needs(&intent, &self.observed)));
                }
                Answer::Refused(refusal) => return Err(refusal.to_string()),
            }
        }
        Err(format!("never ends: {:#?}", self.labels))
    }

    fn run(&mut self) -> Result<Option<String>, String> {
        self.run_checked(|_| {})
    }

    /// The labels of what is done until it settles.
    #[track_caller]
    fn settle(&mut self) -> Vec<String> {
        let settled = self.run();
        assert!(settled.is_ok(), "{settled:?}");
        self.labels.clone()
    }

    fn rule(&self, name: &str) -> &Rule {
        let name = format!("{NAME}-{name}");
        self.observed.rules.iter().find(|rule| rule.name == name).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let names = self.observed.rules.iter();
        names
            .map(|rule| rule.name.replace(&format!("{NAME}-"), ""))
            .collect()
    }

    fn sources(&self, opening: &str) -> Vec<String> {
        let rules = self.observed.firewalls.values().flatten();
        rules
            .filter(|rule| rule.opening.to_string() == opening)
            .map(|rule| format!("{:?}", rule.sources))
            .collect()
    }
}

#[test]
fn a_new_balancer_claims_its_address_before_it_acquires_it() {
    let mut world = World::new();
    assert_eq!(world.run(), Ok(Some("203.0.113.40".to_owned())));
    let all = "vm-cp-a, vm-pool-a-7, vm-pool-a-8";
    assert_eq!(
        world.labels,
        [
            format!("annotate-service({}=ip-1)", IP_IDS.key),
            "associate-ip(203.0.113.40)".to_owned(),
            format!("create-rule({NAME}-tcp-443 -> 31443)"),
            format!("create-rule({NAME}-udp-4500 -> 31500)"),
            format!("assign({NAME}-tcp-443: {all})"),
            "open-firewall(203.0.113.40 tcp/443 from 0.0.0.0/0)".to_owned(),
            format!("assign({NAME}-udp-4500: {all})"),
            "open-firewall(203.0.113.40 udp/4500 from 0.0.0.0/0)".to_owned(),
        ]
    );
    assert_eq!(world.settle(), Vec::<String>::new());
}

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
fn a_rule_follows_affinity_and_source_networks_in_place() {
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
    world.annotate(SOURCE_CIDRS.key, "10.9.0.0/16 , 2001:db8::/32");
    let labels = world.settle();
    assert_eq!(labels.len(), 2, "{labels:?}");
    assert!(
        labels.iter().all(|label| label.starts_with("update-rule(")),
        "{labels:?}"
    );
    assert_eq!(ids(&world), before);
    assert_eq!(world.rule("tcp-443").algorithm, "source");
    assert!(
        world
            .rule("tcp-443")
            .cidrs
            .is_same(&Cidrs::parse("2001:db8::/32 10.9.0.0/16"))
    );
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
            "delete-rule",
            "create-rule",
            "create-rule",
            "assign",
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
fn the_proxy_protocol_is_switched_where_the_rule_stands() {
    let mut world = World::new();
    world.settle();
    let id = world.rule("tcp-443").id.clone();
    world.annotate(PROXY_PROTOCOL.key, "true");
    let labels = world.settle();
    assert_eq!(
        labels,
        [format!("update-rule({NAME}-tcp-443 -> {NAME}-tcp-proxy-443)")]
    );
    assert_eq!(world.rule("tcp-proxy-443").id, id);
    world.annotate(PROXY_PROTOCOL.key, "enabled");
    world.settle();
    assert_eq!(world.rule("tcp-443").id, id);
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
    (surplus.id, surplus.state) = ("0".to_owned(), RuleState::Add);
    world.observed.rules.insert(0, surplus);
    assert_eq!(world.settle(), [format!("delete-rule({NAME}-tcp-443)")]);
    assert_eq!(world.rule("tcp-443").id, kept);
}

#[test]
fn what_cannot_be_read_of_a_rule_does_not_keep_it() {
    let mut world = World::new();
    world.settle();
    let mut odd = world.rule("udp-4500").clone();
    (odd.id, odd.public_port, odd.protocol) = ("odd".to_owned(), None, "ssl".to_owned());
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
fn what_is_wrong_is_found_before_anything_is_made() {
    type Change = fn(&mut World);
    let cases: [(&str, Change); 10] = [
        ("requested load balancer with no ports", |world| {
            world.spec(|spec| spec["ports"] = json!([]))
        }),
        ("unsupported load balancer protocol: SCTP", |world| {
            world.spec(|spec| spec["ports"][0]["protocol"] = json!("SCTP"))
        }),
        ("unsupported load balancer affinity: Often", |world| {
            world.spec(|spec| spec["sessionAffinity"] = json!("Often"))
        }),
        ("has no node port", |world| {
            world.spec(|spec| spec["ports"][0]["nodePort"] = json!(0))
        }),
        ("port 443 is asked for as tcp and udp", |world| {
            world.spec(|spec| {
                spec["ports"][1]["port"] = json!(443);
            })
        }),
        (
            "invalid CIDR 10.9.0.0/33 in annotation service.beta.kubernetes.io/cloudstack-load-balancer-source-cidrs:",
            |world| world.annotate(SOURCE_CIDRS.key, "10.9.0.0/33"),
        ),
        ("invalid CIDR  in annotation", |world| {
            world.annotate(SOURCE_CIDRS.key, "10.0.0.0/8,")
        }),
        (
            "none of the hosts matched the list of VMs retrieved from CS API",
            |world| world.nodes = vec!["other"],
        ),
        ("found hosts that belong to different networks", |world| {
            let mut machines = (**world.observed.machines.as_ref().unwrap()).clone();
            machines[2].networks = vec!["n2".to_owned()];
            world.observed.machines = Some(Arc::new(machines));
        }),
        ("offers no load balancing", |world| {
            let mut network = (**world.observed.networks["n1"].as_ref().unwrap()).clone();
            network.services.remove("Lb");
            world
                .observed
                .networks
                .insert("n1".to_owned(), Some(Arc::new(network)));
        }),
    ];
    for (text, change) in cases {
        let mut world = World::new();
        change(&mut world);
        let complaint = world.run().unwrap_err();
        assert!(complaint.contains(text), "{text}: {complaint}");
        assert!(world.labels.is_empty(), "{text}");
    }
}

fn address(id: &str, ip: &str, state: AddressState) -> Address {
    Address {
        address: AddressRef {
            id: id.to_owned(),
            ip: ip.to_owned(),
        },
        state,
        allocated: (state != AddressState::Free).then_some(Timestamp::UNIX_EPOCH),
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
        &labels[..3],
        [
            format!("annotate-service({}=ip-77)", IP_IDS.key),
            "associate-ip(203.0.113.77)".to_owned(),
            format!("annotate-service({}=true)", IP_ASSOCIATED.key),
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
        world.labels.contains(&"release-ip(203.0.113.40)".to_owned()),
        "{:#?}",
        world.labels
    );
    assert_eq!(world.annotation(IP_IDS.key), Some("ip-77"));
}

#[test]
fn what_an_earlier_manager_made_needs_no_write_and_is_released_by_its_rule() {
    for (requested, mark, is_released) in [
        (None, None, true),
        (Some("203.0.113.40"), None, false),
        (Some("203.0.113.40"), Some("true"), true),
        (Some("203.0.113.40"), Some("yes"), false),
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
        let releases = labels.contains(&"release-ip(203.0.113.40)".to_owned());
        assert_eq!(releases, is_released, "{requested:?} {mark:?}: {labels:?}");
        if releases {
            // So that a release that fails half-way is found again.
            assert_eq!(labels[0], format!("annotate-service({}=ip-1)", IP_IDS.key));
        }
    }
}

#[test]
fn an_address_that_others_use_is_kept() {
    let mut world = World::new();
    world.settle();
    let mut stranger = world.rule("tcp-443").clone();
    (stranger.id, stranger.name, stranger.public_port) = ("s".to_owned(), "other".to_owned(), Some(8080));
    world.observed.strangers.insert("ip-1".to_owned(), vec![stranger]);
    world.is_wanted = false;
    let labels = world.settle();
    assert!(
        !labels.iter().any(|label| label.starts_with("release-ip")),
        "{labels:?}"
    );
    assert!(world.observed.rules.is_empty() && world.observed.firewalls["ip-1"].is_empty());
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

fn firewall(sources: &[&str]) -> Vec<FirewallRule> {
    let rule = |(index, sources): (usize, &&str)| FirewallRule {
        id: format!("old-{index}"),
        opening: Opening {
            protocol: IpProtocol::Tcp,
            port: 443,
        },
        sources: Cidrs::parse(sources),
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
            .get_mut("ip-1")
            .unwrap()
            .retain(|rule| rule.opening.port != 443);
        world
            .observed
            .firewalls
            .get_mut("ip-1")
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
    let rules = &world.observed.firewalls["ip-1"];
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
        let rules = world.observed.firewalls.get_mut("ip-1").unwrap();
        rules.clear();
        for sources in &present {
            let rule = firewall(&[&sources.join(",")]).remove(0);
            // Two rules with a network in common cannot be.
            if rules.iter().all(|other| !other.sources.shares_with(&rule.sources)) {
                rules.push(FirewallRule { id: format!("old-{}", rules.len()), ..rule });
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
                if let CloudStep::OpenFirewall { sources, .. } = &step {
                    let new: Cidrs = sources.iter().collect();
                    prop_assert!(world.observed.firewalls["ip-1"].iter().all(|rule| !rule.sources.shares_with(&new)));
                }
                learn::predict(&mut world.observed, &step);
                for probe in &served {
                    prop_assert!(is_let_in(&world, probe), "{} is shut out", probe);
                }
            }
        }
        world.settle();
        let wish: Cidrs = wishes.last().unwrap().0.iter().collect();
        let rules = &world.observed.firewalls["ip-1"];
        prop_assert_eq!(rules.len(), 1);
        prop_assert!(rules[0].sources.is_same(&wish));
    }

    /// Whatever is changed in whatever order: it settles, and planning again finds nothing to do; a removal leaves nothing.
    #[test]
    fn every_history_settles_and_ends_with_nothing(
        is_vpc: bool,
        changes in prop::collection::vec(0_u8..9, 0..12),
        stops in prop::collection::vec(0_usize..8, 12),
    ) {
        let mut world = if is_vpc { World::vpc() } else { World::new() };
        for (change, stop) in changes.iter().zip(stops) {
            match change {
                0 => world.annotate(PROXY_PROTOCOL.key, "true"),
                1 => world.annotate(PROXY_PROTOCOL.key, "false"),
                2 => world.annotate(SOURCE_CIDRS.key, "10.0.0.0/8"),
                3 => world.spec(|spec| spec["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"])),
                4 => world.spec(|spec| spec["loadBalancerSourceRanges"] = Value::Null),
                5 => world.spec(|spec| spec["ports"][0]["nodePort"] = json!(32000)),
                6 => world.spec(|spec| spec["ports"][0]["protocol"] = json!("UDP")),
                7 => world.nodes = vec!["pool-a-8"],
                _ => world.nodes = vec!["cp-a", "pool-a-7"],
            }
            // Only some steps are made before the next change.
            for _ in 0..stop {
                let intent = world.intent().unwrap();
                let Answer::Apply(wave) = plan(&intent, &world.observed).answer else { break };
                match wave.into_steps().remove(0) {
                    LoadBalancerStep::Cloud(step) => learn::predict(&mut world.observed, &step),
                    LoadBalancerStep::Kube(write) => write.predict(&mut world.service),
                }
            }
        }
        world.settle();
        prop_assert_eq!(world.settle(), Vec::<String>::new());
        prop_assert_eq!(world.observed.rules.len(), 2);
        world.is_wanted = false;
        world.settle();
        prop_assert!(world.observed.rules.is_empty());
        prop_assert_eq!(world.observed.addresses.values().flatten().count(), 0);
        prop_assert!(world.observed.firewalls.values().flatten().next().is_none());
    }
}
