//! What a cluster shows beside an object: its events, and who holds leases. For the commands that a person runs; the
//! manager's own role does not grant these lists.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client::Kube;
use crate::error::KubeError;
use crate::exchange::{Call, object_path, segment};
use crate::lease::LeaseRecord;
use crate::shape::{lenient, read};
use crate::writers::last_of;

/// Objects that are asked for at once: one page, and what is beyond is left out.
const MOST: usize = 2_000;

/// An event as the API server shows it, whoever recorded it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenEvent {
    /// The object that it is about: `namespace/name`, or the name alone.
    pub object: String,
    /// Whether it warns.
    pub is_warning: bool,
    /// The reason: one word.
    pub reason: String,
    /// The text.
    pub message: String,
    /// How often it was recorded.
    pub count: u32,
    /// When it was recorded last.
    pub last: Timestamp,
    /// The process that wrote it, as its lease names it, or its computer; empty if it does not say.
    pub process: String,
}

/// A lease with a holder.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenLease {
    /// The name.
    pub name: String,
    /// What it says.
    pub record: LeaseRecord,
    /// The program that renewed it last: [`PROGRAM`](crate::PROGRAM), or what stands first in its `User-Agent`; `None` if the API
    /// server keeps none.
    pub writer: Option<String>,
    /// When that was, by the clock of the API server.
    pub written: Option<Timestamp>,
}

impl SeenLease {
    fn of(lease: Map<String, Value>) -> Self {
        let metadata = lease.get("metadata").cloned().unwrap_or_default();
        let managed = metadata["managedFields"].as_array().cloned().unwrap_or_default();
        let renewal = [["f:spec", "f:renewTime"].map(str::to_owned).to_vec()];
        let writer = last_of(managed.clone(), &renewal, "");
        let is_of_writer = |entry: &&Value| entry["manager"].as_str() == writer.as_deref();
        let times = managed.iter().filter(is_of_writer);
        let written = times
            .filter_map(|entry| entry["time"].as_str()?.parse().ok())
            .max();
        Self {
            name: metadata["name"].as_str().unwrap_or_default().to_owned(),
            record: LeaseRecord::from_object(lease),
            writer,
            written,
        }
    }
}

/// The pods behind a Service, as its EndpointSlices tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Endpoints {
    /// How many are ready.
    pub ready: usize,
    /// How many are not.
    pub unready: usize,
    /// The Nodes of those that are ready.
    pub nodes: BTreeSet<String>,
    /// The names of the Service's ports that some of those have; one without a name is empty.
    pub ports: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Slice {
    #[serde(default)]
    endpoints: Option<Vec<Endpoint>>,
    #[serde(default)]
    ports: Option<Vec<EndpointPort>>,
}

#[derive(Deserialize)]
struct EndpointPort {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    #[serde(default)]
    conditions: EndpointConditions,
    #[serde(default)]
    node_name: Option<String>,
}

#[derive(Default, Deserialize)]
struct EndpointConditions {
    ready: Option<bool>,
}

#[derive(Deserialize)]
struct List<T> {
    items: Vec<T>,
}

// What is of another form than it should have counts as not there.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Event {
    #[serde(deserialize_with = "lenient")]
    involved_object: BTreeMap<String, String>,
    #[serde(rename = "type", deserialize_with = "lenient")]
    kind: String,
    #[serde(deserialize_with = "lenient")]
    reason: String,
    #[serde(deserialize_with = "lenient")]
    message: String,
    #[serde(deserialize_with = "lenient")]
    count: u32,
    #[serde(deserialize_with = "lenient")]
    last_timestamp: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    event_time: Option<Timestamp>,
    #[serde(deserialize_with = "lenient")]
    reporting_instance: String,
    #[serde(deserialize_with = "lenient")]
    metadata: Created,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Created {
    #[serde(deserialize_with = "lenient")]
    creation_timestamp: Option<Timestamp>,
}

impl Event {
    fn seen(self) -> SeenEvent {
        let part = |key: &str| self.involved_object.get(key).map_or("", String::as_str);
        let object = match part("namespace") {
            "" => part("name").to_owned(),
            namespace => format!("{namespace}/{}", part("name")),
        };
        let last = self.last_timestamp.or(self.event_time);
        SeenEvent {
            object,
            is_warning: self.kind == "Warning",
            reason: self.reason,
            message: self.message,
            count: self.count.max(1),
            last: last.or(self.metadata.creation_timestamp).unwrap_or_default(),
            process: self.reporting_instance,
        }
    }
}

