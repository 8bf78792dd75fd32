use bowline_cloud_provider::plan::{AddressChange, Impact, Note, Refusal, ReportedWave, StepView};
use bowline_cloud_provider::{
    AbsenceProof, AddressType, CloudError, FoundBy, Instance, InstanceAnswer, InstanceMetadata,
    InstanceResult, InstanceState, Labels, NetworkUnavailable, NodeAddress, PowerState, Readiness,
    ServiceClasses, Taint, TaintEffect, Unmatched, keys,
};
use bowline_controllers::advice;
use bowline_controllers::trouble::{Again, NO_ANSWER};

use serde_json::{Value, json};

use super::*;

mod addresses;
mod order;

fn now() -> Timestamp {
    "2026-01-01T00:30:00Z".parse().unwrap()
}

fn known<'a>(nodes: &'a [Arc<Node>], events: &'a [SeenEvent]) -> Known<'a> {
    Known {
        now: now(),
        nodes: Some(nodes),
        node_set: Some(NodeSet::Stable),
        load_balancer: None,
        unserved: None,
        events,
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

fn nodes() -> [Arc<Node>; 2] {
    ["a", "b"].map(|name| Arc::new(Node::named(name)))
}

/// A Service of type `LoadBalancer` without an address, with these changes.
fn service(change: impl Fn(&mut Value)) -> Service {
    let mut service = json!({
        "metadata": { "namespace": "default", "name": "web" },
        "spec": { "type": "LoadBalancer" },
        "status": {},
    });
    change(&mut service);
    serde_json::from_value(service).unwrap()
}

fn in_trouble(reason: &str, message: &str) -> Service {
    service(|it| {
        it["status"]["conditions"] = json!([{
            "type": "LoadBalancerReconciled", "status": "False", "reason": reason, "message": message,
            "lastTransitionTime": "2026-01-01T00:18:00Z",
        }]);
    })
}

fn event(object: &str, reason: &str, message: &str, last: &str) -> SeenEvent {
    SeenEvent {
        object: object.to_owned(),
        is_warning: !DONE.contains(&reason),
        reason: reason.to_owned(),
        message: message.to_owned(),
        count: 7,
        last: last.parse().unwrap(),
        process: String::new(),
    }
}

fn report() -> PlanReport {
    PlanReport::of_nothing("default/web".to_owned())
}

fn with_step() -> PlanReport {
    let step = StepView {
        label: "create-pool(tcp/http)".to_owned(),
        object: "pool".to_owned(),
        impact: Impact::None,
        lanes: Vec::new(),
    };
    PlanReport {
        waves: vec![ReportedWave::of(&[step])],
        ..report()
    }
}

fn texts(why: &Why) -> Vec<&str> {
    why.causes.iter().map(|cause| cause.text.as_str()).collect()
}

const QUOTA: &str = "error during create-pool(tcp/http): quota reached";

#[test]
fn every_event_that_is_judged_is_one() {
    let all = FAILED.iter().chain(&DONE).chain([&NO_NODES, &node::FOREIGN]);
    for reason in all {
        assert!(EVENTS.iter().any(|it| it.reason == *reason), "{reason}");
    }
}

#[test]
fn a_refusal_by_the_cloud_is_told_with_its_age_although_the_plan_has_steps() {
    let service = in_trouble("quota", QUOTA);
    let events = [event("default/web", FAILED[0], QUOTA, "2026-01-01T00:29:20Z")];
    let nodes = nodes();
    let why = of_service(&service, Some(&with_step()), &known(&nodes, &events));
    insta::assert_snapshot!(render_text(&[why]), @r"
    service/default/web: failed
      is         no address
                 2 of 2 Nodes may be members
      should be  1 step, impact none
                   create pool tcp/http
      why not    the last try failed (event of 40 s ago, counted 7 times): error during create-pool(tcp/http): quota reached
                 since: for 12 min
                 do: whoever owns the project of the cloud has the limit raised, or deletes what nobody needs
      next       the manager tries again by itself, and at once when the Service changes
    ");
    let held = Trouble::new(QUOTA).tried(Some(Again::Refused)).to_string();
    let why = of_service(
        &in_trouble("quota", &held),
        Some(&with_step()),
        &known(&nodes, &events),
    );
    assert_eq!(
        why.next,
        "the manager tries again within 40 minutes, and at once when the Service changes"
    );
    let said = last_try(&service, &known(&nodes, &events)).unwrap();
    assert_eq!(
        said,
        format!("failed (event of 40 s ago, counted 7 times): {QUOTA}")
    );
}

/// The plan of another process has the step that the manager was refused.
#[test]
fn of_what_a_warning_tells_it_is_not_said_that_it_is_made_by_itself() {
    let told = |events: &[SeenEvent]| {
        let why = of_service(&service(|_| {}), Some(&with_step()), &known(&nodes(), events));
        why.causes[0].remedy.clone()
    };
    assert!(told(&[]).contains("makes this by itself"));
    let refused = event(
        "default/web",
        "LoadBalancerLbMethodUnknown",
        "no",
        "2026-01-01T00:29:20Z",
    );
    let remedy = told(&[refused]);
    assert!(remedy.starts_with("follow the warnings below"), "{remedy}");
}

#[test]
fn trouble_is_never_younger_than_its_last_event() {
    let service = in_trouble("quota", QUOTA); // since 12 min
    let events = [event("default/web", FAILED[0], QUOTA, "2026-01-01T00:15:00Z")];
    let why = of_service(&service, Some(&with_step()), &known(&nodes(), &events));
    assert_eq!(why.causes[0].since, "for 15 min");
}

#[test]
fn a_condition_is_told_where_events_may_not_be_read() {
    let why = of_service(
        &in_trouble("denied", "403 Forbidden"),
        Some(&with_step()),
        &known(&nodes(), &[]),
    );
    assert_eq!(texts(&why), ["denied: 403 Forbidden"]);
    assert!(why.causes[0].remedy.contains("may write"));
    let own = "whoever runs the manager gives it the scope bmc";
    let told = Trouble::new("no")
        .with_remedy(Some(own))
        .tried(Some(Again::Write));
    let event = event(
        "default/web",
        FAILED[0],
        &format!("Error syncing: no; {own}"),
        "2026-01-01T00:29:20Z",
    );
    for (reason, events) in [("denied", &[][..]), ("quota", &[]), ("quota", &[event])] {
        let service = in_trouble(reason, &told.to_string());
        let why = of_service(&service, Some(&with_step()), &known(&nodes(), events));
        assert_eq!(why.causes[0].remedy, own);
        assert!(why.causes[0].text.ends_with(": no"), "{why:?}");
    }
    let revoked = Trouble::new("401 Unauthorized: Invalid token.").with_remedy(Some(advice::UNAUTHENTICATED));
    let revoked = revoked.to_string();
    let why = of_service(&in_trouble("denied", &revoked), None, &known(&nodes(), &[]));
    assert!(why.causes[0].remedy.contains("new credentials"), "{why:?}");
    let why = of_service(
        &in_trouble("denied", &revoked),
        Some(&with_step()),
        &known(&nodes(), &[]),
    );
    assert!(
        why.causes[0].remedy.contains("its pods run with older ones"),
        "this command was answered: {why:?}"
    );
    let no_router = in_trouble("conflict", "External network x is not reachable from subnet y");
    let why = of_service(&no_router, None, &known(&nodes(), &[]));
    assert!(why.causes[0].remedy.contains("stands in the way"), "{why:?}");
    let waits = of_service(
        &in_trouble("waiting", "it is being built"),
        None,
        &known(&nodes(), &[]),
    );
    assert_eq!(waits.outcome(), Outcome::Warning);
    let known = known(&[], &[]);
    assert_eq!(
        last_try(&in_trouble("waiting", "it is being built"), &known),
        None
    );
}

/// The event of the call that was given up is younger than the sync that settled: such a one says nothing.
#[test]
fn a_service_that_is_served_while_a_call_has_no_answer_is_no_failure() {
    let told = Trouble::new(NO_ANSWER).with_remedy(Some(advice::UNANSWERED));
    let service = in_trouble("unanswered", &told.to_string());
    let given_up = event(
        "default/web",
        FAILED[0],
        "no answer within 60 s",
        "2026-01-01T00:29:20Z",
    );
    let why = of_service(&service, Some(&report()), &known(&nodes(), &[given_up]));
    assert_eq!(why.outcome(), Outcome::Warning, "{why:?}");
    assert_eq!(texts(&why), [format!("unanswered: {NO_ANSWER}")]);
    assert_eq!(why.causes[0].remedy, advice::UNANSWERED);
}

#[test]
fn an_address_that_somebody_takes_out_of_the_status_is_told_as_such() {
    let report = PlanReport {
        outcome: ReportedOutcome::Settled {
            publishes: vec!["192.0.2.7".to_owned()],
        },
        ..PlanReport::of_nothing("default/web".to_owned())
    };
    let why = of_service(&service(|_| {}), Some(&report), &known(&nodes(), &[]));
    assert_eq!(why.causes[0].id, "service.not-published");
    assert!(why.causes[0].text.contains("192.0.2.7"), "{why:?}");
    assert!(why.causes[0].remedy.contains("GitOps"), "{why:?}");
}

#[test]
fn a_failure_that_a_success_has_followed_is_over() {
    let service = service(|_| {});
    let failed = event("default/web", FAILED[0], "no", "2026-01-01T00:20:00Z");
    let done = event(
        "default/web",
        DONE[0],
        "Ensured load balancer",
        "2026-01-01T00:25:00Z",
    );
    let of_another = event("default/other", FAILED[0], "no", "2026-01-01T00:26:00Z");
    let old = event("default/web", FAILED[0], "no", "2026-01-01T00:01:00Z");
    let nodes = nodes();
    for events in [&[failed.clone(), done, of_another][..], &[old]] {
        let why = of_service(&service, Some(&report()), &known(&nodes, events));
        assert_eq!((texts(&why), why.outcome()), (vec![], Outcome::Ok));
        assert_eq!(last_try(&service, &known(&nodes, events)), None);
    }
    let why = of_service(&service, Some(&with_step()), &known(&nodes, &[failed]));
    assert_eq!(why.outcome(), Outcome::Failed);
}

#[test]
fn a_refusal_is_told_once_with_the_remedy_of_the_plan() {
    let refused = PlanReport {
        outcome: ReportedOutcome::Refused {
            refusal: Refusal::new("port 80 is taken").with_remedy("choose another one"),
        },
        ..report()
    };
    let of_condition = in_trouble("refused", "port 80 is taken; choose another one");
    for service in [service(|_| {}), of_condition] {
        let why = of_service(&service, Some(&refused), &known(&nodes(), &[]));
        assert_eq!(why.causes.len(), 1, "{why:?}");
        assert!(why.causes[0].text.contains("port 80 is taken"), "{why:?}");
        assert_eq!(why.causes[0].remedy, "choose another one");
        assert_eq!(why.outcome(), Outcome::Failed);
    }
}

#[test]
fn a_service_of_another_class_or_type_is_not_for_this_manager() {
    let classed = service(|it| it["spec"]["loadBalancerClass"] = json!("example.com/x"));
    let why = of_service(&classed, None, &known(&nodes(), &[]));
    assert!(
        why.should[0].starts_with("not for this manager: its spec.loadBalancerClass is \"example.com/x\"")
    );
    assert_eq!(why.outcome(), Outcome::Warning, "nobody has served it");
    let plain = service(|it| it["spec"]["type"] = json!("ClusterIP"));
    let why = of_service(&plain, None, &known(&nodes(), &[]));
    assert!(why.should[0].contains("its type is ClusterIP"), "{why:?}");
    assert_eq!(why.outcome(), Outcome::Ok);
    let ours = service(|_| {});
    assert_eq!(not_served(&ours, ServiceClasses::upstream()), None);
    let unserved = Known {
        unserved: Some(Unserved::Controller),
        ..known(&[], &[])
    };
    assert!(texts(&of_service(&ours, None, &unserved))[0].contains("--controllers"));
}

#[test]
fn nodes_that_are_all_left_out_are_told_with_what_leaves_them_out() {
    let mut all = nodes();
    Arc::make_mut(&mut all[0]).labels = Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_BALANCERS, "")]);
    let some = of_service(&service(|_| {}), None, &known(&all, &[]));
    assert_eq!(some.outcome(), Outcome::Ok);
    assert!(
        some.is
            .contains(&format!("left out by {}: a", keys::LABEL_EXCLUDE_FROM_BALANCERS))
    );
    Arc::make_mut(&mut all[1]).deleting = true;
    let why = of_service(&service(|_| {}), None, &known(&all, &[]));
    assert_eq!(why.outcome(), Outcome::Failed);
    assert!(
        why.causes[0]
            .text
            .contains("exclude-from-external-load-balancers: a"),
        "{why:?}"
    );
    assert!(why.causes[0].text.contains("deletionTimestamp: b"), "{why:?}");
    assert!(
        why.causes[0].remedy.contains("kubectl label node NAME"),
        "{why:?}"
    );
    // An autoscaler that ended in the middle leaves its taint; the label may be on the control plane alone.
    let tainted = Arc::make_mut(&mut all[1]);
    tainted.deleting = false;
    tainted.taints.push(Taint {
        key: keys::TAINT_TO_BE_DELETED.into(),
        value: None,
        effect: TaintEffect::NoSchedule,
        time_added: None,
    });
    let guess = [event(
        "default/web",
        "NoValidNodes",
        "none",
        "2026-01-01T00:29:00Z",
    )];
    let why = of_service(&service(|_| {}), None, &known(&all, &guess));
    assert_eq!(why.causes.len(), 1, "{why:?}");
    let remedy = "kubectl taint node b ToBeDeletedByClusterAutoscaler-";
    assert!(why.causes[0].remedy.ends_with(remedy), "{why:?}");
    let why = of_node(&all[1], &Shown::default(), &known(&all, &[]));
    let cause = why.causes.iter().find(|it| it.id == "node.autoscaled");
    assert!(cause.is_some_and(|it| it.remedy.ends_with(remedy)), "{why:?}");
}

