//! Beside a Go manager: two clouds in one cluster, each with its own manager, and neither touches what is the other's.

use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use bowline_base::go::{GoProgram, Version};
use bowline_base::server::in_ci;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::cloudscale::Site;
use super::site::{Cloud as _, addresses, named};

/// The class of ours; the Go manager has all Services without one.
const CLASS: &str = "example.com/ours";

/// All rights, so that nothing it does to ours fails for want of some.
const RIGHTS: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: peer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
- {kind: ServiceAccount, name: peer, namespace: kube-system}
"#;

/// The Go manager, and what its cloud was asked: method and object.
struct Peer {
    _child: Child,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Peer {
    /// Nothing if it is not built.
    async fn start(site: &Site, instances: &Path) -> Option<Self> {
        let program = GoProgram::peer(Version::wanted().unwrap());
        if !program.is_built() {
            assert!(!in_ci(), "the Go manager is not built");
            return None;
        }
        let kubeconfig = site.kubeconfig_of("peer").await;
        let mut child = Command::new(program.path())
            .args(["--cloud-provider=reference", "--configure-cloud-routes=false"])
            .args(["--secure-port=0", "--node-monitor-period=1s"])
            .arg(format!("--cloud-config={}", instances.display()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let sink = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let asked = line.strip_prefix("cloud: ").map(str::to_owned);
                sink.lock().unwrap().extend(asked);
            }
        });
        Some(Self { _child: child, asked })
    }

    fn asked(&self, what: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|it| *it == what).count()
    }
}

/// What an account changed, lease and events left aside: `nodes/a`, `services/theirs`.
fn changed_by(site: &Site, account: &str) -> Vec<String> {
    let mut requests = site.requests_of_accounts();
    requests.retain(|it| it.user == account && !matches!(it.verb.as_str(), "get" | "list" | "watch"));
    let object = |uri: &str| {
        let path = uri
            .split('?')
            .next()
            .unwrap_or_default()
            .trim_end_matches("/status");
        let parts: Vec<&str> = path.rsplit('/').take(2).collect();
        [parts[1], parts[0]].join("/")
    };
    let mut objects: Vec<String> = requests.iter().map(|it| object(&it.uri)).collect();
    objects.retain(|it| it.starts_with("nodes/") || it.starts_with("services/"));
    objects.sort();
    objects.dedup();
    objects
}

fn of_ours(name: &str) -> Value {
    let mut service = named(name);
    service["spec"]["loadBalancerClass"] = json!(CLASS);
    service
}

#[tokio::test]
async fn a_go_manager_of_another_cloud_and_ours_leave_each_other_s_nodes_and_services_alone() {
    let Some(site) = Site::start().await else {
        return;
    };
    site.apply(RIGHTS).await;
    site.allowed_as("peer").await;
    let directory = tempfile::tempdir().unwrap();
    let instances = directory.path().join("instances");
    std::fs::write(&instances, "b b2\n").unwrap();
    let Some(peer) = Peer::start(&site, &instances).await else {
        return;
    };
    let class = format!("--load-balancer-class={CLASS}");
    let manager = site.manager_with(&[
        "--feature-gates=CloudProviderNodeOwnership=true",
        &class,
        "--load-balancer-without-class=false",
        "--leader-elect-resource-name=ours",
        "--node-monitor-period=1s",
    ]);

    // Nodes come without a provider ID, so each manager looks for all of them.
    site.join("a").await;
    site.join("a2").await;
    site.register("b").await;
    site.register("b2").await;
    for (node, scheme) in [
        ("a", "cloudscale://"),
        ("a2", "cloudscale://"),
        ("b", "reference://"),
        ("b2", "reference://"),
    ] {
        let spec = site.initialised(&manager, node).await.spec.unwrap();
        assert!(spec.provider_id.unwrap().starts_with(scheme), "{node}");
    }
    site.add_service(of_ours("ours")).await;
    site.add_service(named("theirs")).await;
    site.served(&manager, "ours").await;
    assert_eq!(site.served(&manager, "theirs").await, ["203.0.113.1"]);

    // All Nodes are lost sight of; the instances of two are gone.
    assert!(site.cloud.project().delete_instance("a"));
    std::fs::write(&instances, "b2\n").unwrap();
    let before = peer.asked("InstanceExists a2");
    for node in ["a", "a2", "b", "b2"] {
        site.set_ready(node, "Unknown").await;
    }
    for node in ["a", "b"] {
        manager
            .until("the node of the instance is gone", async || {
                site.node(node).await.is_none()
            })
            .await;
    }
    manager
        .until("theirs has looked at ours since", async || {
            peer.asked("InstanceExists a2") > before + 3
        })
        .await;
    for node in ["a2", "b2"] {
        assert!(site.node(node).await.is_some(), "{node}");
    }
    let ours = ["nodes/a", "nodes/a2", "services/ours"];
    let theirs = ["nodes/b", "nodes/b2", "services/theirs"];
    assert_eq!(changed_by(&site, "cloud-controller-manager"), ours);
    assert_eq!(changed_by(&site, "peer"), theirs);
    let asked = peer.asked.lock().unwrap().join("\n");
    assert!(!asked.contains("default/ours"), "{asked}");
    for node in ["b", "b2"] {
        let told = site.reasons(node).await;
        let is_theirs = |it: &String| ["Synced", "DeletingNode"].contains(&it.as_str());
        assert!(told.iter().all(is_theirs), "{node}: {told:?}");
    }

    for service in ["ours", "theirs"] {
        assert!(!addresses(&site.service(service).await.unwrap()).is_empty());
        site.delete_service(service).await;
        site.gone(&manager, service).await;
    }
    // A Go manager takes the finalizer off whatever is being deleted, whoever serves it. What it was there for is done all the same.
    let cleaned_up = async || site.cloud.load_balancers().is_empty();
    manager.until("the load balancer is gone", cleaned_up).await;
    assert_eq!(changed_by(&site, "cloud-controller-manager"), ours);
    site.assert_sound("after both are gone");
    site.assert_nothing_forbidden();
}
