//! The lease of leader election: its record, its requests, and the rules of who may take it.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use serde_json::json;

use crate::client::Kube;
use crate::error::KubeError;
use crate::events::ObjectRef;
use crate::exchange::{Call, JSON, Rank, segment};

mod answer;
mod election;
mod watch;

pub use election::{Decision, Election, LeaseTimings};
pub use watch::LeaseWatch;

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
    /// The object that the record came from, so that an update does not lose what others have put there.
    pub source: Option<Box<Lease>>,
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
    #[must_use]
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
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The lease as an object of events.
    #[must_use]
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

    async fn write(&self, method: Method, record: &LeaseRecord) -> Result<LeaseRecord, KubeError> {
        let sent = self.object_of(record);
        let path = self.path(method == Method::PUT);
        let call = Call::send(method, path, JSON, &json!(sent));
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

    fn object_of(&self, record: &LeaseRecord) -> Lease {
        let LeaseRecord {
            holder,
            lease_duration,
            acquire_time,
            renew_time,
            transitions,
            ..
        } = record;
        let mut lease = record.source.as_deref().cloned().unwrap_or_default();
        let ObjectMeta {
            namespace,
            name,
            resource_version,
            ..
        } = &mut lease.metadata;
        *namespace = Some(self.namespace.clone());
        *name = Some(self.name.clone());
        resource_version.clone_from(&record.resource_version);
        let spec = lease.spec.get_or_insert_with(LeaseSpec::default);
        spec.holder_identity = Some(holder.clone());
        spec.lease_duration_seconds = Some(i32::try_from(lease_duration.as_secs()).unwrap_or(i32::MAX));
        spec.acquire_time = acquire_time.map(micro_time);
        spec.renew_time = renew_time.map(micro_time);
        spec.lease_transitions = Some(i32::try_from(*transitions).unwrap_or(i32::MAX));
        lease
    }
}

/// A time as precisely as the API server keeps it.
fn micro_time(time: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}

impl LeaseRecord {
    fn from_object(mut lease: Lease) -> Self {
        lease.metadata.managed_fields = None;
        let spec = lease.spec.clone().unwrap_or_default();
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            lease_duration: Duration::from_secs(
                spec.lease_duration_seconds
                    .and_then(|seconds| u64::try_from(seconds).ok())
                    .unwrap_or(0),
            ),
            acquire_time: spec.acquire_time.map(|time| time.0),
            renew_time: spec.renew_time.map(|time| time.0),
            transitions: spec
                .lease_transitions
                .and_then(|count| u32::try_from(count).ok())
                .unwrap_or(0),
            resource_version: lease.metadata.resource_version.clone(),
            uid: lease.metadata.uid.clone().unwrap_or_default(),
            source: Some(Box::new(lease)),
        }
    }

    /// Whether nobody holds the lease.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.holder.is_empty()
    }
}
