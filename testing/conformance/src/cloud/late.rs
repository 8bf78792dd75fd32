//! A call that is given up, because something newer waits, and takes effect in the cloud after that.

use std::time::Duration;

use bowline_cloud_kit::Fault;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, World, service, web};

/// How many writes of a creation are late, one in each run.
const WRITES: u64 = 6;

/// How long a late call takes: less than any client waits.
const LATE: Duration = Duration::from_secs(28);

/// How long after it the cloud is looked at: longer than any client waits.
const AFTER: Duration = Duration::from_secs(130);

/// Asserts that what is asked for is there and nothing else. A call that was given up is at work beside what comes after it.
fn assert_as_asked<C: CloudUnderTest>(world: &World<C>, nth: u64) {
    let mut wrong = world.unserved();
    wrong.extend(world.sim.violations());
    wrong.retain(|it| !it.contains("at work at once"));
    let web = world.service("web").unwrap_or_default();
    let conditions = web["status"]["conditions"].as_array().into_iter().flatten();
    let told = conditions.filter(|it| it["type"] == "LoadBalancerReconciled");
    wrong.extend(told.map(|it| format!("told yet: {it}")));
    assert!(wrong.is_empty(), "write {nth}: {wrong:?}");
}

/// How a process ends, and when: so long after the call began.
type End = (Duration, bool);

/// Ends the process and begins a new one.
async fn succeed<C: CloudUnderTest>(world: &mut World<C>, end: Option<End>) {
    let Some((after, is_killed)) = end else {
        return;
    };
    world.pass(after).await;
    match is_killed {
        true => world.kill().await,
        false => _ = world.stop().await,
    }
    world.start();
}

/// A process is killed when calls are noted, and one that is told to stop does not wait for them.
const ENDS: [End; 2] = [(Duration::from_secs(6), true), (SECOND, false)];

async fn deleted_while_a_creation_is_under_way<C: CloudUnderTest>(takes: Duration, end: Option<End>) {
    for nth in 1..=WRITES {
        let mut world = World::<C>::with_nodes(2).await;
        if !world
            .meets_while_created(Fault::write().nth(nth).delay(takes))
            .await
        {
            break; // it takes fewer writes
        }
        world.pass(SECOND).await;
        world.delete_service("web");
        succeed(&mut world, end).await;
        world.gone("web").await;
        world.pass(AFTER).await;
        assert_as_asked(&world, nth);
    }
}

pub(super) async fn a_creation_that_comes_late_is_left_by_no_deletion<C: CloudUnderTest>() {
    deleted_while_a_creation_is_under_way::<C>(LATE, None).await;
}

pub(super) async fn a_creation_that_comes_late_is_left_by_no_new_process<C: CloudUnderTest>() {
    deleted_while_a_creation_is_under_way::<C>(SECOND * 8, Some((SECOND, true))).await;
    for end in ENDS {
        deleted_while_a_creation_is_under_way::<C>(LATE * 2, Some(end)).await;
    }
}

async fn changed_while_a_change_is_under_way<C: CloudUnderTest>(end: Option<End>) {
    for nth in 1..=2 {
        let mut world = World::<C>::with_nodes(2).await;
        world.ask(web(), Wish::Plain);
        world.settled("web").await;
        let fault = world.cloud().faults().add(Fault::write().nth(nth).delay(LATE));
        world.edit_service("web", |web| web["spec"]["ports"][0]["nodePort"] = 31_333.into());
        let is_reached = |w: &World<C>| w.cloud().faults().struck(fault) > 0;
        world
            .until("a call is late", |w| is_reached(w) || w.unserved().is_empty())
            .await;
        if !is_reached(&world) {
            break;
        }
        world.pass(SECOND).await;
        world.edit_service("web", |web| web["spec"]["ports"][0]["nodePort"] = 31_444.into());
        succeed(&mut world, end).await;
        world.until("it is served", |w| w.unserved().is_empty()).await;
        world.pass(AFTER).await;
        assert_as_asked(&world, nth);
    }
}

pub(super) async fn a_change_that_comes_late_undoes_no_newer_one<C: CloudUnderTest>() {
    changed_while_a_change_is_under_way::<C>(None).await;
}

pub(super) async fn a_change_that_comes_late_undoes_no_newer_one_of_a_new_process<C: CloudUnderTest>() {
    for end in ENDS {
        changed_while_a_change_is_under_way::<C>(Some(end)).await;
    }
}

