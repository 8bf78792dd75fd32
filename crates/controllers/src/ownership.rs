//! Whose Nodes are looked at where several managers share a cluster (KEP-5778, feature gate `CloudProviderNodeOwnership`).
//!
//! A Node with a provider ID of another scheme is another manager's: nothing is asked for it, and nothing is written to it. One
//! without a provider ID is asked for, and is left alone where no instance is found: another manager may have yet to give it one. It is
//! never deleted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{
    CloudError, ErrorKind, InstanceAnswer, InstanceQuery, InstanceResult, InstancesV2, Node, Purpose,
    Question,
};
use bowline_kube_io::Clock;
use futures::future::{BoxFuture, FutureExt as _};

use crate::metrics::ControllerMetrics;

/// Which Nodes are this manager's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ownership {
    /// The schemes of their provider IDs.
    pub platforms: Platforms,
    /// `--node-lifecycle-wait-timeout`: how old a Node without provider ID has to be before its instance is asked for because it is not
    /// ready, and before it is told of that none was found.
    pub wait: Duration,
}

/// Schemes of provider IDs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Platforms {
    /// Those of the provider.
    OfProvider,
    /// All: the cloud itself tells which Nodes are not its own.
    All,
    /// These.
    These(BTreeSet<String>),
}

impl Ownership {
    /// With the provider's own schemes where none are named.
    #[must_use]
    pub fn with_default(&self, provider: &[&str]) -> Self {
        let platforms = match &self.platforms {
            Platforms::OfProvider => {
                Platforms::These(provider.iter().map(|platform| (*platform).to_owned()).collect())
            }
            platforms => platforms.clone(),
        };
        Self {
            platforms,
            wait: self.wait,
        }
    }

    /// Whether a Node may still be waiting for the manager that it belongs to.
    #[must_use]
    pub fn may_be_anothers(&self, node: &Node, clock: &dyn Clock) -> bool {
        let age = clock.now().duration_since(node.created);
        node.provider_id.is_none() && age < self.wait.try_into().unwrap_or_default()
    }
}

/// Why a Node is passed over, as the label `reason` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    SchemeMismatch,
    NotOwned,
    NoProviderId,
    TimeoutWait,
}

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::SchemeMismatch => "scheme_mismatch",
            Self::NotOwned => "not_owned",
            Self::NoProviderId => "no_provider_id",
            Self::TimeoutWait => "timeout_wait",
        }
    }
}

/// The instances of this manager's Nodes. All others are [`InstanceAnswer::Foreign`], and counted.
pub struct OwnedInstances {
    instances: Arc<dyn InstancesV2>,
    ownership: Ownership,
    /// The label `controller`, by upstream's names.
    controller: &'static str,
    metrics: ControllerMetrics,
    clock: Arc<dyn Clock>,
}

impl OwnedInstances {
    /// Those of `instances`, as far as a controller is concerned.
    #[must_use]
    pub fn of(
        instances: Arc<dyn InstancesV2>,
        ownership: Ownership,
        controller: &'static str,
        metrics: ControllerMetrics,
        clock: Arc<dyn Clock>,
    ) -> Arc<dyn InstancesV2> {
        Arc::new(Self {
            instances,
            ownership,
            controller,
            metrics,
            clock,
        })
    }

    /// Why nobody is asked about a Node.
    fn passes_over(&self, query: &InstanceQuery) -> Option<Reason> {
        let InstanceQuery { node, purpose } = query;
        match (&node.provider_id, &self.ownership.platforms) {
            // An ID without a scheme some clouds take for their own, which they have to say themselves.
            (Some(_), Platforms::These(platforms)) => {
                let platform = node.platform().filter(|it| !platforms.contains(*it));
                platform.map(|_| Reason::SchemeMismatch)
            }
            (None, _) if *purpose == Purpose::Existence => {
                let waits = self.ownership.may_be_anothers(node, &*self.clock);
                waits.then_some(Reason::TimeoutWait)
            }
            _ => None,
        }
    }

    /// Why an answer counts for nothing.
    fn leaves_alone(query: &InstanceQuery, answer: &InstanceResult) -> Option<Reason> {
        let is_missing = match answer {
            Ok(InstanceAnswer::Foreign) => return Some(Reason::NotOwned),
            Ok(InstanceAnswer::Absent(_)) => true,
            Err(error) => error.kind() == ErrorKind::NotFound,
            Ok(InstanceAnswer::Present(_)) => false,
        };
        (is_missing && query.node.provider_id.is_none() && query.purpose == Purpose::Existence)
            .then_some(Reason::NoProviderId)
    }

