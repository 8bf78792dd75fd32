//! A cluster around the provider: a Service, Nodes, and the service controller without a manager.

use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport};
use bowline_cloud_provider::{CloudConfig, ClusterFacts, Environment, Node, Service, ServiceFacts};
use bowline_kit::{Interruption, Run, ServiceLoop, Services, balanced_service, service_port};
use bowline_paper::Paper;
use bowline_paper_sim::kit::journal::Entry;
use bowline_paper_sim::{MachineSpec, PaperSim};
use jiff::Timestamp;
use tokio::time::Instant;

/// The Service that is balanced.
const WEB: &str = "default/web";

pub(crate) struct World {
    pub(crate) sim: PaperSim,
    pub(crate) cloud: Paper,
    pub(crate) services: Services,
    pub(crate) service_loop: ServiceLoop,
    pub(crate) nodes: Vec<Arc<Node>>,
    started: Instant,
}

/// The provider as the binary builds it, over another transport.
pub(crate) fn provider(sim: &PaperSim, config: &str) -> Paper {
    let environment: Environment = [
        ("PAPER_API_URL", "http://paper"),
        ("PAPER_TOKEN", "paper-token-for-tests"),
    ]
    .into_iter()
    .collect();
    let config = CloudConfig::Given {
        path: "cloud.yaml".into(),
        contents: config.into(),
    };
    let settings = Paper::settings(&environment, &config).unwrap();
    let http = CloudHttp::new(
        CloudHttpConfig::new("paper", "test"),
        Transport::memory(sim.service()),
    );
    Paper::new(http, &settings)
}

impl World {
    /// A world with nodes `n1`, `n2`, ... and a Service `web` of two ports.
    pub(crate) fn new(nodes: usize) -> Self {
        let behaviour = bowline_kit::world().behaviour();
        let sim = PaperSim::builder().seed(7).behaviour(behaviour).build();
        let services = Services::default();
        let mut world = Self {
            cloud: provider(&sim, "{}"),
            sim,
            service_loop: ServiceLoop::new(&services),
            services,
            nodes: Vec::new(),
            started: Instant::now(),
        };
        world.services.put(WEB, balanced_service(WEB, "uid-web"));
        world.set_ports(&[("TCP", 80, 30080), ("UDP", 53, 30053)]);
        for number in 1..=nodes {
            world.add_node(&format!("n{number}"));
        }
        world
    }

    /// A node with a machine of its name.
    pub(crate) fn add_node(&mut self, name: &str) -> uuid::Uuid {
        let machine = self.sim.add_machine(MachineSpec::new(name));
        self.nodes.push(Arc::new(Node {
            provider_id: Some(format!("paper://{machine}").into()),
            ..Node::named(name)
        }));
        machine
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|node| node.name.as_str() != name);
    }

    /// A process that starts anew: nothing is remembered.
    pub(crate) fn restart(&mut self) {
        self.cloud = provider(&self.sim, "{}");
    }

    pub(crate) fn set_ports(&self, ports: &[(&str, i32, i32)]) {
        let ports = ports.iter();
        let ports = ports.map(|(protocol, port, node_port)| service_port(protocol, *port, *node_port));
        self.edit(|service| service.spec.as_mut().unwrap().ports = Some(ports.collect()));
    }

    /// Changes the Service.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Service)) {
        self.services.edit(WEB, change);
    }

    /// Marks the Service for deletion.
    pub(crate) fn delete(&self) {
        self.services.delete(WEB, Timestamp::UNIX_EPOCH);
    }

    pub(crate) fn facts(&self) -> ServiceFacts {
        let cluster = ClusterFacts {
            name: "kubernetes".into(),
            uid: None,
            server_version: None,
            holder: "test".into(),
        };
        self.services.facts(
            WEB,
            &self.nodes,
            cluster,
            Timestamp::UNIX_EPOCH + self.started.elapsed(),
        )
    }

    /// Reconciles the Service until it settles, is refused or fails.
    pub(crate) async fn run(&self) -> Run {
        self.run_with(Interruption::Never).await
    }

    pub(crate) async fn run_with(&self, interruption: Interruption) -> Run {
        let facts = || self.facts();
        self.service_loop
            .reconcile(&self.cloud, WEB, facts, interruption)
            .await
    }

    /// What arrived while `work` ran.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<Entry>) {
        let mark = self.sim.journal().mark();
        (work.await, self.sim.journal().since(mark))
    }

    pub(crate) async fn writes_of_a_run(&self) -> u64 {
        let (run, calls) = self.calls_of(self.run()).await;
        run.settled();
        calls.iter().filter(|call| call.write).count() as u64
    }
}
