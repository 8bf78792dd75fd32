//! What every manager does in its life: instances come, stop and go; a balancer is made, changed and removed.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use serde_json::Value;

use super::plane::Plane;
use super::site::{Cloud, Site, named};
use crate::process::program::Running;

/// What it comes to in one cloud.
pub(crate) trait Life: Cloud + Sized {
    /// The instances behind its balancers.
    const INSTANCES: [&'static str; 2] = ["pool-a-7", "pool-a-8"];

    /// Whether what a Service had is taken away some time after it rather than before it.
    const LINGERS: bool = false;

    fn assert_initialised(&self, node: &Node);

    /// Whether an instance that was switched off is behind no balancer any more, where that is the custom.
    fn is_spared(&self, _instance: &str) -> bool {
        true
    }

    /// As its user creates it.
    fn service(&self, name: &str) -> Value {
        named(name)
    }

    /// A change of it, and whether the cloud is as it asks for; nothing where no change reaches the cloud.
    fn change(&self) -> Option<Value>;

    fn is_changed(&self) -> bool {
        true
    }

    /// There is all that one Service at this address needs, and nothing twice.
    fn assert_whole(&self, addresses: &[String], what: &str);

    /// What is there for Services.
    fn left(&self) -> Vec<String>;

    /// What else happens to a Service called `web` in this cloud.
    async fn meanwhile(_site: &Site<Self>, _manager: &Running) {}
}

impl<C: Life> Site<C> {
    /// Everything that a manager of this cloud does.
    pub(crate) async fn lead_a_life(&self, manager: &Running) {
        for name in C::INSTANCES {
            let provider_id = self.join(name).await;
            let node = self.initialised(manager, name).await;
            let spec = node.spec.as_ref().unwrap();
            assert_eq!(spec.provider_id, Some(provider_id));
            self.cloud.assert_initialised(&node);
            self.told(manager, name, "Synced").await;
        }

        self.add_service(self.cloud.service("web")).await;
        let addresses = self.served(manager, "web").await;
        self.cloud.assert_whole(&addresses, "after the creation");
        self.told(manager, "web", "EnsuringLoadBalancer").await;
        self.told(manager, "web", "EnsuredLoadBalancer").await;
        C::meanwhile(self, manager).await;
        if let Some(change) = self.cloud.change() {
            self.patch_service("web", change).await;
            self.changed(manager).await;
        }

        let [_, name] = C::INSTANCES;
        let shutdown = "node.cloudprovider.kubernetes.io/shutdown".to_owned();
        assert!(self.cloud.project().switch_instance(name, false));
        self.set_ready(name, "Unknown").await;
        manager
            .until("it is tainted", async || {
                self.taints(name).await.contains(&shutdown)
            })
            .await;
        manager
            .until("it is spared", async || self.cloud.is_spared(name))
            .await;
        assert!(self.cloud.project().switch_instance(name, true));
        self.set_ready(name, "True").await;
        manager
            .until("it is free", async || {
                !self.taints(name).await.contains(&shutdown)
            })
            .await;
        assert!(self.cloud.project().delete_instance(name));
        self.set_ready(name, "Unknown").await;
        manager
            .until("its node goes", async || self.node(name).await.is_none())
            .await;

        self.delete_service("web").await;
        self.gone(manager, "web").await;
        self.bare(manager, || {}).await;
        self.told(manager, "web", "DeletedLoadBalancer").await;
        self.assert_sound("after a life");
    }

    pub(crate) async fn changed(&self, manager: &Running) {
        manager
            .until("the cloud follows", async || self.cloud.is_changed())
            .await;
    }

    /// Nothing is left of Services; what lingers may be hastened away meanwhile.
    pub(crate) async fn bare(&self, manager: &Running, hasten: impl Fn()) {
        if C::LINGERS {
            manager
                .until("nothing is left", async || {
                    hasten();
                    self.cloud.left().is_empty()
                })
                .await;
        }
        assert_eq!(self.cloud.left(), Vec::<String>::new());
    }
}

/// A manager that led a life wrote as the shipped role lets it, and as nobody else.
#[track_caller]
pub(crate) fn assert_writes_of_a_life(plane: &Plane) {
    let wanted: BTreeSet<String> = [
        "create events",
        "create leases",
        "delete nodes",
        "patch nodes",
        "patch nodes/status",
        "patch services",
        "patch services/status",
        "update leases",
    ]
    .map(|what| format!("cloud-controller-manager {what}"))
    .into();
    let mut found = writers(plane);
    found.remove("cloud-controller-manager patch events"); // only where two events are alike
    assert_eq!(found, wanted);
}

/// Who wrote to what: `account verb resource`. Nothing was forbidden.
pub(crate) fn writers(plane: &Plane) -> BTreeSet<String> {
    writers_but_for(plane, &[])
}

/// The same; reads of paths that begin so may have been forbidden.
pub(crate) fn writers_but_for(plane: &Plane, reads: &[&str]) -> BTreeSet<String> {
    let requests = plane.requests_of_accounts();
    let is_expected = |uri: &str| reads.iter().any(|read| uri.starts_with(read));
    let forbidden: Vec<_> = requests
        .iter()
        .filter(|it| it.forbidden && !is_expected(&it.uri))
        .collect();
    assert!(forbidden.is_empty(), "{forbidden:#?}");
    let resource = |uri: &str| {
        let path = uri.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let at = parts
            .iter()
            .rposition(|part| ["nodes", "services", "events", "leases", "serviceaccounts"].contains(part));
        let Some(at) = at else { return path.to_owned() };
        match parts.get(at + 2) {
            Some(subresource) => format!("{}/{subresource}", parts[at]),
            None => parts[at].to_owned(),
        }
    };
    requests
        .iter()
        .filter(|it| !matches!(it.verb.as_str(), "get" | "list" | "watch"))
        .map(|it| format!("{} {} {}", it.user, it.verb, resource(&it.uri)))
        .collect()
}
