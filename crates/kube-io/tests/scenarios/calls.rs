//! The calls of a scenario: what the client is asked for, and what comes of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    AddressNote, AddressType, Ingress, LoadBalancerStatus, Node, NodeAddress, NodeName, Service,
};
use bowline_kit::scenario::calls::Answer;
use bowline_kit::scenario::{Complaint, parsed, word};
use bowline_kube_io::rbac::{Named, Part, questions};
use bowline_kube_io::{Decision, Election, Kube, KubeError, LeaseLock, LeaseRecord, NodePatch, Written};
use serde_json::{Value, json};
use tokio::time::Instant;

/// An object as it was read.
#[derive(Clone)]
pub(crate) enum View {
    Node(Box<Node>),
    Service(Arc<Service>),
}

/// What is seen of the answer, and the object that it shows.
pub(crate) type Done = Result<(Value, Option<View>), KubeError>;

/// A call, ready to be sent.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) kube: Kube,
    pub(crate) verb: String,
    pub(crate) rest: String,
    pub(crate) view: Option<View>,
}

pub(crate) const VERBS: &[&str] = &[
    "read",
    "list",
    "patch-node",
    "addresses",
    "network",
    "pod-networks",
    "delete-node",
    "finalizer",
    "status",
    "annotations",
    "load-balancer-ip",
    "config-map",
    "version",
    "namespace-uid",
    "healthy",
    "may-all",
    "review-token",
];

impl Call {
    fn node(&self) -> Result<&Node, Complaint> {
        match &self.view {
            Some(View::Node(node)) => Ok(node),
            _ => Err("no such Node was read".to_owned()),
        }
    }

    fn service(&self) -> Result<&Service, Complaint> {
        match &self.view {
            Some(View::Service(service)) => Ok(service),
            _ => Err("no such Service was read".to_owned()),
        }
    }

    pub(crate) async fn send(self) -> Result<Done, Complaint> {
        let kube = &self.kube;
        let (name, rest) = word(&self.rest);
        let value = || serde_json::from_str::<Value>(rest).map_err(|error| format!("{rest}: {error}"));
        Ok(match self.verb.as_str() {
            "read" if name == "node" => {
                let node = kube.node(&NodeName::new(word(rest).0)).await;
                node.map(|node| {
                    (
                        json!({ "labels": labels(&node) }),
                        Some(View::Node(Box::new(node))),
                    )
                })
            }
            "read" => {
                let service = kube.list_services().await.map(|all| {
                    let named = |it: &&Arc<Service>| it.metadata.name.as_deref() == Some(word(rest).0);
                    all.iter().find(named).cloned()
                });
                service.map(|it| (json!(it), it.map(View::Service)))
            }
            "list" => {
                let listed = match name {
                    "nodes" => kube.list_nodes().await,
                    _ => kube.list_whole_nodes().await,
                };
                listed.map(|nodes| (json!(nodes.len()), None))
            }
            "patch-node" => {
                let value = value()?;
                let pairs =
                    |key: &str| parsed::<Option<BTreeMap<_, _>>>(&value[key]).map(Option::unwrap_or_default);
                let patch = NodePatch {
                    labels: pairs("labels")?,
                    annotations: pairs("annotations")?,
                    provider_id: parsed(&value["provider_id"])?,
                    taints: parsed(&value["taints"])?,
                };
                written(kube.patch_node(self.node()?, &patch).await)
            }
            "addresses" => {
                let addresses = rest.split_whitespace().map(|address| {
                    let kind = if address.contains(['.', ':']) {
                        AddressType::InternalIp
                    } else {
                        AddressType::Hostname
                    };
                    NodeAddress::new(kind, address)
                });
                let addresses: Vec<_> = addresses.collect();
                let node = kube.patch_node_addresses(self.node()?, &addresses).await;
                node.map(|node| (json!(node.addresses), None))
            }
            "network" => {
                let (is_unavailable, reason) = word(rest);
                let unavailable = is_unavailable == "unavailable";
                written(
                    kube.set_network_unavailable(self.node()?, unavailable, reason, "m")
                        .await,
                )
            }
            "delete-node" => kube.delete_node(self.node()?).await.map(|()| (json!({}), None)),
            "finalizer" => service(kube.set_service_finalizer(self.service()?, rest == "on").await),
            "status" => {
                let ingress = rest.split_whitespace().map(|ip| Ingress {
                    ip: Some(ip.to_owned()),
                    ..Ingress::default()
                });
                let status = LoadBalancerStatus {
                    ingress: ingress.collect(),
                };
                service(
                    kube.patch_service_status(self.service()?, &status, &AddressNote::Keep)
                        .await,
                )
            }
            "annotations" => {
                let pairs: BTreeMap<String, Option<String>> = parsed(&value()?)?;
                let pairs: Vec<_> = pairs.into_iter().collect();
                service(kube.annotate_service(self.service()?, &pairs).await)
            }
            "load-balancer-ip" => service(kube.set_load_balancer_ip(self.service()?, rest, &[]).await),
            "config-map" => kube.config_map(name, rest).await.map(|data| (json!(data), None)),
            "version" => {
                let version = kube.server_version().await;
                version.map(|it| (json!(format!("{}.{}", it.major, it.minor)), None))
            }
            "namespace-uid" => kube.namespace_uid(name).await.map(|uid| (json!(uid), None)),
            "healthy" => kube.is_healthy().await.map(|()| (json!({}), None)),
            "review-token" => kube
                .review_token(name)
                .await
                .map(|user| (json!(user.is_some()), None)),
            // All that these parts need.
            _ => {
                let parts = [Part::CloudNode, Part::LeaderElection, Part::ServiceAccounts];
                let mut allowed = 0;
                for question in questions(&parts, &Named::default()) {
                    match kube.may(&question).await {
                        Ok(true) => allowed += 1,
                        Ok(false) => return Err(format!("not allowed: {question}")),
                        Err(error) => return Ok(Err(error)),
                    }
                }
                Ok((json!(allowed), None))
            }
        })
    }
}

