//! Services that ask for load balancers: how many there are, and why some wait.

use std::sync::Arc;

use bowline_cloud_provider::plan::PlanReport;
use bowline_cloud_provider::{Service, ServiceKey, facts};
use bowline_kube_io::KubeError;

use super::{Behind, Check, NAMED, Outcome, some_lines, some_of, unread};
use crate::why::addresses::{self, CHANGED};
use crate::why::{self, Known, Unserved, Why, of_many};

topics! { pub(super) Services:
    READ = "services.read", "Services are read", "docs/reference/rbac.md";
    SETTLED = "services.addresses", "Services have their addresses", "docs/guides/troubleshoot.md#services";
    KEPT = "services.addresses-kept", "Services keep their addresses",
        "docs/guides/troubleshoot.md#an-address-that-changed";
}

/// The checks of this category that need no cloud. Plans are made only of some Services.
pub(super) fn checks(
    is_manager: bool,
    services: Option<&Result<Vec<Arc<Service>>, KubeError>>,
    plans: &[PlanReport],
    known: Option<&Known<'_>>,
    behind: &Behind,
) -> Vec<Check> {
    let (services, known) = match (services, known) {
        (Some(Err(error)), _) => {
            return vec![
                unread(is_manager, &READ, error),
                SETTLED.skipped("Services are not read"),
                KEPT.skipped("Services are not read"),
            ];
        }
        (Some(Ok(services)), Some(known)) => (services, known),
        _ => {
            return vec![
                READ.skipped("the API server does not answer"),
                SETTLED.skipped("Services are not read"),
                KEPT.skipped("Services are not read"),
            ];
        }
    };
    let asking = services.iter().filter(|it| facts::is_type(it, "LoadBalancer"));
    let (of_others, asking): (Vec<_>, Vec<_>) = asking.partition(|it| known.classes.leaves_to_others(it));
    let mut seen = format!(
        "{}, {} of type LoadBalancer",
        services.len(),
        of_others.len() + asking.len()
    );
    let mut unserved = Vec::new();
    if !of_others.is_empty() {
        let names = of_others.iter().map(|it| ServiceKey::of(it).to_string());
        seen.push_str(&format!(
            ", {} of these for others to serve by their class: {}",
            of_others.len(),
            some_of(names)
        ));
        let without = of_others
            .iter()
            .filter(|it| facts::published_addresses(it).is_empty());
        unserved = without
            .filter_map(|it| {
                Some(format!(
                    "{}, without address: {}",
                    ServiceKey::of(it),
                    why::not_served(it, known.classes)?
                ))
            })
            .collect();
    }
    let read = match unserved.is_empty() {
        true => READ.ok(seen),
        false => READ
            .warning(seen, why::OF_ANOTHER)
            .with(some_lines(unserved))
            .see("docs/guides/several-managers.md#which-controller-serves-a-service"),
    };
    let troubled = services.iter().filter(|it| why::is_troubled(it, known.classes));
    let whys = troubled.map(|service| {
        let name = ServiceKey::of(service).to_string();
        let plan = plans.iter().find(|plan| plan.object == name);
        let known = Known {
            endpoints: behind.get(&name),
            ..*known
        };
        of_one(service, plan, &known)
    });
    vec![
        read,
        judge(&whys.collect::<Vec<_>>(), known.unserved),
        kept(&asking, known),
    ]
}

/// Why a Service is as it is, without what has a check of its own.
pub(super) fn of_one(service: &Service, plan: Option<&PlanReport>, known: &Known<'_>) -> Why {
    let mut why = why::of_service(service, plan, known);
    why.causes.retain(|it| it.id != CHANGED);
    why
}

