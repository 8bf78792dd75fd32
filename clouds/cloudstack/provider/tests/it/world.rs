//! A cluster around the provider: Nodes, Services, and the service controller without a manager.

use std::future::Future;
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::plan::{ReportedOutcome, ReportedWave};
use bowline_cloud_provider::{CloudProvider as _, ClusterFacts, Node, Service, ServiceFacts};
use bowline_cloudstack::CloudStack;
use bowline_cloudstack_sim::model::LoadBalancerRule;
use bowline_cloudstack_sim::{Behaviour, Builder, CloudstackSim, NetworkSpec, NicSpec, VmSpec, VpcSpec};
use bowline_kit::{Interruption, ServiceLoop, Services, balanced_service, predict};
pub(crate) use bowline_kit::{Outcome, Run};
use serde_json::{Value, json};

use crate::site::Site;

/// The Service that most tests are about.
pub(crate) const WEB: &str = "shop/web";
/// Its UID, and the name that follows from it.
pub(crate) const UID: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
pub(crate) const NAME: &str = "a7c9e6679742540de944be07fc1f90ae";

const PREFIX: &str = "service.beta.kubernetes.io/cloudstack-load-balancer-";
pub(crate) const MACHINES: [&str; 3] = ["cp-a", "pool-a-7", "pool-a-8"];

/// The cloud, the cluster, and one process with the provider.
pub(crate) struct World {
    pub(crate) sim: CloudstackSim,
    pub(crate) site: Site,
    pub(crate) cloud: CloudStack,
    pub(crate) services: Services,
    service_loop: ServiceLoop,
    pub(crate) nodes: Mutex<Vec<Arc<Node>>>,
    /// Whether somebody else broke a router, so that runs may settle and have no effect.
    pub(crate) is_router_broken: bool,
}

impl World {
    /// An isolated network with three virtual machines, their Nodes, and no Service.
    pub(crate) async fn new() -> Self {
        Self::built(|builder| builder, "").await
    }

    pub(crate) async fn built(change: impl FnOnce(Builder) -> Builder, lines: &str) -> Self {
        let site = Site::built(change).with(lines);
        let sim = site.sim.clone();
        for name in MACHINES {
            sim.add_vm(VmSpec::new(name));
        }
        Self::around(site).await
    }

    /// The same in a tier of a VPC with an ACL list.
    pub(crate) async fn vpc(list: &str) -> Self {
        Self::vpc_of(Site::new(), list).await
    }

    /// The virtual machines in an isolated network, or in a tier of a VPC.
    pub(crate) async fn of(site: Site, is_vpc: bool) -> Self {
        if is_vpc {
            return Self::vpc_of(site, "tier-acl").await;
        }
        for name in MACHINES {
            site.sim.add_vm(VmSpec::new(name));
        }
        Self::around(site).await
    }

    async fn vpc_of(site: Site, list: &str) -> Self {
        let sim = site.sim.clone();
        let vpc = sim.add_vpc(VpcSpec::new("vpc"));
        let acl = sim.acl_list(list).unwrap_or_else(|| sim.add_acl_list(list, &vpc));
        let tier = sim.add_network(NetworkSpec::tier("tier", &vpc, acl));
        for name in MACHINES {
            sim.add_vm(VmSpec::with_nics(name, [NicSpec::on(&tier)]));
        }
        Self::around(site).await
    }

    /// What is there already is all there is.
    pub(crate) async fn around(site: Site) -> Self {
        let cloud = site.start().await.unwrap();
        let services = Services::default();
        let world = Self {
            sim: site.sim.clone(),
            site,
            cloud,
            service_loop: ServiceLoop::new(&services),
            services,
            nodes: Mutex::default(),
            is_router_broken: false,
        };
        for vm in world.sim.vms() {
            world.add_node(&vm.name, Some(&vm.id));
        }
        world
    }

    /// With the Service `shop/web`: TCP 443 to 31443 and UDP 4500 to 31500.
    pub(crate) async fn with_service() -> Self {
        let world = Self::new().await;
        world.add_web();
        world
    }

    /// The same, in networks that are balanced by something that carries UDP.
    pub(crate) fn add_web(&self) {
        self.sim.set_behaviour(Behaviour::carry_everything);
        self.add(WEB, UID, &[("TCP", 443, 31443), ("UDP", 4500, 31500)]);
    }

    pub(crate) fn add(&self, key: &str, uid: &str, ports: &[(&str, u16, u16)]) {
        let ports: Vec<Value> = ports
            .iter()
            .map(|(protocol, port, node_port)| {
                json!({ "name": format!("{protocol}-{port}").to_lowercase(), "protocol": protocol, "port": port, "nodePort": node_port })
            })
            .collect();
        self.services.put(key, balanced_service(key, uid));
        self.spec(key, |spec| {
            spec["sessionAffinity"] = json!("None");
            spec["ports"] = json!(ports);
        });
    }

    /// A process takes the place of the one before.
    pub(crate) async fn restart(&mut self) {
        self.cloud = self.site.start().await.unwrap();
    }

    pub(crate) fn add_node(&self, name: &str, id: Option<&str>) {
        let node = Node {
            provider_id: id.map(|id| format!("external-cloudstack://{id}").into()),
            ..Node::named(name)
        };
        let mut nodes = self.nodes.lock().unwrap();
        nodes.push(Arc::new(node));
        nodes.sort_by(|a, b| a.name.cmp(&b.name));
    }

