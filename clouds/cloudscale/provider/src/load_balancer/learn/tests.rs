//! Prediction and reality are held together: for random Services that change at random, the steps predicted are the steps
//! made, and the end predicted is the end that the API shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret, Transport, Url};
use bowline_cloud_provider::k8s::{ServicePort, ServiceSpec};
use bowline_cloud_provider::{ClusterFacts, LoadBalancerStep, Node, Reconciler, Service, ServiceFacts};
use bowline_cloudscale_client::{Client, LoadBalancerId};
use bowline_cloudscale_sim::{CloudscaleSim, FloatingSpec, ManualPool, OverlapMode, ServerSpec, Tags};
use bowline_plan::Answer;
use jiff::Timestamp;
use proptest::prelude::*;
use uuid::Uuid;

use crate::load_balancer::Balancers;
use crate::load_balancer::intent::Intent;
use crate::load_balancer::observe::{Memory, Observed, Seen};
use crate::nodes::servers::ServerReads;

/// A Service and its nodes at one time.
#[derive(Debug, Clone)]
struct Scene {
    /// Name, whether UDP, port and node port; one per port name.
    ports: Vec<(u8, bool, u8, u8)>,
    /// Which of the nodes are balanced over.
    nodes: u8,
    annotations: Vec<(&'static str, &'static str)>,
    is_local: bool,
    has_floating_ip: bool,
}

const NODES: usize = 4;

