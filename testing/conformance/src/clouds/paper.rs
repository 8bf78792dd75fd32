//! Paper, the cloud of the guide.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bowline_cloud_kit::CloudService;
use bowline_cloud_kit::project::Project;
use bowline_cloud_provider::CloudProvider;
use bowline_paper::Paper as Provider;
use bowline_paper_client::Settings;
use bowline_paper_sim::model::{Balancer as Made, Route};
use bowline_paper_sim::{MachineSpec, PaperSim};
use uuid::Uuid;

use crate::cloud::{Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, StrayRoute};

/// Paper and its simulator.
pub struct Paper {
    /// The simulator.
    pub sim: PaperSim,
    routes_by_address: AtomicBool,
}

impl CloudUnderTest for Paper {
    // guide: mount
    const NAME: &'static str = "paper";
    const ABILITIES: &'static [Ability] = &[
        Ability::LoadBalancers,
        Ability::ServiceParts,
        Ability::BalancedNodes,
        Ability::UnreadyNodes,
        Ability::EmptyBalancers,
        Ability::Repair,
        Ability::PowerState,
        Ability::NewAddresses,
        Ability::OtherProjects,
        Ability::Routes,
        Ability::RoutesByAddress,
    ];
    const SECRET: &'static str = "pt-5f1c0de9a7b34821";

    fn new(seed: u64) -> Self {
        Self {
            sim: PaperSim::builder().seed(seed).token(Self::SECRET).build(),
            routes_by_address: AtomicBool::new(false),
        }
    }

    fn service(&self) -> CloudService {
        self.sim.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let variable = |name: &str| match name {
            "PAPER_API_URL" => Some("http://paper.example".to_owned()),
            "PAPER_TOKEN" => Some(Self::SECRET.to_owned()),
            _ => None,
        };
        let mut settings = Settings::read(variable, None).unwrap();
        settings.routes_by_address = self.routes_by_address.load(Ordering::SeqCst);
        Arc::new(Provider::new(seat.http(Self::NAME, |_| {}), &settings))
    }

    fn add_instance(&self, instance: &Instance) {
        let mut spec = MachineSpec::new(&instance.name);
        if instance.is_special {
            (spec.kind, spec.zone) = ("paper-8".to_owned(), "south-2".to_owned());
            spec.private = ["10.99.0.1", "fd00::99"].map(|it| it.parse().unwrap()).to_vec();
        }
        self.sim.add_machine(spec);
    }
    // guide: end

    fn project(&self) -> &dyn Project {
        &self.sim
    }

    fn renumber(&self, name: &str) {
        self.sim
            .change_machine(self.sim.machine_named(name).unwrap().id, |it| {
                it.private.push("fd00::7".parse().unwrap());
            });
    }

    fn deny(&self, denial: Option<Denial>) {
        let token = match denial {
            Some(Denial::Unknown) => "another one",
            Some(Denial::OtherProject) | None => Self::SECRET,
        };
        self.sim.set_token(Some(token.to_owned()));
        self.sim.show_nothing(denial == Some(Denial::OtherProject));
    }

    fn state(&self) -> String {
        format!("{:#}", self.sim.snapshot())
    }

    fn balancers(&self) -> Vec<Balancer> {
        let machines = self.sim.machines();
        let behind = |balancer: &Made, port: u16| -> BTreeSet<String> {
            let members = machines.iter().filter(|it| balancer.members.contains(&it.id));
            members.map(|it| format!("{}:{port}", it.name)).collect()
        };
        let of = |it: &Made| Balancer {
            service: it.owner.clone().unwrap_or_default(),
            addresses: it.addresses.iter().map(ToString::to_string).collect(),
            ports: it
                .ports
                .iter()
                .map(|port| (format!("TCP/{}", port.port), behind(it, port.node_port)))
                .collect(),
        };
        self.sim.balancers().iter().map(of).collect()
    }

    fn lose_balancer(&self, service: &str) {
        for balancer in self.sim.balancers() {
            if balancer.owner.as_deref() == Some(service) {
                self.sim.remove_balancer(balancer.id);
            }
        }
    }

    fn be_strict(&self) {
        self.sim.set_behaviour(|it| {
            it.build_time = Duration::from_secs(4);
            it.delete_time = Duration::from_secs(2);
        });
    }

    fn tamper(&self, dice: usize) -> Option<String> {
        let balancers = self.sim.balancers();
        let balancer = balancers.get(dice % balancers.len().max(1))?;
        self.sim.change_balancer(balancer.id, |it| {
            it.members.pop();
        });
        Some(format!("somebody takes a member out of {}", balancer.name))
    }

    fn routes(&self) -> BTreeSet<String> {
        let machines = self.sim.machines();
        let name = |id| {
            machines
                .iter()
                .find(|it| Some(it.id) == id)
                .map(|it| it.name.as_str())
        };
        let routes = self.sim.routes();
        let shown = routes
            .iter()
            .map(|it| format!("{} -> {}", it.destination, name(it.machine).unwrap_or("nowhere")));
        shown.collect()
    }

    fn add_stray_route(&self, destination: &str, stray: StrayRoute) {
        let cluster = match stray {
            StrayRoute::OfOthers => "another one",
            StrayRoute::Nowhere | StrayRoute::Blackhole => "kubernetes",
        };
        self.sim.add_route(Route {
            id: Uuid::nil(),
            destination: destination.parse().unwrap(),
            machine: None,
            cluster: Some(cluster.to_owned()),
            description: String::new(),
            via: Vec::new(),
            blackhole: stray == StrayRoute::Blackhole,
        });
    }

    fn route_by_address(&self) {
        self.routes_by_address.store(true, Ordering::SeqCst);
    }
}
