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
    let get = Method::GET;
    let external = "/v2.0/networks?router%3Aexternal=True&name=public";
    let external = walk
        .step("external networks", Network, get.clone(), external, None)
        .await;
    let own = "/v2.0/networks?router%3Aexternal=False";
    let own = walk.step("own networks", Network, get.clone(), own, None).await;
    let (external, network) = (text(&external, "/networks/0/id"), text(&own, "/networks/0/id"));
    let subnets = format!("/v2.0/subnets?network_id={network}");
    walk.step("subnets", Network, get.clone(), &subnets, None).await;
    let v4 = format!("{subnets}&ip_version=4");
    let v4 = walk
        .step("subnets by version", Network, get.clone(), &v4, None)
        .await;
    walk.step(
        "unknown network",
        Network,
        get.clone(),
        &format!("/v2.0/networks/{NOBODY}"),
        None,
    )
    .await;
    walk.step(
        "unknown subnet",
        Network,
        get.clone(),
        &format!("/v2.0/subnets/{NOBODY}"),
        None,
    )
    .await;
    walk.step(
        "unknown filter",
        Network,
        get.clone(),
        "/v2.0/networks?colour=blue",
        None,
    )
    .await;
    let external_subnets = format!("/v2.0/subnets?network_id={external}&name=public-v4");
    walk.step(
        "subnets of the external network",
        Network,
        get.clone(),
        &external_subnets,
        None,
    )
    .await;
    let router = walk
        .step("routers", Network, get.clone(), "/v2.0/routers", None)
        .await;
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
    let (get, put) = (Method::GET, Method::PUT);
    let router = format!("/v2.0/routers/{}", place.router);
    let (add, remove) = (
        format!("{router}/add_extraroutes"),
        format!("{router}/remove_extraroutes"),
    );
    let route =
        |destination: &str, next_hop: &str| json!({ "destination": destination, "nexthop": next_hop });
    let body = |routes: Vec<Value>| Some(json!({ "router": { "routes": routes } }));
    let one = || route("10.244.1.0/24", &place.address);
    walk.step("add a route", Network, put.clone(), &add, body(vec![one()]))
        .await;
    walk.step("add it again", Network, put.clone(), &add, body(vec![one()]))
        .await;
    let lost = route("10.244.9.0/24", "192.0.2.9");
    walk.step("next hop elsewhere", Network, put.clone(), &add, body(vec![lost]))
        .await;
    let odd = route("10.244.9.1/24", &place.address);
    walk.step("no network address", Network, put.clone(), &add, body(vec![odd]))
        .await;
    walk.step(
        "remove the route",
        Network,
        put.clone(),
        &remove,
        body(vec![one()]),
    )
    .await;
    walk.step(
        "remove it again",
        Network,
        put.clone(),
        &remove,
        body(vec![one()]),
    )
    .await;
    walk.step(
        "all routes at once",
        Network,
        put.clone(),
        &router,
        body(vec![one()]),
    )
    .await;
    walk.step("router", Network, get.clone(), &router, None).await;
    walk.step("no routes", Network, put.clone(), &router, body(Vec::new()))
        .await;
    let ports = format!(
        "/v2.0/ports?device_id={}&network_id={}",
        place.router, place.network
    );
    walk.step("ports of the router", Network, get.clone(), &ports, None)
        .await;
    let unknown = format!("/v2.0/routers/{NOBODY}");
    walk.step("unknown router", Network, get, &unknown, None).await;
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
    walk.step("address pairs", Network, put.clone(), &port, pairs(pair))
        .await;
    let many: Vec<Value> = (0..=10)
        .map(|index| json!({ "ip_address": format!("10.244.{index}.0/24") }))
        .collect();
    walk.step(
        "too many address pairs",
        Network,
        put.clone(),
        &port,
        pairs(many.into()),
    )
    .await;
    walk.step("no address pairs", Network, put, &port, pairs(json!([])))
        .await;
    let by_address = format!(
        "/v2.0/ports?fixed_ips=ip_address%3D{}&network_id={}",
        place.address, place.network
    );
    walk.step("ports by address", Network, Method::GET, &by_address, None)
        .await;
}

