//! Services before the installation: whether one could get a load balancer, and what would become of those that are there.

use std::sync::Arc;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{LoadBalancer, Service, ServiceKey, facts};
use jiff::Timestamp;

use crate::doctor::cloud::stand_in;
use crate::doctor::{Check, Objects, Patient, no_answer, some_lines, timed, unread};
use crate::plan::{PlanInput, plan_services};

topics! { pub(in crate::doctor) Services:
    WANTED = "services.waiting", "Services that would get a load balancer are known", "docs/guides/plan.md";
    EXAMPLE = "services.example", "a Service can get a load balancer", "docs/guides/troubleshoot.md#services";
    ADDRESSES = "services.foreign-addresses", "no Service has an address of somebody else",
        "docs/guides/several-managers.md";
}

/// How many plans of Services are made: one takes some reads of the cloud.
const PLANNED: usize = 20;

/// The checks of this category. `is_read`: whether the cloud lets load balancers be read at all.
pub(super) async fn checks(
    patient: &Patient<'_>,
    objects: &Objects,
    now: Option<Timestamp>,
    is_read: bool,
) -> Vec<Check> {
    let skipped = |because: &str| {
        [&WANTED, &EXAMPLE, &ADDRESSES]
            .map(|topic| topic.skipped(because))
            .to_vec()
    };
    let Some(now) = now else {
        return skipped("the API server does not answer");
    };
    if let Some(Err(error)) = &objects.services {
        let read = unread(patient.is_manager, &WANTED, error);
        return vec![
            read,
            EXAMPLE.skipped("Services are not read"),
            ADDRESSES.skipped("Services are not read"),
        ];
    }
    let wanted: Vec<&Arc<Service>> = objects
        .services()
        .iter()
        .filter(|it| objects.classes.is_wanted(it))
        .collect();
    let has_address = |it: &&&Arc<Service>| !facts::published_addresses(it).is_empty();
    let (with, without): (Vec<&Arc<Service>>, Vec<&Arc<Service>>) =
        wanted.iter().partition(|it| has_address(it));
    let waiting = WANTED
        .ok(format!(
            "{} without address would get one each, {} have one already",
            without.len(),
            with.len()
        ))
        .with(some_lines(
            without.iter().map(|it| ServiceKey::of(it).to_string()).collect(),
        ));
    let Some(load_balancer) = patient.cloud.provider().and_then(|it| it.load_balancer()) else {
        return vec![
            waiting,
            EXAMPLE.skipped("there is no provider, or it makes no load balancers as it is configured"),
            ADDRESSES.skipped("no load balancers are made"),
        ];
    };
    if !is_read {
        let because = "load balancers are not read";
        return vec![waiting, EXAMPLE.skipped(because), ADDRESSES.skipped(because)];
    }
    let input = |services| PlanInput {
        services,
        nodes: objects.nodes().to_vec(),
        cluster: Arc::clone(&objects.cluster),
        now,
    };
    vec![
        waiting,
        example(&load_balancer, objects, input).await,
        addresses(&load_balancer, &with, &input(objects.list())).await,
    ]
}

/// Plans a Service that nobody has made: this reads the network, zone, subnet or flavor that the configuration names.
async fn example(
    load_balancer: &Arc<dyn LoadBalancer>,
    objects: &Objects,
    input: impl Fn(bowline_cloud_provider::ServiceList) -> PlanInput,
) -> Check {
    if objects.nodes().is_empty() {
        return EXAMPLE.skipped("there is no Node that could be a member");
    }
    let Some(service) = stand_in() else {
        return EXAMPLE.skipped("there is no example");
    };
    let key = ServiceKey::of(&service);
    let mut services = objects.list();
    services.services.push(service);
    // The example has no class, whatever the manager serves.
    services.classes = bowline_cloud_provider::ServiceClasses::default();
    let planned = timed(plan_services(load_balancer, &input(services), &[key])).await;
    match planned.as_ref().and_then(|(reports, _)| reports.first()) {
        None => EXAMPLE.warning(no_answer(), "run `plan` with -f and a Service"),
        Some(report) => judge_example(report),
    }
}

fn judge_example(report: &PlanReport) -> Check {
    let seen = format!("one with port 80 and no annotations: {}", report.headline());
    match &report.outcome {
        ReportedOutcome::Settled { .. } | ReportedOutcome::Waiting { .. } | ReportedOutcome::NotServed { .. } => {
            EXAMPLE.ok(seen).with(report.in_words())
        }
        ReportedOutcome::Refused { refusal } => {
            let remedy = refusal.remedy.clone();
            EXAMPLE.warning(
                format!("{seen}: {}", refusal.reason),
                remedy.unwrap_or_else(|| "follow the text; it may be that each Service needs an annotation for it".to_owned()),
            )
        }
        ReportedOutcome::Failed { error } => EXAMPLE.failed(
            format!("{seen}: {error}"),
            "correct what the text names in the configuration of the cloud: project, zone, network, subnet or flavor",
        ),
    }
}

/// Whether Services have addresses that this cloud's load balancers have not.
async fn addresses(
    load_balancer: &Arc<dyn LoadBalancer>,
    with: &[&Arc<Service>],
    input: &PlanInput,
) -> Check {
    if with.is_empty() {
        return ADDRESSES.ok("none has an address");
    }
    let keys: Vec<ServiceKey> = with.iter().take(PLANNED).map(|it| ServiceKey::of(it)).collect();
    let Some((reports, _)) = timed(plan_services(load_balancer, input, &keys)).await else {
        return ADDRESSES.warning(
            no_answer(),
            "run `plan` with --service NAMESPACE/NAME for those that matter",
        );
    };
    let differ: Vec<String> = reports
        .iter()
        .filter(|report| !report.is_idle())
        .map(|report| format!("{}: {}", report.object, report.headline()))
        .collect();
    let seen = match keys.len() == with.len() {
        true => format!("{} compared", with.len()),
        false => format!("the first {} of {} compared", keys.len(), with.len()),
    };
    if differ.is_empty() {
        return ADDRESSES.ok(format!(
            "{seen}: their load balancers are as this manager makes them"
        ));
    }
    ADDRESSES
        .warning(
            format!("{seen}, {} would change", differ.len()),
            "look at `plan` before you install: where another program gave the address, the manager makes a load balancer of its own, and the address changes. \
             A Service that is to stay needs a spec.loadBalancerClass of that program, which can be set only when it is made",
        )
        .with(some_lines(differ))
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::plan::Refusal;

    use super::*;
    use crate::doctor::Outcome;

    #[test]
    fn an_example_that_cannot_be_planned_names_the_cause() {
        let report = |outcome| PlanReport {
            outcome,
            ..PlanReport::of_nothing("kube-system/bowline-doctor".to_owned())
        };
        let failed = judge_example(&report(ReportedOutcome::Failed {
            error: "network 7 does not exist".to_owned(),
        }));
        assert_eq!(failed.outcome, Outcome::Failed);
        assert!(failed.seen.ends_with(": network 7 does not exist"), "{failed:?}");
        let refused = judge_example(&report(ReportedOutcome::Refused {
            refusal: Refusal::new("no zone").with_remedy("name one"),
        }));
        assert_eq!(
            (refused.outcome, refused.remedy.as_str()),
            (Outcome::Warning, "name one")
        );
    }
}