/// A plan that goes on behind what the cloud refused meets what is not so, or what follows from it.
#[test]
fn what_a_prediction_meets_behind_a_refusal_is_no_second_cause() {
    let nodes = nodes();
    let beyond = PlanReport {
        outcome: ReportedOutcome::Refused {
            refusal: Refusal::new("the subnet of the members is not known").with_remedy("set it"),
        },
        notes: vec![
            Note::warning("NodesElsewhere", "in another subnet"),
            Note::warning("NodesLeftOut", "not balanced over: c"),
        ],
        ..with_step()
    };
    let service = in_trouble(
        "refused",
        "network x, which the cloud refuses. What to do: name another one",
    );
    let why = of_service(&service, Some(&beyond), &known(&nodes, &[]));
    assert_eq!(texts(&why).len(), 1, "{why:?}");
    assert_eq!(why.causes[0].remedy, "name another one");
    assert!(why.is.contains(&"not balanced over: c".to_owned()), "{why:?}");
    // What was told in an event was met.
    let events = [event(
        "default/web",
        "NodesElsewhere",
        "in another subnet",
        "2026-01-01T00:29:00Z",
    )];
    let why = of_service(&service, Some(&beyond), &known(&nodes, &events));
    assert_eq!(texts(&why).len(), 2, "{why:?}");
}

