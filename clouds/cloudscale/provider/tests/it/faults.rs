//! Whatever goes wrong at whichever write, the next run ends in the same state.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::{FloatingSpec, PoolDelete, Snapshot};

use crate::world::{World, service_port};

/// Something that changes a settled world; the first one also creates the balancer.
type Change = fn(&mut World);

fn nothing(_: &mut World) {}

fn rebuild(world: &mut World) {
    world.remove_node("n1");
    world.add_node("n9");
    world.annotate("web", "pool-algorithm", "source_ip");
    world.annotate("web", "name", "edge");
}

fn policy(world: &mut World) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some("Local".into()), Some(32500));
    });
}

fn ports(world: &mut World) {
    world.edit("web", |service| {
        let ports = [
            ("web", "TCP", 9000, 31200),
            ("new", "TCP", 8080, 31333),
            ("dns", "UDP", 53, 31300),
        ];
        service.spec.as_mut().unwrap().ports = Some(ports.map(service_port).into());
    });
    world.annotate("web", "listener-allowed-cidrs", r#"["192.0.2.0/24"]"#);
    world.annotate("web", "health-monitor-delay-s", "9");
}

fn removal(world: &mut World) {
    world.delete("web");
}

const CHANGES: &[(&str, Change)] = &[
    ("create", nothing),
    ("rebuild", rebuild),
    ("policy", policy),
    ("ports", ports),
    ("removal", removal),
];

/// A world before the change; the creation begins with nothing.
async fn before(name: &str, change: Change) -> World {
    let mut world = World::with_nodes(2);
    let address = world.sim.add_floating_ip(FloatingSpec::default());
    world.annotate("web", "floating-ips", &format!("[\"{address}\"]"));
    world.sim.set_behaviour(|behaviour| {
        behaviour.pool_delete = PoolDelete::RefuseIfUsed;
        behaviour.duplicate_members = false;
    });
    if name != "create" {
        world.run("web").await.settled();
        change(&mut world);
    }
    world
}

/// The end state and the number of writes without any fault.
async fn undisturbed(name: &str, change: Change) -> (Snapshot, u64) {
    let world = before(name, change).await;
    let (run, writes) = world.writes_of(world.run("web")).await;
    run.settled();
    (world.sim.snapshot(), writes.len() as u64)
}

async fn disturbed(name: &str, change: Change, expected: &Snapshot, what: &str, fault: Fault) {
    let mut world = before(name, change).await;
    let id = world.sim.faults().add(fault);
    // The run may fail, or may not notice at all.
    let first = world.run("web").await;
    assert_eq!(world.sim.faults().struck(id), 1, "{name}: {what}");
    world.restart();
    let again = world.run("web").await;
    assert!(
        matches!(again.outcome, crate::world::Outcome::Settled(_)),
        "{name}: {what}: {first:#?} {again:#?}"
    );
    assert_eq!(&world.sim.snapshot(), expected, "{name}: {what}");
    assert_eq!(
        world.sim.check_invariants(),
        Vec::<String>::new(),
        "{name}: {what}"
    );
    assert!(
        world.writes_of(world.run("web")).await.1.is_empty(),
        "{name}: {what}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_that_fails_is_made_by_the_next_run() {
    for (name, change) in CHANGES {
        let (expected, writes) = undisturbed(name, *change).await;
        assert!(writes > 0);
        for k in 1..=writes {
            disturbed(
                name,
                *change,
                &expected,
                &format!("500 at {k}"),
                Fault::write().nth(k).status(500),
            )
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_whose_answer_is_lost_is_not_made_twice() {
    for (name, change) in CHANGES {
        let (expected, writes) = undisturbed(name, *change).await;
        for k in 1..=writes {
            disturbed(
                name,
                *change,
                &expected,
                &format!("lost at {k}"),
                Fault::write().nth(k).lose_answer(),
            )
            .await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_between_any_two_steps_is_taken_over() {
    for (name, change) in CHANGES {
        let (expected, _) = undisturbed(name, *change).await;
        for k in 0.. {
            let mut world = before(name, *change).await;
            let stopped = world.run_steps("web", k).await;
            let is_done = matches!(stopped.outcome, crate::world::Outcome::Settled(_));
            world.restart();
            world.run("web").await.settled();
            assert_eq!(world.sim.snapshot(), expected, "{name}: stopped after {k}");
            assert_eq!(
                world.sim.check_invariants(),
                Vec::<String>::new(),
                "{name}: stopped after {k}"
            );
            if is_done {
                break;
            }
        }
    }
}
