//! The lease of leader election: its record, its requests, and the rules of who may take it.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::client::Kube;
use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::exchange::{Call, JSON, segment};
use crate::rank::Rank;

mod answer;
mod election;
mod note;
mod watch;

pub use election::{Decision, Election, LeaseTimings};
pub use note::{DELETIONS, DeletionNote, FoundNote, LeaseNote};
pub use watch::LeaseWatch;

/// What the managed fields of a lease call this program: the Go managers have the same `User-Agent`, and nothing else of a lease
/// tells whose it is.
pub const PROGRAM: &str = "bowline";

/// What a lease says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LeaseRecord {
    /// `spec.holderIdentity`; empty if the lease was given up.
    pub holder: String,
    /// `spec.leaseDurationSeconds`: how long others wait after they have last seen the record change; zero if it states none.
    pub lease_duration: Duration,
    /// `spec.acquireTime`.
    pub acquire_time: Option<Timestamp>,
    /// `spec.renewTime`.
    pub renew_time: Option<Timestamp>,
    /// `spec.leaseTransitions`: how often the holder has changed.
    pub transitions: u32,
    /// `metadata.resourceVersion`: what an update is based on; `None` before the lease exists.
    pub resource_version: Option<String>,
    /// `metadata.uid`, for events about the lease.
    pub uid: String,
    /// The annotation [`DELETIONS`]; `None` if there is none, or it cannot be read. An update leaves it as it is then.
    pub deletions: Option<DeletionNote>,
    /// The object that the record came from, whatever else is in it, so that an update does not lose what others have put there.
    pub source: Option<Box<Map<String, Value>>>,
}

/// One lease, and the three requests that the Go managers' roles allow: get, create, update; and a watch, which they do
/// not.
///
/// Requests go past the bounds that hold for all others, so that leadership is not lost because the controllers are busy. Hand
/// in a [`Kube`] with an open gate and a time limit of half the renew deadline.
#[derive(Debug, Clone)]
pub struct LeaseLock {
    kube: Kube,
    namespace: String,
    name: String,
    identity: String,
}

impl LeaseLock {
    /// The lease of this name, for this holder.
    pub fn new(
        kube: Kube,
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            kube,
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
        }
    }

    /// Who we are in the lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The lease as an object of events.
    pub fn object(&self, record: Option<&LeaseRecord>) -> ObjectRef {
        ObjectRef::lease(
            &self.namespace,
            &self.name,
            record.map_or("", |record| &record.uid),
        )
    }

    /// Reads the lease.
    ///
    /// # Errors
    ///
    /// [`KubeError::NotFound`] if there is none yet. Also if the answer is something else than this lease: then nothing is known.
    pub async fn get(&self) -> Result<LeaseRecord, KubeError> {
        let answer = self.exchange(Call::get(self.path(true))).await?;
        self.believe(&answer)
    }

    /// Creates the lease.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if somebody else was faster. Also if the answer does not show that the lease was created as
    /// asked for: then nothing is known.
    pub async fn create(&self, record: &LeaseRecord) -> Result<LeaseRecord, KubeError> {
        self.write(Method::POST, record).await
    }

    /// Replaces the lease in the version that the record came from.
    ///
    /// # Errors
    ///
    /// [`KubeError::Conflict`] if it has changed since. Also if the answer does not show that the lease was replaced as asked
    /// for: then nothing is known.
    pub async fn update(&self, record: &LeaseRecord) -> Result<LeaseRecord, KubeError> {
        self.write(Method::PUT, record).await
    }

    /// Has the API server try a write of the lease with a note about deletions, and keep nothing. The gate does not hold it, as for
    /// [`Kube::rehearse_node`].
    ///
    /// # Errors
    ///
    /// What a real write would meet; [`KubeError::Invalid`] also if the write is taken without the annotation.
    pub async fn rehearse_note(&self) -> Result<(), KubeError> {
        let mut tries = 3; // whoever leads writes it every two seconds
        loop {
            tries -= 1;
            match self.rehearse_once().await {
                Err(KubeError::Conflict(_)) if tries > 0 => {}
                answer => return answer,
            }
        }
    }

    async fn rehearse_once(&self) -> Result<(), KubeError> {
        let mut record = self.get().await?;
        record.note(record.deletions.clone().unwrap_or_default());
        let sent = self.object_of(&record);
        let path = format!("{}?dryRun=All&fieldManager={PROGRAM}", self.path(true));
        let call = Call::send(Method::PUT, path, JSON, &sent);
        let answer = self.kube.for_reviews().exchange(call).await?;
        match self.believe(&answer)?.deletions {
            Some(_) => Ok(()),
            None => Err(KubeError::Invalid(format!(
                "a webhook takes the annotation {DELETIONS} off, and without it no Node is deleted"
            ))),
        }
    }

    async fn write(&self, method: Method, record: &LeaseRecord) -> Result<LeaseRecord, KubeError> {
        let sent = self.object_of(record);
        let mut path = self.path(method == Method::PUT);
        path.push_str("?fieldManager=");
        path.push_str(PROGRAM);
        let call = Call::send(method, path, JSON, &sent);
        let answer = self.exchange(call).await?;
        self.believe_written(record, &sent, &answer)
    }

    async fn exchange(&self, call: Call) -> Result<Vec<u8>, KubeError> {
        self.kube.exchange(call.ranked(Rank::Lease)).await
    }

    fn path(&self, with_name: bool) -> String {
        let folder = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            segment(&self.namespace)
        );
        if with_name {
            format!("{folder}/{}", segment(&self.name))
        } else {
            folder
        }
    }

    fn object_of(&self, record: &LeaseRecord) -> Map<String, Value> {
        let mut lease = record.source.as_deref().cloned().unwrap_or_default();
        lease.insert("apiVersion".into(), json!("coordination.k8s.io/v1"));
        lease.insert("kind".into(), json!("Lease"));
        let mut metadata = part(&mut lease, "metadata");
        metadata.insert("namespace".into(), json!(self.namespace));
        metadata.insert("name".into(), json!(self.name));
        match &record.resource_version {
            Some(version) => metadata.insert("resourceVersion".into(), json!(version)),
            None => metadata.remove("resourceVersion"),
        };
        if let Some(text) = record.deletions.as_ref().and_then(DeletionNote::text) {
            let mut annotations = part(&mut metadata, "annotations");
            annotations.insert(DELETIONS.into(), json!(text));
            metadata.insert("annotations".into(), Value::Object(annotations));
        }
        let whole = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        let duration = whole(record.lease_duration.as_secs());
        let mut spec = part(&mut lease, "spec");
        spec.insert("holderIdentity".into(), json!(record.holder));
        spec.insert("leaseDurationSeconds".into(), json!(duration));
        spec.insert("acquireTime".into(), json!(record.acquire_time.map(micro_time)));
        spec.insert("renewTime".into(), json!(record.renew_time.map(micro_time)));
        spec.insert("leaseTransitions".into(), json!(whole(record.transitions.into())));
        lease.insert("metadata".into(), Value::Object(metadata));
        lease.insert("spec".into(), Value::Object(spec));
        lease
    }
}

