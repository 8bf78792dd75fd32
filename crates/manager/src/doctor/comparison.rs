//! Whether what the cloud has is what Services ask for: plans are made, and of those that look well what is not empty is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};
use bowline_cloud_provider::{Service, ServiceKey, facts};
use bowline_kube_io::{Kube, SeenEvent};
use futures::future::join_all;
use jiff::Timestamp;

use super::services::{OF_EACH, of_one};
use super::{Behind, Check, Cloud, NAMED, Objects, Outcome, events, no_answer, some_of, timed};
use crate::plan::{PlanInput, plan_nothing, plan_services};
use crate::why::{self, Known, Unserved, Why, is_troubled, of_many};

topics! { pub(super) Services:
    AS_ASKED = "services.as-asked", "load balancers are as their Services ask", "docs/guides/troubleshoot.md#services";
}

/// How many plans are made: one takes some reads of the cloud.
const PLANNED: usize = 20;

/// How many of them are for Services in trouble, at most: the others are a sample of those that look well.
const TROUBLED: usize = 15;

/// Plans of Services, those in trouble first, and then those of which these events warn. Nothing where the cloud has not to be asked.
pub(super) async fn plans(
    cloud: &Cloud,
    objects: &Objects,
    now: Option<Timestamp>,
    events: &[SeenEvent],
) -> Option<Vec<PlanReport>> {
    let load_balancer = cloud.provider().and_then(|it| it.load_balancer())?;
    let (troubled, well): (Vec<_>, Vec<_>) = objects
        .services()
        .iter()
        .filter(|service| objects.classes.concern(service))
        .partition(|service| is_troubled(service, &objects.classes));
    let troubled = troubled.into_iter().take(TROUBLED);
    let well = warned_first(well, events);
    let keys: Vec<ServiceKey> = troubled
        .chain(well)
        .take(PLANNED)
        .map(|service| ServiceKey::of(service))
        .collect();
    if keys.is_empty() {
        return Some(Vec::new());
    }
    let input = PlanInput {
        services: objects.list(),
        nodes: objects.nodes().to_vec(),
        cluster: objects.cluster.clone(),
        now: now?,
    };
    // One that takes too long takes nothing from the others.
    let plan_one = async |key: &ServiceKey| {
        let only = std::slice::from_ref(key);
        match timed(plan_services(&load_balancer, &input, only)).await {
            Some((reports, _)) => reports,
            None => plan_nothing(&input, only, &no_answer()),
        }
    };
    Some(join_all(keys.iter().map(plan_one)).await.concat())
}

/// Whether a plan has not come to its end in time.
fn is_late(plan: &PlanReport) -> bool {
    matches!(&plan.outcome, ReportedOutcome::Failed { error } if *error == no_answer())
}

/// Whatever the load balancers are like, somebody told of these.
fn warned_first<'a>(mut well: Vec<&'a Arc<Service>>, events: &[SeenEvent]) -> Vec<&'a Arc<Service>> {
    let warned: BTreeSet<&str> = events
        .iter()
        .filter(|it| it.is_warning)
        .map(|it| &*it.object)
        .collect();
    well.sort_by_key(|service| !warned.contains(&*ServiceKey::of(service).to_string()));
    well
}

