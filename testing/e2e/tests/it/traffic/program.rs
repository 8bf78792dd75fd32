//! The command as a person calls it, beside the manager and a simulated cloud whose load balancers carry traffic.

use std::time::Duration;

use bowline_cloudscale_sim::{CloudscaleSim, InterfaceSpec, ServerSpec};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::site::{Behaviour, Site, block};
use crate::process::cluster::Cluster;
use crate::process::program::{Running, Told, run_word};

const NAME: &str = "cloud-controller-manager";

/// Two Nodes with their kubelets and kube-proxies, and a cloud.
async fn cluster() -> (Cluster, Site) {
    let block = block();
    let range = |third: u8| format!("127.{block}.{third}.0/24").parse().unwrap();
    let cloud = CloudscaleSim::builder()
        .data_plane()
        .private_range(range(0))
        .vip_range(range(1));
    let cluster = Cluster::with(cloud).await;
    for name in ["worker-1", "worker-2"] {
        let server = cluster.sim.add_server(ServerSpec {
            interfaces: vec![InterfaceSpec::Private],
            ..ServerSpec::new(name)
        });
        let taint = json!({ "key": "node.cloudprovider.kubernetes.io/uninitialized", "value": "true", "effect": "NoSchedule" });
        cluster.apply(json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
            "spec": { "providerID": format!("cloudscale://{server}"), "taints": [taint] },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        }));
    }
    let site = Site::beside(cluster.api.clone(), Behaviour::default(), block);
    (cluster, site)
}

fn words(cluster: &Cluster, more: &[&str]) -> Vec<String> {
    let mut all = vec!["check".to_owned(), "traffic".to_owned()];
    all.push("--cloud-provider=cloudscale".to_owned());
    all.push("--allow-untagged-cloud".to_owned());
    all.push(cluster.at());
    all.extend(["--port=8080", "--timeout=60s"].map(str::to_owned));
    all.extend(more.iter().map(|it| (*it).to_owned()));
    all
}

async fn check(cluster: &Cluster, more: &[&str]) -> Told {
    let words = words(cluster, more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run_word(NAME, &words, &cluster.variables()).await
}

fn is_clean(cluster: &Cluster) -> bool {
    let is_ours = |it: &Value| {
        it["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .starts_with("bowline-")
    };
    let kinds = ["Namespace", "Service", "Deployment", "Pod"];
    let left = kinds
        .iter()
        .flat_map(|kind| cluster.api.objects(kind))
        .any(|it| is_ours(&it));
    !left && cluster.sim.load_balancers().is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traffic_comes_through_a_simulated_cloud_and_nothing_is_left_there() {
    let (cluster, _site) = cluster().await;
    let asked = check(&cluster, &[]).await;
    let parts = [
        "This will make in namespace bowline-traffic-",
        "create load balancer",
        "--yes makes it without a question",
    ];
    asked.says(1, &parts);
    assert!(cluster.api.journal().writes().is_empty());

    let manager = cluster.manager(&["--secure-port=0"]);
    for name in ["worker-1", "worker-2"] {
        cluster.initialized(&manager, name).await;
    }
    let tried = check(&cluster, &["--yes", "--output=json"]).await;
    let value = tried.json();
    assert_eq!(value["schema"], "bowline/check-traffic/v1");
    let checks = value["checks"].as_array().unwrap();
    let all_well = checks.iter().all(|check| check["outcome"] == "ok");
    assert!(all_well && checks.len() == 12, "{}", tried.all());
    assert_eq!(checks.last().unwrap()["id"], "traffic.cloud-gone");
    tried.says(0, &[]);
    assert!(is_clean(&cluster));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_removes_what_was_made_and_a_second_one_says_what_is_left() {
    let (cluster, site) = cluster().await;
    let manager = cluster
        .manager(&["--secure-port=0"])
        .patiently(Duration::from_secs(60));
    let mut once = Running::start(NAME, &words(&cluster, &["--yes"]), &cluster.variables());
    once.until("there is a load balancer", async || {
        !cluster.sim.load_balancers().is_empty()
    })
    .await;
    once.signal(Signal::INT);
    let (status, _) = once.ended().await;
    assert_eq!(status.code(), Some(1), "{:?}", once.log());
    assert!(is_clean(&cluster), "{:?}", once.log());

    // Nobody runs that lets go of the Service.
    drop(manager);
    site.change(|it| {
        it.balances = true;
        it.gives_no_address = true;
        it.keeps = true;
    });
    let mut twice = Running::start(NAME, &words(&cluster, &["--yes"]), &cluster.variables());
    let services = || {
        cluster
            .api
            .objects("Service")
            .into_iter()
            .filter(|it| it["metadata"]["finalizers"].is_array())
    };
    twice
        .until("there is a Service", async || services().count() > 0)
        .await;
    twice.signal(Signal::INT);
    twice.until_logged("interrupted: what was made is removed").await;
    twice.signal(Signal::INT);
    let (status, _) = twice.ended().await;
    assert_eq!(status.code(), Some(1));
    let left = twice.log().join("\n");
    assert!(
        left.contains("Remove it with: kubectl delete namespace bowline-traffic-"),
        "{left}"
    );
}
