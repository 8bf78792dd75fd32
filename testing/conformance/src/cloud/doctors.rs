//! What the command `doctor` finds, and that it only reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bowline_cloud_provider::{ServerVersion, ServiceKey};
use bowline_kube_io::{Kube, KubeOptions, SystemClock, TokioClock};
use bowline_manager::FencingGate;
use bowline_manager::config::{Config, Lookup};
use bowline_manager::doctor::{
    Check, Cloud, Outcome, Patient, Target, examine, examine_before, explain, render_json, render_text,
};

use serde_json::{Value, json};

use super::under_test::{Ability, CloudUnderTest, Wish};
use super::world::{SECOND, World, tainted_node, web};

/// What is printed about a world, behind a closed gate. Nothing was written, and no secret is shown.
async fn found<C: CloudUnderTest>(world: &World<C>) -> Vec<Check> {
    examined(world, Ok(reader(world)), false).await
}

/// `doctor`, `doctor before` the installation, or `doctor without-kubernetes`: each check by its name, what failed, and what is not well by its
/// ID.
pub(super) async fn doctor<C: CloudUnderTest>(world: &World<C>, how: &str) -> Value {
    let kube = match how {
        "without-kubernetes" => Err("nowhere".to_owned()),
        _ => Ok(reader(world)),
    };
    let checks = examined(world, kube, how == "before").await;
    let failed = checks.iter().filter(|it| it.outcome == Outcome::Failed);
    let shown = |it: &Check| json!({ "outcome": format!("{:?}", it.outcome), "seen": it.seen, "details": it.details, "remedy": it.remedy });
    json!({
        "failed": failed.map(|it| it.topic.name).collect::<Vec<_>>(),
        "checks": checks.iter().map(|it| (it.topic.name, shown(it))).collect::<BTreeMap<_, _>>(),
    })
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
