//! What the command `doctor` finds, and that it only reads.

use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_cloud_provider::{ServerVersion, ServiceKey};
use bowline_kube_api::{Effect, Fault as KubeFault, KubeApi, Permit, Status};
use bowline_kube_io::{Kube, KubeOptions, SystemClock, TokioClock};
use bowline_manager::FencingGate;
use bowline_manager::config::{Config, Lookup};
use bowline_manager::doctor::{
    Check, Cloud, Outcome, Patient, Target, examine, examine_before, explain, render_json, render_text,
};

use serde_json::json;

use super::under_test::{Ability, CloudUnderTest, Denial, Instance, Wish};
use super::world::{SECOND, World, tainted_node, web};

/// What is printed about a world, behind a closed gate. Nothing was written, and no secret is shown.
async fn found<C: CloudUnderTest>(world: &World<C>) -> Vec<Check> {
    examined(world, Ok(reader(world)), false).await
}

/// What is printed before a manager is installed.
async fn found_before<C: CloudUnderTest>(world: &World<C>) -> Vec<Check> {
    examined(world, Ok(reader(world)), true).await
}

fn reader<C: CloudUnderTest>(world: &World<C>) -> Kube {
    Kube::with_service(
        world.api.service(),
        KubeOptions {
            gate: Arc::new(FencingGate::closed(Arc::new(SystemClock))),
            clock: Arc::new(TokioClock::starting_at(world.api.now())),
            ..KubeOptions::new("bowline/conformance")
        },
    )
}

fn config<C: CloudUnderTest>() -> Config {
    let mut config = Config::default();
    config.settings.routes.is_wanted = C::ABILITIES.contains(&Ability::Routes);
    config
}

fn patient<'a, C: CloudUnderTest>(
    world: &World<C>,
    config: &'a Config,
    kube: Result<Kube, String>,
    is_manager: bool,
) -> Patient<'a> {
    Patient {
        config,
        lookup: Some(Lookup::Required),
        is_manager,
        kube,
        cloud: Cloud::Built(world.provider(), Duration::ZERO),
        cloud_clock: Default::default(),
        progress: Default::default(),
        manifests: Default::default(),
        holder: "conformance".to_owned(),
        follows: ServerVersion::parse("1", "37"),
    }
}

async fn examined<C: CloudUnderTest>(
    world: &World<C>,
    kube: Result<Kube, String>,
    is_before: bool,
) -> Vec<Check> {
    let begun = world.since();
    let state = world.sim.state();
    let config = config::<C>();
    let patient = patient(world, &config, kube, !is_before);
    let checks = match is_before {
        true => examine_before(&patient).await,
        false => examine(&patient).await,
    };
    let told = render_text(&checks) + &render_json(&checks);
    assert!(!told.contains(C::SECRET), "{told}");
    assert_eq!(world.writes(begun), Vec::<String>::new(), "{told}");
    assert_eq!(world.kube_writes(begun), Vec::<String>::new(), "{told}");
    assert_eq!(world.sim.state(), state, "{told}");
    checks
}

/// The checks that did not end so, as a person reads them.
fn but(checks: &[Check], outcome: Outcome) -> Vec<&Check> {
    checks.iter().filter(|check| check.outcome != outcome).collect()
}

fn check<'a>(checks: &'a [Check], name: &str) -> &'a Check {
    let found = checks.iter().find(|check| check.topic.name == name);
    found.unwrap_or_else(|| panic!("{name}: {}", render_text(checks)))
}

fn outcome(checks: &[Check], name: &str) -> Outcome {
    check(checks, name).outcome
}

pub(super) async fn nothing_is_wrong_where_a_manager_works<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(3);
    let balances = C::ABILITIES.contains(&Ability::LoadBalancers);
    if balances {
        world.ask(web(), Wish::Plain);
    }
    world.start();
    match balances {
        true => world.settled("web").await,
        false => world.pass(SECOND * 10).await,
    }
    let checks = found(&world).await;
    // In memory no answer tells the time.
    let rest = but(&checks, Outcome::Ok);
    let rest: Vec<&str> = rest.iter().map(|it| it.topic.id).collect();
    assert_eq!(rest, ["kubernetes.clocks"], "{}", render_text(&checks));
    let routes = checks.iter().any(|check| check.topic.name == "routes are read");
    assert_eq!(routes, C::ABILITIES.contains(&Ability::Routes));
}

/// As behind a wrong path.
pub(super) async fn an_api_that_answers_404_to_everything_is_one_failure<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    world.cloud().faults().add(Fault::any().always().status(404));
    let checks = found(&world).await;
    let failed = checks.iter().filter(|check| check.outcome == Outcome::Failed);
    let failed: Vec<&str> = failed.map(|check| check.topic.name).collect();
    // No manager that could lead runs here.
    assert_eq!(
        failed,
        ["a manager runs", "a process leads", "instances are listed"],
        "{}",
        render_text(&checks)
    );
}