/// An address is asked for by `a`, and by `b` instead while a write for `a` is under way: at once or after a while. `b` may have had it
/// before, where an address stays that is not asked for any more. Says whether there is such a write, before the address leads to `a`.
async fn moved_on<C: CloudUnderTest>(nth: u64, was_there: bool, after: Duration, end: Option<End>) -> bool {
    let mut world = World::<C>::with_nodes(2).await;
    let address = world.sim.own_address();
    let ask = |world: &World<C>, name: &str, node_port, address: Option<&str>| {
        let mut asked = service(name, &[("", 80, node_port)]);
        world.sim.choose_address(&mut asked, address);
        world.ask(asked, Wish::Plain);
    };
    let choose = |world: &World<C>, name: &str, address: Option<&str>| {
        world.edit_service(name, |it| world.sim.choose_address(it, address));
    };
    let leads_to = |w: &World<C>, name| w.sim.leads_to(&address) == Some(w.mark(name));
    if was_there {
        for (name, node_port, address) in [("a", 31_300, None), ("b", 31_301, Some(&*address))] {
            ask(&world, name, node_port, address);
            world.settled(name).await;
        }
        choose(&world, "b", None);
        world.rest().await;
    }
    let fault = world.cloud().faults().add(Fault::write().nth(nth).delay(LATE));
    match was_there {
        true => choose(&world, "a", Some(&address)),
        false => ask(&world, "a", 31_300, Some(&address)),
    }
    world.rest().await;
    if world.cloud().faults().struck(fault) == 0 || leads_to(&world, "a") {
        return false;
    }
    choose(&world, "a", None);
    world.pass(after).await;
    match was_there {
        true => choose(&world, "b", Some(&address)),
        false => ask(&world, "b", 31_301, Some(&address)),
    }
    world.until("the address leads to b", |w| leads_to(w, "b")).await;
    succeed(&mut world, end).await;
    world.pass(AFTER).await;
    assert!(
        leads_to(&world, "b"),
        "write {nth}, {was_there}, {after:?}: {:?}",
        world.sim.leads_to(&address)
    );
    true
}

async fn moved_on_meanwhile<C: CloudUnderTest>(end: Option<End>) {
    for (was_there, after) in [(false, 0), (false, 6), (true, 0), (true, 6)] {
        let mut nth = 1;
        while moved_on::<C>(nth, was_there, SECOND * after, end).await {
            nth += 1;
        }
        assert!(nth > 1 || was_there, "no call was late");
    }
}

pub(super) async fn an_address_that_moved_on_meanwhile_is_not_left_with_the_service_before<
    C: CloudUnderTest,
>() {
    moved_on_meanwhile::<C>(None).await;
}

pub(super) async fn an_address_that_moved_on_meanwhile_is_brought_back_by_a_new_process<C: CloudUnderTest>() {
    moved_on_meanwhile::<C>(Some((SECOND, false))).await;
}

/// The address that `a` has is asked for by `b` while a write that takes it from `a` is under way.
pub(super) async fn an_address_that_is_given_back_late_stays_with_the_service_that_has_it_by_then<
    C: CloudUnderTest,
>() {
    for nth in 1..=WRITES {
        let world = World::<C>::with_nodes(2).await;
        let other = world.sim.own_address();
        world.ask_for("a", 31_300);
        world.settled("a").await;
        let address = world.addresses("a")[0].clone();
        let fault = world.cloud().faults().add(Fault::write().nth(nth).delay(LATE));
        world.edit_service("a", |it| {
            it["spec"]["type"] = "ClusterIP".into();
            it["status"] = serde_json::json!({}); // as the API server does
        });
        world.rest().await;
        if world.cloud().faults().struck(fault) == 0 {
            break;
        }
        // So what hangs is given up.
        world.edit_service("a", |it| {
            it["spec"]["type"] = "LoadBalancer".into();
            world.sim.choose_address(it, Some(&other));
        });
        world
            .until("a has the other one", |w| {
                w.sim.leads_to(&other) == Some(w.mark("a"))
            })
            .await;
        let mut asked = service("b", &[("", 80, 31_301)]);
        world.sim.choose_address(&mut asked, Some(&address));
        world.ask(asked, Wish::Plain);
        let leads_to_b = |w: &World<C>| w.sim.leads_to(&address) == Some(w.mark("b"));
        world.until("the address leads to b", leads_to_b).await;
        world.pass(AFTER).await;
        assert!(
            leads_to_b(&world),
            "write {nth}: {:?}",
            world.sim.leads_to(&address)
        );
    }
}

/// A Service asks for no load balancer, and for one again while the removal is under way.
pub(super) async fn a_removal_that_comes_late_takes_nothing_from_a_service_that_comes_back<
    C: CloudUnderTest,
>() {
    for takes in [SECOND * 8, LATE] {
        for nth in 1..=WRITES {
            let world = World::<C>::with_web(2).await;
            let fault = world.cloud().faults().add(Fault::write().nth(nth).delay(takes));
            world.edit_service("web", |web| {
                web["spec"]["type"] = "ClusterIP".into();
                web["status"] = serde_json::json!({});
            });
            let is_reached = |w: &World<C>| w.cloud().faults().struck(fault) > 0;
            world
                .until("a call is late", |w| is_reached(w) || !w.has_finalizer("web"))
                .await;
            if !is_reached(&world) {
                break; // it takes fewer writes
            }
            world.pass(SECOND).await;
            world.edit_service("web", |web| web["spec"]["type"] = "LoadBalancer".into());
            world.pass(takes + AFTER).await;
            assert_as_asked(&world, nth);
        }
    }
}
