//! Changes of load balancers that are there.

use std::time::Duration;

use bowline_cloudscale_sim::{Behaviour, OverlapMode, PoolDelete};

use crate::world::{World, service_port};

fn set_ports(world: &World, ports: &[(&str, &str, i32, i32)]) {
    world.edit("web", |service| {
        service.spec.as_mut().unwrap().ports = Some(ports.iter().map(|port| service_port(*port)).collect());
    });
}

#[tokio::test(start_paused = true)]
async fn every_way_the_api_may_treat_writes_ends_in_the_same_state() {
    let busy = |refuse: Option<u16>| Behaviour {
        lb_create_time: Duration::from_secs(4),
        lb_change_time: Duration::from_secs(2),
        refuse_writes_while_changing: refuse,
        overlap: OverlapMode::Refuse(409),
        ..Behaviour::default()
    };
    let behaviours = [
        Behaviour::default(),
        Behaviour {
            overlap: OverlapMode::Hold,
            lb_write_time: Duration::from_secs(3),
            ..Behaviour::default()
        },
        busy(None),
        busy(Some(409)),
        busy(Some(400)),
        Behaviour {
            pool_delete: PoolDelete::RefuseIfUsed,
            ..Behaviour::default()
        },
        Behaviour {
            duplicate_members: false,
            one_attribute_per_patch: true,
            ..Behaviour::default()
        },
        Behaviour {
            one_monitor_per_pool: false,
            unique_listener_ports: false,
            ..Behaviour::default()
        },
    ];
    let mut first = None;
    for behaviour in behaviours {
        let world = World::with_nodes(2);
        world.sim.set_behaviour(|it| *it = behaviour.clone());
        world.run("web").await.settled();
        set_ports(
            &world,
            &[
                ("web", "TCP", 9000, 31200),
                ("www", "TCP", 8080, 31299),
                ("dns", "UDP", 53, 31300),
            ],
        );
        world.edit("web", |service| {
            let spec = service.spec.as_mut().unwrap();
            (spec.external_traffic_policy, spec.health_check_node_port) = (Some("Local".into()), Some(32500));
        });
        world.annotate("web", "pool-protocol", "proxyv2");
        world.annotate("web", "timeout-client-data-ms", "9");
        world.run("web").await.settled();
        let state = world.sim.snapshot();
        assert_eq!(
            world.sim.check_invariants(),
            Vec::<String>::new(),
            "{behaviour:?}"
        );
        assert_eq!(
            *first.get_or_insert_with(|| state.clone()),
            state,
            "{behaviour:?}"
        );
    }
}
