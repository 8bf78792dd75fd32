//! Commands that are told nothing but where the cluster is: all else is taken from the manager that is deployed there.

use std::io::Read as _;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bowline_kube_api::{Effect, Fault, Status};
use rustix::process::Signal;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::cluster::{Cluster, TOKEN};
use super::program::{DEADLINE, Running, Told, run_word};

/// A cluster with a Service, and with a manifest of the manager of which no pod runs.
async fn with_manifest() -> Cluster {
    with_manifest_and(&[]).await
}

/// The same, with these variables besides.
async fn with_manifest_and(others: &[serde_json::Value]) -> Cluster {
    let cluster = Cluster::start().await;
    cluster.add_service("web");
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloudscale", "namespace": "kube-system" },
        "data": { "access-token": BASE64_STANDARD.encode(TOKEN) },
    }));
    let token = json!({ "secretKeyRef": { "name": "cloudscale", "key": "access-token" } });
    let mut env = vec![
        json!({ "name": "CLOUDSCALE_ACCESS_TOKEN", "valueFrom": token }),
        json!({ "name": "CLOUDSCALE_API_URL", "value": cluster.cloud_url }),
    ];
    env.extend_from_slice(others);
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
                "env": env,
            }] } },
        },
    }));
    cluster
}

async fn run(cluster: &Cluster, words: &[&str]) -> Told {
    let told = run_word("kubectl-bowline", &[words, &[&cluster.at()]].concat(), &[]).await;
    told.is_silent_on(&[TOKEN]);
    told
}

#[tokio::test]
async fn with_a_kubeconfig_alone_the_deployed_manager_says_the_rest() {
    let cluster = with_manifest().await;
    let planned = run(&cluster, &["plan"]).await;
    planned.says(
        1,
        &[
            "default/web: ",
            "from Deployment kube-system/cloudscale-cloud-controller-manager: --cloud-provider=cloudscale",
            "CLOUDSCALE_ACCESS_TOKEN from Secret cloudscale",
        ],
    );
    planned.is_silent_on(&["--v=6"]);
    let explained = run(&cluster, &["explain", "service/default/web"]).await;
    assert!(
        explained.out.contains("service/default/web: "),
        "{}",
        explained.all()
    );
    let none = run(&cluster, &["orphans"]).await;
    none.says(0, &["No orphans of cluster lab"]);
}

#[tokio::test]
async fn without_a_deployed_manager_the_flags_are_asked_for() {
    let cluster = Cluster::start().await;
    let planned = run(&cluster, &["plan"]).await;
    planned.says(1, &["no cloud controller manager is deployed in this cluster"]);
    // What can be told all the same is told, and the flag is not said to be wrong.
    let doctor = run(&cluster, &["doctor"]).await;
    doctor.says(1, &["kubernetes"]);
    doctor.is_silent_on(&["correct --cloud-provider"]);
    let explained = run(&cluster, &["explain", "service/default/none"]).await.all();
    assert!(explained.contains("service/default/none"), "{explained}");
}

/// The configuration of the manager may be a file of its Node, which nobody can take from here.
#[tokio::test]
async fn a_configuration_file_that_the_person_gives_stands_for_that_of_the_manifest() {
    let cluster = Cluster::start().await;
    cluster.add_service("web");
    apply_openstack(
        &cluster,
        &json!({ "name": "config", "hostPath": { "path": "/etc/kubernetes" } }),
    );
    let none = run(&cluster, &["plan"]).await;
    none.says(1, &["is a file of the node: give --cloud-config"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.conf");
    std::fs::write(
        &file,
        "[Global]\nauth-url = http://127.0.0.1:1/v3\nusername = me\npassword = it\ndomain-name = Default\ntenant-name = lab\n",
    )
    .unwrap();
    let own = format!("--cloud-config={}", file.display());
    for words in [["plan", &own], ["doctor", &own]] {
        let told = run(&cluster, &words).await;
        told.says(1, &["127.0.0.1:1"]);
        told.is_silent_on(&["is a file of the node"]);
    }
}

/// A deployed manager for OpenStack that is configured by a Secret: its keys, with Keystone at this port.
fn add_openstack(cluster: &Cluster, keystone: u16, ca: &str) {
    let config = format!(
        "[Global]\nauth-url = https://127.0.0.1:{keystone}/v3\nusername = ccm\npassword = {TOKEN}\ntenant-name = k8s\n\
         domain-name = Default\nregion = RegionOne\nca-file = /etc/config/ca.crt\n"
    );
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloud-config", "namespace": "kube-system" },
        "data": { "cloud.conf": BASE64_STANDARD.encode(config), "ca.crt": BASE64_STANDARD.encode(ca) },
    }));
    apply_openstack(
        cluster,
        &json!({ "name": "config", "secret": { "secretName": "cloud-config" } }),
    );
}

/// A deployed manager for OpenStack whose configuration is in this volume.
fn apply_openstack(cluster: &Cluster, config: &serde_json::Value) {
    cluster.apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "openstack-cloud-controller-manager", "namespace": "kube-system" },
        "spec": {
            "selector": { "matchLabels": { "app": "ccm" } },
            "template": { "metadata": { "labels": { "app": "ccm" } }, "spec": {
                "containers": [{
                    "name": "manager", "image": "registry.example/bowline:v1",
                    "args": ["--cloud-provider=openstack", "--cloud-config=/etc/config/cloud.conf"],
                    "env": [{ "name": "HTTPS_PROXY", "value": "http://127.0.0.1:1" }],
                    "volumeMounts": [{ "name": "config", "mountPath": "/etc/config" }],
                }],
                "volumes": [config],
            } },
        },
    }));
}

