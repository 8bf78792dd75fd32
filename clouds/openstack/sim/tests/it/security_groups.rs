//! Neutron: security groups and their rules.

use bowline_openstack_sim::{OpenstackSim, ServerSpec};
use serde_json::{Value, json};

use crate::support::{Caller, id};

const GROUPS: &str = "/network/v2.0/security-groups";
const RULES: &str = "/network/v2.0/security-group-rules";

async fn group(caller: &Caller, name: &str) -> Value {
    let body = json!({ "security_group": { "name": name, "description": "d" } });
    let (status, made) = caller.post(GROUPS, body).await;
    assert_eq!(status, 201, "{made}");
    made["security_group"].clone()
}

fn rule(group: &str) -> Value {
    json!({
        "security_group_id": group, "direction": "ingress", "ethertype": "IPv4", "protocol": "tcp",
        "port_range_min": 30080, "port_range_max": 30080, "remote_ip_prefix": "10.0.0.0/24",
    })
}

fn kind(body: &Value) -> &str {
    body["NeutronError"]["type"].as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn new_group_lets_everything_out() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let made = group(&caller, "lb-sg").await;
    let rules = made["security_group_rules"].as_array().unwrap();
    assert_eq!(rules.len(), 2);
    for (rule, ethertype) in rules.iter().zip(["IPv4", "IPv6"]) {
        assert_eq!(
            (&rule["direction"], &rule["ethertype"]),
            (&json!("egress"), &json!(ethertype))
        );
        for unset in [
            "protocol",
            "port_range_min",
            "remote_ip_prefix",
            "remote_group_id",
            "description",
        ] {
            assert_eq!(rule[unset], Value::Null, "{unset}");
        }
    }
    let (_, found) = caller.get(&format!("{GROUPS}?name=lb-sg")).await;
    assert_eq!(found["security_groups"][0]["id"], made["id"]);
    let (_, all) = caller.get(GROUPS).await;
    assert_eq!(all["security_groups"].as_array().unwrap().len(), 2);
    // Two groups may have one name, but for the one that every project has.
    group(&caller, "lb-sg").await;
    let body = json!({ "security_group": { "name": "default" } });
    let (status, refused) = caller.post(GROUPS, body).await;
    assert_eq!(
        (status, kind(&refused)),
        (409, "SecurityGroupDefaultAlreadyExists")
    );
    sim.set_behaviour(|it| it.quota.security_groups = Some(3));
    let body = json!({ "security_group": { "name": "more" } });
    assert_eq!(kind(&caller.post(GROUPS, body).await.1), "OverQuota");
}

#[tokio::test(start_paused = true)]
async fn rule_is_there_once() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let group = id(&group(&caller, "lb-sg").await);
    let body = json!({ "security_group_rule": rule(&group) });
    let (status, made) = caller.post(RULES, body.clone()).await;
    let made = id(&made["security_group_rule"]);
    assert_eq!(status, 201);
    let (status, twin) = caller.post(RULES, body).await;
    let text = format!("Security group rule already exists. Rule id is {made}.");
    assert_eq!((status, &twin["NeutronError"]["message"]), (409, &json!(text)));
    let (_, list) = caller
        .get(&format!("{RULES}?security_group_id={group}&direction=ingress"))
        .await;
    assert_eq!(list["security_group_rules"].as_array().unwrap().len(), 1);
    let (_, shown) = caller.get(&format!("{GROUPS}/{group}")).await;
    assert_eq!(shown["security_group"]["revision_number"], 2);
    let path = format!("{RULES}/{made}");
    assert_eq!(caller.delete(&path).await.0, 204);
    assert_eq!(kind(&caller.delete(&path).await.1), "SecurityGroupRuleNotFound");
    assert_eq!(sim.rules_of(group.parse().unwrap()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn bad_rules_are_refused() {
    let sim = OpenstackSim::builder().build();
    let caller = Caller::new(&sim).await;
    let group = id(&group(&caller, "lb-sg").await);
    for (changes, status, expected) in [
        (
            json!({ "security_group_id": sim.home().network }),
            404,
            "SecurityGroupNotFound",
        ),
        (json!({ "direction": "sideways" }), 400, "HTTPBadRequest"),
        (
            json!({ "protocol": "TCP/IP" }),
            400,
            "SecurityGroupRuleInvalidProtocol",
        ),
        (
            json!({ "protocol": null }),
            400,
            "SecurityGroupProtocolRequiredWithPorts",
        ),
        (
            json!({ "port_range_min": 30081 }),
            400,
            "SecurityGroupInvalidPortRange",
        ),
        (
            json!({ "port_range_max": 70000 }),
            400,
            "SecurityGroupInvalidPortValue",
        ),
        (
            json!({ "remote_ip_prefix": "fd00::/8" }),
            400,
            "SecurityGroupRuleParameterConflict",
        ),
        (json!({ "remote_ip_prefix": "nonsense" }), 400, "InvalidCIDR"),
        (
            json!({ "remote_group_id": group }),
            400,
            "SecurityGroupMultipleRemoteEntites",
        ),
        (json!({ "colour": "red" }), 400, "HTTPBadRequest"),
    ] {
        let mut body = rule(&group);
        for (name, value) in changes.as_object().unwrap() {
            body[name] = value.clone();
        }
        let (answered, refused) = caller.post(RULES, json!({ "security_group_rule": body })).await;
        assert_eq!(
            (answered, kind(&refused)),
            (status, expected),
            "{changes}: {refused}"
        );
    }
    let mut upper = rule(&group);
    upper["protocol"] = json!("TCP");
    let (_, made) = caller.post(RULES, json!({ "security_group_rule": upper })).await;
    assert_eq!(made["security_group_rule"]["protocol"], "tcp");
}

#[tokio::test(start_paused = true)]
async fn group_in_use_stays() {
    let sim = OpenstackSim::builder().build();
    let server = sim.add_server(ServerSpec::new("node-1"));
    let port = sim.ports_of(server)[0].clone();
    let caller = Caller::new(&sim).await;
    let made = group(&caller, "lb-sg").await;
    let path = format!("/network/v2.0/ports/{}", port.id);
    let both = json!({ "port": { "security_groups": [port.groups[0], made["id"]] } });
    assert_eq!(caller.put(&path, both).await.0, 200);
    assert_eq!(sim.snapshot()["security_groups"][0]["servers"], json!(["node-1"]));
    let group_path = format!("{GROUPS}/{}", id(&made));
    let (status, refused) = caller.delete(&group_path).await;
    assert_eq!((status, kind(&refused)), (409, "SecurityGroupInUse"));
    let first = json!({ "port": { "security_groups": [port.groups[0]] } });
    assert_eq!(caller.put(&path, first).await.0, 200);
    assert_eq!(caller.delete(&group_path).await.0, 204);
    let (status, gone) = caller.delete(&group_path).await;
    assert_eq!((status, kind(&gone)), (404, "SecurityGroupNotFound"));
    let (status, refused) = caller.delete(&format!("{GROUPS}/{}", port.groups[0])).await;
    assert_eq!(
        (status, kind(&refused)),
        (409, "SecurityGroupCannotRemoveDefault")
    );
}
