//! What would be done for a Service, without doing it.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use bowline_cloud_provider::{
    DynPlan, DynStep, KubeWrite, LoadBalancer, LoadBalancerStatus, Reconcile, ServiceFacts, facts, lock,
};
use bowline_plan::{AddressChange, PlanReport, Refusal, ReportedOutcome, ReportedWave, Shown, StepView};
use futures::future::BoxFuture;

use crate::{Driven, Hooks, Mode, drive};

/// Looks, plans, predicts the wave's effect, and plans again until there is nothing left to predict. Nothing is written,
/// neither to the cloud nor to Kubernetes.
///
/// Nothing is created, so nothing that an earlier process may have created is waited for: the plan shows what comes after that.
pub async fn predict(load_balancer: Arc<dyn LoadBalancer>, mut facts: ServiceFacts) -> PlanReport {
    facts.has_begun = false;
    let object = facts.key().to_string();
    predict_session(object, load_balancer.begin(facts)).await
}

/// The same for a session that has begun, or why it did not; `object` is the name of what it is about.
pub async fn predict_session(
    object: String,
    session: Result<Box<dyn Reconcile<ServiceFacts>>, Refusal>,
) -> PlanReport {
    let predicting = Predicting(Mutex::new(PlanReport::of_nothing(object)));
    let mut ailments = Vec::new();
    let mut shown = Shown::default();
    let (mut is_shown, mut is_settled_without_address) = (false, false);
    let mut address_change = None;
    let outcome = match session {
        Ok(mut session) => {
            let before = facts::published_addresses(&session.facts().service);
            let driven = drive(&mut *session, Mode::Predict, &predicting, &mut false).await;
            ailments = session.ailments();
            shown = session.shown();
            // There a Node without a pod of the Service does not answer.
            let is_local = facts::is_local_traffic_only(&session.facts().service);
            ailments.retain(|ailment| ailment.is_total || !is_local);
            is_shown = !facts::published_addresses(&session.facts().service).is_empty();
            match driven {
                Ok(Driven::Settled(status, _)) => {
                    is_settled_without_address = session.facts().is_wanted && status.ingress.is_empty();
                    if session.facts().is_wanted && status.ingress.iter().all(|it| it.hostname.is_none()) {
                        address_change = AddressChange::between(&before, &addresses(&status));
                    }
                    ReportedOutcome::Settled {
                        publishes: published(session.facts(), &status),
                    }
                }
                Ok(Driven::Wait { reason, .. }) => ReportedOutcome::Waiting { reason },
                Ok(Driven::Refused(refusal, _)) => ReportedOutcome::Refused { refusal },
                Ok(Driven::Superseded) => ReportedOutcome::Failed {
                    error: "the provider has no plan".to_owned(),
                },
                Err(error) => ReportedOutcome::Failed {
                    error: error.to_string(),
                },
            }
        }
        Err(refusal) => ReportedOutcome::Refused { refusal },
    };
    let report = predicting.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = match outcome {
        // Nobody can predict what the cloud chooses.
        ReportedOutcome::Settled { .. } if is_settled_without_address && report.has_changes() => {
            let publishes = vec!["the address that the cloud assigns".to_owned()];
            if let Some(change) = &mut address_change {
                change.to.clone_from(&publishes);
            }
            ReportedOutcome::Settled { publishes }
        }
        outcome => outcome,
    };
    // What has no address yet is under way. What nothing is left to make of stays.
    let is_under_way = report.has_changes();
    let is_made = !is_under_way && matches!(outcome, ReportedOutcome::Settled { .. });
    let ailments = ailments.into_iter().filter_map(|it| match is_made {
        true => it.once_made(),
        false => (!it.is_of_making || is_shown && is_under_way).then_some(it),
    });
    PlanReport {
        outcome,
        ailments: ailments.collect(),
        shown,
        address_change,
        ..report
    }
}

/// What would be changed in the Service's status and finalizers at the end, in words.
fn published(facts: &ServiceFacts, status: &LoadBalancerStatus) -> Vec<String> {
    let shown = facts::published_addresses(&facts.service);
    let wanted = addresses(status);
    let mut words = Vec::new();
    match (shown == wanted, wanted.is_empty()) {
        (true, _) => {}
        (false, true) => words.push("no address".to_owned()),
        (false, false) => words.extend(wanted),
    }
    if !facts.is_wanted && facts::has_finalizer(&facts.service) {
        words.push("no finalizer".to_owned());
    }
    words
}

fn addresses(status: &LoadBalancerStatus) -> Vec<String> {
    let entries = status.ingress.iter();
    entries
        .filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()))
        .collect()
}

/// The report in the making.
struct Predicting(Mutex<PlanReport>);

impl Hooks<ServiceFacts, Infallible> for Predicting {
    fn planned(&self, _facts: &ServiceFacts, plan: &DynPlan) {
        let notes = &mut lock(&self.0).notes;
        for note in &plan.notes {
            // The same note may be part of every plan as long as it holds.
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }

    fn writing(&self, _facts: &ServiceFacts, wave: &[DynStep]) {
        let views: Vec<StepView> = wave.iter().map(|step| step.view().clone()).collect();
        lock(&self.0).waves.push(ReportedWave::of(&views));
    }

    fn write<'a>(
        &'a self,
        facts: &'a Mutex<ServiceFacts>,
        write: &'a KubeWrite,
    ) -> BoxFuture<'a, Result<(), Infallible>> {
        write.predict(Arc::make_mut(&mut lock(facts).service));
        Box::pin(std::future::ready(Ok(())))
    }

    fn object(&self) -> String {
        lock(&self.0).object.clone()
    }
}
