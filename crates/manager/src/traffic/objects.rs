//! What a trial makes in the cluster, and what an earlier one left there.

use std::collections::BTreeMap;

use bowline_cloud_provider::{NodeName, ServiceKey};
use bowline_kube_io::{Kube, TrialKind, TrialObject};
use jiff::{Timestamp, ToSpan as _};
use serde_json::{Value, json};

/// The label of all that a trial makes; its value is that of the trial.
pub const LABEL: &str = "bowline/check-traffic";

/// The annotation of the Service with the Node that the trial keeps out of load balancers for a while.
pub(super) const EXCLUDES: &str = "bowline/check-traffic-excludes-node";

/// Where the workload listens in its pod: no port that needs a privilege.
const POD_PORT: u16 = 8080;

/// The pods: two, so that one can go and come.
pub(super) const REPLICAS: usize = 2;

/// The user that the workload runs as, `nobody` of most images.
const NOBODY: u32 = 65_534;

/// A trial that is younger may be under way.
const YOUNG_MINUTES: i64 = 60;

/// What a person asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The namespace, which has to be there; `None`: one of the trial's own.
    pub namespace: Option<String>,
    /// The image of the workload.
    pub image: String,
    /// The port of the load balancer.
    pub port: u16,
    /// The class of the Service.
    pub class: Option<String>,
    /// The annotations of the Service.
    pub annotations: BTreeMap<String, String>,
    /// The Node that is kept out of load balancers for a while.
    pub excluded_node: Option<NodeName>,
    /// Whether all stays, for a look.
    pub keeps: bool,
}

/// The names of what one trial makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) run: String,
    pub(super) namespace: String,
    /// Whether the namespace is the trial's own.
    pub(super) owns_namespace: bool,
    /// Of the Deployment and of the Service.
    pub(super) name: String,
}

impl Names {
    pub(super) fn new(run: &str, wanted: &Wanted) -> Self {
        let name = format!("bowline-traffic-{run}");
        Self {
            run: run.to_owned(),
            namespace: wanted.namespace.clone().unwrap_or_else(|| name.clone()),
            owns_namespace: wanted.namespace.is_none(),
            name,
        }
    }

    pub(super) fn service(&self) -> ServiceKey {
        ServiceKey::new(&*self.namespace, &*self.name)
    }

    /// What selects all of it.
    pub(super) fn selector(&self) -> String {
        format!("{LABEL}={}", self.run)
    }

    pub(super) fn namespace_object(&self) -> Value {
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": self.metadata(&self.namespace) })
    }

    fn metadata(&self, name: &str) -> Value {
        json!({ "name": name, "labels": { LABEL: self.run } })
    }

