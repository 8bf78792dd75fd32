//! Which cause is told first.

use super::*;

fn ids(why: &Why) -> Vec<&str> {
    why.causes.iter().map(|cause| &*cause.id).collect()
}

fn down(is_total: bool) -> Ailment {
    Ailment::new("members do not answer".to_owned(), is_total, "")
}

#[test]
fn a_step_that_is_made_by_itself_never_stands_before_an_outage() {
    for is_total in [true, false] {
        let report = PlanReport {
            ailments: vec![down(is_total)],
            notes: vec![Note::warning("Odd", "it is odd")],
            ..with_step()
        };
        let why = of_service(&service(|_| {}), Some(&report), &known(&nodes(), &[]));
        assert_eq!(
            ids(&why),
            ["service.members-down", "service.differs", "event.Odd"]
        );
    }
}

#[test]
fn what_keeps_a_service_from_its_use_stands_before_what_is_only_warned_of() {
    let none = Endpoints {
        unready: 3,
        ..Endpoints::default()
    };
    let nodes = nodes();
    let known = Known {
        endpoints: Some(&none),
        ..known(&nodes, &[])
    };
    let why = of_service(&in_trouble("quota", QUOTA), Some(&with_step()), &known);
    assert_eq!(ids(&why), ["last-try.quota", "service.pods-not-ready"]);
}

/// kube-proxy leads nowhere then, and a cloud that checks no health does not know.
#[test]
fn a_port_that_no_pod_has_is_named() {
    let nodes = nodes();
    let told = |target: Value, ports: &[&str]| {
        let behind = Endpoints {
            ready: 1,
            ports: ports.iter().map(|it| (*it).to_owned()).collect(),
            ..Endpoints::default()
        };
        let known = Known {
            endpoints: Some(&behind),
            ..known(&nodes, &[])
        };
        let port = json!([{ "name": "http", "port": 80, "targetPort": target }]);
        of_service(&service(|it| it["spec"]["ports"] = port.clone()), None, &known)
    };
    let why = told(json!("web"), &[]);
    assert_eq!(
        (ids(&why), why.outcome()),
        (vec!["service.no-such-port"], Outcome::Warning)
    );
    assert_eq!(
        texts(&why),
        ["no pod behind it has the port `web` (targetPort of http)"]
    );
    assert!(told(json!("web"), &["http"]).causes.is_empty());
    assert!(told(json!(8080), &[]).causes.is_empty());
}

/// What follows from old credentials does not say that it may be over: the cause says what to do.
#[test]
fn pods_with_older_credentials_are_the_cause_of_what_the_cloud_refuses() {
    let nodes = nodes();
    let restart = "the pods run with older credentials: restart them";
    let known = Known {
        restart: Some(restart),
        ..known(&nodes, &[])
    };
    let refused = in_trouble("denied", &format!("401; {}", advice::UNAUTHENTICATED));
    let why = of_service(&refused, Some(&report()), &known);
    assert_eq!(why.causes[0].remedy, restart, "{why:?}");
    assert!(!why.next.contains("answers this command now"), "{why:?}");
    assert!(is_shut_out(&refused));
    let answer = present(PowerState::On);
    let why = of_node(&waiting(Some("toy://1")), &Shown::of(Some(&answer)), &known);
    assert_eq!(why.causes[0].remedy, restart, "{why:?}");
}

/// The cloud answers this command, and the load balancer is what is waited for.
#[test]
fn a_load_balancer_that_stays_busy_does_not_read_as_healed() {
    let told = Trouble::new("load balancer x is not ACTIVE: PENDING_UPDATE").tried(Some(Again::Question));
    let failed = in_trouble("failed", &told.to_string());
    let busy = PlanReport {
        outcome: ReportedOutcome::Waiting {
            reason: "x is PENDING_UPDATE".to_owned(),
        },
        ..report()
    };
    let why = of_service(&failed, Some(&busy), &known(&nodes(), &[]));
    assert!(
        !why.next.contains("the cloud answers this command now"),
        "{why:?}"
    );
    assert_eq!(
        ids(&why),
        ["last-try.failed"],
        "that it is busy is no second cause"
    );
}

#[test]
fn what_the_cloud_is_busy_with_is_left_alone_for_as_long_as_that_takes() {
    for (since, remedy) in [
        ("2026-01-01T00:28:00Z", "unless it stays for minutes"),
        ("2026-01-01T00:27:00Z", "this is too long"),
    ] {
        let mut busy = in_trouble("waiting", "it is being built");
        let conditions = busy.status.as_mut().unwrap().conditions.as_mut().unwrap();
        conditions[0].last_transition_time = since.parse().unwrap();
        let why = of_service(&busy, None, &known(&nodes(), &[]));
        assert!(why.causes[0].remedy.contains(remedy), "{why:?}");
    }
}

/// Its condition is gone, and nothing is left to do.
#[test]
fn a_failure_that_only_an_event_tells_is_over_where_the_plan_has_no_step() {
    let failed = [event("default/web", FAILED[0], "no", "2026-01-01T00:29:20Z")];
    let settled = PlanReport {
        outcome: ReportedOutcome::Settled { publishes: vec![] },
        ..report()
    };
    let why = of_service(&service(|_| {}), Some(&settled), &known(&nodes(), &failed));
    assert_eq!(why.outcome(), Outcome::Ok, "{why:?}");
}

#[test]
fn who_may_connect_is_told_where_not_everybody_may() {
    for (ranges, is_told) in [
        (json!(["10.0.0.0/8"]), true),
        (json!(["10.0.0.0/8", "0.0.0.0/0 "]), false),
        (json!([]), false),
    ] {
        let asked = service(|it| it["spec"]["loadBalancerSourceRanges"] = ranges.clone());
        let why = of_service(&asked, None, &known(&nodes(), &[]));
        let told = why.is.iter().any(|it| it.contains("only clients of 10.0.0.0/8"));
        assert_eq!(told, is_told, "{why:?}");
    }
}

