//! CloudStack: under the former manager's rights and the shipped ones, and killed at every write.

use std::path::PathBuf;

use bowline_cloudstack_sim::kit::{Clock, Fault, Server as CloudServer};
use bowline_cloudstack_sim::{AddressState, CloudstackSim, VmSpec, VmState};
use k8s_openapi::api::core::v1::Node;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plane::Plane;
use super::rbac::{assert_writes_of_a_life, ended};
use super::scenarios::{addresses, web};
use crate::deploy;
use crate::process::program::Running;

/// The role of the former manager as its manifest has it: not one verb more.
const ROLE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:cloud-controller-manager"}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch, update]}
- {apiGroups: [""], resources: [nodes], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes/status], verbs: [patch]}
- {apiGroups: [""], resources: [pods], verbs: [list, get]}
- {apiGroups: [""], resources: [services], verbs: [get, list, patch, update, watch]}
- {apiGroups: [""], resources: [services/status], verbs: [list, patch, update, watch]}
- {apiGroups: [""], resources: [serviceaccounts], verbs: [create]}
- {apiGroups: [""], resources: [endpoints], verbs: [create, get, list, watch, update]}
- {apiGroups: [""], resources: [persistentvolumes], verbs: [list, watch, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:cloud-controller-manager"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:cloud-controller-manager"}
subjects:
- {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: "system:cloud-controller-manager:extension-apiserver-authentication-reader"
  namespace: kube-system
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects:
- {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
"#;

/// A real API server, and the cloud on a loopback port.
struct Site {
    plane: Plane,
    sim: CloudstackSim,
    cloud: CloudServer,
    directory: TempDir,
}

impl Site {
    async fn start(what: &str, manifests: &str) -> Option<Self> {
        let plane = Plane::start_with(what, manifests).await?;
        let sim = CloudstackSim::builder().clock(Clock::system()).build();
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Some(Self {
            plane,
            cloud: sim.serve(listener).unwrap(),
            sim,
            directory: tempfile::tempdir().unwrap(),
        })
    }

    fn config(&self) -> PathBuf {
        let text = format!(
            "[Global]\napi-url = {}/client/api\napi-key = {}\nsecret-key = {}\n",
            self.cloud.url(),
            CloudstackSim::API_KEY,
            CloudstackSim::SECRET_KEY
        );
        let path = self.directory.path().join("cloud-config");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Starts the program as the former image and manifest do.
    fn manager(&self, more: &[&str]) -> Running {
        let config = format!("--cloud-config={}", self.config().display());
        let mut flags = vec!["--cloud-provider", "external-cloudstack", &config];
        flags.extend(more);
        flags.push("--cloud-provider=external-cloudstack");
        self.plane.manager_called("cloudstack-ccm", &flags, &[])
    }

    /// A virtual machine whose kubelet has just registered.
    async fn join(&self, name: &str) -> String {
        let id = self.sim.add_vm(VmSpec::new(name));
        let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.plane.add_node(node).await;
        id
    }

    async fn initialised(&self, manager: &Running, name: &str) -> Node {
        manager
            .until("the node is initialised", async || {
                let node = self.plane.node(name).await.unwrap();
                node.spec.unwrap().taints.unwrap_or_default().is_empty()
            })
            .await;
        self.plane.node(name).await.unwrap()
    }

    /// The Service's address, once it is in its status.
    async fn served(&self, manager: &Running, name: &str) -> String {
        manager
            .until("the address", async || {
                !addresses(&self.plane.service(name).await.unwrap()).is_empty()
            })
            .await;
        addresses(&self.plane.service(name).await.unwrap()).remove(0)
    }

    async fn gone(&self, manager: &Running, name: &str) {
        manager
            .until("the service is gone", async || {
                self.plane.service(name).await.is_none()
            })
            .await;
        assert_eq!(self.held(), Vec::<String>::new(), "{name}");
        assert!(
            self.sim.rules().is_empty() && self.sim.firewall_rules().is_empty(),
            "{name}"
        );
    }

    /// Public addresses that somebody has, the router's own aside.
    fn held(&self) -> Vec<String> {
        self.sim
            .addresses()
            .into_iter()
            .filter(|it| it.state != AddressState::Free && !it.is_source_nat)
            .map(|it| it.address.to_string())
            .collect()
    }

    /// One address with a rule and an opening for each of the two ports, and every machine behind them.
    fn assert_whole(&self, address: &str, what: &str) {
        assert_eq!(self.held(), [address], "{what}");
        let rules = self.sim.rules();
        assert_eq!((rules.len(), self.sim.firewall_rules().len()), (2, 2), "{what}");
        for rule in rules {
            let mut members = self.sim.member_names(&rule.id);
            members.sort();
            assert_eq!(members, ["pool-a-7", "pool-a-8"], "{what}");
        }
        assert_eq!(self.sim.check_invariants(), Vec::<String>::new(), "{what}");
    }

    /// Everything that a manager of CloudStack does.
    async fn lead_a_life(&self, manager: &Running) {
        let id = self.join("pool-a-7").await;
        let other = self.join("pool-a-8").await;
        let node = self.initialised(manager, "pool-a-7").await;
        self.initialised(manager, "pool-a-8").await;
        assert_eq!(
            node.spec.unwrap().provider_id,
            Some(format!("external-cloudstack://{id}"))
        );
        let labels = node.metadata.labels.unwrap();
        for (label, value) in [
            ("node.kubernetes.io/instance-type", "Medium4c8g"),
            ("beta.kubernetes.io/instance-type", "Medium4c8g"),
            ("topology.kubernetes.io/zone", "Zurich-1"),
            ("failure-domain.beta.kubernetes.io/zone", "Zurich-1"),
            ("topology.kubernetes.io/region", "Zurich-1"),
            ("failure-domain.beta.kubernetes.io/region", "Zurich-1"),
        ] {
            assert_eq!(labels[label], value, "{label}");
        }

        self.plane.add_service(web()).await;
        let address = self.served(manager, "web").await;
        self.assert_whole(&address, "after the creation");
        let writes = self.sim.journal().writes().len();
        let affinity = json!({ "spec": { "sessionAffinity": "ClientIP" } });
        self.plane.patch_service("web", affinity).await;
        manager
            .until("the rules follow", async || {
                self.sim.rules().iter().all(|rule| rule.algorithm == "source")
            })
            .await;
        assert_eq!(self.sim.journal().writes().len(), writes + 2, "one for each rule");

        // Powered off it stays; expunged it goes.
        self.sim.set_vm_state(&other, VmState::Stopped);
        self.plane.set_ready("pool-a-8", "Unknown").await;
        manager
            .until("it is tainted", async || {
                let spec = self.plane.node("pool-a-8").await.unwrap().spec.unwrap();
                let taints = spec.taints.unwrap_or_default();
                taints
                    .iter()
                    .any(|it| it.key == "node.cloudprovider.kubernetes.io/shutdown")
            })
            .await;
        manager
            .until("it is no member any more", async || {
                let rules = self.sim.rules();
                rules
                    .iter()
                    .all(|rule| self.sim.member_names(&rule.id) == ["pool-a-7"])
            })
            .await;
        self.sim.expunge_vm(&other);
        manager
            .until("its node goes", async || {
                self.plane.node("pool-a-8").await.is_none()
            })
            .await;

        self.plane.delete_service("web").await;
        self.gone(manager, "web").await;
        manager
            .until("the events are written", async || {
                let events = self.plane.reasons("web").await;
                events.contains(&"DeletedLoadBalancer".to_owned())
            })
            .await;
    }
}

/// What is under way when the process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    Creation,
    Change,
    Removal,
}

fn proxied() -> Value {
    let key = "service.beta.kubernetes.io/cloudstack-load-balancer-proxy-protocol";
    json!({ "metadata": { "annotations": { (key): "true" } } })
}

fn named(name: &str) -> Value {
    let mut service = web();
    service["metadata"]["name"] = json!(name);
    service
}

#[tokio::test]
async fn the_former_manifest_runs_unchanged_and_nothing_is_forbidden() {
    let Some(site) = Site::start("the former manifest of CloudStack", ROLE).await else {
        return;
    };
    let mut manager = site.manager(&["--leader-elect=true", "--node-monitor-period=1s"]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    site.plane.assert_nothing_forbidden();
    let puts: Vec<_> = site
        .plane
        .requests()
        .into_iter()
        .filter(|it| it.verb == "update" && !it.uri.contains("/leases/"))
        .collect();
    assert!(
        puts.is_empty(),
        "a PUT writes other people's fields back: {puts:?}"
    );
}

#[tokio::test]
async fn the_shipped_role_is_enough_for_cloudstack() {
    let manifest = std::fs::read_to_string(deploy::root().join("cloudstack/deployment.yaml")).unwrap();
    let Some(site) = Site::start("the shipped role of CloudStack", &manifest).await else {
        return;
    };
    let mut manager = site.manager(&["--node-monitor-period=1s"]);
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    assert_writes_of_a_life(&site.plane);
}

#[tokio::test]
async fn killed_at_any_write_it_leaves_one_balancer_for_a_service_that_lives_and_nothing_of_one_that_goes() {
    let Some(site) = Site::start("death at every write to CloudStack", ROLE).await else {
        return;
    };
    let flags = ["--leader-elect=false"];
    let first = site.manager(&flags);
    for name in ["pool-a-7", "pool-a-8"] {
        site.join(name).await;
        site.initialised(&first, name).await;
    }
    drop(first);
    // An address, then a rule, its members and its opening for each of two ports; another protocol for each rule; and with
    // the address everything on it goes.
    for (what, writes) in [(Doing::Creation, 7), (Doing::Change, 2), (Doing::Removal, 1)] {
        for k in 1..=writes {
            let name = format!("web-{k}");
            let shown = format!("{what:?}, write {k}");
            let mut manager = site.manager(&flags);
            if what != Doing::Creation {
                site.plane.add_service(named(&name)).await;
                site.served(&manager, &name).await;
            }
            // The write is carried out, and its answer never comes.
            let fault = site.sim.faults().add(Fault::write().nth(k).hang_after());
            match what {
                Doing::Creation => drop(site.plane.add_service(named(&name)).await),
                Doing::Change => site.plane.patch_service(&name, proxied()).await,
                Doing::Removal => site.plane.delete_service(&name).await,
            }
            manager
                .until("the write", async || site.sim.faults().struck(fault) > 0)
                .await;
            manager.signal(Signal::KILL);
            manager.ended().await;
            site.sim.faults().clear();

            let mut next = site.manager(&flags);
            if what == Doing::Change {
                next.until("the rules follow", async || {
                    let rules = site.sim.rules();
                    rules
                        .iter()
                        .all(|rule| rule.protocol.as_deref() == Some("tcp-proxy"))
                })
                .await;
            }
            if what != Doing::Removal {
                let address = site.served(&next, &name).await;
                site.assert_whole(&address, &shown);
                site.plane.delete_service(&name).await;
            }
            site.gone(&next, &name).await;
            assert_eq!(site.sim.check_invariants(), Vec::<String>::new(), "{shown}");
            // It may have had nothing to do, and be young still.
            next.signal(Signal::KILL);
            next.ended().await;
        }
    }
}