#[test]
fn what_a_plan_notes_and_an_event_says_is_told_once() {
    let noted = PlanReport {
        notes: vec![Note::warning("IgnoredAnnotations", "x is not known")],
        ..report()
    };
    let nodes = nodes();
    let events = [
        event(
            "default/web",
            "IgnoredAnnotations",
            "x is not known",
            "2026-01-01T00:25:00Z",
        ),
        event(
            "default/web",
            "FinalizerRemoved",
            "by helm",
            "2026-01-01T00:25:00Z",
        ),
    ];
    let why = of_service(&service(|_| {}), Some(&noted), &known(&nodes, &events));
    assert_eq!(
        texts(&why),
        [
            "IgnoredAnnotations: x is not known",
            "FinalizerRemoved, 5 min ago: by helm"
        ]
    );
    assert!(why.causes[1].remedy.contains("keep the finalizers"), "{why:?}");
}

#[test]
fn members_that_do_not_answer_are_told_of_a_balancer_that_has_its_address() {
    let well = service(|it| it["status"]["loadBalancer"] = json!({ "ingress": [{ "ip": "192.0.2.1" }] }));
    let some = Ailment::of_members("tcp/http", &["a".to_owned()], 2).unwrap();
    let all = Ailment::of_members("tcp/http", &["a".to_owned(), "b".to_owned()], 2).unwrap();
    assert_eq!(Ailment::of_members("tcp/http", &[], 2), None);
    for (ailment, outcome) in [(some, Outcome::Warning), (all, Outcome::Failed)] {
        let unwell = PlanReport {
            ailments: vec![ailment.clone()],
            ..report()
        };
        let why = of_service(&well, Some(&unwell), &known(&nodes(), &[]));
        assert_eq!((texts(&why), why.outcome()), (vec![&*ailment.text], outcome));
    }
}

