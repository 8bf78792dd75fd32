//! The example cloud of `docs/guides/new-provider.md` under a whole manager: manager, API server and simulator in one
//! process, on one thread, under tokio's stopped clock.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Transport};
use bowline_kube_api::KubeApi;
use bowline_kube_io::{Kube, KubeOptions, TokioClock};
use bowline_manager::config::Config;
use bowline_manager::health::Health;
use bowline_manager::metrics::{BuildInfo, Metrics};
use bowline_manager::{End, FencingGate, Identity, Manager};
use bowline_paper::Paper;
use bowline_paper_sim::{MachineSpec, PaperSim};
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const TOKEN: &str = "paper-token-for-tests";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

struct World {
    sim: PaperSim,
    api: KubeApi,
    stop: CancellationToken,
    manager: JoinHandle<End>,
}

impl World {
    fn start() -> Self {
        let sim = PaperSim::builder().seed(7).token(TOKEN).build();
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let api = KubeApi::builder().seed(7).start_time(start).build();
        let gate = Arc::new(FencingGate::open());
        let kube = Kube::with_service(
            api.service(),
            KubeOptions {
                gate: Arc::clone(&gate) as Arc<_>,
                clock: Arc::new(TokioClock::starting_at(api.now())),
                ..KubeOptions::new("bowline/e2e")
            },
        );
        let environment = [("PAPER_API_URL", "http://paper"), ("PAPER_TOKEN", TOKEN)];
        let settings = Paper::settings(&environment.into_iter().collect(), &Default::default()).unwrap();
        let http = CloudHttp::new(
            CloudHttpConfig::new("paper", "bowline/e2e"),
            Transport::memory(sim.service()),
        );
        let manager = Manager {
            config: Config {
                election: None,
                ..Config::default()
            },
            kube,
            provider: Arc::new(Paper::new(http, &settings)),
            gate,
            silences: Default::default(),
            health: Arc::new(Health::default()),
            metrics: Arc::new(Metrics::new(Registry::default(), &BuildInfo::default())),
            seed: 7,
            identity: Identity::new("control-1".to_owned(), "7"),
        };
        let stop = CancellationToken::new();
        let manager = tokio::spawn(manager.run(None, stop.clone()));
        Self {
            sim,
            api,
            stop,
            manager,
        }
    }

    /// An instance in the cloud whose kubelet has just registered.
    fn join(&self, name: &str) {
        self.sim.add_machine(MachineSpec::new(name));
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "taints": [{ "key": UNINITIALIZED, "value": "true", "effect": "NoSchedule" }] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.api.apply_json(node).unwrap();
    }

    fn add_service(&self) {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "port": 80, "protocol": "TCP", "nodePort": 31200 }] },
        });
        self.api.apply_json(service).unwrap();
    }

    fn edit(&self, kind: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.api.object(kind, namespace, name).unwrap();
        change(&mut object);
        self.api.apply_json(object).unwrap();
    }

    fn node(&self, name: &str) -> Value {
        self.api.object("Node", "", name).unwrap_or_default()
    }

    fn address(&self) -> Option<String> {
        let service = self.api.object("Service", "default", "web")?;
        Some(
            service["status"]["loadBalancer"]["ingress"][0]["ip"]
                .as_str()?
                .to_owned(),
        )
    }

    /// Lets everything happen until the condition holds.
    async fn until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !condition(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(600),
                "never: {what}: {:#?}",
                self.sim.snapshot()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_and_a_service_live_and_go() {
    let mut world = World::start();
    world
        .sim
        .set_behaviour(|behaviour| behaviour.build_time = Duration::from_secs(3));
    world.join("n1");
    world.join("n2");
    world
        .until("both nodes are initialised", |world| {
            ["n1", "n2"].iter().all(|name| {
                world.node(name)["spec"]["taints"]
                    .as_array()
                    .is_none_or(Vec::is_empty)
            })
        })
        .await;
    let machine = world.sim.machines()[0].clone();
    let node = world.node("n1");
    assert_eq!(node["spec"]["providerID"], format!("paper://{}", machine.id));
    assert_eq!(
        node["metadata"]["labels"]["topology.kubernetes.io/zone"],
        "north-1"
    );
    assert_eq!(
        node["status"]["addresses"][1]["address"],
        machine.private[0].to_string()
    );

    world.add_service();
    world
        .until("the service has an address", |world| world.address().is_some())
        .await;
    let balancer = world.sim.balancers().remove(0);
    assert_eq!(world.address(), Some(balancer.addresses[0].to_string()));
    assert_eq!((balancer.members.len(), balancer.ports[0].node_port), (2, 31200));

    world.edit("Service", "default", "web", |service| {
        service["spec"]["ports"][0]["port"] = json!(8080)
    });
    world
        .until("the port is another one", |world| {
            world.sim.balancers()[0].ports[0].port == 8080
        })
        .await;

    world.sim.remove_machine(machine.id);
    world.edit("Node", "", "n1", |node| {
        node["status"]["conditions"][0]["status"] = json!("Unknown")
    });
    world
        .until("the node is gone", |world| world.node("n1").is_null())
        .await;
    world
        .until("so is its membership", |world| {
            world.sim.balancers()[0].members.len() == 1
        })
        .await;

    assert!(world.api.delete("Service", "default", "web"));
    world
        .until("the service and its balancer are gone", |world| {
            world.api.object("Service", "default", "web").is_none() && world.sim.balancers().is_empty()
        })
        .await;
    assert_eq!(world.sim.check_invariants(), Vec::<String>::new());
    for exchange in world.api.journal().all() {
        assert!(!format!("{exchange:?}").contains(TOKEN), "{exchange:?}");
    }
    world.stop.cancel();
    assert!((&mut world.manager).await.is_ok());
}