#[test]
fn what_the_condition_tells_is_no_second_cause_by_the_members() {
    let said = in_trouble("refused", "pool p: members do not answer; set them back");
    let remedy = "whoever set it sets it back";
    let down = Ailment { remedy, ..down(true) };
    let why = of_service(
        &said,
        Some(&PlanReport {
            ailments: vec![down],
            ..report()
        }),
        &known(&nodes(), &[]),
    );
    assert_eq!(ids(&why), ["last-try.refused"]);
    assert_eq!(why.causes[0].remedy, remedy);
}

#[test]
fn a_cause_is_one_line_whatever_the_cloud_says() {
    let cause = Cause::new("cloud.busy", Outcome::Failed, "please report\n<class X>", "");
    assert_eq!(cause.text, "please report <class X>");
}

#[test]
fn zones_are_told_of_nodes_that_have_one() {
    let of = |name: &str, zone: Option<&str>| {
        let labels = zone.map(|zone| (keys::LABEL_ZONE, zone));
        Arc::new(Node {
            labels: labels.into_iter().collect(),
            ..Node::named(name)
        })
    };
    let is_told = |nodes: &[Arc<Node>]| {
        let why = of_service(&service(|_| {}), None, &known(nodes, &[]));
        why.is.into_iter().find(|it| it.contains("zones"))
    };
    assert_eq!(is_told(&[of("a", Some("z")), Arc::new(waiting(None))]), None);
    let told = is_told(&[of("a", Some("z")), of("b", None), of("c", Some("y"))]).unwrap();
    assert_eq!(told, "they are in several zones: y (1), z (1)");
}

#[test]
fn a_node_that_asks_for_no_cloud_is_not_called_initialised() {
    let why = of_node(&Node::named("plain"), &Shown::default(), &known(&nodes(), &[]));
    assert!(why.is[0].starts_with("not initialised"), "{why:?}");
}

/// The class is gone with the type: whoever saw it leaves the Service to the manager of that class.
#[test]
fn a_deletion_is_said_to_wait_for_this_manager_only_if_it_does() {
    let with = |kind: &str| {
        service(|it| {
            it["spec"]["type"] = kind.into();
            it["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            it["metadata"]["finalizers"] = json!([keys::FINALIZER_LOAD_BALANCER]);
        })
    };
    let ours = ServiceClasses::new(["ours".to_owned()], false).unwrap();
    let (nodes, upstream) = (nodes(), ServiceClasses::upstream());
    for (kind, classes, by) in [
        ("LoadBalancer", upstream, "this manager, by"),
        (
            "ClusterIP",
            upstream,
            "this manager, or that of the class that it had",
        ),
        ("ClusterIP", &ours, "the manager that made its load balancer, by"),
    ] {
        let known = Known {
            classes,
            ..known(&nodes, &[])
        };
        let why = of_service(&with(kind), None, &known);
        let expected = format!("its deletion waits for {by}");
        assert!(why.is.iter().any(|it| it.starts_with(&expected)), "{why:?}");
    }
}

#[test]
fn what_is_wrong_with_a_pod_network_is_seen_without_any_event() {
    let node = |name: &str| {
        Arc::new(Node {
            provider_id: Some(format!("toy://{name}").into()),
            pod_cidrs: vec!["10.244.1.0/24".to_owned()],
            network_unavailable: Some(NetworkUnavailable {
                is_unavailable: true,
                reason: "NoRouteCreated".into(),
            }),
            ..Node::named(name)
        })
    };
    let (nodes, routes) = ([node("n"), node("twin")], RouteSettings::default());
    let known = Known {
        routes: Some(&routes),
        ..known(&nodes, &[])
    };
    let on = present(PowerState::On);
    let why = of_node(&nodes[0], &Shown::of(Some(&on)), &known);
    let ids: Vec<&str> = why.causes.iter().map(|it| &*it.id).collect();
    assert_eq!(ids, ["node.no-network", "event.PodNetworkShared"]);
    assert!(why.causes[1].text.contains("that of node twin"), "{why:?}");
}

#[test]
fn a_taint_that_comes_back_is_seen_without_any_event() {
    let mut one = instance(PowerState::On, "running");
    one.metadata.provider_id = Some("toy://1".to_owned());
    one.metadata.instance_type = "flex".to_owned();
    one.metadata.zone = "z".to_owned();
    one.metadata.addresses = vec![NodeAddress::new(AddressType::InternalIp, "10.0.0.1")];
    let addresses = one.metadata.addresses.clone();
    let answer = Ok(InstanceAnswer::Present(Box::new(one)));
    let shown = Shown {
        tainted_by: Some("machine-config-daemon".to_owned()),
        ..Shown::of(Some(&answer))
    };
    let initialised = Node {
        addresses,
        labels: Labels::from_iter([
            (keys::LABEL_ZONE, "z"),
            (keys::LABEL_ZONE_BETA, "z"),
            (keys::LABEL_INSTANCE_TYPE, "flex"),
            (keys::LABEL_INSTANCE_TYPE_BETA, "flex"),
        ]),
        ..waiting(Some("toy://1"))
    };
    let cause = of_answer(&initialised, &shown).unwrap();
    assert_eq!(cause.id, "node.tainted-again");
    assert!(cause.text.ends_with("by machine-config-daemon"), "{cause:?}");
    assert!(
        cause.remedy.contains("another cloud controller manager"),
        "{cause:?}"
    );
    let fresh = of_answer(&waiting(Some("toy://1")), &shown).unwrap();
    assert_eq!(fresh.id, "node.waits");
}
