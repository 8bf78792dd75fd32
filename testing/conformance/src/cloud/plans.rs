//! What is printed is what is done.

use bowline_cloud_provider::plan::{PlanReport, ReportedOutcome};

use super::session::{finish, make, printed};
use super::under_test::{Ability, CloudUnderTest, Wish};
use super::world::{SECOND, World, web};

/// What becomes of the Service, as far as that means anything to the cloud.
fn stories<C: CloudUnderTest>() -> impl Iterator<Item = &'static str> {
    [
        ("create", Ability::LoadBalancers),
        ("change", Ability::ServiceParts),
        ("nodes", Ability::BalancedNodes),
        ("delete", Ability::LoadBalancers),
    ]
    .into_iter()
    .filter(|(_, need)| C::ABILITIES.contains(need))
    .map(|(story, _)| story)
}

/// A world without a manager, before a story.
async fn before<C: CloudUnderTest>(story: &str) -> World<C> {
    let world = World::<C>::new();
    world.add_nodes(3);
    world.ask(web(), Wish::Rich);
    if story == "create" {
        return world;
    }
    finish(&world).await;
    match story {
        "change" => world.change("web"),
        "nodes" => {
            world.add_node("n4");
            assert!(world.api.delete("Node", "", "n1"));
        }
        _ => world.delete_service("web"),
    }
    world
}

/// The labels of a printed plan, in order.
fn labels(report: &PlanReport) -> Vec<String> {
    let steps = report.waves.iter().flat_map(|wave| &wave.steps);
    steps.map(|step| step.label.clone()).collect()
}

/// Without what nobody can predict.
fn foreseen<C: CloudUnderTest>(labels: &[String]) -> Vec<String> {
    labels.iter().map(|label| C::foreseen(label)).collect()
}

fn is_settled(report: &PlanReport) -> bool {
    matches!(report.outcome, ReportedOutcome::Settled { .. })
}

pub(super) async fn a_plan_is_made_without_a_write<C: CloudUnderTest>() {
    for story in stories::<C>() {
        let world = before::<C>(story).await;
        let (begun, state) = (world.since(), world.sim.state());
        let report = printed(&world).await;
        assert!(report.has_changes(), "{story}: {report:#?}");
        assert!(is_settled(&report), "{story}: {report:#?}");
        assert_eq!(world.writes(begun), Vec::<String>::new(), "{story}");
        assert_eq!(world.kube_writes(begun), Vec::<String>::new(), "{story}");
        assert_eq!(world.sim.state(), state, "{story}");
    }
}

pub(super) async fn what_is_printed_is_what_is_done_in_that_order<C: CloudUnderTest>() {
    for story in stories::<C>() {
        let world = before::<C>(story).await;
        let planned = labels(&printed(&world).await);
        let begun = world.since();
        let done = finish(&world).await;
        assert_eq!(foreseen::<C>(&done), foreseen::<C>(&planned), "{story}");
        assert!(!world.writes(begun).is_empty(), "{story}");
    }
}

/// After each step made, a plan from true answers is the rest of the first one, which was made from predictions: so the
/// predicted states are the real ones, and the last of them is the end. In which order things go on that do not wait for
/// each other may depend on where they were interrupted.
pub(super) async fn what_is_predicted_is_what_becomes<C: CloudUnderTest>() {
    for story in stories::<C>() {
        let world = before::<C>(story).await;
        let all = foreseen::<C>(&labels(&printed(&world).await));
        for made in 0..=all.len() {
            let world = before::<C>(story).await;
            let done = make(&world, made).await;
            assert_eq!(foreseen::<C>(&done), all[..made], "{story}");
            // What is under way in the cloud comes to its end.
            world.pass(SECOND * 20).await;
            let rest = printed(&world).await;
            let (mut rest, mut wanted) = (foreseen::<C>(&labels(&rest)), all[made..].to_vec());
            if C::WAITS_FOR_CLAIMS && rest.is_empty() {
                continue; // it waits for what may be on its way
            }
            rest.sort();
            wanted.sort();
            assert_eq!(rest, wanted, "{story} after {made} steps");
        }
    }
}

pub(super) async fn a_plan_that_is_done_has_nothing_left_to_do<C: CloudUnderTest>() {
    for story in stories::<C>() {
        let world = before::<C>(story).await;
        finish(&world).await;
        world.assert_sound();
        let (begun, state) = (world.since(), world.sim.state());
        let report = printed(&world).await;
        assert_eq!(labels(&report), Vec::<String>::new(), "{story}");
        assert!(is_settled(&report), "{story}: {report:#?}");
        assert_eq!(finish(&world).await, Vec::<String>::new());
        assert_eq!(world.writes(begun), Vec::<String>::new(), "{story}");
        assert_eq!(world.sim.state(), state, "{story}");
    }
}
