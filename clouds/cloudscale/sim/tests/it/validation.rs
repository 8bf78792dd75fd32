//! What each endpoint refuses, and with which words.

use bowline_cloudscale_sim::{CloudscaleSim, Quota, RefusalKeys, ServerSpec, Tags};
use http::Method;
use serde_json::{Value, json};

use crate::support::{Balancer, Caller};

/// A value, or the absence, that replaces one field of a good body.
struct Bad(&'static str, Option<Value>, &'static str);

fn bad(field: &'static str, value: impl Into<Value>, fragment: &'static str) -> Bad {
    Bad(field, Some(value.into()), fragment)
}

fn missing(field: &'static str) -> Bad {
    Bad(field, None, "This field is required")
}

/// Posts each bad variant of a good body, then the good body itself.
async fn check(caller: &Caller, path: &str, good: Value, table: Vec<Bad>) -> Value {
    for Bad(field, value, fragment) in table {
        let mut body = good.clone();
        let fields = body.as_object_mut().unwrap();
        match &value {
            Some(value) => fields.insert(field.to_owned(), value.clone()),
            None => fields.remove(field),
        };
        let (status, error) = caller.post(path, body).await;
        assert_eq!(status, 400, "{path} {field} {value:?}");
        let named = error.get(field).or_else(|| error.get("detail"));
        let text = named
            .and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{field} not named in {error}"));
        assert!(text.contains(fragment), "{path} {field} {value:?}: {text}");
    }
    let (status, made) = caller.post(path, good).await;
    assert_eq!(status, 201, "{path} {made}");
    made
}

const NO_ID: &str = "11111111-2222-4333-8444-555555555555";

#[tokio::test(start_paused = true)]
async fn load_balancer_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let subnet = sim.private_subnet().to_string();
    let long = "x".repeat(257);
    let good = json!({ "name": "lb", "vip_addresses": [{ "subnet": subnet, "address": "10.20.7.7" }] });
    let table = vec![
        missing("name"),
        bad("name", "", "This field may not be blank"),
        bad("name", Value::Null, "may not be null"),
        bad("flavor", "lb-huge", "is not a valid choice"),
        bad("zone", "xyz1", "is not a valid choice. Choose one of"),
        bad("vip_addresses", json!([{ "subnet": NO_ID }]), "does not exist"),
        bad(
            "vip_addresses",
            json!([{ "subnet": subnet, "address": "10.99.0.1" }]),
            "is not a valid IP for the specified subnet",
        ),
        bad("vip_addresses", "x", "Expected a list"),
        bad("tags", json!({ "a.b": "c" }), "not allowed"),
        bad("tags", json!({ "a": long }), "longer than 256"),
        bad("tags", json!({ "a": 1 }), "strings"),
    ];
    let made = check(&caller, "/v1/load-balancers", good, table).await;
    assert_eq!(made["vip_addresses"].as_array().unwrap().len(), 1);
    assert_eq!(made["vip_addresses"][0]["address"], "10.20.7.7");
    let path = format!("/v1/load-balancers/{}", made["uuid"].as_str().unwrap());
    let subnet_id = json!({ "name": "x", "vip_addresses": [{ "subnet": "x" }] });
    let (_, error) = caller.post("/v1/load-balancers", subnet_id).await;
    assert!(error.to_string().contains("Must be a valid UUID."), "{error}");
    for (body, status) in [
        (json!({ "flavor": "lb-standard" }), 400),
        (json!({ "zone": "lpg1" }), 400),
        (json!({ "vip_addresses": [] }), 400),
        (json!({ "name": "" }), 400),
        (json!({ "tags": { "k": "v" } }), 204),
        (json!({ "tags": {} }), 204),
    ] {
        assert_eq!(caller.patch(&path, body.clone()).await.0, status, "{body}");
    }
    assert_eq!(sim.load_balancers()[0].tags, Tags::new());
    assert_eq!(
        caller.try_send(Method::PUT, &path, json!({})).await.unwrap().0,
        405
    );
    assert_eq!(
        caller.get("/v1/load-balancers/nonsense").await,
        (404, json!({ "detail": "Not found." }))
    );
}

