//! Random histories: users, machines, accidents and illnesses in any order. Whatever happened, the end is what the
//! Services and Nodes that are left ask for, no more and no less. What they ask for is worked out here from the objects
//! alone, without the code under test.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_cloudscale_sim::OverlapMode;
use bowline_cloudscale_sim::kit::Fault;
use bowline_kube_api::{Effect, Fault as KubeFault, Status};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::objects::{key, service};
use super::world::{SECOND, World};

/// Machines and Services come from small sets of names, so that the same ones come and go.
const NAMES: usize = 5;

const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";

/// What must be below a balancer: pool, listener, and members as `address:port`.
type Pools = BTreeMap<String, (String, BTreeSet<String>)>;

struct Chaos {
    world: World,
    random: StdRng,
    /// What was done, for whoever has to find out why it went wrong.
    told: Vec<String>,
}

impl Chaos {
    fn new(seed: u64) -> Self {
        let mut world = World::seeded(seed);
        world.sim.set_behaviour(|it| {
            it.lb_create_time = Duration::from_secs(4);
            it.lb_write_time = Duration::from_millis(40);
            it.overlap = OverlapMode::Refuse(409);
        });
        world.start();
        Self {
            world,
            random: StdRng::seed_from_u64(seed),
            told: Vec::new(),
        }
    }

    fn one_of(&mut self, prefix: &str) -> String {
        format!("{prefix}{}", self.random.random_range(0..NAMES))
    }

    /// A Service's ports: some of four, each with its port and node port out of two.
    fn ports(&mut self, name: &str) -> Value {
        let number: u16 = name.trim_start_matches('s').parse().unwrap();
        let mut ports = Vec::new();
        for port in 0..4_u16 {
            if port == 0 || self.random.random_bool(0.4) {
                let (at, node) = (self.random.random_range(0..2), self.random.random_range(0..2));
                let name = format!("p{port}");
                ports.push((
                    name,
                    80 + port * 10 + at,
                    30_000 + number * 100 + port * 10 + node,
                ));
            }
        }
        let ports: Vec<(&str, u16, u16)> = ports.iter().map(|(name, a, b)| (name.as_str(), *a, *b)).collect();
        service(name, &ports)["spec"]["ports"].clone()
    }

