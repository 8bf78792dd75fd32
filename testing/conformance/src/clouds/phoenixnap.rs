//! phoenixNAP Bare Metal Cloud.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::project::Project;
use bowline_cloud_kit::{CloudService, Double, Entry};
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment};
use bowline_kit::scenario::{Complaint, parsed};
use bowline_phoenixnap::{Given, Options, PhoenixNap as Provider};
use bowline_phoenixnap_sim::model::Block;
use bowline_phoenixnap_sim::{NetworkSpec, PhoenixnapSim, Scope, ServerSpec};
use serde_json::{Value, json};

use crate::cloud::{Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, Wish};

const NETWORK: &str = "6598f7c2d2a94b6e0f1c1234";
const CLIENT: &str = "b1f9f8e6-6a0e-4a57-9d3a-0f0cf2d2a7c4";

/// phoenixNAP and its simulator. A Service's balancer is its IP block; there is nothing behind it and nothing in it.
pub struct Phoenixnap {
    sim: PhoenixnapSim,
    variables: BTreeMap<String, String>,
}

impl Deref for Phoenixnap {
    type Target = PhoenixnapSim;

    fn deref(&self) -> &PhoenixnapSim {
        &self.sim
    }
}

impl CloudUnderTest for Phoenixnap {
    const NAME: &'static str = "phoenixnap";
    /// The manager's specification bounds a stated delay.
    const SIGNS_IN: bool = true;
    const LONGEST_DELAY: Duration = Duration::from_secs(30);