#[tokio::test(start_paused = true)]
async fn pool_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let good =
        json!({ "name": "p", "load_balancer": lb.uuid, "algorithm": "source_ip", "protocol": "proxyv2" });
    let table = vec![
        missing("name"),
        missing("load_balancer"),
        missing("algorithm"),
        missing("protocol"),
        bad("load_balancer", "x", "Must be a valid UUID."),
        bad("load_balancer", NO_ID, "does not exist"),
        bad("algorithm", "random", "Expect one of"),
        bad("protocol", "http", "Expect one of"),
    ];
    let made = check(&caller, "/v1/load-balancers/pools", good, table).await;
    let path = format!("/v1/load-balancers/pools/{}", made["uuid"].as_str().unwrap());
    assert_eq!(
        caller.patch(&path, json!({ "algorithm": "round_robin" })).await.0,
        400
    );
    assert_eq!(caller.patch(&path, json!({ "name": "q" })).await.0, 204);
    assert_eq!(caller.get(&path).await.1["name"], "q");
    assert_eq!(caller.get(&path).await.1["load_balancer"]["name"], "lb");
}

#[tokio::test(start_paused = true)]
async fn member_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let members = format!("{}/members", lb.pool_path());
    let good = json!({
        "name": "m", "protocol_port": 31000, "address": "10.20.9.9", "subnet": sim.private_subnet(), "monitor_port": null,
    });
    let ports = "The protocol_port must be between";
    let table = vec![
        missing("name"),
        missing("protocol_port"),
        missing("address"),
        missing("subnet"),
        bad("protocol_port", 0, ports),
        bad("protocol_port", 65_536, ports),
        bad("protocol_port", "80", "A valid integer"),
        bad("monitor_port", 0, "The monitor_port must be between"),
        bad(
            "address",
            "10.21.0.1",
            "is not a valid IP for the specified subnet",
        ),
        bad("address", "node", "Enter a valid IPv4 or IPv6 address"),
        bad("subnet", NO_ID, "does not exist"),
        bad("enabled", "yes", "boolean"),
    ];
    let made = check(&caller, &members, good.clone(), table).await;
    assert_eq!(
        (&made["enabled"], &made["monitor_port"]),
        (&json!(true), &json!(null))
    );
    let path = format!("{members}/{}", made["uuid"].as_str().unwrap());
    assert_eq!(
        caller.patch(&path, json!({ "address": "10.20.0.1" })).await.0,
        400
    );
    assert_eq!(caller.patch(&path, json!({ "enabled": false })).await.0, 204);
    assert_eq!(
        caller
            .post(&format!("/v1/load-balancers/pools/{NO_ID}/members"), good.clone())
            .await
            .0,
        404
    );
    assert_eq!(
        caller
            .get(&format!("/v1/load-balancers/pools/{NO_ID}/members"))
            .await
            .0,
        404
    );
    assert_eq!(
        caller.post(&members, good.clone()).await.0,
        201,
        "duplicates are allowed"
    );
    sim.set_behaviour(|it| it.duplicate_members = false);
    assert_eq!(caller.post(&members, good).await.0, 400, "duplicates are refused");
}