fn instance(power: PowerState, state: &str) -> Instance {
    Instance {
        metadata: InstanceMetadata::default(),
        power,
        state: InstanceState::new(state, "running", &[("moving", InstanceState::AT_WORK)]),
        found_by: FoundBy::Id,
    }
}

fn present(power: PowerState) -> InstanceResult {
    Ok(InstanceAnswer::Present(Box::new(instance(power, "running"))))
}

fn waiting(id: Option<&str>) -> Node {
    Node {
        provider_id: id.map(Into::into),
        created: "2026-01-01T00:10:00Z".parse().unwrap(),
        taints: vec![Taint {
            key: keys::TAINT_UNINITIALIZED.to_owned(),
            effect: TaintEffect::NoSchedule,
            ..Taint::shutdown()
        }],
        ..Node::named("worker-1")
    }
}

#[test]
fn a_node_that_waits_by_its_name_is_told_of_an_instance_that_is_called_alike() {
    let missing: InstanceResult = Err(CloudError::not_found("found none"));
    let why = of_node(
        &waiting(None),
        &Shown {
            near: "; no Node bears the name of the instance \"worker-01\", which may be this one".to_owned(),
            ..Shown::of(Some(&missing))
        },
        &known(&[], &[]),
    );
    insta::assert_snapshot!(render_text(&[why]), @r#"
    node/worker-1: failed
      is         waits for its cloud for 20 min: it has the taint node.cloudprovider.kubernetes.io/uninitialized
                 not ready
                 no provider ID
      why not    found none; no Node bears the name of the instance "worker-01", which may be this one
                 do: an instance is found by the name of its Node: whoever made the Node registers it under the name of its instance, renames the instance, or has the kubelet give the provider ID. The credentials have to be of the project with the instance
      next       the manager tries again by itself, after 1 to 60 s
    "#);
}

#[test]
fn a_node_that_is_ready_and_has_no_instance_is_never_said_to_be_deleted() {
    let gone = Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
    let missing = Err(CloudError::not_found("none"));
    let mut node = Node {
        provider_id: Some("toy://1".into()),
        readiness: Readiness::Ready,
        ..Node::named("n")
    };
    for answer in [&gone, &missing] {
        let remedy = of_answer(&node, &Shown::of(Some(answer))).unwrap().remedy;
        assert!(remedy.contains("never deleted"), "{remedy}");
    }
    node.readiness = Readiness::NotReady;
    let remedy = of_answer(&node, &Shown::of(Some(&gone))).unwrap().remedy;
    assert!(remedy.contains("deletes it by itself"), "{remedy}");
    node.labels = Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_LIFECYCLE, "")]);
    let remedy = of_answer(&node, &Shown::of(Some(&gone))).unwrap().remedy;
    assert!(remedy.contains("take the label off"), "{remedy}");
}