    /// Without `Repair`: a block that somebody gave back is not bought anew, because its Service names an address that
    /// nobody can ask for again. The sync fails with an event, and a person decides.
    const ABILITIES: &'static [Ability] = &[
        Ability::LoadBalancers,
        Ability::PowerState,
        Ability::NewAddresses,
        Ability::OtherProjects,
        Ability::Manual,
    ];
    const SECRET: &'static str = "8d2nVt0yKq51LmWs3xHb";

    fn new(seed: u64) -> Self {
        let sim = PhoenixnapSim::builder()
            .credentials(CLIENT, Self::SECRET, Scope::ALL)
            .seed(seed)
            .build();
        sim.add_network(NetworkSpec::with_id(NETWORK, "vips"));
        // The scenarios have more Services than a network takes blocks.
        sim.set_behaviour(|it| it.quota.blocks_per_network = 100);
        Self {
            sim,
            variables: BTreeMap::from([
                ("PNAP_CLIENT_ID".to_owned(), CLIENT.to_owned()),
                ("PNAP_CLIENT_SECRET".to_owned(), Self::SECRET.to_owned()),
                ("PNAP_LOCATION".to_owned(), "NLD".to_owned()),
                ("PNAP_LOAD_BALANCER".to_owned(), format!("kube-vip://{NETWORK}")),
            ]),
        }
    }

    fn service(&self) -> CloudService {
        self.sim.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let environment: Environment = self
            .variables
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let options = Options::read(&Given::default(), &environment, &CloudConfig::Absent).unwrap();
        let http = seat.http(Self::NAME, |config| options.configure(config));
        Arc::new(Provider::new(http, &options, None))
    }

    fn add_instance(&self, instance: &Instance) {
        let mut spec = ServerSpec::new(&instance.name);
        if instance.is_special {
            spec.instance_type = Some("d2.c3.medium".into());
            spec.location = Some("CHI".into());
            spec.public_addresses = Some(vec!["192.0.2.71".into(), "2001:db8:7::71".into()]);
            spec.private_addresses = Some(vec!["10.9.0.3".into(), "10.9.1.3".into()]);
        }
        self.add_server(spec);
    }

    fn project(&self) -> &dyn Project {
        &self.sim
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.sim)
    }

    fn add(&self, kind: &str, spec: Value) -> Result<String, Complaint> {
        match kind {
            "block" => Ok(self.add_block(parsed(&spec)?)),
            "server" => Ok(self.add_server(parsed(&spec)?)),
            other => Err(format!("no {other} can be added")),
        }
    }

    fn renumber(&self, name: &str) {
        self.edit_server(&self.server_named(name).unwrap().id, |server| {
            let number = server.private_addresses.len();
            server.private_addresses.push(format!("10.9.2.{number}"));
        });
    }

    fn deny(&self, denial: Option<Denial>) {
        let secret = match denial {
            Some(Denial::Unknown) => "another one",
            Some(Denial::OtherProject) | None => Self::SECRET,
        };
        self.set_credentials(CLIENT, secret, Scope::ALL);
        self.forget_tokens();
        self.set_behaviour(|it| it.shows_other_account = denial == Some(Denial::OtherProject));
    }

    /// The blocks; the names of tags are the account's, and stay.
    fn state(&self) -> String {
        format!("{:#?}", self.snapshot()["blocks"])
    }

    fn balancers(&self) -> Vec<Balancer> {
        let blocks = self.blocks();
        let balancers = blocks.iter().filter(|block| !is_marked(block)).map(|block| {
            let tag = |name: &str| block.tag(name).unwrap_or_default();
            Balancer {
                service: format!("{}/{}", tag("serviceNamespace"), tag("serviceName")),
                addresses: vec![third_address(block)],
                ports: BTreeMap::new(),
            }
        });
        balancers.collect()
    }

    fn lose_balancer(&self, service: &str) {
        for block in self.blocks() {
            let tag = |name: &str| block.tag(name).unwrap_or_default();
            if format!("{}/{}", tag("serviceNamespace"), tag("serviceName")) == service {
                self.remove_block(&block.id);
            }
        }
    }

    fn be_strict(&self) {
        self.set_behaviour(|it| {
            it.block_create_time = Duration::from_secs(2);
            it.attach_time = Duration::from_secs(4);
            it.detach_time = Duration::from_secs(4);
            it.assigning_names_network = false;
            it.busy_refuses_detachment = true;
        });
    }

    fn ask(&self, service: &mut Value, wish: Wish) {
        if wish == Wish::Changed {
            service["metadata"]["annotations"]["kube-vip.io/serviceInterface"] = json!("bond0.1204");
        }
    }

    /// Blocks bear the name of their Service, not its UID.
    fn mark(service: &Value) -> String {
        let text = |key: &str| service["metadata"][key].as_str().unwrap_or_default();
        format!("{}/{}", text("namespace"), text("name"))
    }

    /// The sweeper lists all blocks of the cluster every half minute, which takes a token, and reads the network once.
    fn is_by_the_clock(call: &Entry) -> bool {
        let is_of_cluster = || !call.query.iter().any(|it| it.1.starts_with("serviceName."));
        match call.operation.as_str() {
            "token" | "public-networks.read" => true,
            "ip-blocks.list" => is_of_cluster(),
            _ => false,
        }
    }

    fn is_at_work(&self) -> bool {
        self.blocks().iter().any(is_marked)
    }

    /// Addresses are the cloud's choice, and a claim bears its time.
    fn foreseen(label: &str) -> String {
        let label = label
            .replace("an address of the block that is bought", "[chosen]")
            .replace("<new>", "[chosen]");
        let is_chosen = |word: &str| {
            let address = word.split('/').next().unwrap_or_default();
            address.parse::<IpAddr>().is_ok() || word.parse::<jiff::Timestamp>().is_ok()
        };
        let words = label.split_inclusive(['(', ')', ' ', ',', '=']).map(|word| {
            let text = word.trim_end_matches(['(', ')', ' ', ',', '=']);
            if is_chosen(text) {
                format!("[chosen]{}", &word[text.len()..])
            } else {
                word.to_owned()
            }
        });
        words.collect()
    }
}

impl Phoenixnap {
    /// The public network that blocks are attached to.
    pub const NETWORK: &str = NETWORK;

    /// Sets a variable of the environment for the providers that are built from now on.
    pub fn set(&mut self, variable: &str, value: &str) {
        self.variables.insert(variable.to_owned(), value.to_owned());
    }
}

fn is_marked(block: &Block) -> bool {
    block.has_tag("delete", None)
}

/// The first is the network's own, the second the gateway's.
fn third_address(block: &Block) -> String {
    match block.cidr.network() {
        IpAddr::V4(network) => Ipv4Addr::from_bits(network.to_bits() + 2).to_string(),
        IpAddr::V6(network) => network.to_string(),
    }
}