/// The check of Services that look well. `is_read`: whether the cloud lets load balancers be read at all.
pub(super) fn check(
    plans: Option<&[PlanReport]>,
    objects: &Objects,
    unserved: Option<Unserved>,
    is_read: bool,
    known: Option<(&Known<'_>, &Behind)>,
) -> Check {
    match unserved {
        None => {}
        Some(Unserved::Controller) => return AS_ASKED.ok("not looked at: this manager serves no Services"),
        Some(Unserved::Provider) => {
            return AS_ASKED.ok("not looked at: this manager makes no load balancers");
        }
    }
    let (true, Some((known, behind))) = (is_read, known) else {
        return AS_ASKED.skipped("Services or load balancers are not read");
    };
    let Some(plans) = plans else {
        return AS_ASKED.skipped("no plan is made");
    };
    // Those in trouble are told of already.
    let well = objects.services().iter();
    let well =
        well.filter(|service| objects.classes.is_wanted(service) && !is_troubled(service, &objects.classes));
    let well: Vec<(&Arc<Service>, String)> = well
        .map(|service| (service, ServiceKey::of(service).to_string()))
        .collect();
    if well.is_empty() {
        return AS_ASKED.ok("none has an address and no trouble");
    }
    let (late, plans): (Vec<&PlanReport>, Vec<_>) = plans.iter().partition(|plan| is_late(plan));
    let compared = plans.iter().filter_map(|plan| {
        let (service, name) = well.iter().find(|(_, name)| *name == plan.object)?;
        let known = Known {
            endpoints: behind.get(name),
            ..*known
        };
        Some((plan.is_idle(), of_one(service, Some(plan), &known)))
    });
    let unseen = well.iter().map(|(_, name)| name.clone());
    let unseen = unseen.filter(|name| plans.iter().all(|plan| plan.object != *name));
    let check = judge(&compared.collect::<Vec<_>>(), &unseen.collect::<Vec<_>>());
    let late: Vec<String> = late.into_iter().map(|plan| plan.object.clone()).collect();
    with_late(check, &late)
}

/// The same, with the Services about which the cloud gave no answer in time.
fn with_late(check: Check, late: &[String]) -> Check {
    if late.is_empty() {
        return check;
    }
    let seen = format!(
        "{}; {} about {}",
        check.seen,
        no_answer(),
        some_of(late.iter().cloned())
    );
    match check.outcome {
        Outcome::Ok => AS_ASKED.warning(
            seen,
            "run `plan` with --service NAMESPACE/NAME for those that matter",
        ),
        _ => Check { seen, ..check },
    }
}

/// What is told of these Services, each with whether its plan is empty, while these others were not looked at.
fn judge(compared: &[(bool, Why)], unseen: &[String]) -> Check {
    let (some, of) = (compared.len(), compared.len() + unseen.len());
    let seen = match unseen {
        [] => format!("{some} compared"),
        unseen => format!(
            "{some} of {of} compared (for the others use `explain`: {})",
            some_of(unseen.iter().cloned())
        ),
    };
    let mut told: Vec<&(bool, Why)> = compared
        .iter()
        .filter(|(_, why)| !why.causes.is_empty())
        .collect();
    if told.is_empty() {
        return AS_ASKED.ok(seen);
    }
    // The worst first, and what differs before what is only warned of.
    told.sort_by_key(|(is_idle, why)| (std::cmp::Reverse(why.outcome()), *is_idle));
    let differ = told.iter().filter(|(is_idle, _)| !is_idle).count();
    let counts = [
        (differ, "with a difference"),
        (told.len() - differ, "with a warning alone"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    let seen = format!("{seen}, {}", counts.join(", "));
    let is_failed = told.iter().any(|(_, why)| why.outcome() == Outcome::Failed);
    let check = match is_failed {
        true => AS_ASKED.failed(seen, OF_EACH),
        false => AS_ASKED.warning(seen, OF_EACH),
    };
    check.with(of_many(told.into_iter().map(|(_, why)| why), NAMED))
}

/// Adds to each plan what came of the manager's last try, where the cluster shows that it failed.
pub async fn tell_last_tries(kube: &Kube, input: &PlanInput, reports: &mut [PlanReport]) {
    let events = events(Some(kube), None).await;
    let known = Known {
        now: input.now,
        classes: &input.services.classes,
        nodes: None,
        node_set: None,
        load_balancer: None,
        unserved: None,
        events: &events,
        endpoints: None,
        routes: None,
        services: &[],
        is_unled: false,
        restart: None,
        lacks_permissions: false,
        detour: None,
    };
    for report in reports {
        let is_of = |it: &&Arc<Service>| ServiceKey::of(it).to_string() == report.object;
        let service = input.services.services.iter().find(is_of);
        let is_idle = report.is_idle();
        let service =
            service.filter(|it| known.classes.concern(it) && (!is_idle || facts::trouble(it).is_some()));
        report.last_try = service.and_then(|service| why::last_try(service, &known));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Cause;

    fn why(name: &str, causes: &[(Outcome, &str, &str)]) -> Why {
        let mut why = Why::new(format!("service/default/{name}"));
        why.is.push("address 192.0.2.1".to_owned());
        let causes = causes.iter();
        why.causes.extend(
            causes.map(|(outcome, text, remedy)| Cause::new("service.differs", *outcome, *text, *remedy)),
        );
        why
    }

    #[test]
    fn those_that_somebody_warned_of_are_looked_at_first() {
        let service = |name: &str| {
            let service = serde_json::json!({ "metadata": { "namespace": "default", "name": name } });
            Arc::new(serde_json::from_value::<Service>(service).unwrap())
        };
        let all = ["a", "b", "c"].map(service);
        let event = SeenEvent {
            object: "default/c".to_owned(),
            is_warning: true,
            reason: "Odd".to_owned(),
            message: String::new(),
            count: 1,
            last: Timestamp::UNIX_EPOCH,
            process: String::new(),
        };
        let order = warned_first(all.iter().collect(), &[event]).into_iter();
        let order: Vec<_> = order.map(|it| ServiceKey::of(it).to_string()).collect();
        assert_eq!(order, ["default/c", "default/a", "default/b"]);
    }

    #[test]
    fn what_came_in_time_is_shown_beside_what_did_not() {
        let check = judge(&[(true, why("well", &[]))], &[]);
        assert_eq!(with_late(check.clone(), &[]), check);
        let late = with_late(check, &["default/slow".to_owned()]);
        assert_eq!(
            (late.outcome, late.seen.as_str()),
            (
                Outcome::Warning,
                "1 compared; no answer within 30 s about default/slow"
            )
        );
        let down = (true, why("down", &[(Outcome::Failed, "no member answers", "")]));
        let late = with_late(judge(&[down], &[]), &["default/slow".to_owned()]);
        assert_eq!(late.outcome, Outcome::Failed);
        assert!(
            late.seen.ends_with("about default/slow") && !late.details.is_empty(),
            "{late:?}"
        );
    }

    #[test]
    fn what_differs_is_told_with_its_cause_and_what_to_do() {
        let well = (true, why("well", &[]));
        assert_eq!(judge(std::slice::from_ref(&well), &[]), AS_ASKED.ok("1 compared"));
        let differs = (
            false,
            why("differs", &[(Outcome::Warning, "1 step", "look again")]),
        );
        let warned = (
            true,
            why(
                "warned",
                &[(Outcome::Warning, "Odd: it is odd", "follow the text")],
            ),
        );
        let down = (
            true,
            why(
                "down",
                &[(Outcome::Failed, "no member answers", "look at the pods")],
            ),
        );
        let unseen = ["default/x".to_owned(), "default/y".to_owned()];
        let check = judge(&[well.clone(), warned.clone(), differs.clone()], &unseen);
        assert_eq!(
            (check.outcome, check.seen.as_str()),
            (
                Outcome::Warning,
                "3 of 5 compared (for the others use `explain`: default/x, default/y), 1 with a difference, 1 with a warning alone"
            )
        );
        assert_eq!(
            check.details,
            [
                "service/default/differs: address 192.0.2.1: 1 step",
                "  do: look again",
                "service/default/warned: address 192.0.2.1: Odd: it is odd",
                "  do: follow the text",
            ]
        );
        let check = judge(&[warned, differs, down], &[]);
        assert_eq!(check.outcome, Outcome::Failed);
        assert!(check.details[0].contains("no member answers"), "{check:?}");
    }
}
