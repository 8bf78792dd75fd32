//! Octavia: listeners, pools, members and monitors of a load balancer that exists.

use bowline_openstack_sim::OpenstackSim;
use http::Method;
use serde_json::{Value, json};

use crate::support::{Caller, LB, balancer, id, send};

async fn listener(caller: &Caller, balancer: &str, protocol: &str, port: u16) -> (u16, Value) {
    let mut listener = json!({ "loadbalancer_id": balancer, "protocol": protocol, "protocol_port": port });
    if protocol == "TERMINATED_HTTPS" {
        listener["default_tls_container_ref"] = json!("http://x/v1/secrets/1");
    }
    caller
        .post(&format!("{LB}/listeners"), json!({ "listener": listener }))
        .await
}

fn text(body: &Value) -> &str {
    body["faultstring"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn protocols_over_tcp_share_their_ports() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let lb = id(&balancer(&caller, "web").await);
    for (protocol, status) in [
        ("UDP", 201),
        ("SCTP", 201),
        ("TCP", 409),
        ("HTTP", 409),
        ("HTTPS", 409),
        ("TERMINATED_HTTPS", 409),
    ] {
        let (answered, body) = listener(&caller, &lb, protocol, 80).await;
        assert_eq!(answered, status, "{protocol}");
        if status == 409 {
            let expected =
                "Another Listener on this Load Balancer is already using protocol TCP and protocol_port 80";
            assert_eq!(text(&body), expected);
        }
    }
    let (_, list) = caller
        .get(&format!("{LB}/listeners?loadbalancer_id={lb}&protocol=UDP"))
        .await;
    assert_eq!(list["listeners"].as_array().unwrap().len(), 1);
    assert_eq!(
        listener(&caller, &sim.home().router.to_string(), "TCP", 81)
            .await
            .0,
        404
    );
}

#[tokio::test(start_paused = true)]
async fn new_listener_has_the_usual_settings() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let lb = id(&balancer(&caller, "web").await);
    let (_, made) = listener(&caller, &lb, "HTTP", 81).await;
    let made = &made["listener"];
    for (name, value) in [
        ("connection_limit", json!(-1)),
        ("timeout_client_data", json!(50_000)),
        ("timeout_member_connect", json!(5_000)),
        ("timeout_member_data", json!(50_000)),
        ("timeout_tcp_inspect", json!(0)),
        ("allowed_cidrs", Value::Null),
        ("insert_headers", json!({})),
        ("tags", json!([])),
        ("default_pool_id", Value::Null),
    ] {
        assert_eq!(made[name], value, "{name}");
    }
    let path = format!("{LB}/listeners/{}", id(made));
    let change = json!({ "connection_limit": 10, "timeout_client_data": 1_000, "tags": [""],
        "allowed_cidrs": ["192.0.2.0/24"], "insert_headers": { "X-Forwarded-For": "true" } });
    let (status, changed) = caller.put(&path, json!({ "listener": change })).await;
    assert_eq!(status, 200);
    for name in [
        "connection_limit",
        "timeout_client_data",
        "tags",
        "allowed_cidrs",
        "insert_headers",
    ] {
        assert_eq!(changed["listener"][name], change[name], "{name}");
    }
    let back = json!({ "connection_limit": null, "allowed_cidrs": [], "tags": [] });
    let (_, back) = caller.put(&path, json!({ "listener": back })).await;
    let back = &back["listener"];
    assert_eq!(
        (&back["connection_limit"], &back["allowed_cidrs"], &back["tags"]),
        (&json!(-1), &Value::Null, &json!([]))
    );
    assert_eq!(back["timeout_client_data"], 1_000);
}

