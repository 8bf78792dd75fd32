//! A real API server, a cloud on a loopback port, and the program with the rights that its Go predecessor was given.

use std::ops::Deref;
use std::path::Path;

use bowline_cloudscale_sim::kit::project::Project;
use bowline_cloudscale_sim::kit::{CloudService, Faults, Journal, Server, serve};
use bowline_control_plane::ControlPlane;
use k8s_openapi::api::core::v1::{Node, Service};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::plane::Plane;
use crate::process::program::{Running, run_word};
use crate::process::wire::Wire;

/// A simulated cloud, and how the program comes to it.
pub(crate) trait Cloud {
    /// What the former manager's program is called.
    const PROGRAM: &'static str;

    /// The role of the former manager as its manifest has it: not one verb more.
    const ROLE: &'static str;

    /// With nothing in it that a test would put there.
    fn new() -> Self;

    fn api(&self) -> CloudService;

    /// As the former manifest has them; files are written to the directory.
    fn flags(&self, url: &str, directory: &Path) -> Vec<String>;

    fn variables(&self, _url: &str) -> Vec<(String, String)> {
        Vec::new()
    }

    /// An instance that runs; answers its provider ID.
    fn add_instance(&self, name: &str) -> String;

    /// What its owner does there and sees.
    fn project(&self) -> &dyn Project;
}

/// The binding of such a role, which is the same in all manifests.
const BINDING: &str = r#"
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "system:cloud-controller-manager"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:cloud-controller-manager"}
subjects:
- {kind: ServiceAccount, name: cloud-controller-manager, namespace: kube-system}
"#;

pub(crate) struct Site<C> {
    plane: Plane,
    pub(crate) cloud: C,
    server: Server,
    directory: TempDir,
}

impl<C> Deref for Site<C> {
    type Target = Plane;

    fn deref(&self) -> &Plane {
        &self.plane
    }
}

