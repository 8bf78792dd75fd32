//! Commands that are told nothing but where the cluster is: all else is taken from the manager that is deployed there.

use std::io::Read as _;
use std::process::Output;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::cluster::{Cluster, TOKEN};

/// A cluster with a Service, and with a manifest of the manager of which no pod runs.
async fn with_manifest() -> Cluster {
    let cluster = Cluster::start().await;
    cluster.add_service("web");
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloudscale", "namespace": "kube-system" },
        "data": { "access-token": BASE64_STANDARD.encode(TOKEN) },
    }));
    let token = json!({ "secretKeyRef": { "name": "cloudscale", "key": "access-token" } });
    cluster.apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
            "name": "cloudscale-cloud-controller-manager", "namespace": "kube-system",
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"password\":\"{TOKEN}\"}}") },
        },
        "spec": {
            "selector": { "matchLabels": { "app": "ccm" } },
            "template": { "metadata": { "labels": { "app": "ccm" } }, "spec": { "containers": [{
                "name": "manager", "image": "registry.example/bowline:v1",
                "args": ["--cloud-provider=cloudscale", "--allow-untagged-cloud", "--cluster-name=lab", "--v=6"],
                "env": [
                    { "name": "CLOUDSCALE_ACCESS_TOKEN", "valueFrom": token },
                    { "name": "CLOUDSCALE_API_URL", "value": cluster.cloud_url },
                ],
            }] } },
        },
    }));
    cluster
}

async fn run(cluster: &Cluster, words: &[&str]) -> Output {
    let kubeconfig = format!("--kubeconfig={}", cluster.kubeconfig.display());
    let words: Vec<String> = words
        .iter()
        .copied()
        .chain([kubeconfig.as_str()])
        .map(str::to_owned)
        .collect();
    tokio::task::spawn_blocking(move || {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        super::program::run_as("kubectl-bowline", &words, &[])
    })
    .await
    .unwrap()
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let told = format!("{}--- stderr\n{}", text(&output.stdout), text(&output.stderr));
    assert!(!told.contains(TOKEN), "{told}");
    told
}

#[tokio::test]
async fn with_a_kubeconfig_alone_the_deployed_manager_says_the_rest() {
    let cluster = with_manifest().await;
    let planned = run(&cluster, &["plan"]).await;
    let text = told(&planned);
    assert_eq!(planned.status.code(), Some(2), "{text}");
    assert!(text.contains("default/web: "), "{text}");
    let taken =
        "from Deployment kube-system/cloudscale-cloud-controller-manager: --cloud-provider=cloudscale";
    assert!(text.contains(taken), "{text}");
    assert!(
        text.contains("CLOUDSCALE_ACCESS_TOKEN from Secret cloudscale"),
        "{text}"
    );
    assert!(!text.contains("--v=6"), "{text}");

    let explained = run(&cluster, &["explain", "service/default/web"]).await;
    assert!(
        told(&explained).contains("service/default/web: "),
        "{}",
        told(&explained)
    );
    let none = run(&cluster, &["orphans"]).await;
    assert_eq!(none.status.code(), Some(0), "{}", told(&none));
    assert!(
        told(&none).contains("No orphans of cluster lab"),
        "{}",
        told(&none)
    );
}

#[tokio::test]
async fn without_a_deployed_manager_the_flags_are_asked_for() {
    let cluster = Cluster::start().await;
    let planned = run(&cluster, &["plan"]).await;
    assert_eq!(planned.status.code(), Some(1));
    let text = told(&planned);
    assert!(
        text.contains("no cloud controller manager is deployed in this cluster"),
        "{text}"
    );
    // What can be told all the same is told.
    let doctor = run(&cluster, &["doctor"]).await;
    assert!(told(&doctor).contains("kubernetes"), "{}", told(&doctor));
}

#[tokio::test]
async fn a_support_bundle_has_everything_but_secrets() {
    let cluster = with_manifest().await;
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "noted", "namespace": "default", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"env\":\"{TOKEN}\"}}"),
            "example.com/note": TOKEN,
        } },
        "spec": { "type": "ClusterIP", "ports": [{ "port": 80 }] },
    }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.tar.gz");
    let bundled = run(
        &cluster,
        &["support-bundle", &format!("--file={}", file.display())],
    )
    .await;
    let text = told(&bundled);
    assert_eq!(bundled.status.code(), Some(0), "{text}");
    let mut archive = String::new();
    let packed = std::fs::read(&file).unwrap();
    flate2::read::GzDecoder::new(&*packed)
        .read_to_string(&mut archive)
        .unwrap();
    assert!(!archive.contains(TOKEN) && !archive.contains(&BASE64_STANDARD.encode(TOKEN)));
    for part in [
        "LISTING.txt",
        "version.txt",
        "doctor.json",
        "plan.txt",
        "services.json",
        "nodes.json",
        "events.json",
        "CLOUDSCALE_ACCESS_TOKEN: from Secret cloudscale",
        "--cluster-name=lab",
        "example.com/note",
    ] {
        assert!(archive.contains(part), "{part}\n{archive}");
    }
}
