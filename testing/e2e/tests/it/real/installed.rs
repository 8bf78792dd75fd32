//! Installed with Helm: what a Pod of the chart would run does all that a manager does, with the words, variables, files and
//! rights that the chart gives it and no others.

use std::collections::BTreeMap;
use std::path::Path;

use bowline_checks::chart::{Helm, Release, chart};
use bowline_cloudscale_sim::CloudscaleSim;
use bowline_control_plane::ControlPlane;
use bowline_openstack_sim::OpenstackSim;
use bowline_phoenixnap_sim::PhoenixnapSim;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Secret};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};

use super::cloudstack::CloudStack;
use super::life::{Life, assert_writes_of_a_life};
use super::site::{Cloud, Site, ended};
use crate::process::program::Running;

const NAMESPACE: &str = "kube-system";

/// The chart's values of a user of this cloud: what the program is given by hand elsewhere, as credentials of the chart.
fn values<C: Cloud>(preset: &str, cloud: &C, url: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let mut flags = cloud.flags(url, directory.path());
    // The others are the preset's.
    flags.retain(|it| it.starts_with("--cluster-cidr="));
    let mut values = json!({ "cloud": preset, "controllerExtraArgs": flags });
    if let Some(file) = std::fs::read_dir(directory.path()).unwrap().next() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        values["cloudConfigContents"] = text.into();
        return values;
    }
    let mut variables: BTreeMap<String, String> = cloud.variables(url).into_iter().collect();
    values["accessToken"] = variables.remove("CLOUDSCALE_ACCESS_TOKEN").unwrap().into();
    let others = variables
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }));
    values["extraEnv"] = others.collect();
    values
}

fn install(helm: &Helm, plane: &ControlPlane, values: &Value) {
    let chart = chart();
    let release = Release {
        chart: &chart,
        name: "bowline",
        namespace: NAMESPACE,
    };
    helm.upgrade(release, values, plane.admin().path(), &[]).unwrap();
}

/// The only Pod that a workload asks for.
async fn pod(client: &Client) -> PodSpec {
    let all = ListParams::default();
    let sets: Api<DaemonSet> = Api::namespaced(client.clone(), NAMESPACE);
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), NAMESPACE);
    let sets = sets.list(&all).await.unwrap().into_iter();
    let deployments = deployments.list(&all).await.unwrap().into_iter();
    let templates = sets.map(|it| it.spec.template);
    let mut templates = templates.chain(deployments.map(|it| it.spec.template));
    let pod = templates.next().unwrap().spec.unwrap();
    assert!(templates.next().is_none(), "more than one workload");
    assert_eq!(
        pod.service_account_name.as_deref(),
        Some("cloud-controller-manager")
    );
    pod
}

async fn secret(client: &Client, name: &str) -> BTreeMap<String, Vec<u8>> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let data = secrets.get(name).await.unwrap().data.unwrap();
    data.into_iter().map(|(key, value)| (key, value.0)).collect()
}

/// A variable's value, as a kubelet finds it.
async fn value(client: &Client, variable: &EnvVar) -> String {
    let Some(source) = &variable.value_from else {
        return variable.value.clone().unwrap_or_default();
    };
    if let Some(key) = &source.secret_key_ref {
        let mut data = secret(client, &key.name).await;
        return String::from_utf8(data.remove(&key.key).unwrap()).unwrap();
    }
    match source.field_ref.as_ref().unwrap().field_path.as_str() {
        "metadata.name" => "bowline-0".to_owned(),
        "metadata.namespace" => NAMESPACE.to_owned(),
        other => panic!("{}: {other}", variable.name),
    }
}

/// Mounts what comes from Secrets below a directory. Answers each place in the container with its place there.
async fn mounted(
    client: &Client,
    pod: &PodSpec,
    container: &Container,
    root: &Path,
) -> Vec<(String, String)> {
    let mut places = Vec::new();
    for mount in container.volume_mounts.iter().flatten() {
        let mut volumes = pod.volumes.iter().flatten();
        let volume = volumes.find(|it| it.name == mount.name).unwrap();
        let Some(source) = &volume.secret else { continue };
        let directory = root.join(&mount.name);
        std::fs::create_dir(&directory).unwrap();
        for (key, value) in secret(client, source.secret_name.as_deref().unwrap()).await {
            std::fs::write(directory.join(key), value).unwrap();
        }
        places.push((mount.mount_path.clone(), directory.to_str().unwrap().to_owned()));
    }
    places
}

/// Runs the container as a kubelet would, but for what belongs to the test: a port of its own, and the account's token in a
/// kubeconfig.
async fn run<C>(site: &Site<C>, root: &Path) -> Running {
    let client = site.client();
    let pod = pod(&client).await;
    let [container] = &pod.containers[..] else {
        panic!("{:?}", pod.containers);
    };
    let places = mounted(&client, &pod, container, root).await;
    let found = |text: String| {
        let text = places
            .iter()
            .fold(text, |text, (inside, outside)| text.replace(inside, outside));
        assert!(!text.contains("$("), "{text}");
        text
    };
    let mut variables: Vec<(String, String)> = Vec::new();
    for variable in container.env.iter().flatten() {
        variables.push((variable.name.clone(), value(&client, variable).await));
    }
    let words = container.command.iter().chain(&container.args).flatten();
    let words: Vec<String> = words
        .map(|word| {
            let word = variables.iter().fold(word.clone(), |word, (name, value)| {
                word.replace(&format!("$({name})"), value)
            });
            found(word)
        })
        .collect();
    let (program, words) = words.split_first().unwrap();
    let of_the_test = [
        "--secure-port=0".to_owned(),
        "--node-monitor-period=1s".to_owned(),
        format!("--kubeconfig={}", site.kubeconfig().display()),
    ];
    let words = [words, &of_the_test].concat();
    Running::start(program, &words, &variables)
}

async fn lives_as_installed<C: Life>(preset: &str) {
    let Some(helm) = Helm::or_skip() else {
        return;
    };
    let installed = Site::assemble(C::new(), async |plane, cloud, url| {
        install(&helm, plane, &values(preset, cloud, url));
    })
    .await;
    let Some(site) = installed else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let mut manager = run(&site, root.path()).await;
    site.lead_a_life(&manager).await;
    ended(&mut manager).await;
    assert_writes_of_a_life(&site);
}

#[tokio::test]
async fn the_chart_s_manager_of_cloudscale_ch_lives_a_whole_life() {
    lives_as_installed::<CloudscaleSim>("cloudscale").await;
}

#[tokio::test]
async fn the_chart_s_manager_of_phoenixnap_lives_a_whole_life() {
    lives_as_installed::<PhoenixnapSim>("phoenixnap").await;
}

#[tokio::test]
async fn the_chart_s_manager_of_cloudstack_lives_a_whole_life() {
    lives_as_installed::<CloudStack>("cloudstack").await;
}

#[tokio::test]
async fn the_chart_s_manager_of_openstack_lives_a_whole_life() {
    lives_as_installed::<OpenstackSim>("openstack").await;
}
