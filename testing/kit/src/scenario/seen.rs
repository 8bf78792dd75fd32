//! What a run did and what a plan says, as JSON.

use std::time::Duration;

use bowline_cloud_kit::Entry;
use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{CloudProvider, LoadBalancerStatus};
use serde_json::{Value, json};

use super::ScenarioCloud;
use crate::run::kind;
use crate::{Outcome, Run};

/// A plan as JSON, with the calls that it took.
pub(super) fn planned<C: ScenarioCloud>(report: &PlanReport, entries: &[Entry]) -> Value {
    let mut plan = json!(report);
    let steps = report.waves.iter().flat_map(|wave| &wave.steps);
    plan["kinds"] = steps.map(|step| kind(&step.label)).collect();
    plan["ailments"] = json!(report.ailments);
    plan["members"] = json!(report.shown.members);
    plan["calls"] = entries.iter().map(C::operation).collect();
    plan
}

/// A run as JSON.
pub(super) fn shown<C: ScenarioCloud>(run: &Run, entries: &[Entry], took: Duration) -> Value {
    let (outcome, complaint, status) = match &run.outcome {
        Outcome::Settled(status) => ("settled", None, Some(status)),
        Outcome::Refused(text) => ("refused", Some(text), run.published_although_refused.as_ref()),
        Outcome::Failed(text) => ("failed", Some(text), None),
        Outcome::Stopped => ("stopped", None, None),
    };
    let operations = |writes_only: bool| {
        let entries = entries.iter().filter(move |entry| entry.write || !writes_only);
        entries.map(C::operation).collect::<Vec<_>>()
    };
    let requests = entries.iter().map(|entry| {
        let mut shown = json!(entry);
        shown["status"] = json!(entry.status());
        shown
    });
    let requests: Vec<Value> = requests.collect();
    let is_write = |entry: &&Value| entry["write"] == json!(true);
    let impacts = run.impacts.iter();
    let impacts = impacts.map(|wave| wave.iter().map(ToString::to_string).collect::<Vec<_>>());
    let notes = run.notes.iter().map(|note| {
        let mut shown = json!(note);
        shown["is_said_at_start"] = json!(note.is_said_at_start);
        shown["occasion"] = json!(note.occasion);
        shown
    });
    json!({
        "outcome": outcome,
        "complaint": complaint,
        "published": status.map(addresses),
        "ingress": status.map(|status| status.ingress.iter().map(|entry| json!({
            "ip": entry.ip,
            "hostname": entry.hostname,
            "ip_mode": entry.ip_mode.map(|mode| mode.as_str()),
            "ports": entry.ports.iter().map(|port| port.port).collect::<Vec<_>>(),
        })).collect::<Vec<_>>()),
        "waves": run.waves,
        "impacts": impacts.collect::<Vec<_>>(),
        "steps": run.steps(),
        "kinds": run.kinds_of_steps(),
        "notes": notes.collect::<Vec<_>>(),
        "reasons": run.reasons(),
        "waited_ms": run.waited.as_millis(),
        "waited_for": run.waited_for,
        "again_ms": run.again.map(|again| again.as_millis()),
        "lacks": run.lacks,
        "stated_ms": run.stated.map(|stated| stated.as_millis()),
        "took_ms": took.as_millis(),
        "calls": operations(false),
        "writes": operations(true),
        "written": requests.iter().filter(is_write).cloned().collect::<Vec<_>>(),
        "requests": requests,
    })
}

fn addresses(status: &LoadBalancerStatus) -> Vec<String> {
    let entries = status.ingress.iter();
    entries
        .filter_map(|entry| entry.ip.clone().or_else(|| entry.hostname.clone()))
        .collect()
}

/// What a provider has for the controllers.
pub(super) fn offers(cloud: &dyn CloudProvider) -> Vec<&'static str> {
    let parts = [
        ("instances", cloud.instances().is_some()),
        ("load balancers", cloud.load_balancer().is_some()),
        ("routes", cloud.routes().is_some()),
        ("cluster id", cloud.has_cluster_id()),
    ];
    let there = parts
        .into_iter()
        .filter(|(_, is_there)| *is_there)
        .map(|(part, _)| part);
    let work = cloud.background_work();
    there.chain(work.iter().map(|work| work.name())).collect()
}
