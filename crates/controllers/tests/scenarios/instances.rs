//! A cloud of instances that answers from a table and keeps record of what it was asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, FoundBy, Instance, InstanceAnswer, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, InstancesV2, Node, NodeAddress, PowerState, Purpose,
};
use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The instances. Clones share them.
#[derive(Clone, Default)]
pub(super) struct TestInstances(Arc<Mutex<State>>);

#[derive(Default)]
pub(super) struct State {
    /// What the cloud says about the instance of each Node.
    pub(super) table: BTreeMap<String, InstanceResult>,
    pub(super) calls: Vec<Call>,
    /// How long the cloud takes to answer.
    pub(super) latency: Duration,
    /// A platform whose cloud does not answer any more.
    pub(super) silent: Option<String>,
    /// Every question fails.
    pub(super) outage: Option<CloudError>,
    /// That an instance is gone is proved only once another one was asked for.
    pub(super) needs_witness: bool,
}

/// One call: when, and about which Nodes.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) at: Instant,
    pub(super) asked: Vec<(String, Purpose)>,
}

impl TestInstances {
    /// Changes what is so of the cloud.
    pub(super) fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
    }

    /// All calls so far.
    pub(super) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl InstancesV2 for TestInstances {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        async move {
            let (latency, answers) = {
                let mut state = self.lock();
                let is_witness = |query: &InstanceQuery| query.purpose == Purpose::CredentialCheck;
                state.needs_witness &= !queries.iter().any(is_witness);
                let answers = queries.iter().map(|query| state.answer(query)).collect();
                state.calls.push(Call {
                    at: Instant::now(),
                    asked: queries
                        .iter()
                        .map(|query| (query.node.name.to_string(), query.purpose))
                        .collect(),
                });
                let of_silent = |query: &InstanceQuery| {
                    state.silent.is_some() && query.node.platform() == state.silent.as_deref()
                };
                match queries.iter().any(of_silent) {
                    true => (Duration::from_secs(60), answers),
                    false => (state.latency, answers),
                }
            };
            tokio::time::sleep(latency).await;
            answers
        }
        .boxed()
    }

    fn cloud_of(&self, node: &Node) -> Option<usize> {
        let silent = self.lock().silent.clone()?;
        Some(usize::from(node.platform()? == silent))
    }
}

impl State {
    fn answer(&self, query: &InstanceQuery) -> InstanceResult {
        if let Some(error) = &self.outage {
            return Err(error.clone());
        }
        let name = query.node.name.as_str();
        let unknown = || Err(CloudError::not_found(format!("no instance is called {name}")));
        match self.table.get(name) {
            // A listing without it proves nothing.
            Some(Ok(InstanceAnswer::Absent(_)))
                if query.purpose == Purpose::CredentialCheck || self.needs_witness =>
            {
                unknown()
            }
            Some(answer) => {
                let mut answer = answer.clone();
                if let Ok(InstanceAnswer::Present(instance)) = &mut answer {
                    let (own, found) = (&query.node.provider_id, &instance.metadata.provider_id);
                    let is_other = |own: &Arc<str>| found.as_ref().is_some_and(|found| **found != **own);
                    if own.as_ref().is_none_or(is_other) {
                        instance.found_by = FoundBy::Name;
                    }
                }
                answer
            }
            None => unknown(),
        }
    }
}

/// What a scenario says of an instance: `fake://NAME`, `flex-4`, `z1`, `r1` and 10.1.0.1 but for what it gives; `off` for its power.
pub(super) fn present(name: &str, given: &Value) -> InstanceResult {
    let text = |field: &str, usual: &str| given[field].as_str().unwrap_or(usual).to_owned();
    let usual = json!(["10.1.0.1"]);
    let addresses = given.get("addresses").unwrap_or(&usual).as_array();
    let addresses = addresses.into_iter().flatten().filter_map(Value::as_str);
    // All are internal but those of TEST-NET-3.
    let address = |text: &str| match text.starts_with("203.0.113.") {
        true => NodeAddress::new(AddressType::ExternalIp, text),
        false => NodeAddress::new(AddressType::InternalIp, text),
    };
    let labels = given["labels"].as_object().into_iter().flatten();
    let labels = labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned()));
    let metadata = InstanceMetadata {
        provider_id: Some(text("provider_id", &format!("fake://{name}"))),
        instance_type: text("type", "flex-4"),
        zone: text("zone", "z1"),
        region: "r1".into(),
        addresses: addresses.map(address).collect(),
        additional_labels: labels.collect(),
        ..InstanceMetadata::default()
    };
    Ok(InstanceAnswer::Present(Box::new(Instance {
        metadata,
        power: if given["off"] == true {
            PowerState::Off
        } else {
            PowerState::On
        },
        state: InstanceState::default(),
        found_by: FoundBy::Id,
    })))
}

/// That an instance is proved gone.
pub(super) fn absent() -> InstanceResult {
    Ok(InstanceAnswer::Absent(AbsenceProof::new("the API answered 404")))
}
