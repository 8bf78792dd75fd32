//! Addresses that change or are shared, and who makes things good.

use super::*;

/// A Service `web` or another one that shows an address on port 80.
fn at(name: &str, address: &str, port: u16) -> Arc<Service> {
    Arc::new(service(|it| {
        it["metadata"]["name"] = json!(name);
        it["spec"]["ports"] = json!([{ "port": port }]);
        it["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": address }] });
    }))
}

fn with_another_address() -> PlanReport {
    let to = ["a new floating IP".to_owned()];
    PlanReport {
        outcome: ReportedOutcome::Settled {
            publishes: to.to_vec(),
        },
        address_change: AddressChange::between(&["192.0.2.7".to_owned()], &to),
        ..with_step()
    }
}

#[test]
fn another_address_is_the_cause_and_who_shows_the_old_one_is_told() {
    let all = [at("web", "192.0.2.7", 80), at("heir", "192.0.2.7", 80)];
    let nodes = nodes();
    let alone = of_service(&all[0], Some(&with_another_address()), &known(&nodes, &[]));
    assert_eq!(
        texts(&alone),
        ["1 step, impact major, clients have to follow: 192.0.2.7 becomes a new floating IP"]
    );
    assert_eq!(
        (alone.outcome(), &*alone.causes[0].id),
        (Outcome::Failed, "service.address-changes")
    );
    assert!(
        alone.causes[0].remedy.contains("spec.loadBalancerIP"),
        "{alone:?}"
    );
    let known = Known {
        services: &all,
        ..known(&nodes, &[])
    };
    let why = of_service(&all[0], Some(&with_another_address()), &known);
    assert_eq!(why.causes.len(), 1, "{why:?}");
    assert!(
        why.causes[0]
            .text
            .ends_with("by now shown by Service default/heir"),
        "{why:?}"
    );
}

#[test]
fn two_services_that_show_one_address_are_told_unless_they_share_it_by_their_ports() {
    let nodes = nodes();
    let told = |port| {
        let all = [at("web", "192.0.2.7", 80), at("other", "192.0.2.7", port)];
        let known = Known {
            services: &all,
            ..known(&nodes, &[])
        };
        of_service(&all[0], Some(&report()), &known)
    };
    let shared = told(443);
    assert_eq!(shared.outcome(), Outcome::Ok, "{shared:?}");
    assert!(
        shared
            .is
            .contains(&"Service default/other shows 192.0.2.7, too".to_owned()),
        "{shared:?}"
    );
    let twice = told(80);
    assert_eq!(
        (twice.outcome(), &*twice.causes[0].id),
        (Outcome::Warning, "service.address-shared")
    );
    assert!(
        twice.causes[0].text.contains("default/other") && twice.causes[0].text.contains("80/TCP"),
        "{twice:?}"
    );
}

#[test]
fn where_nobody_leads_nothing_is_said_to_be_made_by_itself() {
    let nodes = nodes();
    let unled = Known {
        is_unled: true,
        ..known(&nodes, &[])
    };
    let why = of_service(&service(|_| {}), Some(&with_step()), &unled);
    assert!(
        why.causes[0].remedy.starts_with("nobody makes it before"),
        "{why:?}"
    );
    let on = present(PowerState::On);
    let why = of_node(&waiting(None), &Shown::of(Some(&on)), &unled);
    assert!(
        why.causes[0].remedy.starts_with("nobody makes it before"),
        "{why:?}"
    );
}

#[test]
fn a_failure_that_may_be_over_is_told_with_the_answer_that_this_command_got() {
    let nodes = nodes();
    let revoked = format!("401 Unauthorized: Invalid token.; {}", advice::UNAUTHENTICATED);
    let told = |now: &str, reason: &str, report: PlanReport| {
        let known = Known {
            now: now.parse().unwrap(),
            ..known(&nodes, &[])
        };
        of_service(&in_trouble(reason, &revoked), Some(&report), &known)
    };
    let failed = || PlanReport {
        outcome: ReportedOutcome::Failed {
            error: "401".to_owned(),
        },
        ..report()
    };
    let (soon, late) = ("2026-01-01T00:19:30Z", "2026-01-01T00:29:00Z");
    let young = told(soon, "denied", with_step());
    assert!(
        young.causes[0].remedy.contains("nobody has to do anything"),
        "{young:?}"
    );
    assert_eq!(young.causes[0].since, "for 90 s");
    assert!(
        young.next.starts_with("the cloud answers this command now"),
        "{young:?}"
    );
    let old = told(late, "denied", with_step());
    // The condition may be older than the refusal, and the pods may have the same credentials.
    assert_eq!(old.causes[0].remedy, young.causes[0].remedy);
    let refused = told(soon, "denied", failed());
    assert!(
        refused.causes[0].remedy.contains("new credentials"),
        "{refused:?}"
    );
    assert!(!refused.next.contains("the cloud answers"), "{refused:?}");
    assert!(
        !told(soon, "quota", with_step())
            .next
            .contains("the cloud answers")
    );
}