impl Kube {
    /// The events about the objects of a kind, the newest last; about one alone if its namespace and name are given. The
    /// namespace of what has none is empty.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list events, as the manager's role.
    pub async fn events_about(
        &self,
        kind: &str,
        one: Option<(&str, &str)>,
    ) -> Result<Vec<SeenEvent>, KubeError> {
        let (scope, name) = match one {
            None => (String::new(), String::new()),
            Some((namespace, name)) => {
                let kept_in = if namespace.is_empty() {
                    "default"
                } else {
                    namespace
                };
                (
                    format!("namespaces/{}/", segment(kept_in)),
                    format!(",involvedObject.name%3D{}", segment(name)),
                )
            }
        };
        let path =
            format!("/api/v1/{scope}events?limit={MOST}&fieldSelector=involvedObject.kind%3D{kind}{name}");
        let List::<Event> { items } = read(&self.exchange(Call::get(path)).await?)?;
        let mut events: Vec<SeenEvent> = items.into_iter().map(Event::seen).collect();
        events.sort_by_key(|event| event.last);
        Ok(events)
    }

    /// The pods behind a Service; `None` if nobody has written down any for it, not even that there are none.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list EndpointSlices, as the manager's role.
    pub async fn endpoints(&self, namespace: &str, service: &str) -> Result<Option<Endpoints>, KubeError> {
        let path = format!(
            "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices?limit={MOST}&labelSelector=kubernetes.io%2Fservice-name%3D{}",
            segment(namespace),
            segment(service)
        );
        let List::<Slice> { items } = read(&self.exchange(Call::get(path)).await?)?;
        if items.is_empty() {
            return Ok(None);
        }
        let mut seen = Endpoints::default();
        for Slice { endpoints, ports } in items {
            let ready = seen.ready;
            for endpoint in endpoints.into_iter().flatten() {
                // Nothing said means ready.
                if endpoint.conditions.ready.unwrap_or(true) {
                    seen.ready += 1;
                    seen.nodes.extend(endpoint.node_name);
                } else {
                    seen.unready += 1;
                }
            }
            if seen.ready > ready {
                let ports = ports.into_iter().flatten();
                seen.ports.extend(ports.map(|it| it.name.unwrap_or_default()));
            }
        }
        Ok(Some(seen))
    }

    /// One lease, also if nobody holds it.
    ///
    /// # Errors
    ///
    /// [`KubeError::NotFound`] if there is none.
    pub async fn shown_lease(&self, namespace: &str, name: &str) -> Result<SeenLease, KubeError> {
        let path = object_path("apis/coordination.k8s.io/v1", namespace, "leases", name);
        let call = Call::get(path).with_managed_fields();
        Ok(SeenLease::of(read(&self.exchange(call).await?)?))
    }

    /// When the data of a Secret was written last, by the clock of the API server; of the data nothing is read. `None`: it does not tell.
    ///
    /// # Errors
    ///
    /// [`KubeError::NotFound`] if there is none.
    pub async fn secret_written(&self, namespace: &str, name: &str) -> Result<Option<Timestamp>, KubeError> {
        let path = object_path("api/v1", namespace, "secrets", name);
        let answer = self.exchange(Call::get(path).for_managed_metadata()).await?;
        let object: Map<String, Value> = read(&answer)?;
        let metadata = object.get("metadata").unwrap_or(&Value::Null);
        let managed = metadata["managedFields"].as_array();
        let of_data = managed
            .into_iter()
            .flatten()
            .filter(|entry| entry["fieldsV1"].get("f:data").is_some())
            .map(|entry| &entry["time"]);
        let times = of_data.chain([&metadata["creationTimestamp"]]);
        Ok(times.filter_map(|time| time.as_str()?.parse().ok()).max())
    }

    /// The leases of a namespace that somebody holds, by their last word: one that ran out is among them.
    ///
    /// # Errors
    ///
    /// [`KubeError::Forbidden`] for whoever may not list leases, as the manager's role.
    pub async fn held_leases(&self, namespace: &str) -> Result<Vec<SeenLease>, KubeError> {
        let folder = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases?limit={MOST}",
            segment(namespace)
        );
        let call = Call::get(folder).with_managed_fields();
        let List::<Map<String, Value>> { items } = read(&self.exchange(call).await?)?;
        let seen = items.into_iter().map(SeenLease::of);
        Ok(seen.filter(|lease| !lease.record.is_released()).collect())
    }
}