pub(super) async fn a_webhook_that_refuses_is_told<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.add_nodes(1);
    let admitted = |checks: &[Check]| check(checks, "writes are admitted").clone();
    let well = admitted(&found(&world).await);
    assert_eq!(well.outcome, Outcome::Ok, "{well:?}");
    assert!(
        well.seen.ends_with("patch nodes n1, patch nodes/status n1"),
        "{well:?}"
    );
    let webhook = |code, text: &str| {
        let status = Status::new(
            code,
            "BadRequest",
            format!("admission webhook \"a.example\" {text}"),
        );
        world.api.faults().inject(
            KubeFault::new(Effect::Answer(status))
                .verb("patch")
                .resource("nodes"),
        );
    };
    webhook(400, "denied the request: not today");
    let refused = admitted(&found(&world).await);
    assert_eq!(
        (refused.outcome, refused.details.len()),
        (Outcome::Failed, 2),
        "{refused:?}"
    );
    assert!(refused.details[0].contains("not today"), "{refused:?}");
    world.api.faults().clear();
    webhook(400, "does not support dry run");
    let untried = admitted(&found(&world).await);
    assert_eq!(untried.outcome, Outcome::Skipped, "{untried:?}");
    let asked = world.api.journal().of("patch", "nodes");
    assert!(
        asked.iter().all(|request| request.query == "dryRun=All"),
        "{asked:?}"
    );
}

pub(super) async fn a_balancer_that_is_lost_is_told<C: CloudUnderTest>() {
    let mut world = World::<C>::with_web(2).await;
    world.kill().await;
    world.sim.lose_balancer(&world.mark("web"));
    assert!(world.sim.balancers().is_empty(), "the simulator lost nothing");
    let checks = found(&world).await;
    let compared = check(&checks, "load balancers are as their Services ask");
    // Where an address cannot be had again, a person has to decide, or clients have to follow.
    let is_for_people = |text: &str| compared.details[0].contains(text);
    let outcome =
        match is_for_people("not possible as it is asked for") || is_for_people("clients have to follow") {
            true => Outcome::Failed,
            false => Outcome::Warning,
        };
    assert_eq!(
        (compared.outcome, compared.seen.as_str()),
        (outcome, "1 compared, 1 with a difference"),
        "{}",
        render_text(&checks)
    );
    assert!(
        compared.details[0].starts_with("service/default/web: "),
        "{compared:?}"
    );
}

/// In a new cluster there is no Service to go by.
pub(super) async fn the_cloud_is_asked_although_there_is_nothing_in_the_cluster<C: CloudUnderTest>() {
    let world = World::<C>::new();
    let checks = found(&world).await;
    assert_eq!(
        outcome(&checks, "instances are listed"),
        Outcome::Ok,
        "{}",
        render_text(&checks)
    );
    let balancers = check(&checks, "load balancers are read");
    assert_eq!(balancers.outcome, Outcome::Ok, "{}", render_text(&checks));
    if C::ABILITIES.contains(&Ability::LoadBalancers) {
        assert!(
            balancers.seen.starts_with("one that is not there, in "),
            "{balancers:?}"
        );
    }
    assert_eq!(outcome(&checks, "a process leads"), Outcome::Failed);
    assert_eq!(outcome(&checks, "Nodes are read"), Outcome::Warning);
}

pub(super) async fn unknown_credentials_are_a_failure_of_the_cloud_alone<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.add_nodes(2);
    world.sim.deny(Some(Denial::Unknown));
    let checks = found(&world).await;
    let listed = check(&checks, "instances are listed");
    assert_eq!(listed.outcome, Outcome::Failed, "{}", render_text(&checks));
    assert!(
        listed.seen.contains("401") || listed.seen.contains("403"),
        "{listed:?}"
    );
    assert_eq!(outcome(&checks, "Nodes have their instances"), Outcome::Skipped);
    assert_eq!(outcome(&checks, "Nodes are read"), Outcome::Ok);
    assert_eq!(outcome(&checks, "the manager has its permissions"), Outcome::Ok);
    assert_eq!(outcome(&checks, "Services are read"), Outcome::Ok);
}

pub(super) async fn credentials_of_another_project_are_told<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.add_nodes(2);
    world.sim.deny(Some(Denial::OtherProject));
    let checks = found(&world).await;
    let instances = check(&checks, "Nodes have their instances");
    assert_eq!(instances.outcome, Outcome::Failed, "{}", render_text(&checks));
    assert_eq!(instances.details, ["not listed: n1, n2"]);
}

