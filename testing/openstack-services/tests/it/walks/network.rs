//! Networks, routers, security groups, ports and floating IPs.

use bowline_openstack_services::Service::Network;
use http::Method;
use serde_json::{Value, json};

use crate::walk::{Walk, text};

/// An id that nothing has.
const NOBODY: &str = "00000000-0000-4000-8000-00000000dead";

pub(super) async fn walk(walk: &mut Walk<'_>) {
    let place = networks(walk).await;
    routes(walk, &place).await;
    security_groups(walk, &place).await;
    floating_ips(walk, &place).await;
}

/// What later steps need.
struct Place {
    network: String,
    subnet: String,
    external: String,
    router: String,
    port: String,
    address: String,
}

async fn networks(walk: &mut Walk<'_>) -> Place {
    let extensions = walk.look(Network, "/v2.0/extensions/extraroute-atomic").await;
    walk.keep("extension", extensions);
    let unknown = walk.look(Network, "/v2.0/extensions/nope").await;
    walk.keep("unknown extension", unknown);
    let external = "/v2.0/networks?router%3Aexternal=True&name=public";
    let external = walk.get("external networks", Network, external).await;
    let own = "/v2.0/networks?router%3Aexternal=False";
    let own = walk.get("own networks", Network, own).await;
    let (external, network) = (text(&external, "/networks/0/id"), text(&own, "/networks/0/id"));
    let subnets = format!("/v2.0/subnets?network_id={network}");
    walk.get("subnets", Network, &subnets).await;
    let v4 = format!("{subnets}&ip_version=4");
    let v4 = walk.get("subnets by version", Network, &v4).await;
    walk.get("unknown network", Network, &format!("/v2.0/networks/{NOBODY}"))
        .await;
    walk.get("unknown subnet", Network, &format!("/v2.0/subnets/{NOBODY}"))
        .await;
    walk.get("unknown filter", Network, "/v2.0/networks?colour=blue")
        .await;
    let external_subnets = format!("/v2.0/subnets?network_id={external}&name=public-v4");
    walk.get("subnets of the external network", Network, &external_subnets)
        .await;
    let router = walk.get("routers", Network, "/v2.0/routers").await;
    let server = walk.ground.server("node-1").await;
    let ports = walk
        .look(Network, &format!("/v2.0/ports?device_id={server}"))
        .await;
    let port = &ports.body["ports"][0];
    let v4_address = port["fixed_ips"]
        .as_array()
        .unwrap()
        .iter()
        .map(|address| text(address, "/ip_address"))
        .find(|address| address.contains('.'));
    Place {
        network: network.to_owned(),
        subnet: text(&v4, "/subnets/0/id").to_owned(),
        external: external.to_owned(),
        router: text(&router, "/routers/0/id").to_owned(),
        port: text(port, "/id").to_owned(),
        address: v4_address.unwrap().to_owned(),
    }
}

async fn routes(walk: &mut Walk<'_>, place: &Place) {
    let put = Method::PUT;
    let router = format!("/v2.0/routers/{}", place.router);
    let (add, remove) = (
        format!("{router}/add_extraroutes"),
        format!("{router}/remove_extraroutes"),
    );
    let route =
        |destination: &str, next_hop: &str| json!({ "destination": destination, "nexthop": next_hop });
    let body = |routes: Vec<Value>| Some(json!({ "router": { "routes": routes } }));
    let one = || route("10.244.1.0/24", &place.address);
    walk.put("add a route", Network, &add, body(vec![one()])).await;
    walk.put("add it again", Network, &add, body(vec![one()])).await;
    let lost = route("10.244.9.0/24", "192.0.2.9");
    walk.put("next hop elsewhere", Network, &add, body(vec![lost]))
        .await;
    let odd = route("10.244.9.1/24", &place.address);
    walk.put("no network address", Network, &add, body(vec![odd]))
        .await;
    walk.put("remove the route", Network, &remove, body(vec![one()]))
        .await;
    walk.put("remove it again", Network, &remove, body(vec![one()]))
        .await;
    walk.put("all routes at once", Network, &router, body(vec![one()]))
        .await;
    walk.get("router", Network, &router).await;
    walk.put("no routes", Network, &router, body(Vec::new())).await;
    let ports = format!(
        "/v2.0/ports?device_id={}&network_id={}",
        place.router, place.network
    );
    walk.get("ports of the router", Network, &ports).await;
    let unknown = format!("/v2.0/routers/{NOBODY}");
    walk.get("unknown router", Network, &unknown).await;
    // Both are read-modify-write of whole lists, so the provider says which revision it changes.
    let stale = walk
        .session()
        .call_with_headers(
            Network,
            put.clone(),
            &router,
            &[("if-match", "revision_number=0")],
            body(vec![one()]),
        )
        .await
        .unwrap();
    walk.keep("router, stale revision", stale);

    let port = format!("/v2.0/ports/{}", place.port);
    let pairs = |pairs: Value| Some(json!({ "port": { "allowed_address_pairs": pairs } }));
    let pair = json!([{ "ip_address": "10.244.1.0/24" }]);
    walk.put("address pairs", Network, &port, pairs(pair)).await;
    let many: Vec<Value> = (0..=10)
        .map(|index| json!({ "ip_address": format!("10.244.{index}.0/24") }))
        .collect();
    walk.put("too many address pairs", Network, &port, pairs(many.into()))
        .await;
    walk.put("no address pairs", Network, &port, pairs(json!([])))
        .await;
    let by_address = format!(
        "/v2.0/ports?fixed_ips=ip_address%3D{}&network_id={}",
        place.address, place.network
    );
    walk.get("ports by address", Network, &by_address).await;
}

