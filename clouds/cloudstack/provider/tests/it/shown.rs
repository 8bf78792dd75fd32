//! What is shown of a load balancer.

use bowline_cloud_provider::CloudProvider as _;
use bowline_kit::predict;

use crate::world::{MACHINES, WEB, World};

#[tokio::test(start_paused = true)]
async fn of_two_nodes_with_one_provider_id_the_one_with_the_name_of_the_machine_is_the_member() {
    let world = World::with_service().await;
    world.run(WEB).await.settled();
    let machine = MACHINES[0];
    let id = world.sim.vm_named(machine).unwrap().id;
    // It comes first, whoever sorts by name.
    world.add_node("a-left-over", Some(&id));
    world.run(WEB).await.settled();
    let report = predict(world.cloud.load_balancer().unwrap(), world.facts(WEB)).await;
    let members = report.shown.members.join("\n");
    assert!(
        members.contains(machine) && members.contains("members of rule"),
        "{members}"
    );
    let is_right = |line: &&String| !line.contains("a-left-over") || line.contains(machine);
    let lines: Vec<&String> = report
        .shown
        .members
        .iter()
        .filter(|it| it.starts_with("members"))
        .collect();
    assert!(lines.iter().all(is_right), "{members}");
    assert!(report.is_idle(), "{report:#?}");
}
