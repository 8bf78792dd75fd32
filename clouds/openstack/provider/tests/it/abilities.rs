//! What a load balancer can do is its own provider's word, whatever `lb-provider` says by now.

use crate::world::{World, in_short};

const RANGE: &str = "192.0.2.0/24";

/// A cluster whose Service has sources, monitors and a security group, over load balancers of a provider.
fn world(provider: &str) -> World {
    let mut world = World::with_nodes(1);
    world.configure(|options| {
        options.monitor.is_wanted = true;
        options.manages_security_groups = true;
        // Each has what the other one has not.
        options.method = match provider {
            "ovn" => "SOURCE_IP_PORT",
            _ => "ROUND_ROBIN",
        }
        .into();
        options.provider = provider.into();
    });
    world.edit("web", |service| {
        let spec = service.spec.as_mut().unwrap();
        spec.load_balancer_source_ranges = Some(vec![RANGE.to_owned()]);
        spec.external_traffic_policy = Some("Local".into());
        spec.health_check_node_port = Some(31_000);
    });
    world
}

#[tokio::test(start_paused = true)]
async fn another_provider_in_the_configuration_changes_nothing_that_is_there() {
    for (before, after) in [("amphora", "ovn"), ("ovn", "amphora")] {
        let mut world = world(before);
        world.run("web").await.settled();
        world.configure(|options| options.provider = after.into());
        let (run, writes) = world.writes_of(world.run("web")).await;
        assert!(writes.is_empty(), "{before}: {:?}", in_short(&writes));
        run.settled();
        // What changes is asked for as its own provider can do it.
        world.set_ports("web", &[("TCP", 80, 30080), ("TCP", 81, 30081)]);
        world.edit("web", |service| {
            service.spec.as_mut().unwrap().load_balancer_source_ranges =
                Some(vec!["198.51.100.0/24".to_owned()]);
        });
        world.run("web").await.settled();
        let listeners = world.sim.listeners();
        let with_sources = listeners.iter().filter(|it| it.settings.allowed_cidrs.is_some());
        assert_eq!(with_sources.count(), if before == "amphora" { 2 } else { 0 });
        assert_eq!(world.sim.health_monitors().len(), 2);
        world.assert_settled("web").await;
    }
}
