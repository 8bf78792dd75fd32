//! Nova: a server that shows what no real one does.

use std::collections::BTreeMap;

use bowline_openstack_sim::model::compute::{Flavor, ShownAddress};
use bowline_openstack_sim::{NicSpec, OpenstackSim, ServerSpec};
use serde_json::json;

use crate::support::Caller;

const SERVERS: &str = "/compute/v2.1/servers";

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
