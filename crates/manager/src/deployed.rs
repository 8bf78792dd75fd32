//! The cloud controller managers that are deployed in a cluster: where they run, which program each of them is, and what it is
//! told. [`find`] reads, everything else is pure.

mod place;

use std::collections::{BTreeMap, BTreeSet};

use bowline_kube_io::workloads::{
    Container, ContainerStatus, EnvVar, KeyRef, Pod, PodSpec, Volume, Workload,
};
use bowline_kube_io::{Kube, KubeError, UserInfo};
use jiff::Timestamp;

use place::volume_key;

pub use place::Place;

/// The programs of the Go managers, and the provider that each of them has built in. The last one is the framework's own name.
const PROGRAMS: [(&str, Option<&str>); 5] = [
    ("cloudscale-cloud-controller-manager", Some("cloudscale")),
    ("cloud-provider-phoenixnap", Some("phoenixnap")),
    ("cloudstack-ccm", Some("external-cloudstack")),
    ("openstack-cloud-controller-manager", Some("openstack")),
    ("cloud-controller-manager", None),
];

/// The images of the Go managers, without the registry.
const GO_IMAGES: [&str; 4] = [
    "cloudscalech/cloudscale-cloud-controller-manager",
    "phoenixnap/cloud-provider-phoenixnap",
    "apache/cloudstack-kubernetes-provider",
    "provider-os/openstack-cloud-controller-manager",
];

/// Which program it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// This one.
    Bowline,
    /// A manager in Go, by its image.
    Go,
    /// The image does not tell.
    Unknown,
}

impl Program {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bowline => "Bowline",
            Self::Go => "a Go manager",
            Self::Unknown => "unknown program",
        }
    }

    /// By its image.
    #[must_use]
    pub fn of_image(image: &str) -> Self {
        let image = without_tag(image);
        if image.split('/').any(|part| part.contains("bowline")) {
            Self::Bowline
        } else if GO_IMAGES.iter().any(|known| image.ends_with(known)) {
            Self::Go
        } else {
            Self::Unknown
        }
    }
}

fn without_tag(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

/// A cloud controller manager that is deployed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// `DaemonSet`, `Deployment`, or `Pod` for pods that belong to neither, such as static ones.
    pub kind: &'static str,
    /// The namespace.
    pub namespace: String,
    /// The name; of static pods without that of the node.
    pub name: String,
    /// Which program it is.
    pub program: Program,
    /// What its pods are made of.
    pub spec: PodSpec,
    /// The container that it is.
    pub container: Container,
    /// How many pods it wants, as far as anybody has worked that out.
    pub wanted: Option<u32>,
    /// Its pods.
    pub pods: Vec<Pod>,
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// It stands in the manifest.
    Literal(String),
    /// It is elsewhere.
    At(Place),
    /// It is known in the pod alone.
    OfPod,
}

impl Deployed {
    /// `kind namespace/name`.
    pub fn object(&self) -> String {
        format!("{} {}/{}", self.kind, self.namespace, self.name)
    }

    /// The command line: with each `$(NAME)` of which the value stands in the manifest replaced by it, as the kubelet does.
    pub fn words(&self) -> Vec<String> {
        let known: Vec<(String, String)> = self
            .variables()
            .into_iter()
            .filter_map(|(name, value)| match value {
                Value::Literal(text) => Some((format!("$({name})"), text)),
                Value::At(_) | Value::OfPod => None,
            })
            .collect();
        let words = self.container.command.iter().chain(&self.container.args);
        words
            .map(|word| {
                known
                    .iter()
                    .fold(word.clone(), |word, (name, text)| word.replace(name, text))
            })
            .collect()
    }

    /// The flags of the command line, without the program.
    pub fn flags(&self) -> Vec<String> {
        let words = self.words().into_iter();
        words.skip_while(|word| !word.starts_with('-')).collect()
    }