#[tokio::test(start_paused = true)]
async fn bad_listener_changes_change_nothing() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "web").await;
    let path = format!("{LB}/listeners/{}", sim.listeners()[0].part.id);
    for (change, expected) in [
        (
            json!({ "protocol_port": 81 }),
            "Unknown attribute for argument listener_.listener: protocol_port",
        ),
        (
            json!({ "insert_headers": { "X-Forwarded-For": "true" } }),
            "insert-headers is not a valid option for a TCP protocol listener.",
        ),
        (
            json!({ "timeout_client_data": -1 }),
            "Invalid input for field/attribute timeout_client_data. Value: '-1'. Value should be greater or equal to 0",
        ),
        (
            json!({ "allowed_cidrs": ["nonsense"] }),
            "Invalid input for field/attribute allowed_cidrs. Value: '['nonsense']'. Value should be IPv4 or IPv6 CIDR format",
        ),
        (
            json!({ "default_tls_container_ref": "http://x/v1/secrets/1" }),
            "Validation failure: Certificate container references are not allowed on TCP protocol listeners.",
        ),
    ] {
        let (status, refused) = caller.put(&path, json!({ "listener": change })).await;
        assert_eq!((status, text(&refused)), (400, expected));
    }
    let (_, shown) = caller.get(&path).await;
    assert_eq!(shown["listener"]["provisioning_status"], "ACTIVE");
}

