//! OpenStack.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::project::{self, Project};
use bowline_cloud_kit::{CloudService, Double, Entry};
use bowline_cloud_provider::{CloudConfig, CloudProvider, Environment};
use bowline_openstack::{Client, Metrics, Offer, OpenStack as Provider, Options};
use bowline_openstack_sim::model::balancing::{Listener, ListenerProtocol, LoadBalancer, Provisioning};
use bowline_openstack_sim::model::compute::Flavor;
use bowline_openstack_sim::model::network::Route;
use bowline_openstack_sim::{FloatingIpSpec, Id, NetworkSpec, NicSpec, OpenstackSim, ServerSpec, SubnetSpec};
use serde_json::{Value, json};

use crate::cloud::{
    Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, StrayRoute, Wish, without_ids,
};

/// What the cloud can do and what the operator wants of it.
pub trait Way: Send + Sync + 'static {
    /// Its name; none for the usual one.
    const NAME: Option<&'static str>;

    /// Options of the section `LoadBalancer`.
    const BALANCING: &'static str;

    /// What Neutron lacks.
    const WITHOUT: &'static [&'static str];

    /// Variables of the process.
    const VARIABLES: &'static [(&'static str, &'static str)] = &[];
}

/// Whole trees in one call, and no security groups.
pub struct Trees;

impl Way for Trees {
    const NAME: Option<&'static str> = None;
    const BALANCING: &'static str = "";
    const WITHOUT: &'static [&'static str] = &[];
}

/// Load balancers that go part by part, with checked members and a security group each; and a router whose routes are written
/// as a whole.
pub struct Parts;

impl Way for Parts {
    const NAME: Option<&'static str> = Some("parts");
    const BALANCING: &'static str =
        "cascade-delete = false\nmanage-security-groups = true\ncreate-monitor = true\n";
    const WITHOUT: &'static [&'static str] = &["extraroute-atomic"];
}

/// No Node is deleted because its server is gone.
pub struct KeptNodes;

impl Way for KeptNodes {
    const NAME: Option<&'static str> = None;
    const BALANCING: &'static str = "";
    const WITHOUT: &'static [&'static str] = &[];
    const VARIABLES: &'static [(&'static str, &'static str)] = &[("SKIP_NODE_DELETION", "1")];
}

/// OpenStack and its simulator.
pub struct OpenStack<W = Trees> {
    sim: OpenstackSim,
    /// The network that special instances are in besides.
    storage: Id,
    /// A router that is another cluster's.
    theirs: Id,
    way: PhantomData<W>,
}

impl<W> Deref for OpenStack<W> {
    type Target = OpenstackSim;

    fn deref(&self) -> &OpenstackSim {
        &self.sim
    }
}

