//! Whether what the cloud has is what Services ask for: plans are made, and of those that look well what is not empty is told.

use bowline_cloud_provider::plan::{NoteKind, PlanReport, ReportedOutcome};
use bowline_cloud_provider::{ServiceKey, facts};
use jiff::Timestamp;

use super::{Category, Check, Cloud, Objects, Topic, no_answer, some_lines, timed};
use crate::plan::{PlanInput, plan_services};
use crate::why::{Unserved, is_troubled};

pub(super) static AS_ASKED: Topic = Topic::new(
    Category::Services,
    "services.as-asked",
    "load balancers are as their Services ask",
    "docs/guides/troubleshoot.md#services",
);

/// How many plans are made: one takes some reads of the cloud.
const PLANNED: usize = 20;

/// How many of them are for Services in trouble, at most: the others are a sample of those that look well.
const TROUBLED: usize = 15;

/// Plans of Services, those in trouble first. Nothing where the cloud has not to be asked, or an answer took too long.
pub(super) async fn plans(
    cloud: &Cloud,
    objects: &Objects,
    now: Option<Timestamp>,
) -> Option<Vec<PlanReport>> {
    let load_balancer = cloud.provider().and_then(|it| it.load_balancer())?;
    let (troubled, well): (Vec<_>, Vec<_>) = objects
        .services()
        .iter()
        .filter(|service| facts::is_wanted(service) || facts::needs_cleanup(service))
        .partition(|service| is_troubled(service));
    let troubled = troubled.into_iter().take(TROUBLED);
    let keys: Vec<ServiceKey> = troubled
        .chain(well)
        .take(PLANNED)
        .map(|service| ServiceKey::of(service))
        .collect();
    if keys.is_empty() {
        return Some(Vec::new());
    }
    let input = PlanInput {
        services: objects.services().to_vec(),
        nodes: objects.nodes().to_vec(),
        cluster: objects.cluster.clone(),
        now: now?,
    };
    let planned = timed(plan_services(&load_balancer, &input, &keys)).await;
    planned.map(|(reports, _)| reports)
}

/// The check of Services that look well. `is_read`: whether the cloud lets load balancers be read at all.
pub(super) fn check(
    plans: Option<&[PlanReport]>,
    objects: &Objects,
    unserved: Option<Unserved>,
    is_read: bool,
) -> Check {
    match unserved {
        None => {}
        Some(Unserved::Controller) => return AS_ASKED.ok("not looked at: this manager serves no Services"),
        Some(Unserved::Provider) => {
            return AS_ASKED.ok("not looked at: this manager makes no load balancers");
        }
    }
    if !is_read {
        return AS_ASKED.skipped("Services or load balancers are not read");
    }
    let Some(plans) = plans else {
        return AS_ASKED.warning(
            no_answer(),
            "run `plan` with --service NAMESPACE/NAME for those that matter",
        );
    };
    // Those in trouble are told of already.
    let well = objects.services().iter();
    let well = well.filter(|service| facts::is_wanted(service) && !is_troubled(service));
    let well: Vec<String> = well.map(|service| ServiceKey::of(service).to_string()).collect();
    if well.is_empty() {
        return AS_ASKED.ok("none has an address and no trouble");
    }
    let compared: Vec<&PlanReport> = plans.iter().filter(|plan| well.contains(&plan.object)).collect();
    judge(&compared, well.len())
}