#[tokio::test(start_paused = true)]
async fn terminated_tls_needs_a_certificate() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let lb = id(&balancer(&caller, "web").await);
    let certificate = sim.add_certificate("tls");
    let path = format!("/key-manager/v1/containers/{certificate}");
    let (status, container) = caller.get(&path).await;
    assert_eq!((status, &container["type"]), (200, &json!("certificate")));
    let reference = container["container_ref"].as_str().unwrap();
    let secret = container["secret_refs"][0]["secret_ref"].as_str().unwrap();
    assert_eq!(
        caller
            .get(secret.strip_prefix("http://cloud.test").unwrap())
            .await
            .0,
        200
    );
    assert_eq!(
        caller
            .get(&format!("/key-manager/v1/secrets/{certificate}"))
            .await
            .0,
        404
    );
    sim.set_behaviour(|it| it.checks_certificates = true);
    for (reference, status) in [
        (None, 400),
        (Some("http://x/v1/secrets/1"), 400),
        (Some(reference), 201),
    ] {
        let new = json!({ "loadbalancer_id": lb, "protocol": "TERMINATED_HTTPS", "protocol_port": 443,
            "default_tls_container_ref": reference });
        let (answered, body) = caller
            .post(&format!("{LB}/listeners"), json!({ "listener": new }))
            .await;
        assert_eq!(answered, status, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn listener_has_one_default_pool() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let lb = id(&balancer(&caller, "web").await);
    let first = sim.listeners()[0].part.id.to_string();
    let pools = format!("{LB}/pools");
    let pool = |listener: &str, protocol: &str| {
        json!({ "pool": {
        "listener_id": listener, "protocol": protocol, "lb_algorithm": "ROUND_ROBIN" } })
    };
    let (status, refused) = caller.post(&pools, pool(&first, "TCP")).await;
    assert_eq!(
        (status, text(&refused)),
        (409, "This listener already has a default pool")
    );
    let old = sim.pools()[0].part.id;
    assert_eq!(caller.delete(&format!("{pools}/{old}")).await.0, 204);
    let (status, again) = caller.delete(&format!("{pools}/{old}")).await;
    assert_eq!(
        (status, text(&again)),
        (404, format!("Pool {old} not found.").as_str())
    );
    assert!(sim.members().is_empty() && sim.health_monitors().is_empty());
    assert_eq!(sim.listeners()[0].default_pool, None);
    assert_eq!(caller.post(&pools, pool(&first, "UDP")).await.0, 400);
    let (status, made) = caller.post(&pools, pool(&first, "PROXYV2")).await;
    assert_eq!(
        (status, &made["pool"]["listeners"][0]["id"]),
        (201, &json!(first))
    );
    let path = format!("{pools}/{}", id(&made["pool"]));
    let (status, refused) = caller
        .put(&path, json!({ "pool": { "lb_algorithm": "NONSENSE" } }))
        .await;
    let expected = "Invalid input for field/attribute lb_algorithm. Value: 'NONSENSE'. Value should be one of: \
                    LEAST_CONNECTIONS, ROUND_ROBIN, SOURCE_IP_PORT, SOURCE_IP";
    assert_eq!((status, text(&refused)), (400, expected));
    let sticky =
        json!({ "pool": { "lb_algorithm": "SOURCE_IP", "session_persistence": { "type": "SOURCE_IP" } } });
    let (status, changed) = caller.put(&path, sticky).await;
    assert_eq!(
        (status, &changed["pool"]["session_persistence"]["type"]),
        (200, &json!("SOURCE_IP"))
    );
    let loose = json!({ "pool": { "session_persistence": null } });
    let (_, changed) = caller.put(&path, loose).await;
    assert_eq!(changed["pool"]["session_persistence"], Value::Null);
    for kind in ["NONSENSE", "APP_COOKIE"] {
        let bad = json!({ "pool": { "session_persistence": { "type": kind } } });
        assert_eq!(caller.put(&path, bad).await.0, 400, "{kind}");
    }
    let none = json!({ "pool": { "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN" } });
    assert_eq!(caller.post(&pools, none).await.0, 400);
    assert_eq!(listener(&caller, &lb, "TCP", 82).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn members_are_replaced_as_a_set() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "web").await;
    let path = format!("{LB}/pools/{}/members", sim.pools()[0].part.id);
    let old = sim.members()[0].part.id;
    let member =
        |address: &str, name: &str| json!({ "address": address, "protocol_port": 30080, "name": name });
    let set = json!({ "members": [member("10.0.0.201", "renamed"), member("10.0.0.203", "new")] });
    let headers = [("x-auth-token", caller.token.as_str())];
    let answer = send(&sim, Method::PUT, &path, &headers, &set).await;
    assert_eq!((answer.status, &answer.body), (202, &Value::Null));
    let names = || {
        let members = sim.members();
        let names = members
            .iter()
            .map(|it| (it.part.name.clone(), it.address.to_string()));
        names.collect::<Vec<_>>()
    };
    let pair = |name: &str, address: &str| (name.to_owned(), address.to_owned());
    assert_eq!(
        names(),
        [pair("renamed", "10.0.0.201"), pair("new", "10.0.0.203")]
    );
    assert_eq!(sim.members()[0].part.id, old);
    // What is not named stays as it is.
    assert!(sim.members()[0].subnet.is_some());
    // What has a default is as good as named. A set with one member twice is refused, with a code for each kind.
    sim.edit_member(old, |it| {
        (it.weight, it.is_backup, it.part.is_up) = (0, true, false);
        it.monitor_port = Some(9);
    });
    assert_eq!(caller.put(&path, set).await.0, 202);
    let there = &sim.members()[0];
    assert_eq!(
        (there.weight, there.is_backup, there.part.is_up),
        (1, false, true)
    );
    assert_eq!(there.monitor_port, None);
    for (address, status) in [("10.0.0.201", 400), ("10.0.0.209", 409)] {
        let twice = json!({ "members": [member(address, "a"), member(address, "b")] });
        assert_eq!(caller.put(&path, twice).await.0, status);
    }
    let more = json!({ "members": [member("10.0.0.204", "more")] });
    assert_eq!(
        caller.put(&format!("{path}?additive_only=true"), more).await.0,
        202
    );
    assert_eq!(names().len(), 3);
    let twice = json!({ "members": [member("10.0.0.205", "a"), member("10.0.0.205", "b")] });
    let (status, refused) = caller.put(&path, twice).await;
    let expected = "Another member on this pool is already using ip 10.0.0.205 on protocol_port 30080";
    assert_eq!((status, text(&refused)), (409, expected));
    // The same set is a change all the same.
    sim.set_behaviour(|it| it.lb_change_time = std::time::Duration::from_secs(1));
    assert_eq!(caller.put(&path, json!({ "members": [] })).await.0, 202);
    assert_eq!(caller.put(&path, json!({ "members": [] })).await.0, 409);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    assert_eq!(names(), []);
}

#[tokio::test(start_paused = true)]
async fn members_are_written_one_by_one_too() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "web").await;
    let path = format!("{LB}/pools/{}/members", sim.pools()[0].part.id);
    let new = json!({ "member": { "name": "m", "address": "10.0.0.210", "protocol_port": 30080 } });
    let (status, made) = caller.post(&path, new.clone()).await;
    let made = &made["member"];
    assert_eq!(
        (status, &made["weight"], &made["monitor_port"]),
        (201, &json!(1), &Value::Null)
    );
    assert_eq!(made["operating_status"], "OFFLINE");
    assert_eq!(caller.post(&path, new).await.0, 409);
    let one = format!("{path}/{}", id(made));
    let (status, changed) = caller
        .put(&one, json!({ "member": { "weight": 0, "monitor_port": 31000 } }))
        .await;
    assert_eq!((status, &changed["member"]["monitor_port"]), (200, &json!(31000)));
    assert_eq!(
        caller.put(&one, json!({ "member": { "weight": 257 } })).await.0,
        400
    );
    let (_, list) = caller.get(&path).await;
    assert_eq!(
        (list["members"].as_array().unwrap().len(), &list["members_links"]),
        (3, &json!([]))
    );
    assert_eq!(
        (caller.delete(&one).await.0, caller.delete(&one).await.0),
        (204, 404)
    );
    let stranger =
        json!({ "member": { "address": "10.0.0.9", "protocol_port": 1, "subnet_id": sim.home().router } });
    assert_eq!(caller.post(&path, stranger).await.0, 400);
    assert_eq!(sim.journal().count_operation("octavia.members.create"), 3);
}