/// Takes a part out of an object; an empty one, if there is none.
fn part(lease: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    match lease.remove(key) {
        Some(Value::Object(part)) => part,
        _ => Map::new(),
    }
}

/// A time in the form and as precisely as the API server keeps it.
fn micro_time(time: Timestamp) -> String {
    let time = Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time);
    format!("{time:.6}")
}

/// A field of the spec; `None` if it is not there, or of another form.
fn field<T: DeserializeOwned>(lease: &Map<String, Value>, key: &str) -> Option<T> {
    T::deserialize(lease.get("spec")?.get(key)?).ok()
}

impl LeaseRecord {
    /// Reads an object. What is not of the form that it has to have counts as not said.
    pub(crate) fn from_object(mut lease: Map<String, Value>) -> Self {
        if let Some(Value::Object(metadata)) = lease.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        let text = |key| {
            let metadata = lease.get("metadata")?;
            metadata.get(key)?.as_str().map(str::to_owned)
        };
        Self {
            holder: field(&lease, "holderIdentity").unwrap_or_default(),
            lease_duration: Duration::from_secs(field(&lease, "leaseDurationSeconds").unwrap_or(0)),
            acquire_time: field(&lease, "acquireTime"),
            renew_time: field(&lease, "renewTime"),
            transitions: field(&lease, "leaseTransitions").unwrap_or(0),
            resource_version: text("resourceVersion"),
            uid: text("uid").unwrap_or_default(),
            deletions: lease
                .get("metadata")
                .and_then(|metadata| metadata.get("annotations")?.get(DELETIONS)?.as_str())
                .and_then(DeletionNote::read),
            source: Some(Box::new(lease)),
        }
    }

    /// Notes deletions in this term.
    pub fn note(&mut self, deletions: DeletionNote) {
        let term = Some(self.transitions);
        self.deletions = Some(DeletionNote { term, ..deletions });
    }

    /// The same without the annotation, for an API server that refuses it; `None` if it has none.
    pub fn without_note(&self) -> Option<Self> {
        let mut bare = Self {
            deletions: None,
            ..self.clone()
        };
        let annotations = bare
            .source
            .as_mut()
            .and_then(|lease| lease.get_mut("metadata")?.get_mut("annotations")?.as_object_mut());
        let was_stored = annotations.is_some_and(|annotations| annotations.remove(DELETIONS).is_some());
        (was_stored || self.deletions.is_some()).then_some(bare)
    }

    /// From now on the note on the lease does not tell how old a deletion is.
    pub fn doubt_note(&mut self) {
        if let Some(deletions) = &mut self.deletions {
            deletions.term = None;
        }
    }

    /// Whether the note on the lease is complete up to this term.
    pub fn is_note_complete(&self) -> bool {
        let note = self.deletions.as_ref();
        note.is_some_and(|note| note.term == Some(self.transitions))
    }

    /// Whether nobody holds the lease.
    pub fn is_released(&self) -> bool {
        self.holder.is_empty()
    }
}