/// Annotations with values to choose from; the first of each is the default.
const CHOICES: &[(&str, &[&str])] = &[
    ("pool-algorithm", &["round_robin", "least_connections"]),
    ("pool-protocol", &["tcp", "proxyv2"]),
    ("health-monitor-type", &["tcp", "ping", "http"]),
    (
        "health-monitor-http",
        &[
            "{}",
            r#"{"url_path":"/x"}"#,
            r#"{"version":"1.0","method":"HEAD"}"#,
            r#"{"host":"x.test"}"#,
        ],
    ),
    ("health-monitor-delay-s", &["2", "5"]),
    (
        "listener-allowed-cidrs",
        &["[]", r#"["192.0.2.0/24","2001:DB8::/32"]"#],
    ),
    ("timeout-client-data-ms", &["50000", "0", "7"]),
    ("name", &["k8s-service-uid-web", "edge"]),
];

fn scene() -> impl Strategy<Value = Scene> {
    let ports = prop::collection::vec((0u8..4, any::<bool>(), 0u8..4, 0u8..4), 1..4);
    let choices: Vec<BoxedStrategy<(&str, &str)>> = CHOICES
        .iter()
        .map(|(suffix, values)| {
            prop::sample::select(*values)
                .prop_map(move |value| (*suffix, value))
                .boxed()
        })
        .collect();
    (ports, 0u8..16, choices, any::<bool>(), any::<bool>()).prop_map(
        |(ports, nodes, annotations, is_local, has_floating_ip)| {
            let mut by_name = BTreeMap::new();
            for port in ports {
                by_name.insert(port.0, port);
            }
            // A Service holds each protocol and port once.
            let mut seen = Vec::new();
            let ports = by_name.into_values().filter(|port| {
                let key = (port.1, port.2);
                !seen.contains(&key) && {
                    seen.push(key);
                    true
                }
            });
            Scene {
                ports: ports.collect(),
                nodes,
                annotations,
                is_local,
                has_floating_ip,
            }
        },
    )
}

struct Stage {
    sim: CloudscaleSim,
    balancers: Balancers,
    nodes: Vec<Arc<Node>>,
    floating_ip: String,
    service: Service,
}

impl Stage {
    fn new(is_strict: bool) -> Self {
        let sim = CloudscaleSim::builder().seed(3).build();
        sim.set_behaviour(|behaviour| {
            behaviour.overlap = OverlapMode::Refuse(409);
            behaviour.duplicate_members = !is_strict;
            behaviour.unique_listener_ports = is_strict;
            behaviour.one_monitor_per_pool = is_strict;
        });
        let nodes = (0..NODES)
            .map(|index| {
                let server = sim.add_server(ServerSpec::new(format!("n{index}")));
                Arc::new(Node {
                    provider_id: Some(format!("cloudscale://{server}").into()),
                    ..Node::named("n")
                })
            })
            .collect();
        let floating_ip = sim.add_floating_ip(FloatingSpec::default()).to_string();
        let http = CloudHttp::new(
            CloudHttpConfig::new("cloudscale", "test"),
            Transport::memory(sim.service()),
        );
        let base = Url::parse("https://api.cloudscale.ch/").unwrap();
        let client = Client::new(http, base.clone(), Secret::new("token"));
        let servers = Arc::new(ServerReads::new(&client));
        let balancers = Balancers::new(client, servers, &base, "cluster".into());
        let mut service = Service::default();
        service.metadata.name = Some("web".into());
        service.metadata.uid = Some("uid-web".into());
        Self {
            sim,
            balancers,
            nodes,
            floating_ip,
            service,
        }
    }

    fn enter(&mut self, scene: &Scene) {
        let annotations = self.service.metadata.annotations.get_or_insert_default();
        let floating_ips = if scene.has_floating_ip {
            format!("[\"{}\"]", self.floating_ip)
        } else {
            "[]".into()
        };
        let choices = scene
            .annotations
            .iter()
            .map(|(suffix, value)| (*suffix, (*value).to_owned()));
        for (suffix, value) in choices.chain([("floating-ips", floating_ips)]) {
            annotations.insert(format!("k8s.cloudscale.ch/loadbalancer-{suffix}"), value);
        }
        let ports = scene
            .ports
            .iter()
            .map(|(name, is_udp, port, node_port)| ServicePort {
                name: Some(format!("p{name}")),
                protocol: Some(if *is_udp { "UDP" } else { "TCP" }.into()),
                port: 80 + i32::from(*port),
                node_port: Some(30_000 + i32::from(*node_port)),
                ..ServicePort::default()
            });
        self.service.spec = Some(ServiceSpec {
            type_: Some("LoadBalancer".into()),
            ports: Some(ports.collect()),
            external_traffic_policy: Some(if scene.is_local { "Local" } else { "Cluster" }.into()),
            health_check_node_port: scene.is_local.then_some(32_500),
            ..ServiceSpec::default()
        });
    }

    fn facts(&self, scene: &Scene, service: &Service) -> ServiceFacts {
        let nodes = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(index, _)| scene.nodes & (1 << index) != 0);
        ServiceFacts {
            service: Arc::new(service.clone()),
            is_wanted: true,
            has_begun: false,
            nodes: nodes.map(|(_, node)| Arc::clone(node)).collect(),
            services: Arc::new(Vec::<Arc<Service>>::new()),
            cluster: Arc::new(ClusterFacts {
                name: "blue".into(),
                uid: None,
                server_version: None,
                holder: "x".into(),
            }),
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Plans and applies until the end, or predicts if it is only predicted.
    async fn drive(&mut self, scene: &Scene, is_predicted: bool) -> (Vec<String>, End) {
        let mut service = self.service.clone();
        let mut intent = self.balancers.intent(&self.facts(scene, &service)).unwrap();
        let mut seen = self.first_look(&intent).await;
        let mut labels = Vec::new();
        let end = loop {
            match self.balancers.plan(&intent, &seen).answer {
                Answer::Apply(wave) => {
                    for step in wave.into_steps() {
                        labels.push(without_ids(&step.view().label));
                        assert!(labels.len() < 500, "it does not settle: {labels:#?}");
                        match step {
                            LoadBalancerStep::Cloud(step) if is_predicted => {
                                self.balancers.predict(&mut seen, &step);
                            }
                            LoadBalancerStep::Cloud(step) => {
                                let learned = self.balancers.apply(&intent, &seen, &step).await.unwrap();
                                self.balancers.learn(&mut seen, &step, learned);
                            }
                            LoadBalancerStep::Kube(write) => {
                                write.predict(&mut service);
                                intent = self.balancers.intent(&self.facts(scene, &service)).unwrap();
                            }
                        }
                    }
                }
                Answer::Wait { reason, .. } | Answer::LookAgain { reason } if is_predicted => {
                    panic!("predicted to wait: {reason}")
                }
                answer @ (Answer::Wait { .. } | Answer::LookAgain { .. }) => {
                    if let Answer::Wait { after, .. } = answer {
                        tokio::time::sleep(after).await;
                    }
                    let Seen { observed, mut memory } = seen;
                    let observed = self.balancers.observe(&intent, Some(observed), &mut memory).await;
                    seen = Seen {
                        observed: observed.unwrap(),
                        memory,
                    };
                }
                Answer::Refused(refusal) => break End::Refused(refusal.reason),
                Answer::Settled(_) => break End::Settled(shape(&seen)),
            }
        };
        if !is_predicted {
            self.service = service;
            if let End::Settled(learned) = &end {
                self.check(&intent, seen, learned).await;
            }
        }
        (labels, end)
    }

    async fn first_look(&self, intent: &Intent) -> Seen {
        let mut memory = Memory::default();
        let observed = self.balancers.observe(intent, None, &mut memory).await.unwrap();
        Seen { observed, memory }
    }

    /// The cloud shows what was learned, and leaves nothing to do.
    async fn check(&self, intent: &Intent, seen: Seen, learned: &[String]) {
        let Seen { observed, mut memory } = seen;
        let verified = self.balancers.verify(intent, observed, &mut memory).await;
        let verified = Seen {
            observed: verified.unwrap(),
            memory,
        };
        let read = self.first_look(intent).await;
        assert_eq!(learned, shape(&read), "what was learned is not what is there");
        for there in [&verified, &read] {
            let answer = self.balancers.plan(intent, there).answer;
            assert!(matches!(answer, Answer::Settled(_)), "{answer:?}");
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    Settled(Vec<String>),
    Refused(String),
}

/// What an observation shows, ids and addresses that the cloud chose aside.
fn shape(observed: &Observed) -> Vec<String> {
    let mut lines = Vec::new();
    let mut own: Option<LoadBalancerId> = None;
    for balancer in &observed.balancers {
        own = own.or(Some(balancer.uuid));
        lines.push(format!(
            "{} {:?} {:?} {:?}",
            balancer.name, balancer.zone, balancer.flavor, balancer.tags
        ));
    }
    for pool in &observed.pools {
        let name = format!(
            "{} {} {}",
            pool.pool.name, pool.pool.algorithm, pool.pool.protocol
        );
        lines.push(name.clone());
        lines.extend(pool.members.iter().map(|it| {
            let ports = (it.protocol_port, it.monitor_port, it.enabled);
            format!(
                "{name} {} {} {:?} {ports:?}",
                it.name,
                it.address,
                it.subnet.as_ref().map(|subnet| &subnet.uuid)
            )
        }));
        lines.extend(pool.listeners.iter().map(|it| {
            let timeouts = (
                it.timeout_client_data_ms,
                it.timeout_member_connect_ms,
                it.timeout_member_data_ms,
            );
            let cidrs: Vec<String> = it.allowed_cidrs.iter().map(|cidr| cidr.to_lowercase()).collect();
            format!(
                "{name} {} {} {} {cidrs:?} {timeouts:?}",
                it.name, it.protocol, it.protocol_port
            )
        }));
        lines.extend(pool.monitors.iter().map(|it| {
            let numbers = (it.delay_s, it.timeout_s, it.up_threshold, it.down_threshold);
            format!("{name} {} {numbers:?} {:?}", it.kind, it.http)
        }));
    }
    let listed = observed.floating_ips.iter().flatten();
    lines.extend(listed.flat_map(|list| list.iter()).map(|it| {
        let target = it.load_balancer.as_ref().map(|stub| Some(stub.uuid) == own);
        format!("{} {target:?}", it.network)
    }));
    lines.sort();
    lines
}

/// A label with every UUID taken out.
fn without_ids(label: &str) -> String {
    let mut text = String::new();
    let mut rest = label;
    while let Some(first) = rest.chars().next() {
        if rest.get(..36).is_some_and(|id| Uuid::parse_str(id).is_ok()) {
            text.push_str("ID");
            rest = &rest[36..];
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    text
}

fn run(scenes: &[Scene], is_strict: bool) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut stage = Stage::new(is_strict);
        // Somebody else's, with names that could be taken for ours.
        let foreign = [
            stage.sim.add_load_balancer(
                "other",
                Tags::from([("k8s-service-uid".into(), "uid-other".into())]),
            ),
            stage.sim.add_load_balancer("k8s-service-uid-we", Tags::new()),
        ];
        let pools = foreign.map(|balancer| stage.sim.add_pool(ManualPool::new(balancer, "tcp/p0")));
        // What is strange about those is nobody's matter.
        let strange = stage.sim.check_invariants();
        for scene in scenes {
            stage.enter(scene);
            let predicted = stage.drive(scene, true).await;
            assert_eq!(predicted, stage.drive(scene, false).await);
        }
        for entry in stage.sim.journal().writes() {
            let text = format!("{} {:?}", entry.path, entry.body);
            assert!(
                foreign
                    .iter()
                    .chain(&pools)
                    .all(|id| !text.contains(&id.to_string())),
                "{text}"
            );
        }
        assert_eq!(stage.sim.check_invariants(), strange);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn what_is_predicted_is_what_happens_and_nothing_foreign_is_touched(
        scenes in prop::collection::vec(scene(), 1..4),
        is_strict in any::<bool>(),
    ) {
        run(&scenes, is_strict);
    }
}

#[test]
fn a_number_changed_at_a_monitor_gives_it_no_http_part() {
    let scene = |delay| Scene {
        ports: vec![(1, true, 0, 0)],
        nodes: 1,
        annotations: vec![("health-monitor-type", "ping"), ("health-monitor-delay-s", delay)],
        is_local: false,
        has_floating_ip: false,
    };
    run(&[scene("2"), scene("5")], true);
}
