//! The security group of a Service.

use bowline_base::log::Log;
use bowline_cloud_provider::CloudProvider;
use bowline_kit::predict;
use bowline_openstack_sim::kit::Fault;
use tracing::Level;

use crate::world::{World, in_one_page, in_short};

fn managed(nodes: usize) -> World {
    let mut world = World::with_nodes(nodes);
    world.configure(|options| options.manages_security_groups = true);
    world
}

#[tokio::test(start_paused = true)]
async fn a_write_of_a_group_without_an_answer_is_logged_as_unknown_and_a_refused_one_as_not_taken() {
    for (answer, outcome) in [(None, "unknown"), (Some(403), "not taken")] {
        let world = managed(1);
        let fault = Fault::operation("neutron.security-group-rules.create");
        world.sim.faults().add(match answer {
            None => fault.lose_answer(),
            Some(status) => fault.status(status),
        });
        let (log, _guards) = Log::listen(Level::DEBUG);
        world.run("web").await;
        let expected = format!("outcome=\"{outcome}\"");
        assert_eq!(log.count(&expected), 1, "{outcome}: {}", log.text());
    }
}

#[tokio::test(start_paused = true)]
async fn the_rules_of_many_services_come_with_one_list() {
    let world = managed(2);
    in_one_page(&world.sim);
    let names: Vec<String> = (0..20).map(|index| format!("s{index}")).collect();
    for (index, name) in (0..).zip(&names) {
        world.put(crate::world::service(name, &[("TCP", 80, 31_000 + index)]));
    }
    let all = || futures::future::join_all(names.iter().map(|name| world.run(name)));
    for run in all().await {
        run.settled();
    }
    tokio::time::advance(std::time::Duration::from_secs(60)).await;
    let (_, calls) = world.calls_of(all()).await;
    let lists = in_short(&calls);
    let of_groups = lists.iter().filter(|call| call.contains("security-group"));
    assert_eq!(of_groups.count(), 1, "{lists:?}");
}

/// The step that gives it back has no impact by itself, and its Node is cut off until then.
#[tokio::test(start_paused = true)]
async fn a_port_that_somebody_took_the_group_off_is_told_with_its_node() {
    let world = managed(2);
    let told = async || {
        let report = predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
        let told = report.ailments.into_iter().map(|it| (it.is_total, it.text));
        told.collect::<Vec<_>>()
    };
    assert_eq!(told().await, [], "it is not made yet");
    world.run("web").await.settled();
    assert_eq!(told().await, []);
    let server = world.sim.servers()[0].clone();
    let port = world.sim.ports_of(server.id)[0].clone();
    let group = *port.groups.last().unwrap();
    world
        .sim
        .edit_port(port.id, |it| it.groups.retain(|it| *it != group));
    let text = format!(
        "Nodes are cut off: their ports lack the security group {group}, which lets the load balancer in: node-1"
    );
    assert_eq!(told().await, [(false, text)]);
    world.run("web").await.settled();
    assert_eq!(told().await, []);
}