    /// What a flag says last, in either form and spelling; `None` if it is not there. Of a flag without a value it is `true`.
    pub fn flag(&self, name: &str) -> Option<String> {
        let flags = self.flags();
        let mut found = None;
        for (index, word) in flags.iter().enumerate() {
            let Some(word) = word.strip_prefix("--") else {
                continue;
            };
            let (given, value) = word
                .split_once('=')
                .map_or((word, None), |(given, value)| (given, Some(value)));
            if given.replace('_', "-") == name {
                let next = flags.get(index + 1).filter(|next| !next.starts_with('-'));
                found = Some(value.map_or_else(
                    || next.cloned().unwrap_or_else(|| "true".to_owned()),
                    str::to_owned,
                ));
            }
        }
        found
    }

    /// The provider: by its flag, else the one that the program has built in.
    pub fn provider(&self) -> Option<String> {
        let built_in = || {
            let words = self.words();
            let image = without_tag(&self.container.image);
            let image = match image.ends_with("cloudstack-kubernetes-provider") {
                true => "cloudstack-ccm",
                false => file_name(image),
            };
            let mut named = words.iter().map(|word| file_name(word)).chain([image]);
            named.find_map(|name| PROGRAMS.iter().find(|(known, _)| *known == name)?.1)
        };
        self.flag("cloud-provider")
            .or_else(|| built_in().map(str::to_owned))
    }

    /// Whether the two are known to be for different clouds: each has Nodes and Services of its own.
    pub fn is_apart_from(&self, other: &Self) -> bool {
        let (Some(one), Some(other)) = (self.provider(), other.provider()) else {
            return false;
        };
        !one.split(',')
            .any(|one| other.split(',').any(|other| one == other))
    }

    /// Who it is at the API server: its ServiceAccount.
    pub fn account(&self) -> UserInfo {
        UserInfo::service_account(&self.namespace, self.account_name())
    }

    /// The name of its ServiceAccount.
    pub fn account_name(&self) -> &str {
        match &*self.spec.service_account_name {
            "" => "default",
            name => name,
        }
    }

    /// The variables, each with its value or where that is. What comes from a whole object has that object's name and no key.
    pub fn variables(&self) -> Vec<(String, Value)> {
        let of = |variable: &EnvVar| {
            let from = variable.value_from.as_ref();
            let secret = from.and_then(|from| from.secret_key_ref.as_ref());
            let map = from.and_then(|from| from.config_map_key_ref.as_ref());
            match (&variable.value, secret, map) {
                (_, Some(it), _) => Value::At(Place::secret(&it.name, &it.key)),
                (_, _, Some(it)) => Value::At(Place::config_map(&it.name, &it.key)),
                (Some(text), ..) => Value::Literal(text.clone()),
                (None, ..) if from.is_some() => Value::OfPod,
                (None, ..) => Value::Literal(String::new()),
            }
        };
        self.container
            .env
            .iter()
            .map(|it| (it.name.clone(), of(it)))
            .collect()
    }

    /// The objects of which each key is a variable, with what stands in front of it.
    pub fn variables_of_objects(&self) -> Vec<(String, Place)> {
        let all = self.container.env_from.iter();
        all.flat_map(|from| {
            let secret = from.secret_ref.as_ref().map(|it| Place::secret(&it.name, ""));
            let map = from
                .config_map_ref
                .as_ref()
                .map(|it| Place::config_map(&it.name, ""));
            let found = secret.into_iter().chain(map);
            found.map(|place| (from.prefix.clone(), place))
        })
        .collect()
    }

    /// Where the contents of a file of the container are; `None` if that is not in the cluster, as of a file of the node.
    pub fn file(&self, path: &str) -> Option<Place> {
        let below = |mount: &str| {
            let rest = path.strip_prefix(mount.trim_end_matches('/'))?;
            match rest {
                "" => Some(""),
                rest => rest.strip_prefix('/'),
            }
        };
        // The mount that is nearest to the file.
        let mounts = self.container.volume_mounts.iter();
        let found = mounts.filter_map(|mount| Some((mount, below(&mount.mount_path)?)));
        let (mount, rest) = found.max_by_key(|(mount, _)| mount.mount_path.len())?;
        let volume = self.spec.volumes.iter().find(|it| it.name == mount.name)?;
        let inside = match (&*mount.sub_path, rest) {
            (sub, "") => sub.to_owned(),
            ("", rest) => rest.to_owned(),
            (sub, rest) => format!("{sub}/{rest}"),
        };
        volume_key(volume, &inside)
    }