impl<W: Way> CloudUnderTest for OpenStack<W> {
    const NAME: &'static str = "openstack";
    const PLACE: Option<&'static str> = W::NAME;
    /// The router's, and that of the Node's port, which lets the pod network through.
    const SIGNS_IN: bool = true;
    const WRITES_OF_A_ROUTE: usize = 2;
    const ABILITIES: &'static [Ability] = &[
        Ability::LoadBalancers,
        Ability::ServiceParts,
        Ability::BalancedNodes,
        Ability::UnreadyNodes,
        Ability::EmptyBalancers,
        Ability::Repair,
        Ability::ChosenAddresses,
        Ability::PowerState,
        Ability::NewAddresses,
        Ability::OtherProjects,
        Ability::Routes,
        Ability::RoutesByAddress,
        Ability::Manual,
    ];
    const SECRET: &'static str = "Zk3pTn8wQx5rVb1mHc7d";

    fn new(seed: u64) -> Self {
        let sim = OpenstackSim::builder()
            .user("demo", Self::SECRET)
            .private_range("10.0.0.0/16".parse().unwrap())
            .seed(seed)
            .build();
        sim.set_behaviour(|it| {
            it.extensions
                .retain(|alias| !W::WITHOUT.contains(&alias.as_str()));
            // The scenarios have more Nodes than a router takes routes.
            it.max_routes = 100;
        });
        sim.add_flavor(Flavor {
            id: "7".to_owned(),
            name: "g1.large".to_owned(),
            vcpus: 8,
            ram_mib: 32_768,
            disk_gib: 80,
        });
        let storage = sim.add_network(NetworkSpec {
            name: "storage".to_owned(),
            ..NetworkSpec::default()
        });
        sim.add_subnet(SubnetSpec::new(
            "storage-v4",
            storage,
            "10.7.0.0/24".parse().unwrap(),
        ));
        Self {
            storage,
            theirs: sim.add_router("theirs", None),
            sim,
            way: PhantomData,
        }
    }

    fn service(&self) -> CloudService {
        self.sim.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let contents = format!(
            "[Global]\nauth-url = http://cloud.example/identity\nusername = demo\npassword = {}\ntenant-name = demo\n\
             domain-id = default\nregion = RegionOne\n[LoadBalancer]\n{}[Route]\nrouter-id = {}\n",
            Self::SECRET,
            W::BALANCING,
            self.home().router
        );
        let config = CloudConfig::Given {
            path: "cloud.conf".to_owned(),
            contents: contents.into_bytes(),
        };
        let environment: Environment = W::VARIABLES.iter().copied().collect();
        let options = Options::read(&config, &environment, &|path| std::fs::read(path)).unwrap();
        let http = seat.http(Self::NAME, |config| options.settings.configure(config));
        let client = Client::new(http, options.settings.clone());
        let metrics = Metrics::default();
        Arc::new(Provider::new(client, &options, Offer::EVERYTHING, &metrics))
    }

    fn add_instance(&self, instance: &Instance) {
        let mut spec = ServerSpec::new(&instance.name);
        if instance.is_special {
            (spec.zone, spec.flavor) = (Some("az-2".to_owned()), Some("7".to_owned()));
            spec.nics.push(NicSpec::on(self.storage));
        }
        let server = self.add_server(spec);
        if instance.is_special {
            self.add_floating_ip(FloatingIpSpec {
                port: self.ports_of(server).first().map(|port| port.id),
                ..FloatingIpSpec::default()
            });
        }
    }

    fn project(&self) -> &dyn Project {
        &self.sim
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.sim)
    }

    fn renumber(&self, name: &str) {
        let server = self.server_named(name).unwrap();
        let port = self.ports_of(server.id)[0].id;
        self.edit_port(port, |port| {
            let fixed_ip = &mut port.fixed_ips[0];
            let IpAddr::V4(address) = fixed_ip.address else {
                unreachable!("the network has an IPv4 range")
            };
            // Past all that are handed out in order.
            fixed_ip.address = IpAddr::from(u32::from(address).wrapping_add(4096).to_be_bytes());
        });
    }

    fn deny(&self, denial: Option<Denial>) {
        let user = self.user_id("demo").unwrap();
        let password = match denial {
            Some(Denial::Unknown) => "another one",
            Some(Denial::OtherProject) | None => Self::SECRET,
        };
        self.set_password(&user, password);
        self.revoke_tokens();
        let project = match denial {
            Some(Denial::OtherProject) => "another one".to_owned(),
            Some(Denial::Unknown) | None => self.home().project,
        };
        for server in self.servers() {
            self.edit_server(server.id, |it| it.project.clone_from(&project));
        }
    }

    fn state(&self) -> String {
        format!("{:#?}", self.snapshot())
    }

    /// No scenario has a floating IP that leads nowhere, or a security group without its load balancer.
    fn violations(&self) -> Vec<String> {
        let mut found = self.check_invariants();
        let floating = self.floating_ips().into_iter().filter(|it| it.target.is_none());
        found.extend(floating.map(|it| format!("floating IP {} leads nowhere", it.address.address)));
        let balancers = self.load_balancers().into_iter().map(|it| it.part);
        // The tags name the Services that share it.
        let names: BTreeSet<String> = balancers
            .flat_map(|it| it.meta.tags.into_iter().chain([it.name]))
            .collect();
        let groups = self
            .security_groups()
            .into_iter()
            .filter(|it| it.name != "default");
        found.extend(groups.filter_map(|group| {
            let (_, rest) = group.meta.description.split_once("Security Group for ")?;
            let (service, _) = rest.split_once(' ')?;
            let name = format!("{MARK}{}", service.replace('/', "_"));
            (!names.contains(&name)).then(|| format!("security group {} serves nobody", group.name))
        }));
        found
    }

    fn balancers(&self) -> Vec<Balancer> {
        let there = self.load_balancers().into_iter();
        let there = there.filter(|it| it.part.status != Provisioning::PendingDelete);
        there.map(|it| self.balancer(&it)).collect()
    }

    /// The load balancer goes with its parts. A floating IP outlives it, as by hand.
    fn lose_balancer(&self, service: &str) {
        for balancer in self.load_balancers() {
            if balancer.part.name == service {
                self.delete_load_balancer(balancer.part.id);
            }
        }
    }

    fn be_strict(&self) {
        self.set_behaviour(|it| {
            it.lb_create_time = Duration::from_secs(4);
            it.lb_change_time = Duration::from_millis(800);
            it.lb_delete_time = Duration::from_secs(1);
            it.nova_page_size = 2;
            it.neutron_page_size = Some(3);
            it.octavia_page_size = Some(2);
        });
    }

    fn tamper(&self, dice: usize) -> Option<String> {
        fn chosen<T: Clone>(things: &[T], dice: usize) -> Option<T> {
            things.get(dice % things.len().max(1)).cloned()
        }
        match dice % 3 {
            0 => {
                let member = chosen(&self.members(), dice / 3)?;
                self.delete_member(member.part.id);
                Some(format!("somebody deletes member {}", member.part.name))
            }
            1 => {
                let listener = chosen(&self.listeners(), dice / 3)?;
                self.edit_listener(listener.part.id, |it| it.settings.connection_limit = 7);
                Some(format!("somebody limits {}", listener.part.name))
            }
            _ => {
                let pool = chosen(&self.pools(), dice / 3)?;
                self.delete_pool(pool.part.id);
                Some(format!("somebody deletes {}", pool.part.name))
            }
        }
    }

    fn own(&self, word: &str) -> String {
        match word {
            "YOUR_FLOATING_IP" => {
                let id = self.add_floating_ip(FloatingIpSpec::default());
                let floating = self.floating_ips().into_iter().find(|it| it.id == id);
                floating.unwrap().address.address.to_string()
            }
            "YOUR_CONTAINER_REF" => {
                let id = self.add_certificate("web");
                format!("https://kms.cloud.example/v1/containers/{id}")
            }
            "YOUR_LOAD_BALANCER_ID" => {
                let floating = self.floating_ips().into_iter().find_map(|it| it.target);
                let port = floating.unwrap().port;
                let public = self.load_balancers().into_iter().find(|it| it.vip.port == port);
                public.unwrap().part.id.to_string()
            }
            _ => panic!("what is {word}?"),
        }
    }

    fn ask(&self, service: &mut Value, wish: Wish) {
        let mut annotate = |suffix: &str, value: &str| {
            service["metadata"]["annotations"][format!("loadbalancer.openstack.org/{suffix}")] = json!(value);
        };
        match wish {
            Wish::Plain => {}
            Wish::Rich => {
                annotate("enable-health-monitor", "true");
                annotate("timeout-client-data", "60000");
                service["spec"]["sessionAffinity"] = json!("ClientIP");
                service["spec"]["loadBalancerSourceRanges"] = json!(["192.0.2.0/24"]);
            }
            Wish::Changed => {
                annotate("enable-health-monitor", "true");
                annotate("health-monitor-delay", "9");
                annotate("timeout-member-data", "70000");
                annotate("lb-method", "LEAST_CONNECTIONS");
                annotate("proxy-protocol", "true");
                service["spec"]["loadBalancerSourceRanges"] = json!(["198.51.100.0/24", "203.0.113.0/24"]);
            }
        }
    }

    fn routes(&self) -> BTreeSet<String> {
        let instances = self.project().instances();
        let name = |hop: IpAddr| owner(&instances, hop).map_or("nowhere", |it| it.name.as_str());
        let routes = self.routers().into_iter().flat_map(|it| it.routes);
        let shown = routes.map(|it| format!("{} -> {}", it.destination, name(it.nexthop)));
        shown.collect()
    }

    fn lists_routes(&self, call: &Entry) -> bool {
        call.operation == "neutron.routers.get"
    }

    /// Routes bear no mark: those of another cluster are on another router.
    fn add_stray_route(&self, destination: &str, stray: StrayRoute) {
        let router = match stray {
            StrayRoute::OfOthers => self.theirs,
            StrayRoute::Nowhere | StrayRoute::Blackhole => self.home().router,
        };
        let route = Route {
            destination: destination.to_owned(),
            nexthop: IpAddr::from([10, 0, 255, 250]),
        };
        self.edit_router(router, |it| it.routes.push(route));
    }

    /// The name of its load balancer.
    fn mark(service: &Value) -> String {
        let text = |key: &str| service["metadata"][key].as_str().unwrap_or_default();
        format!("{MARK}{}_{}", text("namespace"), text("name"))
    }

    /// Logins, and the discovery of services, of which a process makes a few.
    fn is_by_the_clock(call: &Entry) -> bool {
        call.operation.starts_with("keystone.") || call.operation.ends_with(".versions.list")
    }

    /// The cloud chooses the addresses as well; a plan shows what cannot be mistaken for one, and numbers for ids.
    fn foreseen(label: &str) -> String {
        let label = without_ids(label).replace("a new floating IP", "[chosen]");
        let words = label.split_inclusive(['(', ')', ' ', ',', '=']).map(|word| {
            let text = word.trim_end_matches(['(', ')', ' ', ',', '=']);
            let end = &word[text.len()..];
            match text.strip_prefix("planned-") {
                Some(rest) => format!(
                    "[id]{}{end}",
                    rest.trim_start_matches(|it: char| it.is_ascii_digit())
                ),
                None if text.parse::<IpAddr>().is_ok() => format!("[chosen]{end}"),
                None => word.to_owned(),
            }
        });
        words.collect()
    }
}