pub(super) async fn a_node_that_waits_is_named_with_the_reason<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.add_nodes(1);
    world.join("known");
    world.apply(tainted_node("stray"));
    world.pass(SECOND * 660).await;
    let checks = found(&world).await;
    let waiting = check(&checks, "Nodes are initialised");
    assert_eq!(waiting.outcome, Outcome::Failed, "{}", render_text(&checks));
    assert!(waiting.seen.starts_with("2 with the taint "), "{}", waiting.seen);
    assert!(
        waiting.details[0].starts_with("known, for 11 min: an instance of its ID or name is there"),
        "{waiting:?}"
    );
    assert!(
        waiting.details[1].starts_with("stray, for 11 min: "),
        "{waiting:?}"
    );
    let instances = check(&checks, "Nodes have their instances");
    assert_eq!(
        (instances.outcome, instances.seen.as_str()),
        (Outcome::Failed, "2 of 3")
    );
    assert_eq!(instances.details, ["not listed: stray"]);
}

/// What proves nothing about the only Node that has a provider ID says nothing about those that have none yet.
pub(super) async fn an_instance_that_is_gone_hides_none_that_a_node_waits_for<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.add_nodes(1);
    world.sim.remove_instance("n1");
    world.join("fresh");
    let checks = found(&world).await;
    let instances = check(&checks, "Nodes have their instances");
    assert_eq!(instances.outcome, Outcome::Warning, "{}", render_text(&checks));
    assert_eq!(instances.details, ["not listed: n1"]);
    let waiting = &check(&checks, "Nodes are initialised").details;
    assert!(
        waiting[0].contains("an instance of its ID or name is there"),
        "{waiting:?}"
    );
}

pub(super) async fn the_calls_for_many_nodes_are_those_for_a_few<C: CloudUnderTest>() {
    let mut counts = Vec::new();
    for count in [2, 12] {
        let world = World::<C>::new();
        world.add_nodes(count);
        // Whether they are gone for good is not asked: it would be a call for each.
        for index in 2..=count {
            world.sim.remove_instance(&format!("n{index}"));
        }
        world.join("fresh");
        world.apply(tainted_node("stray"));
        let begun = world.since();
        found(&world).await;
        counts.push(world.counts(begun));
    }
    assert_eq!(counts[0], counts[1]);
}

pub(super) async fn without_an_api_server_the_cloud_is_asked_all_the_same<C: CloudUnderTest>() {
    let world = World::<C>::new();
    let checks = examined(&world, Err("nowhere".to_owned()), false).await;
    assert_eq!(outcome(&checks, "the API server answers"), Outcome::Failed);
    for name in [
        "the manager has its permissions",
        "a process leads",
        "Nodes are read",
        "Services are read",
    ] {
        assert_eq!(outcome(&checks, name), Outcome::Skipped, "{name}");
    }
    assert_eq!(
        outcome(&checks, "instances are listed"),
        Outcome::Ok,
        "{}",
        render_text(&checks)
    );
}

pub(super) async fn what_may_not_be_written_is_told_by_its_rule<C: CloudUnderTest>() {
    let reads = Permit::new("system:unauthenticated", &["get", "list", "watch"], "*", &["*"]);
    let more = Permit::new("system:unauthenticated", &["create", "update"], "*", &["*"]);
    let world = World::<C>::of(C::new(7), KubeApi::builder().permit(reads).permit(more), 7);
    world.add_nodes(1);
    let checks = found(&world).await;
    let missing = check(&checks, "the manager has its permissions");
    assert_eq!(missing.outcome, Outcome::Failed, "{}", render_text(&checks));
    let starts = |words: &str| missing.details.iter().any(|line| line.starts_with(words));
    assert!(starts(
        "patch nodes, by the rule {apiGroups: [\"\"], resources: [\"nodes\"], verbs: [\"patch\"]}"
    ));
    assert!(
        starts("delete nodes, ") && starts("patch services/status, "),
        "{missing:#?}"
    );
    assert!(
        missing.details.iter().all(|line| line.contains("; without it ")),
        "{missing:#?}"
    );
    assert_eq!(outcome(&checks, "Nodes are read"), Outcome::Ok);
}

const EXTERNAL: &str = "Nodes wait for a manager of this cloud";
const ALONE: &str = "no other manager works here";
const EXAMPLE: &str = "a Service can get a load balancer";

