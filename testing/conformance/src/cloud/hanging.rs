//! A call that the cloud never answers, and what waits for it.

use std::collections::BTreeSet;
use std::time::Duration;

use bowline_cloud_kit::Fault;
use bowline_cloud_provider::facts::WITHOUT_ANSWER;
use http::Method;

use super::under_test::{CloudUnderTest, Wish};
use super::world::{EXCLUDED, SECOND, Since, Start, World, service, web};

/// The writes of a creation that hang, one at a time.
const WRITES: u64 = 6;

/// The reads of a look that hang, one at a time.
const READS: u64 = 8;

/// Every call hangs for ever that is like the first write since then.
async fn its_write_hangs<C: CloudUnderTest>(world: &World<C>, begun: Since) {
    let faults = world.cloud().faults();
    let first = faults.add(Fault::write().hang_before());
    world.until("a call hangs", |_| faults.struck(first) > 0).await;
    let calls = world.calls(begun);
    let hanging = calls.iter().find(|call| call.write).unwrap();
    // An API that does not name its operations has paths. And a list that is put in the place of another one makes and removes by one
    // operation.
    let has_path = hanging.operation == hanging.path || hanging.method == Method::PUT;
    let like_it = match has_path {
        true => Fault::on(hanging.method.clone(), hanging.path.as_str()),
        false => Fault::operation(&hanging.operation),
    };
    faults.add(like_it.always().hang_before());
}

pub(super) async fn a_deletion_does_not_wait_for_a_call_that_hangs<C: CloudUnderTest>() {
    for nth in 1..=WRITES {
        let world = World::<C>::with_nodes(2).await;
        if !world
            .meets_while_created(Fault::write().nth(nth).hang_before())
            .await
        {
            break; // it takes fewer writes
        }
        world.pass(SECOND).await;
        let begun = world.since();
        world.delete_service("web");
        let late = world.until("it has begun", |w| !w.calls(begun).is_empty()).await;
        assert!(late < SECOND * 6, "{late:?} at write {nth}");
        world.gone("web").await;
        world.assert_served();
        assert!(world.sim.balancers().is_empty());
    }
}

pub(super) async fn a_deletion_does_not_wait_for_a_read_that_hangs<C: CloudUnderTest>() {
    for nth in 1..=READS {
        let world = World::<C>::with_nodes(2).await;
        world.ask(web(), Wish::Plain);
        world.settled("web").await;
        let fault = world.cloud().faults().add(Fault::any().nth(nth).hang_before());
        world.annotate_idly("web");
        world.pass(SECOND * 2).await;
        if world.cloud().faults().struck(fault) == 0 {
            break; // it takes fewer reads
        }
        let begun = world.since();
        world.delete_service("web");
        let late = world.until("it has begun", |w| !w.calls(begun).is_empty()).await;
        assert!(late < SECOND * 5, "{late:?} at read {nth}");
        world.gone("web").await;
        world.assert_served();
        assert!(world.sim.balancers().is_empty());
        assert!(
            !world
                .reasons("web")
                .iter()
                .any(|reason| reason.ends_with("Failed"))
        );
    }
}

/// How many calls hung.
fn struck<C: CloudUnderTest>(world: &World<C>) -> u64 {
    let faults = world.cloud().faults().list();
    faults.iter().map(|fault| fault.struck).sum()
}

async fn the_next_hangs<C: CloudUnderTest>(world: &World<C>) {
    let before = struck(world);
    world.until("the next call hangs", |w| struck(w) > before).await;
}

/// Waits until the members of a port are as is asked for, and says how long that took.
async fn is_behind<C: CloudUnderTest>(
    world: &World<C>,
    port: &str,
    is_so: impl Fn(&BTreeSet<String>) -> bool,
) -> Duration {
    let follows = |world: &World<C>| world.sim.balancers()[0].ports.get(port).is_some_and(&is_so);
    world.until("it follows", follows).await
}

/// When the cloud answers again, all is made good.
async fn is_made_good<C: CloudUnderTest>(world: &World<C>) {
    world.cloud().faults().clear();
    world.until("it is served", |w| w.unserved().is_empty()).await;
    world.rest().await;
    world.assert_served();
}

type Ports = Vec<(&'static str, u16, u16)>;

/// A balancer with two ports that loses a Node, and the removal of its member hangs.
async fn its_removal_hangs<C: CloudUnderTest>() -> (World<C>, Ports) {
    let world = World::<C>::with_nodes(3).await;
    let ports = vec![("p8080", 8080, 31200), ("p8081", 8081, 31201)];
    world.ask(service("web", &ports), Wish::Plain);
    world.settled("web").await;
    let begun = world.since();
    world.label_node("n3", EXCLUDED, Some("true"));
    its_write_hangs(&world, begun).await;
    (world, ports)
}

fn add_port<C: CloudUnderTest>(world: &World<C>, ports: &mut Ports, port: (&'static str, u16, u16)) {
    ports.push(port);
    world.edit_service("web", |web| {
        web["spec"]["ports"] = service("", ports)["spec"]["ports"].take();
    });
}

pub(super) async fn a_change_does_not_wait_for_a_removal_that_hangs<C: CloudUnderTest>() {
    let (world, mut ports) = its_removal_hangs::<C>().await;
    world.pass(SECOND).await;
    // Each hang in a row may take twice as long as the one before.
    for (port, most) in [
        (("p9000", 9000, 31202), 7),
        (("p9001", 9001, 31203), 13),
        (("p9002", 9002, 31204), 24),
    ] {
        add_port(&world, &mut ports, port);
        let behind = format!("TCP/{}", port.1);
        let late = is_behind(&world, &behind, |members| members.len() >= 2).await;
        assert!(late < SECOND * most, "{port:?}: {late:?}");
        the_next_hangs(&world).await;
    }
    is_made_good(&world).await;
}

pub(super) async fn a_change_does_not_wait_in_the_next_process_either<C: CloudUnderTest>() {
    let (mut world, mut ports) = its_removal_hangs::<C>().await;
    let is_noted = |w: &World<C>| w.service("web").unwrap().to_string().contains(WITHOUT_ANSWER);
    world.until("it is noted", is_noted).await;
    world.kill().await;
    add_port(&world, &mut ports, ("p9000", 9000, 31202));
    world.start_with(Start::alone());
    let late = is_behind(&world, "TCP/9000", |members| members.len() >= 2).await;
    assert!(late < SECOND * 7, "{late:?}");
    is_made_good(&world).await;
}

pub(super) async fn members_do_not_wait_for_a_call_of_another_port_that_hangs<C: CloudUnderTest>() {
    let world = World::<C>::with_nodes(2).await;
    world.ask(service("web", &[("web", 8080, 31200)]), Wish::Plain);
    world.settled("web").await;
    let begun = world.since();
    world.edit_service("web", |web| {
        let mut both = service("", &[("web", 8080, 31200), ("late", 9000, 31201)]);
        web["spec"]["ports"] = both["spec"]["ports"].take();
    });
    its_write_hangs(&world, begun).await;
    world.pass(SECOND).await;
    // Each hang in a row may take twice as long as the one before.
    for (node, most) in [("n3", 6), ("n4", 12), ("n5", 23)] {
        world.add_node(node);
        let late = is_behind(&world, "TCP/8080", |members| {
            members.contains(&format!("{node}:31200"))
        });
        let late = late.await;
        assert!(late < SECOND * most, "{node}: {late:?}");
        the_next_hangs(&world).await;
    }
    is_made_good(&world).await;
}