async fn security_groups(walk: &mut Walk<'_>, place: &Place) {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let groups = "/v2.0/security-groups";
    let body = json!({ "security_group": { "name": "lb-sg-1", "description": "for a Service" } });
    let group = walk
        .step("create a group", Network, post.clone(), groups, Some(body))
        .await;
    let id = text(&group, "/security_group/id").to_owned();
    let path = format!("{groups}/{id}");
    let by_name = format!("{groups}?name=lb-sg-1");
    walk.step("groups by name", Network, get.clone(), &by_name, None)
        .await;
    walk.step(
        "no such group",
        Network,
        get.clone(),
        &format!("{groups}?name=nope"),
        None,
    )
    .await;
    walk.step(
        "unknown group",
        Network,
        get.clone(),
        &format!("{groups}/{NOBODY}"),
        None,
    )
    .await;

    let rules = "/v2.0/security-group-rules";
    let rule = |ethertype: &str, prefix: &str| {
        Some(json!({ "security_group_rule": {
            "security_group_id": id, "direction": "ingress", "ethertype": ethertype, "protocol": "tcp",
            "port_range_min": 30080, "port_range_max": 30080, "remote_ip_prefix": prefix,
        } }))
    };
    let v4 = || rule("IPv4", "10.0.0.0/24");
    let created = walk
        .step("create a rule", Network, post.clone(), rules, v4())
        .await;
    let created = text(&created, "/security_group_rule/id").to_owned();
    walk.step("the same rule", Network, post.clone(), rules, v4())
        .await;
    let mixed = rule("IPv4", "fd00::/8");
    walk.step("rule of two families", Network, post.clone(), rules, mixed)
        .await;
    let all = format!("{rules}?security_group_id={id}");
    walk.step("rules", Network, get.clone(), &all, None).await;

    let port = format!("/v2.0/ports/{}", place.port);
    let groups_of = walk.look(Network, &port).await.body["port"]["security_groups"].clone();
    let with = |groups: Value| Some(json!({ "port": { "security_groups": groups } }));
    let mut more = groups_of.as_array().unwrap().clone();
    more.push(json!(id));
    walk.step(
        "port joins the group",
        Network,
        put.clone(),
        &port,
        with(json!(more)),
    )
    .await;
    let members = format!("/v2.0/ports?security_groups={id}");
    walk.step("ports of the group", Network, get.clone(), &members, None)
        .await;
    walk.step("group in use", Network, delete.clone(), &path, None)
        .await;
    walk.step(
        "port leaves the group",
        Network,
        put.clone(),
        &port,
        with(groups_of),
    )
    .await;
    let rule = format!("{rules}/{created}");
    walk.step("delete the rule", Network, delete.clone(), &rule, None)
        .await;
    walk.step("delete it again", Network, delete.clone(), &rule, None)
        .await;
    walk.step("delete the group", Network, delete.clone(), &path, None)
        .await;
    walk.step("delete the group again", Network, delete, &path, None)
        .await;
}

async fn floating_ips(walk: &mut Walk<'_>, place: &Place) {
    let (get, post, put, delete) = (Method::GET, Method::POST, Method::PUT, Method::DELETE);
    let all = "/v2.0/floatingips";
    let body = |fields: Value| {
        let mut body = json!({ "floatingip": { "floating_network_id": place.external, "description": "d" } });
        if let (Some(whole), Some(more)) = (body["floatingip"].as_object_mut(), fields.as_object()) {
            whole.extend(more.clone());
        }
        Some(body)
    };
    let created = walk
        .step(
            "create a floating IP",
            Network,
            post.clone(),
            all,
            body(json!({})),
        )
        .await;
    let path = format!("{all}/{}", text(&created, "/floatingip/id"));
    let address = text(&created, "/floatingip/floating_ip_address").to_owned();
    let on = |port: Value| Some(json!({ "floatingip": { "port_id": port } }));
    walk.step("attach", Network, put.clone(), &path, on(json!(place.port)))
        .await;
    let second = body(json!({ "port_id": place.port }));
    walk.step("a second one for the address", Network, post.clone(), all, second)
        .await;
    walk.step(
        "detach by saying nothing",
        Network,
        put.clone(),
        &path,
        Some(json!({ "floatingip": {} })),
    )
    .await;
    walk.step("detach", Network, put.clone(), &path, on(Value::Null))
        .await;
    walk.step("attach to nothing", Network, put, &path, on(json!(NOBODY)))
        .await;
    let by_address = format!("{all}?floating_ip_address={address}");
    walk.step("by address", Network, get.clone(), &by_address, None)
        .await;
    let by_port = format!("{all}?port_id={}", place.port);
    walk.step("by port", Network, get, &by_port, None).await;
    let chosen = body(json!({ "floating_ip_address": "203.0.113.99" }));
    walk.step("a chosen address", Network, post.clone(), all, chosen)
        .await;
    let inside = json!({ "floatingip": { "floating_network_id": place.network } });
    walk.step(
        "on a network that is not external",
        Network,
        post.clone(),
        all,
        Some(inside),
    )
    .await;
    let nowhere = json!({ "floatingip": { "floating_network_id": NOBODY } });
    walk.step("on an unknown network", Network, post.clone(), all, Some(nowhere))
        .await;
    let elsewhere = body(json!({ "subnet_id": place.subnet }));
    walk.step("on a foreign subnet", Network, post, all, elsewhere)
        .await;
    walk.step("delete a floating IP", Network, delete.clone(), &path, None)
        .await;
    walk.step("delete a floating IP again", Network, delete, &path, None)
        .await;
}