async fn security_groups(walk: &mut Walk<'_>, place: &Place) {
    let groups = "/v2.0/security-groups";
    let body = json!({ "security_group": { "name": "lb-sg-1", "description": "for a Service" } });
    let group = walk.post("create a group", Network, groups, body).await;
    let id = text(&group, "/security_group/id").to_owned();
    let path = format!("{groups}/{id}");
    let by_name = format!("{groups}?name=lb-sg-1");
    walk.get("groups by name", Network, &by_name).await;
    walk.get("no such group", Network, &format!("{groups}?name=nope"))
        .await;
    walk.get("unknown group", Network, &format!("{groups}/{NOBODY}"))
        .await;

    let rules = "/v2.0/security-group-rules";
    let rule = |ethertype: &str, prefix: &str| {
        Some(json!({ "security_group_rule": {
            "security_group_id": id, "direction": "ingress", "ethertype": ethertype, "protocol": "tcp",
            "port_range_min": 30080, "port_range_max": 30080, "remote_ip_prefix": prefix,
        } }))
    };
    let v4 = || rule("IPv4", "10.0.0.0/24");
    let created = walk.post("create a rule", Network, rules, v4()).await;
    let created = text(&created, "/security_group_rule/id").to_owned();
    walk.post("the same rule", Network, rules, v4()).await;
    let mixed = rule("IPv4", "fd00::/8");
    walk.post("rule of two families", Network, rules, mixed).await;
    let all = format!("{rules}?security_group_id={id}");
    walk.get("rules", Network, &all).await;

    let port = format!("/v2.0/ports/{}", place.port);
    let groups_of = walk.look(Network, &port).await.body["port"]["security_groups"].clone();
    let with = |groups: Value| Some(json!({ "port": { "security_groups": groups } }));
    let mut more = groups_of.as_array().unwrap().clone();
    more.push(json!(id));
    walk.put("port joins the group", Network, &port, with(json!(more)))
        .await;
    let members = format!("/v2.0/ports?security_groups={id}");
    walk.get("ports of the group", Network, &members).await;
    walk.delete("group in use", Network, &path).await;
    walk.put("port leaves the group", Network, &port, with(groups_of))
        .await;
    let rule = format!("{rules}/{created}");
    walk.delete("delete the rule", Network, &rule).await;
    walk.delete("delete it again", Network, &rule).await;
    walk.delete("delete the group", Network, &path).await;
    walk.delete("delete the group again", Network, &path).await;
}

async fn floating_ips(walk: &mut Walk<'_>, place: &Place) {
    let all = "/v2.0/floatingips";
    let body = |fields: Value| {
        let mut body = json!({ "floatingip": { "floating_network_id": place.external, "description": "d" } });
        if let (Some(whole), Some(more)) = (body["floatingip"].as_object_mut(), fields.as_object()) {
            whole.extend(more.clone());
        }
        Some(body)
    };
    let created = walk
        .post("create a floating IP", Network, all, body(json!({})))
        .await;
    let path = format!("{all}/{}", text(&created, "/floatingip/id"));
    let address = text(&created, "/floatingip/floating_ip_address").to_owned();
    let on = |port: Value| Some(json!({ "floatingip": { "port_id": port } }));
    walk.put("attach", Network, &path, on(json!(place.port))).await;
    let second = body(json!({ "port_id": place.port }));
    walk.post("a second one for the address", Network, all, second)
        .await;
    walk.put(
        "detach by saying nothing",
        Network,
        &path,
        json!({ "floatingip": {} }),
    )
    .await;
    walk.put("detach", Network, &path, on(Value::Null)).await;
    walk.put("attach to nothing", Network, &path, on(json!(NOBODY)))
        .await;
    let by_address = format!("{all}?floating_ip_address={address}");
    walk.get("by address", Network, &by_address).await;
    let by_port = format!("{all}?port_id={}", place.port);
    walk.get("by port", Network, &by_port).await;
    let chosen = body(json!({ "floating_ip_address": "203.0.113.99" }));
    walk.post("a chosen address", Network, all, chosen).await;
    let inside = json!({ "floatingip": { "floating_network_id": place.network } });
    walk.post("on a network that is not external", Network, all, inside)
        .await;
    let nowhere = json!({ "floatingip": { "floating_network_id": NOBODY } });
    walk.post("on an unknown network", Network, all, nowhere).await;
    let elsewhere = body(json!({ "subnet_id": place.subnet }));
    walk.post("on a foreign subnet", Network, all, elsewhere).await;
    walk.delete("delete a floating IP", Network, &path).await;
    walk.delete("delete a floating IP again", Network, &path).await;
}
