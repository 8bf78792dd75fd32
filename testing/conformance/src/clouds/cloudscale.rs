//! cloudscale.ch.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::project::{self, Project};
use bowline_cloud_kit::{CloudService, Double};
use bowline_cloud_provider::CloudProvider;
use bowline_cloudscale::{Cloudscale as Provider, Options};
use bowline_cloudscale_client::Settings;
use bowline_cloudscale_sim::model::Target;
use bowline_cloudscale_sim::{Access, CloudscaleSim, FloatingSpec, InterfaceSpec, OverlapMode, ServerSpec};
use bowline_kit::scenario::Complaint;
use serde_json::{Value, json};

use crate::cloud::{Ability, Balancer, CloudUnderTest, Denial, Instance, Seat, Wish};

/// cloudscale.ch and its simulator.
pub struct Cloudscale(pub CloudscaleSim);

impl Deref for Cloudscale {
    type Target = CloudscaleSim;

    fn deref(&self) -> &CloudscaleSim {
        &self.0
    }
}

impl CloudUnderTest for Cloudscale {
    const NAME: &'static str = "cloudscale";
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
        Ability::Manual,
    ];
    const SECRET: &'static str = "Qv7tMz0aLk42sXbR9eYcUgH1";

    fn new(seed: u64) -> Self {
        Self(
            CloudscaleSim::builder()
                .zones(["rma1", "lpg2"])
                .seed(seed)
                .build(),
        )
    }

    fn service(&self) -> CloudService {
        self.0.service()
    }

    fn provider(&self, seat: Seat) -> Arc<dyn CloudProvider> {
        let settings =
            Settings::from_env(|name| (name == "CLOUDSCALE_ACCESS_TOKEN").then(|| Self::SECRET.to_owned()))
                .unwrap();
        let http = seat.http(Self::NAME, |config| settings.configure(config));
        Arc::new(Provider::new(http, &settings, Options::default()))
    }

    fn add_instance(&self, instance: &Instance) {
        let mut spec = ServerSpec::new(&instance.name);
        if instance.is_special {
            use InterfaceSpec::{Private, Public};
            (spec.zone, spec.flavor) = (Some("lpg2".into()), "flex-8-2".into());
            spec.interfaces = vec![Private, Private, Public { v6: true }];
        }
        self.add_server(spec);
    }

    fn project(&self) -> &dyn Project {
        &self.0
    }

    fn double(&self) -> Option<&dyn Double> {
        Some(&self.0)
    }

    fn read_only(&self) {
        self.set_token(Self::SECRET, Access::ReadOnly);
    }

    fn add(&self, kind: &str, _spec: Value) -> Result<String, Complaint> {
        match kind {
            "floating_ip" => Ok(self.add_floating_ip(FloatingSpec::default()).to_string()),
            other => Err(format!("no {other} can be added")),
        }
    }

    fn renumber(&self, name: &str) {
        let interfaces = [InterfaceSpec::Public { v6: false }, InterfaceSpec::Private];
        self.set_interfaces(self.server_named(name).unwrap().uuid, interfaces);
    }

    fn deny(&self, denial: Option<Denial>) {
        self.revoke_token(Self::SECRET);
        match denial {
            Some(Denial::Unknown) => self.set_token("another one", Access::ReadWrite),
            Some(Denial::OtherProject) => self.set_token(Self::SECRET, Access::EmptyProject),
            None => self.set_token(Self::SECRET, Access::ReadWrite),
        }
    }

    fn state(&self) -> String {
        format!("{:#?}", self.snapshot())
    }

    fn balancers(&self) -> Vec<Balancer> {
        let instances = self.project().instances();
        let owner = |member: std::net::IpAddr| {
            let member = member.to_string();
            let is_member = |it: &&project::Instance| it.addresses.iter().any(|(_, found)| *found == member);
            let owner = instances.iter().find(is_member);
            owner.map_or(member.clone(), |it| it.name.clone())
        };
        let of = |balancer: &bowline_cloudscale_sim::model::LoadBalancer| Balancer {
            service: balancer.tags.get("k8s-service-uid").cloned().unwrap_or_default(),
            addresses: balancer.vips.iter().map(|vip| vip.address.to_string()).collect(),
            ports: self
                .listeners()
                .iter()
                .filter(|listener| listener.load_balancer == balancer.uuid)
                .map(|listener| {
                    let members = listener
                        .pool
                        .map(|pool| self.members_of(pool))
                        .unwrap_or_default();
                    let members = members
                        .iter()
                        .map(|it| format!("{}:{}", owner(it.address), it.protocol_port));
                    (format!("TCP/{}", listener.protocol_port), members.collect())
                })
                .collect(),
        };
        self.load_balancers().iter().map(of).collect()
    }

    fn lose_balancer(&self, service: &str) {
        for balancer in self.load_balancers() {
            if balancer
                .tags
                .get("k8s-service-uid")
                .is_some_and(|uid| uid == service)
            {
                self.delete_load_balancer(balancer.uuid);
            }
        }
    }

    fn be_strict(&self) {
        self.set_behaviour(|it| {
            it.lb_create_time = Duration::from_secs(4);
            it.lb_write_time = Duration::from_millis(40);
            it.overlap = OverlapMode::Refuse(409);
        });
    }

    fn tamper(&self, dice: usize) -> Option<String> {
        let members = self.members();
        let member = members.get(dice % members.len().max(1))?;
        self.delete_member(member.uuid);
        Some(format!("somebody deletes member {}", member.name))
    }

    fn own(&self, word: &str) -> String {
        match word {
            "YOUR_SUBNET_UUID" => self.private_subnet().to_string(),
            "YOUR_FLOATING_IP" => self.add_floating_ip(FloatingSpec::default()).to_string(),
            _ => panic!("what is {word}?"),
        }
    }

    fn choose_address(&self, service: &mut Value, address: Option<&str>) {
        let wished = address.map(|it| json!([it]).to_string());
        service["metadata"]["annotations"]["k8s.cloudscale.ch/loadbalancer-floating-ips"] = json!(wished);
    }

    fn leads_to(&self, address: &str) -> Option<String> {
        let floating = self.floating_ips();
        let floating = floating
            .iter()
            .find(|it| it.network.addr().to_string() == address)?;
        let mut balancers = self.load_balancers().into_iter();
        let balancer = balancers.find(|it| floating.target == Some(Target::LoadBalancer(it.uuid)))?;
        balancer.tags.get("k8s-service-uid").cloned()
    }

    fn ask(&self, service: &mut Value, wish: Wish) {
        let mut annotate = |suffix: &str, value: String| {
            service["metadata"]["annotations"][format!("k8s.cloudscale.ch/loadbalancer-{suffix}")] =
                json!(value);
        };
        match wish {
            Wish::Plain => {}
            Wish::Rich => {
                if self.floating_ips().is_empty() {
                    self.add_floating_ip(FloatingSpec::default());
                }
                let floating = self.floating_ips()[0].network.to_string();
                annotate("floating-ips", json!([floating]).to_string());
            }
            Wish::Changed => {
                annotate("health-monitor-type", "ping".to_owned());
                annotate("timeout-client-data-ms", "60000".to_owned());
                annotate("pool-algorithm", "least_connections".to_owned());
            }
        }
    }
}