    async fn step(&mut self) {
        let (node, name) = (self.one_of("n"), self.one_of("s"));
        let has_node = self.world.node(&node).is_some();
        let has_server = self.world.sim.servers().iter().any(|server| server.name == node);
        let is_wanted = self
            .world
            .service(&name)
            .map(|service| service["metadata"]["deletionTimestamp"].is_null());
        let dice = self.random.random_range(0..18);
        let told = match dice {
            0..=2 if !has_node => {
                self.world.join(&node);
                format!("{node} joins")
            }
            0 | 1 if has_server && self.world.sim.servers().len() > 2 => {
                self.world.sim.remove_server(self.world.server(&node));
                self.world.set_ready(&node, "Unknown");
                format!("{node} breaks")
            }
            3..=5 if is_wanted.is_none() => {
                let mut object = service(&name, &[("p0", 80, 30_000)]);
                object["spec"]["ports"] = self.ports(&name);
                self.world.apply(object);
                format!("{name} is created")
            }
            3 | 4 if is_wanted == Some(true) => {
                let ports = self.ports(&name);
                self.world
                    .edit_service(&name, |service| service["spec"]["ports"] = ports);
                format!("{name} gets other ports")
            }
            5 if is_wanted == Some(true) => {
                let algorithm = ["round_robin", "least_connections"][self.random.random_range(0..2)];
                self.world.annotate(&name, "pool-algorithm", algorithm);
                format!("{name} gets {algorithm}")
            }
            6 if is_wanted == Some(true) => {
                self.world.delete_service(&name);
                format!("{name} is deleted")
            }
            7 => {
                self.world.restart().await;
                "power cut".to_owned()
            }
            8 => {
                self.world.stop().await;
                self.world.start();
                "restart".to_owned()
            }
            9 => {
                let nth = self.random.random_range(1..6);
                self.world.sim.faults().add(Fault::write().nth(nth).lose_answer());
                format!("answer {nth} gets lost")
            }
            10 => {
                let (nth, times) = (self.random.random_range(1..6), self.random.random_range(1..4));
                self.world
                    .sim
                    .faults()
                    .add(Fault::any().nth(nth).times(times).status(503));
                format!("503 from {nth} on, {times} times")
            }
            11 => {
                let nth = self.random.random_range(1..6);
                self.world.sim.faults().add(Fault::write().nth(nth).status(500));
                format!("500 at write {nth}")
            }
            12 if !self.world.sim.members().is_empty() => {
                let members = self.world.sim.members();
                let member = &members[self.random.random_range(0..members.len())];
                self.world.sim.delete_member(member.uuid);
                format!("somebody deletes member {}", member.name)
            }
            13 => {
                let effect = match self.random.random_range(0..3) {
                    0 => Effect::DropBefore,
                    1 => Effect::DropAfter,
                    _ => Effect::Answer(Status::internal("etcd is ill")),
                };
                let told = format!("{effect:?} to a patch");
                let skip = self.random.random_range(0..4);
                let fault = KubeFault::new(effect).verb("patch").after(skip).times(1);
                self.world.api.faults().inject(fault);
                told
            }
            14 => {
                self.world.api.compact();
                self.world.api.close_watches();
                "watches end, history is forgotten".to_owned()
            }
            15 if is_wanted == Some(true) => {
                let is_local = self.random.random_bool(0.5);
                self.world.edit_service(&name, |service| {
                    service["spec"]["externalTrafficPolicy"] =
                        json!(if is_local { "Local" } else { "Cluster" });
                });
                format!("{name} balances to local endpoints: {is_local}")
            }
            16 if has_node => {
                let is_out = self.random.random_bool(0.5);
                self.world.edit_node(&node, |node| {
                    node["metadata"]["labels"][EXCLUDED] = if is_out { json!("") } else { Value::Null };
                    let labels = node["metadata"]["labels"].as_object_mut().unwrap();
                    labels.retain(|_, value| !value.is_null());
                });
                format!("{node} is left out: {is_out}")
            }
            _ => "nothing".to_owned(),
        };
        self.told.push(told);
        let pause = self.random.random_range(0..8_000);
        self.world.pass(Duration::from_millis(pause)).await;
    }

    /// Without any machine to balance over nothing tells the zone of a new balancer, so let there be one.
    fn give_a_zone(&mut self) {
        let servers = self.world.sim.servers();
        let excluded = |name: &str| {
            let node = self.world.node(name);
            node.is_none_or(|node| !node["metadata"]["labels"][EXCLUDED].is_null())
        };
        if servers.iter().any(|server| !excluded(&server.name)) {
            return;
        }
        self.world.join("spare");
        self.told.push("spare joins".to_owned());
    }

    /// What the Services that are left ask for, by the name of their balancer.
    fn wanted(&self) -> BTreeMap<String, Pools> {
        let servers = self.world.sim.servers();
        let mut addresses = Vec::new();
        for node in self.world.api.objects("Node") {
            if !node["metadata"]["labels"][EXCLUDED].is_null() {
                continue;
            }
            if let Some(server) = servers
                .iter()
                .find(|server| server.name == node["metadata"]["name"])
            {
                let private = server.interfaces.iter().find(|it| !it.public).unwrap();
                addresses.push(private.addresses[0].address.to_string());
            }
        }
        let mut wanted = BTreeMap::new();
        for service in self.world.api.objects("Service") {
            if service["spec"]["type"] != "LoadBalancer" {
                continue;
            }
            let mut pools = Pools::new();
            for port in service["spec"]["ports"].as_array().unwrap() {
                let members = addresses
                    .iter()
                    .map(|address| format!("{address}:{}", port["nodePort"]));
                let listener = format!("tcp/{}", port["port"]);
                pools.insert(
                    format!("tcp/{}", port["name"].as_str().unwrap()),
                    (listener, members.collect()),
                );
            }
            let uid = service["metadata"]["uid"].as_str().unwrap();
            wanted.insert(format!("k8s-service-{uid}"), pools);
        }
        wanted
    }

    /// The same as the cloud has it.
    fn found(&self) -> BTreeMap<String, Pools> {
        let mut found = BTreeMap::new();
        for balancer in self.world.sim.snapshot().load_balancers {
            let mut pools = Pools::new();
            for pool in balancer.pools {
                assert_eq!((pool.listeners.len(), pool.monitors.len()), (1, 1), "{pool:?}");
                let members = pool.members.iter().map(|it| it.name.clone()).collect();
                pools.insert(pool.name, (pool.listeners[0].name.clone(), members));
            }
            found.insert(balancer.name, pools);
        }
        found
    }

