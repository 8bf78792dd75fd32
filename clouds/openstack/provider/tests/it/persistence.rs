//! Session persistence of pools that are there.

use bowline_openstack_sim::kit::Fault;
use bowline_openstack_sim::kit::faults::Canned;
use bowline_openstack_sim::model::balancing::Persistence;

use crate::policies::two_ports;
use crate::world::{World, in_short};

pub(crate) fn stick(world: &World, affinity: &str) {
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().session_affinity = Some(affinity.into());
    });
}

fn kinds(world: &World) -> Vec<Option<String>> {
    let pools = world.sim.pools().into_iter();
    pools.map(|pool| pool.persistence.map(|it| it.kind)).collect()
}

/// Octavia refuses the next change of a pool.
fn refuse(world: &World) {
    let said = r#"{"faultcode": "Client", "faultstring": "Provider 'f5' does not support a requested option: session persistence", "debuginfo": null}"#;
    let update = Fault::operation("octavia.pools.update");
    world.sim.faults().add(update.answer(Canned::json(501, said)));
}

/// A cookie is a usual work-around, because no annotation asks for one; so are further settings.
#[tokio::test(start_paused = true)]
async fn what_a_person_set_stays_and_is_told() {
    for (kind, timeout) in [("HTTP_COOKIE", None), ("SOURCE_IP", Some(300))] {
        for affinity in ["None", "ClientIP"] {
            let mut world = two_ports().await;
            let pool = world.sim.pools()[0].part.id;
            world.sim.edit_pool(pool, |pool| {
                pool.persistence = Some(Persistence {
                    kind: kind.to_owned(),
                    cookie_name: None,
                    persistence_timeout: timeout,
                    persistence_granularity: None,
                });
            });
            stick(&world, affinity);
            world.add_node("node-2");
            let run = world.run("web").await.settled();
            let is_followed = kind == "SOURCE_IP" && affinity == "ClientIP";
            assert_eq!(
                run.has_note("LoadBalancerChangeIgnored"),
                !is_followed,
                "{run:#?}"
            );
            assert_eq!(kinds(&world)[0].as_deref(), Some(kind));
            let is_sticky = affinity == "ClientIP";
            assert_eq!(kinds(&world)[1].is_some(), is_sticky, "{affinity}");
            assert_eq!(world.sim.members().len(), 4);
            world.assert_settled("web").await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_holds_up_neither_members_nor_other_ports() {
    let mut world = two_ports().await;
    stick(&world, "ClientIP");
    world.add_node("node-2");
    refuse(&world);
    let run = world.run("web").await.settled();
    assert_eq!(run.reasons(), ["LoadBalancerChangeIgnored"]);
    assert!(run.notes[0].text.contains("does not support"), "{run:#?}");
    assert_eq!(kinds(&world), [None, Some("SOURCE_IP".to_owned())]);
    assert_eq!(world.sim.members().len(), 4);
    // It is told once, and not asked for again for a while.
    let (again, writes) = world.writes_of(world.run_again("web")).await;
    assert_eq!(again.settled().notes[0].text, run.notes[0].text);
    assert!(writes.is_empty());
}

/// The method is not blamed.
#[tokio::test(start_paused = true)]
async fn a_method_that_changes_at_the_same_time_is_taken() {
    let world = World::with_nodes(1);
    world.run("web").await.settled();
    stick(&world, "ClientIP");
    world.annotate("web", "lb-method", "LEAST_CONNECTIONS");
    let said = r#"{"faultcode": "Client", "faultstring": "no persistence", "debuginfo": null}"#;
    let update = Fault::operation("octavia.pools.update").nth(2);
    world.sim.faults().add(update.answer(Canned::json(400, said)));
    let (run, writes) = world.writes_of(world.run("web")).await;
    assert_eq!(run.settled().reasons(), ["LoadBalancerChangeIgnored"]);
    assert_eq!(in_short(&writes), ["octavia.pools.update"; 2]);
    let pool = world.sim.snapshot().load_balancers[0].listeners[0].pool.clone();
    assert_eq!(pool.unwrap().algorithm, "LEAST_CONNECTIONS");
    assert_eq!(kinds(&world), [None]);
}
