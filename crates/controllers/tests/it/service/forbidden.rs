//! An account that may not write annotations on Services, as under the roles of some Go managers.

use bowline_cloud_provider::{IpMode, ServiceClasses};
use bowline_kube_api::{Effect, Exchange, Fault, Status};
use serde_json::{Value, json};

use super::cloud::MARK;
use super::seconds;
use super::world::World;

fn forbid(world: &World) {
    forbid_writes_of(world, "");
}

fn forbid_writes_of(world: &World, subresource: &str) {
    let refusal = "services \"web\" is forbidden: cannot patch resource \"services\"";
    world.inject(
        Fault::new(Effect::Answer(Status::new(403, "Forbidden", refusal)))
            .verb("patch")
            .resource("services")
            .subresource(subresource),
    );
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_does_without_annotations_is_made_without_them_and_that_is_said_once() {
    let mut world = World::new(&["a"]);
    world.set(|cloud| cloud.does_without_annotations = true);
    forbid(&world);
    world.start();
    let uid = world.add_service("web");
    world.settled("web").await;
    world.edit("web", |service| service["spec"]["ports"][0]["port"] = 81.into());
    world.pass(seconds(60)).await;
    assert_eq!(
        (
            world.count("AnnotationsForbidden"),
            world.count("EnsuredLoadBalancer")
        ),
        (1, 2),
        "{:?}",
        world.events("web")
    );
    let service = world.service("web").unwrap();
    assert!(service["metadata"]["annotations"][MARK].is_null());
    world.delete("web");
    world.gone("web").await;
    assert_eq!(world.balancer(&uid), None);
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_needs_annotations_waits_for_them() {
    let mut world = World::new(&["a"]);
    forbid(&world);
    world.start();
    world.add_service("web");
    world.pass(seconds(60)).await;
    assert_eq!(world.address("web"), None);
    assert!(world.is_told("web", "SyncLoadBalancerFailed"));
    // A value may hold a time, and each try would be news.
    let told = format!("{:?}", world.events("web"));
    assert!(told.contains(&format!("annotate-service({MARK}): ")), "{told}");
    world.api.faults().clear();
    world.settled("web").await;
}

#[tokio::test(start_paused = true)]
async fn any_other_failure_to_annotate_is_tried_again() {
    let mut world = World::new(&["a"]);
    world.set(|cloud| cloud.does_without_annotations = true);
    let failure = Status::new(500, "InternalError", "etcd is away");
    world.inject(
        Fault::new(Effect::Answer(failure))
            .verb("patch")
            .resource("services")
            .subresource("")
            .times(1),
    );
    world.start();
    world.add_service("web");
    world.settled("web").await;
    let service = world.service("web").unwrap();
    assert_eq!(service["metadata"]["annotations"][MARK], "yes");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_may_not_be_cleared_keeps_its_balancer_unless_the_service_ends_with_it() {
    let world = World::new_with(&["a"], |cloud| {
        cloud.does_without_annotations = true;
        cloud.clears_address = true;
    });
    let uid = world.add("web", json!({ "loadBalancerIP": "198.51.100.7" }));
    world.settled("web").await;
    forbid(&world);
    world.edit("web", |service| service["spec"]["type"] = "ClusterIP".into());
    world.pass(seconds(60)).await;
    assert!(world.balancer(&uid).is_some());
    // Somebody else may look at the field for longer.
    world.edit("web", |service| {
        let finalizers = service["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.push("example.com/theirs".into());
    });
    world.delete("web");
    world.pass(seconds(60)).await;
    assert!(world.balancer(&uid).is_some());
    assert!(world.is_told("web", "SyncLoadBalancerFailed"));
    world.edit("web", |service| {
        let finalizers = service["metadata"]["finalizers"].as_array_mut().unwrap();
        finalizers.retain(|it| it != "example.com/theirs");
    });
    world.gone("web").await;
    assert_eq!(world.balancer(&uid), None);
}

#[tokio::test(start_paused = true)]
async fn what_is_to_be_shown_early_is_shown_before_the_rest_is_written() {
    let mut world = World::new(&["a"]);
    world.set(|cloud| cloud.shows_early = true);
    forbid(&world);
    world.start();
    world.add_service("web");
    world.pass(seconds(10)).await;
    assert!(!world.is_told("web", "EnsuredLoadBalancer"));
    assert_eq!(world.address("web").as_deref(), Some("198.51.100.7"));
    world.api.faults().clear();
    world.settled("web").await;
    assert_eq!(world.conflicts(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_refused_is_written_by_the_schedule_and_nodes_are_followed_meanwhile() {
    let (world, uid) = World::serving(&["a"]).await;
    forbid_writes_of(&world, "status");
    world.set(|cloud| cloud.ip_mode = Some(IpMode::Proxy));
    let refused = || {
        let refused = |it: &Exchange| it.resource == "services" && it.status == 403;
        world.api.journal().matching(refused).len()
    };
    world.annotate("web", "example.com/mode", "proxy");
    world.pass(seconds(39)).await;
    // At 0, 5, 15 and 35 s, and the condition, which tells it, at 30 and 35 s.
    assert_eq!(refused(), 4 + 2);
    let mut expected = vec!["a".to_owned()];
    for node in 0..10 {
        let node = format!("n{node}");
        world.add_node(&node);
        expected.push(node);
        let reads = world.calls("read");
        world.pass(seconds(3)).await;
        assert_eq!(world.balancer(&uid).unwrap(), expected);
        assert_eq!(world.calls("read"), reads + 2, "before the write and after it");
    }
    assert_eq!(refused(), 6 + 2, "the condition, at 45 and 65 s");
    let events = world.reasons("web");
    world.api.faults().clear();
    world.pass(seconds(10)).await; // the next try is due at 75 s
    let ingress = &world.service("web").unwrap()["status"]["loadBalancer"]["ingress"][0];
    assert_eq!(ingress["ipMode"], "Proxy");
    assert_eq!(events.last().unwrap(), "SyncLoadBalancerFailed");
}

/// As the tests above, with a server that is busy and states no delay.
#[tokio::test(start_paused = true)]
async fn a_condition_that_a_busy_server_does_not_take_is_written_by_the_schedule_whatever_nodes_do() {
    let (world, _) = World::serving(&["a"]).await;
    let busy = Status::new(429, "TooManyRequests", "too many requests");
    world.inject(
        Fault::new(Effect::Answer(busy))
            .verb("patch")
            .resource("services")
            .subresource("status"),
    );
    world.set(|cloud| cloud.ip_mode = Some(IpMode::Proxy));
    let refused = || {
        let refused = |it: &Exchange| it.resource == "services" && it.status == 429;
        world.api.journal().matching(refused).len()
    };
    world.annotate("web", "example.com/mode", "proxy");
    world.pass(seconds(14)).await;
    let tries = refused() / 2; // of one write, at 0 and 5 s
    world.pass(seconds(22)).await;
    let before = refused();
    for node in 0..10 {
        world.add_node(&format!("n{node}"));
        world.pass(seconds(3)).await;
    }
    assert_eq!(refused(), before + 2 * tries, "the condition, at 45 and 65 s");
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_taken_is_the_proof_that_the_status_may_be_published() {
    let (world, _) = World::serving(&["a"]).await;
    forbid_writes_of(&world, "status");
    world.set(|cloud| cloud.ip_mode = Some(IpMode::Proxy));
    world.annotate("web", "example.com/mode", "proxy");
    world.pass(seconds(40)).await;
    let mode = || world.service("web").unwrap()["status"]["loadBalancer"]["ingress"][0]["ipMode"].clone();
    world.api.faults().clear();
    world.pass(seconds(8)).await; // the condition is due at 45 s, the status at 75 s
    assert_eq!(mode(), "Proxy");
}

/// What is shown early makes way for something that goes: as long as the status does not tell it, that is not taken away.
#[tokio::test(start_paused = true)]
async fn what_comes_after_a_publication_waits_for_it() {
    let mut world = World::new(&["a"]);
    world.set(|cloud| cloud.shows_early = true);
    let refusal = Status::new(403, "Forbidden", "denied by a policy");
    let fault = Fault::new(Effect::Answer(refusal)).verb("patch");
    let fault = fault.resource("services").subresource("status");
    world.inject(fault.after(1)); // the finalizer
    world.start();
    let uid = world.add_service("web");
    world.pass(seconds(39)).await;
    world.add_node("b");
    world.pass(seconds(3)).await;
    assert_eq!(world.balancer(&uid).unwrap(), [""; 0]);
    let refused = |it: &Exchange| it.resource == "services" && it.status == 403;
    let refused = world.api.journal().matching(refused).len();
    assert_eq!(
        refused,
        4 + 2,
        "at 0, 5, 15 and 35 s, and the condition at 30 and 35 s"
    );
    world.api.faults().clear();
    world.settled("web").await;
    assert_eq!(world.balancer(&uid).unwrap(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn what_stands_beside_a_publication_that_is_refused_does_not_wait_for_it() {
    let mut world = World::new(&["a"]);
    world.set(|cloud| (cloud.shows_early, cloud.follows_beside) = (true, true));
    let refusal = Status::new(403, "Forbidden", "denied by a policy");
    let fault = Fault::new(Effect::Answer(refusal)).verb("patch");
    let fault = fault.resource("services").subresource("status");
    world.inject(fault.after(1)); // the finalizer
    world.start();
    let uid = world.add_service("web");
    world.pass(seconds(36)).await;
    let mut expected = vec!["a".to_owned()];
    for node in ["b", "c", "d"] {
        world.add_node(node);
        expected.push(node.to_owned());
        world.pass(seconds(3)).await;
        assert_eq!(world.balancer(&uid).unwrap(), expected);
    }
    let refused = |it: &Exchange| it.resource == "services" && it.status == 403;
    let refused = world.api.journal().matching(refused).len();
    assert_eq!(
        refused,
        4 + 2,
        "at 0, 5, 15 and 35 s, and the condition at 30 and 35 s"
    );
}

const CLASS_NOTE: &str = "bowline/load-balancer-class";

fn bears_note(service: &Value) -> bool {
    service["metadata"]["annotations"].get(CLASS_NOTE).is_some()
}

/// A policy with a list of the annotations that are allowed, for these writes of Services.
fn deny_note(world: &World, subresource: &str) {
    let fault = Fault::new(Effect::Deny(bears_note)).resource("services");
    world.inject(fault.subresource(subresource));
}

#[tokio::test(start_paused = true)]
async fn a_denied_note_of_the_class_costs_only_itself() {
    for denied in [&[""][..], &["status"], &["", "status"]] {
        let mut world = World::new(&["a"]);
        world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
        denied.iter().for_each(|denied| deny_note(&world, denied));
        world.start();
        world.add("web", json!({ "loadBalancerClass": "ours" }));
        world.settled("web").await;
        world.pass(seconds(1800)).await;
        let service = world.service("web").unwrap();
        let is_denied = denied.contains(&"");
        assert_eq!(bears_note(&service), !is_denied, "{denied:?}: {service}");
        assert_eq!(service["metadata"]["annotations"][MARK], "yes", "{denied:?}");
        let told = format!("{:?}", world.events("web"));
        let is_told = told.contains(CLASS_NOTE) && told.contains("denied by a policy");
        assert_eq!(is_told, is_denied, "{told}");
        let reasons = ["AnnotationsForbidden", "SyncLoadBalancerFailed", "ChangedBack"];
        assert_eq!(
            reasons.map(|reason| world.count(reason)),
            [u64::from(is_denied), 0, 0],
            "{denied:?}: {told}"
        );
        world.delete("web");
        world.gone("web").await;
    }
}

/// Who takes it off because it may not be there is not put back to where he was.
#[tokio::test(start_paused = true)]
async fn a_note_of_the_class_that_a_policy_denies_by_now_is_not_put_back() {
    for denied in ["", "status"] {
        let mut world = World::new(&["a"]);
        world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
        world.start();
        world.add("web", json!({ "loadBalancerClass": "ours" }));
        world.settled("web").await;
        deny_note(&world, denied);
        let calls = world.calls("");
        world.edit("web", |s| {
            let annotations = s["metadata"]["annotations"].as_object_mut().unwrap();
            annotations.remove(CLASS_NOTE).unwrap();
        });
        world.pass(seconds(60)).await;
        assert_eq!(world.calls(""), calls);
        if denied.is_empty() {
            assert!(!bears_note(&world.service("web").unwrap()));
            assert_eq!(world.count("AnnotationsForbidden"), 1);
        }
        // Nor does one that stayed keep the address from being told.
        world.edit("web", |s| {
            s["status"]["loadBalancer"] = json!({});
            s["spec"]["ports"][0]["port"] = 81.into();
        });
        world.addressed("web").await;
        world.pass(seconds(1800)).await;
        assert_eq!(bears_note(&world.service("web").unwrap()), denied == "status");
    }
}

/// A webhook refuses one write, for whatever reason.
#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_not_for_the_note_of_the_class_leaves_it() {
    for (subresource, code, reason) in [
        ("status", 403, "Forbidden"),
        ("status", 422, "Invalid"),
        ("", 403, "Forbidden"),
    ] {
        let mut world = World::new(&["a"]);
        world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
        world.start();
        world.add("web", json!({ "loadBalancerClass": "ours" }));
        world.settled("web").await;
        let refusal = Effect::Answer(Status::new(
            code,
            reason,
            "admission webhook denied the request: try later",
        ));
        let fault = Fault::new(refusal).verb("patch").resource("services");
        world.api.faults().inject(fault.subresource(subresource).times(1));
        world.edit("web", |s| {
            s["status"]["loadBalancer"] = json!({});
            s["metadata"]["annotations"].as_object_mut().unwrap().remove(MARK);
        });
        world.pass(seconds(60)).await;
        let service = world.service("web").unwrap();
        assert!(
            bears_note(&service) && world.address("web").is_some(),
            "{service}"
        );
        assert_eq!(world.count("AnnotationsForbidden"), 0);
    }
}

/// What refuses the writes of one Service, whatever they bear.
#[tokio::test(start_paused = true)]
async fn a_status_that_stays_refused_is_one_write_for_each_try_and_takes_no_note_off() {
    let mut world = World::new(&["a"]);
    world.classes = ServiceClasses::new(["ours".to_owned()], false).unwrap();
    world.start();
    world.add("web", json!({ "loadBalancerClass": "ours" }));
    world.settled("web").await;
    let refusal = Effect::Answer(Status::new(
        403,
        "Forbidden",
        "admission webhook denied the request",
    ));
    let fault = Fault::new(refusal).verb("patch").resource("services");
    world.api.faults().inject(fault.subresource("status"));
    world.api.journal().clear();
    world.edit("web", |s| s["status"]["loadBalancer"] = json!({}));
    world.annotate("web", "example.com/a", "1");
    world.pass(seconds(25)).await;
    let sent = world.api.journal().of("patch", "services").into_iter();
    let (rehearsed, made): (Vec<_>, Vec<_>) = sent.partition(|it| it.query.contains("dryRun"));
    assert!(made.len() > 2 && rehearsed.len() <= 4, "{made:?} {rehearsed:?}");
    let is_about_note = |it: &Option<Value>| format!("{it:?}").contains(CLASS_NOTE);
    assert!(!made.iter().any(|it| is_about_note(&it.body)), "{made:?}");
    assert!(bears_note(&world.service("web").unwrap()));
}