    /// The Secrets and ConfigMaps that it takes something from, and whether its pods start without.
    fn sources(&self) -> Vec<(Place, bool)> {
        let secret = |it: &KeyRef| (Place::secret(&it.name, &it.key), it.optional);
        let map = |it: &KeyRef| (Place::config_map(&it.name, &it.key), it.optional);
        let env = self.container.env.iter().filter_map(|it| it.value_from.as_ref());
        let from = &self.container.env_from;
        let secrets = env.clone().filter_map(|it| it.secret_key_ref.as_ref());
        let secrets = secrets.chain(from.iter().filter_map(|it| it.secret_ref.as_ref()));
        let maps = env.filter_map(|it| it.config_map_key_ref.as_ref());
        let maps = maps.chain(from.iter().filter_map(|it| it.config_map_ref.as_ref()));
        let of_volume = |it: &Volume| {
            let is_optional = it.secret.as_ref().is_some_and(|it| it.optional)
                || it.config_map.as_ref().is_some_and(|it| it.optional);
            Some((volume_key(it, "")?, is_optional))
        };
        let mut all: Vec<_> = secrets.map(secret).chain(maps.map(map)).collect();
        all.extend(self.spec.volumes.iter().filter_map(of_volume));
        all
    }

    /// The Secrets and ConfigMaps without which its pods do not start.
    pub fn needs(&self) -> Vec<Place> {
        let needed = self.sources().into_iter().filter(|(_, is_optional)| !is_optional);
        needed.map(|(place, _)| place).collect()
    }

    /// The names of all Secrets that it may take something from, those that it can do without among them.
    pub fn secrets(&self) -> BTreeSet<String> {
        let places = self.sources().into_iter().map(|(place, _)| place);
        let names = places.filter_map(|place| match place {
            Place::Secret { name, .. } => Some(name),
            Place::ConfigMap { .. } => None,
        });
        names.collect()
    }

    /// Whether it runs without an election: two of its pods would both work.
    pub fn is_without_election(&self) -> bool {
        self.flag("leader-elect").as_deref() == Some("false")
    }

    /// The lease that it leads by, as `namespace/name`.
    pub fn lease(&self) -> String {
        let namespace = self.flag("leader-elect-resource-namespace");
        let name = self.flag("leader-elect-resource-name");
        format!(
            "{}/{}",
            namespace.as_deref().unwrap_or(bowline_kube_io::rbac::NAMESPACE),
            name.as_deref().unwrap_or("cloud-controller-manager")
        )
    }

    /// Whether a process on a computer of this name may be one of its pods.
    pub fn runs_on(&self, host: &str) -> bool {
        self.pods.iter().any(|pod| is_on(pod, host))
    }

    /// How many of its pods are ready.
    pub fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| self.is_ready(pod)).count()
    }

    /// Whether the container of this pod is ready.
    pub fn is_ready(&self, pod: &Pod) -> bool {
        pod.metadata.deletion_timestamp.is_none() && self.status_of(pod).is_some_and(|it| it.ready)
    }

    /// Since when the container of this pod runs; `None` if it does not, or nobody tells.
    pub fn runs_since(&self, pod: &Pod) -> Option<Timestamp> {
        self.status_of(pod)?.state.running.as_ref()?.started_at
    }

    /// How the container of this pod is.
    pub fn status_of<'a>(&self, pod: &'a Pod) -> Option<&'a ContainerStatus> {
        let mut all = pod.status.container_statuses.iter();
        all.find(|it| it.name == self.container.name)
    }
}

/// Whether a process on a computer of this name may be this pod: on the host's network it has the name of the node.
pub fn is_on(pod: &Pod, host: &str) -> bool {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let of_node = pod.spec.host_network && first(&pod.spec.node_name) == first(host);
    of_node || first(&pod.metadata.name) == first(host)
}

fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Whether a cloud controller manager may well be called so: a workload, an image without its tag, a lease, or the program that
/// renews it.
pub fn is_of_manager(name: &str) -> bool {
    let is_word = |words: &str| name.split(['-', '.', '_', '/']).any(|word| word == words);
    [
        "cloud-controller-manager",
        "cloud-provider",
        "cloudstack-kubernetes-provider",
    ]
    .iter()
    .any(|part| name.contains(part))
        || is_word("ccm")
        || is_word("bowline")
}

