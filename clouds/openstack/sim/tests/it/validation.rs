//! Octavia: what a new load balancer must be.

use bowline_openstack_sim::model::network::FixedIp;
use bowline_openstack_sim::{OpenstackSim, ServerSpec};
use serde_json::{Value, json};

use crate::support::{Caller, LB, balancer};

async fn create(caller: &Caller, body: Value) -> (u16, Value) {
    caller
        .post(&format!("{LB}/loadbalancers"), json!({ "loadbalancer": body }))
        .await
}

/// The texts are those of the real service, but for ids and addresses.
#[tokio::test(start_paused = true)]
async fn bad_load_balancers_are_refused_as_a_whole() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let caller = Caller::new(&sim).await;
    let subnet = sim.home().subnet;
    let port = sim.ports_of(server)[0].id;
    let listener = |fields: Value| json!({ "vip_subnet_id": subnet, "listeners": [fields] });
    let udp = json!({
        "protocol": "UDP", "protocol_port": 80,
        "default_pool": { "name": "pool", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" },
    });
    let other_family = json!({ "protocol": "TCP", "protocol_port": 80, "allowed_cidrs": ["fd00::/8"] });
    let ports = sim.ports().len();
    for (body, status, text) in [
        (
            json!({}),
            400,
            "Validation failure: VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.",
        ),
        (
            json!({ "vip_subnet_id": subnet, "provider": "nope" }),
            400,
            "Provider 'nope' is not enabled.",
        ),
        (
            json!({ "vip_subnet_id": subnet, "flavor_id": "11111111-1111-1111-1111-111111111111" }),
            400,
            "Validation failure: Invalid flavor_id.",
        ),
        (
            json!({ "vip_subnet_id": subnet, "flavor_id": "big" }),
            400,
            "Invalid input for field/attribute flavor_id. Value: 'big'. Value should be UUID format",
        ),
        (
            json!({ "vip_subnet_id": subnet, "availability_zone": "nope" }),
            400,
            "Validation failure: Invalid availability zone.",
        ),
        (
            listener(udp),
            400,
            "Validation failure: The pool protocol 'TCP' is invalid while the listener protocol is 'UDP'.",
        ),
        (
            listener(other_family),
            400,
            "Validation failure: CIDR fd00::/8 IP version incompatible with all VIPs ['10.0.0.13'] IP version.",
        ),
        (
            listener(json!({ "protocol": "TCP", "protocol_port": 0 })),
            400,
            "Invalid input for field/attribute protocol_port. Value: '0'. Value should be greater or equal to 1",
        ),
        (
            listener(json!({ "protocol_port": 80 })),
            400,
            "Invalid input for field/attribute protocol. Value: 'None'. Mandatory field missing.",
        ),
        (
            json!({ "vip_subnet_id": subnet, "colour": "red" }),
            400,
            "Unknown attribute for argument load_balancer.loadbalancer: colour",
        ),
        (
            json!({ "vip_port_id": port }),
            400,
            &format!("Validation failure: Port {port} is already used by device {server} "),
        ),
        (
            json!({ "vip_subnet_id": port }),
            400,
            &format!("Subnet {port} not found."),
        ),
        (
            json!({ "vip_subnet_id": subnet, "vip_address": "10.0.0.11" }),
            409,
            &format!(
                "The VIP IP address is already in use: IP address 10.0.0.11 already allocated in subnet {subnet}"
            ),
        ),
    ] {
        let (answered, refused) = create(&caller, body.clone()).await;
        assert_eq!(
            (answered, refused["faultstring"].as_str()),
            (status, Some(text)),
            "{body}"
        );
        assert_eq!(refused["faultcode"], "Client");
    }
    assert!(sim.load_balancers().is_empty() && sim.listeners().is_empty());
    // Of the two whose parts were looked at, Octavia leaves the port, which keeps its address.
    let left: Vec<_> = sim.ports().into_iter().skip(ports).collect();
    assert_eq!(left.len(), 2);
    assert!(
        left.iter()
            .all(|port| port.name.strip_prefix("octavia-") == Some(port.device.as_str()))
    );
    let path = format!("/network/v2.0/ports/{}", left[0].id);
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(sim.ports().len(), ports + 1);
}