    fn foreign(&self, query: &InstanceQuery, reason: Reason) -> InstanceResult {
        if query.purpose != Purpose::CredentialCheck {
            self.metrics.node_passed_over(self.controller, reason.as_str());
            tracing::debug!(controller = self.controller, node = %query.node.name, reason = reason.as_str(), "Node is left to its own manager");
        }
        Ok(InstanceAnswer::Foreign)
    }

    async fn ask(&self, queries: &[InstanceQuery]) -> Vec<InstanceResult> {
        let reasons: Vec<_> = queries.iter().map(|query| self.passes_over(query)).collect();
        let own = queries
            .iter()
            .zip(&reasons)
            .filter(|(_, reason)| reason.is_none());
        let own: Vec<InstanceQuery> = own.map(|(query, _)| query.clone()).collect();
        let answers = match own.is_empty() {
            true => Vec::new(),
            false => self.instances.instances(&own).await,
        };
        let mut answers = answers.into_iter();
        let unanswered = || Err(CloudError::other("the cloud did not answer"));
        let all = queries.iter().zip(reasons).map(|(query, reason)| match reason {
            Some(reason) => self.foreign(query, reason),
            None => {
                let answer = answers.next().unwrap_or_else(unanswered);
                match Self::leaves_alone(query, &answer) {
                    Some(reason) => self.foreign(query, reason),
                    None => answer,
                }
            }
        });
        all.collect()
    }
}

impl InstancesV2 for OwnedInstances {
    fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
        self.ask(queries).boxed()
    }

    fn cloud_of(&self, node: &Node) -> Option<usize> {
        self.instances.cloud_of(node)
    }

    fn names(&self) -> Vec<Question<'_, String>> {
        self.instances.names()
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::{AbsenceProof, NodeName};
    use jiff::Timestamp;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    use super::*;

    /// Knows nobody, and takes no Node of this name for its own.
    struct Nobody;

    impl InstancesV2 for Nobody {
        fn instances<'a>(&'a self, queries: &'a [InstanceQuery]) -> BoxFuture<'a, Vec<InstanceResult>> {
            let answer = |query: &InstanceQuery| match query.node.name == NodeName::new("theirs") {
                true => InstanceAnswer::Foreign,
                false => InstanceAnswer::Absent(AbsenceProof::new("404")),
            };
            let answers = queries.iter().map(|query| Ok(answer(query))).collect();
            futures::future::ready(answers).boxed()
        }
    }

    struct At(Timestamp);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    fn query(name: &str, id: Option<&str>, age: i64, purpose: Purpose) -> InstanceQuery {
        let node = Arc::new(Node {
            provider_id: id.map(Into::into),
            created: Timestamp::from_second(1_000 - age).unwrap(),
            ..Node::named(name)
        });
        InstanceQuery { node, purpose }
    }

    #[test]
    fn the_nodes_of_others_are_foreign_and_counted_by_reason() {
        let metrics = ControllerMetrics::default();
        let ownership = Ownership {
            platforms: Platforms::OfProvider,
            wait: Duration::from_secs(30),
        };
        let ownership = ownership.with_default(&["one"]);
        let clock = Arc::new(At(Timestamp::from_second(1_000).unwrap()));
        let owned = OwnedInstances::of(
            Arc::new(Nobody),
            ownership,
            "nodelifecycle",
            metrics.clone(),
            clock,
        );
        let queries = [
            query("a", Some("one://a"), 100, Purpose::Existence),
            query("b", Some("two://b"), 100, Purpose::Existence),
            query("theirs", Some("one://c"), 100, Purpose::Existence),
            query("new", None, 29, Purpose::Existence),
            query("old", None, 31, Purpose::Existence),
            query("old", None, 31, Purpose::Metadata),
            query("b", Some("two://b"), 100, Purpose::CredentialCheck),
            query("bare", Some("d"), 100, Purpose::Existence),
        ];
        let answers = owned.instances(&queries).now_or_never().unwrap();
        let is_foreign = answers
            .iter()
            .map(|answer| *answer == Ok(InstanceAnswer::Foreign));
        assert_eq!(
            is_foreign.collect::<Vec<_>>(),
            [false, true, true, true, true, false, true, false],
            "{answers:?}"
        );
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut page = String::new();
        encode(&mut page, &registry).unwrap();
        for reason in ["scheme_mismatch", "not_owned", "timeout_wait", "no_provider_id"] {
            let line = format!(
                "cloudprovider_node_ownership_skipped_total{{controller=\"nodelifecycle\",reason=\"{reason}\"}} 1\n"
            );
            assert!(page.contains(&line), "{line}{page}");
        }
    }
}
