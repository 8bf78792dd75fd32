//! A cluster around the load balancers: Services, Nodes, and the service controller without a manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret, Transport};
use bowline_cloud_provider::{
    AddressType, BackgroundFacts, BackgroundWork, CloudProvider, ClusterFacts, InstancesV2, LoadBalancer,
    Node, NodeAddress, ServerVersion, Service, ServiceFacts,
};
use bowline_kit::{Interruption, ServiceLoop, Services, balanced_service, run_background};
pub(crate) use bowline_kit::{Outcome, Run, service_port};
use bowline_openstack::{LoadBalancerOptions, Metrics, load_balancers};
use bowline_openstack_client::{Client, Credentials, Interface, Login, Settings};
use bowline_openstack_sim::kit::World as SimWorld;
use bowline_openstack_sim::kit::journal::Entry;
use bowline_openstack_sim::{Behaviour, Builder, Id, OpenstackSim, ServerSpec, UserSpec};
use jiff::{SignedDuration, Timestamp};

/// The key of an annotation, by the part that differs.
pub(crate) fn key(suffix: &str) -> String {
    match suffix {
        "internal" => "service.beta.kubernetes.io/openstack-internal-load-balancer".to_owned(),
        suffix => format!("loadbalancer.openstack.org/{suffix}"),
    }
}

/// The name of the load balancer of the Service `default/NAME` in the cluster `lab`.
pub(crate) fn lb_name(service: &str) -> String {
    format!("kube_service_lab_default_{service}")
}

/// A cloud that is nothing but its load balancers.
pub(crate) struct Balancing(Arc<dyn LoadBalancer>, Arc<dyn BackgroundWork>);

impl CloudProvider for Balancing {
    fn name(&self) -> &'static str {
        "openstack"
    }

    fn has_cluster_id(&self) -> bool {
        true
    }

    fn instances(&self) -> Option<Arc<dyn InstancesV2>> {
        None
    }

    fn load_balancer(&self) -> Option<Arc<dyn LoadBalancer>> {
        Some(Arc::clone(&self.0))
    }

    fn background_work(&self) -> Vec<Arc<dyn BackgroundWork>> {
        vec![Arc::clone(&self.1)]
    }
}

fn balancing((client, options, metrics): (Client, LoadBalancerOptions, Metrics)) -> Balancing {
    let (balancers, work) = load_balancers(client, options, metrics);
    Balancing(balancers, work)
}

/// The cloud, the provider over it, and the cluster.
pub(crate) struct World {
    pub(crate) sim: OpenstackSim,
    pub(crate) cloud: Balancing,
    pub(crate) options: LoadBalancerOptions,
    pub(crate) services: Services,
    service_loop: ServiceLoop,
    pub(crate) nodes: Vec<Arc<Node>>,
    pub(crate) cluster_name: String,
    /// The hour of the last reconcile: whatever was refused before is tried again in the next one.
    hour: AtomicI64,
}

/// A simulator of the world of this run.
pub(crate) fn builder() -> Builder {
    let behaviour = bowline_kit::world().behaviour();
    OpenstackSim::builder().seed(7).behaviour(behaviour)
}

/// Each list comes as one page: for tests that count requests.
pub(crate) fn in_one_page(sim: &OpenstackSim) {
    sim.set_behaviour(|behaviour| {
        let kind = SimWorld::Kind.behaviour::<Behaviour>();
        behaviour.octavia_page_size = kind.octavia_page_size;
        behaviour.neutron_page_size = kind.neutron_page_size;
        behaviour.nova_page_size = kind.nova_page_size;
    });
}

/// A client of a simulator.
pub(crate) fn client(sim: &OpenstackSim) -> Client {
    client_of(sim, "demo")
}

/// The same for a user whose password is the name.
pub(crate) fn client_of(sim: &OpenstackSim, user: &str) -> Client {
    client_that(sim, user, |_| {})
}

