//! Apache CloudStack.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::project::Project;
use bowline_cloud_kit::{Clock, CloudService, Double};
use bowline_cloud_provider::{CloudConfig, CloudProvider};
use bowline_cloudstack::{CloudStack as Provider, Introduction, Options};
use bowline_cloudstack_sim::model::{LoadBalancerRule, VirtualMachine};
use bowline_cloudstack_sim::{
    AddressSpec, AddressState, Behaviour, CloudstackSim, NetworkSpec, NicSpec, Owner, ProjectSpec, UserSpec,
    VmSpec, VpcSpec,
};
use serde_json::{Value, json};

use crate::cloud::{Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, Wish, without_ids};

const API_KEY: &str = "vT4kQm8-3aXo9bRz";

/// Where the instances are, and what the server is like.
pub trait Place: Send + Sync + 'static {
    /// Its name; none for the usual one.
    const NAME: Option<&'static str>;

    /// Makes it; answers the ID of the network, and that of the project that everything is in.
    fn furnish(sim: &CloudstackSim) -> (String, Option<String>);
}

/// An isolated network, which has a firewall. The server is a new one and quick.
pub struct Isolated;

impl Place for Isolated {
    const NAME: Option<&'static str> = None;

    fn furnish(sim: &CloudstackSim) -> (String, Option<String>) {
        (sim.network(), None)
    }
}

/// A tier of a VPC of a project, which has an ACL list. The server cannot change the clients of a rule in place, and takes a while for
/// everything.
pub struct Tier;

impl Place for Tier {
    const NAME: Option<&'static str> = Some("tier");

    fn furnish(sim: &CloudstackSim) -> (String, Option<String>) {
        sim.set_behaviour(|it| {
            it.version = "4.18.2.1".to_owned();
            it.job_time = Duration::from_millis(300);
        });
        let project = sim.add_project(ProjectSpec::new("prod"));
        let vpc = sim.add_vpc(VpcSpec {
            owner: Some(Owner::Project(project.clone())),
            ..VpcSpec::new("vpc")
        });
        let list = sim.add_acl_list("tier-acl", &vpc);
        let tier = sim.add_network(NetworkSpec::tier("web", vpc, list));
        (tier, Some(project))
    }
}

/// Apache CloudStack and its simulator. A Service's balancer is the rules whose names begin with its name.
pub struct CloudStack<P = Isolated> {
    sim: CloudstackSim,
    clock: Clock,
    network: String,
    project: Option<String>,
    /// The zone and the network of special instances.
    elsewhere: (String, String),
    place: PhantomData<P>,
}

impl<P> Deref for CloudStack<P> {
    type Target = CloudstackSim;

    fn deref(&self) -> &CloudstackSim {
        &self.sim
    }
}

