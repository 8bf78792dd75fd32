//! A real API server, and what tests do to its objects and ask it about.

use std::fmt::Debug;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline_control_plane::{AuditEvent, ControlPlane, Options, Version, binaries_or_skip};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::config::{AuthInfo, Kubeconfig};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::process::program::{DEADLINE, until_next_look};

const ACCOUNT: &str = "system:serviceaccount:kube-system:cloud-controller-manager";

/// What kube-apiserver publishes about its clients, in `kube-system`.
const AUTHENTICATION: &str = "extension-apiserver-authentication";

pub(crate) struct Plane {
    plane: ControlPlane,
    kubeconfig: PathBuf,
    /// Requests before the program was started.
    earlier: usize,
}

impl Plane {
    /// With what an installation gives to the service account, which includes the right to list Nodes; nothing if the
    /// servers are not built.
    pub(crate) async fn start(install: impl AsyncFnOnce(&ControlPlane)) -> Option<Self> {
        let version = Version::wanted().unwrap();
        binaries_or_skip(version)?;
        let options = Options {
            version,
            audit: true,
            ..Options::default()
        };
        let plane = ControlPlane::start(options).await.unwrap();
        install(&plane).await;
        let kubeconfig = plane
            .kubeconfig_for_service_account("kube-system", "cloud-controller-manager")
            .await
            .unwrap();
        let mut this = Self {
            kubeconfig: kubeconfig.path().to_owned(),
            plane,
            earlier: 0,
        };
        this.allowed().await;
        this.earlier = this.plane.audit_events().unwrap().len();
        Some(this)
    }

    /// Waits until the authorizer knows what was applied before the rights of this account.
    pub(crate) async fn allowed_as(&self, account: &str) {
        self.may_list_nodes(&self.kubeconfig_of(account).await).await;
    }

    /// The authorizer sees a new role through a watch, so a moment after it was written.
    async fn allowed(&self) {
        self.may_list_nodes(&self.kubeconfig).await;
    }

    /// The same for the right to read what kube-apiserver publishes about its clients.
    pub(crate) async fn may_look_clients_up(&self) {
        let maps: Api<ConfigMap> = Api::namespaced(client(&self.kubeconfig).await, "kube-system");
        self.until("the binding works", async || {
            maps.get(AUTHENTICATION).await.is_ok()
        })
        .await;
    }

    async fn may_list_nodes(&self, kubeconfig: &Path) {
        let nodes: Api<Node> = Api::all(client(kubeconfig).await);
        self.until("the role works", async || {
            nodes.list(&ListParams::default()).await.is_ok()
        })
        .await;
    }

    /// With all rights.
    pub(crate) fn client(&self) -> kube::Client {
        self.plane.client()
    }

    /// Applies manifests as an operator does.
    pub(crate) async fn apply(&self, manifests: &str) {
        self.plane.apply(manifests).await.unwrap();
    }

    /// A token of a service account of this name.
    pub(crate) async fn token(&self, name: &str) -> String {
        let kubeconfig = self
            .plane
            .kubeconfig_for_service_account("default", name)
            .await
            .unwrap();
        kubeconfig.token().unwrap().to_owned()
    }

    /// A client certificate that the cluster's own authority signs for this user in this group.
    pub(crate) fn certificate(&self, user: &str, group: Option<&str>) -> AuthInfo {
        let kubeconfig = self.plane.kubeconfig_for_user(user, group).unwrap();
        let parsed = Kubeconfig::read_from(kubeconfig.path()).unwrap();
        parsed.auth_infos[0].auth_info.clone().unwrap()
    }

