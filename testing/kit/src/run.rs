//! What a reconcile did and what came of it.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::plan::{Impact, Note, ReportedOutcome};
use bowline_cloud_provider::{LoadBalancer, LoadBalancerStatus, ServiceFacts};
use bowline_drive::predict;

/// How a run ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do, and this is to be published.
    Settled(LoadBalancerStatus),
    /// What is asked cannot be had; the text says why.
    Refused(String),
    /// A read or a write failed; the text says which and how.
    Failed(String),
    /// The process was stopped.
    #[default]
    Stopped,
}

/// One run of the controller.
#[derive(Debug, Default)]
pub struct Run {
    /// How it ended.
    pub outcome: Outcome,
    /// The labels of the steps that were begun, wave by wave.
    pub waves: Vec<Vec<String>>,
    /// What each of them costs, as it was planned.
    pub impacts: Vec<Vec<Impact>>,
    /// The notes of all plans that the plan before did not have: these are told.
    pub notes: Vec<Note>,
    /// How long it waited, because the plan said so.
    pub waited: Duration,
    /// For what it waited last.
    pub waited_for: String,
    /// When to look again, if it settled and there is something to be tidied up later.
    pub again: Option<Duration>,
    /// What is not as it is asked for although the last plan settled.
    pub lacks: Option<String>,
    /// If it failed: how long the cloud asked to be left alone.
    pub stated: Option<Duration>,
    /// What is published although something was refused.
    pub published_although_refused: Option<LoadBalancerStatus>,
}

impl Run {
    /// The run itself.
    ///
    /// # Panics
    ///
    /// If it did not settle.
    #[track_caller]
    pub fn settled(self) -> Self {
        assert!(matches!(self.outcome, Outcome::Settled(_)), "{self:#?}");
        self
    }

    /// What would be published: addresses, else host names.
    ///
    /// # Panics
    ///
    /// If it did not settle.
    #[must_use]
    #[track_caller]
    pub fn published(&self) -> Vec<String> {
        let Outcome::Settled(status) = &self.outcome else {
            panic!("not settled: {self:#?}")
        };
        let entries = status.ingress.iter();
        entries
            .filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()))
            .collect()
    }

    /// Why it was refused or failed.
    ///
    /// # Panics
    ///
    /// If it was neither.
    #[must_use]
    #[track_caller]
    pub fn complaint(&self) -> &str {
        match &self.outcome {
            Outcome::Refused(text) | Outcome::Failed(text) => text,
            other => panic!("nothing to complain of: {other:?}"),
        }
    }

    /// The labels of the steps in order.
    #[must_use]
    pub fn steps(&self) -> Vec<&str> {
        self.waves.iter().flatten().map(String::as_str).collect()
    }

    /// The same without what stands in brackets: ids, that no test can know.
    #[must_use]
    pub fn kinds_of_steps(&self) -> Vec<&str> {
        let steps = self.steps().into_iter();
        steps.map(kind).collect()
    }

    /// The reasons of the notes in order.
    #[must_use]
    pub fn reasons(&self) -> Vec<&str> {
        let mut reasons: Vec<&str> = self.notes.iter().map(|note| note.reason).collect();
        reasons.dedup();
        reasons
    }
}

/// A label without what stands in brackets.
pub(crate) fn kind(label: &str) -> &str {
    label.split_once('(').map_or(label, |(kind, _)| kind)
}

/// The steps that are predicted for a Service, by their kinds as those of [`Run::kinds_of_steps`].
///
/// # Panics
///
/// If they do not settle.
pub async fn predicted_kinds(load_balancer: Arc<dyn LoadBalancer>, facts: ServiceFacts) -> Vec<String> {
    let report = predict(load_balancer, facts).await;
    let is_settled = matches!(report.outcome, ReportedOutcome::Settled { .. });
    assert!(is_settled, "{report:#?}");
    let steps = report.waves.iter().flat_map(|wave| &wave.steps);
    steps.map(|step| kind(&step.label).to_owned()).collect()
}
