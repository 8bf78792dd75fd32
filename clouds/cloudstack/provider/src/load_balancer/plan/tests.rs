//! Decisions on observations that are whole from the beginning: plan, predict, plan again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_provider::plan::{Answer, Refusal};
use bowline_cloud_provider::{CloudError, LoadBalancerStep, Memory, Node, NodeName, Service, ServiceFacts};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::load_balancer::annotations::{IP_ASSOCIATED, IP_IDS, IP_NETWORKS, PROXY_PROTOCOL, SOURCE_CIDRS};
use crate::load_balancer::cidrs::Cidrs;
use crate::load_balancer::intent;
use crate::load_balancer::names::IpProtocol;
use crate::load_balancer::objects::{
    Address, AddressRef, AddressState, Firewall, FirewallId, FirewallRule, IngressPort, Network, PortRange,
    Rule, RuleState,
};
use crate::load_balancer::observe::failures::Failure;
use crate::load_balancer::observe::learn::{self, Learned};
use crate::load_balancer::step::Opening;
use crate::virtual_machines::Instance;
use crate::virtual_machines::member_index;

mod acl;
mod any_address;
mod evidence;
mod firewall;
mod home;
mod ports;
mod refusals;

const UID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const NAME: &str = "a7c9e6679742540de944be07fc1f90ae";

/// The ID and the text of an address that the cloud chooses, as they are predicted.
const CHOSEN: &str = "new-ip-1";
const CHOSEN_IP: &str = learn::TO_BE_CHOSEN;

/// A Service, its Nodes, and a cloud that is nothing but an observation.
struct World {
    service: Service,
    /// Other Services of the cluster.
    others: Vec<Service>,
    nodes: Vec<&'static str>,
    observed: Seen,
    is_wanted: bool,
    labels: Vec<String>,
}

impl World {
    /// A Service with TCP 443 and UDP 4500 in an isolated network with three instances and one free address.
    fn new() -> Self {
        let instance = |id: &str| Instance {
            id: format!("vm-{id}").into(),
            name: id.to_owned(),
            networks: vec!["n1".into()],
        };
        let network = Network {
            id: "n1".into(),
            name: "k8s".to_owned(),
            vpc: None,
            services: ["Lb", "Firewall", "SourceNat"].map(str::to_owned).into(),
            acl: None,
            has_router: true,
        };
        let observed = Observed {
            abilities: Some(Abilities {
                takes_cidrs: Some(true),
                changes_cidrs: true,
            }),
            networks: BTreeMap::from([("n1".into(), Some(Arc::new(network)))]),
            instances: Some(Arc::new(member_index(
                ["cp-a", "pool-a-7", "pool-a-8"].map(instance),
            ))),
            recovered: BTreeMap::from([("n1".into(), Vec::new())]),
            ..Observed::default()
        };
        let observed = Seen {
            observed,
            memory: Memory::default(),
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
            others: Vec::new(),
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
            vpc: Some("v".into()),
            services: ["Lb", "NetworkACL"].map(str::to_owned).into(),
            acl: Some(Firewall {
                id: acl(),
                name: "tier-acl".to_owned(),
            }),
            ..(**world.observed.networks["n1"].as_ref().unwrap()).clone()
        };
        world
            .observed
            .networks
            .insert("n1".into(), Some(Arc::new(network)));
        world.observed.firewalls.insert(acl(), Vec::new());
        world.observed.neighbours.insert("n1".into(), Vec::new());
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
            has_begun: false,
            nodes: self.nodes.iter().map(node).collect(),
            services: Arc::new(self.others.iter().cloned().map(Arc::new).collect::<Vec<_>>()),
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
        intent::read::read(&self.facts())
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
                Answer::Wait { reason, .. } | Answer::LookAgain { reason } => {
                    return Err(format!("waits: {reason}: {:?}", needs(&intent, &self.observed)));
                }
                Answer::Refused(refusal) => return Err(refusal.to_string()),
            }
        }
        Err(format!("never ends: {:#?}", self.labels))
    }

    /// Makes the first step of what comes next, as predicted; whether there was one.
    fn step(&mut self) -> bool {
        let intent = self.intent().unwrap();
        let Answer::Apply(wave) = plan(&intent, &self.observed).answer else {
            return false;
        };
        match wave.into_steps().remove(0) {
            LoadBalancerStep::Cloud(step) => learn::predict(&mut self.observed, &step),
            LoadBalancerStep::Kube(write) => write.predict(&mut self.service),
        }
        true
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

    fn sources(&self, ingress: &str) -> Vec<String> {
        let rules = self.observed.firewalls.values().flatten();
        rules
            .filter(|rule| rule.ingress.to_string() == ingress)
            .map(|rule| format!("{:?}", rule.sources))
            .collect()
    }
}

/// The firewall of the address with this ID.
fn firewall_of(id: &str) -> FirewallId {
    FirewallId::Address(id.into())
}

/// The ACL list of the tier.
fn acl() -> FirewallId {
    FirewallId::Acl("acl".into())
}

/// An address of the network, if somebody has it.
fn address(id: &str, ip: &str, state: AddressState) -> Address {
    Address {
        address: AddressRef {
            id: id.into(),
            ip: ip.to_owned(),
        },
        state,
        allocated: None,
        network: (state == AddressState::Allocated).then(|| "n1".into()),
        vpc: None,
        is_source_nat: false,
        is_static_nat: false,
    }
}

proptest! {
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
                world.step();
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
