//! The provider for CloudStack from its start: the file, the first questions, the keys.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;

use bowline_cloudstack_sim::kit::{Clock, Server, serve_connection};
use bowline_cloudstack_sim::{CloudstackSim, VmSpec};
use bowline_kube_api::{KubeApi, ServerHandle};
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::cluster::{TOKEN, free_port};
use super::program::{Running, run_as};

const NAME: &str = "cloudstack-ccm";

/// A file of this text.
fn file(directory: &TempDir, text: &str) -> String {
    let path = directory.path().join("cloud-config");
    std::fs::write(&path, text).unwrap();
    format!("--cloud-config={}", path.display())
}

/// A file that leads to an API on this port, with further lines.
fn config(port: u16, more: &str) -> String {
    format!(
        "; made by hand\r\n[GLOBAL]\r\nAPI-url = http://127.0.0.1:{port}/client/api # not appended to\r\n\
         Api-Key = {}\r\nSECRET-KEY = \"{}\"\r\n{more}",
        CloudstackSim::API_KEY,
        CloudstackSim::SECRET_KEY
    )
}

/// What a start that ends at once says, and that it is no success.
fn complaint(output: &Output) -> String {
    assert!(!output.status.success());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A CloudStack that takes none of the keys in this file.
pub(crate) struct Refusing {
    pub(crate) config: PathBuf,
    _server: Server,
    _directory: TempDir,
}

impl Refusing {
    pub(crate) async fn start() -> Self {
        let sim = CloudstackSim::builder().clock(Clock::system()).build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let directory = tempfile::tempdir().unwrap();
        let text = format!(
            "[Global]\napi-url = http://127.0.0.1:{port}/client/api\napi-key = {}\nsecret-key = {TOKEN}\n",
            CloudstackSim::API_KEY
        );
        let config = directory.path().join("cloud-config");
        std::fs::write(&config, text).unwrap();
        Self {
            config,
            _server: sim.serve(listener).unwrap(),
            _directory: directory,
        }
    }
}

struct World {
    sim: CloudstackSim,
    api: KubeApi,
    kubeconfig: String,
    port: u16,
    _api_server: ServerHandle,
    directory: TempDir,
}

impl World {
    async fn new() -> Self {
        let api = KubeApi::builder().build();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let api_server = api.serve(listener).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let kubeconfig = directory.path().join("kubeconfig");
        std::fs::write(&kubeconfig, KubeApi::kubeconfig(api_server.address())).unwrap();
        Self {
            sim: CloudstackSim::builder().clock(Clock::system()).build(),
            api,
            kubeconfig: format!("--kubeconfig={}", kubeconfig.display()),
            port: free_port(),
            _api_server: api_server,
            directory,
        }
    }

    async fn serve(&self) -> Server {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        self.sim.serve(listener).unwrap()
    }

    fn start(&self, more: &str, flags: &[&str]) -> Running {
        let mut arguments = vec![
            // The image's entry point says it, and the manifest once more.
            "--cloud-provider".to_owned(),
            "external-cloudstack".to_owned(),
            "--cloud-provider=external-cloudstack".to_owned(),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            self.kubeconfig.clone(),
            file(&self.directory, &config(self.port, more)),
        ];
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        Running::start(NAME, &arguments, &[])
    }

    /// A virtual machine whose kubelet has just registered.
    fn join(&self, name: &str) -> String {
        let id = self.sim.add_vm(VmSpec::new(name));
        let taint = json!({
            "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule"
        });
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        self.api.apply_json(node).unwrap();
        id
    }

    async fn until_initialized(&self, manager: &Running, name: &str, id: &str) {
        let expected = json!(format!("external-cloudstack://{id}"));
        let is_done = async || {
            let node = self.api.object("Node", "", name).unwrap();
            node["spec"]["providerID"] == expected
                && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
        };
        manager.until("the node is initialised", is_done).await;
    }
}

#[tokio::test]
async fn it_runs_with_a_file_in_any_form_and_shows_no_key_at_any_level() {
    let world = World::new().await;
    let _server = world.serve().await;
    let id = world.join("pool-a-7");
    let mut manager = world.start("", &["--v=9"]);
    world.until_initialized(&manager, "pool-a-7", &id).await;
    manager.signal(Signal::TERM);
    let (status, _) = manager.ended().await;
    assert_eq!(status.code(), Some(0));
    let log = manager.log().join("\n");
    for secret in [CloudstackSim::API_KEY, CloudstackSim::SECRET_KEY, "signature="] {
        assert!(!log.contains(secret), "{secret}");
    }
    let labels = &world.api.object("Node", "", "pool-a-7").unwrap()["metadata"]["labels"];
    assert_eq!(labels["node.kubernetes.io/instance-type"], "Medium4c8g");
    assert_eq!(labels["topology.kubernetes.io/zone"], "Zurich-1");
}

#[tokio::test]
async fn a_server_that_is_down_at_the_start_is_used_when_it_is_up() {
    let world = World::new().await;
    let id = world.join("pool-a-7");
    // Manifests of that time have such flags.
    let manager = world.start(
        "",
        &["--logtostderr=true", "--alsologtostderr", "--stderrthreshold=2"],
    );
    manager.until_logged("starting all the same").await;
    let _server = world.serve().await;
    world.until_initialized(&manager, "pool-a-7", &id).await;
}

#[tokio::test]
async fn wrong_keys_and_a_wrong_project_end_the_start() {
    let world = World::new().await;
    let _server = world.serve().await;
    for (lines, expected) in [
        (
            "secret-key = wrong\n",
            "could not init cloud provider \"external-cloudstack\": CloudStack API error 401 (CSExceptionErrorCode: \
             0): unable to verify user credentials and/or request signature",
        ),
        (
            "project-id = nowhere\n",
            "these keys see no project of the name \"nowhere\"",
        ),
    ] {
        let mut manager = world.start(lines, &[]);
        let (status, _) = manager.ended().await;
        let log = manager.log().join("\n");
        assert_eq!(status.code(), Some(255), "{log}");
        assert!(log.contains(expected), "{log}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_ends_the_start() {
    let world = World::new().await;
    let _server = world.serve().await;
    let line = format!("api-url = https://127.0.0.1:{}/client/api\n", world.port);
    let mut manager = world.start(&line, &[]);
    let (status, _) = manager.ended().await;
    let log = manager.log().join("\n");
    assert!(!status.success(), "{log}");
    assert!(log.contains("cannot connect securely"), "{log}");
}

/// Serves the API to whoever speaks TLS, with a certificate that nobody signed.
fn serve_secure(sim: &CloudstackSim, listener: TcpListener) -> JoinHandle<()> {
    let certified = rcgen::generate_simple_self_signed(["cloud.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let (acceptor, service) = (TlsAcceptor::from(Arc::new(config)), sim.service());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, service) = (acceptor.clone(), service.clone());
            tokio::spawn(async move {
                // Who does not trust the certificate goes away.
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve_connection(stream, service).await;
                }
            });
        }
    })
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_ends_the_start_unless_the_check_is_off() {
    let world = World::new().await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, world.port))
        .await
        .unwrap();
    let server = serve_secure(&world.sim, listener);
    let id = world.join("pool-a-7");
    let lines = format!("api-url = https://127.0.0.1:{}/client/api\n", world.port);
    let mut refusing = world.start(&format!("{lines}ssl-no-verify = off\n"), &[]);
    let (status, _) = refusing.ended().await;
    let log = refusing.log().join("\n");
    assert!(!status.success(), "{log}");
    assert!(log.contains("cannot connect securely"), "{log}");
    assert!(world.sim.journal().is_empty());
    let believing = world.start(&format!("{lines}ssl-no-verify = on\n"), &[]);
    world.until_initialized(&believing, "pool-a-7", &id).await;
    server.abort();
}