    fn is_done(&self) -> bool {
        self.lost_nodes().is_empty()
            && self.world.sim.check_invariants().is_empty()
            && self.found_whole()
            && self.unpublished().is_empty()
    }

    /// Services that do not name their balancer, or do not show its addresses.
    fn unpublished(&self) -> Vec<String> {
        let is_published = |service: &Value| {
            let uuid = service["metadata"]["annotations"][key("uuid")].as_str()?;
            let balancer = self.world.sim.load_balancer(uuid.parse().ok()?)?;
            let vips: Vec<Value> = balancer
                .vips
                .iter()
                .map(|vip| json!(vip.address.to_string()))
                .collect();
            let ingress = service["status"]["loadBalancer"]["ingress"].as_array()?;
            let shown: Vec<Value> = ingress.iter().map(|entry| entry["ip"].clone()).collect();
            Some(shown == vips)
        };
        let mut services = self.world.api.objects("Service");
        services.retain(|it| it["spec"]["type"] == "LoadBalancer" && is_published(it) != Some(true));
        services
            .iter()
            .map(|it| it["metadata"]["name"].to_string())
            .collect()
    }

    /// Nodes whose machine is gone and that should be, too, and machines without their Node. A Node that never got a
    /// provider ID stays: nothing can prove that its machine is gone.
    fn lost_nodes(&self) -> Vec<String> {
        let servers = self.world.sim.servers();
        let servers: BTreeSet<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let nodes = self.world.api.objects("Node");
        let name = |node: &Value| node["metadata"]["name"].as_str().unwrap().to_owned();
        let all: BTreeSet<String> = nodes.iter().map(name).collect();
        let dead = nodes
            .iter()
            .filter(|node| node["spec"]["providerID"].is_string())
            .map(name);
        let dead = dead.filter(|node| !servers.contains(node.as_str()));
        let bare = servers
            .iter()
            .filter(|server| !all.contains(**server))
            .map(|it| (*it).to_owned());
        dead.chain(bare).collect()
    }

    fn found_whole(&self) -> bool {
        let has_parts = |pool: &bowline_cloudscale_sim::snapshot::PoolState| {
            (pool.listeners.len(), pool.monitors.len()) == (1, 1)
        };
        let whole = self
            .world
            .sim
            .snapshot()
            .load_balancers
            .iter()
            .all(|it| it.pools.iter().all(has_parts));
        whole && self.found() == self.wanted()
    }

    fn history(&self) -> String {
        self.told.join("\n")
    }
}

async fn play(seed: u64) {
    let mut chaos = Chaos::new(seed);
    for _ in 0..60 {
        chaos.step().await;
    }
    chaos.world.sim.faults().clear();
    chaos.world.api.faults().clear();
    chaos.give_a_zone();
    // The slowest way back: a backoff of five minutes, a periodic check, the windows of node deletion.
    for _ in 0..400 {
        if chaos.is_done() {
            break;
        }
        chaos.world.pass(SECOND * 5).await;
    }
    chaos.world.rest().await;
    let history = chaos.history();
    let invariants = chaos.world.sim.check_invariants();
    assert_eq!(invariants, Vec::<String>::new(), "seed {seed}\n{history}");
    assert_eq!(chaos.found(), chaos.wanted(), "seed {seed}\n{history}");
    assert_eq!(chaos.lost_nodes(), Vec::<String>::new(), "seed {seed}\n{history}");
    assert_eq!(
        chaos.unpublished(),
        Vec::<String>::new(),
        "seed {seed}\n{history}"
    );
    chaos.world.assert_one_writer();
}

#[tokio::test(start_paused = true)]
async fn whatever_happens_the_end_is_what_the_objects_ask_for() {
    // More of them: `BOWLINE_SEEDS=1000..2000`.
    let seeds = std::env::var("BOWLINE_SEEDS").unwrap_or_else(|_| "1..16".to_owned());
    let (first, last) = seeds.split_once("..").expect("a range");
    for seed in first.parse().unwrap()..last.parse().unwrap() {
        play(seed).await;
    }
}