    pub(crate) fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.lock().unwrap().clone()
    }

    pub(crate) fn remove_node(&self, name: &str) {
        self.nodes
            .lock()
            .unwrap()
            .retain(|node| node.name.as_str() != name);
    }

    pub(crate) fn service(&self, key: &str) -> Arc<Service> {
        self.services.service(key)
    }

    pub(crate) fn edit(&self, key: &str, change: impl FnOnce(&mut Service)) {
        self.services.edit(key, change);
    }

    /// Changes the spec as JSON.
    pub(crate) fn spec(&self, key: &str, change: impl FnOnce(&mut Value)) {
        self.edit(key, |service| {
            let mut value = serde_json::to_value(&*service).unwrap();
            change(&mut value["spec"]);
            *service = serde_json::from_value(value).unwrap();
        });
    }

    /// Sets an annotation by the end of its key; none removes it.
    pub(crate) fn annotate(&self, key: &str, name: &str, value: Option<&str>) {
        self.services.annotate(key, &format!("{PREFIX}{name}"), value);
    }

    pub(crate) fn annotation(&self, key: &str, name: &str) -> Option<String> {
        self.services.annotation(key, &format!("{PREFIX}{name}"))
    }

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, key: &str) {
        self.services.delete(key, self.site.now());
    }

    /// A Service that was removed is gone from the cluster.
    pub(crate) fn forget(&self, key: &str) {
        self.services.forget(key);
    }

    pub(crate) fn facts(&self, key: &str) -> ServiceFacts {
        let cluster = ClusterFacts {
            name: "kubernetes".to_owned(),
            uid: None,
            server_version: None,
            holder: "one".to_owned(),
        };
        let nodes = self.nodes.lock().unwrap().clone();
        self.services.facts(key, &nodes, cluster, self.site.now())
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(crate) async fn run(&self, key: &str) -> Run {
        self.run_with(key, Interruption::Never).await
    }

    /// The same; the process is stopped before step `limit + 1`, with the jobs of the others under way.
    pub(crate) async fn run_steps(&self, key: &str, limit: usize) -> Run {
        self.run_with(key, Interruption::BeforeStep(limit)).await
    }

    /// The same; the process is killed after step `limit`, with its job under way.
    pub(crate) async fn run_killed(&self, key: &str, limit: usize) -> Run {
        self.run_with(key, Interruption::AfterStep(limit)).await
    }

    pub(crate) async fn run_with(&self, key: &str, interruption: Interruption) -> Run {
        let facts = || self.facts(key);
        let run = self
            .service_loop
            .reconcile(&self.cloud, key, facts, interruption)
            .await;
        if matches!(run.outcome, Outcome::Settled(_)) && !self.is_router_broken {
            assert_eq!(self.out_of_force(), Vec::<String>::new(), "{:#?}", run.waves);
        }
        run
    }

    /// What the API stores and the routers do not do. Every run that settles leaves none, but in a network whose router is broken.
    pub(crate) fn out_of_force(&self) -> Vec<String> {
        let mut found = self.sim.check_invariants();
        found.retain(|text| text.contains("in force") || text.contains("takes no change"));
        found
    }

    /// The waves that the `plan` command would print, and whether it comes to an end.
    pub(crate) async fn predicted(&self, key: &str) -> (Vec<Vec<String>>, bool) {
        let report = predict(self.cloud.load_balancer().unwrap(), self.facts(key)).await;
        let labels = |wave: &ReportedWave| wave.steps.iter().map(|step| step.label.clone()).collect();
        let is_settled = matches!(report.outcome, ReportedOutcome::Settled { .. });
        (report.waves.iter().map(labels).collect(), is_settled)
    }

    /// The commands while `work` ran, polls of jobs left out.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<String>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        (answer, self.sim.calls_since(mark))
    }

    /// The rule of the Service by the end of its name.
    #[track_caller]
    pub(crate) fn rule(&self, end: &str) -> LoadBalancerRule {
        let name = format!("{NAME}-{end}");
        let rule = self.sim.rule_named(&name);
        rule.unwrap_or_else(|| panic!("no {name} among {:?}", self.rules()))
    }

    /// The names of all rules without the Service's part, in order.
    pub(crate) fn rules(&self) -> Vec<String> {
        let rules = self.sim.rules();
        let mut names: Vec<String> = rules
            .iter()
            .map(|rule| rule.name.replace(&format!("{NAME}-"), ""))
            .collect();
        names.sort();
        names
    }

    /// What the firewalls let through: `protocol port cidrs`.
    pub(crate) fn openings(&self) -> Vec<String> {
        let rules = self.sim.firewall_rules();
        let mut openings: Vec<String> = rules
            .iter()
            .map(|rule| {
                format!(
                    "{} {} {}",
                    rule.protocol,
                    rule.ports.unwrap_or_default().0,
                    rule.cidrs.join(",")
                )
            })
            .collect();
        openings.sort();
        openings
    }

    /// What ACL lists let in: `list protocol port cidrs`.
    pub(crate) fn acl_items(&self) -> Vec<String> {
        let items = self.sim.snapshot()["acl_items"].take();
        let word = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let list = |it: &Value| it.as_array().cloned().unwrap_or_default();
        let told = list(&items).into_iter().map(|item| {
            let cidrs: Vec<String> = list(&item["cidrs"]).iter().map(word).collect();
            let (port, cidrs) = (item["ports"][0].as_u64().unwrap_or_default(), cidrs.join(","));
            format!(
                "{} {} {port} {cidrs}",
                word(&item["list"]),
                word(&item["protocol"])
            )
        });
        told.collect()
    }

    /// Nothing is there twice, and nothing without what it is on.
    #[track_caller]
    pub(crate) fn check(&self, what: &str) {
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new(), "{what}");
    }

    /// Nothing of any Service is left.
    #[track_caller]
    pub(crate) fn check_nothing_left(&self, what: &str) {
        let left = self.sim.snapshot();
        assert_eq!(left, json!({ "addresses": [], "acl_items": [] }), "{what}");
        assert!(self.sim.rules().is_empty(), "{what}");
    }
}
