//! Paper, the cloud of the guide.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::CloudService;
use bowline_cloud_provider::{AddressType, CloudProvider, InstanceMetadata, NodeAddress};
use bowline_paper::Paper as Provider;
use bowline_paper_client::Settings;
use bowline_paper_sim::model::{Balancer as Made, Machine as Bought};
use bowline_paper_sim::{MachineSpec, PaperSim};

use crate::cloud::{Ability, Balancer, CloudUnderTest, Denial, Machine, Seat};

/// Paper and its simulator.
pub struct Paper(pub PaperSim);

impl CloudUnderTest for Paper {
    // guide: mount
    const NAME: &'static str = "paper";
    const ABILITIES: &'static [Ability] = &[
        Ability::LoadBalancers,
        Ability::BalancedNodes,
        Ability::Repair,
        Ability::PowerState,
        Ability::NewAddresses,
        Ability::OtherProjects,
        Ability::Routes,
    ];
    const SECRET: &'static str = "pt-5f1c0de9a7b34821";

    fn new(seed: u64) -> Self {
        Self(PaperSim::builder().seed(seed).token(Self::SECRET).build())
    }

    fn service(&self) -> CloudService {
        self.0.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let variable = |name: &str| match name {
            "PAPER_API_URL" => Some("http://paper.example".to_owned()),
            "PAPER_TOKEN" => Some(Self::SECRET.to_owned()),
            _ => None,
        };
        let settings = Settings::read(variable, None).unwrap();
        Arc::new(Provider::new(seat.http(Self::NAME, |_| {}), &settings))
    }

    fn add_machine(&self, machine: &Machine) {
        let mut spec = MachineSpec::new(&machine.name);
        if machine.is_special {
            (spec.kind, spec.zone) = ("paper-8".to_owned(), "south-2".to_owned());
            spec.private = ["10.99.0.1", "fd00::99"].map(|it| it.parse().unwrap()).to_vec();
        }
        self.0.add_machine(spec);
    }
    // guide: end

    fn remove_machine(&self, name: &str) {
        self.0.remove_machine(self.named(name).id);
    }

    fn machines(&self) -> BTreeMap<String, InstanceMetadata> {
        let machines = self.0.machines();
        machines.iter().map(|it| (it.name.clone(), shown(it))).collect()
    }

    fn set_power(&self, name: &str, is_on: bool) {
        let power = if is_on { "on" } else { "off" };
        self.0
            .change_machine(self.named(name).id, |it| it.power = power.to_owned());
    }

    fn renumber(&self, name: &str) {
        self.0.change_machine(self.named(name).id, |it| {
            it.private.push("fd00::7".parse().unwrap());
        });
    }

    fn deny(&self, denial: Option<Denial>) {
        let token = match denial {
            Some(Denial::Unknown) => "another one",
            Some(Denial::OtherProject) | None => Self::SECRET,
        };
        self.0.set_token(Some(token.to_owned()));
        self.0.show_nothing(denial == Some(Denial::OtherProject));
    }

    fn state(&self) -> String {
        format!("{:#}", self.0.snapshot())
    }

    fn violations(&self) -> Vec<String> {
        self.0.check_invariants()
    }

    fn balancers(&self) -> Vec<Balancer> {
        let machines = self.0.machines();
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
        self.0.balancers().iter().map(of).collect()
    }

    fn lose_balancer(&self, service: &str) {
        for balancer in self.0.balancers() {
            if balancer.owner.as_deref() == Some(service) {
                self.0.remove_balancer(balancer.id);
            }
        }
    }

    fn be_strict(&self) {
        self.0.set_behaviour(|it| {
            it.build_time = Duration::from_secs(4);
            it.delete_time = Duration::from_secs(2);
        });
    }

    fn tamper(&self, dice: usize) -> Option<String> {
        let balancers = self.0.balancers();
        let balancer = balancers.get(dice % balancers.len().max(1))?;
        self.0.change_balancer(balancer.id, |it| {
            it.members.pop();
        });
        Some(format!("somebody takes a member out of {}", balancer.name))
    }

    fn routes(&self) -> BTreeSet<String> {
        let machines = self.0.machines();
        let name = |id| {
            machines
                .iter()
                .find(|it| Some(it.id) == id)
                .map(|it| it.name.as_str())
        };
        let routes = self.0.routes();
        let shown = routes
            .iter()
            .map(|it| format!("{} -> {}", it.destination, name(it.machine).unwrap_or("nowhere")));
        shown.collect()
    }
}

impl Paper {
    fn named(&self, name: &str) -> Bought {
        self.0.machines().into_iter().find(|it| it.name == name).unwrap()
    }
}

fn shown(machine: &Bought) -> InstanceMetadata {
    let hostname = NodeAddress::new(AddressType::Hostname, machine.name.clone());
    let inside = machine.private.iter().map(|it| (AddressType::InternalIp, it));
    let outside = machine.public.iter().map(|it| (AddressType::ExternalIp, it));
    let others = inside
        .chain(outside)
        .map(|(kind, ip)| NodeAddress::new(kind, ip.to_string()));
    InstanceMetadata {
        provider_id: Some(format!("paper://{}", machine.id)),
        instance_type: machine.kind.clone(),
        zone: machine.zone.clone(),
        region: machine.region.clone(),
        addresses: std::iter::once(hostname).chain(others).collect(),
        ..InstanceMetadata::default()
    }
}
