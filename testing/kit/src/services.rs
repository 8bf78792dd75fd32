//! The Services of a cluster that is nothing else.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bowline_cloud_provider::k8s::{ServicePort, ServiceSpec};
use bowline_cloud_provider::{
    ClusterFacts, KubeWrite, LoadBalancerStatus, Node, Service, ServiceFacts, ServicesView,
};
use jiff::Timestamp;

/// The Services of a cluster by the key that the test gives them. A clone is the same cluster, as another process or a
/// provider's view of it.
#[derive(Debug, Clone, Default)]
pub struct Services {
    all: Arc<Mutex<BTreeMap<String, Arc<Service>>>>,
    /// Whether no status is taken.
    deny_status: Arc<AtomicBool>,
}

impl ServicesView for Services {
    fn services(&self) -> Vec<Arc<Service>> {
        self.all.lock().unwrap().values().cloned().collect()
    }
}

impl Services {
    /// Adds a Service, or puts it in the place of the one with this key.
    pub fn put(&self, key: &str, service: Service) {
        self.all.lock().unwrap().insert(key.to_owned(), Arc::new(service));
    }

    /// The Service as it is now, if it is there.
    #[must_use]
    pub fn find(&self, key: &str) -> Option<Arc<Service>> {
        self.all.lock().unwrap().get(key).cloned()
    }

    /// The Service as it is now.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[must_use]
    #[track_caller]
    pub fn service(&self, key: &str) -> Arc<Service> {
        self.find(key).unwrap_or_else(|| panic!("no Service {key}"))
    }

    /// All of them.
    pub(crate) fn by_key(&self) -> BTreeMap<String, Arc<Service>> {
        self.all.lock().unwrap().clone()
    }

    /// Changes a Service. Whoever holds the one before sees that it is another one, as by its resource version.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub fn edit(&self, key: &str, change: impl FnOnce(&mut Service)) {
        let mut services = self.all.lock().unwrap();
        let mut service = (*services[key]).clone();
        change(&mut service);
        services.insert(key.to_owned(), Arc::new(service));
    }

    /// Sets an annotation; none removes it.
    pub fn annotate(&self, key: &str, name: &str, value: Option<&str>) {
        self.edit(key, |service| {
            let annotations = service.metadata.annotations.get_or_insert_default();
            match value {
                Some(value) => annotations.insert(name.to_owned(), value.to_owned()),
                None => annotations.remove(name),
            };
        });
    }

    /// Has the API server refuse every status from now on, as by a policy, or take it again.
    pub fn deny_status(&self, is_denied: bool) {
        self.deny_status.store(is_denied, Ordering::Relaxed);
    }

    /// Whether the API server refuses this write.
    pub(crate) fn denies(&self, write: &KubeWrite) -> bool {
        matches!(write, KubeWrite::PublishStatus(_)) && self.deny_status.load(Ordering::Relaxed)
    }

    /// Shows a status, as the service controller does when a sync has ended. A Service that is gone shows none.
    pub fn publish(&self, key: &str, status: &LoadBalancerStatus) {
        let write = KubeWrite::PublishStatus(status.clone());
        if self.find(key).is_some() && !self.denies(&write) {
            self.edit(key, |service| write.predict(service));
        }
    }

    /// The value of an annotation.
    #[must_use]
    pub fn annotation(&self, key: &str, name: &str) -> Option<String> {
        let service = self.service(key);
        service.metadata.annotations.as_ref()?.get(name).cloned()
    }

    /// Marks a Service for deletion. It stays, as long as a finalizer would keep it.
    pub fn delete(&self, key: &str, at: Timestamp) {
        self.edit(key, |service| service.metadata.deletion_timestamp = Some(at));
    }

    /// The Service is gone from the cluster.
    pub fn forget(&self, key: &str) {
        self.all.lock().unwrap().remove(key);
    }

    /// The facts about a Service.
    #[must_use]
    #[track_caller]
    pub fn facts(
        &self,
        key: &str,
        nodes: &[Arc<Node>],
        cluster: ClusterFacts,
        now: Timestamp,
    ) -> ServiceFacts {
        let services = Arc::new(self.clone());
        ServiceFacts::of(
            self.service(key),
            Arc::from(nodes),
            services,
            Arc::new(cluster),
            now,
        )
    }
}

/// A Service of type LoadBalancer without ports; `key` is `namespace/name`.
///
/// # Panics
///
/// If `key` has no namespace.
#[must_use]
#[track_caller]
pub fn balanced_service(key: &str, uid: &str) -> Service {
    let (namespace, name) = key.split_once('/').unwrap();
    let mut service = Service::default();
    service.metadata.namespace = Some(namespace.to_owned());
    service.metadata.name = Some(name.to_owned());
    service.metadata.uid = Some(uid.to_owned());
    service.spec = Some(ServiceSpec {
        type_: Some("LoadBalancer".to_owned()),
        ..ServiceSpec::default()
    });
    service
}

/// A port of a Service without a name.
#[must_use]
pub fn service_port(protocol: &str, port: i32, node_port: i32) -> ServicePort {
    ServicePort {
        protocol: Some(protocol.to_owned()),
        port,
        node_port: Some(node_port),
        ..ServicePort::default()
    }
}