    /// Has the cluster vouch for the clients of one more authority, as a rotation of it does.
    pub(crate) async fn also_vouch_for(&self, authority: &str) {
        let maps: Api<ConfigMap> = Api::namespaced(self.plane.client(), "kube-system");
        let published = maps.get(AUTHENTICATION).await.unwrap().data.unwrap();
        let both = format!("{}\n{authority}", published["client-ca-file"].trim_end());
        let patch = Patch::Merge(json!({ "data": { "client-ca-file": both } }));
        maps.patch(AUTHENTICATION, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Stops the API server where it is, or lets it go on: connections stay, and nothing is answered.
    pub(crate) fn suspend(&self, is_suspended: bool) {
        let [apiserver, _] = self.plane.process_ids();
        let id = Pid::from_raw(i32::try_from(apiserver).unwrap()).unwrap();
        let signal = if is_suspended { Signal::STOP } else { Signal::CONT };
        kill_process(id, signal).unwrap();
    }

    pub(crate) fn url(&self) -> &str {
        self.plane.url()
    }

    /// What the program has its rights from.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The same for another service account in `kube-system`.
    pub(crate) async fn kubeconfig_of(&self, account: &str) -> PathBuf {
        let kubeconfig = self
            .plane
            .kubeconfig_for_service_account("kube-system", account)
            .await
            .unwrap();
        kubeconfig.path().to_owned()
    }

    /// The same on another way to the API server.
    pub(crate) fn kubeconfig_through(&self, address: SocketAddr) -> PathBuf {
        let text = fs::read_to_string(&self.kubeconfig).unwrap();
        let text = text.replace(self.url(), &format!("https://{address}"));
        let path = self
            .kubeconfig
            .with_file_name(format!("through-{}", address.port()));
        fs::write(&path, text).unwrap();
        path
    }

    fn nodes(&self) -> Api<Node> {
        Api::all(self.client())
    }

    fn services(&self) -> Api<Service> {
        Api::default_namespaced(self.client())
    }

    pub(crate) async fn node(&self, name: &str) -> Option<Node> {
        self.nodes().get_opt(name).await.unwrap()
    }

    pub(crate) async fn service(&self, name: &str) -> Option<Service> {
        self.services().get_opt(name).await.unwrap()
    }

    /// The names of the Services that want a load balancer.
    pub(crate) async fn load_balancers(&self) -> Vec<String> {
        let services = self.services().list(&ListParams::default()).await.unwrap();
        services
            .into_iter()
            .filter(|service| {
                service.spec.as_ref().and_then(|it| it.type_.as_deref()) == Some("LoadBalancer")
            })
            .filter_map(|service| service.metadata.name)
            .collect()
    }

    /// Creates a Node as a kubelet does: the object, then its status.
    pub(crate) async fn add_node(&self, node: Value) {
        let object: Node = serde_json::from_value(node.clone()).unwrap();
        let name = object.metadata.name.clone().unwrap();
        self.nodes()
            .create(&PostParams::default(), &object)
            .await
            .unwrap();
        self.set_status(&name, &node["status"]).await;
    }

    async fn set_status(&self, name: &str, status: &Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.nodes()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        self.nodes().delete(name, &DeleteParams::default()).await.unwrap();
    }

    pub(crate) async fn set_ready(&self, name: &str, status: &str) {
        self.set_status(
            name,
            &json!({ "conditions": [{ "type": "Ready", "status": status }] }),
        )
        .await;
    }

    /// A Node whose kubelet has just registered, and that waits to be looked up.
    pub(crate) async fn register(&self, name: &str) {
        let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
        self.add_node(json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }))
        .await;
    }