/// What is told of these plans, out of so many Services.
fn judge(reports: &[&PlanReport], of: usize) -> Check {
    let seen = match reports.len() {
        all if all == of => format!("{all} compared"),
        some => format!("the first {some} of {of} compared"),
    };
    let (mut unlike, mut told) = (Vec::new(), Vec::new());
    for report in reports {
        let warnings = report.notes.iter().filter(|note| note.kind == NoteKind::Warning);
        let warnings = warnings.map(|note| format!("{}: {}", note.reason, note.text));
        let ailments = report.ailments.iter().map(|it| it.text.clone());
        let warnings: Vec<String> = warnings.chain(ailments).collect();
        if let Some(difference) = difference(report) {
            unlike.push([vec![difference], warnings].concat().join("; "));
        } else if !warnings.is_empty() {
            told.push(format!(
                "{}: no changes, and a warning: {}",
                report.object,
                warnings.join("; ")
            ));
        }
    }
    let counts = [
        (unlike.len(), "with a difference"),
        (told.len(), "with a warning alone"),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if counts.is_empty() {
        return AS_ASKED.ok(seen);
    }
    let is_refused = |report: &&PlanReport| matches!(report.outcome, ReportedOutcome::Refused { .. });
    let remedy = match unlike.is_empty() {
        true => {
            "the load balancers need no change; do what the warnings say. The events of the Service tell them too"
        }
        false if reports.iter().any(is_refused) => {
            "no manager makes good by itself what is not possible as it is asked for: change what the text names. All that is known of one tells \
             `explain`, with the same flags and service/NAMESPACE/NAME"
        }
        false => {
            "a manager that works makes most of this good by itself: look again in a minute. What stays is told by the events of the Service, and \
             step by step by `plan` with the same flags and --service NAMESPACE/NAME"
        }
    };
    AS_ASKED
        .warning(format!("{seen}, {}", counts.join(", ")), remedy)
        .with(some_lines([unlike, told].concat()))
}

/// What a plan would change, or why it cannot be carried out; `None` where there is nothing to do.
fn difference(report: &PlanReport) -> Option<String> {
    let why = match &report.outcome {
        ReportedOutcome::Refused { refusal } => Some(refusal.to_string()),
        ReportedOutcome::Failed { error } => Some(error.clone()),
        ReportedOutcome::Waiting { reason } => Some(reason.clone()),
        ReportedOutcome::Settled { .. } | ReportedOutcome::NotServed { .. } => None,
    };
    let headline = report.headline();
    match why {
        Some(why) => Some(format!("{}: {headline}: {why}", report.object)),
        None => (!report.is_idle()).then(|| format!("{}: {headline}", report.object)),
    }
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::plan::{Note, Refusal};

    use super::*;
    use crate::doctor::Outcome;

    #[test]
    fn what_would_be_done_is_told_with_its_reason() {
        let well = PlanReport::of_nothing("default/well".to_owned());
        assert_eq!(judge(&[&well], 1), AS_ASKED.ok("1 compared"));
        let published = PlanReport {
            outcome: ReportedOutcome::Settled {
                publishes: vec!["192.0.2.1".to_owned()],
            },
            ..PlanReport::of_nothing("default/other-address".to_owned())
        };
        let in_error = PlanReport {
            notes: vec![Note::warning("LoadBalancerInError", "it is in ERROR")],
            ..PlanReport::of_nothing("default/in-error".to_owned())
        };
        let refused = PlanReport {
            outcome: ReportedOutcome::Refused {
                refusal: Refusal::new("port 80 is taken").with_remedy("choose another one"),
            },
            ..PlanReport::of_nothing("default/refused".to_owned())
        };
        let check = judge(&[&well, &published, &in_error, &refused], 30);
        assert_eq!(
            (check.outcome, check.seen.as_str()),
            (
                Outcome::Warning,
                "the first 4 of 30 compared, 2 with a difference, 1 with a warning alone"
            )
        );
        assert_eq!(
            check.details,
            [
                "default/other-address: no steps in the cloud",
                "default/refused: not possible as it is asked for: port 80 is taken; choose another one",
                "default/in-error: no changes, and a warning: LoadBalancerInError: it is in ERROR",
            ]
        );
        assert!(
            !check.remedy.contains("by itself: look again"),
            "{}",
            check.remedy
        );
        assert!(judge(&[&published], 1).remedy.contains("by itself: look again"));
    }

    #[test]
    fn a_warning_alone_is_no_difference() {
        let left_out = PlanReport {
            notes: vec![Note::warning("NodesLeftOut", "left out is node-2")],
            ..PlanReport::of_nothing("default/web".to_owned())
        };
        let check = judge(&[&left_out], 1);
        assert_eq!(check.seen, "1 compared, 1 with a warning alone");
        assert_eq!(
            check.details,
            ["default/web: no changes, and a warning: NodesLeftOut: left out is node-2"]
        );
        assert!(!check.remedy.contains("plan"), "{}", check.remedy);
    }
}
