//! Neutron: floating IPs.

use bowline_openstack_sim::{FloatingIpSpec, NetworkSpec, NicSpec, OpenstackSim, ServerSpec, SubnetSpec};
use serde_json::{Value, json};

use crate::support::{Caller, id};

const PATH: &str = "/network/v2.0/floatingips";

async fn create(caller: &Caller, fields: Value) -> (u16, Value) {
    let mut floating = json!({ "floating_network_id": caller.sim.home().external_network });
    for (name, value) in fields.as_object().unwrap() {
        floating[name] = value.clone();
    }
    caller.post(PATH, json!({ "floatingip": floating })).await
}

fn kind(body: &Value) -> &str {
    body["NeutronError"]["type"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn floating_ip_leads_to_a_port_until_it_is_detached() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(server)[0].id;
    let caller = Caller::new(&sim).await;
    let (status, made) = create(&caller, json!({ "port_id": port, "description": "d" })).await;
    let made = &made["floatingip"];
    assert_eq!(
        (status, &made["port_id"], &made["status"]),
        (201, &json!(port), &json!("ACTIVE"))
    );
    assert_eq!(
        (&made["fixed_ip_address"], &made["router_id"]),
        (&json!("10.0.0.11"), &json!(sim.home().router))
    );
    let found = async |filter: String| {
        let (_, list) = caller.get(&format!("{PATH}?{filter}")).await;
        list["floatingips"].as_array().unwrap().len()
    };
    assert_eq!(found(format!("port_id={port}")).await, 1);
    let address = made["floating_ip_address"].as_str().unwrap();
    assert_eq!(found(format!("floating_ip_address={address}")).await, 1);
    let path = format!("{PATH}/{}", id(made));
    // Without a port in the body the port is lost, as with null.
    for body in [
        json!({}),
        json!({ "port_id": null }),
        json!({ "description": "other" }),
    ] {
        let (_, there) = caller
            .put(&path, json!({ "floatingip": { "port_id": port } }))
            .await;
        assert_eq!(there["floatingip"]["port_id"], json!(port));
        let (status, gone) = caller.put(&path, json!({ "floatingip": body })).await;
        assert_eq!(
            (status, &gone["floatingip"]["port_id"]),
            (200, &Value::Null),
            "{body}"
        );
        assert_eq!(gone["floatingip"]["status"], "DOWN");
    }
    assert_eq!(found(format!("port_id={port}")).await, 0);
    assert_eq!(caller.delete(&path).await.0, 204);
    let (status, gone) = caller.delete(&path).await;
    assert_eq!((status, kind(&gone)), (404, "FloatingIPNotFound"));
}

#[tokio::test(start_paused = true)]
async fn port_has_one_floating_ip() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(server)[0].id;
    let caller = Caller::new(&sim).await;
    let (_, first) = create(&caller, json!({ "port_id": port })).await;
    let (status, refused) = create(&caller, json!({ "port_id": port })).await;
    assert_eq!((status, kind(&refused)), (409, "FloatingIPPortAlreadyAssociated"));
    // It names the new one, which is not there and has given its address back.
    let address = |made: &Value| {
        made["floatingip"]["floating_ip_address"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let text = refused["NeutronError"]["message"].as_str().unwrap();
    assert!(!text.contains(&address(&first)), "{text}");
    assert_eq!(sim.floating_ips().len(), 1);
    let (_, again) = create(&caller, json!({ "port_id": port })).await;
    assert_ne!(again["NeutronError"]["message"], text);
    let (_, free) = create(&caller, json!({})).await;
    let attach = json!({ "floatingip": { "port_id": port } });
    let free = format!("{PATH}/{}", id(&free["floatingip"]));
    assert_eq!(caller.put(&free, attach.clone()).await.0, 409);
    // The one that is there already is no obstacle to itself.
    let own = format!("{PATH}/{}", id(&first["floatingip"]));
    assert_eq!(caller.put(&own, attach.clone()).await.0, 200);
    sim.remove_port(port);
    assert_eq!(sim.floating_ips()[0].target, None);
    let (status, refused) = caller.put(&free, attach).await;
    assert_eq!((status, kind(&refused)), (404, "PortNotFound"));
}

#[tokio::test(start_paused = true)]
async fn floating_ip_needs_an_external_network_and_a_way() {
    let sim = OpenstackSim::builder().build();
    let island = sim.add_network(NetworkSpec {
        name: "island".to_owned(),
        ..NetworkSpec::default()
    });
    let subnet = sim.add_subnet(SubnetSpec::new("island", island, "10.77.0.0/24".parse().unwrap()));
    let server = sim.add_server(ServerSpec {
        nics: vec![NicSpec::on(island)],
        ..ServerSpec::new("node-1")
    });
    let port = sim.ports_of(server)[0].id;
    let caller = Caller::new(&sim).await;
    let (status, refused) = create(&caller, json!({ "port_id": port })).await;
    assert_eq!(
        (status, kind(&refused)),
        (404, "ExternalGatewayForFloatingIPNotFound")
    );
    for (network, status, expected) in [(island, 400, "BadRequest"), (subnet, 404, "NetworkNotFound")] {
        let (answered, refused) = create(&caller, json!({ "floating_network_id": network })).await;
        assert_eq!((answered, kind(&refused)), (status, expected));
    }
    let router = sim.add_router("way", Some(sim.home().external_network));
    assert!(sim.connect(router, subnet).is_some());
    assert_eq!(create(&caller, json!({ "port_id": port })).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn port_with_two_addresses_wants_one_to_be_named() {
    let sim = OpenstackSim::builder().build();
    let addresses = ["10.0.0.21", "10.0.0.22"].map(|it| it.parse().unwrap());
    let server = sim.add_server(ServerSpec {
        nics: vec![NicSpec {
            addresses: addresses.into(),
            ..NicSpec::default()
        }],
        ..ServerSpec::new("node-1")
    });
    let port = sim.ports_of(server)[0].id;
    let caller = Caller::new(&sim).await;
    assert_eq!(create(&caller, json!({ "port_id": port })).await.0, 400);
    for address in addresses {
        let (status, made) = create(&caller, json!({ "port_id": port, "fixed_ip_address": address })).await;
        assert_eq!(
            (status, &made["floatingip"]["fixed_ip_address"]),
            (201, &json!(address))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn address_is_chosen_by_the_operator_only() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let wish = json!({ "floating_ip_address": "203.0.113.99" });
    let (status, refused) = create(&caller, wish.clone()).await;
    assert_eq!((status, kind(&refused)), (403, "PolicyNotAuthorized"));
    let admin = Caller::admin(&sim).await;
    assert_eq!(create(&admin, wish.clone()).await.0, 201);
    let (status, refused) = create(&admin, wish).await;
    assert_eq!((status, kind(&refused)), (409, "IpAddressAlreadyAllocated"));
    let (status, refused) = create(&admin, json!({ "floating_ip_address": "192.0.2.1" })).await;
    assert_eq!((status, kind(&refused)), (400, "InvalidIpForNetwork"));
    sim.set_behaviour(|it| it.users_choose_addresses = true);
    assert_eq!(
        create(&caller, json!({ "floating_ip_address": "203.0.113.98" }))
            .await
            .0,
        201
    );
}

#[tokio::test(start_paused = true)]
async fn exhausted_subnet_and_quota_are_conflicts() {
    let sim = OpenstackSim::builder().build();
    let home = sim.home();
    let caller = Caller::new(&sim).await;
    let small = SubnetSpec::new("small", home.external_network, "198.51.100.0/30".parse().unwrap());
    let small = sim.add_subnet(small);
    let (status, made) = create(&caller, json!({ "subnet_id": small })).await;
    assert_eq!(
        (status, &made["floatingip"]["floating_ip_address"]),
        (201, &json!("198.51.100.2"))
    );
    let (status, refused) = create(&caller, json!({ "subnet_id": small })).await;
    assert_eq!((status, kind(&refused)), (409, "IpAddressGenerationFailure"));
    assert_eq!(
        caller
            .delete(&format!("{PATH}/{}", id(&made["floatingip"])))
            .await
            .0,
        204
    );
    assert_eq!(create(&caller, json!({ "subnet_id": small })).await.0, 201);
    sim.exhaust_subnet(home.external_subnet);
    assert_eq!(create(&caller, json!({})).await.0, 409);
    let (status, refused) = create(&caller, json!({ "subnet_id": home.subnet })).await;
    assert_eq!((status, kind(&refused)), (400, "InvalidInput"));
    sim.add_floating_ip(FloatingIpSpec {
        project: Some(home.operator),
        address: Some("203.0.113.1".parse().unwrap()),
        ..FloatingIpSpec::default()
    });
    sim.set_behaviour(|it| it.quota.floating_ips = Some(1));
    let (status, refused) = create(&caller, json!({})).await;
    assert_eq!((status, kind(&refused)), (409, "OverQuota"));
    let (_, own) = caller.get(PATH).await;
    assert_eq!(own["floatingips"].as_array().unwrap().len(), 1);
}