    /// Two pods on two Nodes, if there are two. They may do nothing but answer, since the whole world can reach them: no privilege, no
    /// token of the cluster, no file to write.
    pub(super) fn deployment(&self, wanted: &Wanted) -> Value {
        let labels = json!({ LABEL: self.run });
        let resources = json!({ "cpu": "50m", "memory": "32Mi" });
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(&self.name),
            "spec": {
                "replicas": REPLICAS,
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "automountServiceAccountToken": false,
                        "enableServiceLinks": false,
                        "terminationGracePeriodSeconds": 1,
                        "securityContext": {
                            "runAsNonRoot": true,
                            "runAsUser": NOBODY,
                            "seccompProfile": { "type": "RuntimeDefault" },
                        },
                        "topologySpreadConstraints": [{
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "ScheduleAnyway",
                            "labelSelector": { "matchLabels": labels },
                        }],
                        "containers": [{
                            "name": "workload",
                            "image": wanted.image,
                            "env": [{ "name": "WHOAMI_PORT_NUMBER", "value": POD_PORT.to_string() }],
                            "ports": [{ "containerPort": POD_PORT }],
                            "readinessProbe": { "httpGet": { "path": "/", "port": POD_PORT }, "periodSeconds": 1 },
                            "resources": { "requests": resources, "limits": resources },
                            "securityContext": {
                                "allowPrivilegeEscalation": false,
                                "readOnlyRootFilesystem": true,
                                "capabilities": { "drop": ["ALL"] },
                            },
                        }],
                    },
                },
            },
        })
    }

    pub(super) fn service_object(&self, wanted: &Wanted) -> Value {
        let mut metadata = self.metadata(&self.name);
        metadata["namespace"] = json!(self.namespace);
        metadata["annotations"] = json!(wanted.annotations);
        if let Some(node) = &wanted.excluded_node {
            metadata["annotations"][EXCLUDES] = json!(node.as_str());
        }
        let mut spec = json!({
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Cluster",
            "ipFamilyPolicy": "PreferDualStack",
            "selector": { LABEL: self.run },
            "ports": [{ "name": "http", "protocol": "TCP", "port": wanted.port, "targetPort": POD_PORT }],
        });
        if let Some(class) = &wanted.class {
            spec["loadBalancerClass"] = json!(class);
        }
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec })
    }

    /// What a person types to remove all of it.
    pub(super) fn commands(&self, excluded: Option<&NodeName>) -> String {
        let mut text = match self.owns_namespace {
            true => format!("kubectl delete namespace {}", self.namespace),
            false => format!(
                "kubectl -n {0} delete service/{1} deployment/{1}",
                self.namespace, self.name
            ),
        };
        if let Some(node) = excluded {
            text.push_str(&format!(
                " && kubectl label node {} {}-",
                node.as_str(),
                bowline_cloud_provider::keys::LABEL_EXCLUDE_FROM_BALANCERS
            ));
        }
        text
    }
}

/// An earlier trial of which something is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Earlier {
    pub(super) names: Names,
    /// Whether it may be under way still.
    pub is_young: bool,
    /// When it began.
    pub since: Option<Timestamp>,
    /// The Node that it may keep out of load balancers.
    pub(super) excluded: Option<NodeName>,
}

impl Earlier {
    /// Where it is.
    pub fn place(&self) -> String {
        format!("{} in namespace {}", self.names.name, self.names.namespace)
    }

    /// What a person types to remove it.
    pub fn commands(&self) -> String {
        self.names.commands(self.excluded.as_ref())
    }
}

/// The earlier trials of which something is there, in all namespaces.
///
/// # Errors
///
/// For people: they cannot be listed.
pub async fn earlier(kube: &Kube) -> Result<Vec<Earlier>, String> {
    let mut all: BTreeMap<(String, String), Vec<TrialObject>> = BTreeMap::new();
    for kind in [TrialKind::Namespace, TrialKind::Deployment, TrialKind::Service] {
        let found = kube.trial_objects(kind, "", LABEL).await;
        for object in found.map_err(|error| format!("listing {}: {error}", kind.plural()))? {
            let run = object.labels.get(LABEL).cloned().unwrap_or_default();
            let namespace = match kind {
                TrialKind::Namespace => object.name.clone(),
                _ => object.namespace.clone(),
            };
            // A label alone may have been copied by a person: the names count too.
            if object.name == format!("bowline-traffic-{run}") {
                all.entry((run, namespace)).or_default().push(object);
            }
        }
    }
    let now = kube.clock().now();
    let begun = |(key, objects)| of_objects(key, objects, now);
    Ok(all.into_iter().map(begun).collect())
}

fn of_objects((run, namespace): (String, String), objects: Vec<TrialObject>, now: Timestamp) -> Earlier {
    let since = objects.iter().filter_map(|object| object.created).min();
    let excluded = objects.iter().find_map(|object| object.annotations.get(EXCLUDES));
    let name = format!("bowline-traffic-{run}");
    Earlier {
        is_young: since.is_none_or(|since| now < since + YOUNG_MINUTES.minutes()),
        since,
        excluded: excluded.map(|node| NodeName::new(node.as_str())),
        names: Names {
            owns_namespace: namespace == name,
            run,
            namespace,
            name,
        },
    }
}