/// A cluster as it should be: kubelets wait, names are those of instances, and nobody else works there.
pub(super) async fn before_the_installation_a_cluster_that_is_ready_has_no_failure<C: CloudUnderTest>() {
    let world = World::<C>::new();
    for name in ["n1", "n2"] {
        world.sim.add_instance(&Instance::plain(name));
        let mut node = tainted_node(name);
        node["metadata"]["labels"] = json!({ "node-role.kubernetes.io/control-plane": "" });
        node["status"]["nodeInfo"] = json!({ "kubeletVersion": "v1.36.1" });
        world.apply(node);
    }
    let checks = found_before(&world).await;
    let wrong = checks.iter().filter(|it| it.outcome == Outcome::Failed);
    assert_eq!(wrong.count(), 0, "{}", render_text(&checks));
    for name in [
        EXTERNAL,
        ALONE,
        "instances are listed",
        "load balancers are read",
        "Nodes have their instances",
        "Nodes can take the manager's pod",
        "kubelets fit the API server",
        "whoever asks may apply the manifests",
    ] {
        assert_eq!(
            outcome(&checks, name),
            Outcome::Ok,
            "{name}: {}",
            render_text(&checks)
        );
    }
    if C::ABILITIES.contains(&Ability::LoadBalancers) {
        let example = check(&checks, EXAMPLE);
        assert_eq!(example.outcome, Outcome::Ok, "{example:?}");
    }
    assert_eq!(
        outcome(&checks, "the manager has its permissions"),
        Outcome::Skipped
    );
    for absent in [
        "a process leads",
        "a manager runs",
        "Nodes are initialised",
        "writes are admitted",
    ] {
        assert!(checks.iter().all(|it| it.topic.name != absent), "{absent}");
    }
}

/// The three faults that a first installation has most often, and a manager of another cloud that is there.
pub(super) async fn before_the_installation_names_kubelets_and_other_managers_are_told<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.sim.add_instance(&Instance::plain("worker-1.example"));
    world.sim.add_instance(&Instance::plain("n2"));
    world.apply(tainted_node("worker-1"));
    let mut bare = tainted_node("n2");
    bare["spec"] = json!({});
    world.apply(bare);
    let mut foreign = tainted_node("n3");
    foreign["spec"] = json!({ "providerID": "elsewhere://n3" });
    world.apply(foreign);
    world.apply(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "ccm", "namespace": "kube-system" },
        "spec": { "selector": { "matchLabels": { "app": "ccm" } }, "template": { "metadata": { "labels": { "app": "ccm" } },
            "spec": { "containers": [{ "name": "ccm", "image": "example/elsewhere-cloud-controller-manager:v1",
                "args": ["--cloud-provider=elsewhere"] }] } } },
    }));
    let checks = found_before(&world).await;
    let external = check(&checks, EXTERNAL);
    assert_eq!(external.outcome, Outcome::Failed, "{}", render_text(&checks));
    assert_eq!(
        external.details,
        [
            "with a provider ID of elsewhere: n3",
            "without the taint and without provider ID: n2"
        ]
    );
    assert!(
        external.remedy.contains("--cloud-provider=external"),
        "{external:?}"
    );
    let names = check(&checks, "Nodes have their instances");
    assert_eq!(
        (names.outcome, names.seen.as_str()),
        (Outcome::Failed, "1 of 2"),
        "{names:?}"
    );
    assert!(names.details[0].starts_with("worker-1: "), "{names:?}");
    assert!(
        names.details[0].contains("\"worker-1.example\", which may be this one"),
        "{names:?}"
    );
    let alone = check(&checks, ALONE);
    assert_eq!(alone.outcome, Outcome::Failed, "{alone:?}");
    assert!(
        alone
            .seen
            .starts_with("Deployment kube-system/ccm is a manager of elsewhere")
            && alone.seen.contains("so only one of the two"),
        "{alone:?}"
    );
}

pub(super) async fn before_the_installation_unknown_credentials_are_told_once<C: CloudUnderTest>() {
    let world = World::<C>::new();
    world.join("n1");
    world.sim.deny(Some(Denial::Unknown));
    let checks = found_before(&world).await;
    let failed = checks.iter().filter(|it| it.outcome == Outcome::Failed);
    let failed: Vec<&str> = failed.map(|it| it.topic.name).collect();
    assert_eq!(failed, ["instances are listed"], "{}", render_text(&checks));
}

/// Each cloud says who the members are, or why it knows none; and each cause has an id.
pub(super) async fn what_a_load_balancer_consists_of_is_explained<C: CloudUnderTest>() {
    let world = World::<C>::with_web(2).await;
    let config = config::<C>();
    let patient = patient(&world, &config, Ok(reader(&world)), false);
    let target = Target::Service(ServiceKey::new("default", "web"));
    let all = explain(&patient, &[target]).await.unwrap();
    let is_told = |line: &String| line.starts_with("members of ") || line.contains("knows neither members");
    assert!(all[0].is.iter().any(is_told), "{all:#?}");
    assert!(all[0].causes.iter().all(|it| !it.id.is_empty()), "{all:#?}");
}