#[tokio::test(start_paused = true)]
async fn pool_has_one_monitor() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    balancer(&caller, "web").await;
    let pool = sim.pools()[0].part.id;
    let monitors = format!("{LB}/healthmonitors");
    let new = |fields: Value| {
        let mut monitor =
            json!({ "pool_id": pool, "type": "TCP", "delay": 3, "timeout": 9, "max_retries": 1 });
        for (name, value) in fields.as_object().unwrap() {
            monitor[name] = value.clone();
        }
        json!({ "healthmonitor": monitor })
    };
    let (status, refused) = caller.post(&monitors, new(json!({}))).await;
    assert_eq!(
        (status, text(&refused)),
        (409, "This pool already has a health monitor")
    );
    let old = sim.health_monitors()[0].part.id;
    assert_eq!(caller.delete(&format!("{monitors}/{old}")).await.0, 204);
    for (fields, expected) in [
        (json!({ "max_retries": 11 }), 400),
        (json!({ "type": "UDP-CONNECT" }), 400),
        (json!({ "type": "NONSENSE" }), 400),
        (json!({ "url_path": "/healthz" }), 400),
        (json!({ "type": "HTTP", "url_path": "healthz" }), 400),
        (json!({ "type": "HTTP", "expected_codes": "fine" }), 400),
        // A time-out above the delay is fine.
        (
            json!({ "type": "HTTP", "url_path": "/healthz", "expected_codes": "200-204" }),
            201,
        ),
    ] {
        let (status, body) = caller.post(&monitors, new(fields.clone())).await;
        assert_eq!(status, expected, "{fields}: {body}");
    }
    let (_, list) = caller.get(&format!("{monitors}?pool_id={pool}")).await;
    let made = &list["healthmonitors"][0];
    assert_eq!(
        (&made["http_method"], &made["max_retries_down"]),
        (&json!("GET"), &json!(3))
    );
    let path = format!("{monitors}/{}", id(made));
    let change = json!({ "healthmonitor": { "delay": 60, "name": "n", "http_method": "HEAD" } });
    let (status, changed) = caller.put(&path, change).await;
    assert_eq!((status, &changed["healthmonitor"]["delay"]), (200, &json!(60)));
    assert_eq!(
        caller
            .put(&path, json!({ "healthmonitor": { "type": "TCP" } }))
            .await
            .0,
        400
    );
    assert_eq!(
        caller
            .put(&path, json!({ "healthmonitor": { "http_method": "FETCH" } }))
            .await
            .0,
        400
    );
}

#[tokio::test(start_paused = true)]
async fn probes_of_datagrams_are_no_faster_than_the_cloud_allows() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let lb = id(&balancer(&caller, "web").await);
    let (_, made) = listener(&caller, &lb, "UDP", 53).await;
    let pool = json!({ "pool": { "listener_id": made["listener"]["id"], "protocol": "UDP",
        "lb_algorithm": "ROUND_ROBIN" } });
    let (_, made) = caller.post(&format!("{LB}/pools"), pool).await;
    for (kind, delay, status) in [("UDP-CONNECT", 2, 400), ("PING", 5, 400), ("UDP-CONNECT", 3, 201)] {
        let monitor = json!({ "pool_id": made["pool"]["id"], "type": kind, "delay": delay, "timeout": 1,
            "max_retries": 1 });
        let (answered, body) = caller
            .post(
                &format!("{LB}/healthmonitors"),
                json!({ "healthmonitor": monitor }),
            )
            .await;
        assert_eq!(answered, status, "{kind} {delay}: {body}");
    }
}