/// Its status may be what the manager may not write.
#[test]
fn of_a_service_that_shows_nothing_the_last_try_is_not_known() {
    let made = |at: &str| {
        let service = service(|it| it["metadata"]["creationTimestamp"] = json!(at));
        last_try(&service, &known(&nodes(), &[]))
    };
    let told = made("2026-01-01T00:20:00Z");
    assert!(told.is_some_and(|text| text.starts_with("not known")));
    assert_eq!(made("2026-01-01T00:29:00Z"), None);
}

#[test]
fn a_node_of_another_cloud_is_not_said_to_be_tried_again() {
    let (node, nodes) = (waiting(Some("aws://1")), nodes());
    let why = of_node(
        &node,
        &Shown::of(Some(&Ok(InstanceAnswer::Foreign))),
        &known(&nodes, &[]),
    );
    assert!(why.next.starts_with("nothing from this manager"), "{}", why.next);
}

#[test]
fn a_node_without_a_route_is_told_by_its_event_or_else_by_its_condition() {
    let node = Node {
        provider_id: Some("toy://1".into()),
        network_unavailable: Some(NetworkUnavailable {
            is_unavailable: true,
            reason: "NoRouteCreated".into(),
        }),
        ..Node::named("n")
    };
    let on = present(PowerState::On);
    let why = of_node(&node, &Shown::of(Some(&on)), &known(&[], &[]));
    assert_eq!(why.causes[0].id, "node.no-network");
    assert!(why.causes[0].text.contains("NoRouteCreated"), "{why:?}");
    assert_eq!(why.outcome(), Outcome::Failed);
    let events = [event(
        "n",
        "FailedToCreateRoute",
        "the router is full",
        "2026-01-01T00:29:00Z",
    )];
    let why = of_node(&node, &Shown::of(Some(&on)), &known(&[], &events));
    assert_eq!(texts(&why).len(), 1, "{why:?}");
    assert!(why.causes[0].text.contains("the router is full"), "{why:?}");
}

