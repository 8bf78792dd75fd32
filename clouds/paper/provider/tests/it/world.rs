//! A cluster around the provider: a Service, Nodes, and a small loop that reconciles as the service loop does.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport};
use bowline_cloud_provider::plan::{Answer, Note};
use bowline_cloud_provider::{
    CloudConfig, CloudProvider, ClusterFacts, Environment, LoadBalancerStatus, Node, Service, ServiceFacts,
};
use bowline_paper::Paper;
use bowline_paper_sim::kit::journal::Entry;
use bowline_paper_sim::{MachineSpec, PaperSim};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};

/// The most waves and waits of one run: a run that needs more never ends.
const MAX_ROUNDS: usize = 200;

pub(crate) struct World {
    pub(crate) sim: PaperSim,
    pub(crate) cloud: Paper,
    pub(crate) service: Service,
    pub(crate) is_wanted: bool,
    pub(crate) nodes: Vec<Arc<Node>>,
}

/// One run of the loop.
#[derive(Debug)]
pub(crate) struct Run {
    /// The status to publish, or why there is none.
    pub(crate) outcome: Result<LoadBalancerStatus, String>,
    /// The labels of the steps, without ids.
    pub(crate) steps: Vec<String>,
    pub(crate) notes: Vec<Note>,
    pub(crate) waited: Duration,
}

impl Run {
    #[track_caller]
    pub(crate) fn settled(self) -> Self {
        assert!(self.outcome.is_ok(), "{self:#?}");
        self
    }
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
        let sim = PaperSim::builder().seed(7).build();
        let mut world = Self {
            cloud: provider(&sim, "{}"),
            sim,
            service: service(),
            is_wanted: true,
            nodes: Vec::new(),
        };
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

    pub(crate) fn set_ports(&mut self, ports: &[(&str, i32, i32)]) {
        self.service.spec.as_mut().unwrap().ports =
            Some(ports.iter().map(|port| service_port(*port)).collect());
    }

    fn facts(&self) -> ServiceFacts {
        ServiceFacts {
            service: Arc::new(self.service.clone()),
            is_wanted: self.is_wanted,
            nodes: if self.is_wanted {
                self.nodes.clone().into()
            } else {
                Arc::from([])
            },
            services: Arc::new(vec![Arc::new(self.service.clone())]),
            cluster: Arc::new(ClusterFacts {
                name: "kubernetes".into(),
                uid: None,
                server_version: None,
                holder: "test".into(),
            }),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Reconciles the Service until it settles, is refused or fails.
    pub(crate) async fn run(&self) -> Run {
        self.run_steps(usize::MAX).await
    }

    /// The same; the process is stopped before step `limit + 1`.
    pub(crate) async fn run_steps(&self, limit: usize) -> Run {
        let (steps, notes, waited) = (Vec::new(), Vec::new(), Duration::ZERO);
        let mut run = Run {
            outcome: Err("stopped".to_owned()),
            steps,
            notes,
            waited,
        };
        run.outcome = self.drive(limit, &mut run).await;
        run
    }

    async fn drive(&self, limit: usize, run: &mut Run) -> Result<LoadBalancerStatus, String> {
        let balancers = self.cloud.load_balancer().unwrap();
        let mut session = balancers
            .begin(self.facts())
            .map_err(|refusal| refusal.to_string())?;
        let mut is_unverified = false;
        session.observe().await.map_err(|error| error.to_string())?;
        for _ in 0..MAX_ROUNDS {
            let plan = session.plan().unwrap();
            run.notes.extend(plan.notes);
            match plan.answer {
                Answer::Settled(status) if !is_unverified => return Ok(status),
                Answer::Settled(_) => {
                    session.verify().await.map_err(|error| error.to_string())?;
                    is_unverified = false;
                }
                Answer::Refused(refusal) => return Err(refusal.to_string()),
                Answer::Wait { after, .. } => {
                    tokio::time::sleep(after).await;
                    run.waited += after;
                    session.observe().await.map_err(|error| error.to_string())?;
                }
                Answer::Apply(wave) => {
                    is_unverified = true;
                    for step in wave.into_steps() {
                        if run.steps.len() == limit {
                            return Err("stopped".to_owned());
                        }
                        let label = &step.view().label;
                        run.steps
                            .push(label.split(['(', ')']).next().unwrap_or_default().to_owned());
                        let learned = session
                            .apply(&step)
                            .await
                            .map_err(|error| format!("{label}: {error}"))?;
                        session.learn(&step, learned);
                    }
                }
            }
        }
        panic!("never settles: {run:#?}");
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

fn service() -> Service {
    let mut service = Service::default();
    service.metadata.name = Some("web".to_owned());
    service.metadata.namespace = Some("default".to_owned());
    service.metadata.uid = Some("uid-web".to_owned());
    service.spec = Some(ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        ports: Some([("TCP", 80, 30080), ("UDP", 53, 30053)].map(service_port).into()),
        ..ServiceSpec::default()
    });
    service
}

fn service_port((protocol, port, node_port): (&str, i32, i32)) -> ServicePort {
    ServicePort {
        protocol: Some(protocol.to_owned()),
        port,
        node_port: Some(node_port),
        ..ServicePort::default()
    }
}