fn client_that(sim: &OpenstackSim, user: &str, change: impl FnOnce(&mut CloudHttpConfig)) -> Client {
    let login = Login::new(&Credentials {
        username: user.into(),
        password: Some(Secret::new(user)),
        tenant_name: "demo".into(),
        domain_id: "default".into(),
        ..Credentials::default()
    });
    let settings = Settings {
        auth_url: "http://cloud.test/identity/v3".parse().unwrap(),
        login: login.unwrap(),
        source: "cloud.conf".into(),
        region: "RegionOne".into(),
        interface: Interface::Public,
        request_timeout: Duration::from_secs(60),
    };
    let mut config = CloudHttpConfig::new("openstack", "test");
    settings.configure(&mut config);
    change(&mut config);
    Client::new(CloudHttp::new(config, Transport::memory(sim.service())), settings)
}

impl World {
    /// A world with nodes `node-1`, `node-2`, ... and a Service `web` of the port 80.
    pub(crate) fn with_nodes(count: usize) -> Self {
        let mut world = Self::over(builder().build());
        for index in 1..=count {
            world.add_node(&format!("node-{index}"));
        }
        world.put(service("web", &[("TCP", 80, 30080)]));
        world
    }

    pub(crate) fn over(sim: OpenstackSim) -> Self {
        // As long as a real one needs, on the stopped clock.
        sim.set_behaviour(|behaviour| {
            behaviour.lb_create_time = Duration::from_millis(3_600);
            behaviour.lb_change_time = Duration::from_millis(800);
            behaviour.lb_delete_time = Duration::from_millis(500);
        });
        let options = LoadBalancerOptions::default();
        let services = Services::default();
        Self {
            cloud: balancing((client(&sim), options.clone(), Metrics::default())),
            sim,
            options,
            service_loop: ServiceLoop::new(&services),
            services,
            nodes: Vec::new(),
            cluster_name: "lab".into(),
            hour: AtomicI64::default(),
        }
    }

    /// Another cluster of the same name in the same project, with a node and a Service `web` of its own.
    pub(crate) fn another_cluster(&self) -> Self {
        let mut other = Self::over(self.sim.clone());
        other.options = self.options.clone();
        other.restart();
        other.add_node("other-node");
        other.put_as("another", service("web", &[("TCP", 80, 31080)]));
        other
    }

    /// Puts a Service with another UID than the one that goes by its name.
    pub(crate) fn put_as(&self, uid: &str, mut service: Service) {
        service.metadata.uid = Some(uid.to_owned());
        self.put(service);
    }

    /// A process that starts anew, perhaps with other options: nothing is remembered.
    pub(crate) fn restart(&mut self) {
        self.cloud = balancing((client(&self.sim), self.options.clone(), Metrics::default()));
    }

    /// The same for a user who sees the objects of all projects.
    pub(crate) fn restart_as_admin(&mut self) {
        self.sim.add_user(UserSpec {
            is_admin: true,
            ..UserSpec::new("operator", "operator")
        });
        let client = client_of(&self.sim, "operator");
        self.cloud = balancing((client, self.options.clone(), Metrics::default()));
    }

    /// The same, reading no more than so many bytes of an answer.
    pub(crate) fn restart_with_limit(&mut self, bytes: usize) {
        let client = client_that(&self.sim, "demo", |config| config.max_body = bytes);
        self.cloud = balancing((client, self.options.clone(), Metrics::default()));
    }

