//! A cloud of instances that answers from a table and keeps record of what it was asked.

#![expect(clippy::unwrap_used, reason = "a test ends on a surprise")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, FoundBy, Instance, InstanceAnswer, InstanceMetadata,
    InstanceQuery, InstanceResult, InstanceState, InstancesV2, Node, NodeAddress, PowerState, Purpose,
};
use futures::future::{BoxFuture, FutureExt as _};
use tokio::time::Instant;

/// The instances. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct TestInstances(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    table: BTreeMap<String, InstanceResult>,
    calls: Vec<Call>,
    latency: Duration,
    /// A platform whose cloud does not answer.
    silent: Option<&'static str>,
    outage: Option<CloudError>,
    /// Nothing is proved before a question named an instance that is there.
    needs_witness: bool,
}

/// One call: when, and about which Nodes.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) at: Instant,
    pub(crate) asked: Vec<(String, Purpose)>,
}

impl TestInstances {
    /// What the cloud says about the instance of a Node from now on.
    pub(crate) fn set(&self, node: &str, answer: InstanceResult) {
        self.lock().table.insert(node.to_owned(), answer);
    }

    /// An instance that runs.
    pub(crate) fn run(&self, node: &str, metadata: InstanceMetadata) {
        self.set(node, present(metadata, PowerState::On));
    }

    /// The instance is proved gone.
    pub(crate) fn remove(&self, node: &str) {
        self.set(
            node,
            Ok(InstanceAnswer::Absent(AbsenceProof::new("the API answered 404"))),
        );
    }

    /// That an instance is gone is proved only once another one was asked for.
    pub(crate) fn prove_beside_others(&self) {
        self.lock().needs_witness = true;
    }

    /// Every question fails, or none does.
    pub(crate) fn outage(&self, error: Option<CloudError>) {
        self.lock().outage = error;
    }

    /// How long the cloud takes to answer.
    pub(crate) fn latency(&self, latency: Duration) {
        self.lock().latency = latency;
    }

    /// The cloud of this platform does not answer any more.
    pub(crate) fn silence(&self, platform: &'static str) {
        self.lock().silent = Some(platform);
    }

    /// All calls so far.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.lock().calls.clone()
    }

    /// When a Node was asked for with this purpose.
    pub(crate) fn asked(&self, node: &str, purpose: Purpose) -> Vec<Instant> {
        self.calls()
            .into_iter()
            .filter(|call| {
                call.asked
                    .iter()
                    .any(|(name, why)| name == node && *why == purpose)
            })
            .map(|call| call.at)
            .collect()
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
                let of_silent =
                    |query: &InstanceQuery| state.silent.is_some() && query.node.platform() == state.silent;
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
        let silent = self.lock().silent?;
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

pub(crate) fn present(metadata: InstanceMetadata, power: PowerState) -> InstanceResult {
    Ok(InstanceAnswer::Present(Box::new(Instance {
        metadata,
        power,
        state: InstanceState::default(),
        found_by: FoundBy::Id,
    })))
}

/// `fake://1`, `flex-4`, `z1`, `r1`, and these addresses, all internal but those of TEST-NET-3.
pub(crate) fn metadata(addresses: &[&str]) -> InstanceMetadata {
    InstanceMetadata {
        provider_id: Some("fake://1".into()),
        instance_type: "flex-4".into(),
        zone: "z1".into(),
        region: "r1".into(),
        addresses: addresses
            .iter()
            .map(|address| {
                let is_external = address.starts_with("203.0.113.");
                let kind = if is_external {
                    AddressType::ExternalIp
                } else {
                    AddressType::InternalIp
                };
                NodeAddress::new(kind, *address)
            })
            .collect(),
        ..InstanceMetadata::default()
    }
}