/// Which Services showed another address before, and who is reached there now.
fn kept(asking: &[&Arc<Service>], known: &Known<'_>) -> Check {
    let (mut lines, mut is_taken) = (Vec::new(), false);
    let mut remedy = addresses::FOLLOWS.to_owned();
    for service in asking {
        let Some((text, taken)) = addresses::before(service, known) else {
            continue;
        };
        is_taken |= !taken.is_empty();
        let taken: String = taken.iter().map(|it| format!("; {it}")).collect();
        let shown = facts::published_addresses(service).join(", ");
        let object = format!("service/{}", ServiceKey::of(service));
        remedy = match lines.is_empty() {
            true => why::filled_in(addresses::FOLLOWS, &object),
            false => addresses::FOLLOWS.to_owned(),
        };
        lines.push(format!("{object}: address {shown}: {text}{taken}"));
    }
    let seen = format!("{} of {} with another one than before", lines.len(), asking.len());
    match (lines.is_empty(), is_taken) {
        (true, _) => KEPT.ok("all"),
        (_, false) => KEPT.note(seen, remedy).with(some_lines(lines)),
        (_, true) => KEPT.warning(seen, remedy).with(some_lines(lines)),
    }
}

/// What to do about Services that are listed with their remedies.
pub(super) const OF_EACH: &str = "follow the remedy below each; `explain` with the same flags and service/NAMESPACE/NAME shows all that is known of \
    one";

fn judge(troubled: &[Why], unserved: Option<Unserved>) -> Check {
    if troubled.is_empty() {
        return SETTLED.ok("all");
    }
    let lines = of_many(troubled, NAMED);
    let seen = format!("{} not settled", troubled.len());
    let is_failed = troubled.iter().any(|why| why.outcome() == Outcome::Failed);
    let check = match unserved {
        Some(unserved) => SETTLED.warning(seen, unserved.text()),
        None if is_failed => SETTLED.failed(seen, OF_EACH),
        None => SETTLED.warning(seen, OF_EACH),
    };
    check.with(lines)
}

#[cfg(test)]
mod tests {
    use bowline_cloud_provider::ServiceClasses;
    use bowline_cloud_provider::plan::{Refusal, ReportedOutcome};
    use serde_json::json;

    use super::*;