#[tokio::test(start_paused = true)]
async fn flavors_and_zones_of_the_cloud_are_known() {
    const FLAVOR: &str = "22222222-2222-2222-2222-222222222222";
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| {
        it.lb_flavors = vec![FLAVOR.to_owned()];
        it.lb_zones = vec!["east".to_owned()];
    });
    let caller = Caller::new(&sim).await;
    let subnet = sim.home().subnet;
    let wish = json!({ "vip_subnet_id": subnet, "flavor_id": FLAVOR, "availability_zone": "east" });
    let (status, made) = create(&caller, wish).await;
    let made = &made["loadbalancer"];
    assert_eq!(
        (status, &made["flavor_id"], &made["availability_zone"]),
        (201, &json!(FLAVOR), &json!("east"))
    );
}

#[tokio::test(start_paused = true)]
async fn network_alone_is_enough() {
    let sim = OpenstackSim::builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let caller = Caller::new(&sim).await;
    let home = sim.home();
    let (status, made) = create(&caller, json!({ "vip_network_id": home.network })).await;
    let made = &made["loadbalancer"];
    assert_eq!((status, &made["vip_subnet_id"]), (201, &json!(home.subnet)));
    let wish = json!({ "vip_network_id": home.network, "vip_address": "fd00:10::99" });
    let (status, made) = create(&caller, wish).await;
    assert_eq!(
        (status, &made["loadbalancer"]["vip_subnet_id"]),
        (201, &json!(home.subnet_v6))
    );
    assert_eq!(
        create(&caller, json!({ "vip_network_id": home.subnet })).await.0,
        400
    );
}

#[tokio::test(start_paused = true)]
async fn load_balancer_takes_an_existing_port_and_leaves_it() {
    let sim = OpenstackSim::builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let home = sim.home();
    let at = |subnet, address: &str| FixedIp {
        subnet,
        address: address.parse().unwrap(),
    };
    let v6 = at(home.subnet_v6.unwrap(), "fd00:10::77");
    let port = sim.add_port("vip", vec![at(home.subnet, "10.0.0.77"), v6]);
    let caller = Caller::new(&sim).await;
    let (status, refused) = create(&caller, json!({ "vip_port_id": port })).await;
    let text = "Validation failure: VIP port's subnet could not be determined. Please specify either a VIP subnet or \
                address.";
    assert_eq!((status, &refused["faultstring"]), (400, &json!(text)));
    let both = json!({
        "vip_port_id": port, "vip_subnet_id": home.subnet, "additional_vips": [{ "subnet_id": home.subnet_v6 }],
    });
    let (status, made) = create(&caller, both).await;
    let made = &made["loadbalancer"];
    assert_eq!((status, &made["vip_address"]), (201, &json!("10.0.0.77")));
    assert_eq!(made["additional_vips"][0]["ip_address"], "fd00:10::77");
    let path = format!("{LB}/loadbalancers/{}", made["id"].as_str().unwrap());
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(caller.get(&path).await.0, 404);
    assert!(sim.port(port).is_some());
}

#[tokio::test(start_paused = true)]
async fn second_address_is_in_another_subnet_of_the_network() {
    let sim = OpenstackSim::builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let home = sim.home();
    let caller = Caller::new(&sim).await;
    let wish =
        |subnet: Value| json!({ "vip_subnet_id": home.subnet, "additional_vips": [{ "subnet_id": subnet }] });
    let (status, made) = create(&caller, wish(json!(home.subnet_v6))).await;
    assert_eq!(status, 201, "{made}");
    let port = sim.port(sim.load_balancers()[0].vip.port).unwrap();
    assert_eq!(port.fixed_ips.len(), 2);
    for bad in [
        json!(home.subnet),
        json!(home.external_subnet),
        json!(home.router),
    ] {
        assert_eq!(create(&caller, wish(bad)).await.0, 400);
    }
    assert_eq!(sim.load_balancers().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn quotas_hold_for_whole_trees() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "one").await;
    let body = json!({ "vip_subnet_id": sim.home().subnet });
    sim.set_behaviour(|it| it.quota.load_balancers = Some(1));
    let (status, refused) = create(&caller, body.clone()).await;
    let text = "Quota has been met for resources: Load Balancer";
    assert_eq!((status, &refused["faultstring"]), (403, &json!(text)));
    sim.set_behaviour(|it| {
        it.quota.load_balancers = None;
        it.quota.members = Some(2);
    });
    assert_eq!(create(&caller, body).await.0, 201);
    let members = format!("{LB}/pools/{}/members", sim.pools()[0].part.id);
    let member = json!({ "member": { "address": "10.0.0.203", "protocol_port": 30080 } });
    assert_eq!(caller.post(&members, member).await.0, 403);
}
