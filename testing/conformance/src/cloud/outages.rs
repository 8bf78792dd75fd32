//! A cloud that is ill: nothing is half done, nothing is lost, nothing is told that should not be, and it heals.

use std::time::Duration;

use bowline_cloud_kit::Fault;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{SECOND, World, web};

pub(super) async fn a_stated_delay_is_kept<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(0).await;
    world.join("n1");
    world.rest().await;
    let stated = Duration::from_secs(40);
    world.cloud().faults().add(Fault::any().too_many_requests(stated));
    let begun = world.since();
    world.join("n2");
    world.pass(stated.min(C::LONGEST_DELAY) - SECOND).await;
    // Nothing follows what was under way when the answer came.
    let calls = world.calls(begun);
    assert!(
        !calls.is_empty() && calls.iter().all(|call| call.at == calls[0].at),
        "{calls:#?}"
    );
    world.until("initialised", |w| w.is_initialized("n2")).await;
}

fn told<C: CloudUnderTest>(world: &World<C>) -> Option<String> {
    let web = world.service("web")?;
    let mut conditions = web["status"]["conditions"].as_array()?.iter();
    let told = conditions.find(|it| it["type"] == "LoadBalancerReconciled")?;
    Some(told["message"].as_str()?.to_owned())
}

pub(super) async fn a_slow_cloud_is_told_as_that_with_few_writes<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    world.cloud().set_latency(SECOND * 5);
    world.ask(web(), Wish::Plain);
    let mut all = vec![None];
    for _ in 0..600 {
        world.pass(SECOND).await;
        let told = told(&world);
        if all.last() != Some(&told) {
            all.push(told);
        }
    }
    world.assert_served();
    assert_eq!(all.pop(), Some(None), "{all:#?}");
    assert!(all.len() <= 6, "{all:#?}");
    // A look of many calls may have to end before it is known.
    let told = all.into_iter().flatten().last().unwrap_or_default();
    assert!(told.contains("calls to the cloud take 5 s"), "{told}");
}

pub(super) async fn a_cloud_that_does_not_answer_is_told_while_it_is_waited_for<C: CloudUnderTest>() {
    let mut world = World::<C>::new();
    world.add_nodes(2);
    world.cloud().faults().add(Fault::any().always().hang_before());
    world.start();
    world.ask(web(), Wish::Plain);
    world.pass(SECOND * 15).await;
    // What others wait for is told sooner.
    let mut all = world.events("web");
    all.extend(told(&world));
    let is_told = all.iter().any(|it| it.contains("no answer"));
    assert_eq!(is_told, C::SIGNS_IN, "{all:#?}");
    world.pass(SECOND * 21).await;
    let told = told(&world).unwrap_or_default();
    assert!(told.contains("no answer"), "{told}");
}