    /// The same with other options.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut LoadBalancerOptions)) {
        change(&mut self.options);
        self.restart();
    }

    /// A node with a server of its name.
    pub(crate) fn add_node(&mut self, name: &str) -> Id {
        self.add_server_node(ServerSpec::new(name))
    }

    pub(crate) fn add_server_node(&mut self, spec: ServerSpec) -> Id {
        let name = spec.name.clone();
        let server = self.sim.add_server(spec);
        let addresses = self
            .sim
            .ports_of(server)
            .into_iter()
            .flat_map(|port| port.fixed_ips);
        self.nodes.push(Arc::new(Node {
            provider_id: Some(format!("openstack:///{server}").into()),
            addresses: addresses
                .map(|fixed| NodeAddress::new(AddressType::InternalIp, fixed.address.to_string()))
                .collect(),
            ..Node::named(&name)
        }));
        server
    }

    pub(crate) fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|node| node.name.as_str() != name);
    }

    pub(crate) fn put(&self, service: Service) {
        let name = service.metadata.name.clone().unwrap();
        self.services.put(&name, service);
    }

    pub(crate) fn edit(&self, name: &str, change: impl FnOnce(&mut Service)) {
        self.services.edit(name, change);
    }

    /// Sets the ports of a Service.
    pub(crate) fn set_ports(&self, name: &str, ports: &[(&str, i32, i32)]) {
        let ports = ports
            .iter()
            .map(|(protocol, port, node)| service_port(protocol, *port, *node));
        let ports: Vec<_> = ports.collect();
        self.edit(name, |service| service.spec.as_mut().unwrap().ports = Some(ports));
    }

    /// Sets an annotation by the end of its key.
    pub(crate) fn annotate(&self, name: &str, suffix: &str, value: &str) {
        self.services.annotate(name, &key(suffix), Some(value));
    }

    /// Marks a Service for deletion.
    pub(crate) fn delete(&self, name: &str) {
        self.services.delete(name, Timestamp::UNIX_EPOCH);
    }

    pub(crate) fn facts(&self, name: &str) -> ServiceFacts {
        self.services.facts(name, &self.nodes, self.cluster(), self.now())
    }

    fn cluster(&self) -> ClusterFacts {
        ClusterFacts {
            name: self.cluster_name.clone(),
            uid: None,
            server_version: Some(ServerVersion { major: 1, minor: 36 }),
            holder: "test".into(),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_hours(self.hour.load(Ordering::Relaxed))
    }

    /// One run of the work that deletes what refused creations left behind.
    pub(crate) async fn reap(&self) {
        let facts = || BackgroundFacts {
            services: Arc::new(self.services.clone()),
            cluster: Arc::new(self.cluster()),
            now: self.now(),
        };
        run_background(&self.cloud, "openstack-leaked-ports", facts)
            .await
            .unwrap();
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(crate) async fn run(&self, name: &str) -> Run {
        self.run_with(name, Interruption::Never).await
    }

    pub(crate) async fn run_with(&self, name: &str, interruption: Interruption) -> Run {
        self.hour.fetch_add(1, Ordering::Relaxed);
        self.reconcile(name, interruption).await
    }

    /// Reconciles at the hour of the last time: what was refused then is held back.
    pub(crate) async fn run_again(&self, name: &str) -> Run {
        self.reconcile(name, Interruption::Never).await
    }

    async fn reconcile(&self, name: &str, interruption: Interruption) -> Run {
        let facts = || self.facts(name);
        self.service_loop
            .reconcile(&self.cloud, name, facts, interruption)
            .await
    }

    /// The requests that arrived while `work` ran, without logins and the discovery of endpoints.
    pub(crate) async fn calls_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<Entry>) {
        let mark = self.sim.journal().mark();
        let answer = work.await;
        let mut entries = self.sim.journal().since(mark);
        entries.retain(|entry| !entry.path.starts_with("/identity") && entry.path.matches('/').count() > 1);
        (answer, entries)
    }

    /// The writes that arrived while `work` ran.
    pub(crate) async fn writes_of<T>(&self, work: impl Future<Output = T>) -> (T, Vec<Entry>) {
        let (answer, mut entries) = self.calls_of(work).await;
        entries.retain(|entry| entry.write);
        (answer, entries)
    }

    /// Asserts that a run settles and writes nothing, neither to the cloud nor to Kubernetes.
    #[track_caller]
    pub(crate) fn assert_quiet(run: &Run, writes: &[Entry]) {
        assert!(matches!(run.outcome, Outcome::Settled(_)), "{run:#?}");
        assert!(writes.is_empty() && run.waves.is_empty(), "{run:#?} {writes:#?}");
    }

    /// Reconciles a Service that is as it should be.
    pub(crate) async fn assert_settled(&self, name: &str) {
        let (run, writes) = self.writes_of(self.run(name)).await;
        Self::assert_quiet(&run, &writes);
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new());
    }
}

/// Operations in short.
pub(crate) fn in_short(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.operation.as_str()).collect()
}

/// A Service of type LoadBalancer with ports of (protocol, port, node port).
pub(crate) fn service(name: &str, ports: &[(&str, i32, i32)]) -> Service {
    let mut service = balanced_service(&format!("default/{name}"), &format!("uid-{name}"));
    let spec = service.spec.as_mut().unwrap();
    spec.ip_families = Some(vec!["IPv4".into()]);
    let ports = ports
        .iter()
        .map(|(protocol, port, node)| service_port(protocol, *port, *node));
    spec.ports = Some(ports.collect());
    service
}