fn authority() -> String {
    let made = rcgen::generate_simple_self_signed(["ca.example".to_owned()]).unwrap();
    made.cert.pem()
}

/// On a disk its secrets could be read by others, and would stay there when the command is interrupted.
#[tokio::test]
async fn what_is_taken_from_a_secret_is_never_on_a_disk() {
    let cluster = Cluster::start().await;
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    add_openstack(&cluster, silent.local_addr().unwrap().port(), &authority());
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().count();
    let kubeconfig = cluster.at();
    let variables = [("TMPDIR".to_owned(), folder.path().display().to_string())];
    for signal in [Signal::INT, Signal::TERM] {
        let words = ["doctor".to_owned(), kubeconfig.clone()];
        let mut running = Running::start("kubectl-bowline", &words, &variables);
        // By now the configuration is taken, with the authority that it names: the cloud is asked, and never answers.
        let asked = timeout(DEADLINE, silent.accept()).await;
        let _connection = asked.expect("the cloud is asked").unwrap();
        assert_eq!(files(), 0, "while it runs");
        running.signal(signal);
        let (status, _) = running.ended().await;
        assert!(!status.success());
        assert_eq!(files(), 0, "after {signal:?}");
    }
}

#[tokio::test]
async fn what_is_wrong_in_a_secret_is_told_with_its_name() {
    let cluster = Cluster::start().await;
    add_openstack(&cluster, 1, "this is no certificate");
    let place = "`ca-file`, file /etc/config/ca.crt: there is no certificate in PEM in it (section \"Global\" of cloud.conf of Secret \
                 cloud-config in kube-system)";
    run(&cluster, &["doctor"]).await.says(1, &[place]);
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloud-config", "namespace": "kube-system" },
        "data": { "cloud.conf": BASE64_STANDARD.encode("[Global]\nusernam = x\n") },
    }));
    let told = run(&cluster, &["doctor"]).await;
    let place = "cloud.conf of Secret cloud-config in kube-system";
    told.says(1, &[place, "HTTPS_PROXY of the manager is not taken"]);
}

/// The command line of the person is not at fault: the report is made, and names the manifest.
#[tokio::test]
async fn a_mistyped_flag_of_the_manifest_is_a_finding_about_the_manifest() {
    let cluster = with_manifest().await;
    let mut manager = cluster
        .api
        .object("Deployment", "kube-system", "cloudscale-cloud-controller-manager")
        .unwrap();
    manager["spec"]["template"]["spec"]["containers"][0]["args"] =
        json!(["--cloud-provider=cloudscale", "--concurent-service-syncs=3"]);
    cluster.apply(manager);
    let fault = "failed   the provider is built in: Deployment kube-system/cloudscale-cloud-controller-manager: unknown flag: \
                 --concurent-service-syncs";
    let told = run(&cluster, &["doctor"]).await;
    told.says(1, &[fault, "a manager runs"]);
}

#[tokio::test]
async fn an_api_server_that_is_too_busy_is_the_finding_and_no_flag() {
    let cluster = with_manifest().await;
    let busy = Status::new(429, "TooManyRequests", "injected");
    cluster.api.faults().inject(Fault::new(Effect::Answer(busy)));
    let told = run(&cluster, &["doctor"]).await;
    told.says(1, &["the API server is too busy to answer (429): injected"]);
    told.is_silent_on(&["correct --cloud-provider"]);
}

#[tokio::test]
async fn a_support_bundle_has_everything_but_secrets() {
    let optional = json!({ "secretKeyRef": { "name": "proxy", "key": "login", "optional": true } });
    let cluster = with_manifest_and(&[
        json!({ "name": "PROXY_LOGIN", "valueFrom": optional }),
        json!({ "name": "PROXY_PASSWORD", "value": "written-into-it" }),
    ])
    .await;
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "proxy", "namespace": "kube-system" },
        "data": { "login": BASE64_STANDARD.encode("kept-in-a-secret") },
    }));
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": "web.1", "namespace": "default" },
        "involvedObject": { "kind": "Service", "namespace": "default", "name": "web" },
        "type": "Warning", "reason": "Odd", "message": "no login as kept-in-a-secret with written-into-it",
    }));
    cluster.apply(json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "noted", "namespace": "default", "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": format!("{{\"env\":\"{TOKEN}\"}}"),
            "example.com/note": TOKEN,
        } },
        "spec": { "type": "ClusterIP", "ports": [{ "port": 80 }] },
    }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.tar.gz");
    let file_flag = format!("--file={}", file.display());
    let bundled = run(&cluster, &["support-bundle", &file_flag]).await;
    bundled.says(0, &[]);
    let mut archive = String::new();
    let packed = std::fs::read(&file).unwrap();
    flate2::read::GzDecoder::new(&*packed)
        .read_to_string(&mut archive)
        .unwrap();
    assert!(archive.contains("no login as"), "{archive}");
    for secret in ["kept-in-a-secret", "written-into-it"] {
        assert!(!archive.contains(secret), "{secret}");
    }
    assert!(!archive.contains(TOKEN) && !archive.contains(&BASE64_STANDARD.encode(TOKEN)));
    for part in [
        "LISTING.txt",
        "version.txt",
        "doctor.json",
        "plan.txt",
        "services.json",
        "nodes.json",
        "events.json",
        "CLOUDSCALE_ACCESS_TOKEN (from Secret cloudscale)",
        "--cluster-name=lab",
        "example.com/note",
    ] {
        assert!(archive.contains(part), "{part}\n{archive}");
    }
}
