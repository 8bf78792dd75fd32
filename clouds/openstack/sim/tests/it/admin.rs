//! The project's view.

use bowline_openstack_sim::kit::project::Project;
use bowline_openstack_sim::{FloatingIpSpec, OpenstackSim, ServerSpec};

use crate::support::{Caller, balancer};

#[tokio::test(start_paused = true)]
async fn snapshot_is_the_same_whatever_the_seed() {
    let mut taken = Vec::new();
    for seed in [1, 2] {
        let sim = OpenstackSim::builder().seed(seed).build();
        let caller = Caller::new(&sim).await;
        balancer(&caller, "web").await;
        let port = sim.load_balancers()[0].vip.port;
        sim.add_floating_ip(FloatingIpSpec {
            port: Some(port),
            description: "way in".to_owned(),
            ..FloatingIpSpec::default()
        });
        sim.add_security_group("lb-sg", "");
        assert_eq!(
            sim.leftovers(),
            [
                "load balancer web",
                "floating IP 203.0.113.12",
                "security group lb-sg"
            ]
        );
        taken.push(sim.snapshot());
    }
    assert_eq!(taken[0], taken[1]);
    let snapshot = &taken[0];
    assert_eq!(snapshot["floating_ips"][0]["target"], "load balancer web");
    let members = &snapshot["load_balancers"][0]["listeners"][0]["pool"]["members"];
    assert_eq!(members.as_array().map(Vec::len), Some(2));
    assert_eq!(members[0]["subnet"], "private-v4");
    let rule = &snapshot["security_groups"][0]["rules"][0];
    assert_eq!(rule, "egress IPv4 any protocol any port anywhere");
}

#[tokio::test(start_paused = true)]
async fn project_shows_its_instances() {
    let sim = OpenstackSim::builder().build();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(id)[0].id;
    let floating = sim.add_floating_ip(FloatingIpSpec {
        port: Some(port),
        ..FloatingIpSpec::default()
    });
    let instance = sim.instances().remove(0);
    assert_eq!(instance.provider_id, format!("openstack:///{id}"));
    assert_eq!(
        (instance.instance_type.as_str(), instance.zone.as_deref()),
        ("m1.small", Some("nova"))
    );
    let outside = sim.floating_ips()[0].address.address.to_string();
    let addresses = [("InternalIP", "10.0.0.11".to_owned()), ("ExternalIP", outside)];
    assert_eq!(instance.addresses, addresses);
    assert!(sim.switch_instance("node-1", false) && !sim.instances()[0].is_on);
    assert!(sim.delete_instance("node-1") && sim.instances().is_empty());
    assert!(sim.ports_of(id).is_empty() && sim.remove_floating_ip(floating));
    assert!(!sim.delete_instance("node-1"));
}