#[test]
fn an_address_that_the_instance_has_not_is_told_without_an_event() {
    let node = Node {
        annotations: Labels::from_iter([(keys::ANNOTATION_PROVIDED_NODE_IP, "10.9.9.9")]),
        ..waiting(None)
    };
    let mut answer = present(PowerState::On);
    if let Ok(InstanceAnswer::Present(one)) = &mut answer {
        one.metadata.addresses = vec![NodeAddress::new(AddressType::InternalIp, "10.0.0.1")];
    }
    let cause = of_answer(&node, &Shown::of(Some(&answer))).unwrap();
    assert_eq!(cause.id, "node.provided-ip");
    assert!(cause.text.contains("10.9.9.9"), "{cause:?}");
    assert!(cause.remedy.contains("--node-ip"), "{cause:?}");
}

#[test]
fn what_is_wrong_with_a_node_is_told_by_what_its_cloud_says() {
    let foreign = Ok(InstanceAnswer::Foreign);
    let well = Node {
        provider_id: Some("toy://1".into()),
        ..Node::named("n")
    };
    for (node, answer, words) in [
        (&well, Some(present(PowerState::On)), None),
        (&well, Some(present(PowerState::Off)), Some("switched off")),
        (&well, Some(foreign.clone()), None),
        (&waiting(Some("aws://1")), Some(foreign), Some("of another cloud")),
        (
            &waiting(None),
            Some(present(PowerState::On)),
            Some("is there: see the Node's events"),
        ),
        (&well, None, Some("does not list")),
        (&well, Some(Err(CloudError::other("403"))), Some("403")),
    ] {
        let cause = of_answer(node, &Shown::of(answer.as_ref()));
        match words {
            None => assert_eq!(cause, None),
            Some(words) => assert!(
                cause.as_ref().is_some_and(|it| it.text.contains(words)),
                "{cause:?}"
            ),
        }
    }
    let twin = Arc::new(Node {
        provider_id: Some("toy://1".into()),
        ..Node::named("twin")
    });
    let events = [
        event("n", "NodeWriteRefused", "no label", "2026-01-01T00:29:00Z"),
        event("n", "ImageGCFailed", "of the kubelet", "2026-01-01T00:29:00Z"),
    ];
    let nodes = [twin];
    let why = of_node(
        &well,
        &Shown::of(Some(&present(PowerState::On))),
        &known(&nodes, &events),
    );
    let texts = texts(&why);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert_eq!(texts[0], "its provider ID is that of twin as well");
    assert!(texts[1].starts_with("NodeWriteRefused, 60 s ago"), "{texts:?}");
    let unasked = of_node(
        &Node::named("n"),
        &Shown::of(Some(&present(PowerState::On))),
        &known(&[], &[]),
    );
    assert!(
        unasked.causes[0].remedy.contains("kubectl taint node"),
        "{unasked:?}"
    );
}

