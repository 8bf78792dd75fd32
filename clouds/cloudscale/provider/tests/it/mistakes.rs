//! Annotations that cannot be read: what is served stays as it is, and its members follow the Nodes.

use bowline_cloudscale_sim::kit::Fault;
use bowline_cloudscale_sim::kit::journal::Entry;

use crate::change::settled;
use crate::world::{Run, World, in_short};

async fn refused(world: &World, told: &str) -> Vec<Entry> {
    let (run, writes): (Run, _) = world.writes_of(world.run("web")).await;
    assert!(run.complaint().contains(told), "{run:#?}");
    assert_eq!(run.published_although_refused, None, "{told}");
    writes
}

fn set_policy(world: &World, policy: &str, health_port: Option<i32>) {
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        (spec.external_traffic_policy, spec.health_check_node_port) = (Some(policy.into()), health_port);
    });
}

fn balancer_of(world: &World) -> uuid::Uuid {
    world.sim.load_balancers()[0].uuid
}

/// Of each pool the monitor is replaced and then its members, as without the mistake.
#[tokio::test(start_paused = true)]
async fn members_are_checked_on_no_port_that_the_nodes_have_no_more_whatever_is_wrong() {
    for (kind, suffix, value, told) in [
        ("tcp", "flavor", "lb-large", "flavor for "),
        ("tcp", "health-monitor-delay-s", "2s", "cannot convert 2s to int"),
        ("http", "health-monitor-timeout-s", "x", "cannot convert x to int"),
        ("http", "flavor", "lb-large", "flavor for "),
        ("tcp", "health-monitor-http", "null", "invalid json in "),
    ] {
        let mut world = settled(2).await;
        world.speaks_plainly();
        set_policy(&world, "Local", Some(32500));
        world.annotate("web", "health-monitor-up-threshold", "7");
        world.run("web").await.settled();
        world.annotate("web", "health-monitor-type", kind);
        world.annotate("web", suffix, value);
        set_policy(&world, "Cluster", None);
        world.add_node("n3");
        let writes = refused(&world, told).await;
        let monitor = [
            "POST health-monitors",
            "DELETE health-monitors",
            "POST health-monitors",
        ];
        let pool = [monitor.as_slice(), &["POST members", "DELETE members"].repeat(3)].concat();
        let expected = [["POST members"; 2].as_slice(), &pool.repeat(2)].concat();
        assert_eq!(in_short(&writes), expected, "{kind} {suffix}");
        let mut members = world.sim.members().into_iter();
        assert!(members.all(|it| it.monitor_port == Some(it.protocol_port)));
        for monitor in world.sim.health_monitors() {
            let found = format!("{:?}", monitor.kind).to_lowercase();
            assert_eq!((&*found, monitor.up_threshold), (kind, 7), "{suffix}");
        }
        assert_eq!(in_short(&refused(&world, told).await), [""; 0]);
        world.remove_annotation("web", suffix);
        let (run, writes) = world.writes_of(world.run("web")).await;
        run.settled();
        assert_eq!(in_short(&writes), [""; 0], "{suffix}");
    }
    // The check is the same, and only the port is another one.
    let world = settled(1).await;
    world.speaks_plainly();
    set_policy(&world, "Local", Some(32500));
    world.annotate("web", "health-monitor-type", "http");
    world.annotate("web", "health-monitor-http", r#"{"url_path": "/up"}"#);
    world.run("web").await.settled();
    world.annotate("web", "flavor", "lb-large");
    set_policy(&world, "Cluster", None);
    let writes = refused(&world, "flavor for ").await;
    let of_pools = ["POST members", "DELETE members"].repeat(2);
    assert_eq!(in_short(&writes), of_pools);
    // A monitor that is refused leaves all as it was.
    for is_readable in [true, false] {
        let world = settled(2).await;
        set_policy(&world, "Local", Some(32500));
        world.run("web").await.settled();
        let there = world.sim.snapshot();
        match is_readable {
            true => {
                world.annotate("web", "flavor", "lb-large");
                let fault = Fault::on(http::Method::POST, "/v1/load-balancers/health-monitors");
                world.sim.faults().add(fault.always().status(400));
            }
            false => world.annotate("web", "health-monitor-type", "udp"),
        }
        set_policy(&world, "Cluster", None);
        let told = match is_readable {
            true => "error during replace-monitor(",
            false => "tcp/web, tcp/admin are checked on the former health check node port",
        };
        refused(&world, told).await;
        assert_eq!(world.sim.snapshot(), there, "{is_readable}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_balancer_that_is_changing_is_waited_for() {
    let mut world = settled(1).await;
    world.annotate("web", "health-monitor-delay-s", "abc");
    world.add_node("n2");
    world
        .sim
        .set_load_balancer_status(balancer_of(&world), Some("changing"));
    let run = world.run_steps("web", 0).await;
    assert!(run.reasons().is_empty(), "{run:#?}");
    let writes = world.sim.journal().writes().len();
    world.sim.set_load_balancer_status(balancer_of(&world), None);
    refused(&world, "cannot convert abc to int").await;
    assert_eq!(world.sim.journal().writes().len(), writes + 2);
}