/// Where the cluster is has to be said before anything else is looked at.
const MASTER: &str = "--master=http://127.0.0.1:9";

#[test]
fn what_is_wrong_with_flags_and_file_ends_the_start_before_anything_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let run = |provider: &str, text: &str| {
        let arguments = [
            MASTER,
            &format!("--cloud-provider={provider}"),
            &file(&directory, text),
        ];
        complaint(&run_as(NAME, &arguments, &[]))
    };
    let good = config(1, "");
    for (provider, text, expected) in [
        (
            "cloudstack",
            good.as_str(),
            "Cloud provider could not be initialized: unknown cloud provider \"cloudstack\"",
        ),
        (
            "External-CloudStack",
            &good,
            "unknown cloud provider \"External-CloudStack\"",
        ),
        ("external", &good, "Cloud provider is nil"),
        (
            "external-cloudstack",
            "[Global]\nretries = 3\n",
            "could not init cloud provider \"external-cloudstack\": could not parse cloud provider config: can't store \
             data at section \"Global\", variable \"retries\" (line 2)",
        ),
    ] {
        let text = run(provider, text);
        assert!(text.contains(expected), "{text}");
    }
    let without = complaint(&run_as(
        NAME,
        &[MASTER, "--cloud-provider=external-cloudstack"],
        &[],
    ));
    assert!(without.contains("no cloud provider config given"), "{without}");
    let missing = [
        MASTER,
        "--cloud-provider=external-cloudstack",
        "--cloud-config=/nonexistent/cloud-config",
    ];
    let missing = complaint(&run_as(NAME, &missing, &[]));
    let expected = "Couldn't open cloud provider configuration /nonexistent/cloud-config: ";
    assert!(missing.contains(expected), "{missing}");
}