fn written(answer: Result<Written, KubeError>) -> Done {
    answer.map(|it| (json!({ "uid": &*it.uid, "version": &*it.resource_version }), None))
}

fn service(answer: Result<Service, KubeError>) -> Done {
    answer.map(|it| (json!(it), Some(View::Service(Arc::new(it)))))
}

pub(crate) fn labels(node: &Node) -> Value {
    let labels = node.labels.iter();
    Value::Object(
        labels
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect(),
    )
}

/// An error as an answer: the status that stands for it, and its text. Where no answer came, the call was dropped.
pub(crate) fn failed(error: &KubeError) -> Answer {
    let status = match error {
        KubeError::NotFound(_) => 404,
        KubeError::Conflict(_) => 409,
        KubeError::Forbidden(_) => 403,
        KubeError::Unauthorized(_) => 401,
        KubeError::Invalid(_) => 422,
        KubeError::Expired(_) => 410,
        KubeError::GateClosed => 423,
        KubeError::Timeout => 408,
        KubeError::Decode(_) => 599,
        KubeError::Throttled { code, .. } | KubeError::Server { code, .. } => *code,
        _ => 0,
    };
    Answer {
        status: (status > 0).then_some(status),
        body: json!({ "said": error.to_string(), "after_s": error.retry_after().map(|it| it.as_secs()) }),
        ..Answer::default()
    }
}

/// Somebody who wants the lease.
pub(crate) struct Candidate {
    lock: LeaseLock,
    election: Election,
    /// What it has read or written last.
    pub(crate) record: LeaseRecord,
}

impl Candidate {
    pub(crate) fn new(kube: Kube, name: &str) -> Self {
        let record = LeaseRecord {
            holder: name.to_owned(),
            lease_duration: Duration::from_secs(15),
            ..LeaseRecord::default()
        };
        Self {
            lock: LeaseLock::new(kube, "kube-system", "cloud-controller-manager", name),
            election: Election::new(name, bowline_kube_io::LeaseTimings::default()),
            record,
        }
    }

    pub(crate) fn holds(&self) -> bool {
        self.election.is_holder()
    }

    /// Looks, decides and writes; `release` gives the lease up; the others are single requests.
    pub(crate) async fn act(&mut self, what: &str, wall: jiff::Timestamp) -> Result<(), KubeError> {
        match what {
            "round" => {
                self.election.observe(self.lock.get().await.ok(), Instant::now());
                let begun = Instant::now();
                let written = match self.election.decide(begun, wall) {
                    Decision::Create(record) => self.lock.create(&record).await.ok(),
                    Decision::Update(record) => self.lock.update(&record).await.ok(),
                    Decision::Wait { .. } => None,
                };
                if written.is_some() {
                    self.election.observe(written, begun);
                }
            }
            "release" => {
                let record = self.election.release(wall).unwrap();
                self.lock.update(&record).await?;
            }
            "read" => self.record = self.lock.get().await?,
            "create" => self.record = self.lock.create(&self.record).await?,
            transitions => {
                let record = LeaseRecord {
                    transitions: transitions.parse().unwrap(),
                    ..self.record.clone()
                };
                self.lock.update(&record).await?;
            }
        }
        Ok(())
    }
}
