//! A cluster around the provider: Services, Nodes, and the service controller without a manager.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bowline_cloud_http::{CloudHttp, CloudHttpConfig, Secret, SocketOptions, Transport};
use bowline_cloud_provider::{
    AddressType, CloudProvider, ClusterFacts, InstancesV2, LoadBalancer, Node, NodeAddress, ServerVersion,
    Service as KubeService, ServiceFacts,
};
use bowline_kit::{Interruption, Run, ServiceLoop, Services, balanced_service, service_port};
use bowline_openstack::{LoadBalancerOptions, Metrics, load_balancers};
use bowline_openstack_client::{Client, Credentials, Interface, Login, Settings};
use bowline_openstack_services::Service;
use jiff::Timestamp;
use serde_json::Value;

use crate::ground::Ground;
use crate::walk::text;

/// A cloud that is nothing but its load balancers.
struct Balancing(Arc<dyn LoadBalancer>);

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
}

/// The provider over a ground, through sockets.
pub(super) struct Cluster {
    pub(super) ground: Ground,
    cloud: Balancing,
    pub(super) services: Services,
    service_loop: ServiceLoop,
    nodes: Vec<Arc<Node>>,
    /// An hour for each run, so that what was refused is tried again.
    hours: AtomicI64,
}

/// A client of a ground, by the password of its user.
pub(super) fn client(ground: &Ground) -> Client {
    let login = Login::new(&Credentials {
        username: ground.user().into(),
        password: Some(Secret::new(ground.user())),
        tenant_name: ground.user().into(),
        domain_id: "default".into(),
        ..Credentials::default()
    });
    let settings = Settings {
        auth_url: ground.keystone_url().parse().unwrap(),
        login: login.unwrap(),
        region: "RegionOne".into(),
        interface: Interface::Public,
        request_timeout: Duration::from_secs(60),
        source: "this test".into(),
    };
    let mut config = CloudHttpConfig::new("openstack", "test");
    settings.configure(&mut config);
    let transport = Transport::sockets(&SocketOptions::default()).unwrap();
    Client::new(CloudHttp::new(config, transport), settings)
}

impl Cluster {
    /// A cluster of two nodes on a ground.
    pub(super) async fn on(ground: Ground, options: LoadBalancerOptions) -> Self {
        let services = Services::default();
        let cloud = Balancing(load_balancers(client(&ground), options, Metrics::default()).0);
        let mut nodes = Vec::new();
        for name in ["node-1", "node-2"] {
            let server = ground.server(name).await;
            nodes.push(Arc::new(Node {
                provider_id: Some(format!("openstack:///{server}").into()),
                addresses: addresses(&ground, &server).await,
                ..Node::named(name)
            }));
        }
        Self {
            ground,
            cloud,
            service_loop: ServiceLoop::new(&services),
            services,
            nodes,
            hours: AtomicI64::new(0),
        }
    }

    /// Adds a Service of type LoadBalancer, or changes the ports of one, as (protocol, port, node port).
    pub(super) fn put(&self, name: &str, ports: &[(&str, i32, i32)]) {
        if self.services.find(name).is_none() {
            let service = balanced_service(&format!("default/{name}"), &format!("uid-{name}"));
            self.services.put(name, service);
        }
        let ports = ports
            .iter()
            .map(|(protocol, port, node)| service_port(protocol, *port, *node))
            .collect();
        self.edit(name, |service| {
            if let Some(spec) = service.spec.as_mut() {
                spec.ip_families = Some(vec!["IPv4".into()]);
                spec.ports = Some(ports);
            }
        });
    }

    pub(super) fn edit(&self, name: &str, change: impl FnOnce(&mut KubeService)) {
        self.services.edit(name, change);
    }

    /// Sets an annotation by the end of its key.
    pub(super) fn annotate(&self, name: &str, suffix: &str, value: &str) {
        let key = format!("loadbalancer.openstack.org/{suffix}");
        self.services.annotate(name, &key, Some(value));
    }

    pub(super) fn remove_node(&mut self, name: &str) {
        self.nodes.retain(|node| node.name.as_str() != name);
    }

    /// Reconciles a Service until it settles, is refused or fails.
    pub(super) async fn run(&self, name: &str) -> Run {
        let hour = self.hours.fetch_add(1, Ordering::Relaxed);
        let facts = || self.facts(name, hour);
        self.service_loop
            .reconcile(&self.cloud, name, facts, Interruption::Never)
            .await
    }

    /// Reconciles a Service, which settles; and once more, which then changes nothing.
    pub(super) async fn settle(&self, name: &str) -> Run {
        let run = self.run(name).await.settled();
        let quiet = self.run(name).await.settled();
        assert!(quiet.waves.is_empty(), "a second run writes: {quiet:#?}");
        run
    }

    /// Deletes a Service, and what was made for it.
    pub(super) async fn delete(&self, name: &str) {
        self.services.delete(name, Timestamp::UNIX_EPOCH);
        self.run(name).await.settled();
        self.services.forget(name);
    }

    fn facts(&self, name: &str, hour: i64) -> ServiceFacts {
        let cluster = ClusterFacts {
            name: "lab".into(),
            uid: None,
            server_version: Some(ServerVersion { major: 1, minor: 36 }),
            holder: "test".into(),
        };
        self.services.facts(
            name,
            &self.nodes,
            cluster,
            Timestamp::from_second(hour * 3600).unwrap(),
        )
    }

    /// What a list holds.
    pub(super) async fn list(&self, service: Service, path: &str) -> Vec<Value> {
        let answer = self.ground.get(service, path).await;
        let lists = answer.as_object().unwrap().values();
        lists.filter_map(Value::as_array).flatten().cloned().collect()
    }

    /// The load balancers of the project.
    pub(super) async fn load_balancers(&self) -> Vec<Value> {
        self.list(Service::LoadBalancer, "/v2.0/lbaas/loadbalancers")
            .await
    }

    /// The floating IPs of the project.
    pub(super) async fn floating_ips(&self) -> Vec<Value> {
        self.list(Service::Network, "/v2.0/floatingips").await
    }

    /// The members of the only pool.
    pub(super) async fn members(&self) -> Vec<String> {
        let pools = self.list(Service::LoadBalancer, "/v2.0/lbaas/pools").await;
        let path = format!("/v2.0/lbaas/pools/{}/members", text(&pools[0], "/id"));
        let members = self.list(Service::LoadBalancer, &path).await;
        let mut names: Vec<String> = members
            .iter()
            .map(|member| text(member, "/name").to_owned())
            .collect();
        names.sort();
        names
    }
}

pub(super) async fn addresses(ground: &Ground, server: &str) -> Vec<NodeAddress> {
    let ports = ground
        .get(Service::Network, &format!("/v2.0/ports?device_id={server}"))
        .await;
    let fixed = ports.pointer("/ports/0/fixed_ips").and_then(Value::as_array);
    let mut addresses: Vec<&str> = fixed
        .unwrap()
        .iter()
        .map(|fixed| text(fixed, "/ip_address"))
        .collect();
    // The family of the cluster first.
    addresses.sort_by_key(|address| address.contains(':'));
    addresses
        .into_iter()
        .map(|address| NodeAddress::new(AddressType::InternalIp, address))
        .collect()
}
