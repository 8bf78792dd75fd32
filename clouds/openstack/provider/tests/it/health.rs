//! What Octavia's providers mean by the states of members.

use bowline_cloud_provider::CloudProvider as _;
use bowline_kit::predict;

use crate::world::World;

/// OVN calls a member `OFFLINE` whose port was taken off its server, and its pool `ONLINE` all the same.
#[tokio::test(start_paused = true)]
async fn a_member_of_ovn_that_lost_its_port_does_not_answer() {
    let mut world = World::with_nodes(2);
    world.configure(|options| {
        options.provider = "ovn".into();
        options.method = "SOURCE_IP_PORT".into();
    });
    world.annotate("web", "enable-health-monitor", "true");
    world.run("web").await.settled();
    let look = async || predict(world.cloud.load_balancer().unwrap(), world.facts("web")).await;
    assert!(look().await.ailments.is_empty());
    let lost = world.sim.members()[1].address;
    let ports = world.sim.ports().into_iter();
    let port = ports.filter(|port| port.fixed_ips.iter().any(|it| it.address == lost));
    port.for_each(|port| world.sim.remove_port(port.id));
    let report = look().await;
    let told: Vec<&str> = report.ailments.iter().map(|it| it.text.as_str()).collect();
    assert!(
        told.len() == 1 && told[0].contains("1 of 2 members do not answer"),
        "{told:?}"
    );
    assert!(
        told[0].contains(&format!("{lost}:")) && told[0].contains("OFFLINE"),
        "{told:?}"
    );
    assert!(
        report.shown.members.join("; ").contains("(does not answer)"),
        "{report:?}"
    );
}
