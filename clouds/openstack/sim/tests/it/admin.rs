//! The simulator's own paths, the project's view, and old versions of Octavia.

use bowline_openstack_sim::kit::project::Project;
use bowline_openstack_sim::{FloatingIpSpec, OpenstackSim, ServerSpec};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Caller, LB, balancer, send};

#[tokio::test(start_paused = true)]
async fn switches_are_changed_and_tokens_revoked_over_http() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let change = json!({ "octavia_minor_version": 5 });
    let put = send(&sim, Method::PUT, "/_sim/behaviour", &[], &change).await;
    assert_eq!((put.status, sim.behaviour().octavia_minor_version), (204, 5));
    let unknown = json!({ "colour": "red" });
    let refused = send(&sim, Method::PUT, "/_sim/behaviour", &[], &unknown).await;
    assert_eq!(refused.status, 400);
    let revoked = send(&sim, Method::DELETE, "/_sim/tokens", &[], &Value::Null).await;
    assert_eq!(
        (revoked.status, caller.get("/network/v2.0/ports").await.0),
        (204, 401)
    );
}

#[tokio::test(start_paused = true)]
async fn old_octavia_does_not_know_newer_fields() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| it.octavia_minor_version = 11);
    let caller = Caller::new(&sim).await;
    let versions = send(&sim, Method::GET, "/load-balancer", &[], &Value::Null)
        .await
        .body;
    let last = versions["versions"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["id"], &last["status"]),
        (&json!("v2.11"), &json!("CURRENT"))
    );
    let made = balancer(&caller, "web").await;
    assert!(made.get("additional_vips").is_none() && made.get("tags").is_some());
    let path = format!("{LB}/listeners/{}", sim.listeners()[0].part.id);
    let (_, shown) = caller.get(&path).await;
    assert!(shown["listener"].get("allowed_cidrs").is_none());
    let ranges = json!({ "listener": { "allowed_cidrs": ["192.0.2.0/24"] } });
    let (status, refused) = caller.put(&path, ranges.clone()).await;
    let text = json!("Unknown attribute for argument listener_.listener: allowed_cidrs");
    assert_eq!((status, &refused["faultstring"]), (400, &text));
    let pool = format!("{LB}/pools/{}", sim.pools()[0].part.id);
    let method = json!({ "pool": { "lb_algorithm": "SOURCE_IP_PORT" } });
    let (status, refused) = caller.put(&pool, method).await;
    let text = "Invalid input for field/attribute lb_algorithm. Value: 'SOURCE_IP_PORT'. Value should be one of: \
                LEAST_CONNECTIONS, ROUND_ROBIN, SOURCE_IP";
    assert_eq!((status, &refused["faultstring"]), (400, &json!(text)));
    sim.set_behaviour(|it| it.octavia_minor_version = 12);
    assert_eq!(caller.put(&path, ranges).await.0, 200);
}

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
async fn parts_without_their_whole_are_violations() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "web").await;
    assert!(sim.violations().is_empty());
    sim.delete_listener(sim.listeners()[0].part.id);
    assert_eq!(sim.violations(), ["pool pool has no listener"]);
    balancer(&caller, "web").await;
    assert!(
        sim.violations()
            .contains(&"duplicate load balancer: web".to_owned())
    );
    sim.remove_port(sim.load_balancers()[0].vip.port);
    assert!(
        sim.violations()
            .contains(&"load balancer web has no port".to_owned())
    );
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

#[tokio::test(start_paused = true)]
async fn servers_are_stopped_and_removed_by_hand() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let path = format!("/_sim/servers/{server}");
    let stopped = send(&sim, Method::PUT, &path, &[], &json!({ "status": "SHUTOFF" })).await;
    assert_eq!((stopped.status, sim.instances()[0].is_on), (204, false));
    let deleted = send(&sim, Method::DELETE, &path, &[], &Value::Null).await;
    assert_eq!((deleted.status, sim.servers().len()), (204, 0));
    assert!(sim.ports_of(server).is_empty());
    let again = send(&sim, Method::DELETE, &path, &[], &Value::Null).await;
    assert_eq!(again.status, 404);
}