impl<P: Place> CloudUnderTest for CloudStack<P> {
    const NAME: &'static str = "external-cloudstack";
    const MANUAL: &'static str = "cloudstack";
    const WAITS_FOR_CLAIMS: bool = true;
    const PLACE: Option<&'static str> = P::NAME;
    const ABILITIES: &'static [Ability] = &[
        Ability::LoadBalancers,
        Ability::ServiceParts,
        Ability::BalancedNodes,
        Ability::ReadyNodesOnly,
        Ability::Repair,
        Ability::ChosenAddresses,
        Ability::ReturnedAddresses,
        Ability::PowerState,
        Ability::NewAddresses,
        Ability::OtherProjects,
        Ability::Manual,
    ];
    const SECRET: &'static str = "9Yb3Tn0aZqLw5Ucx1KvE";

    fn new(seed: u64) -> Self {
        let clock = Clock::default();
        let sim = CloudstackSim::builder()
            .user(UserSpec::new(API_KEY, Self::SECRET))
            .seed(seed)
            .clock(clock)
            .build();
        let elsewhere = (
            sim.add_zone("Bern-2"),
            sim.add_network(NetworkSpec::new("storage")),
        );
        // The scenarios are about ports that every cloud carries.
        sim.set_behaviour(Behaviour::carry_everything);
        let (network, project) = P::furnish(&sim);
        Self {
            network,
            project,
            sim,
            clock,
            elsewhere,
            place: PhantomData,
        }
    }

    fn service(&self) -> CloudService {
        self.sim.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let secret = Self::SECRET;
        let contents = format!(
            "[Global]\napi-url = http://cloud.example/client/api\napi-key = {API_KEY}\nsecret-key = {secret}\n\
             project-id = {}\n",
            self.project.as_deref().unwrap_or_default()
        );
        let config = CloudConfig::Given {
            path: "cloud-config".to_owned(),
            contents: contents.into_bytes(),
        };
        let options = Options::read(&config).unwrap();
        let http = seat.http(Self::NAME, |config| options.settings.configure(config));
        let clock = self.clock;
        let clock: bowline_cloudstack::WallClock = Arc::new(move || clock.now());
        Arc::new(Provider::new(
            http,
            &options,
            None,
            Introduction::default(),
            clock,
        ))
    }

    fn add_instance(&self, instance: &Instance) {
        let mut spec = VmSpec::with_nics(&instance.name, [NicSpec::on(&self.network)]);
        if instance.is_special {
            let (zone, network) = &self.elsewhere;
            let home = NicSpec {
                is_default: true,
                ipv6: "2001:db8:7::71".parse().ok(),
                ..NicSpec::on(&self.network)
            };
            (spec.zone, spec.offering) = (Some(zone.clone()), Some("Large GPU-1.x".into()));
            spec.nics = Some(vec![NicSpec::on(network), home]);
        }
        spec.owner = self.project.clone().map(Owner::Project);
        self.add_vm(spec);
    }

    fn project(&self) -> &dyn Project {
        &self.sim
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.sim)
    }

    fn renumber(&self, name: &str) {
        self.edit_vm(&self.named(name).id, |vm| {
            let nic = vm.nics.iter_mut().find(|nic| nic.is_default).unwrap();
            let IpAddr::V4(address) = nic.address else {
                unreachable!("the networks have IPv4 ranges")
            };
            // Past all that are handed out in order.
            nic.address = IpAddr::from(u32::from(address).wrapping_add(4096).to_be_bytes());
        });
    }

    fn deny(&self, denial: Option<Denial>) {
        let user = UserSpec::new(API_KEY, Self::SECRET);
        match denial {
            Some(Denial::Unknown) => drop(self.remove_user(API_KEY)),
            // A configured project that is not theirs would be refused; one whose instances are elsewhere is not.
            Some(Denial::OtherProject) if self.project.is_some() => {
                self.give_instances(&Owner::Account("another one".to_owned()));
            }
            Some(Denial::OtherProject) => self.add_user(user.account("another one")),
            None => {
                self.add_user(user);
                if let Some(project) = &self.project {
                    self.give_instances(&Owner::Project(project.clone()));
                }
            }
        }
    }

    fn state(&self) -> String {
        format!("{:#?}", self.snapshot())
    }

    /// No scenario has a public address without rules.
    fn violations(&self) -> Vec<String> {
        let mut found = self.check_invariants();
        let rules = self.rules();
        for address in self.addresses() {
            if !rules.iter().any(|rule| rule.address == address.id) {
                found.push(format!("{} serves nobody: {:?}", address.address, address.state));
            }
        }
        found
    }

    fn balancers(&self) -> Vec<Balancer> {
        let mut balancers: BTreeMap<String, Balancer> = BTreeMap::new();
        for rule in self.rules() {
            let mark = rule.name.split('-').next().unwrap_or_default().to_owned();
            let balancer = balancers.entry(mark.clone()).or_insert_with(|| Balancer {
                service: mark,
                addresses: Vec::new(),
                ports: BTreeMap::new(),
            });
            let address = self.address_of(&rule);
            if !balancer.addresses.contains(&address) {
                balancer.addresses.push(address);
            }
            balancer.ports.insert(port(&rule), self.behind(&rule));
        }
        balancers.into_values().collect()
    }

    /// The public address goes, with everything on it.
    fn lose_balancer(&self, service: &str) {
        let rules = self.rules();
        let lost = rules.iter().filter(|rule| rule.name.starts_with(service));
        let lost: BTreeSet<&String> = lost.map(|rule| &rule.address).collect();
        for address in lost {
            self.release_address(address);
        }
    }

    fn be_strict(&self) {
        self.set_behaviour(|it| {
            it.job_time = Duration::from_secs(2);
            it.page_size = Some(3);
            it.post_only = true;
            it.max_expiry = Some(900);
        });
    }

    fn tamper(&self, dice: usize) -> Option<String> {
        let rules = self.rules();
        let rule = rules.get(dice % rules.len().max(1))?;
        if dice.is_multiple_of(2)
            && let Some(member) = rule.members.first()
        {
            self.remove_member(&rule.id, member);
            return Some(format!("somebody takes a member out of {}", rule.name));
        }
        let openings = self.firewall_rules().into_iter().map(|it| it.id);
        let items = self.acl_items().into_iter().map(|it| it.id);
        let openings: Vec<String> = openings.chain(items).collect();
        let opening = openings.get(dice % openings.len().max(1))?;
        let is_closed = self.remove_firewall_rule(opening) || self.remove_acl_item(opening);
        is_closed.then(|| "somebody closes a port".to_owned())
    }

    fn own(&self, word: &str) -> String {
        assert_eq!(word, "YOUR_ADDRESS");
        let id = self.take_address(match self.vpcs().first() {
            Some(vpc) => AddressSpec::in_vpc(&vpc.id),
            None => AddressSpec::default(),
        });
        let address = self.addresses().into_iter().find(|it| it.id == id);
        address.unwrap().address.to_string()
    }

    fn own_address(&self) -> String {
        self.own("YOUR_ADDRESS")
    }

    fn ask(&self, service: &mut Value, wish: Wish) {
        let mut annotate = |suffix: &str, value: &str| {
            let key = format!("service.beta.kubernetes.io/cloudstack-load-balancer-{suffix}");
            service["metadata"]["annotations"][key] = json!(value);
        };
        match wish {
            Wish::Plain => {}
            Wish::Rich => {
                annotate("source-cidrs", "10.0.0.0/8,192.0.2.0/24");
                annotate("proxy-protocol", "true");
                service["spec"]["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
            }
            Wish::Changed => {
                annotate("source-cidrs", "198.51.100.0/24");
                service["spec"]["sessionAffinity"] = json!("ClientIP");
                service["spec"]["loadBalancerSourceRanges"] = json!(["198.51.100.0/24", "203.0.113.0/24"]);
            }
        }
    }

    /// `a` and the UID without hyphens, of which 31 digits are left.
    fn mark(service: &Value) -> String {
        let uid = service["metadata"]["uid"].as_str().unwrap_or_default();
        let digits = uid.chars().filter(|it| *it != '-');
        std::iter::once('a').chain(digits).take(32).collect()
    }

    /// The cloud chooses the address as well: a plan shows one that cannot be mistaken for it. Claims are dated.
    fn foreseen(label: &str) -> String {
        let label = without_ids(label)
            .replace("new-ip-1", "[id]")
            .replace("an address that CloudStack chooses", "[chosen]");
        let words = label.split_inclusive(['(', ' ']).map(|word| {
            let text = word.trim_end_matches(['(', ' ']);
            let is_chosen = text.parse::<IpAddr>().is_ok() || text.parse::<jiff::Timestamp>().is_ok();
            if is_chosen {
                format!("[chosen]{}", &word[text.len()..])
            } else {
                word.to_owned()
            }
        });
        words.collect()
    }
}

impl<P> CloudStack<P> {
    fn named(&self, name: &str) -> VirtualMachine {
        self.vm_named(name).unwrap()
    }

    fn give_instances(&self, owner: &Owner) {
        for vm in self.vms() {
            self.edit_vm(&vm.id, |vm| vm.owner = owner.clone());
        }
    }

    /// Where a rule is reached.
    fn address_of(&self, rule: &LoadBalancerRule) -> String {
        let held = self.addresses();
        let found = held.iter().find(|it| it.id == rule.address);
        let found = found.filter(|it| it.state == AddressState::Allocated);
        found.map_or_else(|| "nowhere".to_owned(), |it| it.address.to_string())
    }

    fn behind(&self, rule: &LoadBalancerRule) -> BTreeSet<String> {
        let names = self.member_names(&rule.id).into_iter();
        names
            .map(|name| format!("{name}:{}", rule.private_port))
            .collect()
    }
}

/// `TCP/80`, as a Service has it.
fn port(rule: &LoadBalancerRule) -> String {
    let protocol = match rule.protocol.as_deref() {
        Some("udp") => "UDP",
        _ => "TCP",
    };
    format!("{protocol}/{}", rule.public_port)
}
