//! Neutron: extensions, ports, trunks, routers and revisions.

use bowline_openstack_sim::model::network::Route;
use bowline_openstack_sim::{NetworkSpec, NicSpec, OpenstackSim, ServerSpec, SubnetSpec};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Caller, send};

const V2: &str = "/network/v2.0";

async fn put_at(caller: &Caller, path: &str, revision: &str, body: &Value) -> Answer {
    let headers = [("x-auth-token", caller.token.as_str()), ("if-match", revision)];
    send(&caller.sim, Method::PUT, path, &headers, body).await
}

#[tokio::test(start_paused = true)]
async fn extensions_are_listed_and_can_be_missing() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let (_, all) = caller.get(&format!("{V2}/extensions")).await;
    let aliases = all["extensions"].as_array().unwrap();
    for alias in ["extraroute", "extraroute-atomic", "allowed-address-pairs"] {
        assert!(aliases.iter().any(|it| it["alias"] == alias), "{alias}");
    }
    sim.set_behaviour(|it| it.extensions.retain(|alias| !alias.starts_with("extraroute")));
    let router = format!("{V2}/routers/{}", sim.home().router);
    let routes = json!({ "router": { "routes": [] } });
    assert_eq!(caller.put(&router, routes.clone()).await.0, 400);
    assert_eq!(
        caller.put(&format!("{router}/add_extraroutes"), routes).await.0,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn ports_are_found_by_device_address_and_group() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    sim.add_server(ServerSpec::new("node-2"));
    let port = sim.ports_of(server)[0].clone();
    let caller = Caller::new(&sim).await;
    let network = sim.home().network;
    let group = port.groups[0];
    for (filter, count) in [
        (format!("device_id={server}"), 1),
        (
            format!("fixed_ips=ip_address%3D10.0.0.11&network_id={network}"),
            1,
        ),
        ("fixed_ips=ip_address%3D10.0.0.99".to_owned(), 0),
        (format!("security_groups={group}"), 2),
        (format!("id={}", port.id), 1),
        (format!("device_id={}", sim.home().router), 1),
    ] {
        let (status, list) = caller.get(&format!("{V2}/ports?{filter}")).await;
        assert_eq!(
            (status, list["ports"].as_array().unwrap().len()),
            (200, count),
            "{filter}"
        );
    }
    let (_, shown) = caller.get(&format!("{V2}/ports/{}", port.id)).await;
    let shown = &shown["port"];
    assert_eq!(
        (&shown["status"], &shown["device_owner"]),
        (&json!("ACTIVE"), &json!("compute:nova"))
    );
    assert_eq!(shown["fixed_ips"][0]["ip_address"], "10.0.0.11");
    assert!(shown.get("trunk_details").is_none());
}

#[tokio::test(start_paused = true)]
async fn parent_of_a_trunk_names_the_ports_it_carries() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let parent = sim.ports_of(server)[0].id;
    let network = sim.add_network(NetworkSpec {
        name: "vlan100".to_owned(),
        ..NetworkSpec::default()
    });
    sim.add_subnet(SubnetSpec::new(
        "vlan100-v4",
        network,
        "10.1.0.0/24".parse().unwrap(),
    ));
    let subport = sim.add_subport(parent, network, 100);
    let caller = Caller::new(&sim).await;
    let path = format!("{V2}/ports/{parent}");
    let (_, shown) = caller.get(&path).await;
    let carried = &shown["port"]["trunk_details"]["sub_ports"][0];
    assert_eq!(
        (&carried["port_id"], &carried["segmentation_id"]),
        (&json!(subport), &json!(100))
    );
    let (_, shown) = caller.get(&format!("{V2}/ports/{subport}")).await;
    assert_eq!(shown["port"]["fixed_ips"][0]["ip_address"], "10.1.0.11");
    sim.set_behaviour(|it| it.extensions.retain(|alias| alias != "trunk-details"));
    let (_, shown) = caller.get(&path).await;
    assert!(shown["port"].get("trunk_details").is_none());
}

#[tokio::test(start_paused = true)]
async fn port_is_written_at_the_revision_that_was_read() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(server)[0].clone();
    let caller = Caller::new(&sim).await;
    let path = format!("{V2}/ports/{}", port.id);
    let pairs = json!({ "port": { "allowed_address_pairs": [{ "ip_address": "10.244.1.0/24" }] } });
    let answer = put_at(&caller, &path, "revision_number=1", &pairs).await;
    assert_eq!(
        (answer.status, &answer.body["port"]["revision_number"]),
        (200, &json!(2))
    );
    let pair = json!([{ "ip_address": "10.244.1.0/24", "mac_address": port.mac }]);
    assert_eq!(answer.body["port"]["allowed_address_pairs"], pair);
    let late = put_at(&caller, &path, "revision_number=1", &pairs).await;
    let text = "Constrained to 1, but current revision is 2";
    assert_eq!(
        (late.status, &late.body["NeutronError"]["message"]),
        (412, &json!(text))
    );
    assert_eq!(put_at(&caller, &path, "nonsense", &pairs).await.status, 400);
    // Who does not ask overwrites.
    assert_eq!(
        caller
            .put(&path, json!({ "port": { "allowed_address_pairs": [] } }))
            .await
            .0,
        200
    );
    sim.edit_port(port.id, |it| it.name = "by hand".to_owned());
    assert_eq!(
        put_at(&caller, &path, "revision_number=3", &pairs).await.status,
        412
    );
    sim.set_behaviour(|it| it.extensions.retain(|alias| alias != "revision-if-match"));
    assert_eq!(
        put_at(&caller, &path, "revision_number=1", &pairs).await.status,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn port_without_port_security_takes_no_groups_and_no_pairs() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec {
        nics: vec![NicSpec {
            port_security: Some(false),
            ..NicSpec::default()
        }],
        ..ServerSpec::new("node-1")
    });
    let caller = Caller::new(&sim).await;
    let port = sim.ports_of(server)[0].id;
    let path = format!("{V2}/ports/{port}");
    let group = sim.add_security_group("g", "");
    for (change, status, kind) in [
        (
            json!({ "security_groups": [group] }),
            400,
            "PortSecurityAndIPRequiredForSecurityGroups",
        ),
        (
            json!({ "allowed_address_pairs": [{ "ip_address": "10.244.1.0/24" }] }),
            409,
            "AddressPairAndPortSecurityRequired",
        ),
        (
            json!({ "security_groups": [server] }),
            404,
            "SecurityGroupNotFound",
        ),
        (json!({ "colour": "red" }), 400, "HTTPBadRequest"),
    ] {
        let (answered, refused) = caller.put(&path, json!({ "port": change })).await;
        assert_eq!(
            (answered, &refused["NeutronError"]["type"]),
            (status, &json!(kind)),
            "{refused}"
        );
    }
    assert_eq!(
        caller
            .put(&path, json!({ "port": { "security_groups": [] } }))
            .await
            .0,
        200
    );
}