    /// A Node whose instance never was, by the word of this provider ID.
    pub(crate) async fn add_lost_node(&self, name: &str, provider_id: &str) {
        self.add_node(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "providerID": provider_id },
            "status": { "conditions": [{ "type": "Ready", "status": "Unknown" }] },
        }))
        .await;
    }

    /// The keys of a Node's taints.
    pub(crate) async fn taints(&self, name: &str) -> Vec<String> {
        let spec = self.node(name).await.unwrap().spec.unwrap();
        let taints = spec.taints.unwrap_or_default();
        taints.into_iter().map(|taint| taint.key).collect()
    }

    pub(crate) async fn add_service(&self, service: Value) -> Service {
        let service: Service = serde_json::from_value(service).unwrap();
        self.services()
            .create(&PostParams::default(), &service)
            .await
            .unwrap()
    }

    pub(crate) async fn patch_service(&self, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        self.services()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn patch_service_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({ "status": status }));
        self.services()
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn delete_service(&self, name: &str) {
        self.services()
            .delete(name, &DeleteParams::default())
            .await
            .unwrap();
    }

    /// The reasons of the manager's events on an object; the API server has some of its own on Services.
    pub(crate) async fn reasons(&self, object: &str) -> Vec<String> {
        let events: Api<Event> = Api::all(self.client());
        let events = events.list(&ListParams::default()).await.unwrap();
        events
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(object))
            .filter(|event| {
                event
                    .source
                    .as_ref()
                    .is_some_and(|source| source.component.is_some())
            })
            .filter_map(|event| event.reason)
            .collect()
    }

    pub(crate) async fn holder(&self) -> String {
        self.lease().await.holder_identity.unwrap_or_default()
    }

    /// The lease that leaders hold; empty if there is none.
    pub(crate) async fn lease(&self) -> LeaseSpec {
        let leases: Api<Lease> = Api::namespaced(self.plane.client(), "kube-system");
        let lease = leases.get_opt("cloud-controller-manager").await.unwrap();
        lease.and_then(|lease| lease.spec).unwrap_or_default()
    }

    /// Makes somebody else the holder of the lease in this namespace.
    pub(crate) async fn lease_to_somebody(&self, namespace: &str) {
        let leases: Api<Lease> = Api::namespaced(self.plane.client(), namespace);
        let now = jiff::Timestamp::now();
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "cloud-controller-manager" },
            "spec": {
                "holderIdentity": "somebody", "leaseDurationSeconds": 3_600, "leaseTransitions": 0,
                "acquireTime": format!("{now:.6}"), "renewTime": format!("{now:.6}"),
            },
        });
        let lease = serde_json::from_value(lease).unwrap();
        leases.create(&PostParams::default(), &lease).await.unwrap();
    }

    /// What the program asked the API server for.
    pub(crate) fn requests(&self) -> Vec<AuditEvent> {
        let mut events = self.plane.audit_events().unwrap().split_off(self.earlier);
        events.retain(|event| event.user == ACCOUNT);
        events
    }

    /// What service accounts in `kube-system` asked for, each without its prefix.
    pub(crate) fn requests_of_accounts(&self) -> Vec<AuditEvent> {
        let mut events = self.plane.audit_events().unwrap().split_off(self.earlier);
        events.retain_mut(|event| {
            let name = event.user.strip_prefix("system:serviceaccount:kube-system:");
            let name = name.map(str::to_owned);
            name.is_some_and(|name| {
                event.user = name;
                true
            })
        });
        events
    }

    /// Changes annotations of a Node over and over, so that whoever read it before has read an old version.
    pub(crate) async fn disturb(&self, name: &str) {
        for round in 0.. {
            let patch =
                Patch::Merge(json!({ "metadata": { "annotations": { "disturbed": round.to_string() } } }));
            // It may be gone.
            drop(
                self.nodes()
                    .patch_metadata(name, &PatchParams::default(), &patch)
                    .await,
            );
        }
    }

    /// Puts the taint of a Node that waits for its cloud back.
    pub(crate) async fn taint_again(&self, name: &str) {
        let taint =
            json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "effect": "NoSchedule" });
        let patch = Patch::Merge(json!({ "spec": { "taints": [taint] } }));
        self.nodes()
            .patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// The texts of the manager's events on an object.
    pub(crate) async fn messages(&self, object: &str) -> Vec<String> {
        let events: Api<Event> = Api::all(self.client());
        let events = events.list(&ListParams::default()).await.unwrap();
        events
            .into_iter()
            .filter(|event| event.involved_object.name.as_deref() == Some(object))
            .filter_map(|event| Some(format!("{}: {}", event.reason?, event.message?)))
            .collect()
    }

    /// What it changed, lease and events left aside.
    pub(crate) fn object_writes(&self) -> Vec<String> {
        self.requests()
            .iter()
            .filter(|event| !matches!(event.verb.as_str(), "get" | "list" | "watch"))
            .filter(|event| event.code.is_some_and(|code| code < 300))
            .filter(|event| !event.uri.contains("/leases") && !event.uri.contains("/events"))
            .map(|event| format!("{} {}", event.verb, event.uri))
            .collect()
    }

    /// A PUT writes other people's fields back.
    #[track_caller]
    pub(crate) fn assert_no_puts(&self) {
        let mut puts = self.requests();
        puts.retain(|it| it.verb == "update" && !it.uri.contains("/leases"));
        assert!(puts.is_empty(), "{puts:#?}");
    }

    #[track_caller]
    pub(crate) fn assert_nothing_forbidden(&self) {
        let forbidden: Vec<AuditEvent> = self
            .requests()
            .into_iter()
            .filter(|event| event.forbidden)
            .collect();
        assert!(forbidden.is_empty(), "{forbidden:#?}");
        assert!(self.requests().len() > 5, "it hardly asked for anything");
    }

    pub(crate) async fn until(&self, what: &str, mut condition: impl AsyncFnMut() -> bool) {
        let begun = Instant::now();
        while !condition().await {
            assert!(begun.elapsed() < DEADLINE, "never: {what}");
            tokio::time::sleep(until_next_look(begun)).await;
        }
    }

    /// Waits until a value does not change for some seconds: the end of everything that is under way.
    pub(crate) async fn unchanged<T: PartialEq + Debug>(&self, mut value: impl FnMut() -> T) -> T {
        let (mut last, mut since) = (value(), Instant::now());
        let begun = since;
        while since.elapsed() < Duration::from_secs(3) {
            assert!(begun.elapsed() < DEADLINE, "always new: {last:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
            let next = value();
            if next != last {
                (last, since) = (next, Instant::now());
            }
        }
        last
    }
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let parsed = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = kube::Config::from_custom_kubeconfig(parsed, &Default::default())
        .await
        .unwrap();
    kube::Client::try_from(config).unwrap()
}