#[tokio::test(start_paused = true)]
async fn what_is_written_need_not_be_what_is_shown() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, " lb ").await;
    let listener = json!({ "name": "l", "pool": lb.pool, "protocol": "tcp", "protocol_port": 81 });
    let made = caller.post("/v1/load-balancers/listeners", listener).await.1;
    let path = format!("/v1/load-balancers/listeners/{}", made["uuid"].as_str().unwrap());
    assert_eq!(sim.load_balancers()[0].name, "lb");
    let mut table = vec![
        ("2001:DB8:0::/32", 204, "2001:db8::/32"),
        ("10.0.0.5/8", 400, "2001:db8::/32"),
    ];
    for masks in [false, true] {
        sim.set_behaviour(|it| it.masks_host_bits = masks);
        for (written, status, shown) in table.drain(..) {
            let body = json!({ "allowed_cidrs": [written] });
            assert_eq!(caller.patch(&path, body).await.0, status, "{written}");
            assert_eq!(caller.get(&path).await.1["allowed_cidrs"], json!([shown]));
        }
        table.push(("10.0.0.5/8", 204, "10.0.0.0/8"));
    }
    sim.set_behaviour(|it| it.unkept_attributes = vec!["allowed_cidrs".into(), "http.host".into()]);
    assert_eq!(caller.patch(&path, json!({ "allowed_cidrs": [] })).await.0, 204);
    assert_eq!(caller.get(&path).await.1["allowed_cidrs"], json!(["10.0.0.0/8"]));
    sim.set_behaviour(|it| it.cuts_names_to = Some(3));
    assert_eq!(caller.patch(&path, json!({ "name": "tcp/81" })).await.0, 204);
    assert_eq!(caller.get(&path).await.1["name"], "tcp");
}

