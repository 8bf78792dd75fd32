//! Workloads and pods, as far as they tell which program runs where, and how. For the commands that a person runs; the
//! manager's own role does not grant these lists.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, segment};
use crate::shape::{lenient, read};

/// Objects that are asked for at once: one page, and what is beyond is left out.
const MOST: usize = 1_000;

/// A DaemonSet or a Deployment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    /// `DaemonSet` or `Deployment`.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The labels of its pods.
    pub selector: BTreeMap<String, String>,
    /// What its pods run.
    pub pod: PodSpec,
    /// How many pods it wants.
    pub wanted: u32,
    /// Whether its controller has looked at it.
    pub is_observed: bool,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pod {
    /// Its names and labels.
    #[serde(deserialize_with = "lenient")]
    pub metadata: PodMeta,
    /// What it runs.
    #[serde(deserialize_with = "lenient")]
    pub spec: PodSpec,
    /// How it is.
    #[serde(deserialize_with = "lenient")]
    pub status: PodStatus,
}

/// The names of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMeta {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// When it was made.
    #[serde(deserialize_with = "lenient")]
    pub creation_timestamp: Option<Timestamp>,
    /// Since when it is being deleted.
    #[serde(deserialize_with = "lenient")]
    pub deletion_timestamp: Option<Timestamp>,
}

/// What a pod runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpec {
    /// The ServiceAccount; empty for the default one.
    pub service_account_name: String,
    /// The Node that it was given.
    pub node_name: String,
    /// Whether its host name is that of the node.
    pub host_network: bool,
    /// The labels that its Node has to have.
    pub node_selector: BTreeMap<String, String>,
    /// The containers.
    pub containers: Vec<Container>,
    /// The volumes.
    pub volumes: Vec<Volume>,
}

/// A container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Container {
    /// The name.
    pub name: String,
    /// The image.
    pub image: String,
    /// The words in the place of the image's entry point.
    pub command: Vec<String>,
    /// The words behind it.
    pub args: Vec<String>,
    /// The variables, one by one.
    pub env: Vec<EnvVar>,
    /// The variables that come from whole objects.
    pub env_from: Vec<EnvFrom>,
    /// Where its volumes are.
    pub volume_mounts: Vec<VolumeMount>,
}

/// A variable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvVar {
    /// The name.
    pub name: String,
    /// The value, if it stands here.
    pub value: Option<String>,
    /// Where the value is, if it is elsewhere.
    pub value_from: Option<ValueFrom>,
}

/// Where the value of a variable is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ValueFrom {
    /// In a Secret.
    pub secret_key_ref: Option<KeyRef>,
    /// In a ConfigMap.
    pub config_map_key_ref: Option<KeyRef>,
}

/// A key of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeyRef {
    /// The object's name.
    pub name: String,
    /// The key.
    pub key: String,
    /// Whether the pod starts without it.
    pub optional: bool,
}

/// An object whose keys are variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvFrom {
    /// What stands in front of each key.
    pub prefix: String,
    /// The Secret.
    pub secret_ref: Option<KeyRef>,
    /// The ConfigMap.
    pub config_map_ref: Option<KeyRef>,
}

/// A volume, as far as its contents are in the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Volume {
    /// The name.
    pub name: String,
    /// The Secret that it shows.
    pub secret: Option<SecretVolume>,
    /// The ConfigMap that it shows.
    pub config_map: Option<ConfigMapVolume>,
}

/// A Secret as files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretVolume {
    /// The Secret's name.
    pub secret_name: String,
    /// The files, if not each key is one of its name.
    pub items: Vec<KeyPath>,
    /// Whether the pod starts without it.
    pub optional: bool,
}

/// A ConfigMap as files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ConfigMapVolume {
    /// The ConfigMap's name.
    pub name: String,
    /// The files, if not each key is one of its name.
    pub items: Vec<KeyPath>,
    /// Whether the pod starts without it.
    pub optional: bool,
}

/// A key as a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct KeyPath {
    /// The key.
    pub key: String,
    /// The file's path in the volume.
    pub path: String,
}

