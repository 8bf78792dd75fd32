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

/// A Go manager leads: it knows no such condition, and what it told is mended.
#[test]
fn a_condition_that_nobody_keeps_is_told_as_left_and_behind_who_leads() {
    let nodes = nodes();
    let unled = |events| Known {
        is_unled: true,
        ..known(&nodes, events)
    };
    let service = in_trouble(
        "refused",
        &Trouble::new("value 'nonsense'")
            .tried(Some(Again::Write))
            .to_string(),
    );
    let events = [event(
        "default/web",
        FAILED[0],
        "Error syncing load balancer: value 'nonsense'",
        "2026-01-01T00:29:20Z",
    )];
    for events in [&[][..], &events] {
        let why = of_service(&service, Some(&with_step()), &unled(events));
        assert_eq!(why.outcome(), Outcome::Warning);
        let last = why.causes.last().unwrap();
        assert!(
            last.text
                .starts_with("left by Bowline at 2026-01-01T00:18:00Z, not kept since: refused: ")
                && last.text.ends_with("value 'nonsense'"),
            "{why:?}"
        );
        assert!(last.remedy.contains("--subresource=status"), "{why:?}");
        assert_eq!(why.causes[0].id, super::super::addresses::DIFFERS);
        assert!(!why.next.contains("tries again"), "{why:?}");
    }
    // What the Go manager meets by itself is of this hour.
    let other = [event(
        "default/web",
        FAILED[0],
        "quota reached",
        "2026-01-01T00:29:20Z",
    )];
    let why = of_service(&service, Some(&with_step()), &unled(&other));
    assert!(why.causes[0].text.ends_with("quota reached"), "{why:?}");
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

fn that_was_at(name: &str, address: &str, before: &str) -> Arc<Service> {
    let mut service = Arc::unwrap_or_clone(at(name, address, 80));
    let status = service.status.get_or_insert_default();
    status.conditions = serde_json::from_value(json!([{
        "type": "LoadBalancerAddressChanged", "status": "True", "reason": "FloatingIPGone",
        "message": format!("was {before} until 2026-01-01T00:20:00Z: the floating IP was deleted or led elsewhere. DNS and firewalls that name it have to follow"),
        "lastTransitionTime": "2026-01-01T00:20:00Z",
    }]))
    .unwrap();
    Arc::new(service)
}

/// It is on its way out, and its address may have been given back already.
#[test]
fn an_address_that_a_service_shows_that_is_being_deleted_is_not_shared() {
    let mut going = Arc::unwrap_or_clone(at("going", "192.0.2.1", 80));
    let outcome = |all: &[Arc<Service>]| {
        let nodes = nodes();
        let known = Known {
            services: all,
            ..known(&nodes, &[])
        };
        of_service(&all[0], Some(&report()), &known).outcome()
    };
    let own = at("own", "192.0.2.1", 80);
    assert_eq!(
        outcome(&[Arc::clone(&own), Arc::new(going.clone())]),
        Outcome::Warning
    );
    going.metadata.deletion_timestamp = Some(now());
    assert_eq!(outcome(&[own, Arc::new(going)]), Outcome::Ok);
}

/// Its event is gone after an hour, and its address leads to somebody else.
#[test]
fn an_address_that_was_lost_is_told_and_who_has_it_now() {
    let all = [
        that_was_at("gone", "203.0.113.111", "203.0.113.108"),
        that_was_at("moved", "203.0.113.108", "203.0.113.105"),
    ];
    let nodes = nodes();
    let known = Known {
        services: &all,
        ..known(&nodes, &[])
    };
    let told = |service: &Service, known: &Known<'_>| {
        let why = of_service(service, Some(&report()), known);
        (why.outcome(), render_text(&[why]))
    };
    let (outcome, text) = told(&all[0], &known);
    assert_eq!(outcome, Outcome::Warning);
    let was = "its address was 203.0.113.108 until 2026-01-01T00:20:00Z (the floating IP was deleted or led elsewhere)";
    assert!(
        text.contains(&format!(
            "{was}; 203.0.113.108 is now that of Service default/moved"
        )),
        "{text}"
    );
    let alone = Known {
        services: &[],
        ..known
    };
    let (outcome, text) = told(&all[0], &alone);
    assert_eq!(outcome, Outcome::Ok);
    assert!(
        text.contains(&format!(
            "{was}: whoever owns the Service has DNS and firewalls follow"
        )),
        "{text}"
    );
    let late = Known {
        now: "2026-01-08T00:20:01Z".parse().unwrap(),
        ..known
    };
    assert!(!told(&all[0], &late).1.contains("its address was"));
}

