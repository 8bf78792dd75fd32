//! What a command makes in the cluster for a trial, and takes away again: a namespace, a Deployment, a Service. The manager itself makes
//! none of these.

use std::collections::BTreeMap;

use bowline_cloud_provider::NodeName;
use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, JSON, MERGE, segment};
use crate::shape::{lenient, read};

/// A kind of object of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialKind {
    /// A namespace.
    Namespace,
    /// A Deployment.
    Deployment,
    /// A Service.
    Service,
}

impl TrialKind {
    /// The plural of its name, as paths and `kubectl` have it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Deployment => "deployments",
            Self::Service => "services",
        }
    }

    /// Where its objects are: in a namespace; of none, all.
    fn collection(self, namespace: &str) -> String {
        let group = match self {
            Self::Deployment => "/apis/apps/v1",
            Self::Namespace | Self::Service => "/api/v1",
        };
        match (self, namespace) {
            (Self::Namespace, _) | (_, "") => format!("{group}/{}", self.plural()),
            (_, namespace) => format!("{group}/namespaces/{}/{}", segment(namespace), self.plural()),
        }
    }
}

/// An object of a trial that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialObject {
    /// What it is.
    pub kind: TrialKind,
    /// The namespace; empty for a namespace itself.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The UID.
    pub uid: String,
    /// The labels.
    pub labels: BTreeMap<String, String>,
    /// The annotations.
    pub annotations: BTreeMap<String, String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// What keeps it although it is deleted.
    pub finalizers: Vec<String>,
}

impl TrialObject {
    fn path(&self) -> String {
        format!(
            "{}/{}",
            self.kind.collection(&self.namespace),
            segment(&self.name)
        )
    }
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "lenient")]
    creation_timestamp: Option<Timestamp>,
    finalizers: Vec<String>,
}

impl Kube {
    /// Makes an object of a trial.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if one of this name is there.
    pub async fn create_for_trial(
        &self,
        kind: TrialKind,
        namespace: &str,
        object: &Value,
    ) -> Result<(), KubeError> {
        let path = kind.collection(namespace);
        let call = Call::send(Method::POST, path, JSON, object);
        self.exchange(call.for_metadata()).await.map(drop)
    }

    /// Changes an object of a trial with a merge patch, if it is still the same one.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if it is another one by now.
    pub async fn change_for_trial(&self, object: &TrialObject, patch: &Value) -> Result<(), KubeError> {
        let mut patch = patch.clone();
        patch["metadata"]["uid"] = json!(object.uid);
        let call = Call::send(Method::PATCH, object.path(), MERGE, &patch);
        self.exchange(call.for_metadata()).await.map(drop)
    }

    /// Deletes this very object; that it is gone already is no error. Its pods are deleted after it.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if another one has its name by now.
    pub async fn delete_for_trial(&self, object: &TrialObject) -> Result<(), KubeError> {
        let body = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": object.uid },
            "propagationPolicy": "Background",
        });
        let call = Call::send(Method::DELETE, object.path(), JSON, &body);
        match self.exchange(call).await {
            Ok(_) | Err(KubeError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The objects of trials in a namespace, or in all for an empty one, by a label with or without its value.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list them.
    pub async fn trial_objects(
        &self,
        kind: TrialKind,
        namespace: &str,
        label: &str,
    ) -> Result<Vec<TrialObject>, KubeError> {
        let path = format!("{}?labelSelector={}", kind.collection(namespace), segment(label));
        let List { items } = read(&self.exchange(Call::get(path)).await?)?;
        let objects = items.into_iter().map(|Item { metadata }| TrialObject {
            kind,
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            annotations: metadata.annotations,
            created: metadata.creation_timestamp,
            finalizers: metadata.finalizers,
        });
        Ok(objects.collect())
    }

    /// What a port of a Node answers, asked through the API server.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not, or that the Node does not answer.
    pub async fn ask_node(&self, node: &NodeName, port: u16) -> Result<String, KubeError> {
        let path = format!("/api/v1/nodes/http:{}:{port}/proxy/", segment(node.as_str()));
        let body = self.exchange(Call::get(path)).await?;
        Ok(String::from_utf8_lossy(&body).into_owned())
    }
}