/// A Node `n` with the provider ID `toy://1` whose kubelet does not report.
fn silent() -> Node {
    Node {
        provider_id: Some("toy://1".into()),
        readiness: Readiness::Unknown,
        ..Node::named("n")
    }
}

#[test]
fn a_node_that_is_not_ready_is_never_ok_and_told_with_the_state_of_its_instance() {
    for (state, words) in [
        ("ERROR", "look at the instance in the cloud"),
        ("running", "look at the kubelet"),
        ("moving", "nobody has to do anything at first"),
    ] {
        let answer = Ok(InstanceAnswer::Present(Box::new(instance(PowerState::On, state))));
        let why = of_node(&silent(), &Shown::of(Some(&answer)), &known(&[], &[]));
        assert_eq!(why.outcome(), Outcome::Warning);
        assert_eq!(
            texts(&why),
            [format!(
                "it is not ready, and the state of its instance is {state}"
            )]
        );
        assert!(why.causes[0].remedy.starts_with(words), "{why:?}");
    }
}

/// The instance lost its private interface, or a setting chooses networks that there are none of.
#[test]
fn a_node_without_an_internal_address_is_told_where_others_have_one_or_a_setting_is_wrong() {
    let node = |name: &str, kind: AddressType| {
        Arc::new(Node {
            provider_id: Some(format!("toy://{name}").into()),
            readiness: Readiness::Ready,
            addresses: vec![NodeAddress::new(kind, "192.0.2.7")],
            ..Node::named(name)
        })
    };
    let outside = node("a", AddressType::ExternalIp);
    let mut one = instance(PowerState::On, "running");
    one.metadata.addresses = outside.addresses.clone();
    let told = |one: &Instance, nodes: &[Arc<Node>]| {
        let answer = Ok(InstanceAnswer::Present(Box::new(one.clone())));
        let lost = [event(
            "a",
            "NodeWithoutAddress",
            "no IP address",
            "2026-01-01T00:29:00Z",
        )];
        let why = of_node(&outside, &Shown::of(Some(&answer)), &known(nodes, &lost));
        texts(&why).join(" / ")
    };
    let alike = [outside.clone(), node("b", AddressType::ExternalIp)];
    assert!(told(&one, &alike).starts_with("NodeWithoutAddress"));
    let others = [outside.clone(), node("b", AddressType::InternalIp)];
    let lost = told(&one, &others);
    assert!(
        lost.starts_with("its instance has no internal address, as those of"),
        "{lost}"
    );
    assert!(!lost.contains("NodeWithoutAddress"), "{lost}");
    one.metadata.unmatched = Unmatched {
        lacks: vec!["an address in the network `privat` (setting)".to_owned()],
        networks: vec!["private".to_owned()],
    };
    let wrong = told(&one, &alike);
    assert!(wrong.contains("`privat` (setting) and is in: private"), "{wrong}");
}

#[test]
fn a_rebuilt_instance_is_told_with_its_new_id_however_it_is_found() {
    let mut renewed = instance(PowerState::On, "running");
    renewed.metadata.provider_id = Some("toy://2".to_owned());
    let by_name = Ok(InstanceAnswer::Present(Box::new(renewed.clone())));
    let missing = Err(CloudError::not_found("none"));
    let asked_for = Shown {
        namesake: Some(&renewed),
        ..Shown::of(Some(&missing))
    };
    let told = "The cloud gives this instance the provider ID toy://2, but the Node has toy://1";
    let events = [event("n", "ProviderIDMismatch", told, "2026-01-01T00:29:00Z")];
    for shown in [Shown::of(Some(&by_name)), asked_for] {
        let why = of_node(&silent(), &shown, &known(&[], &events));
        assert_eq!(
            texts(&why),
            [format!("its instance was rebuilt under its name: {told}")]
        );
        assert!(
            why.causes[0].remedy.contains("drain the Node and delete it"),
            "{why:?}"
        );
    }
}