#[tokio::test(start_paused = true)]
async fn tag_of_a_port_is_deleted_once() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(server)[0].id;
    sim.edit_port(port, |it| it.meta.tags = vec!["old".to_owned()]);
    let caller = Caller::new(&sim).await;
    let path = format!("{V2}/ports/{port}/tags/old");
    assert_eq!(caller.delete(&path).await.0, 204);
    let (status, gone) = caller.delete(&path).await;
    assert_eq!(
        (status, &gone["NeutronError"]["type"]),
        (404, &json!("TagNotFound"))
    );
    assert_eq!(sim.journal().count_operation("neutron.tags.delete"), 2);
}

#[tokio::test(start_paused = true)]
async fn extra_routes_are_added_and_removed_however_often() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let path = format!("{V2}/routers/{}", sim.home().router);
    let one = json!({ "destination": "10.244.1.0/24", "nexthop": "10.0.0.11" });
    let two = json!({ "destination": "10.244.2.0/24", "nexthop": "10.0.0.12" });
    let body = |routes: &Value| json!({ "router": { "routes": routes } });
    for (action, routes, left, revision) in [
        ("add_extraroutes", json!([one]), json!([one]), 1),
        ("add_extraroutes", json!([one]), json!([one]), 1),
        ("add_extraroutes", json!([two]), json!([one, two]), 2),
        ("remove_extraroutes", json!([one]), json!([two]), 3),
        ("remove_extraroutes", json!([one]), json!([two]), 3),
    ] {
        let (status, router) = caller.put(&format!("{path}/{action}"), body(&routes)).await;
        assert_eq!((status, &router["router"]["routes"]), (200, &left));
        assert_eq!(router["router"]["revision_number"], revision, "{action} {routes}");
    }
    let late = put_at(&caller, &path, "revision_number=2", &body(&json!([]))).await;
    assert_eq!(late.status, 412);
    let (status, router) = caller.put(&path, body(&json!([one]))).await;
    assert_eq!((status, &router["router"]["routes"]), (200, &json!([one])));
    let routes = &sim.snapshot()["routes"]["router1"];
    assert_eq!(*routes, json!(["10.244.1.0/24 via 10.0.0.11"]));
}

#[tokio::test(start_paused = true)]
async fn route_that_leads_nowhere_is_refused() {
    let sim = OpenstackSim::builder().build();
    sim.set_behaviour(|it| it.max_routes = 1);
    let caller = Caller::new(&sim).await;
    let path = format!("{V2}/routers/{}/add_extraroutes", sim.home().router);
    let route = |destination: &str, nexthop: &str| json!({ "destination": destination, "nexthop": nexthop });
    for (routes, status, kind) in [
        (json!([route("10.244.1.0/24", "192.0.2.9")]), 400, "InvalidRoutes"),
        (json!([route("10.244.1.0/24", "10.0.0.1")]), 400, "InvalidRoutes"),
        (
            json!([
                route("10.244.1.0/24", "10.0.0.11"),
                route("10.244.2.0/24", "10.0.0.11")
            ]),
            409,
            "OverQuota",
        ),
        (json!([route("nonsense", "10.0.0.11")]), 400, "HTTPBadRequest"),
        (json!([{ "destination": "10.244.1.0/24" }]), 400, "HTTPBadRequest"),
    ] {
        let (answered, refused) = caller.put(&path, json!({ "router": { "routes": routes } })).await;
        assert_eq!(
            (answered, &refused["NeutronError"]["type"]),
            (status, &json!(kind)),
            "{refused}"
        );
    }
    assert!(sim.router(sim.home().router).unwrap().routes.is_empty());
    // Also a removal is refused for what stays.
    let there = [1, 2, 3].map(|node| Route {
        destination: format!("10.244.{node}.0/24"),
        nexthop: "10.0.0.11".parse().unwrap(),
    });
    sim.set_routes(sim.home().router, there.to_vec());
    let path = format!("{V2}/routers/{}/remove_extraroutes", sim.home().router);
    let one = json!({ "router": { "routes": [route("10.244.1.0/24", "10.0.0.11")] } });
    assert_eq!(caller.put(&path, one.clone()).await.0, 409);
    sim.set_behaviour(|it| it.max_routes = 2);
    assert_eq!(caller.put(&path, one).await.0, 200);
    let (status, gone) = caller.get(&format!("{V2}/routers/{}", sim.home().network)).await;
    assert_eq!(
        (status, &gone["NeutronError"]["type"]),
        (404, &json!("RouterNotFound"))
    );
}
