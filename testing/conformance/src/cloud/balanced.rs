//! The Nodes behind the balancers come and go.

use std::collections::BTreeMap;

use bowline_cloud_kit::{Entry, Fault};
use http::Method;
use serde_json::json;

use super::under_test::{CloudUnderTest, Wish, without_ids};
use super::world::{SECOND, Start, World, service};

async fn followed<C: CloudUnderTest>(world: &World<C>) {
    world
        .until("the balancers follow", |w| w.unserved().is_empty())
        .await;
    world.rest().await;
    world.assert_served();
}

pub(super) async fn nodes_that_come_together_are_few_updates<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(1).await;
    for index in 0..5 {
        world.ask_for(&format!("s{index}"), 30000 + index);
    }
    followed(&world).await;
    let begun = world.since();
    world.add_node("one");
    followed(&world).await;
    let (of_one, _) = world.counts(begun);
    let begun = world.since();
    for index in 0..20 {
        world.add_node(&format!("late{index}"));
        world.pass(SECOND / 20).await;
    }
    followed(&world).await;
    let (of_many, _) = world.counts(begun);
    // They come within one second: what they cost is one update, and a second one for those that come while it is made.
    assert!(
        of_many <= 2 * of_one,
        "{of_many} reads for 20 nodes, {of_one} for one"
    );
}

/// Each call like this one fails, whatever it is about.
fn each_fails(call: &Entry) -> Fault {
    // An API that does not name its operations has paths.
    let is_like = match call.operation == call.path {
        true => {
            let (parents, _) = call.path.rsplit_once('/').unwrap();
            Fault::on(call.method.clone(), format!("{parents}/*").as_str())
        }
        false => Fault::operation(&call.operation),
    };
    is_like.always().status(500)
}

/// One port goes, another one and a Node come.
fn exchange<C: CloudUnderTest>(world: &World<C>) {
    world.edit_service("web", |web| {
        let mut ports = service("", &[("web", 8080, 31200), ("late", 9001, 31202)]);
        web["spec"]["ports"] = ports["spec"]["ports"].take();
    });
    world.add_node("n3");
}

pub(super) async fn a_part_that_is_not_deleted_keeps_nothing_else_from_following<C: CloudUnderTest>() {
    let begin = || async {
        let world = World::<C>::with_nodes(2).await;
        let ports = [("web", 8080, 31200), ("admin", 9000, 31201)];
        world.ask(service("web", &ports), Wish::Rich);
        world.settled("web").await;
        world
    };
    let world = begin().await;
    let begun = world.since();
    exchange(&world);
    world.rest().await;
    let is_deletion = |call: &&Entry| call.method == Method::DELETE || call.operation.starts_with("delete");
    let calls = world.calls(begun);
    let deletions: BTreeMap<String, &Entry> = calls
        .iter()
        .filter(is_deletion)
        .map(|call| (without_ids(&call.operation), call))
        .collect();
    assert!(!deletions.is_empty());
    for (name, call) in deletions {
        let mut world = begin().await;
        let shown = world.addresses("web");
        let fault = world.cloud().faults().add(each_fails(call));
        exchange(&world);
        let is_tried = |w: &World<C>| w.cloud().faults().struck(fault) > 0;
        world.until("it is tried", is_tried).await;
        let has_all = |world: &World<C>, port: &str| {
            let balancers = world.sim.balancers();
            let members = balancers.first().and_then(|balancer| balancer.ports.get(port));
            members.is_some_and(|members| members.len() == 3)
        };
        let follows = |w: &World<C>| has_all(w, "TCP/8080") && has_all(w, "TCP/9001");
        let late = world.until("it follows", follows).await;
        assert!(late < SECOND * 4, "{name}: {late:?}");
        // A new process, which does not know what is to be shown.
        world.kill().await;
        world.edit_service("web", |web| web["status"]["loadBalancer"] = json!({}));
        world.start_with(Start::alone());
        let late = world.until("it is shown", |w| w.addresses("web") == shown).await;
        assert!(late < SECOND * 4, "{name}: {late:?}");
        world.cloud().faults().clear();
        let is_whole = |w: &World<C>| w.unserved().is_empty() && w.sim.violations().is_empty();
        world.until("all is made good", is_whole).await;
        world.rest().await;
        world.assert_served();
    }
}