#[tokio::test(start_paused = true)]
async fn listener_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let good = json!({
        "name": "l", "pool": lb.pool, "protocol": "udp", "protocol_port": 80, "allowed_cidrs": ["2001:db8::/32", "192.0.2.0/24"],
    });
    let table = vec![
        missing("name"),
        missing("pool"),
        missing("protocol"),
        missing("protocol_port"),
        bad("pool", NO_ID, "Not found"),
        bad("protocol", "sctp", "Expect one of"),
        bad("protocol_port", 70_000, "The protocol_port must be between"),
        bad(
            "allowed_cidrs",
            json!(["192.0.2.1/24"]),
            "Enter a valid network address in CIDR notation",
        ),
        bad(
            "allowed_cidrs",
            json!(["x"]),
            "Enter a valid network address in CIDR notation",
        ),
        bad("timeout_client_data_ms", -1, "must be between"),
    ];
    let made = check(&caller, "/v1/load-balancers/listeners", good.clone(), table).await;
    assert_eq!(made["allowed_cidrs"], json!(["2001:db8::/32", "192.0.2.0/24"]));
    assert_eq!(made["timeout_member_connect_ms"], 5000);
    let mut taken = good;
    taken["protocol"] = json!("tcp");
    let (status, error) = caller.post("/v1/load-balancers/listeners", taken).await;
    assert!(
        status == 400
            && error["protocol_port"]
                .as_str()
                .unwrap()
                .contains("already exists"),
        "{error}"
    );
    let path = format!("/v1/load-balancers/listeners/{}", made["uuid"].as_str().unwrap());
    assert_eq!(caller.patch(&path, json!({ "protocol_port": 81 })).await.0, 400);
    sim.set_behaviour(|it| it.listener_port_patchable = true);
    assert_eq!(caller.patch(&path, json!({ "protocol_port": 81 })).await.0, 204);
    assert_eq!(caller.patch(&path, json!({ "allowed_cidrs": [] })).await.0, 204);
    let two = json!({ "timeout_client_data_ms": 1, "timeout_member_data_ms": 2 });
    assert_eq!(caller.patch(&path, two.clone()).await.0, 204);
    sim.set_behaviour(|it| it.one_attribute_per_patch = true);
    assert_eq!(caller.patch(&path, two).await.0, 400);
    let shown = caller.get(&path).await.1;
    assert_eq!(
        (&shown["protocol_port"], &shown["allowed_cidrs"]),
        (&json!(81), &json!([]))
    );
    assert_eq!(
        (&shown["timeout_client_data_ms"], &shown["timeout_member_data_ms"]),
        (&json!(1), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn health_monitor_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let good = json!({ "pool": lb.pool, "type": "https", "http": { "expected_codes": ["200-204"], "host": "x.test" } });
    let path = "/v1/load-balancers/health-monitors";
    assert_eq!(
        caller.post(path, good.clone()).await.0,
        400,
        "the pool has one already"
    );
    sim.delete_health_monitor(sim.health_monitors()[0].uuid);
    sim.set_behaviour(|it| it.min_udp_connect_delay_s = Some(3));
    let table = vec![
        missing("pool"),
        missing("type"),
        bad("pool", NO_ID, "does not exist"),
        bad("type", "icmp", "Expect one of"),
        bad("delay_s", 0, "must be between"),
        bad("up_threshold", "2", "A valid integer"),
        bad(
            "http",
            json!({ "version": "1.0", "host": "x" }),
            "The host argument can not be used with HTTP version 1.0",
        ),
        bad("http", json!({ "version": "2" }), "Expect one of"),
        bad("http", json!({ "method": "BREW" }), "Expect one of"),
        bad(
            "http",
            json!({ "expected_codes": ["200-204", "301"] }),
            "expected_codes",
        ),
        bad("http", json!({ "expected_codes": [] }), "expected_codes"),
        bad("http", json!({ "url_path": "livez" }), "slash"),
        bad("http", "x", "Expected an object"),
    ];
    let made = check(&caller, path, good, table).await;
    assert_eq!(made["http"]["url_path"], "/");
    let numbers =
        ["delay_s", "timeout_s", "up_threshold", "down_threshold"].map(|name| made[name].as_u64().unwrap());
    assert_eq!(numbers, [2, 1, 2, 3]);
    sim.delete_health_monitor(made["uuid"].as_str().unwrap().parse().unwrap());
    let part = json!({ "pool": lb.pool, "type": "tcp", "http": { "method": "GET" } });
    assert_eq!(caller.post(path, part).await.0, 400, "no HTTP part for tcp");
    let short = json!({ "pool": lb.pool, "type": "udp-connect", "delay_s": 2 });
    assert_eq!(caller.post(path, short).await.0, 400);
    let made = caller
        .post(
            path,
            json!({ "pool": lb.pool, "type": "udp-connect", "delay_s": 3, "http": {} }),
        )
        .await;
    assert_eq!((made.0, &made.1["http"]), (201, &json!(null)));
}

#[tokio::test(start_paused = true)]
async fn the_refusal_of_a_health_monitor_has_the_keys_of_the_switch() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    let path = "/v1/load-balancers/health-monitors";
    let there = format!("{path}/{}", sim.health_monitors()[0].uuid);
    let second = json!({ "pool": lb.pool, "type": "tcp" });
    let wrong = json!({ "pool": lb.pool, "type": "http", "http": { "version": "1.0", "host": "x" } });
    for (keys, of_pool, of_host) in [
        (RefusalKeys::Attribute, "pool", "http"),
        (RefusalKeys::Field, "pool", "host"),
        (RefusalKeys::Detail, "detail", "detail"),
        (RefusalKeys::NonField, "non_field_errors", "non_field_errors"),
    ] {
        sim.set_behaviour(|it| it.monitor_refusals = keys);
        for (body, key, text) in [
            (&second, of_pool, "already has a health monitor"),
            (&wrong, of_host, "can not be used with HTTP version 1.0"),
        ] {
            let (status, answer) = caller.post(path, body.clone()).await;
            assert_eq!(status, 400);
            assert!(answer[key].as_str().unwrap().contains(text), "{keys:?}: {answer}");
            assert_eq!(answer.as_object().unwrap().len(), 1, "{keys:?}: {answer}");
        }
        let key = if of_pool == "pool" { "delay_s" } else { of_pool };
        let (_, answer) = caller.patch(&there, json!({ "delay_s": 0 })).await;
        assert!(answer[key].is_string(), "{keys:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let good = json!({
        "name": "s", "flavor": "flex-16-4", "image": "ubuntu-24.04", "zone": "lpg1",
        "interfaces": [{ "network": "public" }, { "addresses": [{ "subnet": sim.private_subnet(), "address": "10.20.5.5" }] }],
    });
    let table = vec![
        missing("name"),
        missing("flavor"),
        missing("image"),
        bad("flavor", "huge", "is not a valid choice"),
        bad("zone", "x1", "Choose one of"),
        bad("interfaces", json!([{ "network": NO_ID }]), "does not exist"),
        bad("volume_size_gb", 1, "must be between"),
    ];
    let made = check(&caller, "/v1/servers", good, table).await;
    assert_eq!(made["interfaces"][1]["addresses"][0]["address"], "10.20.5.5");
    let path = format!("/v1/servers/{}", made["uuid"].as_str().unwrap());
    let swapped = json!({ "interfaces": [{ "addresses": [{ "subnet": sim.private_subnet() }] }, { "network": "public" }] });
    assert_eq!(caller.patch(&path, swapped).await.0, 204);
    let shown = caller.get(&path).await.1;
    assert_eq!(
        (&shown["interfaces"][0]["type"], &shown["interfaces"][1]["type"]),
        (&json!("private"), &json!("public"))
    );
    assert_eq!(caller.post(&format!("{path}/explode"), json!({})).await.0, 404);
    assert_eq!(caller.get(&format!("/v1/servers/{NO_ID}")).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn networks_and_subnets_are_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let table = vec![
        missing("name"),
        bad("mtu", 100, "must be between"),
        bad("zone", "x", "Choose one of"),
    ];
    let network = check(&caller, "/v1/networks", json!({ "name": "n" }), table).await;
    assert_eq!(network["subnets"].as_array().unwrap().len(), 1);
    assert_eq!(
        caller.get("/v1/networks").await.1.as_array().unwrap().len(),
        2,
        "the public one is not listed"
    );
    let good =
        json!({ "network": network["uuid"], "cidr": "10.77.0.0/24", "gateway_address": "10.77.0.254" });
    let table = vec![
        missing("network"),
        bad("network", NO_ID, "does not exist"),
        bad(
            "cidr",
            "10.77.0.1/24",
            "Enter a valid network address in CIDR notation",
        ),
        bad(
            "gateway_address",
            "10.78.0.1",
            "is not a valid IP for the specified subnet",
        ),
    ];
    let subnet = check(&caller, "/v1/subnets", good.clone(), table).await;
    assert_eq!(caller.post("/v1/subnets", good).await.0, 400, "overlaps");
    let path = format!("/v1/subnets/{}", subnet["uuid"].as_str().unwrap());
    assert_eq!(
        caller
            .patch(&path, json!({ "dns_servers": ["192.0.2.1"] }))
            .await
            .0,
        204
    );
    assert_eq!(caller.get(&path).await.1["dns_servers"], json!(["192.0.2.1"]));
    assert_eq!(caller.patch(&path, json!({ "dns_servers": null })).await.0, 204);
    assert_eq!(caller.patch(&path, json!({ "cidr": "10.0.0.0/8" })).await.0, 400);
    let of_network = format!("/v1/networks/{}", network["uuid"].as_str().unwrap());
    assert_eq!(caller.patch(&of_network, json!({ "name": "m" })).await.0, 204);
    assert_eq!(caller.delete(&of_network).await.0, 204);
    assert_eq!(caller.get(&path).await.0, 404, "the subnet went with its network");
    let used = caller.get("/v1/networks").await.1[0]["uuid"]
        .as_str()
        .unwrap()
        .to_owned();
    sim.add_server(ServerSpec::new("n1"));
    assert_eq!(
        caller.delete(&format!("/v1/networks/{used}")).await.0,
        400,
        "in use"
    );
}

#[tokio::test(start_paused = true)]
async fn floating_ip_is_validated() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let table = vec![
        missing("ip_version"),
        bad("ip_version", 5, "Expect one of"),
        bad("type", "local", "Expect one of"),
        bad("region", "x", "is not a valid choice"),
        bad("prefix_length", 56, "56"),
        bad("server", NO_ID, "does not exist"),
    ];
    let made = check(&caller, "/v1/floating-ips", json!({ "ip_version": 4 }), table).await;
    assert_eq!(
        (&made["server"], &made["load_balancer"], &made["next_hop"]),
        (&json!(null), &json!(null), &json!(null))
    );
    assert_eq!(
        (&made["type"], &made["region"]["slug"]),
        (&json!("regional"), &json!("rma"))
    );
    let address = made["network"]
        .as_str()
        .unwrap()
        .strip_suffix("/32")
        .unwrap()
        .to_owned();
    let path = format!("/v1/floating-ips/{address}");
    assert_eq!(
        caller.patch(&path, json!({ "reverse_ptr": "a.example" })).await.0,
        204
    );
    assert_eq!(caller.patch(&path, json!({ "ip_version": 6 })).await.0, 400);
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(caller.get(&path).await.0, 404);
    assert_eq!(caller.get("/v1/floating-ips/not-an-ip").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn quotas_maintenance_and_bad_bodies_are_refused() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let lb = Balancer::create(&caller, "lb").await;
    sim.set_behaviour(|it| {
        it.quota = Quota {
            load_balancers: Some(1),
            pools_per_load_balancer: Some(1),
            members_per_pool: Some(2),
            listeners_per_load_balancer: Some(1),
            servers: Some(2),
            floating_ips: Some(0),
        };
    });
    let pool =
        json!({ "name": "p", "load_balancer": lb.uuid, "algorithm": "round_robin", "protocol": "tcp" });
    let subnet = sim.private_subnet();
    let member = json!({ "name": "m", "protocol_port": 1, "address": "10.20.9.9", "subnet": subnet });
    let listener = json!({ "name": "l", "pool": lb.pool, "protocol": "tcp", "protocol_port": 1 });
    for (path, body) in [
        ("/v1/load-balancers".to_owned(), json!({ "name": "x" })),
        ("/v1/load-balancers/pools".to_owned(), pool),
        (format!("{}/members", lb.pool_path()), member),
        ("/v1/load-balancers/listeners".to_owned(), listener),
        (
            "/v1/servers".to_owned(),
            json!({ "name": "s", "flavor": "flex-16-4", "image": "i" }),
        ),
        ("/v1/floating-ips".to_owned(), json!({ "ip_version": 4 })),
    ] {
        let (status, error) = caller.post(&path, body).await;
        assert!(
            status == 400 && error["detail"].as_str().unwrap().contains("quota"),
            "{path} {error}"
        );
    }
    assert_eq!(caller.post("/v1/load-balancers", json!([1])).await.0, 400);
    assert_eq!(caller.get("/v1/nothing").await.0, 404);
    sim.set_behaviour(|it| it.maintenance = true);
    assert_eq!(caller.get("/v1/servers").await.0, 503);
}

#[tokio::test(start_paused = true)]
async fn switches_are_set_over_the_admin_path() {
    let sim = CloudscaleSim::builder().build();
    let caller = Caller::new(&sim, "t");
    let put = |body: Value| caller.try_send(Method::PUT, "/_sim/behaviour", body);
    assert_eq!(
        put(json!({ "lb_create_time_ms": 1500, "overlap": { "refuse": 409 } }))
            .await
            .unwrap()
            .0,
        204
    );
    assert_eq!(sim.behaviour().lb_create_time.as_millis(), 1500);
    assert_eq!(put(json!({ "no_such_switch": true })).await.unwrap().0, 400);
    assert_eq!(
        caller.get("/_sim/behaviour").await.1["overlap"],
        json!({ "refuse": 409 })
    );
    assert_eq!(
        caller.get("/_sim/snapshot").await.1,
        json!({ "load_balancers": [], "floating_ips": {} })
    );
    assert_eq!(caller.get("/_sim/invariants").await.1, json!([]));
    assert!(sim.journal().is_empty());
}