    fn service(name: &str, spec: serde_json::Value, ip: Option<&str>, is_leaving: bool) -> Arc<Service> {
        let ingress: Vec<_> = ip.iter().map(|ip| json!({ "ip": ip })).collect();
        let mut service = json!({
            "metadata": { "namespace": "default", "name": name, "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] },
            "spec": spec,
            "status": { "loadBalancer": { "ingress": ingress } },
        });
        if is_leaving {
            service["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        Arc::new(serde_json::from_value(service).unwrap())
    }

    fn known() -> Known<'static> {
        Known {
            now: "2026-01-01T00:10:00Z".parse().unwrap(),
            nodes: None,
            node_set: None,
            load_balancer: None,
            unserved: None,
            events: &[],
            classes: ServiceClasses::upstream(),
            endpoints: None,
            routes: None,
            services: &[],
            is_unled: false,
            restart: None,
            lacks_permissions: false,
            detour: None,
        }
    }

    /// At night people with view rights ask.
    #[test]
    fn what_a_person_may_not_read_is_skipped_and_no_fault_of_the_manager() {
        let error = r#"services is forbidden: User "viewer" cannot list resource "services"; allow it to this user with the rule x, without it service: no load balancer"#;
        let read = |is_manager| {
            let services = Err(KubeError::Forbidden(error.to_owned()));
            checks(is_manager, Some(&services), &[], None, &Behind::new()).remove(0)
        };
        let check = read(false);
        assert_eq!((check.outcome, &*check.remedy), (Outcome::Skipped, ""));
        assert!(check.seen.starts_with("you may not read this"), "{check:?}");
        assert!(
            check.seen.ends_with("cannot list resource \"services\""),
            "{check:?}"
        );
        let check = read(true);
        assert_eq!(check.outcome, Outcome::Failed);
        assert!(check.remedy.contains("bindings"), "{check:?}");
    }

    #[test]
    fn services_that_wait_are_named_with_the_cause() {
        let balanced = || json!({ "type": "LoadBalancer" });
        let well = service("well", balanced(), Some("192.0.2.1"), false);
        let other = service(
            "other",
            json!({ "type": "LoadBalancer", "loadBalancerClass": "x" }),
            None,
            false,
        );
        let waiting = service("waiting", balanced(), None, false);
        let leaving = service("leaving", balanced(), Some("192.0.2.2"), true);
        let all = checks(
            false,
            Some(&Ok(vec![Arc::clone(&well), other])),
            &[],
            Some(&known()),
            &Behind::new(),
        );
        assert_eq!(
            all[0].seen,
            "2, 2 of type LoadBalancer, 1 of these for others to serve by their class: default/other"
        );
        assert_eq!((all[0].outcome, all[1].outcome), (Outcome::Warning, Outcome::Ok));
        assert!(all[0].details[0].contains("loadBalancerClass"), "{all:?}");
        assert!(all[0].link().contains("several-managers.md"), "{all:?}");
        let services = Ok(vec![well, waiting, leaving]);
        let unserved = Known {
            unserved: Some(Unserved::Controller),
            ..known()
        };
        let switched_off = &checks(false, Some(&services), &[], Some(&unserved), &Behind::new())[1];
        assert!(switched_off.remedy.contains("--controllers"), "{switched_off:?}");
        let refused = PlanReport {
            outcome: ReportedOutcome::Refused {
                refusal: Refusal::new("port 80 is taken").with_remedy("choose another one"),
            },
            ..PlanReport::of_nothing("default/waiting".to_owned())
        };
        let check = &checks(false, Some(&services), &[refused], Some(&known()), &Behind::new())[1];
        assert_eq!(
            (check.outcome, check.seen.as_str()),
            (Outcome::Failed, "2 not settled")
        );
        assert_eq!(
            check.details,
            [
                "service/default/waiting: no address: not possible as it is asked for: port 80 is taken",
                "  do: choose another one",
                "service/default/leaving: address 192.0.2.2"
            ]
        );
    }

    #[test]
    fn an_address_that_changed_is_a_note_and_a_warning_where_another_service_has_it_now() {
        let balanced = || json!({ "type": "LoadBalancer" });
        let mut web = Arc::unwrap_or_clone(service("web", balanced(), Some("192.0.2.2"), false));
        let condition = json!([{
            "type": "LoadBalancerAddressChanged", "status": "True", "reason": "Unknown",
            "message": "was 192.0.2.1 until 2026-01-01T00:00:00Z: so. DNS and firewalls that name it have to follow",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }]);
        web.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
        let web = Arc::new(web);
        let kept = |services: Vec<Arc<Service>>| {
            let known = Known {
                services: &services,
                ..known()
            };
            let all = checks(
                false,
                Some(&Ok(services.clone())),
                &[],
                Some(&known),
                &Behind::new(),
            );
            all.into_iter().find(|it| it.topic.id == KEPT.id).unwrap()
        };
        let check = kept(vec![Arc::clone(&web)]);
        assert_eq!(
            (check.outcome, check.details.join("")),
            (
                Outcome::Ok,
                "service/default/web: address 192.0.2.2: its address was 192.0.2.1 until 2026-01-01T00:00:00Z (so)".to_owned()
            )
        );
        assert!(!check.remedy.is_empty());
        let heir = service("heir", balanced(), Some("192.0.2.1"), false);
        let check = kept(vec![web, Arc::clone(&heir)]);
        assert_eq!(check.outcome, Outcome::Warning);
        assert!(
            check.details[0].ends_with("; 192.0.2.1 is now that of Service default/heir"),
            "{check:?}"
        );
        let check = kept(vec![heir]);
        assert_eq!((check.outcome, &*check.remedy), (Outcome::Ok, ""));
    }

    #[test]
    fn without_services_nothing_is_judged() {
        let failed = checks(false, Some(&Err(KubeError::Timeout)), &[], None, &Behind::new());
        assert_eq!(
            (failed[0].outcome, failed[1].outcome),
            (Outcome::Failed, Outcome::Skipped)
        );
        assert!(
            checks(false, None, &[], None, &Behind::new())
                .iter()
                .all(|check| check.outcome == Outcome::Skipped)
        );
    }
}