impl<C: Cloud> Site<C> {
    /// With the former manager's role; nothing if the servers are not built.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_in(C::new()).await
    }

    /// The same in a cloud where something is already.
    pub(crate) async fn start_in(cloud: C) -> Option<Self> {
        let manifests = [C::ROLE, BINDING].concat();
        Self::assemble(cloud, async |plane, _, _| plane.apply(&manifests).await.unwrap()).await
    }

    /// With what these manifests give to the service account.
    pub(crate) async fn start_with(manifests: &str) -> Option<Self> {
        Self::assemble(C::new(), async |plane, _, _| {
            plane.apply(manifests).await.unwrap()
        })
        .await
    }

    /// With what an installation makes, which is told of the cloud and of its address.
    pub(crate) async fn assemble(
        cloud: C,
        install: impl AsyncFnOnce(&ControlPlane, &C, &str),
    ) -> Option<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let server = serve::serve(listener, cloud.api()).unwrap();
        let plane = Plane::start(async |plane| install(plane, &cloud, &server.url()).await).await?;
        Some(Self {
            server,
            directory: tempfile::tempdir().unwrap(),
            plane,
            cloud,
        })
    }

    pub(crate) fn journal(&self) -> Journal {
        self.cloud.api().journal().clone()
    }

    pub(crate) fn faults(&self) -> Faults {
        self.cloud.api().faults().clone()
    }

    /// Starts the program as the former manifest does.
    pub(crate) fn manager(&self) -> Running {
        self.manager_with(&[])
    }

    /// The same with more flags.
    pub(crate) fn manager_with(&self, more: &[&str]) -> Running {
        self.run(C::PROGRAM, self.kubeconfig(), &self.server.url(), more, &[])
    }

    /// The same with more variables as well.
    pub(crate) fn manager_in(&self, more: &[&str], variables: &[(&str, &str)]) -> Running {
        self.run(C::PROGRAM, self.kubeconfig(), &self.server.url(), more, variables)
    }

    /// The same with the rights of another service account in `kube-system`.
    pub(crate) async fn manager_as(&self, account: &str, more: &[&str]) -> Running {
        let kubeconfig = self.kubeconfig_of(account).await;
        self.run(C::PROGRAM, &kubeconfig, &self.server.url(), more, &[])
    }

    /// What the word `doctor` prints with the rights of a service account in `kube-system`.
    pub(crate) async fn doctor_as(&self, account: &str, more: &[&str]) -> String {
        let url = self.server.url();
        let kubeconfig = self.kubeconfig_of(account).await;
        let mut arguments = vec![
            "doctor".to_owned(),
            "-v=0".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        arguments.extend(self.cloud.flags(&url, self.directory.path()));
        arguments.extend(more.iter().map(|it| (*it).to_owned()));
        let variables = self.cloud.variables(&url);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run_word(C::PROGRAM, &words, &variables).await.out
    }

    /// Starts the program under a name of its own, with ways of its own to the API server and to the cloud.
    pub(crate) fn replica(&self, name: &str, kube: &Wire, cloud: &Wire, more: &[&str]) -> Running {
        let kubeconfig = self.kubeconfig_through(kube.address());
        let url = format!("http://{}", cloud.address());
        self.run(name, &kubeconfig, &url, more, &[])
    }

    fn run(
        &self,
        name: &str,
        kubeconfig: &Path,
        cloud_url: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Running {
        let mut arguments = vec![
            "--v=4".to_owned(),
            "--secure-port=0".to_owned(),
            format!("--kubeconfig={}", kubeconfig.display()),
        ];
        arguments.extend(self.cloud.flags(cloud_url, self.directory.path()));
        arguments.extend(more.iter().map(|it| (*it).to_owned()));
        let more = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let variables: Vec<_> = self.cloud.variables(cloud_url).into_iter().chain(more).collect();
        Running::start(name, &arguments, &variables)
    }

    /// A wire to the API server, and one to the cloud.
    pub(crate) async fn wires(&self) -> (Wire, Wire) {
        let address = self.url().rsplit('/').next().unwrap().parse().unwrap();
        (Wire::to(address).await, Wire::to(self.server.address()).await)
    }

    /// An instance, and its Node whose kubelet has just registered. Answers the instance's provider ID.
    pub(crate) async fn join(&self, name: &str) -> String {
        let provider_id = self.cloud.add_instance(name);
        self.register(name).await;
        provider_id
    }

    /// The Node, once it is known whose it is and nothing is kept away from it any more.
    pub(crate) async fn initialised(&self, manager: &Running, name: &str) -> Node {
        manager
            .until("the node is initialised", async || {
                let spec = self.node(name).await.unwrap().spec.unwrap();
                spec.provider_id.is_some() && spec.taints.unwrap_or_default().is_empty()
            })
            .await;
        self.node(name).await.unwrap()
    }

    /// The Service's addresses, once they are in its status.
    pub(crate) async fn served(&self, manager: &Running, name: &str) -> Vec<String> {
        manager
            .until("the address", async || {
                !addresses(&self.service(name).await.unwrap()).is_empty()
            })
            .await;
        addresses(&self.service(name).await.unwrap())
    }

    pub(crate) async fn gone(&self, manager: &Running, name: &str) {
        manager
            .until("the service is gone", async || self.service(name).await.is_none())
            .await;
    }

    /// Waits for an event of this reason.
    pub(crate) async fn told(&self, manager: &Running, object: &str, reason: &str) {
        manager
            .until(reason, async || {
                self.reasons(object).await.contains(&reason.to_owned())
            })
            .await;
    }

    #[track_caller]
    pub(crate) fn assert_sound(&self, what: &str) {
        assert_eq!(self.cloud.project().violations(), Vec::<String>::new(), "{what}");
    }
}

/// Asks the program to stop, which it does at once and without complaint.
pub(crate) async fn ended(manager: &mut Running) {
    manager.signal(Signal::TERM);
    assert_eq!(
        manager.ended().await.0.code(),
        Some(0),
        "{}",
        manager.log().join("\n")
    );
}

/// In the Service's status.
pub(crate) fn addresses(service: &Service) -> Vec<String> {
    let status = service.status.as_ref();
    let ingress = status.and_then(|it| it.load_balancer.as_ref()?.ingress.clone());
    ingress
        .unwrap_or_default()
        .into_iter()
        .filter_map(|entry| entry.ip)
        .collect()
}

/// A Service of two ports.
pub(crate) fn web() -> Value {
    named("web")
}

/// The same under another name.
pub(crate) fn named(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": name },
        "spec": { "type": "LoadBalancer", "ports": [
            { "name": "web", "protocol": "TCP", "port": 8080 },
            { "name": "admin", "protocol": "TCP", "port": 9000 },
        ] },
    })
}
