//! Nova: servers and flavors.

use std::collections::BTreeMap;

use bowline_openstack_sim::model::compute::{Flavor, ShownAddress};
use bowline_openstack_sim::{FloatingIpSpec, NicSpec, OpenstackSim, ServerSpec};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Caller, send};

const SERVERS: &str = "/compute/v2.1/servers";

fn names(list: &Value) -> Vec<&str> {
    let servers = list["servers"].as_array().unwrap();
    servers.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn server_names_its_flavor_and_shows_its_addresses() {
    let sim = OpenstackSim::builder()
        .private_v6_range("fd00:10::/64".parse().unwrap())
        .build();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let floating = sim.add_floating_ip(FloatingIpSpec {
        port: Some(sim.ports_of(id)[0].id),
        ..FloatingIpSpec::default()
    });
    let caller = Caller::new(&sim).await;
    let headers = [("x-auth-token", caller.token.as_str())];
    let path = format!("{SERVERS}/{id}");
    let answer = send(&sim, Method::GET, &path, &headers, &Value::Null).await;
    assert_eq!(answer.headers["openstack-api-version"], "compute 2.1");
    let server = &answer.body["server"];
    let flavor = server["flavor"]["id"].as_str().unwrap();
    assert!(server["flavor"].get("original_name").is_none());
    assert_eq!(
        (&server["status"], &server["OS-EXT-AZ:availability_zone"]),
        (&json!("ACTIVE"), &json!("nova"))
    );
    let shown = server["addresses"]["private"].as_array().unwrap();
    let shown: Vec<String> = shown
        .iter()
        .map(|it| format!("{} {} v{}", it["addr"], it["OS-EXT-IPS:type"], it["version"]).replace('"', ""))
        .collect();
    let outside = sim.floating_ips()[0].address.address;
    assert_eq!(
        shown,
        [
            "10.0.0.11 fixed v4".to_owned(),
            format!("{outside} floating v4"),
            "fd00:10::b fixed v6".to_owned()
        ]
    );
    let (status, flavor) = caller.get(&format!("/compute/v2.1/flavors/{flavor}")).await;
    assert_eq!((status, &flavor["flavor"]["name"]), (200, &json!("m1.small")));
    assert!(sim.assign_floating_ip(floating, None));
    assert_eq!(sim.floating_ips()[0].target, None);
}

#[tokio::test(start_paused = true)]
async fn microversion_decides_how_a_flavor_looks() {
    let sim = OpenstackSim::builder().build();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let token = Caller::new(&sim).await.token;
    let path = format!("{SERVERS}/{id}");
    for (version, status, name) in [
        ("compute 2.46", 200, json!(null)),
        ("compute 2.47", 200, json!("m1.small")),
        ("compute latest", 200, json!("m1.small")),
        ("compute 2.999", 406, json!(null)),
    ] {
        let headers = [
            ("x-auth-token", token.as_str()),
            ("openstack-api-version", version),
        ];
        let answer = send(&sim, Method::GET, &path, &headers, &Value::Null).await;
        assert_eq!(answer.status, status, "{version}");
        assert_eq!(
            answer.body["server"]["flavor"]["original_name"], name,
            "{version}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn name_is_searched_for_as_an_expression() {
    let sim = OpenstackSim::builder().build();
    for name in ["node-1", "node-11", "NODE-1", "node.1"] {
        sim.add_server(ServerSpec::new(name));
    }
    let caller = Caller::new(&sim).await;
    let found = async |name: &str| caller.get(&format!("{SERVERS}/detail?name={name}")).await.1;
    // The newest comes first.
    assert_eq!(names(&found("node-1").await), ["NODE-1", "node-11", "node-1"]);
    assert_eq!(names(&found("%5Enode-1%24").await), ["NODE-1", "node-1"]);
    assert_eq!(names(&found("%5Enode.1%24").await).len(), 3);
    assert_eq!(names(&found("%5Enope%24").await), Vec::<&str>::new());
    sim.set_behaviour(|it| it.names_ignore_case = false);
    assert_eq!(names(&found("%5Enode-1%24").await), ["node-1"]);
    assert_eq!(caller.get(&format!("{SERVERS}/detail?name=%28")).await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn server_that_is_gone_or_foreign_is_not_found() {
    let sim = OpenstackSim::builder().build();
    let id = sim.add_server(ServerSpec::new("node-1"));
    let other = sim.add_project("other");
    let foreign = sim.add_server(ServerSpec {
        project: Some(other),
        ..ServerSpec::new("node-2")
    });
    let caller = Caller::new(&sim).await;
    sim.set_server_status(id, "SHUTOFF");
    let (_, shown) = caller.get(&format!("{SERVERS}/{id}")).await;
    assert_eq!(
        (
            &shown["server"]["status"],
            &shown["server"]["OS-EXT-STS:power_state"]
        ),
        (&json!("SHUTOFF"), &json!(4))
    );
    let (_, list) = caller.get(&format!("{SERVERS}/detail?all_tenants=true")).await;
    assert_eq!(names(&list), ["node-1"]);
    assert!(sim.remove_server(id));
    for id in [id.to_string(), foreign.to_string(), "nonsense".to_owned()] {
        let (status, gone) = caller.get(&format!("{SERVERS}/{id}")).await;
        let text = format!("Instance {id} could not be found.");
        let expected = json!({ "itemNotFound": { "code": 404, "message": text } });
        assert_eq!((status, gone), (404, expected));
    }
}

#[tokio::test(start_paused = true)]
async fn server_can_show_anything() {
    let sim = OpenstackSim::builder().build();
    sim.add_flavor(Flavor {
        id: "42".to_owned(),
        name: "m1 large!".to_owned(),
        vcpus: 4,
        ram_mib: 8_192,
        disk_gib: 40,
    });
    let bare = ShownAddress {
        address: "10.0.0.31".parse().unwrap(),
        kind: None,
        mac: None,
    };
    let id = sim.add_server(ServerSpec {
        flavor: Some("42".to_owned()),
        zone: Some("az 1".to_owned()),
        nics: vec![NicSpec {
            addresses: vec!["10.0.0.31".parse().unwrap()],
            is_active: false,
            ..NicSpec::default()
        }],
        access_v4: "198.51.100.9".to_owned(),
        metadata: BTreeMap::from([("hostname".to_owned(), "h".to_owned())]),
        shown_addresses: Some(BTreeMap::from([("private".to_owned(), vec![bare])])),
        ..ServerSpec::new("node-1")
    });
    let caller = Caller::new(&sim).await;
    let (_, shown) = caller.get(&format!("{SERVERS}/{id}")).await;
    let server = &shown["server"];
    assert_eq!(
        server["addresses"],
        json!({ "private": [{ "version": 4, "addr": "10.0.0.31" }] })
    );
    assert_eq!(
        (&server["accessIPv4"], &server["metadata"]["hostname"]),
        (&json!("198.51.100.9"), &json!("h"))
    );
    assert_eq!(
        (&server["flavor"]["id"], sim.ports_of(id)[0].status.as_str()),
        (&json!("42"), "DOWN")
    );
}
