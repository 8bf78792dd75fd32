//! An API server and a cloud on loopback ports, and the program between them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bowline_cloudscale_sim::kit::Server as CloudServer;
use bowline_cloudscale_sim::{
    Access, Builder as CloudBuilder, CloudscaleSim, InterfaceSpec, ServerSpec, Tags,
};
use bowline_kube_api::{KubeApi, Permit, ServerHandle, User};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::AuthInfo;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::program::{Running, Told, run_word};

/// Must appear in no line.
pub(crate) const TOKEN: &str = "Zw8uKq2mN5xTfB7yRj4LsE3d";

/// The manager's own at the API server.
const KUBE_TOKEN: &str = "manager";

/// Of somebody who may read the metrics.
pub(crate) const SCRAPER: &str = "scraper";

/// Both servers, in this process.
pub(crate) struct Cluster {
    pub(crate) api: KubeApi,
    pub(crate) sim: CloudscaleSim,
    pub(crate) kubeconfig: PathBuf,
    pub(crate) cloud_url: String,
    pub(crate) port: u16,
    api_server: Option<ServerHandle>,
    _cloud_server: CloudServer,
    _directory: TempDir,
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        Self::with(CloudscaleSim::builder()).await
    }

    /// With a cloud of these settings.
    pub(crate) async fn with(cloud: CloudBuilder) -> Self {
        let account = User::service_account("kube-system", "cloud-controller-manager", "");
        let api = KubeApi::builder()
            .permit(Permit::new(&account.name, &["*"], "*", &["*"]))
            .permit(Permit::new("system:scraper", &["get"], "", &["/metrics"]))
            .token(KUBE_TOKEN, account)
            .token(SCRAPER, User::new("system:scraper", &[]))
            .build();
        let sim = cloud.token(TOKEN, Access::ReadWrite).build();
        let api_server = api.serve(listener().await).unwrap();
        let cloud_server = sim.serve(listener().await).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        let text = KubeApi::kubeconfig(api_server.address())
            .replace("user: {}", &format!("user: {{token: {KUBE_TOKEN}}}"));
        std::fs::write(&kubeconfig, text).unwrap();
        Self {
            cloud_url: cloud_server.url(),
            port: free_port(),
            api,
            sim,
            kubeconfig,
            api_server: Some(api_server),
            _cloud_server: cloud_server,
            _directory: directory,
        }
    }

    /// Ends the API server; what it held stays.
    pub(crate) async fn stop_api_server(&mut self) {
        self.api_server.take().expect("it runs").stop().await;
    }

    /// Has the kubeconfig name an address where no API server is, and returns it.
    pub(crate) fn point_at_nobody(&self) -> SocketAddr {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let text = std::fs::read_to_string(&self.kubeconfig).unwrap();
        let server = text.lines().find(|line| line.contains("server:")).unwrap();
        let text = text.replace(server.trim(), &format!("server: http://{address}"));
        std::fs::write(&self.kubeconfig, text).unwrap();
        address
    }

    /// The flags that every start needs.
    pub(crate) fn arguments(&self, more: &[&str]) -> Vec<String> {
        let mut all = vec![
            "--cloud-provider=cloudscale".to_owned(),
            "--allow-untagged-cloud".to_owned(),
            self.at(),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.port),
            // Shorter than by default, so that no test waits for 15 s; the proportions are the same.
            "--leader-elect-lease-duration=6s".to_owned(),
            "--leader-elect-renew-deadline=4s".to_owned(),
            "--leader-elect-retry-period=500ms".to_owned(),
        ];
        all.extend(more.iter().map(|it| (*it).to_owned()));
        all
    }

    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        vec![
            ("CLOUDSCALE_ACCESS_TOKEN".to_owned(), TOKEN.to_owned()),
            ("CLOUDSCALE_API_URL".to_owned(), self.cloud_url.clone()),
        ]
    }

    /// Starts the manager with these flags besides the usual ones.
    pub(crate) fn manager(&self, more: &[&str]) -> Running {
        Running::start(
            "cloud-controller-manager",
            &self.arguments(more),
            &self.variables(),
        )
    }

    /// Runs a word beside the servers of this process, with these flags and those that say where the cluster and the cloud are.
    pub(crate) async fn word(&self, words: &[&str]) -> Told {
        let cloud = [
            "--cloud-provider=cloudscale",
            "--allow-untagged-cloud",
            &self.at(),
        ];
        self.word_with(&[words, &cloud[..]].concat(), &self.variables())
            .await
    }

    /// The same with no flags and variables but these.
    pub(crate) async fn word_with(&self, words: &[&str], variables: &[(String, String)]) -> Told {
        let told = run_word("cloud-controller-manager", words, variables).await;
        told.is_silent_on(&[TOKEN, &TOKEN[4..]]);
        told
    }

    /// The flag that says where the cluster is.
    pub(crate) fn at(&self) -> String {
        format!("--kubeconfig={}", self.kubeconfig.display())
    }

    /// The Service of the API server, which makes the cluster known by its UID.
    pub(crate) fn add_uid(&self) -> String {
        self.apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": "kubernetes", "namespace": "default" },
            "spec": { "type": "ClusterIP", "ports": [{ "port": 443 }] },
        }));
        let service = self.api.object("Service", "default", "kubernetes").unwrap();
        service["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    /// A load balancer in the cloud of a Service that does not exist, with this mark of its cluster.
    pub(crate) fn add_orphan(&self, uid: &str, cluster: (&str, &str)) {
        let tags = [
            ("k8s-service-uid", uid),
            ("k8s-service-name", "shop/gone"),
            cluster,
        ];
        let tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let name = format!("k8s-service-{uid}");
        self.sim.add_load_balancer(&name, Tags::from(tags));
    }

    /// A server, and the Node that was initialised for it.
    pub(crate) fn add_node(&self, name: &str) {
        let server = self.sim.add_server(ServerSpec {
            interfaces: vec![InterfaceSpec::Private],
            ..ServerSpec::new(name)
        });
        self.apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "providerID": format!("cloudscale://{server}") },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
    }

    /// A server, and a Node that waits for it to be looked up.
    pub(crate) fn join(&self, name: &str) {
        self.sim.add_server(ServerSpec::new(name));
        let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
        self.apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
    }

    pub(crate) fn add_service(&self, name: &str) {
        self.apply(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "default" },
            "spec": { "type": "LoadBalancer", "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] },
        }));
    }

    pub(crate) fn apply(&self, object: Value) {
        self.api.apply_json(object).expect("a valid object");
    }

    pub(crate) fn is_initialized(&self, name: &str) -> bool {
        let node = self.api.object("Node", "", name).expect("the node is there");
        node["spec"]["providerID"].is_string() && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
    }

    pub(crate) fn has_address(&self, name: &str) -> bool {
        let service = self
            .api
            .object("Service", "default", name)
            .expect("the service is there");
        service["status"]["loadBalancer"]["ingress"][0]["ip"].is_string()
    }

    pub(crate) async fn initialized(&self, manager: &Running, name: &str) {
        manager
            .until("the node is initialised", async || self.is_initialized(name))
            .await;
    }

    pub(crate) async fn addressed(&self, manager: &Running, name: &str) {
        manager
            .until("the service has an address", async || self.has_address(name))
            .await;
    }

    pub(crate) fn holder(&self) -> Option<String> {
        let lease = self
            .api
            .object("Lease", "kube-system", "cloud-controller-manager")?;
        Some(
            lease["spec"]["holderIdentity"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    }

    /// Asks the program's own port; nothing if nobody answers.
    pub(crate) async fn ask(&self, path: &str) -> Option<(u16, String)> {
        self.ask_as(None, path).await
    }

    /// The same with a bearer token.
    pub(crate) async fn ask_as(&self, token: Option<&str>, path: &str) -> Option<(u16, String)> {
        ask(self.port, token, path).await
    }
}

/// Asks a program's secure port, with a bearer token or without; nothing if nobody answers.
pub(crate) async fn ask(port: u16, token: Option<&str>, path: &str) -> Option<(u16, String)> {
    let mut request = http::Request::get(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    send(port, AuthInfo::default(), request.body(Body::empty()).unwrap()).await
}

/// The same with the client certificate of a kubeconfig.
pub(crate) async fn ask_showing(port: u16, identity: &AuthInfo, path: &str) -> Option<(u16, String)> {
    let request = http::Request::get(path).body(Body::empty()).unwrap();
    send(port, identity.clone(), request).await
}

async fn send(port: u16, identity: AuthInfo, request: http::Request<Body>) -> Option<(u16, String)> {
    let mut config = kube::Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    config.auth_info = identity;
    config.accept_invalid_certs = true; // it is signed by itself
    config.connect_timeout = Some(Duration::from_secs(5));
    let client = kube::Client::try_from(config).unwrap();
    let answer = client.send(request).await.ok()?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.ok()?.to_bytes();
    Some((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let [port] = bowline_base::server::free_ports().unwrap();
    port
}