/// What the name of a load balancer begins with, in the cluster `kubernetes`.
const MARK: &str = "kube_service_kubernetes_";

fn owner(instances: &[project::Instance], address: IpAddr) -> Option<&project::Instance> {
    let address = address.to_string();
    let mut instances = instances.iter();
    instances.find(|it| it.addresses.iter().any(|(_, found)| *found == address))
}

impl<W> OpenStack<W> {
    fn balancer(&self, balancer: &LoadBalancer) -> Balancer {
        let id = balancer.part.id;
        let leads_here = |port| port == balancer.vip.port;
        let floating = self.floating_ips().into_iter();
        let mut floating = floating.filter(|it| it.target.is_some_and(|to| leads_here(to.port)));
        let address = floating
            .next()
            .map_or(balancer.vip.fixed_ip.address, |it| it.address.address);
        let listeners = self.listeners().into_iter().filter(|it| it.load_balancer == id);
        Balancer {
            service: balancer.part.name.clone(),
            addresses: vec![address.to_string()],
            ports: listeners
                .map(|it| (port(&it), self.behind(&it)))
                .collect::<BTreeMap<_, _>>(),
        }
    }

    fn behind(&self, listener: &Listener) -> BTreeSet<String> {
        let instances = Project::instances(&self.sim);
        let members = self.members().into_iter();
        let members = members.filter(|it| Some(it.pool) == listener.default_pool);
        let shown = members.map(|it| match owner(&instances, it.address) {
            Some(instance) => format!("{}:{}", instance.name, it.port),
            None => format!("{}:{}", it.address, it.port),
        });
        shown.collect()
    }
}

/// `TCP/80`, as a Service has it.
fn port(listener: &Listener) -> String {
    let protocol = match listener.protocol {
        ListenerProtocol::Udp => "UDP",
        ListenerProtocol::Sctp => "SCTP",
        _ => "TCP",
    };
    format!("{protocol}/{}", listener.port)
}