#[test]
fn where_no_instance_is_seen_the_frozen_deletion_is_named_and_nobody_is_told_to_delete() {
    let gone = Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
    let shown = |frozen: Option<&str>| Shown {
        is_blind: true,
        frozen: frozen.map(str::to_owned),
        ..Shown::of(Some(&gone))
    };
    let frozen = "Not deleting node n: with these credentials the cloud shows none";
    let cause = of_answer(&silent(), &shown(Some(frozen))).unwrap();
    assert_eq!((&*cause.id, &*cause.text), ("node.credentials", frozen));
    let cause = of_answer(&silent(), &shown(None)).unwrap();
    assert!(cause.text.contains("none of the instances"), "{cause:?}");
    assert!(!cause.remedy.contains("delete"), "{cause:?}");
}

#[test]
fn what_else_is_refused_where_there_is_no_node_is_not_what_to_do() {
    let told = "no such method. What to do: choose another one";
    let why = of_service(&in_trouble("no_nodes", told), None, &known(&nodes(), &[]));
    assert!(why.causes[0].remedy.contains("adds Nodes"), "{why:?}");
}

#[test]
fn a_server_without_its_node_is_named() {
    let Ok(InstanceAnswer::Present(one)) = present(PowerState::On) else {
        panic!("it is there");
    };
    let cause = without_node(&one);
    assert!(cause.text.contains("an instance of this name: "), "{cause:?}");
    assert!(cause.remedy.contains("systemctl restart kubelet"), "{cause:?}");
}

#[test]
fn a_deletion_that_waits_for_its_note_is_not_said_to_come_by_itself() {
    let gone = Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
    let mut why = of_node(&silent(), &Shown::of(Some(&gone)), &known(&nodes(), &[]));
    assert!(
        why.causes[0].remedy.contains("nobody has to do anything"),
        "{why:?}"
    );
    why.hold_deletion();
    assert!(why.causes[0].remedy.contains("the first cause"), "{why:?}");
}

#[test]
fn a_removal_that_the_cloud_denies_is_not_for_the_owner_of_the_service() {
    let mut going = in_trouble("denied", "403 to the deletion of load balancer web");
    going.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
    going.metadata.finalizers = Some(vec![keys::FINALIZER_LOAD_BALANCER.to_owned()]);
    let why = of_service(&going, None, &known(&nodes(), &[]));
    let cause = why.causes.iter().find(|it| it.id == "last-try.denied").unwrap();
    assert!(cause.remedy.contains("may delete"), "{why:?}");
}

#[test]
fn what_holds_the_deletion_of_a_node_is_told_and_not_that_the_manager_deletes_it() {
    let gone = Ok(InstanceAnswer::Absent(AbsenceProof::new("404")));
    let kept = Err(CloudError::not_found(
        "the variable SKIP_NODE_DELETION keeps the node",
    ));
    let held = "Not deleting node n yet: 3 nodes were deleted. The next one may go at 03:14:00Z";
    let throttled = Shown {
        throttled: Some(held.to_owned()),
        ..Shown::of(Some(&gone))
    };
    let cause = of_answer(&silent(), &throttled).unwrap();
    assert_eq!((&*cause.id, &*cause.text), ("node.throttled", held));
    assert!(cause.remedy.contains("when its turn comes"), "{cause:?}");
    let unproved = Shown {
        is_unproved: true,
        ..Shown::of(Some(&kept))
    };
    let cause = of_answer(&silent(), &unproved).unwrap();
    assert!(cause.text.contains("SKIP_NODE_DELETION"), "{cause:?}");
    assert!(cause.remedy.contains("keeps a Node"), "{cause:?}");
    let excluded = Node {
        labels: Labels::from_iter([(keys::LABEL_EXCLUDE_FROM_LIFECYCLE, "true")]),
        ..silent()
    };
    let cause = of_answer(&excluded, &throttled).unwrap();
    assert!(cause.remedy.contains("by its label"), "{cause:?}");
}