/// Only the manager goes through the proxy; what fails here says nothing of it.
#[test]
fn a_proxy_that_wants_a_password_is_the_cause_and_not_the_name_server_of_this_computer() {
    let nodes = nodes();
    let refused = format!(
        "servers.list: GET /v1/servers: cannot connect: proxy 10.0.0.1:3128: it wants other credentials (407); {}",
        advice::PROXY
    );
    let events = [
        event("web-1", "NodeInitFailed", &refused, "2026-01-01T00:29:20Z"),
        event("default/web", FAILED[0], &refused, "2026-01-01T00:29:20Z"),
    ];
    let known = Known {
        detour: Some("DaemonSet kube-system/ccm (HTTPS_PROXY=http://10.0.0.1:3128)"),
        ..known(&nodes, &events)
    };
    let mut node = waiting(None);
    node.name = bowline_cloud_provider::NodeName::new("web-1");
    let here = "servers.list: GET /v1/servers: cannot connect: dns error";
    let answer: InstanceResult = Err(CloudError::transient(here));
    let why = of_node(&node, &Shown::of(Some(&answer)), &known);
    assert_eq!(why.causes.len(), 1, "{why:?}");
    assert_eq!(why.causes[0].remedy, advice::PROXY);
    assert!(
        why.is
            .iter()
            .any(|it| it.contains("HTTPS_PROXY=http://10.0.0.1:3128") && it.ends_with("dns error")),
        "{why:?}"
    );
    assert_eq!(
        known.of_here("GET /v1/servers: 403 Forbidden"),
        None,
        "it is reached"
    );
    let failed = PlanReport {
        outcome: ReportedOutcome::Failed {
            error: here.to_owned(),
        },
        ..report()
    };
    let why = of_service(&service(|_| {}), Some(&failed), &known);
    assert_eq!(why.causes.len(), 1, "{why:?}");
    assert!(
        why.causes[0].text.contains("(407)") && why.causes[0].remedy == advice::PROXY,
        "{why:?}"
    );
    // Where the manager goes the same way, it is the cause.
    let direct = Known {
        detour: None,
        ..known
    };
    assert!(
        of_node(&node, &Shown::of(Some(&answer)), &direct).causes[0]
            .text
            .contains("dns error")
    );
}

#[test]
fn a_setting_that_is_wrong_is_named_with_what_it_may_be_and_whose_it_is() {
    let sentence = "set `region` of cloud.conf of Secret cloud-config in kube-system to one that the catalog has for it: RegionOne";
    let region = format!("No suitable endpoint for network: {sentence}. The manager starts without");
    assert_eq!(
        remedy_of_error(&CloudError::transient(region)),
        format!("whoever runs the manager does this in the file of --cloud-config: {sentence}")
    );
    let project = "CloudStack API error 431: entity does not exist in api cmd class.; set `project-id` of the configuration";
    let service = in_trouble("invalid", project);
    let why = of_service(&service, None, &known(&nodes(), &[]));
    assert!(
        why.causes[0]
            .remedy
            .ends_with("--cloud-config: set `project-id` of the configuration"),
        "{why:?}"
    );
    assert_eq!(
        crate::why::remedies::of_setting("no Octavia for this project (then set `enabled = false`)"),
        None
    );
}

/// A command only reads, and what it is answered proves nothing of a write.
#[test]
fn a_write_that_failed_is_not_said_to_be_over() {
    let nodes = nodes();
    for (again, is_over) in [(Again::Write, false), (Again::Question, true)] {
        let told = Trouble::new("load-balancers: 500").tried(Some(again)).to_string();
        let service = in_trouble("failed", &told);
        let why = of_service(&service, Some(&with_step()), &known(&nodes, &[]));
        assert_eq!(why.next.starts_with("the cloud answers"), is_over, "{why:?}");
    }
}

#[test]
fn what_a_manager_may_not_do_is_not_said_to_be_made_by_itself() {
    let nodes = nodes();
    let known = Known {
        lacks_permissions: true,
        ..known(&nodes, &[])
    };
    let why = of_service(&service(|_| {}), Some(&with_step()), &known);
    assert!(
        why.causes[0].remedy.starts_with("the manager lacks permissions"),
        "{why:?}"
    );
    let settled = PlanReport {
        outcome: ReportedOutcome::Settled {
            publishes: vec!["192.0.2.7".to_owned()],
        },
        ..report()
    };
    let why = of_service(&service(|_| {}), Some(&settled), &known);
    assert!(
        why.causes[0].remedy.starts_with("the manager lacks permissions"),
        "{why:?}"
    );
}

/// Two Nodes of one instance keep no Service from its use.
#[test]
fn nodes_that_are_one_member_are_told_once_and_warn_of_no_service() {
    let nodes = nodes();
    let note = || Note::warning("NodesShareInstance", "a and b have one instance");
    let report = PlanReport {
        notes: vec![note(), note()],
        ..report()
    };
    let web = at("web", "192.0.2.7", 80);
    let why = of_service(&web, Some(&report), &known(&nodes, &[]));
    assert_eq!(why.outcome(), Outcome::Ok, "{why:?}");
    let told = why.is.iter().filter(|it| it.contains("one instance"));
    assert_eq!(told.count(), 1, "{why:?}");
}

#[test]
fn commands_have_the_name_of_the_object_that_is_asked_about() {
    let mut why = Why::new("service/shop/web".to_owned());
    why.is.push(crate::why::addresses::FOLLOWS.to_owned());
    let label = "kubectl label node NAME x-";
    why.causes
        .push(Cause::new("service.no-member", Outcome::Failed, "none", label));
    why.fill_in();
    assert!(
        why.is[0].contains("kubectl -n shop patch service web --subresource=status"),
        "{why:?}"
    );
    assert_eq!(why.causes[0].remedy, label);
    assert_eq!(
        filled_in("kubectl taint node NAME x", "node/n1"),
        "kubectl taint node n1 x"
    );
}