/// The container of a pod that is a cloud controller manager.
fn manager_of(name: &str, spec: &PodSpec) -> Option<Container> {
    let is_manager = |container: &&Container| {
        let words = || container.command.iter().chain(&container.args);
        let is_program = |word: &String| PROGRAMS.iter().any(|(known, _)| *known == file_name(word));
        let has_flag = || words().any(|word| word.replace('_', "-").starts_with("--cloud-provider"));
        let image = without_tag(&container.image);
        words().any(is_program)
            || is_of_manager(file_name(image))
            || Program::of_image(image) != Program::Unknown
            || is_of_manager(name) && has_flag()
    };
    spec.containers.iter().find(is_manager).cloned()
}

/// The managers among these workloads and pods, sorted by where they are.
pub fn among(workloads: &[Workload], pods: &[Pod]) -> Vec<Deployed> {
    let is_of = |pod: &Pod, workload: &Workload| {
        let labels = &pod.metadata.labels;
        pod.metadata.namespace == workload.namespace
            && !workload.selector.is_empty()
            && workload
                .selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
    };
    let mut found = Vec::new();
    for workload in workloads {
        let Some(container) = manager_of(&workload.name, &workload.pod) else {
            continue;
        };
        let pods: Vec<Pod> = pods.iter().filter(|pod| is_of(pod, workload)).cloned().collect();
        let count = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let is_known = workload.is_observed || workload.kind == "Deployment" || count > 0;
        found.push(Deployed {
            kind: workload.kind,
            namespace: workload.namespace.clone(),
            name: workload.name.clone(),
            program: Program::of_image(&container.image),
            spec: workload.pod.clone(),
            container,
            wanted: is_known.then(|| workload.wanted.max(count)),
            pods,
        });
    }
    let mut alone: BTreeMap<(&str, &str), Deployed> = BTreeMap::new();
    for pod in pods {
        if workloads.iter().any(|workload| is_of(pod, workload)) {
            continue;
        }
        let name = base_name(pod);
        let Some(container) = manager_of(name, &pod.spec) else {
            continue;
        };
        let group = alone
            .entry((&pod.metadata.namespace, name))
            .or_insert_with(|| Deployed {
                kind: "Pod",
                namespace: pod.metadata.namespace.clone(),
                name: name.to_owned(),
                program: Program::of_image(&container.image),
                spec: pod.spec.clone(),
                container,
                wanted: None,
                pods: Vec::new(),
            });
        group.pods.push(pod.clone());
        group.wanted = u32::try_from(group.pods.len()).ok();
    }
    found.extend(alone.into_values());
    found.sort_by_key(|it| (it.namespace.clone(), it.name.clone()));
    found
}

/// The name of a static pod ends with that of its node.
fn base_name(pod: &Pod) -> &str {
    let name = pod.metadata.name.as_str();
    let base = name.strip_suffix(pod.spec.node_name.as_str());
    base.and_then(|base| base.strip_suffix('-'))
        .filter(|base| !base.is_empty())
        .unwrap_or(name)
}

/// Looks for the managers of a cluster: the workloads of all namespaces, and the pods of theirs and of `kube-system`.
///
/// # Errors
///
/// Workloads or pods may not be listed, as by the manager's own role, or there is no answer.
///
/// # Cancellation
///
/// May be dropped at any await: nothing is written.
pub async fn find(kube: &Kube) -> Result<Vec<Deployed>, KubeError> {
    let workloads = kube.workloads().await?;
    let mut namespaces = vec![bowline_kube_io::rbac::NAMESPACE];
    for workload in &workloads {
        let is_manager = manager_of(&workload.name, &workload.pod).is_some();
        if is_manager && !namespaces.contains(&workload.namespace.as_str()) {
            namespaces.push(&workload.namespace);
        }
    }
    let mut pods = Vec::new();
    for namespace in namespaces {
        pods.extend(kube.pods(namespace).await?);
    }
    Ok(among(&workloads, &pods))
}

#[cfg(test)]
mod tests;