/// Where a volume is in a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeMount {
    /// The volume's name.
    pub name: String,
    /// The path in the container.
    pub mount_path: String,
    /// The path in the volume; empty: all of it.
    pub sub_path: String,
}

/// How a pod is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatus {
    /// `Pending`, `Running`, `Succeeded`, `Failed`.
    pub phase: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
    /// What is so or not.
    pub conditions: Vec<PodCondition>,
    /// Each container.
    pub container_statuses: Vec<ContainerStatus>,
}

/// What is so or not of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    /// What.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, in words.
    pub message: String,
}

/// How a container is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatus {
    /// The name.
    pub name: String,
    /// Whether it is ready.
    pub ready: bool,
    /// How often it was started again.
    pub restart_count: u32,
    /// How it is now.
    pub state: ContainerState,
    /// How it ended last.
    pub last_state: ContainerState,
}

/// One state of a container: at most one of them is there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerState {
    /// It does not run yet, or again.
    pub waiting: Option<Stopped>,
    /// It has ended.
    pub terminated: Option<Stopped>,
    /// It runs.
    pub running: Option<Running>,
}

/// Since when a container runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Running {
    /// When it was started.
    #[serde(deserialize_with = "lenient")]
    pub started_at: Option<Timestamp>,
}

/// Why a container does not run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Stopped {
    /// In a word.
    pub reason: String,
    /// In words.
    pub message: String,
    /// With which code it ended.
    pub exit_code: i32,
}

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkloadObject {
    #[serde(deserialize_with = "lenient")]
    metadata: PodMeta,
    #[serde(deserialize_with = "lenient")]
    spec: WorkloadSpec,
    #[serde(deserialize_with = "lenient")]
    status: WorkloadStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkloadSpec {
    replicas: Option<u32>,
    selector: Selector,
    template: Template,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Selector {
    match_labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Template {
    spec: PodSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WorkloadStatus {
    observed_generation: u64,
    desired_number_scheduled: u32,
}

impl Kube {
    /// The DaemonSets and Deployments of all namespaces. What cannot be understood is left out.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list them, as the manager's role.
    pub async fn workloads(&self) -> Result<Vec<Workload>, KubeError> {
        let mut all = Vec::new();
        for (kind, plural) in [("DaemonSet", "daemonsets"), ("Deployment", "deployments")] {
            let path = format!("/apis/apps/v1/{plural}?limit={MOST}");
            let found: Vec<WorkloadObject> = self.read_list(path).await?;
            all.extend(found.into_iter().map(|it| Workload {
                kind,
                namespace: it.metadata.namespace,
                name: it.metadata.name,
                selector: it.spec.selector.match_labels,
                pod: it.spec.template.spec,
                is_observed: it.status.observed_generation > 0,
                wanted: match kind {
                    "DaemonSet" => it.status.desired_number_scheduled,
                    _ => it.spec.replicas.unwrap_or(1),
                },
            }));
        }
        Ok(all)
    }

    /// The pods of a namespace. What cannot be understood is left out.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list them, as the manager's role.
    pub async fn pods(&self, namespace: &str) -> Result<Vec<Pod>, KubeError> {
        let path = format!("/api/v1/namespaces/{}/pods?limit={MOST}", segment(namespace));
        self.read_list(path).await
    }

    /// The last lines that a container wrote, of the run before this one if that is asked for.
    ///
    /// # Errors
    ///
    /// The kubelet does not answer, there was no such run, or the caller may not read it.
    pub async fn pod_log(
        &self,
        pod: &PodMeta,
        container: &str,
        is_of_run_before: bool,
        lines: usize,
    ) -> Result<String, KubeError> {
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={}&previous={is_of_run_before}&tailLines={lines}&limitBytes=65536",
            segment(&pod.namespace),
            segment(&pod.name),
            segment(container)
        );
        let text = self.exchange(Call::get(path)).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    async fn read_list<T: DeserializeOwned>(&self, path: String) -> Result<Vec<T>, KubeError> {
        let answer = self.exchange(Call::get(path)).await?;
        let List { items } = read(&answer)?;
        let understood = items
            .iter()
            .map(|item| serde_json::from_slice(item.get().as_bytes()));
        Ok(understood.filter_map(Result::ok).collect())
    }
}
